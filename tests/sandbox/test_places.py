"""Groups and projects that are made, changed, archived and deleted; most answers are compared with recorded ones too."""

from typing import Any

import pytest

from .sandbox_client import Answer, SandboxClient, a_service

TAKEN = ["has already been taken"]


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect."""
    return service.given(a_service(dialect))


def unsaved(reason: str) -> Answer:
    return 400, {"message": f"Failed to save group {{{reason}}}"}


def test_the_life_of_a_group(acme: SandboxClient) -> None:
    status, made = acme.ask("POST /groups", {"name": "New", "path": "New", "parent_id": 10, "description": "d"})
    assert (status, made["id"], made["full_path"], made["full_name"]) == (201, 13, "acme/New", "acme / New")
    assert (made["visibility"], made["description"]) == ("private", "d")
    assert acme.ask("POST /groups/13/milestones", {"title": "first"})[1]["iid"] == 1
    status, changed = acme.ask("PUT /groups/13", {"path": "newer", "name": "Newer"})
    assert (status, changed["full_path"], changed["name"]) == (200, "acme/newer", "Newer")
    above = "public is not allowed since the parent group has a private visibility."
    assert acme.ask("PUT /groups/13", {"visibility": "public"}) == (400, {"message": {"visibility_level": [above]}})
    assert acme.ask("GET /groups/acme%2Fnew")[0] == 404
    assert acme.ask("POST /groups/acme%2Fnewer/milestones", {"title": "second"})[1]["iid"] == 2
    assert acme.ask("PUT /groups/13", {"name": "Newer"})[0] == 200
    assert acme.ask("PUT /groups/13", {"path": "Web"}) == (400, {"message": {"path": TAKEN}})
    assert acme.ask("DELETE /groups/13?permanently_remove=true") == (
        400,
        {"message": "Group must be marked for deletion first."},
    )
    assert acme.ask("DELETE /groups/13") == (202, {"message": "202 Accepted"})
    waiting = acme.ask("GET /groups/13")[1]
    assert waiting["marked_for_deletion_on"] == "2026-03-01"
    assert waiting["full_path"] == "acme/newer-deletion_scheduled-13"
    assert acme.ask("DELETE /groups/13") == (400, {"message": "Group has already been marked for deletion"})
    assert acme.ask("DELETE /groups/13?permanently_remove=true&full_path=acme/newer") == (
        400,
        {"message": "`full_path` is incorrect. You must enter the complete path for the subgroup."},
    )
    assert acme.ask(f"DELETE /groups/13?permanently_remove=true&full_path={waiting['full_path']}")[0] == 202
    assert acme.ask("GET /groups/13")[0] == 404
    assert acme.changes()[-6:] == [True, False, False, False, True, False]


def test_a_group_that_cannot_be_made(acme: SandboxClient) -> None:
    def post(user: str = "ada", **values: Any) -> Answer:
        return acme.ask("POST /groups", {"name": "x", "path": "xx", **values}, user=user)

    assert post(path="team", name="team", parent_id=10) == unsaved(
        ':name=>["has already been taken"], :path=>["has already been taken"]'
    )
    assert post(path="ACME", name="acme") == unsaved(':path=>["has already been taken"]')
    assert post(path="raw") == unsaved(':path=>["raw is a reserved name"]')
    assert post(path="x") == unsaved(':path=>["is too short (minimum is 2 characters)"]')
    assert [("Cannot start" in post(path=path)[1]["message"]) for path in ("a b", "-a", "a.git")] == [True] * 3
    assert post(parent_id=10, visibility="public") == unsaved(
        ':visibility_level=>["public is not allowed since the parent group has a private visibility."]'
    )
    assert post(parent_id=99) == (404, {"message": "404 Group Not Found"})
    assert post(parent_id=12) == (404, {"message": "404 Group Not Found"})
    assert post("dev", parent_id=10)[0] == 403
    assert post("dev")[0] == 201
    person = {"name": "n", "username": "nobody", "email": "n@example.com", "reset_password": True}
    number = acme.ask("POST /users", {**person, "can_create_group": False}, user="root")[1]["id"]
    token = {"name": "t", "scopes": ["api"]}
    value = acme.ask(f"POST /users/{number}/personal_access_tokens", token, user="root")[1]["token"]
    new = {"name": "y", "path": "yy"}
    assert acme.ask("POST /groups", new, user=None, PRIVATE_TOKEN=value) == (403, {"message": "403 Forbidden"})
    assert acme.ask("DELETE /groups/far?permanently_remove=1", user="eve") == (
        400,
        {"message": "`permanently_remove` option is only available for subgroups."},
    )


def test_a_project_may_begin_with_a_commit(acme: SandboxClient) -> None:
    sent = {"name": "app", "namespace_id": 10, "initialize_with_readme": True, "default_branch": "trunk"}
    assert acme.ask("POST /projects", sent)[1]["default_branch"] == "trunk"
    assert [each["name"] for each in acme.ask("GET /projects/103/repository/branches")[1]] == ["trunk"]
    assert acme.ask("GET /projects/103/repository/files/README.md?ref=trunk")[0] == 200


def test_the_life_of_a_project(acme: SandboxClient) -> None:
    status, made = acme.ask("POST /projects", {"name": "Big App!", "namespace_id": 10, "visibility": "public"})
    assert (status, made["id"], made["path_with_namespace"]) == (201, 103, "acme/big-app")
    assert made["visibility"] == "private"
    switches = {"issues_access_level": "disabled", "builds_access_level": "private"}
    status, changed = acme.ask("PUT /projects/103", {"path": "app", **switches})
    assert (status, changed["path_with_namespace"], changed["issues_enabled"]) == (200, "acme/app", False)
    assert changed["jobs_enabled"] is True
    off = acme.ask("PUT /projects/103", {"packages_enabled": False, "repository_access_level": "disabled"})[1]
    assert (off["package_registry_access_level"], off["repository_access_level"]) == ("disabled", "disabled")
    assert "default_branch" not in off
    on = {"package_registry_access_level": "enabled", "repository_access_level": "enabled"}
    assert acme.ask("PUT /projects/103", on)[1]["packages_enabled"] is True
    assert acme.response("GET /projects/acme%2Fbig-app").headers["location"].endswith("/projects/103")
    assert acme.ask("POST /projects/103/archive")[1]["archived"] is True
    assert acme.ask("POST /projects/103/archive") == (400, {"message": "Project is already archived."})
    assert acme.ask("POST /projects/103/unarchive")[1]["archived"] is False
    assert acme.ask("PUT /projects/103", {})[0] == 400
    assert acme.ask("PUT /projects/100", {"path": "else"}, user="max")[0] == 403
    assert acme.ask("PUT /projects/103", {"name": "web"}) == (
        400,
        {"message": {"project_namespace.name": TAKEN, "name": TAKEN}},
    )
    assert acme.ask("PATCH /projects/100/job_token_scope", {"enabled": True})[0] == 204
    assert acme.ask("POST /projects/100/job_token_scope/allowlist", {"target_project_id": 103})[0] == 201
    assert acme.ask("DELETE /projects/103")[0] == 202
    path = "acme/app-deletion_scheduled-103"
    assert acme.ask("GET /projects/103")[1]["path_with_namespace"] == path
    assert acme.ask(f"DELETE /projects/103?permanently_remove=true&full_path={path}")[0] == 202
    assert acme.ask("GET /projects/103")[0] == acme.ask("GET /projects/acme%2Fbig-app")[0] == 404
    listed = acme.ask("GET /projects/100/job_token_scope/allowlist")[1]
    assert 103 not in [each["id"] for each in listed]


def test_a_project_of_ones_own_and_projects_that_cannot_be_made(acme: SandboxClient) -> None:
    assert acme.ask("POST /projects", {"path": "mine"}, user="dev")[1]["path_with_namespace"] == "dev/mine"
    own = acme.ask("GET /namespaces/dev", user="dev")[1]["id"]
    for user, slug in (("dev", "too"), ("root", "given")):
        made = acme.ask("POST /projects", {"path": slug, "namespace_id": own}, user=user)[1]
        assert made["path_with_namespace"] == f"dev/{slug}"
    assert acme.ask("POST /projects", {"path": "x", "namespace_id": 99})[0] == 400
    assert acme.ask("POST /projects", {"path": "team", "name": "t", "namespace_id": 10}) == (
        400,
        {"message": {"path": TAKEN}},
    )
    malformed = acme.ask("POST /projects", {"path": "a b", "namespace_id": 10})[1]["message"]
    assert malformed["path"][1].endswith("Cannot start with '-', end in '.git' or end in '.atom'")
    reserved = ["builds is a reserved name"]
    assert acme.ask("POST /projects", {"path": "builds", "namespace_id": 10}) == (
        400,
        {"message": {"project_namespace.path": reserved, "path": reserved}},
    )
    for user, namespace in (("gus", 10), ("dev", 12), ("gus", own)):
        refused = acme.ask("POST /projects", {"path": "x", "namespace_id": namespace}, user=user)
        assert refused == (400, {"message": {"namespace": ["is not valid"]}})


def test_a_group_that_moves_takes_all_below_with_it(acme: SandboxClient) -> None:
    assert acme.ask("PUT /groups/acme", {"path": "Emca"})[0] == 200
    assert acme.ask("GET /groups/emca%2Fteam")[1]["full_path"] == "Emca/team"
    assert acme.response("GET /projects/acme%2Fteam%2Flib").headers["location"].endswith("/projects/101")
    assert acme.ask("DELETE /groups/emca") == (202, {"message": "202 Accepted"})
    assert acme.ask("GET /projects/101")[1]["path_with_namespace"] == "Emca-deletion_scheduled-10/team/lib"


def test_milestones_of_a_group_know_those_below(acme: SandboxClient) -> None:
    assert acme.ask("POST /projects/101/milestones", {"title": "low"})[0] == 201
    assert acme.ask("POST /groups/acme/milestones", {"title": "low"})[0] == 400
    assert acme.ask("POST /groups/acme/milestones", {"title": "high"})[0] == 201
    assert acme.ask("POST /groups/11/milestones", {"title": "high"})[0] == 400

    def titles(query: str) -> list[str]:
        return [each["title"] for each in acme.ask(f"GET /groups/{query}")[1]]

    assert titles("acme/milestones") == ["high"]
    assert titles("acme/milestones?include_descendants=true") == ["high", "low"]
    assert titles("11/milestones?include_ancestors=true") == ["high"]
    assert acme.ask("GET /groups/acme/milestones", user="eve")[0] == 404


def test_a_project_moves_to_another_namespace_and_is_found_at_its_old_path(acme: SandboxClient) -> None:
    def move(namespace: object, user: str = "ada") -> Answer:
        return acme.ask("PUT /projects/100/transfer", {"namespace": namespace}, user=user)

    def failed(reason: str) -> Answer:
        return 400, {"message": f'Failed to transfer project ["{reason}"]'}

    assert move("nowhere") == (404, {"message": "404 Namespace Not Found"})
    assert move("acme/team", "max")[0] == 403
    assert move("far") == failed("You don't have permission to transfer projects into that namespace.")
    assert move("acme") == failed("Project is already in this namespace.")
    assert acme.ask("PUT /projects/101", {"path": "web"})[0] == 200
    assert move("acme/team") == failed("Project with same name or path in target namespace already exists")
    assert acme.ask("PUT /projects/101", {"path": "lib"})[0] == 200
    status, moved = move("11")
    assert (status, moved["id"], moved["path_with_namespace"]) == (200, 100, "acme/team/web")
    assert acme.response("GET /projects/acme%2Fweb").status_code == 301
    assert move("ada")[1]["path_with_namespace"] == "ada/web"


def test_a_first_branch_becomes_the_default_one_of_an_empty_project(acme: SandboxClient) -> None:
    made = acme.ask("POST /projects", {"name": "begun", "namespace_id": 10})[1]
    url = f"/projects/{made['id']}"
    commit = {"branch": "trunk", "commit_message": "x", "actions": [{"action": "create", "file_path": "a"}]}
    assert acme.ask(f"POST {url}/repository/commits", commit)[0] == 201
    shown = acme.ask(f"GET {url}")[1]
    assert (made["empty_repo"], shown["empty_repo"], shown["default_branch"]) == (True, False, "trunk")
    assert [rule["name"] for rule in acme.ask(f"GET {url}/protected_branches")[1]] == ["trunk"]


def test_another_branch_becomes_the_default_one_and_no_rule_changes(acme: SandboxClient) -> None:
    made = acme.ask("POST /projects", {"name": "begun", "namespace_id": 10, "initialize_with_readme": True})[1]
    url = f"/projects/{made['id']}"
    actions = [{"action": "create", "file_path": "a"}]
    commit = {"branch": "trunk", "start_branch": "main", "commit_message": "x", "actions": actions}
    assert acme.ask(f"POST {url}/repository/commits", commit)[0] == 201
    for branch in ("nowhere", ""):
        message = f"Could not change HEAD: branch '{branch}' does not exist"
        assert acme.ask(f"PUT {url}", {"default_branch": branch}) == (400, {"message": {"base": [message]}})
    for sent, shown in (("trunk", "trunk"), (None, "trunk"), ("main", "main"), ("trunk", "trunk")):
        status, changed = acme.ask(f"PUT {url}", {"default_branch": sent})
        assert (status, changed["default_branch"]) == (200, shown)
    assert [rule["name"] for rule in acme.ask(f"GET {url}/protected_branches")[1]] == ["main"]


def test_any_branch_may_be_the_default_one_where_the_state_has_no_commits(acme: SandboxClient) -> None:
    assert acme.ask("PUT /projects/100", {"default_branch": "next"}, user="dev")[0] == 403
    assert acme.ask("PUT /projects/100", {"default_branch": "next"})[1]["default_branch"] == "next"
    made = acme.ask("POST /projects", {"name": "empty", "namespace_id": 10})[1]
    status, answer = acme.ask(f"PUT /projects/{made['id']}", {"default_branch": "abc"})
    assert (status, answer) == (400, {"message": {"base": ["Could not change HEAD: branch 'abc' does not exist"]}})


def test_guests_of_a_private_project_do_not_see_its_default_branch(acme: SandboxClient) -> None:
    seen = []
    for user in ("gus", "pia", "dev", "root"):
        (listed,) = [
            each for each in acme.ask("GET /groups/10/projects?simple=true", user=user)[1] if each["id"] == 100
        ]
        seen.append((listed.get("default_branch"), acme.ask("GET /projects/100", user=user)[1].get("default_branch")))
    assert seen == [(None, None), (None, None), ("main", "main"), ("main", "main")]
