"""What was changed on the service and put back, in what manifests declare, by its audit events: never a guess. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from reconciler.engine.authors import changed_by
from reconciler.engine.compare.earlier import by_section
from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.diff import fields_of
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, Finding, Update
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import DesiredTarget, LiveState, Section
from reconciler.model.targets import Address, Key

Pairs = Sequence[tuple[AuditEvent, Traced]]
"""Events, the oldest first, each with what it did to a part."""


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """A field, or an object, that is as the manifests declare it.

    Attributes:
        address: of the object.
        names: the identities of all that it is called; None for a settings section.
        field: None for the whole object.
        value: as it is; of an object, whether it is there.
    """

    address: Address
    names: frozenset[Key] | None
    field: str | None
    value: Json


def find_restored(
    planned: TargetPlan,
    differing: TargetPlan,
    desired: DesiredTarget,
    *,
    live: LiveState,
    events: Sequence[AuditEvent],
    kinds: Kinds,
) -> Iterator[Finding]:
    """Yield what was changed and put back in the sections of a target.

    Args:
        planned: of a plan.
        differing: the same, with what is not changed for an obstacle: what differs now is an ordinary difference.
        desired: what is declared of it.
        live: what was read.
        events: of the target, the newest first.
        kinds: all kinds.
    """
    declared = {section.kind: section for section in desired.sections}
    differences = by_section(differing)
    for name in planned.sections:
        if name in declared:
            yield from _of_section(differences.get(name, ()), declared[name], live, events, kinds)


def _of_section(
    changes: Sequence[Change], declared: Section, live: LiveState, events: Sequence[AuditEvent], kinds: Kinds
) -> Iterator[Finding]:
    kind = kinds[declared.kind]
    traced = [(event, mark) for event in reversed(events) for mark in (kind.trace(event) if kind.trace else ())]
    for part in kind.parts if traced else ():
        about = [(event, mark) for event, mark in traced if mark.part == part.name]
        differing = [*_differing(changes, part)]
        for setting in _declared(declared, part, live, about):
            if not any(_concerns(names, field, setting) for names, field in differing):
                yield from _round_trips(setting, about, part)


def _declared(section: Section, part: Part, live: LiveState, about: Pairs) -> Iterator[DeclaredValue]:
    """Yield all that the manifests declare of a part, with its value now."""
    address = partial(Address, section.target, section.kind, part.name, part.title)
    wanted = section.wanted.get(part.name)
    live_part = live.parts.get((section.target, section.kind, part.name))
    if isinstance(wanted, Resource) and isinstance(live_part, LiveRecord):
        yield from _fields(wanted, live_part, address(), None)
    if not (isinstance(wanted, Mapping) and isinstance(live_part, Objects) and isinstance(part, Collection)):
        return
    known = {name for record in live_part.own for name in _names(record, part)}
    for name, resource in wanted.items():
        records = [record for record in live_part.own if part.identity(name) in map(part.identity, record.names)]
        names = frozenset({part.identity(name)}.union(*(_names(record, part) for record in records)))
        known |= names
        if bool(records) is (resource is not None):
            yield DeclaredValue(address(name), names, None, bool(records))
        if resource is not None and len(records) == 1:
            yield from _fields(resource, records[0], address(name), names)
    for _, mark in about if section.prune else ():
        names = frozenset(map(part.identity, mark.names))
        if names and not names & known:
            known |= names
            yield DeclaredValue(address(mark.names[0]), names, None, False)


def _fields(
    wanted: Resource, record: LiveRecord, address: Address, names: frozenset[Key] | None
) -> Iterator[DeclaredValue]:
    live = fields_of(record.resource)
    return (DeclaredValue(address, names, field, live[field]) for field in fields_of(wanted) if field in live)


def _names(record: LiveRecord, part: Collection) -> set[Key]:
    return {*map(part.identity, record.names), *([] if record.id is None else [record.id])}


def _differing(changes: Sequence[Change], part: Part) -> Iterator[tuple[frozenset[Key] | None, str | None]]:
    """Yield what differs of a part: the identity of the object, and a field, or None for the whole object."""
    for change in changes:
        if change.address.part == part.name:
            name = change.address.name
            names = frozenset([part.identity(name)]) if isinstance(part, Collection) and name is not None else None
            for field in change.after if isinstance(change, Update) else (None,):
                yield names, field


def _concerns(names: frozenset[Key] | None, field: str | None, declared: DeclaredValue) -> bool:
    """Return whether a difference is about something declared; one of a whole object is about all of its fields."""
    same = names is None or bool(names & (declared.names or frozenset()))
    return same and field in (None, declared.field)


def _round_trips(declared: DeclaredValue, about: Pairs, part: Part) -> Iterator[Finding]:
    """Yield each time that something was changed and put back.

    What an object was created with is no change of it: only what was as declared can be changed and put back. An entry
    of a list that no response calls by its name is no claim either.
    """
    left: tuple[AuditEvent, Json] | None = None
    was_declared = True
    for event, mark in about:
        if not _is_about(declared, mark, part):
            continue
        if mark.field != declared.field:
            if mark.field is None and not mark.removed:
                left, was_declared = None, False
            continue
        value = mark.value if declared.field else not mark.removed
        is_back = mark.has_left(declared.value) if declared.field else value is declared.value
        if not is_back:
            is_known = not (isinstance(value, list) and None in value)
            left = left or ((event, value) if was_declared and is_known else None)
            continue
        was_declared = True
        if left:
            away, meanwhile = left
            data = {
                "before": declared.value,
                "meanwhile": meanwhile,
                "changed_by": dict(changed_by(away).data),
                "restored_by": dict(changed_by(event).data),
            }
            yield Finding(declared.address, "restored", "was changed and put back", field=declared.field, data=data)
            left = None


def _is_about(declared: DeclaredValue, mark: Traced, part: Part) -> bool:
    if declared.names is None or not isinstance(part, Collection):
        return True
    return any(part.identity(name) in declared.names for name in mark.names)
