"""A page about the fleet, with a history: the state of each section of each target, its age, and the coverage.

`--report fleet=FILE` keeps a history beside the file. Without one, the page is about one run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from reconciler.documents.cards import Chapter
from reconciler.documents.coverage import Matrix, Row, State, matrix
from reconciler.documents.groups import EntryGroup
from reconciler.documents.history import Differences, History, Run, is_whole, with_run
from reconciler.documents.ledger import fingerprint, marks
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.model.plan import Change, Problem
from reconciler.model.protocols import Json
from reconciler.model.targets import Level, Target
from reconciler.model.wording import counted
from reconciler.render import PLAIN, Style
from reconciler.render.html.document import cells, document
from reconciler.render.links import Links, links_of
from reconciler.render.wording import (
    WHOLE,
    details,
    headline,
    label,
    problem_reason,
    restored_heading,
    restored_text,
    subject,
    who,
)
from reconciler.system.terminal import escaped

STYLES = ("page.css", "matrix.css", "fleet.css")
SCRIPTS = ("matrix.js", "fleet.js")

SHOWN_RUNS = 60
"""How many runs the trend shows."""

LARGEST = 25
"""How many groups the coverage shows."""

WITHOUT_SCRIPT = 50
"""How many differences are listed where no script runs."""

AGES = (
    ("new", timedelta(0)),
    ("\u2264 1 day", timedelta(days=1)),
    ("\u2264 7 days", timedelta(days=7)),
    ("\u2264 30 days", timedelta(days=30)),
)
"""The columns of the ages, with the highest age of each; older differences are in one more."""

OLDER = "older"

UNSEEN = "unseen"
"""The kind of differences that an earlier run saw, and this one did not look for."""

Entry = Change | Problem


@dataclass(frozen=True, slots=True)
class Difference:
    """Equal differences of several targets that came up in the same run.

    Attributes:
        since: when a run first saw them.
        kind: `create`, `update`, `delete`, `problem`, or `UNSEEN`.
        section: its name; empty for a whole target.
        text: what differs.
        detail: the values and who changed them, if that is known, or why there is a problem.
        targets: where.
        number: how many they are.
    """

    since: datetime
    kind: str
    section: str
    text: str
    detail: str
    targets: Sequence[Target]
    number: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One run of the trend, its heights in percent of the highest."""

    run: Run
    time: str
    changes: float
    problems: float


def plan(saved: SavedPlan, style: Style) -> str:
    """Return a page about one run."""
    return page(saved, with_run(None, saved), style)


def page(saved: SavedPlan, history: History, style: Style = PLAIN) -> str:
    """Return a page about a run and those before.

    Args:
        saved: the plan of the run.
        history: the runs, this one included.
        style: where links lead.
    """
    links = links_of(saved, style)
    fleet = matrix(saved)
    found = [*_differences(saved, history)]
    affected = {target for each in found if each.kind != UNSEEN for target in each.targets}
    unseen = sum(each.number for each in found if each.kind == UNSEEN)
    return document(
        "fleet.html",
        styles=STYLES,
        scripts=SCRIPTS,
        title=_title(saved, len(affected), len(fleet.rows), unseen),
        tone="care" if found else "calm",
        advice=_oldest(found, saved.created_at),
        service=saved.service,
        time=utc(saved.created_at),
        moment=_moment(saved.created_at),
        notes=[] if is_whole(saved) else [_narrowed(saved, len(fleet.rows))],
        news=_news(history),
        bars=_bars(history.runs[-SHOWN_RUNS:]),
        trend=_trend(history.runs[-SHOWN_RUNS:]),
        highest=max(run.changes + run.problems for run in history.runs[-SHOWN_RUNS:]),
        ages=[*(name for name, _ in AGES), OLDER],
        age_rows=_age_rows(found, saved.created_at),
        coverage=_coverage(fleet),
        sections=fleet.sections,
        whole=WHOLE,
        found=found[:WITHOUT_SCRIPT],
        total=len(found),
        restored_heading=restored_heading(saved),
        restored=[*_restored(saved, links)],
        data={
            "matrix": cells(fleet),
            "ages": [*(name for name, _ in AGES), OLDER],
            **_rows(found, saved.created_at, links),
        },
        links=links,
    )


