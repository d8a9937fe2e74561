"""What a plan means, or the report of an apply: computed once, for formats that lay it out. They never see the plan.

Strings are words of ours; names in them, from the service or from manifests, are safe to show once they are escaped.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from reconciler.apply import RESULT_UNKNOWN, RUN_ENDED
from reconciler.documents.chapters import PLAN_COLUMNS, REPORT_COLUMNS, Chapter, Table, table
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report
from reconciler.model.plan import Restored
from reconciler.render.wording import (
    access_notes,
    baseline_note,
    canary_notes,
    compared_with,
    deletions_in_words,
    expiry_notes,
    left_alone,
    limit_notes,
    not_of_this_change,
    number_of_changes,
    plan_cost,
    plan_in_a_line,
    reach_in_words,
    refusal_notes,
    rename_notes,
    report_in_a_line,
    requests_made,
    restored_heading,
    revert_notes,
    waits,
    widening_notes,
    words_of_plan,
    words_of_report,
)

NoteSort = Literal[
    "canary", "rename", "remark", "revert", "baseline", "limit", "refusal", "expiry", "access", "widening"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A plan, or the report of an apply.

    Attributes:
        title: its numbers in a line.
        of: the first words of its summary.
        service: the URL of the service's API.
        time: when it was made, or when the apply ended.
        source: what was compared with what, or where and when something was written, as a sentence.
        chapters: its changes, or what became of them, and its problems.
        numbers: how much there is, by the names of `Summary` or `Counts`; of a plan, what is of the change.
        already: how many changes are not of the change since the revision of `--since`.
        apart: the heading of these; empty if there are none.
        left_alone: how much stays, as a part of a list.
        cost: the requests of the plan, or those of the apply.
        waits: how long the apply waited for what.
        notes: what must be known before, by its sort.
        put_back: what was changed and put back, of a plan.
        put_back_heading: how much that is, and since when; empty if nothing.
        deletions: how much a plan deletes where; empty if nothing.
        reach: how many targets change, by level.
        table: the numbers by section.
        reverts: the apply that a plan or a report undoes; empty if none.
        finish: the command that does what an apply has not done.
        is_interrupted: whether a signal ended an apply before everything was done.
        is_known: whether a baseline has all changes and problems of a plan.
    """

    title: str
    of: str
    service: str
    time: str
    source: str
    chapters: tuple[Chapter, ...]
    numbers: Mapping[str, int]
    already: int = 0
    apart: str = ""
    left_alone: str
    cost: str
    waits: tuple[str, ...] = ()
    notes: Mapping[NoteSort, tuple[str, ...]]
    put_back: tuple[Restored, ...] = ()
    put_back_heading: str = ""
    deletions: str = ""
    reach: str
    table: Table
    reverts: str = ""
    finish: str = ""
    is_interrupted: bool = False
    is_known: bool = False

    def noted(self, *sorts: NoteSort) -> list[str]:
        """Return the notes of these sorts, in their order."""
        return [note for sort in sorts for note in self.notes.get(sort, ())]


def of_plan(saved: SavedPlan) -> View:
    """Return what a plan would do, and what cannot be planned."""
    summary, by_section = saved.summary, table(saved.chapters[:1], PLAN_COLUMNS)
    sections = [section for target in saved.targets for section in target.sections]
    changes = [change for section in sections for change in section.changes]
    unmanaged = [live for section in sections for live in section.unmanaged]
    widened = [affected for section in sections for affected in section.widened]
    put_back = tuple(restored for section in sections for restored in section.restored)
    numbers = {name: number for name, number in asdict(summary).items() if name != "not_of_change"}
    already = number_of_changes(summary.not_of_change)
    return View(
        title=plan_in_a_line(saved),
        of=words_of_plan(saved),
        service=saved.service,
        time=utc(saved.created_at),
        source=compared_with(saved),
        chapters=saved.chapters,
        numbers=numbers,
        already=already,
        apart=not_of_this_change(changes) if saved.since else "",
        left_alone=left_alone(summary),
        cost=plan_cost(changes, saved.requests_made),
        notes={
            "rename": (*rename_notes(saved),),
            "remark": saved.remarks,
            "revert": (*revert_notes(saved, has_changes=bool(changes)),),
            "baseline": (*filter(None, [baseline_note(saved)]),),
            "limit": (*limit_notes(saved),),
            "refusal": (*refusal_notes(saved),),
            "expiry": (*expiry_notes(saved),),
            "access": (*access_notes(unmanaged),),
            "widening": (*widening_notes(widened),),
        },
        put_back=put_back,
        put_back_heading=restored_heading(len(put_back), saved.restored_since),
        deletions=deletions_in_words(changes),
        reach=reach_in_words([target.target for target in saved.targets], changes),
        table=by_section,
        reverts=saved.reverts,
        is_known=saved.known is not None and saved.is_empty,
    )


def of_report(report: Report) -> View:
    """Return what became of a plan."""
    return View(
        title=report_in_a_line(report),
        of=words_of_report(report),
        service=report.service,
        time=utc(report.finished_at),
        source=f"from {utc(report.started_at)} to {utc(report.finished_at)}",
        chapters=report.chapters,
        numbers=asdict(report.counts),
        left_alone=left_alone(report.counts),
        cost=f"{requests_made(report)} made",
        waits=(*waits(report.requests.waited),),
        notes={
            "canary": (*canary_notes(report),),
            "remark": report.remarks,
            "revert": (*revert_notes(report),),
        },
        reach=reach_in_words(report.all_targets, report.plan.changes),
        table=table(report.chapters, REPORT_COLUMNS),
        reverts=report.reverts,
        finish=report.finish,
        is_interrupted=any(outcome.reason in {RUN_ENDED, RESULT_UNKNOWN} for outcome in report.outcomes),
    )
