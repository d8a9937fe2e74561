"""What people see of a plan or a report, put together once: every format draws it, and none computes it anew. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf
from typing import Literal, NamedTuple, cast

from reconciler.documents.groups import (
    GROUP_FROM_TARGETS,
    Entry,
    EntryGroup,
    Grouping,
    SavedGroup,
    arranged,
    equal,
    is_done,
    saved_group,
    target_of,
)
from reconciler.model.plan import ACTIONS, Change, Excepted, Outcome, Problem, SectionPlan, Source, TargetPlan
from reconciler.model.targets import Address, Level, Target

ChapterName = Literal["", "canary", "changed on the service", "merged and not applied", "differing already"]

ALREADY: Mapping[Source | None, ChapterName] = {
    "service": "changed on the service",
    "pending": "merged and not applied",
    None: "differing already",
}
"""The chapters of what is not of a change: why it is there, as far as the inventory tells."""

DONE = tuple(f"{action}d" for action in ACTIONS)

PLAN_COLUMNS = (*ACTIONS, "problems")
"""The columns of the table of a plan."""

REPORT_COLUMNS = (*DONE, "unfinished", "problems")
"""The columns of the table of a report; `unfinished` is failed, stale, skipped, or dropped by the service."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How many targets of one level change.

    Attributes:
        level: their level.
        changed: how many of them have changes.
        all: how many of them there are in the plan.
    """

    level: Level
    changed: int
    all: int


def reaches(targets: Iterable[Target], changed: Iterable[Target]) -> tuple[Reach, ...]:
    """Return how many of some targets change, by level; without levels that stay as they are.

    Args:
        targets: all of them.
        changed: those that change, in any number.
    """
    levels = Counter(target.level for target in targets)
    numbers = Counter(target.level for target in set(changed))
    return tuple(Reach(level, numbers[level], levels[level]) for level in Level if numbers[level])


@dataclass(frozen=True, slots=True)
class Card:
    """What one place in the manifests asks of several targets, or equal changes that each have a place of their own.

    Attributes:
        kind: `create`, `update` or `delete`; in a report `created` and so on.
        place: where the manifests ask for it, as path:line; empty if that is not one place.
        groups: at least one, the largest first.
    """

    kind: str
    place: str
    groups: tuple[EntryGroup[Change | Outcome], ...]

    @property
    def entries(self) -> tuple[Change | Outcome, ...]:
        """The entries of all groups."""
        return tuple(entry for group in self.groups for entry in group.entries)


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers by section.

    Attributes:
        columns: what is counted.
        rows: the sections that have any of it, by name, with their numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Chapter:
    """Targets whose changes and problems are shown together, and never with those of another chapter.

    Attributes:
        name: empty for what has no heading of its own.
        targets: in the order of the plan, with what the chapter is about.
    """

    name: ChapterName
    targets: Sequence[TargetPlan]

    @property
    def differs_already(self) -> bool:
        """Whether it is about what is not of the change since the revision of `--since`."""
        return self.name in ALREADY.values()

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The changes or their outcomes, the problems, and what exceptions hold back, of one target after the other."""
        return tuple(entry for target in self.targets for entry in (*target.entries, *target.excepted))

    @cached_property
    def numbers(self) -> Counter[tuple[str, str]]:
        """How many there are by section and word.

        The words are actions, or in a report what became of the changes, each by its word and as `unfinished`; then
        `requests`, which the changes take, `problems`, `excepted`, `unmanaged`, `not_applicable` and `hidden`.
        """
        numbers = Counter[tuple[str, str]]()
        for section in (section for target in self.targets for section in target.sections):
            name = section.section
            for change in section.changes:
                numbers[name, "requests"] += len(change.requests)
                numbers[name, change.action] += not section.outcomes
            for outcome in section.outcomes:
                numbers[name, outcome.word] += 1
                numbers[name, "unfinished"] += not is_done(outcome)
            numbers[name, "problems"] += len(section.problems)
            numbers[name, "excepted"] += len(section.excepted)
            numbers[name, "unmanaged"] += len(section.unmanaged)
            numbers[name, "not_applicable"] += bool(section.not_applicable)
            numbers[name, "hidden"] += len(section.hidden)
        return numbers

    @cached_property
    def groups(self) -> tuple[EntryGroup[Entry], ...]:
        """All entries, equal ones in one group."""
        return equal(self.entries)

    @cached_property
    def not_applicable(self) -> tuple[Problem, ...]:
        """Why sections are not applicable, by target."""
        return tuple(
            Problem(Address(target.target, section.section, section.section, section.section), section.not_applicable)
            for target in self.targets
            for section in target.not_applicable
        )

    def grouped(self, least: float, where: Callable[[Entry], bool]) -> Grouping[Entry]:
        """Return the groups of at least so many targets, and the rest by target.

        Args:
            least: how many targets make a group; see `groups.arranged`.
            where: which entries are meant; it is the same for equal ones.
        """
        entries = tuple(entry for entry in self.entries if where(entry))
        groups = () if isinf(least) else tuple(group for group in self.groups if where(group.sample))
        return arranged(entries, groups, least)

    def changes(self, least: float) -> Grouping[Change | Outcome]:
        """Return the changes of a plan, or those that were done."""
        return cast("Grouping[Change | Outcome]", self.grouped(least, _is_change))

    def unfinished(self, least: float) -> Grouping[Outcome]:
        """Return the changes that were not done."""
        return cast("Grouping[Outcome]", self.grouped(least, _is_unfinished))

    def problems(self, least: float) -> Grouping[Problem]:
        """Return what could not be planned."""
        return cast("Grouping[Problem]", self.grouped(least, _is_problem))

    def excepted(self, least: float) -> Grouping[Excepted]:
        """Return what exceptions hold back."""
        return cast("Grouping[Excepted]", self.grouped(least, _is_excepted))

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """The changes of a plan, or those that were done: a card for each place in the manifests that asks for some.

        A place counts if it asks something of more than one target. All else is a card of its own for each group.
        """
        groups = cast(
            "tuple[EntryGroup[Change | Outcome], ...]",
            tuple(group for group in self.groups if _is_change(group.sample)),
        )
        asked: dict[_Cause, set[Target]] = {}
        for entry in (entry for group in groups for entry in group.entries):
            asked.setdefault(_cause(entry), set()).add(target_of(entry))
        cards: dict[object, list[EntryGroup[Change | Outcome]]] = {}
        for number, group in enumerate(groups):
            parts: dict[object, list[Change | Outcome]] = {}
            for entry in group.entries:
                cause = _cause(entry)
                is_shared = cause.place and len(asked[cause]) > 1
                parts.setdefault(cause if is_shared else number, []).append(entry)
            for key, entries in parts.items():
                cards.setdefault(key, []).extend([group] if len(parts) == 1 else equal(entries))
        return tuple(
            Card(
                _cause(members[0].entries[0]).kind,
                key.place if isinstance(key, _Cause) else "",
                tuple(sorted(members, key=lambda group: -len(group.entries))),
            )
            for key, members in cards.items()
        )

    @property
    def saved_groups(self) -> Iterator[SavedGroup]:
        """The groups, as a document holds them."""
        blocks = self.grouped(GROUP_FROM_TARGETS, lambda entry: not _is_excepted(entry)).blocks
        return (saved_group(group) for block in blocks for group in block.groups)


