"""From the options of a command to its plan: the targets of the run, and their changes. Begin with `draw` and `run_of`.

Commands import this module only when they run, so that all other commands start fast.
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
from reconciler.cli.logs import warnings_last
from reconciler.cli.options import OutputOptions, PlanningOptions, SelectionOptions
from reconciler.cli.progress import watched
from reconciler.cli.settings import grace_of, limits_of, read_file
from reconciler.cli.sources import check_sections, revision, run_selection, select, warn_of_manifests
from reconciler.cli.stored import naming_document, read_report
from reconciler.document.document import PastApply, RunDocument, is_about, with_findings
from reconciler.document.plans import plan_of, rename, with_plan
from reconciler.document.stored import load_report
from reconciler.engine.basis import successions, with_basis
from reconciler.engine.compare.creation import variables_of
from reconciler.engine.compare.revert import Reversal
from reconciler.engine.compare.selection import read_shard
from reconciler.engine.plan import draw_plan, plan
from reconciler.engine.run import Run, Scope
from reconciler.errors import ConfigurationError, PlanRefused, UsageError
from reconciler.kinds import all_kinds
from reconciler.manifests import Inputs, read_manifests
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
    client: Client,
    inputs: Inputs,
    selection: SelectionOptions,
    planning: PlanningOptions,
    output: OutputOptions,
    *,
    inventory: OpenInventory,
    in_job: bool,
    records_commit: bool = False,
    who_after: datetime | None = None,
    restored_after: datetime | None = None,
) -> RunDocument:
    """Read the manifests and live state and return the plan, in the form in which it is saved. Nothing is written.

    Args:
        client: the service.
        inputs: the sources of the manifests.
        selection: the part that is planned.
        planning: the options of planning.
        output: the options of what is shown.
        inventory: the list of applied objects.
        in_job: whether this is a job of GitLab CI that does something by itself.
        records_commit: whether the plan records the commit of the manifests even without an inventory.
        who_after: see `Scope`.
        restored_after: likewise.
    """
    with run_of(
        client,
        inputs,
        selection,
        planning,
        output,
        inventory=inventory,
        who_after=who_after,
        restored_after=restored_after,
    ) as run:
        planned = plan(run)
    _warn_of_variables(planned.plan)
    declared, past = planned.declared, planned.declared.past
    records = records_commit or inventory.store is not None
    known = committed(inputs, declared.manifests) if records else ""
    whole = not selection.narrowed and (selection.since in (None, APPLIED) or selection.everything)
    shown, basis = with_basis(planned, known, whole=whole)
    drawn = _saved(client, shown, declared.desired.digest, planning, in_job=in_job)
    remarks = (*planned.absences.remarks, *successions(planned))
    about_the_run = (*map(rename, planned.hints), *(Finding(None, "stays", remark) for remark in remarks))
    return replace(
        with_findings(drawn, *about_the_run),
        shard=run.scope.shard,
        since=past.then.revision if past else "",
        archived=len(planned.archived_left_out),
        narrowed=selection.narrowed or (selection.since is not None and not selection.everything),
        restored_since=restored_after,
        applies=None if inventory.applies is None else tuple(map(PastApply.of, inventory.applies)),
        inventory=basis,
        commit=None if selection.narrowed else known or None,
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


def draw_way_back(
    client: Client,
    chosen_apply: ChosenApply,
    selection: SelectionOptions,
    planning: PlanningOptions,
    output: OutputOptions,
) -> RunDocument:
    """Read the report of an apply and live state, and return the plan of the way back. Nothing is written.

    Raises:
        PlanRefused: the file is not such a report, was edited, or is about another service or another apply.
    """
    file, logged, kinds = chosen_apply.file, chosen_apply.logged, all_kinds()
    try:
        text = read_file(file)
        with naming_document(file):
            report = load_report(text, kinds)
    except (ConfigurationError, PlanRefused) as error:
        raise type(error)(f"{error}; reconciler log shows the last applies") from error
    if not is_about(report.service, client.api_url):
        advice = f"revert it there, with --api-url {report.service} and a token of that service"
        raise PlanRefused(f"{file}: the report is about {report.service}, and this is {client.api_url}; {advice}")
    if logged and logged.when != report.finished_at:
        raise PlanRefused(
            f"{file}: the report is of an apply that ended at {report.time:%Y-%m-%d %H:%M:%S} UTC, and "
            f"{short(chosen_apply.name)} ended at {logged.when:%Y-%m-%d %H:%M:%S} UTC"
        )
    reversal = Reversal(plan_of(report).targets, kinds, sha256(text.encode()).hexdigest())
    selected = select(reversal.applied_state, selection)
    with warnings_last(), watched(client.traffic, output) as progress:
        back = draw_plan(
            selected,
            client,
            kinds,
            make=reversal.plan,
            progress=progress,
            api_url=client.api_url,
            follow_moved=client.follows_moved,
        )
    saved = _saved(client, back, selected.digest, planning, in_job=False)
    commit = (logged.manifests if logged else "") or report.commit
    return replace(saved, reverts=chosen_apply.name, commit=commit, narrowed=selection.narrowed)


def _saved(client: Client, drawn: Plan, digest: str, planning: PlanningOptions, *, in_job: bool) -> RunDocument:
    """Return a plan that was made now, in the form in which it is saved."""
    head = RunDocument(
        service=client.api_url,
        created_at=client.now().replace(microsecond=0),
        tool_version=__version__,
        manifests_digest=digest,
        requests_made=client.traffic.reads,
        limits=limits_of(planning, client.now().date(), in_job=in_job),
    )
    return with_plan(head, drawn)


def _failed_before(report_path: str | None) -> frozenset[Address] | None:
    """Return the addresses of the changes that a previous run did not do, by its report; None without a report."""
    if report_path is None:
        return None
    report = read_report(Path(report_path))
    if report.reverts:
        raise UsageError(f"{report_path} is the report of a revert; finish that with: {report.finish}")
    failed = frozenset(each.change.address for each in report.outcomes if each.status is not Status.DONE)
    if not failed:
        LOG.info("Nothing failed in %s.", report_path)
    return failed


@contextmanager
def run_of(
    client: Client,
    inputs: Inputs,
    selection: SelectionOptions,
    planning: PlanningOptions,
    output: OutputOptions,
    *,
    inventory: OpenInventory = NO_INVENTORY,
    locks_bind: bool = True,
    who_after: datetime | None = None,
    restored_after: datetime | None = None,
) -> Iterator[Run]:
    """Read the manifests, and yield the run that a command asks for; progress is shown while this block runs.

    Args:
        client: the service.
        inputs: the sources of the manifests.
        selection: the part that is planned.
        planning: the options of planning.
        output: the options of what is shown.
        inventory: the list of applied objects.
        locks_bind: whether a broken lock is an error.
        who_after: see `Scope`.
        restored_after: likewise.

    Raises:
        ManifestErrors: with every error of every file, or of the `reconciler.yaml` of the revision of `--since`.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: the value of an option is not valid.
    """
    failed = _failed_before(selection.retry_failed)
    with warnings_last(), watched(client.traffic, output) as progress:
        progress.begin("reading manifests")
        since = None if selection.since == APPLIED else selection.since
        scope = Scope(
            run_selection(selection),
            failed,
            everything=selection.everything,
            since_applied=selection.since == APPLIED,
            shard=_shard(selection.shard),
            grace=grace_of(planning),
            forced=planning.force_events,
            only_change=selection.only_change,
            who_after=who_after,
            restored_after=restored_after,
        )
        if selection.everything and selection.since is None:
            raise UsageError("--all goes with --since; without it, all targets are planned anyway")
        if selection.only_change and since is None:
            raise UsageError("--only-change goes with --since REV, a git revision")
        now = read_manifests(inputs, locks_bind=locks_bind, dated=False)
        warn_of_manifests(now.warnings, output)
        past = None if since is None else revision(since, inputs, now)
        check_sections(selection.sections)
        yield Run(
            client,
            all_kinds(),
            now,
            past,
            scope,
            inventory=inventory,
            inputs=inputs,
            progress=progress,
            api_url=client.api_url,
            follow_moved=client.follows_moved,
        )
        warn_of_manifests(now.ending(client.now().date()), output)


def _shard(given: str | None) -> Shard | None:
    """Return the shard of the option, else the shard of a parallel CI job, with a warning."""
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
