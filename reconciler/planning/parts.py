"""The planning of one part of a section: a settings record, or a collection matched with live objects by name. Pure."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Generic, TypeVar
from unicodedata import normalize

from reconciler.model.absence import SHORT
from reconciler.model.diff import as_read, become, differences, fields_of, only, quoted, uncompared, without
from reconciler.model.endpoints import ALONE, Collection, Existing, New, Siblings, Singleton
from reconciler.model.entries import Numbers
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Create, Delete, Problem, Step, Unmanaged, Update
from reconciler.model.protocols import Json
from reconciler.model.resource import Found, Objects, Resource, Rotated
from reconciler.model.state import Known, LiveState, Lookup, PartAddress, Reference, Section, Vocabulary
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.planning.creation import archive_around
from reconciler.planning.exceptions import NO_EXCEPTIONS, PartExceptions, held_back, is_held
from reconciler.planning.obstacles import as_problem
from reconciler.planning.order import arranged, references, topological

NEAR_MISS = "{} is there: another name, since it differs in blanks, capitals or characters that look alike"
"""Why an object may not be what is wanted; the name as ASCII, for the difference may be invisible."""

HELD_ABOVE = "{} has one of this name, which no other below it may have"
HELD_BELOW = "{} has one of this name, which no group above it may have"
TAKEN_ABOVE = "{} gets one of this name in this plan, which no other below it may have"
"""Why a name cannot be given."""

ANOTHER_NAME = "leave it out here, or choose another name"
PROMOTE = "declare `promote: true` to make it the group's, or choose another name"

PartType = TypeVar("PartType", bound=Singleton | Collection)

Locks = Mapping[str, tuple[Json, Obstacle]]
"""By field, the value that it will have, and why it can have no other."""

NO_LOCKS: Locks = MappingProxyType({})
NO_NAMES: Mapping[Key, Obstacle] = MappingProxyType({})

NOTHING = 0
"""The ID of no object."""

OF_ANOTHER_USER = (
    "due for rotation, but it belongs to another user; its owner can rotate it, or delete it and the next run creates "
    "a new one"
)


@dataclass(frozen=True, slots=True)
class DeclaredPart(Generic[PartType]):
    """One part of a declared section, and what planning it takes besides its live objects.

    Attributes:
        section: the declaration.
        part: the endpoint.
        live: its IDs, and when it was read.
        grace: see `DesiredState.grace`.
        siblings: the objects of the collection, where some refer to others.
        exceptions: those of the section that are not over.
        locks: what changes of the plan to the groups above lock.
        taken: why names cannot be given, since changes of the plan give them to objects of the groups above.
    """

    section: Section
    part: PartType
    live: LiveState
    grace: timedelta = timedelta()
    siblings: Siblings = ALONE
    exceptions: PartExceptions = NO_EXCEPTIONS
    locks: Locks = dataclasses.field(default_factory=dict)
    taken: Mapping[Key, Obstacle] = dataclasses.field(default_factory=dict)

    @property
    def place(self) -> PartAddress:
        """Where the part is in live state."""
        return self.section.target, self.section.kind, self.part.name

    def address(self, name: Key | None = None) -> Address:
        """Return the address of an object, or of the part itself."""
        return Address(self.section.target, self.section.kind, self.part.name, self.part.title, name)

    def declared_until(self, found: Found) -> str:
        """Return the commit that declared what is no longer declared, and is deleted for that; empty for others."""
        number = None if found.below else found.id
        return "" if number is None else self.live.absences.get(self.place, {}).get(number, "")

    def problem(self, name: Key | None, reason: str, remedy: str = "", *, field: str | None = None) -> Problem:
        """Return a problem of an object, or of the part itself."""
        return as_problem(Obstacle(self.address(name), reason, remedy), field=field)

    def held_back(
        self, names: Iterable[Key], wanted: Resource, plan: Callable[[Resource], Iterator[Step]]
    ) -> Iterator[Step]:
        """Plan an object, less what exceptions hold back: see `exceptions.held_back`."""
        return held_back(self.exceptions, self.part, names, wanted, plan) if self.exceptions else plan(wanted)


@dataclass(frozen=True, slots=True)
class Pair:
    """A wanted object that is live; `former` is its name there, if that is a former name of the wanted one."""

    name: Key
    wanted: Resource
    found: Found
    former: Key | None = None


@dataclass(frozen=True, slots=True)
class Matches:
    """Wanted and live objects by name.

    Attributes:
        pairs: the objects that are both.
        missing: the names of those that are only wanted.
        leftover: those that are only live.
        conflicts: by name of a wanted object, that several live ones may be it.
        namesakes: those live ones, if all of them have its present name.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[Key, ...]
    leftover: tuple[Found, ...]
    conflicts: Mapping[Key, Obstacle] = dataclasses.field(default_factory=dict)
    namesakes: Mapping[Key, tuple[Found, ...]] = dataclasses.field(default_factory=dict)


