"""Odd answers, each with its outcome: an answer that may not be whole, or not be asked for, is lost, never believed."""

import gzip
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socket import IPPROTO_TCP, TCP_NODELAY, create_server, socket
from threading import Semaphore, Thread

import pytest

from reconciler.errors import ServiceError
from reconciler.model.protocols import Json, Request
from reconciler.service import Client
from tests.service.connecting import connected
from tests.service.test_connection import LOOPBACK, without_proxies

OK = b"HTTP/1.1 200 OK\r\n"
A = b'{"a":1}'
B = b'{"b":2}'
PACKED = gzip.compress(A)
LOST, BAD = "AnswerLost", "BadAnswer"


def whole(body: bytes = A, *lines: bytes, start: bytes = OK) -> bytes:
    """Return an answer that says how long its body is."""
    return start + b"".join(line + b"\r\n" for line in (*lines, b"content-length: %d" % len(body))) + b"\r\n" + body


def chunked(chunks: bytes, *lines: bytes, start: bytes = OK) -> bytes:
    """Return an answer in chunks."""
    return start + b"".join(line + b"\r\n" for line in (*lines, b"transfer-encoding: chunked")) + b"\r\n" + chunks


@dataclass(frozen=True)
class Odd:
    """An answer.

    Attributes:
        raw: what is sent.
        get: the value of a GET, or the name of its error.
        post: of a POST.
        stays: whether the service keeps the connection open.
        again: whether the next request is sent on the same connection.
        socks: whether h11, which reads what comes through a SOCKS proxy, comes to the same outcome.
    """

    raw: bytes
    get: Json
    post: Json
    stays: bool = True
    again: bool = False
    socks: bool = True


def odd(raw: bytes, get: Json, post: Json = ..., **more: bool) -> Odd:
    return Odd(raw, get, get if post is ... else post, **more)


WHOLE = {"a": 1}

