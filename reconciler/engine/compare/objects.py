"""The planning of a settings record, and of one object: its creation, update, rotation and deletion. Pure.

Each function `plan_...` returns steps: the change, or the problems and lookups that prevent it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from reconciler.engine.compare.earlier import ANOTHER_NAME
from reconciler.engine.compare.matching import ONE_NAME, Conflict, Pair, by_birth, too_many_objects
from reconciler.engine.compare.obstacles import as_problem
from reconciler.engine.compare.part import DeclaredPart, PartType
from reconciler.engine.compare.references import (
    ended_subjects,
    ids_in,
    lost_references,
    unresolved_references,
    with_names,
)
from reconciler.model.diff import (
    Fields,
    as_read,
    become,
    differences,
    fields_of,
    is_in_order,
    only,
    quoted,
    uncompared,
    without,
)
from reconciler.model.endpoints import LONGEST_NAME, NO_IDS, Collection, Existing, FieldIds, New, Singleton
from reconciler.model.item import (
    NOTHING,
    Create,
    Delete,
    Finding,
    Note,
    Update,
    hints,
    minimum_notes,
    pages,
    unused_names,
)
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Step
from reconciler.model.resource import LiveRecord, Objects, Resource, Rotated, written_duration
from reconciler.model.state import CALLER, Lookup, Reference, Vocabulary
from reconciler.model.targets import Key, Level

SPARE_NAME = "reconciler-exchange-{}"
"""The name, by ID, that one of the objects has that exchange names, until the others have theirs."""

TAKEN = "{} already uses this name, which must be unique in a group and everything below it"
"""The reason why an object cannot get a name that a group above or a target below has."""


PROMOTE = "declare `promote: true` to make it the group's, or choose another name"


OF_ANOTHER_USER = (
    "due for rotation, but it belongs to another user; its owner can rotate it, or delete it and the next run creates "
    "a new one"
)


UNCOVERABLE = (
    f"give it a name with fewer characters (at most {LONGEST_NAME} with those of the cover), by `renamed_from`"
)


RENAMED_BY_HAND = "somebody renamed it on the service"


NO_FIELDS = Resource()
"""No field."""


def plan_settings(at: DeclaredPart[Singleton], wanted: Resource, record: LiveRecord) -> Sequence[Step]:
    """Plan a settings record."""

    def plan(wanted: Resource) -> list[Step]:
        declared, locks, minimums = fields_of(wanted), at.earlier.locks, at.at_least(None)
        forced = {field: value for field, (value, _) in locks.items()}
        locked = [
            as_problem(lock.at(at.address()), field=field)
            for field, (value, lock) in locks.items()
            if field in declared and declared[field] != value
            if field not in minimums or not is_in_order(type(wanted), field, forced, {**forced, **declared})
        ]
        difference, problems = _applicable(at, None, without(wanted, locks.keys()), record)
        if difference is None or not difference.after:
            return [*locked, *problems]
        after = difference.after
        requests = at.part.update(at.section.target, only(difference.wanted, after), record)
        whole = become(record.resource, difference.wanted, record.unknown)
        notes = (*(Note("hint", warning) for _, warning in whole.warnings()), *minimum_notes(after, minimums))
        sent = declared if at.part.whole else NOTHING
        change = Update(at.address(), difference.before, after, requests, as_read(record), declared=sent, notes=notes)
        return [*locked, *problems, change]

    return at.exceptions.without_excepted((), wanted, plan)


def plan_creation(
    at: DeclaredPart[Collection],
    name: Key,
    wanted: Resource,
    target_id: int | None = None,
    replaces_ids: tuple[int, ...] = (),
    *,
    rotation: str = "",
) -> list[Step]:
    """Plan the creation of an object, or of the successor of the objects `replaces_ids`."""
    writes = at.part.writes
    if writes.create is None:
        return [at.problem(name, f"does not exist, and this API cannot create one: {writes.creation}")]
    obstacle = _name_taken(at, name) or _name_collision(at, name, None)
    if obstacle is not None:
        return [as_problem(obstacle)]
    fields = fields_of(wanted)
    errors = [*become(type(wanted)(), wanted).errors(), *at.part.names.rules(name, wanted, True)]
    lacking = [field for field in writes.required if fields.get(field) is None]
    refused: list[Step] = [
        *(at.problem(name, f"cannot be created: {reason}", field=field) for field, reason in errors),
        *(at.problem(name, f"needs `{field}` to be created", "declare it", field=field) for field in lacking),
        *dict(unresolved_references(at, name, wanted)).values(),
        *(dict(ended_subjects(at, name, wanted)).values() if at.earlier.ended else ()),
    ]
    if refused:
        return refused
    ids, unanswered = ids_in(at, name, wanted)
    if unanswered:
        return [step for _, step in unanswered]
    path_or_step = _path(at, name, None, wanted, ids)
    if not isinstance(path_or_step, tuple):
        return [path_or_step]
    path, remark = path_or_step
    requests = writes.create(New(at.part, at.section.target, path, name, wanted, target_id, at.siblings, ids))
    delivers, former = bool(at.part.secret_field), () if replaces_ids else getattr(wanted, "renamed_from", ())
    remarks = hints(_default_values(at, wanted), remark, *ids.remarks, rotation)
    notes = (*unused_names(former), *remarks, *minimum_notes(fields, at.at_least(name)))
    return [Create(at.address(name), fields, requests, target_id, replaces_ids, delivers, notes)]


def plan_pair(at: DeclaredPart[Collection], pair: Pair) -> list[Step]:
    """Plan a wanted object that exists, possibly under a former name."""
    name, wanted, record, is_renamed = pair.name, pair.wanted, pair.record, pair.former is not None
    age, writes = _rotation_age(wanted), at.part.writes
    # A renamed token is a pair first: its rotation follows in the next run.
    if age is not None and not is_renamed:
        return plan_rotation(at, name, wanted, age, (record,))
    obstacle = _name_obstacle(at, pair)
    if obstacle is not None:
        return [as_problem(obstacle)]
    before, after = differences(wanted, record, at.at_least(name))
    fixed = {
        **_immutable(at, pair, before, after),
        **dict(unresolved_references(at, name, wanted)),
        **(lost_references(at, name, without(wanted, after), record) if at.part.relations.named else {}),
    }
    anew = bool(after or is_renamed) and writes.makes_anew(renamed=is_renamed)
    changing = only(wanted, after) if after else NO_FIELDS
    comes = become(record.resource, changing, record.unknown) if anew else changing
    ids, unanswered = ids_in(at, name, comes, record, anew=anew)
    ending = dict(ended_subjects(at, name, comes if anew else wanted)) if at.earlier.ended else {}
    fixed |= ending
    # A replacement deletes the old object: with one of its entries missing, the new one would grant less, or more.
    if anew and (ending or unanswered):
        return [*fixed.values(), *(step for _, step in unanswered)]
    record = with_names(record, ids.numbers) if ids.numbers else record
    possible = without(wanted, {*fixed, *(field for field, _ in unanswered)})
    difference, problems = _applicable(at, name, possible, record)
    steps: list[Step] = [*fixed.values(), *(step for _, step in unanswered), *problems]
    if difference is None or writes.update is None or not (difference.after or is_renamed or record.below):
        return steps
    path_or_step = (None if is_renamed else _cover_problem(at, name)) or _path(at, name, record, wanted, ids)
    if not isinstance(path_or_step, tuple):
        return [*steps, path_or_step]
    path, remark = path_or_step
    changed = only(difference.wanted, difference.after)
    requests = writes.update(Existing(at.part, at.section.target, path, name, changed, record, at.siblings, ids))
    if pair.yielding is not None:
        spare = SPARE_NAME.format(pair.yielding.id)
        holder = Existing(at.part, at.section.target, path, spare, NO_FIELDS, pair.yielding, at.siblings)
        requests = (*writes.update(holder), *requests)
    change = Update(
        at.address(name),
        difference.before,
        difference.after,
        requests,
        as_read(record),
        pair.former,
        notes=(
            *([Note("renamed", RENAMED_BY_HAND)] if is_renamed and at.was_renamed(name) else ()),
            *hints(_origin_of(record), remark, *ids.remarks),
            *minimum_notes(difference.after, at.at_least(name)),
            *pages(at.part.page_of(record)),
        ),
    )
    return [*steps, change]


def _cover_problem(at: DeclaredPart[Collection], name: Key) -> Finding | None:
    """Return the problem that no cover can protect an object while it is replaced; None if there is no problem."""
    cover = at.part.writes.cover and at.part.writes.cover.name(str(name))
    if not cover or len(cover) <= LONGEST_NAME:
        return None
    return at.problem(name, f"cannot be replaced: its cover, {cover}, would have too long a name", UNCOVERABLE)


def plan_conflict(at: DeclaredPart[Collection], name: Key, conflict: Conflict, wanted: Resource) -> list[Step]:
    """Plan a wanted object that matches several live ones: a problem, unless it is rotated."""
    age = _rotation_age(wanted)
    if age is not None and conflict.namesakes:
        return plan_rotation(at, name, wanted, age, conflict.namesakes)
    return [at.problem(name, conflict.reason, conflict.remedy)]


def plan_rotation(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, age: timedelta, namesakes: Sequence[LiveRecord]
) -> list[Step]:
    """Plan a successor if the newest object is too old, and the deletion of older ones after the grace period.

    Objects of other users are neither counted nor deleted.
    """
    ours = [record for record in namesakes if record.ours]
    steps: list[Step] = []
    if len(namesakes) > max(1, len(ours)):
        steps.append(at.problem(name, too_many_objects(namesakes), ONE_NAME))
    if not ours:
        if len(namesakes) == 1 and _age(at, namesakes[0]) >= age:
            steps.append(at.problem(name, OF_ANOTHER_USER))
        return steps
    if any(record.created_at is None for record in ours):
        return [*steps, at.problem(name, "cannot be rotated: the service does not report its age")]
    newest = max(ours, key=by_birth)
    if _age(at, newest) >= age:
        ids = tuple(record.id for record in namesakes if record.id is not None)
        rotation = f"the old one has reached the age of {written_duration(age)}, and {_predecessor_end(at.grace)}"
        steps += plan_creation(at, name, wanted, replaces_ids=ids, rotation=rotation)
    # Consumers of the old token need time to take the new one over.
    if _age(at, newest) >= at.grace:
        for record in ours:
            if record is not newest:
                steps += plan_deletion(at, record, newest.id)
    return steps


def _predecessor_end(grace: timedelta) -> str:
    """Return the time at which the predecessor of a new token is deleted, in words."""
    return f"stays until this one is {written_duration(grace)} old" if grace else "goes with the next run"


def plan_deletion(at: DeclaredPart[Collection], record: LiveRecord, successor_id: int | None = None) -> list[Step]:
    """Plan the deletion of a live object."""
    name = record.names[0]
    # A deletion by name reaches the one with the lowest ID, whichever is meant.
    namesakes = _namesakes(at, record)
    if len(namesakes) > 1:
        is_first = record.id == min(namesake.id or 0 for namesake in namesakes)
        return [at.problem(name, too_many_objects(namesakes), ONE_NAME)] if is_first else []
    path_or_step = _path(at, name, record, NO_FIELDS, NO_IDS)
    if not isinstance(path_or_step, tuple):
        return [path_or_step]
    path, remark = path_or_step
    old = Existing(at.part, at.section.target, path, name, NO_FIELDS, record, at.siblings)
    losses = (
        *filter(None, [remark]),
        *at.part.losses(old),
        *([] if successor_id is None else [f"its successor has the ID {successor_id}"]),
    )
    before, requests = fields_of(record.resource), at.part.deletion.requests(old)
    notes = (*(Note("loss", loss) for loss in losses), *pages(at.part.page_of(record)))
    return [Delete(at.address(name), before, requests, as_read(record), successor_id, notes)]


@dataclass(frozen=True, slots=True)
class _Difference:
    """The difference between a live object and its declaration.

    Attributes:
        wanted: the declared fields that can be applied.
        before: the live values of the fields that differ.
        after: the declared values of the fields that differ.
    """

    wanted: Resource
    before: Fields
    after: Fields


def _applicable(
    at: DeclaredPart[PartType], name: Key | None, wanted: Resource, record: LiveRecord
) -> tuple[_Difference | None, list[Finding]]:
    """Return the difference that can be applied, and a problem for each read-only or invalid field.

    The difference is None if the result would be invalid in a way that the live object is not.
    """
    at_least = at.at_least(name)
    before, after = differences(wanted, record, at_least)
    read_only = {field: reason for field, reason in sorted(record.read_only.items()) if field in after}
    problems = [at.problem(name, reason, field=field) for field, reason in read_only.items()]
    # What is as strict as its minimum stays as it is.
    in_order = at_least - after.keys()
    possible = without(wanted, [*read_only, *in_order, *uncompared(wanted, record, at_least)])
    if possible is not wanted:
        before, after = differences(possible, record, at_least)
    difference = _Difference(possible, before, after)
    if not after:
        return difference, problems
    whole = become(record.resource, possible, record.unknown)
    unchanged = become(record.resource, NO_FIELDS, record.unknown)
    # An object that is invalid by our rules already, such as by an older version of the service, can still be changed.
    known = {*record.resource.errors(), *_broken_rules(at, name, unchanged, record)}
    errors = [error for error in (*whole.errors(), *_broken_rules(at, name, whole, record)) if error not in known]
    problems += [at.problem(name, reason, field=field) for field, reason in errors]
    return None if errors else difference, problems


def _broken_rules(
    at: DeclaredPart[PartType], name: Key | None, resource: Resource, record: LiveRecord
) -> Iterable[tuple[str, str]]:
    """Return `(field, fault)` for each field that does not go with the name; none if entries are hidden."""
    if not isinstance(at.part, Collection) or at.objects is None or name is None:
        return ()
    is_seen = all(partly_seen.id != record.id for partly_seen, _ in at.objects.hidden)
    return at.part.names.rules(name, resource, True) if is_seen else ()


def _rotation_age(wanted: Resource) -> timedelta | None:
    return wanted.rotate_after if isinstance(wanted, Rotated) else None


def _age(at: DeclaredPart[Collection], record: LiveRecord) -> timedelta:
    """Return the age of an object; zero if it is unknown, or negative because the service rounds to seconds."""
    return max(at.live.read_at - (record.created_at or at.live.read_at), timedelta())


def _name_taken(at: DeclaredPart[Collection], name: Key) -> Obstacle | None:
    """Return the obstacle to a name that a group above or a project below has; None if the name is free."""
    identity = at.part.identity(name)
    if identity in at.earlier.taken:
        return at.earlier.taken[identity].at(at.address(name))
    objects = at.objects or Objects()
    holder, promotable = objects.taken.get(identity), objects.promotable.get(identity)
    if holder is not None and (holder.is_below or identity not in at.earlier.freed):
        reason = TAKEN.format(holder.name)
        return Obstacle(at.address(name), reason, ANOTHER_NAME)
    if promotable is not None:
        return Obstacle(at.address(name), TAKEN.format(_first_of(promotable.below)), PROMOTE)
    return None


def _name_collision(at: DeclaredPart[Collection], name: Key, record: LiveRecord | None) -> Obstacle | None:
    """Return the obstacle if the service would resolve a name to another object; None if it would not.

    Args:
        at: the collection.
        name: the name in the path, or that of a new object.
        record: the object that the name must reach; None for a new object, whose name must reach none.
    """
    leads_to = at.part.names.leads_to
    if leads_to is None or at.objects is None:
        return None
    reached = [live for live in at.objects.own if leads_to(at.section.target, str(name), str(live.names[0]))]
    first = min(reached, key=lambda live: live.id or 0, default=None)
    if first is None or (record is not None and first.id == record.id):
        return None
    reason = f'the service looks for a part of the name, and takes this for "{first.names[0]}" (ID {first.id})'
    return Obstacle(at.address(name), reason, "rename or delete that one by hand, on the page of the section")


def _namesakes(at: DeclaredPart[Collection], record: LiveRecord) -> list[LiveRecord]:
    """Return the target's own objects with the same name, if requests address objects by name."""
    if at.part.path_field != at.part.key or at.objects is None:
        return []
    return [own for own in at.objects.own if own.names[0] == record.names[0]]


