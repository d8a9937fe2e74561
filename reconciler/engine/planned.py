"""What a run knows: of the manifests before it reads anything, and of everything once it has planned. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.engine.compare.renames import RenameHint
from reconciler.engine.creations import Existence
from reconciler.engine.discovery import Discovery
from reconciler.engine.roster import Roster
from reconciler.engine.run import Run
from reconciler.manifests import Manifests, UnlistedSet
from reconciler.manifests.project_sets import projects_by_path
from reconciler.memory.inventory import ObjectLine
from reconciler.memory.revision import Revision
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, LiveState, PartAddress
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared, once sets are targets, and the part of it that is planned.

    Attributes:
        manifests: with all sets applied.
        desired: what is planned.
        discovery: the projects of groups.
        existence: which targets do not exist.
        unlisted: the sets whose groups cannot be listed.
        past: the revision of `--since`, with all sets applied; None without one.
        remarks: what the plan says about the comparison with it.
    """

    manifests: Manifests
    desired: DesiredState
    discovery: Discovery
    existence: Existence
    unlisted: tuple[UnlistedSet, ...] = ()
    past: Revision | None = None
    remarks: tuple[str, ...] = ()

    @property
    def whole(self) -> DesiredState:
        """All that is declared, also beyond what is planned."""
        return self.manifests.desired

    @property
    def listed(self) -> frozenset[str | int]:
        """The projects that lists of projects have shown, by path in lower case and by number."""
        members = projects_by_path(self.discovery.groups)
        return frozenset((*members, *(member.id for member in members.values() if member.id is not None)))


@dataclass(frozen=True, slots=True)
class Absences:
    """What is no longer declared, by the inventory.

    Attributes:
        deletions: the lines whose objects are deleted, if they are planned so.
        by_part: see `LiveState.absences`.
        staying: the targets with objects that are no longer declared, in sections that are, and stay.
        remarks: a sentence for each reason, and for what has left.
        former: the paths that nothing declares any more, and that were asked for all the same.
    """

    deletions: tuple[ObjectLine, ...] = ()
    by_part: Mapping[PartAddress, Mapping[int, str]] = field(default_factory=dict)
    staying: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    former: frozenset[Target] = frozenset()


@dataclass(frozen=True, slots=True)
class Planned:
    """What comes of a run.

    Attributes:
        run: what was asked.
        roster: the groups and projects.
        declared: what was planned, and all that is declared.
        live: what was read.
        compared: the plan of what was read, without regard to the obstacles.
        obstacles: what is in the way, in the order in which it is told.
        plan: the plan that is shown, with what is in its way.
        absences: what is no longer declared, by the inventory.
        cut: the targets of which the plan leaves out changes or problems, since only a part is asked for.
        hints: what looks like a rename in the plan.
    """

    run: Run
    roster: Roster
    declared: Declared
    live: LiveState
    compared: Plan
    obstacles: tuple[Obstacle, ...]
    plan: Plan
    absences: Absences = field(default_factory=Absences)
    cut: frozenset[Target] = frozenset()
    hints: tuple[RenameHint, ...] = ()

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as this run reports them."""
        if not self.run.scope.reports_fleet_findings:
            return frozenset()
        targets = self.declared.whole.targets
        planned = {(target.path or str(target.target.ref)).casefold() for target in targets}
        return self.declared.manifests.archived_left_out - planned
