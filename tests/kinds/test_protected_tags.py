"""Protected tags: replaced under cover, since no request changes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.state import Section
from tests.building import section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.states import a_small_service

RULES = "projects/acme%2Fapi/protected_tags"
NOBODY = [{"id": 90, "access_level": 0}]


def tags(value: dict[str, Any], *, prune: bool = False) -> Section:
    return section("protected_tags", value, prune=prune)


def service(engine: EngineDriver, *rules: dict[str, Any]) -> None:
    """Give the project these rules."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    state["projects"][0]["protected_tags"] = list(rules)
    engine.sandbox.replace_state(state)


def rules(engine: EngineDriver) -> dict[str, list[int]]:
    """Return the roles of each rule that is there."""
    project = engine.sandbox.state()["projects"][0]
    return {
        rule["name"]: [entry.get("access_level", 40) for entry in rule["create_access_levels"]]
        for rule in project.get("protected_tags", [])
    }


def post(name: str, *levels: int) -> str:
    body = {"name": name, "allowed_to_create": [{"access_level": level} for level in levels]}
    return f"POST {RULES} {json.dumps(body)}"


def test_a_rule_is_replaced_under_cover(engine: EngineDriver) -> None:
    service(engine)
    assert engine.step(tags({"v*": {}})) == [f'POST {RULES} {{"name": "v*"}}']
    assert engine.step(tags({"v*": {"allowed_to_create": ["developer"]}})) == [
        post("v**", 0),
        f"DELETE {RULES}/v%2A",
        post("v*", 30),
        f"DELETE {RULES}/v%2A%2A",
    ]
    assert engine.step(tags({"v*": {"allowed_to_create": []}}))[2] == post("v*", 0)
    assert engine.step(tags({}, prune=True)) == [f"DELETE {RULES}/v%2A"]


@pytest.mark.parametrize("sent", [1, 2, 3])
def test_a_run_that_is_killed_leaves_more_protection_and_the_next_one_ends_it(engine: EngineDriver, sent: int) -> None:
    service(engine, {"name": "v1", "create_access_levels": [{"id": 1, "access_level": 40}]})
    wanted = tags({"v1": {"allowed_to_create": ["developer"]}}, prune=True)
    plan = engine.plan(wanted)
    engine.sandbox.set_faults(
        [{"kind": "status", "status": 500, "method": method, "nth": nth, "times": 99} for method, nth in AFTER[sent]]
    )
    engine.apply(plan, verify=False)
    engine.sandbox.set_faults([])
    assert rules(engine)["v1*"] == [0]
    assert [line.split(" {")[0] for line in engine.step(wanted)] == {
        1: [f"DELETE {RULES}/v1", f"POST {RULES}", f"DELETE {RULES}/v1%2A"],
        2: [f"POST {RULES}", f"DELETE {RULES}/v1%2A"],
        3: [f"DELETE {RULES}/v1%2A"],
    }[sent]
    assert rules(engine) == {"v1": [30]}


AFTER = {1: [("DELETE", 1)], 2: [("POST", 2)], 3: [("DELETE", 2)]}
"""By the number of requests that succeed, which ones fail then."""


def test_a_rule_that_is_declared_covers_too_and_stays(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"}, {"name": "v1*", "create_access_levels": NOBODY})
    wanted = tags({"v1": {"allowed_to_create": ["developer"]}, "v1*": {"allowed_to_create": []}})
    assert engine.step(wanted) == [f"DELETE {RULES}/v1", post("v1", 30)]
    service(engine, {"name": "v1"}, {"name": "v1*"})
    assert engine.step(tags({"v1": {"allowed_to_create": ["developer"]}}))[0] == post("v1**", 0)


def test_a_rename_needs_no_cover(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"})
    assert engine.step(tags({"v2": {"renamed_from": "v1"}})) == [post("v2", 40), f"DELETE {RULES}/v1"]


def test_a_replacement_that_is_refused_leaves_the_cover(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"})
    engine.sandbox.set_faults([{"kind": "status", "status": 422, "method": "POST", "nth": 2}])
    (failed,) = failures(engine.apply(engine.plan(tags({"v1": {"allowed_to_create": ["developer"]}}))))
    assert failed.startswith("failed: protected tag v1: POST projects/acme%2Fapi/protected_tags: 422")
    assert rules(engine) == {"v1*": [0]}


def test_a_saved_plan_is_carried_out_as_it_shows(cli_runner: CliRunner) -> None:
    covers = [{"name": name, "create_access_levels": [{"access_level": 0}]} for name in ("v1*", "v2*")]
    cli_runner.service(protected_tags=[{"name": "v1"}, {"name": "v2"}, {"name": "v3"}, *covers])
    cli_runner.project(
        "{protected_tags: {v1: {allowed_to_create: [{user: bob}]}, v2: {allowed_to_create: [developer]}, "
        '"v2*": {allowed_to_create: []}, v3: null}}'
    )
    assert cli_runner("plan --out plan.json").code == 0
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, "0 stale" in done.out) == (0, True), done.out
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_a_rehearsal_has_the_rules_of_the_service(cli_runner: CliRunner) -> None:
    rule = {"name": "v1", "create_access_levels": [{"user": "bob"}, {"group_id": 11}, *NOBODY, {"deploy_key_id": 5}]}
    keys = [{"id": 5, "title": "release", "can_push": True}]
    invited = [{"group_id": 11, "role": "developer"}]
    cli_runner.service(protected_tags=[rule], enabled_deploy_keys=keys, invited_groups=invited)
    assert cli_runner("export --project acme/api --section protected_tags -o out --state state.json").code == 0
    (project,) = json.loads(Path("state.json").read_text())["projects"]
    entries = [{"user": "bob"}, {"group_id": 11}, {"access_level": 0}, {"deploy_key_id": 5}]
    assert project["protected_tags"] == [{"name": "v1", "create_access_levels": entries}]


def test_rules_of_an_archive_are_replaced_too(engine: EngineDriver) -> None:
    service(engine, {"id": 1, "name": "v", "create_access_levels": NOBODY})
    state = engine.sandbox.state()
    state["projects"][0]["archived"] = True
    engine.sandbox.replace_state(state)
    assert len(engine.step(tags({"v": {"allowed_to_create": ["maintainer"]}}))) == 4
    assert rules(engine) == {"v": [40]}


def test_an_edition_without_users_refuses_them(engine: EngineDriver) -> None:
    service(engine)
    state = engine.sandbox.state()
    state["instance"]["licensed"] = False
    engine.sandbox.replace_state(state)
    (refused,) = failures(engine.apply(engine.plan(tags({"v": {"allowed_to_create": [{"user": "bob"}]}}))))
    assert "user must be blank" in refused
    assert rules(engine) == {}


def test_an_exception_of_a_list_that_names_somebody_is_reported(cli_runner: CliRunner) -> None:
    """Who that is must be asked for, though nothing is written."""
    cli_runner.service(protected_tags=[{"name": "v*", "create_access_levels": [{"id": 1, "access_level": 30}]}])
    cli_runner.write("manifests/project.yaml", EXCEPTED)
    done = cli_runner("plan")
    assert done.code == 0, done.err
    assert 'allowed_to_create[0]: developer -> {"user": "bob"}, excepted until 2999-12-31: OPS-7' in done.out


EXCEPTED = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  exceptions:
    - {section: protected_tags, item: v*, fields: [allowed_to_create], until: 2999-12-31, reason: OPS-7}
spec: {protected_tags: {"v*": {allowed_to_create: [{user: bob}]}}}
"""
