"""The planner: desired state and live state in, plan out. Pure, and ignorant of what the kinds are."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.kind import Kinds
from reconciler.model.plan import (
    Create,
    Delete,
    Excepted,
    Plan,
    Problem,
    SectionPlan,
    Step,
    TargetPlan,
    Unmanaged,
    Update,
)
from reconciler.model.resource import Found, Resource
from reconciler.model.state import (
    Cause,
    DeclaredException,
    DesiredState,
    DesiredTarget,
    LiveState,
    Lookup,
    Reference,
    Section,
    Unreadable,
    Vocabulary,
)
from reconciler.model.targets import Key, Level
from reconciler.planning.exceptions import PartExceptions, less_excepted
from reconciler.planning.parts import DeclaredPart, plan_collection, plan_settings, without_itself


@dataclass(frozen=True, slots=True)
class PartPlanners:
    """How a settings record and how a collection is planned; see `plan_settings` and `plan_collection`."""

    settings: Callable[[DeclaredPart[Singleton], Resource, Found], Iterator[Step]] = plan_settings
    collection: Callable[[DeclaredPart[Collection], Mapping[Key, Resource | None], Sequence[Found]], Iterator[Step]] = (
        plan_collection
    )


AS_DECLARED = PartPlanners()


def make_plan(
    desired: DesiredState, live: LiveState, kinds: Kinds, planners: PartPlanners = AS_DECLARED
) -> tuple[Plan, frozenset[Lookup]]:
    """Compare desired with live state.

    Returns the plan and the lookups it needs and `live` lacks. While there are any, what depends on them is left out
    of the plan: see `live.records.with_lookups`, and plan again.
    """
    planned = [plan_target(target, live, kinds, desired.grace, planners) for target in desired.targets]
    targets = tuple(target for target, _ in planned)
    excepts = any(target.exceptions for target in desired.targets)
    kept = less_excepted(desired, live.read_at.date(), kinds) if excepts else desired
    plan = Plan(targets, _dependent(kept, targets, kinds), _whole(kept, targets, kinds))
    return plan, frozenset(reference for _, missing in planned for reference in missing)


def plan_target(
    target: DesiredTarget, live: LiveState, kinds: Kinds, grace: timedelta, planners: PartPlanners = AS_DECLARED
) -> tuple[TargetPlan, frozenset[Lookup]]:
    """Plan one target; the second value is as of `make_plan`."""
    path = target.path if isinstance(target.target.ref, int) else None
    declared = {section.kind for section in target.sections}
    exceptions = tuple(each for each in target.exceptions if each.section in declared)
    empty = TargetPlan(target.target, (), target.origin, exceptions, path=path, labels=dict(target.labels))
    absent = _absence(target, live)
    if absent is not None:
        unread = tuple(SectionPlan(section.kind) for section in target.sections)
        return replace(empty, sections=(absent, *unread)), frozenset()
    today = live.read_at.date()
    planned = [
        plan_section(section, live, kinds, grace, planners, exceptions=target.excepts(section.kind, today))
        for section in target.sections
    ]
    missing = frozenset(reference for _, references in planned for reference in references)
    return replace(empty, sections=tuple(section for section, _ in planned)), missing


def plan_section(
    section: Section,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta = timedelta(),
    planners: PartPlanners = AS_DECLARED,
    *,
    exceptions: tuple[DeclaredException, ...] = (),
) -> tuple[SectionPlan, frozenset[Lookup]]:
    """Plan one section; the second value is as of `make_plan`."""
    found = 0
    steps: list[Step] = []
    unreadable: dict[str, Problem] = {}
    for part in kinds[section.kind].parts:
        if part.name not in section.wanted:
            continue
        about = PartExceptions(exceptions, part)
        match part, section.wanted[part.name], live.parts[section.target, section.kind, part.name]:
            case _, _, Unreadable(reason=reason, cause=cause):
                reason, remedy = (reason, "") if cause is None else (cause.reason, cause.remedy)
                problem = DeclaredPart(section, part, live).problem(None, f"cannot be read: {reason}", remedy)
                unreadable.setdefault(reason, problem)
            case Singleton(), Resource() as wanted, Found() as record:
                steps += planners.settings(DeclaredPart(section, part, live, exceptions=about), wanted, record)
            case Collection(), Mapping() as wanted, tuple() as objects:
                at = DeclaredPart(section, part, live, grace, exceptions=about)
                others = without_itself(at, objects)
                found += len(others)
                steps += planners.collection(at, wanted, others)
            case _:  # pragma: no cover - a kind whose split and parts disagree
                raise AssertionError(f"{section.kind}.{part.name} is split unlike its endpoint")
    planned = SectionPlan(
        section.kind,
        found,
        tuple(step for action in (Create, Update, Delete) for step in steps if isinstance(step, action)),
        (*unreadable.values(), *(step for step in steps if isinstance(step, Problem))),
        tuple(step for step in steps if isinstance(step, Unmanaged)),
        tuple(step for step in steps if isinstance(step, Excepted)),
    )
    return planned, frozenset(step for step in steps if isinstance(step, Reference | Vocabulary))


def _absence(target: DesiredTarget, live: LiveState) -> SectionPlan | None:
    """Return one problem instead of many where nothing of a target is visible; None where something is."""
    if not live.shows_nothing_of(target):
        return None
    absent = next(iter(live.unread(*target.sections).values()))
    cause = absent.cause or Cause(f"not found, or not visible to this token ({absent.reason})", "")
    return SectionPlan("", problems=(Problem(target.target.address, cause.reason, remedy=cause.remedy),))


def _dependent(desired: DesiredState, plans: Iterable[TargetPlan], kinds: Kinds) -> tuple[Section, ...]:
    """Return which sections of projects a change to a group may affect: those below it, and those known only by ID."""
    changed: dict[str, set[str | None]] = {}
    for target in plans:
        for section in target.sections if target.target.level is Level.GROUP else ():
            if section.changes and kinds[section.section].inherits:
                changed.setdefault(section.section, set()).add(_folded(target.target.ref))
    return tuple(
        section
        for each in desired.targets
        if each.target.level is Level.PROJECT
        for section in each.sections
        if section.kind in changed and _may_be_below(each.target.ref, changed[section.kind])
    )


def _whole(desired: DesiredState, plans: Iterable[TargetPlan], kinds: Kinds) -> tuple[Section, ...]:
    """Return which sections have a change that sends fields that nobody declared."""
    changed = {
        (target.target, change.address.section)
        for target in plans
        for change in target.changes
        if kinds[change.address.section].part(change.address.part).whole
    }
    return tuple(
        section
        for target in desired.targets
        for section in target.sections
        if (section.target, section.kind) in changed
    )


UNPLACED = None
"""Stands for a group known only by its ID, which may be above any project."""


def _folded(group: Key | None) -> str | None:
    return group.casefold() if isinstance(group, str) else UNPLACED


def _may_be_below(project: Key | None, groups: Container[str | None]) -> bool:
    """Whether a project may be below one of some groups; one known only by its ID may be below any."""
    if not isinstance(project, str) or UNPLACED in groups:
        return True
    steps = project.casefold().split("/")
    return any("/".join(steps[:depth]) in groups for depth in range(1, len(steps)))
