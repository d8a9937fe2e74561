"""`reconciler apply` and `reconciler revert`."""

import logging
import os
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reconciler.cli import suggestions
from reconciler.cli.command import command
from reconciler.cli.exit_codes import of_report, of_signal, signals_handled
from reconciler.cli.inventory import opened_inventory
from reconciler.cli.journaling import RunJournal, open_journal
from reconciler.cli.notices import notify_of_report, webhook
from reconciler.cli.options import (
    CONNECTION,
    FORCE,
    INVENTORY,
    LIMITS,
    NOTICE,
    OUTPUT,
    PLACES,
    PROBLEMS,
    ROTATION,
    RUN,
    SERVICE,
    ConnectionOptions,
    Job,
    OutputOptions,
    PlanningOptions,
    SelectionOptions,
    SourceOptions,
)
from reconciler.cli.outputs import FLEET, check_outputs, is_terminal, report_error, write_stderr
from reconciler.cli.pipelines import pipeline_of, start
from reconciler.cli.progress import shown
from reconciler.cli.results import style_of, write_plan, write_reports_so_far, write_result
from reconciler.cli.settings import allowed_deletes, connected, duration, tokens_of
from reconciler.cli.sources import inputs_of
from reconciler.cli.stored import read_plan
from reconciler.errors import OutputFailed, PlanRefused, ServiceError, UsageError
from reconciler.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import timedelta

    from reconciler.document.document import RunDocument
    from reconciler.document.guard import Limits
    from reconciler.engine.apply import Application, ApplyOptions, FailureLimit, TokenSink
    from reconciler.memory.store import OpenInventory
    from reconciler.model.targets import Target
    from reconciler.service import Client
    from reconciler.service.webhook import Webhook

LOG = logging.getLogger("reconciler")

RETRIED = "run a new pipeline: this job, retried, applies the same plan, and refuses what has changed since"
"""The way on from an incomplete apply of a saved plan in a CI job, where "Retry" is the natural click."""

STILL_DECLARED = "The manifests still declare what this revert undid: revert their commit too."


NO_VERIFY = click.option("--no-verify", is_flag=True, help="Do not read the changed objects again afterwards.")
TOKENS_TO = click.option(
    "--tokens-to", type=click.Path(path_type=Path), metavar="FILE", help="Append created tokens to FILE, mode 0600."
)
TOKENS_COMMAND = click.option(
    "--tokens-command", metavar="CMD", help="Run CMD for each created token, with one JSON line on stdin."
)
JOURNAL = click.option(
    "--journal", type=click.Path(path_type=Path), metavar="FILE", help="Record each write on disk, before and after."
)


