"""The loop from a `Run` to its plan. Commands call `plan`, the doctor calls `checked`; nothing here can write."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.engine.audit import with_audit
from reconciler.engine.compare.effect import with_effects
from reconciler.engine.compare.obstacles import as_problem, with_obstacles, without
from reconciler.engine.compare.planner import make_plan
from reconciler.engine.compare.renames import rename_hints
from reconciler.engine.compare.selection import add_missing, exclusion_warnings, only_change, restrict, select, share
from reconciler.engine.compare.undermined import with_undermined
from reconciler.engine.creations import find_absent, omission_remarks, with_archived, with_imports
from reconciler.engine.discovery import (
    Discovery,
    discover_members,
    look_up_unlisted,
    with_default_branches,
    with_members,
)
from reconciler.engine.inventory import find_absences
from reconciler.engine.lookups import doomed_entries, plan_with_lookups, unshown_fields
from reconciler.engine.planned import Declared, Planned
from reconciler.engine.read import read_live, without_targets
from reconciler.engine.roster import Move, Roster
from reconciler.engine.rules import Facts, Moment, absent_targets, find_obstacles, without_unlisted
from reconciler.engine.run import MakePlan, Run, Scope
from reconciler.engine.since import changed_since
from reconciler.engine.sources import with_sources
from reconciler.engine.why import lacking_sections, with_causes
from reconciler.manifests import Manifests
from reconciler.model.creation import ToCreate
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader
from reconciler.model.state import DesiredState, LiveState
from reconciler.model.targets import Address, Identity, Level, Target

LOG = logging.getLogger("reconciler")


def plan(run: Run) -> Planned:
    """Return the plan that turns live state into what the manifests declare, and why each difference is there.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API, or the token's owner sees nothing.
        ServiceError: an error of `read.ENDS_A_RUN`. Any other failure is a problem in the plan.
        NothingSelected: a path or a label that is selected matches no target.
        UsageError: no target declares a section that is selected.
    """
    planned = compared(run)
    planned = replace(planned, plan=with_sources(planned))
    audited, unknown = with_audit(planned)
    _RunLog().log(unknown)
    # `--only-change` selects changes by their source, which the plan needs by then.
    narrowed, cut = _narrowed(audited, planned.declared.whole, run.scope)
    explained = with_effects(narrowed, planned.live, run.kinds)
    explained = with_undermined(explained, planned.declared.desired, planned.live, run.kinds)
    placed = with_origins(explained, planned.declared.manifests)
    hints = rename_hints(placed, run.kinds, planned.declared.manifests.declaration)
    return replace(planned, plan=placed, cut=cut, hints=hints)


def compared(run: Run) -> Planned:
    """Return the plan of all differences, without the reason for each difference. For errors, see `plan`."""
    roster, run_log = Roster(run.reader), _RunLog()
    return _compared(run, roster, *_discovered(run, roster, run_log), run_log)


def _compared(run: Run, roster: Roster, discovery: Discovery, manifests: Manifests, run_log: "_RunLog") -> Planned:
    kinds = run.kinds
    declared = _declared(run, roster, discovery, manifests, run_log)
    facts = Facts(run, roster, declared)
    # Before reading: a section that a rule excludes must not cost a request.
    obstacles = find_obstacles(Moment.DECLARED, facts)
    absent: dict[Identity, ToCreate | Obstacle] = {
        **declared.existence.created,
        **absent_targets(Moment.DECLARED, facts),
    }
    declared = replace(declared, desired=without(declared.desired, obstacles))
    live = _read(run, roster, declared, absent)
    run_log.warn(moves(roster.follow_moves()))
    if roster.present_paths != discovery.present_paths:
        # Only a read shows that a path redirects. Each round knows the moves of the rounds before, so that this ends.
        return _compared(run, roster, *_with_moves(declared, live, roster), run_log)
    live = without_targets(live, declared.desired, kinds, absent_targets(Moment.READ, replace(facts, live=live)))
    absences = find_absences(run, declared, live, roster)
    live = replace(live, recorded=absences.recorded)
    # A target that has moved has no unread parts by now, so that no request looks for their cause.
    live = with_causes(declared.desired, live, roster, kinds, run.api_url)
    obstacles = find_obstacles(Moment.EXPLAINED, Facts(run, roster, declared, live, obstacles=obstacles))
    declared = replace(declared, desired=without(declared.desired, obstacles))
    differing, live = _looked_up(run, roster, declared, live, run_log)
    # Lookups follow redirects too; the inventory asks for paths that nothing declares.
    run_log.warn(moves(roster.follow_moves(but=absences.former)))
    obstacles = find_obstacles(Moment.PLANNED, Facts(run, roster, declared, live, differing, obstacles))
    shown = _with_inventory_problem(with_obstacles(differing, obstacles, kinds), run)
    live = replace(live, ids={**roster.ids, **live.ids})
    return Planned(run, roster, declared, live, differing, obstacles, shown.numbered(live.ids), absences)


def checked(run: Run) -> Planned:
    """Return a plan for the doctor, which also reads the sections that a plan skips, and finds the causes itself."""
    roster, run_log = Roster(run.reader), _RunLog()
    return _checked(run, roster, *_discovered(run, roster, run_log), run_log)


def _checked(run: Run, roster: Roster, discovery: Discovery, manifests: Manifests, run_log: "_RunLog") -> Planned:
    kinds = run.kinds
    declared, today = _declared(run, roster, discovery, manifests, run_log), roster.now().date()
    facts = Facts(run, roster, declared)
    obstacles = find_obstacles(Moment.DECLARED, facts, checking=True)
    absent: dict[Identity, ToCreate | Obstacle] = {
        **declared.existence.created,
        **absent_targets(Moment.DECLARED, facts),
    }
    targets = declared.desired.targets
    lacking = [(target, obstacle) for target in targets for obstacle in lacking_sections(target, kinds, today)]
    # What is switched off is found by reading; what lacks the name of its default branch could be read.
    obstacles += tuple(obstacle for target, obstacle in lacking if obstacle.where.section in target.unplannable)
    left_out = (obstacle for _, obstacle in lacking if obstacle.effect != "problem")
    declared = replace(declared, desired=without(declared.desired, left_out))
    differing, live = _looked_up(run, roster, declared, _read(run, roster, declared, absent), run_log)
    run_log.warn(moves(roster.follow_moves()))
    if roster.present_paths != discovery.present_paths:
        return _checked(run, roster, *_with_moves(declared, live, roster), run_log)
    live = without_targets(live, declared.desired, kinds, absent_targets(Moment.READ, replace(facts, live=live)))
    obstacles = find_obstacles(Moment.PLANNED, Facts(run, roster, declared, live, differing, obstacles), checking=True)
    shown = with_undermined(with_obstacles(differing, obstacles, kinds), declared.desired, live, kinds)
    return Planned(run, roster, declared, live, differing, obstacles, shown)


def draw_plan(
    desired: DesiredState,
    reader: FleetReader,
    kinds: Kinds,
    *,
    make: MakePlan = make_plan,
    progress: Progress | None = None,
    api_url: str = "",
    follow_moved: bool = False,
) -> Plan:
    """Return the plan that turns live state into a desired one that comes from no manifests; see `Run`."""
    run = Run(
        reader,
        kinds,
        Manifests(desired),
        scope=Scope(grace=desired.grace, forced=desired.forced),
        progress=progress or Progress(),
        api_url=api_url,
        follow_moved=follow_moved,
        make=make,
    )
    planned = compared(run)
    return with_effects(planned.plan, planned.live, kinds)


def with_origins(plan: Plan, manifests: Manifests) -> Plan:
    """Return a plan with the places where the manifests declare its changes and problems."""
    return replace(plan, targets=tuple(target.with_origins(manifests.origin) for target in plan.targets))


class _RunLog(set[object]):
    """The warnings of a run so far: a project that turns out to have moved makes it begin anew."""

    def warn(self, sentences: Iterable[object]) -> None:
        """Log the sentences that were not logged before."""
        self.log((logging.WARNING, sentence) for sentence in sentences)

    def log(self, remarks: Iterable[tuple[int, object]]) -> None:
        """Log the remarks that were not logged before."""
        for level, sentence in remarks:
            if sentence not in self:
                LOG.log(level, "%s", sentence)
                self.add(sentence)


def _discovered(run: Run, roster: Roster, run_log: _RunLog) -> tuple[Discovery, Manifests]:
    """List the members of sets, and apply these; look up what the lists lack and this run does not read.

    That may have moved: the manifests have the present paths.
    """
    discovery = discover_members(run, roster)
    manifests = with_members(run.manifests, discovery)
    look_up_unlisted(run, manifests, discovery, roster)
    run_log.warn(moves(roster.follow_moves()))
    return replace(discovery, present_paths=roster.present_paths), manifests.with_moved(roster.present_paths)


def _with_moves(declared: Declared, live: LiveState, roster: Roster) -> tuple[Discovery, Manifests]:
    """Return discovery and manifests with what has turned out to have moved; what was read is not read again.

    As declared by their present paths, projects may have more layers.
    """
    parts = {
        (section.target, section.kind, part): (wanted, live.parts[section.target, section.kind, part])
        for target in declared.desired.targets
        for section in target.sections
        for part, wanted in section.wanted.items()
    }
    discovery = replace(declared.discovery, parts=parts, present_paths=roster.present_paths)
    return discovery, declared.manifests.with_moved(roster.present_paths)


def _declared(run: Run, roster: Roster, discovery: Discovery, manifests: Manifests, run_log: _RunLog) -> Declared:
    """Load the declarations, given the members of sets, and select the part that this run plans."""
    known = {*run.manifests.warnings}
    run_log.warn(warning for warning in manifests.warnings if warning not in known)
    # Sets are expanded first: a project may have changed only because it became a member of a set.
    since = changed_since(run, manifests, discovery)
    run_log.warn(since.warnings)
    desired = _selected(run, manifests, since.changed, run_log)
    existence = find_absent(desired.targets, manifests.desired.targets, roster, discovery.ids, run.api_url)
    run_log.log(omission_remarks(existence.omissions))
    manifests, desired = with_archived(manifests, desired, discovery.groups, discovery.paths, roster.answers)
    absent = existence.created.keys() | existence.obstacles.keys()
    manifests, desired, branches = with_default_branches(manifests, desired, roster, absent, discovery.listed)
    past = since.past and since.past.with_branches(branches)
    return Declared(manifests, desired, discovery, existence, manifests.unlisted, past, since.remarks, branches)


def _selected(
    run: Run, manifests: Manifests, changed_targets: frozenset[Target] | None, run_log: _RunLog
) -> DesiredState:
    """Return the selected and changed targets, less those of sets whose groups cannot be listed."""
    scope, whole, unlisted = run.scope, manifests.desired, manifests.unlisted
    only = None if scope.failed is None else {(section.target, section.section) for section in scope.failed}
    desired = select(whole, replace(scope.selection, only=only), partly=bool(unlisted))
    run_log.warn(() if unlisted else exclusion_warnings(scope.selection, whole))
    if changed_targets is not None and not scope.everything and scope.failed is None:
        desired = replace(
            desired, targets=tuple(target for target in desired.targets if target.target in changed_targets)
        )
    desired = replace(without_unlisted(desired, unlisted), grace=scope.grace, forced=scope.forced)
    return desired if scope.shard is None else share(desired, whole, scope.shard, run.kinds)


def _read(run: Run, roster: Roster, declared: Declared, absent: Mapping[Identity, ToCreate | Obstacle]) -> LiveState:
    """Read the declared parts that were not read already while groups were listed."""
    ids = {**declared.discovery.ids, **roster.existing_ids}
    early = declared.discovery.parts
    return read_live(declared.desired, roster, run.kinds, run.progress, early=early, ids=ids, absent=absent)


def _looked_up(
    run: Run, roster: Roster, declared: Declared, live: LiveState, run_log: _RunLog
) -> tuple[Plan, LiveState]:
    """Return the plan without regard to obstacles, and live state with the answers to all lookups."""
    desired, whole = declared.desired, declared.whole.targets
    run_log.warn(unshown_fields(desired, live))
    differing, live = plan_with_lookups(run, roster, desired, whole, live)
    differing = with_imports(differing, declared.existence.importing)
    return differing.with_findings(doomed_entries(desired, run.kinds, roster.records)), live


def moves(moved: Mapping[Target, Move]) -> Iterator[str]:
    """Yield a sentence about each target that has moved."""
    for target, move in moved.items():
        yield f"{target} {'is to be deleted, as' if move.doomed else 'has moved to'} {move}"


def _with_inventory_problem(plan: Plan, run: Run) -> Plan:
    """Return a plan with a problem if the inventory cannot be read: it is about all targets, and at the instance."""
    error, instance = run.inventory.error, Target(Level.INSTANCE)
    if error is None or not run.scope.reports_fleet_findings:
        return plan
    # The instance is the first level in the order of targets.
    others = [target for target in plan.targets if target.target != instance]
    own = [target for target in plan.targets if target.target == instance] or [TargetPlan(instance)]
    problem = as_problem(Obstacle(instance.address, f"the inventory cannot be read: {error.reason}", error.remedy))
    return replace(plan, targets=(own[0].adding(problem), *others))


def _narrowed(plan: Plan, declared_state: DesiredState, scope: Scope) -> tuple[Plan, frozenset[Target]]:
    """Return the plan reduced by `--retry-failed` and `--only-change`, and the targets that lose something."""
    if scope.failed is None and not scope.only_change:
        return plan, frozenset()
    narrowed = plan if scope.failed is None else _retried(plan, declared_state, scope, scope.failed)
    if scope.only_change:
        narrowed = only_change(narrowed)
    numbers = {target.target: _numbers(target) for target in narrowed.targets}
    cut = (target.target for target in plan.targets if numbers.get(target.target) != _numbers(target))
    return narrowed, frozenset(cut)


def _retried(plan: Plan, declared_state: DesiredState, scope: Scope, failed: frozenset[Address]) -> Plan:
    """Return the part of a plan that was not done before."""
    declared = {(target.target, section.kind) for target in declared_state.targets for section in target.sections}
    if not scope.reports_fleet_findings:
        # The first shard alone reports what no manifest declares.
        failed = frozenset(address for address in failed if (address.target, address.section) in declared)
    return add_missing(restrict(plan, failed), failed, declared, scope.selection)


def _numbers(target_plan: TargetPlan) -> tuple[int, int]:
    return len(target_plan.changes), len(target_plan.problems)
