"""The component `fleet`: a page on GitLab Pages from the report of another job, whose history a git ref keeps."""

import json
from typing import Any

import pytest

from reconciler.reports.history import FORMAT
from tests.fleet.repository import NOBODY
from tests.gitops.component import read_component
from tests.gitops.conftest import Project

pytestmark = pytest.mark.untraced

DRIFT, FLEET = "reconciler-drift", "reconciler-fleet"
PAGE, HISTORY = "public/index.html", "public/index.history.json"
REF = "refs/reconciler/fleet"
MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {milestones: %s}
"""


@pytest.fixture(autouse=True)
def _component(project: Project) -> None:
    project.jobs = {
        name: job
        for each in ("gitops", "fleet")
        for name, job in read_component(each).jobs(image="reconciler:1").items()
    }
    project.commits(api=MANIFEST % "{a: {}}")


def kept(project: Project) -> dict[str, Any]:
    """Return the history that the ref keeps."""
    assert project.repository.git("ls-tree", "-r", "--name-only", REF) == "index.history.json"
    content: dict[str, Any] = json.loads(project.repository.git("show", f"{REF}:index.history.json"))
    return content


def test_the_page_of_each_run_knows_the_runs_before_and_no_history_is_lost(project: Project) -> None:
    project.variables |= {name: value for name, value in NOBODY.items() if name.endswith("_DATE")}  # the same second
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT) == [2]
    project.writes()
    assert pipeline.run(FLEET) == [0]
    assert project.sandbox.log() == []
    [ran] = pipeline.ran[FLEET]
    assert "There is no history at refs/reconciler/fleet, so this page begins one.\n" in ran.log
    assert "<h1><strong>0\u00a0%</strong> of 1 project in order</h1>" in ran.artifacts[PAGE]
    assert "<p>No apply is recorded yet.</p>" in ran.artifacts[PAGE]
    first = kept(project)
    assert (first["format"], len(first["runs"]), json.loads(ran.artifacts[HISTORY])) == (FORMAT, 1, first)

    committed = project.repository.folder / "public" / "index.html"  # the page takes its place
    committed.parent.mkdir()
    committed.write_text("committed")
    project.repository.commit()
    hook = project.repository.folder / ".git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert pipeline.run(FLEET) == [0]
    [ran] = pipeline.ran[FLEET]
    assert (ran.log.count("history"), kept(project)) == (0, first)  # the same report again: nothing to keep
    project.commits(api=MANIFEST % "{a: {}, b: {}}")
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT, FLEET) == [2, 0]
    [ran] = pipeline.ran[FLEET]
    refused = "the history could not be kept, so the next page does not know this run: with CI_JOB_TOKEN: "
    assert ran.log.splitlines()[-1].startswith(refused)
    assert "pre-receive hook declined" in ran.log
    changes = [run["changes"] for run in json.loads(ran.artifacts[HISTORY])["runs"]]
    assert (changes[-1], kept(project)) == (2, first)
    assert project.repository.git("rev-list", "--count", REF) == "1"

    (project.repository.folder / "index.history.json").write_text("{}")
    broken = project.repository.commit()
    project.repository.git("update-ref", REF, broken)
    assert pipeline.run(FLEET) == [1]
    assert "move the file away to begin a new history" in pipeline.ran[FLEET][0].log
    assert project.repository.git("rev-parse", REF) == broken


def test_the_token_goes_to_the_server_alone_whatever_the_folder_of_other_jobs_says(project: Project) -> None:
    project.protected["RECONCILER_PUSH_TOKEN"] = "glpat-push"
    project.server.tokens.add("glpat-push")
    elsewhere = f"git config url.https://elsewhere.invalid/.insteadOf {project.server.url}/"
    project.jobs = {**project.jobs, FLEET: {**project.jobs[FLEET], "before_script": [elsewhere]}}
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT) == [2]
    project.server.users()
    assert pipeline.run(FLEET) == [0]
    assert project.server.users() == ["fetch gitlab-ci-token:glcbt-job-token", "push reconciler:glpat-push"]
    assert len(kept(project)["runs"]) == 1
