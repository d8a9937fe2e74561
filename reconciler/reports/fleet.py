"""The HTML of the fleet page: the share in order, its trend, the tasks, the differences and their ages.

Begin with `page`; `fleet_page` computes what it shows. `--report fleet=FILE` keeps a history beside the file; without a
history, the page is about one run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.document.document import PastApply, RunDocument, utc
from reconciler.document.groups import subject_of
from reconciler.document.links import Links, web_address
from reconciler.document.style import PLAIN_STYLE, Style, links_of
from reconciler.document.wording import (
    WHOLE_TARGET,
    author_text,
    details,
    document_totals,
    effects_text,
    group_subject,
    headline,
    object_label,
    reason_of,
    remark_notes,
    restored_heading,
    restored_text,
    with_author,
)
from reconciler.memory.apply_log import short
from reconciler.model.item import ACTIONS, ChangedBy, Finding, address_of
from reconciler.model.protocols import Json
from reconciler.model.targets import Target
from reconciler.model.wording import counted, listed
from reconciler.reports.audit import NO_AUTHORS, AuditTable, Authors, tables
from reconciler.reports.fleet_page import (
    AgedDifference,
    Division,
    EndingException,
    FleetPage,
    SectionCoverage,
    Task,
    age_column,
    fleet_page,
)
from reconciler.reports.history import History, PastRun, is_whole, with_run
from reconciler.reports.html.document import cells, document
from reconciler.system.terminal import escaped

FLEET_STYLES = ("page.css", "matrix.css", "fleet.css")
FLEET_SCRIPTS = ("elements.js", "matrix.js", "fleet.js")

AGE_NAMES = ("new", "\u2264 1 day", "\u2264 7 days", "\u2264 30 days", "older")
"""The names of the columns of ages."""

DIFFERENCES_WITHOUT_SCRIPT = 50
"""How many differences are listed where no script runs."""

MAX_LISTED_RUNS = 60
"""How many runs have their numbers listed."""

MAX_NAMED_TARGETS = 3
"""How many targets of an entry are named."""

MAX_AUDIT_ROWS = 100
"""How many rows of each table for an audit are shown; the CSV of `--report audit=DIR` has all."""

MAX_NAMED_TEAMS = 3
"""How many of the teams that lack a section are named."""


class LinkedTarget(NamedTuple):
    """The name of a target, with the page that it links to."""

    name: str
    url: str | None


class Where(NamedTuple):
    """The first of some targets, and the number of all others."""

    named: Sequence[LinkedTarget]
    more: int


class Point(NamedTuple):
    """A run in the picture of the trend: its position in percent of the width and the height, and its tooltip."""

    x: float
    y: float
    text: str


class Advice(NamedTuple):
    """A task: its sentence, a command for it, and the fragment of the URL of its details."""

    text: str
    command: str
    fragment: str


def plan(saved: RunDocument, style: Style) -> str:
    """Return a page about one run."""
    return page(saved, with_run(None, saved), style)


def page(saved: RunDocument, history: History, style: Style = PLAIN_STYLE, authors: Authors = NO_AUTHORS) -> str:
    """Return a page about a run and earlier runs.

    Args:
        saved: the plan of the run.
        history: the runs, this one included.
        style: has the links of the page.
        authors: of the exceptions.
    """
    links, view = links_of(saved, style), fleet_page(saved, history)
    target_links, put_back = _TargetLinks(saved, links), [*saved.findings("restored")]
    return document(
        "fleet.html",
        styles=FLEET_STYLES,
        scripts=FLEET_SCRIPTS,
        number=_percent(view.share.percent) if view.matrix.rows else "",
        of=_counted(view, view.share.all) + " in order" if view.matrix.rows else "No target",
        title=f"{_percent(view.share.percent)} {_counted(view, view.share.all)} in order"
        if view.matrix.rows
        else "No target",
        tone="care" if view.differences else "calm",
        numbers=_differences_text(saved, view),
        trend=_trend(view, saved.created_at),
        news=_new_and_gone(history),
        points=[*_points(view.trend)],
        lowest=_percent(_scale_start(view.trend)),
        ends=[_day(run.at) for run in (*view.trend[:1], *view.trend[-1:])],
        runs=[*_runs(history)],
        tasks=[_advice(task) for task in view.tasks],
        service=saved.service,
        time=utc(saved.created_at),
        moment=_moment(saved.created_at),
        notes=[*(() if is_whole(saved) else [_narrowed(saved, len(view.matrix.rows))]), *remark_notes(saved)],
        unit=f"{view.counts or 'target'}s",
        divisions=[(division.label or "group", [*_teams(division)]) for division in view.divisions],
        ages=AGE_NAMES,
        age_rows=[(ages.section, ages.numbers, _day(ages.oldest)) for ages in view.ages],
        exceptions=[*_exceptions(view.exceptions, target_links, links)],
        tables=[*_audit_tables(saved, authors)],
        applies=None if view.applies is None else [*_applies(view.applies, links)],
        coverage=[*_coverage(view)],
        whole=WHOLE_TARGET,
        shown=[
            (_day(oldest.since), oldest.kind, _text(oldest), _detail(oldest), target_links.where(oldest.targets))
            for oldest in view.differences[:DIFFERENCES_WITHOUT_SCRIPT]
        ],
        differences=sum(difference.number for difference in view.differences),
        left=len(view.differences) - DIFFERENCES_WITHOUT_SCRIPT,
        restored_heading=restored_heading(len(put_back), saved.restored_since),
        restored=[*_restored_rows(put_back, target_links)],
        data={
            "matrix": {**cells(view.matrix), "pages": [target_links.url(row.target) for row in view.matrix.rows]},
            "ages": AGE_NAMES,
            **_script_data(view, saved.created_at, target_links),
        },
        links=links,
    )


class _TargetLinks:
    """The names of targets, each with the page of the service that shows it, or else with its manifest."""

    def __init__(self, saved: RunDocument, links: Links) -> None:
        self._links = links
        self._origins = {target.target: target.origin for target in saved.targets}

    def url(self, target: Target) -> str | None:
        return self._links.target(target) or self._links.origin(self._origins.get(target, ""))

    def of(self, target: Target) -> LinkedTarget:
        return LinkedTarget(escaped(str(target)), self.url(target))

    def where(self, targets: Sequence[Target]) -> Where:
        return Where(
            [self.of(target) for target in targets[:MAX_NAMED_TARGETS]], max(len(targets) - MAX_NAMED_TARGETS, 0)
        )


def _percent(share: float) -> str:
    return f"{share:g}\u00a0%"


def _counted(view: FleetPage, number: int) -> str:
    """Return a number with the level that the page counts: `of 400 projects`."""
    return f"of {counted(number, view.counts or 'target')}"


def _differences_text(saved: RunDocument, view: FleetPage) -> str:
    numbers = document_totals(saved)
    changes = sum(numbers[action] for action in ACTIONS)
    words = [
        counted(number, word) for number, word in ((changes, "change"), (numbers["problems"], "problem")) if number
    ]
    where = f" in {view.affected:,} of {counted(len(view.matrix.rows), 'target')}" if words else ""
    unseen = f"{counted(view.unseen, 'difference')} not looked at" if view.unseen else ""
    return "; ".join(filter(None, (effects_text(saved), f"{' and '.join(words)}{where}", unseen)))


def _trend(view: FleetPage, now: datetime) -> str:
    """Return the trend in a sentence."""
    if view.earlier is None:
        return "The trend begins with the next run of the whole fleet."
    last, before = view.share.percent, view.earlier.share.percent
    when = f"on {_day(view.earlier.at)}" if _day(view.earlier.at) != _day(now) else f"at {_moment(view.earlier.at)}"
    if last == before:
        return f"As {when}."
    return f"{'Up' if last > before else 'Down'} from {_percent(before)} {when}."


def _new_and_gone(history: History) -> str:
    """Return the numbers of new and gone differences since the run before; empty for the first run."""
    if len(history.runs) < 2:
        return ""
    before, last = history.runs[-2:]
    new = sum(moment == last.at for moment in history.first_seen().values())
    gone = before.changes + before.problems + new - last.changes - last.problems
    news = f"{new:,} new and {max(gone, 0):,} gone" if new or gone > 0 else "Nothing new and nothing gone"
    return f"{news} since the run before, {_moment(before.at)}."


def _scale_start(trend: Iterable[PastRun]) -> float:
    """Return the lowest percentage of the scale: a multiple of ten below the whole trend, at most 90."""
    return min((90.0, *(run.share.percent // 10 * 10 for run in trend)))


def _points(trend: Sequence[PastRun]) -> Iterator[Point]:
    """Yield the points of the trend; no points if there is nothing to compare."""
    height = 100 - _scale_start(trend)
    for run in trend if len(trend) > 1 else ():
        # the times of runs differ, since a history has one run of each time
        x = 100 * (run.at - trend[0].at) / (trend[-1].at - trend[0].at)
        y = 100 * (100 - run.share.percent) / height
        yield Point(x, y, f"{_moment(run.at)}: {_percent(run.share.percent)}")


def _runs(history: History) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the numbers of the last runs, the latest first."""
    for run in reversed(history.runs[-MAX_LISTED_RUNS:]):
        moment = f"{_moment(run.at)}{'' if run.whole else ' (in part)'}"
        share = f"{_percent(run.share.percent)} of {run.projects:,}"
        yield moment, share, f"{run.targets:,}", f"{run.changes:,}", f"{run.problems:,}"


