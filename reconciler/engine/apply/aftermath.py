"""What an apply means for the inventory: which of its deletions by absence are stale, and what it leaves. Pure."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as Some
from dataclasses import replace

from reconciler.model.endpoints import Collection
from reconciler.model.inventory import Inventory, ObjectKey, target_name
from reconciler.model.item import Change, Create, Delete, Outcome, Status
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.resource import Objects
from reconciler.model.state import LivePart, PartAddress
from reconciler.model.targets import PATHLESS, Level, Target
from reconciler.model.upkeep import Applied, PartAfter, TargetAfter

SENT = frozenset({Status.DONE, Status.DROPPED, Status.FAILED})
"""The outcomes of changes for which a write may have been sent."""

Names = Mapping[Target, str]
"""The targets as the inventory names them."""


def names_of(
    targets: Iterable[Target], selected: Iterable[TargetAfter], inventory: Inventory | None
) -> dict[Target, str]:
    """Return what the inventory calls each target, as far as its numeric ID is known.

    Args:
        targets: those of a plan.
        selected: those of which the plan knows it.
        inventory: the list, which knows others by their paths; None if there is none.
    """
    read = {(after.target.partition(" ")[0], after.path.casefold()): after.target for after in selected}
    names = dict[Target, str]()
    for target in targets:
        if target.level in PATHLESS or isinstance(target.ref, int):
            number = target.ref if isinstance(target.ref, int) else None
            names[target] = target_name(target.level, number)
            continue
        path = str(target.ref)
        name = read.get((str(target.level), path.casefold()))
        if name is None and inventory is not None:
            name = inventory.target_at(target.level, path)
        if name is not None:
            names[target] = name
    return names


def unnumbered(run: Applied) -> dict[str, Target]:
    """Return the selected targets that the inventory cannot name yet, by what stands for the name: their path."""
    names = (after.target.partition(" ") for after in run.targets)
    return {
        f"{level} {path}": Target(Level(level), path)
        for level, _, path in names
        if path and not (path.isascii() and path.isdigit())
    }


def with_numbers(run: Applied, numbers: Mapping[str, int]) -> Applied:
    """Return an apply whose targets have the names of the inventory; the others of `unnumbered` are left out.

    Args:
        run: the apply.
        numbers: the numeric ID of each target, by what stands for its name.
    """
    lacking = unnumbered(run)
    names = {name: target_name(target.level, numbers.get(name)) for name, target in lacking.items()}
    left_out = lacking.keys() - numbers.keys()
    return replace(
        run,
        parts=tuple(
            replace(part, target=names.get(part.target, part.target))
            for part in run.parts
            if part.target not in left_out
        ),
        targets=tuple(
            replace(after, target=names.get(after.target, after.target))
            for after in run.targets
            if after.target not in left_out
        ),
        declared=frozenset((names.get(target, target), section, part) for target, section, part in run.declared),
        released=frozenset((names.get(target, target), section) for target, section in run.released),
    )


def without(plan: Plan, stale: Mapping[ObjectKey, str], names: Names) -> tuple[Plan, dict[str, Plan]]:
    """Return a plan without its stale deletions, and these as plans, each by the reason.

    Args:
        plan: the plan.
        stale: why each object of the inventory is not deleted any more.
        names: of the plan's targets.
    """

    def reason(change: Change) -> str:
        if not isinstance(change, Delete) or change.read.id is None:
            return ""
        address = change.address
        return stale.get((names.get(address.target, ""), address.section, address.part, change.read.id), "")

    def only(wanted: str) -> Plan:
        return replace(
            plan, targets=tuple(_kept(planned, lambda change: reason(change) == wanted) for planned in plan.targets)
        )

    return only(""), {reason_why: only(reason_why) for reason_why in dict.fromkeys(stale.values())}


def aftermath(
    run: Applied,
    outcomes: Iterable[TargetPlan],
    names: Names,
    *,
    narrowed: Some[str] | None = None,
) -> Applied:
    """Return an apply as it ended.

    Args:
        run: as if it had ended before its first change.
        outcomes: the targets that had changes, with what became of these.
        names: of the targets that were applied; the others, such as those of other shards, are left out.
        narrowed: where the run was narrowed after its plan was made, the targets that come first nevertheless; only
            what was changed counts in others. None for the whole plan.
    """
    known = {names[target.target]: target for target in outcomes if target.target in names}
    done: dict[tuple[str, str, str], list[Outcome]] = {}
    for name, target in known.items():
        for outcome in target.outcomes:
            address = outcome.change.address
            done.setdefault((name, address.section, address.part), []).append(outcome)
    applied = {*names.values()}
    begun = {
        place
        for place, outcomes_there in done.items()
        if any(outcome.status is not Status.SKIPPED for outcome in outcomes_there)
    }
    parts = [
        _part_after(part, done.get((part.target, part.section, part.part), ()))
        for part in run.parts
        if part.target in applied
        and (narrowed is None or part.target in narrowed or (part.target, part.section, part.part) in begun)
    ]
    targets = [
        _target_after(after, known.get(after.target), narrowed is None or after.target in narrowed)
        for after in run.targets
        if after.target in applied
        and (narrowed is None or after.target in narrowed or any(place[0] == after.target for place in begun))
    ]
    return replace(run, parts=tuple(parts), targets=tuple(targets), whole=run.whole and narrowed is None)


def as_read(run: Applied, read: Mapping[PartAddress, LivePart], names: Names, kinds: Kinds) -> Applied:
    """Return an apply whose collections are as it read them last, such as those of targets that it has created.

    Args:
        run: as if it had ended before its first change.
        read: what it has read since.
        names: of its targets.
        kinds: all kinds.
    """
    live = {(names[target], *place): part for (target, *place), part in read.items() if target in names}
    parts = []
    for part in run.parts:
        shown = live.get((part.target, part.section, part.part))
        collection = kinds[part.section].part(part.part)
        if not isinstance(shown, Objects) or not isinstance(collection, Collection):
            parts.append(part)
            continue
        identity = collection.identity
        called = {
            record.id: set(map(identity, record.names))
            for record in shown.own
            if record.id is not None and not record.below
        }
        wanted = {
            name: {number for number, others in called.items() if number in known or identity(name) in others}
            for name, known in part.wanted.items()
        }
        parts.append(replace(part, wanted=wanted, listed=frozenset(called)))
    return replace(run, parts=tuple(parts))


def deleted_keys(outcomes: Iterable[TargetPlan], names: Names) -> set[ObjectKey]:
    """Return the objects that a run deleted, as the inventory knows them."""
    return {
        (names[target.target], change.address.section, change.address.part, change.read.id)
        for target in outcomes
        if target.target in names
        for outcome in target.outcomes
        if isinstance(change := outcome.change, Delete) and outcome.status is Status.DONE and change.read.id is not None
    }


def _kept(target: TargetPlan, keeps: Callable[[Change], bool]) -> TargetPlan:
    return target.with_changes(lambda change: change if keeps(change) else None)


def _part_after(part: PartAfter, outcomes: Iterable[Outcome]) -> PartAfter:
    """Return a collection after its changes."""
    wanted = {name: set(numbers) for name, numbers in part.wanted.items()}
    created, deleted = set[int](), set[int]()
    for outcome in outcomes:
        change = outcome.change
        name, made = change.address.name, outcome.created.id if outcome.created else None
        if isinstance(change, Create) and name is not None and made is not None:
            created.add(made)
            wanted.setdefault(name, set()).add(made)
        elif isinstance(change, Delete) and outcome.status is Status.DONE and change.read.id is not None:
            deleted.add(change.read.id)
    listed = None if part.listed is None else ({*part.listed} | created) - deleted
    live = {name: numbers - deleted for name, numbers in wanted.items()}
    return replace(part, wanted=live, created=frozenset(created), deleted=frozenset(deleted), listed=listed)


def _target_after(after: TargetAfter, target: TargetPlan | None, is_whole: bool) -> TargetAfter:
    """Return a target after its changes; of a narrowed run, it is not known to be done."""
    if target is None:
        return replace(after, done=after.done and is_whole)
    wrote = any(attempt.status in SENT for attempt in target.outcomes)
    return replace(after, done=after.done and is_whole and target.in_order, wrote=wrote)
