"""`reconciler note` and `reconciler issue`."""

from pathlib import Path

import click

from reconciler.cli.command import command
from reconciler.cli.kept import ISSUE, NOTE, kept_issue, merge_request, note_client, refused
from reconciler.cli.options import CONNECTION, ConnectionOptions
from reconciler.cli.settings import read_file
from reconciler.cli.stdout import write_stdout
from reconciler.cli.stored import read_plan
from reconciler.errors import ConfigurationError, ReconcilerError


@command(CONNECTION, epilog="Example: reconciler note --file note.md --name plan")
@click.option(
    "--file", required=True, type=click.Path(path_type=Path), metavar="FILE", help="File with the text, in Markdown."
)
@click.option(
    "--name",
    envvar="CI_JOB_NAME",
    default="reconciler",
    metavar="NAME",
    help="Name of the note, one of each name; in a CI job, the job's name if left out.",
)
@click.option(
    "--project",
    "project_path",
    envvar=["CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"],
    metavar="PROJECT",
    help="ID or path of the merge request's project. CI jobs know it.",
)
@click.option(
    "--merge-request",
    "iid",
    envvar="CI_MERGE_REQUEST_IID",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Number of the merge request. Its pipelines know it.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if the note cannot be posted.")
def note(
    *, connection: ConnectionOptions, file: Path, name: str, project_path: str | None, iid: int | None, strict: bool
) -> int:
    """Post or update one note on a merge request.

    In the pipeline of a merge request, only --file is needed. Uses RECONCILER_NOTE_TOKEN, or else the usual token. If
    the note cannot be posted, stderr says why, and the exit code is 0 unless --strict is given.
    """
    from reconciler.reports.note import post_note

    try:
        place = merge_request(project_path, iid)
        _refuse_link(file)
        text = read_file(file)
        with note_client(connection, NOTE) as client:
            result = post_note(client, place, name, text)
    except ReconcilerError as error:
        return refused(NOTE, error, strict=strict)
    write_stdout(f"Note {name} {result}: {place}\n")
    return 0


@command(CONNECTION, epilog="Example: reconciler issue drift.json --project acme/settings")
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--project",
    envvar="CI_PROJECT_ID",
    required=True,
    metavar="PROJECT",
    help="ID or path of the issue's project; in a CI job, the job's project if left out.",
)
@click.option(
    "--name",
    default="drift",
    show_default=True,
    metavar="NAME",
    help="Name of the issue, one of each name.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if the service refuses.")
def issue(*, connection: ConnectionOptions, report: Path, project: str, name: str, strict: bool) -> int:
    """Keep one issue about drift.

    REPORT is the JSON report of `drift`, of all shards if there are any. Opens the issue when something differs or is a
    problem, updates it in place with what is new, closes it when everything is in order, and reopens it when drift
    returns. Assigns it by the labels of the targets, as `issue.assignees` in reconciler.yaml says.

    Uses RECONCILER_NOTE_TOKEN, or else the usual token. If the service refuses, stderr says why, and the exit code is 0
    unless --strict is given.
    """
    saved = read_plan(report)
    if saved.is_part:
        raise ConfigurationError(
            f"{report}: shard {saved.shard} of a run knows nothing of the other shards: put all of them together with "
            "merge FILE... --report json=FILE"
        )
    try:
        with note_client(connection, ISSUE) as client:
            kept = kept_issue(client, project, name, saved)
    except ReconcilerError as error:
        return refused(ISSUE, error, strict=strict)
    write_stdout(f"{kept}\n")
    return 0


def _refuse_link(file: Path) -> None:
    """Refuse a path below the working directory that a symbolic link leads elsewhere.

    A commit can add a link, and the file it leads to on the machine that runs the job would be published.

    Raises:
        ConfigurationError: the file, or a folder on the way to it, is a link.
    """
    here = Path.cwd()
    path = here / file
    for part in (path, *path.parents) if path.is_relative_to(here) else ():
        if part != here and part.is_relative_to(here) and part.is_symlink():
            raise ConfigurationError(f"{file}: {part.relative_to(here)} is a symbolic link; name the file itself")
