"""From the engine to documents: `with_plan` puts a plan in, `plan_of` takes it out, `make_report` adds outcomes.

Called by the commands between the stages of a run; the engine itself knows plans only.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from reconciler.document.document import REPORT, Canary, Requests, RunDocument
from reconciler.model.codes import code_of, place_of
from reconciler.model.item import RESULT_UNKNOWN, Finding, Item, Keep, Outcome, Status, is_about_run
from reconciler.model.plan import Plan, Seen, TargetPlan
from reconciler.system import clock

if TYPE_CHECKING:
    from reconciler.engine.apply import CanaryRun
    from reconciler.engine.compare.renames import RenameHint


def with_plan(document: RunDocument, plan: Plan) -> RunDocument:
    """Return a document with another plan; its head stays, and so do the findings about the run."""
    about_the_run = (item for item in document.items if is_about_run(item))
    targets = tuple(map(_seen, plan.targets))
    return replace(document, targets=targets, items=(*items_of(plan), *about_the_run))


def _seen(planned: TargetPlan) -> Seen:
    """Return a target in the form of documents: a section that was not read has no number of objects."""
    about_all = (problem for problem in planned.problems if problem.address.name is None and problem.field is None)
    unread = {problem.address.section for problem in about_all}
    sections = {name: number or (None if name in unread else 0) for name, number in planned.sections.items()}
    return replace(planned.seen, sections=sections)


def items_of(plan: Plan) -> Iterator[Item]:
    """Yield the items of a plan, in the order of its targets and their sections.

    Findings of a section by their code.
    """
    for target in plan.targets:
        for items in target.by_section.values():
            yield from sorted(items, key=lambda item: place_of(item.code) if isinstance(item, Finding) else -1)


def rename(hint: "RenameHint") -> Finding:
    """Return a likely rename as a finding about the run."""
    data = {
        "section": hint.section,
        "title": hint.title,
        "name": hint.name,
        "renamed_from": list(hint.renamed_from),
        "targets": hint.targets,
    }
    return Finding(None, "rename", "looks like a rename", data=data, origin=hint.origin)


class RequestCounts(Protocol):
    """How many requests a run made."""

    reads: int
    writes: int

    @property
    def waited(self) -> Mapping[Any, float]:
        """Seconds in which the run waited, by reason."""


def make_report(
    document: RunDocument,
    reported_targets: Iterable[TargetPlan],
    started_at: datetime,
    traffic: RequestCounts,
    finished_at: datetime | None = None,
    *,
    canary_result: Canary | None = None,
    remarks: Iterable[str] = (),
) -> RunDocument:
    """Return the report of an apply.

    Args:
        document: the document of the plan.
        reported_targets: the targets that had changes, with their outcomes; those of a missing target are unknown.
        started_at: with a time zone.
        traffic: the requests of the run.
        finished_at: with a time zone; now, if left out.
        canary_result: the canary and its result.
        remarks: further sentences about the run.
    """
    plan, known = plan_of(document), {target.target: target for target in reported_targets}
    waited = {str(reason): round(seconds, 1) for reason, seconds in sorted(traffic.waited.items())}
    targets = (_with_keeps(known.get(target.target) or _unknown(target), target) for target in plan.targets)
    reported = with_plan(document, Plan(tuple(targets)))
    # findings about the future are true of the plan, and may be untrue after the apply
    kept = [item for item in reported.items if not (isinstance(item, Finding) and code_of(item.code).planned)]
    return replace(
        reported,
        format=REPORT,
        started_at=started_at.astimezone(UTC).replace(microsecond=0),
        finished_at=finished_at or clock.now().replace(microsecond=0),
        requests=Requests(traffic.reads, traffic.writes, waited),
        canary=canary_result,
        applies=None,
        restored_since=None,
        items=(*kept, *(Finding(None, "stays", remark) for remark in remarks)),
    )


def _with_keeps(reported: TargetPlan, planned: TargetPlan) -> TargetPlan:
    """Return a target with the objects that its plan found in order; settings in order were planned again since."""
    keeps = (item for item in planned.items if isinstance(item, Keep) and item.id is not None)
    return reported.without_keeps().adding(*keeps)


def _unknown(planned: TargetPlan) -> TargetPlan:
    """Return a target whose changes have no known outcome."""
    return planned.with_outcomes(
        Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True) for change in planned.changes
    )


def plan_of(document: RunDocument) -> Plan:
    """Return the plan of a document as the engine takes it."""
    return Plan(tuple(TargetPlan.of(seen, document.by_target[seen.target]) for seen in document.targets))


def canary_of(canary_run: "CanaryRun | None", selector: str | None, plan: Plan) -> Canary | None:
    """Return the canary of a run in the form of reports; None for a run without a canary."""
    if canary_run is None or selector is None:
        return None
    return Canary(
        selector,
        tuple(map(str, canary_run.targets)),
        sum(1 for target in plan.targets if target.target in canary_run.targets for _ in target.changes),
        "verified" if canary_run.in_order else "not in order",
        canary_run.started_at.replace(microsecond=0),
        canary_run.finished_at.replace(microsecond=0),
    )
