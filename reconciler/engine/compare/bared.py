"""Deletions that make other objects hold for more than before: the plan says so at both. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.compare.earlier import Changes
from reconciler.engine.compare.references import gone_by
from reconciler.model.endpoints import Collection, Named
from reconciler.model.item import Change, Delete, Finding, Note, Update, hints, problem_at
from reconciler.model.kind import Kinds
from reconciler.model.plan import SectionPlan, TargetPlan
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import LiveState
from reconciler.model.targets import Address, Level, Target

Naming = tuple[Collection, str, Named]
"""A collection with a field that names objects of another section: see `Named.bare`."""


def with_bared(
    planned: Mapping[str, SectionPlan], target: Target, live: LiveState, kinds: Kinds, at_the_top: Changes
) -> tuple[SectionPlan, ...]:
    """Return the sections of a target with what deletions make of the objects that name what is deleted.

    Args:
        planned: the sections, by name.
        target: the target.
        live: its objects.
        kinds: all kinds.
        at_the_top: see `Earlier`.
    """
    sections = dict(planned)
    for part, field, named in _naming(kinds):
        naming, objects = sections.get(part.name), live.parts.get((target, part.name, part.name))
        ending = gone_by(at_the_top.get(named.section, ()))
        if named.section in sections:
            ending |= gone_by(sections[named.section].changes)
        if not ending:
            continue
        if naming is not None and isinstance(objects, Objects):
            kept = _kept((part, field, named), naming, objects, ending)
            if kept and named.section in sections:
                sections[named.section] = _keeping(sections[named.section], kept)
            ending -= kept.keys()
            moved = _moved(naming.changes, field)
            bared = [record for record in objects.own if record.id not in moved and _is_bared(record, field, ending)]
            lost = _losses(part, field, named, bared)
            address = Address(target, part.name, part.name, part.title)
            alone = f"its {field} are deleted: it {named.bare}"
            sections[part.name] = _with_widened(naming, bared, address, alone)
        else:
            lost = dict.fromkeys(ending, f"each {part.title} for it alone {named.bare}")
        if named.section in sections:
            sections[named.section] = _told(sections[named.section], lost)
    return tuple(sections.values())


def keeping_at_the_top(
    planned: Sequence[TargetPlan], tops: Mapping[Target, Changes], live: LiveState, kinds: Kinds
) -> list[TargetPlan]:
    """Return the plans of targets in which top-level groups keep what objects of projects would lose; see `_kept`.

    Args:
        planned: the plans.
        tops: by project, what the plan changes of the topmost group above it.
        live: the objects.
        kinds: all kinds.
    """
    kept: dict[str, dict[int | None, str]] = {}
    for target in planned:
        for part, field, named in _naming(kinds):
            ending = gone_by(tops[target.target].get(named.section, ()))
            objects = live.parts.get((target.target, part.name, part.name))
            section = next((section for section in target.sections if section.section == part.name), None)
            if ending and section is not None and isinstance(objects, Objects):
                stays = _kept((part, field, named), section, objects, ending)
                kept.setdefault(named.section, {}).update(
                    {number: f"{why} ({target.target})" for number, why in stays.items() if number in ending}
                )
    if not any(kept.values()):
        return [*planned]
    return [
        replace(
            target,
            sections=tuple(
                _keeping(section, kept[section.section]) if section.section in kept else section
                for section in target.sections
            ),
        )
        if target.target.level is Level.GROUP
        else target
        for target in planned
    ]


def _naming(kinds: Kinds) -> Iterator[Naming]:
    for kind in kinds.values():
        for part in kind.parts:
            if isinstance(part, Collection):
                yield from (
                    (part, field, reference) for field, reference in part.relations.named.items() if reference.bare
                )


def _ids(record: LiveRecord, field: str) -> set[int]:
    return {row.id for row in record.entries.get(field, ())}


def _moved(changes: Iterable[Change], field: str) -> set[int | None]:
    """Return the IDs of the objects that are deleted, or name others in a field, before what they name is deleted."""
    return {
        change.read.id
        for change in changes
        if isinstance(change, Delete) or (isinstance(change, Update) and field in change.after)
    }


def _is_bared(record: LiveRecord, field: str, ending: set[int | None]) -> bool:
    """Return whether an object names nothing but what is deleted; a word for all of them stays what it is."""
    return isinstance(getattr(record.resource, field), tuple) and _ids(record, field) <= ending


def _kept(naming: Naming, section: SectionPlan, objects: Objects, ending: set[int | None]) -> dict[int | None, str]:
    """Return by ID what is not deleted, and why: an object would lose all that it names, and has a problem with that.

    Args:
        naming: the collection with the objects, and the field that names what is deleted.
        section: theirs.
        objects: as they are.
        ending: the IDs of what is deleted.
    """
    part, field, named = naming
    wrong = {problem.address.name for problem in section.problems if problem.field == field}
    stays = 'is kept: without it the {} "{}", whose {} are a problem here, {}'
    return {
        number: stays.format(part.title, record.names[0], field, named.bare)
        for record in objects.own
        if _is_bared(record, field, ending) and not wrong.isdisjoint(record.names)
        for number in _ids(record, field)
    }


def _keeping(section: SectionPlan, kept: Mapping[int | None, str]) -> SectionPlan:
    """Return a section that deletes less, with a problem for each object that stays."""
    ending = [change for change in section.changes if not gone_by([change]).isdisjoint(kept)]
    problems = [
        problem_at(change.address, kept[change.read.id], None, "solve that problem first")
        for change in ending
        if isinstance(change, Update | Delete)
    ]
    changes = tuple(change for change in section.changes if change not in ending)
    return replace(section, changes=changes).saying(*problems)


def _losses(part: Collection, field: str, named: Named, bared: Iterable[LiveRecord]) -> dict[int | None, str]:
    """Return by ID of an object that is deleted what becomes of those that name it."""
    told: dict[int | None, list[str]] = {}
    for record in bared:
        for number in _ids(record, field):
            told.setdefault(number, []).append(f'the {part.title} "{record.names[0]}" {named.bare}')
    return {number: ", ".join(words) for number, words in told.items()}


def _with_widened(section: SectionPlan, bared: Sequence[LiveRecord], address: Address, alone: str) -> SectionPlan:
    """Return the section of the objects that name what is deleted, which tells what they become.

    Args:
        section: the section.
        bared: the objects.
        address: of their collection.
        alone: what each of them becomes.
    """
    changed = {change.read.id for change in section.changes if isinstance(change, Update | Delete)}
    widened = (
        Finding(replace(address, name=record.names[0]), "widened", alone)
        for record in bared
        if record.id not in changed
    )
    told = _told(section, {record.id: alone for record in bared})
    return replace(told, findings=(*told.findings, *widened))


def _told(section: SectionPlan, words: dict[int | None, str]) -> SectionPlan:
    """Return a section whose changes say more, by the ID of their object."""

    def told(change: Change) -> Change:
        more = words.get(change.read.id, "") if isinstance(change, Update | Delete) else ""
        match change:
            case Delete() if more:
                return replace(change, notes=(*change.notes, Note("loss", more)))
            case Update() if more:
                return replace(change, notes=(*change.notes, *hints(more)))
        return change

    return replace(section, changes=tuple(map(told, section.changes)))
