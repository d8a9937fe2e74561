"""The sandbox as an ASGI application: every request under `/api/v4` is answered and logged here."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import format_datetime
from threading import RLock
from typing import Any

from .call import Answer, Call, Insertion, Router, token_in
from .errors import Refusal
from .faults import NO_FAULT, Fault, Faults, break_off
from .packet import Packet, Receive, Scope, Send
from .parameters import merged, read_body, target_without_secrets, without_secrets
from .rate import RateLimit
from .routes import routes
from .state import State

_NO_ANSWER = Answer(500)


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
        self._held: dict[str, list[tuple[_Exchange, asyncio.Future[Packet]]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            body = await _read(receive)
            if body is None:
                return
            request = _Request(scope, body)
            with self.lock:
                exchange = self._begin(request)
                packet = None if exchange.racing() else self._end(exchange)
            fault = exchange.fault
            if packet is None:
                packet = await self._race(request.path, exchange)
            if self.latency + fault.delay:
                await asyncio.sleep(self.latency + fault.delay)
            if fault.breaking:
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

    def _begin(self, request: "_Request") -> "_Exchange":
        """Count the request and log it; let a fault befall it, or carry it out as far as its insertion."""
        entry = {
            "method": request.method,
            "target": target_without_secrets(request.target),
            "body": request.shown_body(),
            "status": 500,
            "changed": False,
            "in_flight": self._in_flight,
        }
        self.log.append(entry)
        exchange = _Exchange(entry)
        if self.rate_limit is not None:
            exchange.headers, exchange.packet = self.rate_limit.count(token_in(request.headers, {}) or "")
        if exchange.packet is None:
            exchange.fault = self.faults.strike(request.method, request.target) or NO_FAULT
            if exchange.fault.instead:
                exchange.packet = exchange.fault.packet()
            else:
                self._check(request, exchange)
        return exchange

    def _check(self, request: "_Request", exchange: "_Exchange") -> None:
        """Find who answers the request, and ask; an insertion is left for later."""
        try:
            fields = read_body(request.content_type, request.body)
            route, parts = self._router.find(request.method, request.path)
            url = self.state.instance.url or f"http://{request.headers.get('host', 'localhost')}"
            sent = merged(request.query, fields)
            call = Call(self.state, route, request.target, parts, sent, request.headers, url.rstrip("/"))
            exchange.call = call
            if route.credential and not (route.parameters_first and self.state.deployed):
                call.authenticate()
            exchange.answer = route.serve(call)
        except Refusal as refusal:
            exchange.answer = Answer(refusal.status, refusal.body, refusal.headers)

    async def _race(self, path: str, exchange: "_Exchange") -> Packet:
        """Hold a creation until the fault's number of them are held at that path or its patience is over; then end all.

        Several thus pass their checks before one of them is there.
        """
        future: asyncio.Future[Packet] = asyncio.get_running_loop().create_future()
        held = self._held.setdefault(path, [])
        held.append((exchange, future))
        if len(held) < exchange.fault.together:
            await asyncio.wait([future], timeout=exchange.fault.patience)
        if not future.done():
            for each, waiting in self._held.pop(path):
                waiting.set_result(self._end(each))
        return future.result()

    def _end(self, exchange: "_Exchange") -> Packet:
        """Insert where that is left to do, log how it went, and say what is answered."""
        with self.lock:
            packet = exchange.packet or exchange.carry_out()
            if exchange.fault.kind == "not-json" and packet.body:
                packet.body = b"<!-- this is not JSON -->"
            exchange.entry["status"] = None if exchange.fault.silent else packet.status
            exchange.entry["changed"] = exchange.call is not None and exchange.call.changed
            self._answered += 1
            headers = {
                "x-request-id": f"sandbox-{self._answered:06d}",
                "date": format_datetime(self.state.now, usegmt=True),
            }
            for name, value in (*exchange.headers, *headers.items()):
                packet.add(name, value)
        return packet


@dataclass(slots=True)
class _Exchange:
    """A request and how far it has come: `packet` where it is not carried out, else `answer`."""

    entry: dict[str, Any]
    headers: Sequence[tuple[str, str]] = ()
    packet: Packet | None = None
    fault: Fault = NO_FAULT
    call: Call | None = None
    answer: Answer | Insertion = _NO_ANSWER

    def racing(self) -> bool:
        """Whether it waits for others before it inserts."""
        return self.fault.kind == "race" and not isinstance(self.answer, Answer)

    def carry_out(self) -> Packet:
        """Insert where that is left to do; the answer as bytes."""
        try:
            answer = self.answer if isinstance(self.answer, Answer) else self.answer()
        except Refusal as refusal:
            answer = Answer(refusal.status, refusal.body, refusal.headers)
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
