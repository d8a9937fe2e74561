"""The planner: `make_plan` compares desired and live state, and returns a plan. Pure; knows no kind by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, cast

from reconciler.engine.compare.collections import plan_collection, without_own_project
from reconciler.engine.compare.creation import as_created, existing
from reconciler.engine.compare.earlier import NOTHING_EARLIER, ChangesAbove, Earlier
from reconciler.engine.compare.exceptions import (
    PartExceptions,
    excepted_problem,
    excepting_section,
    without_excepted_settings,
)
from reconciler.engine.compare.objects import plan_settings
from reconciler.engine.compare.obstacles import as_problem
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.references import deleted_ids
from reconciler.engine.compare.widened import with_kept_in_top_groups, with_widened
from reconciler.model.creation import ToCreate
from reconciler.model.endpoints import Collection, Singleton, as_json
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Create, Delete, Finding, Keep, Update
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, Step, TargetPlan, in_order_of_actions
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource, Wanted
from reconciler.model.state import (
    NOTHING_RECORDED,
    DesiredState,
    DesiredTarget,
    LiveState,
    Lookup,
    Section,
    Unreadable,
)
from reconciler.model.targets import Address, Key, Level, Target


@dataclass(frozen=True, slots=True)
class PartPlanners:
    """The functions that plan a settings record and a collection; see `plan_settings` and `plan_collection`."""

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
    previous_plan: Plan = NO_PLAN,
    planners: PartPlanners = AS_DECLARED,
) -> Plan:
    """Compare desired state with live state.

    A plan with lookups lacks the steps that depend on them: answer them by `lookups.with_lookups`, and plan again.

    Args:
        desired: the declared state.
        live: the live state.
        kinds: all kinds.
        previous_plan: the plan before the last lookups; its targets without lookups are not planned again.
        planners: the functions that plan parts.
    """
    above = ChangesAbove(kinds)
    # A lookup of a group may change what is possible below it: then every target is planned again.
    waits = any(target.target.level is Level.GROUP and target.lookups for target in previous_plan.targets)
    done_before = () if waits else (target.without_keeps() for target in previous_plan.targets if not target.lookups)
    settled = {target.target: target for target in done_before}
    planned: list[TargetPlan] = []
    for target in desired.targets:
        done = settled.get(target.target)
        planned.append(done or plan_target(target, live, kinds, desired.grace, planners, above=above))
        above.add(planned[-1])
    if above.deletes_in_top_groups and not any(target.lookups for target in planned):
        tops = {target.target: above.in_top_group(target) for target in desired.targets}
        planned = with_kept_in_top_groups(planned, tops, live, kinds)
    excepts = any(target.exceptions for target in desired.targets)
    # Of a target that does not exist, all is read and planned again once it is created.
    current = existing(desired, live.absent) if live.absent else desired
    kept = without_excepted_settings(current, live.read_at.date(), kinds) if excepts else current
    affected = (section for target in kept.targets for section in target.sections if above.may_affect(section))
    replanned: dict[Target, list[Keep]] = {}
    for section in affected:
        replanned.setdefault(section.target, []).append(_settings_to_replan(section))
    return Plan(tuple(target.adding(*replanned.get(target.target, ())) for target in planned))


def plan_target(
    target: DesiredTarget,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta,
    planners: PartPlanners = AS_DECLARED,
    *,
    above: ChangesAbove | None = None,
) -> TargetPlan:
    """Plan one target, given the changes of the plan to the groups above it."""
    path = target.path if isinstance(target.target.ref, int) else None
    declared = {section.kind for section in target.sections}
    exceptions = tuple(exception for exception in target.exceptions if exception.section in declared)
    empty = TargetPlan(
        target.target,
        id=target.target.ref if isinstance(target.target.ref, int) else None,
        origin=target.origin,
        exceptions=exceptions,
        path=path,
        labels=dict(target.labels),
    )
    today = live.read_at.date()
    obstacle = _target_obstacle(target, live, kinds, today)
    if obstacle is not None:
        problem = as_problem(obstacle.at(target.target.address))
        return replace(empty, sections={"": 0, **{section.kind: 0 for section in target.sections}}, items=(problem,))
    above = above or ChangesAbove(kinds)
    in_top_group = above.in_top_group(target)
    planned = empty
    for section in target.sections:
        alone = plan_section(
            section,
            live,
            kinds,
            grace,
            planners,
            exceptions=target.excepts(section.kind, today),
            earlier=above.changes_before(section, in_top_group, planned),
        )
        planned = replace(
            planned,
            sections={**planned.sections, **alone.sections},
            items=(*planned.items, *alone.items),
            lookups=planned.lookups | alone.lookups,
        )
    whole = with_widened(planned, live, kinds, in_top_group)
    absent_target = live.absent.get(target.target.identity)
    return as_created(whole, absent_target) if isinstance(absent_target, ToCreate) else whole


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
    """Plan one section, as the plan of a target that has no other section."""
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
            recorded=live.recorded.get((section.target, section.kind, part.name), NOTHING_RECORDED),
        )
        match part, section.wanted[part.name], read:
            case _, wanted, Unreadable() as unreadable:
                cause = unreadable.cause or Obstacle(at.address(), unreadable.reason)
                step = _unread(at, wanted, cause)
                # The parts of one section mostly fail for one reason, which is reported once.
                unread.setdefault((type(step), cause.reason), step)
            case Singleton(), Resource() as wanted, LiveRecord() as record:
                steps += planners.settings(at, wanted, record)
            case Collection(), Mapping() as wanted, Objects() as objects:
                others = without_own_project(at, objects.own)
                count += len(others)
                planned = planners.collection(at, wanted, others)
                steps += (*planned, *_inherited_and_hidden(at, objects, planned), *_flaws(at, wanted, objects, planned))
            case _:  # pragma: no cover - a kind whose split and parts disagree
                raise AssertionError(f"{section.kind}.{part.name} is split unlike its endpoint")
    steps = [*unread.values(), *steps]
    findings = (step for step in steps if isinstance(step, Finding))
    return TargetPlan(
        section.target,
        {section.kind: count},
        items=(*in_order_of_actions(steps), *findings),
        lookups=frozenset(step for step in steps if isinstance(step, Lookup)),
    )


def _unread(at: DeclaredPart[Any], declaration: Wanted, cause: Obstacle) -> Finding:
    """Return the problem of an unreadable part, or an excepted finding if exceptions cover the whole part."""
    problem = at.problem(None, f"cannot be read: {cause.reason}", cause.remedy)
    exceptions = at.exceptions.excepting_all(declaration, prune=at.section.prune)
    return excepted_problem(problem, exceptions) if exceptions else problem


def _inherited_and_hidden(at: DeclaredPart[Any], objects: Objects, steps: Sequence[Step]) -> Iterator[Step]:
    """Yield findings about listed objects that are not planned: inherited ones, and ones with hidden entries."""
    for record, holder in objects.inherited:
        reason = f"is inherited from {holder.name}"
        yield Finding(at.address(record.names[0]), "inherited", reason, data={"holder": holder.name})
    gone = deleted_ids([step for step in steps if isinstance(step, Update | Delete)])
    for record, field in objects.hidden:
        if record.id not in gone:
            reason = f"keeps {field} that this token cannot see"
            yield Finding(at.address(record.names[0]), "hidden", reason, field=field)


def _flaws(
    at: DeclaredPart[Collection], wanted: Mapping[Key, Resource | None], objects: Objects, steps: Iterable[Step]
) -> Iterator[Finding]:
    """Yield a finding about each declared object that, after the plan, has no effect; see `Relations.flaw`."""
    changes = {step.address.name: step for step in steps if isinstance(step, Create | Update)}
    by_name = {at.part.identity(name): record for record in objects.own for name in record.names}
    by_id = {record.id: record for record in objects.own}
    for name in (name for name, resource in wanted.items() if resource is not None):
        change = changes.get(name)
        record = by_id.get(change.read.id) if isinstance(change, Update) else by_name.get(at.part.identity(name))
        if change is None and record is None:
            continue
        fields = {**(as_json(record.resource) if record else {}), **(change.after if change else {})}
        reason = at.part.relations.flaw(name, fields, record)
        if reason:
            yield Finding(at.address(name), "flaw", reason)


def _target_obstacle(target: DesiredTarget, live: LiveState, kinds: Kinds, today: date) -> Obstacle | None:
    """Return one obstacle for a target of which no part is visible; None if any part is.

    A target to be created is planned against nothing. A target whose declarations are all excepted has no obstacle.
    """
    absent_target = live.absent.get(target.target.identity)
    if absent_target is not None:
        return absent_target if isinstance(absent_target, Obstacle) else None
    excepted = (
        excepting_section(section, target.excepts(section.kind, today), kinds[section.kind])
        for section in target.sections
    )
    if not live.shows_nothing_of(target) or all(excepted):
        return None
    absent = next(iter(live.unread(*target.sections).values()))
    return absent.cause or Obstacle(target.target.address, f"not found, or not visible to this token ({absent.reason})")


def _settings_to_replan(section: Section) -> Keep:
    """Return the declared settings of a section that is planned again after a group above it was changed."""
    fields: dict[str, Json] = {}
    for wanted in section.wanted.values():
        settings = cast("Resource", wanted)  # objects are never inherited
        fields |= settings.model_dump(mode="json", include=settings.model_fields_set)
    address = Address(section.target, section.kind, section.kind, section.kind)
    at_least = tuple(sorted(section.at_least.get(None, ())))
    return Keep(address, after=fields, prune=section.prune, at_least=at_least)
