"""The waves: users, then groups, then projects; targets of a wave side by side.

A group's approval settings decide what its projects may set, which is why groups come first.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from reconciler.address import Scope
from reconciler.apply.outcomes import Status, TargetOutcome, Terms
from reconciler.apply.target import TargetRun, collection_of
from reconciler.kind import Kinds
from reconciler.plan import Create, Plan, TargetPlan
from reconciler.state import Section
from reconciler.wire import Service


def apply_plan(plan: Plan, service: Service, kinds: Kinds, terms: Terms) -> Iterator[TargetOutcome]:
    """Carry out a plan and yield what became of each target that had changes, in the order of the plan.

    A failed change stops nothing but itself; it is an outcome, never an exception.
    """
    dependent: dict[Scope, list[Section]] = {}
    for section in plan.dependent:
        dependent.setdefault(section.scope, []).append(section)

    busy = [target for target in plan.targets if any(target.changes) or target.scope in dependent]
    terms.progress.begin("applying", (target.scope for target in busy))

    def work(target: TargetPlan) -> TargetOutcome:
        outcome = TargetRun(target, service, kinds, terms).run(dependent.get(target.scope, []))
        terms.progress.step(target.scope, sum(each.status is Status.DONE for each in outcome.outcomes))
        return outcome

    with ThreadPoolExecutor(max_workers=terms.concurrency) as pool:
        for _, wave in groupby(busy, key=lambda target: target.scope.level):
            yield from pool.map(work, wave)


def delivering(plan: Plan, kinds: Kinds) -> list[Create]:
    """Return the changes that create something whose value must be delivered."""
    return [
        change
        for change in plan.changes
        if isinstance(change, Create) and collection_of(change.address, kinds).delivers is not None
    ]
