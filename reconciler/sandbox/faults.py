"""Faults: errors injected between the service and its client, repeatably; and the rate limit.

A fault is written `KIND[,name=value...]`, for example `status=503,retry_after=2,method=POST,match=milestones,nth=1`:

| kind | the client receives | carried out? |
|---|---|---|
| `status=N` | that status with the service's body for it, `Retry-After` when `retry_after` is given | no |
| `html` | a front proxy's HTML page, 502 or `status` | no |
| `redirect` | 302 (or `status`) to another host | no |
| `reset-before` | a TCP reset | no |
| `reset-after` | a TCP reset | yes |
| `hang-after` | nothing, until it disconnects or `seconds` have passed | yes |
| `truncate` | half the body, then the end of the connection; a reset where there is no body | yes |
| `not-json` | a body that is not JSON, with the status and headers of the real one, if that has a body | yes |
| `slow` | the answer, `seconds` later (default 1) | yes |
| `race` | the answer, when `together` creations (default 2) are there, or after `seconds` (default 10) | yes |

`race` holds creations after their checks until `together` of them at the same path have passed theirs, then carries
them out in the order of arrival, and only then answers: production has this gap between check and insertion.
Milestones then share a title. Rules and allowlist entries have a unique index, which accepts only the first.
Other requests are not affected.

A fault applies to requests of the `method` with `match` in their path or query: to every one, to the `nth`, to the
first `times` (from the `nth` on, when both are given), or to each with `probability`, drawn from `seed` and from the
request itself, so that the same requests fail in any order.
"""

import asyncio
import math
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from .answers import Answer, FaultError, Receive, Scope, Send

Kind = Literal[
    "status", "html", "redirect", "reset-before", "reset-after", "hang-after", "truncate", "not-json", "slow", "race"
]
Count = Annotated[int, Field(ge=1)]
_LINGER_NOT = struct.pack("ii", 1, 0)
_STATUS = {"status": 503, "html": 502, "redirect": 302}
_BODIES: dict[int, Any] = {
    409: {"message": "409 Conflict: Resource lock"},
    429: {"message": {"error": "This endpoint has been requested too many times. Try again later."}},
}


@dataclass(frozen=True, config=ConfigDict(coerce_numbers_to_str=True, extra="forbid"))
class Fault:
    """A fault, and the requests to which it applies; the table at the top of this module explains the fields."""

    kind: Kind
    status: Annotated[int, AfterValidator(HTTPStatus)] | None = None
    retry_after: Annotated[int, Field(ge=0)] | None = None
    method: Annotated[str, AfterValidator(str.upper)] | None = None
    match: str = ""
    nth: Count | None = None
    times: Count | None = None
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: int = 0
    seconds: Annotated[float, Field(ge=0, lt=1e6)] | None = None
    together: Count = 2

    @property
    def replaces_answer(self) -> bool:
        """Whether the request is answered without being carried out."""
        return self.kind in ("status", "html", "redirect", "reset-before")

    @property
    def breaks_connection(self) -> bool:
        """Whether the connection breaks, so that the answer is incomplete."""
        return self.kind in ("reset-before", "reset-after", "hang-after", "truncate")

    @property
    def hides_status(self) -> bool:
        """Whether the client receives no status."""
        return self.breaks_connection and self.kind != "truncate"

    @property
    def delay(self) -> float:
        """The delay of the answer in seconds."""
        return (1.0 if self.seconds is None else self.seconds) if self.kind == "slow" else 0.0

    @property
    def timeout(self) -> float:
        """The time in seconds for which a creation waits for other creations."""
        return 10.0 if self.seconds is None else self.seconds

    def answer(self) -> Answer:
        """Return the answer that replaces the answer of the request."""
        status = self.status or _STATUS.get(self.kind, 503)
        headers = [] if self.retry_after is None else [("retry-after", str(self.retry_after))]
        if self.kind == "html":
            page = f"<html><body><center><h1>{status} {_phrase(status)}</h1></center></body></html>\n"
            return Answer(status, page.encode(), headers, "text/html")
        if self.kind == "redirect":
            return Answer(status, None, [*headers, ("location", "https://elsewhere.example.com/")])
        return Answer(status, _BODIES.get(status, {"message": f"{status} {_phrase(status)}"}), headers)


NO_FAULT = Fault("slow", seconds=0)


