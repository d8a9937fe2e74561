"""The words that people read of plans and reports, whatever the format: labels, values, numbers.

Strings from the service or from manifests are shown so that they can neither steer a terminal nor turn text around.
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
from reconciler.document.document import BaselineShare, RunDocument, is_remark, saying, utc
from reconciler.document.groups import GROUP_FROM_TARGETS, Entry, EntryGroup, subject_of
from reconciler.document.numbers import ALREADY, parts_of, totals
from reconciler.document.style import Style
from reconciler.errors import LocatedDiagnostic
from reconciler.memory.apply_log import revert_words, short
from reconciler.model.codes import code_of
from reconciler.model.diff import Fields
from reconciler.model.item import (
    ACTIONS,
    Change,
    ChangedBy,
    Delete,
    Finding,
    Outcome,
    Status,
    Update,
    address_of,
    change_in,
    changed_by,
    sentences,
    source_of,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.model.values import SHOWN_VALUE_LENGTH, empty_of, quoted, steps, value
from reconciler.model.wording import advised, counted, listed
from reconciler.system.terminal import escaped

MAX_WIDENING_NOTES = 5
"""How many objects that hold for more once others are deleted are named at the head of a page or note."""

MARKERS = {"create": "+", "update": "~", "delete": "-"}

WHOLE = "whole target"
"""Stands for the section's name where something is about the target itself: its creation, or why it cannot be read."""


def label(address: Address) -> str:
    """Return what an object is called: `milestone "2026.12"`, `approval settings`, `allowlisted project 1234`.

    A whole target, such as one that is created: `project acme/api`.
    """
    if address.name is None:
        return escaped(address.title)
    is_title = isinstance(address.name, str) and address.section
    return f"{escaped(address.title)} {quoted(str(address.name)) if is_title else escaped(str(address.name))}"


def least(style: Style) -> float:
    """Return how many targets make a group; infinity for no groups. Verbose text shows each target's requests."""
    if style.group_by is None:
        return inf if style.verbose else GROUP_FROM_TARGETS
    return 2 if style.group_by == "change" else inf


NAMED_IN_HEADLINES = 2
"""How many targets a headline names."""


def headline(targets: Sequence[Target]) -> tuple[str, str]:
    """Return what targets are, and which: `27 projects`, `acme/api, acme/lib and 25 more`."""
    first, second, *others = (escaped(str(target.ref)) for target in targets)
    and_more = f" and {len(others):,} more" if others else ""
    return counted(len(targets), str(targets[0].level)), f"{first}, {second}{and_more}"


def subject(group: EntryGroup[Entry]) -> str:
    """Return what a group is about: `milestone "2026.12"`, `milestone "a" and 3 others`."""
    first = subject_of(group.sample)
    name = finding_subject(first) if isinstance(first, Finding) else label(first.address)
    return f"{name} and {counted(group.others, 'other')}" if group.others else name


def finding_subject(finding: Finding) -> str:
    """Return the object and field of a finding: `approval settings.retain_approvals_on_push`; else the section."""
    address = address_of(finding)
    if finding.code == "excepted":
        return label(address) if finding.data["action"] else _object_or_section(address, [*finding.data["after"]])
    field = f".{escaped(finding.field)}" if finding.field else ""
    return _object_or_section(address, [field] if field else []) + field


def _object_or_section(address: Address, fields: Sequence[str]) -> str:
    """Return what something is about that cannot be planned: an object, the one with these fields, or a section."""
    is_section = address.section and address.name is None and not fields
    return escaped(address.section) if is_section else label(address)


def reason_of(finding: Finding) -> str:
    """Return what a finding says, and what to do: `the project is archived; unarchive it`.

    Of something excepted, until when and why: `excepted until 2027-03-01: the release is re-planned`.
    """
    if finding.code == "excepted":
        return escaped(f"excepted until {finding.data['until']}: {finding.reason}")
    return escaped(advised(finding.reason, finding.fix))


def problem_text(problem: Finding) -> str:
    """Return a problem on one line: `trigger tokens: the project is archived; unarchive it`."""
    return f"{finding_subject(problem)}: {reason_of(problem)}"


def predicate(finding: Finding) -> tuple[str, str]:
    """Return an object with what is said of it, and the rest: `milestone "a" is unmanaged`, `ID 7, owner bob`.

    What is said of a section names the section.
    """
    address, phrase = address_of(finding), code_of(finding.code).phrase.format(field=finding.field)
    about = escaped(address.section) if address.name is None and phrase else label(address)
    rest = finding.reason.removeprefix(phrase).removeprefix(":").strip()
    return f"{about} {escaped(phrase)}".strip(), escaped(rest)


