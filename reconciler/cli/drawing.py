"""Drawing up a plan by what the command line asks for. Commands import it once they run, so that others start fast."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from reconciler import __version__
from reconciler.apply import Status
from reconciler.cli.fleet import fleet_of_run
from reconciler.cli.session import Session, read_file
from reconciler.documents.plan_file import Header, SavedPlan
from reconciler.documents.report import load_report
from reconciler.errors import ServiceError
from reconciler.live.read import ask_for_record, path_in
from reconciler.manifests import Manifests
from reconciler.model.plan import TargetPlan
from reconciler.model.targets import Address, Target
from reconciler.planning.guard import Limits
from reconciler.planning.run import Move, draw_plan
from reconciler.planning.selection import add_missing, add_problems, hold_back_moved, restrict
from reconciler.service import Client

LOG = logging.getLogger("reconciler")


def draw(session: Session, client: Client, grace: timedelta = timedelta()) -> SavedPlan:
    """Read the manifests and live state and return the plan. Nothing is written: see `planning.draw_plan`.

    Args:
        session: the run.
        client: the service.
        grace: see `DesiredState.grace`.
    """
    given = session.given
    failed = failed_before(session)
    with session.watched(client) as progress:
        progress.begin("reading manifests")
        scope = fleet_of_run(session, client, failed)
        desired = replace(scope.desired, grace=grace, forced=given.force_events)
        moved = cache(partial(moved_projects, client))
        known = replace(scope.known, moved=moved)
        plan = draw_plan(
            desired,
            client,
            session.kinds,
            given.concurrency,
            known=known,
            progress=progress,
            api_url=client.api_url,
        )
    plan = add_problems(plan, scope.kept)
    if failed is not None:
        plan = restrict(plan, failed)
        declared = {(target.target, section.kind) for target in scope.known.targets for section in target.sections}
        if scope.shard is not None and scope.shard.number > 1:
            # What no manifest declares is told by the first shard alone.
            failed = frozenset(each for each in failed if (each.target, each.section) in declared)
        plan = add_missing(plan, failed, declared, session.selection)
    if not given.follow_moved:
        plan = hold_back_moved(plan, moved())
    plan = replace(plan, targets=tuple(_located(target, scope.manifests) for target in plan.targets))
    header = Header(
        service=client.api_url,
        created_at=datetime.now(UTC).replace(microsecond=0),
        tool_version=__version__,
        manifests_digest=desired.digest,
        requests_made=client.traffic.reads,
        shard=scope.shard,
        limits=Limits(given.allow_deletes, given.max_changes),
    )
    return SavedPlan(header, plan)


def _located(target: TargetPlan, manifests: Manifests) -> TargetPlan:
    return target.with_origins(manifests.origin) if any(target.problems) else target


def failed_before(session: Session) -> frozenset[Address] | None:
    """Return what a former run did not do, if it is to be done now."""
    file = session.given.retry_failed
    if file is None:
        return None
    report = load_report(read_file(Path(file)), session.kinds)
    failed = frozenset(each.change.address for each in report.outcomes if each.status is not Status.DONE)
    if not failed:
        session.tell(f"Nothing failed in {file}.")
    return failed


def moved_projects(client: Client) -> dict[Target, Move]:
    """Return which projects turned out to have moved, and where to, and tell it."""
    moves = {}
    for (level, path), number in client.moved.items():
        try:
            move = Move(number, path_in(ask_for_record(Target(level, number), client), level))
        except (ServiceError, LookupError, TypeError):
            move = Move(number)
        LOG.warning("%s %s has moved to %s", level, path, move)
        moves[Target(level, path)] = move
    return moves
