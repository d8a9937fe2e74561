"""The audit for `drift --who` and `--restored`: authors of differences, and values that were changed and restored.

Begin with `with_audit`. Each target's events are read once. An administrator's token reads those of all targets as one
list; any other token is refused that list, and reads a list for each target.
"""

import logging
from collections import Counter
from collections.abc import Collection as Several
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from reconciler.engine.compare.creation import existing
from reconciler.engine.compare.earlier import by_section
from reconciler.engine.crew import ask_each
from reconciler.engine.inventory import inventory_keys
from reconciler.engine.planned import Planned
from reconciler.engine.run import Remark
from reconciler.errors import Forbidden, ServiceError
from reconciler.model.audit import AuditEvent, Traced, read_event
from reconciler.model.diff import fields_of
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, ChangedBy, Create, Finding, Update, with_note
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import DesiredTarget, LiveState, Reference, Section
from reconciler.model.targets import Address, Identity, Key, Level, Target
from reconciler.model.wording import counted

EVENTS_PER_TARGET = 100
"""The number of newest events that are read for a target: one page."""

LEVELS = {"Group": Level.GROUP, "Project": Level.PROJECT}
"""The level for each type of an event's entity."""


Former = Mapping[tuple[str, str, Key], Several[int]]
"""The recorded IDs of objects, by section, part and name: lists have no ID of a deleted object."""


Events = Mapping[Target, Sequence[AuditEvent]]
"""The events of targets, the newest first."""

Pairs = Sequence[tuple[AuditEvent, Traced]]
"""Events, each with one change that it made to a part."""


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """A field, or an object, whose value is as declared.

    Attributes:
        address: of the object.
        names: the identities of all its names; None for a settings section.
        field: None for the whole object.
        value: the live value; for an object, whether it exists.
    """

    address: Address
    names: frozenset[Key] | None
    field: str | None
    value: Json


def with_audit(planned: Planned) -> tuple[Plan, tuple[Remark, ...]]:
    """Return the plan with the authors of differences, and with restored values, if the run asks for them.

    The second value is log messages about events that could not be read.
    """
    plan, scope, kinds = planned.plan, planned.run.scope, planned.run.kinds
    who, back = scope.who_after, scope.restored_after
    if who is None and back is None:
        return plan, ()
    traced = {kind.name for kind in kinds.values() if kind.trace}
    declared = {target.target: target for target in existing(planned.declared.desired, planned.live.absent).targets}
    asked = [
        target.target
        for target in plan.targets
        if who and any(change.address.section in traced for change in target.changes)
    ]
    if back:
        asked += [
            name for name, target in declared.items() if any(section.kind in traced for section in target.sections)
        ]
    # one reading for both questions: the longer span
    after = min(moment for moment in (who, back) if moment)
    events, remarks = _read(planned, [*dict.fromkeys(asked)], after, as_one=back is not None)

    def since(moment: datetime, target: Target) -> list[AuditEvent]:
        return [event for event in events.get(target, ()) if event.time >= moment]

    if who:
        former = _former(planned)
        targets = (
            _with_authors(target, since(who, target.target), kinds, former.get(target.target, {}))
            for target in plan.targets
        )
        plan = replace(plan, targets=tuple(targets))
    if back:
        differing = {target.target: target for target in planned.compared.targets}
        plan = plan.with_findings(
            finding
            for target in planned.plan.targets
            if target.target in declared
            for finding in _find_restored(
                target,
                differing[target.target],
                declared[target.target],
                live=planned.live,
                events=since(back, target.target),
                kinds=kinds,
            )
        )
    return plan, remarks


