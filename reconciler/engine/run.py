"""A run: what a command asks of the engine, as a value."""

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
"""What a step of a plan has to say besides the plan: a level of logging, and a sentence."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the manifests that a run is about.

    Attributes:
        selection: the selected targets and sections.
        failed: what alone is planned, because a previous run did not do it; None for everything.
        everything: whether targets that have not changed are planned too.
        since_applied: whether only targets are planned that have changed since they were applied.
        shard: which part of the targets; None for all of them.
        grace: see `DesiredState.grace`.
        forced: see `DesiredState.forced`.
        only_change: whether only differences are planned that the change since the revision makes.
        who_after: events since this moment tell who made a difference; None if that is not asked for.
        restored_after: likewise, what was changed and put back.
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
        """Whether the run reports what no single shard is about: true without shards, and in shard 1."""
        return self.shard is None or self.shard.number == 1


@dataclass(frozen=True, slots=True)
class Run:
    """What a command asks.

    Attributes:
        reader: the service.
        kinds: all kinds.
        manifests: as they were read; their sets wait for the projects of their groups.
        past: the revision with which they are compared; None to compare with none.
        scope: which part of them is planned.
        inventory: the list of what was applied.
        inputs: what the manifests are read from.
        progress: counts the steps.
        api_url: of the service, to be doubted where nothing at all is found there; empty if it is not.
        follow_moved: whether projects that have moved are written to.
        make: makes the plan of what was read.
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
