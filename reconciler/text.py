"""Text for people: a line for each change, in a fixed order, so that `diff` can compare two runs. Begin with `plan`."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from math import inf
from operator import itemgetter
from textwrap import wrap

from reconciler.document.compare import Comparison
from reconciler.document.diagnosis import Costs, Diagnosis, DoctorFinding, SectionState, TargetState, Verdict
from reconciler.document.document import RunDocument
from reconciler.document.groups import GROUP_FROM_TARGETS, Block, Entry, EntryGroup, entries_of, grouped, subject_of
from reconciler.document.numbers import DocumentPart, by_effect, parts_of
from reconciler.document.style import Style
from reconciler.document.wording import (
    MARKERS,
    access_notes,
    archived_left_out,
    author_text,
    baseline_note,
    canary_notes,
    changed_lines,
    compared_documents,
    comparison_summary,
    details,
    difference_words,
    excepted_change,
    excepted_note,
    group_subject,
    group_threshold,
    grouped_differences,
    headline,
    limit_notes,
    listed_documents,
    object_label,
    other_changes_heading,
    plan_cost,
    predicate,
    reason_of,
    refusal_notes,
    rename_notes,
    requests_made,
    restored_heading,
    restored_text,
    revert_notes,
    shown_notes,
    status_text,
    summary_line,
    summary_phrases,
    verbose_notes,
    waiting_times,
    warned_once,
    with_author,
)
from reconciler.errors import LocatedDiagnostic
from reconciler.model.codes import CODES, code_of, place_of
from reconciler.model.item import Change, Delete, Finding, Item, Outcome, Status, address_of, target_of
from reconciler.model.targets import Level, Target
from reconciler.model.values import SHOWN_VALUE_LENGTH
from reconciler.model.wording import advised, counted
from reconciler.system.terminal import escaped

NUMBER_WIDTH = 69
"""The width of the number of targets, so that their names are in one column."""

LABEL_WIDTH = 42
"""The width of a label, so that the following text is in one column."""

LABEL_INDENT = 4
"""The columns before a label: the marker and the blanks around it."""

FINDING_WIDTH = 42
"""The width of the subjects of the doctor's findings."""

FINDING_INDENT = 11
"""The columns before such a subject: the verdict and the blanks around it."""

COLOURS = {
    "+": "32", "~": "33", "-": "31", "!": "1;35", "?": "2", "=": "2", "target": "1", "origin": "2",
    "error": "1;31", "warning": "1;33", "unknown": "35", "ok": "32",
}  # fmt: skip
"""ANSI numbers. A colour repeats a marker or a word, and never replaces it."""

REMARKS_BY_REASON = tuple(
    name for name, code in CODES.items() if code.by_reason and code.shown == "always" and not code.own_form
)
"""The codes of findings that are shown as problems are, equal ones of several targets together, and block nothing."""

ROLE_OF_PART: Mapping[str, str] = {"loosens protection": "warning", "loosened on the service": "warning"}
"""The colour roles of headings."""

ROLES: Mapping[str, str] = {
    Status.FAILED: "error", Status.DROPPED: "error", Status.STALE: "warning", Status.SKIPPED: "warning",
}  # fmt: skip
"""The colour roles of unfinished changes."""


def plan(saved: RunDocument, style: Style) -> str:
    """Return the changes and problems of each target that has any, and the plan in numbers.

    A plan with no new changes or problems has a line that says so, and a line about new access.
    """
    access = [] if style.quiet else [*access_notes(saved)]
    if saved.known is not None and saved.is_empty:
        notes = [*([f"{summary_line(saved)}."] if saved.known.total else []), *access]
        return "".join(f"{line}\n" for line in (*_restored_lines(saved, style), *_noted(notes, style)))
    first, *others = parts_of(saved)
    lines = _part_lines(first, style)
    heading = other_changes_heading(saved.changes) if saved.since else ""
    if heading:
        lines += [_painted(line, "target", style) for line in _folded(heading, style)]
    for part in () if style.quiet else others:
        lines += [f"{part.name.capitalize()}:"] if len(others) > 1 else []
        lines += _part_lines(part, style)
    lines += _restored_lines(saved, style)
    notes = [*rename_notes(saved), *saved.remarks, *revert_notes(saved)]
    lines += _noted([*notes, *filter(None, [baseline_note(saved)]), *limit_notes(saved)], style)
    lines += [_painted(line, "error", style) for line in _noted(refusal_notes(saved), style)]
    lines += _noted(access, style)
    excepted = "" if style.quiet or style.verbose else excepted_note(saved)
    lines += _noted([f"{excepted} (-v shows them)"] if excepted else [], style)
    cost = plan_cost(saved)
    return "\n".join([*lines, *_summary_lines(saved, f"{summary_line(saved)}. {cost}", style)]) + "\n"