def by_birth(found: Found) -> tuple[datetime, int]:
    """Return a key that sorts objects by their creation, as far as the service reports it."""
    return found.created_at or datetime.min.replace(tzinfo=UTC), found.id or 0


def match(
    wanted: Mapping[Key, Resource],
    live: Iterable[Found],
    canonical: Callable[[Key], Key],
    address: Callable[[Key], Address],
) -> Matches:
    """Match wanted objects with live ones, by their names and former names.

    Args:
        wanted: what is to be there.
        live: the objects that are.
        canonical: returns the form in which all names of one object are equal.
        address: returns where an object of some name is.
    """
    by_name: dict[Key, list[Found]] = {}
    for found in live:
        for name in {canonical(name) for name in found.names}:
            by_name.setdefault(name, []).append(found)
    spellings: dict[Key, Key] = {}
    for name in wanted:
        spellings.setdefault(canonical(name), name)
    pairs, missing, doubles = [], [], {}
    conflicts: dict[Key, tuple[str, str]] = {}
    claimed: set[int] = set()
    for key, name in spellings.items():
        resource = wanted[name]
        namesakes = tuple(by_name.get(key, ()))
        olds = [old for old in getattr(resource, "renamed_from", ()) if canonical(old) in by_name]
        renamed = tuple(found for old in olds for found in by_name[canonical(old)])
        claimed |= {id(found) for found in (*namesakes, *renamed)}
        former = ", ".join(f'"{old}"' for old in olds)
        match namesakes, renamed:
            case [], []:
                missing.append(name)
            case [found], []:
                pairs.append(Pair(name, resource, found))
            case [], [found]:
                pairs.append(Pair(name, resource, found, found.names[0]))
            case _, []:
                conflicts[name], doubles[name] = (_crowd(namesakes), ONE_NAME), namesakes
            case [], _:
                conflicts[name] = _crowd(renamed, f"the former name{'s' * (len(olds) > 1)} {former}"), ONE_NAME
            case _:
                conflicts[name] = f"both this name and the former {former} are live; delete one of them", ""
    leftover = tuple(found for found in live if id(found) not in claimed)
    obstacles = {name: Obstacle(address(name), *conflict) for name, conflict in conflicts.items()}
    return Matches(tuple(pairs), tuple(missing), leftover, obstacles, doubles)


def plan_settings(at: DeclaredPart[Singleton], wanted: Resource, found: Found) -> Iterator[Step]:
    """Plan a settings record."""
    return at.held_back((), wanted, partial(_plan_record, at, found))


def _plan_record(at: DeclaredPart[Singleton], found: Found, wanted: Resource) -> Iterator[Step]:
    declared = fields_of(wanted)
    for field, (value, lock) in at.locks.items():
        if field in declared and declared[field] != value:
            yield as_problem(lock.at(at.address()), field=field)
    possible, problems = applicable(at, None, without(wanted, at.locks.keys()), found)
    yield from problems
    if possible is None:
        return
    before, after = differences(possible, found)
    if after:
        requests = at.part.update(at.section.target, only(possible, after), found)
        hint = "; ".join(warning for _, warning in become(found.resource, possible, found.unknown).warnings())
        yield Update(at.address(), before, after, requests, as_read(found), hint=hint)


def without_itself(at: DeclaredPart[Collection], live: Iterable[Found]) -> list[Found]:
    """Return the objects of a collection by ID, less the entry of an allowlist that is its own project."""
    itself = _itself(at)
    others = [found for found in live if itself.isdisjoint(at.part.identity(name) for name in found.names)]
    return sorted(others, key=lambda found: found.id or 0)


