"""The plans, or the reports, of shards merged into one. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Canary, Report, Requests, alike
from reconciler.errors import PlanRefused
from reconciler.model.inventory import Inventory
from reconciler.model.plan import TargetPlan
from reconciler.model.upkeep import Prospect
from reconciler.planning.guard import NO_LIMITS, Limits
from reconciler.planning.renames import united
from reconciler.planning.selection import Shard

Part = TypeVar("Part", SavedPlan, Report)
Thing = TypeVar("Thing")


def merge_plans(parts: Mapping[str, SavedPlan], limits: Limits = NO_LIMITS) -> SavedPlan:
    """Return the plans of shards as one. It is as old as the oldest of them.

    Args:
        parts: by the name of the file, at least one.
        limits: what is allowed for the whole; what was allowed for a part says nothing of the whole.

    Raises:
        PlanRefused: they are not parts of one whole.
    """
    _check(parts)
    plans = list(parts.values())
    return replace(
        plans[0],
        created_at=min(saved.created_at for saved in plans),
        requests_made=sum(saved.requests_made for saved in plans),
        shard=None,
        narrowed=any(saved.narrowed in (True, None) for saved in plans),
        limits=limits,
        archived=sum(saved.archived for saved in plans),
        hints=united(hint for saved in plans for hint in saved.hints),
        inventory=_merged({file: saved.inventory for file, saved in parts.items()}),
        remarks=tuple(dict.fromkeys(remark for saved in plans for remark in saved.remarks)),
        applies=max((saved.applies for saved in plans if saved.applies is not None), key=len, default=None),
        targets=tuple(sorted((target for saved in plans for target in saved.targets), key=_order)),
        dependent=tuple(
            sorted(
                (section for saved in plans for section in saved.dependent), key=lambda section: section.target.order
            )
        ),
    )


def _merged(prospects: Mapping[str, Prospect | None]) -> Prospect | None:
    """Return what an apply of all shards records; None if a shard does not know what its apply records.

    Raises:
        PlanRefused: it would be recorded of different commits.
    """
    recorded = {file: prospect for file, prospect in prospects.items() if prospect is not None}
    if len(recorded) < len(prospects):
        return None
    _refuse_unless_alike("commits", recorded, lambda prospect: prospect.run.commit)
    known = list(recorded.values())
    runs = [prospect.run for prospect in known]
    run = replace(
        runs[0],
        parts=tuple(part for run in runs for part in run.parts),
        targets=tuple(target for run in runs for target in run.targets),
        whole=all(run.whole for run in runs),
        declared=frozenset().union(*(run.declared for run in runs)),
        unknown=frozenset().union(*(run.unknown for run in runs)),
        released=frozenset().union(*(run.released for run in runs)),
        backwards=any(run.backwards for run in runs),
    )
    absences = tuple(line for prospect in known for line in prospect.absences)
    return Prospect(run, _seen_by_all([prospect.seen for prospect in known]), absences)


def _seen_by_all(lists: Sequence[Inventory]) -> Inventory:
    """Return the lines that all shards saw: of any other line, one of them does not know whether it is newer."""
    first = lists[0]
    return replace(
        first,
        applied=first.applied if len({seen.applied for seen in lists}) == 1 else "",
        targets={
            name: line for name, line in first.targets.items() if all(seen.targets.get(name) == line for seen in lists)
        },
        objects={
            key: line for key, line in first.objects.items() if all(seen.objects.get(key) == line for seen in lists)
        },
    )


def merge_reports(parts: Mapping[str, Report]) -> Report:
    """Return the reports of shards as one, from the first beginning to the last end.

    Args:
        parts: by the name of the file, at least one.

    Raises:
        PlanRefused: they are not parts of one whole.
    """
    _check(parts)
    reports = list(parts.values())
    requests = [report.requests for report in reports]
    reasons = sorted({reason for made in requests for reason in made.waited})
    return replace(
        reports[0],
        started_at=min(report.started_at for report in reports),
        finished_at=max(report.finished_at for report in reports),
        requests=Requests(
            reads=sum(made.reads for made in requests),
            writes=sum(made.writes for made in requests),
            waited={reason: round(sum(made.waited.get(reason, 0.0) for made in requests), 1) for reason in reasons},
        ),
        targets=tuple(sorted((target for report in reports for target in report.targets), key=_order)),
        in_order=alike(group for report in reports for group in report.in_order),
        remarks=tuple(dict.fromkeys(remark for report in reports for remark in report.remarks)),
        canary=_merged_canary([report.canary for report in reports if report.canary]),
        shard=None,
    )


def _merged_canary(canaries: Sequence[Canary]) -> Canary | None:
    """Return the canaries of shards as one: each shard went on by itself."""
    if not canaries:
        return None
    return replace(
        canaries[0],
        targets=tuple(target for canary in canaries for target in canary.targets),
        changes=sum(canary.changes for canary in canaries),
        result="verified" if all(canary.result == "verified" for canary in canaries) else "not in order",
        started_at=min(canary.started_at for canary in canaries),
        finished_at=max(canary.finished_at for canary in canaries),
    )


def _order(target: TargetPlan) -> tuple[object, ...]:
    return target.target.order


def _check(parts: Mapping[str, Part]) -> None:
    """Refuse parts that do not come from one run."""
    _refuse_unless_alike("services", parts, lambda part: part.service)
    _refuse_unless_alike("manifests", parts, lambda part: part.manifests_digest)
    _refuse_unless_alike("commits", parts, lambda part: part.commit)
    _refuse_unless_alike("versions of the reconciler", parts, lambda part: part.tool_version)
    _refuse_unless_alike("shard counts", parts, lambda part: part.shard and part.shard.total)
    _refuse_unless_each_once({file: part.shard for file, part in parts.items() if part.shard})
    files: dict[object, str] = {}
    for file, part in parts.items():
        for target in part.all_targets:
            first = files.setdefault(target.identity, file)
            if first != file:
                raise PlanRefused(f"cannot merge: {target} is in {first} and in {file}")


def _refuse_unless_alike(what: str, parts: Mapping[str, Thing], value: Callable[[Thing], object]) -> None:
    (first, wanted), *rest = ((file, value(part)) for file, part in parts.items())
    for file, other in rest:
        if other != wanted:
            raise PlanRefused(f"cannot merge: {first} and {file} come from runs with different {what}")


def _refuse_unless_each_once(shards: Mapping[str, Shard]) -> None:
    """Raise if a shard is missing, or there twice. Unsharded plans may come in any number."""
    files: dict[Shard, str] = {}
    for file, shard in shards.items():
        first = files.setdefault(shard, file)
        if first != file:
            raise PlanRefused(f"cannot merge: {first} and {file} are both shard {shard}")
    total = max((shard.total for shard in files), default=0)
    missing = [str(shard) for number in range(1, total + 1) if (shard := Shard(number, total)) not in files]
    if missing:
        raise PlanRefused(f"cannot merge: missing shard {', '.join(missing)}")
