"""`reconciler apply` and `reconciler revert`."""

import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.cli import suggestions
from reconciler.cli.command import command
from reconciler.cli.exit_codes import heeding, of_report, of_signal
from reconciler.cli.held_journal import HeldJournal, held_journal
from reconciler.cli.inventory import opened_inventory
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
    Given,
)
from reconciler.cli.outputs import FLEET, check_outputs, is_terminal, report_error, write_stderr
from reconciler.cli.pipelines import pipeline_of, start
from reconciler.cli.session import Session
from reconciler.cli.settings import duration, tokens_of
from reconciler.errors import OutputFailed, PlanRefused, ServiceError, UsageError
from reconciler.model.wording import counted

if TYPE_CHECKING:
    from reconciler.cli.recording import Stale
    from reconciler.document.document import RunDocument
    from reconciler.engine.apply import Application, ApplyOptions, TokenSink
    from reconciler.memory.store import OpenInventory
    from reconciler.model.targets import Target
    from reconciler.service import Client
    from reconciler.service.pipelines import PipelineTrigger
    from reconciler.service.webhook import Webhook

LOG = logging.getLogger("reconciler")

RETRIED = "run a new pipeline: this job, retried, applies the same plan, and refuses what has changed since"
"""The way on from an incomplete apply of a saved plan in a CI job, where "Retry" is the natural click."""

STILL_DECLARED = "The manifests still declare what this revert undid: revert their commit too."


@dataclass(frozen=True, slots=True)
class ApplyFlags:
    """The options that only `apply` has."""

    plan_file: Path | None
    max_age: str
    yes: bool
    no_verify: bool
    tokens_to: Path | None
    tokens_command: str | None
    journal: Path | None
    canary: str | None = None
    max_failures: str | None = None
    wait: str = "30m"
    trigger: str | None = None
    trigger_input: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Afterwards:
    """Who hears of the result: a chat, and a pipeline that is started."""

    hook: "Webhook | None" = None
    pipeline: "PipelineTrigger | None" = None


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
def apply(given: Given, **own: Any) -> int:
    """Apply a plan, new or saved, and verify the result.

    With --canary, the other targets are skipped unless every change of the canary was done and verified, and none of
    its settings is a problem.

    Exits with 3 if some changes were not done or the plan has problems, and with 1 if nothing was changed. After a
    signal, requests in flight finish, the report follows, and the exit code is 128 plus the signal's number.

    In a job of GitLab CI, writes below .reconciler; with `parallel`, each job applies its part of the plan.
    """
    flags = ApplyFlags(**own | _overruled("tokens_to", "tokens_command"))
    _check(given, flags)
    files = {"--plan": flags.plan_file, "--journal": flags.journal, "--tokens-to": flags.tokens_to}
    check_outputs(given, "report", *files.items())
    session, hook = Session(given), webhook(given)
    pipeline = pipeline_of(flags.trigger, flags.trigger_input)
    sink = _token_sink(given, flags)
    with (
        session.client(reads_moved=False) as client,
        opened_inventory(session, client, stores=True) as inventory,
        held_journal(flags.journal, client, session.kinds, sink) as journal,
    ):
        if inventory.error is not None:
            raise PlanRefused(f"nothing was changed: {inventory.error}; or go on without it: --no-inventory")
        drawn = _limited(session, flags, _plan(session, flags, client, inventory))
        saved = _guarded(session, flags, drawn)
        if flags.canary is not None and saved.targets and not _canary(session, flags, saved):
            raise PlanRefused(f"nothing was changed: {_no_canary(flags.canary, saved)}")
        if any(saved.changes) and not flags.yes:
            _ask(session, saved)
        after = Afterwards(hook, pipeline)
        return _carry_out(session, flags, saved, client, inventory, sink=sink, journal=journal, after=after)


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
def revert(given: Given, named: str | None, last: bool, out: Path | None, detailed_exitcode: bool, **own: Any) -> int:
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

    flags = ApplyFlags(plan_file=None, max_age="24h", **own | _overruled("tokens_to", "tokens_command"))
    _check(given, flags)
    if flags.yes and (out is not None or detailed_exitcode):
        raise UsageError("--yes carries out the plan; --out and --detailed-exitcode go without it")
    if named is not None and last:
        raise UsageError("revert takes a report, the ID of an apply, or --last; not two of them")
    if named is None and not last:
        if flags.yes or out is not None:
            raise UsageError("nothing to revert: give the report or the ID of an apply, or --last")
        Session(given)
        list_reports(given)
        return 0
    report = None if named is None else Path(named)
    files = {"REPORT": report, "--out": out, "--journal": flags.journal, "--tokens-to": flags.tokens_to}
    check_outputs(given, "report" if flags.yes else "plan", *files.items())
    if FLEET in {given.format, *(format_ for format_, _ in given.reports)}:
        raise UsageError(f"the format {FLEET} is not for the way back")
    session = Session(given)
    apply = chosen(given, named, last=last)
    if not flags.yes:
        with session.client() as client:
            saved = draw_way_back(session, client, apply)
        return session.write_plan(saved, out, detailed=detailed_exitcode)
    sink = _token_sink(given, flags)
    with (
        session.client() as client,
        opened_inventory(session, client, stores=True) as inventory,
        held_journal(flags.journal, client, session.kinds, sink) as journal,
    ):
        if inventory.error is not None:
            raise inventory.error
        drawn = draw_way_back(session, client, apply)
        saved = _guarded(session, flags, _limited(session, flags, drawn))
        return _carry_out(session, flags, saved, client, inventory, sink=sink, journal=journal)


