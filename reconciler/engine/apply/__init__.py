"""Carrying out a plan. Dry run is not calling this.

`apply` goes through the plan, wave by wave, and through each target: prepare, send, settle. `prepare` reads what a
write depends on again, right before it, and `agree` says what goes then of what the plan shows. `send` sends the
requests of a change, and `create` creates nothing twice. `settle` reads what was written, and plans it again: what is
still planned was dropped. `new_targets` creates groups and projects, `imports` waits for what the service does
afterwards, and `later` says what comes last. `refusals` says why something was refused. `targets` is what the runs of
all targets share.
"""

from reconciler.engine.apply.apply import Application, apply_plan
from reconciler.engine.apply.options import (
    DONE_BEFORE,
    UNVERIFIED,
    ApplyOptions,
    CanaryRun,
    FailureLimit,
    Fate,
    NoWriteLog,
    Stop,
    TokenSink,
    WriteLog,
)
from reconciler.engine.apply.prepare import repeatable, reread_sections
from reconciler.engine.apply.settle import recover

__all__ = [
    "DONE_BEFORE",
    "UNVERIFIED",
    "Application",
    "ApplyOptions",
    "CanaryRun",
    "FailureLimit",
    "Fate",
    "NoWriteLog",
    "Stop",
    "TokenSink",
    "WriteLog",
    "apply_plan",
    "recover",
    "repeatable",
    "reread_sections",
]
