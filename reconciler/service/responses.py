"""From a response to its value or a named error (spec section 7; deployed behaviour, sections 7.1-7.4).

Begin with `read_response`. `shown` and `hidden` remove secrets from the service's explanations.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote, quote_plus

from pydantic_core import from_json

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
"""Characters of the service's words that are shown."""

MAX_ID_DIGITS = 12
"""Digits of a number in a header."""

DEEPEST = 64
"""Levels of nested lists and objects; what the service sends has less than ten."""

TOKEN_IN_TEXT = re.compile(
    r"\bgl[a-z]{2,12}-[\w.=-]{10,}|\b(?:gh[a-z]|github_pat)_\w{10,}|(?<=://)[^/@\s]+(?=@)",
)
"""Tokens by their beginning, such as `glpat-`, `glptt-` and `ghp_`; older ones have none. And credentials in URLs."""

MASK = "[a secret]"

MESSAGE_KEYS = ("error_description", "message", "error", "errors")
"""The fields of an error that explain it; of several, the first counts. GitLab uses all of them."""

ERRORS: dict[int, type[ServiceError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: AnswerLost,
    429: RateLimited,
}


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response.

    Attributes:
        status: the HTTP status; 0 if there was no response.
        phrase: the service's name for the status.
        headers: by lower-case name.
        body: decoded.
    """

    status: int
    phrase: str
    headers: Mapping[str, str]
    body: bytes


def read_response(request: str, response: Response) -> Json:
    """Return the JSON value of a successful response; None for a write without a response body.

    Args:
        request: method and path, for the error.
        response: to that request.

    Raises:
        ServiceError: the subclass of the response's status; `BadAnswer` for a body that is not JSON, or missing after
            a read or a creation.
    """
    status = response.status
    if 200 <= status < 300:
        if response.body:
            return _read_body(request, response)
        if request.startswith("GET ") or (request.startswith("POST ") and status in (200, 201)):
            raise BadAnswer(request, f"the response is empty ({status})", status)
        return None
    if 300 <= status < 400 and "location" in response.headers:
        raise Moved(request, _redirected(request, response), status)
    if status < 400:
        raise BadAnswer(request, f"unexpected response: {status} {plain(response.phrase)}".rstrip(), status)
    error = ERRORS.get(status, ServerFailure if status >= 500 else Refused)
    # This error ends the run: every other request would be refused too.
    if error is Forbidden and _names_scopes(response):
        error = ScopeMissing
    # Many explanations begin with the status, which is shown once.
    reason = explanation(response).removeprefix(f"{status} ") or plain(response.phrase)
    raise error(request, f"{status} {reason}".rstrip(), status)


def plain(text: str) -> str:
    """Return text from the service as one printable line, at most `LONGEST_REASON` characters long."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def parse_json(content: bytes) -> Json:
    """Read JSON as RFC 8259 defines it: UTF-8, no NaN, no infinite numbers; and of limited depth.

    Raises:
        ValueError: the body is not such JSON.
    """
    value = from_json(content, allow_inf_nan=False)
    level = [value]
    for _ in range(DEEPEST):
        if math.inf in level or -math.inf in level:
            raise ValueError("a number too large")
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return value
    raise ValueError("too deep")


def parse_date(text: str) -> datetime | None:
    """Return an HTTP date (RFC 9110, section 5.6.7) with a time zone; None for anything else."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def parse_number(text: str | None) -> int | None:
    """Return the number in a header, at most `LONGEST_NUMBER` digits long; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS else None


def hidden(text: str, secrets: Collection[str]) -> str:
    """Return a text without secrets, in the spellings of plain text, JSON and URLs."""
    # The longest first: one secret may be the beginning of another.
    for form in sorted({form for secret in secrets for form in _spellings(secret)}, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _spellings(secret: str) -> Iterator[str]:
    as_json = json.dumps(secret)[1:-1]
    yield from (secret, json.dumps(secret, ensure_ascii=False)[1:-1], as_json)
    # GitLab escapes these characters in JSON, so that it can be embedded in a script.
    yield as_json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))


def without_secrets(response: Response, secrets: Collection[str]) -> Response:
    """Return the response without secrets if it explains an error; the values of other responses are not changed."""
    if not secrets or response.status < 300:
        return response
    headers = {name: hidden(value, secrets) for name, value in response.headers.items()}
    body = hidden(response.body.decode(errors="surrogateescape"), secrets)
    return replace(response, headers=headers, body=body.encode(errors="surrogateescape"))


def shown(text: str) -> str:
    """Return words of the service as `plain` does, without what looks like a token."""
    return plain(TOKEN_IN_TEXT.sub(MASK, text))


def explanation(response: Response) -> str:
    """Return the service's explanation of an error: the first of `MESSAGE_KEYS` that it has, or a plain text.

    Other fields, such as those of an object's record, are never part of it, and secrets are hidden.
    """
    body = _error_body(response)
    if isinstance(body, str):
        return shown(body)
    words = next(filter(None, (_flat(body.get(name)) for name in MESSAGE_KEYS)), "")
    for secret in sorted(_secrets(body), key=len, reverse=True):
        words = words.replace(secret, MASK)
    return shown(words)


def _error_body(response: Response) -> str | dict[str, Json]:
    """Return the JSON object of an error, or its plain text; empty if it has neither."""
    try:
        body = parse_json(response.body)
    except ValueError:
        text = response.body.decode(errors="replace")
        is_text = response.headers.get("content-type", "text/plain").startswith("text/plain") and "{" not in text
        return text if is_text else ""
    return body if isinstance(body, dict) else ""


def _names_scopes(response: Response) -> bool:
    """Whether a 403 refuses the token's scopes (deployed behaviour, section 7.3)."""
    body = _error_body(response)
    return isinstance(body, dict) and body.get("error") == "insufficient_scope"


def _redirected(request: str, response: Response) -> str:
    """Return the location of a redirect without its query, which may hold a secret, and the service's explanation."""
    words, place = explanation(response), plain(response.headers["location"].partition("?")[0])
    reason = f"redirected to {place}" + (f" ({words})" if words else "")
    if request.startswith("GET "):
        return reason
    return f"{reason}, so nothing was written: writes follow no redirects; the service may be in maintenance"


def _read_body(request: str, response: Response) -> Json:
    try:
        return parse_json(response.body)
    except ValueError:
        kind = plain(response.headers.get("content-type", "no content type"))
        raise BadAnswer(request, f"the response is not JSON ({response.status}, {kind})", response.status) from None


def _flat(value: Json) -> str:
    """Write an object of lists of sentences as one line: `title: has already been taken; can't be blank`.

    Fields that hold secrets, and values that are not text, are left out.
    """
    if isinstance(value, dict):
        fields = [(key, _flat(inner)) for key, inner in value.items() if not _is_of_secret(key)]
        return "; ".join(words if key in ("error", "base") else f"{key}: {words}" for key, words in fields if words)
    if isinstance(value, list):
        return "; ".join(filter(None, map(_flat, value)))
    return value if isinstance(value, str) else ""


def _secrets(value: Json) -> Iterator[str]:
    """Yield the values of all fields that hold secrets, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and inner and _is_of_secret(key):
                yield inner
            yield from _secrets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner)


def _is_of_secret(key: str) -> bool:
    """Whether a field of this name holds a secret, as `token`, `runners_token`, `private_token` and `password` do."""
    return key.lower().endswith(("token", "password", "secret", "dsn"))
