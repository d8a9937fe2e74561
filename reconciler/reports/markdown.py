"""Markdown for a note on a merge request. Shortens itself above 60,000 characters.

Strings from the service and from manifests stand in code, where they are nothing but text, and never at the beginning
of a line, where they could be quick actions.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Any

from reconciler.document.compare import Comparison, Difference
from reconciler.document.document import RunDocument, change_in, utc
from reconciler.document.groups import Block, Entry, EntryGroup, address_of, entries_of, grouped, subject_of
from reconciler.document.links import Links
from reconciler.document.numbers import PLAN_COLUMNS, REPORT_COLUMNS, DocumentPart, Table, parts_of, table
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
from reconciler.model.item import ACTIONS, Change, Finding, Outcome, Update
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
    """Entries that are shown together.

    Attributes:
        noun: what an entry is, such as `problem`.
        opening: stands above the entries, if any is shown.
        entries: each ends its last line.
        closing: stands below them.
    """

    noun: str
    opening: str
    entries: tuple[str, ...]
    closing: str = "\n"

    def __str__(self) -> str:
        """The whole block."""
        return f"{self.opening}{''.join(self.entries)}{self.closing}" if self.entries else ""


def plan(saved: RunDocument, style: Style) -> str:
    """Return what would be changed and what cannot be."""
    links, fewest = links_of(saved, style), least(style)
    first, *others = parts_of(saved)
    remarks = "".join(f"{code(remark)}\n\n" for remark in saved.remarks("stays"))
    notes = [
        *revert_notes(saved),
        *filter(None, [baseline_note(saved)]),
        *limit_notes(saved),
        *refusal_notes(saved),
        *expiry_notes(saved),
        *access_notes(saved),
        *widening_notes(saved),
    ]
    head = (
        f"## {title_of(saved)}\n\n"
        f"{_bold(notes)}"
        f"{_table(table(first.items, PLAN_COLUMNS))}"
        f"{costs_and_stays(saved)}\n"
        f"Read from {code(saved.service)} at {utc(saved.created_at)}{_pipeline(links)}.\n\n"
        f"{remarks}"
    )
    changes = _blocks(first, fewest, "change")
    is_open = sum(len(block.groups) for block in changes) <= OPEN_TO_ENTRIES
    return fitted(
        head,
        [
            _list("problem", _blocks(first, fewest, "problem"), _problem, links),
            _renames([*rename_notes(saved)]),
            *(_changes(block, "to {}", links, is_open=is_open) for block in changes),
            _held_back(saved, _blocks(first, fewest, "excepted"), links),
            *_differing_already(saved, others, fewest, links),
            _put_back(saved, links),
        ],
    )


def _blocks(part: DocumentPart, fewest: float, sort: str) -> tuple[Block[Entry], ...]:
    """Return the entries of one sort, equal ones together."""
    return grouped(entries_of(part.items, sort), fewest)


def restored(saved: RunDocument, style: Style) -> str:
    """Return what was changed and put back, under its heading; empty if nothing was."""
    return str(_put_back(saved, links_of(saved, style)))


def _put_back(saved: RunDocument, links: Links) -> NoteBlock:
    findings = [(address_of(back), back) for back in saved.findings("restored")]
    heading = restored_heading(len(findings), saved.restored_since)
    entries = (
        f"- {_which([address.target], links)}: {code(f'{label(address)}: {restored_text(back)}')}\n"
        for address, back in findings
    )
    return NoteBlock("change that was put back", f"### {heading}\n\n", tuple(entries) if heading else ())


def _differing_already(
    saved: RunDocument, parts: Sequence[DocumentPart], fewest: float, links: Links
) -> Iterator[NoteBlock]:
    """Yield what is not of the change since the revision of `--since`, under its heading."""
    opening = f"### {not_of_this_change(saved.changes)}\n\n"
    for part in parts:
        opening += f"{part.name.capitalize()}:\n\n" if len(parts) > 1 else ""
        for together in _blocks(part, fewest, "change"):
            block = _changes(together, "to {}", links, is_open=False)
            yield replace(block, opening=f"{opening}{block.opening}")
            opening = ""


def report(done: RunDocument, style: Style) -> str:
    """Return what became of the changes: what is not done, what could not be planned, and what is done."""
    links, fewest = links_of(done, style), least(style)
    waited = [*waits(done)]
    head = (
        f"## {title_of(done)}\n\n"
        f"{_bold([*canary_notes(done), *done.remarks('stays'), *revert_notes(done)])}"
        f"{_table(table(done.items, REPORT_COLUMNS))}"
        f"{requests_made(done)} made{'; waited ' * bool(waited)}{', '.join(map(code, waited))}.\n"
        f"Written to {code(done.service)} from {utc(done.began_at)} to {utc(done.time)}{_pipeline(links)}.\n\n"
    )
    return fitted(head, [block for part in parts_of(done) for block in _became(part, fewest, links)])


def _became(part: DocumentPart, fewest: float, links: Links) -> Iterator[NoteBlock]:
    """Yield what became of the changes of a part."""
    yield _list("unfinished change", _blocks(part, fewest, "unfinished"), _unfinished, links)
    yield _list("problem", _blocks(part, fewest, "problem"), _problem, links)
    for block in _blocks(part, fewest, "change"):
        yield _changes(block, "{}d", links, is_open=False)


def _bold(notes: Iterable[str]) -> str:
    return "".join(f"**{code(note)}**\n\n" for note in notes)


def comparison(comparison: Comparison, style: Style) -> str:
    """Return what is new, gone or different, by target."""
    head = f"## {comparison_in_a_line(comparison)}\n\n{compared(comparison)}.\n\n"
    is_open = len(comparison.differences) <= OPEN_TO_ENTRIES
    return fitted(head, [_differing(*block, is_open=is_open) for block in alike(comparison, least(style))])


def validation(diagnostics: Sequence[LocatedDiagnostic], documents: Mapping[str, int], _style: Style) -> str:
    """Return the diagnostics of the manifests, by file, each with its line."""
    numbers = Counter(diagnostic.severity for diagnostic in diagnostics)
    verdict = _severities(numbers) or listed_documents(documents)
    head = f"## {'Not valid' if numbers['error'] else 'Valid'}: {verdict}\n\n"
    files = [(path, tuple(own)) for path, own in groupby(diagnostics, lambda diagnostic: diagnostic.path)]
    files.sort(key=lambda file: all(diagnostic.severity != "error" for diagnostic in file[1]))
    return fitted(head, (_file(path, own) for path, own in files))


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    lines = [f"| section | {' | '.join(table.columns)} |", f"|---|{'---:|' * len(table.columns)}"]
    for section, numbers in table.rows:
        # a cell ends at a pipe even within code
        name = code(section).replace("|", "\\u007c") if section else WHOLE
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines) + "\n\n"


def _list(
    noun: str, blocks: Iterable[Block[Entry]], words: Callable[[EntryGroup[Any]], str], links: Links
) -> NoteBlock:
    """Return a block with a line for each group and for each entry that is in none."""
    groups = [(block.targets, group) for block in blocks for group in block.ranked]
    lines = (
        f"- {_which(targets, links)}: {words(group)}{_origin(group, links)}\n{_all_of(targets)}"
        for targets, group in groups
    )
    return NoteBlock(noun, f"### {counted(sum(len(group.entries) for _, group in groups), noun)}\n\n", tuple(lines))


def _held_back(saved: RunDocument, blocks: Iterable[Block[Entry]], links: Links) -> NoteBlock:
    """Return what exceptions hold back, shown by a click: it is accepted, and in the way of nothing."""
    listed = _list("excepted change", blocks, _excepted, links)
    opening = f"<details>\n<summary>{excepted_note(saved)}</summary>\n\n"
    return replace(listed, opening=opening, closing="\n</details>\n\n")


def _all_of(targets: Sequence[Target]) -> str:
    """Return the targets of an entry of a list, shown by a click; empty if its line names them all."""
    if not _is_cut(targets):
        return ""
    return f"  <details><summary>all {len(targets):,}</summary>\n\n  {_named(targets)}\n\n  </details>\n"


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
    return NoteBlock("possible rename", f"### {counted(len(entries), 'possible rename')}\n\n", entries)


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
    lead = f"{_linked(code(str(first)), url)}\n\n" if url else ""
    lead = f"{_named(block.targets)}\n\n" if _is_cut(block.targets) else lead
    return collapsible(_title(block.targets, words), "change", "diff", entries, is_open=is_open, lead=lead)


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
    return collapsible(_title(targets, words), "difference", "text", entries, is_open=is_open)


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
    return collapsible(
        f"{code_in_html(path)}: {_severities(numbers)}", "fault", "text", entries, is_open=bool(numbers["error"])
    )


def _diagnostic(diagnostic: LocatedDiagnostic) -> Iterator[str]:
    place = f" {diagnostic.line}:{diagnostic.column}" if diagnostic.line else ""
    yield f"{diagnostic.severity}{place}: {clipped(diagnostic.message)}\n"
    if diagnostic.source:
        caret = len(clipped(diagnostic.source[: diagnostic.column - 1]))
        yield f"  | {clipped(diagnostic.source)}\n  | {' ' * caret}^\n"


def _severities(numbers: Mapping[str, int]) -> str:
    return ", ".join(counted(numbers[severity], severity) for severity in ("error", "warning") if numbers.get(severity))


def collapsible(
    summary: str, noun: str, language: str, entries: Iterable[str], *, is_open: bool, lead: str = ""
) -> NoteBlock:
    """Return a block that opens and closes when its summary is clicked.

    Args:
        summary: HTML.
        noun: what an entry is.
        language: by which the entries are coloured.
        entries: lines that begin with a sign of ours, so that none of them ends the fenced block they stand in.
        is_open: whether it is open at first.
        lead: Markdown above the entries.
    """
    opening = f"<details{' open' if is_open else ''}>\n<summary>{summary}</summary>\n\n{lead}```{language}\n"
    return NoteBlock(noun, opening, tuple(entries), "```\n\n</details>\n\n")


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


def fitted(head: str, blocks: Iterable[NoteBlock], limit: int = MAX_NOTE_LENGTH) -> str:
    """Return a note: all blocks, or as many of their first entries as there is room for, and how many are missing.

    Args:
        head: always shown.
        blocks: the most important first.
        limit: the most characters of the note.
    """
    blocks = tuple(blocks)
    whole = head + "".join(map(str, blocks))
    if len(whole) <= limit:
        return whole.rstrip("\n") + "\n"
    parts = tuple(_beginning(blocks, limit - len(head) - NOTICE_LENGTH))
    return f"{head}{_notice(blocks, parts)}{''.join(map(str, parts))}".rstrip("\n") + "\n"


def _beginning(blocks: Iterable[NoteBlock], room: int) -> Iterator[NoteBlock]:
    """Yield the blocks, all without entries from the first entry on for which there is no room."""
    for block in blocks:
        sizes = accumulate(map(len, block.entries), initial=len(block.opening) + len(block.closing))
        number = max(0, sum(size <= room for size in sizes) - 1)
        part = replace(block, entries=block.entries[:number])
        yield part
        room = room - len(str(part)) if number == len(block.entries) else 0


def _notice(blocks: Iterable[NoteBlock], parts: Iterable[NoteBlock]) -> str:
    left_out, all_of = Counter[str](), Counter[str]()
    for block, part in zip(blocks, parts, strict=True):
        left_out[block.noun] += len(block.entries) - len(part.entries)
        all_of[block.noun] += len(block.entries)
    missing = [f"{number:,} of {counted(all_of[noun], noun)}" for noun, number in left_out.items() if number]
    return f"**Shortened: {', '.join(missing)} left out here.** The other reports of this run have all of it.\n\n"
