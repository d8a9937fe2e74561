"""The life of a project's client keys for error tracking, of which only the number can be declared."""

import json
from typing import Any

import pytest

from reconciler.errors import NotFound
from tests.building import section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import project_in, rewriting

URL = "projects/100/error_tracking/client_keys"


def wanted(count: int, *, prune: bool = False) -> Any:
    return section("error_tracking_client_keys", {"count": count}, prune=prune)


def kept(engine: EngineDriver) -> list[int]:
    """The IDs of the project's keys."""
    return [each["id"] for each in project_in(engine.sandbox.state()).get("error_tracking_client_keys", [])]


@pytest.mark.untraced
def test_the_life_of_client_keys(engine: EngineDriver) -> None:
    assert engine.step(wanted(2)) == [f"POST {URL} {{}}"] * 2
    assert kept(engine) == [1, 2]
    assert list(engine.tokens) == ["1", "2"]
    assert engine.step(wanted(1)) == []
    assert engine.step(wanted(3)) == [f"POST {URL} {{}}"]
    assert engine.step(wanted(1, prune=True)) == [f"DELETE {URL}/1", f"DELETE {URL}/2"]
    assert kept(engine) == [3]
    assert engine.step(section("error_tracking_client_keys", {})) == []
    assert engine.step(wanted(0, prune=True)) == [f"DELETE {URL}/3"]


@pytest.mark.untraced
def test_a_saved_plan_of_client_keys_is_carried_out_as_it_shows(engine: EngineDriver) -> None:
    def saved(count: int) -> list[str]:
        plan = engine.plan(wanted(count, prune=True))
        assert failures(engine.apply(plan, recheck=True)) == []
        return engine.writes()

    assert saved(2) == [f"POST {URL} {{}}"] * 2
    assert saved(3) == [f"POST {URL} {{}}"]
    assert saved(1) == [f"DELETE {URL}/1", f"DELETE {URL}/2"]


def test_the_address_of_a_new_key_is_delivered_and_appears_nowhere_else(engine: EngineDriver) -> None:
    plan = engine.plan(wanted(1))
    outcomes = engine.apply(plan)
    address = engine.tokens["1"]
    assert address.startswith("https://glet_")
    assert address.endswith("/errortracking/api/v1/projects/100")
    seen = repr((plan, outcomes, engine.plan(wanted(0, prune=True)), engine.sandbox.log()))
    assert address not in seen
    assert address[8:45] not in seen


def test_the_newest_keys_stay(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        project_in(state)["error_tracking_client_keys"] = [{"id": 9}, {"id": 4}, {"id": 7, "active": False}]
    assert engine.changes(wanted(2, prune=True)) == ["- error tracking client key 1"]
    assert engine.step(wanted(2, prune=True)) == [f"DELETE {URL}/4"]


@pytest.mark.untraced
def test_an_export_declares_how_many_there_are(cli_runner: CliRunner) -> None:
    def exported(*keys: int) -> str:
        cli_runner.service(error_tracking_client_keys=[{"id": number} for number in keys])
        assert cli_runner("export --project acme/api --section error_tracking_client_keys -o out").code == 0
        return (cli_runner.folder / "out/acme/api.yaml").read_text().partition("spec:")[2]

    assert exported() == " {}\n"
    assert exported(4, 7) == "\n  error_tracking_client_keys:\n    count: 2\n"
    assert cli_runner("export --project acme/api -o again --state state.json").code == 0
    state = json.loads((cli_runner.folder / "state.json").read_text())
    assert project_in(state)["error_tracking_client_keys"] == [{"id": 4}, {"id": 7}]
    assert exported(7) == "\n  error_tracking_client_keys:\n    count: 1\n"
    assert exported() == "\n  error_tracking_client_keys:\n    count: 0\n"


def test_a_project_that_is_known_by_path_alone_is_asked_for_its_number_once(engine: EngineDriver) -> None:
    plan = engine.plan(wanted(1))
    assert engine.requests() == ["GET projects/acme%2Fapi", f"GET {URL}?per_page=100&page=1"]
    engine.apply(plan)
    listed = f"GET {URL}?per_page=100&page=1"
    assert engine.requests() == [listed, f"POST {URL} {{}}", listed]
    # A saved plan is no credential: it vouches for no number.
    engine.apply(engine.plan(wanted(2)), recheck=True)
    assert engine.requests() == ["GET projects/acme%2Fapi", listed, f"POST {URL} {{}}", listed]


@pytest.mark.untraced
def test_a_project_in_a_list_is_not_asked_for_its_number(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {error_tracking_client_keys: {count: 1}}\n",
    )
    assert cli_runner("plan").code == 0
    asked = {entry["target"].partition("?")[0] for entry in cli_runner.sandbox.log()}
    listed = {project["id"] for project in cli_runner.sandbox.state()["projects"]}
    keys = {f"/api/v4/projects/{number}/error_tracking/client_keys" for number in listed}
    assert asked == {"/api/v4/groups/acme/projects", *keys}
    cli_runner.sandbox.clear_log()
    assert cli_runner("export --group acme --section error_tracking_client_keys -o out").code == 0
    asked = {entry["target"].partition("?")[0] for entry in cli_runner.sandbox.log()}
    assert asked >= keys
    assert not {target for target in asked if "acme%2F" in target and "keys" in target}


def test_a_created_project_gets_its_keys_by_number(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.write(
        "manifests/new.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/fresh}\ncreate: {}\n"
        "spec: {error_tracking_client_keys: {count: 1}}\n",
    )
    assert cli_runner("apply --yes --tokens-to tokens.jsonl").code == 0
    asked = [entry["target"].partition("?")[0] for entry in cli_runner.sandbox.log() if "keys" in entry["target"]]
    (number,) = [each["id"] for each in cli_runner.sandbox.state()["projects"] if each["path"] == "acme/fresh"]
    assert set(asked) == {f"/api/v4/projects/{number}/error_tracking/client_keys"}


def test_the_specification_knows_the_project_by_number_only(engine: EngineDriver, dialect: str) -> None:
    path = "projects/acme%2Fapi/error_tracking/client_keys"
    if dialect == "deployed":
        assert engine.client.get(path) == []
        return
    with pytest.raises(NotFound):
        engine.client.get(path)