def plan_collection(
    at: DeclaredPart[Collection], wanted: Mapping[Key, Resource | None], live: Sequence[Found]
) -> Iterator[Step]:
    """Plan all objects of a collection.

    Args:
        at: the collection.
        wanted: the declared objects; None for one that must not exist.
        live: see `without_itself`.
    """
    itself = _itself(at)
    ordered = arranged(at.part, wanted, live)
    declared = {name: resource for name, resource in ordered.items() if at.part.identity(name) not in itself}
    ids, unresolved = resolve(at, declared, live)
    for name, problem in unresolved.items():
        yield from _unless_held(at, (name,), (problem,))

    def canonical(name: Key) -> Key:
        return ids.get(name, at.part.identity(name))

    present: Mapping[Key, Resource] = {
        name: resource
        for name, resource in declared.items()
        if resource is not None and name not in unresolved and canonical(name) not in itself
    }
    matches = match(present, [*live, *_promoted(at, present)], canonical, at.address)
    absent = {canonical(name) for name, resource in declared.items() if resource is None}
    unwanted = [
        found
        for found in matches.leftover
        if at.section.prune or at.declared_until(found) or not absent.isdisjoint(map(canonical, found.names))
    ]
    # A wanted path whose ID is unknown may be a former path of any entry: then none is removed.
    yield from plan_matches(at, present, matches, live, ids=ids, unwanted=() if unresolved else unwanted)


def _promoted(at: DeclaredPart[Collection], wanted: Mapping[Key, Resource]) -> Iterator[Found]:
    """Yield the objects below that a declaration makes the target's own."""
    objects = at.live.parts.get(at.place)
    if isinstance(objects, Objects) and objects.promotable:
        names = {at.part.identity(name) for name, each in wanted.items() if getattr(each, "promote", False)}
        yield from (found for name, found in objects.promotable.items() if name in names)


def plan_matches(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[Found],
    *,
    ids: Mapping[Key, int],
    unwanted: Sequence[Found],
) -> Iterator[Step]:
    """Plan the objects of a collection, matched with those that are live.

    Args:
        at: the collection.
        present: the wanted objects.
        matches: which of them is which live one.
        live: see `without_itself`.
        ids: the numeric IDs of the targets that names refer to.
        unwanted: the leftover ones that are deleted.
    """
    covers = _covers(at.part, present, matches)
    if covers:
        kept = {id(found) for found in covers.values()}
        matches = replace(matches, leftover=tuple(found for found in matches.leftover if id(found) not in kept))
        unwanted = [found for found in unwanted if id(found) not in kept]
    matches, unwanted = _at_limit(at, present, matches, live, unwanted)
    going = {id(found) for found in unwanted}
    held = {id(found) for found in unwanted if is_held(at.exceptions, at.part, found.names)}
    deleted = frozenset(going - held)
    if at.part.has_siblings:
        at, present, matches = _related(at, present, matches, live)
        at = replace(at, siblings=replace(at.siblings, deleted=deleted, covers=covers))
    alike = {_loosely(found.names[0]): found.names[0] for found in matches.leftover if id(found) not in going}
    missing = {at.part.identity(name): name for name in matches.missing}
    needed = {key: references(at.part, present[name]).values() for key, name in missing.items()}
    made = 0
    for generation in topological(missing, needed):
        created = dict(at.siblings.created)
        for name in map(missing.__getitem__, generation):
            creation = partial(plan_creation, at, name, target_id=ids.get(name))
            if at.part.writes.most and len(live) + made >= at.part.writes.most:
                creation = partial(_plan_surplus, at, name)
            for step in at.held_back((name, ids.get(name, name)), present[name], creation):
                if not isinstance(step, Create):
                    yield step
                    continue
                created[at.part.identity(name)] = name
                made += 1
                other = alike.get(_loosely(name))
                hint = "; ".join(each for each in (step.hint, NEAR_MISS.format(ascii(other))) if each)
                yield step if other is None else replace(step, hint=hint)
        if at.part.has_siblings:
            at = replace(at, siblings=replace(at.siblings, created=created))
    yield from _plan_matched(at, present, matches)
    yield from _plan_leftover(at, matches, going)


def _plan_leftover(at: DeclaredPart[Collection], matches: Matches, going: Container[int]) -> Iterator[Step]:
    """Plan the live objects that no manifest mentions: `going` has the identities of those that are deleted."""
    for found in sorted(matches.leftover, key=lambda found: str(found.names[0])):
        if id(found) in going:
            yield from _unless_held(at, found.names, _with_end(plan_deletion(at, found), at.declared_until(found)))
        else:
            address = at.address(found.names[0])
            yield Unmanaged(address, found.id, at.part.access is not None, found.owner, found.last_used)


