"""The planner: desired state and live state in, plan out. Pure, and ignorant of what the kinds are."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from reconciler.model.diff import as_read, become, differences, only
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Plan, Problem, SectionPlan, TargetPlan, Update
from reconciler.model.resource import Found, Resource, Wanted
from reconciler.model.state import (
    Cause,
    DesiredState,
    DesiredTarget,
    LivePart,
    LiveState,
    Reference,
    Section,
    Unreadable,
)
from reconciler.model.targets import Address, Key, Level
from reconciler.planning.collections import Matching
from reconciler.planning.draft import Draft


def make_plan(desired: DesiredState, live: LiveState, kinds: Kinds) -> tuple[Plan, frozenset[Reference]]:
    """Compare what is wanted with what was found.

    Returns the plan and the references it needs and `live.ids` lacks. While there are any, what depends on them is
    left out of the plan: look them up, add them to `live.ids` and plan again.
    """
    targets, missing = [], set()
    for target in desired.targets:
        planned, unresolved = plan_target(target, live, kinds, desired.grace)
        targets.append(planned)
        missing |= unresolved
    plan = Plan(tuple(targets), _dependent(desired, targets, kinds), _whole(desired, targets, kinds))
    return plan, frozenset(missing)


def plan_target(
    target: DesiredTarget, live: LiveState, kinds: Kinds, grace: timedelta
) -> tuple[TargetPlan, set[Reference]]:
    """Plan one target; the second value is as of `make_plan`."""
    missing: set[Reference] = set()
    absent = _absence(target, live)
    if absent is not None:
        return TargetPlan(target.target, (absent,), target.origin), missing
    sections = tuple(_plan_section(Draft(section, live, missing, grace), kinds) for section in target.sections)
    return TargetPlan(target.target, sections, target.origin), missing


def plan_section(section: Section, live: LiveState, kinds: Kinds) -> SectionPlan:
    """Plan one section that needs no references, such as a settings section."""
    return _plan_section(Draft(section, live, set(), timedelta()), kinds)


def _plan_section(draft: Draft, kinds: Kinds) -> SectionPlan:
    for part in kinds[draft.section.kind].parts:
        if part.name in draft.section.wanted:
            _plan_part(draft, part, draft.section.wanted[part.name])
    return draft.done()


def _absence(target: DesiredTarget, live: LiveState) -> SectionPlan | None:
    """One problem instead of many where nothing of a target can be seen."""
    parts = [live.parts[target.target, section.kind, part] for section in target.sections for part in section.wanted]
    absent = [part for part in parts if isinstance(part, Unreadable) and part.absent]
    if not parts or len(absent) < len(parts):
        return None
    address = Address(target.target, "", "", str(target.target.level), target.target.ref)
    cause = absent[0].cause or Cause(f"not found, or not visible to this token ({absent[0].reason})", "")
    return SectionPlan("", problems=(Problem(address, cause.reason, remedy=cause.remedy),))


def _dependent(desired: DesiredState, plans: Iterable[TargetPlan], kinds: Kinds) -> tuple[Section, ...]:
    """Which sections of projects a change to a group may affect: those below it, and those known only by ID."""
    changed = {
        (section.section, target.target.ref)
        for target in plans
        if target.target.level is Level.GROUP
        for section in target.sections
        if section.changes and kinds[section.section].inherits
    }
    return tuple(
        section
        for target in desired.targets
        if target.target.level is Level.PROJECT
        for section in target.sections
        if any(kind == section.kind and _may_be_below(target.target.ref, group) for kind, group in changed)
    )


def _whole(desired: DesiredState, plans: Iterable[TargetPlan], kinds: Kinds) -> tuple[Section, ...]:
    """Which sections have a change that sends fields that nobody declared."""
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


def _may_be_below(project: Key | None, group: Key | None) -> bool:
    if not isinstance(project, str) or not isinstance(group, str):
        return True
    return project.casefold().startswith(group.casefold() + "/")


def _plan_part(draft: Draft, part: Part, wanted: Wanted) -> None:
    live: LivePart = draft.live.parts[draft.target, draft.section.kind, part.name]
    match live, wanted, part:
        case Unreadable(reason=reason, cause=cause), _, _:
            cause = cause or Cause(reason, "")
            problem = Problem(draft.address(part), f"cannot be read: {cause.reason}", remedy=cause.remedy)
            if problem.reason not in {other.reason for other in draft.problems}:
                draft.problems.append(problem)
        case Found(), Resource(), Singleton():
            _plan_singleton(draft, part, wanted, live)
        case tuple(), Mapping(), Collection():
            Matching(draft, part, live).run(wanted)
        case _:  # pragma: no cover - a kind whose split and parts disagree
            raise AssertionError(f"{draft.section.kind}.{part.name} is split unlike its endpoint")


def _plan_singleton(draft: Draft, part: Singleton, wanted: Resource, found: Found) -> None:
    address = draft.address(part)
    possible = draft.settle(address, wanted, found)
    if possible is None:
        return
    before, after = differences(possible, found)
    if after:
        requests = part.update(draft.target, only(possible, after), found)
        hint = "; ".join(doubt for _, doubt in become(found.resource, possible, found.unknown).warnings())
        draft.updates.append(Update(address, before, after, requests, as_read(found), hint=hint))
