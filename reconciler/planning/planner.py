"""The planner: desired state and live state in, plan out. Pure, and ignorant of what the kinds are."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import chain
from typing import TypeVar

from reconciler.model.creation import ToCreate
from reconciler.model.diff import quoted
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.exceptions import DeclaredException
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import (
    Change,
    Create,
    Delete,
    Excepted,
    HiddenEntries,
    InheritedObject,
    Plan,
    Problem,
    SectionPlan,
    Step,
    TargetPlan,
    Unmanaged,
    Update,
)
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import (
    DesiredState,
    DesiredTarget,
    LiveState,
    Lookup,
    Reference,
    Section,
    Unreadable,
    Vocabulary,
)
from reconciler.model.targets import Key, Level, Target
from reconciler.planning.bared import with_bared
from reconciler.planning.collections import plan_collection, without_itself
from reconciler.planning.creation import as_created, existing
from reconciler.planning.exceptions import PartExceptions, about_all, about_section, hold_back, less_excepted
from reconciler.planning.naming import gone_by
from reconciler.planning.objects import ANOTHER_NAME, TAKEN_ABOVE, plan_settings
from reconciler.planning.obstacles import as_problem
from reconciler.planning.part import NO_LOCKS, NO_NAMES, NOTHING_BEFORE, Before, DeclaredPart, Locks

Above = TypeVar("Above")


@dataclass(frozen=True, slots=True)
class PartPlanners:
    """How a settings record and how a collection is planned; see `plan_settings` and `plan_collection`."""

    settings: Callable[[DeclaredPart[Singleton], Resource, LiveRecord], Iterator[Step]] = plan_settings
    collection: Callable[
        [DeclaredPart[Collection], Mapping[Key, Resource | None], Sequence[LiveRecord]], Iterator[Step]
    ] = plan_collection


AS_DECLARED = PartPlanners()


def make_plan(
    desired: DesiredState,
    live: LiveState,
    kinds: Kinds,
    earlier: dict[Target, TargetPlan] | None = None,
    planners: PartPlanners = AS_DECLARED,
) -> tuple[Plan, frozenset[Lookup]]:
    """Compare desired with live state.

    Args:
        desired: what is wanted.
        live: what is there.
        kinds: all kinds.
        earlier: targets that were planned before and need no lookup, which are not planned again; takes up the others
            of which that is true now.
        planners: how parts are planned.

    Returns:
        The plan and the lookups it needs and `live` lacks. While there are any, what depends on them is left out of the
        plan: see `live.records.with_lookups`, and plan again.
    """
    above = ChangesAbove(kinds)
    known = {} if earlier is None else earlier
    planned: list[tuple[TargetPlan, frozenset[Lookup]]] = []
    for target in desired.targets:
        done = known.get(target.target)
        if done is None:
            planned.append(plan_target(target, live, kinds, desired.grace, planners, above=above))
        else:
            planned.append((done, frozenset()))
        above.add(planned[-1][0])
    if not any(missing and target.target.level is Level.GROUP for target, missing in planned):
        known.update((target.target, target) for target, missing in planned if not missing)
    targets = tuple(target for target, _ in planned)
    excepts = any(target.exceptions for target in desired.targets)
    # Of a target that does not exist, all is read and planned again once it is created.
    there = existing(desired, live.absent) if live.absent else desired
    kept = less_excepted(there, live.read_at.date(), kinds) if excepts else there
    plan = Plan(targets, _dependent(kept, above), _whole(kept, targets, kinds))
    return plan, frozenset(reference for _, missing in planned for reference in missing)


class ChangesAbove:
    """The changes of a plan to groups that decide what is possible below them."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._locks: dict[tuple[str, str], Locks] = {}
        self._changed: set[str] = set()
        self._anywhere: set[str] = set()
        self._taken: dict[tuple[str, str], dict[Key, Obstacle]] = {}
        self._at_the_top: dict[str, Before] = {}

    def add(self, planned: TargetPlan) -> None:
        """Add the changes of a target, if it is a group."""
        if planned.target.level is not Level.GROUP:
            return
        group = planned.path or planned.target.ref
        if isinstance(group, str) and "/" not in group:
            self._at_the_top[group.casefold()] = {section.section: section.changes for section in planned.sections}
        for section in planned.sections:
            if not (section.section and section.changes):
                continue
            if isinstance(group, str):
                self._take(group, section)
            inherits = self._kinds[section.section].inherits
            if inherits is None:
                continue
            self._changed.add(section.section)
            if isinstance(group, str):
                updates = (change.after.items() for change in section.changes if isinstance(change, Update))
                locks = inherits(dict(chain.from_iterable(updates)))
                self._locks[section.section, group.casefold()] = {
                    field: (value, _locked_by(planned.target, group, value)) for field, value in sorted(locks.items())
                }
            else:
                self._anywhere.add(section.section)

    def _take(self, group: str, section: SectionPlan) -> None:
        """Add the names that a group's section gives to its objects, and that are taken below it then."""
        for change in section.changes:
            part = self._kinds[section.section].part(change.address.part)
            given = isinstance(change, Create) or (
                isinstance(change, Update) and bool(change.renamed_from is not None or change.read.below)
            )
            if given and isinstance(part, Collection) and part.listing.unique_below and change.address.name is not None:
                names = self._taken.setdefault((section.section, group.casefold()), {})
                reason = TAKEN_ABOVE.format(f"group {group}")
                names[part.identity(change.address.name)] = Obstacle(change.address, reason, ANOTHER_NAME)

    def taken(self, section: Section) -> Mapping[Key, Obstacle]:
        """Return the names that the changes take from a section, each with why it cannot be given there."""
        return {name: why for names in self._above(section, self._taken) for name, why in names.items()}

    def at_the_top(self, target: DesiredTarget) -> Before:
        """Return the changes of the topmost group above a target, by section."""
        path = target.path if isinstance(target.target.ref, int) else target.target.ref
        top, _, below = (path or "").casefold().partition("/")
        return self._at_the_top.get(top, NOTHING_BEFORE) if below else NOTHING_BEFORE

    def locks(self, section: Section) -> Locks:
        """Return what the changes lock in a section."""
        return {field: lock for locks in self._above(section, self._locks) for field, lock in locks.items()}

    def may_affect(self, section: Section) -> bool:
        """Return whether a section of a project may be below a change: paths of those known only by ID are unknown."""
        if section.target.level is not Level.PROJECT or section.kind not in self._changed:
            return False
        known = isinstance(section.target.ref, str) and section.kind not in self._anywhere
        return not known or any(True for _ in self._above(section, self._locks))

    def _above(self, section: Section, changes: Mapping[tuple[str, str], Above]) -> Iterator[Above]:
        """Yield what the changes to each group above a section mean for it, the topmost first."""
        if changes and isinstance(section.target.ref, str):
            names = section.target.ref.casefold().split("/")
            paths = ((section.kind, "/".join(names[:end])) for end in range(1, len(names)))
            yield from (changes[path] for path in paths if path in changes)


