"""The options of an apply, what ends it early, and what it notes of its writes."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from threading import Event, Lock
from typing import Protocol

from reconciler.errors import LACKS_SCOPE, ScopeMissing, ServiceError, Unauthorized, WaitTooLong
from reconciler.model.item import Change, Outcome, Status
from reconciler.model.plan import TargetPlan, arranged
from reconciler.model.progress import Progress
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Target
from reconciler.model.wording import counted
from reconciler.system import clock

TokenSink = Callable[[Address, str], None]
"""Delivers the value of a created token, or raises `OutputFailed`."""

DONE_BEFORE = "by an earlier run"
"""The reason of a change of a saved plan that an earlier run has made."""

UNVERIFIED = "the run ended before it was read again"
"""The reason of a change that is done, and that nothing has verified."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Why nothing can be done in a target, or in what depends on it: `SKIPPED` or `STALE`, and the reason."""

    status: Status
    reason: str

    def outcome(self, change: Change) -> Outcome:
        """Return the outcome of a change that is not carried out for this reason."""
        return Outcome(change, self.status, self.reason)


def joined(target: TargetPlan, parts: Sequence[TargetPlan]) -> TargetPlan:
    """Return a target with the items of several parts of it: of each section what it does, and then what is said.

    Args:
        target: whose sections it has, in their order.
        parts: of the same target, each with some sections; of a section, the first one says how much it holds.
    """
    numbers = {name: number for part in reversed(parts) for name, number in part.sections.items()}
    sections = {name: numbers.get(name, number) for name, number in target.sections.items()}
    return replace(
        target, sections=sections, items=arranged(sections, chain.from_iterable(part.items for part in parts))
    )


class WriteLog(Protocol):
    """Keeps what is about to be sent, and what came of it, where a crash does not reach."""

    def intend(self, change: Change, request: Request) -> int:
        """Note a write before it is sent; the number identifies its result.

        Raises:
            OutputFailed: it could not be noted, and must not be sent.
        """

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Note the result of a write: `done`, `failed` or `in doubt`."""

    def canary(self, targets: int, *, in_order: bool) -> None:
        """Note that the canary is through, and whether the other targets follow."""


class NoWriteLog:
    """A `WriteLog` that keeps nothing."""

    def intend(self, change: Change, request: Request) -> int:
        """Note nothing."""
        del change, request
        return 0

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Note nothing."""

    def canary(self, targets: int, *, in_order: bool) -> None:
        """Note nothing."""


class Stop:
    """Ends a run: what is in flight is finished, and nothing else is begun.

    Attributes:
        event: set once the run is to end at once; every wait watches it.
        held: why nothing else is begun, where what is in flight may take its time; empty if that is not so.
        refused: whether the service refuses the token, so that nothing is read any more either.
    """

    def __init__(self, event: Event | None = None) -> None:
        self.event = event or Event()
        self.held = ""
        self.refused = False
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why the run is to end; empty while it is not."""
        return self._reason if self.event.is_set() else self.held

    def after(self, error: ServiceError, *, told: bool = False) -> None:
        """End the run if an error means that no further request can succeed.

        Args:
            error: of a request.
            told: whether the outcome of a change says what to do about it, so that those of the others need not.
        """
        if isinstance(error, Unauthorized):
            self.refused = True
            self.cancel("the service refuses the token" + ("" if told else f": {error.reason}; {error.remedy}"))
        if isinstance(error, ScopeMissing):
            self.cancel(LACKS_SCOPE if told else error.remedy)
        if isinstance(error, WaitTooLong):
            self.cancel(error.reason)

    def cancel(self, reason: str) -> None:
        """End the run; the first reason stays."""
        self._reason = self._reason or self.held or reason  # the limiter may have set the event before
        self.event.set()

    def hold(self, reason: str) -> None:
        """Begin nothing else; what is in flight goes on, with its waits and retries. The first reason stays."""
        self.held = self.held if self.reason else reason


class FailureLimit:
    """Ends a run at so many changes that failed, were dropped or were stale. Safe to use from any thread.

    Args:
        text: a number, or a percentage of the planned changes, such as `10%`.
        planned: how many changes are planned.

    Raises:
        ValueError: the text is neither.
    """

    def __init__(self, text: str, planned: int) -> None:
        match = re.fullmatch(r"([1-9][0-9]{0,8})(%?)", text)
        if not match or (match[2] and int(match[1]) > 100):
            raise ValueError(f"takes a number from 1, or a percentage such as 10%; not {text}")
        # Rounded up: two of 15 changes are not yet 15 %.
        self.number = max(1, -(-planned * int(match[1]) // 100)) if match[2] else int(match[1])
        share = f", {self.number:,} of {counted(planned, 'change')}," if match[2] else ""
        self._reached = f"--max-failures {text}{share} was reached"
        self._failures = self._suspects = 0
        self._lock = Lock()

    def suspect(self) -> bool:
        """Note a change that may have failed; return whether the number is reached if all of these have."""
        with self._lock:
            self._suspects += 1
            return self._failures + self._suspects >= self.number

    def count(self, outcome: Outcome, stop: Stop, *, suspected: bool = False) -> None:
        """Count a change, if it was tried in vain.

        Args:
            outcome: what became of it.
            stop: of the run.
            suspected: whether it was noted by `suspect`.
        """
        with self._lock:
            self._suspects -= suspected
            self._failures += outcome.status in {Status.FAILED, Status.STALE, Status.DROPPED}
            if self._failures >= self.number:
                stop.hold(self._reached)


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """How the targets went that come before all others.

    Attributes:
        targets: in the order of the plan.
        in_order: whether all of it was done and verified, and is no problem.
        started_at: UTC.
        finished_at: when the last of it was verified, UTC.
    """

    targets: tuple[Target, ...]
    in_order: bool
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """How a plan is carried out.

    Attributes:
        verify: whether what was changed is read again afterwards.
        recheck: whether what will be changed is read again before, and refused as stale if it has moved: for a plan
            that comes from a file.
        stale: why deletions are not carried out any more, by target, section, part and ID.
        deliver: where values of created tokens go; None where none is created.
        stop: ends the run.
        write_log: keeps intents and results.
        progress: counts the steps.
        canary: targets that come before all others, which are begun only if all is done and in order there.
        failures: ends the run at too many failures; None for any number.
        wait: seconds to wait for imports.
        now: returns the time, by which the canary is told.
        own_tokens: our own tokens besides those of the environment, which go to no other service.
    """

    verify: bool = True
    recheck: bool = False
    stale: Mapping[tuple[Target, str, str, int | None], str] = field(default_factory=dict)
    deliver: TokenSink | None = None
    stop: Stop = field(default_factory=Stop)
    write_log: WriteLog = field(default_factory=NoWriteLog)
    progress: Progress = field(default_factory=Progress)
    canary: Collection[Target] = frozenset()
    failures: FailureLimit | None = None
    wait: float = 1800
    now: Callable[[], datetime] = clock.now
    own_tokens: Collection[str] = frozenset()
