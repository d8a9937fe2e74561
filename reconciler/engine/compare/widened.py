"""Deletions that widen other objects, such as a rule that loses its last branch: the plan says so at both. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.compare.earlier import Changes, by_section
from reconciler.engine.compare.references import deleted_ids
from reconciler.model.endpoints import Collection, Named
from reconciler.model.item import Change, Create, Delete, Finding, Note, Update, hints, problem_at
from reconciler.model.kind import Kinds
from reconciler.model.plan import TargetPlan
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import LiveState
from reconciler.model.targets import Address, Level, Target

Naming = tuple[Collection, str, Named]
"""A collection, and one of its fields that names objects of another section: see `Named.bare`."""


def with_widened(planned: TargetPlan, live: LiveState, kinds: Kinds, in_top_group: Changes) -> TargetPlan:
    """Return a target whose plan reports the objects that its deletions widen.

    Args:
        planned: the target.
        live: the live objects.
        kinds: all kinds.
        in_top_group: see `Earlier`.
    """
    for part, field, named in _naming(kinds):
        objects = live.parts.get((planned.target, part.name, part.name))
        changes = by_section(planned)
        deleted = deleted_ids((*in_top_group.get(named.section, ()), *changes.get(named.section, ())))
        if not deleted:
            continue
        if part.name in planned.sections and isinstance(objects, Objects):
            kept = _needed_objects((part, field, named), planned, objects, deleted)
            planned = _without_deletions(planned, named.section, kept)
            deleted -= kept.keys()
            moved = _changed_ids(changes.get(part.name, ()), field)
            widened_records = [
                record for record in objects.own if record.id not in moved and _is_widened(record, field, deleted)
            ]
            effects_by_id = _losses(part, field, named, widened_records)
            address = Address(planned.target, part.name, part.name, part.title)
            planned = _with_widened(planned, widened_records, address, f"its {field} are deleted: it {named.bare}")
        else:
            effects_by_id = dict.fromkeys(deleted, f"each {part.title} for it alone {named.bare}")
        planned = _with_effects(planned, named.section, effects_by_id)
    return planned


def with_kept_in_top_groups(
    plans: Sequence[TargetPlan], tops: Mapping[Target, Changes], live: LiveState, kinds: Kinds
) -> list[TargetPlan]:
    """Return plans in which top-level groups keep the objects that projects' objects depend on; see `_needed_objects`.

    Args:
        plans: the plans.
        tops: for each project, the changes of its top-level group.
        live: the live objects.
        kinds: all kinds.
    """
    kept: dict[str, dict[int | None, str]] = {}
    for target in plans:
        for part, field, named in _naming(kinds):
            deleted = deleted_ids(tops[target.target].get(named.section, ()))
            objects = live.parts.get((target.target, part.name, part.name))
            if deleted and part.name in target.sections and isinstance(objects, Objects):
                reasons = _needed_objects((part, field, named), target, objects, deleted)
                kept.setdefault(named.section, {}).update(
                    {number: f"{why} ({target.target})" for number, why in reasons.items() if number in deleted}
                )

    def keeping(target_plan: TargetPlan) -> TargetPlan:
        for section, words in kept.items():
            target_plan = _without_deletions(target_plan, section, words)
        return target_plan

    return [keeping(target) if target.target.level is Level.GROUP else target for target in plans]


def _naming(kinds: Kinds) -> Iterator[Naming]:
    for kind in kinds.values():
        for part in kind.parts:
            if isinstance(part, Collection):
                yield from (
                    (part, field, reference) for field, reference in part.relations.named.items() if reference.bare
                )


def _ids(record: LiveRecord, field: str) -> set[int]:
    return {row.id for row in record.entries.get(field, ())}


def _changed_ids(changes: Iterable[Change], field: str) -> set[int | None]:
    """Return the IDs of the objects that are deleted, or name other objects, before the named objects are deleted."""
    return {
        change.read.id
        for change in changes
        if isinstance(change, Delete) or (isinstance(change, Update) and field in change.after)
    }


def _is_widened(record: LiveRecord, field: str, deleted: set[int | None]) -> bool:
    """Return whether an object names only deleted objects; a word for all objects is not affected."""
    return isinstance(getattr(record.resource, field), tuple) and _ids(record, field) <= deleted


def _needed_objects(
    naming: Naming, planned: TargetPlan, objects: Objects, deleted: set[int | None]
) -> dict[int | None, str]:
    """Return the objects that are not deleted, by ID, with the reason: another object needs them and has a problem.

    Args:
        naming: the collection with the naming objects, and the field that names deleted ones.
        planned: their target.
        objects: the naming objects.
        deleted: the IDs of the deleted objects.
    """
    part, field, named = naming
    problems = (problem for problem in planned.problems if problem.address.section == part.name)
    wrong = {problem.address.name for problem in problems if problem.field == field}
    template = 'is kept: without it the {} "{}", whose {} are a problem here, {}'
    return {
        number: template.format(part.title, record.names[0], field, named.bare)
        for record in objects.own
        if _is_widened(record, field, deleted) and not wrong.isdisjoint(record.names)
        for number in _ids(record, field)
    }


def _without_deletions(planned: TargetPlan, section: str, keep_reasons: Mapping[int | None, str]) -> TargetPlan:
    """Return a target without some deletions of a section, with a problem for each object that is kept."""
    deleted = [
        change for change in by_section(planned).get(section, ()) if not deleted_ids([change]).isdisjoint(keep_reasons)
    ]
    problems = [
        problem_at(change.address, keep_reasons[change.read.id], None, "solve that problem first")
        for change in deleted
        if isinstance(change, Update | Delete)
    ]
    return planned.with_changes(lambda change: None if change in deleted else change).adding(*problems)


def _losses(part: Collection, field: str, named: Named, widened_records: Iterable[LiveRecord]) -> dict[int | None, str]:
    """Return, by the ID of each deleted object, the effect on the objects that name it."""
    effects: dict[int | None, list[str]] = {}
    for record in widened_records:
        for number in _ids(record, field):
            effects.setdefault(number, []).append(f'the {part.title} "{record.names[0]}" {named.bare}')
    return {number: ", ".join(words) for number, words in effects.items()}


def _with_widened(
    planned: TargetPlan, widened_records: Sequence[LiveRecord], address: Address, effect: str
) -> TargetPlan:
    """Return the target of the widened objects, with a finding or a hint for each.

    Args:
        planned: the target.
        widened_records: the widened objects.
        address: of their collection.
        effect: the effect on each of them.
    """
    changes = by_section(planned).get(address.section, ())
    changed = {change.read.id for change in changes if isinstance(change, Update | Delete)}
    widened = (
        Finding(replace(address, name=record.names[0]), "widened", effect)
        for record in widened_records
        if record.id not in changed
    )
    return _with_effects(planned, address.section, {record.id: effect for record in widened_records}).adding(*widened)


def _with_effects(planned: TargetPlan, section: str, effects: Mapping[int | None, str]) -> TargetPlan:
    """Return a target with notes on the changes of a section, by the ID of their object."""

    def with_effect(change: Change) -> Change:
        if change.address.section != section or isinstance(change, Create):
            return change
        more = effects.get(change.read.id, "")
        notes = () if not more else (Note("loss", more),) if isinstance(change, Delete) else tuple(hints(more))
        return replace(change, notes=(*change.notes, *notes)) if notes else change

    return planned.with_changes(with_effect) if effects else planned
