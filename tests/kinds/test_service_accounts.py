"""The life of a service account of the instance."""

import json
from typing import Any

import pytest

from reconciler.engine.why import NOT_LICENSED
from reconciler.model.targets import Level, Target
from tests.building import section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import rewriting, speaking_with

INSTANCE = Target(Level.INSTANCE)
URL = "service_accounts"
ACCOUNTS = [
    {"id": 900, "username": "Mirror-Bot", "name": "Mirror bot", "email": "mirror@example.com"},
    {"id": 901, "username": "theirs", "name": "Of another team", "email": "theirs@example.com"},
]


def wanted(value: object) -> Any:
    return section("service_accounts", value, INSTANCE)


@pytest.fixture
def root(engine: EngineDriver) -> EngineDriver:
    """An administrator's engine, on a service with two accounts."""
    with rewriting(engine) as state:
        state["instance"]["service_accounts"] = [dict(account) for account in ACCOUNTS]
        next(user for user in state["users"] if user["username"] == "ada")["admin"] = True
    return engine


def test_the_life_of_a_service_account(root: EngineDriver) -> None:
    new = {"name": "Deploy bot", "email": "deploy@example.com"}
    assert root.step(wanted({"deploy-bot": new, "mirror-bot": {"name": "Mirror bot"}})) == [
        f'POST {URL} {{"username": "deploy-bot", "name": "Deploy bot", "email": "deploy@example.com"}}'
    ]
    assert root.step(wanted({"deploy-bot": {"name": "Deployer"}})) == [f'PATCH {URL}/902 {{"name": "Deployer"}}']
    assert root.step(wanted({"roll-out": {"renamed_from": "Deploy-Bot", "name": "Roll out"}})) == [
        f'PATCH {URL}/902 {{"name": "Roll out", "username": "roll-out"}}'
    ]
    assert root.step(wanted({"roll-out": None})) == ["DELETE users/902"]
    assert [account["username"] for account in root.sandbox.state()["instance"]["service_accounts"]] == [
        "Mirror-Bot",
        "theirs",
    ]


@pytest.mark.parametrize("dialect", ["deployed"], indirect=True)
def test_an_address_that_waits_for_its_confirmation_is_not_written_again(root: EngineDriver) -> None:
    with rewriting(root) as state:
        state["instance"]["service_accounts"][0]["unconfirmed_email"] = "new@example.com"
    assert root.changes(wanted({"Mirror-Bot": {"email": "new@example.com"}})) == []
    assert root.changes(wanted({"Mirror-Bot": {"email": "other@example.com"}})) == ["~ service account Mirror-Bot"]


@pytest.mark.parametrize("dialect", ["spec"], indirect=True)
def test_an_address_that_the_list_does_not_show_is_written_along_with_the_name(root: EngineDriver) -> None:
    assert root.changes(wanted({"theirs": {"email": "new@example.com"}})) == []
    assert root.step(wanted({"theirs": {"email": "new@example.com", "name": "Ours"}})) == [
        f'PATCH {URL}/901 {{"name": "Ours", "email": "new@example.com"}}'
    ]


def test_a_taken_username_is_told_with_who_has_it(root: EngineDriver) -> None:
    assert failures(root.apply(root.plan(wanted({"bob": {"email": "bob@example.com"}})))) == [
        "failed: service account bob: POST service_accounts: 400 Bad request - Email has already been taken and "
        "Username has already been taken; it belongs to a user who is no service account, such as a person, or to a group: "
        "choose another"
    ]


def test_only_administrators_see_them(engine: EngineDriver) -> None:
    assert engine.problems(wanted({})) == [f"service account.None: cannot be read: {NOT_LICENSED}"]
    with speaking_with(engine, "root-token"):
        assert engine.problems(wanted({})) == []


def test_an_export_of_the_instance_and_a_rehearsal_of_it(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    state = cli_runner.sandbox.state()
    state["instance"]["service_accounts"] = [dict(account) for account in ACCOUNTS]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("export --instance -o out --state state.json")
    assert (done.code, done.err) == (0, "1 target exported; 1 file written.\n")
    assert (cli_runner.folder / "out/instance.yaml").read_text() == (
        "apiVersion: reconciler/v1\nkind: Instance\nspec:\n  service_accounts:\n"
        '    Mirror-Bot:\n      name: Mirror bot\n      email: "mirror@example.com"\n'
        '    theirs:\n      name: Of another team\n      email: "theirs@example.com"\n'
    )
    assert json.loads((cli_runner.folder / "state.json").read_text())["instance"]["service_accounts"] == ACCOUNTS
    cli_runner.write(
        "out/instance.yaml", "{apiVersion: reconciler/v1, kind: Instance, spec: {service_accounts: {'{path}': {}}}}"
    )
    assert "the instance has no path" in cli_runner("validate out").out


@pytest.mark.parametrize("dialect", ["deployed"], indirect=True)
def test_a_deletion_that_was_refused_is_not_taken_for_one_that_takes_its_time(root: EngineDriver) -> None:
    plan = root.plan(wanted({"Mirror-Bot": None}))
    root.sandbox.set_faults(["status=503,method=DELETE"])
    assert failures(root.apply(plan)) == [
        "failed: service account Mirror-Bot: DELETE users/900: 503 Service Unavailable"
    ]
