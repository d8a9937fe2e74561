"""Two documents compared, and a plan without the items that a baseline has too. Pure.

Serves `show --since` (`compare`) and `drift --baseline` (`new_in`). Items are compared by fingerprints of what a person
would compare: without requests, places in the manifests, notes, and fields that do not change.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Final, Literal

from pydantic import AwareDatetime

from reconciler.document.checksum import DOCUMENT
from reconciler.document.document import BaselineShare, RunDocument, is_difference
from reconciler.document.groups import Entry
from reconciler.model.codes import code_of
from reconciler.model.diff import Fields
from reconciler.model.item import (
    Create,
    Delete,
    Finding,
    Item,
    Keep,
    Outcome,
    Update,
    address_of,
    change_in,
    is_about_run,
    target_of,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.model.values import inside

Fingerprints = Mapping[str, int]
"""How often each fingerprint occurs."""

NO_FINGERPRINTS: Fingerprints = MappingProxyType({})

FORMAT: Final = "reconciler.comparison/v1"

SubjectKey = tuple[object, ...]
"""A value that two entries share if they are about the same object, or the same field that is a problem."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that differs, with its path."""

    path: str
    """Where, such as `live.due_date` or `status`."""
    before: Json
    """The value in the older document; null for none."""
    after: Json
    """The value in the newer document; null for none."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A change, an outcome or a problem that only one of two documents has, or that differs between them.

    Attributes:
        entry: in the words of the newer document, or of the older document if only that has the entry.
        news: whether only the newer document has it, or only the older document, or both, with other values.
        before: how it was; None if it is new. Its keys are `action`, `live.NAME` and `declared.NAME` for a field, and
            so on.
        after: how it is; None if it is gone.
        places: the values that differ, if both documents have it.
    """

    entry: Entry
    news: Literal["new", "gone", "different"]
    before: Fields | None
    after: Fields | None
    places: tuple[Place, ...] = ()

    @property
    def address(self) -> Address:
        """The address of the object or of the problem."""
        return address_of(self.entry)


@dataclass(frozen=True, slots=True)
class News:
    """The result of a comparison in numbers."""

    new: int
    """How many changes or problems only the newer document has."""
    gone: int
    """How many only the older one has."""
    different: int
    """How many differ."""
    same: int
    """How many are the same."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes between two saved plans, or between two reports.

    Attributes:
        of: the documents compared.
        since: when the older plan was made, or the older apply ended, UTC.
        until: when the newer plan was made, or the newer apply ended, UTC.
        summary: the result in numbers.
        differences: by target: the instance, then the user, then groups, then projects.
    """

    of: Literal["plan", "report"]
    since: AwareDatetime
    until: AwareDatetime
    summary: News
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class StoredDifference:
    """A change, an outcome or a problem that only one of two documents has, or that differs between them."""

    news: Literal["new", "gone", "different"]
    """Whether only the newer document has it, only the older one, or both, with other values."""
    before: Fields | None
    """How it was; null if it is new. Its keys are `action`, `live.NAME` and `declared.NAME` for a field, and so on."""
    after: Fields | None
    """How it is; null if it is gone."""
    places: tuple[Place, ...]
    """The values that differ, if both documents have it."""
    part: str
    """Which of the section's endpoints; the section's name if there is only one; empty for the target itself."""
    title: str
    """The word for such an object, such as `milestone`."""
    name: Key | None
    """The object's name; null for a settings section."""
    level: Level
    """The level of its target."""
    ref: Key | None
    """The target's full path or numeric ID; null for the instance and for the user behind the token."""
    section: str
    """The section's name; empty for what is about the target itself: its creation, and problems of all of it."""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """Changes between two saved plans, or between two reports."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.comparison/v1"]
    """The format of this document."""
    of: Literal["plan", "report"]
    """The documents compared."""
    since: AwareDatetime
    """When the older plan was made, or the older apply ended, UTC."""
    until: AwareDatetime
    """When the newer plan was made, or the newer apply ended, UTC."""
    summary: News
    """The result in numbers."""
    differences: tuple[StoredDifference, ...]
    """By target: the instance, then the user, then groups, then projects."""

    @classmethod
    def of_comparison(cls, comparison: Comparison) -> "StoredComparison":
        """Return a comparison as its JSON has it."""
        differences = (
            StoredDifference(
                own.news,
                own.before,
                own.after,
                own.places,
                own.address.part,
                own.address.title,
                own.address.name,
                own.address.target.level,
                own.address.target.ref,
                own.address.section,
            )
            for own in comparison.differences
        )
        numbers = comparison.summary
        return cls(FORMAT, comparison.of, comparison.since, comparison.until, numbers, tuple(differences))


@dataclass(frozen=True, slots=True)
class Line:
    """One change, outcome or problem, as it is compared.

    Attributes:
        entry: the change, outcome or problem.
        subject: see `SubjectKey`.
        facts: the live and the declared values, the status of an outcome, or the reason of a problem.
    """

    entry: Entry
    subject: SubjectKey
    facts: Fields

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the entry; see `fingerprint`."""
        return _digest(self.subject, self.facts)


