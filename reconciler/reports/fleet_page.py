"""The content of the fleet page: the share in order, its trend, the tasks, and the differences. Pure.

`fleet_page` computes the content once, and `fleet.py` writes the HTML. The share counts projects, or all targets of a
plan without projects.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, cast

from reconciler.document.compare import fingerprint, fingerprints_of
from reconciler.document.document import PastApply, RunDocument, is_difference
from reconciler.document.groups import Entry, EntryGroup, entries_of, grouped, subject_of
from reconciler.document.numbers import DocumentPart, parts_of
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Change, Finding, address_of, changes_in, loosens, source_of, target_of
from reconciler.model.plan import Seen
from reconciler.model.targets import Level, Target
from reconciler.reports.coverage import Matrix, Row, Share, State, counted_targets, matrix
from reconciler.reports.history import Differences, History, PastRun

MAX_TREND_RUNS = 60
"""How many runs the trend has."""

TREND_SPAN = timedelta(days=7)
"""The trend compares this run with the last run that is at least so old."""

AGE_LIMITS = (timedelta(0), timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""The highest age of each column of ages but the last."""

ENDING_WITHIN = timedelta(days=30)
"""Exceptions that end within this time are listed."""

MAX_LISTED_TEAMS = 25
"""How many teams of a division are listed; the others are counted together."""

DifferenceKind = Literal["create", "update", "delete", "problem", "unseen"]
"""The kind of a difference; `unseen`: an earlier run saw it, and this one did not look for it."""

TaskKind = Literal["problem", "pending", "service", "change", "ended", "ending"]
"""The next step: fix the cause of a problem; apply what was merged; decide on differences made on the service, or of
unknown origin; remove or renew an exception."""


@dataclass(frozen=True, slots=True)
class AgedDifference:
    """Equal differences of several targets that came up in the same run.

    Attributes:
        id: an ID for links, which stays for as long as the differences stay.
        since: when a run first saw them.
        kind: the kind of all of them.
        section: the name of their section; empty for a whole target.
        targets: the targets that differ.
        number: the number of differences.
        group: the equal changes or problems; None for `unseen` differences.
        entries: the entries of the group that came up in that run.
        seen: when a run last saw `unseen` differences; else the time of this run.
    """

    id: str
    since: datetime
    kind: DifferenceKind
    section: str
    targets: tuple[Target, ...]
    number: int
    group: EntryGroup[Entry] | None
    entries: tuple[Entry, ...]
    seen: datetime


@dataclass(frozen=True, slots=True)
class Team:
    """The targets that have one value of a label, or are in one group.

    Attributes:
        name: the value; empty for the targets without that label, and outside of any group.
        share: the share of its projects in order.
        changes: number of changes in all its targets.
        problems: number of problems in all its targets.
        oldest: when its oldest difference was first seen; None if nothing differs.
        others: the number of unlisted teams that this entry adds up; 0 for a single team.
    """

    name: str
    share: Share
    changes: int
    problems: int
    oldest: datetime | None
    others: int = 0


@dataclass(frozen=True, slots=True)
class Division:
    """The fleet by one label, or by group.

    Attributes:
        label: the label; empty for the groups.
        teams: the smallest share in order first; the targets without the label last.
        members: the team of each target.
    """

    label: str
    teams: tuple[Team, ...]
    members: Mapping[Target, str]


@dataclass(frozen=True, slots=True)
class SectionAges:
    """How old the differences of a section are.

    Attributes:
        section: its name; empty for whole targets.
        numbers: the number of differences of each age: a number for each of `AGE_LIMITS`, and one for older ones.
        oldest: when the oldest difference was first seen.
    """

    section: str
    numbers: tuple[int, ...]
    oldest: datetime


@dataclass(frozen=True, slots=True)
class EndingException:
    """Equal exceptions of several targets.

    Attributes:
        exception: the first of them.
        targets: the targets that have such an exception.
        days: days until the last day; negative if it has passed.
    """

    exception: DeclaredException
    targets: tuple[Target, ...]
    days: int


