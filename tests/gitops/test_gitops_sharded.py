"""The component `gitops-sharded`: the work of a fleet divided among jobs and put together again."""

import pytest

from tests.gitops.conftest import Project
from tests.gitops.test_gitops import MANIFEST

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
NAMES = ("validate", "plan", "review", "approve", "apply", "report", "drift", "drift-report")
VALIDATE, PLAN, REVIEW, APPROVE, APPLY, REPORT, DRIFT, TOGETHER = (f"fleet-{name}" for name in NAMES)


def fleet(milestones: str) -> str:
    return FLEET % milestones


@pytest.fixture(autouse=True)
def _component(project: Project) -> None:
    project.uses("gitops-sharded", shards=2, job_prefix="fleet-")
    project.variables["RECONCILER_NOTE_TOKEN"] = "note-token"


def test_the_component_has_these_jobs(project: Project) -> None:
    assert list(project.jobs) == [VALIDATE, PLAN, REVIEW, APPROVE, APPLY, REPORT, DRIFT, TOGETHER]


def test_a_fleet_is_planned_approved_applied_and_watched(project: Project) -> None:
    first = project.commits(fleet=fleet("{}"))
    project.repository.git("checkout", "--quiet", "-b", "change")
    project.commits(fleet=fleet('{"1.0": {}}'))
    pipeline = project.in_merge_request(first)
    assert pipeline.run() == {VALIDATE: "success", PLAN: "success", REVIEW: "success"}
    assert pipeline.ran[REVIEW][0].reports["terraform"] == '{"create": 4, "update": 0, "delete": 0}\n'
    [(author, text)] = project.notes()
    assert (author, text.partition("\n")[0]) == ("notes", "## Plan: 4 to create")
    project.repository.git("checkout", "--quiet", "main")
    project.repository.git("merge", "--quiet", "change")

    pipeline = project.on_main(before=first)
    assert pipeline.run() == {
        PLAN: "success",
        REVIEW: "success",
        APPROVE: "manual",
        APPLY: "waiting",
        REPORT: "waiting",
    }
    assert "Plan: 4 to create" in pipeline.ran[REVIEW][0].log
    assert project.writes() == []
    statuses = [pipeline.again(name)[0].status for name in (APPROVE, APPLY, REPORT)]
    assert statuses == ["success"] * 3
    assert len(pipeline.ran[APPLY]) == 2
    assert "Applied: 4 created" in pipeline.ran[REPORT][0].log
    assert len(project.writes()) == 4

    state = project.sandbox.state()
    state["projects"][3]["milestones"] = []
    project.sandbox.replace_state(state)
    pipeline = project.on_main("schedule")
    ran = pipeline.run()
    assert {each.status for each in pipeline.ran[DRIFT]} == {"success", "warning"}
    assert ran[TOGETHER] == "success"
    together = pipeline.ran[TOGETHER][0]
    assert set(together.artifacts) == {
        f".reconciler/{name}" for name in ("drift.json", "drift.html", "reconciler.prom")
    }
    assert 'failures="1"' in together.reports["junit"]


def test_a_sick_project_stops_neither_its_shard_nor_the_others(project: Project) -> None:
    sick = "---\n" + MANIFEST % ("nowhere", '{"1.0": {}}')
    project.commits(fleet=fleet('{"1.0": {}}') + sick)
    pipeline = project.on_main()
    pipeline.run(APPROVE)
    statuses = {name: sorted(each.status for each in ran) for name, ran in pipeline.ran.items()}
    assert statuses == {
        PLAN: ["success", "warning"],
        REVIEW: ["warning"],
        APPROVE: ["success"],
        APPLY: ["success", "success"],
        REPORT: ["success"],
    }
    assert "Applied: 4 created" in pipeline.ran[REPORT][0].log
    pipeline = project.on_main("schedule")
    assert pipeline.run()[TOGETHER] == "warning"
    assert sorted(each.code for each in (*pipeline.ran[DRIFT], *pipeline.ran[TOGETHER])) == [0, 3, 3]


def test_a_shard_that_fails_is_told_in_the_note_and_nothing_is_applied(project: Project) -> None:
    project.uses("gitops-sharded", shards=1, job_prefix="fleet-")
    first = project.commits(fleet=fleet("{}"))
    project.commits(fleet=fleet("{1: {}}"))
    pipeline = project.in_merge_request(first)
    assert pipeline.run() == {VALIDATE: "failed", PLAN: "failed", REVIEW: "failed"}
    [(_, text)] = project.notes()
    assert text.startswith("**No plan of ")
    ran = project.on_main(before=first).run(APPROVE)
    assert ran == {PLAN: "failed", REVIEW: "failed", APPROVE: "skipped", APPLY: "skipped", REPORT: "failed"}
