"""The component `gitops-sharded`: the work of a fleet divided among jobs and put together again."""

import json

import pytest

from reconciler.document.checksum import with_checksum
from tests.gitops.conftest import CONFIGURATION, Project
from tests.gitops.pipeline import Color
from tests.gitops.test_gitops import MANIFEST
from tests.service.test_connection import LOOPBACK

pytestmark = pytest.mark.untraced

FLEET = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: releases}
spec: {milestones: %s}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [releases]}
select: {group: acme, exclude: [acme/settings]}
"""
NAMES = ("validate", "plan", "review", "apply", "drift", "drift-report", "approve", "report")
VALIDATE, PLAN, REVIEW, APPLY, DRIFT, TOGETHER, APPROVE, REPORT = (f"reconciler-{name}" for name in NAMES)


def fleet(milestones: str) -> str:
    return FLEET % milestones


@pytest.fixture(autouse=True)
def _component(project: Project) -> None:
    project.uses("gitops-sharded", shards=2)
    project.variables["RECONCILER_NOTE_TOKEN"] = "note-token"


def test_the_component_has_these_jobs(project: Project) -> None:
    assert list(project.jobs) == [VALIDATE, PLAN, REVIEW, APPLY, DRIFT, TOGETHER]


def test_a_fleet_is_planned_approved_applied_and_watched_though_one_project_is_sick(project: Project) -> None:
    first = project.commits(fleet=fleet("{}"))
    project.repository.git("checkout", "--quiet", "-b", "change")
    project.commits(fleet=fleet('{"1.0": {}}'))
    pipeline = project.in_merge_request(first)
    assert pipeline.run(PLAN, REVIEW) == [0] * 3
    assert pipeline.ran[REVIEW][0].reports["terraform"] == '{"create": 4, "update": 0, "delete": 0}\n'
    [(author, text)] = project.notes()
    assert (author, text.partition("\n")[0]) == ("notes", "## Plan: 4 to create")
    project.repository.git("checkout", "--quiet", "main")
    project.repository.git("merge", "--quiet", "change")

    project.commits(fleet=fleet('{"1.0": {}}') + "---\n" + MANIFEST % ("nowhere", '{"1.0": {}}'))
    pipeline = project.on_main(before=first)
    assert sorted(pipeline.run(PLAN)) == [0, 3]
    assert pipeline.color(PLAN) is Color.ORANGE
    assert pipeline.run(REVIEW) == [0]
    assert "Plan: 4 to create" in pipeline.ran[REVIEW][0].log
    child = pipeline.child(APPLY)
    assert list(child.jobs) == [APPROVE, APPLY, REPORT]
    assert child.jobs[APPROVE]["when"] == "manual"
    environments = [child.jobs[job].get("environment") for job in (APPROVE, APPLY, REPORT)]
    assert environments == [{"name": "reconciler"}, {"name": "reconciler", "action": "access"}, None]
    assert [job["tags"] for job in child.jobs.values()] == [["docker"]] * 3
    assert not child.is_cancelled_by_a_push()
    assert child.run(APPROVE) == [0]
    assert project.writes() == []
    assert child.run(APPLY, REPORT) == [0] * 3
    assert "Applied: 4 created" in child.ran[REPORT][0].log
    assert len(project.writes()) == 4
    assert [name for _, _, name in project.owned()] == ["1.0"] * 4

    last = project.commits(fleet=fleet('{"1.0": {}}'))
    pipeline = project.on_main()
    assert pipeline.run(PLAN, REVIEW) == [0] * 3
    child = pipeline.child(APPLY)
    assert child.jobs[APPROVE]["when"] == "on_success"
    assert [job for job in child.jobs.values() if "environment" in job] == []
    assert child.run(APPROVE, APPLY, REPORT) == [0] * 4
    assert project.applied() == last
    project.commits(fleet=fleet("{}"))
    pipeline = project.on_main()
    assert pipeline.run(PLAN, REVIEW) == [0] * 3
    assert pipeline.ran[REVIEW][0].reports["terraform"] == '{"create": 0, "update": 0, "delete": 4}\n'
    project.repository.git("revert", "--no-edit", "HEAD")

    state = project.sandbox.state()
    state["projects"][3]["milestones"] = []
    project.sandbox.replace_state(state)
    pipeline = project.on_main("schedule")
    assert sorted(pipeline.run(DRIFT)) == [0, 2]
    assert pipeline.run(TOGETHER) == [0]
    assert (pipeline.color(DRIFT), pipeline.color(TOGETHER)) == (Color.ORANGE, Color.GREEN)
    together = pipeline.ran[TOGETHER][0]
    assert {f".reconciler/{name}" for name in ("drift.json", "drift.html", "reconciler.prom", "junit.xml")} < set(
        together.artifacts
    )
    assert 'failures="1"' in together.reports["junit"]


def test_a_plan_that_a_merge_request_commits_is_no_part_of_the_plan_of_the_branch(project: Project) -> None:
    project.commits(fleet=fleet("{}"))
    crafted = project.runner.folder / "crafted"
    (crafted / "manifests").mkdir(parents=True)
    (crafted / "manifests" / "fleet.yaml").write_text(MANIFEST % ("web", "{crafted: {}}"))
    url = project.sandbox.api_url
    line = "plan --no-inventory --shard 1/2 --out plan.json"
    done = project.runner.command(crafted, line, RECONCILER_API_URL=url, RECONCILER_TOKEN="ada-token")
    assert done.returncode == 0
    content = json.loads((crafted / "plan.json").read_text())
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0, 0]
    real = json.loads(pipeline.ran[PLAN][0].artifacts[".reconciler/plan-1.json"])
    content = real | {key: content[key] for key in ("targets", "summary", "hints", "requests_made") if key in content}
    content.pop("checksum")
    folder = project.repository.folder / ".reconciler"
    folder.mkdir()
    for name in ("plan-1.json", "plan-x.json", "drift-x.json", "report-x.json"):
        (folder / name).write_text(with_checksum(content))
    project.commits()
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0, 0]
    assert [[*ran.artifacts] for ran in pipeline.ran[PLAN]] == [[f".reconciler/plan-{part}.json"] for part in (1, 2)]
    assert pipeline.run(REVIEW) == [1]
    assert "cannot merge: .reconciler/plan-1.json is committed, and whoever may push can write that" in (
        pipeline.ran[REVIEW][0].log
    )
    assert project.writes() == []


def test_each_request_of_each_job_trusts_the_authority_that_is_named_or_that_the_runner_knows(project: Project) -> None:
    project.uses("gitops-sharded", shards=1)
    project.server.api = project.sandbox.api_url.removeprefix("http://").removesuffix("/api/v4")
    named = {"CI_API_V4_URL": f"{project.server.url}/api/v4", "RECONCILER_CA_FILE": str(LOOPBACK)}
    known = {**named, "RECONCILER_CA_FILE": "", "CI_SERVER_TLS_CA_FILE": str(LOOPBACK)}
    (project.repository.folder / "reconciler.yaml").write_text(f"{CONFIGURATION}issue: {{}}\n")
    first = project.commits(fleet=fleet("{}"))
    project.commits(fleet=fleet('{"1.0": {}}'))
    pipeline = project.in_merge_request(first, **named)
    assert pipeline.run(PLAN, REVIEW) == [0, 0]
    assert len(project.notes()) == 1
    pipeline = project.on_main("schedule", **known)
    assert pipeline.run(DRIFT, TOGETHER) == [2, 0]
    assert "Issue drift opened" in pipeline.ran[DRIFT][0].log
    assert "Issue drift unchanged" in pipeline.ran[TOGETHER][0].log
    pipeline = project.on_main(**known)
    assert pipeline.run(PLAN, REVIEW) == [0, 0]
    child = pipeline.child(APPLY)
    assert child.run(APPLY) == [0]
    assert [name for _, _, name in project.owned()] == ["1.0"] * 4


def test_a_shard_that_fails_is_told_in_the_note_and_fails_the_review(project: Project) -> None:
    project.uses("gitops-sharded", shards=1)
    first = project.commits(fleet=fleet("{}"))
    project.commits(fleet=fleet("{1: {}}"))
    pipeline = project.in_merge_request(first)
    assert pipeline.run(PLAN, REVIEW) == [1, 1]
    [(_, text)] = project.notes()
    assert text.startswith("**No plan of ")
