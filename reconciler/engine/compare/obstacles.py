"""The effect of obstacles on a plan: `with_obstacles` turns them into problems and other findings. Pure.

An obstacle's `effect` decides:

- `problem`: the section or target is not planned, and is a problem.
- `not applicable`: the section is left out, without a problem.
- `read only`: nothing is changed. A target is a problem; a section is one only if something would change.
- `excepted`: the section is left out, since exceptions hold back its whole declaration; no problem.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.compare.exceptions import excepted_problem
from reconciler.model.item import Finding, Item, change_in, not_applicable_at, problem_at, section_of
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.state import DesiredState
from reconciler.model.targets import Target


def as_problem(obstacle: Obstacle, *, field: str | None = None) -> Finding:
    """Return an obstacle as a problem, of one field or of the whole object."""
    return problem_at(obstacle.where, obstacle.reason, field, obstacle.remedy)


def without(desired: DesiredState, obstacles: Iterable[Obstacle]) -> DesiredState:
    """Return the desired state without the sections that an obstacle excludes from reading."""
    unread = {
        (obstacle.where.target, obstacle.where.section) for obstacle in obstacles if obstacle.effect != "read only"
    }
    concerned = {target for target, _ in unread}
    targets = (
        replace(
            target,
            sections=tuple(section for section in target.sections if (target.target, section.kind) not in unread),
        )
        if target.target in concerned
        else target
        for target in desired.targets
    )
    return replace(desired, targets=tuple(targets))


def with_obstacles(plan: Plan, obstacles: Iterable[Obstacle], kinds: Kinds) -> Plan:
    """Return a plan that reports obstacles, and lacks the changes that they prevent.

    Args:
        plan: the plan of the sections that were read.
        obstacles: in the order in which they are reported.
        kinds: all kinds; the sections of a target are in their order.
    """
    by_target: dict[Target, list[Obstacle]] = {}
    for obstacle in obstacles:
        by_target.setdefault(obstacle.where.target, []).append(obstacle)
    if not by_target:
        return plan
    order = {name: number for number, name in enumerate(kinds)}
    targets = (
        _obstructed(target, by_target[target.target], order) if target.target in by_target else target
        for target in plan.targets
    )
    return Plan(tuple(targets))


def _obstructed(target_plan: TargetPlan, obstacles: Sequence[Obstacle], order: Mapping[str, int]) -> TargetPlan:
    """Return a target with its obstacles: those of its sections, in their order, then those of the target."""
    of_sections = [obstacle for obstacle in obstacles if obstacle.where.section]
    read_only = {obstacle.where.section for obstacle in of_sections if obstacle.effect == "read only"}
    gone = {obstacle.where.section for obstacle in of_sections if obstacle.effect == "not applicable"}
    closed = any(map(_closes, obstacles))
    changing = {change.address.section for change in target_plan.changes}
    not_applicable = [_not_applicable(obstacle) for obstacle in of_sections if obstacle.effect != "read only"]
    problems = [
        as_problem(obstacle)
        for obstacle in obstacles
        if not obstacle.where.section or (obstacle.effect == "read only" and obstacle.where.section in changing)
    ]

    def is_kept(item: Item) -> bool:
        is_blocked = closed or (change_in(item) is not None and section_of(item) in read_only)
        return section_of(item) not in gone and (isinstance(item, Finding) or not is_blocked)

    exceptions = dict.fromkeys(exception for obstacle in of_sections for exception in obstacle.exceptions)
    numbers = {name: number for name, number in target_plan.sections.items() if name not in gone}
    numbers |= {finding.address.section: 0 for finding in not_applicable}
    return replace(
        target_plan,
        sections={name: numbers[name] for name in sorted(numbers, key=lambda name: order.get(name, -1))},
        items=(*filter(is_kept, target_plan.items), *not_applicable),
        exceptions=(*target_plan.exceptions, *exceptions),
    ).adding(*problems)


def _closes(obstacle: Obstacle) -> bool:
    """Return whether an obstacle prevents all changes of a target."""
    return obstacle.effect == "read only" and not obstacle.where.section


def _not_applicable(obstacle: Obstacle) -> Finding:
    """Return the finding about a section that is not read."""
    if obstacle.effect == "not applicable":
        return not_applicable_at(obstacle.where.target, obstacle.where.section, obstacle.reason)
    problem = as_problem(obstacle)
    return excepted_problem(problem, obstacle.exceptions) if obstacle.effect == "excepted" else problem