def lines_of(document: RunDocument) -> Iterator[Line]:
    """Yield the changes, outcomes and problems of a document by target; a target's problems come last."""
    problems: list[Line] = []
    last: Target | None = None
    for item in document.items:
        if isinstance(item, Keep) or not is_difference(item):
            continue
        if target_of(item) != last:
            yield from problems
            problems, last = [], target_of(item)
        line = Line(item, _subject(item), _facts(item))
        if isinstance(item, Finding):
            problems.append(line)
        else:
            yield line
    yield from problems


def fingerprints_of(document: RunDocument) -> Counter[str]:
    """Return the number of changes and problems of a document by fingerprint."""
    return Counter(line.fingerprint for line in lines_of(document))


def fingerprint(entry: Entry) -> str:
    """Return a short text that is the same for entries that a person would call equal."""
    return _digest(_subject(entry), _facts(entry))


def _digest(subject_key: SubjectKey, fields: Fields) -> str:
    return sha256(json.dumps([subject_key, fields], sort_keys=True).encode()).hexdigest()[:16]


def _subject(entry: Entry) -> SubjectKey:
    address = address_of(entry)
    is_problem = isinstance(entry, Finding) and code_of(entry.code).drifts
    # an object may have a change and problems of several fields: each is compared with its like
    sort = ("problem", entry.field) if isinstance(entry, Finding) and is_problem else ("change", None)
    return address.target.identity, address.section, address.part, address.name, *sort


def _facts(entry: Entry) -> Fields:
    # Neither origin nor requests nor notes: a line that moves in a file is no new drift.
    match entry:
        case Outcome():
            return {**_facts(entry.change), "status": str(entry.status), **_known(reason=entry.reason)}
        case Create():
            declared = _prefixed("declared", entry.after)
            return {"action": entry.action, **declared, **_known(replaces_ids=entry.replaces_ids)}
        case Update():
            values = {**_prefixed("live", entry.before), **_prefixed("declared", entry.after)}
            return {"action": entry.action, **values, **_known(renamed_from=entry.renamed_from)}
        case Delete():
            return {"action": entry.action, **_prefixed("live", entry.before), **_known(id=entry.read.id)}
    return _known(id=entry.data["id"]) if "id" in entry.data else {"reason": entry.reason}


def _prefixed(word: str, fields: Fields) -> Fields:
    return {f"{word}.{name}": value for name, value in fields.items()}


def _known(**facts: Json) -> Fields:
    return {name: value for name, value in facts.items() if value}


def compare(old: RunDocument, new: RunDocument) -> Comparison:
    """Return the differences between two plans, or between two reports.

    Entries about the same object are compared with each other; where several objects share a name, equal entries are
    paired first.
    """
    unmatched: dict[SubjectKey, list[Line]] = defaultdict(list)
    for line in lines_of(old):
        unmatched[line.subject].append(line)
    same, changed = 0, []
    # all equal lines are paired before any others, so that a line is not compared with the equal of another
    for line in lines_of(new):
        equal = next((earlier for earlier in unmatched[line.subject] if earlier.facts == line.facts), None)
        if equal is None:
            changed.append(line)
        else:
            unmatched[line.subject].remove(equal)
            same += 1
    differences = [
        _difference(line, unmatched[line.subject].pop(0) if unmatched[line.subject] else None) for line in changed
    ]
    gone = (line for lines in unmatched.values() for line in lines)
    differences += [Difference(line.entry, "gone", line.facts, None) for line in gone]
    words = Counter(difference.news for difference in differences)
    return Comparison(
        "plan" if new.is_plan else "report",
        old.time,
        new.time,
        News(words["new"], words["gone"], words["different"], same),
        tuple(sorted(differences, key=lambda difference: difference.address.target.order)),
    )


