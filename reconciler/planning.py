"""Drawing up a plan: read, plan, look up the IDs that are still missing, plan again. It cannot write."""

from dataclasses import replace

from reconciler.kind import Kinds
from reconciler.live import look_up, read_live
from reconciler.plan import Plan
from reconciler.planner import make_plan
from reconciler.state import DesiredState
from reconciler.wire import Reader


def draw_plan(desired: DesiredState, reader: Reader, kinds: Kinds, concurrency: int) -> Plan:
    """Return the plan that turns live state into the desired one, with as few reads as it takes.

    Raises:
        Unauthorized, Unreachable: nothing could be read. Any other failure is a problem in the plan.
    """
    live = read_live(desired, reader, kinds, concurrency)
    plan, missing = make_plan(desired, live, kinds)
    while missing:
        live = replace(live, ids={**live.ids, **look_up(missing, reader, concurrency)})
        plan, missing = make_plan(desired, live, kinds)
    return plan
