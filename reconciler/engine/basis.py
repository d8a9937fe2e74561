"""The facts from which an apply projects the inventory: see `memory.projection`."""

from collections.abc import Collection as Some
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC

from reconciler.engine.inventory import (
    DeclaredItems,
    InventoryKey,
    collections_of,
    declared_parts,
    inventory_keys,
    known_ids,
    released,
    released_ids,
    released_lines,
    unknown,
)
from reconciler.engine.planned import Planned
from reconciler.memory.effective import again_on, digest_of, due_moments, ends_of_grace
from reconciler.memory.inventory import Inventory, ObjectKey, ObjectLine
from reconciler.memory.projection import Basis, line_of, was_renamed
from reconciler.model.endpoints import Collection
from reconciler.model.item import Finding, Keep, object_of
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.renames import exchanged_names
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import NOTHING_RECORDED, DesiredTarget, Section
from reconciler.model.targets import Address, Key
from reconciler.model.wording import counted


def with_basis(planned: Planned, commit: str, *, whole: bool) -> tuple[Plan, Basis | None]:
    """Return the plan with what an apply has to know of each target, and of the run; None if it keeps no inventory.

    Args:
        planned: all that is known.
        commit: of the manifests; empty if they are not as committed.
        whole: whether the run is not narrowed.
    """
    run, declared = planned.run, planned.declared
    opened = run.inventory
    if opened.stored is None or opened.store is None:
        return planned.plan, None
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, planned.live)
    moved = (target for target in declared.whole.targets if target.former_paths)
    # The last place is that of its own document, if it has one: the sets come before.
    former = {key_of(target): [*target.former_paths.values()][-1] for target in moved}
    commit = "" if opened.obstacle else commit
    basis = Basis(seen=inventory, commit=commit, whole=whole and not opened.obstacle, former=former)
    if basis.whole:
        parts = declared_parts(declared, key_of)
        basis = replace(
            basis,
            declared=_by_target((name, f"{section}/{part}") for name, section, part in parts),
            released=_by_target((*released(declared, key_of), *_let_go(planned, inventory, key_of))),
            unknown=tuple(sorted(unknown(declared, inventory, planned.roster))),
        )
    listed: dict[str, list[ObjectLine]] = {}
    for line in inventory.objects.values():
        listed.setdefault(line.target, []).append(line)
    wanted = {target.target: target for target in declared.desired.targets}
    everything = {target.target: target for target in declared.whole.targets}
    targets, missing, changed = list[TargetPlan](), list[ObjectKey](), set[tuple[str, str, str, int | None]]()
    for plan in planned.plan.targets:
        target = wanted.get(plan.target)
        if target is None:
            targets.append(plan)
            continue
        name = key_of(target)
        missing += _missing(planned, target, listed.get(name, ()))
        changed |= {(name, *object_of(change)) for change in plan.changes}
        kept = [
            Keep(
                Address(target.target, section.kind, part.name, part.title, called),
                record.id,
                adopted=(name, section.kind, part.name, record.id) not in inventory.objects,
                owner="" if record.ours else record.owner or "",
            )
            for section, part, called, record in _wanted(planned, target, plan, name, basis)
            if section.kind in plan.sections and (name, section.kind, part.name, record.id) not in changed
        ]
        adoptions = (
            Finding(keep.address, "adopted", f"is adopted: it belongs to {keep.owner}")
            for keep in kept
            if keep.adopted and keep.owner
        )
        judged = _with_digest(planned, everything.get(plan.target, target), plan, name, listed.get(name, ()))
        targets.append(judged.adding(*kept, *adoptions))
    lines = (*planned.absences.deletions, *planned.absences.renames)
    absent = tuple(line.key for line in lines if line.key in changed)
    return Plan(tuple(targets)), replace(basis, absent=absent, missing=tuple(missing))


def _let_go(planned: Planned, inventory: Inventory, key_of: InventoryKey) -> Iterator[tuple[str, str]]:
    """Yield target and `section/part/ID` of each line of a single object that a document leaves alone."""
    lines = released_lines(inventory, planned.declared, planned.live, planned.run.kinds, key_of)
    yield from ((target, f"{section}/{part}/{number}") for target, section, part, number in lines)