def _difference(new_line: Line, old_line: Line | None) -> Difference:
    if old_line is None:
        return Difference(new_line.entry, "new", None, new_line.facts)
    places = tuple(_values(old_line.facts, new_line.facts))
    return Difference(new_line.entry, "different", old_line.facts, new_line.facts, places)


def _values(before: Fields, after: Fields) -> Iterator[Place]:
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from (Place(name + path, *values) for path, *values in inside(was, now))
        elif was != now:
            yield Place(name, was, now)


def earlier_fingerprints(old: RunDocument, new: RunDocument) -> Counter[str]:
    """Return the fingerprints of an earlier plan in the sections that the present plan has too.

    A run of some targets or sections, or of one shard, did not look at other sections: entries of these are not gone.
    """
    # `""` is the section of a target's own creation
    sections = {(seen.target.identity, name) for seen in new.targets for name in ("", *seen.sections)}
    addresses = ((line, address_of(line.entry)) for line in lines_of(old))
    return Counter(line.fingerprint for line, where in addresses if (where.target.identity, where.section) in sections)


def unchanged_fingerprints(document: RunDocument) -> Counter[str]:
    """Return the fingerprints of the objects that a plan names and does not change."""
    return Counter(fingerprint(finding) for finding in document.findings("unmanaged", "widened"))


def new_in(
    document: RunDocument, known_fingerprints: Fingerprints, known_unchanged: Fingerprints = NO_FINGERPRINTS
) -> RunDocument:
    """Return a plan without its known items; `known` of the result counts them.

    Args:
        document: the plan.
        known_fingerprints: the fingerprints of known changes and problems.
        known_unchanged: the fingerprints of known objects that a plan names and does not change.
    """
    unmatched, unmatched_unchanged = Counter(known_fingerprints), Counter(known_unchanged)
    old: list[Item] = []
    new: list[Item] = []
    for item in document.items:
        (old if _take(item, unmatched, unmatched_unchanged) else new).append(item)
    created = {change.address.section for change in map(change_in, new) if isinstance(change, Create)}
    # a hint at a rename is about a creation: where a baseline has the creation, the hint is known too
    new = [item for item in new if not _is_rename_elsewhere(item, created)]
    changes, problems = _changes_and_problems(old)
    new_changes, new_problems = _changes_and_problems(new)
    share = BaselineShare(
        len(changes),
        len(problems),
        changed=_places(changes) - _places(new_changes),
        troubled=_places(problems) - _places(new_problems),
        unmanaged=sum(isinstance(item, Finding) and item.code == "unmanaged" for item in old),
        gone=unmatched.total(),
    )
    return replace(document, items=tuple(new), known=share)


def _changes_and_problems(items: Iterable[Item]) -> tuple[list[Entry], list[Entry]]:
    entries = [item for item in items if not isinstance(item, Keep) and is_difference(item)]
    problems: list[Entry] = [entry for entry in entries if isinstance(entry, Finding)]
    return [entry for entry in entries if not isinstance(entry, Finding)], problems


def _take(item: Item, unmatched: Counter[str], unmatched_unchanged: Counter[str]) -> bool:
    """Remove an item's fingerprint from its counter; return whether the counter had it."""
    if isinstance(item, Keep) or is_about_run(item):
        return False
    if is_difference(item):
        counter = unmatched
    elif isinstance(item, Finding) and item.code in ("unmanaged", "widened"):
        counter = unmatched_unchanged
    else:
        return False
    key = fingerprint(item)
    # counted, not just looked up: of two equal changes, a baseline with one of them leaves the other new
    if counter[key] <= 0:
        return False
    counter[key] -= 1
    return True


def _is_rename_elsewhere(item: Item, sections_with_creations: set[str]) -> bool:
    """Return whether an item is a possible rename in a section in which nothing new is created."""
    return isinstance(item, Finding) and item.code == "rename" and item.data["section"] not in sections_with_creations


def _places(entries: Iterable[Entry]) -> frozenset[tuple[Target, str]]:
    addresses = map(address_of, entries)
    return frozenset((address.target, address.section) for address in addresses)
