"""From an empty folder and a token to a repository with a pipeline: `init --group`, `git commit`, and the first problem."""

from typing import Any

import pytest
import yaml

from reconciler.sandbox.generating import generate
from tests.gitops.conftest import Project
from tests.gitops.pipeline import Color

pytestmark = pytest.mark.untraced

NAMES = ("validate", "plan", "review", "apply", "drift")
VALIDATE, PLAN, REVIEW, APPLY, DRIFT = (f"reconciler-{name}" for name in NAMES)
NOTHING = '{"create": 0, "update": 0, "delete": 0}\n'

RELEASES = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: releases}
spec: {milestones: {next: {}}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: releases, profiles: [releases]}
select: {group: acme}
"""


def set_up(project: Project) -> dict[str, Any]:
    """Run the README's two commands, take the jobs of the pipeline that they write, and return its configuration."""
    project.variables["RECONCILER_READ_TOKEN"] = "ada-token"
    (project.repository.folder / "reconciler.yaml").unlink()
    service = {"RECONCILER_API_URL": project.sandbox.api_url, "RECONCILER_TOKEN": "ada-token"}
    done = project.runner.command(project.repository.folder, "init --group acme", **service)
    assert done.returncode == 0, done.stdout
    project.repository.commit()
    configuration: dict[str, Any] = yaml.safe_load((project.repository.folder / ".gitlab-ci.yml").read_text())
    [included] = configuration["include"]
    path, _, _ = included["component"].partition("@")
    project.uses(path.rpartition("/")[2], **included["inputs"])
    return configuration


def test_two_commands_make_a_repository_whose_pipeline_plans_empty(project: Project) -> None:
    set_up(project)
    first = project.repository.git("rev-parse", "HEAD")
    pipeline = project.on_main()
    assert pipeline.run(VALIDATE, PLAN) == [0, 0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == NOTHING
    assert project.on_main("schedule").run(DRIFT) == [0]
    assert project.in_merge_request(first).run(VALIDATE, PLAN) == [0, 0]
    assert project.writes() == []


def test_one_unreadable_project_turns_the_plan_orange_and_the_rest_is_applied(project: Project) -> None:
    project.sandbox.replace_state(generate(8, 0))
    configuration = set_up(project)
    pipeline = project.on_main()
    assert pipeline.run(VALIDATE, PLAN, REVIEW) == [0, 0, 0]
    child = pipeline.child(APPLY)
    assert child.jobs[APPLY]["when"] == "on_success"
    assert child.run(APPLY) == [0]
    assert project.writes() == []

    sick = next(each["path"] for each in project.sandbox.state()["projects"] if not each.get("archived"))
    project.sandbox.set_faults([f"status=403,method=GET,match={sick.replace('/', '%2F')}/milestones"])
    project.commits(releases=RELEASES)
    pipeline = project.on_main()
    assert pipeline.run(VALIDATE, PLAN, REVIEW) == [0, 3, 0]
    assert [pipeline.color(name) for name in (VALIDATE, PLAN, REVIEW)] == [Color.GREEN, Color.ORANGE, Color.GREEN]
    child = pipeline.child(APPLY)
    assert (child.jobs[APPLY]["when"], child.jobs[APPLY]["environment"]) == ("manual", {"name": "reconciler"})
    branch = configuration["workflow"]["rules"][0]
    assert branch == {"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH", "auto_cancel": child.workflow["auto_cancel"]}
    assert not child.is_cancelled_by_a_push()
    assert project.writes() == []
    assert child.run(APPLY) == [0]
    writes = project.writes()
    assert {line.rpartition("/")[2] for line in writes} == {"milestones"}
    assert sick.replace("/", "%2F") not in "".join(writes)

    project.sandbox.set_faults([])
    pipeline = project.on_main("schedule")
    assert (pipeline.run(DRIFT), pipeline.color(DRIFT)) == ([2], Color.ORANGE)
    assert "Plan: 1 to create. 1 write to apply;" in pipeline.ran[DRIFT][0].log
