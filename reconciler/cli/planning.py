"""From the options of a command to its plan: which targets it is about, and what would change in them.

Commands import this module only when they run, so that the others start fast.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from reconciler import __version__
from reconciler.apply import Status
from reconciler.cli.session import Session, naming_document
from reconciler.cli.settings import read_file
from reconciler.documents.plan_file import SavedPlan, is_about
from reconciler.documents.report import load_report
from reconciler.errors import PlanRefused, UsageError
from reconciler.fleet.stages import GIVEN, STAGES, survey
from reconciler.fleet.survey import FleetSurvey, Scope, Survey
from reconciler.gitops.applied import committed
from reconciler.model.plan import Plan
from reconciler.model.progress import Progress
from reconciler.model.targets import Address, Target
from reconciler.planning.creation import variables_of
from reconciler.planning.renames import rename_hints
from reconciler.planning.revert import WayBack
from reconciler.planning.selection import Shard, add_missing, read_shard, restrict
from reconciler.service import Client

LOG = logging.getLogger("reconciler")

NO_OBJECTS: Mapping[str, str] = MappingProxyType({})
NARROWED = "it is narrowed to some targets, sections or changes"


def draw(session: Session, client: Client, grace: timedelta = timedelta(), *, commit: bool = False) -> SavedPlan:
    """Read the manifests and live state and return the plan. Nothing is written: see `fleet.STAGES`.

    Args:
        session: the run.
        client: the service.
        grace: see `DesiredState.grace`.
        commit: whether the plan records the commit of the manifests.
    """
    given = session.given
    failed = failed_before(session)
    with session.watched(client) as progress:
        progress.begin("reading manifests")
        run, objects = begin(session, client, progress, failed, partly=True, grace=grace)
        run = survey(run, STAGES)
    plan = run.plan
    _warn_of_variables(plan)
    if run.scope.failed is not None:
        plan = retried(run, plan, run.scope.failed)
    plan = replace(plan, targets=tuple(each.with_origins(run.manifests.origin) for each in plan.targets))
    hints = rename_hints(plan, session.kinds, run.manifests.declaration)
    saved = _saved(session, client, plan, run.desired.digest, run.scope.shard)
    narrowed = given.narrowed or (given.since is not None and not given.everything)
    saved = replace(saved, hints=hints, archived=len(run.archived_left_out), narrowed=narrowed)
    if not commit:
        return saved
    known, why_not = ("", NARROWED) if given.narrowed else committed(session.inputs, run.manifests, objects)
    return replace(saved, commit=known or None, uncommitted=why_not)


def _warn_of_variables(plan: Plan) -> None:
    """Warn once of each environment variable with the token of an import that is not set."""
    lacking: dict[str, list[Target]] = {}
    for target in plan.targets:
        for variable in variables_of(target):
            if not os.environ.get(variable, "").strip():
                lacking.setdefault(variable, []).append(target.target)
    for variable, targets in lacking.items():
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        LOG.warning("%s is not set or empty, and the import of %s%s needs it", variable, targets[0], more)


def draw_way_back(session: Session, client: Client, file: Path) -> SavedPlan:
    """Read the report of an apply and live state, and return the plan of the way back. Nothing is written.

    Raises:
        PlanRefused: the file is not such a report, was edited, or is about another service.
    """
    given = session.given
    text = read_file(file)
    with naming_document(file):
        report = load_report(text, session.kinds)
    if not is_about(report.service, client.api_url):
        raise PlanRefused(f"{file}: the report is about {report.service!r}, and this is {client.api_url!r}")
    way_back = WayBack(report.done, session.kinds, sha256(text.encode()).hexdigest())
    left = session.select(way_back.left)
    with session.watched(client) as progress:
        run = Survey(
            client,
            client.concurrency,
            session.kinds,
            left,
            progress=progress,
            api_url=client.api_url,
            follow_moved=given.follow_moved,
            make=way_back.plan,
        )
        plan = survey(run, GIVEN).plan
    return _saved(session, client, plan, left.digest)


def _saved(session: Session, client: Client, plan: Plan, digest: str, shard: Shard | None = None) -> SavedPlan:
    """Return a plan that was made now, as it can be saved."""
    return SavedPlan(
        service=client.api_url,
        created_at=datetime.now(UTC).replace(microsecond=0),
        tool_version=__version__,
        manifests_digest=digest,
        requests_made=client.traffic.reads,
        shard=shard,
        limits=session.limits(),
        targets=plan.targets,
        dependent=plan.dependent,
        whole=plan.whole,
    )


def failed_before(session: Session) -> frozenset[Address] | None:
    """Return what a previous run did not do, for `--retry-failed`; None without it."""
    file = session.given.retry_failed
    if file is None:
        return None
    report = session.read_report(Path(file))
    failed = frozenset(each.change.address for each in report.outcomes if each.status is not Status.DONE)
    if not failed:
        session.info(f"Nothing failed in {file}.")
    return failed


def begin(
    session: Session,
    client: Client,
    progress: Progress,
    failed: frozenset[Address] | None,
    *,
    partly: bool = False,
    grace: timedelta = timedelta(),
) -> tuple[FleetSurvey, Mapping[str, str]]:
    """Read the manifests, and return what is known before the first request.

    Args:
        session: the run.
        client: the service.
        progress: counts the steps.
        failed: what alone is planned; None for everything.
        partly: whether manifests that have not changed since a revision may be left out.
        grace: see `DesiredState.grace`.

    Returns:
        The survey; and by file, the ID of what was read as an object of the git repository, as far as known.

    Raises:
        ManifestErrors: with every error of every file.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: an option is not what it should be.
    """
    given, shard = session.given, _shard(session.given.shard)
    if given.everything and given.since is None:
        raise UsageError("--all goes with --since; without it, all targets are planned anyway")
    scope = Scope(session.selection, failed, given.everything, shard, grace, given.force_events)
    if given.since is None:
        now, past, digest, objects = session.manifests(), None, "", NO_OBJECTS
    else:
        partly = partly and not (given.narrowed or given.everything or shard)
        revisions = session.revisions(given.since, partly=partly)
        now, past, digest, objects = revisions.now, revisions.past, revisions.digest, revisions.objects
    session.check_sections()
    run = FleetSurvey(
        client,
        client.concurrency,
        session.kinds,
        now.desired,
        now,
        past,
        scope,
        digest,
        progress=progress,
        api_url=client.api_url,
        follow_moved=given.follow_moved,
    )
    return run, objects


def retried(run: FleetSurvey, plan: Plan, failed: frozenset[Address]) -> Plan:
    """Return the part of a plan that was not done before, for `--retry-failed`."""
    declared = {(target.target, section.kind) for target in run.whole.targets for section in target.sections}
    plan = restrict(plan, failed)
    if not run.scope.tells_of_the_whole:
        # The first shard alone reports what no manifest declares.
        failed = frozenset(each for each in failed if (each.target, each.section) in declared)
    return add_missing(plan, failed, declared, run.scope.selection)


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
