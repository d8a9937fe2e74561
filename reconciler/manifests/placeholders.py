"""`{path}`, `{name}` and `{namespace}` in the keys and strings of specs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.manifests.words import closest

NAMES = ("path", "name", "namespace")
PLACEHOLDER = re.compile(r"\{\{(path|name|namespace)\}\}|\{(path|name|namespace)\}")
"""A literal one, which is written with doubled braces, or one to be filled in."""
WORD = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Filling = Mapping[str, str]
"""The value of each placeholder; a target may lack some."""


def filling(path: str | None) -> Filling:
    """Return what the placeholders stand for in a target; the user has no path."""
    if path is None:
        return {}
    namespace, slash, name = path.rpartition("/")
    return {"path": path, "name": name} | ({"namespace": namespace} if slash else {})


def fill(text: str, values: Filling, *, lower: bool = False) -> str:
    """Fill in the placeholders, in lower case if asked to; literal ones lose their second braces, all else stays."""

    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        value = values.get(name, match.group())
        return value.lower() if lower else value

    return PLACEHOLDER.sub(replace, text) if "{" in text else text


def fill_all(value: Any, values: Filling) -> Any:
    """Fill in the placeholders in the keys and strings of a value."""
    match value:
        case str():
            return fill(value, values)
        case dict():
            return {fill(key, values): fill_all(inner, values) for key, inner in value.items()}
        case list():
            return [fill_all(inner, values) for inner in value]
    return value


def literal(value: Any) -> Any:
    """Return a value as a manifest has to write it so that filling in gives back this value."""
    match value:
        case str():
            return re.sub(r"\{(path|name|namespace)\}", r"{{\1}}", value) if "{" in value else value
        case dict():
            return {literal(key): literal(inner) for key, inner in value.items()}
        case list():
            return [literal(inner) for inner in value]
    return value


def has_placeholder(text: object) -> bool:
    """Whether filling in would change a text."""
    return isinstance(text, str) and PLACEHOLDER.search(text) is not None


def braces(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], bool]]:
    """Yield each text with a brace in a value, with its path and whether it is the key there."""
    match value:
        case str() if "{" in value:
            yield value, path, False
        case dict():
            for key, inner in value.items():
                if "{" in key:
                    yield key, (*path, key), True
                yield from braces(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from braces(inner, (*path, index))


def uses(text: str) -> tuple[str, ...]:
    """Return the placeholders to be filled in."""
    return tuple(match[2] for match in PLACEHOLDER.finditer(text) if match[2])


def doubt(text: str) -> str | None:
    """Say which word in braces looks like a misspelt placeholder."""
    for word in WORD.findall(text):
        guess = None if word in NAMES else closest(word, NAMES)
        if guess:
            return f"`{{{word}}}` is no placeholder and stays as it is; did you mean `{{{guess}}}`?"
    return None
