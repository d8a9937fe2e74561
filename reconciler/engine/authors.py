"""Who made the differences of a plan, by the audit events of the service: never a guess. Pure."""

from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from datetime import UTC

from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, ChangedBy, Create, Update, with_note
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import TargetPlan
from reconciler.model.targets import Key

Former = Mapping[tuple[str, str, Key], Several[int]]
"""The IDs of objects that an apply has made or found, by section, part and name: what is gone has none in any list."""


Pairs = Sequence[tuple[AuditEvent, Traced]]
"""Events, each with what it did to a part."""


def with_authors(target: TargetPlan, events: Sequence[AuditEvent], kinds: Kinds, former: Former) -> TargetPlan:
    """Return a target whose changes say who made what is live, wherever an event explains it.

    Args:
        target: of a plan.
        events: of the target, the newest first.
        kinds: all kinds.
        former: of the target, by the inventory.
    """
    traced: dict[str, Pairs] = {}

    def with_author(change: Change) -> Change:
        section = change.address.section
        trace = kinds[section].trace if section else None
        if trace is None:
            return change
        if section not in traced:
            traced[section] = [(event, mark) for event in events for mark in trace(event)]
        author = _author(change, traced[section], kinds, former)
        return with_note(change, "changed_by", None if author is None else author.data)

    return target.with_changes(with_author)


def changed_by(event: AuditEvent) -> ChangedBy:
    """Return who made an event, and when."""
    return ChangedBy(event.author, event.time.astimezone(UTC))


def _author(change: Change, traced: Pairs, kinds: Kinds, former: Former) -> ChangedBy | None:
    """Return who made a difference, and when: the newest event about it, if what is live is as the event left it."""
    part = kinds[change.address.section].part(change.address.part)
    names = {_identity(name, part) for name in _names(change, former)}
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
    return None if event is None else changed_by(event)


def _names(change: Change, former: Former) -> list[Key]:
    """Return all that an object is called; of one that is there, by its ID: others may have had its name before.

    Of one that is gone, the list has its ID: events call some objects by words of their own, such as `All Members`.
    """
    address = change.address
    gone = former.get((address.section, address.part, address.name or ""), ()) if isinstance(change, Create) else ()
    number = change.target_id if isinstance(change, Create) else change.read.id
    return [name for name in (address.name, number, *gone) if name is not None]


def _identity(name: Key, part: Part) -> Key:
    return part.identity(name) if isinstance(part, Collection) else name
