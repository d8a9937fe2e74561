"""Protected branches of projects and groups, as production has them; most answers are compared with recorded ones too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .sandbox_client import WEB, Answer, SandboxClient, a_service

RULES = f"{WEB}/protected_branches"
GROUPS = "/groups/acme/protected_branches"
FORBIDDEN = (403, {"message": "403 Forbidden"})
NOT_FOUND = (404, {"message": "404 Not found"})


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect."""
    return service.given(a_service(dialect))


def levels(record: dict[str, Any], sort: str) -> list[Any]:
    """Return what the entries of a list name: a role, or a user, group or key with its number."""
    return [
        next(
            (f"{word} {entry[f'{word}_id']}" for word in ("user", "group", "deploy_key") if entry.get(f"{word}_id")),
            entry["access_level"],
        )
        for entry in record[f"{sort}_access_levels"]
    ]


def summary(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return the name of a rule with its three lists."""
    return record["name"], *(levels(record, sort) for sort in ("push", "merge", "unprotect"))


def listed(service: SandboxClient, path: str = RULES, **who: Any) -> list[tuple[Any, ...]]:
    return [summary(each) for each in service.ask(f"GET {path}", **who)[1]]


def entry(number: int, level: int, name: str, *, key: bool = False) -> dict[str, Any]:
    """The record of a role."""
    more = {"deploy_key_id": None} if key else {}
    record = {"id": number, "access_level": level, "access_level_description": name, **more}
    return {**record, "user_id": None, "group_id": None}


def post(service: SandboxClient, name: str, *, user: str = "max", path: str = RULES, **sent: Any) -> Answer:
    return service.ask(f"POST {path}", {"name": name, **sent}, user=user)


def patch(service: SandboxClient, name: str, *, user: str = "max", path: str = RULES, **sent: Any) -> Answer:
    return service.ask(f"PATCH {path}/{name}", sent, user=user)


def test_a_rule_that_one_makes_can_be_changed_by_maintainers(acme: SandboxClient) -> None:
    made = {
        "id": 1,
        "name": "release/*",
        "push_access_levels": [entry(1, 40, "Maintainers", key=True)],
        "merge_access_levels": [entry(1, 40, "Maintainers")],
        "unprotect_access_levels": [entry(1, 40, "Maintainers")],
        "allow_force_push": False,
        "code_owner_approval_required": False,
        "inherited": False,
    }
    assert post(acme, "release/*") == (201, made)
    assert acme.ask(f"GET {RULES}/release%2F%2A", user="pia") == (200, made)
    assert patch(acme, "release%2F%2A", allow_force_push=True) == (200, {**made, "allow_force_push": True})
    assert patch(acme, "release%2F%2A", push_access_level=0)[1]["push_access_levels"] == made["push_access_levels"]
    assert acme.ask(f"DELETE {RULES}/release%2F%2A", user="max") == (204, None)
    assert acme.ask(f"DELETE {RULES}/release%2F%2A", user="max") == NOT_FOUND
    assert acme.changes() == [True, False, True, False, True, False]


def test_roles(acme: SandboxClient) -> None:
    assert post(acme, "x", user="dev") == FORBIDDEN
    assert [acme.ask(f"GET {RULES}", user=user)[0] for user in ("gus", "pia", "dev", "eve")] == [403, 200, 200, 404]
    assert post(acme, "x", user="eve") == (404, {"message": "404 Project Not Found"})
    assert post(acme, "x", user="max", path=GROUPS) == FORBIDDEN
    assert acme.ask(f"GET {GROUPS}", user="max") == FORBIDDEN


@pytest.mark.parametrize("visibility", ["private", "public"])
def test_without_a_token_production_shows_what_is_public(service: SandboxClient, dialect: str, visibility: str) -> None:
    section = {"protected_branches": [{"name": "main"}]}
    service.given(a_service(dialect, web={"visibility": visibility, **section}, acme={"visibility": visibility}))
    answers = [
        service.ask(line, {"name": "x"}, user=None)[0] for line in (f"GET {RULES}", f"POST {RULES}", f"GET {GROUPS}")
    ]
    if dialect == "spec":
        assert answers == [401, 401, 401]
    else:
        assert answers == ([200, 403, 403] if visibility == "public" else [404, 404, 404])


def test_entries_that_are_given_twice_are_kept_twice_and_no_entry_is_one_for_maintainers(acme: SandboxClient) -> None:
    twice = post(acme, "a", push_access_level=30, allowed_to_push=[{"access_level": 30}, {"access_level": 0}])
    assert (twice[0], levels(twice[1], "push")) == (201, [30, 30, 0])
    assert summary(post(acme, "b", allowed_to_push=[], allowed_to_merge=[{}])[1]) == ("b", [40], [40], [40])
    person = post(acme, "c", allowed_to_push=[{"user_id": 6, "access_level": 30}])[1]["push_access_levels"][0]
    assert (person["access_level"], person["access_level_description"]) == (30, "Gus")


@pytest.mark.untraced
def test_a_change_adds_entries_and_removes_those_with_an_id(acme: SandboxClient) -> None:
    post(acme, "a", allowed_to_push=[{"access_level": 30}, {"user_id": 4}])
    taken = (422, {"message": ["Push access levels access level has already been taken"]})
    assert patch(acme, "a", allowed_to_push=[{"access_level": 30}]) == taken
    assert patch(acme, "a", allowed_to_push=[{"id": 1, "_destroy": True}, {"access_level": 30}]) == taken
    assert patch(acme, "a", allowed_to_push=[{"id": 99, "_destroy": True}, {"access_level": 0}]) == NOT_FOUND
    assert levels(acme.ask(f"GET {RULES}/a")[1], "push") == [30, "user 4"]
    swapped = patch(acme, "a", allowed_to_push=[{"id": 1, "_destroy": True}, {"access_level": 40}])
    assert (swapped[0], levels(swapped[1], "push")) == (200, ["user 4", 40])
    assert levels(patch(acme, "a", allowed_to_push=[{"id": 2, "user_id": 3}])[1], "push") == ["user 3", 40]
    changed = patch(acme, "a", allowed_to_push=[{"id": 2, "user_id": None, "access_level": 0}])
    assert levels(changed[1], "push") == [0, 40]
    assert patch(acme, "a", allowed_to_push=[{"_destroy": True, "access_level": 0}])[1] == changed[1]
    assert patch(acme, "a", allowed_to_push=[])[1] == changed[1]
    both = [{"id": each["id"], "_destroy": True} for each in changed[1]["push_access_levels"]]
    assert levels(patch(acme, "a", allowed_to_push=both)[1], "push") == []
    assert patch(acme, "a", unprotect_access_level=40) == (
        422,
        {"message": ["Unprotect access levels access level has already been taken"]},
    )
    assert levels(patch(acme, "a", unprotect_access_level=60)[1], "unprotect") == [40, 60]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"allowed_to_push": [{"user_id": 7}]}, "Push access levels user is not a member of the project"),
        ({"allowed_to_merge": [{"user_id": 99}]}, "Merge access levels user can't be blank"),
        ({"allowed_to_push": [{"group_id": 10}]}, "Push access levels group does not have access to the project"),
        ({"allowed_to_push": [{"deploy_key_id": 9}]}, "Push access levels deploy key can't be blank"),
        ({"allowed_to_push": [{"deploy_key_id": 1}]}, "Push access levels deploy key is not enabled for this project"),
    ],
)
def test_an_entry_must_name_a_member_an_invited_group_or_a_key_that_writes(
    service: SandboxClient, dialect: str, sent: dict[str, Any], answer: str
) -> None:
    service.given(a_service(dialect, web={"enabled_deploy_keys": [{"title": "reader"}]}))
    assert post(service, "a", **sent) == (422, {"message": [answer]})
    post(service, "a")
    assert patch(service, "a", **sent) == (422, {"message": [answer]})
    assert service.changes() == [False, True, False]


def test_what_an_entry_names_takes_it_along_but_not_the_right_to_unprotect(
    service: SandboxClient, dialect: str
) -> None:
    keys = [{"title": "writer", "can_push": True}]
    service.given(a_service(dialect, web={"enabled_deploy_keys": keys, "invited_groups": [A_GROUP]}))
    entries = [{"user_id": 4}, {"group_id": 12}, {"deploy_key_id": 1}]
    made = post(service, "a", allowed_to_push=entries, allowed_to_unprotect=[{"user_id": 4}, {"user_id": 3}])[1]
    assert summary(made) == ("a", ["user 4", "group 12", "deploy_key 1"], [40], ["user 4", "user 3"])
    assert [each["access_level_description"] for each in made["push_access_levels"]] == ["Dev", "far", "writer"]
    service.ask(f"PUT {WEB}/deploy_keys/1", {"can_push": False})
    assert listed(service)[0][1] == ["user 4", "group 12", "deploy_key 1"]
    service.ask(f"DELETE {WEB}/members/4")
    service.ask(f"DELETE {WEB}/share/12")
    service.ask(f"DELETE {WEB}/deploy_keys/1")
    assert listed(service)[0][1:] == ([], [40], ["user 4", "user 3"])
    service.ask("DELETE /users/4", user="root")
    assert listed(service)[0][3] == ["user 3"]


A_GROUP = {"group_id": 12, "role": "developer"}


def test_a_key_in_the_list_to_merge_is_an_entry_for_maintainers(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web={"enabled_deploy_keys": [{"title": "writer", "can_push": True}]}))
    made = post(service, "a", allowed_to_merge=[{"access_level": 30}, {"deploy_key_id": 1}])
    assert levels(made[1], "merge") == [30, 40]


@pytest.mark.untraced
def test_names_are_taken_as_they_are_and_one_is_taken_once(acme: SandboxClient) -> None:
    names = ["main", "Main", " main ", "*", "a b", "-x", "x..y", "refs/heads/main", "ü" * 300]
    assert [post(acme, name)[0] for name in names] == [201] * len(names)
    assert post(acme, "main") == (409, {"message": "Protected branch 'main' already exists"})
    for blank in ("", " ", None):
        assert post(acme, blank) == (422, {"message": ["Name can't be blank"]})  # type: ignore[arg-type]  # as sent
    assert acme.ask(f"GET {RULES}/*")[1]["name"] == "*"
    assert acme.ask(f"GET {RULES}/MAIN") == NOT_FOUND
    searched = {name: len(listed(acme, f"{RULES}?search={name}")) for name in ("MAIN", "ai", "-x", "a b", '"a b"')}
    assert searched == {"MAIN": 4, "ai": 0, "-x": 1, "a b": 1, '"a b"': 1}


def test_six_creations_at_once_are_six_rules_of_one_name(acme: SandboxClient) -> None:
    acme.sandbox.set_faults(["race,method=POST,together=6"])
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: post(acme, "race")[0], range(6)))
    acme.sandbox.set_faults(())
    assert answers == [201] * 6
    ids = [each["id"] for each in acme.ask(f"GET {RULES}")[1]]
    assert acme.ask(f"GET {RULES}/race")[1]["id"] == ids[0]
    assert acme.ask(f"DELETE {RULES}/race")[0] == 204
    assert acme.ask(f"GET {RULES}/race")[1]["id"] == ids[1]


def test_only_those_whom_a_rule_names_may_change_it(acme: SandboxClient) -> None:
    assert post(acme, "a", allowed_to_unprotect=[{"user_id": 2}]) == FORBIDDEN
    assert post(acme, "a", unprotect_access_level=60) == FORBIDDEN
    assert post(acme, "a", allowed_to_unprotect=[{"user_id": 3}])[0] == 201
    for user in ("ada", "root"):
        assert patch(acme, "a", user=user, allow_force_push=True) == FORBIDDEN
        assert acme.ask(f"DELETE {RULES}/a", user=user) == FORBIDDEN
    assert patch(acme, "a", allow_force_push=True)[0] == 200
    assert post(acme, "b", user="root") == FORBIDDEN
    assert post(acme, "b", user="root", unprotect_access_level=60)[0] == 201
    assert post(acme, "c", user="ada")[0] == 201


def test_a_group_may_be_named_too(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web={"invited_groups": [{"group_id": 12, "role": "maintainer"}]}))
    made = post(service, "a", user="eve", allowed_to_unprotect=[{"group_id": 12}])
    assert levels(made[1], "unprotect") == ["group 12"]
    assert patch(service, "a", allow_force_push=True) == FORBIDDEN
    assert patch(service, "a", user="eve", allow_force_push=True)[0] == 200


def test_a_rule_may_be_locked_for_everybody(acme: SandboxClient) -> None:
    made = post(acme, "a", allowed_to_unprotect=[{"user_id": 3}, {"user_id": 4}])[1]
    acme.ask(f"PUT {WEB}/members/4", {"access_level": 40})
    own = made["unprotect_access_levels"][0]["id"]
    assert levels(patch(acme, "a", allowed_to_unprotect=[{"id": own, "_destroy": True}])[1], "unprotect") == ["user 4"]
    acme.ask(f"DELETE {WEB}/members/4")
    for user in ("max", "ada", "root"):
        assert patch(acme, "a", user=user, allow_force_push=True) == FORBIDDEN
        assert acme.ask(f"DELETE {RULES}/a", user=user) == FORBIDDEN
    acme.ask(f"POST {WEB}/members", {"user_id": 4, "access_level": 10})
    assert acme.ask(f"DELETE {RULES}/a", user="dev") == FORBIDDEN
    acme.ask(f"PUT {WEB}/members/4", {"access_level": 40})
    assert acme.ask(f"DELETE {RULES}/a", user="dev")[0] == 204


@pytest.mark.untraced
@pytest.mark.parametrize("off", [{"archived": True}, {"repository_enabled": False}])
def test_where_nobody_may_push_a_role_may_change_nothing(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    rules = [
        {"name": "role", "unprotect_access_levels": [{"access_level": 40}]},
        {"name": "user", "unprotect_access_levels": [{"user": "max"}]},
        {"name": "main"},
    ]
    service.given(a_service(dialect, web={"protected_branches": rules, **off}))
    assert service.ask(f"GET {RULES}")[0] == (200 if "archived" in off else 403)
    changed = [patch(service, name, allow_force_push=True)[0] for name in ("role", "user", "main", "none")]
    assert changed == [403, 200, 200, 404]
    assert post(service, "new") == FORBIDDEN
    assert post(service, "new", allowed_to_unprotect=[{"user_id": 3}])[0] == 201
    assert service.ask(f"DELETE {RULES}/role", user="max") == FORBIDDEN
    assert service.ask(f"DELETE {RULES}/main", user="max")[0] == 204


def test_attributes_are_checked(acme: SandboxClient, dialect: str) -> None:
    no_value = "does not have a valid value"

    def invalid(*wrong: tuple[str, str]) -> Answer:
        if dialect == "spec":
            return 400, {"message": {wrong[0][0]: [wrong[0][1]]}}
        return 400, {"error": ", ".join(f"{name} {reason}" for name, reason in wrong)}

    missing = '400 (Bad request) "name" not given'
    nothing = {"message": missing} if dialect == "spec" else {"error": "name is missing"}
    assert acme.ask(f"POST {RULES}", {}) == (400, nothing)
    assert post(acme, "x", push_access_level=50) == invalid(("push_access_level", no_value))
    words = [("push_access_level", "is invalid"), ("push_access_level", no_value)]
    assert post(acme, "x", push_access_level="all") == invalid(*words)
    assert post(acme, "x", unprotect_access_level=0) == invalid(("unprotect_access_level", no_value))
    nested = invalid(("allowed_to_push[access_level]", no_value))
    assert post(acme, "x", allowed_to_push=[{"access_level": 50}]) == nested
    assert post(acme, "x", allowed_to_push="all") == invalid(("allowed_to_push", "is invalid"))
    assert post(acme, "x", allow_force_push=None)[1]["allow_force_push"] is False
    for blank in (None, ""):
        assert patch(acme, "x", allow_force_push=blank) == invalid(("allow_force_push", "is empty"))
    assert patch(acme, "x", code_owner_approval_required=None) == (500, {"message": "500 Internal Server Error"})
    assert acme.ask(f"PUT {RULES}/x", {})[0] == (404 if dialect == "deployed" else 405)


def test_what_has_changed_since_is_not_deleted(acme: SandboxClient) -> None:
    long_ago = "Thu, 01 Jan 1970 00:00:00 GMT"
    post(acme, "a")
    assert acme.ask(f"DELETE {RULES}/a", user="max", If_Unmodified_Since=long_ago)[0] == 412
    post(acme, "a", user="ada", path=GROUPS)
    assert acme.ask(f"DELETE {GROUPS}/a", If_Unmodified_Since=long_ago)[0] == 200


def test_the_default_branch_is_protected_by_the_service(acme: SandboxClient) -> None:
    sent = {"name": "app", "namespace_id": 10, "initialize_with_readme": True}
    acme.ask("POST /projects", sent)
    assert listed(acme, "/projects/103/protected_branches") == [("main", [40], [40], [])]
    assert post(acme, "main", user="ada", path="/projects/103/protected_branches")[0] == 409
    acme.ask("POST /projects", {"name": "empty", "namespace_id": 10})
    assert listed(acme, "/projects/104/protected_branches") == []
    first = {
        "branch": "main",
        "commit_message": "m",
        "actions": [{"action": "create", "file_path": "f", "content": ""}],
    }
    assert acme.ask("POST /projects/104/repository/commits", first)[0] == 201
    assert listed(acme, "/projects/104/protected_branches") == [("main", [40], [40], [])]


def test_the_rule_of_the_default_branch_may_come_late(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["default_branch_protection_looks"] = 2
    service.given(state)
    for name in ("app", "lib"):
        service.ask("POST /projects", {"name": name, "namespace_id": 10, "initialize_with_readme": True})
    looks = [len(listed(service, "/projects/103/protected_branches")) for _ in range(4)]
    assert looks == [0, 0, 1, 1]
    assert service.ask("GET /projects/104/protected_branches/main") == NOT_FOUND
    assert post(service, "main", user="ada", path="/projects/104/protected_branches", push_access_level=0)[0] == 201
    pushers = [listed(service, "/projects/104/protected_branches")[0][1] for _ in range(3)]
    assert pushers == [[0], [0], [0]]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("defaults", "rule"),
    [
        ({"allowed_to_push": [{"access_level": 0}], "allow_force_push": True}, [("main", [0], [40], [])]),
        ({"allowed_to_push": [{"access_level": 30}], "allow_force_push": True}, [("main", [30], [40], [])]),
        (
            {
                "allowed_to_push": [{"access_level": 30}],
                "allowed_to_merge": [{"access_level": 30}],
                "allow_force_push": True,
            },
            [],
        ),
    ],
)
def test_the_group_says_how_default_branches_are_protected(
    acme: SandboxClient, defaults: dict[str, Any], rule: list[Any]
) -> None:
    assert acme.ask("PUT /groups/10", {"default_branch_protection_defaults": defaults})[0] == 200
    acme.ask("POST /projects", {"name": "app", "namespace_id": 10, "initialize_with_readme": True})
    assert listed(acme, "/projects/103/protected_branches") == rule


def test_a_rule_of_the_group_takes_the_place_of_that_of_the_default_branch(acme: SandboxClient) -> None:
    post(acme, "ma*", user="ada", path=GROUPS)
    acme.ask("POST /projects", {"name": "app", "namespace_id": 11, "initialize_with_readme": True})
    (rule,) = acme.ask("GET /projects/103/protected_branches")[1]
    assert (rule["name"], rule["inherited"]) == ("ma*", True)


def test_a_personal_project_has_rules_too(acme: SandboxClient) -> None:
    acme.ask("POST /projects", {"name": "own", "initialize_with_readme": True})
    assert listed(acme, "/projects/103/protected_branches") == [("main", [40], [40], [])]


def test_a_groups_rule_is_found_by_a_part_of_its_name(acme: SandboxClient) -> None:
    assert post(acme, "maintenance", user="ada", path=GROUPS)[0] == 201
    assert acme.ask(f"GET {GROUPS}/main")[1]["name"] == "maintenance"
    for name in ("main", "MAINT"):
        conflict = (409, {"message": f"Protected branch '{name}' already exists"})
        assert post(acme, name, user="ada", path=GROUPS) == conflict
    assert acme.ask(f"GET {GROUPS}/ma") == (404, {"message": "404 ProtectedBranch Not Found"})
    renamed = patch(acme, "main", user="ada", path=GROUPS, allow_force_push=True)
    assert (renamed[0], renamed[1]["name"], "inherited" in renamed[1]) == (200, "main", False)
    assert patch(acme, "main", user="ada", path=GROUPS, allow_force_push=None)[0] == 500


def test_a_groups_rule_that_is_deleted_twice_takes_another_along(acme: SandboxClient) -> None:
    for name in ("main", "mainline"):
        assert post(acme, name, user="ada", path=GROUPS)[0] == 201
    assert summary(acme.ask(f"DELETE {GROUPS}/main")[1]) == ("main", [], [], [])
    assert summary(acme.ask(f"DELETE {GROUPS}/main")[1]) == ("mainline", [], [], [])
    assert acme.ask(f"DELETE {GROUPS}/main") == (404, {"message": "404 ProtectedBranch Not Found"})


def test_words_of_a_name_that_are_short_do_not_count(acme: SandboxClient) -> None:
    post(acme, "release 10", user="ada", path=GROUPS)
    assert acme.ask(f"GET {GROUPS}/99%20rel")[1]["name"] == "release 10"
    assert acme.ask(f"GET {GROUPS}/%22lease%201%22")[1]["name"] == "release 10"
    assert acme.ask(f"GET {GROUPS}/%22release%2099%22")[0] == 404


def test_a_groups_rules_are_for_roles_and_for_top_level_groups(acme: SandboxClient) -> None:
    for word, number in (("user", 2), ("group", 12)):
        refusal = (422, {"message": [f"Push access levels {word} must be blank"]})
        assert post(acme, "a", user="ada", path=GROUPS, allowed_to_push=[{f"{word}_id": number}]) == refusal
    assert post(acme, "a", user="ada", path="/groups/11/protected_branches") == (
        422,
        {"message": ["cannot be associated with a subgroup"]},
    )
    assert post(acme, "a", user="ada", path=GROUPS, unprotect_access_level=60)[0] == 201
    both = patch(acme, "a", user="ada", path=GROUPS, unprotect_access_level=40)[1]
    assert levels(both, "unprotect") == [60, 40]
    assert listed(acme, "/groups/11/protected_branches") == []
    assert listed(acme, GROUPS, user="root") == listed(acme, GROUPS)


def test_a_project_shows_its_groups_rules_and_cannot_touch_them(acme: SandboxClient) -> None:
    post(acme, "a", user="ada", path=GROUPS)
    post(acme, "b", user="ada", path=GROUPS)
    assert [each["inherited"] for each in acme.ask("GET /projects/101/protected_branches")[1]] == [True, True]
    for line in (f"GET {RULES}/a", f"PATCH {RULES}/a", f"DELETE {RULES}/a"):
        assert acme.ask(line, {}) == NOT_FOUND
    assert post(acme, "a")[0] == 201
    own = [(each["name"], each["inherited"]) for each in acme.ask(f"GET {RULES}")[1]]
    assert own == [("a", True), ("b", True), ("a", False)]


def test_without_a_licence_there_are_roles_only(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["licensed"] = False
    service.given(state)
    refusal = (422, {"message": ["Unprotect access levels user must be blank"]})
    assert post(service, "a", allowed_to_unprotect=[{"user_id": 3}]) == refusal
    made = post(service, "a", unprotect_access_level=60, code_owner_approval_required=True)
    assert (made[0], made[1]["code_owner_approval_required"]) == (201, False)
    changed = patch(service, "a", allow_force_push=True, code_owner_approval_required=True)
    assert (changed[0], changed[1]["code_owner_approval_required"]) == (200, False)
    assert post(service, "a", user="ada", path=GROUPS)[0] == 201


def test_the_free_builds_show_less(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["version"] = "18.9.0"
    service.given(state)
    made = post(service, "a")[1]
    assert made.keys() == {"id", "name", "push_access_levels", "merge_access_levels", "allow_force_push"}
    assert made["merge_access_levels"] == [{"id": 1, "access_level": 40, "access_level_description": "Maintainers"}]


def test_a_rule_says_who_may_push(acme: SandboxClient) -> None:
    first = {
        "branch": "main",
        "commit_message": "m",
        "actions": [{"action": "create", "file_path": "f", "content": ""}],
    }
    assert acme.ask(f"POST {WEB}/repository/commits", first)[0] == 201
    for name, level in (("release/*", 40), ("release/2*", 30), ("none", 0)):
        post(acme, name, push_access_level=level)

    def branch(name: str, user: str) -> int:
        return acme.ask(f"POST {WEB}/repository/branches", {"branch": name, "ref": "main"}, user=user)[0]

    assert [branch(name, "dev") for name in ("free", "release/1", "release/2")] == [201, 403, 201]
    assert [branch("none", "ada"), branch("release/1", "root")] == [403, 201]
    shown = {each["name"]: each["protected"] for each in acme.ask(f"GET {WEB}/repository/branches")[1]}
    assert shown == {"main": True, "free": False, "release/1": True, "release/2": True}


def test_a_state_with_rules_is_dumped_and_loads_again(service: SandboxClient, dialect: str) -> None:
    entries = [{"access_level": 0}, {"user": "gone"}, {"group_id": 12}, {"deploy_key_id": 1}]
    rules = [
        {"name": "a", "push_access_levels": entries, "unprotect_access_levels": [{"user": "gone"}, {"user": "Gone"}]}
    ]
    service.given(a_service(dialect, web={"protected_branches": rules}))
    before = service.sandbox.state()
    assert service.given(before).sandbox.state() == before
    assert [each["username"] for each in before["users"]][-1] == "gone"
    kept = before["projects"][0]["protected_branches"][0]["push_access_levels"]
    assert [each["id"] for each in kept] == [1, 2, 3, 4]


def test_the_audit_tells_who_changed_what_but_not_who_may_unprotect(acme: SandboxClient) -> None:
    post(acme, "rel/*", allowed_to_push=[{"access_level": 30}])
    patch(acme, "rel%2F%2A", allow_force_push=True, allowed_to_merge=[{"access_level": 30}], unprotect_access_level=60)
    patch(acme, "rel%2F%2A", allowed_to_push=[{"id": 1, "_destroy": True}])
    acme.ask(f"DELETE {RULES}/rel%2F%2A", user="max")
    events = reversed(acme.ask(f"GET {WEB}/audit_events")[1])
    told = [(each["event_name"], each["author_id"], each["details"]["custom_message"]) for each in events]
    added = 'allowed to push: ["Developers + Maintainers"], allowed to merge: ["Maintainers"]'
    flags = "allow force push: false, code owner approval required: false"
    both = '["Maintainers", "Developers + Maintainers"]'
    assert told == [
        ("protected_branch_created", 3, f"Added protected branch with [{added}, {flags}]"),
        ("protected_branch_allow_force_push_updated", 3, "Changed allow force push from false to true"),
        ("protected_branch_updated", 3, f'Changed allowed to merge from ["Maintainers"] to {both}'),
        (
            "protected_branch_updated",
            3,
            'Changed allowed to push and merge from ["Developers + Maintainers"] to []',
        ),
        ("protected_branch_removed", 3, "Unprotected branch"),
    ]
    post(acme, "g", user="ada", path=GROUPS)
    (event,) = acme.ask("GET /groups/acme/audit_events")[1]
    assert (event["entity_type"], event["details"]["target_details"]) == ("Group", "g")
