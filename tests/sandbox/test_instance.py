"""The endpoints with which every client starts."""

from typing import Any

import pytest

from .sandbox_client import CREATED, HOST, WEB, SandboxClient, a_service
from .test_job_token_scope import LIB
from .test_trigger_tokens import user

BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
DETAILS = {
    "visibility": "private",
    "archived": False,
    "empty_repo": False,
    "repository_access_level": "enabled",
    "package_registry_access_level": "enabled",
    "packages_enabled": True,
    "container_registry_enabled": True,
    "container_registry_access_level": "enabled",
    "builds_access_level": "enabled",
    "jobs_enabled": True,
    "issues_enabled": True,
    "merge_requests_enabled": True,
    "marked_for_deletion_on": None,
    "shared_with_groups": [],
}


def ids(service: SandboxClient, query: str, **asked: Any) -> list[int]:
    """The IDs of a group's projects."""
    return [each["id"] for each in service.ask(f"GET /groups/acme/projects{query}", **asked)[1]]


def test_the_user_is_the_one_behind_the_token(service: SandboxClient) -> None:
    service.given(a_service())
    own = {
        **user(2, "ada"),
        "created_at": CREATED,
        "email": "ada@example.com",
        "commit_email": "ada@example.com",
        "bot": False,
        "two_factor_enabled": False,
        "external": False,
    }
    assert service.ask("GET /user") == (200, own)
    assert service.ask("GET /user", user="root")[1]["is_admin"]


def test_the_version_is_the_instances(service: SandboxClient) -> None:
    state = a_service()
    state["instance"] |= {"version": "17.0.1", "revision": "abc"}
    service.given(state)
    kas = {"enabled": False, "externalUrl": None, "externalK8sProxyUrl": None, "version": None}
    shown = {"version": "17.0.1", "revision": "abc", "kas": kas, "enterprise": False}
    assert service.ask("GET /version") == (200, shown)
    assert service.ask("GET /version", user=None) == (401, {"message": "401 Unauthorized"})


def test_a_token_describes_itself(service: SandboxClient) -> None:
    state = a_service()
    state["users"][1]["tokens"] = [{"token": "ada-token", "scopes": ["read_api"], "expires_at": "2026-12-31"}]
    service.given(state)
    shown = {
        "id": 2,
        "name": "ada 1",
        "revoked": False,
        "created_at": CREATED,
        "description": None,
        "scopes": ["read_api"],
        "user_id": 2,
        "last_used_at": None,
        "active": True,
        "expires_at": "2026-12-31",
        "last_used_ips": [],
    }
    assert service.ask("GET /personal_access_tokens/self") == (200, shown)


@BOTH
@pytest.mark.parametrize("kind", ["oauth", "job"])
def test_only_a_personal_token_describes_itself(service: SandboxClient, dialect: str, kind: str) -> None:
    state = a_service(dialect)
    state["users"][1]["tokens"] = [{"token": "ada-token", "kind": kind}]
    service.given(state)
    message = "400 Bad request - This endpoint requires token type to be a personal access token"
    assert service.ask("GET /personal_access_tokens/self") == (400, {"message": message})
    assert service.ask("GET /version")[0] == {"oauth": 200, "job": 401}[kind]


def test_a_bot_says_that_it_is_one(service: SandboxClient) -> None:
    state = a_service()
    state["users"][1]["bot"] = True
    assert service.given(state).ask("GET /user")[1]["bot"]


def test_a_project_is_found_by_id_and_by_path_whatever_its_case(service: SandboxClient) -> None:
    service.given(a_service())
    roles = {"project_access": None, "group_access": {"access_level": 50, "notification_level": 3}}
    assert service.ask("GET /projects/101") == (200, {**LIB, **DETAILS, "permissions": roles})
    assert service.ask("GET /projects/ACME%2FTeam%2Flib") == (200, {**LIB, **DETAILS, "permissions": roles})


