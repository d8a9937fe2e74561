"""The inventory: what is no longer declared, and is deleted by it; and what an apply will write down.

It asks the service for nothing, but where only a former path of a target proves a deletion. A target whose number
nothing that was read shows, nor the list, has no line there.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from functools import cache
from pathlib import Path

from reconciler.engine.compare.creation import existing
from reconciler.engine.planned import Absences, Declared, Planned
from reconciler.engine.read import answer_or_error
from reconciler.engine.roster import ExistingTarget, Roster, fetch_record
from reconciler.engine.run import Run
from reconciler.errors import NotFound
from reconciler.gitops.inventory import OpenInventory
from reconciler.gitops.proof import Proof
from reconciler.model.absence import (
    PartNow,
    Standing,
    absent,
    departures,
    held_up,
    is_listed,
    judge,
    part_now,
    reasons,
)
from reconciler.model.effective import again_on, digest_of, due_moments, ends_of_grace
from reconciler.model.endpoints import Collection
from reconciler.model.inventory import Inventory, target_name, target_order
from reconciler.model.item import Delete
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import DesiredTarget, LiveState, PartAddress, Reference, Section
from reconciler.model.targets import PATHLESS, Identity, Key, Level, Target
from reconciler.model.upkeep import Applied, PartAfter, Prospect, TargetAfter
from reconciler.model.wording import counted

Wished = Mapping[Key, Resource | None]
"""What is declared of a collection, by name."""

InventoryKey = Callable[[DesiredTarget], str]
"""Returns the inventory's key of a target; one with its path, such as `project acme/api`, if its ID is unknown."""


def find_absences(run: Run, declared: Declared, live: LiveState, roster: Roster) -> Absences:
    """Return what is deleted because it is no longer declared, and what stays."""
    opened = run.inventory
    lines = (*opened.lines, *declared.remarks)
    if opened.stored is None:
        return Absences(remarks=lines)
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, live)
    parts = tuple(_parts_now(run.kinds, declared, live, key_of))
    places = {(part.target, part.section, part.part): target.target for target, part in parts}
    candidates, stays = absent(inventory, (part for _, part in parts))
    commits = {line.at for line in candidates if line.at}
    standings = dict.fromkeys(commits, Standing.UNKNOWN)
    if opened.ancestry is not None:
        standings = opened.ancestry.standings(commits)
    proved = proof(run, declared, inventory, key_of, roster)
    verdict = judge(candidates, standings, proved.declares, opened.obstacle)
    pruned = {
        (key_of(target), section.kind)
        for target in declared.desired.targets
        for section in target.sections
        if section.prune
    }
    stays = tuple(stay for stay in (*stays, *verdict.stays) if stay.line.key[:2] not in pruned)
    deleted: dict[PartAddress, dict[int, str]] = {}
    for line in verdict.deletions:
        place = (places[line.key[:3]], line.section, line.part)
        deleted.setdefault(place, {})[line.id] = line.at
    held = (
        []
        if opened.ancestry is None
        else held_up(len(verdict.deletions), opened.ancestry.last_applied(inventory.applied))
    )
    remarks = (*lines, *held, *reasons(stays))
    if run.scope.reports_fleet_findings and not opened.obstacle:
        unknown = _unknown(declared, inventory, roster)
        left = departures(inventory, _declared_parts(declared, key_of), _released(declared, key_of), unknown)
        remarks = (*remarks, *left)
    staying = frozenset(stay.line.target for stay in stays)
    return Absences(verdict.deletions, deleted, staying, remarks, frozenset(proved.asked))


