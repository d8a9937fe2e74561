"""`reconciler apply`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.cli.exit_codes import of_report
from reconciler.cli.options import FLEET, FORCE, LIMITS, MANIFESTS, OUTPUT, PROBLEMS, SELECTION, SERVICE, Given, options
from reconciler.cli.outputs import check_outputs, is_terminal, report_error
from reconciler.cli.session import Session, read_file
from reconciler.cli.settings import duration, tokens_of
from reconciler.cli.signals import heeding
from reconciler.errors import OutputFailed, PlanRefused, UsageError

if TYPE_CHECKING:
    from reconciler.apply import TokenSink
    from reconciler.cli.journaling import Keeping
    from reconciler.documents.plan_file import SavedPlan
    from reconciler.render import Style
    from reconciler.service import Client


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options that only `apply` has."""

    plan_file: Path | None
    max_age: str
    yes: bool
    no_verify: bool
    tokens_to: Path | None
    tokens_command: str | None
    grace: str
    journal: Path | None


@click.command(epilog="Examples: reconciler apply manifests --yes;  reconciler apply --plan plan.json --yes")
@options(MANIFESTS, SELECTION, FLEET, FORCE, LIMITS, SERVICE, OUTPUT, PROBLEMS)
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE", help="Apply this saved plan.")
@click.option("--max-age", default="24h", metavar="TIME", show_default=True, help="Refuse an older saved plan.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--no-verify", is_flag=True, help="Do not read again what was changed.")
@click.option(
    "--tokens-to", type=click.Path(path_type=Path), metavar="FILE", help="Append created tokens here, mode 0600."
)
@click.option("--tokens-command", metavar="CMD", help="Run this for each created token, with one JSON line on stdin.")
@click.option(
    "--grace",
    default="0m",
    metavar="TIME",
    show_default=True,
    help="Keep a rotated token until its successor is so old.",
)
@click.option(
    "--journal", type=click.Path(path_type=Path), metavar="FILE", help="Note each write before and after it, on disk."
)
def apply(given: Given, **own: Any) -> int:
    """Carry out what `plan` shows, or a saved plan: the fewest requests, then a look at what they did.

    Exits with 3 if some changes were not done or the plan has problems, and with 1 if nothing was changed. A signal
    lets what is in flight finish; the report follows, and the exit code is 128 plus the signal's number.
    """
    from reconciler.cli.journaling import keeping

    wishes = Wishes(**own | _overruled("tokens_to", "tokens_command"))
    _check(given, wishes)
    files = {"--plan": wishes.plan_file, "--journal": wishes.journal, "--tokens-to": wishes.tokens_to}
    check_outputs(given, "report", *files.items())
    session = Session(given)
    deliver = _sink(given, wishes)
    with session.client() as client, keeping(wishes.journal, client, session.kinds, deliver) as journal:
        saved = _plan(session, wishes, client)
        saved = _guarded(session, wishes, saved)
        if any(saved.plan.changes) and not wishes.yes:
            _ask(session, saved)
        return _carry_out(session, wishes, saved, client, deliver=deliver, journal=journal)


def _overruled(*names: str) -> dict[str, None]:
    """Return those of options of which only one may be given that the configuration gives, if a flag gives another."""
    source = click.get_current_context().get_parameter_source
    if not any(source(name) is ParameterSource.COMMANDLINE for name in names):
        return {}
    return {name: None for name in names if source(name) is ParameterSource.DEFAULT_MAP}


def _check(given: Given, wishes: Wishes) -> None:
    """Refuse options that do not go together."""
    source = click.get_current_context().get_parameter_source("paths")
    if wishes.plan_file is not None and given.paths and source is ParameterSource.COMMANDLINE:
        raise UsageError("apply takes PATHS or --plan, not both")
    if wishes.plan_file is not None and any(
        (given.targets, given.labels, given.sections, given.retry_failed, given.since, given.everything)
    ):
        raise UsageError("apply carries out a saved plan whole, or a shard of it; narrow it when it is made")
    if wishes.plan_file is not None and given.force_events:
        raise UsageError("apply carries out a saved plan as it is; --force-events goes with the plan that is saved")
    if wishes.tokens_to is not None and wishes.tokens_command is not None:
        raise UsageError("apply takes --tokens-to or --tokens-command, not both")


def _plan(session: Session, wishes: Wishes, client: "Client") -> "SavedPlan":
    from reconciler.cli.drawing import draw

    grace = duration("--grace", wishes.grace)
    if wishes.plan_file is None:
        return draw(session, client, grace)
    return _saved_plan(session, wishes.plan_file, client, duration("--max-age", wishes.max_age))