def _name_obstacle(at: DeclaredPart[Collection], pair: Pair) -> Obstacle | None:
    """Return the obstacle to the name that a wanted object will have; None if the name is possible."""
    if pair.former is None:
        return _name_taken(at, pair.name) if at.part.identity(pair.name) in at.earlier.taken else None
    taken = _name_taken(at, pair.name) or _promotion_conflict(at, pair)
    if taken is not None:
        return taken
    writes, fixed = at.part.writes, at.part.names.fixed
    never = writes.update is None or not fixed.isdisjoint((pair.name, pair.former))
    reason = pair.record.read_only.get("renamed_from", "cannot be renamed" if never else None)
    if reason is not None:
        return Obstacle(at.address(pair.name), reason)
    return None if writes.renames else _name_collision(at, pair.name, None)


def _promotion_conflict(at: DeclaredPart[Collection], pair: Pair) -> Obstacle | None:
    """Return the obstacle to a rename if a group above promotes the object in this plan; None if none does."""
    taker = at.earlier.taken.get(at.part.identity(pair.record.names[0]))
    if taker is None:
        return None
    reason = f'{taker.where.target} takes over "{pair.former}" in this plan, which leaves none to rename'
    return Obstacle(at.address(pair.name), reason, "" if at.was_renamed(pair.name) else "leave `renamed_from` out")


