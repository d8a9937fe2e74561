"""Users that are made and deleted, their tokens, members, and how many requests a user may send."""

from typing import Any

import pytest

from .sandbox_client import WEB, Answer, SandboxClient, a_service

NEW = {"email": "zoe@example.com", "name": "Zoe", "username": "zoe", "force_random_password": True}


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect, with `zoe`, whose ID is 8."""
    service.given(a_service(dialect))
    assert service.ask("POST /users", NEW, user="root")[1]["id"] == 8
    return service


def message(status: int, text: str) -> Answer:
    return status, {"message": text}


def test_a_user_is_made_by_administrators_only(acme: SandboxClient) -> None:
    assert acme.ask("POST /users", NEW)[0] == 403
    assert acme.ask("POST /users", NEW, user="root") == message(409, "Email has already been taken")
    for name in ("ZOE", "acme"):
        sent = {**NEW, "email": "z@example.com", "username": name}
        assert acme.ask("POST /users", sent, user="root") == message(409, "Username has already been taken")
    assert acme.ask("GET /users/8")[1]["username"] == "zoe"
    assert acme.ask("GET /users/99") == message(404, "404 User Not Found")


def test_a_token_of_a_user(acme: SandboxClient) -> None:
    def make(user: str = "root", number: int = 8, **values: Any) -> Answer:
        sent = {"name": "t", "scopes": ["api"], **values}
        return acme.ask(f"POST /users/{number}/personal_access_tokens", sent, user=user)

    def speak(made: Answer, line: str = "GET /user") -> Answer:
        return acme.ask(line, user=None, PRIVATE_TOKEN=made[1]["token"])

    made = make()
    assert (made[0], made[1]["user_id"], made[1]["active"]) == (201, 8, True)
    assert speak(made)[1]["username"] == "zoe"
    assert speak(make(scopes="read_api,read_user"), "POST /groups")[1]["error"] == "insufficient_scope"
    expired = make(expires_at="2026-02-28")
    assert (expired[1]["active"], speak(expired)[1]["error"]) == (False, "invalid_token")
    assert make(expires_at="2026-12-24")[1]["expires_at"] == "2026-12-24"
    assert [make(scopes=scopes)[0] for scopes in ([], ["everything"])] == [422, 400]
    assert make(expires_at="soon")[0] == 400
    assert (make("ada")[0], make(number=99)) == (403, message(404, "404 User Not Found"))


@pytest.mark.untraced
def test_members_come_and_go(acme: SandboxClient) -> None:
    def add(place: str, level: int, user: str = "ada", **who: object) -> Answer:
        return acme.ask(f"POST /{place}/members", {"access_level": level, **(who or {"user_id": 8})}, user=user)

    token = acme.ask("POST /users/8/personal_access_tokens", {"name": "t", "scopes": ["api"]}, user="root")[1]["token"]

    def see(line: str) -> int:
        return acme.ask(line, user=None, PRIVATE_TOKEN=token)[0]

    assert see("GET /projects/100") == 404
    assert add("projects/100", 30, "max")[1]["access_level"] == 30
    assert see("GET /projects/100") == 200
    assert add("projects/100", 30, "max") == message(409, "Member already exists")
    assert add("projects/100", 50, "max", username="eve")[0] == 403
    assert add("projects/100", 50, username="EVE")[0] == 201
    assert add("groups/acme", 30, "max")[0] == 403
    assert add("groups/acme", 40)[0] == 201
    reason = "should be greater than or equal to Maintainer inherited membership from group acme"
    assert add("groups/11", 30) == (400, {"message": {"access_level": [reason]}})
    assert add("groups/acme", 30, username="nobody") == message(404, "404 User Not Found")
    assert acme.ask("DELETE /groups/acme/members/8")[0] == acme.ask("DELETE /projects/100/members/8")[0] == 204
    assert see("GET /projects/100") == 404
    assert acme.ask("DELETE /projects/100/members/8") == message(404, "404 Not found")
    assert acme.ask("DELETE /groups/acme/members/2", user="root")[0] == 403
    assert acme.ask("POST /projects/100/members", {"access_level": 30})[0] == 400
    assert acme.ask("DELETE /projects/100/members/99") == message(404, "404 Not found")


def test_members_are_listed_with_those_above_or_without(acme: SandboxClient) -> None:
    def listed(line: str, **who: Any) -> list[tuple[str, int]]:
        return [(each["username"], each["access_level"]) for each in acme.ask(f"GET /{line}", **who)[1]]

    own = [("max", 40), ("dev", 30), ("pia", 15), ("gus", 10)]
    assert listed("projects/100/members") == own
    assert listed("projects/100/members/all", user="gus") == [("ada", 50), *own]
    assert listed("projects/100/members/all?query=MA") == [("max", 40)]
    assert listed("projects/100/members/all?user_ids[]=2&user_ids[]=6") == [("ada", 50), ("gus", 10)]
    assert listed("groups/11/members") == []
    assert listed("groups/11/members/all") == [("ada", 50)]
    assert acme.ask("GET /projects/100/members/2") == message(404, "404 Not found")
    assert acme.ask("GET /projects/100/members/all/2")[1]["access_level"] == 50
    assert acme.ask("GET /projects/100/members/all", user="eve") == message(404, "404 Project Not Found")
    assert acme.ask("PUT /projects/100/members/6", {"access_level": 30}, user="max")[1]["access_level"] == 30
    assert acme.ask("PUT /projects/100/members/6", {"access_level": 50}, user="max")[0] == 403
    assert acme.ask("PUT /projects/100/members/2", {"access_level": 30}) == message(404, "404 Not found")
    assert acme.ask("PUT /projects/100/members/6", {"access_level": 35})[0] == 400
    assert listed("projects/100/members")[-1] == ("gus", 30)


def test_a_user_who_is_deleted_takes_all_that_is_theirs_along(acme: SandboxClient) -> None:
    assert acme.ask("POST /projects", {"path": "own"}, user="eve")[0] == 201
    assert acme.ask("POST /groups", {"name": "n", "path": "nn", "parent_id": 12}, user="eve")[0] == 201
    assert acme.ask("POST /projects/102/members", {"username": "max", "access_level": 40}, user="eve")[0] == 201
    for user in ("eve", "max"):
        assert acme.ask("POST /projects/102/triggers", {"description": user}, user=user)[0] == 201
        assert acme.ask("PUT /projects/102/notification_settings", {"level": "watch"}, user=user)[0] == 200
    assert acme.ask("DELETE /users/3", user="ada")[0] == 403
    assert acme.ask("DELETE /users/3", user="root")[0] == 204
    (left,) = acme.ask("GET /projects/102/triggers", user="eve")[1]
    assert left["description"] == "eve"
    assert acme.ask("GET /user", user="max") == message(401, "401 Unauthorized")
    assert acme.ask("DELETE /users/7", user="root") == message(
        409, "User cannot be removed while is the sole-owner of a group"
    )
    assert acme.ask("DELETE /users/7?hard_delete=true", user="root")[0] == 204
    for place in ("groups/far", "projects/102", "projects/103", "users/7"):
        assert acme.ask(f"GET /{place}", user="root")[0] == 404
    acme.given(acme.sandbox.state())
    assert acme.ask("DELETE /users/99", user="root")[0] == 404


def test_the_settings_limit_the_requests_of_a_user(acme: SandboxClient) -> None:
    names = ("enabled", "requests_per_period", "period_in_seconds")
    limit = {f"throttle_authenticated_api_{name}": value for name, value in zip(names, (True, 2, 86400), strict=True)}
    assert acme.ask("PUT /application/settings", limit)[0] == 403
    before = acme.ask("GET /application/settings", user="root")[1]
    assert acme.ask("PUT /application/settings", limit, user="root") == (200, before | limit)
    assert "ratelimit-limit" in acme.response("GET /user", user="root").headers
    assert [acme.ask("GET /user")[0] for _ in range(2)] == [200, 200]
    assert acme.response("GET /user").status_code == 429
    assert acme.ask("PUT /application/settings", before, user="root") == (200, before)
    assert acme.ask("GET /user")[0] == 200


def test_who_is_blocked_stays_a_member_and_approves_nothing(service: SandboxClient, dialect: str) -> None:
    rule = {"name": "Security", "approvals_required": 1, "users": ["dev", "max"]}
    service.given(a_service(dialect, web={"approval_rules": [rule]}))
    assert service.ask("POST /users/4/block")[0] == 403
    own = "403 Forbidden - API initiating user cannot be blocked by the API"
    assert service.ask("POST /users/1/block", user="root") == (403, {"message": own})
    assert service.ask("POST /users/99/block", user="root")[0] == 404
    assert service.ask("POST /users/4/block", user="root") == (201, True)
    assert service.ask("POST /users/4/block", user="root")[0] == 201
    assert service.ask("GET /user", user="dev") == (403, {"message": "403 Forbidden - Your account has been blocked."})
    states = {each["username"]: each["state"] for each in service.ask(f"GET {WEB}/members/all")[1]}
    assert (states["dev"], states["max"]) == ("blocked", "active")
    (shown,) = service.ask(f"GET {WEB}/approval_rules")[1]
    names = {key: [each["username"] for each in shown[key]] for key in ("users", "eligible_approvers")}
    assert names == {"users": ["dev", "max"], "eligible_approvers": ["max"]}
    assert service.ask("POST /users/4/unblock", user="root") == (201, True)
    assert service.ask("GET /user", user="dev")[0] == 200
