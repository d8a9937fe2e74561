"""The stage that finds targets that are one and the same: what one of them writes, the other would undo or do again."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.engine.records import look_up, look_up_paths
from reconciler.engine.survey import Added, Move, Survey
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget, Reference
from reconciler.model.targets import Level, Target


def twins(run: Survey) -> Added:
    """Tell which targets are one and the same, and so are not changed; ask only where a change might be made twice."""
    targets = _declared(run)
    numbers = {reference: number for reference, number in run.live.ids.items() if isinstance(number, int)}
    numbers |= _numbers_of_moved(run)
    busy = {(change.address.target, change.address.section) for change in run.planned.changes}
    for level in (Level.GROUP, Level.PROJECT):
        by_number, by_path = _doubtful(level, targets, busy, numbers)
        if len(by_path) < len(by_number):
            answers = look_up(by_path, run.reader)
            numbers |= {reference: number for reference, number in answers.items() if isinstance(number, int)}
            continue
        for target, path in look_up_paths(by_number, run.reader).items():
            if isinstance(path, str) and isinstance(target.ref, int):
                numbers[Reference(level, path.casefold())] = target.ref
    same: dict[tuple[Level, int], list[DesiredTarget]] = {}
    for declared in targets:
        number = _number(declared.target, numbers)
        if number is not None:
            same.setdefault((declared.target.level, number), []).append(declared)
    told = {target for target, move in run.moved.items() if move.doomed or not run.follow_moved}
    obstacles = (
        Obstacle(target.target.address, _reason(target, number, alike, run.moved), effect="read only")
        for (_, number), alike in same.items()
        if len(alike) > 1
        for target in alike
        if target.target not in told  # else it is a problem already
    )
    return {"obstacles": (*run.obstacles, *obstacles)}


def _declared(run: Survey) -> Collection[DesiredTarget]:
    """Return all targets that are there, each once, whether they are planned or not."""
    gone = run.live.absent.keys() - {target.identity for target in run.moved}
    targets = (*run.whole.targets, *run.desired.targets)
    return {target.target: target for target in targets if target.target.identity not in gone}.values()


def _numbers_of_moved(run: Survey) -> dict[Reference, int]:
    """Return the IDs of the projects that have moved, by where they were and where they are."""
    return {
        Reference(target.level, str(path).casefold()): move.number
        for target, move in run.moved.items()
        for path in (target.ref, move.path)
        if path is not None
    }


def _doubtful(
    level: Level,
    targets: Iterable[DesiredTarget],
    busy: Collection[tuple[Target, str]],
    numbers: Mapping[Reference, int],
) -> tuple[set[Target], set[Reference]]:
    """Return the targets given by ID and by path that may be the same, where one of the two is to change.

    Both must declare the section that changes, and nothing that was read identifies them.
    """
    placed = {number for reference, number in numbers.items() if reference.level is level}
    by_number: dict[str, set[Target]] = {}
    by_path: dict[str, set[Target]] = {}
    for declared in targets:
        target = declared.target
        unknown = target.ref not in placed if isinstance(target.ref, int) else _number(target, numbers) is None
        if target.level is level and unknown:
            for section in declared.sections:
                (by_number if isinstance(target.ref, int) else by_path).setdefault(section.kind, set()).add(target)
    some, others = set(), set()
    for name in by_number.keys() & by_path.keys():
        changing = {target for target, section in busy if section == name}
        # A target that stays as it is may be the same as one that changes.
        some |= by_number[name] & changing if changing.isdisjoint(by_path[name]) else by_number[name]
        others |= by_path[name] & changing if changing.isdisjoint(by_number[name]) else by_path[name]
    return some, {Reference(level, str(target.ref).casefold()) for target in others}


def _number(target: Target, numbers: Mapping[Reference, int]) -> int | None:
    if isinstance(target.ref, str):
        return numbers.get(Reference(target.level, target.ref.casefold()))
    return target.ref


def _reason(target: DesiredTarget, number: int, alike: Sequence[DesiredTarget], moved: Mapping[Target, Move]) -> str:
    others = [other for other in alike if other is not target]
    if target.target in moved:
        origins = " and ".join(other.origin for other in others)
        return f"moved to {moved[target.target]}, which is declared too ({origins}): correct this path first"
    former = next((other for other in others if other.target in moved), None)
    if former is not None:
        return f"is declared by its former path {former.target.ref} too ({former.origin}): correct that path first"
    named = " and ".join(f"{other.target} ({other.origin})" for other in others)
    return f"is the same {target.target.level} as {named}, ID {number}: keep one of these documents"
