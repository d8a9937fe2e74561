"""Markdown for a note on a merge request, shortened to 60,000 characters.

Begin with `plan` and `fitted`. Strings from the service and from manifests are shown as code, in which Markdown means
nothing, and never at the beginning of a line: GitLab carries out quick actions (`/close`) there, and cuts them from the
text (18.9).
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
from reconciler.document.numbers import PLAN_COLUMNS, REPORT_COLUMNS, DocumentPart, by_effect, parts_of, table
from reconciler.document.style import Style, links_of
from reconciler.document.wording import (
    MARKERS,
    NAMED_IN_HEADLINES,
    WHOLE_TARGET,
    access_notes,
    author_text,
    baseline_note,
    canary_notes,
    compared_documents,
    comparison_summary,
    costs_and_counts,
    details,
    difference_words,
    excepted_note,
    excepted_subject,
    expiry_notes,
    group_subject,
    group_threshold,
    grouped_differences,
    headline,
    limit_notes,
    listed_documents,
    object_label,
    other_changes_heading,
    reason_of,
    refusal_notes,
    remark_notes,
    rename_notes,
    requests_made,
    restored_heading,
    restored_text,
    revert_notes,
    shown_notes,
    title_of,
    verbose_notes,
    waiting_times,
    widening_notes,
    with_author,
)
from reconciler.errors import LocatedDiagnostic
from reconciler.model.item import ACTIONS, Change, Finding, Outcome, Update, address_of, change_in, sentences
from reconciler.model.targets import Target
from reconciler.model.values import differing, quoted
from reconciler.model.wording import counted
from reconciler.system.terminal import escaped

MAX_NOTE_LENGTH = 60_000
"""How many characters a note may have."""

NOTICE_LENGTH = 500
"""How many of them are kept free for the notice about omitted entries."""

MAX_LINE_LENGTH = 300
"""How many characters of one name, reason or line are shown."""


MAX_NAMED_TARGETS = 50
"""How many targets of equal changes are named below a click."""

OPEN_TO_ENTRIES = 10
"""How many changes are shown without a click."""


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """Entries under one heading; `blocks.md` has their Markdown.

    Attributes:
        noun: the word for an entry, such as `problem`.
        entries: the lines of each entry, ending with a line break. In a fenced block, each line begins with a sign of
            ours, so that no entry can end the block.
        heading: the heading of the entries; empty if a click shows them.
        summary: HTML that a click opens and closes; empty for a heading.
        is_open: whether it is open at first.
        lead: Markdown above the entries.
        language: the language of the fenced block; empty for Markdown.
        above: the heading of this block and of the blocks that follow; empty for all but the first of these.
        part: the heading of the part, if there are several parts.
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
        """How many characters the block has without its entries."""
        macros = _environment().get_template("blocks.md").module
        return len(macros.opening(self)) + len(macros.closing(self))  # type: ignore[attr-defined] # macros


def plan(saved: RunDocument, style: Style) -> str:
    """Return a note on a plan: its changes and its problems."""
    links, min_targets = links_of(saved, style), group_threshold(style)
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
    *loosening, rest = by_effect(first)
    changes = _blocks(rest, min_targets, "change")
    is_open = sum(len(block.groups) for block in changes) <= OPEN_TO_ENTRIES
    blocks = [
        *(block for own in loosening for block in _part_blocks(own, min_targets, links, is_open=True)),
        _list("problem", _blocks(first, min_targets, "problem"), _problem, links),
        _renames([*rename_notes(saved)]),
        *_part_blocks(rest, min_targets, links, is_open=is_open),
        _excepted_block(saved, _blocks(first, min_targets, "excepted"), links),
        *_other_changes(saved, others, min_targets, links),
        _restored_block(saved, links),
    ]
    return fitted(
        blocks,
        title=title_of(saved),
        notes=notes,
        table=table(first.items, PLAN_COLUMNS),
        facts=[
            costs_and_counts(saved),
            f"Read from {code(saved.service)} at {utc(saved.created_at)}{_pipeline(links)}.",
        ],
        remarks=[*saved.remarks, *remark_notes(saved)],
    )


