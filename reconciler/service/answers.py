"""From what the service answered to a value or a named error (spec section 7; deployed behaviour, sections 7.1-7.4)."""

import json
import unicodedata

import httpx

from reconciler.errors import (
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

ERRORS: dict[int, type[ServiceError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound, 429: RateLimited}


def read_answer(request: str, response: httpx.Response) -> Json:
    """Return the JSON value of a successful answer, None where it has no body.

    Args:
        request: method and path, for the error.

    Raises:
        ServiceError: the subclass that stands for the answer's status; `BadAnswer` for a body that is not JSON.
    """
    status = response.status_code
    if response.is_success:
        return _read_json(request, response) if response.content else None
    if response.is_redirect:
        raise Moved(request, f"redirected to {plain(response.headers['location'])}", status)
    error = ERRORS.get(status, ServerFailure if status >= 500 else Refused)
    raise error(request, f"{status} {_reason(response)}", status)


def plain(text: str) -> str:
    """Return text from the service fit for any terminal: no control characters, not too long."""
    kept = "".join(" " if unicodedata.category(character)[0] == "C" else character for character in text)
    kept = " ".join(kept.split())
    return kept if len(kept) <= LONGEST_REASON else kept[: LONGEST_REASON - 1] + "…"


def _read_json(request: str, response: httpx.Response) -> Json:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError) as error:
        kind = plain(response.headers.get("content-type", "no content type"))
        raise BadAnswer(
            request, f"the answer is not JSON ({response.status_code}, {kind})", response.status_code
        ) from error


def _reason(response: httpx.Response) -> str:
    """Find the service's own words: under `message` or `error`, as string, object or list, or as plain text."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        text = "" if "html" in response.headers.get("content-type", "") else response.text
        return _without_status(plain(text), response)
    if isinstance(body, dict):
        described = body.get("error_description") if isinstance(body.get("error_description"), str) else None
        body = described or body.get("message") or body.get("error") or body
    return _without_status(plain(_flat(body)), response)


def _without_status(reason: str, response: httpx.Response) -> str:
    """Many reasons begin with their status; it is told once."""
    return reason.removeprefix(f"{response.status_code} ") or response.reason_phrase


def _flat(value: Json) -> str:
    """Write an object of lists of sentences as one line: `title: has already been taken; can't be blank`."""
    if isinstance(value, dict):
        return "; ".join(
            _flat(inner) if key in ("error", "base") else f"{key}: {_flat(inner)}" for key, inner in value.items()
        )
    if isinstance(value, list):
        return "; ".join(_flat(inner) for inner in value)
    return value if isinstance(value, str) else json.dumps(value)