def report(report: RunDocument, style: Style) -> str:
    """Return the outcome of each change, and the report in numbers."""
    lines: list[str] = []
    for part in parts_of(report):
        lines += _part_lines(part, style)
        lines += _noted(canary_notes(report), style) if part.name == "canary" and not style.quiet else []
    lines += _noted([*report.remarks, *revert_notes(report)], style)
    waited = [*waiting_times(report)]
    end = f" Waited {', '.join(waited)}." if waited else ""
    return (
        "\n".join(
            [*lines, *_summary_lines(report, f"{summary_line(report)}. {requests_made(report)} made.{end}", style)]
        )
        + "\n"
    )


def comparison(comparison: Comparison, style: Style) -> str:
    """Return the new, gone and different entries of each target, and the comparison in numbers."""
    lines: list[str] = []
    for targets, differences in [] if style.quiet else grouped_differences(comparison, group_threshold(style)):
        several = len(targets) > 1
        name = _painted(escaped(str(targets[0])), "target", style)
        lines += _heading(*headline(targets), style) if several else [name]
        for difference in differences:
            marker, subject, facts = difference_words(difference)
            head = f"{difference.news:<{len('different')}} {_painted(marker, marker, style)} {subject}"
            lines += _folded("  ".join(filter(None, [head, ", ".join(facts)])), style, indent=2)
    lines += _folded(f"{compared_documents(comparison)}: {comparison_summary(comparison)}.", style)
    return "\n".join(lines) + "\n"


def validation(diagnostics: Iterable[LocatedDiagnostic], documents: Mapping[str, int], style: Style) -> str:
    """Return the diagnostics with their places and the offending lines, and the verdict."""
    if style.verbose:
        lines = [line for diagnostic in diagnostics for line in _diagnostic(diagnostic, style)]
    else:
        lines = [*_diagnostics([*warned_once(diagnostics)], style)]
    numbers = Counter(diagnostic.severity for diagnostic in diagnostics)
    warnings = [counted(numbers["warning"], "warning")] if numbers["warning"] else []
    if numbers["error"]:
        lines.append(f"Not valid: {', '.join([counted(numbers['error'], 'error'), *warnings])}.")
    elif not style.quiet:
        lines.append(f"Valid: {'; '.join([listed_documents(documents), *warnings])}.")
    return "".join(f"{line}\n" for line in lines)


def diagnosis(diagnosis: Diagnosis, style: Style) -> str:
    """Return the findings about service, token and targets, and the estimated cost of the runs.

    Sections that are in order have a line for all targets; with `--verbose`, a line for each target.
    """
    lines = _titled(f"service {diagnosis.service.url}", map(_check, diagnosis.service.findings), style)
    lines += _titled("token", map(_check, diagnosis.token.findings), style)
    lines += _titled("manifests", map(_check, diagnosis.manifests), style)
    lines += _titled("pipeline", map(_check, diagnosis.pipeline), style)
    if style.verbose:
        lines += [line for state in diagnosis.targets for line in _titled(str(state.target), _checks(state), style)]
    else:
        lines += _target_lines(diagnosis.targets, style)
    counts = diagnosis.counts
    numbers = f"{counted(counts.error, 'error')}, {counted(counts.warning, 'warning')}"
    lines += _folded(f"Doctor: {numbers}, {counts.unknown:,} unknown{archived_left_out(diagnosis.archived)}.", style)
    if diagnosis.costs is not None:
        lines += _folded(_costs_text(diagnosis.costs), style)
    return "\n".join(lines) + "\n"


