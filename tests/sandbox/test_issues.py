"""Issues, as production answers; the spec does not define these endpoints."""

from typing import Any

import pytest

from .sandbox_client import HOST, NOW, WEB, SandboxClient, a_service
from .test_trigger_tokens import user

ISSUES = f"{WEB}/issues"
FORBIDDEN = (403, {"message": "403 Forbidden"})


def record(number: int, **more: Any) -> dict[str, Any]:
    """The record of an issue by ada."""
    return {
        "id": number,
        "iid": number,
        "project_id": 100,
        "title": "Drift",
        "description": None,
        "state": "opened",
        "created_at": "2026-03-01T00:00:01Z",
        "updated_at": "2026-03-01T00:00:01Z",
        "closed_at": None,
        "labels": [],
        "assignees": [],
        "assignee": None,
        "author": user(2, "ada"),
        "type": "ISSUE",
        "issue_type": "issue",
        "confidential": False,
        "web_url": f"{HOST}/acme/web/-/issues/{number}",
        **more,
    }


def numbers(service: SandboxClient, query: str = "", **asked: Any) -> list[int]:
    """The issues of a list."""
    status, shown = service.ask(f"GET {ISSUES}{query}", **asked)
    assert status == 200
    return [each["iid"] for each in shown]


def test_an_issue_lives(service: SandboxClient) -> None:
    service.given(a_service())
    made = record(1)
    assert service.ask(f"POST {ISSUES}", {"title": "Drift", "assignee_ids": [7, 99]}) == (201, made)
    assert service.ask(f"GET {ISSUES}/1") == (200, made)
    assigned = {**made, "assignees": [user(3, "max"), user(6, "gus")], "assignee": user(3, "max")}
    assigned["updated_at"] = "2026-03-01T00:00:02Z"
    assert service.ask(f"PUT {ISSUES}/1", {"assignee_ids": [3, 6]}) == (200, assigned)
    closed = {**assigned, "state": "closed", "closed_at": "2026-03-01T00:00:03Z", "updated_at": "2026-03-01T00:00:04Z"}
    assert service.ask(f"PUT {ISSUES}/1", {"state_event": "close"}) == (200, closed)
    assert service.ask(f"PUT {ISSUES}/1", {"state_event": "close"}) == (200, closed)
    assert service.ask(f"PUT {ISSUES}/1", {"state_event": "reopen"})[1]["closed_at"] is None
    assert service.ask(f"PUT {ISSUES}/1", {"assignee_ids": ""})[1]["assignees"] == []
    assert service.changes() == [True, False, True, True, False, True, True]
    status, refusal = service.ask(f"PUT {ISSUES}/1", {})
    assert (status, "title, description, assignee_ids, state_event" in str(refusal)) == (400, True)
    assert service.ask(f"PUT {ISSUES}/2", {"title": "x"}) == (404, {"message": "404 Not found"})


def test_quick_actions_are_carried_out_and_cut(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    body = {"title": "Drift", "description": "a\r\n/close\n/title Other\n/unknown\nb /close\n"}
    _, made = service.ask(f"POST {ISSUES}", body)
    assert (made["title"], made["state"], made["description"]) == ("Other", "closed", "a\n/unknown\nb /close")


def test_lists_are_of_one_author_or_state(service: SandboxClient) -> None:
    service.given(
        a_service(
            web={
                "issues": [
                    {"author": "ada", "title": "a", "created_at": "2026-01-03"},
                    {"author": "dev", "title": "b", "created_at": "2026-01-02"},
                    {"author": "ada", "title": "c", "state": "closed", "updated_at": NOW},
                ]
            }
        )
    )
    assert numbers(service) == [1, 2, 3]
    assert numbers(service, "?author_id=2&sort=asc") == [3, 1]
    assert numbers(service, "?state=closed") == [3]
    assert numbers(service, "?order_by=updated_at") == [3, 1, 2]
    assert service.ask(f"GET {ISSUES}?state=odd")[0] == 400


def test_who_may_write_and_where_issues_are_off(service: SandboxClient) -> None:
    service.given(a_service(web={"issues": [{"author": "gus", "title": "a"}, {"author": "ada", "title": "b"}]}))
    assert service.ask(f"POST {ISSUES}", {"title": "c"}, user="gus")[0] == 201
    assert service.ask(f"PUT {ISSUES}/1", {"title": "c"}, user="gus")[0] == 200
    assert service.ask(f"PUT {ISSUES}/2", {"title": "c"}, user="gus") == FORBIDDEN
    assert service.ask(f"PUT {ISSUES}/2", {"title": "c"}, user="pia")[0] == 200
    assert service.ask(f"GET {ISSUES}", user="eve")[0] == 404
    for off in ({"issues_enabled": False}, {"archived": True}):
        service.given(a_service(web={"issues": [{"author": "ada", "title": "a"}], **off}))
        assert numbers(service) == ([1] if "archived" in off else [])
        assert service.ask(f"POST {ISSUES}", {"title": "c"}) == FORBIDDEN


@pytest.mark.parametrize("field", ["title", "description"])
def test_texts_have_a_longest_length(service: SandboxClient, field: str) -> None:
    service.given(a_service())
    longest = {"title": 255, "description": 1_048_576}[field]
    said = (400, {"message": {field: [f"is too long (maximum is {longest} characters)"]}})
    assert service.ask(f"POST {ISSUES}", {"title": "a", field: "x" * (longest + 1)}) == said
    assert service.ask(f"POST {ISSUES}", {"title": "a", field: "x" * longest})[0] == 201
    assert service.ask(f"POST {ISSUES}", {"title": ""})[0] == 400


def test_the_free_edition_has_one_assignee(service: SandboxClient) -> None:
    state = a_service()
    state["instance"]["version"] = "18.9.0"
    service.given(state)
    _, made = service.ask(f"POST {ISSUES}", {"title": "a", "assignee_ids": [3, 4]})
    assert [each["username"] for each in made["assignees"]] == ["max"]


def test_users_are_found_by_name(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("GET /users?username=DEV") == (200, [user(4, "dev")])
    assert service.ask("GET /users?username=nobody") == (200, [])
    assert len(service.ask("GET /users")[1]) == 7
    assert service.ask("GET /users", user=None)[0] == 401