ANSWERS: dict[str, Odd] = {
    "as it should be": odd(whole(), WHOLE, again=True),
    "in chunks": odd(chunked(b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'), WHOLE, again=True),
    "packed": odd(whole(PACKED, b"content-encoding: gzip"), WHOLE, again=True),
    "up to the end of the connection": odd(OK + b"\r\n" + A, WHOLE, stays=False),
    # heads that are cut
    "nothing": odd(b"", LOST, stays=False),
    "one byte": odd(b"H", LOST, stays=False),
    "cut in the status": odd(b"HTTP/1.1 20", LOST, stays=False),
    "cut behind the status": odd(b"HTTP/1.1 200 OK", LOST, stays=False),
    "cut in a header": odd(OK + b"content-le", LOST, stays=False),
    "cut in the length": odd(OK + b"content-length: 1", LOST, stays=False),
    "cut before the blank line": odd(OK + b"content-length: 7\r\n", LOST, stays=False),
    "cut in the blank line": odd(OK + b"content-length: 7\r\n\r", LOST, stays=False),
    # statuses
    "status 99": odd(whole(start=b"HTTP/1.1 099 Low\r\n"), LOST),
    "status 0": odd(whole(start=b"HTTP/1.1 000 None\r\n"), LOST),
    "status of two digits": odd(whole(start=b"HTTP/1.1 20 OK\r\n"), LOST),
    "status of four digits": odd(whole(start=b"HTTP/1.1 2000 OK\r\n"), LOST),
    "status that is no number": odd(whole(start=b"HTTP/1.1 2xx OK\r\n"), LOST),
    "status below zero": odd(whole(start=b"HTTP/1.1 -200 OK\r\n"), LOST),
    "status 600": odd(whole(start=b"HTTP/1.1 600 Far\r\n"), "ServerFailure", again=True),
    "no phrase": odd(whole(start=b"HTTP/1.1 200\r\n"), WHOLE, again=True),
    "no phrase, but a blank": odd(whole(start=b"HTTP/1.1 200 \r\n"), WHOLE, again=True),
    "no blank behind the status": odd(whole(start=b"HTTP/1.1 200OK\r\n"), LOST),
    "101, which nobody asked for": odd(
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n" + whole(), LOST, socks=False
    ),
    "101 without an upgrade": odd(b"HTTP/1.1 101 Switching\r\n\r\n" + whole(), LOST, socks=False),
    # versions and beginnings
    "HTTP/1.0": odd(whole(start=b"HTTP/1.0 200 OK\r\n"), WHOLE),
    "HTTP/1.0 that stays": odd(
        whole(A, b"connection: keep-alive", start=b"HTTP/1.0 200 OK\r\n"), WHOLE, again=True, socks=False
    ),
    "HTTP/1.0 in chunks": odd(
        chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n", start=b"HTTP/1.0 200 OK\r\n"), LOST, socks=False
    ),
    "HTTP/2.0": odd(whole(start=b"HTTP/2.0 200 OK\r\n"), LOST, socks=False),
    "HTTP/0.9": odd(A, LOST, stays=False),
    "HTTP/1.9": odd(whole(start=b"HTTP/1.9 200 OK\r\n"), LOST, socks=False),
    "lower case": odd(whole(start=b"http/1.1 200 OK\r\n"), LOST),
    "another protocol": odd(whole(start=b"ICY 200 OK\r\n"), LOST),
    "another protocol of this form": odd(whole(start=b"RTSP/1.0 200 OK\r\n"), LOST),
    "rubbish": odd(b"\x00\xff\r\n\r\n", LOST),
    "a blank line first": odd(b"\r\n" + whole(), LOST),
    "a line feed first": odd(b"\n" + whole(), LOST),
    "a blank first": odd(b" " + whole(), LOST),
    "a request": odd(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", LOST),
    # interim answers
    "100": odd(b"HTTP/1.1 100 Continue\r\n\r\n" + whole(), WHOLE, again=True),
    "103 with headers": odd(b"HTTP/1.1 103 Hints\r\nlocation: /x\r\n\r\n" + whole(), WHOLE, again=True),
    "100 alone": odd(b"HTTP/1.1 100 Continue\r\n\r\n", LOST, stays=False),
    "100 with a body": odd(b"HTTP/1.1 100 Continue\r\ncontent-length: 7\r\n\r\n" + B + whole(), LOST),
    "100, then a blank line": odd(b"HTTP/1.1 100 Continue\r\n\r\n\r\n" + whole(), LOST),
    "some 1xx": odd(b"HTTP/1.1 102 Processing\r\n\r\n" * 50 + whole(), WHOLE, again=True),
    "a flood of 1xx": odd(b"HTTP/1.1 102 Processing\r\n\r\n" * 10_000, LOST, stays=False, socks=False),
    # headers
    "a folded header": odd(whole(A, b"x-a: b\r\n c"), LOST, socks=False),
    "a folded length": odd(OK + b"content-length:\r\n 7\r\n\r\n" + A, LOST, socks=False),
    "bare line feeds": odd(whole().replace(b"\r\n", b"\n"), LOST, socks=False),
    "one bare line feed": odd(whole(A, b"x-a: b\nx-c: d"), LOST, socks=False),
    "a bare carriage return": odd(whole(A, b"x-a: b\rx-c: d"), LOST),
    "a header without a name": odd(whole(A, b": b"), LOST),
    "a header without a colon": odd(whole(A, b"x-a"), LOST),
    "a blank before the colon": odd(whole(A, b"x-a : b"), LOST),
    "a NUL in a header": odd(whole(A, b"x-a: b\0c"), LOST),
    "a header of 200 kB": odd(whole(A, b"x-a: " + b"b" * 200_000), LOST),
    "headers of 200 kB": odd(whole(A, *[b"x-a: " + b"b" * 1000] * 200), LOST),
    "a header of other characters": odd(whole(A, b"x-a: \xe4\xff"), WHOLE, again=True),
    # lengths
    "two lengths": odd(OK + b"content-length: 7\r\ncontent-length: 6\r\n\r\n" + A, LOST),
    "a length twice": odd(OK + b"content-length: 7\r\ncontent-length: 7\r\n\r\n" + A, LOST, socks=False),
    "two lengths in one": odd(OK + b"content-length: 7, 6\r\n\r\n" + A, LOST),
    "a length twice in one": odd(OK + b"content-length: 7, 7\r\n\r\n" + A, LOST, socks=False),
    "a length below zero": odd(OK + b"content-length: -7\r\n\r\n" + A, LOST),
    "a length with a sign": odd(OK + b"content-length: +7\r\n\r\n" + A, LOST),
    "a length in hexadecimal": odd(OK + b"content-length: 0x7\r\n\r\n" + A, LOST),
    "no length": odd(OK + b"content-length:\r\n\r\n" + A, LOST),
    "a length too large": odd(OK + b"content-length: 99999999999999999999999\r\n\r\n" + A, LOST, stays=False),
    "a body that is too short": odd(OK + b"content-length: 8\r\n\r\n" + A, LOST, stays=False),
    "a body that is too long": odd(OK + b"content-length: 7\r\n\r\n" + A + b"}", WHOLE),
    "no body": odd(whole(b""), BAD, again=True),
    "an end where a body was to be": odd(OK + b"\r\n", LOST, stays=False),
    # chunks
    "chunks and a length": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n", b"content-length: 7"), LOST, socks=False),
    "a length and chunks": odd(
        OK + b"transfer-encoding: chunked\r\ncontent-length: 7\r\n\r\n7\r\n" + A + b"\r\n0\r\n\r\n", LOST, socks=False
    ),
    "gzip, chunked": odd(OK + b"transfer-encoding: gzip, chunked\r\n\r\n7\r\n" + A + b"\r\n0\r\n\r\n", LOST),
    "gzip and chunked": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n", b"transfer-encoding: gzip"), LOST),
    "chunked twice": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n", b"transfer-encoding: chunked"), LOST),
    "chunked, gzip": odd(OK + b"transfer-encoding: chunked, gzip\r\n\r\n" + A, LOST, stays=False),
    "identity": odd(OK + b"transfer-encoding: identity\r\n\r\n" + A, LOST, stays=False),
    "a blank transfer encoding": odd(OK + b"transfer-encoding:\r\n\r\n" + A, LOST, stays=False),
    "CHUNKED": odd(OK + b"Transfer-Encoding: CHUNKED\r\n\r\n7\r\n" + A + b"\r\n0\r\n\r\n", WHOLE, again=True),
    "no last chunk": odd(chunked(b"7\r\n" + A + b"\r\n"), LOST, stays=False),
    "a last chunk that is cut": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n"), LOST, stays=False),
    "a chunk that is cut": odd(chunked(b"8\r\n" + A), LOST, stays=False),
    "a chunk without an end": odd(chunked(b"6\r\n" + A + b"\r\n0\r\n\r\n"), LOST, stays=False),
    "a chunk below zero": odd(chunked(b"-7\r\n" + A + b"\r\n0\r\n\r\n"), LOST),
    "a chunk too large": odd(chunked(b"fffffffffffffffff\r\n" + A + b"\r\n0\r\n\r\n"), LOST, stays=False),
    "an extension of a chunk": odd(chunked(b"7;x=y\r\n" + A + b"\r\n0\r\n\r\n"), WHOLE, again=True),
    "an extension of 300 kB": odd(chunked(b"7;x=" + b"y" * 300_000 + b"\r\n" + A + b"\r\n0\r\n\r\n"), LOST),
    "chunks with bare line feeds": odd(chunked(b"7\n" + A + b"\n0\n\n"), LOST, stays=False),
    "trailers": odd(chunked(b"7\r\n" + A + b"\r\n0\r\nx-next-page: 2\r\n\r\n"), WHOLE, again=True),
    "trailers of 300 kB": odd(
        chunked(b"7\r\n" + A + b"\r\n0\r\n" + (b"x-a: " + b"b" * 1000 + b"\r\n") * 300 + b"\r\n"), LOST
    ),
    # answers without a body
    "204": odd(b"HTTP/1.1 204 No Content\r\n\r\n", BAD, None, again=True),
    "204 with a length of 0": odd(whole(b"", start=b"HTTP/1.1 204 No Content\r\n"), BAD, None, again=True),
    "204 with a body": odd(whole(start=b"HTTP/1.1 204 No Content\r\n"), BAD, None),
    "204 that announces a body": odd(b"HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\n", BAD, None),
    "204 with chunks": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n", start=b"HTTP/1.1 204 No Content\r\n"), BAD, None),
    "204 and an answer": odd(b"HTTP/1.1 204 No Content\r\n\r\n" + whole(B), BAD, None),
    "304": odd(b"HTTP/1.1 304 Not Modified\r\n\r\n", BAD, again=True),
    "304 with a body": odd(whole(start=b"HTTP/1.1 304 Not Modified\r\n"), BAD),
    # what nobody asked for
    "a second answer": odd(whole() + whole(B), WHOLE),
    "a second answer behind chunks": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n") + whole(B), WHOLE),
    "half a second answer": odd(whole() + b"HTTP/1.1 200 O", WHOLE),
    "an interim answer behind the answer": odd(whole() + b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE),
    "a blank line behind the answer": odd(whole() + b"\r\n", WHOLE),
    "a blank line behind chunks": odd(chunked(b"7\r\n" + A + b"\r\n0\r\n\r\n\r\n"), WHOLE),
    "one byte behind the answer": odd(whole() + b"\0", WHOLE),
    "an answer behind the last one": odd(whole(A, b"connection: close") + whole(B), WHOLE),
    "an end behind the answer": odd(whole(), WHOLE, stays=False),
    "an end that is announced": odd(whole(A, b"connection: close"), WHOLE),
    # packed bodies
    "packed and cut": odd(whole(PACKED[:-9], b"content-encoding: gzip"), LOST),
    "packed, with its sum cut": odd(whole(PACKED[:-1], b"content-encoding: gzip"), LOST),
    "packed, with a wrong sum": odd(whole(PACKED[:-8] + b"\0" * 8, b"content-encoding: gzip"), LOST),
    "packed and cut, in chunks": odd(
        chunked(b"9\r\n" + PACKED[:9] + b"\r\n0\r\n\r\n", b"content-encoding: gzip"), LOST
    ),
    "packed and cut, up to the end": odd(OK + b"content-encoding: gzip\r\n\r\n" + PACKED[:-9], LOST, stays=False),
    "packed twice": odd(
        whole(gzip.compress(b'{"a"') + gzip.compress(b":1}"), b"content-encoding: gzip"), WHOLE, again=True
    ),
    "packed, with more behind": odd(whole(PACKED + b"more", b"content-encoding: gzip"), LOST),
    "packed, and nothing": odd(whole(b"", b"content-encoding: gzip"), BAD, again=True),
    "not packed": odd(whole(A, b"content-encoding: gzip"), LOST),
}

GOOD = whole(b'{"good":0}')


# How a connection begins on each way: what comes before the requests.


def at_once(connection: socket) -> socket:
    return connection


TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
TLS.load_cert_chain(LOOPBACK)


def over_tls(connection: socket) -> socket:
    return TLS.wrap_socket(connection, server_side=True)


def by_a_tunnel(connection: socket) -> socket:
    assert read_request(connection).startswith(b"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n")
    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return over_tls(connection)


def by_socks(connection: socket) -> socket:
    connection.recv(3)
    connection.sendall(b"\x05\0")
    connection.recv(300)
    connection.sendall(b"\x05\0\0\x01\0\0\0\0\0\0")
    return connection


@dataclass(frozen=True)
class Way:
    """How the service is reached.

    Attributes:
        url: of the API, if that is not the server's.
        proxy: the variable of the environment, and its value, that name the server as the proxy.
    """

    begin: Callable[[socket], socket] = at_once
    url: str = "http://{host}/api/v4"
    proxy: tuple[str, str] = ("", "")


WAYS = {
    "direct": Way(),
    "TLS": Way(over_tls, "https://{host}/api/v4"),
    "forwarded": Way(at_once, "http://git.example.com/api/v4", ("http_proxy", "http://{host}")),
    "a tunnel": Way(by_a_tunnel, "https://127.0.0.1/api/v4", ("https_proxy", "http://{host}")),
    "forwarded over TLS": Way(over_tls, "http://git.example.com/api/v4", ("http_proxy", "https://{host}")),
    "SOCKS": Way(by_socks, "http://git.example.com/api/v4", ("http_proxy", "socks5://{host}")),
}


@dataclass
class Service:
    """A service that sends what it is told to.

    Attributes:
        begin: what comes before the requests of a connection.
        answers: to the next requests, and whether the connection stays open afterwards.
        connections: so far.
        used: the numbers of the connections on which the requests came.
        finished: released for each answer that was sent, once its connection is closed if that was to be.
    """

    begin: Callable[[socket], socket]
    host: str = ""
    answers: list[tuple[bytes, bool]] = field(default_factory=list)
    connections: int = 0
    used: list[int] = field(default_factory=list)
    finished: Semaphore = field(default_factory=lambda: Semaphore(0))
    line: socket = field(init=False)

    def serve(self, listener: socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            accepted.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            answering = False
            with suppress(OSError), accepted, self.begin(accepted) as self.line:
                while read_request(self.line):
                    answering = True
                    self.used.append(self.connections)
                    raw, stays = self.answers.pop(0)
                    self.line.sendall(raw)
                    if not stays:
                        break
                    answering = False
                    self.finished.release()
            if answering:  # it is closed now; one that the client has closed says nothing of the next
                self.finished.release()


def read_request(connection: socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and (more := connection.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: ([0-9]+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return data


@contextmanager
def service(begin: Callable[[socket], socket]) -> Iterator[Service]:
    with create_server(("127.0.0.1", 0)) as listener:
        server = Service(begin, f"127.0.0.1:{listener.getsockname()[1]}")
        thread = Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        yield server
        listener.shutdown(2)
        thread.join()


@contextmanager
def reached(way: Way, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Callable[[], Client]]]:
    """A service, and clients of it."""
    without_proxies(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(LOOPBACK))  # for the proxy's own certificate
    with service(way.begin) as server:
        name, proxy = way.proxy
        if name:
            monkeypatch.setattr("reconciler.service.connection.is_loopback", lambda _: False)
            monkeypatch.setenv(name, proxy.format(host=server.host))
        url = way.url.format(host=server.host)
        yield server, lambda: connected(url, ca_file=str(LOOPBACK), tries=1)


def outcome(ask: Callable[[], Json]) -> Json:
    try:
        return ask()
    except ServiceError as error:
        return type(error).__name__


def asking(client: Client) -> dict[str, Callable[[], Json]]:
    return {"GET": lambda: client.get("x"), "POST": lambda: client.send(Request("POST", "x", None))}


@pytest.mark.untraced
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_nobody_asked_for_is_never_taken_as_the_next_one(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once_behind = (whole(A) + whole(B), b"")
    behind_nothing = (b"HTTP/1.1 204 No Content\r\n\r\n" + whole(B), b"")
    with reached(WAYS[way], monkeypatch) as (server, client_of):
        for raw, later in (at_once_behind, behind_nothing, (whole(A), whole(B))):
            server.answers = [(raw, True), (whole(b'{"written":1}'), True)]
            with client_of() as client:
                assert outcome(asking(client)["GET"]) in (WHOLE, BAD)
                server.finished.acquire()
                if later:
                    with suppress(OSError):  # a connection that is never used again is closed by now
                        server.line.sendall(later)
                assert client.send(Request("POST", "x", {"title": "a"})) == {"written": 1}
                server.finished.acquire()
    assert server.answers == []


@pytest.mark.parametrize("way", [way for way in WAYS if "TLS" not in way])
def test_an_odd_answer_is_lost_where_it_is_uncertain_and_never_answers_the_next_request(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {name: odd for name, odd in ANSWERS.items() if odd.socks or way != "SOCKS"}
    told: dict[str, tuple[Json, Json, bool]] = {}
    with reached(WAYS[way], monkeypatch) as (server, client_of):
        for name, given in expected.items():
            outcomes = {}
            for method in ("GET", "POST"):
                server.answers = [(given.raw, given.stays), (GOOD, True)]
                server.used.clear()
                with client_of() as client:
                    outcomes[method] = outcome(asking(client)[method])
                    server.finished.acquire()
                    assert outcome(asking(client)["POST"]) == {"good": 0}, name
                    server.finished.acquire()
            told[name] = (outcomes["GET"], outcomes["POST"], len(set(server.used)) == 1)
    assert told == {name: (given.get, given.post, given.again and way != "SOCKS") for name, given in expected.items()}
