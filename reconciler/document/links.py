"""Links from a report: to the pages of the service, to the manifests at their commit, to the pipeline. Pure.

The web addresses come from the variables of a CI job, then from `reconciler.yaml`. No link is guessed: without an
address from either, there is no link. Begin with `Links`.
"""

import os.path
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from reconciler.document.document import RunDocument, is_about
from reconciler.document.groups import Entry, is_done, subject_of
from reconciler.memory.apply_log import short
from reconciler.model.item import Create, Delete, Outcome, Update, page_of
from reconciler.model.kind import Kinds
from reconciler.model.targets import Level, Target

WEB_ADDRESS = r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?(/[A-Za-z0-9._~%/+-]*)?"
"""The addresses that reports link to. No character has a meaning in Markdown or HTML; no `user:password@`."""

FULL_SHA = re.compile("[0-9a-f]{40,64}")

OBJECT_PAGE = re.compile(r"-(/[A-Za-z0-9_]+)+")
"""The page of an object, relative to that of its target."""


CONTEXT_VARIABLES = {
    "title": "CI_MERGE_REQUEST_TITLE",
    "message": "CI_COMMIT_TITLE",
    "author": "CI_COMMIT_AUTHOR",
}
"""The variables of a CI job about its merge request and its commit."""

E_MAIL = re.compile(r"\s*<[^<>]*>\s*$")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a run, as pages show it.

    Attributes:
        name: the caption, such as `Commit`.
        text: the fact.
        url: a page about it; None if there is none.
    """

    name: str
    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """The web addresses and paths from which links are made; an unknown one is empty.

    Attributes:
        web_url: the web interface of the managed service, by `reconciler.yaml`.
        ci_api_url: the API of the service that runs the CI job.
        ci_web_url: the web interface of that service.
        repository_url: the web page of the project with the manifests.
        commit: of the manifests that are checked out.
        root: the absolute path of the repository.
        folder: the absolute path of the working directory, to which origins are relative.
        pipeline: the web page of the CI job's pipeline.
        merge_request: the web page of the merge request that the pipeline is for.
        captions: title, message and author from `CONTEXT_VARIABLES`, by their keys.
        pages: by section and level, see `Kind.pages`.
    """

    web_url: str = ""
    ci_api_url: str = ""
    ci_web_url: str = ""
    repository_url: str = ""
    commit: str = ""
    root: str = ""
    folder: str = ""
    pipeline: str = ""
    merge_request: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, Mapping[Level, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, environ: Mapping[str, str], settings: Mapping[str, Any], kinds: Kinds, *, root: str, folder: str
    ) -> Self:
        """Return the places by the variables of a CI job; for a missing variable, by the keys of `reconciler.yaml`."""
        project, number = environ.get("CI_MERGE_REQUEST_PROJECT_URL"), environ.get("CI_MERGE_REQUEST_IID")
        return cls(
            web_url=settings.get("web_url", ""),
            ci_api_url=environ.get("CI_API_V4_URL", ""),
            ci_web_url=environ.get("CI_SERVER_URL", ""),
            repository_url=environ.get("CI_PROJECT_URL") or settings.get("repository_url", ""),
            commit=environ.get("CI_COMMIT_SHA", ""),
            root=root,
            folder=folder,
            pipeline=environ.get("CI_PIPELINE_URL", ""),
            merge_request=f"{project}/-/merge_requests/{number}" if project and number else "",
            captions={name: environ.get(variable, "") for name, variable in CONTEXT_VARIABLES.items()},
            pages={name: kind.pages for name, kind in kinds.items()},
        )


NOWHERE = Places()
"""For reports without links."""


class Links:
    """The links of one report; each is a URL, or None.

    Attributes:
        pipeline: the pipeline that wrote the report.
        merge_request: the merge request that the pipeline is for.
    """

    def __init__(self, document: RunDocument, places: Places) -> None:
        """Prepare the links of a plan or a report."""
        self._places = places
        is_ours = bool(places.ci_api_url) and is_about(document.service, places.ci_api_url)
        # `web_url` of reconciler.yaml is only for jobs of another service, and for runs outside of CI
        self._web = web_address(places.ci_web_url if is_ours else places.web_url)
        self._repository = web_address(places.repository_url)
        self._commit = document.commit or places.commit
        self._paths = {seen.target: seen.path for seen in document.targets if seen.path}
        self._missing = frozenset(_missing(document))
        self.pipeline = web_address(places.pipeline)
        self.merge_request = web_address(places.merge_request)

    @property
    def context(self) -> Iterator[Fact]:
        """The merge request, commit, author and pipeline of a CI job; outside of a job, the commit of the manifests."""
        captions = self._places.captions
        if self.merge_request:
            text = f"!{self.merge_request.rpartition('/')[2]} {captions.get('title', '')}"
            yield Fact("Merge request", text.strip(), self.merge_request)
        if FULL_SHA.fullmatch(self._commit):
            is_ours = self._commit == self._places.commit
            text = f"{short(self._commit)} {captions.get('message', '') if is_ours else ''}".strip()
            yield Fact("Commit", text, self.commit(self._commit))
            # the job's variables are about the commit that it checked out: a plan of another commit has another author
            if is_ours and captions.get("author"):
                yield Fact("Author", E_MAIL.sub("", captions["author"]))
        if self.pipeline:
            yield Fact("Pipeline", f"#{self.pipeline.rpartition('/')[2]}", self.pipeline)

    def target(self, target: Target) -> str | None:
        """Return the page of a group or a project; None for other levels, a group by its ID, and a missing target."""
        web_path = self._web_path(target)
        if web_path is None and target.level is Level.PROJECT and isinstance(target.ref, int):
            # the service redirects `/projects/ID` to the project; a group has no such address
            web_path = f"projects/{target.ref}"
        return f"{self._web}/{web_path}" if self._web and web_path else None

    def settings(self, target: Target, section: str) -> str | None:
        """Return the page with the settings, or the objects, of a section."""
        page, web_path = self._places.pages.get(section, {}).get(target.level), self._web_path(target)
        if not self._web or page is None or ("{target}" in page and web_path is None):
            return None
        return f"{self._web}/{page.replace('{target}', web_path or '')}"

    def object(self, entry: Entry) -> str | None:
        """Return the page of the object of an entry; None for an object without a page, and for a deleted object."""
        subject = subject_of(entry)
        if not isinstance(subject, Update | Delete) or (isinstance(subject, Delete) and is_done(entry)):
            return None
        web_path = self._web_path(subject.address.target)
        return (
            f"{self._web}/{web_path}/{page}"
            if self._web and web_path and OBJECT_PAGE.fullmatch(page := page_of(subject))
            else None
        )

    def commit(self, commit: str) -> str | None:
        """Return the page of a commit of the manifests."""
        return f"{self._repository}/-/commit/{commit}" if self._repository and FULL_SHA.fullmatch(commit) else None

    def origin(self, origin: str) -> str | None:
        """Return the line of a manifest, given as `path:line`, at its commit."""
        path, _, line = origin.rpartition(":")
        ours = self._places
        if not self._repository or not FULL_SHA.fullmatch(self._commit) or not (path and line.isdecimal()):
            return None
        # origins are relative to the working directory, and links to the root of the repository
        inner = os.path.relpath(os.path.join(ours.folder, path), ours.root)  # noqa: PTH118 - pathlib keeps `..`
        if inner.startswith(".."):
            return None
        return f"{self._repository}/-/blob/{self._commit}/{quote(inner)}#L{line}"

    def _web_path(self, target: Target) -> str | None:
        """Return the path of a group or project in the web interface; None if it does not exist or is unknown."""
        if target in self._missing:
            return None
        path = target.ref if isinstance(target.ref, str) else self._paths.get(target)
        if path is None:
            return None
        return f"groups/{quote(path)}" if target.level is Level.GROUP else quote(path)


def _missing(document: RunDocument) -> Iterator[Target]:
    """Yield the targets that do not exist yet, and so have no pages."""
    for item in document.items:
        change = item.change if isinstance(item, Outcome) else item
        exists = isinstance(item, Outcome) and item.may_be_done
        if isinstance(change, Create) and not change.address.section and not exists:
            yield change.address.target


def web_address(url: str) -> str | None:
    """Return a web address without a slash at its end; None for any other URL."""
    return url.rstrip("/") if re.fullmatch(WEB_ADDRESS, url) else None
