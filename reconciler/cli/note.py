"""`reconciler note` and `reconciler issue`."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reconciler import CONFIGURATION
from reconciler.cli.exit_codes import heeding
from reconciler.cli.options import CONNECTION, Given, command
from reconciler.cli.session import Session
from reconciler.cli.settings import checked_api_url, open_client, read_file
from reconciler.cli.stdout import write_stdout
from reconciler.errors import (
    ConfigurationError,
    Forbidden,
    NotFound,
    ReconcilerError,
    Unauthorized,
)

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument
    from reconciler.reports.issue import DriftIssue, Memory
    from reconciler.reports.note import MergeRequest
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")

OWN_TOKEN = "RECONCILER_NOTE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable for a token that is used for notes only."""

Responsible = Mapping[str, Mapping[str, Sequence[str]]]
"""Usernames by the name and the value of a label."""


@dataclass(frozen=True, slots=True)
class KeptWording:
    """Words about what is kept on the service.

    Attributes:
        name: what it is.
        place: where it is.
        right: what the token must be allowed to do there.
        refused: that it is not kept.
    """

    name: str
    place: str
    right: str
    refused: str

    @property
    def wanted(self) -> str:
        """The remedy for a token that does not suffice."""
        return f"set {OWN_TOKEN} to a token with the scope api that may {self.right} there"

    def remedy(self, error: ReconcilerError) -> str:
        """Return the remedy for a refusal; empty if there is none."""
        reasons = {
            Unauthorized: f"the token is not valid there (CI job tokens may not {self.right}): ",
            Forbidden: f"the token may not {self.right} there: ",
            NotFound: f"there is no such {self.place}, or the token may not see it: ",
        }
        reason = next((words for kind, words in reasons.items() if isinstance(error, kind)), None)
        return f"; {reason}{self.wanted}" if reason else ""


