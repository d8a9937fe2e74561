"""`reconciler apply`."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import MANIFESTS, OUTPUT, SELECTION, SERVICE, Given, options
from reconciler.cli.session import Session, read_file
from reconciler.errors import PlanRefused, UsageError

if TYPE_CHECKING:
    from reconciler.apply import Deliver, Stop
    from reconciler.guard import Limits
    from reconciler.kind import Kinds
    from reconciler.plan import Plan
    from reconciler.planfile import SavedPlan
    from reconciler.service import Client


@click.command(epilog="Examples: reconciler apply manifests --yes;  reconciler apply --plan plan.json --yes")
@options(MANIFESTS, SELECTION, SERVICE, OUTPUT)
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE", help="Apply this saved plan.")
@click.option("--max-age", default="24h", metavar="TIME", show_default=True, help="Refuse an older saved plan.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--allow-deletes", type=click.IntRange(0), metavar="N", help="So many deletions are meant.")
@click.option("--max-changes", type=click.IntRange(0), metavar="N", help="Refuse a plan of more changes.")
@click.option("--no-verify", is_flag=True, help="Do not read again what was changed.")
@click.option(
    "--tokens-to", type=click.Path(path_type=Path), metavar="FILE", help="Append created tokens here, mode 0600."
)
@click.option("--tokens-command", metavar="CMD", help="Run this for each created token, with one JSON line on stdin.")
def apply(
    given: Given,
    *,
    plan_file: Path | None,
    max_age: str,
    yes: bool,
    allow_deletes: int | None,
    max_changes: int | None,
    no_verify: bool,
    tokens_to: Path | None,
    tokens_command: str | None,
) -> int:
    """Carry out what `plan` shows, or a saved plan: the fewest requests, then a look at what they did."""
    from reconciler.apply import NoRecord, Stop, Terms, apply_plan
    from reconciler.guard import Limits
    from reconciler.render import render_report
    from reconciler.report import make_report

    if plan_file is not None and given.paths:
        raise UsageError("apply takes PATHS or --plan, not both")
    if tokens_to is not None and tokens_command is not None:
        raise UsageError("apply takes --tokens-to or --tokens-command, not both")
    session = Session(given)
    with session.client() as client:
        saved = _saved_plan(session, plan_file, client, max_age) if plan_file else session.draw(client)
        _refuse(
            saved.plan, session.kinds, Limits(allow_deletes, max_changes), delivered=bool(tokens_to or tokens_command)
        )
        if any(saved.plan.changes) and not yes:
            _ask(session, saved)
        deliver = _sink(tokens_to, tokens_command)
        stop = Stop()
        with _ending_gently(stop) as signals:
            terms = Terms(given.concurrency, not no_verify, plan_file is not None, deliver, stop, NoRecord())
            started = datetime.now(UTC)
            outcomes = list(apply_plan(saved.plan, client, session.kinds, terms))
        report = make_report(saved, outcomes, started, client.traffic)
    session.put_out(partial(render_report, report))
    return 1 if signals else report.exit_code


def _saved_plan(session: Session, file: Path, client: "Client", max_age: str) -> "SavedPlan":
    from reconciler.planfile import load_plan, refuse_unless_current

    saved = load_plan(read_file(file), session.kinds)
    refuse_unless_current(saved, api_url=client.api_url, now=datetime.now(UTC), max_age=_duration(max_age))
    return saved


def _duration(text: str) -> timedelta:
    units = {"m": "minutes", "h": "hours", "d": "days"}
    if not text[:-1].isdigit() or text[-1:] not in units:
        raise UsageError(f"--max-age takes a number and m, h or d, such as 24h; not {text}")
    return timedelta(**{units[text[-1]]: int(text[:-1])})


def _refuse(plan: "Plan", kinds: "Kinds", limits: "Limits", *, delivered: bool) -> None:
    """Refuse what must not be applied, before anything is."""
    from reconciler.apply import delivering
    from reconciler.guard import objections

    reasons = list(objections(plan, limits))
    secret = delivering(plan, kinds)
    if secret and not delivered:
        reasons.append(
            f"the plan creates {len(secret)} {secret[0].address.title}{'s' * (len(secret) > 1)}, whose value is shown "
            "only once: say where it is to go with --tokens-to FILE or --tokens-command CMD"
        )
    if reasons:
        raise PlanRefused("refused, nothing was changed: " + "\n".join(reasons))


def _ask(session: Session, saved: "SavedPlan") -> None:
    from reconciler.render import render_plan

    if not sys.stdin.isatty():
        raise UsageError("apply asks before it changes anything, and there is no terminal to ask on; add --yes")
    click.echo(render_plan(saved, "text", colour=False, verbose=bool(session.given.verbose)), err=True, nl=False)
    click.confirm("Apply this plan?", abort=True, err=True)


def _sink(file: Path | None, command: str | None) -> "Deliver | None":
    from reconciler.delivery import TokenCommand, TokenFile

    if file is not None:
        return TokenFile(file)
    return None if command is None else TokenCommand(command)


@contextmanager
def _ending_gently(stop: "Stop") -> Iterator[list[int]]:
    """The first Ctrl-C or SIGTERM lets what is in flight finish; a second one stops at once.

    The list holds the signals that came.
    """
    signals: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)
        stop.because("the run was ended before it")
        click.echo("Finishing what is in flight; once more to stop at once.", err=True)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
