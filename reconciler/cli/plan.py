"""`reconciler plan`."""

from functools import partial
from pathlib import Path

import click

from reconciler.cli.options import FLEET, MANIFESTS, OUTPUT, SELECTION, SERVICE, Given, options
from reconciler.cli.session import Session

CHANGES_PENDING = 2


@click.command(epilog="Example: reconciler plan manifests --out plan.json")
@options(MANIFESTS, SELECTION, FLEET, SERVICE, OUTPUT)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan, for apply --plan.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where there is something to change.")
def plan(given: Given, out: Path | None, detailed_exitcode: bool) -> int:
    """Read live state and print what would change. Cannot write."""
    from reconciler.cli.drawing import draw
    from reconciler.planfile import save_plan
    from reconciler.render import render_plan

    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    if out is not None:
        session.save(out, save_plan(saved))
    session.put_out(partial(render_plan, saved))
    if any(saved.plan.problems):
        return 1
    return CHANGES_PENDING if detailed_exitcode and any(saved.plan.changes) else 0
