"""The branch of the inventory, examined by the doctor: a project of the same service should protect it."""

from typing import Any

import httpx
import pytest

from reconciler.memory.remotes import project_on
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository

BRANCH = "/api/v4/projects/acme%2Flib/repository/branches/reconciler%2Fapplied"
UNPROTECTED = (
    "the branch reconciler/applied of acme/lib is not protected: who may push can hide changes from --since applied; "
    "protect it under Settings > Repository > Protected branches, with nobody allowed to force-push"
)


def post(cli_runner: CliRunner, path: str, **body: Any) -> None:
    headers = {"PRIVATE-TOKEN": "ada-token"}
    answer = httpx.post(f"{cli_runner.sandbox.api_url}/projects/acme%2Flib/{path}", json=body, headers=headers)
    assert answer.status_code == 201, answer.text


@pytest.fixture
def git(cli_runner: CliRunner) -> Repository:
    """The folder's repository, whose remote is a project of the service that has the branch."""
    made = repository(cli_runner.folder)
    made.git("remote", "add", "origin", "git@127.0.0.1:acme/lib.git")
    cli_runner.write("reconciler.yaml", "inventory: {remote: origin}\n")
    action = {"action": "create", "file_path": "inventory.jsonl", "content": "{}"}
    post(cli_runner, "repository/commits", branch="reconciler/applied", commit_message="apply", actions=[action])
    cli_runner.sandbox.clear_log()
    return made


def examined(cli_runner: CliRunner) -> tuple[int, list[str], int]:
    """Return exit code and findings of the manifests, and how often the branch was asked for."""
    done = cli_runner("doctor --format text")
    log = cli_runner.sandbox.log()
    cli_runner.sandbox.clear_log()
    lines = [" ".join(line.split()) for line in done.out.splitlines() if "inventory" in line or "protect" in line]
    return done.code, lines, sum(entry["target"] == BRANCH for entry in log)


@pytest.mark.usefixtures("git")
def test_a_branch_that_is_not_protected_is_warned_of_at_one_request(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}}")
    assert examined(cli_runner) == (0, [f"warning inventory {UNPROTECTED}"], 1)
    post(cli_runner, "protected_branches", name="reconciler/*")
    assert examined(cli_runner) == (0, [], 1)


@pytest.mark.untraced
def test_of_a_branch_that_cannot_be_looked_at_nothing_is_said(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {}}")
    cli_runner.write("reconciler.yaml", "inventory: {remote: origin, branch: reconciler/other}\n")
    assert examined(cli_runner) == (0, [], 0)
    for text in ("inventory: false\n", "inventory: {}\n"):
        cli_runner.write("reconciler.yaml", text)
        assert examined(cli_runner) == (0, [], 0)
    cli_runner.write("reconciler.yaml", "inventory: {remote: origin}\n")
    git.git("remote", "set-url", "origin", "git@gitlab.example.com:acme/lib.git")
    assert examined(cli_runner) == (0, [], 0)


def test_in_a_job_the_project_of_the_job_has_the_branch(
    cli_runner: CliRunner, git: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.git("remote", "remove", "origin")
    cli_runner.project("{milestones: {}}")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_SERVER_URL", "https://127.0.0.1")
    monkeypatch.setenv("CI_PROJECT_PATH", "acme/lib")
    assert examined(cli_runner) == (0, [f"warning inventory {UNPROTECTED}"], 1)


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("https://gitlab.example.com/gitlab/acme/settings.git", "acme/settings"),
        ("https://me:secret@gitlab.example.com/gitlab/acme/settings", "acme/settings"),
        ("https://gitlab.example.com/acme/settings.git", ""),
        ("ssh://git@gitlab.example.com:2222/acme/settings.git", "acme/settings"),
        ("git@gitlab.example.com:acme/sub/settings.git", "acme/sub/settings"),
        ("gitlab.example.com:acme/settings", "acme/settings"),
        ("git@elsewhere.example.com:acme/settings.git", ""),
        ("/srv/settings.git", ""),
        ("file:///srv/settings.git", ""),
        ("", ""),
    ],
)
def test_the_project_of_a_remote(url: str, project: str) -> None:
    assert project_on("https://gitlab.example.com/gitlab", url) == project
