"""What `init` writes watches protection: a fleet of twelve, in which people change one thing after another by hand."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.cli_runner import CliRunner
from tests.export.exporting import contents

PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"
LEVELS = [{"access_level": 40}]

BY_HAND: dict[str, dict[str, Any]] = {
    "approval_rules/0": {"approvals_required": 0, "applies_to_all_protected_branches": True},
    "approval_rules/1": {
        "approvals_required": 1,
        "users": ["ada"],
        "group_ids": [],
        "protected_branch_ids": [],
    },
    "container_repository_protection_rules/0": {PUSH: "admin", DELETE: "owner"},
    "container_tag_protection_rules/0": {PUSH: "owner", DELETE: "admin"},
    "package_protection_rules/0": {PUSH: "admin", DELETE: "owner"},
    "protected_branches/0": {
        "push_access_levels": [{"access_level": 30}],
        "merge_access_levels": [{"access_level": 60}],
        "unprotect_access_levels": [{"access_level": 60}],
        "allow_force_push": True,
        "code_owner_approval_required": True,
    },
    "protected_branches/1": {"push_access_levels": [], "unprotect_access_levels": [{"user": "ada"}]},
    "protected_tags/0": {"create_access_levels": [{"access_level": 30}]},
}
"""By section and place in it, what somebody makes of a rule, one field after another."""


EMPTY = (
    "is left out: the repository is empty: its first push decides what is protected; then declare it, or let "
    "unmanaged go"
)


IN_ORDER = " targets are in order. "
SECTIONS = ("protected_branches", "protected_tags")


def project(number: int, **others: Any) -> dict[str, Any]:
    """Return a project with a rule of every kind; most have the fields that the service puts there by itself."""
    path = f"acme/p{number}"
    return {
        "id": 100 + number,
        "path": path,
        "members": [{"user": "bob", "role": "developer"}],
        "protected_branches": [
            {"id": 100 + number, "name": "main", "push_access_levels": LEVELS, "merge_access_levels": LEVELS},
            {"id": 200 + number, "name": "release/*", "push_access_levels": LEVELS, "merge_access_levels": LEVELS},
        ],
        "protected_tags": [{"name": "v*", "create_access_levels": LEVELS}],
        "container_repository_protection_rules": [{"repository_path_pattern": f"{path}/prod*", PUSH: "owner"}],
        "container_tag_protection_rules": [{"tag_name_pattern": "^v", PUSH: "maintainer", DELETE: "maintainer"}],
        "package_protection_rules": [{"package_type": "npm", "package_name_pattern": "@acme/*", PUSH: "owner"}],
        "approval_rules": [
            {"name": "All Members", "rule_type": "any_approver", "approvals_required": 1},
            {
                "name": "Security",
                "approvals_required": 0,
                "users": ["bob"],
                "group_ids": [10],
                "protected_branch_ids": [100 + number],
            },
        ],
        "merge_request_approval_settings": {"allow_author_approval": False},
        "job_token_scope": {"inbound_enabled": True, "project_allowlist": [], "group_allowlist": []},
        "milestones": [{"title": "2027.1", "due_date": "2027-01-29"}],
        "trigger_tokens": [{"description": "nightly", "owner": "ada"}],
        "error_tracking_client_keys": [{}],
        **others,
    }


def fleet() -> dict[str, Any]:
    """Return the state of a service with twelve projects, of which two deviate."""
    odd = project(10, protected_tags=[], milestones=[])
    rules = project(11)["approval_rules"]
    return {
        "instance": {"dialect": "deployed", "packages_protected_packages_delete": True},
        "users": [
            {"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com"]},
            {"id": 3, "username": "bob"},
        ],
        "groups": [
            {
                "id": 10,
                "path": "acme",
                "members": [{"user": "ada", "role": "owner"}],
                "protected_branches": [{"name": "hotfix/*", "push_access_levels": LEVELS}],
                "epics": [{"title": "2027"}],
            }
        ],
        "projects": [
            *map(project, range(10)),
            odd,
            project(11, approval_rules=[{**rules[0], "approvals_required": 2}]),
        ],
    }


@pytest.fixture
def initialized(cli_runner: CliRunner) -> dict[str, Any]:
    """The state of the fleet, whose manifests `init` has just written."""
    state = fleet()
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("init --group acme").code == 0
    Path("reconciler.yaml").unlink()
    return state


@pytest.mark.untraced
def test_every_field_of_every_rule_is_watched(cli_runner: CliRunner, initialized: dict[str, Any]) -> None:
    plan = cli_runner("plan")
    assert (plan.code, IN_ORDER in plan.out) == (0, True)
    assert "warning" not in cli_runner("validate").out
    seen = {}
    for place, fields in BY_HAND.items():
        section, _, number = place.partition("/")
        for field, value in fields.items():
            state = deepcopy(initialized)
            rule = state["projects"][3][section][int(number)]
            assert rule.get(field) != value
            rule[field] = value
            if field == "applies_to_all_protected_branches":
                rule["protected_branch_ids"] = []
            cli_runner.sandbox.replace_state(state)
            drift = cli_runner(f"drift --target acme/p3 --section {section}")
            shown = [line for line in drift.changes.splitlines() if line.startswith("  ~ ")]
            seen[f"{place}.{field}"] = (drift.code, len(shown))
    assert seen == dict.fromkeys(seen, (2, 1))


@pytest.mark.untraced
def test_a_rule_that_is_deleted_and_a_project_that_comes_get_what_the_profile_says(
    cli_runner: CliRunner, initialized: dict[str, Any]
) -> None:
    """A creation needs more than what differs from the service's defaults."""
    deleted = deepcopy(initialized)
    for section in {place.partition("/")[0] for place in BY_HAND}:
        deleted["projects"][5][section] = []
    new = {"id": 150, "path": "acme/new", "members": [{"user": "bob", "role": "developer"}]}
    deleted["projects"].append(new)
    cli_runner.sandbox.replace_state(deleted)
    done = cli_runner("apply --yes --tokens-to tokens.jsonl")
    assert (done.code, "problem" in done.out) == (0, False)
    rules = ("approval_rules", "container_tag_protection_rules", "package_protection_rules", "protected_tags")
    live = {each["path"]: each for each in cli_runner.sandbox.state()["projects"]}
    assert {name: [len(live[path][name]) for path in ("acme/p5", "acme/new")] for name in rules} == {
        **{name: [1, 1] for name in rules},
        "approval_rules": [2, 2],
    }
    again = cli_runner("plan")
    assert (again.code, IN_ORDER in again.out) == (0, True)


