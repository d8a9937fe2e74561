"""From what the service answered to a value or a named error (spec section 7; deployed behaviour, sections 7.1-7.4)."""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
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
    ScopeMissing,
    ServerFailure,
    ServiceError,
    Unauthorized,
)
from reconciler.model.protocols import Json

LONGEST_REASON = 500
"""Characters of a service's words that are worth repeating."""

DEEPEST = 64
"""Lists and objects within each other; what the service sends is less than ten deep."""

TOKEN = re.compile(r"\bgl[a-z]{2,12}-[\w.=-]{10,}")
"""Tokens of the service by their beginning, such as `glpat-` and `glptt-`; older ones have none."""

HIDDEN = "[a secret]"

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
        raise Moved(request, _redirected(request, answer), status)
    if status < 400:
        raise BadAnswer(request, f"nothing that was asked for: {status} {plain(answer.phrase)}".rstrip(), status)
    error = ERRORS.get(status, ServerFailure if status >= 500 else Refused)
    if error is Forbidden and _names_scopes(answer):
        error = ScopeMissing
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


def _redirected(request: str, answer: Answer) -> str:
    """Say where a redirect leads, less its query, which may hold anything, and what the service says about it."""
    words, place = sentence(answer), plain(answer.headers["location"].partition("?")[0])
    told = f"redirected to {place}" + (f" ({words})" if words else "")
    if request.startswith("GET "):
        return told
    return f"{told}, and so not carried out: writes are not sent elsewhere; the service may be in maintenance"


def _read_body(request: str, answer: Answer) -> Json:
    try:
        return parse_json(answer.body)
    except ValueError:
        kind = plain(answer.headers.get("content-type", "no content type"))
        raise BadAnswer(request, f"the answer is not JSON ({answer.status}, {kind})", answer.status) from None


def sentence(answer: Answer) -> str:
    """Return the service's own words in an error: those of `message`, `error` or `error_description`, or plain text.

    Anything else in a body, such as the record of an object, is not for eyes that only look for an error.
    """
    try:
        body = parse_json(answer.body)
    except ValueError:
        text = answer.body.decode(errors="replace")
        is_sentence = answer.headers.get("content-type", "text/plain").startswith("text/plain") and "{" not in text
        return plain(TOKEN.sub(HIDDEN, text)) if is_sentence else ""
    if not isinstance(body, dict):
        return ""
    told = (body.get(name) for name in ("error_description", "message", "error"))
    words = next(filter(None, map(_flat, told)), "")
    for secret in sorted(_secrets(body), key=len, reverse=True):
        words = words.replace(secret, HIDDEN)
    return plain(TOKEN.sub(HIDDEN, words))


def _names_scopes(answer: Answer) -> bool:
    """Whether the token's scopes are what is refused (deployed behaviour, section 7.3)."""
    try:
        body = parse_json(answer.body)
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("error") == "insufficient_scope"


def _reason(answer: Answer) -> str:
    """The service's words, or its name for the status. Many words begin with the status, which is told once."""
    return sentence(answer).removeprefix(f"{answer.status} ") or plain(answer.phrase)


def _flat(value: Json) -> str:
    """Write an object of lists of sentences as one line: `title: has already been taken; can't be blank`.

    Fields that hold secrets, and whatever is no sentence, are passed over.
    """
    if isinstance(value, dict):
        told = [(key, _flat(inner)) for key, inner in value.items() if not _holds_secret(key)]
        return "; ".join(words if key in ("error", "base") else f"{key}: {words}" for key, words in told if words)
    if isinstance(value, list):
        return "; ".join(filter(None, map(_flat, value)))
    return value if isinstance(value, str) else ""


def _secrets(value: Json) -> Iterator[str]:
    """Yield the values of all fields that hold secrets, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and inner and _holds_secret(key):
                yield inner
            yield from _secrets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner)


def _holds_secret(key: str) -> bool:
    """Whether a field of this name holds a secret, as `token`, `runners_token`, `private_token` and `password` do."""
    return key.lower().endswith(("token", "password", "secret", "dsn"))


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
