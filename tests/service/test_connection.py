"""Broken connections, endless responses and every error of the HTTP libraries end in errors of ours."""

import gzip
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import Any

import httpcore
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import __version__
from reconciler.errors import (
    AnswerLost,
    BadAnswer,
    ConfigurationError,
    NotFound,
    Refused,
    ServiceError,
    Unreachable,
    Unsendable,
    Untrusted,
)
from reconciler.model.protocols import Request
from reconciler.service import Client
from reconciler.service.connection import Connection, proxy_for, tls_context
from reconciler.service.policy import Clock, Policy
from reconciler.service.transport import Connect, Deadline, DirectTransport, open_transport
from tests.canned import answer, canned
from tests.service.clock import SwiftClock, patiently
from tests.service.connecting import TOKEN, connected

LOOPBACK = Path(__file__).parent / "loopback.pem"


@contextmanager
def serving(serve: Callable[[socket], None]) -> Iterator[str]:
    """Hand each connection to a function; yields host and port."""
    with create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    serve(connection)

        thread = Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(2)
        thread.join()


ERRORS = [getattr(httpcore, name) for name in httpcore.__all__]
ERRORS = [each for each in ERRORS if isinstance(each, type) and issubclass(each, Exception)]
ERRORS.remove(httpcore.ConnectionNotAvailable)  # the pool's own, which it never lets out


