"""Faults: what goes wrong on the way between the service and its client, on purpose and repeatably.

A fault is written `KIND[,name=value...]`, for example `status=503,retry_after=2,method=POST,match=milestones,nth=1`:

| kind | what the client gets | carried out? |
|---|---|---|
| `status=N` | that status with the service's body for it, `Retry-After` when `retry_after` is given | no |
| `html` | a front proxy's HTML page, 502 or `status` | no |
| `redirect` | 302 (or `status`) to another host | no |
| `reset-before` | a TCP reset | no |
| `reset-after` | a TCP reset | yes |
| `hang-after` | nothing, until it goes away itself or `seconds` have passed | yes |
| `truncate` | half the body, then the end of the connection; a reset where there is no body | yes |
| `not-json` | a body that is no JSON, under the status and headers of the real one, if that has a body | yes |
| `slow` | the answer, `seconds` later (default 1) | yes |
| `race` | the answer, when `together` creations (default 2) are there, or after `seconds` (default 10) | yes |

`race` holds creations after their checks until `together` of them at the same path have passed theirs, then carries
them out in the order they came in, and only then answers: the gap that production has between looking and inserting.
Titles of milestones are then there twice. Rules and allowlist entries have a unique index, which lets the first in.
Other requests are carried out as ever.

Which requests: those of the `method`, with `match` in their path or query; of these every one, or the `nth`, or the
first `times` (from the `nth` on, when both are given), or each with `probability`, drawn from `seed` and from which
request it is, so that the same requests fail whatever order they come in.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Any

from .errors import FaultError
from .packet import Packet

INSTEAD = frozenset({"status", "html", "redirect", "reset-before"})
BREAKING = frozenset({"reset-before", "reset-after", "hang-after", "truncate"})
KINDS = (
    *("status", "html", "redirect", "reset-before", "reset-after", "hang-after", "truncate", "not-json", "slow"),
    "race",
)
_STATUS = {"status": 503, "html": 502, "redirect": 302}
_BODIES: dict[int, Any] = {
    409: {"message": "409 Conflict: Resource lock"},
    429: {"message": {"error": "This endpoint has been requested too many times. Try again later."}},
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, and the requests it befalls; see the table at the top of this module."""

    kind: str
    status: int | None = None
    retry_after: int | None = None
    method: str | None = None
    match: str = ""
    nth: int | None = None
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    seconds: float | None = None
    together: int = 2

    @property
    def instead(self) -> bool:
        """Whether the request is not carried out."""
        return self.kind in INSTEAD

    @property
    def breaking(self) -> bool:
        """Whether the connection breaks, so that there is no whole answer."""
        return self.kind in BREAKING

    @property
    def silent(self) -> bool:
        """Whether not even a status is answered."""
        return self.breaking and self.kind != "truncate"

    @property
    def delay(self) -> float:
        """By how many seconds the answer is late."""
        return (1.0 if self.seconds is None else self.seconds) if self.kind == "slow" else 0.0

    @property
    def patience(self) -> float:
        """How many seconds a creation waits for others."""
        return 10.0 if self.seconds is None else self.seconds

    def packet(self) -> Packet:
        """What is answered instead of carrying the request out."""
        status = self.status or _STATUS.get(self.kind, 503)
        headers = [] if self.retry_after is None else [("retry-after", str(self.retry_after))]
        if self.kind == "html":
            page = f"<html><body><center><h1>{status} {_phrase(status)}</h1></center></body></html>\n"
            return Packet(status, headers, page.encode(), "text/html")
        if self.kind == "redirect":
            return Packet(status, [*headers, ("location", "https://elsewhere.example.com/")], b"", "text/html")
        return Packet.json(status, headers, _BODIES.get(status, {"message": f"{status} {_phrase(status)}"}))


NO_FAULT = Fault("none")


class Faults:
    """The faults in force, and which requests each has met."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._armed = [(fault, Counter[str]()) for fault in faults]

    def strike(self, method: str, target: str) -> Fault | None:
        """The first fault that befalls this request. Every fault counts it, whichever befalls it."""
        struck = None
        for fault, met in self._armed:
            if fault.method in (None, method) and fault.match in target:
                met[""] += 1
                request = f"{method} {target}"
                met[request] += 1
                if struck is None and _befalls(fault, met[""], f"{fault.seed} {request} {met[request]}"):
                    struck = fault
        return struck


def parse_fault(spec: str) -> Fault:
    """A fault from its one-line form. Raises `FaultError`, which quotes it."""
    first, *rest = (part.strip() for part in spec.split(","))
    given: dict[str, Any] = {}
    for part in [first if "=" in first else f"kind={first}", *rest]:
        name, sign, value = part.partition("=")
        if not sign:
            raise FaultError(f"fault {spec!r}: {part!r} is not name=value")
        given[name] = value
    if "status" in given:
        given.setdefault("kind", "status")
    return _checked(given, spec)


def read_fault(given: Any) -> Fault:
    """A fault from a mapping of the names of `Fault`, or from the one-line form. Raises `FaultError`."""
    if isinstance(given, Fault):
        return given
    if isinstance(given, str):
        return parse_fault(given)
    if isinstance(given, Mapping):
        return _checked(given, given)
    raise FaultError(f"fault {given!r}: must be a mapping or a string")


def _checked(given: Mapping[str, Any], shown: Any) -> Fault:
    values: dict[str, Any] = {}
    for name, value in given.items():
        coerce = _COERCE.get(name)
        if coerce is None:
            raise FaultError(f"fault {shown!r}: unknown name {name!r}; known are {', '.join(_COERCE)}")
        try:
            values[name] = coerce(value)
        except (TypeError, ValueError):
            raise FaultError(f"fault {shown!r}: {name} cannot be {value!r}") from None
    if values.get("kind") not in KINDS:
        raise FaultError(f"fault {shown!r}: the kind must be one of {', '.join(KINDS)}")
    return Fault(**values)


def _at_least(least: int, value: Any) -> int:
    found = int(value)
    if found < least:
        raise ValueError
    return found


def _share(value: Any) -> float:
    found = float(value)
    if not 0 <= found <= 1:
        raise ValueError
    return found


def _duration(value: Any) -> float:
    found = float(value)
    if not 0 <= found < 1e6:
        raise ValueError
    return found


def _status(value: Any) -> int:
    return HTTPStatus(int(value)).value


_COERCE: dict[str, Callable[[Any], Any]] = {
    "kind": str,
    "status": _status,
    "retry_after": lambda value: _at_least(0, value),
    "method": lambda value: str(value).upper(),
    "match": str,
    "nth": lambda value: _at_least(1, value),
    "times": lambda value: _at_least(1, value),
    "probability": _share,
    "seed": int,
    "seconds": _duration,
    "together": lambda value: _at_least(1, value),
}
assert set(_COERCE) == {field.name for field in fields(Fault)}  # noqa: S101 - one table cannot forget the other


def _befalls(fault: Fault, position: int, request: str) -> bool:
    first = fault.nth or 1
    last = first + fault.times - 1 if fault.times else first if fault.nth else position
    if not first <= position <= last:
        return False
    return fault.probability >= 1 or random.Random(request).random() < fault.probability  # noqa: S311 - repeatable


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase
