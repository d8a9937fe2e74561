"""The plans, or the reports, of shards merged into one. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from reconciler.document.document import Canary, Requests, RunDocument
from reconciler.document.guard import NO_LIMITS, Limits
from reconciler.errors import PlanRefused
from reconciler.memory.inventory import Inventory
from reconciler.memory.projection import Basis
from reconciler.model.item import Finding, Item, is_about_run, target_of
from reconciler.model.shards import Shard

Thing = TypeVar("Thing")


def merge_plans(parts: Mapping[str, RunDocument], limits: Limits = NO_LIMITS) -> RunDocument:
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
        _together(plans),
        limits=limits,
        narrowed=any(plan.narrowed in (True, None) for plan in plans),
        inventory=_merged(parts),
        applies=max((plan.applies for plan in plans if plan.applies is not None), key=len, default=None),
    )


def _together(documents: Sequence[RunDocument]) -> RunDocument:
    """Return what plans and reports of shards have in common, and all their targets and items."""
    own: dict[object, list[Item]] = {}
    for document in documents:
        for target, several in groupby(document.items, key=_place):
            own.setdefault(target, []).extend(several)
    targets = sorted((seen for document in documents for seen in document.targets), key=lambda seen: seen.target.order)
    items = [item for seen in targets for item in own.get(seen.target, ())]
    return replace(
        documents[0],
        created_at=min(document.created_at for document in documents),
        requests_made=sum(document.requests_made for document in documents),
        shard=None,
        archived=sum(document.archived for document in documents),
        targets=tuple(targets),
        items=(*items, *_said_once([item for item in own.get(None, ()) if isinstance(item, Finding)])),
    )


def _place(item: Item) -> object:
    """Return the target of an item; None if it is about the run."""
    return None if is_about_run(item) else target_of(item)


def _said_once(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return what is said of the run, each of it once; of one possible rename in several shards, all its targets."""
    said: dict[object, Finding] = {}
    for finding in findings:
        names = {name: finding.data[name] for name in ("section", "name") if name in finding.data}
        key = finding.code, finding.reason, finding.origin, *names.values()
        before = said.get(key)
        said[key] = _united(before, finding) if before and finding.code == "rename" else before or finding
    return sorted(said.values(), key=_order)


def _order(finding: Finding) -> tuple[str, int, str, str]:
    """Return what is said of the run by file and line, as far as it is about one."""
    file, _, line = finding.origin.rpartition(":")
    return file, len(line), line, str(finding.data.get("name", ""))


def _united(first: Finding, other: Finding) -> Finding:
    """Return one possible rename that two shards have found."""
    former = sorted({*first.data["renamed_from"], *other.data["renamed_from"]})
    targets = first.data["targets"] + other.data["targets"]
    return replace(first, data={**first.data, "renamed_from": former, "targets": targets})


def _merged(parts: Mapping[str, RunDocument]) -> Basis | None:
    """Return what all shards were planned from; None if one of them has no inventory.

    Raises:
        PlanRefused: their manifests are of different commits.
    """
    shards = {file: part.inventory for file, part in parts.items() if part.inventory is not None}
    if len(shards) < len(parts):
        return None
    _refuse_unless_alike("commits", shards, lambda basis: basis.commit)
    known = list(shards.values())
    return replace(
        known[0],
        seen=_seen_by_all([basis.seen for basis in known]),
        whole=all(basis.whole for basis in known),
        absent=tuple(key for basis in known for key in basis.absent),
        missing=tuple(key for basis in known for key in basis.missing),
        declared={name: parts for basis in known for name, parts in basis.declared.items()},
        released={name: parts for basis in known for name, parts in basis.released.items()},
        unknown=tuple(dict.fromkeys(name for basis in known for name in basis.unknown)),
    )


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


def merge_reports(parts: Mapping[str, RunDocument]) -> RunDocument:
    """Return the reports of shards as one, from the first beginning to the last end.

    Args:
        parts: by the name of the file, at least one.

    Raises:
        PlanRefused: they are not parts of one whole.
    """
    _check(parts)
    reports = list(parts.values())
    requests = [report.requests for report in reports if report.requests]
    reasons = sorted({reason for made in requests for reason in made.waited})
    return replace(
        _together(reports),
        started_at=min(report.started_at for report in reports if report.started_at),
        finished_at=max(report.time for report in reports),
        requests=Requests(
            reads=sum(made.reads for made in requests),
            writes=sum(made.writes for made in requests),
            waited={reason: round(sum(made.waited.get(reason, 0.0) for made in requests), 1) for reason in reasons},
        ),
        inventory=None,
        canary=_merged_canary([report.canary for report in reports if report.canary]),
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


def _check(parts: Mapping[str, RunDocument]) -> None:
    """Refuse parts that do not come from one run."""
    _refuse_unless_alike("services", parts, lambda part: part.service)
    _refuse_unless_alike("manifests", parts, lambda part: part.manifests_digest)
    _refuse_unless_alike("commits", parts, lambda part: part.commit)
    _refuse_unless_alike("versions of the reconciler", parts, lambda part: part.tool_version)
    _refuse_unless_alike("shard counts", parts, lambda part: part.shard and part.shard.total)
    _refuse_unless_each_once({file: part.shard for file, part in parts.items() if part.shard})
    files: dict[object, str] = {}
    for file, part in parts.items():
        for seen in part.targets:
            first = files.setdefault(seen.target.identity, file)
            if first != file:
                raise PlanRefused(f"cannot merge: {seen.target} is in {first} and in {file}")


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
