"""The life of a protection rule for image tags, of which a project has at most five."""

from typing import Any

import pytest

from reconciler.kinds.container_tag_protection_rules import KIND, RULES
from reconciler.model.item import sentences
from reconciler.model.protocols import Request
from reconciler.model.targets import Level, Target
from reconciler.service import Client
from tests.building import API, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import project_in, rewriting

URL = "projects/acme%2Fapi/registry/protection/tag/rules"
PATTERN, PUSH, DELETE = "tag_name_pattern", "minimum_access_level_for_push", "minimum_access_level_for_delete"
BOTH = {PUSH: "maintainer", DELETE: "owner"}
TOO_MANY = "cannot be created: the service takes at most 5 in a project"


def wanted(value: object, *, prune: bool = False) -> Any:
    return section(KIND.name, value, API, prune=prune)


def rule(pattern: str, **more: object) -> dict[str, object]:
    return {PATTERN: pattern, **BOTH, **more}


def put(engine: EngineDriver, *rules: object, **more: object) -> None:
    """Let the project have these rules and no others."""
    with rewriting(engine) as state:
        project_in(state).update({KIND.name: list(rules), **more})


def test_the_life_of_a_rule(engine: EngineDriver) -> None:
    created = f'"{PUSH}": "maintainer", "{DELETE}": "owner"}}'
    assert engine.step(wanted({"^v": BOTH, "^a": BOTH})) == [
        f'POST {URL} {{"{PATTERN}": "^a", {created}',
        f'POST {URL} {{"{PATTERN}": "^v", {created}',
    ]
    assert engine.step(wanted({"^v": {PUSH: "admin"}})) == [f'PATCH {URL}/2 {{"{PUSH}": "admin"}}']
    assert engine.step(wanted({"^w": {"renamed_from": "^v"}})) == [f'PATCH {URL}/2 {{"{PATTERN}": "^w"}}']
    assert engine.step(wanted({"^w": {PUSH: "admin"}}, prune=True)) == [f"DELETE {URL}/1"]
    assert engine.step(wanted({"^w": None})) == [f"DELETE {URL}/2"]


def test_a_plan_reads_the_list_once_and_nothing_else(engine: EngineDriver) -> None:
    engine.plan(wanted({"^v": BOTH}))
    assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]


def test_a_creation_needs_both_levels_and_a_change_only_what_it_changes(engine: EngineDriver) -> None:
    put(engine, rule("^v"))
    value = wanted({"^v": {DELETE: "admin"}, "^w": {DELETE: "admin"}})
    assert engine.problems(value) == [f"tag protection rule.{PUSH}: needs `{PUSH}` to be created"]
    assert engine.step(wanted({"^v": {DELETE: "admin"}})) == [f'PATCH {URL}/1 {{"{DELETE}": "admin"}}']


def test_at_the_limit_a_rule_that_goes_becomes_one_that_comes(engine: EngineDriver) -> None:
    put(engine, *(rule(f"^{number}") for number in range(1, 6)))
    value = wanted({"^1": {}, "^2": {}, "^3": {}, "^new": {**BOTH, DELETE: "admin"}, "^5": None, "^4": None})
    assert engine.changes(value) == ["~ tag protection rule ^new", "- tag protection rule ^5"]
    assert engine.step(value) == [
        f'PATCH {URL}/4 {{"{DELETE}": "admin", "{PATTERN}": "^new"}}',
        f"DELETE {URL}/5",
    ]


def test_below_the_limit_a_rule_that_comes_is_created_before_one_goes(engine: EngineDriver) -> None:
    put(engine, rule("^1"), rule("^2"))
    writes = engine.step(wanted({"^1": {}, "^3": BOTH}, prune=True))
    assert [line.partition(" ")[0] for line in writes] == ["POST", "DELETE"]


