"""The sandbox as an ASGI application: every request under `/api/v4` is answered and logged here."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from threading import RLock
from typing import Any

from .call import Answer, Call
from .errors import Refusal
from .parameters import merged, read_body, target_without_secrets, without_secrets
from .router import Router
from .routes import routes
from .state import State

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Application:
    """The service.

    Attributes:
        state: what it remembers.
        lock: held while a request is carried out; whoever reads or changes the attributes from elsewhere takes it.
        log: one entry a request, in the order they were carried out, without any token.
        latency: seconds every answer takes.
        peak: the most requests ever in flight at once.
    """

    def __init__(self, state: State, latency: float = 0.0) -> None:
        self.state = state
        self.lock = RLock()
        self.log: list[dict[str, Any]] = []
        self.latency = latency
        self.peak = 0
        self._in_flight = 0
        self._answered = 0
        self._router = Router(routes())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            body = await _read(receive)
            with self.lock:
                answer = self._carry_out(scope, body)
            if self.latency:
                await asyncio.sleep(self.latency)
        finally:
            self._in_flight -= 1
        await _send(send, answer)

    def _carry_out(self, scope: Scope, body: bytes) -> "Packet":
        request = _Request(scope, body)
        entry = {
            "method": request.method,
            "target": target_without_secrets(request.target),
            "body": None,
            "status": 500,
            "changed": False,
            "in_flight": self._in_flight,
        }
        self.log.append(entry)
        answer = self._answer(request, entry)
        entry["status"] = answer.status
        self._answered += 1
        return Packet(answer, f"sandbox-{self._answered:06d}")

    def _answer(self, request: "_Request", entry: dict[str, Any]) -> Answer:
        call = None
        try:
            content_type = request.headers.get("content-type", "")
            fields = read_body(content_type, request.body)
            if "json" in content_type:
                entry["body"] = without_secrets(fields)
            route, parts = self._router.find(request.method, request.path)
            url = self.state.instance.url or f"http://{request.headers.get('host', 'localhost')}"
            sent = merged(request.query, fields)
            call = Call(self.state, route, request.target, parts, sent, request.headers, url.rstrip("/"))
            if route.credential and not (route.parameters_first and self.state.deployed):
                call.authenticate()
            return route.serve(call)
        except Refusal as refusal:
            return Answer(refusal.status, refusal.body, refusal.headers)
        finally:
            entry["changed"] = call is not None and call.changed


class _Request:
    """A request as received."""

    __slots__ = ("body", "headers", "method", "path", "query", "target")

    def __init__(self, scope: Scope, body: bytes) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.target = f"{self.path}?{self.query}" if self.query else self.path
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.body = body


class Packet:
    """An answer as bytes."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, answer: Answer, request_id: str) -> None:
        self.status = answer.status
        self.headers = [(b"x-request-id", request_id.encode())]
        self.headers += [(name.encode(), value.encode()) for name, value in answer.headers]
        self.body = b""
        if answer.body is not None:
            self.body = _encode(answer.body).encode()
            self.headers.append((b"content-type", b"application/json"))
        if answer.status != 204:
            self.headers.append((b"content-length", str(len(self.body)).encode()))


async def _read(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _send(send: Send, packet: Packet) -> None:
    await send({"type": "http.response.start", "status": packet.status, "headers": packet.headers})
    await send({"type": "http.response.body", "body": packet.body})
