"""Findings about declared rules that protect less than they say, since rules for one name are combined. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from reconciler.engine.compare.earlier import by_section
from reconciler.engine.compare.effect import RulesTogether, rules_together
from reconciler.model.in_effect import PatternRule
from reconciler.model.item import Finding
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.resource import Resource
from reconciler.model.state import DesiredState, LiveState, Section, Unreadable
from reconciler.model.targets import Address, Key, Level, Target

RulesByGroup = dict[tuple[str, str], tuple[Target, Sequence[PatternRule]]]
"""By the path of a group, in lower case, and the section: the group, and its rules after the plan."""

NOT_DECLARED = "not declared"


def with_undermined(plan: Plan, desired: DesiredState, live: LiveState, kinds: Kinds) -> Plan:
    """Return a plan with a finding for each declared rule that others undermine, and for each that allows nobody."""
    planned = {target.target: target for target in plan.targets}
    rules_by_group: RulesByGroup = {}
    return plan.with_findings(
        finding
        for target in desired.targets
        if target.target in planned
        for section in target.sections
        if kinds[section.kind].in_effect is not None
        for finding in _undermined(planned[target.target], section, live, kinds, rules_by_group)
    )


def _undermined(
    planned: TargetPlan, section: Section, live: LiveState, kinds: Kinds, rules_by_group: RulesByGroup
) -> Iterator[Finding]:
    """Yield the findings about the rules of a section; take over those of a group, for the projects below it."""
    target, kind = section.target, kinds[section.kind]
    part = kind.parts[0]
    if isinstance(live.parts.get((target, kind.name, part.name), Unreadable("")), Unreadable):
        return
    rules = cast("RulesTogether", rules_together(kind, target, live, by_section(planned).get(kind.name, ())))
    wanted = cast("Mapping[Key, Resource | None]", section.wanted[part.name])
    declared = {str(name) for name, resource in wanted.items() if resource is not None}
    named = [replace(rule, fields=rules.with_names(rule.fields)) for rule in rules.after]
    own = [replace(rule, owner="" if rule.name in declared else NOT_DECLARED) for rule in named if not rule.owner]
    if target.level is Level.GROUP:
        rules_by_group[str(target.ref).casefold(), kind.name] = target, own
    places = [(path, kind.name) for path in target.groups_above]
    groups = [rules_by_group[place] for place in places if place in rules_by_group]
    planned_above = [
        replace(rule, owner=f"{group}{rule.owner and f', {rule.owner}'}")
        for group, rules_of_group in groups
        for rule in rules_of_group
    ]
    # The service lists the rules of a group as they are before the plan.
    above = planned_above if groups else [rule for rule in named if rule.owner]
    able = [rules.without_unable(rule) for rule in rules.after]
    undermined = partial(rules.in_effect.undermined, part.model.directions)
    for rule in own:
        where = Address(target, kind.name, part.name, part.title, rule.name)
        if not rule.owner:
            # The rules of the projects below a group may let people in.
            flaw = rules.in_effect.flaw_of(rule, able) if target.level is not Level.GROUP else ""
            if flaw:
                yield Finding(where, "closed", flaw)
            for reason in undermined(rule, (other for other in (*own, *above) if other is not rule)):
                yield Finding(where, "undermined", reason)
        for rule_above in planned_above:
            for reason in undermined(rule_above, [rule]) if NOT_DECLARED not in rule_above.owner else ():
                yield Finding(where, "undermined", f"{rule_above}: {reason}")
