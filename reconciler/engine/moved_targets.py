"""The stage that tells which projects have moved, and are not written to."""

import logging
from collections.abc import Iterator
from dataclasses import replace

from reconciler.engine.compare.creation import empty_parts
from reconciler.engine.records import fetch_record
from reconciler.engine.survey import Added, Move, Survey
from reconciler.errors import ServiceError
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import Unreadable
from reconciler.model.targets import Target

LOG = logging.getLogger("reconciler")


def moved_targets(run: Survey) -> Added:
    """Ask where the projects are whose paths have redirected until now, and warn of each.

    Of what was not read where it is now, nothing is planned, and nobody asks why.
    """
    moved: dict[Target, Move] = {}
    for (level, path), number in run.reader.moved.items():
        target = Target(level, path)
        if target in run.moved or target in run.former:
            continue
        try:
            record = fetch_record(Target(level, number), run.reader)
            move = Move(number, record.path, str(record.fields.get("marked_for_deletion_on") or ""))
        except ServiceError:
            move = Move(number)
        LOG.warning("%s %s %s %s", level, path, "is to be deleted, as" if move.doomed else "has moved to", move)
        moved[target] = move
    obstacles = {
        target.identity: obstacle
        for target, move in moved.items()
        for obstacle in find_obstacles(target, move, follow=run.follow_moved)
    }
    unread = {place[0].identity for place, part in run.live.parts.items() if isinstance(part, Unreadable)}
    absent = {identity: obstacle for identity, obstacle in obstacles.items() if identity in unread}
    gone = (target for target in run.desired.targets if target.target.identity in absent)
    parts = {**run.live.parts, **dict(empty_parts(gone, run.kinds))}
    return {
        "moved": {**run.moved, **moved},
        "obstacles": (*run.obstacles, *(held for identity, held in obstacles.items() if identity not in absent)),
        "live": replace(run.live, parts=parts, absent={**run.live.absent, **absent}),
    }


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
