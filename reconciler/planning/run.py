"""Drawing up a plan: read, plan, look up the IDs that are still missing, plan again. It cannot write.

Two targets that turn out to be one are held back: whatever one of them writes, the other would undo, or do again.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.live.read import read_live
from reconciler.live.records import look_up, look_up_paths
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.progress import Progress
from reconciler.model.protocols import Reader, TimedReader
from reconciler.model.resource import Found, Resource
from reconciler.model.state import (
    DesiredState,
    DesiredTarget,
    LivePart,
    LiveState,
    PartAddress,
    Reference,
    Unknown,
    Unreadable,
)
from reconciler.model.targets import Level, Target
from reconciler.planning.causes import find_causes, refuse_unless_api
from reconciler.planning.planner import make_plan
from reconciler.planning.selection import hold_back

LOG = logging.getLogger(__name__)

IDS = Mapping[Reference, int | Unknown]


@dataclass(frozen=True, slots=True)
class Move:
    """Where a project is that has moved.

    Attributes:
        number: its numeric ID.
        path: its full path; None where the service does not tell.
    """

    number: int
    path: str | None = None

    def __str__(self) -> str:
        """`acme/api (ID 100)`."""
        return f"ID {self.number}" if self.path is None else f"{self.path} (ID {self.number})"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before anything is read.

    Attributes:
        ids: numeric IDs that need not be asked for.
        targets: all that the manifests declare, also beyond what is planned.
        held: the targets that cannot be planned, each with its reason.
        moved: tells, after the reading, where the projects are now whose paths redirect.
    """

    ids: Mapping[Reference, int] = field(default_factory=dict)
    targets: tuple[DesiredTarget, ...] = ()
    held: Mapping[Target, str] = field(default_factory=dict)
    moved: Callable[[], Mapping[Target, Move]] = dict


NOTHING_KNOWN = Known()


def draw_plan(
    desired: DesiredState,
    reader: TimedReader,
    kinds: Kinds,
    concurrency: int,
    *,
    known: Known = NOTHING_KNOWN,
    progress: Progress | None = None,
    api_url: str = "",
) -> Plan:
    """Return the plan that turns live state into the desired one, with as few reads as it takes.

    Args:
        desired: what is wanted.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        known: what need not be asked for.
        progress: is told how far it is.
        api_url: of the service, to be doubted where nothing at all is found there.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API, or the token's owner sees nothing.
        ServiceError: one that `live.ENDS_A_RUN`. Any other failure is a problem in the plan.
    """
    live = read_live(desired, reader, kinds, concurrency, progress)
    if api_url and live.parts and all(isinstance(part, Unreadable) for part in live.parts.values()):
        refuse_unless_api(reader, api_url)
    live = find_causes(desired, live, reader, kinds, concurrency)
    return plan_from(desired, live, reader, kinds, concurrency, known=known)


def plan_from(
    desired: DesiredState,
    live: LiveState,
    reader: Reader,
    kinds: Kinds,
    concurrency: int,
    *,
    known: Known = NOTHING_KNOWN,
) -> Plan:
    """Return the plan for what was read: see `draw_plan`. Only IDs that are missing are asked for."""
    ids: dict[Reference, int | Unknown] = {**known.ids, **live.ids}
    live = replace(live, ids=ids, parts=_forced(live) if desired.forced else live.parts)
    _tell_what_is_not_shown(desired, live)
    plan, missing = make_plan(desired, live, kinds)
    while missing:
        live = replace(live, ids={**live.ids, **look_up(missing, reader, concurrency)})
        plan, missing = make_plan(desired, live, kinds)
    moved = {
        Reference(scope.level, str(path).casefold()): move.number
        for scope, move in known.moved().items()
        for path in (scope.ref, move.path)
        if path is not None
    }
    targets = {target.target: target for target in (*known.targets, *desired.targets)}
    twins = _Twins(plan, tuple(targets.values()), {**live.ids, **moved})
    return hold_back(plan, {**twins.reasons(reader, concurrency), **known.held})


