"""A server on a real socket between the client and the sandbox, for services that answer a little differently."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Passing:
    """An answer of the sandbox on its way to the client.

    Attributes:
        request: method and path relative to `/api/v4/`, with the query.
        headers: by lower-case name, those that concern the connection aside.
        sent: the body of the request.
        token: the access token of the request, as `PRIVATE-TOKEN`.
    """

    request: str
    status: int
    headers: dict[str, str]
    body: bytes
    sent: bytes = b""
    token: str | None = None

    @property
    def json(self) -> Any:
        """The value of the body."""
        return json.loads(self.body)

    @json.setter
    def json(self, value: Any) -> None:
        self.body = json.dumps(value).encode()
        self.headers["content-type"] = "application/json"


def unaltered(passing: Passing) -> None:
    """Let an answer pass."""
    del passing


@dataclass
class Between:
    """The server.

    Attributes:
        api_url: its own.
        alter: changes each answer on its way.
        requests: method and path of each request, relative to `/api/v4/`, in turn; with the body of a write.
    """

    api_url: str
    alter: Callable[[Passing], None] = unaltered
    requests: list[str] = field(default_factory=list)

    @property
    def writes(self) -> list[str]:
        """The requests that are no GETs."""
        return [request for request in self.requests if not request.startswith("GET ")]


OF_THE_CONNECTION = frozenset({"connection", "content-length", "transfer-encoding", "date", "server"})


@contextmanager
def between(sandbox_url: str) -> Iterator[Between]:
    """Serve the sandbox under another URL, its answers altered."""
    place = urlsplit(sandbox_url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one piece

        def _pass_on(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", "0")))
            request = f"{self.command} {self.path.removeprefix(place.path + '/')}"
            server.requests.append(
                f"{request} {sent.decode(errors='replace')}" if sent and self.command != "GET" else request
            )
            connection = (HTTPSConnection if place.scheme == "https" else HTTPConnection)(place.netloc, timeout=60)
            kept = {name: value for name, value in self.headers.items() if name.lower() != "accept-encoding"}
            connection.request(self.command, self.path, sent or None, kept)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            token = self.headers.get("private-token")
            passing = Passing(request, answer.status, headers, answer.read(), sent, token)
            connection.close()
            for name in OF_THE_CONNECTION & passing.headers.keys():
                del passing.headers[name]
            server.alter(passing)
            self.send_response_only(passing.status)
            for name, value in passing.headers.items():
                self.send_header(name, value)
            if passing.status != 204:
                self.send_header("content-length", str(len(passing.body)))
            self.end_headers()
            self.wfile.write(passing.body)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self._pass_on

        def log_message(self, *_: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server = Between(f"http://127.0.0.1:{listener.server_address[1]}{place.path}")
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()
