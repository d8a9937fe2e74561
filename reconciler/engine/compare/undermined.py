"""Findings about declared rules that protect less than they say, since rules for one name are combined. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from reconciler.engine.compare.earlier import by_section
from reconciler.engine.compare.effect import RulesTogether, rules_together
from reconciler.model.item import Finding
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.resource import Resource
from reconciler.model.state import DesiredState, LiveState, Section, Unreadable
from reconciler.model.targets import Address, Key, Level


def with_undermined(plan: Plan, desired: DesiredState, live: LiveState, kinds: Kinds) -> Plan:
    """Return a plan with a finding for each declared rule that others undermine, and for each that allows nobody."""
    planned = {target.target: target for target in plan.targets}
    return plan.with_findings(
        finding
        for target in desired.targets
        if target.target in planned
        for section in target.sections
        if kinds[section.kind].in_effect is not None
        for finding in _undermined(planned[target.target], section, live, kinds)
    )


def _undermined(planned: TargetPlan, section: Section, live: LiveState, kinds: Kinds) -> Iterator[Finding]:
    kind = kinds[section.kind]
    part = kind.parts[0]
    if isinstance(live.parts.get((section.target, kind.name, part.name), Unreadable("")), Unreadable):
        return
    rules = cast("RulesTogether", rules_together(kind, section.target, live, by_section(planned).get(kind.name, ())))
    wanted = cast("Mapping[Key, Resource | None]", section.wanted[part.name])
    declared = {str(name) for name, resource in wanted.items() if resource is not None}
    named = [
        replace(
            rule,
            fields=rules.with_names(rule.fields),
            owner=rule.owner or ("" if rule.name in declared else "not declared"),
        )
        for rule in rules.after
    ]
    able = [rules.without_unable(rule) for rule in rules.after]
    for rule in (rule for rule in named if not rule.owner):
        where = Address(section.target, kind.name, part.name, part.title, rule.name)
        # The rules of the projects below a group may let people in.
        flaw = rules.in_effect.flaw_of(rule, able) if section.target.level is not Level.GROUP else ""
        if flaw:
            yield Finding(where, "closed", flaw)
        others = (other for other in named if other is not rule)
        for reason in rules.in_effect.undermined(part.model.directions, rule, others):
            yield Finding(where, "undermined", reason)