def _advice(task: Task) -> Advice:
    """Return the sentence of a task, with a command if a single command does it."""
    where = _in_targets(task.targets)
    changes, exceptions = counted(task.number, "change"), counted(task.number, "exception")
    them = "it" if task.number == 1 else "them"
    match task.kind:
        case "problem":
            fix = f" Most frequent fix: {escaped(task.remedy)}." if task.remedy else ""
            return Advice(f"Fix {counted(task.number, 'problem')} {where}.{fix}", "", "state=problem")
        case "pending":
            return Advice(f"Apply {changes} {where}: merged and not applied.", "reconciler apply", "drift")
        case "service":
            text = f"Decide on {changes} {where}, changed on the service: apply puts {them} back, accept keeps {them}."
            return Advice(text, "reconciler accept --diff", "drift")
        case "change":
            text = f"Decide on {changes} {where}: apply makes {them}, accept changes the manifests instead."
            return Advice(text, "reconciler apply", "drift")
        case "ended":
            return Advice(f"Remove {exceptions} {where}: the first ended on {task.day}.", "", "exceptions")
    return Advice(f"Renew or resolve {exceptions} {where}: the first ends on {task.day}.", "", "exceptions")


def _in_targets(targets: Sequence[Target]) -> str:
    """Return `in 3 projects`, or `in 1 group and 3 projects`."""
    levels = dict.fromkeys(target.level for target in sorted(targets, key=lambda target: target.order))
    return f"in {listed(counted(sum(target.level is level for target in targets), level) for level in levels)}"