def _immutable(at: DeclaredPart[Collection], pair: Pair, before: Fields, after: Fields) -> dict[str, Finding]:
    """Return a problem for each differing field that no update can change."""
    remedy = "to replace the object, declare a new name and set this one to null; or delete it first"
    if pair.former is not None and not at.was_renamed(pair.name):
        remedy = "leave out `renamed_from` to create a new object; the former is deleted if an apply has recorded it"
    elif at.section.prune:
        remedy = "to replace the object, declare it under a new name, and this one is pruned; or delete it first"
    return {
        field: at.problem(
            pair.name,
            f"cannot be changed once created: {quoted(before[field])} -> {quoted(value)}",
            remedy,
            field=field,
        )
        for field, value in after.items()
        if at.part.writes.update is None or field.partition(".")[0] in at.part.writes.immutable
    }


def _path(
    at: DeclaredPart[Collection], name: Key, record: LiveRecord | None, wanted: Resource, field_ids: FieldIds
) -> tuple[str, str] | Finding | Lookup:
    """Return the collection's path for writes and a remark; or the problem, or the lookup that the path needs.

    Args:
        at: the collection.
        name: the object's name.
        record: the object as it was read; None if it is to be created.
        wanted: the declared fields.
        field_ids: the IDs of the subjects that these fields name.
    """
    collision = None if record is None else _name_collision(at, record.names[0], record)
    if collision is not None:
        return as_problem(collision)
    remark = _write_barrier(at, name, _exclusive_writers(at, record, wanted, field_ids))
    if not isinstance(remark, str):
        return remark
    target, suffix = at.section.target, at.part.writes.suffix or at.part.suffix
    never_sent = at.exceptions.whole((name,))
    is_numbered = at.part.writes.needs_numeric_id and not never_sent
    if not is_numbered or not isinstance(target.ref, str) or at.live.created(target.level, target.ref):
        return target.url + suffix, remark
    reference = Reference(target.level, target.ref.casefold())
    number = at.live.ids.get(reference, reference)
    if isinstance(number, Obstacle):
        reason = f"writing here takes the numeric ID of {target}: {number.reason}"
        return at.problem(name, reason, "declare it by `id` instead of `path`")
    return (f"{target.level}s/{number}/{suffix}", remark) if isinstance(number, int) else number


