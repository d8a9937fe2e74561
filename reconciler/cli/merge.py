"""`reconciler merge-plans` and `reconciler merge-reports`."""

from functools import partial
from pathlib import Path

import click

from reconciler.cli.options import OUTPUT, Given, options
from reconciler.cli.session import Session, read_file

FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
OUT = click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the whole as a document.")


@click.command("merge-plans", epilog="Example: reconciler merge-plans plan-*.json --out plan.json")
@FILES
@options(OUTPUT)
@OUT
def merge_plans(given: Given, files: tuple[Path, ...], out: Path | None) -> int:
    """Put the plans of shards together to one, for `apply --plan` or to be shown."""
    from reconciler import merging
    from reconciler.planfile import load_plan, save_plan
    from reconciler.render import render_plan

    session = Session(given)
    whole = merging.merge_plans({str(file): load_plan(read_file(file), session.kinds) for file in files})
    if out is not None:
        session.save(out, save_plan(whole))
    session.put_out(partial(render_plan, whole))
    return 1 if any(whole.plan.problems) else 0


@click.command("merge-reports", epilog="Example: reconciler merge-reports report-*.json --out report.json")
@FILES
@options(OUTPUT)
@OUT
def merge_reports(given: Given, files: tuple[Path, ...], out: Path | None) -> int:
    """Put the reports of shards together to one; the exit code is that of an apply of the whole."""
    from reconciler import merging
    from reconciler.render import render_report
    from reconciler.report import load_report, save_report

    session = Session(given)
    whole = merging.merge_reports({str(file): load_report(read_file(file), session.kinds) for file in files})
    if out is not None:
        session.save(out, save_report(whole))
    session.put_out(partial(render_report, whole))
    return whole.exit_code
