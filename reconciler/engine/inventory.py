"""The inventory in a plan: what is no longer declared, and is deleted by it; and what was renamed on the service.

It asks the service for nothing, but where only a former path of a target proves a deletion. A target whose number
nothing that was read shows, nor the list, has no line there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from reconciler.engine.compare.creation import existing
from reconciler.engine.lookups import look_up_default_branch
from reconciler.engine.planned import Absences, Declared
from reconciler.engine.read import answer_or_error
from reconciler.engine.roster import ExistingTarget, Roster, fetch_record
from reconciler.engine.run import Run
from reconciler.errors import NotFound
from reconciler.manifests.project_sets import projects_by_path
from reconciler.memory.absence import (
    OTHER_BRANCH,
    SEVERAL,
    CommitPosition,
    ExchangedObject,
    KeptObject,
    PartNow,
    absent,
    decide,
    departures,
    exchanging,
    is_listed,
    not_contained,
    not_declared,
    part_now,
    reasons,
    renamed_by_hand,
    withheld_remarks,
)
from reconciler.memory.inventory import Inventory, ObjectKey, ObjectLine, target_name, target_names
from reconciler.memory.proof import Proof
from reconciler.memory.store import OpenInventory
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.resource import Objects, Resource
from reconciler.model.state import DesiredTarget, LiveState, Recorded, Reference, Section
from reconciler.model.targets import Identity, Key, Level, Target

DeclaredItems = Mapping[Key, Resource | None]
"""What is declared of a collection, by name."""

InventoryKey = Callable[[DesiredTarget], str]
"""Returns the inventory's key of a target; one with its path, such as `project acme/api`, if its ID is unknown."""


def find_absences(run: Run, declared: Declared, live: LiveState, roster: Roster) -> Absences:
    """Return the deletions of objects that are no longer declared, and the objects that are kept."""
    opened = run.inventory
    lines = (*opened.lines, *declared.remarks)
    if opened.stored is None:
        return Absences(remarks=lines)
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, live)
    parts = tuple(_parts_now(run.kinds, declared, live, key_of))
    part_states = [part for _, part in parts]
    renamed, several = renamed_by_hand(inventory, part_states)
    exchanges = tuple(exchanging(inventory, part_states))
    wanted_keys = {*renamed, *(item.line.key for exchange in exchanges for item in exchange)}
    absentees, unlisted = absent(inventory, part_states, {*renamed, *several})
    candidates = (*absentees, *(line for key, line in inventory.objects.items() if key in wanted_keys))
    # An exchange was applied if the manifests that were applied last declare it too: see `_exchanged`.
    positions = _positions(opened, (*(line.at for line in candidates), inventory.applied if exchanges else ""))
    proved = proof(run, declared, inventory, key_of, roster)
    verdict = decide(candidates, positions, proved.declares, opened.obstacle)
    doubts = {kept_object.line.key: kept_object.reason for kept_object in verdict.kept}
    unproved = dict.fromkeys(several, SEVERAL) | {key: doubts[key] for key in renamed if key in doubts}
    exchanged, uncertain = _exchanged(exchanges, doubts, positions, inventory.applied, proved)
    deletions = tuple(line for line in verdict.proved if line.key not in wanted_keys)
    facts_by_part = _recorded(deletions, {**renamed, **several}, exchanged, {**unproved, **uncertain})
    places = {(part.target, part.section, part.part): target.target for target, part in parts}
    undeclared = (kept_object for kept_object in verdict.kept if kept_object.line.key not in wanted_keys)
    kept = tuple(_unpruned(declared, key_of, (*unlisted, *_with_branch_reason(undeclared, proved))))
    return Absences(
        deletions,
        tuple(line for line in verdict.proved if line.key in wanted_keys),
        {(places[part], *part[1:]): facts for part, facts in facts_by_part.items()},
        frozenset(kept_object.line.target for kept_object in kept),
        (*lines, *_remarks(run, declared, live, roster, deletion_count=len(deletions), kept_objects=kept)),
        frozenset(proved.asked),
    )


