"""The life of a protection rule for packages, whose level to delete most services drop."""

from typing import Any

import pytest

from reconciler.kinds.package_protection_rules import KIND, RULES
from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.building import API, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import project_in, rewriting

URL = "projects/acme%2Fapi/packages/protection/rules"
PATTERN, TYPE = "package_name_pattern", "package_type"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"


def wanted(value: object, *, prune: bool = False) -> Any:
    return section(KIND.name, value, API, prune=prune)


def rule(pattern: str, sort: str = "npm", **levels: object) -> dict[str, object]:
    return {PATTERN: pattern, TYPE: sort, **(levels or {PUSH: "owner"})}


def put(engine: EngineDriver, *rules: object, flag: bool = False, **more: object) -> None:
    """Let the project have these rules and no others."""
    with rewriting(engine) as state:
        state["instance"]["packages_protected_packages_delete"] = flag
        project_in(state).update({KIND.name: list(rules), **more})


@pytest.mark.untraced
def test_the_life_of_a_rule(engine: EngineDriver) -> None:
    name = f'"{PATTERN}": "@acme/*", "{TYPE}": "npm"'
    assert engine.step(wanted({"npm:@acme/*": {PUSH: "maintainer"}})) == [
        f'POST {URL} {{{name}, "{PUSH}": "maintainer"}}'
    ]
    assert engine.step(wanted({"npm:@acme/*": {PUSH: "admin"}})) == [f'PATCH {URL}/1 {{"{PUSH}": "admin"}}']
    assert engine.step(wanted({"generic:a:b": {"renamed_from": "npm:@acme/*", PUSH: "owner"}})) == [
        f'PATCH {URL}/1 {{"{PATTERN}": "a:b", "{TYPE}": "generic", "{PUSH}": "owner"}}'
    ]
    assert engine.step(wanted({"generic:a:b": {}, "npm:b": {PUSH: "owner"}}, prune=True)) == [
        f'POST {URL} {{"{PATTERN}": "b", "{TYPE}": "npm", "{PUSH}": "owner"}}'
    ]
    assert engine.step(wanted({"npm:b": None})) == [f"DELETE {URL}/2"]
    assert engine.step(wanted({}, prune=True)) == [f"DELETE {URL}/1"]


def test_a_plan_reads_the_list_once_and_nothing_else(engine: EngineDriver) -> None:
    engine.plan(wanted({"npm:a": {PUSH: "owner"}}))
    assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]


def test_a_level_to_delete_that_the_service_drops_is_no_difference(engine: EngineDriver) -> None:
    value = wanted({"npm:a": {PUSH: "owner", DELETE: "admin"}})
    created = f'"{PUSH}": "owner", "{DELETE}": "admin"'
    assert engine.step(value) == [f'POST {URL} {{"{PATTERN}": "a", "{TYPE}": "npm", {created}}}']
    assert engine.step(value) == []
    changed = wanted({"npm:a": {PUSH: "maintainer", DELETE: "admin"}})
    assert engine.step(changed) == [f'PATCH {URL}/1 {{"{PUSH}": "maintainer", "{DELETE}": "admin"}}']
    assert engine.step(wanted({"npm:a": {DELETE: None}})) == []


def test_a_level_to_delete_that_the_service_keeps_is_changed(engine: EngineDriver) -> None:
    put(engine, rule("a", **{PUSH: "owner", DELETE: "admin"}), flag=True)
    assert engine.step(wanted({"npm:a": {DELETE: "owner"}})) == [f'PATCH {URL}/1 {{"{DELETE}": "owner"}}']
    assert engine.step(wanted({"npm:a": {PUSH: None}})) == [f'PATCH {URL}/1 {{"{PUSH}": null}}']
    no_level = wanted({"npm:a": {DELETE: None}})
    assert [line.partition(": ")[0] for line in engine.problems(no_level)] == [f"package protection rule.{PUSH}"]


def test_a_rule_without_a_level_is_not_created(engine: EngineDriver) -> None:
    value = wanted({"npm:a": {}, "npm:b": {PUSH: "owner"}})
    assert [line.partition(": ")[0] for line in engine.problems(value)] == [f"package protection rule.{PUSH}"]
    assert engine.changes(value) == ["+ package protection rule npm:b"]


def test_a_rule_that_another_writer_made_after_the_plan_is_refused(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({"npm:a": {PUSH: "owner"}}))
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("POST", URL, rule("a", **{PUSH: "admin"})))
    taken = "Package name pattern has already been taken; Pattern has already been taken"
    assert failures(engine.apply(plan)) == [f"failed: package protection rule npm:a: POST {URL}: 422 {taken}"]
    assert engine.step(wanted({"npm:a": {PUSH: "owner"}})) == [f'PATCH {URL}/1 {{"{PUSH}": "owner"}}']


@pytest.mark.parametrize("why", [{"packages_enabled": False}, {"archived": True}], ids=str)
def test_rules_cannot_be_read_without_a_registry_or_in_an_archive(engine: EngineDriver, why: dict[str, bool]) -> None:
    cause = "the project is archived" if "archived" in why else "switched off in the project: the package registry"
    put(engine, rule("a"), **why)
    problem = f"package protection rule.None: cannot be read: {cause}"
    assert engine.problems(wanted({"npm:b": {PUSH: "owner"}}, prune=True)) == [problem]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("npm:@acme/app-*", None),
        ("npm:*", None),
        ("pypi:-x-", None),
        ("generic: ü:b ", None),
        ("npm:a b", "a pattern of type npm is the name of such a package, in which `*` stands for any characters"),
        ("pypi:ü", "a pattern of type pypi is the name of such a package, in which `*` stands for any characters"),
        ("maven: ", "after `maven:` comes a pattern, in which `*` stands for any characters"),
        ("cargo:a", "a rule is named by type and pattern, such as `npm:@acme/*`; the types are "),
        ("@acme/*", "a rule is named by type and pattern, such as `npm:@acme/*`; the types are "),
    ],
)
def test_a_name_is_a_type_and_a_pattern(engine: EngineDriver, name: str, fault: str | None) -> None:
    error = RULES.name_error(name)
    assert (error or "").startswith(fault or "")
    assert (error is None) == (fault is None)
    if fault is None:
        assert len(engine.step(wanted({name: {PUSH: "owner"}}))) == 1


def test_a_copy_for_rehearsals_has_the_rules_with_a_level(cli_runner: CliRunner) -> None:
    cli_runner.service(package_protection_rules=[rule("a"), rule("b", **{DELETE: "owner"})])
    assert cli_runner("export --project acme/api -o out --state state.json").code == 0
    assert f'"npm:b":\n      {PUSH}: null' in (cli_runner.folder / "out/acme/api.yaml").read_text()
    copy = (cli_runner.folder / "state.json").read_text()
    assert (f'"{PATTERN}": "a"' in copy, f'"{PATTERN}": "b"' in copy) == (True, False)


def test_validate_warns_of_a_rule_without_a_level_and_of_one_that_is_dropped(cli_runner: CliRunner) -> None:
    rules = '{"npm:a": {}, "npm:b": {minimum_access_level_for_push: owner, minimum_access_level_for_delete: owner}}'
    cli_runner.project(f"{{package_protection_rules: {rules}}}")
    warnings = [
        line.partition("warning: ")[2] for line in cli_runner("validate").out.splitlines() if "warning: " in line
    ]
    assert warnings == [
        "a rule without a level cannot be created where it does not exist yet: set minimum_access_level_for_push",
        "GitLab drops this level, unless its feature flag packages_protected_packages_delete is on",
    ]
