"""The inventory after an apply: which lines it adds, removes and keeps, on top of the list as it is by then. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from reconciler.model.inventory import Inventory, ObjectKey, ObjectLine, TargetLine
from reconciler.model.targets import Key

Contains = Callable[[str], bool]
"""Whether HEAD contains a commit."""

NO_DECLARATIONS: frozenset[tuple[str, str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PartAfter:
    """A declared collection of a target, as a run left it; of a narrowed run, as far as it was selected.

    Attributes:
        target: as the inventory names it.
        section: the section's name.
        part: which of the section's endpoints.
        wanted: by name of each object that the plan wants to exist, the IDs of the live ones, as last read in this run.
        created: the IDs of objects that this run created.
        deleted: the IDs of objects that this run deleted.
        listed: the IDs of all objects, where this run read the whole list last; None where it did not.
    """

    target: str
    section: str
    part: str
    wanted: Mapping[Key, Collection[int]]
    created: Collection[int] = frozenset()
    deleted: Collection[int] = frozenset()
    listed: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class TargetAfter:
    """A target, as a run left it.

    Attributes:
        target: as the inventory names it.
        path: its full path; empty for the instance and the user.
        digest: of its effective spec, as of `model.effective`.
        again: see there.
        done: whether the run was about all of the spec, and all of it is in order or was done. A section that is not
            applicable counts as done, unless a line of the inventory there awaits its deletion.
        wrote: whether the run sent a write there.
    """

    target: str
    path: str
    digest: str
    again: date | None
    done: bool
    wrote: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """An apply, as far as the inventory is about it.

    Attributes:
        commit: the commit whose manifests were applied; empty if there is none, or they are not as committed.
        parts: the collections that were selected, and whose lists were read.
        targets: those that were selected.
        whole: whether the run was neither narrowed nor given other inputs; shards and `--since applied` are whole.
        declared: target, section and part of all that the manifests declare, whatever the run selected.
        unknown: the targets of which that is not known; see `absence.departures`.
        released: target and section of what `unmanaged` leaves alone.
        backwards: whether the list's `applied` stays what it is, since it may be newer than the commit.
    """

    commit: str
    parts: tuple[PartAfter, ...] = ()
    targets: tuple[TargetAfter, ...] = ()
    whole: bool = True
    declared: Collection[tuple[str, str, str]] = NO_DECLARATIONS
    unknown: Collection[str] = frozenset()
    released: Collection[tuple[str, str]] = frozenset()
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Prospect:
    """What an apply of a plan will record, as far as it is known before its first change.

    Attributes:
        run: the apply, as if it had ended before its first change; `TargetAfter.done` says there that nothing is
            missing but the changes of the plan.
        seen: the list that the plan was made from; whatever stands in the list by then and not here is newer.
        absences: the lines whose objects the plan deletes, since they are no longer declared.
    """

    run: Applied
    seen: Inventory
    absences: tuple[ObjectLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """Additions and removals, to be made on top of whatever the list is by then.

    Attributes:
        base: the list that they were made from: of a saved plan, the one that the plan saw.
        added: lines that are new, or have another name or commit.
        gone: objects that this run deleted.
        missing: objects that its lists lack; removed unless newer manifests, which may have made them, were applied.
        left: lines of what is no longer declared, or was released; removed if others have not changed them.
        targets: new lines of targets; None removes one.
        applied: the commit of the manifests that were applied; empty to leave the list's.
    """

    base: Inventory
    added: tuple[ObjectLine, ...] = ()
    gone: frozenset[ObjectKey] = frozenset()
    missing: frozenset[ObjectKey] = frozenset()
    left: Mapping[ObjectKey, ObjectLine] = field(default_factory=dict)
    targets: Mapping[str, TargetLine | None] = field(default_factory=dict)
    applied: str = ""


def changes_of(run: Applied, inventory: Inventory, contains: Contains) -> Changes:
    """Return what an apply adds to a list and removes from it.

    Args:
        run: the apply.
        inventory: the list that the plan was made from.
        contains: of the commits in the list.
    """
    parts = {(part.target, part.section, part.part): part for part in run.parts}
    gone = frozenset((*place, number) for place, part in parts.items() for number in part.deleted)
    missing = frozenset(_missing(parts, inventory)) - gone
    removed = gone | missing
    left = {line.key: line for line in _left(run, inventory, contains) if line.key not in removed}
    added = tuple(
        line
        for line in _wanted(run, inventory, contains)
        if line.key not in removed and inventory.objects.get(line.key) != line
    )
    staying = {key[0] for key in inventory.objects if key not in removed and key not in left}
    staying |= {line.target for line in added} | {line.target for line in inventory.unknown}
    targets: dict[str, TargetLine | None] = {}
    for after in run.targets:
        before = inventory.targets.get(after.target)
        line = _target_line(after, before)
        if line != before and (before or after.done or after.target in staying):
            targets[after.target] = line
    if run.whole:
        known = {target for target, _, _ in run.declared} | {after.target for after in run.targets} | {*run.unknown}
        targets |= dict.fromkeys(inventory.targets.keys() - known - staying)
    applied = "" if run.backwards else run.commit
    return Changes(inventory, added, gone, missing, left, targets, applied)


def undone(inventory: Inventory, deleted: Iterable[ObjectKey], touched: Iterable[str]) -> Changes:
    """Return what a revert changes: it removes the lines of what it deleted and the digests of what it touched."""
    lines = {name: inventory.targets[name] for name in touched if name in inventory.targets}
    without = {name: replace(line, digest="", again=None) for name, line in lines.items() if line.digest}
    return Changes(inventory, gone=frozenset(deleted), targets=without)


def with_changes(theirs: Inventory, changes: Changes, contains: Contains) -> Inventory:
    """Return a list with our additions and removals, which were made from an older version of it.

    A line that others have changed meanwhile stays as they left it. A target that both touched has no digest.

    Args:
        theirs: the list, as it is now.
        changes: ours.
        contains: whether the commit that we applied contains another.
    """
    base = changes.base
    moved = theirs.applied != base.applied and not contains(theirs.applied)
    removed = changes.gone if moved else changes.gone | changes.missing
    objects = {key: line for key, line in theirs.objects.items() if key not in removed}
    for key, line in changes.left.items():
        if objects.get(key) == line:
            del objects[key]
    for line in changes.added:
        if theirs.objects.get(line.key) == base.objects.get(line.key):
            objects[line.key] = line
    kept = {key[0] for key in objects} | {line.target for line in theirs.unknown}
    targets = dict(theirs.targets)
    for name, target in changes.targets.items():
        other = theirs.targets.get(name)
        alone = other == base.targets.get(name)
        if target is None:
            if alone and name not in kept:
                targets.pop(name, None)
        else:
            targets[name] = target if alone else replace(other or target, digest="", again=None)
    applied = theirs.applied if moved or not changes.applied else changes.applied
    return replace(theirs, applied=applied, targets=targets, objects=objects)


def _wanted(run: Applied, inventory: Inventory, contains: Contains) -> Iterable[ObjectLine]:
    """Yield the line of each object that is wanted and live, as far as it is known which one it is.

    Of several objects with one name, those are known that have a line of it, and those that this run created: a token
    and its successor.
    """
    paths = {name: line.path for name, line in inventory.targets.items() if line.path}
    renamed = {after.target for after in run.targets if paths.get(after.target, after.path) != after.path}
    for part in run.parts:
        for name, numbers in part.wanted.items():
            for number in numbers:
                line = ObjectLine(part.target, part.section, part.part, name, number, run.commit)
                before = inventory.objects.get(line.key)
                is_known = number in part.created or (before is not None and before.name == name)
                if len(numbers) > 1 and not is_known:
                    continue
                # An older commit declares the object by its older name, below the older path of its target.
                same = before is not None and before.name == name and part.target not in renamed
                if before is not None and same and (not run.commit or (before.at and contains(before.at))):
                    yield before
                else:
                    yield line


def _missing(parts: Mapping[tuple[str, str, str], PartAfter], inventory: Inventory) -> Iterable[ObjectKey]:
    """Yield the listed objects that a whole list of the run lacks."""
    for key in inventory.objects:
        part = parts.get(key[:3])
        if part and part.listed is not None and key[3] not in part.listed:
            yield key


def _left(run: Applied, inventory: Inventory, contains: Contains) -> Iterable[ObjectLine]:
    """Yield the lines of what is no longer declared, or was released, as far as the history of the run knows them."""
    if not run.whole:
        return
    for line in inventory.objects.values():
        released = (line.target, line.section) in run.released
        declared = line.target in run.unknown or line.key[:3] in run.declared
        if (released or not declared) and line.at and contains(line.at):
            yield line


def _target_line(target: TargetAfter, before: TargetLine | None) -> TargetLine:
    """Return the line of a target that was selected."""
    if target.done:
        return TargetLine(target.target, target.path, target.digest, target.again)
    if before is None or (target.wrote and before.digest != target.digest):
        return TargetLine(target.target, target.path)  # of what is written already, an older spec knows nothing
    return replace(before, path=target.path)