def _positions(opened: OpenInventory, commits: Iterable[str]) -> Mapping[str, CommitPosition]:
    named = {commit for commit in commits if commit}
    if opened.ancestry is None:
        return dict.fromkeys(named, CommitPosition.UNKNOWN)
    return opened.ancestry.positions(named)


def _with_branch_reason(kept_objects: Iterable[KeptObject], proved: Proof) -> Iterator[KeptObject]:
    """Yield kept objects; the rule of a former default branch says that it is one."""
    for kept_object in kept_objects:
        line = kept_object.line
        is_former = kept_object.reason == not_declared(line) and proved.was_of_default_branch(line)
        yield replace(kept_object, reason=OTHER_BRANCH) if is_former else kept_object


def _unpruned(declared: Declared, key_of: InventoryKey, kept_objects: Iterable[KeptObject]) -> Iterator[KeptObject]:
    """Yield the kept objects of sections that are not pruned: in the others, they are deleted anyway."""
    targets = declared.desired.targets
    pruned = {(key_of(target), section.kind) for target in targets for section in target.sections if section.prune}
    yield from (kept_object for kept_object in kept_objects if kept_object.line.key[:2] not in pruned)


def _remarks(
    run: Run,
    declared: Declared,
    live: LiveState,
    roster: Roster,
    *,
    deletion_count: int,
    kept_objects: Iterable[KeptObject],
) -> Iterator[str]:
    """Yield a sentence for each reason to keep objects, and for targets and sections that are no longer declared."""
    opened = run.inventory
    assert opened.stored is not None  # noqa: S101 - see the caller
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, live)
    if opened.ancestry is not None:
        yield from withheld_remarks(deletion_count, opened.ancestry.last_applied(inventory.applied))
    yield from reasons(kept_objects)
    if run.scope.reports_fleet_findings and not opened.obstacle:
        hidden = unknown(declared, inventory, roster)
        let_go = released_lines(inventory, declared, live, run.kinds, key_of)
        yield from departures(inventory, declared_parts(declared, key_of), released(declared, key_of), let_go, hidden)


def _exchanged(
    exchanges: Iterable[tuple[ExchangedObject, ...]],
    doubts: Mapping[ObjectKey, str],
    positions: Mapping[str, CommitPosition],
    applied: str,
    proved: Proof,
) -> tuple[dict[ObjectKey, Key], dict[ObjectKey, str]]:
    """Return the names of the items that objects are, which exchange names, and why some of that is uncertain.

    An apply writes the new names into the list, whether or not the service has taken them. Names in a list are new if
    the manifests at the lines' commit declare the exchange, and those that were applied last still do: without the
    latter, the same names may be exchanged once more.
    """
    names, uncertain = dict[ObjectKey, Key](), dict[ObjectKey, str]()
    for exchange in exchanges:
        last = [replace(item.line, at=applied) for item in exchange]
        reasons = [doubts.get(item.line.key, "") for item in exchange] + [not_contained(last[0], positions)]
        reason = next(filter(None, reasons), "")
        is_after = not reason and all(
            proved.renames(item.line, item.former) and proved.renames(line, item.former)
            for item, line in zip(exchange, last, strict=True)
        )
        names |= {item.line.key: item.name if is_after else item.following for item in exchange}
        uncertain |= {item.line.key: reason for item in exchange if reason}
    return names, uncertain


