"""From the options of a command to its plan: which targets it is about, and what would change in them.

Commands import this module only when they run, so that the others start fast.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from reconciler import __version__
from reconciler.cli.applies import ChosenApply
from reconciler.cli.session import Session, naming_document
from reconciler.cli.settings import read_file
from reconciler.document.document import PastApply, RunDocument, is_about, saying
from reconciler.document.plans import plan_of, rename, with_plan
from reconciler.document.stored import load_report
from reconciler.engine.basis import successions, with_basis
from reconciler.engine.compare.creation import variables_of
from reconciler.engine.compare.revert import WayBack
from reconciler.engine.compare.selection import read_shard
from reconciler.engine.plan import draw_plan, plan
from reconciler.engine.run import Run, Scope
from reconciler.errors import ConfigurationError, PlanRefused, UsageError
from reconciler.memory.apply_log import short
from reconciler.memory.committed import committed
from reconciler.memory.store import NO_INVENTORY, OpenInventory
from reconciler.model.item import Finding, Status
from reconciler.model.plan import Plan
from reconciler.model.shards import Shard
from reconciler.model.targets import Address, Target
from reconciler.service import Client

LOG = logging.getLogger("reconciler")

APPLIED = "applied"
"""What `--since` takes instead of a revision, for what stands in the inventory."""


def draw(
    session: Session,
    client: Client,
    *,
    commit: bool = False,
    inventory: OpenInventory = NO_INVENTORY,
    who_after: datetime | None = None,
    restored_after: datetime | None = None,
) -> RunDocument:
    """Read the manifests and live state and return the plan. Nothing is written: see `engine.plan`.

    Args:
        session: the run.
        client: the service.
        commit: whether the plan records the commit of the manifests.
        inventory: the list of what was applied.
        who_after: see `Scope`.
        restored_after: likewise.
    """
    given = session.given
    with surveying(session, client, inventory, who_after=who_after, restored_after=restored_after) as run:
        planned = plan(run)
    _warn_of_variables(planned.plan)
    declared, past = planned.declared, planned.declared.past
    records = commit or inventory.store is not None
    known = committed(session.inputs, declared.manifests) if records else ""
    whole = not given.narrowed and (given.since in (None, APPLIED) or given.everything)
    shown, basis = with_basis(planned, known, whole=whole) if records else (planned.plan, None)
    drawn = _saved(session, client, shown, declared.desired.digest)
    remarks = (*planned.absences.remarks, *successions(planned))
    said = (*map(rename, planned.hints), *(Finding(None, "stays", remark) for remark in remarks))
    return replace(
        saying(drawn, *said),
        shard=run.scope.shard,
        since=past.then.revision if past else "",
        archived=len(planned.archived_left_out),
        narrowed=given.narrowed or (given.since is not None and not given.everything),
        restored_since=restored_after,
        applies=None if inventory.applies is None else tuple(map(PastApply.of, inventory.applies)),
        inventory=basis,
        commit=None if given.narrowed else known or None,
    )


def _warn_of_variables(drawn: Plan) -> None:
    """Warn once of each environment variable with the token of an import that is not set."""
    lacking: dict[str, list[Target]] = {}
    for target in drawn.targets:
        for variable in variables_of(target):
            if not os.environ.get(variable, "").strip():
                lacking.setdefault(variable, []).append(target.target)
    for variable, targets in lacking.items():
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        LOG.warning("%s is not set or empty, and the import of %s%s needs it", variable, targets[0], more)


def draw_way_back(session: Session, client: Client, apply: ChosenApply) -> RunDocument:
    """Read the report of an apply and live state, and return the plan of the way back. Nothing is written.

    Args:
        session: the run.
        client: the service.
        apply: which one.

    Raises:
        PlanRefused: the file is not such a report, was edited, or is about another service or another apply.
    """
    given, file, logged = session.given, apply.file, apply.logged
    try:
        text = read_file(file)
        with naming_document(file):
            report = load_report(text, session.kinds)
    except (ConfigurationError, PlanRefused) as error:
        raise type(error)(f"{error}; reconciler log shows the last applies") from error
    if not is_about(report.service, client.api_url):
        there = f"revert it there, with --api-url {report.service} and a token of that service"
        raise PlanRefused(f"{file}: the report is about {report.service}, and this is {client.api_url}; {there}")
    if logged and logged.when != report.finished_at:
        raise PlanRefused(
            f"{file}: the report is of an apply that ended at {report.time:%Y-%m-%d %H:%M:%S} UTC, and "
            f"{short(apply.name)} ended at {logged.when:%Y-%m-%d %H:%M:%S} UTC"
        )
    way_back = WayBack(plan_of(report).targets, session.kinds, sha256(text.encode()).hexdigest())
    left = session.select(way_back.left)
    with session.planning(client.traffic) as progress:
        back = draw_plan(
            left,
            client,
            session.kinds,
            make=way_back.plan,
            progress=progress,
            api_url=client.api_url,
            follow_moved=given.follow_moved,
        )
    saved = _saved(session, client, back, left.digest)
    commit = (logged.manifests if logged else "") or report.commit
    return replace(saved, reverts=apply.name, commit=commit, narrowed=given.narrowed)


def _saved(session: Session, client: Client, drawn: Plan, digest: str) -> RunDocument:
    """Return a plan that was made now, as it can be saved."""
    head = RunDocument(
        service=client.api_url,
        created_at=session.now().replace(microsecond=0),
        tool_version=__version__,
        manifests_digest=digest,
        requests_made=client.traffic.reads,
        limits=session.limits(),
    )
    return with_plan(head, drawn)


def _failed_before(session: Session) -> frozenset[Address] | None:
    """Return what a previous run did not do, for `--retry-failed`; None without it."""
    file = session.given.retry_failed
    if file is None:
        return None
    report = session.read_report(Path(file))
    if report.reverts:
        raise UsageError(f"{file} is the report of a revert; finish that with: {report.finish}")
    failed = frozenset(each.change.address for each in report.outcomes if each.status is not Status.DONE)
    if not failed:
        session.info(f"Nothing failed in {file}.")
    return failed


@contextmanager
def surveying(
    session: Session,
    client: Client,
    inventory: OpenInventory = NO_INVENTORY,
    *,
    locks_bind: bool = True,
    who_after: datetime | None = None,
    restored_after: datetime | None = None,
) -> Iterator[Run]:
    """Read the manifests, and yield what the command asks; progress is shown while this block runs.

    Args:
        session: the run.
        client: the service.
        inventory: the list of what was applied.
        locks_bind: whether a broken lock is an error.
        who_after: see `Scope`.
        restored_after: likewise.

    Raises:
        ManifestErrors: with every error of every file, or of the `reconciler.yaml` of the revision of `--since`.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: an option is not what it should be.
    """
    given, failed = session.given, _failed_before(session)
    with session.planning(client.traffic) as progress:
        progress.begin("reading manifests")
        scope = Scope(
            session.selection,
            failed,
            everything=given.everything,
            since_applied=given.since == APPLIED,
            shard=_shard(given.shard),
            grace=session.grace,
            forced=given.force_events,
            only_change=given.only_change,
            who_after=who_after,
            restored_after=restored_after,
        )
        if given.everything and given.since is None:
            raise UsageError("--all goes with --since; without it, all targets are planned anyway")
        if given.only_change and given.since in (None, APPLIED):
            raise UsageError("--only-change goes with --since REV, a git revision")
        now = session.manifests(locks_bind=locks_bind, dated=False)
        past = None if given.since in (None, APPLIED) else session.revision(given.since, now)
        session.check_sections()
        yield Run(
            client,
            session.kinds,
            now,
            past,
            scope,
            inventory=inventory,
            inputs=session.inputs,
            progress=progress,
            api_url=client.api_url,
            follow_moved=given.follow_moved,
        )
        session.warn_of(now.ending(session.now().date()))


def _shard(given: str | None) -> Shard | None:
    """Return the shard that was given, else that of a parallel CI job, with a warning."""
    if given is not None:
        return read_shard(given)
    number, total = os.environ.get("CI_NODE_INDEX"), os.environ.get("CI_NODE_TOTAL")
    if not (number and total):
        return None
    shard = read_shard(f"{number}/{total}")
    if shard.total > 1:
        LOG.warning(
            "only shard %s of the targets, as CI_NODE_INDEX and CI_NODE_TOTAL say; for all targets add --shard 1/1",
            shard,
        )
    return shard