class BrokenStream(httpcore.NetworkStream):
    """A connection that takes everything, and on which reading fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def write(self, *_given: Any) -> None:
        """Take it."""

    def read(self, *_given: Any) -> bytes:
        raise self._error

    def close(self) -> None:
        """Do nothing."""


class BrokenNetwork(httpcore.NetworkBackend):
    """A network on which connecting fails, or else reading what comes back."""

    def __init__(self, error: Exception, *, connects: bool) -> None:
        self._error = error
        self._connects = connects

    def connect_tcp(self, *_given: Any, **_options: Any) -> httpcore.NetworkStream:
        if not self._connects:
            raise self._error
        return BrokenStream(self._error)


class SlowNetwork(httpcore.NetworkBackend, httpcore.NetworkStream):
    """A network on which nothing arrives for some waits, whose seconds it keeps."""

    def __init__(self, waits: int) -> None:
        self.waits: list[float] = []
        self._left = waits

    def connect_tcp(self, *_given: Any, **_options: Any) -> httpcore.NetworkStream:
        return self

    def write(self, *_given: Any) -> None:
        """Take it."""

    def read(self, _most: int, timeout: float | None = None) -> bytes:
        self.waits.append(timeout or 0)
        self._left -= 1
        if self._left >= 0:
            raise httpcore.ReadTimeout("nothing has come")
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"

    def get_extra_info(self, _info: str) -> None:
        """Know nothing."""

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("waits", "answered"), [(3, True), (120, False)])
def test_the_main_thread_waits_for_an_answer_in_slices_so_that_it_notices_each_signal(
    waits: int, answered: bool
) -> None:
    network = SlowNetwork(waits)

    def connect(tls: ssl.SSLContext, _proxy: str | None, policy: Policy, clock: Clock) -> httpx.BaseTransport:
        return DirectTransport(tls, None, Deadline(clock, policy, network))

    with connected("http://127.0.0.1:9/api/v4", connect=connect) as client:
        with nullcontext() if answered else pytest.raises(AnswerLost):
            client.send(Request("POST", "x", {}))
    assert network.waits == [0.5] * (4 if answered else 120)


def test_another_thread_waits_once() -> None:
    network = SlowNetwork(0)

    def connect(tls: ssl.SSLContext, _proxy: str | None, policy: Policy, clock: Clock) -> httpx.BaseTransport:
        return DirectTransport(tls, None, Deadline(clock, policy, network))

    with connected("http://127.0.0.1:9/api/v4", connect=connect) as client:
        thread = Thread(target=client.send, args=[Request("POST", "x", {})])
        thread.start()
        thread.join()
    assert network.waits == [60]


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("error", [*ERRORS, OSError, ssl.SSLError, UnicodeError], ids=str)
def test_no_error_of_the_network_leaves_the_client(error: type[Exception], sent: bool) -> None:
    def connect(tls: ssl.SSLContext, _proxy: str | None, policy: Policy, clock: Clock) -> httpx.BaseTransport:
        return DirectTransport(tls, None, Deadline(clock, policy, BrokenNetwork(error("odd"), connects=sent)))

    with connected("http://127.0.0.1:9/api/v4", connect=connect) as client:
        with pytest.raises(ServiceError, match="odd") as raised:
            client.send(Request("POST", "x", {}))
    before = {httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ProxyError}
    assert raised.value.ambiguous == (sent and error not in before)
    assert raised.value.__suppress_context__


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("error", "own"),
    [
        (httpx.ConnectError, Unreachable),
        (httpx.ConnectTimeout, Unreachable),
        (httpx.PoolTimeout, Unreachable),
        (httpx.ProxyError, Unreachable),
        (httpx.UnsupportedProtocol, Unsendable),
        (httpx.LocalProtocolError, Unsendable),
        (httpx.ReadError, AnswerLost),
        (httpx.ReadTimeout, AnswerLost),
        (httpx.WriteError, AnswerLost),
        (httpx.WriteTimeout, AnswerLost),
        (httpx.CloseError, AnswerLost),
        (httpx.RemoteProtocolError, AnswerLost),
        (httpx.DecodingError, AnswerLost),
        (OSError, AnswerLost),
        (ValueError, AnswerLost),
    ],
    ids=str,
)
def test_no_error_of_a_strangers_transport_leaves_the_client(error: type[Exception], own: type[ServiceError]) -> None:
    def refuse(_request: httpx.Request) -> httpx.Response:
        raise error("odd")

    with connected("http://127.0.0.1:9/api/v4", connect=lambda *_: httpx.MockTransport(refuse)) as client:
        with pytest.raises(ServiceError, match="odd") as raised:
            client.send(Request("POST", "x", {}))
    assert (type(raised.value), raised.value.ambiguous) == (own, own is AnswerLost)


def of_httpx(tls: ssl.SSLContext, proxy: str | None, policy: Policy, _clock: Clock) -> httpx.BaseTransport:
    """Return the transport that `httpx.Client` has by default."""
    return httpx.HTTPTransport(verify=tls, proxy=proxy, limits=httpx.Limits(keepalive_expiry=policy.connect_timeout))


@pytest.mark.parametrize("connect", [open_transport, of_httpx])
def test_a_transport_of_httpx_takes_the_place_of_ours(connect: Connect) -> None:
    packed, received = gzip.compress(b'{"id": 2}'), bytearray()
    answers = [
        answer("200 OK", '{"id": 1}'),
        answer("201 Created", packed, content_encoding="gzip"),
        answer("204 No Content"),
        answer("201 Created", '{"id": 3}'),
        answer("200 OK", "a file"),
        answer("404 Not Found", '{"message": "404 Not found"}'),
    ]
    with canned(*answers) as server, connected(server.api_url, connect=connect) as client:
        assert client.get("x?page=1") == {"id": 1}
        assert client.send(Request("POST", "groups/a%2Fb/x", {"a": "é"})) == {"id": 2}
        assert client.send(Request("DELETE", "x/1")) is None
        assert client.send(Request("POST", "import", {"path": "b"}), file=BytesIO(b"the file")) == {"id": 3}
        client.download("x/archive", lambda _headers: received.extend)
        with pytest.raises(NotFound, match="404 Not found"):
            client.get("y")
    assert received == b"a file"
    every = "Accept: application/json\r\nAccept-Encoding: gzip\r\n"
    heads = [request.partition("\r\n\r\n")[0].splitlines()[0] for request in server.requests]
    assert heads == [
        "GET /api/v4/x?page=1 HTTP/1.1",
        "POST /api/v4/groups/a%2Fb/x HTTP/1.1",
        "DELETE /api/v4/x/1 HTTP/1.1",
        "POST /api/v4/import HTTP/1.1",
        "GET /api/v4/x/archive HTTP/1.1",
        "GET /api/v4/y HTTP/1.1",
    ]
    assert server.requests[0] == (
        f"GET /api/v4/x?page=1 HTTP/1.1\r\nHost: {server.api_url[7:-7]}\r\nPRIVATE-TOKEN: {TOKEN}\r\n"
        f"User-Agent: reconciler/{__version__}\r\n{every}\r\n"
    )


def test_our_transport_serves_a_client_of_httpx() -> None:
    with canned(answer("200 OK", '{"id": 1}'), answer("201 Created", "{}")) as server:
        transport = open_transport(tls_context(server.api_url, None), None, Policy(), SwiftClock())
        with httpx.Client(base_url=server.api_url, transport=transport) as client:
            assert client.get("x").json() == {"id": 1}
            response = client.post("x", json={"a": 1})
    assert (response.status_code, response.reason_phrase, response.json()) == (201, "Created", {})
    assert [request.splitlines()[0] for request in server.requests] == [
        "GET /api/v4/x HTTP/1.1",
        "POST /api/v4/x HTTP/1.1",
    ]


@contextmanager
def counting() -> Iterator[tuple[str, list[int]]]:
    """Answer each request with its number, and keep connections open; yields the URL and the clients' ports."""
    ports: list[int] = []

    def serve(connection: socket) -> None:
        while connection.recv(65536):
            ports.append(connection.getpeername()[1])
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % len(ports))

    with serving(serve) as host:
        yield f"http://{host}/", ports


