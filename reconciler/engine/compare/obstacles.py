"""What obstacles do to a plan: the one place where they become problems, or sections that are not applicable. Pure.

By their effect:

- `problem`: nothing is planned there, and a problem says so.
- `not applicable`: a section is left out, and that is no problem.
- `read only`: nothing is changed there. A target is a problem then; a section only if something would change.
- `excepted`: a section is left out, and exceptions hold back all that is declared of it: no problem either.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from reconciler.engine.compare.exceptions import hold_back
from reconciler.model.item import Finding, not_applicable_at, problem_at
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, SectionPlan, TargetPlan
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


def with_problems(target: TargetPlan, problems: Iterable[Finding]) -> TargetPlan:
    """Return a target with further problems, each in its section, which is added where the target has none."""
    sections = {section.section: section for section in target.sections}
    by_section: dict[str, list[Finding]] = {}
    for problem in problems:
        by_section.setdefault(problem.address.section, []).append(problem)
    for name, added in by_section.items():
        sections[name] = sections.get(name, SectionPlan(name)).saying(*added)
    return replace(target, sections=tuple(sections.values()))


def _obstructed(target: TargetPlan, obstacles: Sequence[Obstacle], order: dict[str, int]) -> TargetPlan:
    """Return a target with what is in its way: of its sections, in their order, and then of the whole."""
    about_sections = [obstacle for obstacle in obstacles if obstacle.where.section]
    if about_sections:
        left_out = [_left_out(obstacle) for obstacle in about_sections if obstacle.effect != "read only"]
        gone = {obstacle.where.section for obstacle in about_sections if obstacle.effect == "not applicable"}
        planned = (section for section in target.sections if section.section not in gone)
        kept = [_read_only(section, about_sections) for section in planned]
        sections = sorted([*kept, *left_out], key=lambda section: order.get(section.section, -1))
        exceptions = dict.fromkeys(exception for obstacle in about_sections for exception in obstacle.exceptions)
        target = replace(target, sections=tuple(sections), exceptions=(*target.exceptions, *exceptions))
    if any(map(_closes, obstacles)):
        target = replace(target, sections=tuple(replace(section, changes=()) for section in target.sections))
    return with_problems(target, [as_problem(obstacle) for obstacle in obstacles if not obstacle.where.section])


def _closes(obstacle: Obstacle) -> bool:
    """Return whether nothing of a target is changed."""
    return obstacle.effect == "read only" and not obstacle.where.section


def _left_out(obstacle: Obstacle) -> SectionPlan:
    """Return a section that is not read."""
    if obstacle.effect == "not applicable":
        said = not_applicable_at(obstacle.where.target, obstacle.where.section, obstacle.reason)
    elif obstacle.effect == "excepted":
        said = hold_back(as_problem(obstacle), obstacle.exceptions)
    else:
        said = as_problem(obstacle)
    return SectionPlan(obstacle.where.section).saying(said)


def _read_only(section: SectionPlan, obstacles: Collection[Obstacle]) -> SectionPlan:
    """Return a section with a problem instead of changes, where changes are impossible."""
    problems = [
        as_problem(obstacle) for obstacle in obstacles if obstacle.where.section == section.section and section.changes
    ]
    return replace(section, changes=()).saying(*problems) if problems else section
