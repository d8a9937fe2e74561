"""`doctor --pipeline`: the settings of a project whose pipelines apply manifests, as the service shows them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.canned import answer, answering
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository

PROJECT = "projects/acme%2Fsettings"
BRANCH, RULES = f"{PROJECT}/repository/branches/reconciler%2Fapplied", f"{PROJECT}/protected_branches"
TOOLS = "projects/tools%2Freconciler"
SELF = {"id": 1, "name": "ci", "scopes": ["api"], "active": True, "expires_at": None, "user_id": 2}
USER = {"id": 2, "username": "ada", "is_admin": False}


def variable(name: str, *, protected: bool, masked: bool = True) -> dict[str, Any]:
    return {"key": name, "value": "glpat-secret", "protected": protected, "masked": masked}


IN_ORDER: Mapping[str, Any] = {
    "personal_access_tokens/self": SELF,
    "version": {"version": "18.9.0-ee", "enterprise": True},
    "user": USER,
    PROJECT: {
        "id": 9,
        "ci_push_repository_for_job_token_allowed": True,
        "ci_pipeline_variables_minimum_override_role": "maintainer",
    },
    f"{PROJECT}/variables": [
        variable("RECONCILER_TOKEN", protected=True),
        variable("RECONCILER_READ_TOKEN", protected=False),
        variable("RECONCILER_NOTE_TOKEN", protected=False),
    ],
    BRANCH: {"name": "reconciler/applied", "protected": True},
    RULES: [{"name": "main", "allow_force_push": True}, {"name": "reconciler/*", "allow_force_push": False}],
    f"{PROJECT}/protected_environments/reconciler": {"name": "reconciler"},
    f"{TOOLS}/repository/tags/v0.1.0": {"name": "v0.1.0"},
    f"{TOOLS}/registry/repositories": [{"id": 1, "tags": [{"name": "0.1.0"}]}],
}
"""What a service answers where everything is in order, by path."""

CONFIGURATION = """\
include:
  - component: $CI_SERVER_FQDN/tools/reconciler/gitops@v0.1.0
    inputs:
      image: $CI_REGISTRY/tools/reconciler:0.1.0
