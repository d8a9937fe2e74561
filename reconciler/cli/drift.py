"""`reconciler drift`."""

from functools import partial

import click

from reconciler.cli.exit_codes import of_plan
from reconciler.cli.options import FLEET, MANIFESTS, OUTPUT, PROBLEMS, SELECTION, SERVICE, Given, options
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session


@click.command(epilog="Example, for cron: reconciler drift manifests --report json=drift.json")
@options(MANIFESTS, SELECTION, FLEET, SERVICE, OUTPUT, PROBLEMS)
def drift(given: Given) -> int:
    """Report what differs from the manifests: exit 2 on drift, quiet when in order. Cannot write.

    Exits with 2 also if there are problems besides, and with 3 if there are only problems.
    """
    from reconciler.cli.drawing import draw
    from reconciler.render import render_plan

    check_outputs(given, "plan")
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    in_order = not (any(saved.plan.changes) or any(saved.plan.problems)) and given.format_ == "text"
    session.write_result(partial(render_plan, saved), silent=in_order)
    return of_plan(saved.plan, detailed=True, allow_problems=given.allow_problems)
