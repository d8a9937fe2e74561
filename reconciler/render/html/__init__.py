"""A page for people: one file that loads nothing and runs no script but its own.

The verdict, what must be known before, and the numbers stand in the page as they are; the cards stand in it as JSON,
from which `page.js` builds those that are looked at.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reconciler.documents.coverage import Matrix, matrix
from reconciler.documents.history import is_whole
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.gitops.apply_log import revert_words
from reconciler.model.wording import counted
from reconciler.render import Style, view
from reconciler.render.html import cards, verdict
from reconciler.render.html.cards import CardKind
from reconciler.render.html.document import cells, document
from reconciler.render.html.verdict import PageVerdict
from reconciler.render.links import Links, links_of
from reconciler.render.view import View
from reconciler.render.wording import WHOLE

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
    return _plan(view.of_plan(saved), links_of(saved, style), style, fleet=matrix(saved), commands=_commands(saved))


def _plan(shown: View, links: Links, style: Style, *, fleet: Matrix, commands: str) -> str:
    unmanaged = counted(shown.numbers["unmanaged"], "unmanaged object")
    return _page(
        shown,
        verdict.of_plan(shown),
        links,
        style,
        refusals=shown.noted("refusal"),
        notes=shown.noted("baseline", "limit", "rename", "remark", "expiry", "access", "widening"),
        facts=[shown.source, f"{shown.cost} {unmanaged}{shown.left_alone}."],
        kinds=cards.PLAN_CARDS,
        fleet=fleet,
        commands=commands,
    )


def report(done: Report, style: Style) -> str:
    """Return a page about what became of the changes."""
    return _report(view.of_report(done), links_of(done, style), style, fleet=matrix(done))


def _report(shown: View, links: Links, style: Style, *, fleet: Matrix) -> str:
    waited = f" Waited {', '.join(shown.waits)}." if shown.waits else ""
    return _page(
        shown,
        verdict.of_report(shown),
        links,
        style,
        refusals=[],
        notes=shown.noted("canary", "remark"),
        facts=[f"Written to {shown.service} {shown.source}.", f"{shown.cost}.{waited}"],
        kinds=cards.kinds_of_report(shown),
        fleet=fleet,
        commands="wide" if shown.reverts else "retry",
    )


def _commands(saved: SavedPlan) -> str:
    """Return which commands do what cards show; see `page.js`."""
    if saved.narrowed is None:
        return "none"
    is_wide = not saved.narrowed if saved.reverts else is_whole(saved) and not saved.known
    return "wide" if is_wide else "narrow"


def _page(
    shown: View,
    verdict: PageVerdict,
    links: Links,
    style: Style,
    *,
    kinds: Sequence[CardKind],
    fleet: Matrix,
    commands: str,
    **values: object,
) -> str:
    """Fill in the templates.

    Args:
        shown: what the page is about.
        verdict: it in a sentence.
        links: to the pages of the service, of the manifests, and of the pipeline.
        style: by which its cards are put together.
        kinds: of the cards that there may be, in the order in which they are shown.
        fleet: the state of each section of each target.
        commands: `none` of a plan that may not come from manifests, `retry` of a report, `wide` of a plan about all
            that the manifests declare and of a whole revert, else `narrow`.
        values: see the templates.
    """
    decisions, table = cards.decisions(shown, kinds, style), shown.table
    sizes = Counter[str]()
    for card in decisions:
        sizes[card.kind] += len(card.entries)
    return document(
        "page.html",
        styles=PAGE_STYLES,
        scripts=PAGE_SCRIPTS,
        title=shown.title,
        of=shown.of,
        service=shown.service,
        time=shown.time,
        verdict=verdict,
        reach=shown.reach,
        tiles=[(kind, sizes[kind.name]) for kind in kinds if sizes[kind.name] or kind.name in ALWAYS],
        columns=[(column, SIGNS[column], column) for column in table.columns],
        rows=table.rows,
        totals=[sum(column) for column in zip(*(numbers for _, numbers in table.rows), strict=True)],
        whole=WHOLE,
        cards=decisions,
        few=CARDS_WITHOUT_SCRIPT,
        context=[*links.context],
        data={
            **cards.data(decisions, links),
            "kinds": {kind.name: asdict(kind) for kind in kinds},
            "matrix": cells(fleet),
            "commands": commands,
            "revert": revert_words(shown.reverts),
        },
        **values,
    )