def _title(saved: SavedPlan, affected: int, targets: int, unseen: int) -> str:
    changes = saved.summary.create + saved.summary.update + saved.summary.delete
    numbers = {"change": changes, "problem": saved.summary.problems}
    words = [counted(number, word) for word, number in numbers.items() if number]
    if words:
        title = f"{' and '.join(words)} in {affected:,} of {counted(targets, 'target')}"
    else:
        title = f"{counted(targets, 'target')} in order" if targets else "No target"
    return f"{title}, {counted(unseen, 'difference')} not looked at" if unseen else title


def _oldest(found: Sequence[Difference], now: datetime) -> str:
    if not found:
        return "The service is as the manifests declare."
    first = found[0]
    if first.since == now:
        return "All differences are new."
    return f"The oldest difference is {_age(now - first.since)}: {first.text}, since {_day(first.since)}."


def _narrowed(saved: SavedPlan, targets: int) -> str:
    what = f"shard {saved.shard}" if saved.shard else "some targets or sections"
    return (
        f"This run looked at {what}: the matrix and the coverage show these {counted(targets, 'target')}. Differences "
        "elsewhere are listed as a run last saw them."
    )


def _news(history: History) -> str:
    """Return how much has come and gone since the run before; empty for the first run."""
    if len(history.runs) < 2:
        return ""
    before, last = history.runs[-2:]
    new = sum(moment == last.at for moment in history.since().values())
    gone = before.changes + before.problems + new - last.changes - last.problems
    news = f"{new:,} new and {max(gone, 0):,} gone" if new or gone > 0 else "Nothing new and nothing gone"
    return f"{news} since the run before, {_moment(before.at)}."


def _differences(saved: SavedPlan, history: History) -> Iterator[Difference]:
    """Return what differs, the oldest first."""
    since = history.since()
    found = []
    for group in (group for chapter in saved.chapters for group in _groups(chapter)):
        by_moment: dict[datetime, list[Entry]] = defaultdict(list)
        for entry in group.entries:
            by_moment[since.get(fingerprint(entry), saved.created_at)].append(entry)
        found += [_difference(group, moment, entries) for moment, entries in by_moment.items()]
    found += _unseen(history, {*marks(saved.targets)})
    yield from sorted(found, key=lambda each: (each.since, -len(each.targets), each.text))


def _restored(saved: SavedPlan, links: Links) -> Iterator[tuple[str, str, str, str, str | None]]:
    """Yield what was changed and put back: since when it is back, what it is, who it was, and its target and page."""
    for each in saved.plan.restored:
        target = each.address.target
        day = _day(each.restored_by.time)
        yield day, label(each.address), restored_text(each), escaped(str(target)), links.target(target)


def _groups(chapter: Chapter) -> Iterator[EntryGroup[Entry]]:
    """Yield the differences of a chapter, equal ones of two or more targets together."""
    yield from cast("Iterator[EntryGroup[Entry]]", chapter.changes(2).groups)
    yield from chapter.problems(2).groups


def _unseen(history: History, now: Set[str]) -> Iterator[Difference]:
    """Yield what earlier runs saw where this one, which saw other fingerprints, did not look, or could not."""
    alike: dict[tuple[datetime, datetime, str, Level], list[Differences]] = defaultdict(list)
    for each in history.differences:
        if not {*each.changes, *each.problems} <= now:
            alike[each.since, each.seen, each.section, each.level].append(each)
    for (since, seen, section, level), several in alike.items():
        number = sum(mark not in now for each in several for mark in (*each.changes, *each.problems))
        targets = tuple(dict.fromkeys(Target(level, each.ref) for each in several))
        text, detail = counted(number, "difference"), f"last seen {_moment(seen)}"
        yield Difference(since, UNSEEN, section, text, detail, targets, number)


def _difference(group: EntryGroup[Entry], since: datetime, entries: Sequence[Entry]) -> Difference:
    sample = group.sample
    if isinstance(sample, Problem):
        kind, detail = "problem", problem_reason(sample)
    else:
        kind, detail = str(sample.action), ", ".join(filter(None, (*details(sample), who(entries))))
    targets = tuple(dict.fromkeys(entry.address.target for entry in entries))
    return Difference(since, kind, sample.address.section, subject(group), detail, targets, len(entries))


def _bars(runs: Sequence[Run]) -> list[Bar]:
    """Return the bars of the trend; none if there is nothing to compare."""
    highest = max((run.changes + run.problems for run in runs), default=0)
    if len(runs) < 2 or not highest:
        return []
    return [Bar(run, _moment(run.at), 100 * run.changes / highest, 100 * run.problems / highest) for run in runs]