@dataclass(frozen=True, slots=True)
class SectionCoverage:
    """How many targets declare a section.

    Attributes:
        section: its name.
        declared: the number of targets that declare it.
        all: the number of targets that can have it: at the levels that declare it, unless it is not applicable.
        lacking: the number of targets that can have it and do not declare it, by division and team; the highest first.
    """

    section: str
    declared: int
    all: int
    lacking: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Task:
    """A task for the maintainers.

    Attributes:
        kind: the kind of task.
        number: the number of problems, changes or exceptions.
        targets: the targets that have them.
        remedy: the fix of the most frequent problem; empty if its reason contains the fix.
        day: when the first exception ends, or ended; None for other tasks.
    """

    kind: TaskKind
    number: int
    targets: tuple[Target, ...]
    remedy: str = ""
    day: date | None = None


@dataclass(frozen=True, slots=True)
class FleetPage:
    """The content of the fleet page.

    Attributes:
        share: the share of projects in order.
        counts: the level that the share counts; None for targets of several levels.
        affected: the number of targets with changes or problems.
        trend: the runs that looked at everything, the oldest first; this run too, if it looked at everything.
        earlier: the run that the trend compares with; None for the first run.
        tasks: the most urgent first.
        divisions: by label: `team` first, then the label that most targets have; by group last.
        ages: by section.
        differences: what loosens protection first, then the oldest.
        exceptions: exceptions that end soon, or have ended, by their last day.
        applies: the latest first; None where the run did not read them.
        coverage: by section.
        matrix: the state of each section of each target.
    """

    share: Share
    counts: Level | None
    affected: int
    trend: tuple[PastRun, ...]
    earlier: PastRun | None
    tasks: tuple[Task, ...]
    divisions: tuple[Division, ...]
    ages: tuple[SectionAges, ...]
    differences: tuple[AgedDifference, ...]
    exceptions: tuple[EndingException, ...]
    applies: tuple[PastApply, ...] | None
    coverage: tuple[SectionCoverage, ...]
    matrix: Matrix

    @property
    def unseen(self) -> int:
        """The number of differences that this run did not look for."""
        return sum(difference.number for difference in self.differences if difference.kind == "unseen")


def fleet_page(saved: RunDocument, history: History) -> FleetPage:
    """Return the content of the page about a run and earlier runs.

    Args:
        saved: the plan of the run.
        history: the runs, this one included.
    """
    counted = counted_targets(saved)
    levels = {target.level for target in counted}
    differences = tuple(sorted(_differences(saved, history), key=_worst_and_oldest))
    exceptions = tuple(_ending_exceptions(saved.targets, saved.created_at.date()))
    fleet = matrix(saved)
    divisions = tuple(_divisions(saved, fleet, differences, frozenset(counted)))
    trend = tuple(run for run in history.runs if run.whole)[-MAX_TREND_RUNS:]
    return FleetPage(
        share=Share.of(counted, saved),
        counts=levels.pop() if len(levels) == 1 else None,
        affected=len(saved.differing),
        trend=trend,
        earlier=_compared_run(trend, saved.created_at),
        tasks=tuple(_tasks(saved, exceptions)),
        divisions=divisions,
        ages=tuple(_ages(differences, saved.created_at)),
        differences=differences,
        exceptions=exceptions,
        applies=saved.applies,
        coverage=tuple(_coverage(fleet, divisions)),
        matrix=fleet,
    )


def _worst_and_oldest(difference: AgedDifference) -> tuple[bool, datetime, int]:
    """Return the sort key of a difference: what loosens protection, then the oldest, of one age the largest."""
    is_loosening = any(map(loosens, changes_in(difference.entries)))
    return not is_loosening, difference.since, -len(difference.targets)


def age_column(age: timedelta) -> int:
    """Return the column of an age, see `AGE_LIMITS`."""
    return next((number for number, highest in enumerate(AGE_LIMITS) if age <= highest), len(AGE_LIMITS))


def _compared_run(trend: Sequence[PastRun], now: datetime) -> PastRun | None:
    """Return the last run that is at least `TREND_SPAN` old, else the first run before this one."""
    past = [run for run in trend if run.at < now]
    old = [run for run in past if now - run.at >= TREND_SPAN]
    return old[-1] if old else past[0] if past else None


