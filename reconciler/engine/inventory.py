"""The stage of the inventory: what is no longer declared, and is deleted by it; and what an apply will write down.

It asks the service for nothing, but where only a former path of a target proves a deletion. A target whose number
nothing that was read shows, nor the list, has no line there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from reconciler.engine.compare.creation import existing
from reconciler.engine.existence import There
from reconciler.engine.read import answer_or_error
from reconciler.engine.records import fetch_record
from reconciler.engine.survey import Absences, Added, FleetSurvey
from reconciler.errors import NotFound
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
from reconciler.model.effective import again_on, digest_of, due_moments
from reconciler.model.endpoints import Collection
from reconciler.model.inventory import Inventory, target_name, target_order
from reconciler.model.item import Delete
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import DesiredTarget, LiveState, PartAddress, Reference, Section
from reconciler.model.targets import PATHLESS, Identity, Key, Level, Target
from reconciler.model.upkeep import Applied, PartAfter, Prospect, TargetAfter

Wished = Mapping[Key, Resource | None]
"""What is declared of a collection, by name."""

Names = Callable[[DesiredTarget], str]
"""Returns what the inventory calls a target; one with its path, such as `project acme/api`, if its ID is unknown."""


def absences(run: FleetSurvey) -> Added:
    """Return what is deleted because it is no longer declared, and what stays."""
    opened = run.inventory
    if opened.stored is None:
        return {"absences": Absences(remarks=opened.lines)}
    inventory, called = opened.stored.inventory, names(run)
    parts = tuple(_parts_now(run, called))
    places = {(part.target, part.section, part.part): target.target for target, part in parts}
    candidates, stays = absent(inventory, (part for _, part in parts))
    commits = {line.at for line in candidates if line.at}
    standings = dict.fromkeys(commits, Standing.UNKNOWN)
    if opened.ancestry is not None:
        standings = opened.ancestry.standings(commits)
    proved = proof(run, inventory, called)
    verdict = judge(candidates, standings, proved.declares, opened.obstacle)
    pruned = {
        (called(target), section.kind) for target in run.desired.targets for section in target.sections if section.prune
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
    remarks = (*opened.lines, *held, *reasons(stays))
    if run.scope.tells_of_the_whole and not opened.obstacle:
        left = departures(inventory, _declared(run, called), _released(run, called), _unknown(run, inventory))
        remarks = (*remarks, *left)
    staying = frozenset(stay.line.target for stay in stays)
    return {
        "live": replace(run.live, absences=deleted),
        "absences": Absences(verdict.deletions, staying, remarks),
        "former": frozenset(proved.asked),
    }


def prospect(run: FleetSurvey, commit: str, *, whole: bool) -> Prospect | None:
    """Return what an apply of the plan will write down; None if the run stores nothing.

    Args:
        run: all that is known.
        commit: of the manifests; empty if they are not as committed.
        whole: whether the run is not narrowed.
    """
    opened = run.inventory
    if opened.stored is None or opened.store is None:
        return None
    inventory, called = opened.stored.inventory, names(run)
    whole = whole and not opened.obstacle
    planned = {target.target: target for target in run.plan.targets}
    selected = [target for target in run.desired.targets if target.target in planned]
    everything = {target.target: target for target in run.whole.targets}
    parts = [part for target in selected for part in _parts_after(run, target, called(target))]
    targets = [
        _target_after(run, target, everything.get(target.target, target), planned[target.target], called(target))
        for target in selected
    ]
    partial = {called(target) for target in selected if target.target in run.cut}
    targets = [replace(after, done=False) if after.target in partial else after for after in targets]
    deleted = {
        (called(target), change.address.section, change.address.part, change.read.id)
        for target in selected
        for change in planned[target.target].changes
        if isinstance(change, Delete)
    }
    applied = Applied(
        commit if not opened.obstacle else "",
        tuple(parts),
        tuple(targets),
        whole=whole,
        declared=_declared(run, called) if whole else frozenset(),
        released=_released(run, called) if whole else frozenset(),
        unknown=_unknown(run, inventory) if whole else frozenset(),
        backwards=bool(commit and opened.ancestry and opened.ancestry.last_applied(inventory.applied).may_be_newer),
    )
    return Prospect(applied, inventory, tuple(line for line in run.absences.deletions if line.key in deleted))


def names(run: FleetSurvey) -> Names:
    """Return what names targets as the inventory does: by what was read, else by the paths in the list."""
    stored = run.inventory.stored
    lines = sorted(stored.inventory.targets.values(), key=lambda line: target_order(line.target)) if stored else []
    listed = {(line.target.partition(" ")[0], line.path.casefold()): line.target for line in lines}
    ids = run.live.ids

    def name(target: DesiredTarget) -> str:
        level, ref = target.target.level, target.target.ref
        if level in PATHLESS:
            return target_name(level, None)
        number = ref if isinstance(ref, int) else ids.get(Reference(level, str(ref).casefold()))
        if isinstance(number, int):
            return target_name(level, number)
        return listed.get((str(level), str(ref).casefold()), f"{level} {ref}")

    return name


def _parts_now(run: FleetSurvey, called: Names) -> Iterator[tuple[DesiredTarget, PartNow]]:
    """Yield the collections that are declared and may have lines, with what is live there."""
    for target in existing(run.desired, run.live.absent).targets:
        for section, part, declared in collections_of(target, run):
            live = run.live.parts[target.target, section.kind, part.name]
            yield target, part_now(called(target), section, part, live, _known_ids(part, declared, run.live))


def collections_of(target: DesiredTarget, run: FleetSurvey) -> Iterator[tuple[Section, Collection, Wished]]:
    """Yield the declared collections whose objects can be created and deleted by name."""
    for section in target.sections:
        for part in run.kinds[section.kind].parts:
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


def _declared(run: FleetSurvey, called: Names) -> frozenset[tuple[str, str, str]]:
    """Return target, section and part of all that the manifests declare."""
    return frozenset(
        (called(target), section.kind, part)
        for target in run.whole.targets
        for section in target.sections
        for part in section.wanted
    )


def _released(run: FleetSurvey, called: Names) -> frozenset[tuple[str, str]]:
    """Return target and section of what the documents of targets leave alone."""
    return frozenset((called(target), section) for target in run.whole.targets for section in target.unmanaged)


def _unknown(run: FleetSurvey, inventory: Inventory) -> frozenset[str]:
    """Return the targets of which it is not known what is declared: archived ones, and those of hidden groups."""
    archived = {path.casefold() for path in run.manifests.archived_left_out}
    shown = {target_name(place.level, number) for place, number in run.discovery.ids.items()}
    shown |= {target_name(level, there.id) for (level, _), there in run.answers.items() if isinstance(there, There)}
    archived |= run.manifests.index.perhaps_archived(
        line.path for line in inventory.targets.values() if line.target not in shown
    )
    hidden = [f"{unlisted_set.obstacle.where.target.ref}/".casefold() for unlisted_set in run.manifests.unlisted]
    return frozenset(
        line.target
        for line in inventory.targets.values()
        if line.path.casefold() in archived or any(line.path.casefold().startswith(group) for group in hidden)
    )


def proof(run: FleetSurvey, inventory: Inventory, called: Names) -> Proof:
    """Return what reads the manifests of earlier commits."""
    paths: dict[str, set[str]] = {}
    for target in run.whole.targets:
        shown = {target.path, target.target.ref if isinstance(target.target.ref, str) else None}
        paths.setdefault(called(target), set()).update(path for path in shown if path)
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
        answer = answer_or_error(lambda: fetch_record(former, run.reader).id)
        # The path of a project that was renamed redirects; that of a group leads nowhere.
        return answer == int(name.partition(" ")[2]) or (former.level is Level.GROUP and isinstance(answer, NotFound))

    discovered = {
        group: () if isinstance(members, Obstacle) else members for group, members in run.discovery.groups.items()
    }
    return Proof(Path(), run.inputs, run.manifests, discovered, run.discovery.paths, known_as, listed_as, was_called)


def _parts_after(run: FleetSurvey, target: DesiredTarget, name: str) -> Iterator[PartAfter]:
    """Yield the collections of a target that were read whole, with the live objects of each name."""
    for section, part, declared in collections_of(target, run):
        live = run.live.parts[target.target, section.kind, part.name]
        if not isinstance(live, Objects):
            continue
        numbers = _known_ids(part, declared, run.live)
        own = [record for record in live.own if record.id is not None and not record.below]
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
    run: FleetSurvey, target: DesiredTarget, whole: DesiredTarget, planned: TargetPlan, name: str
) -> TargetAfter:
    """Return a target as it is before the first change."""
    kept = run.inventory.stored.inventory.objects if run.inventory.stored else {}
    left_out = {finding.address.section for finding in planned.said("not_applicable")}
    awaited = any(key[0] == name and key[1] in left_out for key in kept) if left_out else False
    complete = {section.kind for section in target.sections} | left_out >= {section.kind for section in whole.sections}
    done = complete and not awaited and name not in run.absences.staying and not planned.problems
    due = (
        moment
        for section, part, _ in collections_of(target, run)
        if isinstance(live := run.live.parts[target.target, section.kind, part.name], Objects)
        for moment in due_moments(section, part, live.own, run.desired.grace, run.live.read_at)
    )
    again = again_on(target.exceptions, due, run.live.read_at.date())
    path = target.path or (target.target.ref if isinstance(target.target.ref, str) else "")
    return TargetAfter(name, path, digest_of(whole), again, done)
