"""How a run ends: the exit codes of the users' contract, the code of each result, and the signals that end a run.

The signals are SIGHUP (a closed terminal), SIGINT (Ctrl-C) and SIGTERM (a cancelled CI job). Begin with `ExitCode`.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from math import inf
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument


class ExitCode(IntEnum):
    """The exit code of a command. A run that a signal ends has 128 and the signal's number in its place."""

    IN_ORDER = 0
    ERROR = 1
    CHANGES_PENDING = 2
    IN_PART = 3
    USAGE = 64


def of_signal(number: int) -> int:
    """Return the exit code of a run that a signal ended."""
    return 128 + number


def of_plan(document: "RunDocument", *, detailed: bool = False, allow_problems: bool = False) -> ExitCode:
    """Return the exit code for a plan; with `detailed`, pending changes come before problems."""
    if detailed and any(document.changes):
        return ExitCode.CHANGES_PENDING
    return _of_findings(document, allow_problems=allow_problems)


def _of_findings(document: "RunDocument", *, allow_problems: bool) -> ExitCode:
    """Return the highest exit code of the findings and changes of a document."""
    from reconciler.model.codes import code_of
    from reconciler.model.item import Finding

    codes = {code_of(item.code).exit_code for item in document.items if isinstance(item, Finding)}
    return ExitCode.IN_ORDER if allow_problems else ExitCode(max(codes, default=0))


def of_report(
    report: "RunDocument", *, allow_problems: bool = False, signal: int | None = None, incomplete: bool = False
) -> int:
    """Return the exit code for an apply: an error only if no write was begun and no change was stale.

    A creation that fails, such as an import without its token, is the problem of that target alone, even if there was
    nothing else to do.

    Args:
        report: the changes with their outcomes.
        allow_problems: whether problems are all right.
        signal: the signal that was received meanwhile; it counts only if something is undone or unverified.
        incomplete: whether part of the report or of the journal could not be written.
    """
    from reconciler.engine.apply import UNVERIFIED
    from reconciler.model.item import Status

    statuses = {outcome.status for outcome in report.outcomes}
    is_unfinished = bool(statuses - {Status.DONE}) or any(outcome.reason == UNVERIFIED for outcome in report.outcomes)
    if signal is not None and is_unfinished:
        return of_signal(signal)
    if incomplete or is_unfinished:
        alone = any(
            outcome.status is Status.FAILED and not outcome.change.address.section for outcome in report.outcomes
        )
        in_part = report.made.writes or alone or Status.STALE in statuses
        return ExitCode.IN_PART if in_part else ExitCode.ERROR
    return _of_findings(report, allow_problems=allow_problems)


def of_targets(*, complete: bool, any_target: object) -> ExitCode:
    """Return the exit code of `doctor` and `export`: an error if not even one target could be checked or exported."""
    if complete:
        return ExitCode.IN_ORDER
    return ExitCode.IN_PART if any_target else ExitCode.ERROR


ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Ended(KeyboardInterrupt):
    """A signal that ends the run at once.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """The signals received.

    Attributes:
        received: their numbers, in order.
        grace_signals: how many more signals only call `on_signal`. The next signal raises `Ended`; later signals are
            ignored until the number is set again.
    """

    def __init__(self, on_signal: Callable[[], None], grace_signals: float) -> None:
        self.received: list[int] = []
        self.grace_signals = grace_signals
        self._on_signal = on_signal

    def ignore(self) -> None:
        """Ignore all further signals."""
        self.grace_signals = inf

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.received.append(number)
        self.grace_signals -= 1
        if self.grace_signals < 0:
            self.ignore()
            raise Ended(number)
        self._on_signal()


@contextmanager
def signals_handled(on_signal: Callable[[], None] = lambda: None, grace_signals: float = 0) -> Iterator[Signals]:
    """Handle signals while this block runs; signals that are ignored already, as under `nohup`, stay ignored.

    Args:
        on_signal: called for each signal that does not end the run at once.
        grace_signals: the number of such signals.
    """
    signals = Signals(on_signal, grace_signals)
    before = {}
    # Python lets only the main thread handle signals
    if current_thread() is main_thread():
        caught = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, signals.handle) for number in caught}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_of(outer_error: BaseException | None) -> int | None:
    """Return the signal that caused an exception, directly or not; None if no signal did."""
    while outer_error is not None:
        if isinstance(outer_error, Ended):
            return outer_error.number
        outer_error = outer_error.__cause__ or outer_error.__context__
    return None
