"""The client on real sockets: what it sends, and what it makes of every sort of answer."""

import json
from socket import socket

import pytest

from reconciler.errors import (
    AnswerLost,
    BadAnswer,
    Forbidden,
    Moved,
    NotFound,
    RateLimited,
    Refused,
    ServerFailure,
    ServiceError,
    Unauthorized,
    Unreachable,
)
from reconciler.service import Client
from reconciler.wire import Request
from tests.canned import answer, canned
from tests.service.clock import SwiftClock

TOKEN = "glpat-secret"


def connected(api_url: str) -> Client:
    return Client(api_url, TOKEN, clock=SwiftClock())


def test_a_read_carries_the_token_and_a_write_is_json() -> None:
    with (
        canned(answer("200 OK", "{}"), answer("204 No Content")) as server,
        connected(server.api_url + "/") as client,
    ):
        assert client.get("projects/a%2Fb/x") == {}
        assert client.send(Request("DELETE", "projects/a%2Fb/x/1")) is None
        assert (client.traffic.reads, client.traffic.writes) == (1, 1)
    heads = [request.split("\r\n") for request in server.requests]
    assert [head[0] for head in heads] == [
        "GET /api/v4/projects/a%2Fb/x HTTP/1.1",
        "DELETE /api/v4/projects/a%2Fb/x/1 HTTP/1.1",
    ]
    assert all("PRIVATE-TOKEN: glpat-secret" in head for head in heads)
    assert ["Content-Type: application/json" in head for head in heads] == [False, True]


def test_a_body_is_sent_as_json_and_the_answer_is_returned() -> None:
    with canned(answer("201 Created", '{"id": 3}')) as server, connected(server.api_url) as client:
        assert client.send(Request("POST", "projects/1/milestones", {"title": "é"})) == {"id": 3}
    assert json.loads(server.requests[0].partition("\r\n\r\n")[2]) == {"title": "é"}


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        ("400 Bad Request", '{"error": "title is missing"}', Refused, "400 title is missing"),
        ("400 Bad Request", '{"message": "400 Bad request - no"}', Refused, "400 Bad request - no"),
        (
            "400 Bad Request",
            '{"message": {"level": ["is", "bad"], "b": {"c": [1]}}}',
            Refused,
            "400 level: is; bad; b: c: 1",
        ),
        ("400 Bad Request", '{"message": {"error": ["one", "two"]}}', Refused, "400 one; two"),
        ("400 Bad Request", '["a", null]', Refused, "400 a; null"),
        ("400 Bad Request", "{}", Refused, "400 Bad Request"),
        ("401 Unauthorized", '{"message": "401 Unauthorized"}', Unauthorized, "401 Unauthorized"),
        (
            "401 Unauthorized",
            '{"error": "invalid_token", "error_description": "Token was revoked."}',
            Unauthorized,
            "401 Token was revoked.",
        ),
        ("403 Forbidden", '{"message": "403 Forbidden - archived"}', Forbidden, "403 Forbidden - archived"),
        ("404 Not Found", '{"message": "404 Not found"}', NotFound, "404 Not found"),
        ("409 Conflict", '{"message": "409 Conflict: Resource lock"}', Refused, "409 Conflict: Resource lock"),
        ("422 Unprocessable Entity", "", Refused, "422 Unprocessable Entity"),
        ("429 Too Many Requests", "Retry later\n", RateLimited, "429 Retry later"),
        ("502 Bad Gateway", "\x1b[31mgone\x07" + "x" * 600, ServerFailure, "502 [31mgone " + "x" * 490 + "…"),
    ],
)
def test_every_error_status_has_its_error_in_the_words_of_the_service(
    status: str, body: str, error: type[ServiceError], said: str
) -> None:
    with canned(answer(status, body, content_type="text/plain")) as server, connected(server.api_url) as client:
        with pytest.raises(error) as raised:
            client.get("user")
    assert type(raised.value) is error
    assert str(raised.value) == f"GET user: {said}"
    assert raised.value.status == int(status[:3])


