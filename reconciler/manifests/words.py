"""What is wrong with a value, in the users' words: the complaints of pydantic, and did-you-mean."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
    "date_type": "a day, YYYY-MM-DD",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
}
"""By the type of the error, what a value of another type should have been."""

RULES = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
"""By the type of the error, the rule a value of the right type breaks."""

SYNONYMS = {"open": "active", "opened": "active", "reopened": "active", "close": "closed"}
"""What people write for a value, because other things of the service call it so."""

TRUTHS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
QUOTED = re.compile(r"'([^']*)'")
LONGEST = 60
NOT_NULL = ", not null; to leave it alone, leave it out"


def unknown(what: str, word: str, allowed: Iterable[str]) -> str:
    """Say that a word is not among those allowed, and which it may have been meant to be."""
    known = list(allowed)
    guess = closest(word, known)
    if guess:
        return f"unknown {what} `{short(word)}`; did you mean `{guess}`?"
    return f"unknown {what} `{short(word)}`; {'known are ' + listed(known) if known else 'there is none'}"


def closest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that is most like this one, if any is."""
    return _closest(word[:LONGEST].lower(), tuple(allowed))


@lru_cache(maxsize=1024)
def _closest(word: str, allowed: tuple[str, ...]) -> str | None:
    by_lower = {known.lower(): known for known in allowed}
    matches = get_close_matches(word, by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return `a, b and c`."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else str(end)


def complaint(errors: list[Mapping[str, Any]], value: Any, text: str | None, *, entry: bool = False) -> str:
    """Say what pydantic's complaints about one value come to.

    Args:
        errors: all it says of the value; of a value that may be of several types, something for each.
        value: what was read.
        text: how the value was written, if it is a scalar.
        entry: whether it is an entry of a list.
    """
    rules = [error for error in errors if error["type"] not in EXPECTED]
    if rules:
        return _broken(rules[0], value)
    expected = list(dict.fromkeys(EXPECTED[error["type"]] for error in errors))
    if value is None and entry:
        return f"must be {listed(expected, 'or')}, not null"
    return _mistaken(expected, value, short(str(value) if text is None else text))


def allowed_values(error: Mapping[str, Any]) -> list[str]:
    """Return the values that an enumeration has."""
    expected = str(error["ctx"]["expected"])
    return QUOTED.findall(expected) or [expected]


def short(text: str) -> str:
    """Return the text, cut if it is long."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _broken(error: Mapping[str, Any], value: Any) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error":
            allowed = allowed_values(error)
            guess = (SYNONYMS.get(value) or closest(value, allowed)) if isinstance(value, str) else None
            guess = guess if guess in allowed else None
            hint = f"; did you mean `{guess}`?" if guess and len(allowed) > 1 else ""
            hint = NOT_NULL if value is None else hint
            return f"must be {'one of ' if len(allowed) > 1 else ''}{listed(allowed, 'or')}{hint}"
        case "value_error":
            return str(context["error"])
        case "string_too_short" | "too_short" if context["min_length"] == 1:
            return "must not be empty"
        case rule if rule in RULES:
            return RULES[rule].format_map(context)
    return str(error["msg"])


def _mistaken(expected: list[str], value: Any, text: str) -> str:  # noqa: PLR0911 - a table of cases
    message = f"must be {listed(expected, 'or')}"
    match value:
        case dict():
            return f"{message}, not a mapping"
        case list():
            hint = ": write `key: value`, without dashes or brackets" if "a mapping" in expected else ""
            return f"{message}, not a list{hint}"
        case None:
            return message + NOT_NULL
        case bool() | int() | float() if expected == ["text"]:
            what = "true or false" if isinstance(value, bool) else "a number"
            return f"{message}: `{text}` is {what}, quote it"
        case "true" | "false" if "true or false" in expected:
            return f"{message}: leave the quotes out"
        case str() if "true or false" in expected and value.lower() in TRUTHS:
            return f"{message}: `{text}` is text, write {TRUTHS[value.lower()]}"
        case str() if "a whole number" in expected and value.isdecimal():
            return f"{message}: leave the quotes out"
        case str() if "a list" in expected:
            return f"{message}: [{text}]"
    return f"{message}, not `{text}`"
