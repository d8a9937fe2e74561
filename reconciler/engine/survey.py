"""What a run knows, as a value: each stage takes it, and returns what it adds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from reconciler.engine.asked_once import AskedOnce
from reconciler.engine.compare.planner import make_plan
from reconciler.engine.compare.renames import RenameHint
from reconciler.engine.compare.selection import RunSelection
from reconciler.engine.discovery import Discovery
from reconciler.engine.existence import Answers
from reconciler.engine.read import EarlyParts
from reconciler.engine.records import is_doomed
from reconciler.gitops.inventory import NO_INVENTORY, OpenInventory
from reconciler.gitops.revision import Revision
from reconciler.manifests import Inputs, Manifests
from reconciler.manifests.project_sets import projects_by_path
from reconciler.model.inventory import ObjectLine
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader, Json
from reconciler.model.shards import Shard
from reconciler.model.state import DesiredState, DesiredTarget, LiveState, Reference
from reconciler.model.targets import Address, Target

MakePlan = Callable[[DesiredState, LiveState, Kinds, Plan], Plan]
"""See `make_plan`."""

Added = Mapping[str, Any]
"""What a stage adds to a survey, by attribute."""


@dataclass(frozen=True, slots=True)
class Move:
    """Where a project is that has moved.

    Attributes:
        number: its numeric ID.
        path: its full path; None if unknown.
        day: when its own deletion was scheduled, which renames it; empty if it is not, or only with its group.
    """

    number: int
    path: str | None = None
    day: str = ""

    @property
    def doomed(self) -> bool:
        """Whether its deletion is scheduled, or that of a group above it."""
        return bool(self.day) or is_doomed(self.path or "")

    def __str__(self) -> str:
        """`acme/api (ID 100)`."""
        return f"ID {self.number}" if self.path is None else f"{self.path} (ID {self.number})"


@dataclass(frozen=True, slots=True)
class Survey:
    """What a run knows of what is wanted and of what is there.

    Attributes:
        reader: the service.
        kinds: all kinds.
        desired: what is to be planned.
        progress: counts the steps.
        api_url: of the service, to be doubted where nothing at all is found there; empty if it is not.
        follow_moved: whether projects that have moved are written to.
        make: makes the plan of what was read.
        answers: which groups and projects are there, as far as they were asked for.
        importing: the targets that an import is filling at the moment.
        obstacles: what is in the way, in the order in which it is told.
        live: what is known of live state: before it is read, IDs that need not be asked for, and what is absent.
        planned: the plan of what was read, without regard to the obstacles.
        plan: the plan that is shown, with what is in its way.
        moved: the projects whose paths redirect.
        former: paths that nothing declares any more, and that were asked for all the same.
    """

    reader: FleetReader
    kinds: Kinds
    desired: DesiredState
    progress: Progress = field(default_factory=Progress, kw_only=True)
    api_url: str = field(default="", kw_only=True)
    follow_moved: bool = field(default=False, kw_only=True)
    make: MakePlan = field(default=make_plan, kw_only=True)
    answers: Answers = field(default_factory=dict, kw_only=True)
    importing: frozenset[Target] = field(default=frozenset(), kw_only=True)
    obstacles: tuple[Obstacle, ...] = field(default=(), kw_only=True)
    live: LiveState = field(default=LiveState({}, {}), kw_only=True)
    planned: Plan = field(default=Plan(()), kw_only=True)
    plan: Plan = field(default=Plan(()), kw_only=True)
    moved: Mapping[Target, Move] = field(default_factory=dict, kw_only=True)
    former: frozenset[Target] = field(default=frozenset(), kw_only=True)

    @property
    def whole(self) -> DesiredState:
        """All that is declared, also beyond what is planned."""
        return self.desired

    @property
    def records(self) -> Mapping[Reference, Mapping[str, Json]]:
        """The records of groups and projects that were asked for so far, by path in lower case."""
        return self.reader.records if isinstance(self.reader, AskedOnce) else {}

    @property
    def early(self) -> EarlyParts:
        """What has been read while groups were listed, and what was wanted of it."""
        return {}

    @property
    def listed(self) -> frozenset[str | int]:
        """The projects that lists of projects have shown, by path in lower case and by number."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the manifests a run is about.

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
    def tells_of_the_whole(self) -> bool:
        """Whether the run tells of what no single shard is about: the first one does, or the only one."""
        return self.shard is None or self.shard.number == 1


@dataclass(frozen=True, slots=True)
class Absences:
    """What is no longer declared, by the inventory.

    Attributes:
        deletions: the lines whose objects are deleted, if they are planned so.
        staying: the targets with objects that are no longer declared, in sections that are, and stay.
        remarks: a sentence for each reason, and for what has left.
    """

    deletions: tuple[ObjectLine, ...] = ()
    staying: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetSurvey(Survey):
    """A survey of all that manifests declare.

    Attributes:
        manifests: with all that is known by now of groups and paths.
        past: the revision with which these are compared; None to compare with none.
        scope: which part of them is planned.
        inventory: the list of what was applied.
        inputs: what the manifests are read from.
        absences: what is no longer declared, by the inventory.
        discovery: the projects of groups.
        changed: the targets that differ from the revision, or from what was applied; None if any may.
        cut: the targets of which the plan leaves out changes or problems, since only a part is asked for.
        hints: what looks like a rename in the plan.
    """

    manifests: Manifests
    past: Revision | None = None
    scope: Scope = field(default_factory=Scope)
    inventory: OpenInventory = field(default=NO_INVENTORY, kw_only=True)
    inputs: Inputs = field(default=Inputs((), {}), kw_only=True)
    absences: Absences = field(default=Absences(), kw_only=True)
    discovery: Discovery = field(default_factory=lambda: Discovery({}, {}), kw_only=True)
    changed: frozenset[Target] | None = field(default=None, kw_only=True)
    cut: frozenset[Target] = field(default=frozenset(), kw_only=True)
    hints: tuple[RenameHint, ...] = field(default=(), kw_only=True)

    @property
    def whole(self) -> DesiredState:
        """See `Survey`."""
        return self.manifests.desired

    @property
    def then(self) -> tuple[DesiredTarget, ...] | None:
        """What the revision declares, as far as that is known; None without one."""
        return None if self.past is None else self.past.declared

    @property
    def early(self) -> EarlyParts:
        """See `Survey`."""
        return self.discovery.parts

    @property
    def listed(self) -> frozenset[str | int]:
        """See `Survey`."""
        members = projects_by_path(self.discovery.groups)
        return frozenset((*members, *(member.id for member in members.values() if member.id is not None)))

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as this run tells of them."""
        if not self.scope.tells_of_the_whole:
            return frozenset()
        planned = {(target.path or str(target.target.ref)).casefold() for target in self.whole.targets}
        return self.manifests.archived_left_out - planned
