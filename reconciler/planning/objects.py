"""The planning of a settings record, and of one object: its creation, update, succession and deletion. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from reconciler.model.diff import as_read, become, differences, fields_of, only, quoted, without
from reconciler.model.endpoints import Collection, Existing, New, Singleton
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Create, Delete, Problem, Step, Update
from reconciler.model.resource import LiveRecord, Objects, Resource, Rotated
from reconciler.model.state import Reference
from reconciler.model.targets import Key
from reconciler.planning.exceptions import is_held
from reconciler.planning.matching import ONE_NAME, Pair, by_birth, crowd
from reconciler.planning.naming import named_ids
from reconciler.planning.obstacles import as_problem
from reconciler.planning.part import DeclaredPart, applicable
from reconciler.planning.relations import barred, keepers_of, numbers_of, unresolved_fields

HELD_ABOVE = "{} has one of this name, which no other below it may have"


HELD_BELOW = "{} has one of this name, which no group above it may have"


TAKEN_ABOVE = "{} gets one of this name in this plan, which no other below it may have"
"""Why a name cannot be given."""


ANOTHER_NAME = "leave it out here, or choose another name"


PROMOTE = "declare `promote: true` to make it the group's, or choose another name"


OF_ANOTHER_USER = (
    "due for rotation, but it belongs to another user; its owner can rotate it, or delete it and the next run creates "
    "a new one"
)


def plan_settings(at: DeclaredPart[Singleton], wanted: Resource, record: LiveRecord) -> Iterator[Step]:
    """Plan a settings record."""
    return at.held_back((), wanted, partial(_plan_record, at, record))


def _plan_record(at: DeclaredPart[Singleton], record: LiveRecord, wanted: Resource) -> Iterator[Step]:
    declared = fields_of(wanted)
    for field, (value, lock) in at.locks.items():
        if field in declared and declared[field] != value:
            yield as_problem(lock.at(at.address()), field=field)
    possible, problems = applicable(at, None, without(wanted, at.locks.keys()), record)
    yield from problems
    if possible is None:
        return
    before, after = differences(possible, record)
    if after:
        requests = at.part.update(at.section.target, only(possible, after), record)
        hint = "; ".join(warning for _, warning in become(record.resource, possible, record.unknown).warnings())
        yield Update(at.address(), before, after, requests, as_read(record), hint=hint)


def plan_creation(
    at: DeclaredPart[Collection],
    name: Key,
    wanted: Resource,
    target_id: int | None = None,
    replaces_ids: tuple[int, ...] = (),
) -> Iterator[Step]:
    """Plan the creation of an object, or of the successor of those that it replaces."""
    if at.part.writes.create is None:
        yield at.problem(name, f"does not exist, and this API cannot create one: {at.part.writes.creation}")
        return
    taken = _taken(at, name) or _misled(at, name, None)
    if taken is not None:
        yield as_problem(taken)
        return
    errors = [*become(type(wanted)(), wanted).errors(), *at.part.names.rules(name, wanted, True)]
    lacking = [field for field in at.part.writes.required if fields_of(wanted).get(field) is None]
    yield from (at.problem(name, f"cannot be created: {reason}", field=field) for field, reason in errors)
    yield from (at.problem(name, f"needs `{field}` to be created", "declare it", field=field) for field in lacking)
    unrelated = dict(unresolved_fields(at, name, wanted))
    yield from unrelated.values()
    if errors or lacking or unrelated:
        return
    numbers, unknown = numbers_of(at, name, wanted)
    named, unnamed = named_ids(at, name, wanted)
    yield from (step for _, step in (*unknown, *unnamed))
    path = _path(at, name)
    if unknown or unnamed:
        return
    reason = barred(at, name, keepers_of(at, None, wanted, numbers))
    if reason is not None:
        yield reason
        return
    if isinstance(path, str):
        new = New(at.part, at.section.target, path, name, wanted, target_id, at.siblings, numbers, named)
        requests = at.part.writes.create(new)
        delivers, former = bool(at.part.secret_field), () if replaces_ids else getattr(wanted, "renamed_from", ())
        yield Create(
            at.address(name),
            fields_of(wanted),
            requests,
            target_id,
            replaces_ids,
            delivers,
            former,
            _defaults(at, wanted),
        )
    else:
        yield path


def plan_pair(at: DeclaredPart[Collection], pair: Pair) -> Iterator[Step]:
    """Plan a wanted object that is live, maybe under a former name."""
    record, rename, age = pair.record, pair.former is not None, _rotation_age(pair.wanted)
    if age is not None and not rename:
        yield from plan_rotation(at, pair.name, pair.wanted, age, (record,))
        return
    unnamable = at.part.writes.update is None or not at.part.names.fixed.isdisjoint((pair.name, pair.former))
    fixed_name = record.read_only.get("renamed_from", "cannot be renamed" if unnamable else None)
    taken = _taken(at, pair.name) if rename or at.part.identity(pair.name) in at.taken else None
    if taken is None and rename and fixed_name is not None:
        taken = Obstacle(at.address(pair.name), fixed_name)
    if taken is None and rename and not at.part.writes.renames:
        taken = _misled(at, pair.name, None)
    if taken is not None:
        yield as_problem(taken)
        return
    fixed = {**dict(_immutable(at, pair)), **dict(unresolved_fields(at, pair.name, pair.wanted))}
    yield from fixed.values()
    differing = only(pair.wanted, differences(pair.wanted, record)[1])
    numbers, unknown = numbers_of(at, pair.name, differing, record)
    named, others = named_ids(at, pair.name, differing, record)
    unknown += others
    yield from (step for _, step in unknown)
    unnamed = {field for field, _ in unknown}
    possible, problems = applicable(at, pair.name, without(pair.wanted, {*fixed, *unnamed}), record)
    yield from problems
    if possible is None or at.part.writes.update is None:
        return
    before, after = differences(possible, record)
    if after or rename or record.below:
        misled = _misled(at, record.names[0], record)
        if misled is not None:
            yield as_problem(misled)
            return
        reason = barred(at, pair.name, keepers_of(at, record, pair.wanted, numbers))
        if reason is not None:
            yield reason
            return
        path = _path(at, pair.name)
        if isinstance(path, str):
            existing = Existing(
                at.part, at.section.target, path, pair.name, only(possible, after), record, at.siblings, numbers, named
            )
            requests, read = at.part.writes.update(existing), as_read(record)
            hint, page = _origin_of(record), at.part.page_of(record)
            yield Update(at.address(pair.name), before, after, requests, read, pair.former, hint=hint, page=page)
        else:
            yield path


def plan_conflict(
    at: DeclaredPart[Collection], name: Key, obstacle: Obstacle, namesakes: Sequence[LiveRecord], wanted: Resource
) -> Iterator[Step]:
    """Plan a wanted object that several live ones may be: a problem, unless it is rotated."""
    age = _rotation_age(wanted)
    if age is not None and namesakes:
        yield from plan_rotation(at, name, wanted, age, namesakes)
    else:
        yield as_problem(obstacle)


def plan_rotation(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, age: timedelta, namesakes: Sequence[LiveRecord]
) -> Iterator[Step]:
    """Plan a successor if the newest object is too old, and the deletion of older ones once the newest is settled.

    Objects of other users are neither counted nor deleted.
    """
    ours = [record for record in namesakes if record.ours]
    if len(namesakes) > max(1, len(ours)):
        yield at.problem(name, crowd(namesakes), ONE_NAME)
    if not ours:
        if len(namesakes) == 1 and _age(at, namesakes[0]) >= age:
            yield at.problem(name, OF_ANOTHER_USER)
        return
    if any(record.created_at is None for record in ours):
        yield at.problem(name, "cannot be rotated: the service does not report its age")
        return
    newest = max(ours, key=by_birth)
    if _age(at, newest) >= age:
        ids = tuple(record.id for record in namesakes if record.id is not None)
        yield from plan_creation(at, name, wanted, replaces_ids=ids)
    if _age(at, newest) >= at.grace:
        for record in ours:
            if record is not newest:
                yield from plan_deletion(at, record, newest.id)


def plan_deletion(at: DeclaredPart[Collection], record: LiveRecord, successor_id: int | None = None) -> Iterator[Step]:
    """Plan the deletion of a live object."""
    name = record.names[0]
    misled = _misled(at, name, record)
    if misled is not None:
        yield as_problem(misled)
        return
    reason = barred(at, name, keepers_of(at, record, Resource(), {}))
    if reason is not None:
        yield reason
        return
    path = _path(at, name)
    if isinstance(path, str):
        old = Existing(at.part, at.section.target, path, name, Resource(), record, at.siblings)
        losses = (*at.part.losses(old), *([] if successor_id is None else [f"its successor has the ID {successor_id}"]))
        before, read = fields_of(record.resource), as_read(record)
        page = at.part.page_of(record)
        yield Delete(at.address(name), before, at.part.deletion.requests(old), read, successor_id, losses, page)
    else:
        yield path


def _rotation_age(wanted: Resource) -> timedelta | None:
    return wanted.rotate_after if isinstance(wanted, Rotated) else None


def _age(at: DeclaredPart[Collection], record: LiveRecord) -> timedelta:
    """Return the age of an object; zero if it is unknown, or negative by the service's whole seconds."""
    return max(at.live.read_at - (record.created_at or at.live.read_at), timedelta())


