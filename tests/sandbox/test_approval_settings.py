"""Merge request approval settings: spec section 4.10, locks and inheritance, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import WEB, SandboxClient, a_service

NAMES = (
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "selective_code_owner_removals",
    "require_password_to_approve",
    "require_reauthentication_to_approve",
)
AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE, PASSWORD, AGAIN = NAMES
GROUP = "/groups/acme/merge_request_approval_setting"
TEAM = "/groups/acme%2Fteam/merge_request_approval_setting"
PROJECT = f"{WEB}/merge_request_approval_setting"
LIB = "/projects/101/merge_request_approval_setting"
SETTINGS = "merge_request_approval_settings"
FORBIDDEN = (403, {"message": "403 Forbidden"})
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])


def entries(*on: str, **locked: str) -> dict[str, Any]:
    """The seven entries: the named ones are on, the keyword arguments say which level locks an entry."""
    found = {
        name: {"value": name in on, "locked": name in locked, "inherited_from": locked.get(name)} for name in NAMES
    }
    return {name: found[AGAIN if name == PASSWORD else name] for name in NAMES}


FRESH_GROUP = entries(AUTHOR, COMMITTER, OVERRIDES, RETAIN)
FRESH_PROJECT = entries(COMMITTER, OVERRIDES)


@BOTH
def test_nothing_is_locked_where_nothing_was_set(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"GET {GROUP}") == (200, FRESH_GROUP)
    assert service.ask(f"GET {PROJECT}") == (200, FRESH_PROJECT)


@BOTH
def test_the_first_put_on_a_group_makes_whatever_is_not_sent_false_and_locks_its_projects(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect))
    removals = {SELECTIVE: "group"} if dialect == "deployed" else {}
    assert service.ask(f"PUT {GROUP}", {AUTHOR: True}) == (200, entries(AUTHOR, **removals))
    locks = {COMMITTER: "group", OVERRIDES: "group", RETAIN: "group", **removals}
    assert service.ask(f"GET {PROJECT}") == (200, entries(**locks))
    assert service.ask(f"PUT {GROUP}", {COMMITTER: True}) == (200, entries(AUTHOR, COMMITTER, **removals))


@BOTH
def test_a_put_on_a_locked_entry_is_accepted_kept_and_not_shown(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, acme={SETTINGS: {AUTHOR: False}}))
    shown = entries(COMMITTER, OVERRIDES, **{AUTHOR: "group"})
    assert service.ask(f"PUT {PROJECT}", {AUTHOR: True}) == (200, shown)
    assert service.changes() == [True]
    assert service.ask(f"PUT {GROUP}", {AUTHOR: True}) == (200, FRESH_GROUP)
    assert service.ask(f"GET {PROJECT}") == (200, entries(AUTHOR, COMMITTER, OVERRIDES))


@BOTH
def test_a_project_keeps_attributes_that_are_not_sent(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"PUT {PROJECT}", {AUTHOR: True})[0] == 200
    assert service.ask(f"PUT {PROJECT}", {COMMITTER: "false"}) == (200, entries(AUTHOR, OVERRIDES))
    assert service.ask(f"PUT {PROJECT}", {COMMITTER: False}) == (200, entries(AUTHOR, OVERRIDES))
    assert service.changes() == [True, True, False]


@BOTH
def test_a_group_that_requires_authentication_requires_it_in_its_projects(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, acme={SETTINGS: {AGAIN: True}}))
    assert service.ask(f"GET {PROJECT}") == (200, entries(COMMITTER, OVERRIDES, AGAIN, **{AGAIN: "group"}))


@BOTH
def test_the_instance_locks_groups_and_projects(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"][SETTINGS] = {COMMITTER: False}
    service.given(state)
    assert service.ask(f"GET {GROUP}") == (200, entries(AUTHOR, OVERRIDES, RETAIN, **{COMMITTER: "instance"}))
    assert service.ask(f"GET {PROJECT}") == (200, entries(OVERRIDES, **{COMMITTER: "instance"}))


def test_by_the_spec_every_group_above_may_lock_in_production_only_the_root(service: SandboxClient) -> None:
    team = {SETTINGS: {COMMITTER: False}}
    service.given(a_service(team=team))
    assert service.ask(f"GET {LIB}") == (200, entries(OVERRIDES, **{COMMITTER: "group"}))
    service.given(a_service("deployed", team=team))
    assert service.ask(f"GET {LIB}") == (200, FRESH_PROJECT)


@BOTH
def test_a_subgroup_has_no_settings(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert [service.ask(f"{method} {TEAM}") for method in ("GET", "PUT")] == [FORBIDDEN, FORBIDDEN]


@BOTH
def test_groups_are_for_owners_and_projects_for_maintainers(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, acme={"members": [{"user": "max", "role": "maintainer"}]}))
    assert service.ask(f"GET {GROUP}", user="max") == FORBIDDEN
    assert service.ask(f"PUT {GROUP}", {"nothing": 1}, user="max") == FORBIDDEN
    assert service.ask(f"GET {PROJECT}", user="dev") == FORBIDDEN
    assert service.ask(f"PUT {PROJECT}", {AUTHOR: 45}, user="dev") == FORBIDDEN
    assert service.ask(f"GET {GROUP}", user="eve") == (404, {"message": "404 Group Not Found"})
    assert service.ask(f"GET {PROJECT}", user="eve") == (404, {"message": "404 Project Not Found"})
    assert service.ask(f"GET {GROUP}", user="root") == (200, FRESH_GROUP)


def test_by_the_spec_a_put_needs_no_attribute(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask(f"PUT {GROUP}") == (200, FRESH_GROUP)
    assert service.ask(f"PUT {PROJECT}", {}) == (200, FRESH_PROJECT)
    assert service.changes() == [False, False]


def test_in_production_a_put_needs_one(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    body = {"error": f"{', '.join(NAMES)} are missing, at least one parameter must be provided"}
    assert service.ask(f"PUT {GROUP}") == (400, body)
    assert service.ask(f"PUT {PROJECT}", {"unknown": True}) == (400, body)


@pytest.mark.parametrize(
    ("dialect", "value", "body"),
    [
        ("spec", None, {"message": {AUTHOR: ["is empty"]}}),
        ("spec", 45, {"message": {AUTHOR: ["is invalid"]}}),
        ("deployed", "", {"error": f"{AUTHOR} is empty"}),
        ("deployed", "maybe", {"error": f"{AUTHOR} is invalid"}),
    ],
)
def test_an_invalid_boolean_is_refused(service: SandboxClient, dialect: str, value: Any, body: Any) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"PUT {PROJECT}", {AUTHOR: value}) == (400, body)


def test_the_password_is_ignored_by_the_spec(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask(f"PUT {PROJECT}", {PASSWORD: True}) == (200, FRESH_PROJECT)
    assert service.ask(f"PUT {PROJECT}", {AGAIN: True}) == (200, entries(COMMITTER, OVERRIDES, AGAIN))


def test_in_production_the_password_mirrors_the_other_name_which_wins(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    with_it, without = entries(COMMITTER, OVERRIDES, AGAIN), FRESH_PROJECT
    assert service.ask(f"PUT {PROJECT}", {PASSWORD: True}) == (200, with_it)
    assert service.ask(f"PUT {PROJECT}", {PASSWORD: True, AGAIN: False}) == (200, without)


def test_by_the_spec_selective_removals_need_retain_off(service: SandboxClient) -> None:
    service.given(a_service())
    refused = (400, {"message": {SELECTIVE: [f"can only be enabled when {RETAIN} is disabled"]}})
    assert service.ask(f"PUT {PROJECT}", {SELECTIVE: True}) == (200, entries(COMMITTER, OVERRIDES, SELECTIVE))
    assert service.ask(f"PUT {PROJECT}", {RETAIN: True}) == refused
    both = entries(COMMITTER, OVERRIDES, RETAIN)
    assert service.ask(f"PUT {PROJECT}", {RETAIN: True, SELECTIVE: False}) == (200, both)
    assert service.ask(f"PUT {GROUP}", {RETAIN: True, SELECTIVE: True}) == refused


def test_by_the_spec_a_group_may_enforce_selective_removals(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask(f"PUT {GROUP}", {SELECTIVE: True}) == (200, entries(SELECTIVE))
    locks = {AUTHOR: "group", COMMITTER: "group", OVERRIDES: "group", RETAIN: "group", SELECTIVE: "group"}
    assert service.ask(f"GET {PROJECT}") == (200, entries(SELECTIVE, **locks))


def test_in_production_selective_removals_need_retain_on(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    refused = (400, {"message": f"{SELECTIVE} can only be enabled when {RETAIN} is enabled"})
    assert service.ask(f"PUT {PROJECT}", {SELECTIVE: True}) == refused
    both = (200, entries(COMMITTER, OVERRIDES, RETAIN, SELECTIVE))
    assert service.ask(f"PUT {PROJECT}", {RETAIN: True, SELECTIVE: True}) == both
    assert service.ask(f"PUT {PROJECT}", {RETAIN: False}) == refused
    neither = (200, FRESH_PROJECT)
    assert service.ask(f"PUT {PROJECT}", {RETAIN: False, SELECTIVE: False}) == neither


def test_in_production_selective_removals_are_not_for_groups(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    assert service.ask(f"PUT {GROUP}", {SELECTIVE: True}) == (200, FRESH_GROUP)
    assert service.changes() == [False]
    assert service.ask(f"PUT {GROUP}", {SELECTIVE: True, RETAIN: True}) == (200, entries(RETAIN))
    assert service.ask(f"PUT {GROUP}", {SELECTIVE: True}) == (200, entries(RETAIN))
    assert service.ask(f"PUT {GROUP}", {RETAIN: False}) == (200, entries(**{SELECTIVE: "group"}))


def test_in_production_retain_is_read_through_the_root_group_and_selective_through_the_direct_one(
    service: SandboxClient,
) -> None:
    own = {SETTINGS: {RETAIN: True, SELECTIVE: True}}
    service.given(a_service("deployed", acme={SETTINGS: {RETAIN: False}}, lib=own, web=own))
    locks = {RETAIN: "group", SELECTIVE: "group"}
    refused = (400, {"message": f"{SELECTIVE} can only be enabled when {RETAIN} is enabled"})
    assert service.ask(f"GET {LIB}") == (200, entries(COMMITTER, OVERRIDES, **locks))
    assert service.ask(f"PUT {LIB}", {AUTHOR: True}) == refused
    assert service.ask(f"PUT {LIB}", {RETAIN: True, SELECTIVE: True}) == (
        200,
        entries(COMMITTER, OVERRIDES, **locks),
    )
    assert service.ask(f"PUT {LIB}", {SELECTIVE: False})[0] == 200
    assert service.ask(f"PUT {LIB}", {AUTHOR: True}) == (200, entries(AUTHOR, COMMITTER, OVERRIDES, **locks))
    assert service.ask(f"PUT {PROJECT}", {AUTHOR: True}) == (200, entries(AUTHOR, COMMITTER, OVERRIDES, **locks))


def test_a_project_in_a_personal_namespace_inherits_from_nobody(service: SandboxClient) -> None:
    state = a_service("deployed", acme={SETTINGS: {AUTHOR: False}})
    state["projects"].append({"id": 103, "path": "ada/own", SETTINGS: {PASSWORD: True}})
    service.given(state)
    own = "/projects/ada%2Fown/merge_request_approval_setting"
    assert service.ask(f"GET {own}") == (200, entries(COMMITTER, OVERRIDES, AGAIN))
    shown = (200, entries(COMMITTER, OVERRIDES, RETAIN, SELECTIVE, AGAIN))
    assert service.ask(f"PUT {own}", {RETAIN: True, SELECTIVE: True}) == shown


@BOTH
def test_the_free_edition_of_production_has_no_such_endpoint(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["version"] = "18.9.0"
    service.given(state)
    unknown = (404, {"error": "404 Not Found"})
    expected = [unknown, unknown] if dialect == "deployed" else [(200, FRESH_GROUP), (200, FRESH_PROJECT)]
    assert [service.ask(f"GET {GROUP}"), service.ask(f"GET {PROJECT}")] == expected


@BOTH
def test_without_a_licence_there_are_none(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["licensed"] = False
    service.given(state)
    assert service.ask(f"GET {GROUP}") == service.ask(f"GET {PROJECT}") == FORBIDDEN