def _part_lines(document_part: DocumentPart, style: Style) -> list[str]:
    """Return the lines of a part: what loosens protection first, under its heading, then all else under its own."""
    lines: list[str] = []
    for own in by_effect(document_part):
        shown = _entry_lines(own, style)
        heading = [_painted(f"{own.name.capitalize()}:", ROLE_OF_PART.get(own.name, ""), style)] if shown else []
        lines += [*(() if own is document_part else heading), *shown]
    return lines


def _entry_lines(document_part: DocumentPart, style: Style) -> list[str]:
    """Return the lines of entries: equal entries of several targets, then the other entries of each target."""
    sorts = ["unfinished", "problem"] if style.quiet else ["change", "unfinished", "problem"]
    if not style.quiet:
        sorts += [*REMARKS_BY_REASON, *(["excepted"] if style.verbose else [])]
    entries = entries_of(document_part.items, *sorts)
    finding_lines = _finding_lines(document_part.items, style)
    blocks = grouped(entries, group_threshold(style))
    # where a person is asked to confirm, deletions come last: next to the question
    if not style.deletions_last:
        return _joined(_parts(blocks, finding_lines, style), style)
    first, last = (_split_deletions(blocks, deletions=deletions) for deletions in (False, True))
    return _joined(chain(_parts(first, finding_lines, style), _parts(last, {}, style)), style)


def _finding_lines(items: Iterable[Item], style: Style) -> Mapping[Target, Sequence[str]]:
    """Return by target the lines of findings; without `--verbose`, only of findings that are always shown."""
    own: dict[Target, list[Finding]] = {}
    for item in items:
        findings = own.setdefault(target_of(item), [])
        if isinstance(item, Finding) and _has_line(item, style):
            findings.append(item)
    return {
        target: [
            line
            for finding in sorted(findings, key=lambda finding: place_of(finding.code))
            for line in _finding(finding, style)
        ]
        for target, findings in own.items()
    }


def _has_line(finding: Finding, style: Style) -> bool:
    """Return whether a finding has a line below the entries of its target."""
    shown = code_of(finding.code).shown
    is_entry = finding.code in {"problem", "excepted", "restored", *REMARKS_BY_REASON}
    return not is_entry and ((shown == "verbose" and style.verbose) or (shown == "always" and not style.quiet))


def _finding(finding: Finding, style: Style) -> Iterator[str]:
    about, rest = predicate(finding)
    facts = tuple(filter(None, (advised(rest, escaped(finding.fix)),)))
    yield from _entry(code_of(finding.code).sign, about, facts, style, escaped(finding.origin))


def _split_deletions(blocks: Iterable[Block[Entry]], *, deletions: bool) -> list[Block[Entry]]:
    """Return the blocks with only their deletions, or with everything else."""
    parts = [
        replace(
            block,
            groups=tuple(group for group in block.groups if isinstance(subject_of(group.sample), Delete) is deletions),
        )
        for block in blocks
    ]
    return [block for block in parts if block.groups]


def _noted(notes: Iterable[str], style: Style) -> list[str]:
    return [line for note in notes for line in _folded(escaped(note), style)]


def _restored_lines(saved: RunDocument, style: Style) -> list[str]:
    """Return the changes that were put back, under their heading."""
    put_back = [*saved.findings("restored")]
    heading = restored_heading(len(put_back), saved.restored_since)
    if not heading:
        return []
    lines = [_painted(line, "target", style) for line in _folded(heading, style)]
    for target, own in groupby(() if style.quiet else put_back, lambda restored: address_of(restored).target):
        lines.append(_painted(escaped(str(target)), "target", style))
        for restored in own:
            lines += _entry("=", object_label(address_of(restored)), (restored_text(restored),), style)
    return lines


