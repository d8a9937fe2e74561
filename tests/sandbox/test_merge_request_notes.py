"""Notes on merge requests, as production answers; the spec does not define these endpoints."""

from typing import Any

import pytest

from reconciler.sandbox import StateError

from .sandbox_client import HOST, WEB, SandboxClient, a_service
from .test_trigger_tokens import user

NOTES = f"{WEB}/merge_requests/7/notes"
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
NO_MERGE_REQUEST = (404, {"message": "404 MergeRequest Not Found"})
GONE = (404, {"message": "404 Not found"})
FORBIDDEN = (403, {"message": "403 Forbidden"})


def noted(*notes: dict[str, Any], dialect: str = "spec", **more: Any) -> dict[str, Any]:
    """A service whose project `web` has two merge requests and these notes."""
    listed = [
        {"merge_request": 7, "author": "dev", "body": f"note {index}", **note} for index, note in enumerate(notes)
    ]
    return a_service(dialect, web={"merge_requests": [7, 8], "merge_request_notes": listed, **more})


def record(number: int, body: str, second: int, **more: Any) -> dict[str, Any]:
    """The record of a note by ada."""
    moment = f"2026-03-01T00:00:0{second}Z"
    return {
        "id": number,
        "type": None,
        "body": body,
        "attachment": None,
        "author": user(2, "ada"),
        "created_at": moment,
        "updated_at": moment,
        "system": False,
        "noteable_id": 7,
        "noteable_type": "MergeRequest",
        "project_id": 100,
        "resolvable": False,
        "confidential": False,
        "internal": False,
        "noteable_iid": 7,
        "commands_changes": {},
        **more,
    }


def ids(service: SandboxClient, query: str = "", **asked: Any) -> list[int]:
    """The items of a list."""
    status, shown = service.ask(f"GET {NOTES}{query}", **asked)
    assert status == 200
    return [each["id"] for each in shown]


def test_a_note_lives(service: SandboxClient) -> None:
    service.given(noted())
    made = record(1, "first\n\nline", 1)
    assert service.ask(f"POST {NOTES}", {"body": "first\r\n\r\nline \n"}) == (201, made)
    assert service.ask(f"GET {NOTES}") == (200, [made])
    changed = {**made, "body": "second", "updated_at": "2026-03-01T00:00:02Z"}
    assert service.ask(f"PUT {NOTES}/1", {"body": "second"}) == (200, changed)
    assert service.ask(f"PUT {NOTES}/1", {}) == (200, changed)
    assert service.ask(f"DELETE {NOTES}/1") == (204, None)
    assert service.ask(f"DELETE {NOTES}/1") == GONE
    assert service.changes() == [True, False, True, False, True, False]
    assert service.ask(f"GET {WEB}/merge_requests/8/notes") == (200, [])


def test_notes_are_listed_newest_first_by_default(service: SandboxClient) -> None:
    later = {"updated_at": "2026-02-01T00:00:00Z"}
    service.given(noted({"created_at": "2026-01-02"}, {"created_at": "2026-01-01", **later}, {"merge_request": 8}))
    assert ids(service) == [1, 2]
    assert ids(service, "?sort=asc") == [2, 1]
    assert ids(service, "?sort=asc&order_by=updated_at") == [1, 2]
    assert service.ask(f"GET {NOTES}?sort=up")[0] == 400


def test_what_the_service_wrote_itself_can_be_left_out(service: SandboxClient) -> None:
    service.given(noted({}, {"system": True}))
    filters = ("all_notes", "only_comments", "only_activity")
    assert [ids(service, f"?sort=asc&activity_filter={each}") for each in filters] == [[1, 2], [1], [2]]
    for line in ("PUT", "DELETE"):
        assert service.ask(f"{line} {NOTES}/2", {"body": "x"}, user="root") == FORBIDDEN


def test_internal_notes_are_hidden_and_counted(service: SandboxClient) -> None:
    service.given(noted({"internal": True}, {}, visibility="public"))
    answer = service.response(f"GET {NOTES}", user="gus")
    assert ([each["id"] for each in answer.json()], answer.headers["x-total"]) == ([2], "2")
    assert service.ask(f"PUT {NOTES}/1", {"body": "x"}, user="gus") == GONE
    assert ids(service, "?sort=asc", user="dev") == [1, 2]


def test_somebody_elses_note_is_changed_by_maintainers_only(service: SandboxClient) -> None:
    service.given(noted({}, {"author": "max"}))
    assert service.ask(f"PUT {NOTES}/1", {"body": "x"}, user="max")[0] == 200
    assert service.ask(f"PUT {NOTES}/2", {"body": "x"}, user="dev") == FORBIDDEN
    assert service.ask(f"DELETE {NOTES}/2", user="dev") == FORBIDDEN


def test_an_invisible_merge_request_is_not_found(service: SandboxClient) -> None:
    service.given(noted())
    assert service.ask(f"GET {NOTES}", user="gus") == NO_MERGE_REQUEST
    assert service.ask(f"POST {WEB}/merge_requests/9/notes", {"body": "x"}) == NO_MERGE_REQUEST
    assert service.ask(f"GET {NOTES}", user="eve") == (404, {"message": "404 Project Not Found"})
    assert service.ask(f"GET {NOTES}", user=None) == (401, {"message": "401 Unauthorized"})
    service.given(noted(merge_requests_enabled=False))
    assert service.ask(f"GET {NOTES}") == NO_MERGE_REQUEST


def test_nobody_comments_in_an_archived_project(service: SandboxClient) -> None:
    service.given(noted({"author": "ada"}, archived=True))
    assert service.ask(f"POST {NOTES}", {"body": "x"}) == FORBIDDEN
    assert service.ask(f"PUT {NOTES}/1", {"body": "x"}) == FORBIDDEN


@BOTH
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "can't be blank"),
        (None, "can't be blank"),
        ("x" * 1_000_001, "is too long (maximum is 1000000 characters)"),
    ],
    ids=["blank", "null", "long"],
)
def test_a_body_that_does_not_go_is_refused(
    service: SandboxClient, dialect: str, body: str | None, reason: str
) -> None:
    service.given(noted(dialect=dialect))
    said = {
        "spec": {"message": {"note": [reason]}},
        "deployed": {"message": f'400 Bad request - Note {{:note=>["{reason}"]}}'},
    }
    assert service.ask(f"POST {NOTES}", {"body": body}) == (400, said[dialect])
    assert service.ask(f"POST {NOTES}", {})[0] == 400


def test_the_state_keeps_notes(service: SandboxClient) -> None:
    service.given(noted({"id": 5}, {"author": "ada"}))
    assert service.ask(f"POST {NOTES}", {"body": "third"})[1]["id"] == 6
    kept = service.sandbox.state()
    service.given(kept)
    assert service.sandbox.state() == kept
    assert ids(service, "?sort=asc") == [1, 5, 6]
    assert service.ask(f"GET {NOTES}?sort=asc")[1][0]["author"]["web_url"] == f"{HOST}/ada"


def test_a_note_on_no_merge_request_cannot_be_loaded(service: SandboxClient) -> None:
    with pytest.raises(StateError, match=r"projects\[0\].merge_request_notes: there is no merge .* 9"):
        service.given(noted({"merge_request": 9}))
