"""Plans and reports of shards put together to one. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.errors import PlanRefused
from reconciler.model.plan import Plan
from reconciler.model.targets import Target
from reconciler.planning.guard import NO_LIMITS, Limits
from reconciler.planning.shards import Shard

Thing = TypeVar("Thing")


def merge_plans(parts: Mapping[str, SavedPlan], limits: Limits = NO_LIMITS) -> SavedPlan:
    """Return the plans of shards as one. It is as old as the oldest of them.

    Args:
        parts: by the name of the file, at least one.
        limits: what is allowed for the whole; what was allowed for a part says nothing of the whole.

    Raises:
        PlanRefused: they are not parts of one whole.
    """
    headers = {file: saved.header for file, saved in parts.items()}
    first = next(iter(headers.values()))
    _refuse_unless_alike("service", {file: header.service for file, header in headers.items()})
    _refuse_unless_alike("manifests", {file: header.manifests_digest for file, header in headers.items()})
    _refuse_unless_alike("version of the reconciler", {file: header.tool_version for file, header in headers.items()})
    _refuse_unless_all({file: header.shard for file, header in headers.items()})
    _refuse_twice({file: [target.target for target in saved.plan.targets] for file, saved in parts.items()})
    targets = [target for saved in parts.values() for target in saved.plan.targets]
    dependent = [section for saved in parts.values() for section in saved.plan.dependent]
    header = replace(
        first,
        created_at=min(header.created_at for header in headers.values()),
        requests_made=sum(header.requests_made for header in headers.values()),
        shard=None,
        limits=limits,
    )
    plan = Plan(_ordered(targets, lambda target: target.target), _ordered(dependent, lambda section: section.target))
    return SavedPlan(header, plan)


def merge_reports(parts: Mapping[str, Report]) -> Report:
    """Return the reports of shards as one, from the first beginning to the last end.

    Args:
        parts: by the name of the file, at least one.

    Raises:
        PlanRefused: they are not parts of one whole.
    """
    reports = list(parts.values())
    _refuse_unless_alike("service", {file: report.service for file, report in parts.items()})
    _refuse_unless_alike("manifests", {file: report.manifests_digest for file, report in parts.items()})
    _refuse_unless_alike("version of the reconciler", {file: report.tool_version for file, report in parts.items()})
    _refuse_unless_all({file: report.shard for file, report in parts.items()})
    _refuse_twice({file: [target.plan.target for target in report.targets] for file, report in parts.items()})
    targets = [target for report in reports for target in report.targets]
    reasons = sorted({reason for report in reports for reason in report.waited})
    return replace(
        reports[0],
        started_at=min(report.started_at for report in reports),
        finished_at=max(report.finished_at for report in reports),
        reads=sum(report.reads for report in reports),
        writes=sum(report.writes for report in reports),
        waited={reason: round(sum(report.waited.get(reason, 0.0) for report in reports), 1) for reason in reasons},
        targets=_ordered(targets, lambda target: target.plan.target),
        shard=None,
    )


def _refuse_unless_alike(what: str, values: Mapping[str, str]) -> None:
    (first, wanted), *rest = values.items()
    for file, value in rest:
        if value != wanted:
            raise PlanRefused(f"not parts of one whole: {first} and {file} are not of the same {what}")


def _refuse_unless_all(shards: Mapping[str, Shard | None]) -> None:
    """Refuse shards of which one is missing. Parts that are no shards are as many as there are."""
    _refuse_unless_alike("division into shards", {file: str(shard and shard.total) for file, shard in shards.items()})
    found = {shard.number: shard.total for shard in shards.values() if shard}
    total = next(iter(found.values()), 0)
    missing = [str(Shard(number, total)) for number in range(1, total + 1) if number not in found]
    if missing:
        raise PlanRefused(f"not parts of one whole: there is no shard {', '.join(missing)}")


def _refuse_twice(scopes: Mapping[str, Iterable[Target]]) -> None:
    files: dict[object, str] = {}
    for file, found in scopes.items():
        for target in found:
            first = files.setdefault(target.identity, file)
            if first != file:
                raise PlanRefused(f"not parts of one whole: {target} is in {first} and in {file}")


def _ordered(things: Iterable[Thing], target: Callable[[Thing], Target]) -> tuple[Thing, ...]:
    return tuple(sorted(things, key=lambda thing: target(thing).order))