def test_a_rule_whose_fields_no_two_projects_share_is_in_no_profile(cli_runner: CliRunner) -> None:
    """A project that comes later could not have it."""
    state = fleet()
    for number, each in enumerate(state["projects"][:11]):
        each["approval_rules"][0]["approvals_required"] = number + 3
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("init --group acme").code == 0
    files = contents(Path("manifests"))
    assert "any_approver" not in files["acme.profile.yaml"]
    assert "any_approver: {approvals_required: 7, branches: any}" in files["acme/p4.yaml"]


@pytest.mark.untraced
def test_what_the_first_push_decides_is_not_declared_of_an_empty_repository(cli_runner: CliRunner) -> None:
    """The project of the manifests themselves is one: the plan of its first pipeline must not unprotect its branch."""
    cli_runner.sandbox.replace_state(fleet())
    with Client(cli_runner.sandbox.api_url, "ada-token") as ada:
        ada.send(Request("POST", "projects", {"name": "settings", "namespace_id": 10}))
        assert cli_runner("init --group acme").code == 0
        Path("reconciler.yaml").unlink()
        told = [line for line in Path("init-left-out.md").read_text().splitlines() if line.startswith("    ")]
        assert told == [f"    {section} of project acme/settings {EMPTY}" for section in SECTIONS]
        own = Path("manifests/acme/settings.yaml").read_text()
        assert "\n  unmanaged: [protected_branches, protected_tags]\n" in own
        assert "  protected_" not in own
        assert IN_ORDER in cli_runner("plan").out
        commit = {"branch": "trunk", "commit_message": "Settings", "actions": [{"action": "create", "file_path": "a"}]}
        ada.send(Request("POST", "projects/acme%2Fsettings/repository/commits", commit))
    assert IN_ORDER in cli_runner("plan").out
    (rule,) = cli_runner.sandbox.state()["projects"][-1]["protected_branches"]
    assert rule["name"] == "trunk"
    before = contents(Path("manifests"))
    assert cli_runner("export --group acme --as-set -o manifests").out == ""
    assert contents(Path("manifests")) == before


def test_an_empty_repository_in_which_somebody_has_protected_something_is_declared(cli_runner: CliRunner) -> None:
    cli_runner.service(empty_repo=True, protected_tags=[{"name": "v*", "create_access_levels": LEVELS}])
    done = cli_runner("export --project acme/api -o out --section protected_tags --section protected_branches")
    assert (done.code, done.err.splitlines()[:-1]) == (0, [f"protected_branches of project acme/api {EMPTY}"])
    assert (
        Path("out/acme/api.yaml")
        .read_text()
        .endswith("spec:\n  protected_tags:\n    v*:\n      allowed_to_create:\n        - maintainer\n")
    )