def test_another_service_gets_another_connection() -> None:
    with counting() as (one, ports), counting() as (other, others):
        transport = open_transport(tls_context(one, None), None, Policy(), SwiftClock())
        with httpx.Client(transport=transport) as client:
            assert [client.get(url).json() for url in (one, one, other, one)] == [1, 2, 1, 3]
        assert ports[0] == ports[1] != ports[2]
        assert len(others) == 1


def test_a_response_that_was_not_closed_is_followed_by_a_new_connection() -> None:
    with counting() as (url, ports):
        transport = open_transport(tls_context(url, None), None, Policy(), SwiftClock())
        transport.handle_request(httpx.Request("GET", url))
        response = transport.handle_request(httpx.Request("GET", url))
        assert response.read() == b"2"
        transport.close()
        assert ports[0] != ports[1]


def test_an_answer_that_trickles_in_is_given_up_when_its_time_is_over() -> None:
    clock = SwiftClock()

    def trickle(connection: socket) -> None:
        connection.recv(65536)
        for byte in b"HTTP/1.1 200 OK\r\nx-padding: ":
            connection.sendall(bytes([byte]))
        clock.advance(121)
        with suppress(OSError):
            connection.sendall(b"-")
            connection.recv(1)

    with serving(trickle) as host, connected(f"http://{host}/api/v4", clock=clock, tries=1) as client:
        with pytest.raises(AnswerLost) as raised:
            client.get("x")
    assert str(raised.value) == "GET x: the response was lost: the whole request took too long"


@pytest.mark.parametrize(("seconds", "ends"), [(2.0, False), (50 / 2**16, True)], ids=["a trickle", "a slow line"])
def test_a_file_may_take_long_but_not_trickle(seconds: float, ends: bool) -> None:
    clock, size = SwiftClock(), 5 * 2**16

    def serve(connection: socket) -> None:
        connection.recv(65536)
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
        with suppress(OSError):
            connection.sendall(head + b"x" * (size if ends else size - 1))
            connection.recv(1)

    received = bytearray()

    def write(piece: bytes) -> None:
        received.extend(piece)
        clock.advance(len(piece) * seconds)

    with serving(serve) as host, connected(f"http://{host}/api/v4", clock=clock) as client:
        with nullcontext() if ends else pytest.raises(AnswerLost, match="the whole request took too long"):
            client.download("x", lambda _: write)
    assert (len(received) == size, clock.monotonic() > 120) == (ends, True)


def test_the_answer_to_a_file_that_was_sent_does_not_trickle_either() -> None:
    clock = SwiftClock()

    def serve(connection: socket) -> None:
        received = connection.recv(65536)
        while not received.endswith(b"--\r\n"):
            received += connection.recv(65536)
        clock.advance(119)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        clock.advance(2)
        with suppress(OSError):
            connection.sendall(b"x: ")
            connection.recv(1)

    with serving(serve) as host, connected(f"http://{host}/api/v4", clock=clock, tries=1) as client:
        with pytest.raises(AnswerLost, match="the whole request took too long"):
            client.send(Request("POST", "x", {}), file=BytesIO(b"x" * 2**18))


def test_an_answer_that_never_comes_is_given_up() -> None:
    def hang(connection: socket) -> None:
        while connection.recv(65536):
            pass

    with serving(hang) as host, connected(f"http://{host}/api/v4", read_timeout=0.01, tries=2) as client:
        with pytest.raises(AnswerLost) as raised:
            client.get("x")
    assert str(raised.value) == "GET x: the response was lost: timed out"


