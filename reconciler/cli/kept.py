"""Notes and issues that runs keep on the service, with the words for a refusal.

Begin with `keeping` and `kept_issue`.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reconciler import CONFIGURATION
from reconciler.cli.exit_codes import signals_handled
from reconciler.cli.options import ConnectionOptions
from reconciler.cli.results import links_of
from reconciler.cli.settings import checked_api_url, configured, open_client
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
    """Words about a note or an issue.

    Attributes:
        name: its name.
        place: its place.
        right: the right that the token needs there.
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

    def remedy(self, refusal: ReconcilerError) -> str:
        """Return the remedy for a refusal; empty if there is no remedy."""
        reasons = {
            Unauthorized: f"the token is not valid there (CI job tokens may not {self.right}): ",
            Forbidden: f"the token may not {self.right} there: ",
            NotFound: f"there is no such {self.place}, or the token may not see it: ",
        }
        reason = next((words for kind, words in reasons.items() if isinstance(refusal, kind)), None)
        return f"; {reason}{self.wanted}" if reason else ""


NOTE = KeptWording("note", "merge request", "comment", "No note posted")
ISSUE = KeptWording("issue", "project", "open issues", "No issue kept")


def kept_issue(client: "Client", project: str, name: str, saved: "RunDocument") -> str:
    """Keep the issue of a name about a plan, and return the result: `Issue drift opened: acme/settings#4`.

    Raises:
        ServiceError: the issue could not be kept.
    """
    from reconciler.reports.issue import keep_issue

    kept = keep_issue(client, project, name, _drift(saved, name))
    for username in kept.unknown:
        LOG.warning("nobody has the username %s; see issue.assignees in %s", username, CONFIGURATION)
    return f"Issue {name} {kept.result}: {project}{'' if kept.iid is None else f'#{kept.iid}'}"


@contextmanager
def keeping(subject: KeptWording) -> Iterator[None]:
    """Log the reason why the note or issue is not kept, and go on."""
    try:
        with signals_handled(grace_signals=1):
            yield
    except ReconcilerError as error:
        refused(subject, error, strict=False)


def refused(subject: KeptWording, refusal: ReconcilerError, *, strict: bool) -> int:
    """Log why the note or issue is not kept, and what to do; return the exit code."""
    LOG.error("%s: %s%s", subject.refused, refusal, subject.remedy(refusal))
    return 1 if strict else 0


def _drift(saved: "RunDocument", name: str) -> "DriftIssue":
    """Return the issue about the drift in a plan."""
    from reconciler.document.compare import fingerprints_of
    from reconciler.document.document import utc
    from reconciler.document.style import Style
    from reconciler.reports.issue import DriftIssue, Memory
    from reconciler.reports.markdown import restored

    time = utc(saved.created_at)
    in_order = f"**In order since {time}: nothing differs from the manifests, and there are no problems.**"
    put_back = restored(saved, Style(links=links_of))
    settings: Mapping[str, Responsible] = configured().get("issue", {})
    return DriftIssue(
        Memory(time, fingerprints_of(saved)),
        partial(_issue_text, saved),
        partial(_assignees, saved, settings.get("assignees", {})),
        title="Settings differ from the manifests" + ("" if name == "drift" else f": {name}"),
        in_order=f"{in_order}\n\n{put_back}".strip(),
    )


def _issue_text(saved: "RunDocument", memory: "Memory") -> str:
    """Return the Markdown of an issue: what is new since the last report, if there is a last report, and everything."""
    from reconciler.document.compare import new_in
    from reconciler.document.document import utc
    from reconciler.document.style import Style
    from reconciler.reports import render_plan

    style = Style(links=links_of)
    job = os.environ.get("CI_JOB_URL")
    origin = f"This was found at {utc(saved.created_at)}{f' by {job}' if job else ''}."
    parts = [
        f"Live settings differ from the manifests. {origin} reconciler updates this issue in place, and closes it when "
        "everything is in order."
    ]
    news = new_in(saved, memory.marks)
    if memory.marks and not news.is_empty:
        new = replace(news, known=None)
        parts += [f"# New since {memory.time}", render_plan(new, "markdown", style), "# Everything"]
    return "\n\n".join(part.strip() for part in (*parts, render_plan(saved, "markdown", style)))


def _assignees(saved: "RunDocument", responsible: "Responsible", memory: "Memory") -> Sequence[str]:
    """Return the usernames of the people who are responsible for targets with something new."""
    from reconciler.document.compare import new_in

    news = new_in(saved, memory.marks)
    labels = [seen.labels for seen in news.targets if seen.target in news.differing]
    owners = (responsible.get(name, {}).get(value, ()) for own in labels for name, value in own.items())
    return list(dict.fromkeys(username for usernames in owners for username in usernames))


def merge_request(project_path: str | None, iid: int | None) -> "MergeRequest":
    """Return the merge request that a note is about.

    Raises:
        ConfigurationError: the merge request is not known.
    """
    from reconciler.reports.note import MergeRequest

    if iid is None:
        raise ConfigurationError(
            "this is not the pipeline of a merge request: CI_MERGE_REQUEST_IID is not set; run the job where "
            "$CI_PIPELINE_SOURCE is merge_request_event, or give --merge-request"
        )
    if project_path is None:
        raise ConfigurationError(
            "no project: neither CI_MERGE_REQUEST_PROJECT_ID nor CI_PROJECT_ID is set; give --project"
        )
    return MergeRequest(project_path, iid)


def job_client(connection: ConnectionOptions, subject: KeptWording) -> "Client":
    """Return a client for the service that runs the CI job, with the token for notes and no other token.

    Raises:
        ConfigurationError: as `open_client`; or there is no such token.
    """
    token = os.environ.get(OWN_TOKEN, "").strip()
    if not token:
        raise ConfigurationError(f"no token (CI job tokens may not {subject.right}): {subject.wanted}")
    return open_client(replace(connection, api_url=os.environ.get("CI_API_V4_URL")), given_token=token)


def note_client(connection: ConnectionOptions, subject: KeptWording) -> "Client":
    """Return a client for the service that runs the CI job, which may be another service than the managed one.

    Raises:
        ConfigurationError: as `open_client`; or there is no token for that service.
    """
    source = click.get_current_context().get_parameter_source
    own = "" if source("token_file") is ParameterSource.COMMANDLINE else os.environ.get(OWN_TOKEN, "").strip()
    if not (own or connection.token_file or os.environ.get("RECONCILER_TOKEN")):
        raise ConfigurationError(
            f"no token (CI job tokens may not {subject.right}, and pipelines of merge requests have no protected "
            f"variables): {subject.wanted}"
        )
    job = os.environ.get("CI_API_V4_URL")
    if job and source("api_url") is not ParameterSource.COMMANDLINE:
        if not own and connection.api_url and connection.api_url.rstrip("/") != job.rstrip("/"):
            raise ConfigurationError(
                f"the token is for {checked_api_url(connection)}, and the {subject.place} is at {job}: {subject.wanted}"
            )
        connection = replace(connection, api_url=job)
    return open_client(connection, given_token=own or None)