def _taken(at: DeclaredPart[Collection], name: Key) -> Obstacle | None:
    """Return why an object cannot get a name, since a group above or a project below has it; None if it can."""
    identity, objects = at.part.identity(name), at.live.parts.get(at.place)
    if identity in at.taken:
        return at.taken[identity].at(at.address(name))
    if not isinstance(objects, Objects):
        return None
    holder, promotable = objects.taken.get(identity), objects.promotable.get(identity)
    if holder is not None:
        reason = (HELD_BELOW if holder.is_below else HELD_ABOVE).format(holder.name)
        return Obstacle(at.address(name), reason, ANOTHER_NAME)
    if promotable is not None:
        return Obstacle(at.address(name), HELD_BELOW.format(_first_of(promotable.below)), PROMOTE)
    return None


def _misled(at: DeclaredPart[Collection], name: Key, record: LiveRecord | None) -> Obstacle | None:
    """Return why a request that names an object would reach another object; None if it reaches the right one.

    Args:
        at: the collection.
        name: the name in the path, or of a new object.
        record: the object that the request is for; None for a new one, whose name must reach no object.
    """
    leads_to, objects = at.part.names.leads_to, at.live.parts.get(at.place)
    if leads_to is None or not isinstance(objects, Objects):
        return None
    reached = [live for live in objects.own if leads_to(at.section.target, str(name), str(live.names[0]))]
    first = min(reached, key=lambda live: live.id or 0, default=None)
    if first is None or (record is not None and first.id == record.id):
        return None
    reason = f'the service looks for a part of the name, and takes this for "{first.names[0]}" (ID {first.id})'
    return Obstacle(at.address(name), reason, "rename or delete that one by hand, on the page of the section")