NOTE = KeptWording("note", "merge request", "comment", "No note posted")
ISSUE = KeptWording("issue", "project", "open issues", "No issue kept")


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

    In the pipeline of a merge request, only --file is needed. Uses RECONCILER_NOTE_TOKEN, or else the usual token. If
    the note cannot be posted, stderr says why, and the exit code is 0 unless --strict is given.
    """
    from reconciler.reports.note import post_note

    Session(given)
    try:
        place = merge_request(project, iid)
        _refuse_link(file)
        text = read_file(file)
        with _client(given, NOTE) as client:
            result = post_note(client, place, name, text)
    except ReconcilerError as error:
        return _refused(NOTE, error, strict=strict)
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
def issue(given: Given, *, report: Path, project: str, name: str, strict: bool) -> int:
    """Keep one issue about drift.

    REPORT is the JSON report of `drift`, of all shards if there are any. Opens the issue when something differs or is a
    problem, updates it in place with what is new, closes it when everything is in order, and reopens it when drift
    returns. Assigns it by the labels of the targets, as `issue.assignees` in reconciler.yaml says.

    Uses RECONCILER_NOTE_TOKEN, or else the usual token. If the service refuses, stderr says why, and the exit code is 0
    unless --strict is given.
    """
    session = Session(given)
    saved = session.read_plan(report)
    if saved.is_part:
        raise ConfigurationError(
            f"{report}: shard {saved.shard} of a run knows nothing of the other shards: put all of them together with "
            "merge FILE... --report json=FILE"
        )
    try:
        with _client(given, ISSUE) as client:
            kept = kept_issue(client, project, name, saved, session)
    except ReconcilerError as error:
        return _refused(ISSUE, error, strict=strict)
    write_stdout(f"{kept}\n")
    return 0


def kept_issue(client: "Client", project: str, name: str, saved: "RunDocument", session: Session) -> str:
    """Keep the issue of a name about a plan, and return what became of it: `Issue drift opened: acme/settings#4`.

    Raises:
        ServiceError: the issue could not be kept.
    """
    from reconciler.reports.issue import keep_issue

    kept = keep_issue(client, project, name, _drift(saved, name, session))
    for username in kept.unknown:
        LOG.warning("nobody has the username %s; see issue.assignees in %s", username, CONFIGURATION)
    return f"Issue {name} {kept.result}: {project}{'' if kept.iid is None else f'#{kept.iid}'}"


@contextmanager
def keeping(subject: KeptWording) -> Iterator[None]:
    """Log why nothing is kept, and go on."""
    try:
        with heeding(patience=1):
            yield
    except ReconcilerError as error:
        _refused(subject, error, strict=False)


def _refused(subject: KeptWording, error: ReconcilerError, *, strict: bool) -> int:
    """Log why nothing is kept, and what to do; return the exit code."""
    LOG.error("%s: %s%s", subject.refused, error, subject.remedy(error))
    return 1 if strict else 0


def _drift(saved: "RunDocument", name: str, session: Session) -> "DriftIssue":
    """Return what an issue tells about a plan."""
    from reconciler.document.compare import marks
    from reconciler.document.document import utc
    from reconciler.document.style import Style
    from reconciler.reports.issue import DriftIssue, Memory
    from reconciler.reports.markdown import restored

    time = utc(saved.created_at)
    in_order = f"**In order since {time}: nothing differs from the manifests, and there are no problems.**"
    put_back = restored(saved, Style(links=session.links))
    settings: Mapping[str, Responsible] = (click.get_current_context().default_map or {}).get("issue", {})
    return DriftIssue(
        Memory(time, marks(saved)),
        partial(_issue_text, saved, session),
        partial(_assignees, saved, settings.get("assignees", {})),
        title="Settings differ from the manifests" + ("" if name == "drift" else f": {name}"),
        in_order=f"{in_order}\n\n{put_back}".strip(),
    )


def _issue_text(saved: "RunDocument", session: Session, before: "Memory") -> str:
    """Return the Markdown of an issue: what is new since it was last written, if it was, and everything."""
    from reconciler.document.compare import news_of
    from reconciler.document.document import utc
    from reconciler.document.style import Style
    from reconciler.reports import render_plan

    style = Style(links=session.links)
    job = os.environ.get("CI_JOB_URL")
    origin = f"This was found at {utc(saved.created_at)}{f' by {job}' if job else ''}."
    parts = [
        f"Live settings differ from the manifests. {origin} reconciler updates this issue in place, and closes it when "
        "everything is in order."
    ]
    news = news_of(saved, before.marks)
    if before.marks and not news.is_empty:
        new = replace(news, known=None)
        parts += [f"# New since {before.time}", render_plan(new, "markdown", style), "# Everything"]
    return "\n\n".join(part.strip() for part in (*parts, render_plan(saved, "markdown", style)))


def _assignees(saved: "RunDocument", responsible: "Responsible", before: "Memory") -> Sequence[str]:
    """Return the usernames of those who are responsible for targets in which something is new."""
    from reconciler.document.compare import news_of

    news = news_of(saved, before.marks)
    labels = [seen.labels for seen in news.targets if seen.target in news.differing]
    owners = (responsible.get(name, {}).get(value, ()) for own in labels for name, value in own.items())
    return list(dict.fromkeys(username for usernames in owners for username in usernames))


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


def merge_request(project: str | None, iid: int | None) -> "MergeRequest":
    """Return the merge request that a note is about.

    Raises:
        ConfigurationError: it is not known.
    """
    from reconciler.reports.note import MergeRequest

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


def job_client(given: Given, subject: KeptWording) -> "Client":
    """Return a client for the service that runs the CI job, with the token for notes and no other.

    Raises:
        ConfigurationError: as `open_client`; or there is no such token.
    """
    token = os.environ.get(OWN_TOKEN, "").strip()
    if not token:
        raise ConfigurationError(f"no token (CI job tokens may not {subject.right}): {subject.wanted}")
    return open_client(replace(given, api_url=os.environ.get("CI_API_V4_URL")), token=token)


def _client(given: Given, subject: KeptWording) -> "Client":
    """Return a client for the service that runs the CI job, which need not be the one whose settings are managed.

    Raises:
        ConfigurationError: as `open_client`; or there is no token for that service.
    """
    source = click.get_current_context().get_parameter_source
    own = "" if source("token_file") is ParameterSource.COMMANDLINE else os.environ.get(OWN_TOKEN, "").strip()
    if not (own or given.token_file or os.environ.get("RECONCILER_TOKEN")):
        raise ConfigurationError(
            f"no token (CI job tokens may not {subject.right}, and pipelines of merge requests have no protected "
            f"variables): {subject.wanted}"
        )
    job = os.environ.get("CI_API_V4_URL")
    if job and source("api_url") is not ParameterSource.COMMANDLINE:
        if not own and given.api_url and given.api_url.rstrip("/") != job.rstrip("/"):
            raise ConfigurationError(
                f"the token is for {checked_api_url(given)}, and the {subject.place} is at {job}: {subject.wanted}"
            )
        given = replace(given, api_url=job)
    return open_client(given, token=own or None)
