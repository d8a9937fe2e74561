"""The sandbox as an ASGI application: every request under `/api/v4` is answered and logged here."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from threading import RLock
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest

from .answers import Answer, Receive, Refusal, Scope, Send
from .call import Call, Insertion, Router, token_in
from .faults import NO_FAULT, Fault, Faults, break_off
from .parameters import merged, read_body, target_without_secrets, without_secrets
from .rate import RateLimit
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
        self._held: dict[str, list[tuple[_Exchange, asyncio.Future[Answer]]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            request = _Request(scope, await StarletteRequest(scope, receive).body())
            with self.lock:
                exchange = self._begin(request)
                answer = None if exchange.racing() else self._end(exchange)
            fault = exchange.fault
            if answer is None:
                answer = await self._race(request.path, exchange)
            if self.latency + fault.delay:
                await asyncio.sleep(self.latency + fault.delay)
            if fault.breaking:
                await break_off(fault, answer, scope, receive, send)
            else:
                await answer.send(send)
        except (asyncio.CancelledError, ClientDisconnect):
            return  # the server stops and the connection is closed already, or the client went before it had asked
        finally:
            self._in_flight -= 1

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
        too_many = None
        if self.rate_limit is not None:
            exchange.headers, too_many = self.rate_limit.count(token_in(request.headers, {}) or "")
        if too_many:
            exchange.answer = too_many
            return exchange
        exchange.fault = self.faults.strike(request.method, request.target) or NO_FAULT
        try:
            exchange.answer = exchange.fault.answer() if exchange.fault.instead else self._serve(request, exchange)
        except Refusal as refusal:
            exchange.answer = refusal.answer
        return exchange

    def _serve(self, request: "_Request", exchange: "_Exchange") -> Answer | Insertion:
        """Find the endpoint of the request, and ask it; an insertion is left for later."""
        fields = read_body(request.content_type, request.body)
        route, parts = self._router.find(request.method, request.path)
        url = self.state.instance.url or f"http://{request.headers.get('host', 'localhost')}"
        sent = merged(request.query, fields)
        call = Call(self.state, route, request.target, parts, sent, request.headers, url.rstrip("/"))
        exchange.call = call
        if route.credential and not (route.parameters_first and self.state.deployed):
            call.authenticate()
        return route.serve(call)

    async def _race(self, path: str, exchange: "_Exchange") -> Answer:
        """Hold a creation until the fault's number of them are held at that path or its patience is over; then end all.

        Several thus pass their checks before one of them is there.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        held = self._held.setdefault(path, [])
        held.append((exchange, future))
        if len(held) < exchange.fault.together:
            await asyncio.wait([future], timeout=exchange.fault.patience)
        if not future.done():
            for each, waiting in self._held.pop(path):
                waiting.set_result(self._end(each))
        return future.result()

    def _end(self, exchange: "_Exchange") -> Answer:
        """Insert where that is left to do, log how it went, and say what is answered."""
        with self.lock:
            try:
                answer = exchange.answer if isinstance(exchange.answer, Answer) else exchange.answer()
            except Refusal as refusal:
                answer = refusal.answer
            if exchange.fault.kind == "not-json" and answer.body is not None:
                answer = replace(answer, body=b"<!-- this is not JSON -->")
            exchange.entry["status"] = None if exchange.fault.silent else answer.status
            exchange.entry["changed"] = exchange.call is not None and exchange.call.changed
            self._answered += 1
            added = [
                ("x-request-id", f"sandbox-{self._answered:06d}"),
                ("date", format_datetime(self.state.now, usegmt=True)),
            ]
            return replace(answer, headers=[*answer.headers, *exchange.headers, *added])


@dataclass(slots=True)
class _Exchange:
    """A request and how far it has come."""

    entry: dict[str, Any]
    headers: Sequence[tuple[str, str]] = ()
    fault: Fault = NO_FAULT
    call: Call | None = None
    answer: Answer | Insertion = field(init=False)

    def racing(self) -> bool:
        """Whether it waits for others before it inserts."""
        return self.fault.kind == "race" and not isinstance(self.answer, Answer)


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
