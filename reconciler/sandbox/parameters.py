"""The parameters of a request: read from query, form and body, and checked against the declaration of an endpoint.

Undeclared parameters are ignored. Only parameters that were sent are returned, null for a null. Begin with `read`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import TypeAdapter

from .answers import Refusal, refused
from .call import Call, invalid
from .records import moment, stamp

SECRETS = frozenset({"private_token", "access_token", "job_token", "token", "personal_access_token"})
REDACTED = "[REDACTED]"
_BOOLEAN = TypeAdapter(bool)
_NO_VALUE = "does not have a valid value"


def merged(query: str, body: Any) -> dict[str, Any]:
    """Return all parameters; the body overrides the query."""
    sent = from_pairs(parse_qsl(query, keep_blank_values=True)) if query else {}
    if isinstance(body, dict):
        sent.update(body)
    return sent


def read_body(content_type: str, body: bytes) -> Any:
    """Return the JSON value of the body, or the fields of a form; None without a body.

    Raises:
        Refusal: 400 for invalid JSON, and for half a surrogate pair or a NUL in it; 415 for any other type.
    """
    if not body:
        return None
    if "json" in content_type.lower():
        return _read_json(body)
    if content_type.lower().startswith("application/x-www-form-urlencoded"):
        return from_pairs(parse_qsl(body.decode("latin-1"), keep_blank_values=True))
    raise Refusal(415, {"error": f"The provided content-type '{content_type}' is not supported."})


def from_pairs(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return fields from the notation of forms: `iids[]` makes a list, `variables[KEY]` a mapping."""
    sent: dict[str, Any] = {}
    for key, value in pairs:
        name, bracket, inner = key.partition("[")
        if not bracket:
            sent[name] = value
        elif inner == "]":
            _under(sent, name, list).append(value)
        else:
            _under(sent, name, dict)[inner.rstrip("]")] = value
    return sent


