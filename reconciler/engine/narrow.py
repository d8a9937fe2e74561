"""The stages that narrow a run: to what is selected, and to one shard of it."""

import logging
from dataclasses import replace

from reconciler.engine.compare.selection import remarks, share
from reconciler.engine.compare.selection import select as selected
from reconciler.engine.survey import Added, FleetSurvey
from reconciler.engine.unlisted_sets import hold_unlisted

LOG = logging.getLogger("reconciler")


def select(run: FleetSurvey) -> Added:
    """Return what is selected, and has changed; without what sets may select whose groups cannot be listed.

    Raises:
        NothingSelected, UsageError: see `selection.select`.
    """
    scope, whole = run.scope, run.whole
    only = None if scope.failed is None else {(section.target, section.section) for section in scope.failed}
    unlisted = run.manifests.unlisted
    desired = selected(whole, replace(scope.selection, only=only), partly=bool(unlisted))
    for remark in () if unlisted else remarks(scope.selection, whole):
        LOG.warning("%s", remark)
    if run.changed is not None and not scope.everything and scope.failed is None:
        changed = tuple(target for target in desired.targets if target.target in run.changed)
        desired = replace(desired, targets=changed)
    desired, unknown = hold_unlisted(desired, unlisted)
    held = {obstacle.where.target for obstacle in unknown}
    told = (obstacle for obstacle in run.obstacles if obstacle.effect != "problem" or obstacle.where.target not in held)
    return {
        "desired": replace(desired, grace=scope.grace, forced=scope.forced),
        "obstacles": (*told, *unknown),
    }


def divide(run: FleetSurvey) -> Added:
    """Return the shard of it, if there are several."""
    if run.scope.shard is None:
        return {}
    return {"desired": share(run.desired, run.whole, run.scope.shard, run.kinds)}
