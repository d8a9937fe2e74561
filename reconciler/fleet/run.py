"""From desired state to a plan: read, plan, look up the IDs that are still missing, plan again. Nothing here can write.

Two targets that turn out to be one are held back: whatever one of them writes, the other would undo, or do again.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.fleet.causes import find_causes, refuse_unless_api
from reconciler.fleet.missing_targets import look_up_absent
from reconciler.live.read import EarlyParts, read_live
from reconciler.live.records import is_doomed, look_up, look_up_paths, with_lookups
from reconciler.model.creation import ToCreate
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.progress import Progress
from reconciler.model.protocols import Concurrency, Reader, TimedReader
from reconciler.model.resource import Found, Resource
from reconciler.model.state import (
    DesiredState,
    DesiredTarget,
    LivePart,
    LiveState,
    Lookup,
    PartAddress,
    Reference,
    Unreadable,
)
from reconciler.model.targets import Identity, Level, Target
from reconciler.planning.creation import empty_parts, existing, from_archives, with_arrivals
from reconciler.planning.obstacles import with_obstacles
from reconciler.planning.planner import make_plan

LOG = logging.getLogger(__name__)

IDS = Mapping[Reference, int | Obstacle]


@dataclass(frozen=True, slots=True)
class Move:
    """Where a project is that has moved.

    Attributes:
        number: its numeric ID.
        path: its full path; None if unknown.
        day: when its own deletion was scheduled, which renames it; empty if it is not, or only with its group.
    """

    number: int
    path: str | None = None
    day: str = ""

    @property
    def doomed(self) -> bool:
        """Whether its deletion is scheduled, or that of a group above it."""
        return bool(self.day) or is_doomed(self.path or "")

    def __str__(self) -> str:
        """`acme/api (ID 100)`."""
        return f"ID {self.number}" if self.path is None else f"{self.path} (ID {self.number})"

    def obstacles(self, target: Target, *, follow: bool) -> Iterator[Obstacle]:
        """Yield why it is not written to, if it is not.

        Args:
            target: as the manifest names it.
            follow: whether projects that have moved are written to.
        """
        if self.doomed:
            how = f"since {self.day}" if self.day else "with its group"
            reason = f"scheduled for deletion {how}, and called {self} until then"
            yield Obstacle(target.address, reason, "restore it, or remove it from the manifests", effect="read only")
        elif not follow:
            remedy = "use its new path in the manifest, or add --follow-moved"
            yield Obstacle(target.address, f"moved to {self}", remedy, effect="read only")


def moved_targets(moved: Mapping[Target, Move], *, follow: bool) -> tuple[Obstacle, ...]:
    """Return an obstacle for each target that has moved and is not written to."""
    return tuple(each for target, move in moved.items() for each in move.obstacles(target, follow=follow))


@dataclass(frozen=True, slots=True)
class Known:
    """Facts that need not be asked for.

    Attributes:
        ids: numeric IDs that need not be asked for.
        targets: all that the manifests declare, also beyond what is planned.
        obstacles: why some targets are not changed, whatever is read.
        moved: returns, after the reading, where the projects are whose paths redirect.
        parts: what has been read, and what was wanted of it.
        absent: see `LiveState.absent`.
        importing: the targets that an import is filling at the moment.
    """

    ids: Mapping[Reference, int] = field(default_factory=dict)
    targets: tuple[DesiredTarget, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    moved: Callable[[], Mapping[Target, Move]] = dict
    parts: EarlyParts = field(default_factory=dict)
    absent: Mapping[Identity, ToCreate | Obstacle] = field(default_factory=dict)
    importing: frozenset[Target] = frozenset()


NOTHING_KNOWN = Known()

MakePlan = Callable[[DesiredState, LiveState, Kinds, dict[Target, TargetPlan]], tuple[Plan, frozenset[Lookup]]]
"""See `make_plan`."""


def draw_plan(
    desired: DesiredState,
    reader: TimedReader,
    kinds: Kinds,
    concurrency: Concurrency,
    *,
    known: Known = NOTHING_KNOWN,
    progress: Progress | None = None,
    api_url: str = "",
    make: MakePlan = make_plan,
) -> Plan:
    """Return the plan that turns live state into the desired one: see `read_and_plan`."""
    plan, _ = read_and_plan(
        desired, reader, kinds, concurrency, known=known, progress=progress, api_url=api_url, make=make
    )
    return plan


def read_and_plan(
    desired: DesiredState,
    reader: TimedReader,
    kinds: Kinds,
    concurrency: Concurrency,
    *,
    known: Known = NOTHING_KNOWN,
    progress: Progress | None = None,
    api_url: str = "",
    make: MakePlan = make_plan,
) -> tuple[Plan, LiveState]:
    """Return the plan that turns live state into the desired one, with as few reads as it takes, and what was read.

    Args:
        desired: what is wanted.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        known: what need not be asked for.
        progress: counts the steps.
        api_url: of the service, to be doubted where nothing at all is found there.
        make: makes the plan of what was read.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API, or the token's owner sees nothing.
        ServiceError: one that `live.ENDS_A_RUN`. Any other failure is a problem in the plan.
    """
    live = read_known(desired, reader, kinds, concurrency, known=known, progress=progress)
    unreadable = [part for part in live.parts.values() if isinstance(part, Unreadable)]
    if api_url and unreadable and len(unreadable) == len(live.parts):
        refuse_unless_api(reader, api_url)
    if unreadable:
        live = find_causes(desired, live, reader, kinds, concurrency)
    return _plan_from(desired, live, reader, kinds, concurrency, known=known, make=make)


def read_known(
    desired: DesiredState,
    reader: TimedReader,
    kinds: Kinds,
    concurrency: Concurrency,
    *,
    known: Known = NOTHING_KNOWN,
    progress: Progress | None = None,
) -> LiveState:
    """Read what is declared, as far as it is not known already: see `read_live`. Nothing is read of what is absent."""
    if not known.absent:
        return read_live(desired, reader, kinds, concurrency, progress, early=known.parts)
    there = existing(desired, known.absent)
    live = read_live(there, reader, kinds, concurrency, progress, early=known.parts)
    absent = (each for each in desired.targets if each.target.identity in known.absent)
    return replace(live, parts={**live.parts, **dict(empty_parts(absent, kinds))}, absent=known.absent)


def plan_from(
    desired: DesiredState,
    live: LiveState,
    reader: Reader,
    kinds: Kinds,
    concurrency: Concurrency,
    *,
    known: Known = NOTHING_KNOWN,
) -> Plan:
    """Return the plan for what was read: see `draw_plan`. Only IDs that are missing are asked for."""
    plan, _ = _plan_from(desired, live, reader, kinds, concurrency, known=known, make=make_plan)
    return plan


def _plan_from(
    desired: DesiredState,
    live: LiveState,
    reader: Reader,
    kinds: Kinds,
    concurrency: Concurrency,
    *,
    known: Known,
    make: MakePlan,
) -> tuple[Plan, LiveState]:
    ids: dict[Reference, int | Obstacle] = {**known.ids, **live.ids}
    creates = any(each.creation is not None for each in known.targets)
    archives = from_archives(known.targets, live.absent) if creates else {}
    live = replace(live, ids=ids, parts=_forced(live) if desired.forced else live.parts, archives=archives)
    _warn_of_unshown(desired, live)
    earlier: dict[Target, TargetPlan] = {}
    plan, missing = make(desired, live, kinds, earlier)
    while missing:
        absent = look_up_absent(missing, live, reader, concurrency, targets=desired.targets, whole=known.targets)
        live = replace(live, ids={**live.ids, **absent})
        live = with_lookups(live, [each for each in missing if each not in live.ids], reader, concurrency)
        plan, missing = make(desired, live, kinds, earlier)
    if known.importing:
        plan = replace(
            plan,
            targets=tuple(
                replace(each, importing=True) if each.target in known.importing else each for each in plan.targets
            ),
        )
    if archives:
        plan = with_arrivals(plan, archives)
    moved = {
        Reference(target.level, str(path).casefold()): move.number
        for target, move in known.moved().items()
        for path in (target.ref, move.path)
        if path is not None
    }
    targets = {
        target.target: target
        for target in (*known.targets, *desired.targets)
        if target.target.identity not in live.absent
    }
    twins = _twins(plan, targets.values(), {**live.ids, **moved}, reader, concurrency)
    held = {each.where.target for each in known.obstacles}
    twins = [each for each in twins if each.where.target not in held]
    return with_obstacles(plan, [*twins, *known.obstacles], kinds), live


def _twins(
    plan: Plan, targets: Collection[DesiredTarget], ids: IDS, reader: Reader, concurrency: Concurrency
) -> list[Obstacle]:
    """Return why targets that are one and the same are not changed; ask only where a change might be made twice."""
    numbers = {reference: number for reference, number in ids.items() if isinstance(number, int)}
    busy = {(each.target, section.section) for each in plan.targets for section in each.sections if section.changes}
    for level in (Level.GROUP, Level.PROJECT):
        by_number, by_path = _doubtful(level, targets, busy, numbers)
        if len(by_path) < len(by_number):
            found = look_up(by_path, reader, concurrency)
            numbers |= {reference: number for reference, number in found.items() if isinstance(number, int)}
            continue
        for target, path in look_up_paths(by_number, reader, concurrency).items():
            if isinstance(path, str) and isinstance(target.ref, int):
                numbers[Reference(level, path.casefold())] = target.ref
    same: dict[tuple[Level, int], list[DesiredTarget]] = {}
    for each in targets:
        number = _number(each.target, numbers)
        if number is not None:
            same.setdefault((each.target.level, number), []).append(each)
    return [
        Obstacle(target.target.address, _reason(target, number, twins), effect="read only")
        for (_, number), twins in same.items()
        if len(twins) > 1
        for target in twins
    ]


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


def _reason(target: DesiredTarget, number: int, twins: Iterable[DesiredTarget]) -> str:
    others = " and ".join(f"{other.target} ({other.origin})" for other in twins if other is not target)
    return f"is the same {target.target.level} as {others}, ID {number}: keep one of these documents"


def _forced(live: LiveState) -> dict[PartAddress, LivePart]:
    """Return the parts that were read, with fields that the service does not show as if they were there and empty."""
    return {
        address: replace(part, unshown={}) if isinstance(part, Found) else part for address, part in live.parts.items()
    }


def _warn_of_unshown(desired: DesiredState, live: LiveState) -> None:
    """Warn once of each field that is declared and that the service does not show."""
    places: dict[tuple[str, str, str], list[Target]] = {}
    for target in desired.targets:
        for section in target.sections:
            for part, wanted in section.wanted.items():
                found = live.parts[target.target, section.kind, part]
                if isinstance(found, Found) and isinstance(wanted, Resource):
                    for name in wanted.model_fields_set & found.unshown.keys():
                        places.setdefault((section.kind, name, found.unshown[name]), []).append(target.target)
    for (kind, name, other), unshown in places.items():
        more = f" and {len(unshown) - 1} more" if len(unshown) > 1 else ""
        LOG.warning(
            "%s.%s of %s%s cannot be compared: this server does not show them; they are written when %s changes, or "
            "with --force-events",
            kind,
            name,
            unshown[0],
            more,
            other,
        )
