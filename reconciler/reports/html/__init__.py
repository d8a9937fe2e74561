"""A page for people: one file that loads nothing and runs no script but its own.

The verdict, what must be known before, and the numbers stand in the page as they are; the cards stand in it as JSON,
from which `page.js` builds those that are looked at.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reconciler.document.document import RunDocument, utc
from reconciler.document.numbers import PLAN_COLUMNS, REPORT_COLUMNS, Table, parts_of, table
from reconciler.document.style import Style, links_of
from reconciler.document.wording import (
    WHOLE,
    access_notes,
    baseline_note,
    canary_notes,
    compared_with,
    costs_and_stays,
    expiry_notes,
    limit_notes,
    reach_in_words,
    refusal_notes,
    remark_notes,
    rename_notes,
    requests_made,
    title_of,
    waits,
    widening_notes,
    words_of,
)
from reconciler.memory.apply_log import revert_words
from reconciler.reports.coverage import matrix, worst_first
from reconciler.reports.history import is_whole
from reconciler.reports.html import cards, verdict
from reconciler.reports.html.cards import CardKind
from reconciler.reports.html.document import cells, document
from reconciler.reports.html.verdict import PageVerdict

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


def plan(saved: RunDocument, style: Style) -> str:
    """Return a page about what would be changed and what cannot be."""
    notes = [
        *filter(None, [baseline_note(saved)]),
        *limit_notes(saved),
        *rename_notes(saved),
        *saved.remarks,
        *remark_notes(saved),
        *expiry_notes(saved),
        *access_notes(saved),
        *widening_notes(saved),
    ]
    return _page(
        saved,
        verdict.of_plan(saved),
        style,
        refusals=refusal_notes(saved),
        notes=notes,
        facts=[compared_with(saved), costs_and_stays(saved)],
        kinds=cards.PLAN_CARDS,
        numbers=table(parts_of(saved)[0].items, PLAN_COLUMNS),
        commands=_commands(saved),
    )


def report(done: RunDocument, style: Style) -> str:
    """Return a page about what became of the changes."""
    waited = [*waits(done)]
    written = f"Written to {done.service} from {utc(done.began_at)} to {utc(done.time)}."
    return _page(
        done,
        verdict.of_report(done),
        style,
        refusals=[],
        notes=[*canary_notes(done), *done.remarks, *remark_notes(done)],
        facts=[
            written,
            f"{requests_made(done)} made.{' Waited ' * bool(waited)}{', '.join(waited)}{'.' * bool(waited)}",
        ],
        kinds=cards.kinds_of_report(done),
        numbers=table(done.items, REPORT_COLUMNS),
        commands="wide" if done.reverts else "retry",
    )


def _commands(saved: RunDocument) -> str:
    """Return which commands do what cards show; see `page.js`."""
    if saved.narrowed is None:
        return "none"
    is_wide = not saved.narrowed if saved.reverts else is_whole(saved) and not saved.known
    return "wide" if is_wide else "narrow"


def _page(
    shown: RunDocument,
    verdict: PageVerdict,
    style: Style,
    *,
    kinds: Sequence[CardKind],
    numbers: Table,
    commands: str,
    **values: object,
) -> str:
    """Fill in the templates.

    Args:
        shown: what the page is about.
        verdict: it in a sentence.
        style: by which its cards are put together; its links lead to the service, the manifests, and the pipeline.
        kinds: of the cards that there may be, in the order in which they are shown.
        numbers: by section.
        commands: `none` of a plan that may not come from manifests, `retry` of a report, `wide` of a plan about all
            that the manifests declare and of a whole revert, else `narrow`.
        values: see the templates.
    """
    decisions, links = cards.decisions(shown, kinds, style), links_of(shown, style)
    sizes = Counter[str]()
    for card in decisions:
        sizes[card.kind] += len(card.entries)
    return document(
        "page.html",
        styles=PAGE_STYLES,
        scripts=PAGE_SCRIPTS,
        title=title_of(shown),
        of=words_of(shown),
        service=shown.service,
        time=utc(shown.time),
        verdict=verdict,
        reach=reach_in_words([seen.target for seen in shown.targets], shown.changes),
        tiles=[(kind, sizes[kind.name]) for kind in kinds if sizes[kind.name] or kind.name in ALWAYS],
        columns=[(column, SIGNS[column], column) for column in numbers.columns],
        rows=numbers.rows,
        totals=[sum(column) for column in zip(*(row for _, row in numbers.rows), strict=True)],
        whole=WHOLE,
        cards=decisions,
        few=CARDS_WITHOUT_SCRIPT,
        context=[*links.context],
        data={
            **cards.data(decisions, links),
            "kinds": {kind.name: asdict(kind) for kind in kinds},
            "matrix": cells(worst_first(matrix(shown))),
            "commands": commands,
            "revert": revert_words(shown.reverts),
        },
        **values,
    )
