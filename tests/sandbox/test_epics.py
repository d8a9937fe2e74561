"""Epics and group labels: spec section 4.20, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import HOST, SandboxClient, a_service

EPICS = "/groups/10/epics"
FORBIDDEN = (403, {"message": "403 Forbidden"})
UNKNOWN = {"spec": (404, {"message": "404 Not found"}), "deployed": FORBIDDEN}
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
PIA = {"user": "pia", "role": "planner"}
MEMBERS = [
    {"user": "ada", "role": "owner"},
    {"user": "max", "role": "maintainer"},
    {"user": "gus", "role": "guest"},
    PIA,
]


def given(service: SandboxClient, dialect: str, *epics: dict[str, Any]) -> None:
    """A group with these epics, and a subgroup with one."""
    acme = {"members": MEMBERS, "labels": [{"name": "above"}], "epics": list(epics)}
    below = {"labels": [{"name": "below"}], "epics": [{"id": 90, "title": "Below"}]}
    state = a_service(dialect, acme=acme, team=below)
    state["groups"][2]["epics"] = [{"id": 80, "title": "Far"}]
    service.given(state)


def one(service: SandboxClient, iid: int = 1) -> dict[str, Any]:
    """The record of an epic."""
    found: dict[str, Any] = service.ask(f"GET {EPICS}/{iid}")[1]
    return found


def titles(service: SandboxClient, query: str = "", user: str = "ada") -> list[str]:
    return [each["title"] for each in service.ask(f"GET {EPICS}?{query}", user=user)[1]]


@BOTH
def test_a_record(service: SandboxClient, dialect: str) -> None:
    given(
        service, dialect, {"id": 50, "title": "Up"}, {"id": 51, "title": "Down", "parent_id": 50, "labels": ["b", "a"]}
    )
    expected = {
        "id": 51,
        "iid": 2,
        "group_id": 10,
        "parent_id": 50,
        "parent_iid": 1,
        "title": "Down",
        "labels": ["a", "b"],
        "state": "opened",
        "references": {"short": "&2", "relative": "&2", "full": "acme&2"},
        "web_url": f"{HOST}/groups/acme/-/epics/2",
    }
    assert one(service, 2).items() >= expected.items()
    for line in (f"GET {EPICS}/9", f"DELETE {EPICS}/9", f"DELETE {EPICS}/9/epics/51"):
        assert service.ask(line) == UNKNOWN[dialect]
    assert service.ask(f"GET {EPICS}/90") == UNKNOWN[dialect]


@BOTH
def test_a_list_holds_those_below_unless_asked_otherwise(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, {"title": "One"}, {"title": "Hidden", "confidential": True})
    assert titles(service) == ["Below", "Hidden", "One"]
    assert titles(service, "include_descendant_groups=false&order_by=created_at&sort=asc") == ["One", "Hidden"]
    assert titles(service, "order_by=title&sort=asc", user="gus") == ["Below", "One"]


@BOTH
def test_who_may_do_what(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, *({"title": str(number)} for number in range(4)))
    assert service.ask(f"PUT {EPICS}/1", {"title": "x"}, user="gus") == FORBIDDEN
    assert [
        service.ask(f"DELETE {EPICS}/{iid}", user=user)[0] for iid, user in ((1, "max"), (1, "pia"), (2, "ada"))
    ] == [
        403,
        204,
        204,
    ]
    state = service.sandbox.state()
    state["instance"]["version"] = "18.9.0"
    service.given(state)
    assert service.ask(f"GET {EPICS}") == FORBIDDEN


@BOTH
def test_titles(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    assert [service.ask(f"POST {EPICS}", {"title": " Up "})[1]["title"] for _ in range(2)] == ["Up", "Up"]
    for title, reason in ((" ", "can't be blank"), ("x" * 256, "is too long (maximum is 255 characters)")):
        said = {"base": [[f"Title {reason}"]]} if dialect == "deployed" else {"title": [reason]}
        assert service.ask(f"POST {EPICS}", {"title": title}) == (400, {"message": said})
    assert service.ask(f"PUT {EPICS}/1", {"title": " Down"})[1]["title"] == "Down"
    assert service.ask(f"PUT {EPICS}/1", {})[0] == (400 if dialect == "deployed" else 200)


@BOTH
def test_labels_that_no_group_has_are_created(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, {"title": "Up"})
    assert service.ask(f"PUT {EPICS}/1", {"labels": " new,above "})[1]["labels"] == ["above", "new"]
    if dialect == "spec":
        assert service.ask(f"PUT {EPICS}/1", {"labels": ["b"]}) == (400, {"message": {"labels": ["is invalid"]}})
    listed = ["b", "a,b"] if dialect == "deployed" else "b,a,b"
    assert service.ask(f"PUT {EPICS}/1", {"labels": listed})[1]["labels"] == ["a", "b"]
    assert service.ask(f"PUT {EPICS}/1", {"labels": None})[1]["labels"] == []

    def names(query: str) -> list[str]:
        return [each["name"] for each in service.ask(f"GET /groups/11/labels?{query}")[1]]

    assert names("include_ancestor_groups=false") == ["below"]
    assert (
        names("") == names("include_ancestor_groups=true&only_group_labels=true") == ["a", "above", "b", "below", "new"]
    )


@BOTH
def test_quick_actions_are_carried_out_and_cut_out(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    sent = {"title": "Up", "description": "text\n/close\nmore\n"}
    made = service.ask(f"POST {EPICS}", sent)[1]
    assert (made["description"], made["state"]) == ("text\nmore", "closed")
    made = service.ask(f"PUT {EPICS}/1", {"description": None, "state_event": "reopen"})[1]
    assert (made["description"], made["state"]) == (None, "opened")


def dates(record: dict[str, Any]) -> list[Any]:
    return [record[f"{name}{end}"] for name in ("start_date", "due_date") for end in ("", "_fixed", "_is_fixed")]


def test_production_has_one_flag_for_both_dates(service: SandboxClient) -> None:
    day, other = "2027-01-01", "2027-03-31"
    given(service, "deployed", {"id": 50, "title": "Up"})
    for sent, expected in (
        ({"start_date_fixed": day, "due_date_fixed": other}, [day, day, True, other, other, True]),
        ({"start_date_is_fixed": False, "due_date_fixed": day}, [None, None, False, None, None, False]),
        ({"due_date_is_fixed": True}, [day, day, True, other, other, True]),
        ({"due_date_fixed": "soon"}, [day, day, True, None, None, True]),
    ):
        assert dates(service.ask(f"PUT {EPICS}/1", sent)[1]) == expected
    assert one(service)["start_date_from_inherited_source"] == "2027-01-01T00:00:00+00:00"


def test_by_the_spec_each_date_has_a_flag_that_only_editors_see(service: SandboxClient) -> None:
    day, other = "2027-01-01", "2027-03-31"
    child = {"title": "Down", "parent_id": 50, "due_date": other, "due_date_is_fixed": True}
    given(service, "spec", {"id": 50, "title": "Up"}, child)
    made = service.ask(f"PUT {EPICS}/1", {"start_date_fixed": day, "start_date_is_fixed": True})[1]
    assert dates(made) == [day, day, True, other, None, False]
    assert (made["start_date_from_inherited_source"], made["due_date_from_inherited_source"]) == (None, other)
    assert "start_date_is_fixed" not in service.ask(f"GET {EPICS}/1", user="gus")[1]


@BOTH
def test_parents(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, {"id": 50, "title": "Up"}, {"id": 51, "title": "Down"})
    for sent, parent in ((90, 90), ("50", 50), (999, None), ("", None)):
        assert service.ask(f"POST {EPICS}", {"title": "x", "parent_id": sent})[1]["parent_id"] == parent
    assert service.ask(f"POST {EPICS}", {"title": "x", "parent_id": "&1"})[0] == 400
    unseen = {"message": {"base": ["No matching epic found. Make sure that you are adding a valid epic URL."]}}
    assert service.ask(f"POST {EPICS}", {"title": "x", "parent_id": 80}) == (400, unseen)
    assert service.ask(f"PUT {EPICS}/2", {"parent_id": 999}) == (404, {"message": "404 Not found"})
    assert service.ask(f"PUT {EPICS}/2", {"parent_id": 50})[1]["parent_iid"] == 1
    wrong = {"message": {"base": ["#2 cannot be added: it's already present in this item's hierarchy"]}}
    if dialect == "deployed":
        wrong = {"message": {name: ["can't be blank"] for name in ("author", "title", "group", "work_item")}}
    assert service.ask(f"PUT {EPICS}/1", {"parent_id": 51}) == (400, wrong)
    assert service.ask(f"PUT {EPICS}/2", {"parent_id": None})[0] == (500 if dialect == "deployed" else 200)
    service.ask(f"PUT {EPICS}/2", {"parent_id": 50})
    assert service.ask(f"DELETE {EPICS}/1/epics/51")[1]["parent_id"] is None
    assert service.ask(f"DELETE {EPICS}/1/epics/51") == (404, {"message": "404 Not found"})
    service.ask(f"PUT {EPICS}/2", {"parent_id": 50})
    assert service.ask(f"DELETE {EPICS}/1")[0] == 204
    assert one(service, 2)["parent_id"] is None


@BOTH
def test_seven_levels_and_no_more(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, *({"id": number, "title": "x", "parent_id": number - 1 or None} for number in range(1, 8)))
    assert service.ask(f"POST {EPICS}", {"title": "x", "parent_id": 7}) == (
        400,
        {"message": {"base": ["#7 cannot be added: reached maximum depth"]}},
    )


@BOTH
def test_what_is_confidential_holds_nothing_else(service: SandboxClient, dialect: str) -> None:
    given(service, dialect, {"id": 50, "title": "Up"}, {"id": 51, "title": "Down", "parent_id": 50})
    made = service.ask(f"PUT {EPICS}/1", {"confidential": True, "title": "x"})
    assert (made[0], made[1]["title"], made[1]["confidential"]) == (200, "Up", False)
    for iid in (2, 1):
        assert service.ask(f"PUT {EPICS}/{iid}", {"confidential": True})[1]["confidential"]
    assert service.ask(f"PUT {EPICS}/2", {"confidential": False})[1]["confidential"]
    status, said = service.ask(f"POST {EPICS}", {"title": "x", "parent_id": 50})
    assert (status, said["message"]["base"][0].partition(": ")[2].partition(".")[0]) == (
        400,
        "cannot assign a non-confidential epic to a confidential parent",
    )
