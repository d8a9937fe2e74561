"""Protected tags: replaced under cover, since no request changes them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.engine.plan import draw_plan
from reconciler.model.state import Section
from reconciler.service import Client
from tests.between import Passing, between
from tests.building import KINDS, desired, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.service.clock import SwiftClock
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
        post("v****", 0),
        f"DELETE {RULES}/v%2A",
        post("v*", 30),
        f"DELETE {RULES}/v%2A%2A%2A%2A",
    ]
    assert engine.step(tags({"v*": {"allowed_to_create": []}}))[2] == post("v*", 0)
    assert engine.step(tags({}, prune=True)) == [f"DELETE {RULES}/v%2A"]


@pytest.mark.untraced
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
    assert rules(engine)["v1***"] == [0]
    assert [line.split(" {")[0] for line in engine.step(wanted)] == {
        1: [f"DELETE {RULES}/v1", f"POST {RULES}", f"DELETE {RULES}/v1%2A%2A%2A"],
        2: [f"POST {RULES}", f"DELETE {RULES}/v1%2A%2A%2A"],
        3: [f"DELETE {RULES}/v1%2A%2A%2A"],
    }[sent]
    assert rules(engine) == {"v1": [30]}


AFTER = {1: [("DELETE", 1)], 2: [("POST", 2)], 3: [("DELETE", 2)]}
"""By the number of requests that succeed, which ones fail then."""


def test_a_rule_that_is_declared_covers_too_and_stays(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"}, {"name": "v1***", "create_access_levels": NOBODY})
    wanted = tags({"v1": {"allowed_to_create": ["developer"]}, "v1***": {"allowed_to_create": []}})
    assert engine.step(wanted) == [f"DELETE {RULES}/v1", post("v1", 30)]
    service(engine, {"name": "v1"}, {"name": "v1***"})
    assert engine.step(tags({"v1": {"allowed_to_create": ["developer"]}}))[0] == post("v1******", 0)


def test_a_rename_needs_no_cover(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"})
    assert engine.step(tags({"v2": {"renamed_from": "v1"}})) == [post("v2", 40), f"DELETE {RULES}/v1"]


@pytest.mark.untraced
def test_a_rule_for_nobody_that_somebody_has_made_is_no_cover(cli_runner: CliRunner) -> None:
    others = [{"name": name, "create_access_levels": [{"access_level": 0}]} for name in ("v2*", "v2**", "***")]
    cli_runner.service(protected_tags=[{"name": "v2"}, {"name": "v1***"}, *others])
    cli_runner.project("{protected_tags: {v2: {allowed_to_create: [developer]}, v1: {}}}")
    done = cli_runner("apply --yes")
    assert (done.code, "\nApplied: 1 created, 1 updated, 1 loosening, 1 tightening. " in done.out) == (0, True), (
        done.out
    )
    planned = cli_runner("plan -v").out
    assert "\nNo changes: 1 target is in order, 4 unmanaged. " in planned
    assert all(f'protected tag "{name}" is unmanaged' in planned for name in ("v2*", "v2**", "***", "v1***"))


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ("{v1: {}}", ["v1"]),
        ("{v1: null}", []),
        ("{v2: {}}", ["v1", "v2"]),
        ("{}, prune: [protected_tags]", []),
    ],
)
def test_a_cover_that_was_left_goes_with_the_next_apply_whatever_else_is_in_order(
    cli_runner: CliRunner, spec: str, rules: list[str]
) -> None:
    left = {"name": "v1***", "create_access_levels": NOBODY}
    cli_runner.service(protected_tags=[*({"name": name} for name in rules), left])
    cli_runner.project(f"{{protected_tags: {spec}}}")
    (change,) = re.findall(r"(?m)^  - .*\n.*$", cli_runner("plan -v").changes)
    assert change.startswith('  - protected tag "v1***"')
    assert change.endswith('\n      left by a run that ended while it replaced "v1"')
    assert cli_runner("apply --yes --report json=applied.json").code == 0
    assert cli_runner("plan --detailed-exitcode").code == 0
    assert roles(cli_runner) == {name: [40] for name in rules}
    assert "\nWay back: nothing to change. " in cli_runner("revert applied.json").out


def test_a_cover_with_too_long_a_name_is_a_problem(engine: EngineDriver) -> None:
    longest, longer = "v" * 252, "v" * 253
    service(engine, {"name": longest}, {"name": longer})
    assert len(engine.step(tags({longest: {"allowed_to_create": []}, longer: {}}))) == 4
    assert engine.problems(tags({longer: {"allowed_to_create": []}})) == [
        f"protected tag.None: cannot be replaced: its cover, {longer}***, would have too long a name"
    ]
    assert len(engine.step(tags({"v1": {"allowed_to_create": [], "renamed_from": longer}}))) == 2


REFUSED = "POST projects/acme%2Fapi/protected_tags: 422 "


@pytest.mark.parametrize(
    ("times", "allowed", "told", "after"),
    [
        (1, ["developer", {"user": "bob"}], "the old one was put back", {"v1": [30, 40]}),
        (
            1,
            ["developer", {"user": "gone"}],
            "the old one was put back, without user gone, which the service refuses",
            {"v1": [30]},
        ),
        (
            99,
            [{"user": "bob"}],
            f'the old one could not be put back: {REFUSED}Unprocessable Entity; protected tag "v1***" protects meanwhile',
            {"v1***": [0]},
        ),
    ],
    ids=["whole", "without one who has left", "not at all"],
)
def test_a_rule_whose_replacement_is_refused_is_put_back_before_the_cover_goes(
    cli_runner: CliRunner, times: int, allowed: list[Any], told: str, after: dict[str, list[int]]
) -> None:
    entries = [{"access_level": 30} if entry == "developer" else entry for entry in allowed]
    state = a_small_service("deployed")
    state["users"].append({"id": 4, "username": "gone"})
    state["projects"][0]["protected_tags"] = [{"name": "v1", "create_access_levels": entries}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{protected_tags: {v1: {allowed_to_create: [maintainer]}}}")
    fault = {"kind": "status", "status": 422, "method": "POST", "nth": 2, "times": times}
    cli_runner.sandbox.set_faults([fault])
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --report json=applied.json")
    assert done.code == 3
    assert f"; {told}" in done.out
    assert roles(cli_runner) == after
    cli_runner.sandbox.set_faults([])
    assert cli_runner("revert applied.json --yes").code in (0, 3)
    if "gone" not in told:
        assert cli_runner("export --project acme/api --section protected_tags -o before").code == 0
        (exported,) = Path("before").rglob("*.yaml")
        (rule,) = yaml.safe_load(exported.read_text())["spec"]["protected_tags"].items()
        assert rule == ("v1", {"allowed_to_create": allowed})
    assert cli_runner("apply --yes").code == 0
    assert roles(cli_runner) == {"v1": [40]}


def test_what_came_of_putting_a_rule_back_is_told(cli_runner: CliRunner) -> None:
    keys = [{"id": number, "title": "release", "can_push": True} for number in (5, 6)]
    refused = {"kind": "status", "status": 422, "method": "POST", "nth": 2}

    def failure(entry: dict[str, Any], *more: dict[str, Any]) -> str:
        rule = {"name": "v1", "create_access_levels": [entry]}
        cli_runner.sandbox.set_faults([])
        cli_runner.service(protected_tags=[rule], enabled_deploy_keys=keys)
        cli_runner.project("{protected_tags: {v1: {allowed_to_create: [maintainer]}}}")
        cli_runner.sandbox.set_faults([refused, *more])
        done = cli_runner("apply --yes")
        assert done.code == 3
        return done.out.partition("Entity; ")[2].partition("\n")[0]

    assert failure({"deploy_key_id": 5}) == (
        "the old one was put back, without deploy key release, which the service refuses"
    )
    assert failure({"access_level": 30}, {"kind": "status", "status": 403, "method": "DELETE", "nth": 2}) == (
        "the old one was put back, and the cover could not be deleted: "
        "DELETE projects/acme%2Fapi/protected_tags/v1%2A%2A%2A: 403 Forbidden"
    )
    refused["status"] = 401
    assert failure({"access_level": 30}) == ""
    assert roles(cli_runner) == {"v1***": [0]}
    refused |= {"status": 422, "nth": 1}
    assert failure({"access_level": 30}) == ""
    assert roles(cli_runner) == {"v1": [30]}


def test_a_rule_of_which_a_newer_service_shows_more_is_not_put_back_as_another(engine: EngineDriver) -> None:
    service(engine, {"name": "v1"})

    def newer(passing: Passing) -> None:
        if passing.request.startswith("GET"):
            passing.json = [{"name": "v1", "create_access_levels": [{"id": 1, "access_level": 25}]}]

    with between(engine.sandbox.api_url) as relay:
        relay.alter = newer
        with Client(relay.api_url, "ada-token", clock=SwiftClock()) as client:
            plan = draw_plan(desired(tags({"v1": {"allowed_to_create": ["developer"]}})), client, KINDS)
            engine.sandbox.set_faults([{"kind": "status", "status": 422, "method": "POST", "nth": 2}])
            (failed,) = failures(list(apply_plan(plan, client, KINDS, ApplyOptions())))
    assert failed.endswith(
        "; the old one cannot be put back, because this version does not know its values; "
        'protected tag "v1***" protects meanwhile'
    )
    assert rules(engine) == {"v1***": [0]}


def roles(cli_runner: CliRunner) -> dict[str, list[int]]:
    """Return the roles of each rule that is there."""
    return {
        rule["name"]: [entry.get("access_level", 40) for entry in rule["create_access_levels"]]
        for rule in cli_runner.sandbox.state()["projects"][0]["protected_tags"]
    }


def test_a_saved_plan_is_carried_out_as_it_shows(cli_runner: CliRunner) -> None:
    covers = [{"name": name, "create_access_levels": [{"access_level": 0}]} for name in ("v1***", "v2***")]
    cli_runner.service(protected_tags=[{"name": "v1"}, {"name": "v2"}, {"name": "v3"}, *covers])
    cli_runner.project(
        "{protected_tags: {v1: {allowed_to_create: [{user: bob}]}, v2: {allowed_to_create: [developer]}, "
        '"v2***": {allowed_to_create: []}, v3: null}}'
    )
    assert cli_runner("plan --out plan.json").code == 0
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, "\nApplied: 2 updated, 1 deleted, 3 loosening, 1 tightening. " in done.out) == (0, True), (
        done.out
    )
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
    done = cli_runner("plan -v")
    assert done.code == 0, done.err
    assert "allowed_to_create: + user bob, - developer; then user bob, excepted until 2999-12-31: OPS-7" in done.out


EXCEPTED = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  exceptions:
    - {section: protected_tags, item: v*, fields: [allowed_to_create], until: 2999-12-31, reason: OPS-7}
spec: {protected_tags: {"v*": {allowed_to_create: [{user: bob}]}}}
"""