def _recorded(
    deletions: Iterable[ObjectLine],
    own_names: Mapping[ObjectKey, Key],
    new_names: Mapping[ObjectKey, Key],
    unproved: Mapping[ObjectKey, str],
) -> dict[tuple[str, str, str], Recorded]:
    """Return the facts about objects by target, section and part, as the inventory names them.

    Args:
        deletions: the lines of the objects that are deleted.
        own_names: of the objects that somebody has renamed on the service, the declared names.
        new_names: of the objects that exchange names, the names that they are to have.
        unproved: the reasons to doubt these names.
    """
    let_go: dict[tuple[str, str, str], dict[int, str]] = {}
    renamed: dict[tuple[str, str, str], dict[Key, int]] = {}
    exchanged: dict[tuple[str, str, str], dict[Key, int]] = {}
    uncertain: dict[tuple[str, str, str], dict[Key, str]] = {}
    for line in deletions:
        let_go.setdefault(line.key[:3], {})[line.id] = line.at
    for key, name in own_names.items():
        renamed.setdefault(key[:3], {})[name] = key[3]
    for key, name in new_names.items():
        exchanged.setdefault(key[:3], {})[name] = key[3]
    for key, reason in unproved.items():
        uncertain.setdefault(key[:3], {})[own_names.get(key) or new_names[key]] = reason
    return {
        part: Recorded(
            let_go.get(part, {}),
            renamed.get(part, {}),
            {name: number for name, number in exchanged.get(part, {}).items() if name not in uncertain.get(part, {})},
            uncertain.get(part, {}),
        )
        for part in let_go.keys() | renamed.keys() | exchanged.keys()
    }


def inventory_keys(opened: OpenInventory, live: LiveState) -> InventoryKey:
    """Return a function that maps a target to its inventory key: by what was read, else by the paths in the list."""
    names = target_names(opened.stored.inventory if opened.stored else Inventory(""))

    def key_of(target: DesiredTarget) -> str:
        level, ref = target.target.level, target.target.ref
        number = live.ids.get(Reference(level, str(ref).casefold()))
        return names(target.target, number if isinstance(number, int) else None) or str(target.target)

    return key_of


def _parts_now(
    kinds: Kinds, declared: Declared, live: LiveState, key_of: InventoryKey
) -> Iterator[tuple[DesiredTarget, PartNow]]:
    """Yield the collections that are declared and may have lines, with what is live there."""
    for target in existing(declared.desired, live.absent).targets:
        for section, part, _ in collections_of(target, kinds):
            read = live.parts[target.target, section.kind, part.name]
            yield target, part_now(key_of(target), section, part, read, known_ids(section, part, live))


def collections_of(target: DesiredTarget, kinds: Kinds) -> Iterator[tuple[Section, Collection, DeclaredItems]]:
    """Yield the declared collections whose objects can be created and deleted by name."""
    for section in target.sections:
        for part in kinds[section.kind].parts:
            declared = section.wanted.get(part.name)
            if isinstance(declared, Mapping) and isinstance(part, Collection) and is_listed(part):
                yield section, part, declared


def known_ids(section: Section, part: Collection, live: LiveState) -> dict[Key, int]:
    """Return the IDs of the targets that names refer to, by canonical name, as far as they are known."""
    declared_items = section.wanted[part.name]
    if part.names.level is None or isinstance(declared_items, Resource):
        return {}
    former = (old for resource in declared_items.values() for old in getattr(resource, "renamed_from", ()))
    numbers = {
        name: live.ids.get(Reference(part.names.level, name.casefold()))
        for name in (*declared_items, *former, *section.released.get(part.name, ()))
        if isinstance(name, str)
    }
    return {part.identity(name): number for name, number in numbers.items() if isinstance(number, int)}


def declared_parts(declared: Declared, key_of: InventoryKey) -> frozenset[tuple[str, str, str]]:
    """Return target, section and part of all that the manifests declare."""
    return frozenset(
        (key_of(target), section.kind, part)
        for target in declared.whole.targets
        for section in target.sections
        for part in section.wanted
    )


def released(declared: Declared, key_of: InventoryKey) -> frozenset[tuple[str, str]]:
    """Return target and section of what the documents of targets leave alone."""
    return frozenset((key_of(target), section) for target in declared.whole.targets for section in target.unmanaged)


def released_lines(
    inventory: Inventory, declared: Declared, live: LiveState, kinds: Kinds, key_of: InventoryKey
) -> Mapping[ObjectKey, bool]:
    """Return the lines of single objects that documents leave alone, each with whether their line has to stay there."""
    places = {
        (key_of(target), section.kind, part.name): (section, part, released_ids(section, part, live))
        for target in declared.whole.targets
        for section, part, _ in collections_of(target, kinds)
        if section.released.get(part.name)
    }
    keys: dict[ObjectKey, bool] = {}
    for key, line in inventory.objects.items() if places else ():
        if key[:3] in places:
            section, part, ids = places[key[:3]]
            names, name = section.released[part.name], part.identity(line.name)
            if name in names or line.id in ids:
                keys[key] = section.prune or names.get(name) is not None
    return keys


