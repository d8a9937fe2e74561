"""The life of a protection rule."""

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.errors import Refused
from reconciler.kinds.container_repository_protection_rules import KIND, RULES
from reconciler.model.protocols import Request
from reconciler.model.targets import Level, Target
from reconciler.service import Client
from tests.building import API, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import project_in, rewriting, speaking_with

URL = "projects/acme%2Fapi/registry/protection/repository/rules"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"
NO_LEVEL = (
    "a protection rule needs at least one of minimum_access_level_for_push and minimum_access_level_for_delete; to have "
    "no such rule, write null in its place"
)


def wanted(value: object, target: Target = API, *, prune: bool = False) -> Any:
    return section(KIND.name, value, target, prune=prune)


def rule(pattern: str, push: str | None = None, delete: str | None = None, **more: object) -> dict[str, object]:
    return {"repository_path_pattern": pattern, PUSH: push, DELETE: delete, **more}


def put(engine: EngineDriver, *rules: Mapping[str, object]) -> None:
    """Let the project have these rules and no others."""
    with rewriting(engine) as state:
        project_in(state)[KIND.name] = list(rules)


def kept(engine: EngineDriver) -> list[tuple[str, str | None, str | None]]:
    rules = project_in(engine.sandbox.state())[KIND.name]
    return [(each["repository_path_pattern"], each[PUSH], each[DELETE]) for each in rules]


@pytest.mark.untraced
def test_the_life_of_a_protection_rule(engine: EngineDriver) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return engine.step(wanted(value, prune=prune))

    assert step({"acme/api/prod*": {PUSH: "maintainer", DELETE: "admin"}, "acme/api/dev*": {DELETE: "owner"}}) == [
        f'POST {URL} {{"repository_path_pattern": "acme/api/dev*", "{DELETE}": "owner"}}',
        f'POST {URL} {{"repository_path_pattern": "acme/api/prod*", "{PUSH}": "maintainer", "{DELETE}": "admin"}}',
    ]
    assert step({"acme/api/prod*": {PUSH: "owner"}}) == [f'PATCH {URL}/2 {{"{PUSH}": "owner"}}']
    assert step({"acme/api/prod*": {DELETE: "maintainer"}}) == [f'PATCH {URL}/2 {{"{DELETE}": "maintainer"}}']
    assert step({"acme/api/prod*": {PUSH: "admin", DELETE: "maintainer"}}) == [f'PATCH {URL}/2 {{"{PUSH}": "admin"}}']
    assert step({"acme/api/prod*": {PUSH: None}}) == [f'PATCH {URL}/2 {{"{PUSH}": ""}}']
    assert step({"acme/api/prod*": {PUSH: "admin", DELETE: None}}) == [
        f'PATCH {URL}/2 {{"{PUSH}": "admin", "{DELETE}": ""}}'
    ]
    assert step({"acme/api/prod*": {}}) == []
    assert step({"acme/api/prod-*": {"renamed_from": "acme/api/prod*"}}) == [
        f'PATCH {URL}/2 {{"repository_path_pattern": "acme/api/prod-*"}}'
    ]
    assert kept(engine) == [("acme/api/dev*", None, "owner"), ("acme/api/prod-*", "admin", None)]
    assert step({"acme/api/prod-*": None}) == [f"DELETE {URL}/2"]
    assert step({}, prune=True) == [f"DELETE {URL}/1"]


