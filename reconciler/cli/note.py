"""`reconciler note`."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reconciler.cli.options import CONNECTION, Given, command
from reconciler.cli.outputs import write_stdout
from reconciler.cli.session import Session
from reconciler.cli.settings import open_client, read_file
from reconciler.errors import (
    ConfigurationError,
    Forbidden,
    NotFound,
    ReconcilerError,
    Unauthorized,
)

if TYPE_CHECKING:
    from reconciler.gitops.notes import MergeRequest
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")

OWN_TOKEN = "RECONCILER_NOTE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable for a token that is used for notes only."""

WANTED = f"set {OWN_TOKEN} to a token with the scope api that may comment there"

ADVICE: Mapping[type[ReconcilerError], str] = {
    Unauthorized: f"the token is not valid there (CI job tokens may not post notes): {WANTED}",
    Forbidden: f"the token may not comment there: {WANTED}",
    NotFound: f"there is no such merge request, or the token may not see it: {WANTED}",
}
"""The remedy for each refusal."""


@command(CONNECTION, epilog="Example: reconciler note --file note.md --name plan")
@click.option(
    "--file", required=True, type=click.Path(path_type=Path), metavar="FILE", help="File with the text, in Markdown."
)
@click.option(
    "--name",
    envvar="CI_JOB_NAME",
    default="reconciler",
    metavar="NAME",
    help="Name of the note: one note of each name is kept. The default in a CI job is the job's name.",
)
@click.option(
    "--project",
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
def note(given: Given, *, file: Path, name: str, project: str | None, iid: int | None, strict: bool) -> int:
    """Post or update one note on a merge request.

    In the pipeline of a merge request, only --file is needed. The token is RECONCILER_NOTE_TOKEN, which is used for
    notes only, or else the usual one. If the note cannot be posted, stderr says why, and the exit code is 0 unless
    --strict is given.
    """
    from reconciler.gitops.notes import post_note

    Session(given)
    try:
        place = _merge_request(project, iid)
        _refuse_link(file)
        text = read_file(file)
        with _client(given) as client:
            posting = post_note(client, place, name, text)
    except ReconcilerError as error:
        advice = next((words for kind, words in ADVICE.items() if isinstance(error, kind)), None)
        LOG.error("No note posted: %s%s", error, f"; {advice}" if advice else "")  # noqa: TRY400 - a message, no traceback
        return 1 if strict else 0
    write_stdout(f"Note {name} {posting}: {place}\n")
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


def _merge_request(project: str | None, iid: int | None) -> "MergeRequest":
    from reconciler.gitops.notes import MergeRequest

    if iid is None:
        raise ConfigurationError(
            "this is not the pipeline of a merge request: CI_MERGE_REQUEST_IID is not set; run the job where "
            "$CI_PIPELINE_SOURCE is merge_request_event, or give --merge-request"
        )
    if project is None:
        raise ConfigurationError(
            "no project: neither CI_MERGE_REQUEST_PROJECT_ID nor CI_PROJECT_ID is set; give --project"
        )
    return MergeRequest(project, iid)


def _client(given: Given) -> "Client":
    """Return a client for the service that runs the CI job, which need not be the one whose settings are managed.

    Raises:
        ConfigurationError: as `open_client`; or there is no token for that service.
    """
    source = click.get_current_context().get_parameter_source
    own = "" if source("token_file") is ParameterSource.COMMANDLINE else os.environ.get(OWN_TOKEN, "").strip()
    if not (own or given.token_file or os.environ.get("RECONCILER_TOKEN")):
        raise ConfigurationError(
            "no token (CI job tokens may not post notes, and pipelines of merge requests have no protected variables): "
            f"{WANTED}"
        )
    job = os.environ.get("CI_API_V4_URL")
    if job and source("api_url") is not ParameterSource.COMMANDLINE:
        if not own and given.api_url and given.api_url.rstrip("/") != job.rstrip("/"):
            raise ConfigurationError(f"the token is for {given.api_url}, and the merge request is at {job}: {WANTED}")
        given = replace(given, api_url=job)
    return open_client(given, token=own or None)