@command(
    FORCE,
    ROTATION,
    INVENTORY,
    LIMITS,
    *RUN,
    NOTICE,
    PROBLEMS,
    weekly="--plan --yes --target --section --since --canary --max-failures --allow-deletes "
    "--retry-failed --tokens-to --report",
    writes="report",
    job="report",
    epilog="Examples: reconciler apply manifests --yes;  reconciler apply --plan plan.json --yes;  reconciler apply "
    "manifests --yes --canary tier=canary --max-failures 5%",
)
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE", help="Apply this saved plan.")
@click.option("--max-age", default="24h", metavar="TIME", show_default=True, help="Refuse an older saved plan.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@NO_VERIFY
@TOKENS_TO
@TOKENS_COMMAND
@JOURNAL
@click.option(
    "--canary",
    metavar="SELECTOR",
    shell_complete=suggestions.targets,
    help="Apply to these targets first (a label KEY=VALUE, or a glob of paths); continue only if they are in order.",
)
@click.option(
    "--max-failures", metavar="N|P%", help="End the run at N failed changes, or at P % of the planned changes."
)
@click.option(
    "--wait",
    default="30m",
    metavar="TIME",
    show_default=True,
    help="Wait this long for imports that the run starts; --max-wait is about a service that asks for a pause.",
)
@click.option(
    "--trigger",
    metavar="PROJECT@REF",
    help="After a complete apply with changes, start this pipeline, with RECONCILER_TRIGGER_TOKEN.",
)
@click.option("--trigger-input", multiple=True, metavar="KEY=VALUE", help="An input of that pipeline; repeatable.")
def apply(
    *,
    sources: SourceOptions,
    selection: SelectionOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    job: Job | None,
    plan_file: Path | None,
    max_age: str,
    yes: bool,
    no_verify: bool,
    tokens_to: Path | None,
    tokens_command: str | None,
    journal: Path | None,
    canary: str | None,
    max_failures: str | None,
    wait: str,
    trigger: str | None,
    trigger_input: tuple[str, ...],
) -> int:
    """Apply a plan, new or saved, and verify the result.

    With --canary, the other targets are skipped unless every change of the canary was done and verified, and none of
    its settings is a problem.

    Exits with 3 if some changes were not done or the plan has problems, and with 1 if nothing was changed. After a
    signal, requests in flight finish, the report follows, and the exit code is 128 plus the signal's number.

    In a job of GitLab CI, writes below .reconciler; with `parallel`, each job applies its part of the plan.
    """
    from reconciler.cli.planning import draw
    from reconciler.cli.recording import checked
    from reconciler.engine.apply import ApplyOptions, Stop
    from reconciler.kinds import all_kinds
    from reconciler.model.progress import Progress

    if plan_file is not None:
        _check_saved(sources, selection, planning)
    _check_canary(canary, verifies=not no_verify)
    seconds = duration("--wait", wait).total_seconds()
    # Checked before anything is requested, though they are needed later: a share of the changes, when these are known.
    duration("--grace", planning.grace)
    _failure_limit(max_failures, 0)
    secrets = partial(tokens_of, connection, output.notify)
    tokens_to, tokens_command = _one_of(tokens_to=tokens_to, tokens_command=tokens_command)
    files = {"--plan": plan_file, "--journal": journal, "--tokens-to": tokens_to}
    check_outputs("report", output, *files.items(), sources=sources, connection=connection)
    hook = webhook(output.notify, connection)
    pipeline = pipeline_of(trigger, trigger_input)
    sink = _token_sink(tokens_to, tokens_command, secrets)
    with (
        connected(connection, reads_moved=False) as client,
        opened_inventory(client, sources, planning, connection, stores=True) as inventory,
        open_journal(journal, client, all_kinds(), sink) as run_journal,
    ):
        if inventory.error is not None:
            # What this apply created would never be known as its own, and never be deleted by absence.
            raise PlanRefused(f"nothing was changed: {inventory.error}; or go on without it: --no-inventory")
        if plan_file is None:
            inputs = inputs_of(sources, secrets)
            saved = draw(client, inputs, selection, planning, output, inventory=inventory, in_job=job is not None)
        else:
            read = _current(read_plan(plan_file), client, duration("--max-age", max_age))
            saved = replace(read, limits=_limits_of_saved(read.limits, planning, client, in_job=job is not None))
        saved = replace(saved, limits=replace(saved.limits, sink=sink is not None))
        # Before a part is taken: each of 20 jobs would be within the limits.
        _refuse_guarded(saved, output)
        if plan_file is not None:
            saved = _part_of(saved, plan_file, selection.shard or (job.part if job and not saved.shard else None))
        first = _canary_of(saved, canary)
        if any(saved.changes) and not yes:
            _ask(saved, output)
        saved, stale = checked(inventory, saved)
        options = ApplyOptions(
            verify=not no_verify,
            recheck=plan_file is not None,
            stale=stale,
            deliver=sink,
            stop=Stop(client.stop),
            write_log=run_journal.log,
            progress=Progress(lambda: client.traffic.requests),
            canary=first,
            failures=_failure_limit(max_failures, sum(1 for _ in saved.changes)),
            wait=seconds,
            now=client.now,
            own_tokens=secrets(),
        )
        report, code = _carry_out(
            saved, inventory, client, options, run_journal, output=output, job=job, canary=canary or "", hook=hook
        )
        if code and plan_file is not None and os.environ.get("CI"):
            LOG.warning("%s", RETRIED)
        if pipeline is not None and code == 0 and report.has_done:
            start(pipeline, client.api_url, connection, output)
        return code


@command(
    INVENTORY,
    LIMITS,
    PLACES,
    CONNECTION,
    SERVICE,
    OUTPUT,
    PROBLEMS,
    weekly="--last --yes --out --target --report",
    epilog="Examples: reconciler revert;  reconciler revert --last;  reconciler revert applied.json --yes --report "
    "json=back.json",
)
@click.argument("named", metavar="[REPORT|SHA]", required=False)
@click.option("--last", is_flag=True, help="Revert the latest apply, or finish the last revert if it is not done.")
@click.option("--yes", is_flag=True, help="Carry out the plan.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan for `apply --plan`.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes, even if there are problems too."
)
@NO_VERIFY
@TOKENS_TO
@TOKENS_COMMAND
@JOURNAL
def revert(
    *,
    selection: SelectionOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    named: str | None,
    last: bool,
    yes: bool,
    out: Path | None,
    detailed_exitcode: bool,
    no_verify: bool,
    tokens_to: Path | None,
    tokens_command: str | None,
    journal: Path | None,
) -> int:
    """Plan, and with --yes apply, the way back from an apply.

    Takes the JSON report of the apply, or its ID in `reconciler log` if this clone has the report: `apply` keeps the
    last ten. Without either, lists the last applies.

    Deletes what was created, restores former values, and creates deleted objects again, with new IDs and new values of
    tokens. An object that has changed since the apply is a problem, and stays.

    Without --yes, prints and exits as `plan`, and is read-only; with it, as `apply`. The same command finishes a revert
    that was interrupted or failed in part.
    """
    from reconciler.cli.applies import chosen, list_reports
    from reconciler.cli.planning import draw_way_back
    from reconciler.engine.apply import ApplyOptions, Stop
    from reconciler.kinds import all_kinds
    from reconciler.model.progress import Progress

    tokens_to, tokens_command = _one_of(tokens_to=tokens_to, tokens_command=tokens_command)
    if yes and (out is not None or detailed_exitcode):
        raise UsageError("--yes carries out the plan; --out and --detailed-exitcode go without it")
    if named is not None and last:
        raise UsageError("revert takes a report, the ID of an apply, or --last; not two of them")
    if named is None and not last:
        if yes or out is not None:
            raise UsageError("nothing to revert: give the report or the ID of an apply, or --last")
        list_reports(output.format, connection)
        return 0
    report = None if named is None else Path(named)
    files = {"REPORT": report, "--out": out, "--journal": journal, "--tokens-to": tokens_to}
    check_outputs("report" if yes else "plan", output, *files.items(), connection=connection)
    if FLEET in output.formats:
        raise UsageError(f"the format {FLEET} is not for the way back")
    apply = chosen(connection, named, last=last)
    if not yes:
        with connected(connection) as client:
            saved = draw_way_back(client, apply, selection, planning, output)
        return write_plan(saved, output, None, out, current_time=client.now, detailed=detailed_exitcode)
    secrets = partial(tokens_of, connection)
    sink = _token_sink(tokens_to, tokens_command, secrets)
    with (
        connected(connection) as client,
        opened_inventory(client, SourceOptions(), planning, connection, stores=True) as inventory,
        open_journal(journal, client, all_kinds(), sink) as run_journal,
    ):
        if inventory.error is not None:
            raise inventory.error
        saved = draw_way_back(client, apply, selection, planning, output)
        saved = replace(saved, limits=replace(saved.limits, sink=sink is not None))
        _refuse_guarded(saved, output)
        options = ApplyOptions(
            verify=not no_verify,
            deliver=sink,
            stop=Stop(client.stop),
            write_log=run_journal.log,
            progress=Progress(lambda: client.traffic.requests),
            now=client.now,
            own_tokens=secrets(),
        )
        _, code = _carry_out(saved, inventory, client, options, run_journal, output=output)
        return code


def _one_of(tokens_to: Path | None, tokens_command: str | None) -> tuple[Path | None, str | None]:
    """Return the used one of two options that exclude each other; a flag overrules `reconciler.yaml`.

    Raises:
        UsageError: both were given.
    """
    context = click.get_current_context()
    sources = {name: context.get_parameter_source(name) for name in ("tokens_to", "tokens_command")}
    if ParameterSource.COMMANDLINE in sources.values():
        if sources["tokens_to"] is ParameterSource.DEFAULT_MAP:
            tokens_to = None
        if sources["tokens_command"] is ParameterSource.DEFAULT_MAP:
            tokens_command = None
    if tokens_to is not None and tokens_command is not None:
        raise UsageError(f"{context.info_name} takes --tokens-to or --tokens-command, not both")
    return tokens_to, tokens_command


def _check_saved(sources: SourceOptions, selection: SelectionOptions, planning: PlanningOptions) -> None:
    """Refuse options that do not go with a saved plan."""
    source = click.get_current_context().get_parameter_source("paths")
    if sources.paths and source is ParameterSource.COMMANDLINE:
        raise UsageError("apply takes PATHS or --plan, not both")
    if selection.narrowed or selection.since or selection.everything:
        raise UsageError(
            "--plan does not go with options that select targets or sections; give them when the plan is made"
        )
    if planning.force_events:
        raise UsageError("--force-events does not go with --plan; give it when the plan is made")


def _check_canary(canary: str | None, *, verifies: bool) -> None:
    """Refuse a canary that is written wrong, or whose result nothing verifies."""
    from reconciler.engine.compare.selection import read_canary

    if canary is not None:
        read_canary(canary)
        if not verifies:
            raise UsageError("--canary does not go with --no-verify: only what was verified shows that all is well")


def _failure_limit(limit: str | None, change_count: int) -> "FailureLimit | None":
    """Return the limit of a run with so many planned changes.

    Raises:
        UsageError: the option is neither a number nor a percentage.
    """
    from reconciler.engine.apply import FailureLimit

    try:
        return None if limit is None else FailureLimit(limit, change_count)
    except ValueError as error:
        raise UsageError(f"--max-failures {error}") from None


def _token_sink(
    token_file: Path | None, program: str | None, secrets: "Callable[[], Collection[str]]"
) -> "TokenSink | None":
    from reconciler.engine.apply.sinks import TokenCommand, TokenFile

    if token_file is not None:
        try:
            return TokenFile(token_file)
        except OutputFailed as error:
            raise OutputFailed(
                f"--tokens-to {error}; name a file in a folder that exists, such as tokens.jsonl"
            ) from error
    return None if program is None else TokenCommand(program, secrets())


def _current(saved: "RunDocument", client: "Client", max_age: "timedelta") -> "RunDocument":
    """Return a saved plan that is not too old, by the clock of the service if need be.

    Raises:
        PlanRefused: the plan is too old, from the future, or about another service.
    """
    from reconciler.document.document import refuse_unless_current

    try:
        refuse_unless_current(saved, api_url=client.api_url, now=client.now(), max_age=max_age)
    except PlanRefused:
        # The clock of this machine may be wrong, and nothing was asked yet.
        with suppress(ServiceError):
            client.get("version")
        refuse_unless_current(saved, api_url=client.api_url, now=client.now(), max_age=max_age)
    return saved


def _limits_of_saved(allowed: "Limits", planning: PlanningOptions, client: "Client", *, in_job: bool) -> "Limits":
    """Return the limits of a saved plan in this run: its permission comes before that of `reconciler.yaml`."""
    by_file = click.get_current_context().get_parameter_source("allow_deletes") is ParameterSource.DEFAULT_MAP
    permissions = (allowed.allow_deletes, allowed_deletes(planning, client.now().date()))
    return replace(
        allowed,
        allow_deletes=next(
            (each for each in (permissions if by_file else permissions[::-1]) if each is not None), None
        ),
        max_changes=allowed.max_changes if planning.max_changes is None else planning.max_changes,
        max_loosening=allowed.max_loosening if planning.max_loosening is None else planning.max_loosening,
        in_job=in_job,
    )


def _refuse_guarded(saved: "RunDocument", output: OutputOptions) -> None:
    """Show a plan that the guard refuses. The guard checks the whole plan, even if only a part is applied.

    Raises:
        PlanRefused: the plan must not be applied.
    """
    from reconciler.reports import render_plan

    if saved.refusals:
        if not output.quiet and output.log_format == "text":
            write_stderr(render_plan(saved, "text", style_of(output, sys.stderr)).rstrip("\n"))
        reasons = "\n".join(saved.refusals)
        raise PlanRefused(f"the plan is refused, and nothing was changed: {reasons}")


def _part_of(saved: "RunDocument", file: Path, shard_text: str | None) -> "RunDocument":
    """Return one part of a saved plan; the whole plan if no part is asked for.

    Raises:
        UsageError: the plan is that of a shard already.
    """
    from reconciler.document.plans import plan_of, with_plan
    from reconciler.engine.compare.selection import plan_in_shard, read_shard
    from reconciler.kinds import all_kinds

    if shard_text is None:
        return saved
    if saved.shard:
        raise UsageError(f"{file} is the plan of shard {saved.shard} alone; merge the plans of all shards")
    shard = read_shard(shard_text)
    return replace(with_plan(saved, plan_in_shard(plan_of(saved), shard, all_kinds())), shard=shard)


def _canary_of(saved: "RunDocument", canary: str | None) -> "frozenset[Target]":
    """Return the targets that come first; no targets if no canary was given.

    Raises:
        PlanRefused: the plan has targets, and none of them is a canary.
    """
    from reconciler.document.plans import plan_of
    from reconciler.engine.compare.selection import read_canary, selected_targets, unmatched
    from reconciler.kinds import all_kinds

    if canary is None:
        return frozenset()
    plan, selector = plan_of(saved), read_canary(canary)
    first = selected_targets(plan, selector, all_kinds())
    if saved.targets and not first:
        missing = unmatched(selector, plan.targets, "--canary", "--canary")
        raise PlanRefused(f"nothing was changed: in the plan, {missing}")
    return first


def _ask(saved: "RunDocument", output: OutputOptions) -> None:
    from reconciler.document.wording import deletions_text
    from reconciler.reports import render_plan

    if not is_terminal(sys.stdin):
        raise UsageError("apply asks before it changes anything, and there is no terminal; add --yes")
    text = render_plan(saved, "text", style_of(output, sys.stderr))
    click.echo(text, err=True, nl=False, color=True)
    click.confirm("Apply this plan?", abort=True, err=True)
    deletions = deletions_text(saved.changes)
    if deletions and text.count("\n") > get_terminal_size().lines:
        click.confirm(f"This plan is longer than the screen, and {deletions}. Delete them?", abort=True, err=True)


def _carry_out(
    saved: "RunDocument",
    inventory: "OpenInventory",
    client: "Client",
    options: "ApplyOptions",
    journal: RunJournal,
    *,
    output: OutputOptions,
    job: Job | None = None,
    canary: str = "",
    hook: "Webhook | None" = None,
) -> "tuple[RunDocument, int]":
    """Apply the plan, write the report, complete or not, store the inventory; return the report and the exit code."""
    from reconciler.cli.recording import marked, store
    from reconciler.document.plans import canary_of, make_report, plan_of
    from reconciler.engine.apply import Application
    from reconciler.kinds import all_kinds
    from reconciler.model.item import RUN_ENDED
    from reconciler.reports import render_report

    plan = plan_of(saved)
    application, stop = Application(plan, client, all_kinds(), options), options.stop
    started = client.now()

    def report() -> "RunDocument":
        return make_report(
            saved,
            application.outcomes,
            started,
            client.traffic,
            client.now().replace(microsecond=0),
            canary_result=canary_of(application.canary, canary or None, plan),
            remarks=sorted(application.imports.omissions),
        )

    def finish() -> None:
        stop.cancel(RUN_ENDED)
        LOG.info("Finishing the requests in flight; a second signal stops at once.")
        write_reports_so_far(partial(render_report, report()), output)

    with marked(inventory, saved, started):
        with signals_handled(finish, grace_signals=inf) as signals:
            try:
                with (
                    journal.run(client.api_url, saved.manifests_digest),
                    shown(options.progress, client.traffic, output),
                ):
                    # From here a first signal lets the requests in flight finish, so that no outcome is unknown; a
                    # second one does not.
                    signals.grace_signals = 1 - len(signals.received)
                    application.run()
                    signals.ignore()
            except KeyboardInterrupt:
                signals.ignore()
            done = report()
            is_written = _written(done, journal.failures, output, job)
            notify_of_report(hook, done)
            _warn(application, done, stop.pause_reason)
        signal = next(iter(signals.received), None)
        incomplete = bool(not is_written or journal.unsettled or application.imports.unfinished)
        code = of_report(done, allow_problems=output.allow_problems, signal=signal, incomplete=incomplete)
        first = options.canary if stop.reason else None
        # Last: the report is written by now, whatever git does.
        code = store(
            inventory, saved, done, code, canary=canary, canary_targets=first, application=application, client=client
        )
    if done.reverts and done.has_done:
        LOG.info("%s", STILL_DECLARED)
    if code > of_signal(0):
        LOG.info("To go on, run the same command again: what was done is not done again.")
    return done, code


def _written(report: "RunDocument", failures: list[OutputFailed], output: OutputOptions, job: Job | None) -> bool:
    """Write the report, and log what could not be written; return whether everything was.

    Args:
        report: of the run.
        failures: why other files are incomplete.
        output: the files of the report.
        job: the CI job, which keeps histories.
    """
    from reconciler.reports import render_report

    try:
        write_result(partial(render_report, report), output, job=job, precious=bool(report.made.writes))
    except OutputFailed as error:
        failures = [*failures, error]
    for failure in failures:
        report_error(failure)
    return not failures


def _warn(application: "Application", report: "RunDocument", pause_reason: str) -> None:
    """Warn of running imports, of changes that nothing has verified, and of the reason that ended the run early."""
    from reconciler.engine.apply import UNVERIFIED

    for sentence in application.imports.unfinished:
        LOG.warning("%s", sentence)
    number = sum(outcome.reason == UNVERIFIED for outcome in report.outcomes)
    if number:
        LOG.warning(
            "%s done and not verified, since the run ended before: the next plan shows whether the service kept %s",
            f"{counted(number, 'change')} {'is' if number == 1 else 'are'}",
            "it" if number == 1 else "them",
        )
    if pause_reason:
        LOG.warning("the run ended before all changes: %s", pause_reason)
