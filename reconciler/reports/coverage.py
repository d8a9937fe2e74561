"""The fleet at a glance: the state of each section of each target (`matrix`), and the share in order. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self, TypeVar

from reconciler.document.document import BaselineShare, RunDocument
from reconciler.model.item import Delete, Finding, Item, Keep, Outcome, Status, section_of
from reconciler.model.targets import Level, Target

T = TypeVar("T")


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

STATE_AFTER = {
    Status.DONE: State.IN_ORDER,
    Status.FAILED: State.PROBLEM,
    Status.DROPPED: State.PROBLEM,
    Status.STALE: State.CHANGES,
    Status.SKIPPED: State.CHANGES,
}
"""The state of a section after a change, by the status of the outcome."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some targets are in order.

    Attributes:
        in_order: the number of targets in order.
        all: the number of all these targets.
    """

    in_order: int
    all: int

    @classmethod
    def of(cls, targets: Sequence[Target], document: RunDocument) -> Self:
        """Return the share of targets without changes and problems; excepted differences count as in order."""
        return cls(sum(target not in document.differing for target in targets), len(targets))

    @property
    def percent(self) -> float:
        """The percentage with one decimal, rounded down: 100 means that all targets are in order."""
        return 1000 * self.in_order // self.all / 10 if self.all else 100.0


def counted_targets(document: RunDocument) -> tuple[Target, ...]:
    """Return the targets that a share counts: the projects, or all where there are no projects."""
    targets = tuple(seen.target for seen in document.targets)
    return tuple(target for target in targets if target.level is Level.PROJECT) or targets


@dataclass(frozen=True, slots=True)
class Row:
    """The states of a target.

    Attributes:
        target: the target.
        states: the states of the matrix's sections, in their order.
        path: the full path of a group or project that is declared by its ID, if it is known.
    """

    target: Target
    states: tuple[State, ...]
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """All targets by all sections that any target declares.

    Attributes:
        sections: their names, in alphabetical order.
        rows: a row for each target, in the order of a plan: the instance, the user, groups, projects.
    """

    sections: tuple[str, ...]
    rows: tuple[Row, ...]


def matrix(document: RunDocument) -> Matrix:
    """Return the declared sections of the targets of a plan or a report, with their states.

    A problem of a whole target counts in each section that it declares, or in all sections if it declares none. Each
    section of a target that a plan creates counts as changed. Differences that a baseline has too are counted.
    """
    by_section: dict[tuple[Target, str], list[Item]] = defaultdict(list)
    for target, items in document.by_target.items():
        for item in items:
            by_section[target, section_of(item)].append(item)
    names = tuple(sorted({name for seen in document.targets for name in seen.sections} - {""}))
    # thousands of targets have the same few rows: each row is kept once
    shared: dict[tuple[State, ...], tuple[State, ...]] = {}

    def states(target: Target, section_names: Iterable[str]) -> tuple[State, ...]:
        own = {
            name: _worst([*_states(by_section[target, name]), *_baseline_states(document.known, target, name)])
            for name in section_names
        }
        whole = own.get("", State.IN_ORDER)
        if SEVERITY[whole] <= SEVERITY[State.CHANGES]:
            declared = own.keys() - {""} or (names if whole is State.PROBLEM else ())
            own = {name: _worst((whole, own.get(name, whole))) for name in declared}
        row = tuple(own.get(name, State.NOT_DECLARED) for name in names)
        return shared.setdefault(row, row)

    rows = (Row(seen.target, states(seen.target, seen.sections), seen.path) for seen in document.targets)
    return Matrix(names, tuple(sorted(rows, key=lambda row: row.target.order)))


def worst_first(fleet: Matrix) -> Matrix:
    """Return the matrix with problems and changes in the first columns: a page may not have room for all columns."""
    severities = [
        min((SEVERITY[row.states[number]] for row in fleet.rows), default=0) for number in range(len(fleet.sections))
    ]
    order = sorted(range(len(fleet.sections)), key=lambda number: min(severities[number], SEVERITY[State.EXCEPTED]))

    def reordered(column_values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(column_values[number] for number in order)

    rows = (replace(row, states=reordered(row.states)) for row in fleet.rows)
    return Matrix(reordered(fleet.sections), tuple(rows))


STATE_OF_CODE = {
    "problem": State.PROBLEM,
    "excepted": State.EXCEPTED,
    "not_applicable": State.NOT_APPLICABLE,
    "unmanaged": State.UNMANAGED,
}
"""The state of a section by the code of a finding."""


def _states(items: Iterable[Item]) -> Iterator[State]:
    """Yield the states of a section by the items about it."""
    for item in items:
        match item:
            case Outcome():
                yield STATE_AFTER[item.status]
            case Finding():
                yield STATE_OF_CODE.get(item.code, State.IN_ORDER)
            case Keep():
                yield State.IN_ORDER
            case Delete():
                yield State.DELETIONS
            case _:
                yield State.CHANGES


def _baseline_states(baseline_share: BaselineShare | None, target: Target, section: str) -> Iterator[State]:
    """Yield the states of a section by the differences that a baseline has too."""
    if baseline_share and (target, section) in baseline_share.troubled:
        yield State.PROBLEM
    if baseline_share and (target, section) in baseline_share.changed:
        yield State.CHANGES


def _worst(states: Iterable[State]) -> State:
    return min(states, key=SEVERITY.__getitem__, default=State.IN_ORDER)
