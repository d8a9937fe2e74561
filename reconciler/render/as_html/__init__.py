"""HTML for people: one file with everything in it, which loads nothing from anywhere and runs no script but its own.

Numbers, problems and what is not done stand in the page as they are; the changes stand in it as JSON, of which
`page.js` builds the list.
"""

from collections.abc import Iterable

from reconciler.apply import Outcome, Status
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report
from reconciler.model.plan import Problem
from reconciler.render import Style
from reconciler.render._numbers import (
    BECAME,
    PLANNED,
    UNFINISHED,
    became,
    cost_of,
    open_doors,
    plan_in_a_line,
    planned,
    report_in_a_line,
    verdicts,
)
from reconciler.render._wording import counted, label, subject, waits, why
from reconciler.render.as_html._page import Page, Troubles
from reconciler.render.as_html._rows import changes_of, outcomes_of


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return a page about what would be changed and what cannot be."""
    unmanaged = sum(1 for _ in saved.plan.unmanaged)
    facts = (
        *verdicts(saved),
        *open_doors(saved.plan),
        f"Read from {saved.service} at {utc(saved.created_at)}.",
        f"{cost_of(saved)} {counted(unmanaged, 'unmanaged object')}.",
    )
    troubles = (_problems(saved.plan.problems),)
    title = plan_in_a_line(saved)
    return str(Page(title, facts, troubles, PLANNED, planned(saved.plan), changes_of(saved.plan.changes)))


def report(done: Report, _style: Style) -> str:
    """Return a page about what became of the changes."""
    waited = ", ".join(waits(done.requests.waited))
    facts = (
        f"Written to {done.service} from {utc(done.started_at)} to {utc(done.finished_at)}.",
        f"{counted(done.requests.reads + done.requests.writes, 'request')} made.{waited and f' Waited {waited}.'}",
    )
    troubles = (_unfinished(done.outcomes), _problems(done.problems))
    return str(Page(report_in_a_line(done), facts, troubles, BECAME, became(done), outcomes_of(done.outcomes)))


def _problems(problems: Iterable[Problem]) -> Troubles:
    lines = tuple(
        (str(each.address.target), subject(each), f"{why(each)}{each.origin and f' ({each.origin})'}")
        for each in problems
    )
    return Troubles(counted(len(lines), "problem"), lines)


def _unfinished(outcomes: Iterable[Outcome]) -> Troubles:
    lines = tuple(
        (
            str(each.change.address.target),
            f"{each.change.action} {label(each.change.address)}",
            f"{each.status}{each.reason and ': '}{each.reason}",
        )
        for each in outcomes
        if each.status is not Status.DONE
    )
    return Troubles(counted(len(lines), f"{UNFINISHED} change"), lines)
