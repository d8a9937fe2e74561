"""The planning of a collection: its creations, updates and deletions. Begin with `plan_collection`. Pure."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from unicodedata import normalize

from reconciler.engine.compare.matching import Conflict, Matches, Pair, match, names_freed_first
from reconciler.engine.compare.objects import NO_FIELDS, plan_conflict, plan_creation, plan_deletion, plan_pair
from reconciler.engine.compare.order import arranged, topological
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.references import resolve, with_siblings
from reconciler.memory.absence import SHORT_SHA_LENGTH
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Finding, Note, Update, hints, unmanaged_at
from reconciler.model.plan import Step
from reconciler.model.renames import circles, former_names
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import Recorded, Reference
from reconciler.model.targets import Key
from reconciler.model.wording import listed

NEAR_MISS = "{} already exists, and differs only in blanks, capitals or characters that look alike"
"""The hint about a similar name; the name is shown as ASCII, since the difference may be invisible."""

EXCHANGED = "exchanges its name with {}, and it is not certain which object is which: {}"

NAME_KEPT = 'cannot get its name: the object that is called "{}" keeps it, since this plan does not rename it'

UNRECORDED = "not all of them are live and recorded by an apply"

OTHER_NAME = 'the one that was applied is "{}" now, and stays: somebody renamed it on the service'
"""The hint about an object that no request can rename."""


def plan_collection(
    at: DeclaredPart[Collection], wanted: Mapping[Key, Resource | None], live: Sequence[LiveRecord]
) -> list[Step]:
    """Plan all objects of a collection.

    Args:
        at: the collection.
        wanted: the declared objects by name; None for an object that must not exist.
        live: see `without_own_project`.
    """
    own_names = _own_names(at)
    ordered = arranged(at.part, wanted, live)
    declared = {name: resource for name, resource in ordered.items() if at.part.identity(name) not in own_names}
    released = at.section.released.get(at.part.name, {})
    ids, unresolved = resolve(at, {**dict.fromkeys(released), **declared}, live)

    def canonical(name: Key) -> Key:
        return ids.get(name, at.part.identity(name))

    released_names = own_names | {canonical(name) for name in released}
    present = {
        name: resource
        for name, resource in declared.items()
        if resource is not None and name not in unresolved and canonical(name) not in released_names
    }
    exchanges = tuple(circles(former_names(present, at.part.identity))) if at.part.names.exchangeable else ()
    known = _known(at, present, live, exchanges)
    matches = match(
        present,
        [*live, *_promoted(at, present)],
        canonical,
        in_chains=at.part.writes.renames,
        known=known,
        undecided=_undecided(at, exchanges, known),
    )
    if at.recorded.unproved:
        matches = _without_unproved(at, matches)
    # Of what the target's document leaves alone, nothing is planned or said.
    matches = matches.less(r for r in matches.unmatched if not released_names.isdisjoint(map(canonical, r.names)))
    if at.takes_fewer:
        matches = replace(matches, missing={})
    absent = {canonical(name) for name, resource in declared.items() if resource is None}
    unwanted = [
        record
        for record in matches.unmatched
        # A wanted path whose ID is unknown may be a former path of any entry: then none is removed.
        if not unresolved
        # A group above takes over what has its name: deleted here, it would be lost if its promotion fails.
        and at.earlier.taken.keys().isdisjoint(map(at.part.identity, record.names))
        and (at.section.prune or at.declared_until(record) or not absent.isdisjoint(map(canonical, record.names)))
    ]
    steps = [step for name, problem in unresolved.items() for step in _unless_excepted(at, (name,), [problem])]
    return [*steps, *plan_matches(at, matches.deleting(unwanted), live, ids)]


def _present_names(recorded: Recorded, live: Sequence[LiveRecord]) -> Mapping[Key, Key]:
    """Return the names of the objects that somebody has renamed on the service, by identity of the declared ones."""
    by_id = {record.id: record.names[0] for record in live}
    return {name: by_id[number] for name, number in recorded.renamed.items()}


def _known(
    at: DeclaredPart[Collection],
    present: Iterable[Key],
    live: Sequence[LiveRecord],
    exchanges: Iterable[Sequence[Key]],
) -> dict[Key, LiveRecord]:
    """Return the objects that the inventory knows, or a saved plan, by identity of their declared names.

    Args:
        at: the collection.
        present: the names of the wanted objects.
        live: see `without_own_project`.
        exchanges: the identities of wanted objects that exchange names.
    """
    names = set(map(at.part.identity, present)) if at.recorded.renamed and at.part.writes.renames else set()
    ids = {name: number for name, number in at.recorded.renamed.items() if name in names}
    ids |= {name: at.recorded.exchanged.get(name, 0) for circle in exchanges for name in circle}
    by_id = {record.id: record for record in live} if ids else {}
    return {name: by_id[number] for name, number in ids.items() if number in by_id}


def _undecided(
    at: DeclaredPart[Collection], exchanges: Iterable[Sequence[Key]], known_names: Container[Key]
) -> Mapping[Key, str]:
    """Return the reasons of conflicts, by identity, of objects that exchange names, and of which no ID is known."""
    reasons: dict[Key, str] = {}
    for circle in exchanges:
        for name in circle:
            if name not in known_names:
                others = listed(f'"{other}"' for other in circle if other != name)
                reasons[name] = EXCHANGED.format(others, at.recorded.unproved.get(name, UNRECORDED))
    return reasons


def _without_unproved(at: DeclaredPart[Collection], matches: Matches) -> Matches:
    """Return matches, with a conflict for each object that somebody seems to have renamed on the service."""
    names = at.recorded.renamed.keys() & at.recorded.unproved.keys()
    doubtful = {pair.name: pair for pair in matches.pairs if at.part.identity(pair.name) in names}
    conflicts = {
        name: Conflict(
            pair.wanted,
            f'seems to be "{pair.record.names[0]}" now (ID {pair.record.id}), renamed on the service, which is not '
            f"certain: {at.recorded.unproved[at.part.identity(name)]}",
            "rename it back there, or declare it by its new name",
        )
        for name, pair in doubtful.items()
    }
    pairs = tuple(pair for pair in matches.pairs if pair.name not in doubtful)
    return replace(matches, pairs=pairs, conflicts={**matches.conflicts, **conflicts})


def without_own_project(at: DeclaredPart[Collection], live: Sequence[LiveRecord]) -> list[LiveRecord]:
    """Return the objects of a collection in order of their IDs, without the own project of an allowlist."""
    own_names = _own_names(at)
    others = [record for record in live if own_names.isdisjoint(at.part.identity(name) for name in record.names)]
    return sorted(others, key=lambda record: record.id or 0)


def _own_names(at: DeclaredPart[Collection]) -> set[Key]:
    """Return the names of the own project in an allowlist: a project can always reach itself."""
    target = at.section.target
    if at.part.names.level is not target.level or target.ref is None:
        return set()
    own_names = at.part.identity(target.ref)
    number = at.live.ids.get(Reference(target.level, str(own_names)))
    return {own_names, number} if isinstance(number, int) else {own_names}


def _promoted(at: DeclaredPart[Collection], resources: Mapping[Key, Resource]) -> list[LiveRecord]:
    """Return the objects of projects below that a declaration promotes to the group."""
    if at.objects is None or not at.objects.promotable:
        return []
    names = {at.part.identity(name) for name, resource in resources.items() if getattr(resource, "promote", False)}
    return [record for name, record in at.objects.promotable.items() if name in names]


def plan_matches(
    at: DeclaredPart[Collection], matches: Matches, live: Sequence[LiveRecord], ids: Mapping[Key, int]
) -> list[Step]:
    """Plan the objects of a collection, given the matches of wanted and live objects.

    Args:
        at: the collection.
        matches: the wanted objects and their live ones.
        live: see `without_own_project`.
        ids: the numeric ID of the target that each name refers to.
    """
    # Covers go first: a cover that an interrupted run has left is no undeclared object, and is deleted with its
    # object's next replacement, or by itself.
    covers = _covers(at.part, matches)
    if covers:
        matches = matches.less(covers.values())
    if any(pair.former is not None for pair in matches.pairs):
        matches = replace(matches, pairs=names_freed_first(matches.pairs, at.part.identity))
    wanting = {at.part.identity(name) for name in (*matches.missing, *matches.conflicts)}
    matches = _at_limit(at, matches, len(live))
    kept_names = {_loosely(record.names[0]): record.names[0] for record in matches.unmatched}
    if at.part.has_siblings:
        deleted = frozenset(id(record) for record in matches.unwanted if not at.exceptions.whole(record.names))
        siblings, matches = with_siblings(at, matches, live)
        at = replace(at, siblings=replace(siblings, deleted=deleted, covers=covers))
    creations, created = _plan_missing(at, matches.missing, ids, len(live))
    creations = _with_last_place(at.part, creations, len(live))
    at = replace(at, siblings=replace(at.siblings, created=created))
    updates = _plan_pairs(at, matches.pairs)
    taken_along = {at.part.identity(step.address.name or "") for step in updates if isinstance(step, Update)}
    remaining_covers = {name: record for name, record in covers.items() if name not in wanting | taken_along}
    return [
        *(_with_other_name(at, step, kept_names, live) for step in creations),
        *updates,
        *_plan_conflicts(at, matches),
        *_plan_unmatched(at, matches),
        *(step for name, record in remaining_covers.items() for step in _plan_uncovering(at, name, record)),
    ]


def _covers(part: Collection, matches: Matches) -> dict[Key, LiveRecord]:
    """Return the covers of interrupted runs, by the identity of the object that each of them covers."""
    cover = part.writes.cover
    others = (*matches.unmatched, *matches.unwanted)
    return {part.identity(name): record for record in others if cover and (name := cover.covered(record))}


def _plan_uncovering(at: DeclaredPart[Collection], name: Key, record: LiveRecord) -> list[Step]:
    """Plan the deletion of a cover that no other change deletes: its object was replaced, or is not declared."""
    loss = Note("loss", f'left by a run that ended while it replaced "{name}"')
    return [
        replace(step, notes=(loss, *(note for note in step.notes if note.code != "loss")))
        if isinstance(step, Delete)
        else step
        for step in plan_deletion(at, record)
    ]


def _at_limit(at: DeclaredPart[Collection], matches: Matches, count: int) -> Matches:
    """Return matches that stay within the service's limit while the plan is applied.

    Objects are created before others are deleted. Where that would exceed the limit, unwanted objects are updated into
    missing ones instead.

    Args:
        at: the collection.
        matches: of the wanted objects.
        count: how many objects are live.
    """
    surplus = count + len(matches.missing) - at.part.writes.most
    if not at.part.writes.most or surplus <= 0:
        return matches
    free = [record for record in matches.unwanted if not at.exceptions.whole(record.names)]
    free.sort(key=lambda record: str(record.names[0]))
    turned = free[:surplus]
    pairs = [
        Pair(name, wanted, record, record.names[0])
        for (name, wanted), record in zip(matches.missing.items(), turned, strict=False)
    ]
    names = {pair.name for pair in pairs}
    missing = {name: wanted for name, wanted in matches.missing.items() if name not in names}
    return replace(matches.less(pair.record for pair in pairs), pairs=(*matches.pairs, *pairs), missing=missing)


def _plan_missing(
    at: DeclaredPart[Collection], missing: Mapping[Key, Resource], ids: Mapping[Key, int], count: int
) -> tuple[list[Step], Mapping[Key, Key]]:
    """Return the steps for the objects that do not exist, and the names of those that they create, by identity.

    Objects are planned in generations, since each may refer only to those that are created before it.

    Args:
        at: the collection.
        missing: the wanted objects that do not exist.
        ids: see `plan_matches`.
        count: how many objects are live.
    """
    steps: list[Step] = []
    created: dict[Key, Key] = {}
    names = {at.part.identity(name): name for name in missing}
    needed = {identity: at.part.references(missing[name]).values() for identity, name in names.items()}
    for generation in topological(names, needed):
        at = replace(at, siblings=replace(at.siblings, created=created))
        planned: list[Step] = []
        for name in (names[identity] for identity in generation):
            is_full = at.part.writes.most and count + len(_created(at.part, planned)) >= at.part.writes.most
            plan = (
                partial(_plan_surplus, at, name)
                if is_full
                else partial(plan_creation, at, name, target_id=ids.get(name))
            )
            planned += at.exceptions.without_excepted((name, ids.get(name, name)), missing[name], plan)
        created = {**created, **_created(at.part, planned)}
        steps += planned
    return steps, created


def _created(part: Collection, steps: Sequence[Step]) -> dict[Key, Key]:
    """Return the names of the objects that steps create, by identity."""
    names = [step.address.name for step in steps if isinstance(step, Create)]
    return {part.identity(name): name for name in names if name is not None}


def _with_last_place(part: Collection, steps: list[Step], count: int) -> list[Step]:
    """Return the steps for missing objects, with a hint on the creation that reaches the service's limit."""
    created = [step for step in steps if isinstance(step, Create)]
    if not part.listing.hides or not created or count + len(created) < part.writes.most:
        return steps
    remark = f"the last of {part.writes.most} that the service takes; {part.listing.hides}"
    last = created[-1]
    return [replace(step, notes=(*step.notes, *hints(remark))) if step is last else step for step in steps]