class _Twins:
    """Finds the targets that are one and the same group or project."""

    def __init__(self, plan: Plan, targets: tuple[DesiredTarget, ...], ids: IDS) -> None:
        self._ids = {reference: number for reference, number in ids.items() if isinstance(number, int)}
        self._targets = targets
        self._busy = {
            (each.target, section.section) for each in plan.targets for section in each.sections if section.changes
        }

    def reasons(self, reader: Reader, concurrency: int) -> dict[Target, str]:
        """Return why each of them cannot be planned. Asks only where a change might be made twice."""
        for level in (Level.GROUP, Level.PROJECT):
            self._ask(level, reader, concurrency)
        same: dict[tuple[Level, int], list[DesiredTarget]] = {}
        for target in self._targets:
            number = self._number(target.target)
            if number is not None:
                same.setdefault((target.target.level, number), []).append(target)
        return {
            target.target: _reason(target, number, twins)
            for (_, number), twins in same.items()
            if len(twins) > 1
            for target in twins
        }

    def _ask(self, level: Level, reader: Reader, concurrency: int) -> None:
        """Ask for the paths of targets given by ID, or for the IDs of those given by path if these are fewer."""
        scopes, references = self._doubtful(level)
        if len(references) < len(scopes):
            found = look_up(references, reader, concurrency)
            self._ids |= {reference: number for reference, number in found.items() if isinstance(number, int)}
            return
        for target, path in look_up_paths(scopes, reader, concurrency).items():
            if isinstance(path, str) and isinstance(target.ref, int):
                self._ids[Reference(level, path.casefold())] = target.ref

    def _doubtful(self, level: Level) -> tuple[set[Target], set[Reference]]:
        """Return the targets given by ID and by path that may be the same, where one of the two is to change.

        Both must declare the section that changes, and nothing that was read may tell which they are.
        """
        placed = {number for reference, number in self._ids.items() if reference.level is level}
        by_number: dict[str, list[Target]] = {}
        by_path: dict[str, list[Target]] = {}
        for target in self._targets:
            scope = target.target
            unknown = scope.ref not in placed if isinstance(scope.ref, int) else self._number(scope) is None
            if scope.level is level and unknown:
                for section in target.sections:
                    (by_number if isinstance(scope.ref, int) else by_path).setdefault(section.kind, []).append(scope)
        numbers, paths = set(), set()
        for name in by_number.keys() & by_path.keys():
            busy = {scope for scope, section in self._busy if section == name}
            # A target that stays as it is may be the same as one that changes.
            numbers |= set(by_number[name]) & (busy if busy.isdisjoint(by_path[name]) else set(by_number[name]))
            paths |= set(by_path[name]) & (busy if busy.isdisjoint(by_number[name]) else set(by_path[name]))
        return numbers, {Reference(level, str(scope.ref).casefold()) for scope in paths}

    def _number(self, target: Target) -> int | None:
        if isinstance(target.ref, str):
            return self._ids.get(Reference(target.level, target.ref.casefold()))
        return target.ref


def _reason(target: DesiredTarget, number: int, twins: Iterable[DesiredTarget]) -> str:
    others = " and ".join(f"{other.target} ({other.origin})" for other in twins if other is not target)
    return f"is the same {target.target.level} as {others}, ID {number}: keep one of these documents"


def _forced(live: LiveState) -> dict[PartAddress, LivePart]:
    """What was read, with fields that the service does not show as if they were there and empty."""
    return {
        address: replace(part, unshown={}) if isinstance(part, Found) else part for address, part in live.parts.items()
    }


def _tell_what_is_not_shown(desired: DesiredState, live: LiveState) -> None:
    """Warn once of each field that is declared and that the service does not show."""
    places: dict[tuple[str, str, str], list[Target]] = {}
    for target in desired.targets:
        for section in target.sections:
            for part, wanted in section.wanted.items():
                found = live.parts[target.target, section.kind, part]
                if isinstance(found, Found) and isinstance(wanted, Resource):
                    for name in wanted.model_fields_set & found.unshown.keys():
                        places.setdefault((section.kind, name, found.unshown[name]), []).append(target.target)
    for (kind, name, other), scopes in places.items():
        more = f" and {len(scopes) - 1} more" if len(scopes) > 1 else ""
        LOG.warning(
            "%s.%s of %s%s cannot be compared: this server does not show them; they are written when %s changes, or "
            "with --force-events",
            kind,
            name,
            scopes[0],
            more,
            other,
        )
