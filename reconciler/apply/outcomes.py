"""The options of an apply, and the outcome of each change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from typing import Annotated, Protocol

from pydantic import Field

from reconciler.errors import ScopeMissing, ServiceError, Unauthorized, WaitTooLong
from reconciler.model.diff import AsRead
from reconciler.model.plan import Change, TargetPlan
from reconciler.model.progress import Progress
from reconciler.model.protocols import Request
from reconciler.model.targets import Address

TokenSink = Callable[[Address, str], None]
"""Delivers the value of a created token, or raises `OutputFailed`."""


ENDED = "the run ended before this change"

UNKNOWN = "the run was interrupted; the result is unknown"


class Status(StrEnum):
    """The outcome of a change, in a word."""

    DONE = "done"
    FAILED = "failed"
    STALE = "stale"
    SKIPPED = "skipped"
    DROPPED = "dropped by the service"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change and what became of it."""

    change: Annotated[Change, Field(discriminator="action")]
    """The change, as in a plan."""
    status: Status
    """The outcome."""
    reason: str = ""
    """Why it is not done; empty if it is."""
    created: AsRead | None = None
    """The object that it created, as it was read afterwards or, unverified, as it was sent; null if none or unknown."""
    unconfirmed: bool = False
    """Whether a change that failed may have been carried out, wholly or in part."""

    @property
    def may_be_done(self) -> bool:
        """Whether the change was carried out, or may have been, wholly or in part."""
        return self.unconfirmed or self.status in (Status.DONE, Status.DROPPED)

    @property
    def word(self) -> str:
        """The outcome in a word: `created`, `updated`, `deleted`, or `failed` and the other statuses."""
        return f"{self.change.action}d" if self.status is Status.DONE else self.status.name.lower()


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The outcomes of the changes of one target.

    Attributes:
        plan: as it was carried out; it differs from the plan where a group's change made planning again necessary.
        outcomes: one for each change, in the order of the plan.
    """

    plan: TargetPlan
    outcomes: tuple[Outcome, ...]


class WriteLog(Protocol):
    """Keeps what is about to be sent, and what came of it, where a crash does not reach."""

    def intend(self, change: Change, request: Request) -> int:
        """Note a write before it is sent; the number identifies its result.

        Raises:
            OutputFailed: it could not be noted, and must not be sent.
        """

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Note what came of it: `done`, `failed` or `in doubt`."""


class NoWriteLog:
    """A `WriteLog` that keeps nothing."""

    def intend(self, change: Change, request: Request) -> int:
        """Note nothing."""
        del change, request
        return 0

    def result(self, number: int, status: str, reason: str = "") -> None:
        """Note nothing."""


class Stop:
    """Ends a run: what is in flight is finished, and nothing else is begun.

    Attributes:
        event: set once the run is to end; every wait watches it.
        refused: whether the service refuses the token, so that nothing is read any more either.
    """

    def __init__(self, event: Event | None = None) -> None:
        self.event = event or Event()
        self.refused = False
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why the run is to end; empty while it is not."""
        return self._reason if self.event.is_set() else ""

    def after(self, error: ServiceError) -> None:
        """End the run if an error means that no further request can succeed."""
        if isinstance(error, Unauthorized):
            self.refused = True
            self.cancel(f"the service refuses the token: {error.reason}")
        if isinstance(error, ScopeMissing):
            self.cancel(error.remedy)
        if isinstance(error, WaitTooLong):
            self.cancel(error.reason)

    def cancel(self, reason: str) -> None:
        """End the run; the first reason stays."""
        if not self.event.is_set():
            self._reason = reason
            self.event.set()


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How a plan is carried out.

    Attributes:
        concurrency: how many targets at once.
        verify: whether what was changed is read again afterwards.
        recheck: whether what will be changed is read again before, and refused as stale if it has moved: for a plan
            that comes from a file.
        deliver: where values of created tokens go; None where none is created.
        stop: ends the run.
        write_log: keeps intents and results.
        progress: counts the steps.
    """

    concurrency: int
    verify: bool = True
    recheck: bool = False
    deliver: TokenSink | None = None
    stop: Stop = field(default_factory=Stop)
    write_log: WriteLog = field(default_factory=NoWriteLog)
    progress: Progress = field(default_factory=Progress)
