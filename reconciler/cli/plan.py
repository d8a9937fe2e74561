"""`reconciler plan` and `reconciler drift`."""

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
    from reconciler.cli.planning import draw
    from reconciler.documents.plan_file import save_plan
    from reconciler.render import render_plan

    check_outputs(given, "plan", ("--out", out))
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    session.write_result(partial(render_plan, saved), documents={} if out is None else {out: save_plan(saved)})
    return of_plan(saved.plan, detailed=detailed_exitcode, allow_problems=given.allow_problems)


@click.command(epilog="Example, for cron: reconciler drift manifests --report json=drift.json")
@options(MANIFESTS, SELECTION, FLEET, SERVICE, OUTPUT, PROBLEMS)
def drift(given: Given) -> int:
    """Report what differs from the manifests: exit 2 on drift, quiet when in order. Cannot write.

    Exits with 2 also if there are problems besides, and with 3 if there are only problems.
    """
    from reconciler.cli.planning import draw
    from reconciler.render import render_plan

    check_outputs(given, "plan")
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    in_order = not (any(saved.plan.changes) or any(saved.plan.problems)) and given.format_ == "text"
    session.write_result(partial(render_plan, saved), silent=in_order)
    return of_plan(saved.plan, detailed=True, allow_problems=given.allow_problems)
