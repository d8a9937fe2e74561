"""`reconciler accept`: the options and the merge request; `reconciler.edit` finds the values and writes them."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.command import command
from reconciler.cli.exit_codes import ExitCode, of_targets, signals_handled
from reconciler.cli.inventory import opened_inventory
from reconciler.cli.options import (
    CONNECTION,
    DEFAULT_PATHS,
    INVENTORY,
    MANIFESTS,
    PLACES,
    SELECTION,
    SERVICE,
    ConnectionOptions,
    OutputOptions,
    PlanningOptions,
    SelectionOptions,
    SourceOptions,
)
from reconciler.cli.settings import configured, connected, tokens_of
from reconciler.cli.sources import inputs_of, warn
from reconciler.cli.stdout import write_stdout
from reconciler.errors import ConfigurationError, UsageError
from reconciler.system import clock

if TYPE_CHECKING:
    from reconciler.edit.differences import Acceptance
    from reconciler.edit.excepting import Deferral
    from reconciler.model.item import Finding
    from reconciler.reports.proposals import ProposalTarget

LOG = logging.getLogger("reconciler")

ACCEPT_BRANCH = "reconciler/accept"


@command(
    MANIFESTS,
    PLACES,
    SELECTION,
    INVENTORY,
    CONNECTION,
    SERVICE,
    weekly="--diff --target --section --until --reason --only-locks --merge-request",
    epilog="Examples: reconciler accept --diff;  reconciler accept manifests --target acme/payments/api",
)
@click.option(
    "--until",
    metavar="DAY",
    help="Write exceptions that end after this day (YYYY-MM-DD, UTC) instead of values. Broken locks and minimums are "
    "no errors.",
)
@click.option("--reason", metavar="TEXT", help="With --until: the reason, which plans and reports show.")
@click.option(
    "--only-locks",
    is_flag=True,
    help="With --until: accept only values that break a lock or a minimum; other differences stay.",
)
@click.option("--diff", is_flag=True, help="Print what would change in the files, and write nothing.")
@click.option("--detailed-exitcode", is_flag=True, help="With --diff: exit with 2 if a file would change.")
@click.option(
    "--merge-request",
    "project_path",
    metavar="PROJECT",
    help="Change no file here: commit to a branch of this project, and keep one merge request.",
)
@click.option(
    "--branch",
    metavar="NAME",
    help=f"The branch of --merge-request; {ACCEPT_BRANCH} if left out.",
)
def accept(
    *,
    sources: SourceOptions,
    selection: SelectionOptions,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    diff: bool,
    detailed_exitcode: bool,
    project_path: str | None,
    branch: str | None,
    **deferral: Any,
) -> int:
    """Write live values into the manifests where they differ.

    The plan is empty afterwards. A value is written where it is declared: into the profile or set if its targets all
    have the same live value, else into the target's own document, which is created if necessary. Comments and order
    stay. Objects that no manifest mentions are written only where the plan deletes them: in pruned sections, and where
    the inventory lists them. A project that was renamed or moved gets its new path, in its document and in the lists of
    sets.

    Needs all manifests: PATHS that are a part of them are refused; --target narrows what is accepted. Differences that
    cannot be accepted, such as a value in a template or below a minimum, are reported, and the exit code is 3.

    With --until, writes exceptions into the targets' own documents instead of values, and takes out values that break a
    lock or a minimum: with --only-locks, for these alone. Targets outside of the selection keep such values. New paths
    are written as well, unless with --only-locks.

    With --merge-request, commits through the service, on top of the project's default branch, with paths relative to
    the root of the git checkout. Opens the merge request once, then updates it.
    """
    if detailed_exitcode and not diff:
        raise UsageError("--detailed-exitcode goes with --diff")
    if diff and project_path is not None:
        raise UsageError("accept takes --diff or --merge-request, not both")
    if branch is not None and project_path is None:
        raise UsageError("--branch goes with --merge-request")
    deferred = _deferral(**deferral)
    _refuse_part(sources)
    accepted = _accept_drift(deferred, sources, selection, planning=planning, connection=connection, output=output)
    warn(refusals(accepted.refused))
    if diff:
        write_stdout("".join(accepted.diff()))
        return ExitCode.CHANGES_PENDING if detailed_exitcode and accepted.texts else ExitCode.IN_ORDER
    code = of_targets(complete=not accepted.refused, any_target=accepted.targets)
    if project_path is not None:
        from reconciler.reports.proposals import ProposalTarget

        _propose(connection, accepted, ProposalTarget(project_path, branch or ACCEPT_BRANCH), deferred)
        return code
    from reconciler.edit.writing import write_texts
    from reconciler.model.wording import counted

    with signals_handled(grace_signals=1):
        write_texts(accepted, sources.roots)
    write_stdout("".join(f"{path}\n" for path in accepted.texts))
    LOG.info(
        "%s %s; %s written.",
        counted(accepted.accepted, "difference"),
        _accepted(deferred),
        counted(len(accepted.texts), "file"),
    )
    return code


def _deferral(until: str | None, reason: str | None, only_locks: bool) -> "Deferral | None":
    """Return the end and the reason of the exceptions to write; None if values are to be accepted.

    Raises:
        UsageError: one of the options is missing, or the day is no day, or a past day.
    """
    from reconciler.edit.excepting import Deferral

    if only_locks and until is None:
        raise UsageError("--only-locks goes with --until DAY --reason TEXT")
    if until is None and reason is None:
        return None
    if until is None or not (reason or "").strip():
        raise UsageError(
            'an exception needs both: --until DAY --reason TEXT, such as --until 2027-03-01 --reason "OPS-12"'
        )
    try:
        day = date.fromisoformat(until)
    except ValueError:
        raise UsageError(f"--until takes a day, such as 2027-03-01, not {until}") from None
    if day < clock.today():
        raise UsageError(f"--until {until} is over: an exception that has ended accepts nothing")
    return Deferral(day, reason or "", only_locks)


def _accepted(deferral: "Deferral | None") -> str:
    return "accepted" if deferral is None else f"excepted until {deferral.until}"


def _refuse_part(sources: SourceOptions) -> None:
    """Refuse PATHS that are a part of the manifests: shared values would seem to be of fewer targets than they are.

    Raises:
        UsageError: some manifests of `reconciler.yaml`, or of the folder `manifests`, are left out, and others are not.
    """
    from reconciler.manifests.sources import search
    from reconciler.model.wording import counted, listed

    usual = configured().get("paths", DEFAULT_PATHS)
    if not sources.paths or sources.paths == (*usual,):
        return
    read = {os.path.realpath(file) for file in search(sources.roots).files}
    files = search([Path(path) for path in usual]).files
    left_out = [file for file in files if os.path.realpath(file) not in read]
    if 0 < len(left_out) < len(files):
        raise UsageError(
            "accept needs all manifests, since other targets may share the values; PATHS leave out "
            f"{counted(len(left_out), 'file')} of {listed(usual)}, such as {left_out[0]}; narrow it with --target "
            "instead"
        )


def _propose(
    connection: ConnectionOptions,
    accepted: "Acceptance",
    place: "ProposalTarget",
    deferral: "Deferral | None",
) -> None:
    """Commit the texts to a branch of a project, and open or update its merge request."""
    from reconciler.model.wording import counted
    from reconciler.reports.proposals import Proposal, open_merge_request, propose

    project = place.project
    files = counted(len(accepted.texts), "file")
    with connected(connection) as client:
        if not accepted.texts:
            open_number = None if accepted.refused else open_merge_request(client, place)
            if open_number is not None:
                warn([f"nothing is left to accept, and {project}!{open_number} is still open; close it"])
            write_stdout("Merge request not needed: nothing to accept\n")
            return
        before, texts = _in_repository(accepted.before, project), _in_repository(accepted.texts, project)
        number = counted(accepted.accepted, "difference")
        title = f"Accept live values: {number} in {files}"
        if deferral is not None:
            title = f"Except {number} until {deferral.until}: {files}"
        proposal = Proposal(before, texts, title, _description(accepted, texts, deferral))
        result, iid = propose(client, place, proposal)
    write_stdout(f"Merge request {result}: {project}!{iid} ({files})\n")


def _in_repository(texts: Mapping[Path, str], project: str) -> dict[str, str]:
    """Return texts by path in the git checkout of a project around the working directory.

    Raises:
        ConfigurationError: there is no checkout, or a file is outside of the checkout, or has a name that is not UTF-8.
    """
    from reconciler.system.processes import repository

    top = repository(Path())
    if top is None:
        raise ConfigurationError(f"--merge-request needs a git checkout: run it in the clone of {project}")
    committed = {}
    for path, text in texts.items():
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(top):
            raise ConfigurationError(f"{path} is outside of the git checkout {top}")
        name = real.relative_to(top).as_posix()
        if name != os.fsencode(name).decode(errors="replace"):
            raise ConfigurationError(
                f"{path}: the name of the file is not UTF-8, which --merge-request needs: rename it"
            )
        committed[name] = text
    return committed


def _description(accepted: "Acceptance", texts: Mapping[str, str], deferral: "Deferral | None") -> str:
    """Return Markdown that depends on nothing but what is accepted and refused."""
    from reconciler.reports.markdown import code

    parts = ["`reconciler accept` proposes manifests that agree with the live values:"]
    if deferral is not None:
        parts = [f"`reconciler accept` proposes exceptions until {deferral.until}: {code(deferral.reason)}"]
    parts += ["\n".join(f"- {code(path)}" for path in texts)]
    if accepted.refused:
        parts += ["These differences stay:", "\n".join(f"- {code(text)}" for text in refusals(accepted.refused))]
    return "\n\n".join(parts)


def _accept_drift(
    deferral: "Deferral | None",
    sources: SourceOptions,
    selection: SelectionOptions,
    *,
    planning: PlanningOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
) -> "Acceptance":
    """Read manifests and live state, and return the manifests that agree with it: see `reconciler.edit`."""
    from reconciler.cli.planning import run_of
    from reconciler.edit.accept import accept as accept_all
    from reconciler.edit.differences import Drift, ManifestFiles
    from reconciler.edit.excepting import accept_until
    from reconciler.edit.writing import linked_files
    from reconciler.engine.plan import compared, with_origins

    inputs = inputs_of(sources, partial(tokens_of, connection))
    with (
        connected(connection) as client,
        opened_inventory(client, sources, planning, connection) as inventory,
        run_of(
            client,
            inputs,
            selection,
            planning,
            output,
            inventory=inventory,
            locks_bind=deferral is None,
        ) as run,
    ):
        # A project that has moved is compared where it is, as its documents declare it with the path that is accepted.
        planned = compared(replace(run, follow_moved=True))
        inapplicable = {
            (obstacle.where.target, obstacle.where.section)
            for obstacle in planned.obstacles
            if obstacle.effect == "not applicable"
        }
        run.progress.begin("comparing")
        folders = sources.roots
        manifests = planned.declared.manifests
        files = ManifestFiles(folders, linked_files(manifests.files, folders))
        shown = with_origins(planned.plan, manifests)
        drift = Drift(manifests, planned.declared.desired, shown, planned.live, inapplicable)
        if deferral is not None:
            return accept_until(drift, run.kinds, files, deferral)
        return accept_all(drift, run.kinds, files)


def refusals(refused: "Iterable[Finding]") -> Iterator[str]:
    """Yield each difference that stays, with its targets; a difference of a whole single target with its place."""
    from reconciler.document.wording import problem_text, reason_of

    equal: dict[str, dict[str, str]] = {}
    for problem in refused:
        target = problem.address.target
        is_whole = problem.address == target.address
        text = reason_of(problem) if is_whole else problem_text(problem)
        equal.setdefault(text, {})[str(target)] = f" ({problem.origin})" if is_whole and problem.origin else ""
    for text, targets in equal.items():
        first, *others = targets
        more = f" and {len(others)} more" if others else ""
        yield f"not accepted: {first}{more}: {text}{'' if others else targets[first]}"
