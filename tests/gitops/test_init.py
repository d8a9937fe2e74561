"""From an empty folder and a token to a repository whose pipeline plans empty: `init --group`, `git commit`."""

import pytest
import yaml

from tests.gitops.conftest import Project

pytestmark = pytest.mark.untraced

VALIDATE, PLAN, DRIFT = "reconciler-validate", "reconciler-plan", "reconciler-drift"
NOTHING = '{"create": 0, "update": 0, "delete": 0}\n'


def test_two_commands_make_a_repository_whose_pipeline_plans_empty(project: Project) -> None:
    repository = project.repository
    service = {"RECONCILER_API_URL": project.sandbox.api_url, "RECONCILER_TOKEN": "ada-token"}
    done = project.runner.command(repository.folder, "init --group acme", **service)
    assert done.returncode == 0, done.stdout
    first = repository.commit()

    configuration = yaml.safe_load((repository.folder / ".gitlab-ci.yml").read_text())
    [included] = configuration["include"]
    path, _, _ = included["component"].partition("@")
    project.uses(path.rpartition("/")[2], **included["inputs"])
    project.variables["RECONCILER_READ_TOKEN"] = "ada-token"
    pipeline = project.on_main()
    assert pipeline.run(VALIDATE, PLAN) == [0, 0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == NOTHING
    assert project.on_main("schedule").run(DRIFT) == [0]
    assert project.in_merge_request(first).run(VALIDATE, PLAN) == [0, 0]
    assert project.writes() == []
