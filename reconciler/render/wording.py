"""The words that people read of plans and reports, whatever the format: labels, values, numbers.

Strings from the service or from manifests are shown so that they can neither steer a terminal nor turn text around.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from difflib import unified_diff
from itertools import islice, takewhile
from math import inf
from shlex import join

from reconciler.documents.chapters import ALREADY, DONE
from reconciler.documents.comparison import Comparison, Difference
from reconciler.documents.groups import GROUP_FROM_TARGETS, Entry, EntryGroup, subject_of
from reconciler.documents.plan_file import SavedPlan, Summary, utc
from reconciler.documents.report import Counts, Report
from reconciler.errors import LocatedDiagnostic
from reconciler.gitops.apply_log import revert_words, short
from reconciler.model.diff import Fields, inside
from reconciler.model.entries import change_of_set
from reconciler.model.plan import (
    ACTIONS,
    Change,
    ChangedBy,
    Create,
    Delete,
    Excepted,
    Outcome,
    Problem,
    Restored,
    Unmanaged,
    Update,
    WidenedObject,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.model.wording import advised, counted, listed
from reconciler.render import Style
from reconciler.system.terminal import escaped

SHOWN_VALUE_LENGTH = 64
"""How many characters of a value are shown: a SHA-256 is whole."""

VALUE_CONTEXT_LENGTH = 12
"""How many of them stand before the first difference of two long texts."""

MAX_WIDENING_NOTES = 5
"""How many objects that hold for more once others are deleted are named at the head of a page or note."""

MARKERS = {"create": "+", "update": "~", "delete": "-"}

WHOLE = "whole target"
"""Stands for the section's name where something is about the target itself: its creation, or why it cannot be read."""

MORE_THAN_TEXT = re.compile(
    r"""true|false|none|null|[-+]?[\d.]+(e[-+]?\d+)?|[\[{'].*|.*(["…]|, | -> ).*""", re.IGNORECASE
)
"""Strings that without quotation marks would look like another value, or like more than one."""


def quoted(text: str) -> str:
    """Return text as a JSON string, without special characters."""
    return escaped(json.dumps(text, ensure_ascii=False))


def label(address: Address) -> str:
    """Return what an object is called: `milestone "2026.12"`, `approval settings`, `allowlisted project 1234`.

    A whole target, such as one that is created: `project acme/api`.
    """
    if address.name is None:
        return escaped(address.title)
    is_title = isinstance(address.name, str) and address.section
    return f"{escaped(address.title)} {quoted(str(address.name)) if is_title else escaped(str(address.name))}"


def known_of(unmanaged: Unmanaged) -> Iterator[str]:
    """Yield the known facts about an object that no manifest mentions."""
    known = {"ID": unmanaged.id, "owner": unmanaged.owner, "last used": unmanaged.last_used}
    return (f"{name} {escaped(str(value))}" for name, value in known.items() if value is not None)


def least(style: Style) -> float:
    """Return how many targets make a group; infinity for no groups. Verbose text shows each target's requests."""
    if style.group_by is None:
        return inf if style.verbose else GROUP_FROM_TARGETS
    return 2 if style.group_by == "change" else inf


def headline(targets: Sequence[Target]) -> tuple[str, str]:
    """Return what targets are, and which: `27 projects`, `acme/api, acme/lib and 25 more`."""
    first, second, *others = (escaped(str(target.ref)) for target in targets)
    and_more = f" and {len(others):,} more" if others else ""
    return counted(len(targets), str(targets[0].level)), f"{first}, {second}{and_more}"


def subject(group: EntryGroup[Entry]) -> str:
    """Return what a group is about: `milestone "2026.12"`, `milestone "a" and 3 others`."""
    first = subject_of(group.sample)
    name = problem_subject(first) if isinstance(first, Problem) else label(first.address)
    if isinstance(first, Excepted) and first.action is None:
        name = _object_or_section(first.address, [*first.after])
    return f"{name} and {counted(group.others, 'other')}" if group.others else name


def problem_subject(problem: Problem) -> str:
    """Return the object and field of a problem: `approval settings.retain_approvals_on_push`; else the section."""
    field = f".{escaped(problem.field)}" if problem.field else ""
    return _object_or_section(problem.address, [field] if field else []) + field