def _former(planned: Planned) -> Mapping[Target, Former]:
    """Return the IDs that the inventory has recorded for the objects of targets."""
    opened = planned.run.inventory
    if opened.stored is None:
        return {}
    key_of = inventory_keys(opened, planned.live)
    targets = {key_of(target): target.target for target in planned.declared.desired.targets}
    former: dict[Target, dict[tuple[str, str, Key], list[int]]] = {}
    for line in opened.stored.inventory.objects.values():
        if line.target in targets:
            ids = former.setdefault(targets[line.target], {})
            ids.setdefault((line.section, line.part, line.name), []).append(line.id)
    return former


def _read(
    planned: Planned, targets: Sequence[Target], moment: datetime, *, as_one: bool
) -> tuple[Events, tuple[Remark, ...]]:
    """Return the events of targets since a moment, and log messages about events that cannot be read.

    Args:
        planned: the plan.
        targets: the targets to read events of.
        moment: the moment.
        as_one: whether a list of the events of all targets is worth a request.
    """
    since = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    remarks: list[Remark] = []
    if as_one and len(targets) > 1:
        try:
            # One list instead of a request for each target; only administrators may read it.
            answer = planned.roster.pages(f"audit_events?created_after={since}")
            return _by_target(planned.live, targets, answer), ()
        except Forbidden:
            remarks.append((logging.DEBUG, "this token does not see the audit events of the whole service"))
        except ServiceError as error:
            return {}, tuple(_unread({error.reason: len(targets)}))

    def ask(target: Target, reader: Reader) -> Sequence[AuditEvent] | str:
        try:
            answer = reader.get(f"{target.url}audit_events?per_page={EVENTS_PER_TARGET}&created_after={since}")
        except ServiceError as error:
            return error.reason
        return _newest_first(answer if isinstance(answer, list) else ())

    answers = ask_each(ask, targets, planned.roster)
    remarks += _unread(Counter(answer for answer in answers.values() if isinstance(answer, str)))
    events = {target: answer for target, answer in answers.items() if not isinstance(answer, str)}
    cut = [target for target, answer in events.items() if len(answer) >= EVENTS_PER_TARGET]
    if cut:
        number = counted(len(cut), "target")
        warning = f"of {number}, such as {cut[0]}, only the newest {EVENTS_PER_TARGET} audit events are read"
        remarks.append((logging.WARNING, warning))
    return events, tuple(remarks)


def _by_target(live: LiveState, targets: Sequence[Target], answer: Iterable[Json]) -> Events:
    """Return the events of all targets by target, matched by ID where it is known, else by path."""
    known: dict[Identity, Target] = {}
    for target in targets:
        number = (
            live.ids.get(Reference(target.level, target.ref.casefold())) if isinstance(target.ref, str) else target.ref
        )
        known[(target.level, number) if isinstance(number, int) else target.identity] = target
    events: dict[Target, list[AuditEvent]] = {}
    for event in _newest_first(answer):
        sort, number = event.entity
        level = LEVELS.get(sort)
        places = () if level is None else ((level, number), (level, event.path.casefold()))
        for target in [known[place] for place in places if place in known][:1]:
            events.setdefault(target, []).append(event)
    return events


def _newest_first(answer: Iterable[Json]) -> tuple[AuditEvent, ...]:
    return tuple(sorted(filter(None, map(read_event, answer)), key=lambda event: event.time, reverse=True))


def _unread(counts_by_reason: Mapping[str, int]) -> Iterator[Remark]:
    """Yield one log message for each reason why events cannot be read."""
    for reason, number in counts_by_reason.items():
        yield (
            logging.WARNING,
            f"who changed {counted(number, 'target')} is not known: {reason}; audit events need a licence (Premium or "
            "Ultimate) and the role Maintainer in a project, Owner in a group",
        )


