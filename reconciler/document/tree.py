"""The adapter between the engine's plan, which is a tree, and the flat list of items; the engine's issue deletes it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any, Protocol, cast

from reconciler.apply import CanaryRun
from reconciler.document.document import REPORT, Canary, Requests, RunDocument, Seen, is_about_run
from reconciler.model.codes import code_of, place_of
from reconciler.model.item import RESULT_UNKNOWN, Action, Change, Finding, Item, Keep, Outcome, Status
from reconciler.model.kind import Kinds
from reconciler.model.plan import Excepted, Plan, Problem, SectionPlan, TargetPlan, Unmanaged
from reconciler.model.protocols import Json
from reconciler.model.state import Reference, Section
from reconciler.model.targets import Address, Target
from reconciler.planning.renames import RenameHint
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
            found = chain(_findings(target.target, section), section.findings)
            yield from sorted(found, key=lambda finding: place_of(finding.code))


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


def _findings(target: Target, section: SectionPlan) -> Iterator[Finding]:
    """Yield as findings what the tree has types of its own for."""
    yield from map(as_finding, section.problems)
    for excepted in section.excepted:
        data = {
            "action": excepted.action,
            "before": dict(excepted.before),
            "after": dict(excepted.after),
            "until": str(excepted.until),
        }
        yield Finding(excepted.address, "excepted", excepted.reason, data=data, origin=excepted.origin)
    if section.not_applicable:
        yield Finding(_of_section(target, section.section), "not_applicable", section.not_applicable)
    yield from map(_unmanaged, section.unmanaged)


def as_finding(problem: Problem) -> Finding:
    """Return a problem as an item."""
    return Finding(problem.address, "problem", problem.reason, problem.remedy, problem.field, origin=problem.origin)


def _unmanaged(unmanaged: Unmanaged) -> Finding:
    known = {"ID": unmanaged.id, "owner": unmanaged.owner, "last used": unmanaged.last_used}
    facts = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    data = {
        "id": unmanaged.id,
        "grants_access": unmanaged.grants_access,
        "owner": unmanaged.owner,
        "last_used": unmanaged.last_used,
    }
    return Finding(unmanaged.address, "unmanaged", f"is unmanaged{facts and f': {facts}'}", data=data)


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
    steps: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
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
                _put_finding(item, item.where, sections[item.where.target, item.where.section])
        case _:
            sections[item.address.target, item.address.section].changes.append(item)


def _put_finding(finding: Finding, where: Address, parts: _Parts) -> None:
    read = STEPS.get(finding.code)
    if read is None:
        parts.findings.append(finding)
    else:
        parts.steps[finding.code].append(read(finding, where))


def _problem(finding: Finding, where: Address) -> Problem:
    return Problem(where, finding.reason, finding.field, finding.fix, finding.origin)


def _excepted(finding: Finding, where: Address) -> Excepted:
    data = finding.data
    action, until = cast("Action | None", data["action"]), date.fromisoformat(data["until"])
    return Excepted(where, action, data["before"], data["after"], until, finding.reason, finding.origin)


def _as_unmanaged(finding: Finding, where: Address) -> Unmanaged:
    data = finding.data
    return Unmanaged(where, data["id"], data["grants_access"], data["owner"], data["last_used"])


STEPS: Mapping[str, Callable[[Finding, Address], object]] = {
    "problem": _problem,
    "excepted": _excepted,
    "unmanaged": _as_unmanaged,
    "not_applicable": lambda finding, _where: finding.reason,
}
"""What the tree has types of its own for, by the codes of the findings that stand for them."""


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
    steps = parts.steps
    return SectionPlan(
        name,
        number or 0,
        tuple(parts.changes),
        outcomes=tuple(parts.outcomes),
        problems=tuple(steps["problem"]),
        unmanaged=tuple(steps["unmanaged"]),
        excepted=tuple(steps["excepted"]),
        not_applicable="".join(steps["not_applicable"]),
        findings=tuple(parts.findings),
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