def _overruled(*names: str) -> dict[str, None]:
    """Return the options of a mutually exclusive set that only the configuration sets, if a flag sets another."""
    source = click.get_current_context().get_parameter_source
    if not any(source(name) is ParameterSource.COMMANDLINE for name in names):
        return {}
    return {name: None for name in names if source(name) is ParameterSource.DEFAULT_MAP}


def _check(given: Given, flags: ApplyFlags) -> None:
    """Refuse options that contradict each other."""
    from reconciler.engine.apply import FailureLimit
    from reconciler.engine.compare.selection import read_canary

    source = click.get_current_context().get_parameter_source("paths")
    if flags.plan_file is not None:
        if given.paths and source is ParameterSource.COMMANDLINE:
            raise UsageError("apply takes PATHS or --plan, not both")
        if given.narrowed or given.since or given.everything:
            raise UsageError(
                "--plan does not go with options that select targets or sections; give them when the plan is made"
            )
        if given.force_events:
            raise UsageError("--force-events does not go with --plan; give it when the plan is made")
    if flags.canary is not None:
        read_canary(flags.canary)
        if flags.no_verify:
            raise UsageError("--canary does not go with --no-verify: only what was verified shows that all is well")
    duration("--wait", flags.wait)
    duration("--grace", given.grace)
    if flags.max_failures is not None:
        try:
            FailureLimit(flags.max_failures, planned=0)
        except ValueError as error:
            raise UsageError(f"--max-failures {error}") from None
    if flags.tokens_to is not None and flags.tokens_command is not None:
        raise UsageError(f"{click.get_current_context().info_name} takes --tokens-to or --tokens-command, not both")


def _token_sink(given: Given, flags: ApplyFlags) -> "TokenSink | None":
    from reconciler.engine.apply.sinks import TokenCommand, TokenFile

    if flags.tokens_to is not None:
        try:
            return TokenFile(flags.tokens_to)
        except OutputFailed as error:
            raise OutputFailed(
                f"--tokens-to {error}; name a file in a folder that exists, such as tokens.jsonl"
            ) from error
    return None if flags.tokens_command is None else TokenCommand(flags.tokens_command, tokens_of(given))


def _plan(session: Session, flags: ApplyFlags, client: "Client", inventory: "OpenInventory") -> "RunDocument":
    from reconciler.cli.planning import draw
    from reconciler.document.document import refuse_unless_current

    if flags.plan_file is None:
        return draw(session, client, inventory=inventory)
    max_age = duration("--max-age", flags.max_age)
    saved = session.read_plan(flags.plan_file)
    try:
        refuse_unless_current(saved, api_url=client.api_url, now=session.now(), max_age=max_age)
    except PlanRefused:
        # The clock of this machine may be wrong, and nothing was asked yet.
        with suppress(ServiceError):
            client.get("version")
        refuse_unless_current(saved, api_url=client.api_url, now=session.now(), max_age=max_age)
    return saved