def remark_text(remark: Finding) -> str:
    """Return a remark on one line: `milestone "a": has no due date; give it one`."""
    said = (" " if code_of(remark.code).phrase else ": ").join(filter(None, predicate(remark)))
    return advised(said, escaped(remark.fix))


def remark_notes(document: RunDocument) -> list[str]:
    """Return the remarks on targets, sections and objects, by sentence: what of, the first of several."""
    alike: dict[str, list[Finding]] = {}
    for item in document.items:
        if isinstance(item, Finding) and item.where is not None and is_remark(item):
            alike.setdefault(remark_text(item), []).append(item)
    return [
        f"{address_of(own[0]).target}{more}: {sentence}"
        for sentence, own in alike.items()
        for more in [f" and {counted(len(own) - 1, 'other')}" if len(own) > 1 else ""]
    ]


def held_back(excepted: Finding, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the change that is held back: that an object is not created or deleted, or the fields that differ."""
    data = excepted.data
    if data["action"] == "update":
        yield from steps(data["before"], data["after"], longest)
    elif data["action"] is not None:
        yield f"not {data['action']}d"
    else:
        yield from map(escaped, data["after"])


def excepted_subject(excepted: Finding) -> str:
    """Return an object and the change of it that is held back: `milestone "2026.12", not created`."""
    return ", ".join((finding_subject(excepted), *held_back(excepted)))


def stays(document: RunDocument) -> list[str]:
    """Return how much stays as it is: `4 unmanaged`, `2 not applicable`, `1 excepted`; what is not there is not named.

    Of a plan, also how many lists hold entries that the token cannot see, and how much is not of the change.
    """
    numbers = totals(document.items)
    words = {
        "unmanaged": numbers_in(document)["unmanaged"] if document.is_plan else 0,
        "not applicable": numbers["not_applicable"],
        "excepted": numbers["excepted"],
    }
    shown = [f"{number:,} {word}" for word, number in words.items() if number]
    if not document.is_plan:
        return shown
    shown += [f"{counted(numbers['hidden'], 'list')} with hidden entries"] if numbers["hidden"] else []
    shown += [f"{counted(document.archived, 'archived project')} left out"] if document.archived else []
    other = already(document)
    return [*shown, *([f"{other:,} not of this change"] if other else [])]


def already(document: RunDocument) -> int:
    """Return how many changes are not of the change since the revision of `--since`."""
    return sum(change_in(item) is not None for part in parts_of(document)[1:] for item in part.items)


def numbers_in(document: RunDocument) -> Counter[str]:
    """Return how much there is of what: with `--since REV`, of the change; see `numbers.numbers_of`."""
    return totals(parts_of(document)[0].items if document.is_plan else document.items)


def not_of_this_change(changes: Iterable[Change]) -> str:
    """Return the heading of changes that would be made at the revision of `--since` too; empty if there are none."""
    others = [change for change in changes if source_of(change) != "change"]
    return f"Not of this change: {differing_targets(others, 'already')}" if others else ""


def differing_targets(changes: Iterable[Change], how: str = "") -> str:
    """Return who differs, and why: `4 projects differ (3 changed on the service, 1 merged and not applied)`."""
    targets = {change.address.target: source_of(change) for change in changes}
    levels = Counter(target.level for target in sorted(targets, key=lambda target: target.order))
    verb = f"differ{'s' if len(targets) == 1 else ''}{how and f' {how}'}"
    numbers = Counter(targets.values())
    known = [f"{numbers[source]:,} {ALREADY[source]}" for source in ("service", "pending") if numbers[source]]
    brackets = f" ({', '.join(known)})" if known else ""
    return f"{listed(counted(number, level) for level, number in levels.items())} {verb}{brackets}"


def with_reasons(document: RunDocument) -> RunDocument:
    """Return the plan of a drift, which also says why its targets differ, if the inventory tells."""
    if document.since or not any(map(source_of, document.changes)):
        return document
    return saying(document, Finding(None, "stays", differing_targets(document.changes)))


def excepted_note(document: RunDocument) -> str:
    """Return how much exceptions hold back, and when the first one ends; empty if nothing is held back."""
    days = [finding.data["until"] for finding in document.findings("excepted")]
    return f"{len(days):,} excepted until {min(days)} at the earliest" if days else ""


def archived_left_out(number: int) -> str:
    """Return how many archived projects sets left out, as a part of a list; empty if none."""
    return f", {counted(number, 'archived project')} left out" if number else ""


def status_text(outcome: Outcome) -> str:
    """Return what became of a change: `done`, `failed: 403 Forbidden`."""
    return f"{outcome.status.words}: {escaped(outcome.reason)}" if outcome.reason else outcome.status.words


def details(change: Change, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the fields of a change: as they will be, as they were and will be, or as they are lost.

    Args:
        change: the change.
        longest: how many characters of a value are shown.
    """
    if isinstance(change, Update):
        if change.renamed_from is not None:
            yield f"renamed from {quoted(str(change.renamed_from))}"
        yield from steps(change.before, change.after, longest)
    else:
        yield from _fields(change.before if isinstance(change, Delete) else change.after, longest)
    yield from said(change)


def said(change: Change) -> Iterator[str]:
    """Yield what is always said about a change, one sentence for each code; who has changed it is said by `who`."""
    codes = dict.fromkeys(note.code for note in change.notes if note.reason)
    for code in codes:
        if code_of(code).shown == "always":
            yield escaped("; ".join(sentences(change, code)))


def who(entries: Sequence[Entry]) -> str:
    """Return who made what is live: `by mona, 2026-11-22 14:02 UTC`; empty if that is not known.

    Of several, the first and the last time; and of how many it is known, if not of all.
    """
    known = [author for entry in entries if (change := change_in(entry)) and (author := changed_by(change))]
    if not known:
        return ""
    moments = sorted(author.time for author in known)
    span = " to ".join(dict.fromkeys(f"{moment:%Y-%m-%d %H:%M}" for moment in (moments[0], moments[-1])))
    of = f" ({len(known):,} of {len(entries):,})" if len(known) < len(entries) else ""
    return f"by {listed(map(escaped, dict.fromkeys(author.name for author in known)))}, {span} UTC{of}"


def restored_heading(number: int, since: datetime | None) -> str:
    """Return how much was changed and put back, and since when; empty if nothing was, or nobody asked."""
    return f"Changed and put back since {since:%Y-%m-%d %H:%M} UTC: {number:,}" if number and since else ""


def restored_text(restored: Finding) -> str:
    """Return what was changed and put back, and by whom: `enabled: true -> false by mona, TIME; back by ada, TIME`."""
    data = restored.data
    if restored.field is None:
        was, again = ("removed", "back") if data["before"] else ("added", "removed again")
    else:
        was, again = f"{escaped(restored.field)}: {value(data['before'])} -> {value(data['meanwhile'])}", "back"
    return f"{was} {_by(ChangedBy.of(data['changed_by']))}; {again} {_by(ChangedBy.of(data['restored_by']))}"


def _by(author: ChangedBy) -> str:
    return f"by {escaped(author.name)}, {author.time:%Y-%m-%d %H:%M} UTC"


def losses(change: Change) -> Iterator[str]:
    """Yield what is lost with an object that is deleted, and whatever else is only said with `--verbose`."""
    return (escaped(note.reason) for note in change.notes if note.reason and code_of(note.code).shown == "verbose")


def rewritten(change: Change) -> Iterator[str]:
    """Yield, for each text of several lines that changes, which of its lines go and which come."""
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
    """Return what was read: `5 documents: 1 group, 2 sets, 2 profiles`."""
    numbers = ", ".join(counted(number, sort) for sort, number in documents.items())
    return f"{counted(sum(documents.values()), 'document')}{numbers and f': {numbers}'}"


def waits(document: RunDocument) -> Iterator[str]:
    """Yield how long a run waited for what, if long enough to be felt."""
    waited = document.made.waited.items()
    return (f"{seconds:.1f} s for {escaped(reason)}" for reason, seconds in waited if seconds >= 0.1)


def words_of(document: RunDocument) -> str:
    """Return the first words of a summary, which name the shard, if there is one; `New` if there is a baseline."""
    if document.is_plan:
        word = "Way back" if document.reverts else "New" if document.known else "Plan"
        return f"{word} for shard {document.shard}" if document.shard else word
    word = "Reverted" if document.reverts else "Applied"
    return f"{word} shard {document.shard}" if document.shard else word


def revert_notes(document: RunDocument) -> list[str]:
    """Return which apply a way back undoes, and the command that carries it out, or finishes it."""
    if not document.reverts:
        return []
    about = f"the apply {short(document.reverts)}"
    command = f"{join(revert_words(document.reverts))} --yes"
    if not document.is_plan:
        return [f"This is a revert of {about}" + ("" if document.complete else f"; to finish it: {command}")]
    return [f"This is the way back from {about}" + (f": {command}" if any(document.changes) else "")]


def title_of(document: RunDocument) -> str:
    """Return what a document does in numbers, such as `Plan: 1 to create, 1 problem`; see `in_a_line`."""
    return in_a_line(document, () if any(phrases_of(document)) else stays(document))


def in_a_line(document: RunDocument, own: Sequence[str] | None = None) -> str:
    """Return a document in numbers, or in a sentence if nothing is to be done, without a period.

    Such as `Plan: 1 to create, 1 problem, 4 unmanaged`, `No changes: 81 targets are in order, 4 unmanaged` or `Applied:
    1 created, 1 dropped by the service`.

    Args:
        document: a plan or a report.
        own: how much stays as it is; see `stays`.
    """
    own = stays(document) if own is None else own
    phrases = [*phrases_of(document)]
    if phrases:
        return f"{words_of(document)}: {', '.join((*phrases, *own))}"
    if not document.is_plan or document.reverts or already(document):
        return f"{words_of(document)}: {', '.join(('nothing to change', *own))}"
    number = len(document.targets)
    if document.known:
        return f"Nothing new: {_as_in_baseline(document.known)}" if document.known.total else "Nothing new"
    if document.narrowed:
        looked_at = f" in the {counted(number, 'target')} looked at" if number else ": no target was looked at"
        return ", ".join((f"Nothing to do{looked_at}", *own))
    shard = f" in shard {document.shard}" if document.shard else ""
    order = f"{counted(number, 'target')} {'is' if number == 1 else 'are'} in order"
    return f"No changes{shard}: {', '.join((order, *own))}"


def phrases_of(document: RunDocument) -> Mapping[str, str]:
    """Return what a document does, and what it cannot, in numbers, each with its marker or status: `1 to create`, `+`.

    What is not there is not named.
    """
    numbers = numbers_in(document)
    words = PLAN_WORDS if document.is_plan else REPORT_WORDS
    phrases = {f"{numbers[word]:,} {shown}": role for word, (shown, role) in words.items() if numbers[word]}
    problems = numbers["problems"]
    return phrases | ({counted(problems, "problem"): "!"} if problems else {})


PLAN_WORDS = {action: (f"to {action}", MARKERS[action]) for action in ACTIONS}
REPORT_WORDS = {
    **{f"{action}d": (f"{action}d", MARKERS[action]) for action in ACTIONS},
    **{str(status): (status.words, str(status)) for status in Status if status is not Status.DONE},
}
"""By the words of `numbers.numbers_of`, how people read them, and the marker or the status that gives their colour."""


def reach_in_words(targets: Iterable[Target], changes: Iterable[Change]) -> str:
    """Return how many of some targets change, by level: `5,000 of 5,000 projects, all`; empty if none does."""
    all_of = Counter(target.level for target in targets)
    changed = Counter(target.level for target in {change.address.target for change in changes})
    return "; ".join(
        f"{number:,} of {counted(all_of[level], level)}{', all' if 1 < number == all_of[level] else ''}"
        for level in Level
        if (number := changed[level])
    )


def deletions_in_words(changes: Iterable[Change]) -> str:
    """Return how much some changes delete where: `deletes 12 objects in 1 group and 3 projects`; empty if nothing."""
    deleted = [change.address.target for change in changes if isinstance(change, Delete)]
    numbers = Counter(target.level for target in sorted(set(deleted), key=lambda target: target.order))
    places = [counted(number, level) for level, number in numbers.items()]
    return f"deletes {counted(len(deleted), 'object')} in {listed(places)}" if deleted else ""


def compared_with(saved: RunDocument) -> str:
    """Return what was compared with what: `Compared the manifests of 1a2b3c4 with https://… as read at …`."""
    what = f"the manifests of {short(saved.commit)}" if saved.commit else "the manifests"
    what = f"the service before the apply {short(saved.reverts)}" if saved.reverts else what
    text = f"Compared {what} with {saved.service} as read at {utc(saved.created_at)}"
    return f"{text}, and with the manifests at {escaped(saved.since)}." if saved.since else f"{text}."


def plan_cost(saved: RunDocument) -> str:
    """Return what a plan costs: `4 writes to apply; 8 requests were made to plan.`."""
    writes = sum(len(change.requests) for change in saved.changes)
    verb = "was" if saved.requests_made == 1 else "were"
    cost = f"{counted(saved.requests_made, 'request')} {verb} made to plan."
    return f"{counted(writes, 'write')} to apply; {cost}" if writes else cost


def costs_and_stays(saved: RunDocument) -> str:
    """Return what a plan costs, and, unless its title says so, how much stays as it is."""
    left = stays(saved) if any(phrases_of(saved)) else []
    return f"{plan_cost(saved)}{' ' * bool(left)}{', '.join(left)}{'.' * bool(left)}"


def requests_made(report: RunDocument) -> str:
    """Return how many requests an apply made: `15 requests`."""
    return counted(report.made.reads + report.made.writes, "request")


def baseline_note(saved: RunDocument) -> str:
    """Return what the baseline has too: `12 changes as in the baseline`; empty if that is nothing, or in the title."""
    known = saved.known
    return _as_in_baseline(known) if known is not None and known.total and any(phrases_of(saved)) else ""


def _as_in_baseline(known: BaselineShare) -> str:
    numbers = {"change": known.changes, "problem": known.problems, "unmanaged object": known.unmanaged}
    first, *others = [counted(number, noun) for noun, number in numbers.items() if number]
    also = f"and {others[0]}" if len(others) == 1 else listed(others) if others else ""
    return f"{first} as in the baseline{', ' * bool(also)}{also}"


def difference_words(difference: Difference) -> tuple[str, str, list[str]]:
    """Return the marker, the subject and the facts of something that is new, gone or different."""
    entry = difference.entry
    facts = [
        fact for place in difference.places for fact in steps({place.path: place.before}, {place.path: place.after})
    ]
    match entry:
        case Finding():
            return "!", finding_subject(entry), facts or [reason_of(entry)]
        case Outcome():
            return MARKERS[entry.change.action], label(difference.address), facts or [status_text(entry)]
        case _:
            return MARKERS[entry.action], label(difference.address), facts or list(details(entry))


def alike(comparison: Comparison, few: float) -> list[tuple[tuple[Target, ...], list[Difference]]]:
    """Return the differences by the targets that have them: those that read alike for so many targets only once."""
    rows: dict[object, list[tuple[int, Difference]]] = {}
    for index, difference in enumerate(comparison.differences):
        marker, subject, facts = difference_words(difference)
        rows.setdefault((difference.address.target.level, difference.news, marker, subject, *facts), []).append(
            (index, difference)
        )
    blocks: dict[tuple[Target, ...], list[tuple[int, Difference]]] = {}
    for row in rows.values():
        targets = tuple(dict.fromkeys(difference.address.target for _, difference in row))
        for index, difference in row[:1] if len(targets) >= few else row:
            blocks.setdefault(targets if len(targets) >= few else (difference.address.target,), []).append(
                (index, difference)
            )
    ordered = sorted(blocks.items(), key=lambda block: (-len(block[0]), [target.order for target in block[0]]))
    return [
        (targets, [difference for _, difference in sorted(row, key=lambda pair: pair[0])]) for targets, row in ordered
    ]


def comparison_in_a_line(comparison: Comparison) -> str:
    """Return a comparison's numbers: `1 new, 2 gone, 0 different, 12 the same`."""
    numbers = comparison.summary
    return f"{numbers.new:,} new, {numbers.gone:,} gone, {numbers.different:,} different, {numbers.same:,} the same"


def compared(comparison: Comparison) -> str:
    """Return what was compared: `The plan of 2026-12-02T06:00:00Z, compared with that of 2026-12-01T06:00:00Z`."""
    return f"The {comparison.of} of {utc(comparison.until)}, compared with that of {utc(comparison.since)}"


def rename_notes(saved: RunDocument) -> Iterator[str]:
    """Yield what looks like a rename, with the line to write and its place."""
    for finding in saved.findings("rename"):
        data = finding.data
        names = ", ".join(map(quoted, data["renamed_from"]))
        old = f"[{names}]" if len(data["renamed_from"]) > 1 else names
        whose = f" of {counted(data['targets'], 'target')}" if data["targets"] > 1 else ""
        about = f"{data['title']} {quoted(data['name'])}{whose}"
        yield f"{about} looks like a rename: add renamed_from: {old} at {finding.origin}"


def refusal_notes(saved: RunDocument) -> list[str]:
    """Return why `apply` will refuse a plan."""
    return [f"apply will refuse this plan: {reason}" for reason in saved.refusals]


def guard_notes(saved: RunDocument) -> Iterator[str]:
    """Yield what a baseline has too, the deletions allowed for a plan, and why `apply` will refuse it."""
    yield from (*filter(None, [baseline_note(saved)]), *limit_notes(saved), *refusal_notes(saved))


def limit_notes(saved: RunDocument) -> Iterator[str]:
    """Yield the deletions allowed for a plan, if they are."""
    allowed = saved.limits.allow_deletes
    if allowed is not None:
        yield f"apply may delete up to {counted(allowed, 'object')}: {saved.limits.permitting(allowed)}"


def canary_notes(report: RunDocument) -> Iterator[str]:
    """Yield how the canary went: `canary: 4 projects, 12 changes, verified after 9 s; going on`."""
    canary = report.canary
    if canary is not None:
        levels = Counter(target.partition(" ")[0] for target in canary.targets)
        numbers = [counted(number, level) for level, number in levels.items()]
        then = "going on" if canary.result == "verified" else "all else is skipped"
        facts = ", ".join([*numbers, counted(canary.changes, "change"), f"{canary.result} after {canary.seconds} s"])
        yield f"canary: {facts}; {then}"


def widening_notes(saved: RunDocument) -> Iterator[str]:
    """Yield which objects hold for more once others are deleted, the first of them by name."""
    widened = [*saved.findings("widened")]
    for affected in widened[:MAX_WIDENING_NOTES]:
        address = address_of(affected)
        yield f"{label(address)} of {address.target}: {affected.reason}"
    more = len(widened) - MAX_WIDENING_NOTES
    if more > 0:
        yield f"{counted(more, 'more object')} {'holds' if more == 1 else 'hold'} for more then"


def access_notes(saved: RunDocument) -> Iterator[str]:
    """Yield where unmanaged objects grant access, and what to write so that they are deleted."""
    objects = [address_of(live) for live in saved.findings("unmanaged") if live.data["grants_access"]]
    counts = Counter(address.section for address in objects)
    if counts:
        numbers = ", ".join(f"{number:,} in {section}" for section, number in counts.items())
        subject = counted(counts.total(), "unmanaged object")
        verb, them = ("grants", "it") if counts.total() == 1 else ("grant", "them")
        prune = f"prune: [{', '.join(counts)}]"
        occurrences = Counter(objects)
        double = [address for address in objects if occurrences[address] > 1 and not _is_blank(address)]
        blank = list(filter(_is_blank, objects))
        declare = f"declare {them}, or " if len(double) + len(blank) < len(objects) else ""
        remedy = f"{declare}write {prune} to delete {them}"
        yield f"{subject} {verb} access: {numbers}; {remedy}{_undeclarable(double, blank)}"


def _undeclarable(double: Sequence[Address], blank: Sequence[Address]) -> str:
    """Return which unmanaged objects with access no manifest can declare, since nothing tells them from others."""
    words = [
        f"{len(some):,} {'has' if len(some) == 1 else 'have'} {what} (such as {label(some[0])} of {some[0].target})"
        for some, what in ((double, "the name of another"), (blank, "a blank name"))
        if some
    ]
    return (
        f"; {' and '.join(words)}, and cannot be declared: rename or delete such objects on the service"
        if words
        else ""
    )


def _is_blank(address: Address) -> bool:
    return not str(address.name).strip()


def warned_once(diagnostics: Sequence[LocatedDiagnostic]) -> Iterator[LocatedDiagnostic]:
    """Yield diagnostics, but of many warnings with one message only the first, which names the number of the others."""
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
    """Yield which exceptions have expired, and which will within two weeks; on a terminal these are warnings."""
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


def flat(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Yield the fields of an object that have a value, those within another as `import.github.repo_id`."""
    for name, content in fields.items():
        if isinstance(content, dict) and content:
            yield from ((f"{name}.{inner}", leaf) for inner, leaf in flat(content))
        elif content is not None:
            yield name, content


def _fields(fields: Fields, longest: float) -> Iterator[str]:
    return (f"{escaped(name)}: {value(content, longest, empty=empty_of(name))}" for name, content in flat(fields))