def test_a_project_shows_its_switches_and_the_role_of_the_caller(service: SandboxClient) -> None:
    web = {"builds_enabled": False, "container_registry_enabled": False, "topics": ["go"], "description": "Web"}
    service.given(a_service(web=web, acme={"archived": True}))
    shown = service.ask(f"GET {WEB}", user="max")[1]
    assert shown["permissions"] == {
        "project_access": {"access_level": 40, "notification_level": 3},
        "group_access": None,
    }
    assert (shown["topics"], shown["tag_list"], shown["description"]) == (["go"], ["go"], "Web")
    assert (shown["builds_access_level"], shown["container_registry_access_level"]) == ("disabled", "disabled")
    assert shown["archived"]


def test_a_project_in_a_personal_namespace_is_its_users(service: SandboxClient) -> None:
    state = a_service()
    state["projects"] = [{"id": 1, "path": "ada/own"}]
    shown = service.given(state).ask("GET /projects/1")[1]
    namespace = {
        "id": 1_000_000_002,
        "name": "Ada",
        "path": "ada",
        "kind": "user",
        "full_path": "ada",
        "parent_id": None,
        "avatar_url": None,
        "web_url": f"{HOST}/ada",
    }
    assert (shown["namespace"], shown["name_with_namespace"]) == (namespace, "Ada / own")
    for name, key in (("ada", "Ada"), ("root", "1000000002")):
        assert service.ask(f"GET /namespaces/{key}", user=name) == (200, namespace)
    status, group = service.ask("GET /namespaces/acme%2Fteam")
    assert (status, group["id"], group["kind"], group["full_path"], group["parent_id"]) == (
        200,
        11,
        "group",
        "acme/team",
        10,
    )
    for name, key in (("max", "ada"), ("ada", "far"), ("ada", "99"), ("ada", "nowhere")):
        assert service.ask(f"GET /namespaces/{key}", user=name) == (404, {"message": "404 Namespace Not Found"})
    assert service.ask("GET /projects/1/job_token_scope")[0] == 200
    assert service.ask("GET /projects/1", user="max")[0] == 404


@BOTH
def test_who_may_see_what(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web={"visibility": "internal"}, far={"visibility": "public"}))
    anonymous = 200 if dialect == "deployed" else 401
    hidden = 404 if dialect == "deployed" else 401
    seen = {
        name: [service.ask(f"GET /projects/{number}", user=name)[0] for number in (100, 101, 102)]
        for name in ("root", "ada", "max", "eve", None)
    }
    assert seen == {
        "root": [200, 200, 200],
        "ada": [200, 200, 200],
        "max": [200, 404, 200],
        "eve": [200, 404, 200],
        None: [hidden, hidden, anonymous],
    }


def test_a_public_project_shows_little_without_a_token(service: SandboxClient) -> None:
    service.given(a_service("deployed", web={"visibility": "public"}, acme={"visibility": "public"}))
    assert "archived" not in service.ask("GET /projects/100", user=None)[1]
    assert "archived" not in service.ask("GET /groups/acme/projects", user=None)[1][0]


def test_a_member_of_a_project_below_sees_the_group(service: SandboxClient) -> None:
    service.given(a_service(lib={"members": [{"user": "dev", "role": "guest"}]}))
    team = {
        "id": 11,
        "web_url": f"{HOST}/groups/acme/team",
        "name": "team",
        "path": "team",
        "description": None,
        "visibility": "private",
        "avatar_url": None,
        "full_name": "acme / team",
        "full_path": "acme/team",
        "created_at": CREATED,
        "parent_id": 10,
        "archived": False,
        "marked_for_deletion_on": None,
    }
    assert service.ask("GET /groups/Acme%2FTeam", user="dev") == (200, team)
    assert service.ask("GET /groups/10", user="max")[1]["parent_id"] is None
    assert service.ask("GET /groups/acme%2Fteam", user="max") == (404, {"message": "404 Group Not Found"})
    assert service.ask("GET /groups/999") == (404, {"message": "404 Group Not Found"})


