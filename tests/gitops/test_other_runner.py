"""The components and what `init` writes, as `gitlab-ci-local` reads and runs them, where that is installed."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from reconciler.cli.job import apply_pipeline
from reconciler.cli.scaffold import Pieces, scaffold
from tests.gitops.component import ROOT
from tests.gitops.conftest import ZEROS, Project
from tests.gitops.test_gitops import settled, somebody

PROGRAM = shutil.which("gitlab-ci-local") or ""
pytestmark = [pytest.mark.untraced, pytest.mark.skipif(not PROGRAM, reason="gitlab-ci-local is not installed")]

INCLUDED = """\
include:
  - local: /templates/{name}.yml
    inputs: {{image: "reconciler:1"}}
"""
OWN = {"CI_PROJECT_ID": "900", "CI_MERGE_REQUEST_PROJECT_ID": "900"}
MERGE_REQUEST = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_COMMIT_BRANCH": ""}
MAIN = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
CHECKS = ["reconciler-validate", "reconciler-plan"]
UNVALIDATED = ["--no-json-schema-validation"]
"""The validation takes as long as everything else."""

PIPELINES = [
    ("merge request", {**OWN, **MERGE_REQUEST}, [*CHECKS, "reconciler-review"]),
    ("fork", {**OWN, **MERGE_REQUEST, "CI_MERGE_REQUEST_PROJECT_ID": "7"}, CHECKS[:1]),
    ("default branch", {**OWN, **MAIN}, [*CHECKS, "reconciler-review", "reconciler-apply"]),
    ("other branch", {**OWN, **MAIN, "CI_COMMIT_BRANCH": "other"}, []),
    (
        "schedule",
        {**OWN, **MAIN, "CI_PIPELINE_SOURCE": "schedule"},
        ["reconciler-drift", "reconciler-drift-report"],
    ),
]
"""What a pipeline is about, its variables, and the jobs of `gitops-sharded`, which includes `gitops`, in it."""


class Machine:
    """A machine with a clone and the program, which runs each job by the shell."""

    def __init__(self, folder: Path, configuration: str, program: Path | None = None) -> None:
        self.folder, self.program = folder, program
        self.is_valid = False
        folder.mkdir(exist_ok=True)
        shutil.copytree(ROOT / "templates", folder / "templates")
        (folder / ".gitlab-ci.yml").write_text(configuration)
        if not (folder / ".git").exists():
            self.git("init", "--quiet", "--initial-branch=main")
            self.git("remote", "add", "origin", "git@gitlab.example.com:acme/settings.git")
        self.git("add", "--all")
        self.git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message", "It")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, check=True)

    def run(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the program."""
        given = [word for name, value in variables.items() for word in ("--variable", f"{name}={value}")]
        path = f"{self.program or ''}:{os.environ['PATH']}"
        return subprocess.run(
            [PROGRAM, "--home", str(self.folder / ".home"), *arguments, *given],
            cwd=self.folder,
            env={"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def jobs(self, **variables: str) -> list[str]:
        """Return the jobs of a pipeline with these variables; the first time, validate the configuration too."""
        done = self.run("--list", *UNVALIDATED * self.is_valid, **variables)
        self.is_valid = self.is_valid or "json schema validated" in done.stdout
        assert self.is_valid, done.stdout
        return list(dict.fromkeys(re.findall(r"^(reconciler-[\w-]+)", done.stdout, re.MULTILINE)))


def test_a_pipeline_has_the_jobs_that_its_rules_promise(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "clone", INCLUDED.format(name="gitops-sharded"))
    for about, variables, jobs in PIPELINES:
        assert sorted(machine.jobs(**variables)) == sorted(jobs), about


@pytest.mark.parametrize("parts", [1, 3])
def test_the_pipeline_that_applies_is_valid(parts: int, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "clone", json.dumps(apply_pipeline("i:1", parts, is_empty=False)))
    assert machine.jobs()[-1] == ("reconciler-apply" if parts == 1 else "reconciler-report")


def test_what_init_writes_and_the_pipeline_of_this_project_are_valid(tmp_path: Path) -> None:
    written = yaml.safe_load(scaffold(None, Pieces())[Path(".gitlab-ci.yml")])
    component = written["include"][0].pop("component")
    written["include"][0]["local"] = f"/templates/{component.rpartition('/')[2].partition('@')[0]}.yml"
    machine = Machine(tmp_path / "clone", yaml.safe_dump(written))
    assert sorted(machine.jobs(**OWN, **MERGE_REQUEST)) == sorted(CHECKS)
    machine = Machine(tmp_path / "own", (ROOT / ".gitlab-ci.yml").read_text())
    assert "json schema validated" in machine.run("--list").stdout


@pytest.mark.skipif(not shutil.which("rsync"), reason="gitlab-ci-local copies the checkout with rsync")
def test_its_jobs_run_as_they_do_in_the_other_tests(project: Project, tmp_path: Path) -> None:
    first = settled(project)
    project.repository.git("clone", "--quiet", str(project.repository.folder), str(tmp_path / "clone"))
    machine = Machine(tmp_path / "clone", INCLUDED.format(name="gitops"), project.runner.folder / "bin")

    def jobs(*names: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        service = {
            "GITLAB_CI": "true",
            "CI": "true",
            "CI_API_V4_URL": project.sandbox.api_url,
            "RECONCILER_READ_TOKEN": "reader-token",
            "RECONCILER_NOTE_TOKEN": "note-token",
            "RECONCILER_SINCE": ZEROS,
            "CI_SERVER_URL": project.server.url,
            "CI_PROJECT_PATH": "acme/settings",
            "RECONCILER_CA_FILE": project.in_merge_request(first).variables["RECONCILER_CA_FILE"],
            "CI_JOB_TOKEN": "glcbt-job-token",
        }
        return machine.run("--force-shell-executor", *UNVALIDATED, *names, **{**OWN, **MAIN, **service, **variables})

    in_merge_request = {**MERGE_REQUEST, "CI_MERGE_REQUEST_IID": "7"}
    done = jobs(*CHECKS, **in_merge_request)
    assert (done.returncode, "No changes: 1 target is in order." in done.stdout) == (0, True), done.stdout
    assert [author for author, _ in project.notes()] == ["notes"]
    somebody(project, due_date="2027-01-31")
    drift = jobs("reconciler-drift", CI_PIPELINE_SOURCE="schedule")
    assert (drift.returncode, "1 to update" in drift.stdout) == (0, True)  # a warning
    assert re.search(r"reconciler-drift finished in .* WARN 2", drift.stdout)
    (machine.folder / "manifests" / "web.yaml").write_text("nonsense")
    machine.git("add", "--all")
    assert "FAIL  reconciler-plan" in jobs("reconciler-plan", **in_merge_request).stdout
