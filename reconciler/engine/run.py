"""A `Run`: the request of a command to the engine, as a value; its `Scope` is the part of the manifests it plans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.engine.compare.planner import make_plan
from reconciler.engine.compare.selection import RunSelection
from reconciler.manifests import Inputs, Manifests
from reconciler.memory.revision import Revision
from reconciler.memory.store import NO_INVENTORY, OpenInventory
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader
from reconciler.model.shards import Shard
from reconciler.model.state import DesiredState, LiveState
from reconciler.model.targets import Address

MakePlan = Callable[[DesiredState, LiveState, Kinds, Plan], Plan]
"""See `make_plan`."""


Remark = tuple[int, str]
"""A log message of a planning step: a level of `logging`, and a sentence."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the manifests that a run is about.

    Attributes:
        selection: the selected targets and sections.
        failed: the addresses that a previous run did not finish, which alone are planned; None for all.
        everything: whether targets that have not changed are planned too.
        since_applied: whether only targets are planned that have changed since they were applied.
        shard: which part of the targets; None for all of them.
        grace: see `DesiredState.grace`.
        forced: see `DesiredState.forced`.
        only_change: whether to plan only the differences that the change since the revision makes.
        who_after: the start of the audit events that are searched for authors of differences; None for no search.
        restored_after: the same for values that were changed and restored.
    """

    selection: RunSelection = field(default_factory=RunSelection)
    failed: frozenset[Address] | None = None
    everything: bool = False
    since_applied: bool = False
    shard: Shard | None = None
    grace: timedelta = timedelta()
    forced: bool = False
    only_change: bool = False
    who_after: datetime | None = None
    restored_after: datetime | None = None

    @property
    def reports_fleet_findings(self) -> bool:
        """Whether the run reports findings that belong to no target: true in an unsharded run and in shard 1."""
        return self.shard is None or self.shard.number == 1


@dataclass(frozen=True, slots=True)
class Run:
    """The request of a command.

    Attributes:
        reader: the service.
        kinds: all kinds.
        manifests: as they were read; sets are expanded later, once their groups are listed.
        past: the revision of `--since`; None without the option.
        scope: the part of the manifests that is planned.
        inventory: the objects that applies have recorded.
        inputs: the sources of the manifests.
        progress: counts the targets that are read.
        api_url: of the service, to check if no target is found; empty to skip the check.
        follow_moved: whether projects that have moved are written to.
        make: returns the plan for desired and live state.
    """

    reader: FleetReader
    kinds: Kinds
    manifests: Manifests
    past: Revision | None = None
    scope: Scope = field(default_factory=Scope)
    inventory: OpenInventory = NO_INVENTORY
    inputs: Inputs = field(default_factory=lambda: Inputs((), {}))
    progress: Progress = field(default_factory=Progress)
    api_url: str = ""
    follow_moved: bool = False
    make: MakePlan = make_plan
