"""`reconciler plan`."""

from functools import partial
from pathlib import Path

import click

from reconciler.cli.exit_codes import of_plan
from reconciler.cli.options import FLEET, FORCE, LIMITS, MANIFESTS, OUTPUT, PROBLEMS, SELECTION, SERVICE, Given, options
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session


@click.command(epilog="Example: reconciler plan manifests --out plan.json")
@options(MANIFESTS, SELECTION, FLEET, FORCE, LIMITS, SERVICE, OUTPUT, PROBLEMS)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan, for apply --plan.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes, also if there are problems.")
def plan(given: Given, out: Path | None, detailed_exitcode: bool) -> int:
    """Read live state and print what would change. Cannot write.

    Reports also why `apply` will refuse the plan. With --out, --allow-deletes and --max-changes are saved with the
    plan, and `apply --plan` goes by them, so that whoever reviews the plan reviews the permission.

    Exits with 3 if the plan has problems. It can be saved and applied all the same: the rest of it is done.
    """
    from reconciler.cli.drawing import draw
    from reconciler.documents.plan_file import save_plan
    from reconciler.render import render_plan

    check_outputs(given, "plan", ("--out", out))
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    session.write_result(partial(render_plan, saved), documents={} if out is None else {out: save_plan(saved)})
    return of_plan(saved.plan, detailed=detailed_exitcode, allow_problems=given.allow_problems)
