"""A document in numbers, and in the parts that are shown apart from each other. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.document.document import RunDocument
from reconciler.model.codes import code_of
from reconciler.model.item import (
    ACTIONS,
    Finding,
    Item,
    Outcome,
    Source,
    Status,
    change_in,
    is_about_run,
    section_of,
    source_of,
    target_of,
)

PartName = Literal["", "canary", "changed on the service", "merged and not applied", "differing already"]

ALREADY: Mapping[Source | None, PartName] = {
    "service": "changed on the service",
    "pending": "merged and not applied",
    None: "differing already",
}
"""The parts of what is not of a change: why it is there, as far as the inventory tells."""

DONE = tuple(f"{action}d" for action in ACTIONS)

UNFINISHED = tuple(str(status) for status in Status if status is not Status.DONE)

PLAN_COLUMNS = (*ACTIONS, "problems")
"""The columns of the table of a plan."""

REPORT_COLUMNS = (*DONE, "unfinished", "problems")
"""The columns of the table of a report; `unfinished` is failed, stale, skipped, or dropped by the service."""

LEFT_ALONE = ("problems", "unmanaged", "not_applicable", "excepted")
"""The findings that a summary counts."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers by section.

    Attributes:
        columns: what is counted.
        rows: the sections that have any of it, by name, with their numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Items that are shown together, and never with those of another part.

    Attributes:
        name: empty for what has no heading of its own.
        items: in the order of the document, without those about the run.
    """

    name: PartName
    items: Sequence[Item]


def parts_of(document: RunDocument) -> tuple[DocumentPart, ...]:
    """Return a document in the parts that people see.

    With `--since REV` they are what is of the change, then what differs already, by its reason. In the report of a
    canary they are the targets that came first, and all others. A report shows nothing of targets that were in order.
    """
    about = [item for item in document.items if not is_about_run(item)]
    if not document.is_plan:
        about = [item for item in about if target_of(item) in document.eventful]
    if document.since and document.is_plan:
        return tuple(_by_source(about))
    if document.canary is None:
        return (DocumentPart("", about),)
    first = frozenset(document.canary.targets)
    of_canary = {target: str(target) in first for target in {*map(target_of, about)}}
    return (
        DocumentPart("canary", [item for item in about if of_canary[target_of(item)]]),
        DocumentPart("", [item for item in about if not of_canary[target_of(item)]]),
    )


def _by_source(items: Sequence[Item]) -> Iterator[DocumentPart]:
    sources = [(change_in(item), item) for item in items]
    yield DocumentPart("", [item for change, item in sources if change is None or source_of(change) == "change"])
    for source, name in ALREADY.items():
        others = [item for change, item in sources if change is not None and source_of(change) == source]
        if others:
            yield DocumentPart(name, others)


def numbers_of(items: Iterable[Item]) -> Counter[tuple[str, str]]:
    """Return how many there are by section and word.

    The words are actions, or in a report what became of the changes, each by its word and as `unfinished`; then
    `requests`, which the changes take, and the key in the summary of each finding, or its code.
    """
    numbers = Counter[tuple[str, str]]()
    for item in items:
        section = section_of(item)
        if isinstance(item, Finding):
            numbers[section, code_of(item.code).counted or item.code] += 1
            continue
        change = change_in(item)
        if change is None:
            continue
        numbers[section, "requests"] += len(change.requests)
        if isinstance(item, Outcome):
            numbers[section, item.word] += 1
            numbers[section, "unfinished"] += item.status is not Status.DONE
        else:
            numbers[section, change.action] += 1
    return numbers


def table(items: Iterable[Item], columns: tuple[str, ...]) -> Table:
    """Return the numbers of some items as a table."""
    numbers = numbers_of(items)
    rows = ((name, tuple(numbers[name, word] for word in columns)) for name in sorted({name for name, _ in numbers}))
    return Table(columns, tuple((name, row) for name, row in rows if any(row)))


def totals(items: Iterable[Item]) -> Counter[str]:
    """Return the numbers of some items by word alone; see `numbers_of`."""
    numbers = Counter[str]()
    for (_, word), number in numbers_of(items).items():
        numbers[word] += number
    return numbers


def summary_of(document: RunDocument) -> Mapping[str, int | Mapping[str, int] | None]:
    """Return a document in numbers, as its JSON has them. With `--since REV`, they count what is of the change.

    Of a plan they are the changes by their actions, of a report by what became of them; then the findings. A plan also
    has `not_of_change`: the same numbers of what is not of the change, and of nothing else; None without `--since REV`.
    """
    words = (*(ACTIONS if document.is_plan else (*DONE, *UNFINISHED)), *LEFT_ALONE)
    first, *others = parts_of(document)
    if not document.is_plan:
        numbers = totals(document.items)
        return {word: numbers[word] for word in words}
    numbers = totals(first.items)
    apart = totals(item for part in others for item in part.items)
    summary: dict[str, int | Mapping[str, int] | None] = {word: numbers[word] for word in words}
    return {**summary, "not_of_change": {word: apart[word] for word in words} if document.since else None}
