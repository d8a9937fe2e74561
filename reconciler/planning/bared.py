"""Deletions that make other objects hold for more than before: the plan says so at both. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.model.endpoints import Collection, Named
from reconciler.model.kind import Kinds
from reconciler.model.plan import Change, Delete, SectionPlan, Update, WidenedObject
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import LiveState
from reconciler.model.targets import Address, Target
from reconciler.planning.earlier import Changes
from reconciler.planning.references import gone_by

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
        section = sections.get(named.section, SectionPlan(named.section))
        ending = gone_by(section.changes) | gone_by(at_the_top.get(named.section, ()))
        if not ending:
            continue
        naming = sections.get(part.name)
        objects = live.parts.get((target, part.name, part.name))
        words = dict.fromkeys(ending, f"each {part.title} for it alone {named.bare}")
        bared: list[LiveRecord] = []
        if naming is not None and isinstance(objects, Objects):
            bared = [record for record in objects.own if _is_bared(record, field, ending)]
            words = {
                number: ", ".join(f'the {part.title} "{record.names[0]}" {named.bare}' for record in those)
                for number in ending
                if (those := [record for record in bared if number in _ids(record, field)])
            }
        if named.section in sections:
            sections[named.section] = _told(section, words)
        if naming is None:
            continue
        alone = f"its {field} are deleted: it {named.bare}"
        told = _told(naming, {record.id: alone for record in bared}, unless=field)
        changed = {change.read.id for change in naming.changes if isinstance(change, Update | Delete)}
        widened = (
            WidenedObject(Address(target, part.name, part.name, part.title, record.names[0]), alone)
            for record in bared
            if record.id not in changed
        )
        sections[part.name] = replace(told, widened=tuple(widened))
    return tuple(sections.values())


def _naming(kinds: Kinds) -> Iterator[Naming]:
    for kind in kinds.values():
        for part in kind.parts:
            if isinstance(part, Collection):
                yield from (
                    (part, field, reference) for field, reference in part.relations.named.items() if reference.bare
                )


def _ids(record: LiveRecord, field: str) -> set[int]:
    return {row.id for row in record.entries.get(field, ())}


def _is_bared(record: LiveRecord, field: str, ending: set[int | None]) -> bool:
    """Return whether an object names nothing but what is deleted; a word for all of them stays what it is."""
    return isinstance(getattr(record.resource, field), tuple) and _ids(record, field) <= ending


def _told(section: SectionPlan, words: dict[int | None, str], *, unless: str = "") -> SectionPlan:
    """Return a section whose changes say more, by the ID of their object; not those that change a field."""

    def told(change: Change) -> Change:
        more = words.get(change.read.id, "") if isinstance(change, Update | Delete) else ""
        match change:
            case Delete() if more:
                return replace(change, losses=(*change.losses, more))
            case Update(after=after) if more and unless not in after:
                return replace(change, hint="; ".join(filter(None, (change.hint, more))))
        return change

    return replace(section, changes=tuple(map(told, section.changes)))
