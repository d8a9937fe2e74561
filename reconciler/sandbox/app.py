"""The sandbox as an ASGI application: it answers and logs every request under `/api/v4`. Begin with `Sandbox`."""

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from email.utils import format_datetime
from threading import RLock
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest

from .answers import Answer, Receive, Refusal, Scope, Send
from .call import Call, Insertion, Route, Router, token_in
from .faults import NO_FAULT, Fault, Faults, RateLimit, break_off, parse_rate_limit, read_fault
from .multipart import TYPE, Upload, read_form
from .parameters import merged, read_body, target_without_secrets, without_secrets
from .routes import routes as kept_routes
from .state import Dialect, SandboxState
from .state_file import dump, load

AnyFault = Fault | str | Mapping[str, Any]


class Sandbox:
    """The service, and methods that read and change the service without a request.

    A dialect given here overrides that of every state which replaces the first state; routes are further endpoints.

    Attributes:
        base_url: `http://HOST:PORT`, once the sandbox is served.
    """

    def __init__(
        self,
        state: SandboxState,
        latency_ms: float = 0,
        rate_limit: str | None = None,
        faults: Iterable[AnyFault] = (),
        dialect: Dialect | None = None,
        *,
        routes: Iterable[Route] = (),
    ) -> None:
        self.base_url = ""
        self._state = state
        self._dialect = dialect
        self._lock = RLock()
        self._log: list[dict[str, Any]] = []
        self._peak = 0
        self._in_flight = 0
        self._answered = 0
        self._router = Router([*kept_routes(), *routes])
        self._throttled: tuple[int, int] | None = None
        self._throttle: RateLimit | None = None
        self._races: dict[str, list[tuple[_Exchange, Insertion, asyncio.Future[Answer]]]] = {}
        self.set_latency(latency_ms)
        self.set_workers(None)
        self.set_rate_limit(rate_limit)
        self.set_faults(faults)

    @property
    def api_url(self) -> str:
        """`http://HOST:PORT/api/v4`."""
        return f"{self.base_url}/api/v4"

    def log(self) -> list[dict[str, Any]]:
        """Return the requests so far, in the order in which they were carried out, without any token.

        Each request has `method`, `target`, `body`, `status` (None without a response), `changed` and `in_flight`.
        """
        with self._lock:
            return copy.deepcopy(self._log)

    def clear_log(self) -> None:
        """Forget the requests so far, and the peak of those in flight."""
        with self._lock:
            self._log.clear()
            self._peak = 0

    def peak_in_flight(self) -> int:
        """Return the largest number of requests in flight at once."""
        return self._peak

    def state(self) -> dict[str, Any]:
        """Return the present state in the format of a state file."""
        with self._lock:
            return dump(self._state)

    def replace_state(self, state: Mapping[str, Any]) -> None:
        """Start again with this state: log, faults, clock and IDs too; latency, workers, rate limit and dialect stay.

        Raises:
            StateError: the state cannot be loaded; nothing has changed.
        """
        fresh = load(state, self._dialect)
        with self._lock:
            self._state = fresh
            self._answered = 0
            self.set_faults(())
            self.clear_log()

    def set_latency(self, milliseconds: float) -> None:
        """Delay every answer by so many milliseconds, from now on."""
        self._latency = milliseconds / 1000

    def set_workers(self, workers: int | None, cost_ms: float = 0) -> None:
        """Work on so many requests at once, or on any number, from now on; other requests wait in order of arrival.

        Args:
            workers: the number of requests at once; None for any number.
            cost_ms: for how long a worker is busy with the reading of one small record; see `Call.cost`.
        """
        self._workers = asyncio.Semaphore(workers) if workers else nullcontext()
        self._cost = cost_ms / 1000

    def set_faults(self, faults: Iterable[AnyFault]) -> None:
        """Inject these faults and no others, from now on. Raises `FaultError` and changes nothing."""
        armed = Faults([read_fault(fault) for fault in faults])
        with self._lock:
            self._faults = armed

    def set_rate_limit(self, rate_limit: RateLimit | str | None) -> None:
        """Limit the rate to `N/SECONDS`, or not at all, from now on. Raises `FaultError` and changes nothing."""
        limit = parse_rate_limit(rate_limit) if isinstance(rate_limit, str) else rate_limit
        with self._lock:
            self._rate_limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        try:
            exchange = _Exchange(scope)
            await exchange.receive(receive)
            async with self._workers:
                answer = await self._work_on(exchange)
            fault = exchange.fault
            if self._latency + fault.delay:
                await asyncio.sleep(self._latency + fault.delay)
            if fault.breaks_connection:
                await break_off(fault, answer, scope, receive, send)
            else:
                await answer.send(send)
        except (asyncio.CancelledError, ClientDisconnect):
            return  # the server stops and has closed the connection, or the client left before its request was complete
        finally:
            self._in_flight -= 1

    async def _work_on(self, exchange: "_Exchange") -> Answer:
        """Carry a request out, in the time of a worker that the request takes."""
        with self._lock:
            begun = self._begin(exchange)
            if isinstance(begun, Answer) or exchange.fault.kind != "race":
                begun = self._end(exchange, begun)
        answer = begun if isinstance(begun, Answer) else await self._race(exchange, begun)
        if self._cost and exchange.call is not None:
            await asyncio.sleep(self._cost * exchange.call.cost)
        return answer

    def _begin(self, exchange: "_Exchange") -> Answer | Insertion:
        """Count and log the request; apply a fault, or carry the request out as far as its insertion."""
        exchange.entry["in_flight"] = self._in_flight
        self._log.append(exchange.entry)
        limit = self._limit()
        if limit is not None:
            exchange.limits, too_many = limit.count(token_in(exchange.headers, {}) or "")
            if too_many:
                return too_many
        exchange.fault = self._faults.next_for(exchange.method, exchange.target)
        try:
            return exchange.fault.answer() if exchange.fault.replaces_answer else self._serve(exchange)
        except Refusal as refusal:
            return refusal.answer

    def _limit(self) -> RateLimit | None:
        """Return the limit in force: that of the settings of the instance, else the one given to the sandbox."""
        throttle = self._state.instance.throttle
        if throttle != self._throttled:
            self._throttled, self._throttle = throttle, RateLimit(*throttle) if throttle else None
        return self._throttle or self._rate_limit

    def _serve(self, exchange: "_Exchange") -> Answer | Insertion:
        """Call the endpoint of the request; an insertion is left for later."""
        fields = exchange.form or read_body(exchange.content_type, exchange.body)
        route, parts = self._router.find(exchange.method, exchange.path, deployed=self._state.deployed)
        url = self._state.instance.url or f"http://{exchange.headers.get('host', 'localhost')}"
        sent = merged(exchange.query, fields)
        call = Call(self._state, route, exchange.target, parts, sent, exchange.headers, url.rstrip("/"))
        exchange.call = call
        if route.credential and not (route.parameters_first and self._state.deployed):
            call.authenticate()
        return route.serve(call)

    async def _race(self, exchange: "_Exchange", insertion: Insertion) -> Answer:
        """Hold creations at one path until the fault's number of them is there, or its timeout is over; then end all.

        Several creations thus pass their checks before the first of them is inserted.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        racing = self._races.setdefault(exchange.path, [])
        racing.append((exchange, insertion, future))
        if len(racing) < exchange.fault.together:
            await asyncio.wait([future], timeout=exchange.fault.timeout)
        if not future.done():
            for waiting_exchange, waiting_insertion, waiting in self._races.pop(exchange.path):
                waiting.set_result(self._end(waiting_exchange, waiting_insertion))
        return future.result()

    def _end(self, exchange: "_Exchange", begun: Answer | Insertion) -> Answer:
        """Carry out an insertion that is left to do, log the result, and return the answer."""
        with self._lock:
            try:
                answer = begun if isinstance(begun, Answer) else begun()
            except Refusal as refusal:
                answer = refusal.answer
            if exchange.fault.kind == "not-json" and answer.body is not None:
                answer = replace(answer, body=b"<!-- this is not JSON -->")
            exchange.entry["status"] = None if exchange.fault.hides_status else answer.status
            exchange.entry["changed"] = exchange.call is not None and exchange.call.changed
            self._answered += 1
            added = [
                ("x-request-id", f"sandbox-{self._answered:06d}"),
                ("date", format_datetime(self._state.now, usegmt=True)),
            ]
            return replace(answer, headers=[*answer.headers, *exchange.limits, *added])


class _Exchange:
    """A request as received, and its result.

    Attributes:
        entry: of the log, filled once the request is complete.
        limits: the headers about the rate limit.
        fault: the fault that the request meets.
        call: the request in the form that its endpoint gets; None before.
    """

    __slots__ = (
        "_scope",
        "body",
        "call",
        "content_type",
        "entry",
        "fault",
        "form",
        "headers",
        "limits",
        "method",
        "path",
        "query",
        "target",
    )

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.target = f"{self.path}?{self.query}" if self.query else self.path
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.content_type = self.headers.get("content-type", "")
        self.body = b""
        self.form: dict[str, Any] = {}
        self.entry: dict[str, Any] = {}
        self.limits: Sequence[tuple[str, str]] = ()
        self.fault = NO_FAULT
        self.call: Call | None = None

    async def receive(self, receive: Receive) -> None:
        """Take in the body: its bytes, or the fields of a form with files."""
        request = StarletteRequest(self._scope, receive)
        if self.content_type.startswith(TYPE):
            self.form = await read_form(self.content_type, request.stream())
        else:
            self.body = await request.body()
        self.entry = {
            "method": self.method,
            "target": target_without_secrets(self.target),
            "body": self._shown_body(),
            "status": 500,
            "changed": False,
        }

    def _shown_body(self) -> Any:
        """Return the JSON of the body, or its form, without any token, for the log; None for any other body."""
        if self.form:
            shown = {name: value.shown() if isinstance(value, Upload) else value for name, value in self.form.items()}
            return without_secrets(shown)
        with suppress(Refusal):
            return (
                without_secrets(read_body(self.content_type, self.body))
                if "json" in self.content_type.lower()
                else None
            )
        return None
