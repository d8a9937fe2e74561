"""The planner: desired state and live state in, plan out. Pure, and ignorant of what the kinds are."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from reconciler.engine.compare.bared import keeping_at_the_top, with_bared
from reconciler.engine.compare.collections import plan_collection, without_itself
from reconciler.engine.compare.creation import as_created, existing
from reconciler.engine.compare.earlier import NOTHING_EARLIER, ChangesAbove, Earlier
from reconciler.engine.compare.exceptions import PartExceptions, about_section, hold_back, less_excepted
from reconciler.engine.compare.objects import plan_settings
from reconciler.engine.compare.obstacles import as_problem
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.references import gone_by
from reconciler.model.creation import ToCreate
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Delete, Finding, Update
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, Step, TargetPlan, in_order_of_actions
from reconciler.model.resource import LiveRecord, Objects, Resource, Wanted
from reconciler.model.state import (
    DesiredState,
    DesiredTarget,
    LiveState,
    Lookup,
    Section,
    Unreadable,
)
from reconciler.model.targets import Key, Level


@dataclass(frozen=True, slots=True)
class PartPlanners:
    """How a settings record and how a collection is planned; see `plan_settings` and `plan_collection`."""

    settings: Callable[[DeclaredPart[Singleton], Resource, LiveRecord], Sequence[Step]] = plan_settings
    collection: Callable[
        [DeclaredPart[Collection], Mapping[Key, Resource | None], Sequence[LiveRecord]], Sequence[Step]
    ] = plan_collection


AS_DECLARED = PartPlanners()


NO_PLAN = Plan(())


def make_plan(
    desired: DesiredState,
    live: LiveState,
    kinds: Kinds,
    earlier: Plan = NO_PLAN,
    planners: PartPlanners = AS_DECLARED,
) -> Plan:
    """Compare desired with live state.

    While the plan has lookups, what depends on them is left out of it: see `records.with_lookups`, and plan again.

    Args:
        desired: what is wanted.
        live: what is there.
        kinds: all kinds.
        earlier: the plan before the last lookups were answered: its targets that need none are not planned again.
        planners: how parts are planned.
    """
    above = ChangesAbove(kinds)
    waits = any(target.target.level is Level.GROUP and target.lookups for target in earlier.targets)
    settled = {} if waits else {target.target: target for target in earlier.targets if not target.lookups}
    planned: list[TargetPlan] = []
    for target in desired.targets:
        done = settled.get(target.target)
        planned.append(done or plan_target(target, live, kinds, desired.grace, planners, above=above))
        above.add(planned[-1])
    if above.ends_some_at_the_top and not any(target.lookups for target in planned):
        tops = {target.target: above.at_the_top(target) for target in desired.targets}
        planned = keeping_at_the_top(planned, tops, live, kinds)
    excepts = any(target.exceptions for target in desired.targets)
    # Of a target that does not exist, all is read and planned again once it is created.
    there = existing(desired, live.absent) if live.absent else desired
    kept = less_excepted(there, live.read_at.date(), kinds) if excepts else there
    return Plan(tuple(planned), _dependent(kept, above), _whole(kept, planned, kinds))


def plan_target(
    target: DesiredTarget,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta,
    planners: PartPlanners = AS_DECLARED,
    *,
    above: ChangesAbove | None = None,
) -> TargetPlan:
    """Plan one target, given the changes of the plan to the groups above."""
    path = target.path if isinstance(target.target.ref, int) else None
    declared = {section.kind for section in target.sections}
    exceptions = tuple(exception for exception in target.exceptions if exception.section in declared)
    empty = TargetPlan(
        target.target, origin=target.origin, exceptions=exceptions, path=path, labels=dict(target.labels)
    )
    today = live.read_at.date()
    obstacle = _absence(target, live, kinds, today)
    if obstacle is not None:
        problem = as_problem(obstacle.at(target.target.address))
        return replace(empty, found={"": 0, **{section.kind: 0 for section in target.sections}}, items=(problem,))
    above = above or ChangesAbove(kinds)
    at_the_top = above.at_the_top(target)
    planned = empty
    for section in target.sections:
        alone = plan_section(
            section,
            live,
            kinds,
            grace,
            planners,
            exceptions=target.excepts(section.kind, today),
            earlier=above.before(section, at_the_top, planned),
        )
        planned = replace(
            planned,
            found={**planned.found, **alone.found},
            items=(*planned.items, *alone.items),
            lookups=planned.lookups | alone.lookups,
        )
    whole = with_bared(planned, live, kinds, at_the_top)
    standing = live.absent.get(target.target.identity)
    return as_created(whole, standing) if isinstance(standing, ToCreate) else whole


def plan_section(
    section: Section,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta = timedelta(),
    planners: PartPlanners = AS_DECLARED,
    *,
    exceptions: Sequence[DeclaredException] = (),
    earlier: Earlier = NOTHING_EARLIER,
) -> TargetPlan:
    """Plan one section, as a target that has no other."""
    unread: dict[tuple[type[Step], str], Step] = {}
    steps: list[Step] = []
    count = 0
    for part in (part for part in kinds[section.kind].parts if part.name in section.wanted):
        read = live.parts[section.target, section.kind, part.name]
        at: DeclaredPart[Any] = DeclaredPart(
            section,
            part,
            live,
            read if isinstance(read, Objects) else None,
            grace,
            PartExceptions(exceptions, part),
            earlier,
        )
        match part, section.wanted[part.name], read:
            case _, wanted, Unreadable() as unreadable:
                cause = unreadable.cause or Obstacle(at.address(), unreadable.reason)
                step = _unread(at, wanted, cause)
                unread.setdefault((type(step), cause.reason), step)
            case Singleton(), Resource() as wanted, LiveRecord() as record:
                steps += planners.settings(at, wanted, record)
            case Collection(), Mapping() as wanted, Objects() as objects:
                others = without_itself(at, objects.own)
                count += len(others)
                planned = planners.collection(at, wanted, others)
                steps += (*planned, *_unplanned(at, objects, planned))
            case _:  # pragma: no cover - a kind whose split and parts disagree
                raise AssertionError(f"{section.kind}.{part.name} is split unlike its endpoint")
    steps = [*unread.values(), *steps]
    said = (step for step in steps if isinstance(step, Finding))
    return TargetPlan(
        section.target,
        {section.kind: count},
        (*in_order_of_actions(steps), *said),
        lookups=frozenset(step for step in steps if isinstance(step, Lookup)),
    )


def _unread(at: DeclaredPart[Any], wanted: Wanted, cause: Obstacle) -> Finding:
    """Return the problem of a part that could not be read, unless exceptions hold back all of it."""
    problem = at.problem(None, f"cannot be read: {cause.reason}", cause.remedy)
    held = at.exceptions.about_all(wanted, prune=at.section.prune)
    return hold_back(problem, held) if held else problem


def _unplanned(at: DeclaredPart[Any], objects: Objects, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield what a list shows besides what is planned: objects of targets above, and entries that nobody can see."""
    for record, holder in objects.inherited:
        reason = f"is inherited from {holder.name}"
        yield Finding(at.address(record.names[0]), "inherited", reason, data={"holder": holder.name})
    gone = gone_by([step for step in steps if isinstance(step, Update | Delete)])
    for record, field in objects.hidden:
        if record.id not in gone:
            reason = f"keeps {field} that this token cannot see"
            yield Finding(at.address(record.names[0]), "hidden", reason, field=field)


def _absence(target: DesiredTarget, live: LiveState, kinds: Kinds, today: date) -> Obstacle | None:
    """Return one reason instead of many where nothing of a target is visible; None where something is.

    A target that is to be created is planned against nothing, and one of which exceptions hold back all needs none.
    """
    standing = live.absent.get(target.target.identity)
    if standing is not None:
        return standing if isinstance(standing, Obstacle) else None
    held = (
        about_section(section, target.excepts(section.kind, today), kinds[section.kind]) for section in target.sections
    )
    if not live.shows_nothing_of(target) or all(held):
        return None
    absent = next(iter(live.unread(*target.sections).values()))
    return absent.cause or Obstacle(target.target.address, f"not found, or not visible to this token ({absent.reason})")


def _dependent(desired: DesiredState, above: ChangesAbove) -> tuple[Section, ...]:
    """Return the sections of projects that a change to a group may affect."""
    return tuple(section for target in desired.targets for section in target.sections if above.may_affect(section))


def _whole(desired: DesiredState, plans: Iterable[TargetPlan], kinds: Kinds) -> tuple[Section, ...]:
    """Return which sections have a change that sends fields that nobody declared."""
    changed = {
        (target.target, change.address.section)
        for target in plans
        for change in target.changes
        if change.address.section and kinds[change.address.section].part(change.address.part).whole
    }
    return tuple(
        section
        for target in desired.targets
        for section in target.sections
        if (section.target, section.kind) in changed
    )