def _plan_surplus(at: DeclaredPart[Collection], name: Key, _: Resource) -> list[Step]:
    """Plan an object that exceeds the service's limit."""
    reason = f"cannot be created: the service takes at most {at.part.writes.most} in a {at.section.target.level}"
    return [at.problem(name, reason, "delete another one: write null in its place")]


def _with_other_name(
    at: DeclaredPart[Collection], step: Step, kept_names: Mapping[str, Key], live: Sequence[LiveRecord]
) -> Step:
    """Return a step, with a hint on a creation if a kept object has a similar name, or had this one.

    Args:
        at: the collection.
        step: of an object that does not exist.
        kept_names: the names of the kept objects, by `_loosely`.
        live: see `without_own_project`.
    """
    if not isinstance(step, Create) or step.address.name is None:
        return step
    hint, identity = "", at.part.identity(step.address.name)
    if _loosely(step.address.name) in kept_names:
        hint = NEAR_MISS.format(ascii(kept_names[_loosely(step.address.name)]))
    elif identity in at.recorded.renamed:
        hint = OTHER_NAME.format(_present_names(at.recorded, live)[identity])
    return replace(step, notes=(*step.notes, *hints(hint)))


def _loosely(name: Key) -> str:
    """Return a form of a name that is equal for names that look alike."""
    return " ".join(normalize("NFKC", str(name)).split()).casefold()


