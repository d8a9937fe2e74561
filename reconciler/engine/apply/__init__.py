"""Carrying out a plan. Dry run is not calling this.

`run` goes through the plan, wave by wave, and through each target: prepare, carry out, verify. `prepare` reads what a
write depends on again, right before it, and `agree` says what goes then of what the plan shows. `once` creates nothing
twice: `objects` says how the objects of sections are created, `creation` how groups and projects are. `imports` waits
for what the service does afterwards, `verify` reads what was written, and `refusals` says why something was not.
`targets` is what the runs of all targets share.
"""

from reconciler.engine.apply.outcomes import (
    DONE_BEFORE,
    RESULT_UNKNOWN,
    RUN_ENDED,
    UNVERIFIED,
    ApplyOptions,
    CanaryRun,
    FailureLimit,
    Fate,
    NoWriteLog,
    Stop,
    TokenSink,
    WriteLog,
    with_left_out,
)
from reconciler.engine.apply.prepare import repeatable, sections_to_plan_again
from reconciler.engine.apply.recovery import recover
from reconciler.engine.apply.run import Application, apply_plan
from reconciler.model.item import Outcome, Status

__all__ = [
    "DONE_BEFORE",
    "RESULT_UNKNOWN",
    "RUN_ENDED",
    "UNVERIFIED",
    "Application",
    "ApplyOptions",
    "CanaryRun",
    "FailureLimit",
    "Fate",
    "NoWriteLog",
    "Outcome",
    "Status",
    "Stop",
    "TokenSink",
    "WriteLog",
    "apply_plan",
    "recover",
    "repeatable",
    "sections_to_plan_again",
    "with_left_out",
]
