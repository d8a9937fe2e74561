"""Project milestones: spec section 4.11, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import CREATED, HOST, WEB, SandboxClient, a_service

ALL = f"{WEB}/milestones"
FORBIDDEN = (403, {"message": "403 Forbidden"})
GONE = (404, {"message": "404 Not found"})
TAKEN = "already being used for another group or project milestone."
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
DUE = "due_date"


def several(*titles: str) -> dict[str, Any]:
    """A project with milestones of those titles."""
    return {"milestones": [{"title": title} for title in titles]}


def record(number: int, title: str, **more: Any) -> dict[str, Any]:
    """The record of a milestone by the spec."""
    return {
        "id": number,
        "iid": number,
        "project_id": 100,
        "title": title,
        "description": None,
        "state": "active",
        "created_at": CREATED,
        "updated_at": CREATED,
        "due_date": None,
        "start_date": None,
        "expired": False,
        **more,
    }


def titles(service: SandboxClient, query: str = "", project: str = WEB) -> list[str]:
    """The items of a list."""
    status, shown = service.ask(f"GET {project}/milestones{query}")
    assert status == 200
    return [each["title"] for each in shown]


def failed(dialect: str, verb: str, reasons: dict[str, list[str]]) -> tuple[int, Any]:
    """The answer to invalid attributes."""
    if dialect == "spec":
        return 400, {"message": reasons}
    ruby = ", ".join(f':{name}=>["{reason}"]' for name, (reason,) in reasons.items())
    return 400, {"message": f"Failed to {verb} milestone {{{ruby}}}"}


def test_a_milestone_lives(service: SandboxClient) -> None:
    service.given(a_service())
    now = {"created_at": "2026-03-01T00:00:01Z", "updated_at": "2026-03-01T00:00:01Z"}
    made = record(1, "1.0", **now, description="first", due_date="2026-12-31")
    sent = {"title": " 1.0 ", "description": "first", DUE: "2026-12-31", "state": "closed"}
    assert service.ask(f"POST {ALL}", sent) == (201, made)
    assert service.ask(f"GET {ALL}/1") == (200, made)
    closed = {**made, "state": "closed", "updated_at": "2026-03-01T00:00:02Z"}
    assert service.ask(f"PUT {ALL}/1", {"state_event": "close"}) == (200, closed)
    assert service.ask(f"PUT {ALL}/1", {"state_event": "close"}) == (200, closed)
    again = {**made, "title": "1.1", "description": None, DUE: None, "updated_at": "2026-03-01T00:00:04Z"}
    changes = {"state_event": "activate", "title": "1.1", "description": None, DUE: ""}
    assert service.ask(f"PUT {ALL}/1", changes) == (200, again)
    assert service.ask(f"PUT {ALL}/1", {"title": "1.1"}) == (200, again)
    assert service.ask(f"DELETE {ALL}/1") == (204, None)
    assert service.ask(f"DELETE {ALL}/1") == GONE
    assert service.changes() == [True, False, True, False, True, False, True, False]


def test_in_production_a_milestone_has_an_address(service: SandboxClient) -> None:
    service.given(a_service("deployed", web=several("1.0")))
    times = {name: CREATED.replace("Z", ".000Z") for name in ("created_at", "updated_at")}
    shown = record(1, "1.0", **times, web_url=f"{HOST}/acme/web/-/milestones/1")
    assert service.ask(f"GET {ALL}") == (200, [shown])


@BOTH
def test_a_title_is_taken_in_the_project_and_in_every_group_above(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, acme=several("root"), team=several("team"), lib=several("own")))
    taken = failed(dialect, "create", {"title": [TAKEN]})
    lib = "/projects/101/milestones"
    assert [service.ask(f"POST {lib}", {"title": title}) for title in ("own", "team", " \troot\n")] == [taken] * 3
    assert [service.ask(f"POST {ALL}", {"title": title})[0] for title in ("own", "team")] == [201, 201]
    assert [service.ask(f"POST {lib}", {"title": title})[0] for title in ("OWN", "\u00a0root")] == [201, 201]
    retitled = failed(dialect, "update", {"title": [TAKEN]})
    assert service.ask(f"PUT {lib}/3", {"title": "root"}) == retitled


@BOTH
def test_what_two_milestones_of_one_title_are_called_is_not_checked_until_it_changes(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect, web=several("twice", "twice")))
    assert service.ask(f"PUT {ALL}/2", {"title": "twice", "description": "x"})[0] == 200


@pytest.mark.untraced
@BOTH
@pytest.mark.parametrize(
    ("sent", "reasons"),
    [
        ({"title": "  "}, {"title": ["can't be blank"]}),
        ({"title": None}, {"title": ["can't be blank"]}),
        (
            {"title": "x", "start_date": "2026-05-02", DUE: "2026-05-02"},
            {DUE: ["must be greater than start date"]},
        ),
        ({"title": "x", DUE: "12026-01-01"}, {DUE: ["date must not be after 9999-12-31"]}),
        (
            {"title": "", "start_date": "2026-05-02", DUE: "2026-05-01"},
            {DUE: ["must be greater than start date"], "title": ["can't be blank"]},
        ),
    ],
)
def test_what_does_not_go_is_refused(service: SandboxClient, dialect: str, sent: Any, reasons: Any) -> None:
    service.given(a_service(dialect, web=several("old")))
    assert service.ask(f"POST {ALL}", sent) == failed(dialect, "create", reasons)
    assert service.ask(f"PUT {ALL}/1", sent) == failed(dialect, "update", reasons)
    assert service.changes() == [False, False]


def test_the_state_is_saved_even_if_the_rest_is_refused(service: SandboxClient) -> None:
    service.given(a_service(web=several("old")))
    assert service.ask(f"PUT {ALL}/1", {"title": "", "state_event": "close"})[0] == 400
    assert service.ask(f"GET {ALL}/1")[1]["state"] == "closed"
    assert service.changes() == [True, False]


def test_by_the_spec_a_date_is_year_month_and_day(service: SandboxClient) -> None:
    service.given(a_service(web=several("old")))
    for wrong in ("tomorrow", "2026-02-30", "20261201", "2026-12-01T10:00:00Z"):
        reasons = {DUE: ["is invalid"]}
        assert service.ask(f"POST {ALL}", {"title": "x", DUE: wrong}) == failed("spec", "create", reasons)
        assert service.ask(f"PUT {ALL}/1", {DUE: wrong}) == failed("spec", "update", reasons)
    assert [service.ask(f"PUT {ALL}/1", {DUE: none})[0] for none in ("", None)] == [200, 200]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        *((wrong, None) for wrong in ("soon", "2026-02-30", "2026-13-01")),
        *((day, "2026-12-01") for day in ("20261201", "01/12/2026", "1 December 2026", "2026-12-01T10:00:00Z")),
    ],
)
def test_production_reads_a_date_in_several_forms_and_takes_anything_else_for_none(
    service: SandboxClient, sent: str, kept: str | None
) -> None:
    service.given(a_service("deployed"))
    status, made = service.ask(f"POST {ALL}", {"title": "x", DUE: sent})
    assert (status, made[DUE]) == (201, kept)


def test_a_milestone_expires_after_its_day(service: SandboxClient) -> None:
    days = ("2026-02-28", "2026-03-01")
    service.given(a_service(web={"milestones": [{"title": day, DUE: day} for day in days]}))
    assert [each["expired"] for each in service.ask(f"GET {ALL}")[1]] == [True, False]


@pytest.mark.parametrize(
    ("dialect", "line", "sent", "body"),
    [
        ("spec", f"POST {ALL}", {}, {"message": '400 (Bad request) "title" not given'}),
        (
            "spec",
            f"PUT {ALL}/1",
            {"state_event": "open"},
            {"message": {"state_event": ["does not have a valid value"]}},
        ),
        ("spec", f"PUT {ALL}/x", {}, {"message": {"milestone_id": ["is invalid"]}}),
        ("spec", f"GET {ALL}?state=all", None, {"message": {"state": ["does not have a valid value"]}}),
        ("deployed", f"POST {ALL}", {}, {"error": "title is missing"}),
        ("deployed", f"PUT {ALL}/1", {"state_event": "open"}, {"error": "state_event does not have a valid value"}),
        (
            "deployed",
            f"PUT {ALL}/1",
            {},
            {
                "error": "title, description, start_date, due_date, state_event are missing, "
                "at least one parameter must be provided"
            },
        ),
        ("deployed", f"GET {ALL}?state=open", None, {"error": "state does not have a valid value"}),
        (
            "deployed",
            f"GET {ALL}?iids[]=x&updated_after=x",
            None,
            {"error": "iids is invalid, updated_after is invalid"},
        ),
    ],
)
def test_attributes_are_checked(service: SandboxClient, dialect: str, line: str, sent: Any, body: Any) -> None:
    service.given(a_service(dialect, web=several("1.0")))
    assert service.ask(line, sent, user="gus") == (400, body)


def test_by_the_spec_a_put_needs_no_attribute(service: SandboxClient) -> None:
    service.given(a_service(web=several("1.0")))
    assert service.ask(f"PUT {ALL}/1") == (200, record(1, "1.0"))


def test_the_list_goes_by_due_date_without_one_last_and_newest_first(service: SandboxClient) -> None:
    dates = {"a": None, "b": "2026-06-01", "c": "2026-05-01", "d": "2026-06-01", "e": None}
    service.given(a_service(web={"milestones": [{"title": title, DUE: day} for title, day in dates.items()]}))
    assert titles(service) == ["c", "d", "b", "e", "a"]
    assert titles(service, "?sort=due_date_desc") == ["d", "b", "c", "e", "a"]
    response = service.response(f"GET {ALL}?per_page=2&page=2")
    assert [each["title"] for each in response.json()] == ["b", "e"]
    assert (response.headers["x-total"], response.headers["x-next-page"]) == ("5", "3")


@pytest.mark.parametrize(
    ("sort", "shown"),
    [
        ("name_asc", ["b", "C", "d", "E"]),
        ("name_desc", ["E", "d", "C", "b"]),
        ("created_asc", ["d", "b", "E", "C"]),
        ("created_at_desc", ["E", "C", "b", "d"]),
        ("updated_desc", ["E", "C", "b", "d"]),
        ("id_asc", ["d", "C", "b", "E"]),
        ("start_date_desc", ["b", "d", "E", "C"]),
        ("by_chance", ["E", "b", "C", "d"]),
        ("id_sideways", ["E", "b", "C", "d"]),
    ],
)
def test_the_list_is_sorted_as_asked_and_newest_first_where_the_order_is_unknown(
    service: SandboxClient, sort: str, shown: list[str]
) -> None:
    all_of_them = [
        {"id": 1, "title": "d", "created_at": "2026-01-01", "start_date": "2026-04-01"},
        {"id": 2, "title": "C", "created_at": "2026-01-03"},
        {"id": 3, "title": "b", "created_at": "2026-01-02", "start_date": "2026-05-01"},
        {"id": 4, "title": "E", "created_at": "2026-01-03"},
    ]
    service.given(a_service(web={"milestones": all_of_them}))
    assert titles(service, f"?sort={sort}") == shown


MANY = {
    "milestones": [
        {"id": 21, "iid": 1, "title": "Big Bang", "description": "all at once", "updated_at": "2026-02-01"},
        {"id": 22, "iid": 2, "title": "once", "state": "closed", "start_date": "2026-04-01", DUE: "2026-05-01"},
        {"id": 23, "iid": 3, "title": "bang big"},
    ]
}


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("?state=closed", ["once"]),
        ("?state=active", ["bang big", "Big Bang"]),
        ("?title=once", ["once"]),
        ("?search=big+bang", ["bang big", "Big Bang"]),
        ('?search="big bang"', ["Big Bang"]),
        ("?search=once", ["once", "Big Bang"]),
        ("?search=big+once", []),
        ("?search=BANG+x", ["bang big", "Big Bang"]),
        ("?search=o", []),
        ("?search=on", ["once", "Big Bang"]),
        ("?search=+", ["once", "bang big", "Big Bang"]),
        ("?search_title=once", ["once"]),
        ("?iids[]=1&iids[]=2", ["once", "Big Bang"]),
        ("?iids=1,", ["Big Bang"]),
        ("?ids[]=23", ["bang big"]),
        ("?ids[]=23&title=once", ["once", "bang big"]),
        ("?updated_after=2026-01-15", ["Big Bang"]),
        ("?updated_before=2026-01-15&updated_after=", ["once", "bang big"]),
        ("?containing_date=2026-06-01", ["bang big", "Big Bang"]),
        ("?start_date=2026-01-01&end_date=2026-02-01", ["bang big", "Big Bang"]),
        ("?start_date=2026-06-01", ["once", "bang big", "Big Bang"]),
    ],
)
@BOTH
def test_the_list_is_filtered(service: SandboxClient, dialect: str, query: str, shown: list[str]) -> None:
    service.given(a_service(dialect, web=MANY))
    assert titles(service, query) == shown


def test_in_production_the_list_takes_all_states_at_once(service: SandboxClient) -> None:
    service.given(a_service("deployed", web=MANY))
    assert titles(service, "?state=all") == titles(service, "?state=") == ["once", "bang big", "Big Bang"]


@pytest.mark.parametrize("name", ["include_ancestors", "include_parent_milestones"])
def test_the_groups_milestones_are_listed_with_a_projects(service: SandboxClient, name: str) -> None:
    service.given(a_service(acme=several("root"), team=several("team"), lib=several("own")))
    lib = "/projects/101"
    assert titles(service, "", lib) == ["own"]
    assert titles(service, f"?{name}=true&iids[]=7", lib) == ["own", "team", "root"]
    shown = record(1, "root")
    shown["group_id"] = 10
    del shown["project_id"]
    assert service.ask(f"GET {lib}/milestones?{name}=true&title=root") == (200, [shown])


@BOTH
def test_a_groups_list_shows_what_is_above_and_below_it_that_the_caller_sees(
    service: SandboxClient, dialect: str
) -> None:
    state = a_service(dialect, acme=several("root"), team=several("team"), lib=several("lib"), web=several("web"))
    off = {"issues_enabled": False, "merge_requests_enabled": False}
    state["projects"].append({"id": 103, "path": "acme/team/off", **off, **several("off")})
    state["projects"][1]["issues_enabled"] = False
    service.given(state)

    def shown(query: str, *, user: str = "ada", group: int = 11) -> list[tuple[str, str]]:
        status, found = service.ask(f"GET /groups/{group}/milestones?{query}", user=user)
        assert status == 200
        return [(each["title"], each["web_url"].removeprefix(HOST).partition("/-/")[0]) for each in found]

    team, lib = ("team", "/groups/acme/team"), ("lib", "/acme/team/lib")
    root, web = ("root", "/groups/acme"), ("web", "/acme/web")
    assert shown("include_descendants=true") == [lib, team]
    assert shown("include_ancestors=true&include_descendants=true") == [lib, team, root]
    assert shown("include_descendants=true", group=10) == [lib, web, team, root]
    assert shown("include_descendants=true", group=10, user="max") == [web, root]


@pytest.mark.parametrize(("dialect", "key"), [("spec", "message"), ("deployed", "error")])
def test_the_two_names_for_ancestors_exclude_each_other(service: SandboxClient, dialect: str, key: str) -> None:
    service.given(a_service(dialect))
    body = {key: "include_ancestors, include_parent_milestones are mutually exclusive"}
    assert service.ask(f"GET {ALL}?include_ancestors=1&include_parent_milestones=1") == (400, body)


def test_a_milestone_is_found_by_its_id_in_its_own_project(service: SandboxClient) -> None:
    service.given(a_service(acme=several("root"), web=several("own")))
    assert service.ask(f"GET {ALL}/2") == (200, record(2, "own", iid=1))
    assert service.ask(f"GET {ALL}/1") == GONE


@BOTH
def test_planners_write_and_guests_read(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web=several("1.0")))
    assert service.ask(f"POST {ALL}", {"title": "2.0"}, user="pia")[0] == 201
    assert service.ask(f"PUT {ALL}/1", {"title": "1.1"}, user="pia")[0] == 200
    assert titles(service) == ["2.0", "1.1"]
    assert service.ask(f"GET {ALL}", user="gus")[0] == 200
    assert service.ask(f"POST {ALL}", {"title": "3.0"}, user="gus") == FORBIDDEN
    assert service.ask(f"DELETE {ALL}/1", user="gus") == FORBIDDEN
    assert service.ask(f"DELETE {ALL}/1", user="pia") == (204, None)


@BOTH
def test_an_archived_project_is_read_and_not_written(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, acme={"archived": True}, web=several("1.0")))
    assert titles(service) == ["1.0"]
    assert service.ask(f"PUT {ALL}/1", {"title": "x"}) == FORBIDDEN


@BOTH
def test_without_issues_and_merge_requests_there_are_no_milestones(service: SandboxClient, dialect: str) -> None:
    off = {"issues_enabled": False, "merge_requests_enabled": False}
    service.given(a_service(dialect, web={**several("1.0"), **off}, lib={"issues_enabled": False}))
    assert service.ask(f"GET {ALL}") == FORBIDDEN
    assert titles(service, "", "/projects/101") == []


def test_what_has_changed_since_is_not_touched_by_the_spec(service: SandboxClient) -> None:
    long_ago = "Thu, 01 Jan 1970 00:00:00 GMT"
    denied = (412, {"message": "412 Precondition Failed"})
    service.given(a_service(web=several("1.0")))
    assert service.ask(f"PUT {ALL}/1", {"title": "x"}, If_Unmodified_Since=long_ago) == denied
    assert service.ask(f"DELETE {ALL}/1", If_Unmodified_Since=long_ago) == denied
    service.given(a_service("deployed", web=several("1.0")))
    assert service.ask(f"PUT {ALL}/1", {"title": "x"}, If_Unmodified_Since=long_ago)[0] == 200
    assert service.ask(f"DELETE {ALL}/1", If_Unmodified_Since=long_ago)[0] == 204


@BOTH
def test_nobody_sees_milestones_without_a_token_not_even_those_of_a_public_project(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect, web={**several("1.0"), "visibility": "public", "renamed_from": ["acme/old"]}))
    asked = [f"GET {ALL}", f"GET {ALL}/1", f"GET {ALL}/1/issues", f"POST {ALL}", "GET /projects/acme%2Fold/milestones"]
    for line in [*asked, "GET /projects/999/milestones"]:
        assert service.ask(line, user=None) == (401, {"message": "401 Unauthorized"})
    assert service.ask(f"GET {ALL}", user="wrong") == (401, {"message": "401 Unauthorized"})


def test_a_title_of_one_letter_is_found_by_all_of_it(service: SandboxClient) -> None:
    service.given(a_service(web=several("v", "V 2")))
    assert (titles(service, "?search=V"), titles(service, "?search=v++2")) == (["v"], ["V 2"])


def test_a_milestone_has_no_issues_no_merge_requests_and_no_burndown(service: SandboxClient) -> None:
    service.given(a_service(web=several("1.0")))
    for what in ("issues", "merge_requests", "burndown_events"):
        assert service.ask(f"GET {ALL}/1/{what}") == (200, [])
        assert service.ask(f"GET {ALL}/2/{what}") == GONE


def test_promotion_makes_one_of_the_group_in_place_of_all_of_that_title_in_it(service: SandboxClient) -> None:
    state = a_service(web={"milestones": [{"title": "1.0", "state": "closed"}]}, lib=several("other"))
    state["projects"].append({"id": 103, "path": "acme/api", **several("x", "1.0")})
    service.given(state)
    now = "2026-03-01T00:00:01Z"
    made = record(5, "1.0", iid=1, created_at=now, updated_at=now)
    made["group_id"] = 10
    del made["project_id"]
    assert service.ask(f"POST {ALL}/1/promote") == (201, made)
    assert titles(service) == []
    assert titles(service, "", "/projects/103") == ["x"]
    assert titles(service, "?include_ancestors=true") == ["1.0"]
    assert service.changes()[0]


def test_in_production_promotion_answers_200_and_no_record(service: SandboxClient) -> None:
    service.given(a_service("deployed", web=several("1.0")))
    assert service.ask(f"POST {ALL}/1/promote") == (200, 200)
    shown = service.ask(f"GET {ALL}?include_ancestors=true")[1]
    assert shown[0]["web_url"] == f"{HOST}/groups/acme/-/milestones/1"


@BOTH
def test_promotion_leaves_the_same_title_below_the_group(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, team=several("1.0"), web=several("1.0")))
    assert service.ask(f"POST {ALL}/2/promote")[0] == (200 if dialect == "deployed" else 201)
    assert titles(service, "?include_ancestors=true", "/projects/101") == ["1.0", "1.0"]


def test_promotion_checks_the_role_in_the_group_before_the_milestone(service: SandboxClient) -> None:
    state = a_service(web=several("1.0"))
    state["projects"].append({"id": 103, "path": "ada/own", **several("1.0")})
    service.given(state)
    assert [service.ask(f"POST {ALL}/{each}/promote", user="pia") for each in (1, 9)] == [FORBIDDEN] * 2
    assert [service.ask(f"POST /projects/103/milestones/{each}/promote") for each in (2, 9)] == [FORBIDDEN] * 2
    assert service.ask(f"POST {ALL}/9/promote") == GONE