def _by_target(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for target, name in sorted(pairs):
        names[target] = (*names.get(target, ()), name)
    return names


def _missing(planned: Planned, target: DesiredTarget, lines: Some[ObjectLine]) -> Iterator[ObjectKey]:
    """Yield the lines of a target whose objects a whole list lacks."""
    for section, part, _, read in _collections_read(planned, target):
        ids = {record.id for record in read.own if not record.below}
        for line in lines:
            if line.key[1:3] == (section.kind, part.name) and line.id not in ids:
                yield line.key


def _wanted(
    planned: Planned, target: DesiredTarget, plan: TargetPlan, name: str, basis: Basis
) -> Iterator[tuple[Section, Collection, Key, LiveRecord]]:
    """Yield the objects of a target that are declared and live, and of which the list has no such line.

    Of several objects with one name, those are known that have a line of it.
    """
    contains = planned.run.inventory.contains
    is_renamed = was_renamed(basis.seen, name, basis.path(name, plan))
    for section, part, declared_items, read in _collections_read(planned, target):
        records = {record.id: record for record in read.own}
        released_now = released_ids(section, part, planned.live)
        place = target.target, section.kind, part.name
        exchanged = planned.live.recorded.get(place, NOTHING_RECORDED).exchanged
        target_ids = known_ids(section, part, planned.live)
        for called, ids in _live_ids(part, declared_items, read, target_ids, exchanged):
            for number in ids - released_now:
                key = (name, section.kind, part.name, number)
                before = basis.seen.objects.get(key)
                is_known = len(ids) == 1 or (before is not None and before.name == called)
                if is_known and before != line_of(key, called, basis, contains, is_renamed=is_renamed):
                    yield section, part, called, records[number]


def _live_ids(
    part: Collection,
    declared_items: DeclaredItems,
    objects: Objects,
    target_ids: Mapping[Key, int],
    exchanged: Mapping[Key, int],
) -> Iterator[tuple[Key, frozenset[int]]]:
    """Yield each declared name with the IDs of the live objects that have it, or a former one that nothing else has.

    Of objects that exchange names, the inventory alone knows which is which: a name that it knows not has none.
    """
    ids: dict[Key, set[int]] = {}
    own = {record.id: record for record in objects.own if record.id is not None and not record.below}
    for number, record in own.items():
        for name in record.names:
            ids.setdefault(part.identity(name), set()).add(number)
    names = {part.identity(name) for name, resource in declared_items.items() if resource is not None}
    in_circles = exchanged_names(declared_items, part.identity)
    for name, resource in declared_items.items():
        if part.identity(name) in in_circles:
            yield name, frozenset(own.keys() & {exchanged.get(part.identity(name))})
        elif resource is not None:
            former = {part.identity(old) for old in getattr(resource, "renamed_from", ())}
            accepted = {part.identity(name), *(former - names)}
            meant = {target_ids[spelling] for spelling in accepted if spelling in target_ids}
            yield name, frozenset().union(meant & own.keys(), *(ids.get(spelling, ()) for spelling in accepted))


def _with_digest(
    planned: Planned, target: DesiredTarget, plan: TargetPlan, name: str, lines: Some[ObjectLine]
) -> TargetPlan:
    """Return a target of the plan with the digest of what is declared, and whether its changes leave nothing undone.

    A section that is not applicable counts as done, unless a line of the inventory there awaits its deletion.

    Args:
        planned: all that is known.
        target: with all its sections, also those that are not selected.
        plan: of the target.
        name: as the inventory has it.
        lines: of its objects.
    """
    declared, read_at = planned.declared.desired, planned.live.read_at
    left_out = {finding.address.section for finding in plan.findings_of("not_applicable")}
    is_awaited = any(line.section in left_out for line in lines)
    is_complete = plan.sections.keys() | left_out >= {section.kind for section in target.sections}
    is_left = (
        is_awaited or name in planned.absences.keeping_targets or target.target in planned.cut or bool(plan.problems)
    )
    due = (
        moment
        for section, part, _, read in _collections_read(planned, target)
        for moment in due_moments(section, part, read.own, declared.grace, read_at)
    )
    again = again_on(target.exceptions, due, read_at.date())
    return replace(plan, digest=digest_of(target), again=again, done=is_complete and not is_left)


def successions(planned: Planned) -> Iterator[str]:
    """Yield one sentence about the tokens that stay beside their successors for a while; nothing if there are none.

    Nothing differs yet: a later run deletes them.
    """
    grace, read_at = planned.declared.desired.grace, planned.live.read_at
    ends = sorted(
        end
        for target in planned.declared.desired.targets
        for section, part, _, read in _collections_read(planned, target)
        for end in ends_of_grace(section, part, read.own, grace, read_at)
    )
    if ends:
        first = f"{ends[0].astimezone(UTC):%Y-%m-%d %H:%M UTC}"
        ending = "a run after {} deletes it" if len(ends) == 1 else "runs after {} delete them"
        yield f"{counted(len(ends), 'rotated token')} beside a successor: {ending.format(first)}"


def _collections_read(
    planned: Planned, target: DesiredTarget
) -> Iterator[tuple[Section, Collection, DeclaredItems, Objects]]:
    """Yield the declared collections of a target that were read, with their objects."""
    # Of a target that cannot be planned, the parts are empty because nothing was read: no object is missing there.
    if isinstance(planned.live.absent.get(target.target.identity), Obstacle):
        return
    for section, part, declared_items in collections_of(target, planned.run.kinds):
        read = planned.live.parts.get((target.target, section.kind, part.name))
        if isinstance(read, Objects):
            yield section, part, declared_items, read