def _part_blocks(
    document_part: DocumentPart, min_targets: float, links: Links, *, is_open: bool
) -> Iterator[NoteBlock]:
    """Yield the blocks of the changes of a part; the name of the part is the heading of the first block."""
    above = document_part.name.capitalize()
    for together in _blocks(document_part, min_targets, "change"):
        yield replace(_changes(together, "to {}", links, is_open=is_open), above=above)
        above = ""


def _blocks(document_part: DocumentPart, min_targets: float, sort: str) -> tuple[Block[Entry], ...]:
    """Return the entries of one sort in blocks of equal ones."""
    return grouped(entries_of(document_part.items, sort), min_targets)


def restored(saved: RunDocument, style: Style) -> str:
    """Return the changes that were put back, under their heading; empty for none."""
    return written([_restored_block(saved, links_of(saved, style))])


def _restored_block(saved: RunDocument, links: Links) -> NoteBlock:
    findings = [(address_of(back), back) for back in saved.findings("restored")]
    heading = restored_heading(len(findings), saved.restored_since)
    entries = (
        f"- {_target_text([address.target], links)}: {code(f'{object_label(address)}: {restored_text(back)}')}\n"
        for address, back in findings
    )
    return NoteBlock("change that was put back", tuple(entries) if heading else (), heading)


def _other_changes(
    saved: RunDocument, document_parts: Sequence[DocumentPart], min_targets: float, links: Links
) -> Iterator[NoteBlock]:
    """Yield the blocks of changes that applying the revision of `--since` would make too, under their heading."""
    above = other_changes_heading(saved.changes)
    for part in document_parts:
        name = part.name.capitalize() if len(document_parts) > 1 else ""
        for together in _blocks(part, min_targets, "change"):
            yield replace(_changes(together, "to {}", links, is_open=False), above=above, part=name)
            above = name = ""


def report(report: RunDocument, style: Style) -> str:
    """Return a note on an apply: unfinished changes, problems, and done changes."""
    links, min_targets = links_of(report, style), group_threshold(style)
    waited = ", ".join(map(code, waiting_times(report)))
    return fitted(
        [block for part in parts_of(report) for block in _outcome_blocks(part, min_targets, links)],
        title=title_of(report),
        notes=[*canary_notes(report), *report.remarks, *remark_notes(report), *revert_notes(report)],
        table=table(report.items, REPORT_COLUMNS),
        facts=[
            f"{requests_made(report)} made{waited and f'; waited {waited}'}.",
            f"Written to {code(report.service)} from {utc(report.began_at)} to {utc(report.time)}{_pipeline(links)}.",
        ],
    )


def _outcome_blocks(document_part: DocumentPart, min_targets: float, links: Links) -> Iterator[NoteBlock]:
    """Yield the blocks of the outcomes and problems of a part."""
    yield _list("unfinished change", _blocks(document_part, min_targets, "unfinished"), _unfinished, links)
    yield _list("problem", _blocks(document_part, min_targets, "problem"), _problem, links)
    for block in _blocks(document_part, min_targets, "change"):
        yield _changes(block, "{}d", links, is_open=False)


