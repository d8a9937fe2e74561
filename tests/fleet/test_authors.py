"""`drift --who`: the audit of the service says who made a difference; where it says nothing, nothing is said."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.kinds.approval_settings import trace as settings_of
from reconciler.model.audit import AuditEvent, Traced, read_event
from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.items import changes_of, note_of

NOON = datetime.now(UTC).replace(hour=12, minute=2, second=0, microsecond=0) - timedelta(days=2)
WHEN = f"{NOON:%Y-%m-%d %H:%M} UTC"

MANIFESTS = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  prune: [job_token_scope]
  approval_settings: {retain_approvals_on_push: true, allow_committer_approval: false}
  job_token_scope: {projects: [acme/lib], groups: []}
  milestones: {v1: {}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lib}
spec: {approval_settings: {retain_approvals_on_push: true}, milestones: {v1: {}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/web}
spec: {approval_settings: {retain_approvals_on_push: true}}
"""


def fleet(cli_runner: CliRunner, role: str = "maintainer", **instance: Any) -> None:
    """A group with three projects that agree with the manifests but for a milestone of each."""
    kept = {"retain_approvals_on_push": True, "allow_committer_approval": False}
    projects = [
        {"id": 100 + number, "path": f"acme/{name}", "merge_request_approval_settings": kept, "milestones": []}
        for number, name in enumerate(("api", "lib", "web"))
    ]
    projects[0]["job_token_scope"] = {"project_allowlist": [101]}
    users = [{"id": 2, "username": "ada"}, {"id": 3, "username": "mona", "name": "Mona Lee"}]
    cli_runner.sandbox.replace_state(
        {
            "instance": {
                "enforce_job_token_allowlist": False,
                "dialect": "deployed",
                "now": NOON.isoformat(),
                **instance,
            },
            "users": [{**user, "tokens": [f"{user['username']}-token"], "emails": []} for user in users],
            "groups": [
                {
                    "id": 10,
                    "path": "acme",
                    "members": [{"user": "ada", "role": role}, {"user": "mona", "role": "owner"}],
                    "merge_request_approval_settings": {
                        "allow_author_approval": False,
                        "allow_committer_approval": True,
                        "retain_approvals_on_push": True,
                    },
                }
            ],
            "projects": projects,
        }
    )
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    cli_runner.sandbox.clear_log()


def as_mona(cli_runner: CliRunner, *requests: tuple[Any, str, Any]) -> None:
    """Let another user write."""
    with Client(cli_runner.sandbox.api_url, "mona-token") as client:
        for method, path, body in requests:
            client.send(Request(method, path, body))
    cli_runner.sandbox.clear_log()


def audits(cli_runner: CliRunner) -> list[str]:
    """Return the requests for audit events, without the moment."""
    targets = (entry["target"].removeprefix("/api/v4/") for entry in cli_runner.sandbox.log())
    return sorted(target.partition("&")[0] for target in targets if "audit_events" in target)


SETTINGS = "projects/100/merge_request_approval_setting"
LIST = "projects/100/job_token_scope"
WRITES = (
    ("PUT", SETTINGS, {"retain_approvals_on_push": False}),
    ("PUT", SETTINGS, {"retain_approvals_on_push": True}),
    ("PUT", SETTINGS, {"retain_approvals_on_push": False, "allow_committer_approval": True}),
    ("DELETE", f"{LIST}/allowlist/101", None),
    ("POST", f"{LIST}/allowlist", {"target_project_id": 102}),
    ("POST", f"{LIST}/groups_allowlist", {"target_group_id": 10}),
    ("PUT", "groups/10/merge_request_approval_setting", {"allow_author_approval": True}),
)


def test_each_difference_that_an_event_explains_says_who_and_when(cli_runner: CliRunner) -> None:
    fleet(cli_runner, "owner")
    as_mona(cli_runner, *WRITES)
    done = cli_runner("drift --who --report json=drift.json --report markdown=note.md --report html=page.html")
    assert (done.code, done.err) == (2, "")
    assert audits(cli_runner) == [
        f"{target}/audit_events?per_page=100" for target in ("groups/acme", "projects/acme%2Fapi")
    ]
    by = f"by Mona Lee, {WHEN}"
    assert [line.split("     manifests")[0] for line in done.out.splitlines()[:-1]] == [
        "Loosened on the service:",
        "group acme",
        f"  ~ approval settings                         allow_author_approval: true -> false, loosened on the service {by}",
        "project acme/api",
        "  ~ approval settings                         allow_committer_approval: true -> false, "
        f"retain_approvals_on_push: false -> true, loosened and tightened on the service {by}",
        f'  - allowlisted project "acme/web"            loosened on the service {by}',
        f'  - allowlisted group "acme"                  loosened on the service {by}',
        "All else:",
        "project acme/api",
        f'  + allowlisted project "acme/lib"            tightened on the service {by}',
        '  + milestone "v1"',
        "project acme/lib",
        '  + milestone "v1"',
    ]
    told = json.loads(Path("drift.json").read_text())
    assert [note_of(change, "changed_by").get("name") for change in changes_of(told)] == [
        "Mona Lee", "Mona Lee", "Mona Lee", "Mona Lee", "Mona Lee", None, None
    ]  # fmt: skip
    assert Path("note.md").read_text().count(f"on the service {by}\n") == 5
    page = Path("page.html").read_text()
    assert page.count(by) == 5
    assert re.findall(r'class="number">(\d+)</span> .*?</span> ([^<]+)<', page) == [
        ("4", "Loosened on the service"),
        ("0", "Other deletions"),
        ("3", "Other creations"),
        ("0", "Other updates"),
    ]

    # the issue reads the report, and nothing is asked without the option
    cli_runner.sandbox.clear_log()
    assert f"on the service {by}" in cli_runner("show drift.json --format markdown").out
    assert cli_runner("drift").code == 2
    assert audits(cli_runner) == []


