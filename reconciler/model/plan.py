"""A `Plan`, as a value: the changes with their requests, the problems, and the objects that stay as they are.

A plan is complete: every change carries its requests, so its cost is known before it starts, and each declaration that
cannot be planned is a problem in it. `engine.compare` makes the list of each target, and `engine.apply` carries it out:
a report is the same list, with an outcome in place of each change. Begin with `TargetPlan`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from typing import Any

from reconciler.model.codes import code_of
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Item,
    Keep,
    Outcome,
    Status,
    Update,
    change_in,
    section_of,
)
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import Lookup, Reference
from reconciler.model.targets import Address, Target

Step = Change | Finding | Lookup
"""One result of planning. A lookup is what must be asked for before its object can be planned."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A target in a run, without the plan for it.

    Attributes:
        target: which.
        sections: the declared sections, in the order in which they are applied, each with the number of objects that it
            held when it was read; None if it was not read.
        id: its numeric ID, if it is known.
        labels: from `metadata.labels` of its document and of the sets that select it.
        origin: its manifest, as path:line.
        path: its full path, where its manifest gives the ID and the path is known.
        exceptions: those of its document, expired ones included.
        importing: whether an import is to fill it, one that is under way or that the creation starts.
        arriving: the group, this one or one above it, that an archive may still fill; empty if there is none.
        digest: of all that is declared of it, as of `memory.effective`; empty in a run that keeps no inventory.
        again: the first day (UTC) on which time alone changes what is wanted; None if no day does.
        done: whether its changes leave nothing undone that is declared of it; False in a run that keeps no inventory.
    """

    target: Target
    sections: Mapping[str, int | None] = field(default_factory=dict)
    id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    path: str | None = None
    exceptions: tuple[DeclaredException, ...] = ()
    importing: bool = False
    arriving: str = ""
    digest: str = ""
    again: date | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class TargetPlan(Seen):
    """One target with the items of a plan; or, after an apply, with the outcomes.

    Attributes:
        items: by section: its changes in the order in which they are carried out, or their outcomes; then settings that
            are in order and planned again; then findings.
        lookups: the lookups that are needed to plan the target completely; none in a plan that is shown.
    """

    items: tuple[Item, ...] = ()
    lookups: frozenset[Lookup] = frozenset()

    @classmethod
    def of(cls, seen: Seen, items: Iterable[Item]) -> "TargetPlan":
        """Return a target of a run with its items."""
        return cls(**_looked_at(seen), items=tuple(items))

    @property
    def seen(self) -> Seen:
        """The target without its items."""
        return Seen(**_looked_at(self))

    @property
    def by_section(self) -> dict[str, tuple[Item, ...]]:
        """Its items by section."""
        items: dict[str, list[Item]] = {name: [] for name in self.sections}
        for item in self.items:
            items[section_of(item)].append(item)
        return {name: tuple(own) for name, own in items.items()}

    def only(self, sections: Iterable[str]) -> "TargetPlan":
        """Return the target without its other sections."""
        numbers = {name: number for name, number in self.sections.items() if name in sections}
        return replace(self, sections=numbers, items=tuple(item for item in self.items if section_of(item) in sections))

    @property
    def creation(self) -> Create | None:
        """The creation of the target itself; None if it exists, or cannot be created."""
        return next((made for made in self.changes if isinstance(made, Create) and not made.address.section), None)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in the order in which they are carried out."""
        changes = (item.change if isinstance(item, Outcome) else item for item in self.items)
        return tuple(change for change in changes if not isinstance(change, Finding | Keep))

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes of the changes; empty before an apply."""
        return tuple(item for item in self.items if isinstance(item, Outcome))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings."""
        return tuple(item for item in self.items if isinstance(item, Finding))

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Declared settings that cannot be planned."""
        return self.findings_of("problem")

    def findings_of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings that have a code."""
        return tuple(item for item in self.items if isinstance(item, Finding) and item.code == code)

    @property
    def in_order(self) -> bool:
        """Whether all its changes are done and it has no problem."""
        return not self.problems and all(outcome.status is Status.DONE for outcome in self.outcomes)

    def adding(self, *items: Finding | Keep) -> "TargetPlan":
        """Return the target with further findings and settings to plan again, also in sections that it did not have."""
        if not items:
            return self
        numbers = dict(self.sections)
        for item in items:
            numbers.setdefault(item.address.section, 0)
        return replace(self, sections=numbers, items=arranged(numbers, (*self.items, *items)))

    def without_keeps(self) -> "TargetPlan":
        """Return the target without the settings to plan again."""
        others = tuple(item for item in self.items if not isinstance(item, Keep))
        return self if len(others) == len(self.items) else replace(self, items=others)

    def with_changes(self, become: Callable[[Change], Item | None]) -> "TargetPlan":
        """Return the target with each change replaced by another item; None drops it."""
        items = (item if (change := change_in(item)) is None else become(change) for item in self.items)
        return replace(self, items=tuple(item for item in items if item is not None))

    def with_outcomes(self, outcomes: Iterable[Outcome]) -> "TargetPlan":
        """Return the target with the outcomes of its first changes, in their order; all later changes have none yet."""
        remaining = iter(outcomes)
        return self.with_changes(lambda change: next(remaining, change))

    def with_origins(self, origin: Callable[[Address, str | None], str]) -> "TargetPlan":
        """Return the plan with the origins of changes, problems and remarks.

        The origin of a problem of the whole target is that of its document.
        """

        def placed(item: Item) -> Item:
            match item:
                case Finding():
                    return self._placed(item, origin)
                case Create() | Update() | Delete():
                    place = _ended(item) or origin(item.address, _only_field(item)) or item.origin
                    return replace(item, origin=place)
            return item

        return replace(self, items=tuple(map(placed, self.items)))

    def _placed(self, finding: Finding, origin: Callable[[Address, str | None], str]) -> Finding:
        """Return a finding with its origin, if its code has one; a problem of a target has that of its document."""
        if finding.code == "problem":
            place = origin(finding.address, finding.field) if finding.address.section else ""
            return replace(finding, origin=place or self.origin)
        if finding.where and not code_of(finding.code).own_form:
            return replace(finding, origin=origin(finding.where, finding.field) or finding.origin)
        return finding