def _narrowed(saved: RunDocument, target_count: int) -> str:
    part = f"shard {saved.shard}" if saved.shard else "some targets or sections"
    return (
        f"This run looked at {part}: the numbers, the matrix and the coverage are about these "
        f"{counted(target_count, 'target')}. Differences elsewhere are listed as a run last saw them."
    )


def _teams(division: Division) -> Iterator[Mapping[str, Json]]:
    """Yield the rows of the teams of a division."""
    for team in division.teams:
        name = team.name or f"no {division.label}"
        yield {
            "key": None if team.others else team.name,
            "name": f"{team.others:,} more" if team.others else name,
            "percent": team.share.percent,
            "share": _percent(team.share.percent) if team.share.all else "",
            "of": f"{team.share.in_order:,} of {team.share.all:,}" if team.share.all else "\u2013",
            "changes": team.changes,
            "problems": team.problems,
            "oldest": _day(team.oldest) if team.oldest else "",
        }


def _exceptions(
    ending_exceptions: Iterable[EndingException], target_links: _TargetLinks, links: Links
) -> Iterator[tuple[str, str, str, str, str | None, Where]]:
    """Yield the exceptions that end soon: last day, remaining days, excepted fields, reason, link, targets."""
    for ending in ending_exceptions:
        exception = ending.exception
        item = "" if exception.item is None else f' "{exception.item}"'
        fields = f": {', '.join(exception.fields)}" if exception.fields else ""
        end_text = _end_text(ending.days)
        yield (
            str(exception.until),
            end_text,
            escaped(f"{exception.section}{item}{fields}"),
            escaped(exception.reason),
            links.origin(exception.origin),
            target_links.where(ending.targets),
        )


def _audit_tables(saved: RunDocument, authors: Authors) -> Iterator[tuple[str, str, AuditTable, int]]:
    """Yield the tables for an audit: an ID, a heading, the first rows as people read them, and how many rows follow."""
    headings = {
        "exceptions": "All exceptions",
        "access": "Access that no manifest declares",
        "adopted": "Adopted: live before an apply recorded it",
    }
    for table in tables(saved, authors):
        if table.name in headings and table.rows:
            shown = [tuple("" if cell is None else escaped(str(cell)) for cell in row) for row in table.rows]
            yield (
                table.name,
                headings[table.name],
                table._replace(rows=tuple(shown[:MAX_AUDIT_ROWS])),
                max(len(shown) - MAX_AUDIT_ROWS, 0),
            )