def _with_authors(
    target_plan: TargetPlan, events: Sequence[AuditEvent], kinds: Kinds, recorded_ids: Former
) -> TargetPlan:
    """Return a target whose changes name the author of the live value, wherever an event explains it.

    Args:
        target_plan: of a plan.
        events: of the target, the newest first.
        kinds: all kinds.
        recorded_ids: of the target, by the inventory.
    """
    traced: dict[str, Pairs] = {}

    def with_author(change: Change) -> Change:
        section = change.address.section
        trace = kinds[section].trace if section else None
        if trace is None:
            return change
        if section not in traced:
            traced[section] = [(event, mark) for event in events for mark in trace(event)]
        author = _author(change, traced[section], kinds, recorded_ids)
        return with_note(change, "changed_by", None if author is None else author.data)

    return target_plan.with_changes(with_author)


def _changed_by(event: AuditEvent) -> ChangedBy:
    """Return the author and the time of an event."""
    return ChangedBy(event.author, event.time.astimezone(UTC))


def _author(change: Change, traced: Pairs, kinds: Kinds, recorded_ids: Former) -> ChangedBy | None:
    """Return the author of a difference: that of its newest event, if the live value is the one that it set."""
    part = kinds[change.address.section].part(change.address.part)
    names = {_identity(name, part) for name in _names_of_change(change, recorded_ids)}
    about = [
        (event, mark)
        for event, mark in traced
        if mark.part == part.name
        and (not part.is_collection or any(_identity(name, part) in names for name in mark.names))
    ]
    if isinstance(change, Update):
        # reversed, so that of one field the newest event is put in last
        newest = {mark.field: (event, mark) for event, mark in reversed(about) if mark.field in change.after}
        events = [event for event, mark in newest.values() if mark.is_still_set(change.before.get(str(mark.field)))]
        event = max(events, key=lambda event: event.time, default=None)
    else:
        last = next((pair for pair in about if pair[1].field is None), None)
        event = last[0] if last and last[1].removed is isinstance(change, Create) else None
    return None if event is None else _changed_by(event)


def _names_of_change(change: Change, recorded_ids: Former) -> list[Key]:
    """Return all names of a changed object, and its ID, since another object may have had its name before.

    A deleted object has the recorded IDs: events call some objects by words of their own, such as `All Members`.
    """
    address = change.address
    gone = (
        recorded_ids.get((address.section, address.part, address.name or ""), ()) if isinstance(change, Create) else ()
    )
    number = change.target_id if isinstance(change, Create) else change.read.id
    return [name for name in (address.name, number, *gone) if name is not None]


def _identity(name: Key, part: Part) -> Key:
    return part.identity(name) if isinstance(part, Collection) else name


def _find_restored(
    planned: TargetPlan,
    differing: TargetPlan,
    desired: DesiredTarget,
    *,
    live: LiveState,
    events: Sequence[AuditEvent],
    kinds: Kinds,
) -> Iterator[Finding]:
    """Yield the values of a target's sections that were changed and restored.

    Args:
        planned: of a plan.
        differing: the same with the changes that an obstacle prevents: a present difference was not restored.
        desired: the declarations of the target.
        live: the live state.
        events: of the target, the newest first.
        kinds: all kinds.
    """
    declared = {section.kind: section for section in desired.sections}
    differences = by_section(differing)
    for name in (name for name in planned.sections if name in declared):
        yield from _restored_in_section(differences.get(name, ()), declared[name], live, events, kinds)


def _restored_in_section(
    changes: Iterable[Change], section: Section, live: LiveState, events: Sequence[AuditEvent], kinds: Kinds
) -> Iterator[Finding]:
    kind = kinds[section.kind]
    # Oldest first: a value is restored only after it was changed.
    traced = [(event, mark) for event in reversed(events) for mark in (kind.trace(event) if kind.trace else ())]
    for part in kind.parts if traced else ():
        about = [(event, mark) for event, mark in traced if mark.part == part.name]
        differing = [*_differing(changes, part)]
        for setting in _declared(section, part, live, about):
            if not any(_concerns(names, field, setting) for names, field in differing):
                yield from _round_trips(setting, about, part)