def plan_target(
    target: DesiredTarget,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta,
    planners: PartPlanners = AS_DECLARED,
    *,
    above: ChangesAbove | None = None,
) -> tuple[TargetPlan, frozenset[Lookup]]:
    """Plan one target, given the changes of the plan to the groups above; the second value is as of `make_plan`."""
    path = target.path if isinstance(target.target.ref, int) else None
    declared = {section.kind for section in target.sections}
    exceptions = tuple(exception for exception in target.exceptions if exception.section in declared)
    empty = TargetPlan(target.target, (), target.origin, exceptions, path=path, labels=dict(target.labels))
    standing = live.absent.get(target.target.identity)
    to_create = standing if isinstance(standing, ToCreate) else None
    today = live.read_at.date()
    cause = standing if isinstance(standing, Obstacle) else _absence(target, live)
    if cause is not None and standing is None and _is_excepted(target, kinds, today):
        cause = None
    if cause is not None:
        problem = as_problem(cause.at(target.target.address))
        unread = (SectionPlan(section.kind) for section in target.sections)
        return replace(empty, sections=(SectionPlan("", problems=(problem,)), *unread)), frozenset()
    planned: list[SectionPlan] = []
    missing: set[Lookup] = set()
    before: dict[str, tuple[Change, ...]] = {}
    at_the_top = above.at_the_top(target) if above else NOTHING_BEFORE
    for section in target.sections:
        done, lookups = plan_section(
            section,
            live,
            kinds,
            grace,
            planners,
            exceptions=target.excepts(section.kind, today),
            locks=above.locks(section) if above else NO_LOCKS,
            taken=above.taken(section) if above else NO_NAMES,
            before=before,
            at_the_top=at_the_top,
        )
        planned.append(done)
        missing |= lookups
        before[section.kind] = done.changes
    whole = replace(empty, sections=with_bared(planned, target.target, live, kinds, at_the_top))
    return whole if to_create is None else as_created(whole, to_create), frozenset(missing)