def known_ids(seen_targets: Iterable[Seen]) -> dict[Reference, int]:
    """Return the known numeric IDs of the targets that are named by path."""
    return {
        Reference(seen.target.level, seen.target.ref.casefold()): seen.id
        for seen in seen_targets
        if isinstance(seen.target.ref, str) and seen.id is not None
    }


def arranged(sections: Iterable[str], items: Iterable[Item]) -> tuple[Item, ...]:
    """Return items by section: changes first, then findings; within them, the order is kept."""
    places = {name: place for place, name in enumerate(sections)}
    return tuple(sorted(items, key=lambda item: (places[section_of(item)], _rank(item))))


def _rank(item: Item) -> int:
    return 2 if isinstance(item, Finding) else 1 if isinstance(item, Keep) else 0


def _looked_at(seen: Seen) -> dict[str, Any]:
    return {field.name: getattr(seen, field.name) for field in fields(Seen)}


def _ended(change: Change) -> str:
    """Return the last commit that declared an object, if the object is deleted because it is no longer declared."""
    return change.origin if isinstance(change, Delete) else ""


def _only_field(change: Change) -> str | None:
    """Return the only field of a change; None if there are several, or none."""
    fields = [*change.after] if isinstance(change, Update) else []
    return fields[0] if len(fields) == 1 else None


def in_order_of_actions(steps: Sequence[Step]) -> tuple[Change, ...]:
    """Return the changes among some steps: creations, then updates, then deletions.

    In this order, nothing is unprotected in between.
    """
    changes = [step for step in steps if isinstance(step, Create | Update | Delete)]
    return tuple(sorted(changes, key=lambda change: ACTIONS.index(change.action)))


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes and findings in all targets: users, then groups, then projects."""

    targets: tuple[TargetPlan, ...] = ()

    @property
    def changes(self) -> Iterator[Change]:
        """All changes of all targets."""
        return (change for target in self.targets for change in target.changes)

    @property
    def problems(self) -> Iterator[Finding]:
        """All problems of all targets."""
        return self.findings_of("problem")

    def findings_of(self, code: str) -> Iterator[Finding]:
        """Yield the findings of all targets that have a code."""
        return (finding for target in self.targets for finding in target.findings_of(code))

    @property
    def lookups(self) -> frozenset[Lookup]:
        """The lookups that are needed to make the plan complete."""
        return frozenset(lookup for target in self.targets for lookup in target.lookups)

    @property
    def cost(self) -> int:
        """The number of requests of the changes."""
        return sum(len(change.requests) for change in self.changes)

    def numbered(self, ids: Mapping[Reference, int | Obstacle]) -> "Plan":
        """Return the plan with the known numeric IDs of the targets that are named by path."""

        def known(target_plan: TargetPlan) -> TargetPlan:
            ref = target_plan.target.ref
            number = ids.get(Reference(target_plan.target.level, ref.casefold())) if isinstance(ref, str) else None
            return replace(target_plan, id=number) if isinstance(number, int) else target_plan

        return replace(self, targets=tuple(map(known, self.targets)))

    def with_findings(self, findings: Iterable[Finding]) -> "Plan":
        """Return the plan with further findings about its targets."""
        by_target: dict[Target, list[Finding]] = {}
        for finding in findings:
            by_target.setdefault(finding.address.target, []).append(finding)
        targets = (target.adding(*by_target.get(target.target, ())) for target in self.targets)
        return replace(self, targets=tuple(targets)) if by_target else self