def _plan_pairs(at: DeclaredPart[Collection], pairs: Sequence[Pair]) -> list[Step]:
    """Plan the wanted objects that exist; none gets a name that another one keeps, since that cannot be renamed."""
    planned = [(pair, _plan_pair(at, pair)) for pair in pairs]
    kept = [pair for pair, steps in planned if pair.former and not any(isinstance(step, Update) for step in steps)]
    renamed = {at.part.identity(pair.name): pair for pair in pairs if pair.former is not None} if kept else {}
    kept_names, refused = {pair.name for pair in kept}, dict[Key, Finding]()
    for pair in kept:
        follower = renamed.get(at.part.identity(pair.former or ""))
        if follower is not None and follower.name not in kept_names:
            refused[follower.name] = at.problem(follower.name, NAME_KEPT.format(pair.former))
            kept_names.add(follower.name)
            kept.append(follower)
    return [step for pair, steps in planned for step in ([refused[pair.name]] if pair.name in refused else steps)]


def _plan_pair(at: DeclaredPart[Collection], pair: Pair) -> Sequence[Step]:
    """Plan a wanted object that exists, without its excepted fields."""

    def plan(wanted: Resource) -> Sequence[Step]:
        if pair.record.below and not getattr(wanted, "promote", False):
            return plan_creation(at, pair.name, wanted)
        return plan_pair(at, replace(pair, wanted=wanted))

    return at.exceptions.without_excepted((pair.name, *pair.record.names), pair.wanted, plan)