def plan_section(
    section: Section,
    live: LiveState,
    kinds: Kinds,
    grace: timedelta = timedelta(),
    planners: PartPlanners = AS_DECLARED,
    *,
    exceptions: tuple[DeclaredException, ...] = (),
    locks: Locks = NO_LOCKS,
    taken: Mapping[Key, Obstacle] = NO_NAMES,
    before: Before = NOTHING_BEFORE,
    at_the_top: Before = NOTHING_BEFORE,
) -> tuple[SectionPlan, frozenset[Lookup]]:
    """Plan one section; the second value is as of `make_plan`."""
    count = 0
    steps: list[Step] = []
    unreadable: dict[str, Problem] = {}
    excepted: dict[str, Excepted] = {}
    inherited: list[InheritedObject] = []
    hidden: list[HiddenEntries] = []
    for part in kinds[section.kind].parts:
        if part.name not in section.wanted:
            continue
        about = PartExceptions(exceptions, part)
        match part, section.wanted[part.name], live.parts[section.target, section.kind, part.name]:
            case _, wanted, Unreadable(reason=reason, cause=cause):
                reason, remedy = (reason, "") if cause is None else (cause.reason, cause.remedy)
                problem = DeclaredPart(section, part, live).problem(None, f"cannot be read: {reason}", remedy)
                holding = about_all(part, wanted, about, prune=section.prune)
                if holding:
                    excepted.setdefault(reason, hold_back(problem, holding))
                else:
                    unreadable.setdefault(reason, problem)
            case Singleton(), Resource() as wanted, LiveRecord() as record:
                declared = DeclaredPart(section, part, live, exceptions=about, locks=locks)
                steps += planners.settings(declared, wanted, record)
            case Collection(), Mapping() as wanted, Objects(own=own) as objects:
                at = DeclaredPart(
                    section, part, live, grace, exceptions=about, taken=taken, before=before, at_the_top=at_the_top
                )
                others = without_itself(at, own)
                count += len(others)
                steps += planners.collection(at, wanted, others)
                inherited += (
                    InheritedObject(at.address(record.names[0]), holder.name) for record, holder in objects.inherited
                )
                hidden += _hidden(at, objects, steps)
            case _:  # pragma: no cover - a kind whose split and parts disagree
                raise AssertionError(f"{section.kind}.{part.name} is split unlike its endpoint")
    planned = SectionPlan(
        section.kind,
        count,
        tuple(step for action in (Create, Update, Delete) for step in steps if isinstance(step, action)),
        (*unreadable.values(), *(step for step in steps if isinstance(step, Problem))),
        tuple(step for step in steps if isinstance(step, Unmanaged)),
        (*excepted.values(), *(step for step in steps if isinstance(step, Excepted))),
        inherited=tuple(inherited),
        hidden=tuple(hidden),
    )
    return planned, frozenset(step for step in steps if isinstance(step, Reference | Vocabulary))


def _hidden(at: DeclaredPart[Collection], objects: Objects, steps: Iterable[Step]) -> Iterator[HiddenEntries]:
    """Yield which lists of the objects that stay hold more than the token can see."""
    gone = gone_by([step for step in steps if isinstance(step, Update | Delete)])
    for record, field in objects.hidden:
        if record.id not in gone:
            yield HiddenEntries(at.address(record.names[0]), field)


def _locked_by(target: Target, group: str, value: Json) -> Obstacle:
    reason = f"group {group} sets it to {quoted(value)} in this plan, which locks it here"
    return Obstacle(target.address, reason, "change it there or leave the field out")


def _is_excepted(target: DesiredTarget, kinds: Kinds, today: date) -> bool:
    """Return whether exceptions hold back all that is declared of a target."""
    return all(
        about_section(section, target.excepts(section.kind, today), kinds[section.kind]) for section in target.sections
    )


def _absence(target: DesiredTarget, live: LiveState) -> Obstacle | None:
    """Return one reason instead of many where nothing of a target is visible; None where something is."""
    if not live.shows_nothing_of(target):
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
