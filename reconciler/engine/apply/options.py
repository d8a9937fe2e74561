"""`ApplyOptions`, and what they hold: `Stop` ends a run early, `WriteLog` records its writes."""

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
"""The reason for a change of a saved plan that an earlier run has made."""

UNVERIFIED = "the run ended before it was read again"
"""The reason for a change that is done, and was not verified."""


@dataclass(frozen=True, slots=True)
class NotAttempted:
    """The reason why nothing was attempted in a target, or in one that depends on it; `SKIPPED` or `STALE`."""

    status: Status
    reason: str

    def outcome(self, change: Change) -> Outcome:
        """Return the outcome of a change that was not attempted for this reason."""
        return Outcome(change, self.status, self.reason)


def joined(target_plan: TargetPlan, partial_plans: Sequence[TargetPlan]) -> TargetPlan:
    """Return a target with the items of several parts of it: for each section its changes, then its findings.

    Args:
        target_plan: has the order of the sections.
        partial_plans: of the same target, each with some sections; the first plan with a section has its number
            of objects.
    """
    numbers = {name: number for part in reversed(partial_plans) for name, number in part.sections.items()}
    sections = {name: numbers.get(name, number) for name, number in target_plan.sections.items()}
    return replace(
        target_plan,
        sections=sections,
        items=arranged(sections, chain.from_iterable(part.items for part in partial_plans)),
    )


class WriteLog(Protocol):
    """Records writes before they are sent, and their results, so that a crash does not lose them."""

    def intend(self, change: Change, request: Request) -> int:
        """Record a write before it is sent; the number identifies its result.

        Raises:
            OutputFailed: it could not be recorded, and must not be sent.
        """

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Record the result of a write: `done`, `failed` or `in doubt`."""

    def canary(self, target_count: int, *, in_order: bool) -> None:
        """Record that the canary is applied, and whether the other targets follow."""


class NoWriteLog:
    """A `WriteLog` that records nothing."""

    def intend(self, change: Change, request: Request) -> int:
        """Record nothing."""
        del change, request
        return 0

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Record nothing."""

    def canary(self, target_count: int, *, in_order: bool) -> None:
        """Record nothing."""


class Stop:
    """Ends a run: requests in flight are finished, and no other is begun.

    Attributes:
        event: set once the run must end at once; every wait watches it.
        pause_reason: the reason to begin no further change while retries of begun ones go on; empty without one.
        refused: whether the service refuses the token, so that reads would fail too.
    """

    def __init__(self, stop_event: Event | None = None) -> None:
        self.event = stop_event or Event()
        self.pause_reason = ""
        self.refused = False
        self._reason = ""

    @property
    def reason(self) -> str:
        """The reason why the run ends; empty while it does not."""
        return self._reason if self.event.is_set() else self.pause_reason

    def after(self, error: ServiceError, *, is_remedy_shown: bool = False) -> None:
        """End the run if an error means that no further request can succeed.

        Args:
            error: of a request.
            is_remedy_shown: whether the outcome of a change has the remedy, so that other outcomes need not repeat it.
        """
        if isinstance(error, Unauthorized):
            self.refused = True
            self.cancel(
                "the service refuses the token" + ("" if is_remedy_shown else f": {error.reason}; {error.remedy}")
            )
        if isinstance(error, ScopeMissing):
            self.cancel(LACKS_SCOPE if is_remedy_shown else error.remedy)
        if isinstance(error, WaitTooLong):
            self.cancel(error.reason)

    def cancel(self, reason: str) -> None:
        """End the run at once; the first reason is kept."""
        self._reason = self._reason or self.pause_reason or reason  # the limiter may have set the event before
        self.event.set()

    def pause(self, reason: str) -> None:
        """Begin no further change; begun ones go on, with waits and retries. The first reason is kept."""
        self.pause_reason = self.pause_reason if self.reason else reason


class FailureLimit:
    """Ends a run after a number of failed, dropped or stale changes. Safe to use from any thread.

    Args:
        text: a number, or a percentage of the planned changes, such as `10%`.
        planned_count: the number of planned changes.

    Raises:
        ValueError: the text is neither.
    """

    def __init__(self, text: str, planned_count: int) -> None:
        match = re.fullmatch(r"([1-9][0-9]{0,8})(%?)", text)
        if not match or (match[2] and int(match[1]) > 100):
            raise ValueError(f"takes a number from 1, or a percentage such as 10%; not {text}")
        # Rounded up: two of 15 changes are not yet 15 %.
        self.number = max(1, -(-planned_count * int(match[1]) // 100)) if match[2] else int(match[1])
        share = f", {self.number:,} of {counted(planned_count, 'change')}," if match[2] else ""
        self._reached = f"--max-failures {text}{share} was reached"
        self._failures = self._suspects = 0
        self._lock = Lock()

    def suspect(self) -> bool:
        """Count a change that may have failed; return whether the limit is reached if all suspects have."""
        with self._lock:
            self._suspects += 1
            return self._failures + self._suspects >= self.number

    def count(self, outcome: Outcome, stop: Stop, *, suspected: bool = False) -> None:
        """Count a change, if it failed.

        Args:
            outcome: of the change.
            stop: of the run.
            suspected: whether it was counted by `suspect`.
        """
        with self._lock:
            self._suspects -= suspected
            self._failures += outcome.status in {Status.FAILED, Status.STALE, Status.DROPPED}
            if self._failures >= self.number:
                stop.pause(self._reached)


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """The result of the targets that are applied first.

    Attributes:
        targets: in the order of the plan.
        in_order: whether all changes were done and verified, and no problem is left.
        started_at: UTC.
        finished_at: UTC, after the last verification.
    """

    targets: tuple[Target, ...]
    in_order: bool
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """The options of an apply.

    Attributes:
        verify: whether changed parts are read again afterwards.
        recheck: whether parts to change are read again before, and changes refused as stale if these differ: for a
            plan from a file.
        stale: the reasons to refuse deletions as stale, by target, section, part and ID.
        deliver: delivers the values of created tokens; None if none is created.
        stop: ends the run.
        write_log: records intents and results.
        progress: counts the applied targets.
        canary: targets that are applied first; others follow only if these are in order.
        failures: ends the run after too many failures; None for no limit.
        wait: the most seconds to wait for imports.
        now: returns the time, for the canary's start and end.
        own_tokens: our own tokens besides those of the environment, which must go to no other service.
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