"""


@pytest.fixture
def checkout(cli_runner: CliRunner) -> CliRunner:
    """A user in the clone of the project."""
    cli_runner.write(".gitlab-ci.yml", CONFIGURATION)
    made = repository(cli_runner.folder)
    made.git("remote", "add", "origin", "git@gitlab.example.com:acme/settings.git")
    return cli_runner


def examined(cli_runner: CliRunner, answers: Mapping[str, Any], *options: str) -> tuple[int, list[str]]:
    """Return the exit code and the lines about the pipeline; a number is a status, and 404 is that of all other paths."""

    def act(request: str) -> bytes:
        path = re.sub(r"\?.*", "", request.split(" ")[1].removeprefix("/api/v4/"))
        found = answers.get(path, 404)
        if isinstance(found, int):
            return answer(f"{found} No", json.dumps({"message": f"{found} No"}))
        return answer("200 OK", json.dumps(found))

    with answering(act) as api_url:
        done = cli_runner(
            "doctor --pipeline --quiet" if not options else "doctor --pipeline", "--api-url", api_url, *options
        )
    assert "glpat-secret" not in done.out + done.err
    return done.code, [" ".join(line.split()) for line in done.out.partition("pipeline\n")[2].splitlines() if line]


def test_where_all_is_in_order_nothing_is_to_do(checkout: CliRunner) -> None:
    code, lines = examined(checkout, IN_ORDER, "--verbose")
    assert code == 0
    assert lines[:-1] == [
        "ok RECONCILER_TOKEN set, protected, masked",
        "ok RECONCILER_READ_TOKEN set, not protected, masked",
        "ok RECONCILER_NOTE_TOKEN set, not protected, masked",
        "ok push with the job token",
        "ok branch reconciler/applied is protected",
        "ok pipeline variables only the role maintainer and above may set them",
        "ok environment reconciler is protected",
        "ok component tools/reconciler has the tag v0.1.0",
        "ok image tools/reconciler has the image 0.1.0",
    ]
    checkout.write("reconciler.yaml", "inventory: false\n")
    code, lines = examined(checkout, IN_ORDER, "--verbose")
    assert [line for line in lines if "push" in line or "branch" in line] == []


def test_each_thing_that_lacks_or_is_too_much_is_said(checkout: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {
        **IN_ORDER,
        PROJECT: {
            "id": 9,
            "ci_push_repository_for_job_token_allowed": False,
            "ci_pipeline_variables_minimum_override_role": "developer",
        },
        f"{PROJECT}/variables": [
            variable("RECONCILER_READ_TOKEN", protected=True),
            variable("RECONCILER_NOTE_TOKEN", protected=False, masked=False),
        ],
        RULES: [{"name": "reconciler/*", "allow_force_push": True}],
        f"{PROJECT}/protected_environments/reconciler": 404,
        f"{TOOLS}/repository/tags/v0.1.0": 404,
        f"{TOOLS}/registry/repositories": [{"id": 1, "tags": []}],
    }
    monkeypatch.setenv("RECONCILER_READ_TOKEN", "another-token")
    code, lines = examined(checkout, lacking)
    assert code == 3
    assert [line.partition(";")[0] for line in lines[:-1]] == [
        "error RECONCILER_TOKEN not set in the project",
        "warning RECONCILER_READ_TOKEN protected: merge requests do not get it",
        "warning RECONCILER_NOTE_TOKEN not masked: a log could show it",
        "warning push only if RECONCILER_TOKEN may write to this repository: no other token may push the inventory",
        "warning branch reconciler/applied may be force-pushed",
        "warning pipeline variables every Developer may set any, such as RECONCILER_API_URL, which decides who gets the "
        "token",
        "warning environment reconciler is not protected: everybody who may merge may start apply",
        "error component tools/reconciler has no tag v0.1.0, or the token cannot see it",
        "error image tools/reconciler has no image 0.1.0, or the token cannot see it",
        "warning RECONCILER_READ_TOKEN may write, and everybody who can push a branch can read it",
    ]
    variables = [variable("RECONCILER_TOKEN", protected=False), variable("RECONCILER_PUSH_TOKEN", protected=True)]
    lacking |= {
        f"{PROJECT}/variables": variables,
        BRANCH: {"protected": False},
        "personal_access_tokens/self": {**SELF, "scopes": ["read_api"]},
    }
    _, lines = examined(checkout, lacking, "--verbose")
    assert [line.partition(";")[0] for line in lines[:5]] == [
        "warning RECONCILER_TOKEN not protected: everybody who can push a branch can read it",
        "warning RECONCILER_READ_TOKEN not set in the project: merge requests are not planned",
        "warning RECONCILER_NOTE_TOKEN not set in the project: no note is posted, and no issue kept",
        "ok push with RECONCILER_PUSH_TOKEN",
        "warning branch reconciler/applied is not protected: everybody who may push can hide changes from plan",
    ]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({BRANCH: {"protected": True}, RULES: []}, "ok branch reconciler/applied is protected"),  # by a group's rule
        ({BRANCH: {"protected": True}, RULES: 403}, "ok branch reconciler/applied is protected"),
        ({BRANCH: 404}, "ok branch reconciler/applied is protected"),  # before the first apply
        (
            {BRANCH: 404, RULES: [{"name": "*-applied"}]},
            "warning branch reconciler/applied is not protected: everybody",
        ),
        (
            {BRANCH: 404, RULES: 403},
            "unknown branch reconciler/applied: GET projects/acme%2Fsettings/protected_branches",
        ),
        ({BRANCH: 403}, "unknown branch reconciler/applied: GET projects/acme%2Fsettings/repository/branches/"),
    ],
)
def test_a_branch_is_protected_if_the_service_says_so_or_a_rule_will_cover_it(
    checkout: CliRunner, answers: Mapping[str, Any], told: str
) -> None:
    _, lines = examined(checkout, {**IN_ORDER, **answers}, "--verbose")
    [line] = [line for line in lines if " branch " in line]
    assert line.startswith(told)


def test_nobody_may_set_variables_where_the_project_says_so(checkout: CliRunner) -> None:
    shown = IN_ORDER[PROJECT] | {"ci_pipeline_variables_minimum_override_role": "no_one_allowed"}
    _, lines = examined(checkout, {**IN_ORDER, PROJECT: shown}, "--verbose")
    assert "ok pipeline variables nobody may set them" in lines


def test_what_the_token_may_not_see_is_unknown_and_a_job_knows_its_own_variables(
    checkout: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {path: content if path in (*list(IN_ORDER)[:3], PROJECT) else 403 for path, content in IN_ORDER.items()}
    hidden[PROJECT] = {"id": 9}
    code, lines = examined(checkout, hidden)
    assert code == 0
    assert {line.split()[0] for line in lines[:-1]} == {"unknown"}
    for name, value in {"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/settings"}.items():
        monkeypatch.setenv(name, value)
    code, lines = examined(checkout, hidden, "--verbose")
    assert "ok RECONCILER_TOKEN set" in lines
    checkout.write(".gitlab-ci.yml", "include: []\n")
    code, lines = examined(checkout, hidden)
    assert lines[-2].startswith("unknown component no .gitlab-ci.yml here names a component of this service")
    monkeypatch.setenv("CI_PROJECT_PATH", "acme/nowhere")
    code, lines = examined(checkout, IN_ORDER)
    assert (code, lines[0].partition(":")[0]) == (3, "error project acme/nowhere")


def test_a_reading_token_that_is_refused_is_an_error(checkout: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_READ_TOKEN", "expired")

    def act(request: str) -> bytes:
        path = re.sub(r"\?.*", "", request.split(" ")[1].removeprefix("/api/v4/"))
        refused = "expired" in request or path not in IN_ORDER
        return answer("401 No", "{}") if refused else answer("200 OK", json.dumps(IN_ORDER[path]))

    with answering(act) as api_url:
        done = checkout("doctor --pipeline --api-url", api_url)
    assert done.code == 3
    assert "the service refuses it; renew it" in done.out


def test_without_a_project_there_is_nothing_to_check(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cli_runner("doctor --pipeline")
    assert (done.code, done.out) == (1, "")
    assert "--pipeline: no project: run this in the checkout of the manifests" in done.err
    monkeypatch.setenv("CI_PROJECT_PATH", "acme/settings")
    monkeypatch.setenv("RECONCILER_TOKEN", "refused")
    assert not Path(".gitlab-ci.yml").exists()
    assert cli_runner("doctor --pipeline").code == 1
