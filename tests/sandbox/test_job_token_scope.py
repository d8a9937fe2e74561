"""The job token scope: spec section 4.2, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import HOST, WEB, SandboxClient, a_service

SCOPE = "/projects/100/job_token_scope"
LIST, GROUPS = f"{SCOPE}/allowlist", f"{SCOPE}/groups_allowlist"
FORBIDDEN = (403, {"message": "403 Forbidden"})
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])


def bad(text: str) -> tuple[int, dict[str, str]]:
    """The answer to a request that cannot be carried out."""
    return 400, {"message": f"400 Bad request - {text}"}


def listed(service: SandboxClient) -> list[int]:
    """The IDs on the project's list."""
    return [entry["id"] for entry in service.ask(f"GET {LIST}")[1]]


@BOTH
def test_the_switch_is_on_until_it_is_switched_off(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    for enabled in (True, False, True, True):
        assert service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": enabled}) == (204, None)
        shown = {"inbound_enabled": enabled, "outbound_enabled": False}
        assert service.ask(f"GET {WEB}/job_token_scope") == (200, shown)
    assert service.changes()[::2] == [False, True, True, False]


@BOTH
def test_what_the_instance_enforces_cannot_be_switched_off(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect, web={"job_token_scope": {"inbound_enabled": False, "outbound_enabled": True}})
    state["instance"]["enforce_job_token_allowlist"] = True
    service.given(state)
    assert service.ask(f"GET {SCOPE}") == (200, {"inbound_enabled": True, "outbound_enabled": True})
    assert service.ask(f"PATCH {SCOPE}", {"enabled": False}) == bad(
        "Job token scope cannot be disabled for this project because it is enforced for the instance. "
        "Contact your administrator to modify this setting."
    )
    assert service.ask(f"PATCH {SCOPE}", {"enabled": True}) == (204, None)


def test_production_enforces_the_allowlist_by_default(service: SandboxClient) -> None:
    state = a_service("deployed")
    del state["instance"]["enforce_job_token_allowlist"]
    service.given(state)
    assert service.ask(f"PATCH {SCOPE}", {"enabled": False})[0] == 400
    state["instance"]["dialect"] = "spec"
    service.given(state)
    assert service.ask(f"PATCH {SCOPE}", {"enabled": False})[0] == 204


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("dialect", "sent", "body"),
    [
        ("spec", {}, {"message": '400 (Bad request) "enabled" not given'}),
        ("spec", {"enabled": None}, {"message": {"enabled": ["is empty"]}}),
        ("spec", {"enabled": 123}, {"message": {"enabled": ["is invalid"]}}),
        ("deployed", {}, {"error": "enabled is missing, enabled is empty"}),
        ("deployed", {"enabled": None}, {"error": "enabled is empty"}),
        ("deployed", {"enabled": 123}, {"error": "enabled is invalid"}),
    ],
)
def test_the_switch_must_be_true_or_false(service: SandboxClient, dialect: str, sent: Any, body: Any) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"PATCH {SCOPE}", sent) == (400, body)


def test_an_allowlisted_project_is_a_limited_record(service: SandboxClient) -> None:
    service.given(a_service(web={"job_token_scope": {"project_allowlist": [101]}}))
    assert service.ask(f"GET {LIST}") == (200, [LIB])


def test_in_production_the_list_always_holds_the_project_itself(service: SandboxClient) -> None:
    public = {"visibility": "public", "job_token_scope": {"project_allowlist": [101]}}
    service.given(a_service("deployed", web=public))
    status, (web, lib) = service.ask(f"GET {LIST}")
    times = {"created_at": "2026-01-01T00:00:00.000Z", "last_activity_at": "2026-01-01T00:00:00.000Z"}
    expected = {**LIB, **times, "visibility": "private"}
    del expected["default_branch"]
    assert (status, lib) == (200, expected)
    assert (web["id"], web["default_branch"], web["visibility"]) == (100, "main", "public")
    service.given(a_service("deployed", web={"repository_enabled": False}))
    status, (web,) = service.ask(f"GET {LIST}")
    assert (status, "default_branch" in web) == (200, False)