def test_a_projects_groups_are_those_above_and_the_invited_ones_if_asked(service: SandboxClient) -> None:
    service.given(a_service(web={"invited_groups": [{"group_id": 12, "role": "developer"}]}))

    def groups(query: str) -> list[str]:
        return [each["full_path"] for each in service.ask(f"GET /projects/100/groups{query}")[1]]

    assert groups("") == groups("?with_shared=false") == ["acme"]
    assert groups("?with_shared=true") == ["acme", "far"]
    assert groups("?with_shared=true&shared_min_access_level=40") == ["acme"]


def test_a_groups_projects_are_listed_newest_first_and_with_its_subgroups_if_asked(service: SandboxClient) -> None:
    state = a_service()
    state["projects"].append({"id": 5, "path": "acme/zoo", "name": "A zoo", "last_activity_at": "2026-02-01"})
    service.given(state)
    assert ids(service, "") == [100, 5]
    assert ids(service, "?include_subgroups=true&with_shared=false") == [101, 100, 5]
    assert ids(service, "?order_by=id&sort=asc") == [5, 100]
    assert ids(service, "?include_subgroups=true&per_page=2&page=2") == [5]


def test_only_what_may_be_seen_is_listed(service: SandboxClient) -> None:
    service.given(a_service())
    assert ids(service, "?include_subgroups=true", user="max") == [100]
    assert service.ask("GET /groups/acme/projects", user="eve") == (404, {"message": "404 Group Not Found"})


def test_archived_projects_are_listed_with_the_others_unless_asked_apart(service: SandboxClient) -> None:
    service.given(a_service(team={"archived": True}))
    query = "?include_subgroups=true"
    assert [ids(service, query + more) for more in ("", "&archived=true", "&archived=false")] == [
        [101, 100],
        [101],
        [100],
    ]


def test_a_project_that_is_to_be_deleted_is_listed_unless_only_active_ones_are_asked_for(
    service: SandboxClient,
) -> None:
    state = a_service()
    state["projects"][0]["marked_for_deletion_on"] = "2026-11-20"
    service.given(state)
    query, doomed = "?include_subgroups=true", state["projects"][0]["id"]
    assert doomed in ids(service, query)
    assert doomed not in ids(service, query + "&archived=false")
    assert doomed not in ids(service, query + "&active=true")
    assert service.ask(f"GET /projects/{doomed}")[1]["marked_for_deletion_on"] == "2026-11-20"
    # what is in a group that is to be deleted is in each list but that of active projects
    assert service.ask("DELETE /groups/acme%2Fteam")[0] == 202
    inside = state["projects"][1]["id"]
    assert service.ask(f"GET /projects/{inside}")[1]["marked_for_deletion_on"] is None
    assert [
        inside in ids(service, query + more) for more in ("", "&archived=false", "&active=true", "&active=false")
    ] == [
        True,
        True,
        False,
        True,
    ]


def test_a_list_shows_whole_records_without_roles_unless_simple_ones_are_asked_for(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("GET /groups/11/projects") == (200, [{**LIB, **DETAILS}])
    assert service.ask("GET /groups/11/projects?simple=true") == (200, [{**LIB, "visibility": "private"}])


def test_an_order_that_is_none_is_refused(service: SandboxClient) -> None:
    service.given(a_service())
    body = {"message": {"order_by": ["does not have a valid value"]}}
    assert service.ask("GET /groups/11/projects?visibility=private")[1][0]["id"] == 101
    assert service.ask("GET /groups/11/projects?visibility=public") == (200, [])
    assert service.ask("GET /groups/acme/projects?order_by=luck") == (400, body)


def test_without_an_address_of_its_own_the_service_is_where_it_was_asked(service: SandboxClient) -> None:
    state = a_service()
    del state["instance"]["url"]
    service.given(state)
    assert service.ask("GET /groups/10")[1]["web_url"] == f"{service.sandbox.base_url}/groups/acme"
