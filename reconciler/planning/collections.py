"""The planning of a collection: which of its objects are created, updated and deleted. Pure."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from unicodedata import normalize

from reconciler.model.absence import SHORT_SHA_LENGTH
from reconciler.model.diff import differences
from reconciler.model.endpoints import Collection, Siblings
from reconciler.model.plan import Create, Delete, Step, Unmanaged
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import Reference
from reconciler.model.targets import Key
from reconciler.planning.exceptions import is_held
from reconciler.planning.matching import Matches, Pair, match
from reconciler.planning.objects import plan_conflict, plan_creation, plan_deletion, plan_pair
from reconciler.planning.order import arranged, references, topological
from reconciler.planning.part import DeclaredPart
from reconciler.planning.relations import resolve, with_siblings

NEAR_MISS = "{} is there: another name, since it differs in blanks, capitals or characters that look alike"
"""Why an object may not be what is wanted; the name as ASCII, for the difference may be invisible."""


def plan_collection(
    at: DeclaredPart[Collection], wanted: Mapping[Key, Resource | None], live: Sequence[LiveRecord]
) -> Iterator[Step]:
    """Plan all objects of a collection.

    Args:
        at: the collection.
        wanted: the declared objects by name; None for an object that must not exist.
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
        record
        for record in matches.leftover
        if at.section.prune or at.declared_until(record) or not absent.isdisjoint(map(canonical, record.names))
    ]
    # A wanted path whose ID is unknown may be a former path of any entry: then none is removed.
    yield from plan_matches(at, present, matches, live, ids=ids, unwanted=() if unresolved else unwanted)


def without_itself(at: DeclaredPart[Collection], live: Iterable[LiveRecord]) -> list[LiveRecord]:
    """Return the objects of a collection by ID, less the entry of an allowlist that is its own project."""
    itself = _itself(at)
    others = [record for record in live if itself.isdisjoint(at.part.identity(name) for name in record.names)]
    return sorted(others, key=lambda record: record.id or 0)


def _itself(at: DeclaredPart[Collection]) -> set[Key]:
    """Return the names under which an allowlist may hold its own project, which may always reach itself."""
    target = at.section.target
    if at.part.names.level is not target.level or target.ref is None:
        return set()
    itself = at.part.identity(target.ref)
    number = at.live.ids.get(Reference(target.level, str(itself)))
    return {itself, number} if isinstance(number, int) else {itself}


def _promoted(at: DeclaredPart[Collection], wanted: Mapping[Key, Resource]) -> Iterator[LiveRecord]:
    """Yield the objects below that a declaration makes the target's own."""
    objects = at.live.parts.get(at.place)
    if isinstance(objects, Objects) and objects.promotable:
        names = {at.part.identity(name) for name, resource in wanted.items() if getattr(resource, "promote", False)}
        yield from (record for name, record in objects.promotable.items() if name in names)


def plan_matches(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[LiveRecord],
    *,
    ids: Mapping[Key, int],
    unwanted: Sequence[LiveRecord],
) -> Iterator[Step]:
    """Plan the objects of a collection, matched with those that are live.

    Args:
        at: the collection.
        present: the wanted objects.
        matches: of the wanted objects with live ones.
        live: see `without_itself`.
        ids: by name, the numeric ID of the target that it refers to.
        unwanted: the leftover objects that are deleted.
    """
    covers = _covers(at.part, present, matches)
    if covers:
        kept = {id(record) for record in covers.values()}
        matches = replace(matches, leftover=tuple(record for record in matches.leftover if id(record) not in kept))
        unwanted = [record for record in unwanted if id(record) not in kept]
    matches, unwanted = _at_limit(at, present, matches, live, unwanted)
    going = frozenset(id(record) for record in unwanted)
    held = {id(record) for record in unwanted if is_held(at.exceptions, at.part, record.names)}
    if at.part.has_siblings:
        at, present, matches = with_siblings(at, present, matches, live)
        at = replace(at, siblings=replace(at.siblings, deleted=going - held, covers=covers))
    creations, siblings = _plan_missing(at, present, matches.missing, ids, len(live))
    staying = {_loosely(record.names[0]): record.names[0] for record in matches.leftover if id(record) not in going}
    yield from (_with_near_miss(step, staying) for step in creations)
    at = replace(at, siblings=siblings)
    yield from _plan_matched(at, present, matches)
    yield from _plan_leftover(at, matches, going)


def _plan_missing(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    missing: Sequence[Key],
    ids: Mapping[Key, int],
    count: int,
) -> tuple[list[Step], Siblings]:
    """Return the steps for the objects that are not live, and the siblings with those that these steps create.

    Objects are planned in generations, since each may refer only to those that are created before it.

    Args:
        at: the collection.
        present: the wanted objects.
        missing: the names of those that are not live.
        ids: see `plan_matches`.
        count: how many objects are live.
    """
    steps: list[Step] = []
    names = {at.part.identity(name): name for name in missing}
    needed = {identity: references(at.part, present[name]).values() for identity, name in names.items()}
    for generation in topological(names, needed):
        planned: list[Step] = []
        for identity in generation:
            name = names[identity]
            creation = partial(plan_creation, at, name, target_id=ids.get(name))
            if at.part.writes.most and count >= at.part.writes.most:
                creation = partial(_plan_surplus, at, name)
            of_object = list(at.held_back((name, ids.get(name, name)), present[name], creation))
            count += len(_created(at.part, of_object))
            planned += of_object
        created = {**at.siblings.created, **_created(at.part, planned)}
        at = replace(at, siblings=replace(at.siblings, created=created))
        steps += planned
    return steps, at.siblings