def _covers(part: Collection, present: Mapping[Key, Resource], matches: Matches) -> dict[Key, Found]:
    """Return the covers that earlier runs have left, by the identity of the object that is missing or differs."""
    cover = part.writes.cover
    left = {found.names[0]: found for found in matches.leftover if cover and cover.is_one(found)}
    if cover is None or not left:
        return {}
    unequal = [pair.name for pair in matches.pairs if differences(pair.wanted, pair.found)[1]]
    names = [name for name in (*matches.missing, *unequal) if name in present]
    return {part.identity(name): left[each] for name in names if (each := cover.name(str(name))) in left}


def _at_limit(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[Found],
    unwanted: Sequence[Found],
) -> tuple[Matches, Sequence[Found]]:
    """Return the matches, and the objects to delete, where those to create are too many beside all that are there.

    Objects are created before others are deleted: so one that goes becomes one that comes.
    """
    surplus = len(live) + len(matches.missing) - at.part.writes.most
    if not at.part.writes.most or surplus <= 0:
        return matches, unwanted
    free = [found for found in unwanted if not is_held(at.exceptions, at.part, found.names)]
    free.sort(key=lambda found: str(found.names[0]))
    count = min(surplus, len(free), len(matches.missing))
    names, others = matches.missing[:count], matches.missing[count:]
    pairs = [Pair(name, present[name], found, found.names[0]) for name, found in zip(names, free, strict=False)]
    turned = {id(pair.found) for pair in pairs}
    leftover = tuple(found for found in matches.leftover if id(found) not in turned)
    changed = replace(matches, pairs=(*matches.pairs, *pairs), missing=others, leftover=leftover)
    return changed, [found for found in unwanted if id(found) not in turned]


def _plan_surplus(at: DeclaredPart[Collection], name: Key, _: Resource) -> Iterator[Step]:
    """Plan an object that is one too many."""
    reason = f"cannot be created: the service takes at most {at.part.writes.most} in a {at.section.target.level}"
    yield at.problem(name, reason, "delete another one: write null in its place")


def _loosely(name: Key) -> str:
    """Return the form in which names that people take for the same are equal."""
    return " ".join(normalize("NFKC", str(name)).split()).casefold()


def _plan_matched(at: DeclaredPart[Collection], present: Mapping[Key, Resource], matches: Matches) -> Iterator[Step]:
    """Plan the objects that are there, and those that several may be."""

    def pair(pair: Pair, wanted: Resource) -> Iterator[Step]:
        if pair.found.below and not getattr(wanted, "promote", False):
            return plan_creation(at, pair.name, wanted)
        return plan_pair(at, replace(pair, wanted=wanted))

    for each in matches.pairs:
        yield from at.held_back((each.name, *each.found.names), each.wanted, partial(pair, each))
    for name, obstacle in matches.conflicts.items():
        conflict = partial(plan_conflict, at, name, obstacle, matches.namesakes.get(name, ()))
        yield from at.held_back((name,), present[name], conflict)


def _unless_held(at: DeclaredPart[Collection], names: Iterable[Key], steps: Iterable[Step]) -> Iterator[Step]:
    """Return the steps of an object of which only the whole can be excepted."""
    return at.held_back(names, Resource(), lambda _: iter(steps))


def _related(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[Found],
) -> tuple[DeclaredPart[Collection], Mapping[Key, Resource], Matches]:
    """Return what is planned with objects that refer to one another by the names that they will have."""
    part = at.part
    renamed = {pair.found.id: pair.name for pair in matches.pairs if pair.former is not None}
    names = part.unique_name_of(live) | {number: name for number, name in renamed.items() if number is not None}
    former = {pair.found.names[0]: pair.name for pair in matches.pairs if pair.former is not None}

    def called_now(found: Found) -> Found:
        resource = part.referring(found.resource, former)
        unchanged = resource is found.resource
        return found if unchanged else replace(found, resource=resource, shown=fields_of(found.resource))

    wanted = {name: part.referring(resource, names) for name, resource in present.items()}
    pairs = (replace(pair, wanted=wanted[pair.name], found=called_now(pair.found)) for pair in matches.pairs)
    as_they_are = [(renamed.get(found.id, found.names[0]), called_now(found).resource) for found in live]
    above: dict[tuple[str, Key], Key] = {}
    for name, resource in (*as_they_are, *wanted.items()):
        refers = references(part, resource)
        for field in resource.model_fields_set.intersection(part.relations.refers):
            above[field, part.identity(name)] = refers.get(field, NOTHING)
    below = Counter((field, other) for (field, _), other in above.items())
    siblings = replace(Siblings.of(part, live, renamed), above=above, below=below, circular=_circular(above))
    at = replace(at, siblings=siblings)
    return at, wanted, replace(matches, pairs=tuple(pairs))


