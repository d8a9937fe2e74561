"""The effect of each change on protection: whether it loosens, tightens, or both. Pure; begin with `with_effects`.

The model of a field says which of two values is stricter, and a kind says whether the existence of an object protects.
Where several rules hold for one name, their combined effect is compared, before and after the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, cast

from reconciler.engine.compare.earlier import by_section
from reconciler.model.creation import ToCreate
from reconciler.model.diff import Fields, fields_of
from reconciler.model.direction import Strictness, by_number, compare_field
from reconciler.model.endpoints import Collection
from reconciler.model.entries import ROSTERS, Numbers, Who
from reconciler.model.in_effect import InEffect, PatternRule
from reconciler.model.item import Change, Create, Delete, Effect, Update, with_effect
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import Known, LiveState, Vocabulary
from reconciler.model.targets import Key, Target

Effects = frozenset[Literal["loosens", "tightens"]]
"""The effect of a change on protection: either, both, or neither."""

NO_EFFECT: Effects = frozenset()
LOOSENS: Effects = frozenset({"loosens"})
TIGHTENS: Effects = frozenset({"tightens"})

EFFECTS: Mapping[Strictness, Effects] = {
    Strictness.STRICTER: TIGHTENS,
    Strictness.EQUAL: NO_EFFECT,
    Strictness.LOOSER: LOOSENS,
    Strictness.INCOMPARABLE: LOOSENS | TIGHTENS,
}
"""The effect of a change, by the strictness of the later value compared with the earlier one."""

REVERSED: Mapping[Strictness, Effects] = {
    Strictness.STRICTER: LOOSENS,
    Strictness.EQUAL: NO_EFFECT,
    Strictness.LOOSER: TIGHTENS,
}
"""The effect of a deletion, by the strictness of a target with the object compared with one without it."""


def with_effects(plan: Plan, live: LiveState, kinds: Kinds) -> Plan:
    """Return a plan in which each change has its effect, given the live objects."""
    return replace(plan, targets=tuple(_with_effects(target, live, kinds) for target in plan.targets))


def _with_effects(planned: TargetPlan, live: LiveState, kinds: Kinds) -> TargetPlan:
    changes = {name: own for name, own in by_section(planned).items() if kinds[name].has_directions}
    # Nothing is protected in a target that does not exist yet.
    is_new = isinstance(live.absent.get(planned.target.identity), ToCreate)
    rules = {name: rules_together(kinds[name], planned.target, live, own) for name, own in changes.items()}

    @cache
    def records(section: str, part_name: str) -> Mapping[int | None, LiveRecord]:
        objects = cast("Objects", live.parts[planned.target, section, part_name])
        return {record.id: record for record in objects.own}

    def with_own_effect(change: Change) -> Change:
        section = change.address.section
        if section not in rules:
            return change
        effects = _effects(change, kinds[section], rules[section])
        part = kinds[section].part(change.address.part)
        if isinstance(change, Update) and isinstance(part, Collection):
            effects |= _effects_of_flaw(change, part, records(section, part.name).get(change.read.id))
        return with_effect(change, _named(effects - LOOSENS if is_new else effects))

    return planned.with_changes(with_own_effect) if changes else planned


def _named(effects: Effects) -> Effect | None:
    return "both" if len(effects) == 2 else next(iter(effects), None)


def _effects(change: Change, kind: Kind, rules: "RulesTogether | None") -> Effects:
    part = kind.part(change.address.part)
    match change:
        case Create(replaces_ids=(_, *_)) | Delete(successor_id=int()):
            # A rotation: the old token and its successor are one.
            return NO_EFFECT
        case Create() if rules:
            return rules.effects(change)
        case Delete() if rules:
            return rules.effects(change) & LOOSENS
        case Create():
            return (
                NO_EFFECT if _does_nothing(part, {**_defaults(part), **change.after}) else EFFECTS[kind.presence(part)]
            )
        case Delete():
            return NO_EFFECT if _does_nothing(part, change.before) else REVERSED[kind.presence(part)]
    directions, before, after = part.model.directions, _before(change), _after(change)
    # the settings of a target that does not exist yet have no values before
    alone = (directions.keys() & before.keys()) - (rules.in_effect.fields if rules else frozenset())
    own = (EFFECTS[compare_field(directions, name, after, before)] for name in alone)
    return NO_EFFECT.union(rules.effects(change) if rules else NO_EFFECT, *own)


def _does_nothing(part: Part, fields: Fields) -> bool:
    """Return whether an object has no effect: each field that protects something allows everybody."""
    directions = part.model.directions
    return bool(directions) and all(direction.value(name, fields) is None for name, direction in directions.items())


def _effects_of_flaw(change: Update, part: Collection, record: LiveRecord | None) -> Effects:
    """Return the effect of a flaw that an update adds or removes: an object with one protects nothing."""
    name, flaw = change.address.name or "", part.relations.flaw
    was, is_now = (bool(flaw(name, fields, record)) for fields in (_before(change), _after(change)))
    return NO_EFFECT if was is is_now else LOOSENS if is_now else TIGHTENS


def _before(change: Update) -> Fields:
    """Return all fields of an object before an update, spelled as in the update."""
    return {**change.read.fields, **change.before}


def _after(change: Update) -> Fields:
    return {**change.read.fields, **change.after}


@dataclass(frozen=True, slots=True)
class RulesTogether:
    """The rules of a section of a target that are combined, with those of the groups above.

    Attributes:
        part: their collection.
        in_effect: the way in which they are combined.
        numbers: the IDs of the users, groups and keys that they name.
        unable: entries of users, groups and keys, by ID, that are known to have no effect.
        before: the rules before the plan; a renamed one by its new name, since a rename alone changes no protection.
        after: the rules after the plan.
    """

    part: Collection
    in_effect: InEffect
    numbers: Numbers
    unable: Sequence[Json]
    before: Sequence[PatternRule]
    after: Sequence[PatternRule]

    def effects(self, change: Change) -> Effects:
        """Return the effect of a change on the combined rules for its name, and for each name that its name matches."""
        name = str(change.address.name)
        by_itself = self._by_itself(change)
        effects = NO_EFFECT
        for affected in {name, *(rule.name for rule in self.after if self.in_effect.matches(name, rule.name))}:
            now, was = (self.in_effect.allowed(rules, affected) for rules in (self.after, self.before))
            between = self._between(now, was)
            effects |= NO_EFFECT.union(*(between[field] & by_itself[field] for field in between))
        return effects

    def with_names(self, fields: Fields) -> Fields:
        """Return fields in which the known users, groups and keys have names instead of IDs."""
        names: dict[tuple[str, str | int], str | int] = {
            (who, number): name for (who, name), number in self.numbers.items()
        }
        lists = self.part.relations.entries.keys() & fields.keys()
        return {**fields, **{field: by_number(fields[field], names) for field in lists}}

    def without_unable(self, rule: PatternRule) -> PatternRule:
        """Return a rule without the entries that are known to have no effect."""
        lists = {name: value for name, value in rule.fields.items() if isinstance(value, list)}
        able = {name: [entry for entry in value if entry not in self.unable] for name, value in lists.items()}
        return replace(rule, fields={**rule.fields, **able})

    def _by_itself(self, change: Change) -> Mapping[str, Effects]:
        """Return the effects that a change has by itself, so that it is not blamed for those of another change."""
        if not isinstance(change, Update):
            return dict.fromkeys(self.in_effect.fields, LOOSENS | TIGHTENS)
        spelt = (spelt_rule(self.part, "", fields, self.numbers) for fields in (_after(change), _before(change)))
        return self._between(*(self.in_effect.together([rule.fields]) for rule in spelt))

    def _between(self, after: Fields, before: Fields) -> Mapping[str, Effects]:
        directions = self.part.model.directions
        return {field: EFFECTS[compare_field(directions, field, after, before)] for field in self.in_effect.fields}


def rules_together(kind: Kind, target: Target, live: LiveState, changes: Sequence[Change]) -> RulesTogether | None:
    """Return the combined rules of a section; None for a kind whose rules hold one by one."""
    if kind.in_effect is None:
        return None
    part = cast("Collection", kind.parts[0])
    objects = cast("Objects", live.parts[target, kind.name, part.name])
    subjects = _subjects(live, target)
    numbers: Numbers = {(who, name): ids[0] for who, known in subjects.items() for name, ids in known.items()}
    unable = [{who: number} for who, known in subjects.items() for number in known.unfit]
    before = {_key(record.id, record.names): (record.names[0], fields_of(record.resource)) for record in objects.own}
    after = dict(before)
    for change in changes:
        name = change.address.name or ""
        if isinstance(change, Create):
            after[name, None] = name, {**_defaults(part), **change.after}
            continue
        key = _key(change.read.id, change.read.names)
        if isinstance(change, Update):
            before[key], after[key] = (name, _before(change)), (name, _after(change))
        else:
            del after[key]
    above = [
        replace(spelt_rule(part, record.names[0], fields_of(record.resource), numbers), owner=holder.name)
        for record, holder in objects.inherited
    ]
    own = ([spelt_rule(part, *rule, numbers) for rule in rules.values()] for rules in (before, after))
    return RulesTogether(part, kind.in_effect, numbers, unable, *([*rules, *above] for rules in own))


def _key(number: int | None, record_names: Sequence[Key]) -> tuple[Key | None, int | None]:
    return (None, number) if number is not None else (record_names[0], None)


def _defaults(part: Part) -> Fields:
    """Return the default values of the fields of a new object."""
    return part.model.model_construct().model_dump(mode="json")


def spelt_rule(part: Collection, name: Key, fields: Fields, numbers: Numbers) -> PatternRule:
    """Return a rule in which the known users, groups and keys have IDs."""
    return PatternRule(
        str(name), {**fields} | {field: by_number(fields.get(field), numbers) for field in part.relations.entries}
    )


def _subjects(live: LiveState, target: Target) -> Mapping[Who, Known]:
    """Return the users, groups and keys that were looked up for a target."""
    lists = {
        who: live.names.get(Vocabulary(target, roster.suffix, roster.key, roster.id_key, roster.within))
        for who, roster in ROSTERS.items()
    }
    return {who: known for who, known in lists.items() if isinstance(known, Known)}
