"""`reconciler show`."""

import json
from functools import partial
from pathlib import Path

import click

from reconciler.cli.exit_codes import of_plan, of_report
from reconciler.cli.options import OUTPUT, PROBLEMS, Given, options
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session, read_file


@click.command(epilog="Example: reconciler show plan.json --format text")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options(OUTPUT, PROBLEMS)
def show(given: Given, file: Path) -> int:
    """Show a saved plan or the report of an apply, in any format.

    Exits with 3 if the plan has problems, and for a report as the apply did.
    """
    from reconciler.documents.plan_file import load_plan
    from reconciler.documents.report import FORMAT, load_report
    from reconciler.render import render_plan, render_report

    session = Session(given)
    text = read_file(file)
    if _format_of(text) == FORMAT:
        check_outputs(given, "report", ("FILE", file))
        report = load_report(text, session.kinds)
        session.write_result(partial(render_report, report))
        return of_report(report, allow_problems=given.allow_problems)
    check_outputs(given, "plan", ("FILE", file))
    saved = load_plan(text, session.kinds)
    session.write_result(partial(render_plan, saved))
    return of_plan(saved.plan, allow_problems=given.allow_problems)


def _format_of(text: str) -> object:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document.get("format") if isinstance(document, dict) else None