def _joined(line_groups: Iterable[tuple[list[str], list[str]]], style: Style) -> list[str]:
    """Return headings with their lines; a heading that repeats the previous heading is left out.

    On a terminal, a blank line separates the targets.
    """
    lines: list[str] = []
    previous: list[str] = []
    for heading, own in line_groups:
        if heading != previous:
            lines += [*([""] if lines and style.width is not None else []), *heading]
        lines += own
        previous = heading
    return lines


def _parts(
    blocks: Iterable[Block[Entry]], more: Mapping[Target, Sequence[str]], style: Style
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the heading and the lines of each group of targets, then of each single target.

    Entries about all targets come first, since they have no heading. On a terminal, the first heading says how to see
    the targets that it does not name.
    """
    by_target: dict[Target, Sequence[str]] = dict.fromkeys(more, ())
    hint = "" if style.width is None or style.group_by else "; --group-by target shows each"
    for block in sorted(blocks, key=_has_heading):
        lines = [line for group in block.ranked for line in _group(group, style)]
        if not _has_heading(block):
            yield [], lines
        elif len(block.targets) > 1:
            number, names = headline(block.targets)
            yield _heading(number, f"{names}{hint}", style), lines
            hint = ""
        else:
            by_target[block.targets[0]] = lines
    for target, own in by_target.items():
        lines = [*own, *more.get(target, ())]
        if lines:
            yield [_painted(escaped(str(target)), "target", style)], lines


def _has_heading(block: Block[Entry]) -> bool:
    """Return whether a block has its targets for a heading: it is not about the run alone."""
    return not all(_is_about_run(group.sample) for group in block.groups)


def _is_about_run(entry: Entry) -> bool:
    """Return whether an entry is about all targets, such as an unreadable inventory: it has no target as a heading."""
    address = address_of(entry)
    return address.target.level is Level.INSTANCE and not address.section


def _heading(target_count: str, target_names: str, style: Style) -> list[str]:
    """Return the heading of a group: its number of targets, and some of them in column 70 or two blanks later.

    On a terminal the names begin in the column of the values below them.
    """
    width = NUMBER_WIDTH if style.width is None else LABEL_WIDTH + LABEL_INDENT
    for line in (f"{target_count:<{width}}({target_names})", f"{target_count}  ({target_names})"):
        if style.width is None or len(line) <= style.width:
            return [line.replace(target_count, _painted(target_count, "target", style), 1)]
    return [_painted(target_count, "target", style), *_folded(f"({target_names})", style, indent=2)]


def _group(entry_group: EntryGroup[Entry], style: Style) -> Iterator[str]:
    """Yield the lines of equal entries of several targets, or of a single entry."""
    sample = entry_group.sample
    about = group_subject(entry_group)
    longest = inf if style.verbose else SHOWN_VALUE_LENGTH
    match sample:
        case Finding(code="excepted"):
            known = (*excepted_change(sample, longest), reason_of(sample))
            yield from _entry("=", about, known, style, escaped(entry_group.origin))
            return
        case Finding(code=code) if code in REMARKS_BY_REASON:
            yield from _entry(code_of(code).sign, about, (reason_of(sample),), style, escaped(entry_group.origin))
            return
        case Finding():
            text = reason_of(sample) if _is_about_run(sample) else f"{about}: {reason_of(sample)}"
            yield from _entry("!", text, (), style, escaped(entry_group.origin))
            return
        case Outcome():
            role = ROLES.get(sample.status, "")
            yield from _entry(MARKERS[sample.change.action], about, (status_text(sample),), style, role=role)
        case _:
            is_short = isinstance(sample, Delete) and not style.verbose
            facts = (*shown_notes(sample),) if is_short else tuple(details(sample, longest))
            if not sample.address.section:
                about, facts = f"{about} ({', '.join(facts)})", ()
            facts = (*with_author(facts, author_text(entry_group.entries)),)
            yield from _entry(MARKERS[sample.action], about, facts, style, escaped(entry_group.origin))
    if style.verbose:
        for line in () if isinstance(sample, Outcome) else (*verbose_notes(sample), *changed_lines(sample)):
            yield from _folded(line, style, indent=6)
        for change in map(subject_of, entry_group.entries):
            yield from () if isinstance(change, Finding) else _requests(change)


def _requests(change: Change) -> Iterator[str]:
    return (f"      {escaped(str(request))}" for request in change.requests)


def _entry(
    marker: str, subject: str, facts: Iterable[str], style: Style, origin: str = "", *, role: str = ""
) -> Iterator[str]:
    """Yield the lines of an entry: marker in column 3, label in column 5, facts in column 47 or two blanks later.

    The facts have the colour of their role. The origin follows after five blanks; on a terminal it is dimmed, and ends
    in the last column. If the line is too wide, the origin has a line of its own, and so has each fact if need be.
    """
    room = " " * max(2, LABEL_WIDTH - len(subject)) if facts else ""
    joined = ", ".join(facts)
    at_end = f"     {origin}" if origin else ""
    free = inf if style.width is None else style.width - len(f"  {marker} {subject}{room}{joined}")
    if free >= 0:
        start = f"  {_painted(f'{marker} {subject}', marker, style)}{room}{_painted(joined, role, style)}"
        blanks = "" if style.width is None else " " * (int(free) - len(at_end))
        end = f"{blanks}{_painted(at_end, 'origin', style)}" if origin and free >= len(at_end) else ""
        yield f"{start}{end}"
    else:
        for line in _folded(f"{marker} {subject}", style, indent=2):
            yield line.replace(line.strip(), _painted(line.strip(), marker, style))
        for fact in facts:
            for line in _folded(fact, style, indent=8):
                yield line.replace(line.strip(), _painted(line.strip(), role, style))
    if origin and free < len(at_end):
        yield from (_painted(line, "origin", style) for line in _folded(origin, style, indent=8))


def _summary_lines(document: RunDocument, text: str, style: Style) -> list[str]:
    """Return the folded lines of a summary; its first words and its numbers have the colours of their roles."""
    shown = "\n".join(_folded(text, style))
    first, colon, _ = text.partition(":")
    for phrase, role in {f"{first}{colon}": "target", **summary_phrases(document)}.items():
        words = r"\s".join(map(re.escape, phrase.split()))
        colour = partial(_each_line, ROLES.get(role, role), style)
        # `1 to create` must not match within `11 to create` or `2,001 to create`
        shown = re.sub(rf"(?<![\w,]){words}", colour, shown, count=1)
    return shown.split("\n")


def _each_line(role: str, style: Style, match: re.Match[str]) -> str:
    return "\n".join(_painted(line, role, style) for line in match[0].split("\n"))


def _folded(text: str, style: Style, indent: int = 0) -> list[str]:
    """Return the lines of a text that is broken between words; continuation lines are indented."""
    first, others = " " * indent, " " * (indent and indent + 2)
    if style.width is None or indent + len(text) <= style.width:
        return [first + text]
    return wrap(
        text,
        style.width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _diagnostics(diagnostics: Sequence[LocatedDiagnostic], style: Style) -> Iterator[str]:
    """Yield the lines of diagnostics; of equal ones, such as those of one lock, all but the first in short."""
    equal: dict[str, list[LocatedDiagnostic]] = {}
    for diagnostic in diagnostics:
        equal.setdefault(diagnostic.message, []).append(diagnostic)
    for diagnostic in diagnostics:
        first, *others = equal[diagnostic.message]
        if len(others) + 1 < GROUP_FROM_TARGETS:
            yield from _diagnostic(diagnostic, style)
        elif diagnostic is first:
            yield from _diagnostic(first, style)
            yield from (f"    the same at {_painted(escaped(other.place), 'target', style)}" for other in others)


def _diagnostic(diagnostic: LocatedDiagnostic, style: Style) -> Iterator[str]:
    severity = _painted("warning", "warning", style) + ": " if diagnostic.severity == "warning" else ""
    yield f"{_painted(escaped(diagnostic.place), 'target', style)}: {severity}{escaped(diagnostic.message)}"
    if diagnostic.source:
        yield f"    {escaped(diagnostic.source)}"
        caret = " " * len(escaped(diagnostic.source[: diagnostic.column - 1])) + "^"
        yield f"    {caret[:-1]}{_painted('^', diagnostic.severity, style)}"


Check = tuple[Verdict, str, str]
"""A verdict, its subject, and the text of a finding."""


def _check(finding: DoctorFinding) -> Check:
    return finding.verdict, finding.about, advised(finding.said, finding.remedy)


def _checks(target_state: TargetState) -> Iterator[Check]:
    yield from map(_check, target_state.findings)
    for section in target_state.sections:
        if not target_state.explains(section):
            yield _section_check(section)
        yield from map(_check, section.findings)


def _target_lines(target_states: Sequence[TargetState], style: Style) -> list[str]:
    """Return the lines of the targets: numbers of sections in order, equal findings once, then each other finding."""
    in_order = Counter[Check]()
    alike: dict[tuple[Level, Check], dict[Target, Check]] = {}
    for state in target_states:
        for verdict, about, sentence in _checks(state):
            if verdict is Verdict.OK:
                in_order[verdict, about, sentence] += 1
            else:
                # texts of requests name the target: without its path, one refusal of many targets is one line
                place = state.target.url
                everywhere = sentence.replace(place, f"{state.level}s/<path>/") if place else sentence
                places = alike.setdefault((state.level, (verdict, about, everywhere)), {})
                places[state.target] = verdict, about, sentence
    counts = [
        (verdict, about, f"{sentence} ({counted(number, 'target')})")
        for (verdict, about, sentence), number in in_order.items()
    ]
    lines = _titled("sections", sorted(counts, key=itemgetter(1)), style)
    groups: dict[tuple[Target, ...], list[Check]] = {}
    by_target: dict[Target, list[Check]] = {state.target: [] for state in target_states}
    for (_, check), places in alike.items():
        if len(places) < GROUP_FROM_TARGETS:
            for target, own in places.items():
                by_target[target].append(own)
        else:
            groups.setdefault(tuple(places), []).append(check)
    for several, checks in sorted(groups.items(), key=lambda group: (-len(group[0]), *map(str, group[0]))):
        number, names = headline(several)
        lines += _titled(f"{number} ({names})", checks, style)
    for target, checks in by_target.items():
        lines += _titled(str(target), checks, style)
    return lines


def _section_check(section_state: SectionState) -> Check:
    why = advised(section_state.said, section_state.remedy)
    permissions = f"read: {section_state.read}, write: {section_state.write}"
    return section_state.verdict, section_state.section, f"{permissions}: {why}" if why else permissions


def _titled(title: str, checks: Iterable[Check], style: Style) -> list[str]:
    """Return a title and its checks, a line each; a text that is too wide is below."""
    lines = []
    for verdict, about, sentence in checks:
        if style.quiet and verdict is Verdict.OK:
            continue
        subject, words = escaped(about), escaped(sentence)
        start = f"  {_painted(verdict, verdict, style)}{' ' * (FINDING_INDENT - 2 - len(verdict))}{subject}"
        room = " " * max(2, FINDING_WIDTH - len(subject))
        if style.width is None or FINDING_INDENT + len(subject + room + words) <= style.width:
            lines.append(start + room + words)
        else:
            lines += [start, *_folded(words, style, indent=FINDING_INDENT + 2)]
    return [_painted(escaped(title), "target", style), *lines] if lines else []


def _costs_text(costs: Costs) -> str:
    plan, apply = costs.plan, costs.apply
    return (
        f"A plan: {counted(plan.requests, 'request')}, {_duration_text(plan.seconds)}. "
        f"Applying it: {counted(costs.changes, 'change')} by {counted(apply.requests, 'request')} more, "
        f"{_duration_text(apply.seconds)}. Measured: {1000 * costs.latency:.0f} ms per response, "
        f"{counted(costs.concurrency, 'request')} at once."
    )


def _duration_text(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 1:
        return "less than a second"
    whole = round(seconds)
    if whole < 120:
        return f"about {counted(whole, 'second')}"
    return f"about {counted(round(whole / 60), 'minute')}"


def _painted(text: str, role: str, style: Style) -> str:
    return f"\x1b[{COLOURS[role]}m{text}\x1b[0m" if style.colour and role else text