def _limited(session: Session, flags: ApplyFlags, saved: "RunDocument") -> "RunDocument":
    """Return a plan with the limits of this run."""
    from reconciler.document.guard import Limits

    given, allowed = session.given, saved.limits
    by_file = click.get_current_context().get_parameter_source("allow_deletes") is ParameterSource.DEFAULT_MAP
    permissions = (
        allowed.allow_deletes,
        session.allow_deletes,
    )  # that of the reviewed plan comes before reconciler.yaml
    limits = Limits(
        next((each for each in (permissions if by_file else permissions[::-1]) if each is not None), None),
        allowed.max_changes if given.max_changes is None else given.max_changes,
        sink=flags.tokens_to is not None or flags.tokens_command is not None,
        in_job=given.job is not None,
    )
    return replace(saved, limits=limits)


def _guarded(session: Session, flags: ApplyFlags, saved: "RunDocument") -> "RunDocument":
    """Return the selected part of a plan; the guard checks the whole plan, and shows one that it refuses.

    Raises:
        PlanRefused: it must not be applied.
        UsageError: `--shard` asks for a shard of a plan that is already one.
    """
    from reconciler.document.plans import plan_of, with_plan
    from reconciler.engine.compare.selection import read_shard, share_plan
    from reconciler.reports import render_plan

    given = session.given
    if saved.refusals:
        if not given.quiet and given.log_format == "text":
            write_stderr(render_plan(saved, "text", session.style(sys.stderr)).rstrip("\n"))
        reasons = "\n".join(saved.refusals)
        raise PlanRefused(f"the plan is refused, and nothing was changed: {reasons}")
    part = given.shard or (given.job.part if given.job and not saved.shard else None)
    if flags.plan_file is None or part is None:
        return saved
    if saved.shard:
        raise UsageError(f"{flags.plan_file} is the plan of shard {saved.shard} alone; merge the plans of all shards")
    shard = read_shard(part)
    plan = share_plan(plan_of(saved), shard, session.kinds)
    return replace(with_plan(saved, plan), shard=shard)


def _canary(session: Session, flags: ApplyFlags, saved: "RunDocument") -> "frozenset[Target]":
    """Return the targets that come first; none if nothing was given."""
    from reconciler.document.plans import plan_of
    from reconciler.engine.compare.selection import read_canary, selected_targets

    return (
        frozenset()
        if flags.canary is None
        else selected_targets(plan_of(saved), read_canary(flags.canary), session.kinds)
    )


def _no_canary(canary: str, saved: "RunDocument") -> str:
    """Return that no target is a canary, and what the plan has instead."""
    from reconciler.document.plans import plan_of
    from reconciler.engine.compare.selection import read_canary, unmatched

    return f"in the plan, {unmatched(read_canary(canary), plan_of(saved).targets, '--canary', '--canary')}"


def _ask(session: Session, saved: "RunDocument") -> None:
    from reconciler.document.wording import deletions_in_words
    from reconciler.reports import render_plan

    if not is_terminal(sys.stdin):
        raise UsageError("apply asks before it changes anything, and there is no terminal; add --yes")
    text = render_plan(saved, "text", session.style(sys.stderr))
    click.echo(text, err=True, nl=False, color=True)
    click.confirm("Apply this plan?", abort=True, err=True)
    deletions = deletions_in_words(saved.changes)
    if deletions and text.count("\n") > get_terminal_size().lines:
        click.confirm(f"This plan is longer than the screen, and {deletions}. Delete them?", abort=True, err=True)