def _end_text(days: int) -> str:
    if days < 0:
        return f"ended {counted(-days, 'day')} ago"
    return f"in {counted(days, 'day')}" if days else "today"


def _applies(past_applies: Iterable[PastApply], links: Links) -> Iterator[Mapping[str, str | None]]:
    """Yield the rows of the last applies."""
    for apply in past_applies:
        changes = ", ".join(f"{number:,} {verb}" for verb, number in apply.counts.items())
        notes = [
            f"reverts {short(apply.reverts)}" if apply.reverts else "",
            f"canary {apply.canary}" if apply.canary else "",
            f"exit code {apply.result}" if apply.result else "",
        ]
        yield {
            "id": apply.id[:8],
            "time": utc(apply.when),
            "when": _moment(apply.when),
            "by": apply.author or "unknown",
            "changes": changes or "nothing changed",
            "notes": ", ".join(filter(None, notes)),
            "commit": short(apply.manifests),
            "commit_url": links.commit(apply.manifests),
            "job": web_address(apply.job),
        }


def _coverage(view: FleetPage) -> Iterator[tuple[SectionCoverage, list[tuple[str, str]]]]:
    """Yield each section with the teams that lack it, by division."""
    for section in view.coverage:
        lacking = []
        for division in view.divisions:
            teams = section.lacking[division.label]
            words = [f"{name or f'no {division.label}'} {number:,}" for name, number in teams[:MAX_NAMED_TEAMS]]
            more = [f"{len(teams) - MAX_NAMED_TEAMS:,} more"] if len(teams) > MAX_NAMED_TEAMS else []
            lacking.append((division.label or "group", listed([*words, *more]) if words else ""))
        yield section, lacking


def _text(difference: AgedDifference) -> str:
    return group_subject(difference.group) if difference.group else counted(difference.number, "difference")


def _detail(difference: AgedDifference) -> str:
    """Return the values of a difference and their author, or the reason of a problem."""
    if difference.group is None:
        return f"last seen {_moment(difference.seen)}"
    sample = subject_of(difference.group.sample)
    if isinstance(sample, Finding):
        return reason_of(sample)
    return ", ".join(with_author(details(sample), author_text(difference.entries)))


def _restored_rows(
    put_back: Iterable[Finding], target_links: _TargetLinks
) -> Iterator[tuple[str, str, str, LinkedTarget]]:
    """Yield the changes that were put back: the day, the object, the change with its authors, and the target."""
    for restored in put_back:
        day, address = _day(ChangedBy.of(restored.data["restored_by"]).time), address_of(restored)
        yield day, object_label(address), restored_text(restored), target_links.of(address.target)


def _script_data(view: FleetPage, now: datetime, target_links: _TargetLinks) -> Mapping[str, Json]:
    """Return the differences for the page's script; texts are safe to show."""
    targets: dict[Target, int] = {}
    rows: list[Json] = []
    for difference in view.differences:
        numbers = [targets.setdefault(target, len(targets)) for target in difference.targets]
        name = headline(difference.targets)[0] if len(numbers) > 1 else ""
        age = now - difference.since
        moment = (utc(difference.since), _day(difference.since), _age_text(age), age_column(age))
        about = (difference.id, difference.kind, escaped(difference.section), _text(difference), _detail(difference))
        rows.append((*moment, *about, name, numbers, difference.number))
    return {
        "targets": [escaped(str(target)) for target in targets],
        "pages": [target_links.url(target) for target in targets],
        "labels": [division.label for division in view.divisions],
        "teams": [[division.members.get(target, "") for target in targets] for division in view.divisions],
        "rows": rows,
    }


def _day(moment: datetime) -> str:
    return utc(moment)[:10]


def _moment(moment: datetime) -> str:
    return f"{utc(moment)[:16].replace('T', ' ')} UTC"


def _age_text(age: timedelta) -> str:
    """Return an age in words: `new`, `3 hours old`, `52 days old`."""
    if age <= timedelta(0):
        return "new"
    hours = int(age.total_seconds() // 3600)
    return f"{counted(age.days, 'day') if age.days else counted(hours, 'hour') if hours else 'less than an hour'} old"
