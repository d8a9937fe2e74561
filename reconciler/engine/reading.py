"""The stage that reads live state."""

from dataclasses import replace

from reconciler.engine.compare.creation import empty_parts, existing
from reconciler.engine.read import read_live
from reconciler.engine.survey import Added, Survey


def read(run: Survey) -> Added:
    """Read what is declared, as far as it was not read early. Nothing is read of what is absent."""
    absent, ids = run.live.absent, run.live.ids
    there = existing(run.desired, absent)
    live = read_live(there, run.reader, run.kinds, run.progress, early=run.early, ids=ids)
    missing = (target for target in run.desired.targets if target.target.identity in absent)
    parts = {**live.parts, **dict(empty_parts(missing, run.kinds))}
    return {"live": replace(live, parts=parts, absent=absent, ids={**ids, **live.ids})}
