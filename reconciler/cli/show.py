"""`reconciler show`."""

import json
from functools import partial
from pathlib import Path

import click

from reconciler.cli.options import OUTPUT, Given, options
from reconciler.cli.session import Session, read_file


@click.command(epilog="Example: reconciler show plan.json --format text")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options(OUTPUT)
def show(given: Given, file: Path) -> int:
    """Show a saved plan or the report of an apply, in any format."""
    from reconciler.planfile import load_plan
    from reconciler.render import render_plan, render_report
    from reconciler.report import FORMAT, load_report

    session = Session(given)
    text = read_file(file)
    if _format_of(text) == FORMAT:
        session.put_out(partial(render_report, load_report(text, session.kinds)))
    else:
        session.put_out(partial(render_plan, load_plan(text, session.kinds)))
    return 0


def _format_of(text: str) -> object:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document.get("format") if isinstance(document, dict) else None
