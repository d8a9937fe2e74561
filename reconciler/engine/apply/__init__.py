"""The application of a plan. A dry run never calls this package.

`apply` goes through the plan wave by wave, and through each target section by section: prepare, send, settle. `prepare`
reads again what a write depends on, right before it, and `agree` decides which of the shown changes are sent. `send`
sends the requests of a change, and `create` creates no object twice. `settle` reads the written objects, and plans them
again: a change that is still planned was dropped. `new_targets` creates groups and projects, `imports` waits for
background jobs of the service, and `later` has the requests that come last. `refusals` explains refused writes.
`targets` is the state that the runs of all targets share.
"""

from reconciler.engine.apply.apply import Application, apply_plan
from reconciler.engine.apply.options import (
    DONE_BEFORE,
    UNVERIFIED,
    ApplyOptions,
    CanaryRun,
    FailureLimit,
    NotAttempted,
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
    "NoWriteLog",
    "NotAttempted",
    "Stop",
    "TokenSink",
    "WriteLog",
    "apply_plan",
    "recover",
    "repeatable",
    "reread_sections",
]
