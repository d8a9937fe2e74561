"""Drawing up a plan: read, plan, look up the IDs that are still missing, plan again. It cannot write."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from reconciler.kind import Kinds
from reconciler.live import look_up, read_live
from reconciler.plan import Plan
from reconciler.planner import make_plan
from reconciler.progress import Progress
from reconciler.state import DesiredState, LiveState, Reference, Unknown
from reconciler.wire import Reader, TimedReader

NO_IDS: Mapping[Reference, int] = MappingProxyType({})


def draw_plan(
    desired: DesiredState,
    reader: TimedReader,
    kinds: Kinds,
    concurrency: int,
    *,
    known: Mapping[Reference, int] = NO_IDS,
    progress: Progress | None = None,
) -> Plan:
    """Return the plan that turns live state into the desired one, with as few reads as it takes.

    Args:
        desired: what is wanted.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        known: numeric IDs that need not be asked for.
        progress: is told how far it is.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`. Any other failure is a problem in the plan.
    """
    live = read_live(desired, reader, kinds, concurrency, progress)
    return plan_from(desired, live, reader, kinds, concurrency, known=known)


def plan_from(
    desired: DesiredState,
    live: LiveState,
    reader: Reader,
    kinds: Kinds,
    concurrency: int,
    *,
    known: Mapping[Reference, int] = NO_IDS,
) -> Plan:
    """Return the plan for what was read: see `draw_plan`. Only IDs that are missing are asked for."""
    ids: dict[Reference, int | Unknown] = {**known, **live.ids}
    live = replace(live, ids=ids)
    plan, missing = make_plan(desired, live, kinds)
    while missing:
        live = replace(live, ids={**live.ids, **look_up(missing, reader, concurrency)})
        plan, missing = make_plan(desired, live, kinds)
    return plan
