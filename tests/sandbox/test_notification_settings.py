"""Notification settings: spec sections 4.17 and 6, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import WEB, SandboxClient, a_service

BAD_EMAIL = {"message": {"notification_email": ["must be an email you have verified"]}}
FLAT = {
    "new_note": False,
    "new_issue": False,
    "reopen_issue": False,
    "close_issue": False,
    "reassign_issue": False,
    "issue_due": False,
    "new_merge_request": False,
    "push_to_merge_request": False,
    "reopen_merge_request": False,
    "close_merge_request": False,
    "reassign_merge_request": False,
    "merge_merge_request": False,
    "failed_pipeline": True,
    "fixed_pipeline": True,
    "success_pipeline": False,
    "moved_project": True,
    "merge_when_pipeline_succeeds": False,
    "new_epic": False,
}
NESTED = {
    "new_release": None,
    **dict.fromkeys(list(FLAT)[:11]),
    "change_reviewer_merge_request": None,
    "merge_merge_request": None,
    "failed_pipeline": None,
    "fixed_pipeline": None,
    "success_pipeline": None,
    "moved_project": True,
    "merge_when_pipeline_succeeds": False,
}
ACCOUNTS = {
    "service_account_failed_pipeline": False,
    "service_account_success_pipeline": False,
    "service_account_fixed_pipeline": False,
}


@pytest.mark.parametrize("dialect", ["spec", "deployed"])
def test_by_default_a_user_participates_and_places_inherit(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    own = {"level": "participating", "notification_email": "ada@example.com"}
    assert service.ask("GET /notification_settings") == (200, own)
    assert service.ask("GET /groups/acme/notification_settings") == (200, {"level": "global"})
    assert service.ask(f"GET {WEB}/notification_settings") == (200, {"level": "global"})


def test_by_the_spec_custom_events_lie_flat_in_the_record_and_null_shows_as_its_effect(service: SandboxClient) -> None:
    service.given(a_service())
    shown = {"level": "custom", **FLAT, "new_note": True, "failed_pipeline": False}
    sent = {"level": "custom", "new_note": True, "failed_pipeline": False}
    assert service.ask(f"PUT {WEB}/notification_settings", sent) == (200, shown)
    assert service.ask(f"GET {WEB}/notification_settings") == (200, shown)
    own = {"level": "custom", "notification_email": "ada@example.com", **FLAT}
    assert service.ask("PUT /notification_settings", {"level": "custom"}) == (200, own)


@pytest.mark.parametrize(
    ("where", "more"),
    [
        ("/notification_settings", {"new_epic": None, "approver": False}),
        ("/groups/acme/notification_settings", {"new_epic": None}),
        (f"{WEB}/notification_settings", {"approver": False}),
    ],
)
def test_in_production_custom_events_are_nested_and_null_where_never_set(
    service: SandboxClient, where: str, more: dict[str, Any]
) -> None:
    service.given(a_service("deployed"))
    status, shown = service.ask(f"PUT {where}", {"level": "custom", "new_note": True, "unknown": 1})
    assert (status, shown["level"]) == (200, "custom")
    assert shown["events"] == {**NESTED, **more, **ACCOUNTS, "new_note": True}
    assert service.ask(f"GET {where}") == (200, shown)


def test_an_event_of_another_kind_of_place_is_ignored_in_production(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    status, shown = service.ask(f"PUT {WEB}/notification_settings", {"level": "custom", "new_epic": "neither"})
    assert (status, "new_epic" in shown["events"]) == (200, False)


def test_settings_belong_to_the_user_behind_the_token(service: SandboxClient) -> None:
    service.given(a_service())
    service.ask(f"PUT {WEB}/notification_settings", {"level": "watch"})
    assert service.ask(f"GET {WEB}/notification_settings", user="max") == (200, {"level": "global"})


def test_events_are_kept_at_every_level_and_shown_again_with_custom(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("PUT /groups/acme/notification_settings", {"new_note": True}) == (200, {"level": "global"})
    assert service.ask("PUT /groups/acme/notification_settings", {"level": "custom"}) == (
        200,
        {"level": "custom", **FLAT, "new_note": True},
    )


@pytest.mark.parametrize("null", [None, ""])
def test_null_takes_an_event_back_to_never_set(service: SandboxClient, null: str | None) -> None:
    service.given(a_service("deployed"))
    service.ask(f"PUT {WEB}/notification_settings", {"level": "custom", "new_note": True})
    status, shown = service.ask(f"PUT {WEB}/notification_settings", {"new_note": null})
    assert (status, shown["events"]["new_note"]) == (200, None)


def test_null_breaks_the_server_for_an_event_that_has_no_null(service: SandboxClient) -> None:
    service.given(a_service())
    body = {"message": "500 Internal Server Error"}
    assert service.ask(f"PUT {WEB}/notification_settings", {"moved_project": None}) == (500, body)


@pytest.mark.parametrize(
    ("dialect", "sent", "refused"),
    [
        ("spec", {"level": "loud"}, {"message": {"level": ["is not a valid level"]}}),
        ("deployed", {"level": "loud"}, {"message": "'loud' is not a valid level"}),
        ("spec", {"level": ""}, {"message": {"level": ["can't be blank"]}}),
        ("deployed", {"level": None}, {"message": {"level": ["can't be blank"]}}),
        ("spec", {"new_note": 7}, {"message": {"new_note": ["is invalid"]}}),
        ("deployed", {"new_note": "7"}, {"error": "new_note is invalid"}),
    ],
)
def test_an_invalid_level_and_an_invalid_boolean_are_refused(
    service: SandboxClient, dialect: str, sent: dict[str, Any], refused: dict[str, Any]
) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"PUT {WEB}/notification_settings", sent) == (400, refused)
    assert service.changes() == [False]


def test_a_bad_address_is_refused_after_the_level_was_saved(service: SandboxClient) -> None:
    service.given(a_service())
    sent = {"level": "watch", "notification_email": "eve@example.com"}
    assert service.ask("PUT /notification_settings", sent) == (400, BAD_EMAIL)
    own = {"level": "watch", "notification_email": "ada@example.com"}
    assert service.ask("GET /notification_settings") == (200, own)
    assert service.changes() == [True, False]


def test_an_address_is_set_kept_on_null_and_cleared_by_the_empty_string(service: SandboxClient) -> None:
    service.given(a_service())
    second, first = "a@example.com", "ada@example.com"
    for email, shown in ((second, second), (None, second), (second, second), ("", first)):
        record = {"level": "participating", "notification_email": shown}
        assert service.ask("PUT /notification_settings", {"notification_email": email}) == (200, record)
    assert service.changes() == [True, False, False, True]


def test_a_put_that_changes_nothing_says_so_and_leaves_no_trace(service: SandboxClient) -> None:
    before = service.given(a_service()).sandbox.state()
    assert service.ask(f"PUT {WEB}/notification_settings", {"level": "global"}) == (200, {"level": "global"})
    assert service.ask("PUT /notification_settings") == service.ask("GET /notification_settings")
    assert service.changes() == [False, False, False]
    assert service.sandbox.state() == before


def test_what_cannot_be_seen_has_no_settings(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("GET /groups/far/notification_settings") == (404, {"message": "404 Group Not Found"})
    assert service.ask("PUT /projects/102/notification_settings") == (404, {"message": "404 Project Not Found"})


def test_alone_among_writes_a_project_is_found_by_its_former_path(service: SandboxClient) -> None:
    service.given(a_service(web={"renamed_from": ["acme/old"]}))
    assert service.ask("PUT /projects/acme%2Fold/notification_settings", {"level": "watch"}) == (
        200,
        {"level": "watch"},
    )
    assert service.ask(f"GET {WEB}/notification_settings") == (200, {"level": "watch"})


def test_settings_in_a_state_are_served(service: SandboxClient) -> None:
    state = a_service(web={"notification_settings": {"ada": {"level": "custom", "events": {"new_note": True}}}})
    state["users"][1]["notification_settings"] = {"level": "mention", "notification_email": "a@example.com"}
    service.given(state)
    own = {"level": "mention", "notification_email": "a@example.com"}
    assert service.ask("GET /notification_settings") == (200, own)
    assert service.ask(f"GET {WEB}/notification_settings") == (
        200,
        {"level": "custom", **FLAT, "new_note": True},
    )