def test_no_time_left_to_connect_means_nothing_was_sent() -> None:
    with canned() as server, connected(server.api_url, total_timeout=0, tries=1) as client:
        with pytest.raises(Unreachable) as raised:
            client.send(Request("POST", "x", {}))
    assert not raised.value.ambiguous
    assert server.requests == []


def test_an_answer_without_an_end_is_bounded() -> None:
    endless = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n" + b"[" + b" " * 2**20
    with canned(endless) as server, connected(server.api_url, largest_response=2**19) as client:
        with pytest.raises(BadAnswer) as raised:
            client.get("x")
    assert str(raised.value) == "GET x: the response is larger than 0.5 MiB"


def test_a_packed_answer_is_unpacked_and_bounded() -> None:
    small, bomb = gzip.compress(b'{"id": 1}'), gzip.compress(b"[" + b" " * 2**22)
    answers = (answer("200 OK", body, content_encoding="gzip") for body in (small, bomb))
    with canned(*answers) as server, connected(server.api_url, largest_response=2**21) as client:
        assert client.get("x") == {"id": 1}
        with pytest.raises(BadAnswer, match="the response is larger than 2 MiB"):
            client.get("x")
    assert "accept-encoding: gzip\r\n" in server.requests[0].lower()


@pytest.mark.parametrize(
    ("packings", "said"),
    [(["br"], "br"), (["zstd"], "zstd"), (["gzip, gzip"], "gzip, gzip"), (["gzip", "gzip"], "gzip, gzip")],
    ids=str,
)
def test_an_answer_packed_otherwise_is_refused(packings: list[str], said: str) -> None:
    lines = "".join(f"content-encoding: {packing}\r\n" for packing in packings)
    with canned(f"HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\n{{}}".encode()) as server:
        with connected(server.api_url) as client, pytest.raises(BadAnswer) as raised:
            client.get("x")
    assert str(raised.value) == f"GET x: the response has an unsupported content encoding: {said}"


def test_an_answer_that_cannot_be_unpacked_is_lost() -> None:
    with canned(answer("200 OK", b"not gzip", content_encoding="gzip")) as server, connected(server.api_url) as client:
        with pytest.raises(AnswerLost):
            client.get("x")


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
        b"\x00\xff",
    ],
    ids=["length", "chunks", "number", "status", "head", "rubbish"],
)
def test_an_answer_that_is_cut_or_none_at_all_is_lost(raw: bytes) -> None:
    with canned(raw) as server, connected(server.api_url) as client, pytest.raises(AnswerLost) as raised:
        client.get("x")
    assert len(server.requests) == 6
    assert TOKEN not in str(raised.value)


ANYTHING = st.binary(max_size=300)


@pytest.mark.untraced
@patiently
@given(
    raw=st.one_of(
        ANYTHING,
        ANYTHING.map(lambda body: b"HTTP/1.1 200 OK\r\n" + body),
        ANYTHING.map(lambda body: b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body),
        st.builds(
            lambda status, name, value: b"HTTP/1.1 %d\r\n%s: %s\r\ncontent-length: 0\r\n\r\n" % (status, name, value),
            st.integers(100, 999),
            st.sampled_from([b"location", b"retry-after", b"x-next-page", b"ratelimit-reset", b"content-type"]),
            st.binary(max_size=40).filter(lambda value: not set(value) & set(b"\r\n\0")),
        ),
    ),
    write=st.booleans(),
)
def test_whatever_comes_back_is_a_value_or_an_error_of_ours(raw: bytes, write: bool) -> None:
    with canned(raw) as server, connected(server.api_url, tries=2, read_timeout=0.2) as client:
        with suppress(ServiceError):
            client.send(Request("PUT", "x", {})) if write else client.pages("x")