def comparison(comparison: Comparison, style: Style) -> str:
    """Return the new, gone and different entries by target."""
    is_open = len(comparison.differences) <= OPEN_TO_ENTRIES
    return fitted(
        [_differing(*block, is_open=is_open) for block in grouped_differences(comparison, group_threshold(style))],
        title=comparison_summary(comparison),
        facts=[f"{compared_documents(comparison)}."],
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
    """Return the name of a section for a table."""
    # a pipe ends the cell of a table even within code
    return code(section).replace("|", "\\u007c") if section else WHOLE_TARGET


def _list(
    noun: str, blocks: Iterable[Block[Entry]], line_of: Callable[[EntryGroup[Any]], str], links: Links
) -> NoteBlock:
    """Return a block with a line for each group and for each single entry."""
    groups = [(block.targets, group) for block in blocks for group in block.ranked]
    lines = (
        f"- {_target_text(targets, links)}: {line_of(group)}{_origin(group, links)}\n{_all_targets(targets)}"
        for targets, group in groups
    )
    return NoteBlock(noun, tuple(lines), counted(sum(len(group.entries) for _, group in groups), noun))


def _excepted_block(saved: RunDocument, blocks: Iterable[Block[Entry]], links: Links) -> NoteBlock:
    """Return the block of excepted changes, shown by a click: they are accepted, and block nothing."""
    return replace(_list("excepted change", blocks, _excepted, links), heading="", summary=excepted_note(saved))


def _all_targets(targets: Sequence[Target]) -> str:
    """Return the targets of an entry, shown by a click; empty if its line names them all."""
    if not _is_shortened(targets):
        return ""
    named = f"{MAX_NAMED_TARGETS} of" if len(targets) > MAX_NAMED_TARGETS else "all"
    return f"  <details><summary>{named} {len(targets):,}</summary>\n\n  {_named_targets(targets)}\n\n  </details>\n"


def _target_text(targets: Sequence[Target], links: Links) -> str:
    if len(targets) == 1:
        return _linked(code(str(targets[0])), links.target(targets[0]))
    number, names = headline(targets)
    return f"{number} ({code(names)})"


def _origin(entry_group: EntryGroup[Entry], links: Links) -> str:
    if not entry_group.origin or isinstance(entry_group.sample, Outcome):
        return ""
    return f" ({_linked(code(entry_group.origin), links.origin(subject_of(entry_group.entries[0]).origin))})"


def _pipeline(links: Links) -> str:
    return f" by [the pipeline]({links.pipeline})" if links.pipeline else ""


def _linked(text: str, web_address: str | None) -> str:
    return f"[{text}]({web_address})" if web_address else text


def _problem(finding_group: EntryGroup[Finding]) -> str:
    return code(f"{group_subject(finding_group)}: {reason_of(finding_group.sample)}")


def _excepted(finding_group: EntryGroup[Finding]) -> str:
    return f"{code(excepted_subject(finding_group.sample))}: {code(reason_of(finding_group.sample))}"


def _renames(notes: Sequence[str]) -> NoteBlock:
    entries = tuple(f"- {code(note)}\n" for note in notes)
    return NoteBlock("possible rename", entries, counted(len(entries), "possible rename"))


def _unfinished(outcome_group: EntryGroup[Outcome]) -> str:
    outcome = outcome_group.sample
    reason = f": {code(outcome.reason)}" if outcome.reason else ""
    return f"{outcome.change.action} {code(group_subject(outcome_group))}: {outcome.status.words}{reason}"


def _changes(block: Block[Entry], verb: str, links: Links, *, is_open: bool) -> NoteBlock:
    """Return the changes of one target, or equal ones of several, shown by a click."""
    samples = [(change_in(group.sample), author_text(group.entries)) for group in block.ranked]
    changes = [(change, author) for change, author in samples if change is not None]
    numbers = Counter(change.action for change, _ in changes)
    words = ", ".join(f"{numbers[action]:,} {verb.format(action)}" for action in ACTIONS if numbers[action])
    entries = ("".join(_change(change, author)) for change, author in changes)
    first = block.targets[0]
    url = links.target(first) if len(block.targets) == 1 else None
    lead = _linked(code(str(first)), url) if url else ""
    lead = _named_targets(block.targets) if _is_shortened(block.targets) else lead
    summary = _title(block.targets, words)
    return NoteBlock("change", tuple(entries), summary=summary, is_open=is_open, lead=lead, language="diff")


def _is_shortened(targets: Sequence[Target]) -> bool:
    """Return whether a headline names only some of the targets."""
    return len(targets) > NAMED_IN_HEADLINES


def _named_targets(targets: Sequence[Target]) -> str:
    """Return the paths of many targets, as far as a note has room for them."""
    names = ", ".join(code(str(target.ref)) for target in targets[:MAX_NAMED_TARGETS])
    more = len(targets) - MAX_NAMED_TARGETS
    return f"{names} and {more:,} more: `--group-by target` shows each" if more > 0 else names


def _title(targets: Sequence[Target], words: str) -> str:
    """Return the HTML above the changes of one target, or the equal changes of several."""
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
    """Yield the lines of a change: the object, its fields with a sign each, and the author of the live values."""
    yield f"{MARKERS[change.action]} {clipped(object_label(change.address))}\n"
    if isinstance(change, Update):
        if change.renamed_from is not None:
            names = (clipped(quoted(str(name))) for name in (change.renamed_from, change.address.name))
            yield "-     name: {}\n+     name: {}\n".format(*names)
        for field, was, will_be in differing(change.before, change.after):
            lost = "" if was is None else f"-     {clipped(field)}: {was}\n"
            yield f"{lost}+     {clipped(field)}: {will_be}\n"
        yield from (f"!     {clipped(sentence)}\n" for sentence in with_author(shown_notes(change), author))
    else:
        lines = [*details(change), *verbose_notes(change)]
        # as in an update, the sign of what is no value
        effects = sentences(change, "effect")
        for number, line in enumerate(with_author(lines, author)):
            is_value = number < len(lines) and not line.startswith(effects)
            yield f"{MARKERS[change.action] if is_value else '!'}     {clipped(line)}\n"


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


def _severities(severity_counts: Mapping[str, int]) -> str:
    return ", ".join(
        counted(severity_counts[severity], severity)
        for severity in ("error", "warning")
        if severity_counts.get(severity)
    )


def code(text: str) -> str:
    """Return text as inline code, in which Markdown, HTML, mentions and references mean nothing."""
    text = clipped(text) or " "
    # a run of backticks ends code that began with as many: the fence is longer than any run in the text
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text.strip(" ") and (text[0] in "` " or text[-1] in "` ") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def code_in_html(text: str) -> str:
    """Return text as code for the HTML in Markdown, with a character reference for every special character."""
    safe = re.sub(r"[^\w ./-]", lambda character: f"&#{ord(character[0])};", clipped(text))
    return f"<code>{safe}</code>"


def clipped(text: str) -> str:
    """Return text without special characters, shortened if it is very long."""
    text = escaped(text)
    return text if len(text) <= MAX_LINE_LENGTH else text[: MAX_LINE_LENGTH - 1] + "…"


def fitted(blocks: Iterable[NoteBlock], limit: int = MAX_NOTE_LENGTH, **head: object) -> str:
    """Return a note with all blocks, or with as many entries as there is room for, and the number of omitted ones.

    Args:
        blocks: the most important first.
        limit: the most characters of the note.
        head: the parts that are always shown, as `note.md` takes them.
    """
    blocks = tuple(blocks)
    whole = written(blocks, **head)
    if len(whole) <= limit:
        return whole
    parts = tuple(_fitting(blocks, limit - len(written((), **head)) - NOTICE_LENGTH))
    return written(parts, left_out=_omitted(blocks, parts), **head)


def written(blocks: Iterable[NoteBlock], **head: object) -> str:
    """Return a note with these blocks."""
    defaults = dict.fromkeys(("title", "notes", "table", "facts", "remarks", "left_out"), ())
    text = _environment().get_template("note.md").render({**defaults, **head}, blocks=tuple(blocks))
    return text.strip("\n") + "\n"


def _fitting(blocks: Iterable[NoteBlock], room: int) -> Iterator[NoteBlock]:
    """Yield the blocks; from the first entry without room on, blocks without entries."""
    for block in blocks:
        sizes = accumulate(map(len, block.entries), initial=block.frame)
        number = max(0, sum(size <= room for size in sizes) - 1)
        part = replace(block, entries=block.entries[:number])
        yield part
        room = room - (part.frame + sum(map(len, part.entries)) if number else 0) if number == len(block.entries) else 0


def _omitted(blocks: Iterable[NoteBlock], shown_blocks: Iterable[NoteBlock]) -> list[str]:
    """Return the number of omitted entries, by noun."""
    left_out, all_of = Counter[str](), Counter[str]()
    for block, part in zip(blocks, shown_blocks, strict=True):
        left_out[block.noun] += len(block.entries) - len(part.entries)
        all_of[block.noun] += len(block.entries)
    return [f"{number:,} of {counted(all_of[noun], noun)}" for noun, number in left_out.items() if number]


@cache
def _environment() -> Environment:
    """Return the templates of notes. They escape nothing: text from outside must pass `code` first."""
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
