"""Merge requests, as production answers; the spec does not define these endpoints."""

from typing import Any

import pytest

from .sandbox_client import HOST, WEB, SandboxClient, a_service
from .test_trigger_tokens import user

REQUESTS = f"{WEB}/merge_requests"
FORBIDDEN = (403, {"message": "403 Forbidden"})
BRANCHES = {"source_branch": "reconciler/accept", "target_branch": "main"}


def numbers(service: SandboxClient, query: str = "", **asked: Any) -> list[int]:
    """The merge requests of a list."""
    status, shown = service.ask(f"GET {REQUESTS}{query}", **asked)
    assert status == 200
    return [each["iid"] for each in shown]


def test_a_merge_request_lives(service: SandboxClient) -> None:
    service.given(a_service())
    made = {
        "id": 1,
        "iid": 1,
        "project_id": 100,
        "title": "Draft: Accept",
        "description": "text",
        "state": "opened",
        "created_at": "2026-03-01T00:00:01Z",
        "updated_at": "2026-03-01T00:00:01Z",
        **BRANCHES,
        "source_project_id": 100,
        "target_project_id": 100,
        "author": user(2, "ada"),
        "draft": True,
        "detailed_merge_status": "preparing",
        "force_remove_source_branch": True,
        "web_url": f"{HOST}/acme/web/-/merge_requests/1",
    }
    body = BRANCHES | {"title": "Draft: Accept", "description": "text", "remove_source_branch": True}
    assert service.ask(f"POST {REQUESTS}", body) == (201, made)
    made["detailed_merge_status"] = "mergeable"
    assert service.ask(f"GET {REQUESTS}/1") == (200, made)
    status, changed = service.ask(f"PUT {REQUESTS}/1", {"title": "Accept", "state_event": "close"})
    assert (status, changed["title"], changed["state"], changed["draft"]) == (200, "Accept", "closed", False)
    assert service.ask(f"PUT {REQUESTS}/1", {})[0] == 400
    assert service.ask(f"PUT {REQUESTS}/1", {"description": "d"})[1]["description"] == "d"
    assert service.ask(f"GET {REQUESTS}/2") == (404, {"message": "404 Not found"})


def test_one_open_request_is_enough_for_two_branches(service: SandboxClient) -> None:
    service.given(a_service(web={"merge_requests": [7, BRANCHES, {**BRANCHES, "state": "merged"}]}))
    another = "Another open merge request already exists for this source branch: !8"
    assert service.ask(f"POST {REQUESTS}", BRANCHES | {"title": "t"}) == (409, {"message": [another]})
    assert service.ask(f"PUT {REQUESTS}/9", {"state_event": "reopen"}) == (409, {"message": [another]})
    assert service.ask(f"PUT {REQUESTS}/8", {"state_event": "close"})[0] == 200
    assert service.ask(f"POST {REQUESTS}", BRANCHES | {"title": "t"})[1]["iid"] == 10
    same = "You can't use same project/branch for source and target"
    body = BRANCHES | {"title": "t", "source_branch": "main"}
    assert service.ask(f"POST {REQUESTS}", body) == (422, {"message": [same]})
    assert numbers(service, "?state=opened&source_branch=reconciler%2Faccept&target_branch=main") == [10]
    assert numbers(service, "?sort=asc&state=all") == [7, 8, 9, 10]
    assert numbers(service, "?target_branch=other") == []
    assert service.ask("GET /projects/100/merge_requests/7")[1]["author"] is None


@pytest.mark.parametrize("off", [{"merge_requests_enabled": False}, {"archived": True}])
def test_who_may_open_one_and_where(service: SandboxClient, off: dict[str, Any]) -> None:
    service.given(a_service())
    assert service.ask(f"POST {REQUESTS}", BRANCHES | {"title": "t"}, user="pia") == FORBIDDEN
    assert service.ask(f"GET {REQUESTS}", user="gus") == FORBIDDEN
    assert service.ask(f"POST {REQUESTS}", BRANCHES | {"title": "t"}, user="dev")[0] == 201
    service.given(a_service(web=off | {"visibility": "public"}))
    assert service.ask(f"POST {REQUESTS}", BRANCHES | {"title": "t"}) == FORBIDDEN
    assert service.ask(f"GET {REQUESTS}", user="eve")[0] == (200 if "archived" in off else 403)
