"""Groups that are invited to projects."""

from typing import Any

import pytest

from .sandbox_client import HOST, SandboxClient, a_service


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect; `ada` may see the group `far`, of which `eve` is the owner."""
    state = a_service(dialect)
    state["groups"][2]["members"].append({"user": "ada", "role": "guest"})
    return service.given(state)


def invite(service: SandboxClient, group: int, level: int, user: str = "ada") -> tuple[int, Any]:
    return service.ask("POST /projects/100/share", {"group_id": group, "group_access": level}, user=user)


def test_the_members_of_an_invited_group_are_members(acme: SandboxClient) -> None:
    assert acme.ask("GET /projects/100", user="eve")[0] == 404
    link = {"id": 1, "project_id": 100, "group_id": 12, "group_access": 30, "expires_at": None}
    assert invite(acme, 12, 30) == (201, {**link, "member_role_id": None})
    assert acme.ask("GET /projects/100", user="eve")[0] == 200
    assert acme.ask("GET /projects/100/members/all/7")[1]["access_level"] == 30
    assert acme.ask("GET /projects/100/members/all/2")[1]["access_level"] == 50
    shown = {
        "id": 12,
        "web_url": f"{HOST}/groups/far",
        "name": "far",
        "avatar_url": None,
        "full_name": "far",
        "full_path": "far",
    }
    assert acme.ask("GET /projects/100/invited_groups") == (200, [shown])
    shared = {"group_id": 12, "group_name": "far", "group_full_path": "far", "group_access_level": 30}
    assert acme.ask("GET /projects/100")[1]["shared_with_groups"] == [{**shared, "expires_at": None}]
    assert acme.ask("GET /projects/100/invited_groups", user="max") == (200, [])
    assert acme.ask("GET /projects/100", user="max")[1]["shared_with_groups"] == []
    assert acme.given(acme.sandbox.state()).ask("GET /projects/100", user="eve")[0] == 200
    assert acme.ask("DELETE /projects/100/share/12")[0] == 204
    assert acme.ask("GET /projects/100", user="eve")[0] == 404
    assert acme.ask("DELETE /projects/100/share/12") == (404, {"message": "404 Group Link Not Found"})


def test_only_groups_that_one_sees_can_be_invited_and_once(acme: SandboxClient) -> None:
    assert [invite(acme, 12, 30, "max")[0], invite(acme, 99, 30)[0], invite(acme, 12, 60)[0]] == [404, 404, 400]
    assert invite(acme, 12, 30, "dev") == (403, {"message": "403 Forbidden"})
    assert [invite(acme, 12, 10)[0], invite(acme, 12, 30)[0]] == [201, 409]
    assert acme.ask("DELETE /groups/far", user="eve")[0] == 202
