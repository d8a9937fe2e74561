"""The words for plans and reports that text, notes and pages share: labels, values, numbers, sentences.

Begin with `object_label`, `reason_of` and `summary_line`. Strings from the service or from manifests are escaped: they
can neither steer a terminal nor reverse the direction of text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import unified_diff
from itertools import islice
from math import inf
from shlex import join

from reconciler.document.compare import Comparison, Difference
from reconciler.document.document import BaselineShare, RunDocument, is_remark, utc, with_findings
from reconciler.document.groups import GROUP_FROM_TARGETS, Entry, EntryGroup, subject_of
from reconciler.document.numbers import PART_OF_SOURCE, effects_once, parts_of, totals
from reconciler.document.style import Style
from reconciler.errors import LocatedDiagnostic
from reconciler.memory.apply_log import revert_words, short
from reconciler.model.codes import code_of
from reconciler.model.diff import Fields
from reconciler.model.item import (
    ACTIONS,
    EFFECT_VERBS,
    ON_SERVICE,
    Change,
    ChangedBy,
    Create,
    Delete,
    Finding,
    Item,
    Outcome,
    Status,
    Update,
    address_of,
    change_in,
    changed_by,
    changes_in,
    effect_of,
    effect_verbs,
    sentences,
    source_of,
    with_effect,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.model.values import SHOWN_VALUE_LENGTH, empty_of, quoted, steps, value
from reconciler.model.wording import advised, counted, listed
from reconciler.system.terminal import escaped

MAX_WIDENING_NOTES = 5
"""How many objects are named that will apply to more once others are deleted."""

MARKERS = {"create": "+", "update": "~", "delete": "-"}

WHOLE_TARGET = "whole target"
"""Shown in place of a section's name if an entry is about the target itself: its creation, or that it is unreadable."""


def object_label(address: Address) -> str:
    """Return the words for an object: `milestone "2026.12"`, `approval settings`, `allowlisted project 1234`.

    A target that is created: `project acme/api`.
    """
    if address.name is None:
        return escaped(address.title)
    is_title = isinstance(address.name, str) and address.section
    return f"{escaped(address.title)} {quoted(str(address.name)) if is_title else escaped(str(address.name))}"


def group_threshold(style: Style) -> float:
    """Return the number of targets from which equal changes are grouped; infinity for no groups."""
    if style.group_by is None:
        # verbose text shows the requests of each target, so that nothing is grouped
        return inf if style.verbose else GROUP_FROM_TARGETS
    return 2 if style.group_by == "change" else inf


NAMED_IN_HEADLINES = 2
"""How many targets a headline names."""


def headline(targets: Sequence[Target]) -> tuple[str, str]:
    """Return the number of targets, and the first names: `27 projects`, `acme/api, acme/lib and 25 more`."""
    first, second, *others = (escaped(str(target.ref)) for target in targets)
    and_more = f" and {len(others):,} more" if others else ""
    return counted(len(targets), str(targets[0].level)), f"{first}, {second}{and_more}"


def group_subject(entry_group: EntryGroup[Entry]) -> str:
    """Return the words for the objects of a group: `milestone "2026.12"`, `milestone "a" and 3 others`."""
    first = subject_of(entry_group.sample)
    name = finding_subject(first) if isinstance(first, Finding) else object_label(first.address)
    return f"{name} and {counted(entry_group.others, 'other')}" if entry_group.others else name


def finding_subject(finding: Finding) -> str:
    """Return the object and field of a finding: `approval settings.retain_approvals_on_push`; else the section."""
    address = address_of(finding)
    if finding.code == "excepted":
        return (
            object_label(address) if finding.data["action"] else _object_or_section(address, [*finding.data["after"]])
        )
    field = f".{escaped(finding.field)}" if finding.field else ""
    return _object_or_section(address, [field] if field else []) + field


def _object_or_section(address: Address, field_names: Sequence[str]) -> str:
    """Return the words for an object, or the name of a section if the whole section cannot be planned."""
    is_section = address.section and address.name is None and not field_names
    return escaped(address.section) if is_section else object_label(address)