def _carry_out(
    session: Session,
    flags: ApplyFlags,
    saved: "RunDocument",
    client: "Client",
    inventory: "OpenInventory",
    *,
    sink: "TokenSink | None",
    journal: HeldJournal,
    after: Afterwards = Afterwards(),
) -> int:
    """Apply the plan, write the report, complete or not, store the inventory, and return the exit code."""
    from reconciler.cli.recording import checked, marked, store
    from reconciler.document.plans import canary_of, make_report, plan_of
    from reconciler.engine.apply import Application
    from reconciler.model.item import RUN_ENDED
    from reconciler.reports import render_report

    saved, stale = checked(inventory, saved)
    options = _options(session, flags, saved, client, stale, sink=sink, journal=journal)
    plan = plan_of(saved)
    application, stop = Application(plan, client, session.kinds, options), options.stop
    started = session.now()

    def report() -> "RunDocument":
        canary = canary_of(application.canary, flags.canary, plan)
        lost = sorted(application.imports.left_out)
        return make_report(
            saved,
            application.outcomes,
            started,
            client.traffic,
            session.now().replace(microsecond=0),
            canary=canary,
            remarks=lost,
        )

    def finish() -> None:
        stop.cancel(RUN_ENDED)
        session.info("Finishing the requests in flight; a second signal stops at once.")
        session.write_reports_so_far(partial(render_report, report()))

    with marked(inventory, saved, started):
        with heeding(finish, patience=inf) as signals:
            try:
                with (
                    journal.run(client.api_url, saved.manifests_digest),
                    session.showing(options.progress, client.traffic),
                ):
                    signals.patience = 1 - len(signals.came)
                    application.run()
                    signals.ignore()
            except KeyboardInterrupt:
                signals.ignore()
            done = report()
            is_written = _tell(session, done, journal.failures)
            notify_of_report(after.hook, done)
            _warn(application, done, stop.held)
        signal = next(iter(signals.came), None)
        incomplete = bool(not is_written or journal.unsettled or application.imports.unfinished)
        code = of_report(done, allow_problems=session.given.allow_problems, signal=signal, incomplete=incomplete)
        first = options.canary if stop.reason else None
        canary = flags.canary or ""
        code = store(inventory, saved, done, code, canary=canary, first=first, application=application, client=client)
    return _go_on(session, flags, done, code, api_url=client.api_url, pipeline=after.pipeline)


def _options(
    session: Session,
    flags: ApplyFlags,
    saved: "RunDocument",
    client: "Client",
    stale: "Stale",
    *,
    sink: "TokenSink | None",
    journal: HeldJournal,
) -> "ApplyOptions":
    from reconciler.engine.apply import ApplyOptions, FailureLimit, Stop
    from reconciler.model.progress import Progress

    limit, planned = flags.max_failures, sum(1 for _ in saved.changes)
    return ApplyOptions(
        verify=not flags.no_verify,
        recheck=flags.plan_file is not None,
        stale=stale,
        deliver=sink,
        stop=Stop(client.stop),
        write_log=journal.log,
        progress=Progress(lambda: client.traffic.requests),
        canary=_canary(session, flags, saved),
        failures=None if limit is None else FailureLimit(limit, planned),
        wait=duration("--wait", flags.wait).total_seconds(),
        now=session.now,
        own_tokens=tokens_of(session.given),
    )


def _tell(session: Session, report: "RunDocument", failures: list[OutputFailed]) -> bool:
    """Write the report, and say what could not be written; return whether everything was.

    Args:
        session: the run.
        report: of the run.
        failures: why other files are incomplete.
    """
    from reconciler.reports import render_report

    try:
        session.write_result(partial(render_report, report), precious=bool(report.made.writes))
    except OutputFailed as error:
        failures = [*failures, error]
    for failure in failures:
        report_error(failure)
    return not failures


def _warn(application: "Application", report: "RunDocument", held: str) -> None:
    """Say what the run left: imports that go on, changes that nothing has verified, and why it began nothing else."""
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
    if held:
        LOG.warning("the run ended before all changes: %s", held)


def _go_on(
    session: Session,
    flags: ApplyFlags,
    report: "RunDocument",
    code: int,
    *,
    api_url: str,
    pipeline: "PipelineTrigger | None",
) -> int:
    """Say how to go on after an apply, start a pipeline after a complete one, and return the exit code."""
    from reconciler.model.item import Status

    is_done = any(each.status is Status.DONE for each in report.outcomes)
    if report.reverts and is_done:
        session.info(STILL_DECLARED)
    if code > of_signal(0):
        session.info("To go on, run the same command again: what was done is not done again.")
    if code and flags.plan_file is not None and os.environ.get("CI"):
        LOG.warning("%s", RETRIED)
    if pipeline is not None and code == 0 and is_done:
        start(session, pipeline, api_url)
    return code