def prospect(planned: Planned, commit: str, *, whole: bool) -> Prospect | None:
    """Return what an apply of the plan will write down; None if the run stores nothing.

    Args:
        planned: all that is known.
        commit: of the manifests; empty if they are not as committed.
        whole: whether the run is not narrowed.
    """
    run, declared, live = planned.run, planned.declared, planned.live
    opened = run.inventory
    if opened.stored is None or opened.store is None:
        return None
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, live)
    whole = whole and not opened.obstacle
    plans = {target.target: target for target in planned.plan.targets}
    selected = [target for target in declared.desired.targets if target.target in plans]
    everything = {target.target: target for target in declared.whole.targets}
    parts = [part for target in selected for part in _parts_after(run.kinds, live, target, key_of(target))]
    targets = [
        _target_after(planned, target, everything.get(target.target, target), plans[target.target], key_of(target))
        for target in selected
    ]
    deleted = {
        (key_of(target), change.address.section, change.address.part, change.read.id)
        for target in selected
        for change in plans[target.target].changes
        if isinstance(change, Delete)
    }
    applied = Applied(
        commit if not opened.obstacle else "",
        tuple(parts),
        tuple(targets),
        whole=whole,
        declared=_declared_parts(declared, key_of) if whole else frozenset(),
        released=_released(declared, key_of) if whole else frozenset(),
        unknown=_unknown(declared, inventory, planned.roster) if whole else frozenset(),
        backwards=bool(commit and opened.ancestry and opened.ancestry.last_applied(inventory.applied).may_be_newer),
    )
    return Prospect(applied, inventory, tuple(line for line in planned.absences.deletions if line.key in deleted))


def inventory_keys(opened: OpenInventory, live: LiveState) -> InventoryKey:
    """Return a function that maps a target to its inventory key: by what was read, else by the paths in the list."""
    stored = opened.stored
    lines = sorted(stored.inventory.targets.values(), key=lambda line: target_order(line.target)) if stored else []
    listed = {(line.target.partition(" ")[0], line.path.casefold()): line.target for line in lines}

    def key_of(target: DesiredTarget) -> str:
        level, ref = target.target.level, target.target.ref
        if level in PATHLESS:
            return target_name(level, None)
        number = ref if isinstance(ref, int) else live.ids.get(Reference(level, str(ref).casefold()))
        if isinstance(number, int):
            return target_name(level, number)
        return listed.get((str(level), str(ref).casefold()), f"{level} {ref}")

    return key_of


def _parts_now(
    kinds: Kinds, declared: Declared, live: LiveState, key_of: InventoryKey
) -> Iterator[tuple[DesiredTarget, PartNow]]:
    """Yield the collections that are declared and may have lines, with what is live there."""
    for target in existing(declared.desired, live.absent).targets:
        for section, part, wished in collections_of(target, kinds):
            read = live.parts[target.target, section.kind, part.name]
            yield target, part_now(key_of(target), section, part, read, _known_ids(part, wished, live))


def collections_of(target: DesiredTarget, kinds: Kinds) -> Iterator[tuple[Section, Collection, Wished]]:
    """Yield the declared collections whose objects can be created and deleted by name."""
    for section in target.sections:
        for part in kinds[section.kind].parts:
            declared = section.wanted.get(part.name)
            if isinstance(declared, Mapping) and isinstance(part, Collection) and is_listed(part):
                yield section, part, declared


def _known_ids(part: Collection, declared: Wished, live: LiveState) -> dict[Key, int]:
    """Return the IDs of the targets that names refer to, by canonical name, as far as they are known."""
    if part.names.level is None:
        return {}
    former = (old for resource in declared.values() for old in getattr(resource, "renamed_from", ()))
    numbers = {
        name: live.ids.get(Reference(part.names.level, name.casefold()))
        for name in (*declared, *former)
        if isinstance(name, str)
    }
    return {part.identity(name): number for name, number in numbers.items() if isinstance(number, int)}


def _declared_parts(declared: Declared, key_of: InventoryKey) -> frozenset[tuple[str, str, str]]:
    """Return target, section and part of all that the manifests declare."""
    return frozenset(
        (key_of(target), section.kind, part)
        for target in declared.whole.targets
        for section in target.sections
        for part in section.wanted
    )


def _released(declared: Declared, key_of: InventoryKey) -> frozenset[tuple[str, str]]:
    """Return target and section of what the documents of targets leave alone."""
    return frozenset((key_of(target), section) for target in declared.whole.targets for section in target.unmanaged)


