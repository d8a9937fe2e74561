"""From what the service answered to a value or a named error (spec section 7; deployed behaviour, sections 7.1-7.4)."""

import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from reconciler.errors import (
    AnswerLost,
    BadAnswer,
    Forbidden,
    Moved,
    NotFound,
    RateLimited,
    Refused,
    ServerFailure,
    ServiceError,
    Unauthorized,
)
from reconciler.wire import Json

LONGEST_REASON = 500
"""Characters of a service's words that are worth repeating."""

DEEPEST = 64
"""Lists and objects within each other; what the service sends is less than ten deep."""

ERRORS: dict[int, type[ServiceError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: AnswerLost,
    429: RateLimited,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole.

    Attributes:
        phrase: what the service calls the status.
        headers: by lower-case name.
        body: unpacked.
    """

    status: int
    phrase: str
    headers: Mapping[str, str]
    body: bytes


def read_answer(request: str, answer: Answer) -> Json:
    """Return the JSON value of a successful answer, None where a write was answered without a body.

    Args:
        request: method and path, for the error.

    Raises:
        ServiceError: the subclass that stands for the answer's status; `BadAnswer` for a body that is not JSON, or is
            missing where something was asked for or created.
    """
    status = answer.status
    if 200 <= status < 300:
        if answer.body:
            return _read_body(request, answer)
        if request.startswith("GET ") or (request.startswith("POST ") and status in (200, 201)):
            raise BadAnswer(request, f"the answer is empty ({status})", status)
        return None
    if 300 <= status < 400 and "location" in answer.headers:
        raise Moved(request, f"redirected to {plain(answer.headers['location'])}", status)
    if status < 400:
        raise BadAnswer(request, f"nothing that was asked for: {status} {plain(answer.phrase)}".rstrip(), status)
    error = ERRORS.get(status, ServerFailure if status >= 500 else Refused)
    raise error(request, f"{status} {_reason(answer)}".rstrip(), status)


def plain(text: str) -> str:
    """Return text from the service fit for any terminal: no control characters, not too long."""
    kept = "".join(" " if unicodedata.category(character)[0] == "C" else character for character in text)
    kept = " ".join(kept.split())
    return kept if len(kept) <= LONGEST_REASON else kept[: LONGEST_REASON - 1] + "…"


def parse_json(body: bytes) -> Json:
    """Read JSON as RFC 8259 has it: UTF-8, no NaN, no Infinity; not too deep, and fit to be written again.

    Raises:
        ValueError: it is none.
    """
    try:
        value = _DECODER.decode(body.decode())
        if body.count(b"[") + body.count(b"{") > DEEPEST:
            _see_that_it_is_shallow(value)
        if b"\\ud" in body.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair cannot be written by anyone
    except RecursionError:
        raise ValueError("too deep") from None
    return value


def _read_body(request: str, answer: Answer) -> Json:
    try:
        return parse_json(answer.body)
    except ValueError:
        kind = plain(answer.headers.get("content-type", "no content type"))
        raise BadAnswer(request, f"the answer is not JSON ({answer.status}, {kind})", answer.status) from None


def _reason(answer: Answer) -> str:
    """Find the service's own words: under `message` or `error`, as string, object or list, or as plain text."""
    try:
        body = parse_json(answer.body)
    except ValueError:
        html = "html" in answer.headers.get("content-type", "")
        return _without_status("" if html else plain(answer.body.decode(errors="replace")), answer)
    if isinstance(body, dict):
        described = body.get("error_description") if isinstance(body.get("error_description"), str) else None
        body = described or body.get("message") or body.get("error") or body
    return _without_status(plain(_flat(body)), answer)


def _without_status(reason: str, answer: Answer) -> str:
    """Many reasons begin with their status; it is told once."""
    return reason.removeprefix(f"{answer.status} ") or plain(answer.phrase)


def _flat(value: Json) -> str:
    """Write an object of lists of sentences as one line: `title: has already been taken; can't be blank`."""
    if isinstance(value, dict):
        return "; ".join(
            _flat(inner) if key in ("error", "base") else f"{key}: {_flat(inner)}" for key, inner in value.items()
        )
    if isinstance(value, list):
        return "; ".join(_flat(inner) for inner in value)
    return value if isinstance(value, str) else json.dumps(value)


def _see_that_it_is_shallow(value: Json) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ValueError("too deep")


def _no_constant(name: str) -> Never:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
