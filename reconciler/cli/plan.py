"""`reconciler plan` and `reconciler drift`."""

import logging
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.applies import MAX_LISTED_APPLIES
from reconciler.cli.command import command
from reconciler.cli.exit_codes import of_plan
from reconciler.cli.inventory import opened_inventory
from reconciler.cli.notices import notify_of_drift, notify_of_plan, webhook
from reconciler.cli.options import (
    FORCE,
    INVENTORY,
    LIMITS,
    NOTICE,
    PROBLEMS,
    ROTATION,
    RUN,
    ConnectionOptions,
    Job,
    OutputOptions,
    PlanningOptions,
    SelectionOptions,
    SourceOptions,
)
from reconciler.cli.outputs import check_outputs, write_stderr
from reconciler.cli.results import write_plan, write_result
from reconciler.cli.settings import connected, duration, tokens_of
from reconciler.cli.sources import inputs_of
from reconciler.cli.stored import read_plan
from reconciler.errors import ConfigurationError, Outdated, PlanRefused, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.document.document import RunDocument
    from reconciler.document.style import Style

LOG = logging.getLogger("reconciler")

SPAN = timedelta(days=30)
"""How far back audit events are read if no inventory has an apply."""

WHOLE_PLAN_FORMATS = ("audit", "fleet", "json")
"""The formats that have everything, whatever the baseline: the next run compares with them."""


@command(
    FORCE,
    ROTATION,
    INVENTORY,
    LIMITS,
    *RUN,
    NOTICE,
    PROBLEMS,
    weekly="--out --target --section --since --allow-deletes --report --group-by --detailed-exitcode",
    job="plan",
    epilog="Example: reconciler plan manifests --out plan.json",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan for `apply --plan`.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes, even if there are problems too."
)
def plan(
    *,
    sources: SourceOptions,
    selection: SelectionOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    job: Job | None,
    out: Path | None,
    detailed_exitcode: bool,
) -> int:
    """Compare manifests with live settings and print the changes. Read-only.

    The plan also says why `apply` will refuse it. --out saves --allow-deletes and --max-changes with the plan, so that
    a review of the plan is a review of the permission.

    Exits with 3 if the plan has problems. Such a plan can be saved and applied; the rest of it is done.

    In a job of GitLab CI, plans what the merge request changes, elsewhere what is not as it was last applied; writes
    below .reconciler; posts a note, with RECONCILER_NOTE_TOKEN.
    """
    from reconciler.cli.planning import draw

    check_outputs("plan", output, ("--out", out), sources=sources, connection=connection)
    hook = webhook(output.notify, connection)
    inputs = inputs_of(sources, partial(tokens_of, connection, output.notify))
    with (
        connected(connection, only_reads=True, reads_moved=False) as client,
        opened_inventory(client, sources, planning, connection, applies=_applies(output)) as inventory,
    ):
        saved = draw(
            client,
            inputs,
            selection,
            planning,
            output,
            inventory=inventory,
            in_job=job is not None,
            records_commit=out is not None or "json" in output.formats,
        )
    code = write_plan(saved, output, job, out, current_time=client.now, detailed=detailed_exitcode)
    notify_of_plan(hook, saved)
    return code