def reason_of(finding: Finding) -> str:
    """Return the reason and the fix of a finding: `the project is archived; unarchive it`.

    Of an excepted change, the last day and the reason: `excepted until 2027-03-01: the release is re-planned`.
    """
    if finding.code == "excepted":
        return escaped(f"excepted until {finding.data['until']}: {finding.reason}")
    return escaped(advised(finding.reason, finding.fix))


def problem_text(problem: Finding) -> str:
    """Return a problem on one line: `trigger tokens: the project is archived; unarchive it`."""
    return f"{finding_subject(problem)}: {reason_of(problem)}"


def predicate(finding: Finding) -> tuple[str, str]:
    """Return an object with its predicate, and the remaining facts: `milestone "a" is unmanaged`, `ID 7, owner bob`.

    A finding about a whole section names the section.
    """
    address, phrase = address_of(finding), code_of(finding.code).phrase.format(field=finding.field)
    about = escaped(address.section) if address.name is None and phrase else object_label(address)
    facts = finding.reason.removeprefix(phrase).removeprefix(":").strip()
    return f"{about} {escaped(phrase)}".strip(), escaped(facts)


def remark_text(remark: Finding) -> str:
    """Return a remark on one line: `milestone "a": has no due date; give it one`."""
    sentence = (" " if code_of(remark.code).phrase else ": ").join(filter(None, predicate(remark)))
    return advised(sentence, escaped(remark.fix))


def remark_notes(document: RunDocument) -> list[str]:
    """Return the remarks on targets, sections and objects, each with its first target and the number of others."""
    by_sentence: dict[str, list[Finding]] = {}
    for item in document.items:
        if isinstance(item, Finding) and item.where is not None and is_remark(item):
            by_sentence.setdefault(remark_text(item), []).append(item)
    return [
        f"{address_of(own[0]).target}{more}: {sentence}"
        for sentence, own in by_sentence.items()
        for more in [f" and {counted(len(own) - 1, 'other')}" if len(own) > 1 else ""]
    ]


