"""Who made the differences of a plan, by the audit of the service: one request for each target, and never a guess."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.errors import ServiceError
from reconciler.live.read import side_by_side
from reconciler.model.audit import AuditEvent, Traced, read_event
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Change, ChangedBy, Create, SectionPlan, TargetPlan, Update
from reconciler.model.protocols import Concurrency, Reader
from reconciler.model.targets import Key
from reconciler.model.wording import counted

MOST = 100
"""How many of the newest events are read of a target: one page."""


@dataclass(frozen=True, slots=True)
class Authors:
    """The targets of a plan, with who made their differences, and why that is not known of some."""

    targets: tuple[TargetPlan, ...]
    unknown: tuple[str, ...] = ()


def with_authors(
    targets: Sequence[TargetPlan], reader: Reader, kinds: Kinds, concurrency: Concurrency, after: datetime
) -> Authors:
    """Return targets whose changes say who made what is live, wherever an event explains it.

    Args:
        targets: of a plan.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        after: events before it do not count.
    """
    asked = [target for target in targets if any(kinds[change.address.section].trace for change in _changes(target))]
    answers = side_by_side(lambda target: _events(target, reader, after), asked, concurrency)
    known = {
        target.target: events for target, events in zip(asked, answers, strict=True) if not isinstance(events, str)
    }
    reasons = Counter(answer for answer in answers if isinstance(answer, str))
    return Authors(
        tuple(_told(target, known.get(target.target, ()), kinds) for target in targets),
        tuple(
            f"who changed {counted(number, 'target')} is not known: {reason}; audit events need a licence (Premium or "
            "Ultimate) and the role Maintainer in a project, Owner in a group"
            for reason, number in reasons.items()
        ),
    )


def _changes(target: TargetPlan) -> Iterator[Change]:
    """Yield the changes of a target but its creation."""
    return (change for change in target.changes if change.address.section)


def _events(target: TargetPlan, reader: Reader, after: datetime) -> tuple[AuditEvent, ...] | str:
    """Return the newest events of a target, the newest first; why they cannot be read, if so."""
    since = after.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        answer = reader.get(f"{target.target.url}audit_events?per_page={MOST}&created_after={since}")
    except ServiceError as error:
        return error.reason
    events = filter(None, map(read_event, answer if isinstance(answer, list) else ()))
    return tuple(sorted(events, key=lambda event: event.time, reverse=True))


def _told(target: TargetPlan, events: Iterable[AuditEvent], kinds: Kinds) -> TargetPlan:
    events = tuple(events)
    sections = (_of_section(section, events, kinds) if events else section for section in target.sections)
    return replace(target, sections=tuple(sections))


def _of_section(section: SectionPlan, events: Sequence[AuditEvent], kinds: Kinds) -> SectionPlan:
    trace = kinds[section.section].trace if section.section else None
    if trace is None:
        return section
    traced = [(event, mark) for event in events for mark in trace(event)]
    changes = (replace(change, changed_by=_author(change, traced, kinds)) for change in section.changes)
    return replace(section, changes=tuple(changes))


def _author(change: Change, traced: Iterable[tuple[AuditEvent, Traced]], kinds: Kinds) -> ChangedBy | None:
    """Return who made a difference, and when: the newest event about it, if what is live is as the event left it."""
    part = kinds[change.address.section].part(change.address.part)
    names = {_identity(name, part) for name in _names(change)}
    about = [
        (event, mark)
        for event, mark in traced
        if mark.part == part.name
        and (not part.is_collection or any(_identity(name, part) in names for name in mark.names))
    ]
    if isinstance(change, Update):
        newest = {mark.field: (event, mark) for event, mark in reversed(about) if mark.field in change.after}
        events = [event for event, mark in newest.values() if mark.has_left(change.before.get(str(mark.field)))]
        event = max(events, key=lambda event: event.time, default=None)
    else:
        last = next((pair for pair in about if pair[1].field is None), None)
        event = last[0] if last and last[1].removed is isinstance(change, Create) else None
    return None if event is None else ChangedBy(event.author, event.time.astimezone(UTC))


def _names(change: Change) -> list[Key]:
    """Return all that an object is called; of one that is there, by its ID: others may have had its name before."""
    number = change.target_id if isinstance(change, Create) else change.read.id
    return [name for name in (change.address.name, number) if name is not None]


def _identity(name: Key, part: Part) -> Key:
    return part.identity(name) if isinstance(part, Collection) else name
