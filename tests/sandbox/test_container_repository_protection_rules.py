"""Container repository protection rules: spec section 4.18, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import WEB, SandboxClient, a_service

RULES = f"{WEB}/registry/protection/repository/rules"
SECTION = "container_repository_protection_rules"
PATTERN, PUSH, DELETE = (
    "repository_path_pattern",
    "minimum_access_level_for_push",
    "minimum_access_level_for_delete",
)
NO_LEVEL = "A rule requires at least the Maintainer role for either push or delete."
INVALID = "Repository path pattern should be a valid container repository path with optional wildcard characters."
ELSEWHERE = "Repository path pattern should start with the project's full path"
TAKEN = "Repository path pattern has already been taken"
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
ONE = {SECTION: [{"id": 7, PATTERN: "acme/web/a*", PUSH: "owner"}]}


def rule(number: int, pattern: str, push: str | None, delete: str | None = None) -> dict[str, Any]:
    """The record of a rule."""
    return {"id": number, "project_id": 100, PATTERN: pattern, PUSH: push, DELETE: delete}


def unprocessable(*reasons: str) -> tuple[int, dict[str, Any]]:
    """The answer to an invalid rule."""
    return 422, {"message": {"error": list(reasons)}}


@BOTH
def test_a_rule_lives(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"GET {RULES}") == (200, [])
    made = rule(1, "acme/web/prod*", "maintainer")
    assert service.ask(f"POST {RULES}", {PATTERN: "acme/web/prod*", PUSH: "maintainer"}) == (201, made)
    changed = rule(1, "acme/web/prod*", "maintainer", "admin")
    assert service.ask(f"PATCH {RULES}/1", {DELETE: "admin"}) == (200, changed)
    unset = rule(1, "acme/web/p*", None, "admin")
    assert service.ask(f"PATCH {RULES}/1", {PUSH: "", PATTERN: "acme/web/p*"}) == (200, unset)
    assert service.ask(f"PATCH {RULES}/1", {PUSH: None}) == (200, unset)
    assert service.ask(f"GET {RULES}") == (200, [unset])
    assert service.ask(f"DELETE {RULES}/1") == (204, None)
    assert service.ask(f"GET {RULES}") == (200, [])
    assert service.changes() == [False, True, True, True, False, False, True, False]


@BOTH
def test_a_pattern_is_taken_once_in_a_project(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    assert service.ask(f"POST {RULES}", {PATTERN: "acme/web/a*", PUSH: "admin"}) == unprocessable(TAKEN)
    service.ask(f"POST {RULES}", {PATTERN: "acme/web/b*", PUSH: "admin"})
    assert service.ask(f"PATCH {RULES}/8", {PATTERN: "acme/web/a*"}) == unprocessable(TAKEN)


@BOTH
def test_one_of_the_levels_must_remain(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    assert service.ask(f"PATCH {RULES}/7", {PUSH: ""}) == unprocessable(NO_LEVEL)
    sent = {PATTERN: "acme/web/b*", PUSH: None, DELETE: None}
    assert service.ask(f"POST {RULES}", sent) == unprocessable(NO_LEVEL)
    assert service.changes() == [False, False]


@pytest.mark.parametrize(
    ("dialect", "pattern", "reasons"),
    [
        ("spec", "", ["Repository path pattern can't be blank"]),
        ("spec", "with blank", [INVALID]),
        ("spec", "x" * 256, ["Repository path pattern is too long (maximum is 255 characters)"]),
        ("deployed", "", ["Repository path pattern can't be blank", INVALID, ELSEWHERE]),
        *(("spec", pattern, [INVALID]) for pattern in ("acme/web/a-", "acme/web/a--", "-a", "a//b", "a___b")),
        *(("deployed", f"acme/web/{pattern}", [INVALID]) for pattern in ("a-", "a--", "a//b")),
        ("deployed", "*", [INVALID, ELSEWHERE]),
        ("deployed", "acme/web/Prod", [INVALID]),
        ("deployed", "acme/web//x", [INVALID]),
        ("deployed", "acme/api", [ELSEWHERE]),
        (
            "deployed",
            "x" * 256,
            ["Repository path pattern is too long (maximum is 255 characters)", ELSEWHERE],
        ),
    ],
)
def test_an_invalid_pattern_is_unprocessable(
    service: SandboxClient, dialect: str, pattern: str, reasons: list[str]
) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"POST {RULES}", {PATTERN: pattern, PUSH: "owner"}) == unprocessable(*reasons)


def test_by_the_spec_a_pattern_may_be_any_wildcard(service: SandboxClient) -> None:
    service.given(a_service())
    for pattern in ("*", "Acme/Web/*", "elsewhere/*-x_y.z"):
        assert service.ask(f"POST {RULES}", {PATTERN: pattern, PUSH: "owner"})[0] == 201


def test_in_production_a_longer_name_may_begin_with_the_projects(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    for pattern in ("acme/web2/x", "acme/web__a-b.c/*"):
        assert service.ask(f"POST {RULES}", {PATTERN: pattern, PUSH: "owner"})[0] == 201


def test_an_old_pattern_stays_valid_until_it_is_changed(service: SandboxClient) -> None:
    old = {SECTION: [{"id": 7, PATTERN: "acme/old-name/*", PUSH: "owner"}]}
    service.given(a_service("deployed", web=old))
    changed = rule(7, "acme/old-name/*", "admin")
    assert service.ask(f"PATCH {RULES}/7", {PUSH: "admin", PATTERN: "acme/old-name/*"}) == (200, changed)
    assert service.ask(f"PATCH {RULES}/7", {PATTERN: "acme/older/*"}) == unprocessable(ELSEWHERE)


NEITHER = f"{PUSH}, {DELETE}"


@pytest.mark.parametrize(
    ("dialect", "sent", "body"),
    [
        ("spec", {PUSH: "owner"}, {"message": f'400 (Bad request) "{PATTERN}" not given'}),
        ("spec", {PATTERN: "x"}, {"message": f'400 (Bad request) "{NEITHER}" not given, at least one is needed'}),
        ("spec", {PATTERN: "x", PUSH: "guest"}, {"message": {PUSH: ["does not have a valid value"]}}),
        ("spec", {PATTERN: "x", PUSH: ""}, {"message": {PUSH: ["does not have a valid value"]}}),
        ("spec", {PATTERN: {}, PUSH: "owner"}, {"message": {PATTERN: ["is invalid"]}}),
        ("deployed", {PUSH: "owner"}, {"error": f"{PATTERN} is missing"}),
        (
            "deployed",
            {PATTERN: "x"},
            {"error": f"{NEITHER} are missing, at least one parameter must be provided"},
        ),
        ("deployed", {PATTERN: "x", DELETE: "x"}, {"error": f"{DELETE} does not have a valid value"}),
    ],
)
def test_attributes_are_checked(service: SandboxClient, dialect: str, sent: Any, body: Any) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"POST {RULES}", sent) == (400, body)


def test_a_rule_is_found_by_its_number_in_its_own_project(service: SandboxClient) -> None:
    service.given(a_service(web=ONE))
    assert service.ask(f"DELETE {RULES}/8") == (404, {"message": "404 Not found"})
    elsewhere = "/projects/101/registry/protection/repository/rules/7"
    assert service.ask(f"PATCH {elsewhere}", {}) == (404, {"message": "404 Not found"})
    invalid = {"message": {"protection_rule_id": ["is invalid"]}}
    assert service.ask(f"PATCH {RULES}/seven", {}) == (400, invalid)


def test_rules_are_listed_in_pages_in_the_spec_and_at_once_in_production(service: SandboxClient) -> None:
    rules = {SECTION: [{PATTERN: f"acme/web/{number}", PUSH: "owner"} for number in range(25)]}
    service.given(a_service(web=rules))
    response = service.response(f"GET {RULES}?page=2")
    assert (len(response.json()), response.headers["x-total"]) == (5, "25")
    service.given(a_service("deployed", web=rules))
    response = service.response(f"GET {RULES}?page=2&per_page=2")
    paging = [name for name in response.headers if name.startswith("x-") and name != "x-request-id"]
    assert (len(response.json()), paging) == (25, [])


@BOTH
@pytest.mark.parametrize("off", [{"archived": True}, {"container_registry_enabled": False}])
def test_archived_or_without_a_registry_there_are_no_rules(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    service.given(a_service(dialect, web={**ONE, **off}))
    for line in (f"GET {RULES}", f"PATCH {RULES}/7", f"DELETE {RULES}/7"):
        assert service.ask(line) == (403, {"message": "403 Forbidden"})


@BOTH
def test_rules_are_for_maintainers(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=ONE))
    assert service.ask(f"GET {RULES}", user="max")[0] == 200
    assert service.ask(f"GET {RULES}", user="dev") == (403, {"message": "403 Forbidden"})
    assert service.ask(f"GET {RULES}", user="eve") == (404, {"message": "404 Project Not Found"})


def test_without_a_token_the_spec_asks_for_it_first_and_production_for_the_parameters(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask(f"POST {RULES}", {}, user=None) == (401, {"message": "401 Unauthorized"})
    service.given(a_service("deployed"))
    assert service.ask(f"POST {RULES}", {PUSH: "owner"}, user=None) == (400, {"error": f"{PATTERN} is missing"})
    sent = {PATTERN: "acme/web/*", PUSH: "owner"}
    assert service.ask(f"POST {RULES}", sent, user=None) == (401, {"message": "401 Unauthorized"})


def test_what_has_changed_since_is_not_touched_by_the_spec_and_not_deleted_in_production(
    service: SandboxClient,
) -> None:
    long_ago = "Thu, 01 Jan 1970 00:00:00 GMT"
    denied = (412, {"message": "412 Precondition Failed"})
    service.given(a_service(web=ONE))
    assert service.ask(f"PATCH {RULES}/7", {PUSH: "admin"}, If_Unmodified_Since=long_ago) == denied
    assert service.ask(f"DELETE {RULES}/7", If_Unmodified_Since=long_ago) == denied
    service.given(a_service("deployed", web=ONE))
    assert service.ask(f"PATCH {RULES}/7", {PUSH: "admin"}, If_Unmodified_Since=long_ago)[0] == 200
    assert service.ask(f"DELETE {RULES}/7", If_Unmodified_Since=long_ago) == denied
    assert service.ask(f"DELETE {RULES}/7", If_Unmodified_Since="whenever")[0] == 204


def test_a_rule_unmodified_since_the_header_is_deleted(service: SandboxClient) -> None:
    service.given(a_service(web=ONE))
    assert service.ask(f"DELETE {RULES}/7", If_Unmodified_Since="Thu, 01 Jan 2026 00:00:00 GMT") == (204, None)