def test_a_page_of_html_is_not_repeated() -> None:
    page = answer("502 Bad Gateway", "<html><script>alert(1)</script></html>", content_type="text/html")
    with canned(page) as server, connected(server.api_url) as client, pytest.raises(ServerFailure) as raised:
        client.get("user")
    assert str(raised.value) == "GET user: 502 Bad Gateway"


@pytest.mark.parametrize("body", ["<html></html>", '{"a": ', "[" * 100_000, b"\xff\xfe"])
def test_a_success_that_is_not_json_is_a_bad_answer(body: str | bytes) -> None:
    with canned(answer("200 OK", body, content_type="text/html\t")) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.get("user")
    assert str(raised.value) == "GET user: the answer is not JSON (200, text/html)"


def test_a_redirect_is_never_followed() -> None:
    moved = answer("301 Moved Permanently", location="https://evil.example/api/v4/user")
    with canned(moved) as server, connected(server.api_url) as client, pytest.raises(Moved) as raised:
        client.get("user")
    assert str(raised.value) == "GET user: redirected to https://evil.example/api/v4/user"
    assert len(server.requests) == 1


def test_pages_are_followed_until_the_service_says_there_is_no_next_one() -> None:
    first, last = answer("200 OK", "[1, 2]", x_next_page="2"), answer("200 OK", "[3]", x_next_page="")
    with canned(first, last) as server, connected(server.api_url) as client:
        assert client.pages("projects/1/milestones") == [1, 2, 3]
    assert [request.split(" ")[1] for request in server.requests] == [
        "/api/v4/projects/1/milestones?per_page=100&page=1",
        "/api/v4/projects/1/milestones?per_page=100&page=2",
    ]


@pytest.mark.parametrize(
    ("sizes", "requests"),
    [([0], 1), ([99], 1), ([100, 1], 2), ([100, 0], 2), ([150], 1)],
    ids=str,
)
def test_without_page_headers_a_page_that_is_not_full_is_the_last(sizes: list[int], requests: int) -> None:
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    pages = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    with (
        canned(*(answer("200 OK", json.dumps(page)) for page in pages)) as server,
        connected(server.api_url) as client,
    ):
        assert client.pages("x") == list(range(sum(sizes)))
    assert len(server.requests) == requests


def test_a_server_that_knows_no_pages_is_not_read_twice() -> None:
    everything = answer("200 OK", json.dumps(list(range(100))))
    with canned(everything) as server, connected(server.api_url) as client:
        assert client.pages("x") == list(range(100))
    assert len(server.requests) == 2


@pytest.mark.parametrize("following", ["1", "0", "-1", "x", "2&private=1"])
def test_a_next_page_that_leads_nowhere_is_a_bad_answer(following: str) -> None:
    with canned(answer("200 OK", "[1]", x_next_page=following)) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.pages("x")
    assert str(raised.value) == f"GET x: the next page after page 1 cannot be {following!r}"


def test_a_list_that_is_none_is_a_bad_answer() -> None:
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.pages("x")
    assert str(raised.value) == "GET x: the answer is not a list"


def test_a_connection_that_cannot_be_made_is_unreachable() -> None:
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/api/v4"
        with connected(url) as client, pytest.raises(Unreachable) as raised:
            client.get("user")
    assert str(raised.value) == f"GET user: {url} cannot be reached: [Errno 111] Connection refused"


def test_a_connection_that_breaks_is_a_lost_answer() -> None:
    with canned(b"") as server, connected(server.api_url) as client:
        with pytest.raises(AnswerLost) as raised:
            client.send(Request("POST", "projects/1/triggers", {"description": "d"}))
    assert str(raised.value) == (
        "POST projects/1/triggers: the answer was lost: Server disconnected without sending a response."
    )


def test_no_error_of_the_http_library_and_no_token_leaves_the_client() -> None:
    broken = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"
    with canned(broken) as server, connected(server.api_url) as client, pytest.raises(AnswerLost) as raised:
        client.get("user")
    assert raised.value.__cause__ is None
    assert TOKEN not in str(raised.value)
