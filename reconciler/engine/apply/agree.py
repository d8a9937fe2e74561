"""The comparison of shown changes with a new plan, right before they are sent: only equal changes are sent. Pure.

The section is read, and planned again as a whole as if its changes were declared: see `as_declared`. Which changes are
sent depends on the reason to plan again:

- *from a file*: a change is sent if planning again gives the same change and requests: `unplanned_outcomes`.
- *a name that need not be unique*: a creation is sent unless it exists now: `already_created`.
- *below a changed group, from a file*: a change is sent if the saved plan shows all its fields: `exceeding_changes`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pydantic import ValidationError

from reconciler.engine.apply.options import DONE_BEFORE
from reconciler.engine.apply.reread import CurrentObjects, Reread, with_answers, with_created
from reconciler.engine.apply.targets import refers_above
from reconciler.engine.compare.earlier import Changes, Earlier
from reconciler.engine.compare.planner import plan_section
from reconciler.model.diff import as_before, as_read, moved, resource_of
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.item import (
    NOTHING,
    Change,
    Create,
    Delete,
    Item,
    Outcome,
    Status,
    Update,
    address_of,
    minimums_of,
    sentences,
)
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.renames import exchanged_names
from reconciler.model.resource import Resource, Wanted
from reconciler.model.state import Known, LivePart, LiveState, Lookup, PartAddress, Recorded, Section, Unreadable
from reconciler.model.targets import Key

PLAN_WAS_EDITED = "the saved plan was edited: its requests do not match the changes it shows; make the plan again"

MADE_ANEW = "it has changed since the plan was made: the entries of its lists have other IDs; make the plan again"

EXCEEDS = "it would do more than the saved plan shows, because a group above was changed; plan again"

NEVER = timedelta.max

BY_A_PLAN = "the saved plan"
"""A placeholder for the commit that declared a deleted object last."""


def as_declared(
    changes: Iterable[Change], reread_parts: Reread, kinds: Kinds
) -> tuple[Section, Mapping[PartAddress, Recorded]]:
    """Return a section that declares the results of its changes, and the objects that they delete.

    Args:
        changes: at least one; see `refusal`.
        reread_parts: the parts of these changes.
        kinds: all kinds.
    """
    wanted: dict[str, Wanted] = {}
    objects: dict[str, dict[Key, Resource | None]] = {}
    let_go: dict[PartAddress, dict[int, str]] = {}
    changes = tuple(changes)
    for change in changes:
        address = change.address
        part = kinds[address.section].part(address.part)
        if isinstance(part, Singleton) or address.name is None:
            wanted[address.part] = _resource(change, part, reread_parts)
            continue
        items = objects.setdefault(address.part, {})
        if not isinstance(change, Delete):
            items[address.name] = _resource(change, part, reread_parts)
        elif change.successor_id is None:
            let_go.setdefault((address.target, address.section, address.part), {})[change.read.id or 0] = BY_A_PLAN
        else:  # only what is declared has a successor
            items.setdefault(address.name, _rotated(part.model.model_construct(), NEVER))
    for name, items in objects.items():
        part = kinds[address.section].part(name)
        wanted[name] = {**_in_order(part, changes, reread_parts[address.section, name]), **items}
    at_least = {change.address.name: minimums for change in changes if (minimums := minimums_of(change))}
    exchanged = {
        (address.target, address.section, name): _exchanged(kinds[address.section].part(name), items, changes)
        for name, items in objects.items()
    }
    recorded = {
        place: Recorded(let_go.get(place, {}), exchanged=exchanged.get(place, {}))
        for place in let_go.keys() | {place for place, ids in exchanged.items() if ids}
    }
    return Section(address.target, address.section, wanted, at_least=at_least), recorded


def _exchanged(part: Part, items: Mapping[Key, Resource | None], changes: Iterable[Change]) -> Mapping[Key, int]:
    """Return the IDs of the objects that exchange names, by identity of their new names: no name shows what is done."""
    assert isinstance(part, Collection)  # noqa: S101 - only collections have objects
    names = exchanged_names(items, part.identity)
    updates = (change for change in changes if isinstance(change, Update) and change.address.part == part.name)
    ids = {part.identity(change.address.name or ""): change.read.id for change in updates}
    return {name: number for name, number in ids.items() if name in names and number is not None}


def _in_order(
    part: Part, changes: Iterable[Change], objects: CurrentObjects | Unreadable
) -> dict[Key, Resource | None]:
    """Return declarations of further objects that are in order, and therefore in no plan.

    They affect the plan of the changed objects: covers that no change deletes, and all objects whose only name is their
    position in the list.
    """
    if isinstance(part, Singleton) or isinstance(objects, Unreadable):
        return {}
    if part.names.arrange:
        gone = {change.read.id for change in changes if isinstance(change, Delete)}
        return {record.names[0]: part.model() for number, record in objects.by_id.items() if number not in gone}
    if part.writes.cover is None:
        return {}
    taken = {request.path.rpartition("/")[2] for change in changes for request in change.requests}
    covers = filter(part.writes.cover.covered, objects.by_id.values())
    return {record.names[0]: part.model() for record in covers if record.path_id not in taken}


def _resource(change: Change, part: Part, reread_parts: Reread) -> Resource:
    """Return the declaration of an object as a creation or an update leaves it, with the policy for that change.

    Raises:
        ValidationError, TypeError: the fields are invalid.
    """
    objects = reread_parts[change.address.section, change.address.part]
    model = part.model if isinstance(objects, Unreadable) else objects.model
    wanted = resource_of(model, {} if isinstance(change, Delete) else change.after)
    if isinstance(change, Create) and change.replaces_ids:
        # Planning then gives the rotation again only if no successor exists yet.
        is_succeeded = isinstance(objects, CurrentObjects) and objects.new(change)
        return _rotated(wanted, NEVER if is_succeeded else timedelta())
    if isinstance(change, Update) and change.renamed_from is not None:
        return wanted.model_copy(update={"renamed_from": (change.renamed_from,)})
    if isinstance(change, Update) and change.read.below:
        return wanted.model_copy(update={"promote": True})
    return wanted


def _rotated(wanted: Resource, age: timedelta) -> Resource:
    return wanted.model_copy(update={"rotate_after": age})


def refusal(change: Change, reread_parts: Reread, kinds: Kinds) -> str:
    """Return the reason to refuse a change of a file before planning: a missing ID, or an impossible change."""
    above = refers_above(change)
    if above:
        return f"{above} was not created, and this refers to it"
    part = kinds[change.address.section].part(change.address.part)
    is_settings = isinstance(part, Singleton)
    if is_settings is not (change.address.name is None) or (is_settings and not isinstance(change, Update)):
        return PLAN_WAS_EDITED
    try:
        _resource(change, part, reread_parts)
    except (ValidationError, TypeError):
        return PLAN_WAS_EDITED
    return ""


def unplanned_outcomes(
    shown: Sequence[Change], planned: TargetPlan, reread_parts: Reread, kind: Kind
) -> Iterator[Outcome]:
    """Yield the outcomes of changes of a file that planning again does not give: done before, or stale.

    A change whose object is as declared was done before. Any other change is refused: its object or the plan differs.
    """
    anew = {_identity(change, kind): change for change in planned.changes}
    is_open = {name_in(step, kind) for step in planned.changes if not isinstance(step, Delete)}
    problems = {name_in(problem, kind): problem for problem in planned.problems}
    for change in shown:
        now, objects = anew.get(_identity(change, kind)), reread_parts[kind.name, change.address.part]
        if now is not None and _is_same(change, now):
            continue
        since, problem = _since(change, objects), problems.get(name_in(change, kind))
        if isinstance(objects, Unreadable):
            yield Outcome(change, Status.STALE, since)
            continue
        if isinstance(change, Delete) and problem is None:
            # Nothing of a list is deleted while it is not known what a wanted name stands for.
            others = (other for (part, _), other in problems.items() if part == change.address.part)
            problem = next(others, None)
        if since and not problem and name_in(change, kind) not in is_open and _is_done(change, objects):
            yield with_created(Outcome(change, Status.DONE, DONE_BEFORE), reread_parts)
        elif since:
            yield Outcome(change, Status.STALE, since)
        elif problem:
            yield Outcome(change, Status.STALE, f"it cannot be planned: {problem.reason}")
        else:
            # An edited plan and an old one differ in what is wrong: only an old one has other IDs of the same entries.
            is_old = now is not None and _has_other_entries(change, now)
            yield Outcome(change, Status.STALE, MADE_ANEW if is_old else PLAN_WAS_EDITED)


def already_created(creations: Iterable[Change], reread_parts: Reread) -> Iterator[Outcome]:
    """Yield the outcomes of creations of an object that somebody else has created since the plan was made."""
    for change in creations:
        since = _since(change, reread_parts[change.address.section, change.address.part])
        if since:
            yield Outcome(change, Status.STALE, since)


def exceeding_changes(planned: TargetPlan, saved: TargetPlan) -> Iterator[Outcome]:
    """Yield the outcomes of changes of a section planned again that do more than the saved plan shows."""
    shown = {change.address: change.after for change in saved.changes if isinstance(change, Update)}
    for change in planned.changes:
        if not (isinstance(change, Update) and change.after.items() <= shown.get(change.address, {}).items()):
            yield Outcome(change, Status.STALE, EXCEEDS)


def planned_again(
    changes: Iterable[Change],
    reread_parts: Reread,
    kinds: Kinds,
    answer_to: Callable[[Lookup], int | Known | Obstacle],
    earlier_changes: Changes = NOTHING,
) -> TargetPlan:
    """Plan a section again, with the results of some changes as its declaration.

    Args:
        changes: the changes.
        reread_parts: the parts of these changes, as they were read.
        kinds: all kinds.
        answer_to: returns the answer to a lookup.
        earlier_changes: the changes of earlier sections.
    """
    section, recorded = as_declared(changes, reread_parts, kinds)
    parts: dict[PartAddress, LivePart] = {}
    for name in section.wanted:
        part = reread_parts[section.kind, name]
        parts[section.target, section.kind, name] = part if isinstance(part, Unreadable) else part.live
    state = LiveState(parts, {}, recorded=recorded)
    while True:
        planned = plan_section(section, state, kinds, earlier=Earlier(changes=earlier_changes))
        if not planned.lookups:
            return planned
        state = with_answers(state, planned.lookups, answer_to)


def unanswered(lookup: Lookup) -> Obstacle:
    """Return an obstacle as the answer to a lookup that is not made."""
    return Obstacle(lookup.target.address, "nobody asked")


def name_in(item: Item, kind: Kind) -> tuple[str, Key | None]:
    """Return the part and the canonical name of the object of a step."""
    address = address_of(item)
    part, name = kind.part(address.part), address.name
    return address.part, part.identity(name) if isinstance(part, Collection) and name is not None else None


def _identity(change: Change, kind: Kind) -> tuple[object, ...]:
    """Return the identity of a change within its section; two deletions may have the same name."""
    return change.action, *name_in(change, kind), None if isinstance(change, Create) else change.read.id


def _is_same(change: Change, current: Change) -> bool:
    """Return whether planning has given the same change, without further hints."""
    match change, current:
        case Create(), Create():
            # Compared as sets: the order of the service's list means nothing.
            is_rotation = {*change.replaces_ids} == {*current.replaces_ids}
            return is_rotation and change == replace(current, replaces_ids=change.replaces_ids)
        case Update(), Update() if change.read.below:  # from where it is promoted was shown
            return change == current and {*sentences(current, "hint")} <= {*sentences(change, "hint")}
        case Delete(), Delete():
            return change == replace(current, successor_id=change.successor_id)
    return change == current


def _since(change: Change, objects: CurrentObjects | Unreadable) -> str:
    """Return the difference since a change was planned, in words; empty if there is none."""
    if isinstance(objects, Unreadable):
        return f"cannot be read again: {objects.reason}"
    if isinstance(change, Create):
        return "it exists now" if objects.new(change) else ""
    former = change.renamed_from if isinstance(change, Update) else None
    namesakes = objects.named(change.address.name)
    record = objects.by_id.get(change.read.id) or next(iter(namesakes or objects.named(former)), None)
    if record is None:
        return "it no longer exists"
    since = moved(change.read, as_read(as_before(record, change.read)))
    if since:
        return f"it has changed since the plan was made: {since}"
    return "its new name is taken now" if former is not None and namesakes else ""


def _is_done(change: Change, current_objects: CurrentObjects) -> bool:
    """Return whether the object of a change that is no longer planned is the one that the change was to make.

    An earlier apply of the same plan may have made it, or somebody else.
    """
    if isinstance(change, Delete):
        return change.read.id not in current_objects.by_id and not current_objects.taken(change.address.name)
    if isinstance(change, Create) or change.read.below:
        new = current_objects.new(change)
        return len(new) == 1 and new[0].ours
    record = current_objects.by_id.get(change.read.id)
    return record is not None and current_objects.has_name(record, change.address.name)


def _has_other_entries(change: Change, current: Change) -> bool:
    """Return whether two changes differ only in the IDs of removed entries, which a plan does not show."""
    return change != current and _without_entry_ids(change) == _without_entry_ids(current)


def _without_entry_ids(change: Change) -> Change:
    if not isinstance(change, Update):
        return change
    requests = tuple(replace(request, body=_unnumbered(request.body)) for request in change.requests)
    return replace(change, requests=requests)


def _unnumbered(value: Json) -> Json:
    match value:
        case dict():
            return {key: _unnumbered(field) for key, field in value.items() if key != "id" or "_destroy" not in value}
        case list():
            return [_unnumbered(entry) for entry in value]
    return value
