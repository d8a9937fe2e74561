"""Fixtures: the repository with the manifests, and the service that it manages and that runs its pipelines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import Sandbox
from tests.fleet.repository import NOBODY, Repository, repository
from tests.gitops.component import read_component
from tests.gitops.pipeline import Pipeline, Runner
from tests.inventory.git_server import REPOSITORY, GitServer, git_server
from tests.service.test_connection import LOOPBACK
from tests.states import a_small_service

CONFIGURATION = "inventory: {remote: origin}\n"
HOST = "https://gitlab.example.com/acme/settings"
ZEROS = "0" * 40


@dataclass
class Project:
    """The project with the manifests: its repository, its variables, and its pipelines.

    Attributes:
        server: serves the repository to git over TLS.
        jobs: those of its configuration.
        variables: of the project, in each job.
        protected: of the project, in jobs of the default branch only.
    """

    repository: Repository
    server: GitServer
    runner: Runner
    sandbox: Sandbox
    variables: dict[str, str] = field(default_factory=lambda: {"RECONCILER_READ_TOKEN": "reader-token"})
    protected: dict[str, str] = field(default_factory=lambda: {"RECONCILER_TOKEN": "ada-token"})
    jobs: Mapping[str, Any] = field(default_factory=dict)

    def uses(self, component: str, **inputs: Any) -> None:
        """Take the jobs of a component."""
        self.jobs = read_component(component).jobs(**{"image": "reconciler:1", **inputs})

    def inventory(self) -> list[dict[str, Any]]:
        """Return the lines of the inventory; none if there is no such branch."""
        commit = self.server.last()
        text = self.server.git("show", f"{commit}:inventory.jsonl") if commit else ""
        return [json.loads(line) for line in text.splitlines()]

    def owned(self) -> list[tuple[str, str, str]]:
        """Return target, section and name of each object in the inventory."""
        return [(line["target"], line["section"], line["name"]) for line in self.inventory() if "section" in line]

    def applied(self) -> str:
        """Return the commit whose manifests were applied last, by the inventory; empty if there is none."""
        return next((str(line.get("applied", "")) for line in self.inventory()), "")

    def commits(self, **files: str) -> str:
        """Write manifests and commit them."""
        for name, text in files.items():
            path = self.repository.folder / "manifests" / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return self.repository.commit()

    def in_merge_request(self, base: str, **more: str) -> Pipeline:
        """Return the pipeline of merge request 7, for the branch that is checked out."""
        request = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_PROJECT_ID": "900",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        }
        return self._pipeline({**self.variables, **request, **more})

    def on_main(self, source: str = "push", before: str = ZEROS, **more: str) -> Pipeline:
        """Return a pipeline of the default branch, which must be checked out."""
        branch = {"CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": before}
        return self._pipeline({**self.variables, **self.protected, **branch, **more})

    def _pipeline(self, particular: Mapping[str, str]) -> Pipeline:
        commit = self.repository.git("rev-parse", "HEAD")
        predefined = {
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.sandbox.api_url,
            "CI_SERVER_URL": self.server.url,
            "CI_PROJECT_PATH": REPOSITORY.removesuffix(".git"),
            "CI_PIPELINE_ID": "1",
            "CI_RUNNER_TAGS": '["docker"]',
            "CI_PROJECT_ID": "900",
            "CI_DEFAULT_BRANCH": "main",
            "CI_COMMIT_SHA": commit,
            "CI_COMMIT_SHORT_SHA": commit[:8],
            "CI_COMMIT_BEFORE_SHA": ZEROS,
            "CI_JOB_URL": f"{HOST}/-/jobs/1",
            "CI_JOB_TOKEN": "glcbt-job-token",
            "RECONCILER_CA_FILE": str(LOOPBACK),
            **particular,
        }
        return Pipeline(self.runner, self.jobs, predefined)

    def notes(self) -> list[tuple[str, str]]:
        """Return the author and the visible text of each note on merge request 7."""
        found = next(each for each in self.sandbox.state()["projects"] if each["path"] == "acme/settings")
        return [(each["author"], each["body"].partition("-->\n\n")[2]) for each in found.get("merge_request_notes", [])]

    def writes(self) -> list[str]:
        """Return the writes since the last call, except those of notes."""
        log = self.sandbox.log()
        self.sandbox.clear_log()
        lines = [f"{each['method']} {each['target'].removeprefix('/api/v4/')}" for each in log]
        return [line for line in lines if not line.startswith("GET ") and "/notes" not in line]


@pytest.fixture
def project(tmp_path: Path, sandbox: Sandbox, program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project that keeps an inventory and has no manifests yet, on a small service."""
    for name, value in NOBODY.items():
        monkeypatch.setenv(name, value)
    state = a_small_service("deployed")
    state["users"] += [
        {"id": 5, "username": "reader", "bot": True, "tokens": [{"token": "reader-token", "scopes": ["read_api"]}]},
        {"id": 6, "username": "notes", "bot": True, "tokens": ["note-token"]},
    ]
    state["groups"][0]["members"].append({"user": "reader", "role": "maintainer"})
    members = [{"user": "notes", "role": "reporter"}]
    state["projects"].append({"id": 900, "path": "acme/settings", "members": members, "merge_requests": [7]})
    sandbox.replace_state(state)
    folder = tmp_path / "settings"
    made = repository(folder)
    (folder / "reconciler.yaml").write_text(CONFIGURATION)
    runner = tmp_path / "runner"
    runner.mkdir()
    served = tmp_path / "served" / REPOSITORY
    served.parent.mkdir(parents=True)
    served.symlink_to(folder / ".git")
    with git_server(tmp_path / "served") as server:
        server.tokens = {"glcbt-job-token"}
        yield Project(made, server, Runner(runner, folder, program), sandbox)
