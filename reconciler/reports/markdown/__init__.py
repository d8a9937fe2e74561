"""Markdown for a note on a merge request. Shortens itself above 60,000 characters.

Strings from the service and from manifests stand in code, where they are nothing but text, and never at the beginning
of a line, where they could be quick actions.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reconciler.document.compare import Comparison, Difference
from reconciler.document.document import RunDocument, utc
from reconciler.document.groups import Block, Entry, EntryGroup, entries_of, grouped, subject_of
from reconciler.document.links import Links
from reconciler.document.numbers import PLAN_COLUMNS, REPORT_COLUMNS, DocumentPart, parts_of, table
from reconciler.document.style import Style, links_of
from reconciler.document.wording import (
    MARKERS,
    NAMED_IN_HEADLINES,
    WHOLE,
    access_notes,
    alike,
    baseline_note,
    canary_notes,
    compared,
    comparison_in_a_line,
    costs_and_stays,
    details,
    difference_words,
    excepted_note,
    excepted_subject,
    expiry_notes,
    headline,
    label,
    least,
    limit_notes,
    listed_documents,
    losses,
    not_of_this_change,
    reason_of,
    refusal_notes,
    remark_notes,
    rename_notes,
    requests_made,
    restored_heading,
    restored_text,
    revert_notes,
    said,
    subject,
    title_of,
    waits,
    who,
    widening_notes,
)
from reconciler.errors import LocatedDiagnostic
from reconciler.model.item import ACTIONS, Change, Finding, Outcome, Update, address_of, change_in
from reconciler.model.targets import Target
from reconciler.model.values import differing, quoted
from reconciler.model.wording import counted
from reconciler.system.terminal import escaped

MAX_NOTE_LENGTH = 60_000
"""How many characters a note may have."""

NOTICE_LENGTH = 500
"""How many of them are kept free for the notice of what was left out."""

MAX_LINE_LENGTH = 300
"""How many characters of one name, reason or line are shown."""


MAX_NAMED_TARGETS = 50
"""How many targets that have something alike are named below a click."""

OPEN_TO_ENTRIES = 10
"""How many changes are shown without a click."""


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """Entries that are shown together; `blocks.md` has their Markdown.

    Attributes:
        noun: what an entry is, such as `problem`.
        entries: each ends its last line. Where they have a language, they begin with a sign of ours, so that none of
            them ends the fenced block that they stand in.
        heading: stands above the entries; empty if a click shows them.
        summary: HTML that a click opens and closes; empty for a heading.
        is_open: whether it is open at first.
        lead: Markdown above the entries.
        language: by which the entries are coloured; empty for Markdown.
        above: the heading of this block and those below it; empty if it is not the first of them.
        part: what they have in common, if there are several parts.
    """

    noun: str
    entries: tuple[str, ...]
    heading: str = ""
    summary: str = ""
    is_open: bool = False
    lead: str = ""
    language: str = ""
    above: str = ""
    part: str = ""

    @property
    def frame(self) -> int:
        """How many characters stand around the entries."""
        macros = _environment().get_template("blocks.md").module
        return len(macros.opening(self)) + len(macros.closing(self))  # type: ignore[attr-defined] # macros


def plan(saved: RunDocument, style: Style) -> str:
    """Return what would be changed and what cannot be."""
    links, fewest = links_of(saved, style), least(style)
    first, *others = parts_of(saved)
    notes = [
        *revert_notes(saved),
        *filter(None, [baseline_note(saved)]),
        *limit_notes(saved),
        *refusal_notes(saved),
        *expiry_notes(saved),
        *access_notes(saved),
        *widening_notes(saved),
    ]
    changes = _blocks(first, fewest, "change")
    is_open = sum(len(block.groups) for block in changes) <= OPEN_TO_ENTRIES
    blocks = [
        _list("problem", _blocks(first, fewest, "problem"), _problem, links),
        _renames([*rename_notes(saved)]),
        *(_changes(block, "to {}", links, is_open=is_open) for block in changes),
        _held_back(saved, _blocks(first, fewest, "excepted"), links),
        *_differing_already(saved, others, fewest, links),
        _put_back(saved, links),
    ]
    return fitted(
        blocks,
        title=title_of(saved),
        notes=notes,
        table=table(first.items, PLAN_COLUMNS),
        facts=[
            costs_and_stays(saved),
            f"Read from {code(saved.service)} at {utc(saved.created_at)}{_pipeline(links)}.",
        ],
        remarks=[*saved.remarks, *remark_notes(saved)],
    )


def _blocks(part: DocumentPart, fewest: float, sort: str) -> tuple[Block[Entry], ...]:
    """Return the entries of one sort, equal ones together."""
    return grouped(entries_of(part.items, sort), fewest)


def restored(saved: RunDocument, style: Style) -> str:
    """Return what was changed and put back, under its heading; empty if nothing was."""
    return written([_put_back(saved, links_of(saved, style))])


def _put_back(saved: RunDocument, links: Links) -> NoteBlock:
    findings = [(address_of(back), back) for back in saved.findings("restored")]
    heading = restored_heading(len(findings), saved.restored_since)
    entries = (
        f"- {_which([address.target], links)}: {code(f'{label(address)}: {restored_text(back)}')}\n"
        for address, back in findings
    )
    return NoteBlock("change that was put back", tuple(entries) if heading else (), heading)


def _differing_already(
    saved: RunDocument, parts: Sequence[DocumentPart], fewest: float, links: Links
) -> Iterator[NoteBlock]:
    """Yield what is not of the change since the revision of `--since`, under its heading."""
    above = not_of_this_change(saved.changes)
    for part in parts:
        name = part.name.capitalize() if len(parts) > 1 else ""
        for together in _blocks(part, fewest, "change"):
            yield replace(_changes(together, "to {}", links, is_open=False), above=above, part=name)
            above = name = ""


def report(done: RunDocument, style: Style) -> str:
    """Return what became of the changes: what is not done, what could not be planned, and what is done."""
    links, fewest = links_of(done, style), least(style)
    waited = ", ".join(map(code, waits(done)))
    return fitted(
        [block for part in parts_of(done) for block in _became(part, fewest, links)],
        title=title_of(done),
        notes=[*canary_notes(done), *done.remarks, *remark_notes(done), *revert_notes(done)],
        table=table(done.items, REPORT_COLUMNS),
        facts=[
            f"{requests_made(done)} made{waited and f'; waited {waited}'}.",
            f"Written to {code(done.service)} from {utc(done.began_at)} to {utc(done.time)}{_pipeline(links)}.",
        ],
    )


def _became(part: DocumentPart, fewest: float, links: Links) -> Iterator[NoteBlock]:
    """Yield what became of the changes of a part."""
    yield _list("unfinished change", _blocks(part, fewest, "unfinished"), _unfinished, links)
    yield _list("problem", _blocks(part, fewest, "problem"), _problem, links)
    for block in _blocks(part, fewest, "change"):
        yield _changes(block, "{}d", links, is_open=False)


def comparison(comparison: Comparison, style: Style) -> str:
    """Return what is new, gone or different, by target."""
    is_open = len(comparison.differences) <= OPEN_TO_ENTRIES
    return fitted(
        [_differing(*block, is_open=is_open) for block in alike(comparison, least(style))],
        title=comparison_in_a_line(comparison),
        facts=[f"{compared(comparison)}."],
    )


def validation(diagnostics: Sequence[LocatedDiagnostic], documents: Mapping[str, int], _style: Style) -> str:
    """Return the diagnostics of the manifests, by file, each with its line."""
    numbers = Counter(diagnostic.severity for diagnostic in diagnostics)
    verdict = _severities(numbers) or listed_documents(documents)
    files = [(path, tuple(own)) for path, own in groupby(diagnostics, lambda diagnostic: diagnostic.path)]
    files.sort(key=lambda file: all(diagnostic.severity != "error" for diagnostic in file[1]))
    title = f"{'Not valid' if numbers['error'] else 'Valid'}: {verdict}"
    return fitted((_file(path, own) for path, own in files), title=title)


def _cell(section: str) -> str:
    """Return the name of a section for a table: a cell ends at a pipe even within code."""
    return code(section).replace("|", "\\u007c") if section else WHOLE


def _list(
    noun: str, blocks: Iterable[Block[Entry]], words: Callable[[EntryGroup[Any]], str], links: Links
) -> NoteBlock:
    """Return a block with a line for each group and for each entry that is in none."""
    groups = [(block.targets, group) for block in blocks for group in block.ranked]
    lines = (
        f"- {_which(targets, links)}: {words(group)}{_origin(group, links)}\n{_all_of(targets)}"
        for targets, group in groups
    )
    return NoteBlock(noun, tuple(lines), counted(sum(len(group.entries) for _, group in groups), noun))


def _held_back(saved: RunDocument, blocks: Iterable[Block[Entry]], links: Links) -> NoteBlock:
    """Return what exceptions hold back, shown by a click: it is accepted, and in the way of nothing."""
    return replace(_list("excepted change", blocks, _excepted, links), heading="", summary=excepted_note(saved))


def _all_of(targets: Sequence[Target]) -> str:
    """Return the targets of an entry of a list, shown by a click; empty if its line names them all."""
    if not _is_cut(targets):
        return ""
    named = f"{MAX_NAMED_TARGETS} of" if len(targets) > MAX_NAMED_TARGETS else "all"
    return f"  <details><summary>{named} {len(targets):,}</summary>\n\n  {_named(targets)}\n\n  </details>\n"


def _which(targets: Sequence[Target], links: Links) -> str:
    if len(targets) == 1:
        return _linked(code(str(targets[0])), links.target(targets[0]))
    number, names = headline(targets)
    return f"{number} ({code(names)})"


def _origin(group: EntryGroup[Entry], links: Links) -> str:
    if not group.origin or isinstance(group.sample, Outcome):
        return ""
    return f" ({_linked(code(group.origin), links.origin(subject_of(group.entries[0]).origin))})"


def _pipeline(links: Links) -> str:
    return f" by [the pipeline]({links.pipeline})" if links.pipeline else ""


def _linked(text: str, url: str | None) -> str:
    return f"[{text}]({url})" if url else text


def _problem(group: EntryGroup[Finding]) -> str:
    return code(f"{subject(group)}: {reason_of(group.sample)}")


def _excepted(group: EntryGroup[Finding]) -> str:
    return f"{code(excepted_subject(group.sample))}: {code(reason_of(group.sample))}"


def _renames(notes: Sequence[str]) -> NoteBlock:
    entries = tuple(f"- {code(note)}\n" for note in notes)
    return NoteBlock("possible rename", entries, counted(len(entries), "possible rename"))


def _unfinished(group: EntryGroup[Outcome]) -> str:
    outcome = group.sample
    reason = f": {code(outcome.reason)}" if outcome.reason else ""
    return f"{outcome.change.action} {code(subject(group))}: {outcome.status.words}{reason}"


def _changes(block: Block[Entry], verb: str, links: Links, *, is_open: bool) -> NoteBlock:
    """Return the changes of one target, or equal ones of several, shown by a click."""
    samples = [(change_in(group.sample), who(group.entries)) for group in block.ranked]
    changes = [(change, author) for change, author in samples if change is not None]
    numbers = Counter(change.action for change, _ in changes)
    words = ", ".join(f"{numbers[action]:,} {verb.format(action)}" for action in ACTIONS if numbers[action])
    entries = ("".join(_change(change, author)) for change, author in changes)
    first = block.targets[0]
    url = links.target(first) if len(block.targets) == 1 else None
    lead = _linked(code(str(first)), url) if url else ""
    lead = _named(block.targets) if _is_cut(block.targets) else lead
    summary = _title(block.targets, words)
    return NoteBlock("change", tuple(entries), summary=summary, is_open=is_open, lead=lead, language="diff")


def _is_cut(targets: Sequence[Target]) -> bool:
    """Return whether a headline names only some of the targets."""
    return len(targets) > NAMED_IN_HEADLINES


def _named(targets: Sequence[Target]) -> str:
    """Return the paths of many targets, as far as a note has room for them."""
    names = ", ".join(code(str(target.ref)) for target in targets[:MAX_NAMED_TARGETS])
    more = len(targets) - MAX_NAMED_TARGETS
    return f"{names} and {more:,} more: `--group-by target` shows each" if more > 0 else names


def _title(targets: Sequence[Target], words: str) -> str:
    """Return the HTML above what one target has, or several have alike."""
    if len(targets) == 1:
        return f"{code_in_html(str(targets[0]))}: {words}"
    number, names = headline(targets)
    return f"{number} ({code_in_html(names)}), each: {words}"


def _differing(targets: Sequence[Target], differences: Sequence[Difference], *, is_open: bool) -> NoteBlock:
    numbers = Counter(difference.news for difference in differences)
    words = ", ".join(f"{numbers[news]:,} {news}" for news in ("new", "gone", "different") if numbers[news])
    entries = []
    for difference in differences:
        marker, subject, facts = difference_words(difference)
        lines = [f"{difference.news} {marker} {clipped(subject)}", *(f"    {clipped(fact)}" for fact in facts)]
        entries.append("".join(f"{line}\n" for line in lines))
    return NoteBlock("difference", tuple(entries), summary=_title(targets, words), is_open=is_open, language="text")


def _change(change: Change, author: str) -> Iterator[str]:
    """Yield the lines of a change: what it is about, each field with a sign of its own, and who made what is live."""
    yield f"{MARKERS[change.action]} {clipped(label(change.address))}\n"
    if isinstance(change, Update):
        if change.renamed_from is not None:
            names = (clipped(quoted(str(name))) for name in (change.renamed_from, change.address.name))
            yield "-     name: {}\n+     name: {}\n".format(*names)
        for field, was, will_be in differing(change.before, change.after):
            lost = "" if was is None else f"-     {clipped(field)}: {was}\n"
            yield f"{lost}+     {clipped(field)}: {will_be}\n"
        yield from (f"!     {clipped(sentence)}\n" for sentence in said(change))
    else:
        lines = (*details(change), *losses(change))
        yield from (f"{MARKERS[change.action]}     {clipped(line)}\n" for line in lines)
    if author:
        yield f"!     {clipped(author)}\n"


def _file(path: str, diagnostics: Sequence[LocatedDiagnostic]) -> NoteBlock:
    numbers = Counter(diagnostic.severity for diagnostic in diagnostics)
    entries = ("".join(_diagnostic(diagnostic)) for diagnostic in diagnostics)
    summary = f"{code_in_html(path)}: {_severities(numbers)}"
    return NoteBlock("fault", tuple(entries), summary=summary, is_open=bool(numbers["error"]), language="text")


def _diagnostic(diagnostic: LocatedDiagnostic) -> Iterator[str]:
    place = f" {diagnostic.line}:{diagnostic.column}" if diagnostic.line else ""
    yield f"{diagnostic.severity}{place}: {clipped(diagnostic.message)}\n"
    if diagnostic.source:
        caret = len(clipped(diagnostic.source[: diagnostic.column - 1]))
        yield f"  | {clipped(diagnostic.source)}\n  | {' ' * caret}^\n"


def _severities(numbers: Mapping[str, int]) -> str:
    return ", ".join(counted(numbers[severity], severity) for severity in ("error", "warning") if numbers.get(severity))


def code(text: str) -> str:
    """Return text as inline code, in which Markdown, HTML, mentions and references mean nothing."""
    text = clipped(text) or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text.strip(" ") and (text[0] in "` " or text[-1] in "` ") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def code_in_html(text: str) -> str:
    """Return text as code for the HTML in Markdown: all that could mean anything is a character reference."""
    safe = re.sub(r"[^\w ./-]", lambda character: f"&#{ord(character[0])};", clipped(text))
    return f"<code>{safe}</code>"


def clipped(text: str) -> str:
    """Return text without special characters, shortened if it is very long."""
    text = escaped(text)
    return text if len(text) <= MAX_LINE_LENGTH else text[: MAX_LINE_LENGTH - 1] + "…"


def fitted(blocks: Iterable[NoteBlock], limit: int = MAX_NOTE_LENGTH, **head: object) -> str:
    """Return a note: all blocks, or as many of their first entries as there is room for, and how many are missing.

    Args:
        blocks: the most important first.
        limit: the most characters of the note.
        head: what is always shown, as `note.md` takes it.
    """
    blocks = tuple(blocks)
    whole = written(blocks, **head)
    if len(whole) <= limit:
        return whole
    parts = tuple(_beginning(blocks, limit - len(written((), **head)) - NOTICE_LENGTH))
    return written(parts, left_out=_left_out(blocks, parts), **head)


def written(blocks: Iterable[NoteBlock], **head: object) -> str:
    """Return a note with these blocks."""
    defaults = dict.fromkeys(("title", "notes", "table", "facts", "remarks", "left_out"), ())
    text = _environment().get_template("note.md").render({**defaults, **head}, blocks=tuple(blocks))
    return text.strip("\n") + "\n"


def _beginning(blocks: Iterable[NoteBlock], room: int) -> Iterator[NoteBlock]:
    """Yield the blocks, all without entries from the first entry on for which there is no room."""
    for block in blocks:
        sizes = accumulate(map(len, block.entries), initial=block.frame)
        number = max(0, sum(size <= room for size in sizes) - 1)
        part = replace(block, entries=block.entries[:number])
        yield part
        room = room - (part.frame + sum(map(len, part.entries)) if number else 0) if number == len(block.entries) else 0


def _left_out(blocks: Iterable[NoteBlock], parts: Iterable[NoteBlock]) -> list[str]:
    """Return how much of what is missing."""
    left_out, all_of = Counter[str](), Counter[str]()
    for block, part in zip(blocks, parts, strict=True):
        left_out[block.noun] += len(block.entries) - len(part.entries)
        all_of[block.noun] += len(block.entries)
    return [f"{number:,} of {counted(all_of[noun], noun)}" for noun, number in left_out.items() if number]


@cache
def _environment() -> Environment:
    """Return the templates of notes. They escape nothing by themselves: whatever is not ours passes `code`."""
    environment = Environment(
        loader=PackageLoader("reconciler.reports", "markdown"),
        autoescape=False,  # noqa: S701 - Markdown, in which HTML escapes would be shown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code": code, "cell": _cell}
    return environment
