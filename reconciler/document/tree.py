"""The adapter between the engine's plan, which is a tree, and the flat list of items; the engine's issue deletes it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

from reconciler.document.document import REPORT, Canary, Requests, RunDocument, Seen
from reconciler.engine.apply import CanaryRun
from reconciler.engine.compare.renames import RenameHint
from reconciler.model.codes import code_of, place_of
from reconciler.model.item import RESULT_UNKNOWN, Finding, Item, Keep, Outcome, Status, is_about_run
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.state import Reference, Section
from reconciler.model.targets import Address, Target
from reconciler.system import clock


def with_plan(document: RunDocument, plan: Plan) -> RunDocument:
    """Return a document about another plan, such as a part of its own: the head, and what is said of the run, stay."""
    about_the_run = (item for item in document.items if is_about_run(item))
    targets = tuple(seen(target, plan.ids) for target in plan.targets)
    return replace(document, targets=targets, items=(*items_of(plan), *about_the_run), tree=plan)


def seen(target: TargetPlan, ids: Mapping[Reference, int]) -> Seen:
    """Return what a document tells of a target that was looked at."""
    ref = target.target.ref
    number = ids.get(Reference(target.target.level, ref.casefold())) if isinstance(ref, str) else ref
    whole = (problem for problem in target.problems if problem.address.name is None and problem.field is None)
    unread = {problem.address.section for problem in whole}
    return Seen(
        target.target,
        {section: None if section in unread and not number else number for section, number in target.found.items()},
        number,
        target.labels,
        target.origin,
        target.path,
        target.exceptions,
        target.importing,
        target.arriving,
    )


def items_of(plan: Plan) -> Iterator[Item]:
    """Yield the items of a plan, in the order of its targets and their sections."""
    dependent = {(section.target, section.kind): section for section in plan.dependent}
    for target in plan.targets:
        for name in target.found:
            items = target.of(name)
            yield from (item for item in items if not isinstance(item, Finding))
            again = dependent.get((target.target, name))
            if again is not None:
                yield _kept(again)
            findings = (item for item in items if isinstance(item, Finding))
            yield from sorted(findings, key=lambda finding: place_of(finding.code))


def _kept(section: Section) -> Keep:
    """Return settings that are planned again: the declared fields of all their parts."""
    fields: dict[str, Json] = {}
    for wanted in section.wanted.values():
        if isinstance(wanted, Mapping):
            raise TypeError(f"{section.kind} holds objects, and only settings can be planned again")
        fields |= wanted.model_dump(mode="json", include=wanted.model_fields_set)
    return Keep(_of_section(section.target, section.kind), after=fields, prune=section.prune)


def _of_section(target: Target, section: str) -> Address:
    return Address(target, section, section, section)


def rename(hint: RenameHint) -> Finding:
    """Return a likely rename as what is said about the run."""
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
    outcomes: Iterable[TargetPlan],
    started_at: datetime,
    traffic: RequestCounts,
    finished_at: datetime | None = None,
    *,
    canary: Canary | None = None,
    remarks: Iterable[str] = (),
) -> RunDocument:
    """Put together what became of a plan.

    Args:
        document: of the plan, with its tree.
        outcomes: the targets that had changes, with what became of these; of others it is unknown.
        started_at: with a time zone.
        traffic: the requests of the run.
        finished_at: with a time zone; now, if left out.
        canary: what came first.
        remarks: sentences besides those of the plan.
    """
    plan, known = plan_of(document, {}), {target.target: target for target in outcomes}
    waited = {str(reason): round(seconds, 1) for reason, seconds in sorted(traffic.waited.items())}
    targets = tuple(known.get(target.target) or _unknown(target) for target in plan.targets)
    reported = with_plan(document, replace(plan, targets=targets, dependent=()))
    said = [item for item in reported.items if not (isinstance(item, Finding) and code_of(item.code).planned)]
    return replace(
        reported,
        format=REPORT,
        started_at=started_at.astimezone(UTC).replace(microsecond=0),
        finished_at=finished_at or clock.now().replace(microsecond=0),
        requests=Requests(traffic.reads, traffic.writes, waited),
        canary=canary,
        inventory=None,
        applies=None,
        restored_since=None,
        items=(*said, *(Finding(None, "stays", remark) for remark in remarks)),
    )


def _unknown(target: TargetPlan) -> TargetPlan:
    """Return a target nothing of which is known any more."""
    return target.with_outcomes(
        Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True) for change in target.changes
    )


def plan_of(document: RunDocument, kinds: Kinds) -> Plan:
    """Return the plan of a document as the engine takes it.

    Args:
        document: of a plan or a report.
        kinds: by which settings that are planned again are read.
    """
    if document.tree is not None:
        return document.tree
    again = [item for item in document.items if isinstance(item, Keep) and item.id is None]
    targets = (_target(own, document.by_target[own.target]) for own in document.targets)
    return Plan(tuple(targets), tuple(_dependent(keep, kinds) for keep in again))


def _target(own: Seen, items: Iterable[Item]) -> TargetPlan:
    return TargetPlan(
        own.target,
        {section: number or 0 for section, number in own.sections.items()},
        tuple(item for item in items if not isinstance(item, Keep)),
        own.origin,
        own.exceptions,
        own.path,
        own.labels,
        own.importing,
        own.arriving,
    )


def _dependent(keep: Keep, kinds: Kinds) -> Section:
    """Return the settings that `_kept` turned into an item, which was checked when it was read."""
    target, kind = keep.address.target, kinds[keep.address.section]
    value = kind.models[target.level].model_validate(keep.after)
    return Section(target, kind.name, kind.wanted(value, prune=keep.prune), keep.prune)


def canary_of(run: CanaryRun | None, selector: str | None, plan: Plan) -> Canary | None:
    """Return how the canary of a run went, as the report tells it; None without one."""
    if run is None or selector is None:
        return None
    return Canary(
        selector,
        tuple(map(str, run.targets)),
        sum(1 for target in plan.targets if target.target in run.targets for _ in target.changes),
        "verified" if run.in_order else "not in order",
        run.started_at.replace(microsecond=0),
        run.finished_at.replace(microsecond=0),
    )
