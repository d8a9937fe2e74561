"""The last stages: what becomes of the plan of what was read before it is shown. They ask for nothing."""

from dataclasses import replace

from reconciler.engine.compare.obstacles import as_problem, with_obstacles
from reconciler.engine.compare.renames import rename_hints
from reconciler.engine.compare.selection import add_missing, only_change, restrict
from reconciler.engine.survey import Added, FleetSurvey, Survey
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.targets import Address, Level, Target


def obstructed(run: Survey) -> Added:
    """Return the plan with what is in its way."""
    return {"plan": with_obstacles(run.planned, run.obstacles, run.kinds)}


def unreadable_inventory(run: FleetSurvey) -> Added:
    """Return the plan with a problem if the inventory cannot be read: it is about all targets, and at the instance."""
    error, instance = run.inventory.error, Target(Level.INSTANCE)
    if error is None or not run.scope.tells_of_the_whole:
        return {}
    others = [target for target in run.plan.targets if target.target != instance]
    own = [target for target in run.plan.targets if target.target == instance] or [TargetPlan(instance)]
    problem = as_problem(Obstacle(instance.address, f"the inventory cannot be read: {error.reason}", error.remedy))
    return {"plan": replace(run.plan, targets=(own[0].adding(problem), *others))}


def narrow_plan(run: FleetSurvey) -> Added:
    """Return what `--retry-failed` and `--only-change` leave of the plan, and the targets that lose something."""
    scope = run.scope
    if scope.failed is None and not scope.only_change:
        return {}
    plan = run.plan if scope.failed is None else _retried(run, scope.failed)
    if scope.only_change:
        plan = only_change(plan)
    numbers = {target.target: _numbers(target) for target in plan.targets}
    cut = (target.target for target in run.plan.targets if numbers.get(target.target) != _numbers(target))
    return {"plan": plan, "cut": frozenset(cut)}


def _retried(run: FleetSurvey, failed: frozenset[Address]) -> Plan:
    """Return the part of the plan that was not done before."""
    declared = {(target.target, section.kind) for target in run.whole.targets for section in target.sections}
    plan = restrict(run.plan, failed)
    if not run.scope.tells_of_the_whole:
        # The first shard alone reports what no manifest declares.
        failed = frozenset(address for address in failed if (address.target, address.section) in declared)
    return add_missing(plan, failed, declared, run.scope.selection)


def _numbers(target: TargetPlan) -> tuple[int, int]:
    return len(target.changes), len(target.problems)


def origins(run: FleetSurvey) -> Added:
    """Return the plan with the places where the manifests declare its changes and problems."""
    targets = (target.with_origins(run.manifests.origin) for target in run.plan.targets)
    return {"plan": replace(run.plan, targets=tuple(targets))}


def hints(run: FleetSurvey) -> Added:
    """Return what looks like a rename in the plan."""
    return {"hints": rename_hints(run.plan, run.kinds, run.manifests.declaration)}
