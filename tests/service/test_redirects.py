"""Redirects of reads, and projects that have moved: the token goes nowhere else."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import Moved, NotFound
from reconciler.model.protocols import Method, Request
from reconciler.model.targets import Level
from reconciler.sandbox import Sandbox
from reconciler.service.moves import Moves, target_of
from tests.canned import answer, canned
from tests.service.clock import patiently
from tests.service.connecting import connected
from tests.states import a_small_service

API = "https://git.example.com/gitlab/api/v4"
OLD = "projects/acme%2Fold"


@pytest.fixture
def service(sandbox: Sandbox) -> Sandbox:
    state = a_small_service("deployed")
    state["projects"][0] |= {"renamed_from": ["acme/old"], "milestones": [{"title": str(n)} for n in range(150)]}
    sandbox.replace_state(state)
    return sandbox


def asked(sandbox: Sandbox) -> list[str]:
    return [
        f"{entry['method']} {entry['target'].removeprefix('/api/v4/')} {entry['status']}" for entry in sandbox.log()
    ]


def test_a_project_that_has_moved_is_followed_once_and_remembered(service: Sandbox) -> None:
    with connected(service.api_url, token="ada-token") as client:
        assert client.moved == {}
        assert len(client.pages(f"{OLD}/milestones")) == 150
        assert client.get(f"{OLD}/job_token_scope")["inbound_enabled"] is True
        assert client.get(OLD)["id"] == 100
        assert client.get("projects/acme%2Flib")["id"] == 101
        assert client.moved == {(Level.PROJECT, "acme/old"): 100}
    assert asked(service) == [
        f"GET {OLD}/milestones?per_page=100&page=1 301",
        "GET projects/100/milestones?per_page=100&page=1 200",
        "GET projects/100/milestones?per_page=100&page=2 200",
        "GET projects/100/job_token_scope 200",
        "GET projects/100 200",
        "GET projects/acme%2Flib 200",
    ]


def test_what_a_project_holds_that_has_moved_is_read_only_if_that_is_meant(service: Sandbox) -> None:
    with connected(service.api_url, token="ada-token", reads_moved=False) as client:
        for part in ("milestones", "job_token_scope"):
            with pytest.raises(Moved) as raised:
                client.get(f"{OLD}/{part}")
            assert str(raised.value) == f"GET {OLD}/{part}: its group or project has moved"
        assert client.moved == {(Level.PROJECT, "acme/old"): 100}
        assert client.get(OLD)["id"] == 100
        assert client.get("projects/acme%2Flib/job_token_scope")["inbound_enabled"] is True
    assert asked(service) == [
        f"GET {OLD}/milestones 301",
        "GET projects/100 200",
        "GET projects/acme%2Flib/job_token_scope 200",
    ]


def test_another_redirect_is_followed_all_the_same() -> None:
    elsewhere = answer("301 Moved Permanently", location="/api/v4/projects/1/archive?x=1")
    with canned(elsewhere, answer("200 OK", "[]")) as service, connected(service.api_url, reads_moved=False) as client:
        assert client.get("projects/1/milestones") == []


def test_a_project_that_has_moved_is_not_written_to(service: Sandbox) -> None:
    with connected(service.api_url, token="ada-token") as client:
        client.get(OLD)
        service.clear_log()
        with pytest.raises(Moved) as raised:
            client.send(Request("PATCH", f"{OLD}/job_token_scope", {"enabled": False}))
    assert str(raised.value) == (
        f"PATCH {OLD}/job_token_scope: the project has moved, and is project 100 now; "
        "writing to it needs --follow-moved"
    )
    assert not raised.value.ambiguous
    assert asked(service) == []


def test_a_project_that_has_moved_is_written_to_if_that_is_meant(service: Sandbox) -> None:
    with connected(service.api_url, token="ada-token", follow_moved=True) as client:
        client.get(f"{OLD}/job_token_scope")
        service.clear_log()
        client.send(Request("PATCH", f"{OLD}/job_token_scope", {"enabled": False}))
    assert asked(service) == ["PATCH projects/100/job_token_scope 204"]


def test_a_write_is_never_redirected() -> None:
    there = answer(
        "307 Odd", "moved permanently", location="/api/v4/projects/7/x?private_token=1", content_type="text/plain"
    )
    with canned(there) as server, connected(server.api_url, follow_moved=True) as client:
        methods: list[Method] = ["POST", "PUT", "PATCH", "DELETE"]
        for method in methods:
            with pytest.raises(Moved) as raised:
                client.send(Request(method, f"{OLD}/x", {}))
            assert str(raised.value) == (
                f"{method} {OLD}/x: redirected to /api/v4/projects/7/x (moved permanently), so nothing was written: "
                "writes follow no redirects; the service may be in maintenance"
            )
        assert client.moved == {}
    assert len(server.requests) == 4


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of a server that must not get a request."""
    with canned(answer("200 OK", "{}")) as server:
        yield server.api_url
        assert server.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_goes_nowhere_else(elsewhere: str, status: int) -> None:
    there = answer(f"{status} Odd", location=f"{elsewhere}/projects/7")
    with canned(there) as server, connected(server.api_url) as client, pytest.raises(Moved) as raised:
        client.get(OLD)
    assert str(raised.value) == f"GET {OLD}: redirected to {elsewhere}/projects/7"
    assert raised.value.status == status
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_read_is_redirected_within_the_api_once(status: int) -> None:
    there = answer(f"{status} Odd", location="/api/v4/version/?a=b")
    with canned(there, answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        assert client.get("version") == {}
        assert (client.moved, client.traffic.reads, client.traffic.retries) == ({}, 2, 0)
    assert [request.split(" ")[1] for request in server.requests] == ["/api/v4/version", "/api/v4/version/?a=b"]
    with canned(there) as server, connected(server.api_url) as client, pytest.raises(Moved):
        client.get("version")
    assert len(server.requests) == 2


def test_a_redirect_that_asks_for_another_kind_of_request_is_not_followed() -> None:
    with canned(answer("303 See Other", location="/api/v4/version")) as server, connected(server.api_url) as client:
        with pytest.raises(Moved):
            client.get("x")
    assert len(server.requests) == 1


def test_where_a_project_has_moved_to_may_be_out_of_sight() -> None:
    there = answer("301 Moved Permanently", location="/api/v4/projects/7")
    with canned(there, answer("404 Not Found")) as server, connected(server.api_url) as client:
        with pytest.raises(NotFound) as raised:
            client.get(OLD)
    assert str(raised.value) == f"GET {OLD}: 404 Not Found"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (f"{API}/projects/7?page=2", "projects/7?page=2"),
        ("https://git.example.com:443/gitlab/api/v4/projects/7#x", "projects/7"),
        ("HTTPS://GIT.example.com/gitlab/api/v4/projects/7", "projects/7"),
        ("/gitlab/api/v4/projects/7/", "projects/7/"),
        ("7", "projects/7"),
        ("../version", "version"),
        ("http://git.example.com/gitlab/api/v4/projects/7", None),
        ("https://git.example.com:8443/gitlab/api/v4/projects/7", None),
        ("https://git.example.com.evil.example/gitlab/api/v4/projects/7", None),
        ("https://evil@git.example.com/gitlab/api/v4/projects/7", None),
        ("//evil.example/gitlab/api/v4/projects/7", None),
        ("https://git.example.com/gitlab/api/v40/projects/7", None),
        ("https://git.example.com/gitlab/api/v4/../../users/sign_in", None),
        ("https://git.example.com/gitlab/api/v4/%2e%2E/x", None),
        ("https://git.example.com/gitlab/api/v4/x\\..\\y", None),
        ("https://git.example.com/gitlab/api/v4//x/y", None),
        ("https://git.example.com/gitlab/api/v4/x%2F..%2fy", None),
        ("https://git.example.com/gitlab/api/v4/a b", None),
        ("https://git.example.com/gitlab/api/v4/é", None),
        ("https://git.example.com/users/sign_in", None),
        ("https://[/", None),
        ("https://git.example.com:port/gitlab/api/v4/x", None),
        ("javascript:alert(1)", None),
        ("", f"{OLD}"),
    ],
)
def test_where_a_redirect_leads(location: str, target: str | None) -> None:
    assert target_of(API, OLD, location) == target


