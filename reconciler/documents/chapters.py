"""The content of a plan or a report in chapters, with its equal entries and its numbers, computed once. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf
from typing import Literal, get_args

from reconciler.documents.groups import (
    GROUP_FROM_TARGETS,
    Block,
    Entry,
    EntryGroup,
    SavedGroup,
    arranged,
    equal,
    is_done,
    saved_group,
)
from reconciler.model.plan import ACTIONS, Excepted, Outcome, Problem, SectionPlan, Source, TargetPlan
from reconciler.model.targets import Address

ChapterName = Literal["", "canary", "changed on the service", "merged and not applied", "differing already"]

ALREADY: Mapping[Source | None, ChapterName] = {
    "service": "changed on the service",
    "pending": "merged and not applied",
    None: "differing already",
}
"""The chapters of what is not of a change: why it is there, as far as the inventory tells."""

Sort = Literal["change", "unfinished", "problem", "excepted"]
"""The sort of an entry: a change that is planned or was done, a change that was not done, a problem, or a change that
an exception holds back."""

SORTS: tuple[Sort, ...] = get_args(Sort)

DONE = tuple(f"{action}d" for action in ACTIONS)

PLAN_COLUMNS = (*ACTIONS, "problems")
"""The columns of the table of a plan."""

REPORT_COLUMNS = (*DONE, "unfinished", "problems")
"""The columns of the table of a report; `unfinished` is failed, stale, skipped, or dropped by the service."""


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
        entries: list[Entry] = []
        for target in self.targets:
            entries += target.entries
            entries += target.excepted
        return tuple(entries)

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

    def blocks(self, least: float, *sorts: Sort) -> tuple[Block[Entry], ...]:
        """Return the groups of at least so many targets, and the rest by target.

        Args:
            least: how many targets make a group; see `groups.arranged`.
            sorts: the sorts of entries that are meant; all, if none is given.
        """
        meant = frozenset(sorts or SORTS)
        entries = tuple(entry for entry in self.entries if sort_of(entry) in meant)
        groups = () if isinf(least) else tuple(group for group in self.groups if sort_of(group.sample) in meant)
        return arranged(entries, groups, least)

    def groups_of(self, least: float, *sorts: Sort) -> Iterator[EntryGroup[Entry]]:
        """Yield the groups of all blocks."""
        return (group for block in self.blocks(least, *sorts) for group in block.groups)

    @property
    def saved_groups(self) -> Iterator[SavedGroup]:
        """The groups, as a document holds them."""
        groups = self.groups_of(GROUP_FROM_TARGETS, "change", "unfinished", "problem")
        return (saved_group(group) for group in groups if len(group.targets) > 1)


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


def sort_of(entry: Entry) -> Sort:
    """Return the sort of an entry: the same for equal ones."""
    match entry:
        case Outcome():
            return "change" if is_done(entry) else "unfinished"
        case Problem():
            return "problem"
        case Excepted():
            return "excepted"
    return "change"


def _with_source(target: TargetPlan, source: Source | None) -> TargetPlan:
    """Return a target with its changes from one source."""
    sections = (
        replace(section, changes=tuple(change for change in section.changes if change.source == source))
        for section in target.sections
    )
    return replace(target, sections=tuple(sections))