def _circle(siblings: Siblings, field: str, start: Key) -> str:
    """Return the names through which an object would refer to itself; empty if it would not."""
    if (field, start) not in siblings.circular:
        return ""
    passed = [start]
    while (above := siblings.above[field, passed[-1]]) != start:
        passed.append(above)
    return " > ".join(map(str, (*passed, start)))


def _circular(above: Mapping[tuple[str, Key], Key]) -> frozenset[tuple[str, Key]]:
    """Return the fields and identities that refer to themselves, through others or not; see `Siblings.above`."""
    found: set[tuple[str, Key]] = set()
    passed: set[tuple[str, Key]] = set()
    for start in above:
        way: dict[tuple[str, Key], int] = {}
        place = start
        while place in above and place not in passed:
            passed.add(place)
            way[place] = len(way)
            place = place[0], above[place]
        if place in way:
            found.update([*way][way[place] :])
    return frozenset(found)


def _unrelated(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[tuple[str, Problem | Lookup]]:
    """Yield each field that refers to what is not there, with the problem that is, or what to look up."""
    yield from _unlisted(at, name, wanted)
    part = at.part
    for field, key in references(part, wanted).items():
        found = at.siblings.named(key)
        circle = _circle(at.siblings, field, part.identity(name))
        if circle:
            yield field, at.problem(name, f"would refer to itself: {circle}", "break the circle", field=field)
        elif len(found) > 1:
            yield field, at.problem(name, _crowd(found, f'the name "{key}"'), "write its ID instead", field=field)
        elif any(id(each) in at.siblings.deleted for each in found):
            yield field, at.problem(name, f'this plan deletes the {part.title} "{key}"', "declare it", field=field)
        elif not found and key not in at.siblings.created:
            reason = f'no {part.title} "{key}" is there, and this plan creates none before this one'
            yield field, at.problem(name, reason, "correct the name, or declare it", field=field)


def _unlisted(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[tuple[str, Problem | Lookup]]:
    """Yield each field with a name that its list lacks, with the problem that is, or what to look up."""
    for field, path in at.part.relations.vocabularies.items():
        words = {*getattr(wanted, field)} if field in wanted.model_fields_set else set()
        strange = words - at.siblings.words.get(field, frozenset())
        if not strange:
            continue
        names = _names_in(at, path)
        if names is None:
            continue
        if isinstance(names, Vocabulary):
            yield field, names
        elif isinstance(names, Obstacle):
            yield field, at.problem(name, f"cannot be checked: {names.reason}", names.remedy, field=field)
        elif not strange <= names.keys():
            unknown = sorted(strange - names.keys())
            reason = f"unknown name{'s' * (len(unknown) > 1)} {', '.join(map(quoted, unknown))}"
            group = archive_around(at.section.target, at.live.archives)
            remedy = f"or plan again once the archive of group {group} has arrived" if group else "or create it first"
            yield field, at.problem(name, reason, f"correct it, {remedy}", field=field)


def _names_in(at: DeclaredPart[Collection], path: str, key: str = "name") -> Known | Obstacle | Vocabulary | None:
    """Return the names in a list, or what to look up; None if an archive is yet to bring some of them.

    A group that does not exist yet has the names of the groups above it.
    """
    target = at.section.target
    while isinstance(target.ref, str) and (new := at.live.created(target.level, target.ref)):
        if new.creation.archive is not None:
            return None
        if not new.namespace.path:
            return {}
        target = Target(target.level, new.namespace.path)
    vocabulary = Vocabulary(target, path, key)
    return at.live.names.get(vocabulary, vocabulary)


def plan_creation(
    at: DeclaredPart[Collection],
    name: Key,
    wanted: Resource,
    target_id: int | None = None,
    replaces_ids: tuple[int, ...] = (),
) -> Iterator[Step]:
    """Plan an object that is not there, or the successor of those that are."""
    if at.part.writes.create is None:
        yield at.problem(name, f"does not exist, and this API cannot create one: {at.part.writes.creation}")
        return
    taken = _taken(at, name) or _misled(at, name, None)
    if taken is not None:
        yield as_problem(taken)
        return
    errors = list(become(type(wanted)(), wanted).errors())
    lacking = [field for field in at.part.writes.required if fields_of(wanted).get(field) is None]
    yield from (at.problem(name, f"cannot be created: {reason}", field=field) for field, reason in errors)
    yield from (at.problem(name, f"needs `{field}` to be created", "declare it", field=field) for field in lacking)
    unrelated = dict(_unrelated(at, name, wanted))
    yield from unrelated.values()
    if errors or lacking or unrelated:
        return
    numbers, unknown = numbers_of(at, name, wanted)
    yield from (step for _, step in unknown)
    path = _path(at, name)
    if unknown:
        return
    if isinstance(path, str):
        new = New(at.part, at.section.target, path, name, wanted, target_id, at.siblings, numbers)
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


def _misled(at: DeclaredPart[Collection], name: Key, found: Found | None) -> Obstacle | None:
    """Return why a request that names an object would reach another one; None if it would not.

    Args:
        at: the collection.
        name: in the path, or of a new object.
        found: the object that is meant; None for a new one, whose name must reach none.
    """
    leads_to, objects = at.part.names.leads_to, at.live.parts.get(at.place)
    if leads_to is None or not isinstance(objects, tuple):
        return None
    reached = [each for each in objects if leads_to(at.section.target, str(name), str(each.names[0]))]
    first = min(reached, key=lambda each: each.id or 0, default=None)
    if first is None or (found is not None and first.id == found.id):
        return None
    reason = f'the service looks for a part of the name, and takes this for "{first.names[0]}" (ID {first.id})'
    return Obstacle(at.address(name), reason, "rename or delete that one by hand, on the page of the section")


def _defaults(at: DeclaredPart[Collection], wanted: Resource) -> str:
    """Say what the service puts where a creation does not say it."""
    defaults = at.part.writes.defaults.items()
    return ", ".join(
        f"{field}: {value}, by default" for field, value in defaults if field not in wanted.model_fields_set
    )


def numbers_of(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, found: Found | None = None
) -> tuple[Numbers, list[tuple[str, Problem | Lookup]]]:
    """Return the IDs of those whom entries name, and for each that has none, the field, and why or what to look up.

    Args:
        at: the collection.
        name: of the object.
        wanted: its fields that are sent.
        found: the object as it was read; None if it is to be created.
    """
    rows = [row for listed in found.entries.values() for row in listed] if found else []
    numbers: dict[tuple[str, str | int], int] = {row.identity: row.number for row in rows if row.number is not None}
    unknown: list[tuple[str, Problem | Lookup]] = []
    for field, listed in at.part.entries_of(wanted):
        for subject in listed:
            who, called = ("role", subject) if isinstance(subject, str) else subject.identity
            if who == "role" or (who, called) in numbers or isinstance(called, int):
                continue
            answer = _number(at, who, called)
            if isinstance(answer, int):
                numbers[who, called] = answer
            elif isinstance(answer, Obstacle):
                unknown.append((field, at.problem(name, answer.reason, answer.remedy, field=field)))
            else:
                unknown.append((field, answer))
    return numbers, unknown


def _number(at: DeclaredPart[Collection], who: str, name: str) -> int | Obstacle | Lookup:
    """Return the ID of a user, a group or a deploy key, or why there is none, or what to look up."""
    if who != "deploy_key":
        reference = Reference(Level(who), name)
        return at.live.ids.get(reference, reference)
    keys = _names_in(at, "deploy_keys", "title")
    if isinstance(keys, Obstacle | Vocabulary):
        return keys
    numbers = keys.get(name, ()) if keys else ()
    if len(numbers) == 1:
        return numbers[0]
    reason = f"{len(numbers)} deploy keys have this title" if numbers else "no such deploy key is enabled"
    return Obstacle(
        at.address(), f'{reason}: "{name}"', "rename one of them" if numbers else "enable it, or correct the title"
    )


def _taken(at: DeclaredPart[Collection], name: Key) -> Obstacle | None:
    """Return why no object can get a name, since one above or below has it; None if one can."""
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


def _first_of(names: Sequence[str]) -> str:
    first, *others = names
    return f"{first} (and {len(others):,} more)" if others else first


def _origin_of(found: Found) -> str:
    """Say from where an object is promoted; empty if it is the target's own."""
    if not found.below:
        return ""
    first, *others = found.below
    return f"promoted from {first}" + (f"; also takes the place of the one of {_first_of(others)}" if others else "")


def plan_pair(at: DeclaredPart[Collection], pair: Pair) -> Iterator[Step]:
    """Plan an object that is there, maybe under a former name."""
    found, rename, age = pair.found, pair.former is not None, _rotation_age(pair.wanted)
    if age is not None and not rename:
        yield from plan_rotation(at, pair.name, pair.wanted, age, (found,))
        return
    reason = found.read_only.get("renamed_from", "cannot be renamed" if at.part.writes.update is None else None)
    taken = _taken(at, pair.name) if rename or at.part.identity(pair.name) in at.taken else None
    if taken is None and rename and reason is not None:
        taken = Obstacle(at.address(pair.name), reason)
    if taken is None and rename and not at.part.writes.renames:
        taken = _misled(at, pair.name, None)
    if taken is not None:
        yield as_problem(taken)
        return
    fixed = {**dict(_immutable(at, pair)), **dict(_unrelated(at, pair.name, pair.wanted))}
    yield from fixed.values()
    differing = only(pair.wanted, differences(pair.wanted, found)[1])
    numbers, unknown = numbers_of(at, pair.name, differing, found)
    yield from (step for _, step in unknown)
    unnamed = {field for field, _ in unknown}
    possible, problems = applicable(at, pair.name, without(pair.wanted, {*fixed, *unnamed}), found)
    yield from problems
    if possible is None or at.part.writes.update is None:
        return
    before, after = differences(possible, found)
    if after or rename or found.below:
        misled = _misled(at, found.names[0], found)
        if misled is not None:
            yield as_problem(misled)
            return
        path = _path(at, pair.name)
        if isinstance(path, str):
            existing = Existing(
                at.part, at.section.target, path, pair.name, only(possible, after), found, at.siblings, numbers
            )
            requests, read = at.part.writes.update(existing), as_read(found)
            hint, page = _origin_of(found), at.part.page_of(found)
            yield Update(at.address(pair.name), before, after, requests, read, pair.former, hint=hint, page=page)
        else:
            yield path


def plan_conflict(
    at: DeclaredPart[Collection], name: Key, obstacle: Obstacle, namesakes: Sequence[Found], wanted: Resource
) -> Iterator[Step]:
    """Plan an object that several may be: only what rotates may be there more than once."""
    age = _rotation_age(wanted)
    if age is not None and namesakes:
        yield from plan_rotation(at, name, wanted, age, namesakes)
    else:
        yield as_problem(obstacle)


def plan_rotation(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, age: timedelta, namesakes: Sequence[Found]
) -> Iterator[Step]:
    """Create a successor where the newest is too old; delete what the newest has succeeded, once it is settled.

    Only what is ours succeeds and is succeeded.
    """
    ours = [found for found in namesakes if found.ours]
    if len(namesakes) > max(1, len(ours)):
        yield at.problem(name, _crowd(namesakes), ONE_NAME)
    if not ours:
        if len(namesakes) == 1 and _age(at, namesakes[0]) >= age:
            yield at.problem(name, OF_ANOTHER_USER)
        return
    if any(found.created_at is None for found in ours):
        yield at.problem(name, "cannot be rotated: the service does not report its age")
        return
    newest = max(ours, key=by_birth)
    if _age(at, newest) >= age:
        ids = tuple(found.id for found in namesakes if found.id is not None)
        yield from plan_creation(at, name, wanted, replaces_ids=ids)
    if _age(at, newest) >= at.grace:
        for found in ours:
            if found is not newest:
                yield from plan_deletion(at, found, newest.id)


def _with_end(steps: Iterable[Step], commit: str) -> Iterator[Step]:
    """Yield the steps of a deletion; one of what was declared once says until when."""
    for step in steps:
        if commit and isinstance(step, Delete):
            yield replace(step, origin=f"was declared until {commit[:SHORT]}")
        else:
            yield step


def plan_deletion(at: DeclaredPart[Collection], found: Found, successor_id: int | None = None) -> Iterator[Step]:
    """Plan an object that is there and must not be."""
    name = found.names[0]
    misled = _misled(at, name, found)
    if misled is not None:
        yield as_problem(misled)
        return
    path = _path(at, name)
    if isinstance(path, str):
        old = Existing(at.part, at.section.target, path, name, Resource(), found, at.siblings)
        losses = (*at.part.losses(old), *([] if successor_id is None else [f"its successor has the ID {successor_id}"]))
        before, read = fields_of(found.resource), as_read(found)
        page = at.part.page_of(found)
        yield Delete(at.address(name), before, at.part.deletion.requests(old), read, successor_id, losses, page)
    else:
        yield path


def applicable(
    at: DeclaredPart[PartType], name: Key | None, wanted: Resource, found: Found
) -> tuple[Resource | None, list[Problem]]:
    """Return the part of `wanted` that can be applied, and a problem for each read-only or invalid field.

    The first is None if the result would be invalid, where the object is not so already.
    """
    _, after = differences(wanted, found)
    read_only = {field: reason for field, reason in sorted(found.read_only.items()) if field in after}
    problems = [at.problem(name, reason, field=field) for field, reason in read_only.items()]
    possible = without(wanted, [*read_only, *uncompared(wanted, found)])
    if not differences(possible, found)[1]:
        return possible, problems
    whole = become(found.resource, possible, found.unknown)
    known = {*found.resource.errors()}
    errors = [at.problem(name, reason, field=field) for field, reason in whole.errors() if (field, reason) not in known]
    return None if errors else possible, problems + errors


def _immutable(at: DeclaredPart[Collection], pair: Pair) -> Iterator[tuple[str, Problem]]:
    """Yield each field that differs and that no update can change, with the problem that is."""
    remedy = "to replace the object, declare a new name and set this one to null; or delete it first"
    if pair.former is not None:
        remedy = "leave out `renamed_from` to create a new object"
    elif at.section.prune:
        remedy = "to replace the object, declare it under a new name, and this one is pruned; or delete it first"
    before, after = differences(pair.wanted, pair.found)
    for field, value in after.items():
        if at.part.writes.update is None or field.partition(".")[0] in at.part.writes.immutable:
            reason = f"cannot be changed once created: {quoted(before[field])} -> {quoted(value)}"
            yield field, at.problem(pair.name, reason, remedy, field=field)


def _path(at: DeclaredPart[Collection], name: Key) -> str | Problem | Reference:
    """Return the collection's path for writes, or why there is none."""
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


def resolve(
    at: DeclaredPart[Collection], declared: Mapping[Key, Resource | None], live: Iterable[Found]
) -> tuple[dict[Key, int], dict[Key, Problem | Reference]]:
    """Return the numeric IDs of the targets that names refer to, and for each name without one, why or what to look up.

    Both are empty where names are just names. A name that must not exist is looked up only where the service shows some
    objects by their IDs alone.
    """
    ids: dict[Key, int] = {}
    unresolved: dict[Key, Problem | Reference] = {}
    shown = {at.part.identity(name): found.id for found in live for name in found.names}
    hidden = any(not isinstance(found.names[0], str) for found in live)
    level = at.part.names.level
    if level is None:
        return ids, unresolved
    for name, resource in declared.items():
        key = at.part.identity(name)
        key = shown.get(key) or key
        reference = Reference(level, str(key))
        number = key if isinstance(key, int) else at.live.ids.get(reference, reference)
        if isinstance(number, int):
            ids[name] = number
        elif isinstance(number, Obstacle) and resource is not None:
            unresolved[name] = at.problem(name, number.reason, number.remedy)
        elif isinstance(number, Reference) and not at.live.created(level, number.path):
            created = resource is not None and not is_held(at.exceptions, at.part, (name,))
            if created or hidden:
                unresolved[name] = number
    return ids, unresolved


def _itself(at: DeclaredPart[Collection]) -> set[Key]:
    """Return the names under which an allowlist may hold its own project, which may always reach itself."""
    target = at.section.target
    if at.part.names.level is not target.level or target.ref is None:
        return set()
    itself = at.part.identity(target.ref)
    number = at.live.ids.get(Reference(target.level, str(itself)))
    return {itself, number} if isinstance(number, int) else {itself}


def _rotation_age(wanted: Resource) -> timedelta | None:
    return wanted.rotate_after if isinstance(wanted, Rotated) else None


def _age(at: DeclaredPart[Collection], found: Found) -> timedelta:
    """Return the age of an object; zero if it is unknown, or negative by the service's whole seconds."""
    return max(at.live.read_at - (found.created_at or at.live.read_at), timedelta())


ONE_NAME = "rename or delete the others"
"""What to do about several objects of one name."""


def _crowd(found: Sequence[Found], name: str = "this name") -> str:
    strangers = [each for each in found if not each.ours]
    whose = "belongs to another user" if len(strangers) == 1 else "belong to other users"
    others = f"; {_ids(strangers)} {whose}" if 0 < len(strangers) < len(found) else ""
    return f"{len(found)} objects have {name} ({_ids(found)}); expected one{others}"


def _ids(found: Iterable[Found]) -> str:
    numbers = sorted(each.id or 0 for each in found)
    return f"ID{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