@pytest.mark.untraced
@patiently
@given(st.text() | st.text("htps:/.git@example%2eE\\?#", max_size=60))
def test_no_redirect_leads_out_of_the_api(location: str) -> None:
    target = target_of(API, OLD, location)
    assert target is None or (".." not in target.partition("?")[0].split("/") and target.isascii())


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (OLD, "projects/acme%2Fnew"),
        (OLD, "projects/7/x"),
        (f"{OLD}/x", "projects/7"),
        (OLD, "groups/7"),
        ("groups/acme", "projects/7"),
        ("groups/acme", "groups/new"),
        ("users/acme", "users/7"),
        ("projects/6", "projects/7"),
        (OLD, "projects/" + "9" * 19),
    ],
)
def test_only_a_number_in_place_of_a_path_says_that_a_project_has_moved(path: str, target: str) -> None:
    moves = Moves()
    moves.learn(path, target)
    assert moves.found == {}


def test_a_move_concerns_the_project_alone() -> None:
    moves = Moves()
    moves.learn(OLD, "projects/7")
    assert moves.current(f"{OLD}/x?y=projects/acme%2Fold") == "projects/7/x?y=projects/acme%2Fold"
    assert moves.current(f"{OLD}er/x") == f"{OLD}er/x"
    assert moves.current("groups/acme%2Fold") == "groups/acme%2Fold"
