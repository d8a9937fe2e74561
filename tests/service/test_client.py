"""The client on real sockets: the requests it sends, and the value or error of every sort of response."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from socket import socket

import pytest

from reconciler.errors import (
    AccountClosed,
    AnswerLost,
    BadAnswer,
    ConfigurationError,
    Forbidden,
    NotFound,
    RateLimited,
    Refused,
    ServerFailure,
    ServiceError,
    Unauthorized,
    Unreachable,
)
from reconciler.model.protocols import Request
from reconciler.sandbox import Sandbox
from tests.canned import answer, canned
from tests.service.clock import NOON, SwiftClock
from tests.service.connecting import TOKEN, connected
from tests.states import a_small_service


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
    assert "content-length" not in str(heads).lower()


def test_a_body_is_sent_as_json_and_the_answer_is_returned() -> None:
    with canned(answer("201 Created", '{"id": 3}')) as server, connected(server.api_url) as client:
        assert client.send(Request("POST", "projects/1/milestones", {"title": "é"})) == {"id": 3}
    assert json.loads(server.requests[0].partition("\r\n\r\n")[2]) == {"title": "é"}


def test_the_time_is_that_of_the_latest_answer_and_goes_on_from_there() -> None:
    clock = SwiftClock()
    answers = [answer("200 OK", "{}", date=date) for date in ("Sat, 10 Oct 2026 13:00:00 GMT", "soon")]
    with canned(*answers, answer("200 OK", "{}")) as server, connected(server.api_url, clock=clock) as client:
        assert client.now() == NOON
        client.get("x")
        clock.advance(90)
        assert client.now() == NOON + timedelta(hours=1, seconds=90)
        for _ in range(2):
            client.get("x")
            assert client.now() == clock.now()


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        ("400 Bad Request", '{"error": "title is missing"}', Refused, "400 title is missing"),
        ("400 Bad Request", '{"message": "400 Bad request - no"}', Refused, "400 Bad request - no"),
        (
            "400 Bad Request",
            '{"message": {"level": ["is", "bad"], "b": {"c": ["no", 1]}, "d": [2], "runners_token": ["x"]}}',
            Refused,
            "400 level: is; bad; b: c: no",
        ),
        ("400 Bad Request", '{"message": {"error": ["one", "two"]}}', Refused, "400 one; two"),
        ("400 Bad Request", '["a", null]', Refused, "400 Bad Request"),
        ("400 Bad Request", '{"message": {"a": 1}, "error": "no"}', Refused, "400 no"),
        ("403 Forbidden", '{"id": 1, "token": "glptt-secret", "owner": {"name": "ada"}}', Forbidden, "403 Forbidden"),
        (
            "403 Forbidden",
            '{"message": "not glptt-secret", "x": [{"token": "glptt"}, {"Trigger_Token": "glptt-secret"}]}',
            Forbidden,
            "403 not [a secret]",
        ),
        ("403 Forbidden", 'no: {"token": "glptt-secret"', Forbidden, "403 Forbidden"),
        ("403 Forbidden", '{"message": "no glptt-0123456789abcdef"}', Forbidden, "403 no [a secret]"),
        ("403 Forbidden", "no glpat-0123456789.abcdef, no", Forbidden, "403 no [a secret], no"),
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
    assert str(raised.value) == "GET user: the response is not JSON (200, text/html)"


def test_a_connection_that_cannot_be_made_is_unreachable() -> None:
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/api/v4"
        with connected(url) as client, pytest.raises(Unreachable) as raised:
            client.get("user")
    assert str(raised.value) == f"GET user: {url} cannot be reached: Connection refused"


def test_a_connection_that_breaks_is_a_lost_answer() -> None:
    with canned(b"") as server, connected(server.api_url) as client:
        with pytest.raises(AnswerLost) as raised:
            client.send(Request("POST", "projects/1/triggers", {"description": "d"}))
    assert str(raised.value) == (
        "POST projects/1/triggers: the response was lost: Server disconnected without sending a response."
    )


def test_no_error_of_the_http_library_and_no_token_leaves_the_client() -> None:
    broken = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"
    with canned(broken) as server, connected(server.api_url) as client, pytest.raises(AnswerLost) as raised:
        client.get("user")
    assert raised.value.__cause__ is None
    assert TOKEN not in str(raised.value)


def test_each_request_is_logged_once_without_its_query_and_without_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "reconciler")
    first = answer("500 Odd", f'{{"message": "not {TOKEN}"}}', x_request_id="r1\t;" + "x" * 100)
    with canned(b"", first, answer("200 OK", "[]")) as server, connected(server.api_url) as client:
        assert client.pages("x") == []
    assert caplog.messages == [
        "GET x not answered, 0 ms, try 1, request unknown",
        "GET x 500, 0 ms, try 2, request r1 ;" + "x" * 60,
        "GET x 200, 0 ms, try 3, request unknown",
    ]


def test_a_service_that_repeats_the_token_is_not_repeated() -> None:
    said = answer("403 Forbidden", f'{{"message": "{TOKEN} may not do this"}}')
    with canned(said) as server, connected(server.api_url) as client, pytest.raises(AccountClosed) as raised:
        client.get("x")
    assert str(raised.value) == "GET x: 403 [the token] may not do this"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file or directory"), ("nothing", "holds no certificates")], ids=str
)
def test_certificates_that_cannot_be_used_are_told(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError) as raised:
        connected("https://127.0.0.1:9/api/v4", ca_file=str(file))
    assert str(raised.value) == f"{file}: {said}"


def test_the_policy_bounds_what_is_in_flight_and_threads_that_wait_hold_no_connection(sandbox: Sandbox) -> None:
    sandbox.replace_state(a_small_service("deployed"))
    sandbox.set_latency(1)
    with connected(sandbox.api_url, token="ada-token", concurrency=2) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.get("version"), range(24)))
        assert len(client._connections) == 2
    assert sandbox.peak_in_flight() == 2
