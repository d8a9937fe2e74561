"""Lookups: `plan_with_lookups` requests the IDs and names that a plan lacks, and plans again until none is missing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from sys import intern
from typing import TypeVar
from urllib.parse import quote

from reconciler.engine.compare.creation import from_archives, with_arrivals
from reconciler.engine.compare.planner import NO_PLAN
from reconciler.engine.creations import missing_target_obstacle, without_creation
from reconciler.engine.crew import ask_each
from reconciler.engine.read import answer_or_error
from reconciler.engine.roster import (
    OTHER_LEVEL,
    PATH_FIELDS,
    ExistingTarget,
    Roster,
    TargetRecord,
    fetch_record,
    has_other_level,
    is_off,
    is_scheduled_for_deletion,
)
from reconciler.engine.run import Run
from reconciler.engine.why import visibility_remedy
from reconciler.errors import Moved, NotFound, ServiceError
from reconciler.manifests.project_sets import REPOSITORY, no_default_branch
from reconciler.model.endpoints import Collection
from reconciler.model.item import Finding
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import (
    CALLER,
    DesiredState,
    DesiredTarget,
    Known,
    LivePart,
    LiveState,
    Lookup,
    PartAddress,
    Reference,
    Vocabulary,
)
from reconciler.model.targets import Address, Identity, Key, Level, Target

CASELESS = frozenset({"username", "full_path", "group_full_path"})
"""The fields that hold names of users and groups, which ignore case."""

LEAST_INVITED = 30
"""The lowest access level of an invited group that a rule may name."""

Result = TypeVar("Result")


def plan_with_lookups(
    run: Run,
    roster: Roster,
    desired: DesiredState,
    declared_targets: Iterable[DesiredTarget],
    live: LiveState,
) -> tuple[Plan, LiveState]:
    """Return the plan of live state, and live state with the IDs and names that planning needed.

    Args:
        run: the request of the command.
        roster: the service.
        desired: the part of the manifests to plan.
        declared_targets: all declared targets.
        live: as it was read.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    creations = {target.target.identity: target for target in declared_targets if target.creation is not None}
    archives = from_archives(creations.values(), live.absent)
    live = replace(live, parts=_forced(live) if desired.forced else live.parts, archives=archives)
    plan = run.make(desired, live, run.kinds, NO_PLAN)
    # An answer may lead to another lookup: a group that is not in the list of invited ones may be in a longer list.
    while lookups := plan.lookups:
        absent = _look_up_absent(lookups, desired.targets, creations, live, roster)
        live = replace(live, ids={**live.ids, **absent})
        live = with_lookups(live, [lookup for lookup in lookups if lookup not in live.ids], roster)
        plan = run.make(desired, live, run.kinds, plan)
    return with_arrivals(plan, archives) if archives else plan, live


def _forced(live: LiveState) -> dict[PartAddress, LivePart]:
    """Return the parts as read, with fields that the service does not show treated as present and empty."""
    return {
        address: replace(part, unshown={}) if isinstance(part, LiveRecord) else part
        for address, part in live.parts.items()
    }


def _look_up_absent(
    lookups: Iterable[Lookup],
    targets: Iterable[DesiredTarget],
    creations: Mapping[Identity, DesiredTarget],
    live: LiveState,
    roster: Roster,
) -> dict[Reference, int | Obstacle]:
    """Return the IDs of targets that a manifest creates or that are in a new group, or their obstacles.

    Args:
        lookups: all lookups of a plan; those about other targets are ignored.
        targets: the targets to plan.
        creations: the targets with `create` in any manifest.
        live: has the targets that do not exist.
        roster: the service.
    """
    ids: dict[Reference, int | Obstacle] = {}
    asked: dict[Identity, Reference] = {}
    references = [lookup for lookup in lookups if isinstance(lookup, Reference)] if creations else []
    skipped_creations = without_creation(targets) if references else frozenset()
    for reference in sorted(references, key=lambda reference: (reference.level, reference.path)):
        target = Target(reference.level, reference.path)
        absent_target = live.absent.get(target.identity)
        group = next((above for above in target.groups_above if live.created(Level.GROUP, above)), None)
        if isinstance(absent_target, Obstacle):
            ids[reference] = absent_target
        elif target.identity in creations and group is None:
            asked[target.identity] = reference
        elif group is not None:
            ids[reference] = missing_target_obstacle(target, creations, skipped_creations)
    answers = roster.find([creations[name].target for name in asked], to_create=()) if asked else {}
    for name, reference in asked.items():
        match answers[name]:
            case ExistingTarget(id=number):
                ids[reference] = number
            case None:
                ids[reference] = missing_target_obstacle(creations[name].target, creations, skipped_creations)
            case error:
                ids[reference] = Obstacle(creations[name].target.address, f"cannot be read: {error}")
    return ids