def _declared(section: Section, part: Part, live: LiveState, traced: Pairs) -> Iterator[DeclaredValue]:
    """Yield all declared objects and fields of a part, with their live values."""
    address = partial(Address, section.target, section.kind, part.name, part.title)
    wanted = section.wanted.get(part.name)
    live_part = live.parts.get((section.target, section.kind, part.name))
    if isinstance(wanted, Resource) and isinstance(live_part, LiveRecord):
        yield from _fields(wanted, live_part, address(), None)
    if not (isinstance(wanted, Mapping) and isinstance(live_part, Objects) and isinstance(part, Collection)):
        return
    known = {name for record in live_part.own for name in _names_of_record(record, part)}
    for name, resource in wanted.items():
        records = [record for record in live_part.own if part.identity(name) in map(part.identity, record.names)]
        names = frozenset({part.identity(name)}.union(*(_names_of_record(record, part) for record in records)))
        known |= names
        if bool(records) is (resource is not None):
            yield DeclaredValue(address(name), names, None, bool(records))
        if resource is not None and len(records) == 1:
            yield from _fields(resource, records[0], address(name), names)
    for _, mark in traced if section.prune else ():
        names = frozenset(map(part.identity, mark.names))
        if names and not names & known:
            known |= names
            yield DeclaredValue(address(mark.names[0]), names, None, False)


def _fields(
    wanted: Resource, record: LiveRecord, address: Address, object_names: frozenset[Key] | None
) -> Iterator[DeclaredValue]:
    live = fields_of(record.resource)
    return (DeclaredValue(address, object_names, field, live[field]) for field in fields_of(wanted) if field in live)


def _names_of_record(record: LiveRecord, part: Collection) -> set[Key]:
    return {*map(part.identity, record.names), *([] if record.id is None else [record.id])}


def _differing(changes: Iterable[Change], part: Part) -> Iterator[tuple[frozenset[Key] | None, str | None]]:
    """Yield the identity of each object of a part that differs, with the field, or None for the whole object."""
    for change in changes:
        if change.address.part == part.name:
            name = change.address.name
            names = frozenset([part.identity(name)]) if isinstance(part, Collection) and name is not None else None
            for field in change.after if isinstance(change, Update) else (None,):
                yield names, field


def _concerns(object_names: frozenset[Key] | None, field: str | None, declared_value: DeclaredValue) -> bool:
    """Return whether a difference is about a declared value; one of a whole object is about all its fields."""
    same = object_names is None or bool(object_names & (declared_value.names or frozenset()))
    return same and field in (None, declared_value.field)


def _round_trips(declared_value: DeclaredValue, traced: Pairs, part: Part) -> Iterator[Finding]:
    """Yield each time that a value was changed and restored.

    The initial value of an object is no change of it: only a declared value can be changed and restored. An entry
    of a list whose name no response shows proves nothing either.
    """
    departure: tuple[AuditEvent, Json] | None = None
    was_declared = True
    for event, mark in traced:
        if not _is_about(declared_value, mark, part):
            continue
        if mark.field != declared_value.field:
            if mark.field is None and not mark.removed:
                departure, was_declared = None, False
            continue
        value = mark.value if declared_value.field else not mark.removed
        is_back = mark.is_still_set(declared_value.value) if declared_value.field else value is declared_value.value
        if not is_back:
            is_known = not (isinstance(value, list) and None in value)
            departure = departure or ((event, value) if was_declared and is_known else None)
            continue
        was_declared = True
        if departure:
            away, meanwhile = departure
            data = {
                "before": declared_value.value,
                "meanwhile": meanwhile,
                "changed_by": dict(_changed_by(away).data),
                "restored_by": dict(_changed_by(event).data),
            }
            yield Finding(
                declared_value.address, "restored", "was changed and put back", field=declared_value.field, data=data
            )
            departure = None


def _is_about(declared_value: DeclaredValue, mark: Traced, part: Part) -> bool:
    if declared_value.names is None or not isinstance(part, Collection):
        return True
    return any(part.identity(name) in declared_value.names for name in mark.names)
