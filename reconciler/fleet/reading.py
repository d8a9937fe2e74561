"""The stage that reads live state."""

from dataclasses import replace

from reconciler.fleet.survey import Added, Survey
from reconciler.live.read import read_live
from reconciler.planning.creation import empty_parts, existing


def read(run: Survey) -> Added:
    """Read what is declared, as far as it was not read early. Nothing is read of what is absent."""
    there = existing(run.desired, run.absent)
    live = read_live(there, run.reader, run.kinds, run.progress, early=run.early, ids=run.ids)
    absent = (target for target in run.desired.targets if target.target.identity in run.absent)
    return {"live": replace(live, parts={**live.parts, **dict(empty_parts(absent, run.kinds))}, absent=run.absent)}