def _carry_out(
    session: Session,
    wishes: Wishes,
    saved: "SavedPlan",
    client: "Client",
    *,
    deliver: "TokenSink | None",
    journal: "Keeping",
) -> int:
    """Apply the plan, write the report of all that is known, and return the exit code."""
    from reconciler.apply import ENDED, Application, ApplyOptions, Stop
    from reconciler.documents.report import make_report
    from reconciler.render import render_report

    stop = Stop(client.stop)

    def finish() -> None:
        session.tell("Finishing what is in flight; once more to stop at once.")
        stop.cancel(ENDED)

    application = Application(saved.plan, client, session.kinds)
    started = datetime.now(UTC)
    with heeding(finish, patience=inf) as signals:
        try:
            with (
                journal.run(client.api_url, saved.header.manifests_digest) as record,
                session.watched(client) as progress,
            ):
                verify, recheck = not wishes.no_verify, wishes.plan_file is not None
                terms = ApplyOptions(session.given.concurrency, verify, recheck, deliver, stop, record, progress)
                signals.patience = 1 - len(signals.came)
                application.run(terms)
                signals.ignore()
        except KeyboardInterrupt:
            signals.ignore()
        report = make_report(saved, application.outcomes, started, client.traffic)
        untold = _write_report(session, partial(render_report, report), journal, precious=bool(report.writes))
    signal = next(iter(signals.came), None)
    return of_report(report, allow_problems=session.given.allow_problems, signal=signal, untold=untold)


def _write_report(
    session: Session, write: "Callable[[str, Style], str]", journal: "Keeping", *, precious: bool
) -> bool:
    """Write the report, then what could not be written or settled; tell whether that was anything."""
    failures = journal.failures
    try:
        session.write_result(write, precious=precious)
    except OutputFailed as error:
        failures.append(error)
    for failure in failures:
        report_error(failure)
    return bool(failures or journal.unsettled)


def _saved_plan(session: Session, file: Path, client: "Client", max_age: timedelta) -> "SavedPlan":
    from reconciler.documents.plan_file import load_plan, refuse_unless_current

    saved = load_plan(read_file(file), session.kinds)
    refuse_unless_current(saved, api_url=client.api_url, now=datetime.now(UTC), max_age=max_age)
    return saved


def _guarded(session: Session, wishes: Wishes, saved: "SavedPlan") -> "SavedPlan":
    """Return what is to be applied of a plan, with all that it is allowed; the guard looks at the whole.

    Raises:
        PlanRefused: it must not be applied.
        UsageError: a shard is asked for of a plan that is already one.
    """
    from reconciler.planning.guard import Limits
    from reconciler.planning.shards import read_shard, share_plan

    given, allowed = session.given, saved.header.limits
    limits = Limits(
        allowed.deletes if given.allow_deletes is None else given.allow_deletes,
        allowed.changes if given.max_changes is None else given.max_changes,
        sink=wishes.tokens_to is not None or wishes.tokens_command is not None,
    )
    saved = replace(saved, header=replace(saved.header, limits=limits))
    if saved.refusals:
        raise PlanRefused("the plan is refused, and nothing was changed: " + "\n".join(saved.refusals))
    if wishes.plan_file is None or given.shard is None:
        return saved
    if saved.header.shard:
        raise UsageError(f"{wishes.plan_file} is the plan of shard {saved.header.shard} alone: merge the plans of all")
    shard = read_shard(given.shard)
    return replace(saved, header=replace(saved.header, shard=shard), plan=share_plan(saved.plan, shard, session.kinds))


def _ask(session: Session, saved: "SavedPlan") -> None:
    from reconciler.render import render_plan

    if not is_terminal(sys.stdin):
        raise UsageError("apply asks before it changes anything, and there is no terminal to ask on; add --yes")
    click.echo(render_plan(saved, "text", session.style(sys.stderr)), err=True, nl=False, color=True)
    click.confirm("Apply this plan?", abort=True, err=True)


def _sink(given: Given, wishes: Wishes) -> "TokenSink | None":
    from reconciler.apply.token_sinks import TokenCommand, TokenFile

    if wishes.tokens_to is not None:
        return TokenFile(wishes.tokens_to)
    return None if wishes.tokens_command is None else TokenCommand(wishes.tokens_command, tokens_of(given))
