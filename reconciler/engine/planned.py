"""The values that a run collects: `Declared` before live state is read, `Planned` once the plan is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.engine.compare.renames import RenameHint
from reconciler.engine.creations import Existence
from reconciler.engine.discovery import Discovery
from reconciler.engine.roster import Roster
from reconciler.engine.run import Run
from reconciler.manifests import Manifests, UnlistedSet
from reconciler.manifests.project_sets import Branches
from reconciler.memory.inventory import ObjectLine
from reconciler.memory.revision import Revision
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, LiveState, PartAddress, Recorded
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Declared:
    """All declarations once sets are expanded to targets, and the part that this run plans.

    Attributes:
        manifests: with all sets applied.
        desired: the part of the manifests that is planned.
        discovery: the projects of groups.
        existence: which targets do not exist.
        unlisted: the sets whose groups cannot be listed.
        past: the revision of `--since`, with all sets applied; None without one.
        remarks: sentences of the plan about the comparison with that revision.
        branches: the default branches that were asked for.
    """

    manifests: Manifests
    desired: DesiredState
    discovery: Discovery
    existence: Existence
    unlisted: tuple[UnlistedSet, ...] = ()
    past: Revision | None = None
    remarks: tuple[str, ...] = ()
    branches: Branches = field(default_factory=dict)

    @property
    def whole(self) -> DesiredState:
        """All declarations, also of targets that this run does not plan."""
        return self.manifests.desired

    @property
    def listed(self) -> frozenset[str | int]:
        """The projects that lists of projects have shown, by path in lower case and by number."""
        return self.discovery.listed


@dataclass(frozen=True, slots=True)
class Absences:
    """The objects of the inventory that are no longer declared, or that were renamed on the service.

    Attributes:
        deletions: the inventory lines of the objects that the plan may delete.
        renames: the inventory lines of the objects that it may rename back.
        recorded: see `LiveState.recorded`.
        keeping_targets: the targets that keep objects which are no longer declared, in declared sections.
        remarks: a sentence for each reason to keep objects, and for targets that are gone.
        former: the paths that no manifest declares any more, and that were looked up for their inventory lines.
    """

    deletions: tuple[ObjectLine, ...] = ()
    renames: tuple[ObjectLine, ...] = ()
    recorded: Mapping[PartAddress, Recorded] = field(default_factory=dict)
    keeping_targets: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    former: frozenset[Target] = frozenset()


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of planning a run.

    Attributes:
        run: the request of the command.
        roster: the groups and projects.
        declared: all declarations, and the part that was planned.
        live: the live state as it was read.
        compared: the plan of all differences, without regard to obstacles.
        obstacles: the obstacles, in the order in which the plan reports them.
        plan: the plan that is shown, with its obstacles.
        absences: the objects of the inventory that are no longer declared, or were renamed.
        cut: the targets that lost changes or problems to `--retry-failed` or `--only-change`.
        hints: the pairs of a deletion and a creation that look like a rename.
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
