"""A state for rehearsals loads in the sandbox, leads to the same plan there, and holds no secret."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.edit.export import run_export
from reconciler.edit.targets import ExportRequest
from reconciler.model.targets import Level
from reconciler.sandbox import Sandbox, generate, running
from tests.building import KINDS
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.export.exporting import client_of, planned
from tests.service.connecting import connected
from tests.states import a_small_service


def rehearsal(cli_runner: CliRunner, line: str) -> dict[str, Any]:
    """Export with a state, and return the state."""
    done = cli_runner(f"export {line} -o out --state state.json")
    assert done.code == 0
    read: dict[str, Any] = json.loads(Path("state.json").read_text())
    return read


def test_the_state_holds_what_was_read_and_what_stands_around_it(cli_runner: CliRunner) -> None:
    cli_runner.service(
        milestones=[{"id": 7, "title": "1.0", "due_date": "2026-12-31"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 999], "group_allowlist": [11, 998]},
        trigger_tokens=[{"id": 3, "description": "mine", "owner": "ada"}, {"id": 4, "description": "", "owner": "ada"}],
    )
    asked = "--project acme/api --section milestones --section job_token_scope --section trigger_tokens"
    around = {"members": [{"user": "ada", "role": "owner"}]}
    assert rehearsal(cli_runner, asked) == {
        "instance": {"dialect": "deployed", "enforce_job_token_allowlist": False},
        "users": [{"username": "ada", "tokens": ["rehearsal"], "emails": ["ada@example.com"]}],
        "groups": [
            {"path": "acme", **around},
            {"path": "acme/tools", "id": 11, **around},
            {"path": "unlisted", **around},
            {"path": "unlisted-998", "id": 998, **around},
        ],
        "projects": [
            {
                "path": "acme/api",
                "id": 100,
                **around,
                "job_token_scope": {
                    "inbound_enabled": True,
                    "project_allowlist": [101, 999],
                    "group_allowlist": [11, 998],
                },
                "milestones": [
                    {
                        "id": 7,
                        "title": "1.0",
                        "description": None,
                        "start_date": None,
                        "due_date": "2026-12-31",
                        "state": "active",
                        "created_at": "2026-01-01T00:00:00+00:00",
                    }
                ],
                "trigger_tokens": [
                    {"id": 3, "description": "mine", "owner": "ada", "created_at": "2026-01-01T00:00:00+00:00"}
                ],
            },
            {"path": "acme/lib", "id": 101, **around},
            {"path": "unlisted/project-999", "id": 999, **around},
        ],
    }


@pytest.mark.untraced
@pytest.mark.parametrize("own_in_list", [False, True], ids=["nobody is on their own list", "one is on its own"])
def test_the_dialect_is_told_by_whether_every_project_is_on_its_own_list(
    cli_runner: CliRunner, dialect: str, own_in_list: bool
) -> None:
    state = a_small_service(dialect)
    state["projects"][0]["job_token_scope"] = {"project_allowlist": [100] if own_in_list else []}
    cli_runner.sandbox.replace_state(state)
    assert rehearsal(cli_runner, "--group acme --section job_token_scope")["instance"]["dialect"] == dialect


def test_where_there_is_no_list_to_tell_it_by_it_is_the_one_in_production(cli_runner: CliRunner) -> None:
    cli_runner.service()
    assert rehearsal(cli_runner, "--user")["instance"]["dialect"] == "deployed"


def test_an_owner_s_own_projects_stand_in_no_group(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["projects"].append({"id": 104, "path": "ada/own"})
    cli_runner.sandbox.replace_state(state)
    made = rehearsal(cli_runner, "--project ada/own --section milestones")
    assert (made["groups"], [project["path"] for project in made["projects"]]) == ([], ["ada/own"])


@pytest.mark.untraced
def test_a_rehearsal_plans_and_applies_as_the_service_would(sandbox: Sandbox, dialect: str, tmp_path: Path) -> None:
    state = a_small_service(dialect)
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    state["projects"][0] |= {
        "milestones": [{"title": "x"}],
        "trigger_tokens": [{"description": "t", "owner": "bob"}],
        "notification_settings": {"ada": {"level": "custom", "events": {"new_issue": True}}},
        "container_registry_enabled": True,
    }
    folder, file = tmp_path / "manifests", tmp_path / "state.json"
    with client_of(sandbox, state) as client:
        run_export(ExportRequest(groups=("acme",), pathless=(Level.USER,)), client, KINDS, folder=folder, state=file)
        there = planned(client, folder)
    with client_of(sandbox, json.loads(file.read_text()), "rehearsal") as client:
        assert planned(client, folder) == there == ([], [])
        (folder / "acme/api.yaml").write_text((folder / "acme/api.yaml").read_text().replace("    x:\n", "    y:\n"))
        changes, problems = planned(client, folder)
    assert ([str(change.address.name) for change in changes], problems) == (["y"], [])


@pytest.mark.untraced
def test_a_copy_of_a_fleet_with_every_section_is_in_order_as_the_fleet_is(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = generate(40, 3)
    fleet["instance"]["dialect"] = "deployed"
    for section in KINDS.keys() & fleet["projects"][0].keys():
        assert any(project[section] for project in fleet["projects"]), section
    cli_runner.sandbox.replace_state(fleet)
    done = cli_runner("export --group acme --user -o manifests --state copies/state.json")
    assert done.code == 0
    in_order = "No changes: 39 targets are in order, 20 unmanaged"
    there = cli_runner("plan")
    assert (there.code, in_order in there.out) == (0, True), there.out
    with running(Path("copies/state.json")) as copy:
        monkeypatch.setenv("RECONCILER_API_URL", copy.api_url)
        monkeypatch.setenv("RECONCILER_TOKEN", "rehearsal")
        here = cli_runner("plan")
        assert (here.code, in_order in here.out) == (0, True)


def test_a_copy_has_whom_the_rules_name(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry for somebody who is no member, for a group that is not invited, or for a key that is not enabled goes."""
    entries = [{"user": "bob"}, {"group_id": 11}, {"deploy_key_id": 7}, {"access_level": 40}]
    cli_runner.service(
        members=[{"user": "bob", "role": "developer"}],
        invited_groups=[{"group_id": 11, "role": "developer"}],
        enabled_deploy_keys=[{"id": 7, "title": "release", "can_push": True}],
        protected_branches=[{"id": 4, "name": "main", "push_access_levels": entries}],
        protected_tags=[{"name": "v*", "create_access_levels": entries}],
        approval_rules=[{"name": "Security", "users": ["bob"], "group_ids": [10, 11], "protected_branch_ids": [4]}],
    )
    sections = "--section protected_branches --section protected_tags --section approval_rules"
    state = rehearsal(cli_runner, f"--project acme/api {sections}")
    assert [group["path"] for group in state["groups"]] == ["acme", "acme/tools"]
    there = cli_runner("plan out")
    assert ("No changes: 1 target is in order. " in there.out, there.code) == (True, 0)
    cli_runner.sandbox.replace_state(state)
    monkeypatch.setenv("RECONCILER_TOKEN", "rehearsal")
    assert cli_runner("plan out") == there


