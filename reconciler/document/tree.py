"""The adapter between the engine's plan, which is a tree, and the flat list of items; the engine's issue deletes it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from reconciler.document.document import REPORT, Canary, Requests, RunDocument, Seen, is_about_run
from reconciler.engine.apply import CanaryRun
from reconciler.engine.compare.renames import RenameHint
from reconciler.model.codes import code_of, place_of
from reconciler.model.item import RESULT_UNKNOWN, Change, Finding, Item, Keep, Outcome, Status
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, SectionPlan, TargetPlan
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
    return Seen(
        target.target,
        {section.section: None if _is_unread(section) else section.found for section in target.sections},
        number,
        target.labels,
        target.origin,
        target.path,
        target.exceptions,
        target.importing,
        target.arriving,
    )


def _is_unread(section: SectionPlan) -> bool:
    return not section.found and any(
        problem.address.name is None and problem.field is None for problem in section.problems
    )


def items_of(plan: Plan) -> Iterator[Item]:
    """Yield the items of a plan, in the order of its targets and their sections."""
    dependent = {(section.target, section.kind): section for section in plan.dependent}
    for target in plan.targets:
        for section in target.sections:
            yield from section.outcomes or section.changes
            again = dependent.get((target.target, section.section))
            if again is not None:
                yield _kept(again)
            yield from sorted(section.findings, key=lambda finding: place_of(finding.code))


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


@dataclass(slots=True)
class _Parts:
    """The steps of one section, as its plan holds them."""

    changes: list[Change] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    again: Keep | None = None


def plan_of(document: RunDocument, kinds: Kinds) -> Plan:
    """Return the plan of a document as the engine takes it: the one that it was made of, or one made from its items.

    Args:
        document: of a plan or a report.
        kinds: by which settings that are planned again are read.
    """
    if document.tree is not None:
        return document.tree
    sections: dict[tuple[Target, str], _Parts] = defaultdict(_Parts)
    for item in document.items:
        _put(item, sections)
    targets = tuple(_target(own, sections) for own in document.targets)
    again = (parts.again for parts in sections.values())
    return Plan(targets, tuple(_dependent(keep, kinds) for keep in again if keep is not None))


def _put(item: Item, sections: Mapping[tuple[Target, str], _Parts]) -> None:
    match item:
        case Outcome():
            parts = sections[item.change.address.target, item.change.address.section]
            parts.outcomes.append(item)
            parts.changes.append(item.change)
        case Keep():
            if item.id is None:
                sections[item.address.target, item.address.section].again = item
        case Finding():
            if item.where is not None:
                sections[item.where.target, item.where.section].findings.append(item)
        case _:
            sections[item.address.target, item.address.section].changes.append(item)


def _target(own: Seen, sections: Mapping[tuple[Target, str], _Parts]) -> TargetPlan:
    return TargetPlan(
        own.target,
        tuple(_section(name, number, sections[own.target, name]) for name, number in own.sections.items()),
        own.origin,
        own.exceptions,
        own.path,
        own.labels,
        own.importing,
        own.arriving,
    )


def _section(name: str, number: int | None, parts: _Parts) -> SectionPlan:
    changes, outcomes, findings = tuple(parts.changes), tuple(parts.outcomes), tuple(parts.findings)
    return SectionPlan(name, number or 0, changes, findings, outcomes=outcomes)


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