def _trend(runs: Sequence[Run]) -> str:
    """Return the trend in a sentence."""
    if len(runs) < 2:
        return "The trend begins with the next run."
    first, last = (run.changes + run.problems for run in (runs[0], runs[-1]))
    if not any(run.changes + run.problems for run in runs):
        return f"Nothing differed in {counted(len(runs), 'run')}, since {_day(runs[0].at)}."
    since = f"on {_day(runs[0].at)}"
    if _day(runs[0].at) == _day(runs[-1].at):
        since = f"at {_moment(runs[0].at)}"
    word = "Up" if last > first else "Down" if last < first else "As before"
    return f"{word}: {counted(first, 'difference')} {since}, {last:,} now, in {counted(len(runs), 'run')}."


def _age_rows(found: Iterable[Difference], now: datetime) -> list[tuple[str, list[int], str]]:
    """Return, for each section, how many differences have which age, and since when the oldest is there."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    oldest: dict[str, datetime] = {}
    for each in found:
        counts[each.section][_column(now - each.since)] += each.number
        oldest[each.section] = min(oldest.get(each.section, now), each.since)
    return [
        (section, [counts[section][column] for column in range(len(AGES) + 1)], _day(oldest[section]))
        for section in sorted(counts)
    ]


def _column(age: timedelta) -> int:
    return next((number for number, (_, highest) in enumerate(AGES) if age <= highest), len(AGES))


def _coverage(fleet: Matrix) -> list[tuple[str, int, list[tuple[int, int]]]]:
    """Return, for all targets and for each group of them, how many may have each section, and how many declare it."""
    groups: dict[str, list[Row]] = defaultdict(list)
    depth = _depth(fleet.rows)
    for row in fleet.rows:
        groups[_group(row, depth)].append(row)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    named = sorted(largest[:LARGEST])
    rest = [row for name in largest[LARGEST:] for row in groups[name]]
    tables = [("all targets", fleet.rows), *((name, groups[name]) for name in named)]
    if rest:
        tables.append((f"{counted(len(largest) - LARGEST, 'more group')}", rest))
    return [(name, len(rows), _declared(rows, len(fleet.sections))) for name, rows in tables]


def _declared(rows: Sequence[Row], sections: int) -> list[tuple[int, int]]:
    return [
        (
            sum(row.states[each] not in (State.NOT_DECLARED, State.NOT_APPLICABLE) for row in rows),
            sum(row.states[each] is not State.NOT_APPLICABLE for row in rows),
        )
        for each in range(sections)
    ]


def _depth(rows: Sequence[Row]) -> int:
    """Return how many steps of their paths tell groups apart: two if all are in one."""
    return 1 if len({_group(row, 1) for row in rows if "/" in _path(row)}) > 1 else 2


def _group(row: Row, depth: int) -> str:
    """Return the group of a target; of one without a path, its level."""
    path = _path(row)
    steps = path.split("/") if row.target.level == "group" else path.split("/")[:-1]
    return "/".join(steps[:depth]) or str(row.target.level)


def _path(row: Row) -> str:
    return row.path or (row.target.ref if isinstance(row.target.ref, str) else "")


def _rows(found: Iterable[Difference], now: datetime, links: Links) -> Mapping[str, Json]:
    """Return the differences for the page's script; texts are safe to show."""
    targets: dict[Target, int] = {}
    rows: list[Json] = []
    for each in found:
        numbers = [targets.setdefault(target, len(targets)) for target in each.targets]
        name = headline(each.targets)[0] if len(numbers) > 1 else ""
        age = now - each.since
        moment = (utc(each.since), _day(each.since), _age(age), _column(age))
        rows.append((*moment, each.kind, escaped(each.section), each.text, each.detail, name, numbers, each.number))
    return {
        "targets": [escaped(str(target)) for target in targets],
        "pages": [links.target(target) for target in targets],
        "rows": rows,
    }


def _day(moment: datetime) -> str:
    return utc(moment)[:10]


def _moment(moment: datetime) -> str:
    return f"{utc(moment)[:16].replace('T', ' ')} UTC"


def _age(age: timedelta) -> str:
    """Return how old something is: `new`, `3 hours old`, `52 days old`."""
    if age <= timedelta(0):
        return "new"
    hours = int(age.total_seconds() // 3600)
    return f"{counted(age.days, 'day') if age.days else counted(hours, 'hour') if hours else 'less than an hour'} old"