def test_one_rule_too_many_is_a_problem_and_the_others_are_made(engine: EngineDriver) -> None:
    put(engine, *(rule(f"^{number}") for number in range(1, 5)))
    value = wanted({"^b": BOTH, "^a": BOTH})
    assert engine.problems(value) == [f"tag protection rule.None: {TOO_MANY}"]
    assert engine.changes(value) == ["+ tag protection rule ^a"]


def test_the_service_counts_rules_that_no_list_shows(engine: EngineDriver) -> None:
    put(engine, *({PATTERN: f"^{number}"} for number in range(1, 6)))
    plan = engine.plan(wanted({"^v": BOTH}))
    full = "Maximum number of protection rules have been reached"
    hidden = (
        "rules that make tags immutable count too, and no list shows them: see the section's page, or declare fewer"
    )
    assert failures(engine.apply(plan)) == [f"failed: tag protection rule ^v: POST {URL}: 422 {full}; {hidden}"]


@pytest.mark.untraced
@pytest.mark.parametrize(("there", "told"), [(1, False), (2, True), (3, True)])
def test_the_plan_says_where_hidden_rules_may_have_the_last_place(engine: EngineDriver, there: int, told: bool) -> None:
    """The service's list shows no rule that makes tags immutable, so that the plan knows of none."""
    put(engine, *(rule(f"^{number}") for number in range(there)), {PATTERN: "^hidden"})
    plan = engine.plan(wanted({"^a": BOTH, "^b": BOTH, "^c": BOTH}))
    hints = {change.address.name: [*sentences(change, "hint")] for change in plan.changes}
    last = [
        "the last of 5 that the service takes; rules that make tags immutable count too, and no list shows them: see the "
        "section's page, or declare fewer"
    ]
    made = ["^a", "^b", "^c"][: 5 - there]
    assert hints == {name: last if told and name == made[-1] else [] for name in made}
    full = "422 Maximum number of protection rules have been reached" in "".join(failures(engine.apply(plan)))
    assert full == told


def test_a_rule_that_another_run_makes_at_the_same_time_is_not_made_twice(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({"^v": BOTH}))
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("POST", URL, rule("^v", **{PUSH: "admin"})))
    assert failures(engine.apply(plan)) == [
        f"failed: tag protection rule ^v: POST {URL}: 422 Tag name pattern has already been taken"
    ]
    assert engine.step(wanted({"^v": BOTH})) == [f'PATCH {URL}/1 {{"{PUSH}": "maintainer"}}']


@pytest.mark.parametrize("why", [{"container_registry_enabled": False}, {"archived": True}], ids=str)
def test_rules_cannot_be_read_without_a_registry_or_in_an_archive(engine: EngineDriver, why: dict[str, bool]) -> None:
    cause = "the project is archived" if "archived" in why else "switched off in the project: the container registry"
    put(engine, rule("^a"), **why)
    assert engine.problems(wanted({"^b": BOTH}, prune=True)) == [f"tag protection rule.None: cannot be read: {cause}"]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^v[0-9]+", None),
        (r"\pN+\z", None),
        ("x" * 101, "a pattern has at most 100 characters; this one has 101"),
        ("*", "a pattern is a regular expression (RE2), which cannot begin with `*`; `.*` matches any tag"),
        ("(", "a pattern is a regular expression (RE2): a `(` is not closed"),
        ("[[:alpha:]]+", None),
        (" ", "a pattern must not be blank"),
    ],
)
def test_a_pattern_is_a_regular_expression(pattern: str, fault: str | None) -> None:
    assert RULES.name_error(pattern) == fault


def test_a_pattern_that_looks_like_a_glob_is_doubtful() -> None:
    target = Target(Level.PROJECT, "acme/api")
    advice = (
        "a pattern is a regular expression (RE2): `v*` is any number of `v`; write `v.*` for all that follows a `v`"
    )
    assert RULES.names.warning(target, "v*-release") == advice
    assert RULES.names.warning(target, "^v.*") is None