def without_secrets(value: Any) -> Any:
    """Return the value without any token, for the log."""
    if isinstance(value, dict):
        return {name: REDACTED if name in SECRETS else without_secrets(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value


def target_without_secrets(target: str) -> str:
    """Return a path with its query, without any token."""
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
        readable = b"\\u" not in body or "\0" not in _as_text(value)
    except UnicodeEncodeError:
        readable = False
    except (ValueError, RecursionError):
        raise Refusal(400, {"error": "Invalid JSON format"}) from None
    if not readable:
        raise Refusal(400, b"Bad Request", content_type="text/plain")
    return value


def _as_text(value: Any) -> str:
    """Return all text within a JSON value. Raises `UnicodeEncodeError` for half a surrogate pair."""
    match value:
        case str():
            return value.encode().decode()
        case dict():
            return "".join(map(_as_text, (*value, *value.values())))
        case list():
            return "".join(map(_as_text, value))
    return ""


def _under(sent: dict[str, Any], name: str, sort: type) -> Any:
    if not isinstance(sent.get(name), sort):
        sent[name] = sort()
    return sent[name]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute.

    Attributes:
        coerce: returns the value for the sent value; raises ValueError.
        name: its name.
        required: whether it must be sent.
        blank: whether null and the blank string are accepted.
        null: whether null is accepted.
        values: the accepted values, if the list is closed, or those of its parts; null is always accepted.
        never: values that are refused.
    """

    coerce: Callable[[Any], Any]
    name: str
    required: bool = False
    blank: bool = True
    null: bool = True
    values: tuple[str | int | None, ...] = ()
    never: tuple[int, ...] = ()


def read(call: Call, *declared: Attribute, any_of: Sequence[str] = ()) -> dict[str, Any]:
    """Return the declared attributes that were sent.

    Raises:
        Refusal: 400 if an attribute is missing, blank, of the wrong type or not in its list, or if all of `any_of` are
            missing.
    """
    values: dict[str, Any] = {}
    missing = [attribute for attribute in declared if attribute.required and attribute.name not in call.sent]
    wrong: dict[str, str] = {}
    for attribute in declared:
        if attribute.name in call.sent:
            reason = _check(attribute, call.sent[attribute.name], values)
            if reason:
                wrong[attribute.name] = reason
    none_of = bool(any_of) and not any(name in call.sent for name in any_of)
    if none_of and not (call.state.deployed and (missing or wrong)):
        raise _none_of(call, any_of)
    if missing or wrong:
        raise _refusal(call, declared, missing, wrong, any_of if none_of else ())
    return values


def _check(attribute: Attribute, value: Any, values: dict[str, Any]) -> str | None:
    if not attribute.blank and (value is None or (isinstance(value, str) and not value.strip())):
        return "is empty"
    if value is None and not attribute.null:
        return _NO_VALUE if attribute.values else "is invalid"
    try:
        coerced = None if value is None else attribute.coerce(value)
    except ValueError:
        return "is invalid"
    if attribute.values and coerced is not None and not set(_listed(coerced)) <= set(attribute.values):
        return _NO_VALUE
    if coerced in attribute.never:
        return "has a value not allowed"
    values[attribute.name] = coerced
    return None


def _refusal(
    call: Call,
    declared: Sequence[Attribute],
    missing: list[Attribute],
    wrong: dict[str, str],
    none_of: Sequence[str],
) -> Refusal:
    if not call.state.deployed:
        if missing:
            return refused(400, f'400 (Bad request) "{", ".join(attribute.name for attribute in missing)}" not given')
        return invalid(call.state, wrong)
    absent = {
        attribute.name: "is missing" if attribute.blank else f"is missing, {attribute.name} is empty"
        for attribute in missing
    }
    reasons = absent | wrong
    parts = []
    for attribute in declared:
        if attribute.name in reasons:
            parts.append(f"{attribute.name} {reasons[attribute.name]}")
            if attribute.values and reasons[attribute.name] in ("is missing", "is invalid"):
                parts.append(f"{attribute.name} {_NO_VALUE}")
    parts += [_none_given(none_of)] if none_of else []
    return Refusal(400, {"error": ", ".join(parts)})


def _none_of(call: Call, names: Sequence[str]) -> Refusal:
    if call.state.deployed:
        return Refusal(400, {"error": _none_given(names)})
    return refused(400, f'400 (Bad request) "{", ".join(names)}" not given, at least one is needed')


def _none_given(names: Sequence[str]) -> str:
    return f"{', '.join(names)} are missing, at least one parameter must be provided"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        raise ValueError  # noqa: TRY004 - the one error by which a coercion refuses
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _boolean(value: Any) -> bool | None:
    return None if value == "" else _BOOLEAN.validate_python(value)


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError  # noqa: TRY004 - the one error by which a coercion refuses
    return None if value == "" else int(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004 - the one error by which a coercion refuses
    return value


def _integers(value: Any) -> list[int]:
    parts = value if isinstance(value, list) else str(value).split(",")
    return [number for part in parts if (number := _integer(part)) is not None]


def _texts(value: Any) -> list[str]:
    return [_text(part) for part in (value if isinstance(value, list) else str(value).split(",")) if part]


def _time(value: Any) -> str | None:
    return None if value == "" else stamp(moment(str(value)))


def _day(value: Any) -> str | None:
    return None if value == "" else date.fromisoformat(str(value)).isoformat()


text = partial(Attribute, _text)
"""A string; numbers are taken as their digits."""
boolean = partial(Attribute, _boolean)
"""True or false, or one of the words for them; the empty string is null."""
integer = partial(Attribute, _integer)
"""A whole number, its digits, or a number whose fraction is cut off; the empty string is null."""
texts = partial(Attribute, _texts)
"""A list of strings, or one string of them with commas between."""
integers = partial(Attribute, _integers)
"""A list of whole numbers, or one string of them with commas between."""
mapping = partial(Attribute, _mapping)
"""A mapping, as it is sent."""
day = partial(Attribute, _day)
"""A date, `YYYY-MM-DD`; the empty string is null."""
time = partial(Attribute, _time)
"""A moment in ISO 8601, as it is kept; the empty string is null."""