def _created(part: Collection, steps: Iterable[Step]) -> dict[Key, Key]:
    """Return the names of the objects that steps create, by identity."""
    names = [step.address.name for step in steps if isinstance(step, Create)]
    return {part.identity(name): name for name in names if name is not None}


def _with_near_miss(step: Step, staying: Mapping[str, Key]) -> Step:
    """Return a step; a creation with a hint if an object that stays has nearly its name.

    Args:
        step: of an object that is not live.
        staying: the names of the objects that stay, by `_loosely`.
    """
    if not isinstance(step, Create) or step.address.name is None or _loosely(step.address.name) not in staying:
        return step
    near_miss = NEAR_MISS.format(ascii(staying[_loosely(step.address.name)]))
    return replace(step, hint=f"{step.hint}; {near_miss}" if step.hint else near_miss)


def _covers(part: Collection, present: Mapping[Key, Resource], matches: Matches) -> dict[Key, LiveRecord]:
    """Return the covers that earlier runs have left, by the identity of the object that is missing or differs."""
    cover = part.writes.cover
    by_name = {record.names[0]: record for record in matches.leftover if cover and cover.is_one(record)}
    if cover is None or not by_name:
        return {}
    unequal = [pair.name for pair in matches.pairs if differences(pair.wanted, pair.record)[1]]
    names = [name for name in (*matches.missing, *unequal) if name in present]
    return {part.identity(name): by_name[of_cover] for name in names if (of_cover := cover.name(str(name))) in by_name}


def _at_limit(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[LiveRecord],
    unwanted: Sequence[LiveRecord],
) -> tuple[Matches, Sequence[LiveRecord]]:
    """Return the matches and the objects to delete, so that the service's limit is kept while the plan is applied.

    Objects are created before others are deleted. Where that would exceed the limit, unwanted objects are updated into
    missing ones instead.
    """
    surplus = len(live) + len(matches.missing) - at.part.writes.most
    if not at.part.writes.most or surplus <= 0:
        return matches, unwanted
    free = [record for record in unwanted if not is_held(at.exceptions, at.part, record.names)]
    free.sort(key=lambda record: str(record.names[0]))
    count = min(surplus, len(free), len(matches.missing))
    names, others = matches.missing[:count], matches.missing[count:]
    pairs = [Pair(name, present[name], record, record.names[0]) for name, record in zip(names, free, strict=False)]
    turned = {id(pair.record) for pair in pairs}
    leftover = tuple(record for record in matches.leftover if id(record) not in turned)
    changed = replace(matches, pairs=(*matches.pairs, *pairs), missing=others, leftover=leftover)
    return changed, [record for record in unwanted if id(record) not in turned]


def _plan_surplus(at: DeclaredPart[Collection], name: Key, _: Resource) -> Iterator[Step]:
    """Plan an object that exceeds the service's limit."""
    reason = f"cannot be created: the service takes at most {at.part.writes.most} in a {at.section.target.level}"
    yield at.problem(name, reason, "delete another one: write null in its place")


def _loosely(name: Key) -> str:
    """Return a form that is equal for names that look alike to people."""
    return " ".join(normalize("NFKC", str(name)).split()).casefold()


def _plan_matched(at: DeclaredPart[Collection], present: Mapping[Key, Resource], matches: Matches) -> Iterator[Step]:
    """Plan the wanted objects that are live, and those that several live ones may be."""

    def plan(pair: Pair, wanted: Resource) -> Iterator[Step]:
        if pair.record.below and not getattr(wanted, "promote", False):
            return plan_creation(at, pair.name, wanted)
        return plan_pair(at, replace(pair, wanted=wanted))

    for pair in matches.pairs:
        yield from at.held_back((pair.name, *pair.record.names), pair.wanted, partial(plan, pair))
    for name, obstacle in matches.conflicts.items():
        conflict = partial(plan_conflict, at, name, obstacle, matches.namesakes.get(name, ()))
        yield from at.held_back((name,), present[name], conflict)


def _plan_leftover(at: DeclaredPart[Collection], matches: Matches, going: Container[int]) -> Iterator[Step]:
    """Plan the live objects that no wanted one is: `going` has the `id()` of those that are deleted."""
    for record in sorted(matches.leftover, key=lambda record: str(record.names[0])):
        if id(record) in going:
            yield from _unless_held(at, record.names, _with_end(plan_deletion(at, record), at.declared_until(record)))
        else:
            address = at.address(record.names[0])
            yield Unmanaged(address, record.id, at.part.access is not None, record.owner, record.last_used)


def _unless_held(at: DeclaredPart[Collection], names: Iterable[Key], steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps of an object, unless an exception covers the whole object."""
    return at.held_back(names, Resource(), lambda _: iter(steps))


def _with_end(steps: Iterable[Step], commit: str) -> Iterator[Step]:
    """Yield the steps of a deletion, each with the commit that declared the object last, if that is known."""
    for step in steps:
        if commit and isinstance(step, Delete):
            yield replace(step, origin=f"was declared until {commit[:SHORT_SHA_LENGTH]}")
        else:
            yield step
