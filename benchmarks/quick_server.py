"""A quicker server: the sandbox's own answers, given again from memory, after a latency, by a bare HTTP protocol.

The first time a request comes, the sandbox's application answers it, in this process; the second time its answer is
sent from memory. A write is always carried out, and all that is in memory is forgotten. Beside the service it answers
`GET /-/counts` with the requests since the last `DELETE /-/counts`.

With `--tls` it speaks TLS, and its answers have as many headers as those of GitLab.
"""

import asyncio
import json
import selectors
import ssl
import sys
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from benchmarks.running import HEADERS
from reconciler.sandbox import Sandbox
from reconciler.sandbox.answers import Scope
from reconciler.sandbox.state_file import read_state

END = b"\r\n\r\n"

FURTHER = (
    (b"server", b"nginx"),
    (b"date", b"Mon, 23 Nov 2026 12:00:00 GMT"),
    (b"connection", b"keep-alive"),
    (b"cache-control", b"max-age=0, private, must-revalidate"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"etag", b'W/"0f343b0931126a20f133d67c2b018a3b"'),
    (b"vary", b"Origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"x-gitlab-meta", b'{"correlation_id":"01JD3Z0000000000000000000","version":"1"}'),
    (b"x-request-id", b"01JD3Z0000000000000000000"),
    (b"x-runtime", b"0.052341"),
    (b"strict-transport-security", b"max-age=63072000"),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
    (b"ratelimit-limit", b"2000000"),
    (b"ratelimit-name", b"throttle_authenticated_api"),
    (b"ratelimit-observed", b"1"),
    (b"ratelimit-remaining", b"1999999"),
    (b"ratelimit-reset", b"1795435260"),
    (b"gitlab-lb", b"haproxy-main-01"),
    (b"gitlab-sv", b"api-web-01"),
    (b"x-download-options", b"noopen"),
    (b"x-permitted-cross-domain-policies", b"none"),
)
"""Headers that GitLab or what stands before it sends, and the sandbox does not."""


class Counts:
    """What was asked of the server.

    Attributes:
        requests: answered.
        from_memory: how many of them the application had answered before.
        peak: the most in flight at once.
        seconds: from the last byte of each request to its answer, added up.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.from_memory = 0
        self.peak = 0
        self.seconds = 0.0

    def as_json(self) -> bytes:
        """All of them."""
        return json.dumps(vars(self)).encode()


class Service:
    """The application and its answers so far."""

    def __init__(self, application: Sandbox, latency: float, headers: int = 0) -> None:
        self.latency = latency
        self._headers = headers
        self.counts = Counts()
        self.in_flight = 0
        self._application = application
        self._answers: dict[bytes, bytes] = {}

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Return the whole answer to a request."""
        known = self._answers.get(head)
        if known is not None:
            self.counts.from_memory += 1
            return known
        answer = self._carry_out(head, body)
        if head.startswith(b"GET "):
            self._answers[head] = answer
        else:
            self._answers.clear()
        self._application.clear_log()  # nobody reads it here
        return answer

    def control(self, head: bytes) -> bytes:
        """Answer from beside."""
        if head.startswith(b"DELETE "):
            self.counts = Counts()
        return _packed(200, [], self.counts.as_json())

    def _carry_out(self, head: bytes, body: bytes) -> bytes:
        sent: list[Any] = []
        request = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return request.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        # The application has no latency here, so that it never waits: one step carries it out.
        with suppress(StopIteration):
            self._application(_scope(head), receive, send).send(None)
        start, end = sent
        headers = start["headers"]
        lacking = max(self._headers - len(headers) - 1, 0)  # its length comes to them
        return _packed(start["status"], [*headers, *FURTHER[:lacking]], end["body"])


class Connection(asyncio.Protocol):
    """One connection: requests in, answers out, in turn."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._received = b""
        self._transport: Any = None
        self._waiting: deque[float] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._received += data
        while END in self._received:
            head, _, rest = self._received.partition(END)
            length = _length(head)
            if len(rest) < length:
                return
            self._received = rest[length:]
            self._take(head, rest[:length])

    def _take(self, head: bytes, body: bytes) -> None:
        service = self._service
        if b" /-/" in head[:12]:
            self._transport.write(service.control(head))
            return
        began = perf_counter()
        service.in_flight += 1
        service.counts.peak = max(service.counts.peak, service.in_flight)
        answer = service.answer(head, body)
        left = service.latency - (perf_counter() - began)
        if left > 0:
            asyncio.get_running_loop().call_later(left, partial(self._send, began, answer))
        else:
            self._send(began, answer)

    def _send(self, began: float, answer: bytes) -> None:
        service = self._service
        service.in_flight -= 1
        service.counts.requests += 1
        service.counts.seconds += perf_counter() - began
        self._transport.write(answer)


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    return 0 if at < 0 else int(lower[at + 17 :].partition(b"\r\n")[0])


def _scope(head: bytes) -> Scope:
    """Return a request as the application expects it."""
    first, *lines = head.split(b"\r\n")
    method, target, _ = first.split(b" ")
    path, _, query = target.partition(b"?")
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    return {
        "type": "http",
        "method": method.decode(),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
    }


def _packed(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d OK" % status, *(b"%s: %s" % header for header in headers)]
    if not any(name == b"content-length" for name, _ in headers) and status != 204:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + END + body


async def serve(service: Service, tls: ssl.SSLContext | None) -> None:
    """Serve on a free port of this machine, told on stderr, until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    click.echo(f"Serving {'http' if tls is None else 'https'}://127.0.0.1:{port}/api/v4; ", err=True)
    await server.serve_forever()


@click.command()
@click.option("--state", type=click.Path(path_type=Path), required=True)
@click.option("--latency", type=int, default=0)
@click.option("--tls", "certificate", type=click.Path(path_type=Path), help="The certificate and its key.")
def main(state: Path, latency: int, certificate: Path | None) -> None:
    """Serve a state until interrupted."""
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    service = Service(Sandbox(read_state(state)), latency / 1000, 0 if tls is None else HEADERS)
    # Not epoll, which waits for whole milliseconds: they would be in every answer's latency.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with suppress(KeyboardInterrupt):
        loop.run_until_complete(serve(service, tls))
    sys.exit(0)


if __name__ == "__main__":
    main()
