"""The exit codes of the users' contract, and which of them a result comes to: the one place that decides it."""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.documents.report import Report
    from reconciler.model.plan import Plan


class ExitCode(IntEnum):
    """The exit code of a command. A run ended by a signal ends with 128 and the signal's number instead."""

    IN_ORDER = 0
    ERROR = 1
    CHANGES_PENDING = 2
    IN_PART = 3
    USAGE = 64


def of_signal(number: int) -> int:
    """Return the exit code of a run that a signal ended."""
    return 128 + number


def of_plan(plan: "Plan", *, detailed: bool = False, allow_problems: bool = False) -> ExitCode:
    """Return the exit code for a plan; with `detailed`, pending changes come before problems."""
    if detailed and any(plan.changes):
        return ExitCode.CHANGES_PENDING
    return ExitCode.IN_PART if any(plan.problems) and not allow_problems else ExitCode.IN_ORDER


def of_report(
    report: "Report", *, allow_problems: bool = False, signal: int | None = None, incomplete: bool = False
) -> int:
    """Return the exit code for an apply: an error only if no write was begun and none was refused as stale.

    Args:
        report: what became of the changes.
        allow_problems: whether problems are all right.
        signal: the signal that came meanwhile; it counts only if it left something undone.
        incomplete: whether part of the report or of the journal could not be written.
    """
    from reconciler.apply import Status

    statuses = {outcome.status for outcome in report.outcomes}
    if signal is not None and statuses - {Status.DONE}:
        return of_signal(signal)
    if incomplete or statuses - {Status.DONE}:
        return ExitCode.IN_PART if report.requests.writes or Status.STALE in statuses else ExitCode.ERROR
    return ExitCode.IN_PART if any(report.problems) and not allow_problems else ExitCode.IN_ORDER


def of_targets(*, complete: bool, targets: object) -> ExitCode:
    """Return the exit code of `doctor` and `export`: an error if not even one target could be checked or exported."""
    if complete:
        return ExitCode.IN_ORDER
    return ExitCode.IN_PART if targets else ExitCode.ERROR
