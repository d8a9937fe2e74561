"""`reconciler accept`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import CONNECTION, DEFAULT_PATHS, MANIFESTS, PLACES, SELECTION, SERVICE, Given, command
from reconciler.cli.outputs import write_stdout
from reconciler.cli.session import Session
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.accept import Acceptance
    from reconciler.model.plan import Problem


@command(
    MANIFESTS,
    PLACES,
    SELECTION,
    CONNECTION,
    SERVICE,
    epilog="Examples: reconciler accept --diff;  reconciler accept manifests --target acme/payments/api",
)
@click.option("--diff", is_flag=True, help="Print what would change in the files, and write nothing.")
@click.option("--detailed-exitcode", is_flag=True, help="With --diff: exit with 2 if a file would change.")
def accept(given: Given, diff: bool, detailed_exitcode: bool) -> int:
    """Write live values into the manifests where they differ.

    The plan is empty afterwards. A value is written where it is declared: into the profile or the set if all its
    targets have the new value, else into the target's own document, which is created if need be. Comments and order
    stay, and what no manifest mentions stays unmentioned, unless its section is pruned.

    Differences that cannot be accepted, such as a value in a template, are reported, and the exit code is 3.
    """
    if detailed_exitcode and not diff:
        raise UsageError("--detailed-exitcode goes with --diff")
    session = Session(given)
    accepted = accept_drift(session)
    session.warn(refusals(accepted.refused))
    if diff:
        write_stdout("".join(accepted.diff()))
        return ExitCode.CHANGES_PENDING if detailed_exitcode and accepted.texts else ExitCode.IN_ORDER
    from reconciler.accept.files import write_texts
    from reconciler.model.wording import counted

    write_texts(accepted, roots(given))
    write_stdout("".join(f"{path}\n" for path in accepted.texts))
    session.info(
        f"{counted(accepted.accepted, 'difference')} accepted; {counted(len(accepted.texts), 'file')} written."
    )
    return exit_code(accepted)


def roots(given: Given) -> list[Path]:
    """Return the files and folders in which manifests are searched."""
    return [Path(path) for path in given.paths or DEFAULT_PATHS]


def accept_drift(session: Session) -> "Acceptance":
    """Read manifests and live state, and return the manifests that agree with it: see `reconciler.accept`."""
    from dataclasses import replace

    from reconciler.accept import Drift, ManifestFiles
    from reconciler.accept import accept as accept_all
    from reconciler.accept.files import linked_files
    from reconciler.cli.planning import read_fleet
    from reconciler.planning.run import read_and_plan
    from reconciler.planning.selection import hold_back_moved

    given = session.given
    with session.client() as client, session.watched(client) as progress:
        progress.begin("reading manifests")
        fleet = read_fleet(session, client, None)
        plan, live = read_and_plan(
            fleet.desired,
            client,
            session.kinds,
            given.concurrency,
            known=fleet.known,
            progress=progress,
            api_url=client.api_url,
        )
        if not given.follow_moved:
            plan = hold_back_moved(plan, fleet.known.moved())
        progress.begin("comparing")
        folders = roots(given)
        files = ManifestFiles(folders, linked_files(fleet.manifests.files, folders))
        accepted = accept_all(Drift(fleet.manifests, fleet.desired, plan, live), session.kinds, files)
    where = fleet.manifests.origin
    return replace(
        accepted,
        refused=tuple(replace(each, origin=where(each.address, each.field)) for each in accepted.refused),
    )


def exit_code(accepted: "Acceptance") -> ExitCode:
    """Return 3 if anything was refused."""
    return ExitCode.IN_PART if accepted.refused else ExitCode.IN_ORDER


def refusals(refused: "Iterable[Problem]") -> Iterator[str]:
    """Yield each difference that stays, with the targets that have it."""
    from reconciler.render.wording import problem_text

    equal: dict[str, list[str]] = {}
    for problem in refused:
        equal.setdefault(problem_text(problem), []).append(str(problem.address.target))
    for text, targets in equal.items():
        first, *others = targets
        more = f" and {len(others)} more" if others else ""
        yield f"not accepted: {text} ({first}{more})"
