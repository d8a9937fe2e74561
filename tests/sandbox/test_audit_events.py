"""Audit events, as production servers show them; recorded by `audit-events`."""

from .sandbox_client import WEB, SandboxClient, a_service

WIDE = "2020-01-01"


def a_service_with_events(service: SandboxClient) -> None:
    """Three events: two of a project, one of its group."""
    service.given(a_service("deployed"))
    for name in ("a", "b"):
        assert service.ask(f"POST {WEB}/protected_branches", {"name": name})[0] == 201
    assert service.ask("POST /groups/acme/protected_branches", {"name": "c"})[0] == 201


def test_administrators_see_the_events_of_all_places_page_by_page_without_totals(service: SandboxClient) -> None:
    a_service_with_events(service)
    status, events = service.ask(f"GET /audit_events?created_after={WIDE}", user="root")
    assert (status, [(event["entity_type"], event["details"]["target_details"]) for event in events]) == (
        200, [("Group", "c"), ("Project", "b"), ("Project", "a")]
    )  # fmt: skip
    answer = service.response("GET /audit_events?per_page=2", user="root")
    assert [answer.headers[name] for name in ("x-page", "x-next-page", "x-per-page")] == ["1", "2", "2"]
    assert "x-total" not in answer.headers
    assert 'rel="next"' in answer.headers["link"]
    assert 'rel="last"' not in answer.headers["link"]


def test_an_entity_narrows_them_by_type_and_then_by_id(service: SandboxClient) -> None:
    a_service_with_events(service)
    for query, names in (
        ("entity_type=Group", ["c"]),
        ("entity_type=Project&entity_id=100", ["b", "a"]),
        ("entity_type=Project&entity_id=10", []),
        ("entity_type=User", []),
    ):
        events = service.ask(f"GET /audit_events?{query}", user="root")[1]
        assert [event["details"]["target_details"] for event in events] == names
    assert service.ask("GET /audit_events?entity_id=1", user="root") == (400, {"error": "entity_type is missing"})
    assert service.ask("GET /audit_events?entity_type=Nope", user="root") == (
        400,
        {"error": "entity_type does not have a valid value"},
    )


def test_nobody_else_sees_them_and_no_licence_shows_none(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    assert service.ask("GET /audit_events") == (403, {"message": "403 Forbidden"})
    assert service.ask("GET /audit_events", user=None)[0] == 401
    state = a_service("deployed")
    state["instance"]["licensed"] = False
    service.given(state)
    assert service.ask("GET /audit_events", user="root") == (403, {"message": "403 Forbidden"})
