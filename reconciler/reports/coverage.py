"""The fleet at a glance: what each target declares, how each of its sections is, and how much is in order. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
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
    def of(cls, targets: Collection[Target], document: RunDocument) -> Self:
        """Return how many of these targets have neither changes nor problems. What is excepted is in order."""
        return cls(sum(target not in document.differing for target in targets), len(targets))

    @property
    def percent(self) -> float:
        """The share with one decimal, rounded down: it is 100 only if all are in order."""
        return 1000 * self.in_order // self.all / 10 if self.all else 100.0


def counted_targets(document: RunDocument) -> tuple[Target, ...]:
    """Return the targets that a share counts: the projects, or all where there are no projects."""
    targets = tuple(seen.target for seen in document.targets)
    return tuple(target for target in targets if target.level is Level.PROJECT) or targets


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


def matrix(document: RunDocument) -> Matrix:
    """Return what the targets of a plan, or of a report, declare, and the state of each section.

    A problem of a whole target counts in each section that it declares, or in all sections if it declares none. Each
    section of a target that is to be created counts as changed. Differences that are in a baseline count, too.
    """
    said: dict[tuple[Target, str], list[Item]] = defaultdict(list)
    for target, items in document.by_target.items():
        for item in items:
            said[target, section_of(item)].append(item)
    names = tuple(sorted({name for seen in document.targets for name in seen.sections} - {""}))
    shared: dict[tuple[State, ...], tuple[State, ...]] = {}

    def states(target: Target, sections: Iterable[str]) -> tuple[State, ...]:
        own = {
            name: _worst([*_states(said[target, name]), *_known_states(document.known, target, name)])
            for name in sections
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
    """Return the matrix with the sections first in which something is to be done: the page may have no room for all."""
    severities = [
        min((SEVERITY[row.states[number]] for row in fleet.rows), default=0) for number in range(len(fleet.sections))
    ]
    order = sorted(range(len(fleet.sections)), key=lambda number: min(severities[number], SEVERITY[State.EXCEPTED]))

    def arranged(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(values[number] for number in order)

    rows = (replace(row, states=arranged(row.states)) for row in fleet.rows)
    return Matrix(arranged(fleet.sections), tuple(rows))


FOUND = {
    "problem": State.PROBLEM,
    "excepted": State.EXCEPTED,
    "not_applicable": State.NOT_APPLICABLE,
    "unmanaged": State.UNMANAGED,
}
"""The states that findings leave a section in."""


def _states(items: Iterable[Item]) -> Iterator[State]:
    """Yield the states of what is said of a section, and done there."""
    for item in items:
        match item:
            case Outcome():
                yield AFTER[item.status]
            case Finding():
                yield FOUND.get(item.code, State.IN_ORDER)
            case Keep():
                yield State.IN_ORDER
            case Delete():
                yield State.DELETIONS
            case _:
                yield State.CHANGES


def _known_states(known: BaselineShare | None, target: Target, section: str) -> Iterator[State]:
    """Yield the states of what a section holds and a baseline has too."""
    if known and (target, section) in known.troubled:
        yield State.PROBLEM
    if known and (target, section) in known.changed:
        yield State.CHANGES


def _worst(states: Iterable[State]) -> State:
    return min(states, key=SEVERITY.__getitem__, default=State.IN_ORDER)
