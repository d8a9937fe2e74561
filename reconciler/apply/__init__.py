"""Carrying out a plan. Dry run is not calling this."""

from reconciler.apply.outcomes import (
    ENDED,
    UNKNOWN,
    ApplyOptions,
    FailureLimit,
    NoWriteLog,
    Outcome,
    Status,
    Stop,
    TargetOutcome,
    TokenSink,
    WriteLog,
)
from reconciler.apply.recovery import recover
from reconciler.apply.run import Application, apply_plan, planned_again, repeatable

__all__ = [
    "ENDED",
    "UNKNOWN",
    "Application",
    "ApplyOptions",
    "FailureLimit",
    "NoWriteLog",
    "Outcome",
    "Status",
    "Stop",
    "TargetOutcome",
    "TokenSink",
    "WriteLog",
    "apply_plan",
    "planned_again",
    "recover",
    "repeatable",
]