@dataclass(frozen=True, slots=True)
class _ExclusiveWriters:
    """The users who alone may write an object.

    Attributes:
        users: their IDs, by name or ID.
        admins: whether administrators may write it too.
    """

    users: Mapping[str | int, int]
    admins: bool = False


def _exclusive_writers(
    at: DeclaredPart[Collection], record: LiveRecord | None, wanted: Resource, field_ids: FieldIds
) -> _ExclusiveWriters | None:
    """Return the users who alone may write an object; None if roles or groups may write it too.

    For a new object, its declared entries count. See `_path` for the arguments.
    """
    field = at.part.writes.keepers
    # Of the rules of a group, the service does not ask.
    if not field or at.section.target.level is not Level.PROJECT:
        return None
    if record is not None:
        rows = [row for row in record.entries.get(field, ()) if row.shown is not None]
        listed = [(*row.identity, row.number or 0) for row in rows]
    else:
        entries = getattr(wanted, field) if field in wanted.model_fields_set else ()
        named = [("role", entry) if isinstance(entry, str) else entry.identity for entry in entries]
        listed = [(*identity, field_ids.numbers.get(identity, 0)) for identity in named]
    users = {called: number for who, called, number in listed if who == "user"}
    other_subjects = [called for who, called, _ in listed if who != "user"]
    return _ExclusiveWriters(users, bool(other_subjects)) if listed and set(other_subjects) <= {"admin"} else None