@contextmanager
def secured() -> Iterator[str]:
    """A service over TLS with a self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(LOOPBACK)

    def serve(connection: socket) -> None:
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(answer("200 OK", "{}"))
        except ssl.SSLError:
            return

    with serving(serve) as host:
        yield f"https://{host}/api/v4"


def test_an_authority_of_your_own_is_trusted_if_it_is_named() -> None:
    with secured() as url, connected(url, ca_file=str(LOOPBACK)) as client:
        assert client.get("x") == {}


def test_a_certificate_that_nobody_knows_is_told_at_once_and_how_to_name_its_authority() -> None:
    clock = SwiftClock()
    with secured() as url, connected(url, clock=clock) as client, pytest.raises(Untrusted) as raised:
        client.get("x")
    assert str(raised.value) == (
        f"GET x: {url} cannot be trusted: self-signed certificate; "
        "name the certificate of a private authority with --ca-file"
    )
    assert clock.waits == []


def test_a_service_that_speaks_no_tls_is_unreachable() -> None:
    def deny(connection: socket) -> None:
        connection.sendall(answer("400 Bad Request"))
        connection.recv(65536)

    with serving(deny) as host:
        with connected(f"https://{host}/api/v4", ca_file=str(LOOPBACK), tries=1) as client, pytest.raises(Unreachable):
            client.get("x")


@pytest.mark.parametrize(
    ("path", "body"), [("x\x00y", None), ("x" * 70_000, None), ("x", {"a": float("nan")}), ("x", {"a": "\ud800"})]
)
def test_what_cannot_be_sent_is_not_tried_twice(path: str, body: Any) -> None:
    clock = SwiftClock()
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url, clock=clock) as client:
        with pytest.raises(Unsendable) as raised:
            client.send(Request("PUT", path, body))
    assert not raised.value.ambiguous
    assert (server.requests, clock.waits) == ([], [])


@pytest.mark.parametrize(
    "path", ["projects/../user", "projects/%2E./x", "projects/a%2f..%2Fb", "a//b", "a#b", "a\\b", "a b", "é", "a\nb"]
)
def test_no_request_leaves_its_path(path: str) -> None:
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        with pytest.raises(Unsendable) as raised:
            client.get(path)
    assert raised.value.reason == "the request cannot be sent: its path may lead elsewhere"
    assert server.requests == []


@pytest.mark.parametrize("path", ["projects/a..b%2F.github/x", "version/", "x?y=../z&a=https://h"])
def test_dots_that_are_part_of_a_name_are_fine(path: str) -> None:
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        assert client.get(path) == {}
    assert server.requests[0].startswith(f"GET /api/v4/{path} HTTP/1.1\r\n")


@pytest.mark.parametrize("host", ["", "a b", "[::1", "host:port", "\x00"])
def test_a_url_that_is_none_never_gets_anywhere(host: str) -> None:
    with pytest.raises((ConfigurationError, ServiceError)):
        connected(f"http://{host}/api/v4", tries=1).get("x")


@pytest.mark.parametrize("token", ["", "a b", "a\n", "é"])
def test_a_token_that_is_none_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        connected("http://127.0.0.1:9", token=token)
    assert str(raised.value) == "the token is empty, or holds blanks or characters that no token has"


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"HTTPS_PROXY": "proxy:3128"}, "http://proxy:3128"),
        ({"all_proxy": "http://proxy:1"}, "http://proxy:1"),
        ({"http_proxy": "http://proxy:1"}, None),
        ({"https_proxy": "http://proxy:1", "no_proxy": "example.com"}, None),
        ({"https_proxy": "http://proxy:1", "no_proxy": "*"}, None),
        ({"https_proxy": "http://proxy:1", "no_proxy": "other.example"}, "http://proxy:1"),
    ],
    ids=str,
)
def test_the_proxy_is_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], proxy: str | None
) -> None:
    without_proxies(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for("https://git.example.com/api/v4") == proxy


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_proxy_is_asked_instead_of_the_service_with_its_own_user(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxies(monkeypatch)
    with canned(answer("200 OK", "{}")) as proxy:
        address = proxy.api_url.removesuffix("/api/v4").removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@{address}")
        with connected("http://git.example.com/api/v4") as client:
            assert client.get("x") == {}
    assert proxy.requests[0].startswith("GET http://git.example.com/api/v4/x HTTP/1.1\r\n")
    assert "\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n" in proxy.requests[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.9.9.9", "[::1]"])
def test_a_service_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    without_proxies(monkeypatch)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.invalid:1")
    assert [proxy_for(f"{scheme}://{host}:8080/api/v4") for scheme in ("http", "https")] == [None, None]
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        assert client.get("x") == {}


def test_a_proxy_that_refuses_leaves_nothing_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxies(monkeypatch)
    with canned(answer("403 Forbidden")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.api_url.removesuffix("/api/v4"))
        with connected("https://git.example.com/api/v4", ca_file=str(LOOPBACK), tries=2) as client:
            with pytest.raises(Unreachable) as raised:
                client.send(Request("POST", "x", {}))
    assert not raised.value.ambiguous
    assert len(proxy.requests) == 2


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "Server disconnected without sending a response."),
        (b"HTTP/1.1 200 Conn", "the connection was closed before the response was complete"),
        (b"HTTP/1.1 200 Connected\r\n\r\nmore", "the proxy sent more than the head of its answer"),
        (b"HTTP/1.1 407 Who\xff?\r\n\r\n", "407 Who?"),
    ],
    ids=["nothing", "cut", "more", "refusal"],
)
def test_a_proxy_that_makes_no_tunnel_leaves_nothing_in_doubt(
    monkeypatch: pytest.MonkeyPatch, said: bytes, reason: str
) -> None:
    without_proxies(monkeypatch)
    with canned(said) as proxy:
        monkeypatch.setenv("https_proxy", proxy.api_url.removesuffix("/api/v4").replace("//", "//user:pass@"))
        url = "https://git.example.com:8443/api/v4"
        with connected(url, ca_file=str(LOOPBACK), tries=1) as client, pytest.raises(Unreachable) as raised:
            client.send(Request("POST", "x", {}))
    assert not raised.value.ambiguous
    assert raised.value.reason == f"{url} cannot be reached: {reason}"
    assert proxy.requests == [
        "CONNECT git.example.com:8443 HTTP/1.1\r\nHost: git.example.com:8443\r\nAccept: */*\r\n"
        "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n"
    ]


@pytest.mark.parametrize("proxy", ["ftp://proxy", "http://proxy:port", "socks5://proxy:1"])
def test_a_proxy_that_is_none_is_told_at_once(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    without_proxies(monkeypatch)
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConfigurationError, match="or its proxy cannot be used"):
        connected("http://git.example.com/api/v4")


class Growing(BytesIO):
    """A file to which somebody writes, or from which somebody takes, while it is read."""

    def __init__(self, content: bytes, then: bytes) -> None:
        super().__init__(content)
        self._then = then

    def read(self, _size: int | None = -1, /) -> bytes:
        content, self._then = self._then, b""
        return content


@pytest.mark.parametrize("then", [b"less", b"more than before"])
def test_a_file_that_changes_while_it_is_sent_is_never_followed_by_what_looks_like_another_request(then: bytes) -> None:
    with canned(answer("201 Created", "{}")) as server, connected(server.api_url) as client:
        with pytest.raises(AnswerLost) as raised:
            client.send(Request("POST", "x", {}), file=Growing(b"the first", then))
    assert raised.value.reason == "the response was lost: the file changed while it was being sent"


def test_an_answer_that_comes_before_a_large_file_is_sent_counts_and_ends_the_connection() -> None:
    def refuse(connection: socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")

    with serving(refuse) as host, connected(f"http://{host}/api/v4") as client:
        for _ in range(2):
            with pytest.raises(Refused, match="413 Too Large"):
                client.send(Request("POST", "x", {}), file=BytesIO(b"x" * 2**24))


def test_a_connection_that_has_rested_is_not_used_again() -> None:
    clock, ports = SwiftClock(), []

    def serve(connection: socket) -> None:
        while connection.recv(65536):
            ports.append(connection.getpeername()[1])
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    with serving(serve) as host, connected(f"http://{host}/api/v4", clock=clock) as client:
        for seconds in (0, 4, 6):
            clock.advance(seconds)
            assert client.get("x") == {}
    assert ports[0] == ports[1] != ports[2]


def test_no_header_and_no_other_protocol_is_sent_in_disguise() -> None:
    url, tls = "http://127.0.0.1:9/api/v4", tls_context("http:", None)
    with pytest.raises(Unsendable, match="a header has a line break"):
        Connection(url, Policy(), SwiftClock(), tls, open_transport).exchange("GET", "x", {"a": "b\r\nc: d"}, None)
    with pytest.raises(Unsendable, match="a URL begins with http:// or https://, not ftp://"):
        Connection("ftp://x", Policy(), SwiftClock(), tls, open_transport).exchange("GET", "x", {}, None)


def test_the_real_transport_is_the_default() -> None:
    with canned(answer("200 OK", "{}")) as server, Client(server.api_url, TOKEN) as client:
        assert client.get("x") == {}