def unshown_fields(desired: DesiredState, live: LiveState) -> Iterator[str]:
    """Yield one warning for each declared field that the service does not show."""
    places: dict[tuple[str, str, str], list[Target]] = {}
    for target in () if desired.forced else desired.targets:
        for section in target.sections:
            for part, wanted in section.wanted.items():
                record = live.parts[target.target, section.kind, part]
                if isinstance(record, LiveRecord) and isinstance(wanted, Resource):
                    for name in wanted.model_fields_set & record.unshown.keys():
                        places.setdefault((section.kind, name, record.unshown[name]), []).append(target.target)
    for (kind, name, other), targets in places.items():
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        yield (
            f"{kind}.{name} of {targets[0]}{more} cannot be compared: this server does not show them; they are written "
            f"when {other} changes, or with --force-events"
        )


def doomed_entries(
    desired: DesiredState, kinds: Kinds, target_records: Mapping[Reference, Mapping[str, Json]]
) -> Iterator[Finding]:
    """Yield a finding for each entry that names a group or project scheduled for deletion.

    The service renames such a group: an entry that adds it by its former path is a problem already.
    """
    days = {
        place: record["marked_for_deletion_on"]
        for place, record in target_records.items()
        if record.get("marked_for_deletion_on")
        and not is_scheduled_for_deletion(str(record.get(PATH_FIELDS[place.level])))
    }
    for address, field, place in _named(desired, kinds) if days else ():
        if place in days:
            about = f"{field}: {place} " if field else ""
            reason = f"{about}has been scheduled for deletion since {days[place]}"
            yield Finding(address, "doomed", reason, f"name another {place.level}, or restore it", field)


def _named(desired: DesiredState, kinds: Kinds) -> Iterator[tuple[Address, str | None, Reference]]:
    """Yield the groups and projects that declared objects name, each with the field, or None for the object's name."""
    for section in (section for target in desired.targets for section in target.sections):
        for part in kinds[section.kind].parts:
            wanted = section.wanted.get(part.name)
            if isinstance(wanted, Mapping) and isinstance(part, Collection):
                for name, resource in wanted.items():
                    address = Address(section.target, section.kind, part.name, part.title, name)
                    yield from ((address, *place) for place in _places(part, name, resource))


def _places(part: Collection, name: Key, declared_object: Resource | None) -> Iterator[tuple[str | None, Reference]]:
    if declared_object is None:
        return
    if part.names.level is not None:
        yield None, Reference(part.names.level, str(part.identity(name)))
    for field, listed in part.entries_of(declared_object):
        subjects = (subject.identity for subject in listed if not isinstance(subject, str))
        yield from ((field, Reference(Level.GROUP, str(called))) for who, called in subjects if who == "group")
    for field, named, names in part.named_in(declared_object):
        yield from ((field, Reference(Level.GROUP, called)) for called in names if not named.within)


def look_up_id(reference: Reference, reader: Reader) -> int | Obstacle:
    """Look up the numeric ID of a path.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    target = reference.target
    if target.level is Level.USER:
        return look_up_user(target, reader)
    answer = answer_or_error(lambda: _living(fetch_record(target, reader)))
    if isinstance(answer, NotFound):
        if has_other_level(target, reader):
            other = OTHER_LEVEL[target.level]
            return Obstacle(target.address, f"this is a {other}, not a {target.level}", f"list it under `{other}s`")
        return Obstacle(target.address, _reason(answer, target), visibility_remedy(reader))
    return Obstacle(target.address, _reason(answer, target)) if isinstance(answer, ServiceError) else answer


def look_up_user(target: Target, reader: Reader) -> int | Obstacle:
    """Look up the numeric ID of a username.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    answer = answer_or_error(lambda: reader.get(f"users?username={quote(str(target.ref), safe='')}"))
    if isinstance(answer, ServiceError):
        return Obstacle(target.address, _reason(answer, target))
    entries = answer if isinstance(answer, list) else ()
    numbers = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    known = next((number for number in numbers if type(number) is int), None)
    reason = f"no user has the username {target.ref}, or none that this token can see"
    return Obstacle(target.address, reason, "correct the username") if known is None else known


def _living(target_record: TargetRecord) -> int | Obstacle:
    """Return the ID of a group or project, or an obstacle if it is scheduled for deletion.

    Raises:
        BadAnswer: the record has none.
    """
    path = str(target_record.fields.get("path_with_namespace", target_record.fields.get("full_path", "")))
    # The old path of such a project still redirects to it (deployed behaviour, section 7.6): its entry would vanish.
    reason = f"scheduled for deletion, and called {path} (ID {target_record.id}) until then"
    is_leaving = is_scheduled_for_deletion(path)
    return (
        Obstacle(target_record.target.address, reason, "restore it, or remove the entry")
        if is_leaving
        else target_record.id
    )


