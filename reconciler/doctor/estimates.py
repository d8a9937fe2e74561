"""What a run costs: its requests, and the time they take at the pace that was measured. Pure."""

from collections import Counter
from collections.abc import Sequence

from reconciler.apply import planned_again, repeatable
from reconciler.doctor.findings import Estimate
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan


def estimate(chains: Sequence[int], latency: float, concurrency: int, apart: float) -> Estimate:
    """Estimate requests that are made side by side.

    Args:
        chains: how many requests must be made one after the other, for each of those that go side by side.
        latency: seconds that an answer takes.
        concurrency: how many chains at once.
        apart: seconds between two requests, by the rate that the run sets itself.
    """
    requests = sum(chains)
    rounds = max(max(chains, default=0), requests / concurrency)
    return Estimate(requests, max(latency * rounds, apart * requests))


def chains_of_apply(plan: Plan, kinds: Kinds) -> list[int]:
    """Return how many requests each target takes, one after the other: its changes, and looks before and after them."""
    again = Counter(section.target for section in planned_again(plan))
    chains = [_chain(target, kinds) + again[target.target] for target in plan.targets]
    return [chain for chain in chains if chain]


def _chain(target: TargetPlan, kinds: Kinds) -> int:
    changes = list(target.changes)
    before = [change for section in target.sections for change in repeatable(section, kinds)]
    looks = [{(change.address.section, change.address.part) for change in each} for each in (before, changes)]
    return sum(len(change.requests) for change in changes) + sum(map(len, looks))
