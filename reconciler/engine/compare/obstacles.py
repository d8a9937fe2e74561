"""What obstacles do to a plan: the one place where they become problems, or sections that are not applicable. Pure.

By their effect:

- `problem`: nothing is planned there, and a problem says so.
- `not applicable`: a section is left out, and that is no problem.
- `read only`: nothing is changed there. A target is a problem then; a section only if something would change.
- `excepted`: a section is left out, and exceptions hold back all that is declared of it: no problem either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.compare.exceptions import hold_back
from reconciler.model.item import Finding, change_in, not_applicable_at, problem_at, section_of
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.state import DesiredState
from reconciler.model.targets import Target


def as_problem(obstacle: Obstacle, *, field: str | None = None) -> Finding:
    """Return the problem that an obstacle is, of a field or of the whole."""
    return problem_at(obstacle.where, obstacle.reason, field, obstacle.remedy)


def without(desired: DesiredState, obstacles: Iterable[Obstacle]) -> DesiredState:
    """Return the desired state without the sections that an obstacle keeps from being read."""
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
    """Return a plan that tells of obstacles, and changes nothing that they keep from being changed.

    Args:
        plan: what could be planned, without the sections that are not read.
        obstacles: in the order in which they are told.
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
    closed = {target for target, of_target in by_target.items() if any(map(_closes, of_target))}
    dependent = tuple(section for section in plan.dependent if section.target not in closed)
    return replace(plan, targets=tuple(targets), dependent=dependent)


def _obstructed(target: TargetPlan, obstacles: Sequence[Obstacle], order: Mapping[str, int]) -> TargetPlan:
    """Return a target with what is in its way: of its sections, in their order, and then of the whole."""
    of_sections = [obstacle for obstacle in obstacles if obstacle.where.section]
    read_only = {obstacle.where.section for obstacle in of_sections if obstacle.effect == "read only"}
    gone = {obstacle.where.section for obstacle in of_sections if obstacle.effect == "not applicable"}
    closed = any(map(_closes, obstacles))
    changing = {change.address.section for change in target.changes}
    left_out = [_left_out(obstacle) for obstacle in of_sections if obstacle.effect != "read only"]
    told = [
        as_problem(obstacle)
        for obstacle in obstacles
        if not obstacle.where.section or (obstacle.effect == "read only" and obstacle.where.section in changing)
    ]
    kept = (
        item
        for item in target.items
        if section_of(item) not in gone and (change_in(item) is None or not (closed or section_of(item) in read_only))
    )
    exceptions = dict.fromkeys(exception for obstacle in of_sections for exception in obstacle.exceptions)
    numbers = {name: number for name, number in target.found.items() if name not in gone}
    numbers |= {finding.address.section: 0 for finding in left_out}
    return replace(
        target,
        found={name: numbers[name] for name in sorted(numbers, key=lambda name: order.get(name, -1))},
        items=(*kept, *left_out),
        exceptions=(*target.exceptions, *exceptions),
    ).saying(*told)


def _closes(obstacle: Obstacle) -> bool:
    """Return whether nothing of a target is changed."""
    return obstacle.effect == "read only" and not obstacle.where.section


def _left_out(obstacle: Obstacle) -> Finding:
    """Return what is said of a section that is not read."""
    if obstacle.effect == "not applicable":
        return not_applicable_at(obstacle.where.target, obstacle.where.section, obstacle.reason)
    problem = as_problem(obstacle)
    return hold_back(problem, obstacle.exceptions) if obstacle.effect == "excepted" else problem
