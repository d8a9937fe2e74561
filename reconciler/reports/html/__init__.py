"""The decision page: an HTML file that loads nothing and runs no script but its own.

Begin with `plan` and `report`. Verdict, notes and numbers are HTML; the cards are JSON, from which `page.js` builds the
visible cards.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reconciler.document.document import RunDocument, utc
from reconciler.document.numbers import PLAN_COLUMNS, REPORT_COLUMNS, Table, parts_of, table
from reconciler.document.style import Style, links_of
from reconciler.document.wording import (
    WHOLE_TARGET,
    access_notes,
    baseline_note,
    canary_notes,
    compared_with,
    costs_and_counts,
    expiry_notes,
    limit_notes,
    reach_text,
    refusal_notes,
    remark_notes,
    rename_notes,
    requests_made,
    summary_start,
    title_of,
    waiting_times,
    widening_notes,
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
"""The signs of columns; they repeat what the colours say."""

CARDS_WITHOUT_SCRIPT = 100
"""How many cards are listed in a browser without scripts."""

ALWAYS = {"delete", "create", "update", "deleted", "created", "updated"}
"""The kinds whose number is shown even if it is zero."""


def plan(saved: RunDocument, style: Style) -> str:
    """Return a page about the changes and the problems of a plan."""
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
        facts=[compared_with(saved), costs_and_counts(saved)],
        card_kinds=cards.kinds_of_plan(saved),
        number_table=table(parts_of(saved)[0].items, PLAN_COLUMNS),
        commands=_command_scope(saved),
    )


def report(report: RunDocument, style: Style) -> str:
    """Return a page about the outcomes of an apply."""
    waited = [*waiting_times(report)]
    written = f"Written to {report.service} from {utc(report.began_at)} to {utc(report.time)}."
    return _page(
        report,
        verdict.of_report(report),
        style,
        refusals=[],
        notes=[*canary_notes(report), *report.remarks, *remark_notes(report)],
        facts=[
            written,
            f"{requests_made(report)} made.{' Waited ' * bool(waited)}{', '.join(waited)}{'.' * bool(waited)}",
        ],
        card_kinds=cards.kinds_of_report(report),
        number_table=table(report.items, REPORT_COLUMNS),
        commands="wide" if report.reverts else "retry",
    )


def _command_scope(saved: RunDocument) -> str:
    """Return the scope of the commands on cards; see `commands` of `_page`."""
    if saved.narrowed is None:
        return "none"
    is_wide = not saved.narrowed if saved.reverts else is_whole(saved) and not saved.known
    return "wide" if is_wide else "narrow"


def _page(
    run_document: RunDocument,
    verdict: PageVerdict,
    style: Style,
    *,
    card_kinds: Sequence[CardKind],
    number_table: Table,
    commands: str,
    **values: object,
) -> str:
    """Fill in the templates.

    Args:
        run_document: the plan or the report.
        verdict: its summary in a sentence.
        style: has the grouping of cards, and the links to the service, the manifests and the pipeline.
        card_kinds: the kinds of cards, in the order of the page.
        number_table: the numbers by section.
        commands: `none` for a plan that may not come from manifests, `retry` for a report, `wide` for a plan about all
            that the manifests declare and for a whole revert, else `narrow`.
        values: see the templates.
    """
    decisions, links = cards.decisions(run_document, card_kinds, style), links_of(run_document, style)
    sizes = Counter[str]()
    for card in decisions:
        sizes[card.kind] += len(card.entries)
    return document(
        "page.html",
        styles=PAGE_STYLES,
        scripts=PAGE_SCRIPTS,
        title=title_of(run_document),
        of=summary_start(run_document),
        service=run_document.service,
        time=utc(run_document.time),
        verdict=verdict,
        reach=reach_text([seen.target for seen in run_document.targets], run_document.changes),
        tiles=[(kind, sizes[kind.name]) for kind in card_kinds if sizes[kind.name] or kind.name in ALWAYS],
        columns=[(column, SIGNS[column], column) for column in number_table.columns],
        rows=number_table.rows,
        totals=[sum(column) for column in zip(*(row for _, row in number_table.rows), strict=True)],
        whole=WHOLE_TARGET,
        cards=decisions,
        few=CARDS_WITHOUT_SCRIPT,
        context=[*links.context],
        data={
            **cards.data(decisions, links),
            "kinds": {kind.name: asdict(kind) for kind in card_kinds},
            "matrix": cells(worst_first(matrix(run_document))),
            "commands": commands,
            "revert": revert_words(run_document.reverts),
        },
        **values,
    )
