"""Carrying out a plan. Dry run is not calling this."""

from reconciler.apply.outcomes import (
    ENDED,
    UNKNOWN,
    ApplyOptions,
    NoRecord,
    Outcome,
    Record,
    Status,
    Stop,
    TargetOutcome,
    TokenSink,
)
from reconciler.apply.recovery import recover
from reconciler.apply.run import Application, apply_plan, planned_again
from reconciler.apply.target import repeatable

__all__ = [
    "ENDED",
    "UNKNOWN",
    "Application",
    "ApplyOptions",
    "NoRecord",
    "Outcome",
    "Record",
    "Status",
    "Stop",
    "TargetOutcome",
    "TokenSink",
    "apply_plan",
    "planned_again",
    "recover",
    "repeatable",
]
