"""Placeholders in manifests: filled in for one target, or written in place of their values."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.manifests.sources import Steps
from reconciler.model.wording import closest

NAMES = ("path", "name", "namespace")
PLACEHOLDER = re.compile(r"\{\{(path|name|namespace)\}\}|\{(path|name|namespace)\}")
"""A literal one, written with doubled braces, or one to fill in."""
WORD = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Placeholders = Mapping[str, str]
"""The value of each placeholder; a target may lack some."""


def placeholder_values(path: str | None) -> Placeholders:
    """Return the values of the placeholders for a target; the user has no path."""
    if path is None:
        return {}
    namespace, slash, name = path.rpartition("/")
    return {"path": path, "name": name} | ({"namespace": namespace} if slash else {})


def fill(text: str, values: Placeholders | None, *, lower: bool = False) -> str:
    """Fill in the placeholders, and strip the second braces of literal ones; without values, return the text."""

    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        value = (values or {}).get(name, match.group())
        return value.lower() if lower else value

    return text if values is None or "{" not in text else PLACEHOLDER.sub(replace, text)


def fill_all(value: Any, values: Placeholders | None) -> Any:
    """Fill in the placeholders in the keys and strings of a value."""
    return value if values is None else _with_texts(value, lambda text: fill(text, values))


def literal(value: Any) -> Any:
    """Return a value as a manifest writes it, with literal braces doubled: filling in gives back the value."""
    return _with_texts(
        value, lambda text: re.sub(r"\{(path|name|namespace)\}", r"{{\1}}", text) if "{" in text else text
    )


def unfilled(text: str, values: Placeholders) -> str:
    """Return a text as a manifest writes it, with placeholders in place of their values, whatever their case."""
    text = literal(text)
    for name, value in values.items():
        text = re.sub(re.escape(value), f"{{{name}}}", text, flags=re.IGNORECASE)
    return text


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with its keys and strings changed."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): _with_texts(inner, change) for key, inner in value.items()}
        case list():
            return [_with_texts(inner, change) for inner in value]
    return value


def has_placeholder(text: object) -> bool:
    """Whether a text has placeholders, literal ones included."""
    return isinstance(text, str) and PLACEHOLDER.search(text) is not None


def braces(value: Any, steps: Steps = ()) -> Iterator[tuple[str, Steps, bool]]:
    """Yield each text with a brace in a value, with the steps to it and whether it is the key there."""
    match value:
        case str() if "{" in value:
            yield value, steps, False
        case dict():
            for key, inner in value.items():
                if "{" in key:
                    yield key, (*steps, key), True
                yield from braces(inner, (*steps, key))
        case list():
            for index, inner in enumerate(value):
                yield from braces(inner, (*steps, index))


def placeholders_in(text: str) -> tuple[str, ...]:
    """Return the placeholders to fill in."""
    return tuple(match[2] for match in PLACEHOLDER.finditer(text) if match[2])


def misspelt_placeholder(text: str) -> str | None:
    """Return a warning if a word in braces looks like a misspelt placeholder."""
    for word in WORD.findall(text):
        guess = None if word in NAMES else closest(word, NAMES)
        if guess:
            return f"`{{{word}}}` is no placeholder and stays as it is; did you mean `{{{guess}}}`?"
    return None
