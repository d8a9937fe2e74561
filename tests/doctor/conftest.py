"""A patient: a user with a service of either dialect, examined by the doctor."""

import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from tests.cli_runner import CliRunner, Ended
from tests.engine_driver import PREFIX
from tests.states import a_small_service

TODAY = date(2026, 11, 21)
"""The day of all examinations: the run may cross midnight."""

MANIFEST = "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {{{spec}}}\n"


@dataclass
class Patient:
    """The service's state and manifests, and the doctor's output without what differs from run to run."""

    cli_runner: CliRunner
    state: dict[str, Any]
    documents: list[str] = field(default_factory=list)

    def token(self, **fields: Any) -> None:
        """Set the fields of ada's token."""
        self.state["users"][1]["tokens"] = [{"token": "ada-token", "name": "ci", **fields}]

    def project(self, path: str, spec: str, **fields: Any) -> None:
        """Declare sections of a project, and set its live fields."""
        self.documents.append(MANIFEST.format(kind="Project", metadata=f"path: {path}", spec=spec))
        for project in self.state["projects"]:
            if project["path"] == path:
                project.update(fields)

    def group(self, metadata: str, spec: str) -> None:
        """Declare sections of a group."""
        self.documents.append(MANIFEST.format(kind="Group", metadata=metadata, spec=spec))

    def begin(self) -> None:
        """Set the service's state, and write the manifests."""
        self.cli_runner.sandbox.replace_state(self.state)
        if self.documents:
            self.cli_runner.write("manifests/all.yaml", "---\n".join(self.documents))

    def examine(self, *arguments: str) -> Ended:
        """Set everything up and run the doctor."""
        self.begin()
        return self.ask(*arguments)

    def ask(self, *arguments: str, detail: str = "--verbose") -> Ended:
        """Run the doctor, and leave out the requests that it shows."""
        done = self.cli_runner(f"doctor --concurrency 1 {detail}", *arguments)
        assert "ada-token" not in done.out + done.err
        out = done.out.replace(self.cli_runner.sandbox.api_url, "URL")
        err = re.sub(r"GET \S+ (?!failed).*\n", "", done.err)
        return Ended(done.code, re.sub(r"\d+ ms per response", "N ms per response", out), err)

    def glance(self) -> list[str]:
        """Run the doctor without details, and return what it says of the targets."""
        lines = self.ask(detail="").out.splitlines()
        assert (lines[: len(FRONT)], lines[-2].startswith("Doctor: ")) == (FRONT, True)
        return lines[len(FRONT) : -2]

    def requests(self) -> list[str]:
        """Return the requests; all are GETs."""
        log = self.cli_runner.sandbox.log()
        assert {entry["method"] for entry in log} <= {"GET"}
        return [re.sub(r"[?&]per_page=100&page=1$", "", entry["target"].removeprefix(PREFIX)) for entry in log]


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.system.clock.today", lambda: TODAY)


@pytest.fixture
def patient(cli_runner: CliRunner, dialect: str) -> Patient:
    """A healthy service: ada owns everything and has a token that is valid for another year."""
    state = a_small_service(dialect)
    state["instance"]["now"] = f"{TODAY}T00:00:00Z"
    patient = Patient(cli_runner, state)
    patient.token(expires_at=f"{TODAY + timedelta(365)}")
    return patient


FRONT = [
    "service URL",
    "  ok       reachable                                 yes",
    "  ok       version                                   18.9.0-ee, Enterprise Edition",
    "token",
    '  ok       token                                     personal access token "ci" of ada',
    "  ok       scopes                                    api: enough to read and to write",
    f"  ok       expiry                                    {TODAY + timedelta(365)}, in 365 days",
]
"""The output for a healthy service and token."""