def _write_barrier(
    at: DeclaredPart[Collection], name: Key, writers: _ExclusiveWriters | None
) -> Finding | Lookup | str:
    """Return the problem if the token's owner may not write an object, or the lookup to check that; else a remark.

    A free edition stores that only administrators may write, and does not enforce it: so that is only a remark.

    Args:
        at: the collection.
        name: the object's name.
        writers: see `_exclusive_writers`.
    """
    if writers is None:
        return ""
    me = at.live.names.get(CALLER, CALLER)
    if isinstance(me, Vocabulary):
        return me
    if isinstance(me, Obstacle) or any(map(me.has, writers.users.values())):
        return ""
    field = at.part.writes.keepers
    if writers.admins:
        return f"{field} names administrators, and this token does not belong to one: the service may refuse it" * bool(
            me.unfit
        )
    usernames = ", ".join(sorted(map(str, writers.users)))
    reason = f"only {usernames} may change this rule, by {field}: not even an owner or an administrator"
    remedy = "use their token, or let them add you; make those who have left Maintainer again, or nobody can"
    return at.problem(name, reason, remedy)


def _default_values(at: DeclaredPart[Collection], wanted: Resource) -> str:
    """Return the default values of fields that a creation leaves out, in words."""
    defaults = at.part.writes.defaults.items()
    return ", ".join(
        f"{field}: {value}, by default" for field, value in defaults if field not in wanted.model_fields_set
    )


def _origin_of(record: LiveRecord) -> str:
    """Return the project from which an object is promoted, in words; empty if it is the target's own."""
    if not record.below:
        return ""
    first, *others = record.below
    return f"promoted from {first}" + (f"; also takes the place of the one of {_first_of(others)}" if others else "")


def _first_of(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first} (and {len(others):,} more)" if others else first