def table(chapters: Sequence[Chapter], columns: tuple[str, ...]) -> Table:
    """Return the numbers of some chapters as a table."""
    numbers = numbers_of(chapters)
    rows = ((name, tuple(numbers[name, word] for word in columns)) for name in sorted({name for name, _ in numbers}))
    return Table(columns, tuple((name, row) for name, row in rows if any(row)))


def totals(chapters: Sequence[Chapter]) -> Counter[str]:
    """Return the numbers of some chapters by word alone; see `Chapter.numbers`."""
    numbers = Counter[str]()
    for (_, word), number in numbers_of(chapters).items():
        numbers[word] += number
    return numbers


def numbers_of(chapters: Sequence[Chapter]) -> Counter[tuple[str, str]]:
    """Return the numbers of some chapters together; see `Chapter.numbers`."""
    return sum((chapter.numbers for chapter in chapters), Counter[tuple[str, str]]())


def chapters_since(targets: Sequence[TargetPlan]) -> Iterator[Chapter]:
    """Yield all but what differs already at the revision of `--since`; then that, by its reason."""
    yield Chapter("", [_with_source(target, "change") for target in targets])
    changes_alone = [
        replace(
            target, sections=tuple(SectionPlan(section.section, changes=section.changes) for section in target.sections)
        )
        for target in targets
    ]
    for source, name in ALREADY.items():
        apart = [_with_source(target, source) for target in changes_alone]
        differing = [target for target in apart if any(target.changes)]
        if differing:
            yield Chapter(name, differing)


def _with_source(target: TargetPlan, source: Source | None) -> TargetPlan:
    """Return a target with its changes from one source."""
    sections = (
        replace(section, changes=tuple(change for change in section.changes if change.source == source))
        for section in target.sections
    )
    return replace(target, sections=tuple(sections))


class _Cause(NamedTuple):
    """What the changes of a card have in common."""

    kind: str
    level: Level
    section: str
    place: str


def _cause(entry: Change | Outcome) -> _Cause:
    change = entry.change if isinstance(entry, Outcome) else entry
    kind = entry.word if isinstance(entry, Outcome) else entry.action
    return _Cause(kind, change.address.target.level, change.address.section, change.origin)


def _is_change(entry: Entry) -> bool:
    return is_done(entry) if isinstance(entry, Outcome) else not isinstance(entry, Problem | Excepted)


def _is_unfinished(entry: Entry) -> bool:
    return isinstance(entry, Outcome) and not is_done(entry)


def _is_problem(entry: Entry) -> bool:
    return isinstance(entry, Problem)


def _is_excepted(entry: Entry) -> bool:
    return isinstance(entry, Excepted)
