"""`reconciler show`, `merge-plans` and `merge-reports`: saved plans and reports."""

import json
from pathlib import Path

import click

from reconciler.cli.options import LIMITS, OUTPUT, PROBLEMS, Given, command
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session
from reconciler.cli.settings import read_file
from reconciler.errors import UsageError


@command(OUTPUT, PROBLEMS, epilog="Example: reconciler show plan.json --format text")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def show(given: Given, file: Path) -> int:
    """Show a saved plan or an apply report in any format.

    Exits with 3 if the plan has problems, and for a report as the apply did.
    """
    from reconciler.documents.plan_file import load_plan
    from reconciler.documents.report import FORMAT, load_report

    session = Session(given)
    text = read_file(file)
    if _format_of(text) == FORMAT:
        check_outputs(given, "report", ("FILE", file))
        return session.write_report(load_report(text, session.kinds))
    check_outputs(given, "plan", ("FILE", file))
    return session.write_plan(load_plan(text, session.kinds))


def _format_of(text: str) -> object:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document.get("format") if isinstance(document, dict) else None


FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
OUT = click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the merged document.")
PARTS = click.option("--parts", type=click.IntRange(1), metavar="N", help="Refuse to merge fewer or more than N files.")


@command(
    LIMITS,
    OUTPUT,
    PROBLEMS,
    name="merge-plans",
    epilog="Example: reconciler merge-plans plan-*.json --parts 5 --out plan.json",
)
@FILES
@OUT
@PARTS
def merge_plans(given: Given, files: tuple[Path, ...], out: Path | None, parts: int | None) -> int:
    """Merge the plans of all shards into one.

    The merged plan can be shown, or applied with `apply --plan`; the guard counts the deletions of all shards together.
    Exits with 3 if it has problems.
    """
    from reconciler.documents import merge as merging
    from reconciler.documents.plan_file import load_plan
    from reconciler.planning.guard import Limits

    _refuse_unless_all(files, parts)
    check_outputs(given, "plan", ("--out", out), *(("FILE", file) for file in files))
    session = Session(given)
    limits = Limits(given.allow_deletes, given.max_changes)
    whole = merging.merge_plans({str(file): load_plan(read_file(file), session.kinds) for file in files}, limits)
    return session.write_plan(whole, out)


@command(
    OUTPUT,
    PROBLEMS,
    name="merge-reports",
    epilog="Example: reconciler merge-reports report-*.json --parts 5 --out report.json",
)
@FILES
@OUT
@PARTS
def merge_reports(given: Given, files: tuple[Path, ...], out: Path | None, parts: int | None) -> int:
    """Merge the reports of all shards into one.

    Exits as one apply of all shards would have.
    """
    from reconciler.documents import merge as merging
    from reconciler.documents.report import load_report

    _refuse_unless_all(files, parts)
    check_outputs(given, "report", ("--out", out), *(("FILE", file) for file in files))
    session = Session(given)
    whole = merging.merge_reports({str(file): load_report(read_file(file), session.kinds) for file in files})
    return session.write_report(whole, out)


def _refuse_unless_all(files: tuple[Path, ...], parts: int | None) -> None:
    given = len(set(files))
    if parts is not None and given != parts:
        raise UsageError(
            f"--parts {parts}: there {'is' if given == 1 else 'are'} {given}: {', '.join(map(str, files))}"
        )
