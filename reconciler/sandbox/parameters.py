"""The parameters of a request: query, form and JSON body merged (spec section 1)."""

import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from .errors import Refusal

SECRETS = frozenset({"private_token", "access_token", "job_token", "token"})
REDACTED = "[REDACTED]"


def merged(query: str, body: Any) -> dict[str, Any]:
    """All that was sent; what the body says wins."""
    found = from_pairs(parse_qsl(query, keep_blank_values=True)) if query else {}
    if isinstance(body, dict):
        found.update(body)
    return found


def read_body(content_type: str, body: bytes) -> Any:
    """The JSON value of the body, or the fields of a form; None for neither.

    Raises:
        Refusal: 400 for JSON that is none, and for half a surrogate pair in it.
    """
    if not body:
        return None
    if "json" in content_type:
        return _read_json(body)
    if content_type.startswith("application/x-www-form-urlencoded"):
        return from_pairs(parse_qsl(body.decode("latin-1"), keep_blank_values=True))
    return None


def from_pairs(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Fields in the notation of forms: `iids[]` makes a list, `variables[KEY]` a mapping."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        name, bracket, inner = key.partition("[")
        if not bracket:
            found[name] = value
        elif inner == "]":
            _under(found, name, list).append(value)
        else:
            _under(found, name, dict)[inner.rstrip("]")] = value
    return found


def without_secrets(value: Any) -> Any:
    """The same with every token taken out, for the log."""
    if isinstance(value, dict):
        return {name: REDACTED if name in SECRETS else without_secrets(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value


def target_without_secrets(target: str) -> str:
    """A path with its query, every token in it taken out."""
    path, _, query = target.partition("?")
    if "token" not in unquote(query).lower():
        return target
    pairs = [pair.partition("=") for pair in query.split("&")]
    kept = [
        f"{name}={REDACTED}" if "token" in unquote(name).lower() else name + sign + value for name, sign, value in pairs
    ]
    return f"{path}?{'&'.join(kept)}"


def _read_json(body: bytes) -> Any:
    try:
        value = json.loads(body)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refusal(400, {"error": "Bad Request"}) from None
    except (ValueError, RecursionError):
        raise Refusal(400, {"error": "Invalid JSON format"}) from None
    return value


def _under(found: dict[str, Any], name: str, sort: type) -> Any:
    if not isinstance(found.get(name), sort):
        found[name] = sort()
    return found[name]