class Faults:
    """The faults in force, and the number of requests that matched each."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._armed = [(fault, Counter[str]()) for fault in faults]

    def next_for(self, method: str, target: str) -> Fault:
        """Return the first fault that applies to this request, or `NO_FAULT`. Every fault counts the request."""
        first = NO_FAULT
        for fault, met in self._armed:
            if fault.method in (None, method) and fault.match in target:
                met[""] += 1
                request = f"{method} {target}"
                met[request] += 1
                if first is NO_FAULT and _applies(fault, met[""], f"{fault.seed} {request} {met[request]}"):
                    first = fault
        return first


def parse_fault(spec: str) -> Fault:
    """Return a fault from its one-line form. Raises `FaultError`, which quotes it."""
    first, *rest = (part.strip() for part in spec.split(","))
    given: dict[str, Any] = {}
    for part in [first if "=" in first else f"kind={first}", *rest]:
        name, sign, value = part.partition("=")
        if not sign:
            raise FaultError(f"fault {spec!r}: {part!r} is not name=value")
        given[name] = value
    if "status" in given:
        given.setdefault("kind", "status")
    return _made(given, spec)


def read_fault(given: Any) -> Fault:
    """Return a fault from a mapping with the names of `Fault`, or from the one-line form. Raises `FaultError`."""
    if isinstance(given, Fault):
        return given
    if isinstance(given, str):
        return parse_fault(given)
    if isinstance(given, Mapping):
        return _made(given, given)
    raise FaultError(f"fault {given!r}: must be a mapping or a string")


def _made(given: Mapping[str, Any], shown: Any) -> Fault:
    try:
        return Fault(**given)
    except ValidationError as error:
        wrong = error.errors()[0]
    name = wrong["loc"][0]
    if wrong["type"] == "unexpected_keyword_argument":
        raise FaultError(f"fault {shown!r}: unknown name {name!r}; known are {', '.join(Fault.__annotations__)}")
    if name == "kind":
        raise FaultError(f"fault {shown!r}: the kind must be one of {', '.join(get_args(Kind))}")
    raise FaultError(f"fault {shown!r}: {name} cannot be {wrong['input']!r}")


async def break_off(fault: Fault, answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
    """End a request with an incomplete answer, as the fault says; return once the connection is closed.

    The request has been read to its end, so `receive` can only report that the client has disconnected.
    """
    transport = scope["state"]["connection"].transport
    if fault.kind == "hang-after":
        with suppress(TimeoutError):
            await asyncio.wait_for(receive(), fault.seconds)
        transport.abort()
    elif fault.kind == "truncate" and answer.encoded():
        await answer.send(send, share=0.5)
        transport.close()
    else:
        _reset(transport)
    await receive()


def _reset(transport: Any) -> None:
    """Close the connection with a TCP reset."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()


def _applies(fault: Fault, position: int, request: str) -> bool:
    first = fault.nth or 1
    last = first + fault.times - 1 if fault.times else first if fault.nth else position
    if not first <= position <= last:
        return False
    return fault.probability >= 1 or random.Random(request).random() < fault.probability  # noqa: S311 - repeatable


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


class RateLimit:
    """Counts requests in fixed windows of time.

    Every answer has the `RateLimit-*` headers; `RateLimit-Limit` is the limit for 60 seconds, with any window. A
    request beyond the limit gets 429 and is not carried out.
    """

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._window = -1
        self._observed: dict[str, int] = {}

    def count(self, who: str) -> tuple[list[tuple[str, str]], Answer | None]:
        """Count a request; return headers for its answer, and the answer itself if the request is beyond the limit."""
        now = self._clock()
        window = int(now // self._seconds)
        if window != self._window:
            self._window = window
            self._observed.clear()
        observed = self._observed[who] = self._observed.get(who, 0) + 1
        reset = (window + 1) * self._seconds
        headers = [
            ("ratelimit-name", "throttle_authenticated_api" if who else "throttle_unauthenticated_api"),
            ("ratelimit-limit", str(math.ceil(self._limit * 60 / self._seconds))),
            ("ratelimit-observed", str(observed)),
            ("ratelimit-remaining", str(max(self._limit - observed, 0))),
            ("ratelimit-reset", str(math.ceil(reset))),
        ]
        if observed <= self._limit:
            return headers, None
        again = [
            ("ratelimit-resettime", formatdate(reset, usegmt=True)),
            ("retry-after", str(max(math.ceil(reset - now), 1))),
        ]
        return headers, Answer(429, b"Retry later\n", again, "text/plain")


def parse_rate_limit(text: str) -> RateLimit:
    """Return a rate limit from `N/SECONDS`. Raises `FaultError`."""
    count, _, seconds = text.partition("/")
    try:
        limit, period = int(count), float(seconds)
    except ValueError:
        raise FaultError(f"rate limit {text!r}: must be N/SECONDS, as in 600/60") from None
    if limit < 1 or not 0 < period < 1e9:
        raise FaultError(f"rate limit {text!r}: both numbers must be above zero")
    return RateLimit(limit, period)
