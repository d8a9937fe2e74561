"""A document in numbers, and in the parts that have headings of their own. Pure; begin with `parts_of`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.document.document import RunDocument
from reconciler.model.codes import code_of
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Item,
    Outcome,
    Source,
    Status,
    Update,
    change_in,
    effect_of,
    effect_verbs,
    is_about_run,
    loosens,
    section_of,
    source_of,
    target_of,
)

PartName = Literal[
    "",
    "canary",
    "changed on the service",
    "merged and not applied",
    "differing already",
    "loosens protection",
    "loosened on the service",
    "all else",
]

PART_OF_SOURCE: Mapping[Source | None, PartName] = {
    "service": "changed on the service",
    "pending": "merged and not applied",
    None: "differing already",
}
"""The parts of the differences that a change did not cause: their causes, if the inventory has them."""

DONE = tuple(f"{action}d" for action in ACTIONS)

UNFINISHED = tuple(str(status) for status in Status if status is not Status.DONE)

PLAN_COLUMNS = (*ACTIONS, "problems")
"""The columns of the table of a plan."""

REPORT_COLUMNS = (*DONE, "unfinished", "problems")
"""The columns of the table of a report; `unfinished` is failed, stale, skipped, or dropped by the service."""

EFFECTS = ("loosens", "tightens")
"""The effects of changes that a summary counts; a change that has both counts in both."""

COUNTED_FINDINGS = ("problems", "unmanaged", "not_applicable", "excepted")
"""The findings that a summary counts."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers by section.

    Attributes:
        columns: the counted words.
        rows: the sections with a number above zero, by name, with their numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Items that are shown together under one heading.

    Attributes:
        name: the heading; empty for none.
        items: in the order of the document, without items about the run.
    """

    name: PartName
    items: Sequence[Item]


def parts_of(document: RunDocument) -> tuple[DocumentPart, ...]:
    """Return the parts in which a document is shown.

    With `--since REV`: the differences of the change, then the others, by their causes. In the report of a canary: its
    targets, then all other targets.
    """
    items = [item for item in document.items if not is_about_run(item)]
    if document.since and document.is_plan:
        return tuple(_by_source(items))
    if document.canary is None:
        return (DocumentPart("", items),)
    canary = frozenset(document.canary.targets)
    is_canary = {target: str(target) in canary for target in {*map(target_of, items)}}
    return (
        DocumentPart("canary", [item for item in items if is_canary[target_of(item)]]),
        DocumentPart("", [item for item in items if not is_canary[target_of(item)]]),
    )


def _by_source(items: Iterable[Item]) -> Iterator[DocumentPart]:
    sources = [(change_in(item), item) for item in items]
    yield DocumentPart("", [item for change, item in sources if change is None or source_of(change) == "change"])
    for source, name in PART_OF_SOURCE.items():
        others = [item for change, item in sources if change is not None and source_of(change) == source]
        if others:
            yield DocumentPart(name, others)


def by_effect(document_part: DocumentPart) -> tuple[DocumentPart, ...]:
    """Return the planned changes of a part that loosen protection, and all else; only the part if no change loosens."""
    loosening = [item for item in document_part.items if isinstance(item, Create | Update | Delete) and loosens(item)]
    if not loosening:
        return (document_part,)
    # by identity: two deletions of one name are equal
    first = {*map(id, loosening)}
    return (
        DocumentPart(loosening_name(loosening), loosening),
        DocumentPart("all else", [item for item in document_part.items if id(item) not in first]),
    )


def loosening_name(changes: Iterable[Change]) -> Literal["loosened on the service", "loosens protection"]:
    """Return the name of the part with changes that loosen protection, or that all undo a loosening by hand."""
    return "loosened on the service" if all(map(undoes_loosening, changes)) else "loosens protection"


def undoes_loosening(change: Change) -> bool:
    """Return whether a change undoes a change by hand that loosened protection."""
    return "loosened" in effect_verbs(change)


def counts_by_section(items: Iterable[Item]) -> Counter[tuple[str, str]]:
    """Return the number of items by section and word.

    The words are actions; in a report, the words of outcomes, and `unfinished` for all of them that are not done; then
    `requests`, the number of requests of the changes; `loosens` and `tightens`, by their effects, and `loosened` and
    `tightened`, by those of the changes by hand that they undo, of a report for what was done; and for findings their
    key in the summary, or their code.
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
        if not isinstance(item, Outcome) or item.status is Status.DONE:
            effect = effect_of(change)
            numbers.update((section, word) for word in EFFECTS if effect in (word, "both"))
            numbers.update((section, verb) for verb in effect_verbs(change) if verb not in EFFECTS)
        if isinstance(item, Outcome):
            numbers[section, item.word] += 1
            numbers[section, "unfinished"] += item.status is not Status.DONE
        else:
            numbers[section, change.action] += 1
    return numbers


def effects_once(totals_by_word: Counter[str]) -> Mapping[str, int]:
    """Return the numbers by effect: undoing what somebody loosened tightens, and counts once."""
    return {
        "loosens": totals_by_word["loosens"] - totals_by_word["tightened"],
        "tightens": totals_by_word["tightens"] - totals_by_word["loosened"],
        "loosened": totals_by_word["loosened"],
        "tightened": totals_by_word["tightened"],
    }


def table(items: Iterable[Item], columns: tuple[str, ...]) -> Table:
    """Return the numbers of some items as a table."""
    numbers = counts_by_section(items)
    rows = ((name, tuple(numbers[name, word] for word in columns)) for name in sorted({name for name, _ in numbers}))
    return Table(columns, tuple((name, row) for name, row in rows if any(row)))


def totals(items: Iterable[Item]) -> Counter[str]:
    """Return the numbers of some items by word alone; see `counts_by_section`."""
    numbers = Counter[str]()
    for (_, word), number in counts_by_section(items).items():
        numbers[word] += number
    return numbers


def summary_of(document: RunDocument) -> Mapping[str, int | Mapping[str, int] | None]:
    """Return the `summary` of a document's JSON; with `--since REV`, only changes of that revision count.

    The changes of a plan are counted by action, those of a report by outcome; then the findings. A plan also has
    `not_of_change`: the numbers of the other differences alone; None without `--since REV`.
    """
    words = (*(ACTIONS if document.is_plan else (*DONE, *UNFINISHED)), *EFFECTS, *COUNTED_FINDINGS)
    if not document.is_plan:
        numbers = totals(document.items)
        return {word: numbers[word] for word in words}
    first, *others = parts_of(document)
    numbers = totals(first.items)
    other_numbers = totals(item for part in others for item in part.items)
    summary: dict[str, int | Mapping[str, int] | None] = {word: numbers[word] for word in words}
    return {**summary, "not_of_change": {word: other_numbers[word] for word in words} if document.since else None}