@pytest.mark.untraced
def test_whoever_changes_a_setting_back_and_whatever_is_older_explains_nothing(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    as_mona(cli_runner, *WRITES)
    cli_runner.write("manifests/all.yaml", MANIFESTS.replace("committer_approval: false", "author_approval: true"))
    settings = next(line for line in cli_runner("drift --who").out.splitlines() if "author_approval" in line)
    assert "by Mona" in settings  # of the other field, which she changed
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        client.send(Request("PUT", SETTINGS, {"retain_approvals_on_push": True}))
    settings = next(line for line in cli_runner("drift --who").out.splitlines() if "author_approval" in line)
    assert "by " not in settings

    old = (NOON - timedelta(days=40)).isoformat()
    fleet(cli_runner, now=old)
    as_mona(cli_runner, *WRITES)
    assert "by Mona" not in cli_runner("drift --who").out


@pytest.mark.untraced
@pytest.mark.parametrize(("role", "licensed"), [("maintainer", False), ("developer", True)])
def test_without_a_licence_one_line_says_so_and_the_exit_code_stays(
    cli_runner: CliRunner, role: str, licensed: bool
) -> None:
    fleet(cli_runner, role, licensed=licensed)
    as_mona(cli_runner, ("POST", f"{LIST}/allowlist", {"target_project_id": 102}))
    done = cli_runner("drift --who --section job_token_scope")
    assert done.code == (2 if role == "maintainer" else 3)
    assert "by Mona" not in done.out
    told = [line for line in done.err.splitlines() if "who changed" in line]
    assert told == (
        [
            "who changed 1 target is not known: 403 Forbidden; audit events need a licence (Premium or Ultimate) and the "
            "role Maintainer in a project, Owner in a group"
        ]
        if role == "maintainer"
        else []
    )


def test_without_an_edition_or_an_inventory_that_can_be_read_all_else_is_as_ever(cli_runner: CliRunner) -> None:
    fleet(cli_runner, "owner", version="18.9.0")
    as_mona(cli_runner, ("POST", f"{LIST}/allowlist", {"target_project_id": 102}))
    git = ["git", "-C", str(cli_runner.folder)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "file:///nowhere/settings.git"], check=True)
    cli_runner.write("reconciler.yaml", "inventory: {remote: origin}\n")
    done = cli_runner("drift --who --section job_token_scope")
    assert done.code == 2
    assert '  - allowlisted project "acme/web"            tightens     manifests/all.yaml' in done.out
    assert "who changed 1 target is not known: 404 Not Found" in done.err


EVENT: dict[str, Any] = {
    "id": 1,
    "event_name": "group_merge_request_approval_setting_created",
    "created_at": "2026-11-23T14:00:42.612Z",
    "details": {
        "author_name": "Facts Owner",
        "target_id": 59,
        "custom_message": "Changed require user password for approvals to true",
    },
}


def test_an_event_that_is_not_as_expected_is_passed_over() -> None:
    event = read_event(EVENT)
    assert isinstance(event, AuditEvent)
    assert list(settings_of(event)) == [Traced("approval_settings", "require_reauthentication_to_approve", True)]
    odd: Any
    for odd in (
        [],
        {**EVENT, "created_at": "soon"},
        {**EVENT, "created_at": "2026-11-23T14:00:42"},
        {**EVENT, "details": {}},
    ):
        assert read_event(odd) is None
    details = {**EVENT["details"], "custom_message": "Changed the moon from false to true"}
    unknown = read_event({**EVENT, "details": details})
    assert unknown is not None
    assert list(settings_of(unknown)) == []


def test_who_deleted_a_rule_that_events_call_by_another_name_is_known_by_its_number(cli_runner: CliRunner) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).replace(second=0, microsecond=0)  # a minute until the next one
    fleet(cli_runner, "owner", now=later.isoformat())
    repository(cli_runner.folder)
    spec = "{approval_rules: {any_approver: {approvals_required: 1}}}"
    cli_runner.write(
        "manifests/all.yaml", f"{MANIFESTS.partition('---')[2].partition('spec:')[0].strip()}\nspec: {spec}\n"
    )
    assert cli_runner("apply --yes").code == 0
    path = json.loads(cli_runner("drift --format json").out)["targets"][0]["ref"]
    cli_runner.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {milestones: {a: {}}}\n",
    )
    assert cli_runner("apply --yes --target acme").code == 0
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        [rule] = client.pages("projects/100/approval_rules")
    as_mona(cli_runner, ("DELETE", f"projects/100/approval_rules/{rule['id']}", None))
    done = cli_runner("drift --who")
    assert (done.code, done.err) == (2, "")
    assert f"loosened on the service by Mona Lee, {later:%Y-%m-%d %H:%M} UTC" in done.out
    assert "Mona" not in cli_runner("drift --who --no-inventory").out
    assert "loosened on the service by Mona Lee, " in cli_runner(f"drift --who --target {path}").out
