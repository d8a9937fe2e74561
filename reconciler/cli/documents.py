"""`reconciler show` and `reconciler merge`: saved plans and reports."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import job
from reconciler.cli.command import command
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import LIMITS, OUTPUT, PROBLEMS, Job, OutputOptions, PlanningOptions
from reconciler.cli.outputs import check_outputs
from reconciler.cli.results import write_plan, write_report, write_result
from reconciler.cli.settings import limits_of, read_file
from reconciler.cli.stored import naming_document, read_plan, read_report
from reconciler.errors import PlanRefused, UsageError
from reconciler.system import clock
from reconciler.system.checkout import tracked

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.document.document import RunDocument
    from reconciler.document.guard import Limits


@command(
    OUTPUT,
    PROBLEMS,
    weekly="--since --format --report --group-by",
    job="show",
    epilog="Examples: reconciler show plan.json --format html;  reconciler show new.json --since old.json",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--since",
    "older_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OLD",
    help="Show what has changed since this older plan or report, as text, markdown or json.",
)
def show(*, output: OutputOptions, job: Job | None, file: Path, older_file: Path | None) -> int:
    """Show a saved plan or an apply report in any format.

    Exits with 3 if the plan has problems, and for a report as the apply did; with --since, with 0.
    """
    from reconciler.document.compare import compare
    from reconciler.reports import render_comparison

    shown = _load(file)
    if older_file is not None:
        check_outputs("comparison", output, ("FILE", file), ("--since", older_file))
        before = _load(older_file)
        if before.format != shown.format:
            raise PlanRefused(
                f"{older_file} is {_name(before)}, and {file} is {_name(shown)}; compare two plans or two reports"
            )
        write_result(partial(render_comparison, compare(before, shown)), output, job=job)
        return ExitCode.IN_ORDER
    check_outputs("plan" if shown.is_plan else "report", output, ("FILE", file))
    if not shown.is_plan:
        return write_report(shown, output, job)
    return write_plan(shown, output, job)


def _load(file: Path) -> "RunDocument":
    from reconciler.document.stored import is_report, load_plan, load_report
    from reconciler.kinds import all_kinds

    text = read_file(file)
    with naming_document(file):
        return (load_report if is_report(text) else load_plan)(text, all_kinds())


def _name(document: "RunDocument") -> str:
    return "a saved plan" if document.is_plan else "an apply report"


def plans(command: str, *words: str) -> bool:
    """Return whether a command makes a whole plan, which a merge of reports or of the plans of `drift` does not.

    An error about a missing file names the file.
    """
    if command != "merge":
        return command == job.PLAN
    files: tuple[Path, ...] = merge.make_context(command, [*words], resilient_parsing=True).params["files"] or ()
    if any(map(job.is_report_file, files)):
        return False
    return not any(file.name.startswith((job.DRIFT, job.REPORT)) for file in files)


@command(
    LIMITS,
    OUTPUT,
    PROBLEMS,
    job="merge",
    epilog="Examples: reconciler merge plan-*.json --parts 5 --out plan.json;  reconciler merge report-*.json",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the merged plan or report.")
@click.option(
    "--parts", "part_count", type=click.IntRange(1), metavar="N", help="Refuse to merge fewer or more than N files."
)
def merge(
    *,
    planning: PlanningOptions,
    output: OutputOptions,
    job: Job | None,
    files: Sequence[Path],
    out: Path | None,
    part_count: int | None,
) -> int:
    """Merge the plans, or the reports, of all shards into one.

    A merged plan can be shown, or applied with `apply --plan`; the guard counts the deletions of all shards together.
    Exits with 3 if the plan has problems, and for reports as one apply of all shards would have.

    In a job of GitLab CI, writes and posts what `plan`, `drift` (if all files are named drift-*) or `apply` would.
    """
    from reconciler.document import merge as merging
    from reconciler.document.stored import is_report

    number = len(set(files))
    if part_count is not None and number != part_count:
        raise UsageError(
            f"--parts {part_count}: there {'is' if number == 1 else 'are'} {number}: {', '.join(map(str, files))}"
        )
    committed = tracked(files)
    if committed:
        raise PlanRefused(
            f"cannot merge: {committed[0]} is committed, and whoever may push can write that; name files that this "
            "pipeline or machine has made"
        )
    reports = [file for file in files if is_report(read_file(file))]
    if not reports:
        limits = limits_of(planning, clock.now().date(), in_job=job is not None)
        return _merge_plans(files, limits, output, job, out)
    if len(reports) < len(files):
        other = next(file for file in files if file not in reports)
        raise PlanRefused(f"{reports[0]} is an apply report, and {other} is not; merge plans, or reports")
    check_outputs("report", output, ("--out", out), *(("FILE", file) for file in files))
    read = {str(file): read_report(file) for file in files}
    for name, report in read.items():
        _refuse_future(name, "report", max(report.began_at, report.time))
    whole = merging.merge_reports(read)
    return write_report(whole, output, job, out)


def _merge_plans(
    files: Sequence[Path], limits: "Limits", output: OutputOptions, job: Job | None, out: Path | None
) -> int:
    from reconciler.document import merge as merging

    check_outputs("plan", output, ("--out", out), *(("FILE", file) for file in files))
    parts = {str(file): read_plan(file) for file in files}
    for name, saved in parts.items():
        _refuse_future(name, "plan", saved.created_at)
    whole = merging.merge_plans(parts, limits)
    return write_plan(whole, output, job, out)


def _refuse_future(name: str, document_name: str, made_at: "datetime") -> None:
    """Refuse a part that was made in the future: the whole is as old as its oldest part, so nobody would see it."""
    from reconciler.document.document import refuse_future

    with naming_document(Path(name)):
        refuse_future(document_name, made_at, clock.now())
