"""`accept` on a service: what it writes, what it prints, and how it ends."""

from typing import Any

import pytest

from tests.cli_runner import CliRunner

SEVEN = ("api", "lib", "web", "cli", "docs", "ops", "sdk")

FLEET = """apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  approval_settings:
    allow_author_approval: true
---
apiVersion: reconciler/v1
kind: Profile
metadata: {name: baseline}
spec:
  approval_settings:
    allow_author_approval: false  # the auditors want this
    retain_approvals_on_push: true
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata:
  name: services
  profiles: [baseline]
select:
  group: acme
  include: ["acme/*"]
spec:
  milestones:
    "2026.12":
      due_date: 2026-12-31
"""


@pytest.fixture
def seven(cli_runner: CliRunner) -> CliRunner:
    """A group of seven projects that agree with the manifests."""
    assert FLEET.count("\n") == 27
    cli_runner.write("manifests/fleet.yaml", FLEET)
    with_allow(cli_runner, {})
    assert cli_runner("apply --yes").code == 0
    return cli_runner


def with_allow(cli_runner: CliRunner, values: dict[str, bool]) -> None:
    """Give each project its milestone, and settings that some of them have otherwise."""
    state: dict[str, Any] = {
        "instance": {"enforce_job_token_allowlist": False, "dialect": "deployed"},
        "users": [{"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com"]}],
        "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
        "projects": [
            {
                "id": 100 + number,
                "path": f"acme/{name}",
                "merge_request_approval_settings": {
                    "allow_author_approval": values.get(name, False),
                    "retain_approvals_on_push": True,
                },
                "milestones": [{"id": 1000 + number, "title": "2026.12", "due_date": "2026-12-31"}],
            }
            for number, name in enumerate(SEVEN)
        ],
    }
    cli_runner.sandbox.replace_state(state)


def test_one_boolean_of_one_project_becomes_a_document_of_six_lines(seven: CliRunner) -> None:
    with_allow(seven, {"api": True})
    ended = seven("accept")
    assert (ended.code, ended.out) == (0, "manifests/acme/api.yaml\n")
    assert (seven.folder / "manifests/fleet.yaml").read_text() == FLEET
    assert (seven.folder / "manifests/acme/api.yaml").read_text() == (
        "apiVersion: reconciler/v1\n"
        "kind: Project\n"
        "metadata: {path: acme/api}\n"
        "spec:\n"
        "  approval_settings:\n"
        "    allow_author_approval: true\n"
    )
    assert seven("plan --detailed-exitcode").code == 0


def test_the_same_boolean_of_all_seven_is_one_line_of_the_profile(seven: CliRunner) -> None:
    with_allow(seven, dict.fromkeys(SEVEN, True))
    assert seven("accept --diff").out == (
        "--- a/manifests/fleet.yaml\n"
        "+++ b/manifests/fleet.yaml\n"
        "@@ -10,7 +10,7 @@\n"
        " metadata: {name: baseline}\n"
        " spec:\n"
        "   approval_settings:\n"
        "-    allow_author_approval: false  # the auditors want this\n"
        "+    allow_author_approval: true  # the auditors want this\n"
        "     retain_approvals_on_push: true\n"
        " ---\n"
        " apiVersion: reconciler/v1\n"
    )
    assert (seven.folder / "manifests/fleet.yaml").read_text() == FLEET
    assert seven("accept --diff --detailed-exitcode").code == 2
    assert seven("accept").out == "manifests/fleet.yaml\n"
    assert seven("plan --detailed-exitcode").code == 0
    assert seven("accept --diff --detailed-exitcode").code == 0
