"""The doctor: whether token, service and manifests are ready, and the estimated cost of runs.

`check_service` checks the token and the service, `check_targets` the sections of a plan. Both take a `Reader`, which
has no write methods.
"""

from collections.abc import Sequence
from functools import partial

from reconciler.doctor.credentials import check_read_token, check_service
from reconciler.doctor.pipeline import PipelineProject, check_inventory, check_pipeline
from reconciler.doctor.targets import CheckContext, check_lists, check_targets, context_of
from reconciler.document.diagnosis import (
    Costs,
    Diagnosis,
    DoctorFinding,
    Estimate,
    Permission,
    SectionState,
    ServiceCheck,
    TargetState,
    Verdict,
)
from reconciler.engine.apply import repeatable, reread_sections
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan

__all__ = [
    "Costs",
    "Diagnosis",
    "DoctorFinding",
    "Estimate",
    "Permission",
    "PipelineProject",
    "SectionState",
    "ServiceCheck",
    "TargetState",
    "Verdict",
    "chains_of_apply",
    "check_inventory",
    "check_lists",
    "check_pipeline",
    "check_read_token",
    "check_service",
    "check_targets",
    "context_of",
    "costs_of",
    "estimate",
]


def costs_of(context: CheckContext, reads: int, *, latency: float, concurrency: int, interval: float) -> Costs:
    """Return the estimated costs of a plan of some targets, and of its apply.

    Args:
        context: the targets, and their plan.
        reads: the number of requests of a plan.
        latency: see `estimate`.
        concurrency: see `estimate`.
        interval: see `estimate`.
    """
    estimated = partial(estimate, latency=latency, concurrency=concurrency, interval=interval)
    return Costs(
        plan=estimated([1] * reads),
        apply=estimated(chains_of_apply(context.plan, context.checked.run.kinds)),
        changes=sum(1 for _ in context.plan.changes),
        latency=latency,
        concurrency=concurrency,
    )


def estimate(chains: Sequence[int], latency: float, concurrency: int, interval: float) -> Estimate:
    """Return the estimated time of requests, of which chains run in parallel.

    Args:
        chains: the numbers of requests that are made one after the other; chains run in parallel.
        latency: seconds for one response.
        concurrency: chains in flight at most.
        interval: seconds between two requests, by `--rate`.
    """
    requests = sum(chains)
    rounds = max(max(chains, default=0), requests / concurrency)
    return Estimate(requests, max(latency * rounds, interval * requests))


def chains_of_apply(plan: Plan, kinds: Kinds) -> list[int]:
    """Return the number of requests of each changing target: its changes, and the reads before and after them."""
    chains = [_chain(target, kinds) + len(reread_sections(target, kinds)) for target in plan.targets]
    return [chain for chain in chains if chain]


def _chain(planned: TargetPlan, kinds: Kinds) -> int:
    changes = list(planned.changes)
    if planned.creation is not None:
        # one read before the target is created, and one of each part before and after its changes
        parts = {(change.address.section, change.address.part) for change in changes if change.address.section}
        return sum(len(change.requests) for change in changes) + 1 + 2 * len(parts)
    repeated = repeatable(changes, kinds)
    reads = [{(change.address.section, change.address.part) for change in some} for some in (repeated, changes)]
    return sum(len(change.requests) for change in changes) + sum(map(len, reads))
