"""The stage that tells which projects have moved, and are not written to."""

import logging
from collections.abc import Iterator

from reconciler.errors import ServiceError
from reconciler.fleet.survey import Added, Move, Survey
from reconciler.live.records import fetch_record
from reconciler.model.obstacle import Obstacle
from reconciler.model.targets import Target

LOG = logging.getLogger("reconciler")


def moved_targets(run: Survey) -> Added:
    """Ask where the projects are whose paths have redirected until now, and warn of each."""
    moved: dict[Target, Move] = {}
    for (level, path), number in run.reader.moved.items():
        try:
            record = fetch_record(Target(level, number), run.reader)
            move = Move(number, record.path, str(record.fields.get("marked_for_deletion_on") or ""))
        except ServiceError:
            move = Move(number)
        LOG.warning("%s %s %s %s", level, path, "is to be deleted, as" if move.doomed else "has moved to", move)
        moved[Target(level, path)] = move
    obstacles = (
        obstacle for target, move in moved.items() for obstacle in find_obstacles(target, move, follow=run.follow_moved)
    )
    return {"moved": moved, "obstacles": (*run.obstacles, *obstacles)}


def find_obstacles(target: Target, move: Move, *, follow: bool) -> Iterator[Obstacle]:
    """Yield why a target is not written to, if it is not.

    Args:
        target: as the manifest names it.
        move: where it is.
        follow: whether projects that have moved are written to.
    """
    if move.doomed:
        how = f"since {move.day}" if move.day else "with its group"
        reason = f"scheduled for deletion {how}, and called {move} until then"
        yield Obstacle(target.address, reason, "restore it, or remove it from the manifests", effect="read only")
    elif not follow:
        remedy = "use its new path in the manifest, or add --follow-moved"
        yield Obstacle(target.address, f"moved to {move}", remedy, effect="read only")
