"""A page for people: one file that loads nothing and runs no script but its own.

The verdict, what must be known before, and the numbers stand in the page as they are; the cards stand in it as JSON,
from which `page.js` builds those that are looked at.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reconciler.documents.cards import Table
from reconciler.documents.coverage import Matrix, matrix
from reconciler.documents.history import is_whole
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report
from reconciler.gitops.apply_log import revert_words
from reconciler.model.wording import counted
from reconciler.render import Style
from reconciler.render.html import cards, verdict
from reconciler.render.html.cards import CardKind, Decision
from reconciler.render.html.document import cells, document
from reconciler.render.links import Links, links_of
from reconciler.render.wording import (
    WHOLE,
    access_notes,
    canary_notes,
    compared_with,
    expiry_notes,
    guard_notes,
    left_alone,
    of_plan,
    of_report,
    plan_cost,
    plan_in_a_line,
    reach_in_words,
    rename_notes,
    report_in_a_line,
    requests_made,
    waits,
    widening_notes,
)

PAGE_STYLES = ("page.css", "matrix.css")
PAGE_SCRIPTS = ("elements.js", "compare.js", "matrix.js", "page.js")

SIGNS = {kind.name: kind.sign for kind in (*cards.PLAN_CARDS, *cards.DONE_CARDS)} | {
    "problems": "!",
    "unfinished": "\u00d7",
}
"""These repeat what the colours of the columns say."""

CARDS_WITHOUT_SCRIPT = 100
"""How many cards are listed where no script runs."""

ALWAYS = {"delete", "create", "update", "deleted", "created", "updated"}
"""The kinds whose number is shown even if it is zero."""


def plan(saved: SavedPlan, style: Style) -> str:
    """Return a page about what would be changed and what cannot be."""
    guards = [*guard_notes(saved)]
    split = len(guards) - len(saved.refusals)
    return _page(
        title=plan_in_a_line(saved),
        of=of_plan(saved),
        service=saved.service,
        time=utc(saved.created_at),
        verdict=verdict.of_plan(saved),
        refusals=guards[split:],
        notes=[
            *guards[:split],
            *rename_notes(saved),
            *saved.remarks,
            *expiry_notes(saved),
            *access_notes(saved.plan),
            *widening_notes(saved.plan),
        ],
        reach=reach_in_words(saved),
        facts=[
            compared_with(saved),
            f"{plan_cost(saved)} {counted(saved.summary.unmanaged, 'unmanaged object')}{left_alone(saved.summary)}.",
        ],
        kinds=cards.PLAN_CARDS,
        shown=cards.of_plan(saved, style),
        table=saved.table,
        fleet=matrix(saved),
        links=links_of(saved, style),
        commands=_commands(saved),
        revert=revert_words(saved.reverts),
    )


def report(done: Report, style: Style) -> str:
    """Return a page about what became of the changes."""
    waited = ", ".join(waits(done.requests.waited))
    return _page(
        title=report_in_a_line(done),
        of=of_report(done),
        service=done.service,
        time=utc(done.finished_at),
        verdict=verdict.of_report(done),
        refusals=[],
        notes=[*canary_notes(done), *done.remarks],
        reach=reach_in_words(done),
        facts=[
            f"Written to {done.service} from {utc(done.started_at)} to {utc(done.finished_at)}.",
            f"{requests_made(done)} made.{waited and f' Waited {waited}.'}",
        ],
        kinds=cards.kinds_of(done),
        shown=cards.of_report(done, style),
        table=done.table,
        fleet=matrix(done),
        links=links_of(done, style),
        commands="wide" if done.reverts else "retry",
        revert=revert_words(done.reverts),
    )


def _commands(saved: SavedPlan) -> str:
    """Return which commands do what cards show; see `page.js`."""
    if saved.narrowed is None:
        return "none"
    is_wide = not saved.narrowed if saved.reverts else is_whole(saved) and not saved.known
    return "wide" if is_wide else "narrow"


def _page(
    *,
    kinds: Sequence[CardKind],
    shown: Sequence[Decision],
    table: Table,
    fleet: Matrix,
    links: Links,
    commands: str,
    revert: Sequence[str],
    **values: object,
) -> str:
    """Fill in the templates.

    Args:
        kinds: of the cards that there may be, in the order in which they are shown.
        shown: all cards.
        table: the numbers by section.
        fleet: the state of each section of each target.
        links: to the pages of the service, of the manifests, and of the pipeline.
        commands: `none` of a plan that may not come from manifests, `retry` of a report, `wide` of a plan about all
            that the manifests declare and of a whole revert, else `narrow`.
        revert: the words of the command that undoes what the page undoes; none if that is nothing.
        values: see the templates.
    """
    sizes = Counter[str]()
    for card in shown:
        sizes[card.kind] += len(card.entries)
    return document(
        "page.html",
        styles=PAGE_STYLES,
        scripts=PAGE_SCRIPTS,
        tiles=[(kind, sizes[kind.name]) for kind in kinds if sizes[kind.name] or kind.name in ALWAYS],
        columns=[(column, SIGNS[column], column) for column in table.columns],
        rows=table.rows,
        totals=[sum(column) for column in zip(*(numbers for _, numbers in table.rows), strict=True)],
        whole=WHOLE,
        cards=shown,
        few=CARDS_WITHOUT_SCRIPT,
        context=[*links.context],
        data={
            **cards.data(shown, links),
            "kinds": {kind.name: asdict(kind) for kind in kinds},
            "matrix": cells(fleet),
            "commands": commands,
            "revert": revert,
        },
        **values,
    )