def excepted_change(excepted: Finding, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the change that an exception holds back: that an object is not created or deleted, or its fields."""
    data = excepted.data
    if data["action"] == "update":
        yield from steps(data["before"], data["after"], longest)
    elif data["action"] is not None:
        yield f"not {data['action']}d"
    else:
        yield from map(escaped, data["after"])


def excepted_subject(excepted: Finding) -> str:
    """Return an object and its excepted change: `milestone "2026.12", not created`."""
    return ", ".join((finding_subject(excepted), *excepted_change(excepted)))


def unchanged_counts(document: RunDocument) -> list[str]:
    """Return the numbers of unchanged objects and sections, without zeros: `4 unmanaged`, `1 excepted`.

    A plan also has the number of lists with entries that the token cannot see, of archived projects that sets left out,
    and of changes that applying the revision of `--since` would make too.
    """
    numbers = totals(document.items)
    words = {
        "unmanaged": document_totals(document)["unmanaged"] if document.is_plan else 0,
        "not applicable": numbers["not_applicable"],
        "excepted": numbers["excepted"],
    }
    shown = [f"{number:,} {word}" for word, number in words.items() if number]
    if not document.is_plan:
        return shown
    shown += (
        [f"{counted(numbers['hidden'], 'list')} with entries that this token cannot see"] if numbers["hidden"] else []
    )
    shown += [f"{counted(document.archived, 'archived project')} left out"] if document.archived else []
    others = count_other_changes(document)
    return [*shown, *([f"{others:,} not of this change"] if others else [])]


def count_other_changes(document: RunDocument) -> int:
    """Return the number of changes that applying the revision of `--since` would make too."""
    return sum(change_in(item) is not None for part in parts_of(document)[1:] for item in part.items)


def document_totals(document: RunDocument) -> Counter[str]:
    """Return the numbers of a document by word; with `--since REV`, only of changes of that revision."""
    return totals(parts_of(document)[0].items if document.is_plan else document.items)


def other_changes_heading(changes: Iterable[Change]) -> str:
    """Return the heading of changes that applying the revision of `--since` would make too; empty for none."""
    others = [change for change in changes if source_of(change) != "change"]
    return f"Not of this change: {differing_targets(others, 'already')}" if others else ""


def differing_targets(changes: Iterable[Change], how: str = "") -> str:
    """Return the number of differing targets and the causes: `4 projects differ (3 changed on the service)`."""
    targets = {change.address.target: source_of(change) for change in changes}
    levels = Counter(target.level for target in sorted(targets, key=lambda target: target.order))
    verb = f"differ{'s' if len(targets) == 1 else ''}{how and f' {how}'}"
    numbers = Counter(targets.values())
    known = [f"{numbers[source]:,} {PART_OF_SOURCE[source]}" for source in ("service", "pending") if numbers[source]]
    brackets = f" ({', '.join(known)})" if known else ""
    return f"{listed(counted(number, level) for level, number in levels.items())} {verb}{brackets}"


def with_reasons(document: RunDocument) -> RunDocument:
    """Return the plan of a drift with a remark on the causes of its differences, if the inventory has them."""
    if document.since or not any(map(source_of, document.changes)):
        return document
    return with_findings(document, Finding(None, "stays", differing_targets(document.changes)))


def from_their_side(document: RunDocument) -> RunDocument:
    """Return the plan of a drift that says of each change by hand whether it loosened protection, not its undoing."""

    def turned(item: Item) -> Item:
        if not isinstance(item, Create | Update | Delete):
            return item
        is_by_hand = source_of(item) == "service" or changed_by(item) is not None
        return with_effect(item, effect_of(item), by_hand=True) if is_by_hand else item

    return replace(document, items=tuple(map(turned, document.items)))


def excepted_note(document: RunDocument) -> str:
    """Return the number of excepted changes and the first expiry; empty if nothing is excepted."""
    days = [finding.data["until"] for finding in document.findings("excepted")]
    return f"{len(days):,} excepted until {min(days)} at the earliest" if days else ""


def archived_left_out(number: int) -> str:
    """Return the number of archived projects that sets left out, as a part of a list; empty for zero."""
    return f", {counted(number, 'archived project')} left out" if number else ""


def status_text(outcome: Outcome) -> str:
    """Return the outcome of a change: `done`, `failed: 403 Forbidden`."""
    return f"{outcome.status.words}: {escaped(outcome.reason)}" if outcome.reason else outcome.status.words


def details(change: Change, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the fields of a change with their values, and the notes that are always shown.

    Args:
        change: the change.
        longest: the most characters of a value.
    """
    if isinstance(change, Update):
        if change.renamed_from is not None:
            yield f"renamed from {quoted(str(change.renamed_from))}"
        yield from steps(change.before, change.after, longest)
    else:
        yield from _fields(change.before if isinstance(change, Delete) else change.after, longest)
    yield from shown_notes(change)


def shown_notes(change: Change) -> Iterator[str]:
    """Yield the notes of a change that are always shown, joined by code; `author_text` has the author."""
    codes = dict.fromkeys(note.code for note in change.notes if note.reason)
    for code in codes:
        if code_of(code).shown == "always":
            yield escaped("; ".join(sentences(change, code)))


def author_text(entries: Sequence[Entry]) -> str:
    """Return the authors of the live values: `by mona, 2026-11-22 14:02 UTC`; empty if unknown.

    Of several changes, the first and the last time; the number of known authors, if some are unknown.
    """
    known = [author for entry in entries if (change := change_in(entry)) and (author := changed_by(change))]
    if not known:
        return ""
    moments = sorted(author.time for author in known)
    span = " to ".join(dict.fromkeys(f"{moment:%Y-%m-%d %H:%M}" for moment in (moments[0], moments[-1])))
    of = f" ({len(known):,} of {len(entries):,})" if len(known) < len(entries) else ""
    return f"by {listed(map(escaped, dict.fromkeys(author.name for author in known)))}, {span} UTC{of}"


def with_author(facts: Iterable[str], author: str) -> list[str]:
    """Return facts with the author of the live values: beside what was done on the service, else at the end."""
    own = list(facts)
    place = next((place for place, fact in enumerate(own) if fact.endswith(ON_SERVICE)), None)
    if place is None or not author:
        return [*own, author] if author else own
    return [*own[:place], f"{own[place]} {author}", *own[place + 1 :]]


def restored_heading(number: int, since: datetime | None) -> str:
    """Return the number of changes that were put back, and the start of the period; empty for zero."""
    return f"Changed and put back since {since:%Y-%m-%d %H:%M} UTC: {number:,}" if number and since else ""


def restored_text(restored: Finding) -> str:
    """Return a change that was put back: `enabled: true -> false by mona, TIME; back by ada, TIME`."""
    data = restored.data
    if restored.field is None:
        was, again = ("removed", "back") if data["before"] else ("added", "removed again")
    else:
        was, again = f"{escaped(restored.field)}: {value(data['before'])} -> {value(data['meanwhile'])}", "back"
    return f"{was} {_by(ChangedBy.of(data['changed_by']))}; {again} {_by(ChangedBy.of(data['restored_by']))}"


def _by(author: ChangedBy) -> str:
    return f"by {escaped(author.name)}, {author.time:%Y-%m-%d %H:%M} UTC"


def verbose_notes(change: Change) -> Iterator[str]:
    """Yield the notes of a change that only `--verbose` shows, such as the losses of a deletion."""
    return (escaped(note.reason) for note in change.notes if note.reason and code_of(note.code).shown == "verbose")


def changed_lines(change: Change) -> Iterator[str]:
    """Yield the lines that are removed from, and added to, each text of several lines."""
    if not isinstance(change, Update):
        return
    for name, after in change.after.items():
        before = change.before.get(name)
        if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
            lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            for line in islice(lines, 2, None):
                if line[0] in "-+":
                    yield f"{escaped(name)} {line[0]} {escaped(line[1:])}"


def listed_documents(documents: Mapping[str, int]) -> str:
    """Return the number of documents that were read: `5 documents: 1 group, 2 sets, 2 profiles`."""
    numbers = ", ".join(counted(number, sort) for sort, number in documents.items())
    return f"{counted(sum(documents.values()), 'document')}{numbers and f': {numbers}'}"


def waiting_times(document: RunDocument) -> Iterator[str]:
    """Yield the noticeable waiting times with their reasons: `4.0 s for the rate limit`."""
    waited = document.made.waited.items()
    return (f"{seconds:.1f} s for {escaped(reason)}" for reason, seconds in waited if seconds >= 0.1)


def summary_start(document: RunDocument) -> str:
    """Return the first words of a summary: `Plan`, `Applied shard 1/4`; `New` with a baseline."""
    if document.is_plan:
        word = "Way back" if document.reverts else "New" if document.known else "Plan"
        return f"{word} for shard {document.shard}" if document.shard else word
    word = "Reverted" if document.reverts else "Applied"
    return f"{word} shard {document.shard}" if document.shard else word


def revert_notes(document: RunDocument) -> list[str]:
    """Return the apply that a way back undoes, with the command that carries it out or finishes it."""
    if not document.reverts:
        return []
    about = f"the apply {short(document.reverts)}"
    command = f"{join(revert_words(document.reverts))} --yes"
    if not document.is_plan:
        return [f"This is a revert of {about}" + ("" if document.complete else f"; to finish it: {command}")]
    return [f"This is the way back from {about}" + (f": {command}" if any(document.changes) else "")]


def title_of(document: RunDocument) -> str:
    """Return the numbers of a document in a line, such as `Plan: 1 to create, 1 problem`; see `summary_line`."""
    numbers = summary_line(document, () if any(summary_phrases(document)) else unchanged_counts(document))
    effects = effects_text(document)
    return f"{effects}. {numbers}" if effects else numbers


def effects_text(document: RunDocument) -> str:
    """Return the targets of a plan whose protection changes: `Loosens 7 projects, tightens 57`; empty for none.

    Settings of a group count once, with the number of projects below it.
    """
    if not document.is_plan:
        return ""
    changes = [*changes_in(parts_of(document)[0].items)]
    reached = {
        verb: {change.address.target for change in changes if verb in effect_verbs(change)} for verb in EFFECT_VERBS
    }
    levels = {target.level for targets in reached.values() for target in targets}
    words: list[str] = []
    for verb, targets in reached.items():
        if targets:
            number = _levels_text(document, targets, is_bare=bool(words) and len(levels) == 1)
            words.append(f"{number} {verb} {ON_SERVICE}" if verb in ("loosened", "tightened") else f"{verb} {number}")
    text = ", ".join(words)
    return f"{text[:1].upper()}{text[1:]}"


def _levels_text(document: RunDocument, targets: Iterable[Target], *, is_bare: bool) -> str:
    """Return the number of targets by level, without the level if it was said before."""
    distinct = sorted({*targets}, key=lambda target: target.order)
    if is_bare and distinct[0].level is not Level.GROUP:
        return f"{len(distinct):,}"
    groups = {str(target.ref).casefold() for target in distinct if target.level is Level.GROUP}
    below = sum(not groups.isdisjoint(seen.target.groups_above) for seen in document.targets)
    words = [
        counted(number, level) + (f" with {counted(below, 'project')} below" if level is Level.GROUP and below else "")
        for level, number in Counter(target.level for target in distinct).items()
    ]
    return listed(words)


def summary_line(document: RunDocument, counts: Sequence[str] | None = None) -> str:
    """Return the numbers of a document in a line, or a sentence if there is nothing to do; without a period.

    Such as `Plan: 1 to create, 1 problem, 4 unmanaged`, `No changes: 81 targets are in order, 4 unmanaged` or `Applied:
    1 created, 1 dropped by the service`.

    Args:
        document: a plan or a report.
        counts: the numbers of unchanged objects to add; see `unchanged_counts`.
    """
    counts = unchanged_counts(document) if counts is None else counts
    phrases = [*summary_phrases(document)]
    if phrases:
        return f"{summary_start(document)}: {', '.join((*phrases, *counts))}"
    if not document.is_plan or document.reverts or count_other_changes(document):
        return f"{summary_start(document)}: {', '.join(('nothing to change', *counts))}"
    number = len(document.targets)
    if document.known:
        return f"Nothing new: {_as_in_baseline(document.known)}" if document.known.total else "Nothing new"
    if document.narrowed:
        looked_at = f" in the {counted(number, 'target')} looked at" if number else ": no target was looked at"
        return ", ".join((f"Nothing to do{looked_at}", *counts))
    shard = f" in shard {document.shard}" if document.shard else ""
    order = f"{counted(number, 'target')} {'is' if number == 1 else 'are'} in order"
    return f"No changes{shard}: {', '.join((order, *counts))}"


def summary_phrases(document: RunDocument) -> Mapping[str, str]:
    """Return the changes and problems in numbers, without zeros, each with its marker or status: `1 to create`, `+`.

    The effects of changes are beside the changes; those of a report are of what was done.
    """
    numbers = document_totals(document)
    words = PLAN_WORDS if document.is_plan else DONE_WORDS
    phrases = {f"{numbers[word]:,} {shown}": marker for word, (shown, marker) in words.items() if numbers[word]}
    phrases |= dict.fromkeys(effect_phrases(numbers), "")
    phrases |= {f"{numbers[status]:,} {word}": status for status, word in UNFINISHED_WORDS.items() if numbers[status]}
    problems = numbers["problems"]
    return phrases | ({counted(problems, "problem"): "!"} if problems else {})


def effect_phrases(totals_by_word: Counter[str]) -> list[str]:
    """Return the effects of changes in numbers, without zeros: `1 loosening`, `2 tightening`."""
    effects = effects_once(totals_by_word)
    return [f"{effects[verb]:,} {word}" for verb, word in EFFECT_NUMBERS.items() if effects[verb]]


PLAN_WORDS = {action: (f"to {action}", MARKERS[action]) for action in ACTIONS}
DONE_WORDS = {f"{action}d": (f"{action}d", MARKERS[action]) for action in ACTIONS}
"""By the words of `numbers.counts_by_section`: the words that people read, and the marker of their colour."""

UNFINISHED_WORDS = {str(status): status.words for status in Status if status is not Status.DONE}
"""By the status of unfinished changes, which is their colour too: the words that people read."""

EFFECT_NUMBERS = {
    "loosens": "loosening",
    "tightens": "tightening",
    "loosened": f"loosened {ON_SERVICE}",
    "tightened": f"tightened {ON_SERVICE}",
}
"""By verb, the word for the number of such changes."""


def reach_text(targets: Sequence[Target], changes: Iterable[Change]) -> str:
    """Return the number of changing targets by level: `5,000 of 5,000 projects, all`; empty for zero."""
    all_of = Counter(target.level for target in targets)
    changed = Counter(target.level for target in {change.address.target for change in changes})
    return "; ".join(
        f"{number:,} of {counted(all_of[level], level)}{', all' if 1 < number == all_of[level] else ''}"
        for level in Level
        if (number := changed[level])
    )


def deletions_text(changes: Iterable[Change]) -> str:
    """Return the number of deletions and their targets: `deletes 12 objects in 1 group`; empty for zero."""
    deleted = [change.address.target for change in changes if isinstance(change, Delete)]
    numbers = Counter(target.level for target in sorted(set(deleted), key=lambda target: target.order))
    places = [counted(number, level) for level, number in numbers.items()]
    return f"deletes {counted(len(deleted), 'object')} in {listed(places)}" if deleted else ""


def compared_with(saved: RunDocument) -> str:
    """Return the sources of a plan: `Compared the manifests of 1a2b3c4 with https://… as read at …`."""
    compared = f"the manifests of {short(saved.commit)}" if saved.commit else "the manifests"
    compared = f"the service before the apply {short(saved.reverts)}" if saved.reverts else compared
    text = f"Compared {compared} with {saved.service} as read at {utc(saved.created_at)}"
    return f"{text}, and with the manifests at {escaped(saved.since)}." if saved.since else f"{text}."


def plan_cost(saved: RunDocument) -> str:
    """Return the requests of a plan: `4 writes to apply; 8 requests were made to plan.`."""
    writes = sum(len(change.requests) for change in saved.changes)
    verb = "was" if saved.requests_made == 1 else "were"
    cost = f"{counted(saved.requests_made, 'request')} {verb} made to plan."
    return f"{counted(writes, 'write')} to apply; {cost}" if writes else cost


def costs_and_counts(saved: RunDocument) -> str:
    """Return the requests of a plan, and the numbers of unchanged objects unless its title has them."""
    counts = unchanged_counts(saved) if any(summary_phrases(saved)) else []
    return f"{plan_cost(saved)}{' ' * bool(counts)}{', '.join(counts)}{'.' * bool(counts)}"


def requests_made(report: RunDocument) -> str:
    """Return the number of requests that an apply made: `15 requests`."""
    return counted(report.made.reads + report.made.writes, "request")


def baseline_note(saved: RunDocument) -> str:
    """Return the number of known changes: `12 changes as in the baseline`; empty for zero, or if the title has it."""
    known = saved.known
    return _as_in_baseline(known) if known is not None and known.total and any(summary_phrases(saved)) else ""


def _as_in_baseline(baseline_share: BaselineShare) -> str:
    numbers = {
        "change": baseline_share.changes,
        "problem": baseline_share.problems,
        "unmanaged object": baseline_share.unmanaged,
    }
    first, *others = [counted(number, noun) for noun, number in numbers.items() if number]
    also = f"and {others[0]}" if len(others) == 1 else listed(others) if others else ""
    return f"{first} as in the baseline{', ' * bool(also)}{also}"


def difference_words(difference: Difference) -> tuple[str, str, list[str]]:
    """Return the marker, the subject and the facts of a difference."""
    entry = difference.entry
    facts = [
        fact for place in difference.places for fact in steps({place.path: place.before}, {place.path: place.after})
    ]
    match entry:
        case Finding():
            return "!", finding_subject(entry), facts or [reason_of(entry)]
        case Outcome():
            return MARKERS[entry.change.action], object_label(difference.address), facts or [status_text(entry)]
        case _:
            return MARKERS[entry.action], object_label(difference.address), facts or list(details(entry))


def grouped_differences(
    comparison: Comparison, min_targets: float
) -> list[tuple[tuple[Target, ...], list[Difference]]]:
    """Return the differences by targets; equal ones of enough targets once, for all of these."""
    rows: dict[object, list[tuple[int, Difference]]] = {}
    for index, difference in enumerate(comparison.differences):
        marker, subject, facts = difference_words(difference)
        rows.setdefault((difference.address.target.level, difference.news, marker, subject, *facts), []).append(
            (index, difference)
        )
    blocks: dict[tuple[Target, ...], list[tuple[int, Difference]]] = {}
    for row in rows.values():
        targets = tuple(dict.fromkeys(difference.address.target for _, difference in row))
        for index, difference in row[:1] if len(targets) >= min_targets else row:
            blocks.setdefault(targets if len(targets) >= min_targets else (difference.address.target,), []).append(
                (index, difference)
            )
    ordered = sorted(blocks.items(), key=lambda block: (-len(block[0]), [target.order for target in block[0]]))
    return [
        (targets, [difference for _, difference in sorted(row, key=lambda pair: pair[0])]) for targets, row in ordered
    ]


def comparison_summary(comparison: Comparison) -> str:
    """Return a comparison's numbers: `1 new, 2 gone, 0 different, 12 the same`."""
    numbers = comparison.summary
    return f"{numbers.new:,} new, {numbers.gone:,} gone, {numbers.different:,} different, {numbers.same:,} the same"


def compared_documents(comparison: Comparison) -> str:
    """Return the two documents: `The plan of 2026-12-02T06:00:00Z, compared with that of 2026-12-01T06:00:00Z`."""
    return f"The {comparison.of} of {utc(comparison.until)}, compared with that of {utc(comparison.since)}"


def rename_notes(saved: RunDocument) -> Iterator[str]:
    """Yield each possible rename, with the line to write and its place in the manifests."""
    for finding in saved.findings("rename"):
        data = finding.data
        names = ", ".join(map(quoted, data["renamed_from"]))
        old = f"[{names}]" if len(data["renamed_from"]) > 1 else names
        whose = f" of {counted(data['targets'], 'target')}" if data["targets"] > 1 else ""
        about = f"{data['title']} {quoted(data['name'])}{whose}"
        yield f"{about} looks like a rename: add renamed_from: {old} at {finding.origin}"


def refusal_notes(saved: RunDocument) -> list[str]:
    """Return the reasons for which `apply` will refuse a plan."""
    return [f"apply will refuse this plan: {reason}" for reason in saved.refusals]


def guard_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the note on the baseline, the allowed deletions, and the reasons for which `apply` will refuse a plan."""
    yield from (*filter(None, [baseline_note(saved)]), *limit_notes(saved), *refusal_notes(saved))


def limit_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the number of deletions that a plan allows, if it has such a limit."""
    allowed = saved.limits.allow_deletes
    if allowed is not None:
        yield f"apply may delete up to {counted(allowed, 'object')}: {saved.limits.permitting(allowed)}"


def canary_notes(report: RunDocument) -> Iterator[str]:
    """Yield the result of the canary: `canary: 4 projects, 12 changes, verified after 9 s; going on`."""
    canary = report.canary
    if canary is not None:
        levels = Counter(target.partition(" ")[0] for target in canary.targets)
        numbers = [counted(number, level) for level, number in levels.items()]
        then = "going on" if canary.result == "verified" else "all else is skipped"
        facts = ", ".join([*numbers, counted(canary.changes, "change"), f"{canary.result} after {canary.seconds} s"])
        yield f"canary: {facts}; {then}"


def widening_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the objects that will apply to more once others are deleted; the first by name, the others counted."""
    widened = [*saved.findings("widened")]
    for affected in widened[:MAX_WIDENING_NOTES]:
        address = address_of(affected)
        yield f"{object_label(address)} of {address.target}: {affected.reason}"
    more = len(widened) - MAX_WIDENING_NOTES
    if more > 0:
        yield f"{counted(more, 'more object')} will apply more widely"


def access_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the number of unmanaged objects that grant access, with the lines to write so that they are deleted."""
    objects = [address_of(live) for live in saved.findings("unmanaged") if live.data["grants_access"]]
    counts = Counter(address.section for address in objects)
    if counts:
        numbers = ", ".join(f"{number:,} in {section}" for section, number in counts.items())
        subject = counted(counts.total(), "unmanaged object")
        verb, them = ("grants", "it") if counts.total() == 1 else ("grant", "them")
        prune = f"prune: [{', '.join(counts)}]"
        occurrences = Counter(objects)
        duplicates = [address for address in objects if occurrences[address] > 1 and not _is_blank(address)]
        blank = list(filter(_is_blank, objects))
        declare = f"declare {them}, or " if len(duplicates) + len(blank) < len(objects) else ""
        remedy = f"{declare}write {prune} to delete {them}"
        yield f"{subject} {verb} access: {numbers}; {remedy}{_undeclarable(duplicates, blank)}"


def _undeclarable(duplicates: Sequence[Address], blank: Sequence[Address]) -> str:
    """Return the unmanaged objects with access that no manifest can declare: their names are not unique, or blank."""
    words = [
        f"{len(own):,} {'has' if len(own) == 1 else 'have'} {what} (such as {object_label(own[0])} of {own[0].target})"
        for own, what in ((duplicates, "the name of another"), (blank, "a blank name"))
        if own
    ]
    return (
        f"; {' and '.join(words)}, and cannot be declared: rename or delete such objects on the service"
        if words
        else ""
    )


def _is_blank(address: Address) -> bool:
    return not str(address.name).strip()


def warned_once(diagnostics: Iterable[LocatedDiagnostic]) -> Iterator[LocatedDiagnostic]:
    """Yield diagnostics; of many warnings with one message only the first, with the number of the others."""
    numbers = Counter(diagnostic.message for diagnostic in diagnostics if diagnostic.severity == "warning")
    shown = set[str]()
    for diagnostic in diagnostics:
        others = numbers[diagnostic.message] - 1
        if diagnostic.severity != "warning" or others + 1 < GROUP_FROM_TARGETS:
            yield diagnostic
        elif diagnostic.message not in shown:
            shown.add(diagnostic.message)
            yield replace(
                diagnostic,
                message=f"{diagnostic.message}; the same at {counted(others, 'other place')}, which -v shows",
            )


def expiry_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the number of expired exceptions, and of exceptions that expire within two weeks."""
    today = saved.created_at.date()
    exceptions = [exception for seen in saved.targets for exception in seen.exceptions]
    for words, ended in (("has expired", True), ("expires within two weeks", False)):
        places = [
            exception.origin
            for exception in exceptions
            if (exception.is_over(today) if ended else exception.ends_soon(today))
        ]
        if len(places) == 1:
            yield f"1 exception {words}: {places[0]}"
        elif places:
            plural = words.replace("has", "have").replace("expires", "expire")
            yield f"{len(places):,} exceptions {plural}, such as {places[0]}"


def flat_fields(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Yield the fields of an object that have a value; nested ones as `import.github.repo_id`."""
    for name, content in fields.items():
        if isinstance(content, dict) and content:
            yield from ((f"{name}.{inner}", leaf) for inner, leaf in flat_fields(content))
        elif content is not None:
            yield name, content


def _fields(fields: Fields, longest: float) -> Iterator[str]:
    return (
        f"{escaped(name)}: {value(content, longest, empty=empty_of(name))}" for name, content in flat_fields(fields)
    )
