"""The history beside a fleet page: the last runs of `drift`, and the age of each difference. Pure.

`with_run` adds a run. A history holds targets, sections, moments, numbers and fingerprints, and no value of a setting.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, NonNegativeInt, TypeAdapter

from reconciler.document.checksum import DOCUMENT, read_checked, with_checksum
from reconciler.document.compare import lines_of
from reconciler.document.document import CLOCK_SKEW, RunDocument, is_about
from reconciler.errors import PlanRefused
from reconciler.model.item import Finding, address_of
from reconciler.model.protocols import Json
from reconciler.model.targets import Key, Level, Target
from reconciler.reports.coverage import Share, counted_targets

FORMAT: Final = "reconciler.history/v1"

MAX_RUNS = 400
"""How many runs are kept: more than a year of daily ones."""

MAX_DIFFERENCES = 25_000
"""How many differences are kept, the oldest first: some 7 MB. Differences beyond them are new in each run."""

FORGOTTEN = timedelta(days=90)
"""How long a difference is kept without a run that looks for it."""

Fingerprint = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run, and what was known after it."""

    at: AwareDatetime
    """When its plan was made, UTC."""
    targets: NonNegativeInt
    """How many targets it looked at."""
    whole: bool
    """Whether it looked at everything that the manifests declare; false for a narrowed run and for one shard."""
    changes: NonNegativeInt
    """How many objects were known to differ, by this run and those before."""
    problems: NonNegativeInt
    """How many problems were known, by this run and those before."""
    projects: NonNegativeInt
    """How many projects it looked at; where there were none, how many targets."""
    in_order: NonNegativeInt
    """How many of them had neither changes nor problems."""

    @property
    def share(self) -> Share:
        """How many of the projects were in order."""
        return Share(self.in_order, self.projects)


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of one part of a section that the same run was the first to see."""

    level: Level
    """The level of the target."""
    ref: Key | None
    """The target's full path or numeric ID; null for the instance and for the user behind the token."""
    section: str
    """The section's name; empty for what is about the target itself: its creation, and problems of all of it."""
    part: str
    """Which of the section's endpoints; the section's name if there is only one."""
    since: AwareDatetime
    """When a run first saw them, UTC."""
    seen: AwareDatetime
    """When a run last saw them, UTC."""
    changes: tuple[Fingerprint, ...]
    """One for each object that differs; another one as soon as a value is another."""
    problems: tuple[Fingerprint, ...]
    """One for each problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The last runs, and since when each difference is there."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.history/v1"] = FORMAT
    """The format of this document."""
    service: str
    """The URL of the service's API."""
    runs: tuple[PastRun, ...] = ()
    """The oldest first."""
    differences: tuple[Differences, ...] = ()
    """All that is known to differ, by target."""

    def first_seen(self) -> Mapping[str, AwareDatetime]:
        """Return the time at which each difference was first seen, by fingerprint."""
        return {entry.fingerprint: entry.since for entry in _entries(self)}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One difference: its place, its fingerprint, and the first and the last time at which a run saw it."""

    target: Target
    section: str
    part: str
    since: AwareDatetime
    seen: AwareDatetime
    is_problem: bool
    fingerprint: str

    @property
    def place(self) -> tuple[object, ...]:
        """The values that the document writes once for several differences."""
        return self.target.order, self.section, self.part, self.since, self.seen


@cache
def _adapter() -> TypeAdapter[History]:
    return TypeAdapter(History)


def save_history(history: History) -> str:
    """Return a history as a document that `load_history` reads."""
    return with_checksum(_content(history))


def _content(history: History) -> dict[str, Json]:
    content: dict[str, Json] = _adapter().dump_python(history, mode="json")
    return content


def load_history(text: str, service: str) -> History:
    """Return the history in a text that `save_history` returned.

    Args:
        text: the document.
        service: the URL of the API of the next run.

    Raises:
        PlanRefused: it is not a history, was edited, comes from another version, or is about another service.
    """
    history = read_checked(text, FORMAT, lambda content: _adapter().validate_json(json.dumps(content)), _content)
    if not is_about(history.service, service):
        raise PlanRefused(f"the history is about {history.service!r}, and this is {service!r}")
    return history


def with_run(history: History | None, saved: RunDocument) -> History:
    """Return a history with one more run.

    A difference keeps the time at which it was first seen for as long as it does not change. It is gone if a run looked
    at its section and did not find it: narrowed runs and single shards look at some sections only, and no run looks at
    a section that it could not read. The same run twice is counted once. A run that is older than the last one may only
    move the times at which differences were first seen.

    Args:
        history: the runs so far; None before the first.
        saved: the plan of the run.
    """
    past, at = history or History(service=saved.service), saved.created_at
    is_late = any(run.at > at for run in past.runs)
    whole = is_whole(saved)
    known_entries = {entry.fingerprint: entry for entry in _entries(past)}
    present = [_with_first_seen(entry, known_entries) for entry in _new_entries(saved)]
    present_fingerprints = {entry.fingerprint for entry in present}
    if is_late:
        entries = [
            replace(entry, since=min(entry.since, at)) if entry.fingerprint in present_fingerprints else entry
            for entry in _entries(past)
        ]
    else:
        looked_at = {seen.target.identity: frozenset(seen.sections) for seen in saved.targets}
        unread = _unread(saved)
        kept = (
            entry
            for entry in _entries(past)
            if entry.fingerprint not in present_fingerprints
            and not _is_gone(entry, looked_at.get(entry.target.identity), unread, is_whole=whole)
        )
        entries = [*present, *(entry for entry in kept if at - entry.seen <= FORGOTTEN)]
    known = present if is_late else entries
    problems = sum(entry.is_problem for entry in known)
    share = Share.of(counted_targets(saved), saved)
    run = PastRun(at, len(saved.targets), whole, len(known) - problems, problems, share.all, share.in_order)
    runs = {kept_run.at: kept_run for kept_run in (*past.runs, *([run] if whole or not is_late else []))}
    ordered = tuple(runs[moment] for moment in sorted(runs))[-MAX_RUNS:]
    # The newest are dropped: the age of a difference is what the page is for.
    oldest = sorted(entries, key=lambda entry: entry.since)[:MAX_DIFFERENCES]
    return replace(past, runs=ordered, differences=tuple(_grouped(oldest)))


def without_future(history: History, now: datetime) -> History:
    """Return a history without runs and differences that are in the future: their machine's clock was wrong.

    Beside such a run, each later run would count as older than the last one. A difference that was known before such a
    run keeps its age; a difference that only such a run saw is new in the next run.

    Args:
        history: the runs so far.
        now: the time by the clock of this machine; clocks of other machines may differ by `CLOCK_SKEW`.
    """
    runs = tuple(run for run in history.runs if not is_ahead(run.at, now))
    past = (known for known in history.differences if not is_ahead(known.since, now))
    seen = (replace(known, seen=now) if is_ahead(known.seen, now) else known for known in past)
    return replace(history, runs=runs, differences=tuple(seen))


def is_ahead(moment: datetime, now: datetime) -> bool:
    """Return whether a time is in the future, by more than the clocks of two machines may differ."""
    return moment - now > CLOCK_SKEW


def is_whole(saved: RunDocument) -> bool:
    """Return whether a plan is about everything that the manifests declare."""
    return saved.narrowed is False and not saved.reverts and not saved.is_part


def _is_gone(
    history_entry: _Entry,
    section_names: Collection[str] | None,
    unread: Collection[tuple[object, str, str]],
    *,
    is_whole: bool,
) -> bool:
    """Return whether a difference no longer exists, or its section is no longer declared.

    Args:
        history_entry: a difference that the run has not found.
        section_names: the sections of its target that the run looked at; None if it did not look at the target.
        unread: see `_unread`.
        is_whole: whether the run looked at everything that the manifests declare.
    """
    if section_names is None:
        return is_whole
    target = history_entry.target.identity
    if not history_entry.section or (target, "", ANY_PART) in unread:
        return not history_entry.section
    if history_entry.section not in section_names:
        return is_whole
    return history_entry.is_problem or (target, history_entry.section, history_entry.part) not in unread


ANY_PART = "*"
"""All parts of a target that has a problem as a whole."""


def _unread(saved: RunDocument) -> Collection[tuple[object, str, str]]:
    """Return the parts, by target and section, that could not be read or planned."""
    problems = [(address_of(problem), problem) for problem in saved.findings("problem")]
    parts = {
        (address.target.identity, address.section, address.part)
        for address, problem in problems
        if address.name is None and problem.field is None
    }
    return parts | {(address.target.identity, "", ANY_PART) for address, _ in problems if not address.section}


def _new_entries(saved: RunDocument) -> Iterator[_Entry]:
    """Yield the changes and problems of a plan as entries that this run is the first to see."""
    at = saved.created_at
    for line in lines_of(saved):
        place = address_of(line.entry)
        yield _Entry(place.target, place.section, place.part, at, at, isinstance(line.entry, Finding), line.fingerprint)


def _with_first_seen(history_entry: _Entry, known_entries: Mapping[str, _Entry]) -> _Entry:
    known = known_entries.get(history_entry.fingerprint)
    return history_entry if known is None else replace(history_entry, since=known.since)


def _entries(history: History) -> Iterator[_Entry]:
    for known in history.differences:
        target = Target(known.level, known.ref)
        for is_problem, fingerprints in ((False, known.changes), (True, known.problems)):
            yield from (
                _Entry(target, known.section, known.part, known.since, known.seen, is_problem, key)
                for key in fingerprints
            )


def _grouped(history_entries: Iterable[_Entry]) -> Iterator[Differences]:
    """Yield the differences in the form and the order of the document."""
    for _, group in groupby(sorted(history_entries, key=lambda entry: entry.place), key=lambda entry: entry.place):
        own = list(group)
        changes = sorted(entry.fingerprint for entry in own if not entry.is_problem)
        problems = sorted(entry.fingerprint for entry in own if entry.is_problem)
        first = own[0]
        yield Differences(
            *(first.target.level, first.target.ref, first.section, first.part, first.since, first.seen),
            *(tuple(changes), tuple(problems)),
        )