@BOTH
def test_a_project_is_added_and_removed(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    own = [100] if dialect == "deployed" else []
    added = (201, {"source_project_id": 100, "target_project_id": 101})
    assert service.ask(f"POST {LIST}", {"target_project_id": 101}) == added
    assert listed(service) == [*own, 101]
    assert service.ask(f"DELETE {LIST}/101") == (204, None)
    assert listed(service) == own
    assert service.ask(f"DELETE {LIST}/101") == bad("Target project is not in the job token scope")


@BOTH
def test_a_group_is_added_and_removed(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    added = (201, {"source_project_id": 100, "target_group_id": 11})
    assert service.ask(f"POST {GROUPS}", {"target_group_id": "11"}) == added
    shown = {"id": 11, "web_url": f"{HOST}/groups/acme/team", "name": "team"}
    assert service.ask(f"GET {GROUPS}") == (200, [shown])
    assert service.ask(f"DELETE {GROUPS}/11") == (204, None)
    assert service.ask(f"GET {GROUPS}") == (200, [])
    assert service.ask(f"DELETE {GROUPS}/11") == bad("Target group is not in the job token scope")


def test_a_duplicate_entry_is_a_conflict_in_the_spec_and_a_bad_request_in_production(
    service: SandboxClient,
) -> None:
    web = {"job_token_scope": {"project_allowlist": [101], "group_allowlist": [10]}}
    service.given(a_service(web=web))
    project, group = (
        "This project is already in the job token allowlist.",
        "This group is already in the job token allowlist.",
    )
    conflict = [(409, {"message": f"409 Conflict: {text}"}) for text in (project, group)]
    again = [("POST " + LIST, {"target_project_id": 101}), ("POST " + GROUPS, {"target_group_id": 10})]
    assert [service.ask(*each) for each in again] == conflict
    service.given(a_service("deployed", web=web))
    assert [service.ask(*each) for each in again] == [bad(project), bad(group)]


@BOTH
def test_the_project_itself_may_be_added_and_never_removed(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"POST {LIST}", {"target_project_id": 100})[0] == 201
    assert listed(service) == ([100, 100] if dialect == "deployed" else [100])
    refused = bad("Source project cannot be removed from the job token scope")
    assert service.ask(f"DELETE {LIST}/100") == refused


@BOTH
def test_what_does_not_exist_or_cannot_be_seen_cannot_be_added(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    hidden = "that you are attempting to access does not exist or you don't have permission to perform this action"
    assert service.ask(f"POST {LIST}", {"target_project_id": 999}) == (
        404,
        {"message": "404 target_project_id not found Not Found"},
    )
    assert service.ask(f"POST {LIST}", {"target_project_id": 102}) == bad(f"The target_project {hidden}")
    assert service.ask(f"POST {GROUPS}", {"target_group_id": 999}) == (
        404,
        {"message": "404 target_group_id not found Not Found"},
    )
    assert service.ask(f"POST {GROUPS}", {"target_group_id": 12}) == bad(f"The target_group {hidden}")


@BOTH
def test_an_entry_that_cannot_be_seen_stays_if_a_project_and_goes_if_a_group(
    service: SandboxClient, dialect: str
) -> None:
    web = {"job_token_scope": {"project_allowlist": [102], "group_allowlist": [12]}}
    service.given(a_service(dialect, web=web))
    assert service.ask(f"DELETE {LIST}/102") == (404, {"message": "404 Project Not Found"})
    assert service.ask(f"DELETE {GROUPS}/12") == (204, None)
    gone = {"message": "404 target_group_id not found Not Found"}
    assert service.ask(f"DELETE {GROUPS}/999") == (404, gone)


@BOTH
def test_only_maintainers_reach_the_scope(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    for line in (f"GET {SCOPE}", f"GET {LIST}", f"GET {GROUPS}"):
        assert service.ask(line, user="dev") == FORBIDDEN
    assert service.ask(f"PATCH {SCOPE}", {"enabled": True}, user="dev") == FORBIDDEN
    assert service.ask(f"POST {LIST}", {"target_project_id": 100}, user="dev") == FORBIDDEN
    assert service.ask(f"POST {GROUPS}", {"target_group_id": 10}, user="dev") == FORBIDDEN
    missing = (403, {"message": "403 Forbidden - Insufficient permissions to modify the job token scope"})
    assert service.ask(f"DELETE {LIST}/100", user="dev") == missing
    assert service.ask(f"DELETE {GROUPS}/10", user="dev") == missing
    assert service.ask(f"GET {SCOPE}", user="max")[0] == 200
    assert service.ask(f"GET {SCOPE}", user="eve") == (404, {"message": "404 Project Not Found"})


def test_parameters_are_checked_before_the_role_and_targets_too(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask(f"POST {LIST}", {}, user="dev")[0] == 400
    assert service.ask(f"DELETE {LIST}/999", user="dev")[0] == 404
    assert service.ask(f"DELETE {GROUPS}/999", user="dev")[0] == 404
    assert service.ask(f"DELETE {LIST}/x", user="dev") == (400, {"message": {"target_project_id": ["is invalid"]}})


def test_a_project_is_named_by_its_path_by_the_spec_and_by_its_id_alone_in_production(service: SandboxClient) -> None:
    lines = [
        (f"POST {WEB}/job_token_scope/allowlist", {"target_project_id": 101}),
        (f"DELETE {WEB}/job_token_scope/allowlist/101", None),
        (f"POST {WEB}/job_token_scope/groups_allowlist", {"target_group_id": 10}),
        (f"DELETE {WEB}/job_token_scope/groups_allowlist/10", None),
    ]
    service.given(a_service())
    assert [service.ask(*line)[0] for line in lines] == [201, 204, 201, 204]
    service.given(a_service("deployed"))
    assert [service.ask(*line) for line in lines] == [(400, {"error": "id is invalid"})] * 4


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({}, "target_project_id is missing, target_project_id is empty"),
        ({"target_project_id": None}, "target_project_id is empty"),
        ({"target_project_id": ""}, "target_project_id is empty"),
        ({"target_project_id": "12.34"}, "target_project_id is invalid"),
        ({"target_project_id": "twelve"}, "target_project_id is invalid"),
        ({"target_project_id": True}, "target_project_id is invalid"),
        ({"target_project_id": [1]}, "target_project_id is invalid"),
    ],
)
def test_a_target_must_be_a_whole_number(service: SandboxClient, sent: Any, error: str) -> None:
    service.given(a_service("deployed"))
    assert service.ask(f"POST {LIST}", sent) == (400, {"error": error})


def test_the_fraction_of_a_number_is_cut_off(service: SandboxClient) -> None:
    service.given(a_service())
    made = {"source_project_id": 100, "target_project_id": 101}
    assert service.ask(f"POST {LIST}", {"target_project_id": 101.9}) == (201, made)


@pytest.mark.parametrize(("sent", "enabled"), [(1, True), (0, False), ("Off", False), ("YES", True)])
def test_the_switch_takes_ones_noughts_and_words(service: SandboxClient, sent: Any, enabled: bool) -> None:
    service.given(a_service("deployed", web={"job_token_scope": {"inbound_enabled": not enabled}}))
    assert service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": sent}) == (204, None)
    assert service.ask(f"GET {WEB}/job_token_scope")[1]["inbound_enabled"] is enabled
    assert service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": 123}) == (400, {"error": "enabled is invalid"})


def test_a_list_holds_two_hundred(service: SandboxClient) -> None:
    web = {"job_token_scope": {"project_allowlist": list(range(1000, 1200))}}
    service.given(a_service(web=web))
    assert service.ask(f"POST {LIST}", {"target_project_id": 101}) == bad(
        "Validation failed: Source project exceeds the allowable number of project links in this direction"
    )


LIB: dict[str, Any] = {
    "id": 101,
    "description": None,
    "name": "lib",
    "name_with_namespace": "acme / team / lib",
    "path": "lib",
    "path_with_namespace": "acme/team/lib",
    "created_at": "2026-01-01T00:00:00Z",
    "last_activity_at": "2026-01-01T00:00:00Z",
    "default_branch": "main",
    "tag_list": [],
    "topics": [],
    "ssh_url_to_repo": "git@host.test:acme/team/lib.git",
    "http_url_to_repo": f"{HOST}/acme/team/lib.git",
    "web_url": f"{HOST}/acme/team/lib",
    "avatar_url": None,
    "star_count": 0,
    "namespace": {
        "id": 11,
        "name": "team",
        "path": "team",
        "kind": "group",
        "full_path": "acme/team",
        "parent_id": 10,
        "avatar_url": None,
        "web_url": f"{HOST}/groups/acme/team",
    },
}