def _unknown(declared: Declared, inventory: Inventory, roster: Roster) -> frozenset[str]:
    """Return the targets of which it is not known what is declared: archived ones, and those of hidden groups."""
    archived = {path.casefold() for path in declared.manifests.archived_left_out}
    shown = {target_name(place.level, number) for place, number in declared.discovery.ids.items()}
    shown |= {
        target_name(level, there.id)
        for (level, _), there in roster.answers.items()
        if isinstance(there, ExistingTarget)
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
    """Return what reads the manifests of earlier commits."""
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
        others = {line.target for line in inventory.targets.values() if line.path.casefold() == former.identity[1]}
        if others != {name} or owners.get(former.identity, name) != name:
            return False
        answer = answer_or_error(lambda: fetch_record(former, roster).id)
        # The path of a project that was renamed redirects; that of a group leads nowhere.
        return answer == int(name.partition(" ")[2]) or (former.level is Level.GROUP and isinstance(answer, NotFound))

    discovered = {
        group: () if isinstance(members, Obstacle) else members for group, members in declared.discovery.groups.items()
    }
    paths_by_id = declared.discovery.paths
    return Proof(Path(), run.inputs, declared.manifests, discovered, paths_by_id, known_as, listed_as, was_called)


def _parts_after(kinds: Kinds, live: LiveState, target: DesiredTarget, name: str) -> Iterator[PartAfter]:
    """Yield the collections of a target that were read whole, with the live objects of each name."""
    for section, part, declared in collections_of(target, kinds):
        read = live.parts[target.target, section.kind, part.name]
        if not isinstance(read, Objects):
            continue
        numbers = _known_ids(part, declared, live)
        own = [record for record in read.own if record.id is not None and not record.below]
        wanted = {
            wished: tuple(_standing_for(wished, resource, part, own, numbers))
            for wished, resource in declared.items()
            if resource is not None
        }
        yield PartAfter(name, section.kind, part.name, wanted, listed=tuple(record.id for record in own if record.id))


def _standing_for(
    name: Key, resource: object, part: Collection, live: list[LiveRecord], numbers: Mapping[Key, int]
) -> Iterator[int]:
    """Yield the IDs of the live objects that have a name, or a former name."""
    accepted = {part.identity(spelling) for spelling in (name, *getattr(resource, "renamed_from", ()))}
    meant = {numbers[spelling] for spelling in accepted if spelling in numbers}
    for record in live:
        if record.id is not None and (record.id in meant or accepted & set(map(part.identity, record.names))):
            yield record.id


def _target_after(
    planned: Planned, target: DesiredTarget, whole: DesiredTarget, plan: TargetPlan, name: str
) -> TargetAfter:
    """Return a target as it is before the first change."""
    live, stored = planned.live, planned.run.inventory.stored
    kept = stored.inventory.objects if stored else {}
    left_out = {finding.address.section for finding in plan.said("not_applicable")}
    awaited = any(key[0] == name and key[1] in left_out for key in kept) if left_out else False
    complete = {section.kind for section in target.sections} | left_out >= {section.kind for section in whole.sections}
    done = complete and not awaited and name not in planned.absences.staying and not plan.problems
    due = (
        moment
        for section, part, objects in _collections_read(planned, target)
        for moment in due_moments(section, part, objects.own, planned.declared.desired.grace, live.read_at)
    )
    again = again_on(target.exceptions, due, live.read_at.date())
    path = target.path or (target.target.ref if isinstance(target.target.ref, str) else "")
    return TargetAfter(name, path, digest_of(whole), again, done and target.target not in planned.cut)


def _collections_read(planned: Planned, target: DesiredTarget) -> Iterator[tuple[Section, Collection, Objects]]:
    """Yield the declared collections of a target that were read, with their objects."""
    for section, part, _ in collections_of(target, planned.run.kinds):
        read = planned.live.parts.get((target.target, section.kind, part.name))
        if isinstance(read, Objects):
            yield section, part, read


def successions(planned: Planned) -> Iterator[str]:
    """Yield one sentence about the tokens that stay beside their successors for a while; nothing if there are none.

    Nothing differs yet: a later run deletes them.
    """
    grace, read_at = planned.declared.desired.grace, planned.live.read_at
    ends = sorted(
        end
        for target in planned.declared.desired.targets
        for section, part, objects in _collections_read(planned, target)
        for end in ends_of_grace(section, part, objects.own, grace, read_at)
    )
    if ends:
        first = f"{ends[0].astimezone(UTC):%Y-%m-%d %H:%M UTC}"
        tells = "a run after {} deletes it" if len(ends) == 1 else "runs after {} delete them"
        yield f"{counted(len(ends), 'rotated token')} beside a successor: {tells.format(first)}"