def _immutable(at: DeclaredPart[Collection], pair: Pair) -> Iterator[tuple[str, Problem]]:
    """Yield each field that differs and that no update can change, with the problem."""
    remedy = "to replace the object, declare a new name and set this one to null; or delete it first"
    if pair.former is not None:
        remedy = "leave out `renamed_from` to create a new object"
    elif at.section.prune:
        remedy = "to replace the object, declare it under a new name, and this one is pruned; or delete it first"
    before, after = differences(pair.wanted, pair.record)
    for field, value in after.items():
        if at.part.writes.update is None or field.partition(".")[0] in at.part.writes.immutable:
            reason = f"cannot be changed once created: {quoted(before[field])} -> {quoted(value)}"
            yield field, at.problem(pair.name, reason, remedy, field=field)


def _path(at: DeclaredPart[Collection], name: Key) -> str | Problem | Reference:
    """Return the collection's path for writes; or why there is none; or the lookup that it takes."""
    target, suffix = at.section.target, at.part.writes.suffix or at.part.suffix
    never_sent = is_held(at.exceptions, at.part, (name,))
    is_numbered = at.part.writes.needs_numeric_id and not never_sent
    if not is_numbered or not isinstance(target.ref, str) or at.live.created(target.level, target.ref):
        return target.url + suffix
    reference = Reference(target.level, target.ref.casefold())
    number = at.live.ids.get(reference, reference)
    if isinstance(number, Obstacle):
        reason = f"writing here takes the numeric ID of {target}: {number.reason}"
        return at.problem(name, reason, "declare it by `id` instead of `path`")
    return f"{target.level}s/{number}/{suffix}" if isinstance(number, int) else number


def _defaults(at: DeclaredPart[Collection], wanted: Resource) -> str:
    """Say which values the service gives to fields that a creation leaves out."""
    defaults = at.part.writes.defaults.items()
    return ", ".join(
        f"{field}: {value}, by default" for field, value in defaults if field not in wanted.model_fields_set
    )


def _origin_of(record: LiveRecord) -> str:
    """Say from which project an object is promoted; empty if it is the target's own."""
    if not record.below:
        return ""
    first, *others = record.below
    return f"promoted from {first}" + (f"; also takes the place of the one of {_first_of(others)}" if others else "")


def _first_of(names: Sequence[str]) -> str:
    first, *others = names
    return f"{first} (and {len(others):,} more)" if others else first