def _plan_conflicts(at: DeclaredPart[Collection], matches: Matches) -> list[Step]:
    """Plan the wanted objects that match several live ones."""
    steps: list[Step] = []
    for name, conflict in matches.conflicts.items():
        steps += at.exceptions.without_excepted((name,), conflict.wanted, partial(plan_conflict, at, name, conflict))
    return steps


def _plan_unmatched(at: DeclaredPart[Collection], matches: Matches) -> list[Step]:
    """Plan the live objects that match no wanted one."""
    steps: list[Step] = []
    for record in sorted(matches.unwanted, key=lambda record: str(record.names[0])):
        steps += _unless_excepted(
            at, record.names, _with_last_commit(plan_deletion(at, record), at.declared_until(record))
        )
    grants_access = at.part.access is not None
    for record in sorted(matches.unmatched, key=lambda record: str(record.names[0])):
        address = at.address(record.names[0])
        steps.append(unmanaged_at(address, record.id, grants_access, record.owner, record.last_used))
    return steps


def _unless_excepted(at: DeclaredPart[Collection], names: Iterable[Key], steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps of an object, unless an exception covers the whole object."""
    return at.exceptions.without_excepted(names, NO_FIELDS, lambda _: steps)


def _with_last_commit(steps: Sequence[Step], commit: str) -> Sequence[Step]:
    """Return the steps of a deletion, each with the commit that declared the object last, if it is known."""
    if not commit:
        return steps
    end = f"removed from the manifests since {commit[:SHORT_SHA_LENGTH]}"
    return [replace(step, origin=end) if isinstance(step, Delete) else step for step in steps]