def _object_or_section(address: Address, fields: Sequence[str]) -> str:
    """Return what something is about that cannot be planned: an object, the one with these fields, or a section."""
    is_section = address.section and address.name is None and not fields
    return escaped(address.section) if is_section else label(address)


def problem_reason(problem: Problem) -> str:
    """Return what is wrong, and what to do: `the project is archived; unarchive it`."""
    return escaped(advised(problem.reason, problem.remedy))


def problem_text(problem: Problem) -> str:
    """Return a problem on one line: `trigger tokens: the project is archived; unarchive it`."""
    return f"{problem_subject(problem)}: {problem_reason(problem)}"


def excepted_text(excepted: Excepted) -> str:
    """Return until when a change is held back, and why: `excepted until 2027-03-01: the release is re-planned`."""
    return escaped(f"excepted until {excepted.until}: {excepted.reason}")


def held_back(excepted: Excepted, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the change that is held back: that an object is not created or deleted, or the fields that differ."""
    if excepted.action == "update":
        yield from _differing(excepted, longest)
    elif excepted.action is not None:
        yield f"not {excepted.action}d"
    else:
        yield from map(escaped, excepted.after)


def excepted_subject(excepted: Excepted) -> str:
    """Return an object and the change of it that is held back: `milestone "2026.12", not created`."""
    name = label(excepted.address) if excepted.action else _object_or_section(excepted.address, [*excepted.after])
    return ", ".join((name, *held_back(excepted)))


def left_alone(numbers: Summary | Counts) -> str:
    """Return how much is not applicable and excepted, as a part of a list: `, 2 not applicable, 1 excepted`.

    Of a plan, also how many lists hold entries that the token cannot see.
    """
    words = {"not applicable": numbers.not_applicable, "excepted": numbers.excepted}
    shown = "".join(f", {number:,} {word}" for word, number in words.items() if number)
    if not isinstance(numbers, Summary):
        return shown
    if numbers.hidden:
        shown += f", {counted(numbers.hidden, 'list')} with hidden entries"
    other = number_of_changes(numbers.not_of_change)
    return f"{shown}{archived_left_out(numbers.archived)}{f', {other:,} not of this change' if other else ''}"


def number_of_changes(numbers: Mapping[str, int] | None) -> int:
    """Return how many changes some numbers count, such as those of `Summary.not_of_change`."""
    return sum(numbers[action] for action in ACTIONS) if numbers else 0


def not_of_this_change(changes: Iterable[Change]) -> str:
    """Return the heading of changes that would be made at the revision of `--since` too; empty if there are none."""
    others = [change for change in changes if change.source != "change"]
    return f"Not of this change: {differing_targets(others, 'already')}" if others else ""


def differing_targets(changes: Iterable[Change], how: str = "") -> str:
    """Return who differs, and why: `4 projects differ (3 changed on the service, 1 merged and not applied)`."""
    targets = {change.address.target: change.source for change in changes}
    levels = Counter(target.level for target in sorted(targets, key=lambda target: target.order))
    verb = f"differ{'s' if len(targets) == 1 else ''}{how and f' {how}'}"
    numbers = Counter(targets.values())
    known = [f"{numbers[source]:,} {ALREADY[source]}" for source in ("service", "pending") if numbers[source]]
    brackets = f" ({', '.join(known)})" if known else ""
    return f"{listed(counted(number, level) for level, number in levels.items())} {verb}{brackets}"


def with_reasons(saved: SavedPlan) -> SavedPlan:
    """Return the plan of a drift, with a remark that tells why its targets differ, if the inventory tells."""
    if saved.since or not any(change.source for change in saved.plan.changes):
        return saved
    return replace(saved, remarks=(*saved.remarks, differing_targets(saved.plan.changes)))


def archived_left_out(number: int) -> str:
    """Return how many archived projects sets left out, as a part of a list; empty if none."""
    return f", {counted(number, 'archived project')} left out" if number else ""


def status_text(outcome: Outcome) -> str:
    """Return what became of a change: `done`, `failed: 403 Forbidden`."""
    return f"{outcome.status}: {escaped(outcome.reason)}" if outcome.reason else str(outcome.status)


def details(change: Change, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[str]:
    """Yield the fields of a change: as they will be, as they were and will be, or as they are lost.

    Args:
        change: the change.
        longest: how many characters of a value are shown.
    """
    match change:
        case Create():
            yield from _fields(change.after, longest)
            yield from unused_names(change)
            if change.hint:
                yield escaped(change.hint)
        case Update():
            if change.renamed_from is not None:
                yield f"renamed from {quoted(str(change.renamed_from))}"
            yield from _differing(change, longest)
            if change.hint:
                yield escaped(change.hint)
        case Delete():  # pragma: no branch - mypy would see a fourth
            yield from _fields(change.before, longest)


def who(entries: Sequence[Entry]) -> str:
    """Return who made what is live: `by mona, 2026-11-22 14:02 UTC`; empty if that is not known.

    Of several, the first and the last time; and of how many it is known, if not of all.
    """
    changes = [subject_of(entry) for entry in entries]
    known = [
        change.changed_by for change in changes if isinstance(change, Create | Update | Delete) and change.changed_by
    ]
    if not known:
        return ""
    moments = sorted(author.time for author in known)
    span = " to ".join(dict.fromkeys(f"{moment:%Y-%m-%d %H:%M}" for moment in (moments[0], moments[-1])))
    of = f" ({len(known):,} of {len(changes):,})" if len(known) < len(changes) else ""
    return f"by {listed(map(escaped, dict.fromkeys(author.name for author in known)))}, {span} UTC{of}"


def restored_heading(number: int, since: datetime | None) -> str:
    """Return how much was changed and put back, and since when; empty if nothing was, or nobody asked."""
    return f"Changed and put back since {since:%Y-%m-%d %H:%M} UTC: {number:,}" if number and since else ""


def restored_text(restored: Restored) -> str:
    """Return what was changed and put back, and by whom: `enabled: true -> false by mona, TIME; back by ada, TIME`."""
    if restored.field is None:
        was, again = ("removed", "back") if restored.before else ("added", "removed again")
    else:
        was, again = f"{escaped(restored.field)}: {value(restored.before)} -> {value(restored.meanwhile)}", "back"
    return f"{was} {_by(restored.changed_by)}; {again} {_by(restored.restored_by)}"


def _by(author: ChangedBy) -> str:
    return f"by {escaped(author.name)}, {author.time:%Y-%m-%d %H:%M} UTC"


def losses(change: Change) -> Iterator[str]:
    """Yield what is lost with an object that is deleted."""
    yield from map(escaped, change.losses if isinstance(change, Delete) else ())


def unused_names(change: Create) -> Iterator[str]:
    """Yield that nothing has one of the declared former names, if there are any."""
    if change.former_names:
        yield f"nothing named {' or '.join(quoted(str(name)) for name in change.former_names)} to rename"


def differing(change: Update | Excepted, longest: float = SHOWN_VALUE_LENGTH) -> Iterator[tuple[str, str | None, str]]:
    """Yield each place that an update changes, what is there, None if unknown, and what will be, each on one line."""
    for field, after in change.after.items():
        before = change.before.get(field)
        if field not in change.before:
            yield escaped(field), None, value(after, longest)
        elif isinstance(before, list) and isinstance(after, list):
            yield escaped(field), None, _shortened(escaped(change_of_set(before, after)), longest, 0)
        elif isinstance(before, list | dict) and isinstance(after, list | dict):
            for path, was, will_be in inside(before, after):
                yield escaped(field + path), value(was, longest), value(will_be, longest)
        else:
            start = _start(before, after, longest) if isinstance(before, str) and isinstance(after, str) else 0
            yield escaped(field), value(before, longest, start), value(after, longest, start)


def _differing(change: Update | Excepted, longest: float) -> Iterator[str]:
    for name, was, will_be in differing(change, longest):
        yield f"{name}: {will_be}" if was is None else f"{name}: {was} -> {will_be}"


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


def value(content: Json, longest: float = SHOWN_VALUE_LENGTH, start: int = 0) -> str:
    """Return a value on one line: text without quotation marks where it can be nothing else, null as `none`.

    Args:
        content: the value.
        longest: how many characters of it are shown.
        start: where in a long text to begin.
    """
    if content is None:
        return "none"
    if not isinstance(content, str):
        return _shortened(escaped(json.dumps(content, ensure_ascii=False)), longest, start)
    shown = _shortened(content, longest, start)
    is_plain = (
        content.isprintable()
        and escaped(content) == content == content.strip() != ""
        and not MORE_THAN_TEXT.fullmatch(content)
    )
    return content if shown == content and is_plain else quoted(shown)


def listed_documents(documents: Mapping[str, int]) -> str:
    """Return what was read: `5 documents: 1 group, 2 sets, 2 profiles`."""
    numbers = ", ".join(counted(number, sort) for sort, number in documents.items())
    return f"{counted(sum(documents.values()), 'document')}{numbers and f': {numbers}'}"


def waits(waited: Mapping[str, float]) -> Iterator[str]:
    """Yield how long a run waited for what, if long enough to be felt."""
    return (f"{seconds:.1f} s for {escaped(reason)}" for reason, seconds in waited.items() if seconds >= 0.1)


def words_of_plan(saved: SavedPlan) -> str:
    """Return the first words of a plan's summary, which name its shard, if it has one; `New` if there is a baseline."""
    word = "Way back" if saved.reverts else "New" if saved.known else "Plan"
    return f"{word} for shard {saved.shard}" if saved.shard else word


def words_of_report(report: Report) -> str:
    """Return the first words of a report's summary."""
    word = "Reverted" if report.reverts else "Applied"
    return f"{word} shard {report.shard}" if report.shard else word


def revert_notes(document: SavedPlan | Report, *, has_changes: bool = False) -> list[str]:
    """Return which apply a way back undoes, and the command that carries it out, or finishes it."""
    if not document.reverts:
        return []
    about = f"the apply {short(document.reverts)}"
    command = f"{join(revert_words(document.reverts))} --yes"
    if isinstance(document, Report):
        return [f"This is a revert of {about}" + ("" if document.complete else f"; to finish it: {command}")]
    return [f"This is the way back from {about}" + (f": {command}" if has_changes else "")]


def plan_in_a_line(saved: SavedPlan) -> str:
    """Return a plan's numbers: `Plan: 1 to create, 1 problem`."""
    numbers = asdict(saved.summary)
    words = [f"{numbers[action]:,} to {action}" for action in ACTIONS if numbers[action]]
    words += [counted(numbers["problems"], "problem")] if numbers["problems"] else []
    other = number_of_changes(saved.summary.not_of_change)
    words += [f"{other:,} not of this change"] if other else []
    return f"{words_of_plan(saved)}: {', '.join(words) or 'nothing to change'}"


def report_in_a_line(report: Report) -> str:
    """Return a report's numbers: `Applied: 1 created, 1 dropped by the service`."""
    numbers = asdict(report.counts)
    words = [f"{numbers[word]:,} {word}" for word in (*DONE, "failed", "stale", "skipped") if numbers[word]]
    words += [f"{numbers['dropped']:,} dropped by the service"] if numbers["dropped"] else []
    words += [counted(numbers["problems"], "problem")] if numbers["problems"] else []
    return f"{words_of_report(report)}: {', '.join(words) or 'nothing to change'}"


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


def compared_with(saved: SavedPlan) -> str:
    """Return what was compared with what: `Compared the manifests of 1a2b3c4 with https://… as read at …`."""
    what = f"the manifests of {short(saved.commit)}" if saved.commit else "the manifests"
    what = f"the service before the apply {short(saved.reverts)}" if saved.reverts else what
    text = f"Compared {what} with {saved.service} as read at {utc(saved.created_at)}"
    return f"{text}, and with the manifests at {escaped(saved.since)}." if saved.since else f"{text}."


def plan_cost(changes: Iterable[Change], made: int) -> str:
    """Return what a plan costs: `4 writes to apply; 8 requests were made to plan.`."""
    writes = sum(len(change.requests) for change in changes)
    verb = "was" if made == 1 else "were"
    return f"{counted(writes, 'write')} to apply; {counted(made, 'request')} {verb} made to plan."


def requests_made(report: Report) -> str:
    """Return how many requests an apply made: `15 requests`."""
    return counted(report.requests.reads + report.requests.writes, "request")


def baseline_note(saved: SavedPlan) -> str:
    """Return what the baseline has too: `12 changes as in the baseline`; empty if that is nothing."""
    known = saved.known
    if known is None or not known.total:
        return ""
    numbers = {"change": known.changes, "problem": known.problems, "unmanaged object": known.unmanaged}
    first, *others = [counted(number, noun) for noun, number in numbers.items() if number]
    also = f"and {others[0]}" if len(others) == 1 else listed(others) if others else ""
    return f"{first} as in the baseline{', ' * bool(also)}{also}"


def difference_words(difference: Difference) -> tuple[str, str, list[str]]:
    """Return the marker, the subject and the facts of something that is new, gone or different."""
    item = difference.item
    facts = [f"{escaped(place.path)}: {value(place.before)} -> {value(place.after)}" for place in difference.places]
    match item:
        case Problem():
            return "!", problem_subject(item), facts or [problem_reason(item)]
        case Outcome():
            return MARKERS[item.change.action], label(difference.address), facts or [status_text(item)]
        case _:
            return MARKERS[item.action], label(difference.address), facts or list(details(item))


def alike(comparison: Comparison, few: float) -> list[tuple[tuple[Target, ...], list[Difference]]]:
    """Return the differences by the targets that have them: those that read alike for so many targets only once."""
    rows: dict[object, list[tuple[int, Difference]]] = {}
    for index, difference in enumerate(comparison.differences):
        marker, subject, facts = difference_words(difference)
        rows.setdefault((difference.level, difference.news, marker, subject, *facts), []).append((index, difference))
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


def rename_notes(saved: SavedPlan) -> Iterator[str]:
    """Yield what looks like a rename, with the line to write and its place."""
    for hint in saved.hints:
        names = ", ".join(map(quoted, hint.renamed_from))
        old = f"[{names}]" if len(hint.renamed_from) > 1 else names
        whose = f" of {counted(hint.targets, 'target')}" if hint.targets > 1 else ""
        yield f"{hint.title} {quoted(hint.name)}{whose} looks like a rename: add renamed_from: {old} at {hint.origin}"


def refusal_notes(saved: SavedPlan) -> list[str]:
    """Return why `apply` will refuse a plan."""
    return [f"apply will refuse this plan: {reason}" for reason in saved.refusals]


def guard_notes(saved: SavedPlan) -> Iterator[str]:
    """Yield what a baseline has too, the deletions allowed for a plan, and why `apply` will refuse it."""
    yield from (*filter(None, [baseline_note(saved)]), *limit_notes(saved), *refusal_notes(saved))


def limit_notes(saved: SavedPlan) -> Iterator[str]:
    """Yield the deletions allowed for a plan, if they are."""
    allowed = saved.limits.allow_deletes
    if allowed is not None:
        yield f"apply may delete up to {counted(allowed, 'object')}: --allow-deletes {allowed}"


def canary_notes(report: Report) -> Iterator[str]:
    """Yield how the canary went: `canary: 4 projects, 12 changes, verified after 9 s; going on`."""
    canary = report.canary
    if canary is not None:
        levels = Counter(target.partition(" ")[0] for target in canary.targets)
        numbers = [counted(number, level) for level, number in levels.items()]
        then = "going on" if canary.result == "verified" else "all else is skipped"
        facts = ", ".join([*numbers, counted(canary.changes, "change"), f"{canary.result} after {canary.seconds} s"])
        yield f"canary: {facts}; {then}"


def widening_notes(widened: Sequence[WidenedObject]) -> Iterator[str]:
    """Yield which objects hold for more once others are deleted, the first of them by name."""
    for affected in widened[:MAX_WIDENING_NOTES]:
        yield f"{label(affected.address)} of {affected.address.target}: {affected.reason}"
    more = len(widened) - MAX_WIDENING_NOTES
    if more > 0:
        yield f"{counted(more, 'more object')} {'holds' if more == 1 else 'hold'} for more then"


def access_notes(unmanaged: Iterable[Unmanaged]) -> Iterator[str]:
    """Yield where unmanaged objects grant access, and what to write so that they are deleted."""
    objects = [live.address for live in unmanaged if live.grants_access]
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


def expiry_notes(saved: SavedPlan) -> Iterator[str]:
    """Yield which exceptions have expired, and which will within two weeks; on a terminal these are warnings."""
    today = saved.created_at.date()
    exceptions = [exception for target in saved.targets for exception in target.exceptions]
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
    return (f"{escaped(name)}: {value(content, longest)}" for name, content in flat(fields))


def _start(before: str, after: str, longest: float) -> int:
    """Where to begin to show two texts, so that what is shown differs."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return 0 if common < longest - VALUE_CONTEXT_LENGTH else common - VALUE_CONTEXT_LENGTH


def _shortened(text: str, longest: float, start: int) -> str:
    rest = f"…{text[start:]}" if start else text
    return rest if len(rest) <= longest else rest[: int(longest) - 1] + "…"
