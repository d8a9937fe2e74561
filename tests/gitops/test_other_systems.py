"""The examples for other systems, each line run as it stands: GitHub Actions, and cron."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gitops.component import ROOT
from tests.gitops.conftest import Project
from tests.gitops.test_gitops import manifest, settled, somebody
from tests.service.test_connection import LOOPBACK

pytestmark = pytest.mark.untraced

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "ci" / "github.yml").read_text())
CRONTAB = (ROOT / "examples" / "ci" / "crontab").read_text()
SECRET = re.compile(r"\$\{\{ (?:secrets\.|github\.)(\w+) \}\}")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""How GitHub runs the lines of a step."""


class Machine:
    """A machine with a clone of the project, whose remote is the server."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.clone, self.home = project, folder / "clone", folder / "home"
        self.home.mkdir(parents=True)
        project.server.tokens = {"github-token"}
        self.pull()

    def pull(self) -> None:
        """Make a fresh clone, as each job does."""
        shutil.rmtree(self.clone, ignore_errors=True)
        self.project.repository.git("clone", "--quiet", str(self.project.repository.folder), str(self.clone))
        self.project.repository.git("-C", str(self.clone), "remote", "set-url", "origin", self.project.server.remote)

    def run(self, line: "list[str]", **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a program in the clone, with no variables but these."""
        always = {"HOME": str(self.home), "RECONCILER_CA_FILE": str(LOOPBACK), "LC_ALL": "C.UTF-8"}
        path = f"{self.project.runner.folder / 'bin'}:/usr/bin:/bin"
        api_url = self.project.sandbox.api_url
        return subprocess.run(
            line,
            cwd=self.clone,
            env={"PATH": path, **always, "RECONCILER_API_URL": api_url, **variables},
            capture_output=True,
            text=True,
            check=False,
        )


def filled(variables: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    return {name: SECRET.sub(lambda match: known[match[1]], value) for name, value in variables.items()}


def job(machine: Machine, name: str, **variables: str) -> tuple[int, str]:
    """Run the steps of a job in a fresh clone; return its exit code and its summary."""
    machine.pull()
    known = {"RECONCILER_READ_TOKEN": "reader-token", "RECONCILER_TOKEN": "ada-token", "token": "github-token"}
    own = {key: value for key, value in WORKFLOW["env"].items() if key != "RECONCILER_API_URL"}
    environment = filled({**own, **WORKFLOW["jobs"][name].get("env", {})}, known)
    summary = machine.home / "summary.md"
    summary.write_text("")
    code = 0
    checkout, *steps = WORKFLOW["jobs"][name]["steps"]
    assert checkout["with"]["fetch-depth"] == 0
    for step in steps:
        if code == 0 or step.get("if") == "always()":
            line = step["run"].replace("https://github.com", machine.project.server.url)
            github = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
            done = machine.run([*SHELL, line], **github, **environment, **variables)
            code = code or done.returncode
    return code, summary.read_text()


def test_a_workflow_of_github_plans_applies_and_watches(project: Project, tmp_path: Path) -> None:
    assert WORKFLOW["defaults"] == {"run": {"shell": "bash"}}
    settled(project)
    machine = Machine(project, tmp_path / "github")
    assert job(machine, "apply")[0] == 0
    assert project.owned() == [("project 100", "milestones", "1.0")]
    code, summary = job(machine, "drift")
    assert (code, summary.partition("\n")[0]) == (0, "## No changes: 1 target is in order")

    project.repository.git("checkout", "--quiet", "-b", "change")
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
    code, summary = job(machine, "plan", GITHUB_BASE_REF="main")
    assert (code, summary.partition("\n")[0]) == (0, "## Plan: 1 to update")
    assert project.writes() == []
    project.repository.git("checkout", "--quiet", "main")
    project.repository.git("merge", "--quiet", "change")
    code, summary = job(machine, "apply")
    assert (code, project.writes()) == (0, ["PUT projects/acme%2Fapi/milestones/1"])
    assert project.applied() == project.repository.git("rev-parse", "HEAD")
    somebody(project, due_date="2027-01-31")
    code, summary = job(machine, "drift")
    assert (code, summary.partition("\n")[0]) == (2, "## Plan: 1 to update")
    project.commits(api="nonsense")
    assert job(machine, "plan", GITHUB_BASE_REF="main")[0] == 1


def test_a_crontab_applies_what_was_merged_and_mails_what_differs(project: Project, tmp_path: Path) -> None:
    """Cron hands each line to sh, and mails what it prints."""
    settled(project)
    machine = Machine(project, tmp_path / "cron")
    project.repository.git("-C", str(machine.clone), "remote", "set-url", "origin", str(project.repository.folder))
    project.repository.git("config", "receive.denyCurrentBranch", "ignore")
    token = machine.home / "token"
    token.write_text("ada-token\n")
    token.chmod(0o600)
    apply, drift = (
        re.sub("/srv/acme-settings", str(machine.clone), line.split(maxsplit=5)[5])
        for line in CRONTAB.splitlines()
        if line[:1] in {"*", "1"}
    )
    assert re.findall(r"^(\w+)=", CRONTAB, re.MULTILINE) == ["MAILTO", "RECONCILER_API_URL", "RECONCILER_TOKEN_FILE"]

    def mail(line: str) -> str:
        done = machine.run(["sh", "-c", line], RECONCILER_TOKEN_FILE=str(token))
        return done.stdout + done.stderr

    first = mail(apply)
    assert "There is no inventory yet" in first or first == ""
    assert project.owned() == [("project 100", "milestones", "1.0")]
    assert (mail(apply), mail(drift)) == ("", "")
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
    assert mail(apply) == ""
    assert project.writes() == ["PUT projects/acme%2Fapi/milestones/1"]
    somebody(project, due_date="2027-01-31")
    assert "Plan: 1 to update. 1 write to apply;" in mail(drift)
    project.commits(api="nonsense")
    assert "manifests/api.yaml:1:1: " in mail(apply)