def _differences(saved: RunDocument, history: History) -> Iterator[AgedDifference]:
    """Yield the differences of this run, then differences of earlier runs that this run did not look for."""
    since = history.first_seen()
    for group in (group for part in parts_of(saved) for group in _groups(part, "change", "problem")):
        moments: dict[datetime, list[Entry]] = defaultdict(list)
        for entry in group.entries:
            moments[since.get(fingerprint(entry), saved.created_at)].append(entry)
        subject = subject_of(group.sample)
        kind: DifferenceKind = "problem" if isinstance(subject, Finding) else subject.action
        for moment, entries in moments.items():
            targets = tuple(dict.fromkeys(map(target_of, entries)))
            name, section = fingerprint(entries[0]), address_of(group.sample).section
            yield AgedDifference(
                name, moment, kind, section, targets, len(entries), group, tuple(entries), saved.created_at
            )
    yield from _unseen_differences(history, {*fingerprints_of(saved)})


def _groups(document_part: DocumentPart, *sorts: str) -> Iterator[EntryGroup[Entry]]:
    """Yield the differences of a part that are of some sorts, equal ones of two or more targets together."""
    for sort in sorts:
        yield from (group for block in grouped(entries_of(document_part.items, sort), 2) for group in block.groups)


def _unseen_differences(history: History, seen_fingerprints: Set[str]) -> Iterator[AgedDifference]:
    """Yield the differences of earlier runs whose fingerprints this run did not see."""
    equal: dict[tuple[datetime, datetime, str, Level], list[Differences]] = defaultdict(list)
    for known in history.differences:
        if not {*known.changes, *known.problems} <= seen_fingerprints:
            equal[known.since, known.seen, known.section, known.level].append(known)
    for (since, seen, section, level), several in equal.items():
        unseen = [
            mark for known in several for mark in (*known.changes, *known.problems) if mark not in seen_fingerprints
        ]
        targets = tuple(dict.fromkeys(Target(level, known.ref) for known in several))
        yield AgedDifference(unseen[0], since, "unseen", section, targets, len(unseen), None, (), seen)


def _tasks(saved: RunDocument, ending_exceptions: Sequence[EndingException]) -> Iterator[Task]:
    """Yield the tasks by urgency: first the tasks that block other tasks, last the tasks that can wait."""
    problems = [group for part in parts_of(saved) for group in _groups(part, "problem")]
    if problems:
        most = subject_of(max(problems, key=lambda group: len(group.entries)).sample)
        entries = [entry for group in problems for entry in group.entries]
        yield Task("problem", len(entries), _targets(entries), most.fix if isinstance(most, Finding) else "")
    kinds: dict[str | None, TaskKind] = {"pending": "pending", "service": "service"}
    by_kind: dict[TaskKind, list[Change]] = {"pending": [], "service": [], "change": []}
    for change in saved.changes:
        by_kind[kinds.get(source_of(change), "change")].append(change)
    yield from (Task(kind, len(changes), _targets(changes)) for kind, changes in by_kind.items() if changes)
    for kind, has_ended in (("ended", True), ("ending", False)):
        some = [ending for ending in ending_exceptions if (ending.days < 0) == has_ended]
        if some:
            targets = tuple(dict.fromkeys(target for ending in some for target in ending.targets))
            number = sum(len(ending.targets) for ending in some)
            yield Task(cast("TaskKind", kind), number, targets, day=some[0].exception.until)


def _targets(entries: Sequence[Entry]) -> tuple[Target, ...]:
    return tuple(dict.fromkeys(map(target_of, entries)))


def _ages(differences: Iterable[AgedDifference], now: datetime) -> Iterator[SectionAges]:
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    oldest: dict[str, datetime] = {}
    for difference in differences:
        section = difference.section
        counts[section][age_column(now - difference.since)] += difference.number
        oldest[section] = min(oldest.get(section, now), difference.since)
    for section in sorted(counts):
        numbers = tuple(counts[section][column] for column in range(len(AGE_LIMITS) + 1))
        yield SectionAges(section, numbers, oldest[section])


