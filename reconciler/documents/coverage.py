"""The fleet at a glance: what each target declares, how each of its sections is, and how much is in order. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Self

from reconciler.documents.plan_file import BaselineShare, SavedPlan
from reconciler.documents.report import Report
from reconciler.model.plan import SectionPlan, Status, TargetPlan
from reconciler.model.targets import Level, Target


class State(StrEnum):
    """The state of one section of one target, the worst first."""

    DELETIONS = "deletions"
    PROBLEM = "problem"
    CHANGES = "changes"
    EXCEPTED = "excepted"
    NOT_APPLICABLE = "not applicable"
    UNMANAGED = "unmanaged"
    IN_ORDER = "in order"
    NOT_DECLARED = "not declared"


SEVERITY = {state: number for number, state in enumerate(State)}

AFTER = {
    Status.DONE: State.IN_ORDER,
    Status.FAILED: State.PROBLEM,
    Status.DROPPED: State.PROBLEM,
    Status.STALE: State.CHANGES,
    Status.SKIPPED: State.CHANGES,
}
"""What a change leaves behind, by what became of it."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some targets are in order.

    Attributes:
        in_order: how many of them.
        all: how many they are.
    """

    in_order: int
    all: int

    @classmethod
    def of(cls, targets: Collection[TargetPlan]) -> Self:
        """Return how many of these targets are in order."""
        return cls(sum(map(is_in_order, targets)), len(targets))

    @property
    def percent(self) -> float:
        """The share with one decimal, rounded down: it is 100 only if all are in order."""
        return 1000 * self.in_order // self.all / 10 if self.all else 100.0


def is_in_order(target: TargetPlan) -> bool:
    """Return whether a target has neither changes nor problems. What exceptions hold back is in order."""
    return not any(target.entries)


def counted_targets(targets: Iterable[TargetPlan]) -> tuple[TargetPlan, ...]:
    """Return the targets that a share counts: the projects, or all where there are no projects."""
    targets = tuple(targets)
    return tuple(target for target in targets if target.target.level is Level.PROJECT) or targets


@dataclass(frozen=True, slots=True)
class Row:
    """One target.

    Attributes:
        target: which.
        states: those of the matrix's sections, in their order.
        path: the full path of a group or project that is declared by its ID, where it is known.
    """

    target: Target
    states: tuple[State, ...]
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """All targets by all sections that any of them declares.

    Attributes:
        sections: their names, in alphabetical order.
        rows: one for each target, in the order of a plan: the instance, the user, groups, projects.
    """

    sections: tuple[str, ...]
    rows: tuple[Row, ...]


def matrix(document: SavedPlan | Report) -> Matrix:
    """Return what the targets of a plan, or of a report, declare, and the state of each section.

    A problem of a whole target counts in each section that it declares. An older document does not name these: there,
    it counts in all sections. Each section of a target that is to be created counts as changed. Differences that are in
    a baseline count, too. A report of an older version lacks the targets that were in order.
    """
    by_target = dict(_targets(document))
    names = tuple(sorted({name for own in by_target.values() for name in own} - {""}))
    shared: dict[tuple[State, ...], tuple[State, ...]] = {}

    def states(own: Mapping[str, State]) -> tuple[State, ...]:
        whole = own.get("", State.IN_ORDER)
        if SEVERITY[whole] <= SEVERITY[State.CHANGES]:
            declared = own.keys() - {""} or (names if whole is State.PROBLEM else ())
            own = {name: _worst((whole, own.get(name, whole))) for name in declared}
        row = tuple(own.get(name, State.NOT_DECLARED) for name in names)
        return shared.setdefault(row, row)

    paths = {target.target: target.path for target in document.targets}
    rows = (Row(target, states(own), paths.get(target)) for target, own in by_target.items())
    return Matrix(names, tuple(sorted(rows, key=lambda row: row.target.order)))


def _targets(document: SavedPlan | Report) -> Iterator[tuple[Target, Mapping[str, State]]]:
    """Yield each target with the states of its sections; that of the whole target has an empty name."""
    known = document.known if isinstance(document, SavedPlan) else None
    for target in document.targets:
        yield (
            target.target,
            {
                section.section: _worst(chain(_states(section), _known_states(known, target.target, section.section)))
                for section in target.sections
            },
        )
    for group in document.in_order if isinstance(document, Report) else ():
        quiet = {name: State.UNMANAGED if name in group.unmanaged else State.IN_ORDER for name in group.sections}
        yield from ((Target(group.level, ref), quiet) for ref in group.targets)


def _states(section: SectionPlan) -> Iterator[State]:
    """Yield the states of what a section holds."""
    if section.problems:
        yield State.PROBLEM
    if section.outcomes:
        yield from (AFTER[outcome.status] for outcome in section.outcomes)
    else:
        yield from (State.DELETIONS if change.action == "delete" else State.CHANGES for change in section.changes)
    if section.excepted:
        yield State.EXCEPTED
    if section.not_applicable:
        yield State.NOT_APPLICABLE
    if section.unmanaged:
        yield State.UNMANAGED


def _known_states(known: BaselineShare | None, target: Target, section: str) -> Iterator[State]:
    """Yield the states of what a section holds and a baseline has too."""
    if known and (target, section) in known.troubled:
        yield State.PROBLEM
    if known and (target, section) in known.changed:
        yield State.CHANGES


def _worst(states: Iterable[State]) -> State:
    return min(states, key=SEVERITY.__getitem__, default=State.IN_ORDER)
