"""Sets whose groups cannot be listed: nothing is planned for what they may select, their groups are problems. Pure."""

from collections.abc import Collection
from dataclasses import replace

from reconciler.manifests import UnlistedSet
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Target


def hold_unlisted(
    desired: DesiredState, unlisted: Collection[UnlistedSet]
) -> tuple[DesiredState, tuple[Obstacle, ...]]:
    """Return a state in which nothing depends on sets whose groups cannot be listed, and an obstacle for each target.

    Nothing is planned for a project that one of the sets may select, since nobody knows what all its sets declare. The
    groups are among the targets, so that the plan reports them.

    Args:
        desired: what is to be planned.
        unlisted: such sets.
    """
    obstacles: dict[Target, Obstacle] = {}
    targets = {target.target.identity: target for target in desired.targets}
    for unlisted_set in unlisted:
        for name, target in targets.items():
            if unlisted_set.may_select(target):
                targets[name] = replace(target, sections=(), creation=None)
                listed = unlisted_set.obstacle.where.target
                reason = f"its sets are unknown, because the projects of {listed} cannot be listed"
                obstacles[target.target] = Obstacle(target.target.address, reason)
    for unlisted_set in unlisted:
        named = unlisted_set.obstacle.where.target
        selector = targets.setdefault(named.identity, DesiredTarget(named, (), unlisted_set.origin))
        obstacles.setdefault(selector.target, unlisted_set.obstacle.at(selector.target.address))
    ordered = sorted(targets.values(), key=lambda target: target.target.order)
    return replace(desired, targets=tuple(ordered)), tuple(obstacles.values())
