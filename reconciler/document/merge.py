"""The plans, or the reports, of shards merged into one document: `merge_plans` and `merge_reports`. Pure.

Serves `merge`. Parts that do not come from one run are refused before anything is joined.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """Return the plans of all shards as one plan, which is as old as the oldest of them.

    Args:
        parts: the plans by the name of their file, at least one.
        limits: the limits of the whole plan; the limits of its parts are dropped.

    Raises:
        PlanRefused: the plans are not the shards of one run.
    """
    _check_parts(parts)
    plans = list(parts.values())
    return replace(
        _combined(plans),
        limits=limits,
        narrowed=any(plan.narrowed in (True, None) for plan in plans),
        inventory=_merged_inventory(parts),
        applies=max((plan.applies for plan in plans if plan.applies is not None), key=len, default=None),
    )


def _combined(parts: Sequence[RunDocument]) -> RunDocument:
    """Return the first document with the targets and items of all documents, and with their numbers added up."""
    items_of: dict[object, list[Item]] = {}
    for document in parts:
        for target, several in groupby(document.items, key=_target_or_run):
            items_of.setdefault(target, []).extend(several)
    targets = sorted((seen for document in parts for seen in document.targets), key=lambda seen: seen.target.order)
    items = [item for seen in targets for item in items_of.get(seen.target, ())]
    return replace(
        parts[0],
        # the oldest: `--max-age` must count for each part
        created_at=min(document.created_at for document in parts),
        requests_made=sum(document.requests_made for document in parts),
        shard=None,
        archived=sum(document.archived for document in parts),
        targets=tuple(targets),
        items=(*items, *_distinct_findings([item for item in items_of.get(None, ()) if isinstance(item, Finding)])),
    )


def _target_or_run(item: Item) -> object:
    """Return the target of an item; None if it is about the run."""
    return None if is_about_run(item) else target_of(item)


def _distinct_findings(findings: Iterable[Finding]) -> Sequence[Finding]:
    """Return findings about the run without repetitions; a rename that several shards found has all their targets."""
    distinct: dict[object, Finding] = {}
    for finding in findings:
        names = {name: finding.data[name] for name in ("section", "name") if name in finding.data}
        # every shard reads all manifests, and so finds the same things about the run
        key = finding.code, finding.reason, finding.origin, *names.values()
        before = distinct.get(key)
        distinct[key] = _merged_rename(before, finding) if before and finding.code == "rename" else before or finding
    return sorted(distinct.values(), key=_file_line_name)


def _file_line_name(finding: Finding) -> tuple[str, int, str, str]:
    """Return the sort key of a finding about the run: file, line, name."""
    file, _, line = finding.origin.rpartition(":")
    # the length first: as text, line 10 would come before line 9
    return file, len(line), line, str(finding.data.get("name", ""))


def _merged_rename(first_finding: Finding, second_finding: Finding) -> Finding:
    """Return one finding for a possible rename that two shards have found."""
    former = sorted({*first_finding.data["renamed_from"], *second_finding.data["renamed_from"]})
    targets = first_finding.data["targets"] + second_finding.data["targets"]
    return replace(first_finding, data={**first_finding.data, "renamed_from": former, "targets": targets})


def _merged_inventory(parts: Mapping[str, RunDocument]) -> Basis | None:
    """Return the joint inventory facts of all shards; None if a shard has no inventory.

    Raises:
        PlanRefused: the shards were planned from different commits.
    """
    shards = {file: part.inventory for file, part in parts.items() if part.inventory is not None}
    # without the inventory of one shard, its objects may be absent, or were never looked for
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
    """Return the inventory lines that all shards read alike: two different lines do not show which one is newer."""
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
    """Return the reports of shards as one report, from the first beginning to the last end.

    Args:
        parts: the reports by the name of their file, at least one.

    Raises:
        PlanRefused: the reports are not the shards of one run.
    """
    _check_parts(parts)
    reports = list(parts.values())
    requests = [report.requests for report in reports if report.requests]
    reasons = sorted({reason for made in requests for reason in made.waited})
    return replace(
        _combined(reports),
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


def _check_parts(parts: Mapping[str, RunDocument]) -> None:
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


def _refuse_unless_alike(noun: str, things: Mapping[str, Thing], property_of: Callable[[Thing], object]) -> None:
    (first, expected), *others = ((file, property_of(part)) for file, part in things.items())
    for file, other in others:
        if other != expected:
            raise PlanRefused(f"cannot merge: {first} and {file} come from runs with different {noun}")


def _refuse_unless_each_once(shards: Mapping[str, Shard]) -> None:
    """Raise if a shard is missing, or comes twice. Unsharded plans may come in any number."""
    files: dict[Shard, str] = {}
    for file, shard in shards.items():
        first = files.setdefault(shard, file)
        if first != file:
            raise PlanRefused(f"cannot merge: {first} and {file} are both shard {shard}")
    total = max((shard.total for shard in files), default=0)
    missing = [str(shard) for number in range(1, total + 1) if (shard := Shard(number, total)) not in files]
    if missing:
        raise PlanRefused(f"cannot merge: missing shard {', '.join(missing)}")