@pytest.mark.untraced
def test_a_rehearsal_rotates_the_tokens_that_the_service_would_rotate_and_once_only(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ago = {days: (datetime.now(UTC) - timedelta(days)).isoformat() for days in (10, 100)}
    cli_runner.service(
        trigger_tokens=[
            {"id": number, "description": f"{days} days", "owner": "ada", "created_at": created}
            for number, (days, created) in enumerate(ago.items(), start=1)
        ]
    )
    cli_runner.project("{trigger_tokens: {10 days: {rotate_after: 90d}, 100 days: {rotate_after: 90d}}}")
    there = cli_runner("plan manifests")
    cli_runner.sandbox.replace_state(rehearsal(cli_runner, "--project acme/api --section trigger_tokens"))
    monkeypatch.setenv("RECONCILER_TOKEN", "rehearsal")
    assert cli_runner("plan manifests") == there
    cli_runner.sandbox.clear_log()
    codes = [cli_runner("apply manifests --yes --tokens-to tokens").code for _ in range(3)]
    created = [entry["body"] for entry in cli_runner.sandbox.log() if entry["method"] == "POST"]
    assert (codes, created) == ([0, 0, 0], [{"description": "100 days"}])


def test_one_that_goes_by_its_number_gets_a_path_that_is_made_up(sandbox: Sandbox, tmp_path: Path) -> None:
    state = a_small_service("deployed")
    state["projects"].append({"id": 777, "path": "acme/odd path"})
    state["groups"].append({"id": 88, "path": "odd group", "members": [{"user": "ada", "role": "owner"}]})
    file = tmp_path / "state.json"
    with client_of(sandbox, state) as client:
        asked = ExportRequest(groups=("88",), projects=("777",), sections=("milestones", "approval_settings"))
        run_export(asked, client, KINDS, folder=tmp_path / "manifests", state=file)
    made = json.loads(file.read_text())
    assert [(group["path"], group.get("id")) for group in made["groups"]] == [("unlisted", None), ("unlisted-88", 88)]
    assert [(project["path"], project["id"]) for project in made["projects"]] == [("unlisted/project-777", 777)]
    with client_of(sandbox, made, "rehearsal") as client:
        assert planned(client, tmp_path / "manifests") == ([], [])


def test_a_service_that_does_not_say_who_asks_ends_the_export_before_anything_is_written(tmp_path: Path) -> None:
    project = answer("200 OK", '{"id": 100, "path_with_namespace": "acme/api"}')
    with canned(project, answer("200 OK", "[]"), answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        asked = ExportRequest(projects=("acme/api",), sections=("milestones",))
        with pytest.raises(Exception, match="GET user: unexpected response"):
            run_export(asked, client, KINDS, folder=tmp_path / "out", state=tmp_path / "state.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file/state.json", "folder"])
def test_what_cannot_be_written_is_told(cli_runner: CliRunner, place: str) -> None:
    cli_runner.service()
    cli_runner.write("file", "")
    cli_runner.write("folder/x", "")
    done = cli_runner(f"export --user -o out --state {place}")
    assert done.code in (1, 64)
    assert place in done.err
