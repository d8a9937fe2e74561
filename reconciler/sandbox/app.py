"""The sandbox as an ASGI application: every request under `/api/v4` is answered and logged here."""

import asyncio
from contextlib import suppress
from threading import RLock
from typing import Any

from .breaking import break_off
from .call import Answer, Call, token_in
from .errors import Refusal
from .faults import Fault, Faults
from .packet import Packet, Receive, Scope, Send
from .parameters import merged, read_body, target_without_secrets, without_secrets
from .rate import RateLimit
from .router import Router
from .routes import routes
from .state import State


class Application:
    """The service.

    Attributes:
        state: what it remembers.
        latency: seconds every answer takes.
        rate_limit: how many requests it takes in a time.
        faults: what goes wrong on purpose.
        lock: held while a request is carried out; whoever reads or changes the attributes from elsewhere takes it.
        log: one entry a request, in the order they were carried out, without any token; the status of a request that
            gets no answer is None.
        peak: the most requests ever in flight at once.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.latency = 0.0
        self.rate_limit: RateLimit | None = None
        self.faults = Faults()
        self.lock = RLock()
        self.log: list[dict[str, Any]] = []
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
            if body is None:
                return
            with self.lock:
                packet, fault = self._take(_Request(scope, body))
            delay = self.latency + (fault.delay if fault else 0)
            if delay:
                await asyncio.sleep(delay)
            if fault and fault.breaking:
                await break_off(fault, packet, scope, receive, send)
                return
        except asyncio.CancelledError:
            return  # the server stops; the connection is closed already
        finally:
            self._in_flight -= 1
        await packet.send(send)

    def begin_again(self, state: State) -> None:
        """Remember that state and nothing else: no log, no faults, request IDs from 1."""
        self.state = state
        self.faults = Faults()
        self._answered = 0
        self.clear_log()

    def clear_log(self) -> None:
        """Forget the requests so far, and how many were in flight at once."""
        self.log.clear()
        self.peak = 0

    def _take(self, request: "_Request") -> tuple[Packet, Fault | None]:
        """Count the request, let a fault befall it or carry it out, and log it."""
        entry = {
            "method": request.method,
            "target": target_without_secrets(request.target),
            "body": request.shown_body(),
            "status": 500,
            "changed": False,
            "in_flight": self._in_flight,
        }
        self.log.append(entry)
        headers: list[tuple[str, str]] = []
        packet: Packet | None = None
        if self.rate_limit is not None:
            headers, packet = self.rate_limit.count(token_in(request.headers, {}) or "")
        fault = None if packet else self.faults.strike(request.method, request.target)
        if packet is None:
            packet = fault.packet() if fault and fault.instead else self._carry_out(request, entry)
        if fault and fault.kind == "not-json" and packet.body:
            packet.body = b"<!-- this is not JSON -->"
        entry["status"] = None if fault and fault.silent else packet.status
        self._answered += 1
        for name, value in [*headers, ("x-request-id", f"sandbox-{self._answered:06d}")]:
            packet.add(name, value)
        return packet, fault

    def _carry_out(self, request: "_Request", entry: dict[str, Any]) -> Packet:
        call = None
        try:
            fields = read_body(request.content_type, request.body)
            route, parts = self._router.find(request.method, request.path)
            url = self.state.instance.url or f"http://{request.headers.get('host', 'localhost')}"
            sent = merged(request.query, fields)
            call = Call(self.state, route, request.target, parts, sent, request.headers, url.rstrip("/"))
            if route.credential and not (route.parameters_first and self.state.deployed):
                call.authenticate()
            answer = route.serve(call)
        except Refusal as refusal:
            answer = Answer(refusal.status, refusal.body, refusal.headers)
        finally:
            entry["changed"] = call is not None and call.changed
        return Packet.json(answer.status, answer.headers, answer.body)


class _Request:
    """A request as received."""

    __slots__ = ("body", "content_type", "headers", "method", "path", "query", "target")

    def __init__(self, scope: Scope, body: bytes) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.target = f"{self.path}?{self.query}" if self.query else self.path
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.content_type = self.headers.get("content-type", "")
        self.body = body

    def shown_body(self) -> Any:
        """The JSON of the body without any token, for the log; None where it is none."""
        with suppress(Refusal):
            return without_secrets(read_body(self.content_type, self.body)) if "json" in self.content_type else None
        return None


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None where the client went before it was sent."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        more = message["more_body"]
    return body
