"""Protected tags, as production has them; most answers are compared with recorded ones too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .sandbox_client import WEB, Answer, SandboxClient, a_service
from .test_protected_branches import FORBIDDEN, NOT_FOUND, levels

TAGS = f"{WEB}/protected_tags"
TAKEN = (422, {"message": ["Name has already been taken"]})


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect."""
    return service.given(a_service(dialect))


def post(service: SandboxClient, name: str | None, user: str = "max", **sent: Any) -> Answer:
    return service.ask(f"POST {TAGS}", {"name": name, **sent}, user=user)


def created(answer: Answer) -> tuple[int, list[Any]]:
    """Return the status, and what the entries name."""
    return answer[0], levels(answer[1], "create")


def test_a_rule_is_made_and_deleted_and_never_changed(acme: SandboxClient, dialect: str) -> None:
    entry = {"id": 1, "access_level": 40, "access_level_description": "Maintainers", "deploy_key_id": None}
    made = {"name": "v*", "create_access_levels": [{**entry, "user_id": None, "group_id": None}]}
    assert post(acme, "v*") == (201, made)
    assert acme.ask(f"GET {TAGS}/v%2A") == (200, made)
    assert post(acme, "v*", create_access_level=0) == TAKEN
    for method in ("PATCH", "PUT"):
        assert acme.ask(f"{method} {TAGS}/v*", {"create_access_level": 0})[0] == (404 if dialect == "deployed" else 405)
    assert acme.ask(f"DELETE {TAGS}/v*", If_Unmodified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0] == 412
    assert acme.ask(f"DELETE {TAGS}/v*") == (204, None)
    assert acme.ask(f"DELETE {TAGS}/v*") == NOT_FOUND
    assert acme.ask(f"GET {TAGS}") == (200, [])


def test_entries_are_kept_as_they_are_sent(acme: SandboxClient) -> None:
    twice = [{"access_level": 30}, {"access_level": 30}, {"user_id": 6}]
    assert created(post(acme, "a", create_access_level=0, allowed_to_create=twice)) == (201, [0, 30, 30, "user 6"])
    assert created(post(acme, "b", allowed_to_create=[])) == (201, [40])
    stranger = (422, {"message": ["Create access levels user is not a member of the project"]})
    assert post(acme, "c", allowed_to_create=[{"user_id": 7}]) == stranger
    assert post(acme, "c", create_access_level=50)[0] == 400
    for blank in (" ", None):
        assert post(acme, blank) == (422, {"message": ["Name can't be blank"]})
    assert [post(acme, name)[0] for name in ("V*", " v1 ", "x..y")] == [201, 201, 201]


def test_six_creations_at_once_are_one_rule(acme: SandboxClient) -> None:
    acme.sandbox.set_faults(["race,method=POST,together=6"])
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: post(acme, "race"), range(6)))
    assert sorted(status for status, _ in answers) == [201, 422, 422, 422, 422, 422]
    assert [answer for answer in answers if answer[0] == 422] == [TAKEN] * 5


def test_a_user_who_leaves_stays_and_a_group_goes(service: SandboxClient, dialect: str) -> None:
    keys = [{"title": "writer", "can_push": True}]
    invited = [{"group_id": 12, "role": "developer"}]
    service.given(a_service(dialect, web={"enabled_deploy_keys": keys, "invited_groups": invited}))
    entries = [{"user_id": 4}, {"group_id": 12}, {"deploy_key_id": 1}]
    assert created(post(service, "a", allowed_to_create=entries)) == (201, ["user 4", "group 12", "deploy_key 1"])
    for path in ("members/4", "share/12", "deploy_keys/1"):
        assert service.ask(f"DELETE {WEB}/{path}")[0] == 204
    assert created(service.ask(f"GET {TAGS}/a")) == (200, ["user 4"])
    service.ask(f"DELETE {TAGS}/a")
    assert post(service, "a", allowed_to_create=[{"user_id": 4}])[0] == 422


@pytest.mark.untraced
@pytest.mark.parametrize("off", [{}, {"archived": True}, {"repository_enabled": False}])
def test_rules_are_for_maintainers_even_in_an_archived_project(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    service.given(a_service(dialect, web=off))
    assert [service.ask(f"GET {TAGS}", user=user)[0] for user in ("max", "dev", "eve")] == [200, 403, 404]
    assert post(service, "a", user="dev") == FORBIDDEN
    assert post(service, "a")[0] == 201
    assert service.ask(f"DELETE {TAGS}/a")[0] == 204


def test_without_a_token_a_public_project_is_forbidden_in_production(service: SandboxClient) -> None:
    service.given(a_service("deployed", web={"visibility": "public"}, acme={"visibility": "public"}))
    assert service.ask(f"GET {TAGS}", user=None) == FORBIDDEN
    service.given(a_service("deployed"))
    assert service.ask(f"GET {TAGS}", user=None) == (404, {"message": "404 Project Not Found"})


def test_without_a_licence_there_are_roles_only(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["instance"]["licensed"] = False
    service.given(state)
    refusal = (422, {"message": ["Create access levels user must be blank"]})
    assert post(service, "a", allowed_to_create=[{"user_id": 3}]) == refusal
    assert created(post(service, "a", allowed_to_create=[{"access_level": 30}])) == (201, [30])