def released_ids(section: Section, part: Collection, live: LiveState) -> frozenset[int]:
    """Return the IDs of the live objects that a document leaves alone, as far as they were read."""
    names, read = section.released.get(part.name, {}), live.parts.get((section.target, section.kind, part.name))
    if not names or not isinstance(read, Objects):
        return frozenset()
    known = known_ids(section, part, live)
    numbers = {known[name] for name in names if name in known}
    return frozenset(
        record.id
        for record in read.own
        if record.id and (record.id in numbers or not names.keys().isdisjoint(map(part.identity, record.names)))
    )


def unknown(declared: Declared, inventory: Inventory, roster: Roster) -> frozenset[str]:
    """Return the targets of which it is not known what is declared: archived ones, and those of hidden groups."""
    archived = {path.casefold() for path in declared.manifests.archived_left_out}
    shown = {target_name(place.level, number) for place, number in declared.discovery.ids.items()}
    shown |= {
        target_name(level, existing_target.id)
        for (level, _), existing_target in roster.answers.items()
        if isinstance(existing_target, ExistingTarget)
    }
    archived |= declared.manifests.index.perhaps_archived(
        line.path for line in inventory.targets.values() if line.target not in shown
    )
    hidden = [f"{unlisted_set.obstacle.where.target.ref}/".casefold() for unlisted_set in declared.manifests.unlisted]
    return frozenset(
        line.target
        for line in inventory.targets.values()
        if line.path.casefold() in archived or any(line.path.casefold().startswith(group) for group in hidden)
    )


def proof(run: Run, declared: Declared, inventory: Inventory, key_of: InventoryKey, roster: Roster) -> Proof:
    """Return the reader of the manifests of earlier commits."""
    paths: dict[str, set[str]] = {}
    for target in declared.whole.targets:
        shown = {target.path, target.target.ref if isinstance(target.target.ref, str) else None}
        paths.setdefault(key_of(target), set()).update(path for path in shown if path)
    owners = {Target(Level(name.partition(" ")[0]), path).identity: name for name in paths for path in paths[name]}

    def known_as(name: str) -> set[Identity]:
        level, _, number = name.partition(" ")
        refs: list[Key | None] = [int(number) if number else None, *paths.get(name, ())]
        return {Target(Level(level), ref).identity for ref in refs}

    def listed_as(name: str) -> Target | None:
        path = inventory.targets[name].path if name in inventory.targets else ""
        return Target(Level(name.partition(" ")[0]), path) if path else None

    @cache
    def was_called(name: str, former: Target) -> bool:
        holders = {line.target for line in inventory.targets.values() if line.path.casefold() == former.identity[1]}
        if holders != {name} or owners.get(former.identity, name) != name:
            return False
        answer = answer_or_error(lambda: fetch_record(former, roster).id)
        # The path of a project that was renamed redirects; that of a group leads nowhere.
        return answer == int(name.partition(" ")[2]) or (former.level is Level.GROUP and isinstance(answer, NotFound))

    discovered = {
        group: () if isinstance(members, Obstacle) else members for group, members in declared.discovery.groups.items()
    }
    branches = {member.id: member.default_branch for member in projects_by_path(discovered).values()}

    @cache
    def default_branch(name: str) -> str | None:
        number = int(name.partition(" ")[2])
        branch = branches.get(number) or look_up_default_branch(Target(Level.PROJECT, number), roster)
        return branch if isinstance(branch, str) else None

    return Proof(
        Path(),
        run.inputs,
        declared.manifests,
        discovered,
        declared.discovery.paths,
        known_as,
        listed_as,
        was_called,
        declared.branches,
        default_branch,
    )
