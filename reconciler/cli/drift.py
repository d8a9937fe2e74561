"""`reconciler drift`."""

from functools import partial

import click

from reconciler.cli.options import FLEET, MANIFESTS, OUTPUT, SELECTION, SERVICE, Given, options
from reconciler.cli.plan import CHANGES_PENDING
from reconciler.cli.session import Session


@click.command(epilog="Example, for cron: reconciler drift manifests --report json=drift.json")
@options(MANIFESTS, SELECTION, FLEET, SERVICE, OUTPUT)
def drift(given: Given) -> int:
    """Tell what differs from the manifests: exit 2 on drift, quiet when in order. Cannot write."""
    from reconciler.cli.drawing import draw
    from reconciler.render import render_plan

    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    drifted, problems = any(saved.plan.changes), any(saved.plan.problems)
    in_order = not (drifted or problems) and given.format_ == "text"
    session.put_out(partial(render_plan, saved), silent=in_order)
    if problems:
        return 1
    return CHANGES_PENDING if drifted else 0