@pytest.mark.untraced
@pytest.mark.parametrize("levels", [{PUSH: "admin"}, {DELETE: "admin"}, {PUSH: "admin", DELETE: None}], ids=str)
def test_a_rule_is_created_without_the_level_that_is_not_wanted(
    engine: EngineDriver, levels: dict[str, str | None]
) -> None:
    (name,) = (name for name, level in levels.items() if level)
    assert engine.step(wanted({"acme/api/a": levels})) == [
        f'POST {URL} {{"repository_path_pattern": "acme/api/a", "{name}": "admin"}}'
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("levels", [{}, {PUSH: None}, {PUSH: None, DELETE: None}], ids=str)
def test_a_rule_without_levels_cannot_be_created(engine: EngineDriver, levels: dict[str, None]) -> None:
    value = wanted({"acme/api/a": levels, "acme/api/b": {PUSH: "owner"}})
    assert engine.problems(value) == [f"protection rule.{PUSH}: cannot be created: {NO_LEVEL}"]
    assert engine.changes(value) == ["+ protection rule acme/api/b"]


def test_the_last_level_of_a_live_rule_cannot_be_lifted(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/a", push="owner"))
    value = wanted({"acme/api/a": {PUSH: None}})
    assert engine.problems(value) == [f"protection rule.{PUSH}: {NO_LEVEL}"]
    assert engine.changes(value) == []


def test_a_level_that_is_null_already_is_in_order(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/a", push="owner"))
    assert engine.step(wanted({"acme/api/a": {DELETE: None}})) == []


def test_a_plan_reads_the_list_once_and_nothing_else(engine: EngineDriver) -> None:
    engine.plan(wanted({"acme/api/a": {PUSH: "owner"}}))
    assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]


def test_what_must_not_exist_and_does_not_is_in_order(engine: EngineDriver) -> None:
    assert engine.step(wanted({"acme/api/a": None})) == []


@pytest.mark.untraced
@pytest.mark.parametrize("old", ["acme/api/a", ["acme/api/z", "acme/api/a"]], ids=str)
def test_a_rename_keeps_the_rule_and_changes_its_levels_with_it(engine: EngineDriver, old: object) -> None:
    put(engine, rule("acme/api/a", push="owner", delete="admin", id=5))
    value = wanted({"acme/api/b": {"renamed_from": old, DELETE: None}}, prune=True)
    assert engine.step(value) == [f'PATCH {URL}/5 {{"repository_path_pattern": "acme/api/b", "{DELETE}": ""}}']
    assert engine.step(value) == []


def test_a_rename_of_what_is_not_there_creates(engine: EngineDriver) -> None:
    assert engine.step(wanted({"acme/api/b": {"renamed_from": "acme/api/a", PUSH: "owner"}})) == [
        f'POST {URL} {{"repository_path_pattern": "acme/api/b", "{PUSH}": "owner"}}'
    ]


def test_a_rename_whose_both_names_are_live_is_a_problem_and_touches_neither(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/a", push="owner"), rule("acme/api/b", push="owner"))
    value = wanted({"acme/api/b": {"renamed_from": "acme/api/a", PUSH: "admin"}}, prune=True)
    assert engine.problems(value) == [
        'protection rule.None: both this name and the former "acme/api/a" are live; delete one of them'
    ]
    assert engine.changes(value) == []


def test_what_no_manifest_mentions_is_reported_and_not_touched(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/b", push="owner"), rule("acme/api/a", push="owner"))
    before = engine.sandbox.state()
    value = wanted({"acme/api/b": {PUSH: "owner"}})
    assert [each.address.name for each in engine.plan(value).findings_of("unmanaged")] == ["acme/api/a"]
    assert engine.step(value) == []
    assert engine.sandbox.state() == before


def test_pruning_deletes_what_is_not_listed_after_all_else(engine: EngineDriver) -> None:
    put(engine, *(rule(f"acme/api/{name}", push="owner", id=number) for number, name in enumerate("cba", 1)))
    value = wanted({"acme/api/b": {PUSH: "admin"}, "acme/api/d": {PUSH: "admin"}}, prune=True)
    assert engine.step(value) == [
        f'POST {URL} {{"repository_path_pattern": "acme/api/d", "{PUSH}": "admin"}}',
        f'PATCH {URL}/2 {{"{PUSH}": "admin"}}',
        f"DELETE {URL}/3",
        f"DELETE {URL}/1",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("size", [99, 100, 101, 205])
def test_all_rules_are_read_with_pages_and_without(engine: EngineDriver, dialect: str, size: int) -> None:
    put(engine, *(rule(f"acme/api/r{number:03}", push="owner", id=number) for number in range(1, size + 1)))
    value = wanted({f"acme/api/r{number:03}": {} for number in range(1, size)}, prune=True)
    assert engine.changes(value) == [f"- protection rule acme/api/r{size:03}"]
    pages = 1 if dialect == "deployed" else -(-size // 100)
    assert engine.requests() == [f"GET {URL}?per_page=100&page={page}" for page in range(1, pages + 1)]
    assert engine.step(value) == [f"DELETE {URL}/{size}"]


def test_a_rule_that_another_writer_made_after_the_plan_is_refused(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({"acme/api/a": {PUSH: "owner"}, "acme/api/b": {PUSH: "owner"}}))
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("POST", URL, rule("acme/api/a", push="admin")))
    assert failures(engine.apply(plan)) == [
        f"failed: protection rule acme/api/a: POST {URL}: 422 Repository path pattern has already been taken"
    ]
    assert kept(engine) == [("acme/api/a", "admin", None), ("acme/api/b", "owner", None)]
    stale = ["stale: protection rule acme/api/a: it exists now"]  # the other is as wanted
    assert failures(engine.apply(plan, recheck=True)) == stale
    assert engine.writes() == []


def test_a_rule_that_another_writer_deleted_after_the_plan_can_be_deleted_and_not_changed(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/a", push="owner", id=1), rule("acme/api/b", push="owner", id=2))
    plan = engine.plan(wanted({"acme/api/a": {PUSH: "admin"}, "acme/api/b": None}))
    with speaking_with(engine, "bob-token"):
        engine.client.send(Request("DELETE", f"{URL}/1"))
        engine.client.send(Request("DELETE", f"{URL}/2"))
    assert failures(engine.apply(plan)) == [
        f"failed: protection rule acme/api/a: PATCH {URL}/1: 404 Not found",
    ]


@pytest.mark.parametrize("why", [{"container_registry_enabled": False}, {"archived": True}], ids=str)
def test_rules_cannot_be_read_without_a_registry_or_in_an_archive(engine: EngineDriver, why: dict[str, bool]) -> None:
    cause = "the project is archived" if "archived" in why else "switched off in the project: the container registry"
    put(engine, rule("acme/api/a", push="owner"))
    with rewriting(engine) as state:
        project_in(state).update(why)
    value = wanted({"acme/api/b": {PUSH: "owner"}}, prune=True)
    assert engine.problems(value) == [f"protection rule.None: cannot be read: {cause}"]
    assert engine.changes(value) == []


def test_a_pattern_written_in_capitals_elsewhere_can_be_renamed_or_pruned(engine: EngineDriver) -> None:
    put(engine, rule("acme/api/Prod", push="owner", id=1), rule("acme/api/Dev", push="owner", id=2))
    value = wanted({"acme/api/prod": {"renamed_from": "acme/api/Prod"}}, prune=True)
    assert engine.step(value) == [
        f'PATCH {URL}/1 {{"repository_path_pattern": "acme/api/prod"}}',
        f"DELETE {URL}/2",
    ]


def test_a_project_known_by_its_number_has_rules_too(engine: EngineDriver) -> None:
    target = Target(Level.PROJECT, 100)
    assert engine.step(wanted({"acme/api/a": {PUSH: "owner"}}, target)) == [
        f'POST projects/100/registry/protection/repository/rules {{"repository_path_pattern": "acme/api/a", "{PUSH}": '
        '"owner"}'
    ]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("acme/api/prod*", None),
        ("acme/api", None),
        ("acme/api-2/x", None),
        ("acme/api/a__b--c.d/*-x", None),
        ("acme/api/" + "x" * 246, None),
        ("/prod*", "a pattern is a container repository path in which `*` stands for any characters"),
        ("acme/api/" + "x" * 247, "a pattern has at most 255 characters; this one has 256"),
        ("acme/api//x", "a pattern is a container repository path in which `*` stands for any characters"),
        ("acme/api/", "a pattern is a container repository path in which `*` stands for any characters"),
        ("acme/api/a___b", "a pattern is a container repository path in which `*` stands for any characters"),
        ("acme/api/a b", "a pattern is a container repository path in which `*` stands for any characters"),
    ],
)
def test_a_pattern_is_checked_before_the_service_would_refuse_it(
    engine: EngineDriver, dialect: str, pattern: str, fault: str | None
) -> None:
    target = Target(Level.PROJECT, "Acme/Api")
    assert RULES.name_error(pattern) == fault
    if fault is None:
        assert len(engine.step(wanted({pattern: {PUSH: "owner"}}, target))) == 1
    elif dialect == "deployed":
        with pytest.raises(Refused):
            engine.client.send(Request("POST", URL, rule(pattern, push="owner")))


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("pattern", "doubt"),
    [
        ("acme/api/Prod*", "GitLab takes new patterns in lower case only: acme/api/prod*"),
        (
            "old/api/prod*",
            "GitLab takes new patterns only if they start with the project's path: acme/api/old/api/prod*",
        ),
        ("*", "GitLab takes new patterns only if they start with the project's path: acme/api/*"),
    ],
)
def test_a_pattern_that_only_some_servers_take_is_doubtful(
    engine: EngineDriver, dialect: str, pattern: str, doubt: str
) -> None:
    target = Target(Level.PROJECT, "Acme/Api")
    assert (RULES.name_error(pattern), RULES.names.warning(target, pattern)) == (None, doubt)
    outcomes = failures(engine.apply(engine.plan(wanted({pattern: {PUSH: "owner"}}, target))))
    assert len(outcomes) == (dialect == "deployed")


def test_the_path_before_a_pattern_is_not_checked_where_only_the_number_is_known() -> None:
    assert RULES.names.warning(Target(Level.PROJECT, 7), "any/where") is None


def test_a_rule_from_before_the_project_was_renamed_can_be_declared_and_is_exported(cli_runner: CliRunner) -> None:
    cli_runner.service(container_repository_protection_rules=[rule("old/Api/x*", push="owner")])
    assert cli_runner("export --project acme/api -o out --section container_repository_protection_rules").code == 0
    done = cli_runner("validate out")
    assert (done.code, "warning: GitLab takes new patterns in lower case only: old/api/x*" in done.out) == (0, True)
    assert cli_runner("drift out").code == 0


@pytest.mark.parametrize("unset", [{DELETE: None}, {DELETE: ""}, {}], ids=str)
def test_an_unset_level_is_shown_in_three_ways(unset: dict[str, object]) -> None:
    found = RULES.read(API, {"id": 3, "repository_path_pattern": "acme/api/a", PUSH: "owner", **unset})
    assert found.resource.model_dump(exclude={"renamed_from"}) == {PUSH: "owner", DELETE: None}