@command(
    ROTATION,
    INVENTORY,
    *RUN,
    NOTICE,
    PROBLEMS,
    weekly="--baseline --who --target --section --report --notify",
    job="drift",
    epilog="Example, for cron: reconciler drift manifests --report json=drift.json",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report only what is new since this JSON report of `plan` or `drift`.",
)
@click.option(
    "--who",
    is_flag=True,
    help="Say who made each difference, by audit events: one request for each target that differs.",
)
@click.option(
    "--restored",
    is_flag=True,
    help="Also report changes that were put back since the baseline, or --after: one request for each target.",
)
@click.option(
    "--after",
    "restored_after",
    metavar="TIME",
    help="With --restored: since a day (2026-11-20), or for a duration (7d).",
)
def drift(
    *,
    sources: SourceOptions,
    selection: SelectionOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    job: Job | None,
    baseline: Path | None,
    who: bool,
    restored: bool,
    restored_after: str | None,
) -> int:
    """Report drift from the manifests with exit code 2. Read-only.

    Prints nothing if everything is in order. Exits with 2 if anything differs, and with 3 if there are only problems.

    With --baseline, known changes and problems are one line; exit code and --notify are about the rest. The JSON report
    has all of them, so that it can be the next baseline.

    With an inventory, says how many targets were changed on the service, and how many have manifests that are merged
    and not applied.

    --who and --restored know what audit events know: approval settings and rules, protected branches, and the
    allowlists of job tokens. --who reads the events since the last apply, or of the last 30 days without an inventory.
    --restored leaves the exit code alone, because nothing is left to do.

    --report fleet=FILE.html writes a page about the fleet, and keeps its history in FILE.history.json.

    In a job of GitLab CI, writes below .reconciler; keeps an issue if reconciler.yaml has `issue`, with
    RECONCILER_NOTE_TOKEN.
    """
    from reconciler.cli.planning import draw
    from reconciler.document.compare import earlier_fingerprints, new_in, unchanged_fingerprints
    from reconciler.document.wording import access_notes, from_their_side, with_reasons
    from reconciler.reports import render_plan

    check_outputs("plan", output, ("--baseline", baseline), sources=sources, connection=connection)
    if restored_after is not None and not restored:
        raise UsageError("--after goes with --restored")
    if restored and restored_after is None and baseline is None:
        raise UsageError("--restored goes with --baseline FILE or --after TIME, such as --after 7d")
    hook = webhook(output.notify, connection)
    inputs = inputs_of(sources, partial(tokens_of, connection, output.notify))
    with (
        connected(connection, only_reads=True, reads_moved=False) as client,
        opened_inventory(client, sources, planning, connection, applies=max(_applies(output), int(who))) as inventory,
    ):
        before = _baseline(baseline, client.api_url, job)
        since = _restored_after(restored_after, client.now(), before)
        who_after = (inventory.applies[0].when if inventory.applies else client.now() - SPAN) if who else None
        saved = draw(
            client,
            inputs,
            selection,
            planning,
            output,
            inventory=inventory,
            in_job=job is not None,
            who_after=who_after,
            restored_after=since if restored else None,
        )
    news = (
        saved if before is None else new_in(saved, earlier_fingerprints(before, saved), unchanged_fingerprints(before))
    )
    saved, news = (from_their_side(with_reasons(document)) for document in (saved, news))

    def write(format_: str, style: "Style") -> str:
        return render_plan(saved if format_ in WHOLE_PLAN_FORMATS else news, format_, style)

    known = news.known
    has_more = known is not None and not output.quiet and (known.total or any(access_notes(news)))
    # A branch that is closed on purpose is `closed`: a job whose output is mailed would send a mail every night.
    unprotected = known is None and not output.quiet and any(news.findings("undermined", "flaw"))
    silent = news.is_empty and not (any(saved.findings("restored")) or has_more or unprotected)
    silent = silent and output.format == "text"
    write_result(write, output, job=job, fleet=saved, current_time=client.now, silent=silent)
    notify_of_drift(hook, saved, news)
    return of_plan(news, detailed=True, allow_problems=output.allow_problems)


def _applies(output: OutputOptions) -> int:
    """Return the number of applies to read with the inventory: a fleet page shows them, in this run or a later one."""
    return MAX_LISTED_APPLIES if output.formats.intersection(WHOLE_PLAN_FORMATS) else 0


def _restored_after(
    restored_after: str | None, now: "datetime", baseline_plan: "RunDocument | None"
) -> "datetime | None":
    """Return the time from which changes that were put back are reported: by a day or a duration, else by the baseline.

    Raises:
        UsageError: the option is neither a day that has begun nor a duration.
    """
    from datetime import UTC, date, datetime, time

    if restored_after is None:
        return baseline_plan.created_at if baseline_plan else None
    try:
        moment = datetime.combine(date.fromisoformat(restored_after), time(), UTC)
    except ValueError:
        try:
            moment = now - duration("--after", restored_after)
        except UsageError:
            raise UsageError(
                f"--after takes a day, such as 2026-11-20, or a duration, such as 7d; not {restored_after}"
            ) from None
    if moment > now:
        raise UsageError(f"--after {restored_after} is in the future")
    return moment


def _baseline(baseline_file: Path | None, api_url: str, job: Job | None) -> "RunDocument | None":
    """Return the plan that is known already; None without a file, and, with a warning, for a file of another format.

    Raises:
        ConfigurationError: the file cannot be read.
        PlanRefused: the file is not a plan, was edited, is of a newer format, or is about another service.
    """
    from reconciler.document.document import is_about

    if baseline_file is None:
        return None
    try:
        before = read_plan(baseline_file)
    except ConfigurationError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        if job and baseline_file == job.last_drift:
            write_stderr("no earlier run of this job has left a report of drift; without a baseline everything is new")
            return None
        advice = f"check the path, or write it: reconciler drift --report json={baseline_file}"
        write_stderr(f"{baseline_file} does not exist; without a baseline everything is new: {advice}")
        return None
    except Outdated:
        write_stderr(f"{baseline_file} was written by an older reconciler; without a baseline everything is new")
        return None
    if not is_about(before.service, api_url):
        raise PlanRefused(f"{baseline_file}: the baseline is about {before.service!r}, and this is {api_url!r}")
    return before