def _ending_exceptions(seen_targets: Iterable[Seen], today: date) -> Iterator[EndingException]:
    """Yield the exceptions that have ended or end soon, by last day; equal ones of several targets once."""
    targets_of: dict[DeclaredException, list[Target]] = defaultdict(list)
    for target in seen_targets:
        for exception in target.exceptions:
            if exception.until <= today + ENDING_WITHIN:
                targets_of[exception].append(target.target)
    for exception, several in sorted(targets_of.items(), key=lambda pair: pair[0].until):
        yield EndingException(exception, tuple(several), (exception.until - today).days)


def _divisions(
    saved: RunDocument, fleet: Matrix, differences: Iterable[AgedDifference], counted: Set[Target]
) -> Iterator[Division]:
    """Yield the fleet divided by each label, then by group."""
    oldest: dict[Target, datetime] = {}
    for difference in differences:
        for target in difference.targets:
            oldest[target] = min(oldest.get(target, difference.since), difference.since)
    labels = Counter(label for seen in saved.targets for label in seen.labels)
    tally = Counter((target_of(item), isinstance(item, Finding)) for item in saved.items if is_difference(item))
    depth = _group_depth(fleet.rows)
    teams = {
        label: {seen.target: seen.labels.get(label, "") for seen in saved.targets}
        for label in sorted(labels, key=lambda label: (label != "team", -labels[label], label))
    }
    in_order = {target: target not in saved.differing for target in counted}
    for label, members in {**teams, "": {row.target: _group(row, depth) for row in fleet.rows}}.items():
        yield _division(label, members, tally, oldest, in_order)


def _division(
    label: str,
    labels_by_target: Mapping[Target, str],
    tally: Mapping[tuple[Target, bool], int],
    oldest: Mapping[Target, datetime],
    in_order: Mapping[Target, bool],
) -> Division:
    by_team: dict[str, list[Target]] = defaultdict(list)
    for target, name in labels_by_target.items():
        by_team[name].append(target)

    def team(name: str, team_targets: Sequence[Target], other_count: int = 0) -> Team:
        return Team(
            name,
            Share(
                sum(in_order.get(target, False) for target in team_targets),
                sum(target in in_order for target in team_targets),
            ),
            sum(tally[target, False] for target in team_targets),
            sum(tally[target, True] for target in team_targets),
            min((oldest[target] for target in team_targets if target in oldest), default=None),
            other_count,
        )

    teams = [team(name, own) for name, own in by_team.items()]
    teams.sort(key=_worst_first)
    unlisted = [target for other in teams[MAX_LISTED_TEAMS:] for target in by_team[other.name]]
    others = [team("", unlisted, len(teams) - MAX_LISTED_TEAMS)] if unlisted else []
    return Division(label, (*teams[:MAX_LISTED_TEAMS], *others), labels_by_target)


def _worst_first(team: Team) -> tuple[bool, float, int, str]:
    """Return the sort key of a team: its share in order; targets without the label come last."""
    return not team.name, team.share.percent, -team.changes - team.problems, team.name


def _group_depth(matrix_rows: Sequence[Row]) -> int:
    """Return the number of path steps that name a group: one, or two if the first step is the same everywhere."""
    return 1 if len({_group(row, 1) for row in matrix_rows if "/" in _path(row)}) > 1 else 2


def _group(row: Row, depth: int) -> str:
    """Return the group of a target; its level if it has no path."""
    path = _path(row)
    steps = path.split("/") if row.target.level == "group" else path.split("/")[:-1]
    return "/".join(steps[:depth]) or str(row.target.level)


def _path(row: Row) -> str:
    return row.path or (row.target.ref if isinstance(row.target.ref, str) else "")


def _coverage(fleet: Matrix, divisions: Iterable[Division]) -> Iterator[SectionCoverage]:
    for number, section in enumerate(fleet.sections):
        states = [(row.target, row.states[number]) for row in fleet.rows]
        levels = {target.level for target, state in states if state is not State.NOT_DECLARED}
        able = [
            (target, state) for target, state in states if target.level in levels and state is not State.NOT_APPLICABLE
        ]
        lacking = [target for target, state in able if state is State.NOT_DECLARED]
        by_team = {
            division.label: tuple(Counter(division.members[target] for target in lacking).most_common())
            for division in divisions
        }
        yield SectionCoverage(section, len(able) - len(lacking), len(able), by_team)