def look_up(references: Iterable[Reference], reader: Reader) -> dict[Reference, int | Obstacle]:
    """Look up the numeric ID of each path, once each.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    ordered = sorted(set(references), key=lambda reference: (reference.level, reference.path))
    return ask_each(look_up_id, ordered, reader)


def look_up_names(vocabulary: Vocabulary, reader: Reader) -> Known | Obstacle:
    """Look up the names in a list.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """

    def ask() -> Known:
        names: dict[str, tuple[int, ...]] = {}
        unfit: dict[int, str] = {}
        for entry in _listed(vocabulary, reader):
            name, number = entry.get(vocabulary.key), entry.get(vocabulary.id_key)
            if not isinstance(name, str):
                continue
            # The service ignores case in usernames and paths; titles of deploy keys are compared exactly.
            name = name.casefold() if vocabulary.key in CASELESS else name
            names[name] = (*names.get(name, ()), *([number] if type(number) is int else []))
            reason = _unfit(vocabulary, entry)
            if reason and type(number) is int:
                unfit[number] = reason
        return Known(names, unfit)

    return _answer_or_obstacle(vocabulary.target, ask)


def _listed(vocabulary: Vocabulary, reader: Reader) -> list[Mapping[str, Json]]:
    """Return the entries of a list, or of a list inside a record.

    Raises:
        ServiceError: it cannot be read.
    """
    if vocabulary == CALLER:
        answer: Json = [reader.recall(vocabulary.path)]
    elif vocabulary.within:
        record = reader.get(vocabulary.path)
        answer = record.get(vocabulary.within) if isinstance(record, dict) else None
    else:
        answer = reader.pages(vocabulary.path)
    return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []


def _unfit(vocabulary: Vocabulary, fields: Mapping[str, Json]) -> str:
    """Return the reason why an entry of a list has no effect in a rule; empty if there is none."""
    if vocabulary == CALLER:
        return "" if fields.get("is_admin") is True else "no administrator"
    match vocabulary.key, fields:
        # The service accepts a blocked user in a rule, where they count for nothing.
        case "username", {"state": str(state)} if state != "active":
            return state.replace("_", " ")
        case "title", {"can_push": False}:
            return "read-only"
        case "group_full_path", {"group_access_level": int(level)} if level < LEAST_INVITED:
            return "invited with less than Developer"
    return ""


def with_lookups(live: LiveState, missing: Iterable[Lookup], reader: Reader) -> LiveState:
    """Return live state with the answers to lookups; each is requested once.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    wanted = list(missing)
    ids = look_up([lookup for lookup in wanted if isinstance(lookup, Reference)], reader)
    lists = sorted((lookup for lookup in wanted if isinstance(lookup, Vocabulary)), key=lambda lookup: lookup.path)
    names = ask_each(look_up_names, lists, reader)
    return replace(live, ids={**live.ids, **ids}, names={**live.names, **names})


def look_up_paths(targets: Iterable[Target], reader: Reader) -> dict[Target, str | Obstacle]:
    """Look up the full path of each target that is given by ID, once each.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    ordered = sorted(targets, key=lambda target: target.order)
    return ask_each(_look_up_path, ordered, reader)


def _look_up_path(target: Target, reader: Reader) -> str | Obstacle:
    return _answer_or_obstacle(target, lambda: fetch_record(target, reader).path)


def look_up_default_branch(target: Target, reader: Reader) -> str | Obstacle:
    """Look up the default branch of a project; its record is shared with whatever else asks for it.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    record = answer_or_error(lambda: fetch_record(target, reader))
    if isinstance(record, ServiceError):
        return Obstacle(target.address, f"its default branch is not known ({_reason(record, target)})")
    name = default_branch(record.fields)
    return name or no_default_branch(target, is_off=is_off(record.fields.get(REPOSITORY)))


def default_branch(record_fields: Mapping[str, Json]) -> str | None:
    """Return the default branch that a project's record shows; in an empty repository, there is no such branch."""
    name = record_fields.get("default_branch")
    # Thousands of projects share a few names of branches.
    return intern(name) if isinstance(name, str) and name else None


def _answer_or_obstacle(where: Target, ask: Callable[[], Result]) -> Result | Obstacle:
    answer = answer_or_error(ask)
    return Obstacle(where.address, _reason(answer, where)) if isinstance(answer, ServiceError) else answer


def _reason(error: ServiceError, target: Target) -> str:
    if isinstance(error, NotFound):
        return f"not found, not visible to this token, or not served by this server ({target}: {error.reason})"
    return f"moved: {error.reason}" if isinstance(error, Moved) else str(error)
