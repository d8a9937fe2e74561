"""A page about the fleet, with a history: how much is in order, the trend, what to do, and where.

`--report fleet=FILE` keeps a history beside the file. Without one, the page is about one run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.document.document import PastApply, RunDocument, utc
from reconciler.document.groups import subject_of
from reconciler.document.links import Links, web_address
from reconciler.document.style import PLAIN_STYLE, Style, links_of
from reconciler.document.wording import (
    WHOLE,
    details,
    headline,
    label,
    numbers_in,
    reason_of,
    restored_heading,
    restored_text,
    subject,
    who,
)
from reconciler.memory.apply_log import short
from reconciler.model.item import ACTIONS, ChangedBy, Finding, address_of
from reconciler.model.protocols import Json
from reconciler.model.targets import Target
from reconciler.model.wording import counted, listed
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
"""How many of the targets of an entry are named where there is no place for all."""

MAX_NAMED_TEAMS = 3
"""How many of the teams that lack a section are named."""


class LinkedTarget(NamedTuple):
    """A target with where it leads."""

    name: str
    url: str | None


class Where(NamedTuple):
    """The first of some targets, and how many more there are."""

    named: Sequence[LinkedTarget]
    more: int


class Point(NamedTuple):
    """A run of the trend: in percent of the width and of the height, and in words."""

    x: float
    y: float
    text: str


class Advice(NamedTuple):
    """A thing to do: the sentence, a command for it, and the part of the page that has the details."""

    text: str
    command: str
    fragment: str


def plan(saved: RunDocument, style: Style) -> str:
    """Return a page about one run."""
    return page(saved, with_run(None, saved), style)


def page(saved: RunDocument, history: History, style: Style = PLAIN_STYLE) -> str:
    """Return a page about a run and those before.

    Args:
        saved: the plan of the run.
        history: the runs, this one included.
        style: where links lead.
    """
    links, view = links_of(saved, style), fleet_page(saved, history)
    names, put_back = _TargetLinks(saved, links), [*saved.findings("restored")]
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
        numbers=_numbers(saved, view),
        trend=_trend(view, saved.created_at),
        news=_news(history),
        points=[*_points(view.trend)],
        lowest=_percent(_lowest(view.trend)),
        ends=[_day(run.at) for run in (*view.trend[:1], *view.trend[-1:])],
        runs=[*_runs(history)],
        tasks=[_advice(task) for task in view.tasks],
        service=saved.service,
        time=utc(saved.created_at),
        moment=_moment(saved.created_at),
        notes=[] if is_whole(saved) else [_narrowed(saved, len(view.matrix.rows))],
        unit=f"{view.counts or 'target'}s",
        divisions=[(division.label or "group", [*_teams(division)]) for division in view.divisions],
        ages=AGE_NAMES,
        age_rows=[(ages.section, ages.numbers, _day(ages.oldest)) for ages in view.ages],
        exceptions=[*_exceptions(view.exceptions, names, links)],
        applies=None if view.applies is None else [*_applies(view.applies, links)],
        coverage=[*_coverage(view)],
        whole=WHOLE,
        shown=[
            (_day(oldest.since), oldest.kind, _text(oldest), _detail(oldest), names.where(oldest.targets))
            for oldest in view.differences[:DIFFERENCES_WITHOUT_SCRIPT]
        ],
        differences=sum(difference.number for difference in view.differences),
        left=len(view.differences) - DIFFERENCES_WITHOUT_SCRIPT,
        restored_heading=restored_heading(len(put_back), saved.restored_since),
        restored=[*_restored(put_back, names)],
        data={
            "matrix": {**cells(view.matrix), "pages": [names.url(row.target) for row in view.matrix.rows]},
            "ages": AGE_NAMES,
            **_rows(view, saved.created_at, names),
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
    """Return `400 projects`, or whatever the page counts."""
    return f"of {counted(number, view.counts or 'target')}"


def _numbers(saved: RunDocument, view: FleetPage) -> str:
    numbers = numbers_in(saved)
    changes = sum(numbers[action] for action in ACTIONS)
    words = [
        counted(number, word) for number, word in ((changes, "change"), (numbers["problems"], "problem")) if number
    ]
    where = f" in {view.affected:,} of {counted(len(view.matrix.rows), 'target')}" if words else ""
    unseen = f"{counted(view.unseen, 'difference')} not looked at" if view.unseen else ""
    return "; ".join(filter(None, (f"{' and '.join(words)}{where}", unseen)))


def _trend(view: FleetPage, now: datetime) -> str:
    """Return the trend in a sentence."""
    if view.earlier is None:
        return "The trend begins with the next run of the whole fleet."
    last, before = view.share.percent, view.earlier.share.percent
    when = f"on {_day(view.earlier.at)}" if _day(view.earlier.at) != _day(now) else f"at {_moment(view.earlier.at)}"
    if last == before:
        return f"As {when}."
    return f"{'Up' if last > before else 'Down'} from {_percent(before)} {when}."


def _news(history: History) -> str:
    """Return how much has come and gone since the run before; empty for the first run."""
    if len(history.runs) < 2:
        return ""
    before, last = history.runs[-2:]
    new = sum(moment == last.at for moment in history.since().values())
    gone = before.changes + before.problems + new - last.changes - last.problems
    news = f"{new:,} new and {max(gone, 0):,} gone" if new or gone > 0 else "Nothing new and nothing gone"
    return f"{news} since the run before, {_moment(before.at)}."


def _lowest(trend: Iterable[PastRun]) -> float:
    """Return where the scale of the trend begins: a multiple of ten below all of it, 90 at most."""
    return min((90.0, *(run.share.percent // 10 * 10 for run in trend)))


def _points(trend: Sequence[PastRun]) -> Iterator[Point]:
    """Yield the points of the trend; none if there is nothing to compare."""
    height = 100 - _lowest(trend)
    for run in trend if len(trend) > 1 else ():
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
    """Return what to do, in a sentence, with a command where one does it."""
    where = _in(task.targets)
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


def _in(targets: Sequence[Target]) -> str:
    """Return `in 3 projects`, or `in 1 group and 3 projects`."""
    levels = dict.fromkeys(target.level for target in sorted(targets, key=lambda target: target.order))
    return f"in {listed(counted(sum(target.level is level for target in targets), level) for level in levels)}"


def _narrowed(saved: RunDocument, targets: int) -> str:
    part = f"shard {saved.shard}" if saved.shard else "some targets or sections"
    return (
        f"This run looked at {part}: the numbers, the matrix and the coverage are about these "
        f"{counted(targets, 'target')}. Differences elsewhere are listed as a run last saw them."
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
    exceptions: Iterable[EndingException], names: _TargetLinks, links: Links
) -> Iterator[tuple[str, str, str, str, str | None, Where]]:
    """Yield the exceptions that end soon: the day, in how many days that is, what it excepts, why, where, and whose."""
    for ending in exceptions:
        exception = ending.exception
        item = "" if exception.item is None else f' "{exception.item}"'
        fields = f": {', '.join(exception.fields)}" if exception.fields else ""
        left = _ends(ending.days)
        yield (
            str(exception.until),
            left,
            escaped(f"{exception.section}{item}{fields}"),
            escaped(exception.reason),
            links.origin(exception.origin),
            names.where(ending.targets),
        )


def _ends(days: int) -> str:
    if days < 0:
        return f"ended {counted(-days, 'day')} ago"
    return f"in {counted(days, 'day')}" if days else "today"


def _applies(applies: Iterable[PastApply], links: Links) -> Iterator[Mapping[str, str | None]]:
    """Yield the rows of the last applies."""
    for apply in applies:
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
    """Yield section section with who lacks it, by division."""
    for section in view.coverage:
        lacking = []
        for division in view.divisions:
            teams = section.lacking[division.label]
            words = [f"{name or f'no {division.label}'} {number:,}" for name, number in teams[:MAX_NAMED_TEAMS]]
            more = [f"{len(teams) - MAX_NAMED_TEAMS:,} more"] if len(teams) > MAX_NAMED_TEAMS else []
            lacking.append((division.label or "group", listed([*words, *more]) if words else ""))
        yield section, lacking


def _text(difference: AgedDifference) -> str:
    return subject(difference.group) if difference.group else counted(difference.number, "difference")


def _detail(difference: AgedDifference) -> str:
    """Return the values and who changed them, if that is known, or why there is a problem."""
    if difference.group is None:
        return f"last seen {_moment(difference.seen)}"
    sample = subject_of(difference.group.sample)
    if isinstance(sample, Finding):
        return reason_of(sample)
    return ", ".join(filter(None, (*details(sample), who(difference.entries))))


def _restored(put_back: Iterable[Finding], names: _TargetLinks) -> Iterator[tuple[str, str, str, LinkedTarget]]:
    """Yield what was changed and put back: since when it is back, what it is, who it was, and its target."""
    for restored in put_back:
        day, address = _day(ChangedBy.of(restored.data["restored_by"]).time), address_of(restored)
        yield day, label(address), restored_text(restored), names.of(address.target)


def _rows(view: FleetPage, now: datetime, names: _TargetLinks) -> Mapping[str, Json]:
    """Return the differences for the page's script; texts are safe to show."""
    targets: dict[Target, int] = {}
    rows: list[Json] = []
    for difference in view.differences:
        numbers = [targets.setdefault(target, len(targets)) for target in difference.targets]
        name = headline(difference.targets)[0] if len(numbers) > 1 else ""
        age = now - difference.since
        moment = (utc(difference.since), _day(difference.since), _age(age), age_column(age))
        about = (difference.id, difference.kind, escaped(difference.section), _text(difference), _detail(difference))
        rows.append((*moment, *about, name, numbers, difference.number))
    return {
        "targets": [escaped(str(target)) for target in targets],
        "pages": [names.url(target) for target in targets],
        "labels": [division.label for division in view.divisions],
        "teams": [[division.members.get(target, "") for target in targets] for division in view.divisions],
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
