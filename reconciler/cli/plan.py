"""`reconciler plan` and `reconciler drift`."""

from pathlib import Path

import click

from reconciler.cli.options import FORCE, LIMITS, PROBLEMS, RUN, Given, command
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session


@command(FORCE, LIMITS, *RUN, PROBLEMS, epilog="Example: reconciler plan manifests --out plan.json")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan for `apply --plan`.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes, even if there are problems too."
)
def plan(given: Given, out: Path | None, detailed_exitcode: bool) -> int:
    """Compare manifests with live settings and print the changes. Read-only.

    The plan also says why `apply` will refuse it. --out saves --allow-deletes and --max-changes with the plan, and
    `apply --plan` uses them: a review of the plan is a review of the permission.

    Exits with 3 if the plan has problems. Such a plan can still be saved and applied; all else in it is done.
    """
    from reconciler.cli.planning import draw

    check_outputs(given, "plan", ("--out", out))
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    return session.write_plan(saved, out, detailed=detailed_exitcode)


@command(*RUN, PROBLEMS, epilog="Example, for cron: reconciler drift manifests --report json=drift.json")
def drift(given: Given) -> int:
    """Report drift from the manifests with exit code 2. Read-only.

    Prints nothing if everything is in order. Exits with 2 even if there are problems too, and with 3 if there are only
    problems.
    """
    from reconciler.cli.planning import draw

    check_outputs(given, "plan")
    session = Session(given)
    with session.client() as client:
        saved = draw(session, client)
    in_order = not (any(saved.plan.changes) or any(saved.plan.problems)) and given.format == "text"
    return session.write_plan(saved, silent=in_order, detailed=True)
