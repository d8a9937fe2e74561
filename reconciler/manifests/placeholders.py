"""`{path}`, `{name}` and `{namespace}` in the keys and strings of profiles and sets."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.address import Scope
from reconciler.manifests.words import closest

NAMES = ("path", "name", "namespace")
BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Filling = Mapping[str, str]
"""What each placeholder stands for; a target may lack some."""


def filling(scope: Scope) -> Filling:
    """Return what the placeholders stand for in a target; a target known by its ID has none."""
    if not isinstance(scope.ref, str):
        return {}
    namespace, slash, name = scope.ref.rpartition("/")
    return {"path": scope.ref, "name": name} | ({"namespace": namespace} if slash else {})


def fill(text: str, values: Filling, *, lower: bool = False) -> str:
    """Fill in the placeholders, in lower case if asked to; the rest of the text keeps its case."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        value = values.get(name, match.group())
        return value.lower() if lower else value

    return BRACES.sub(replace, text) if "{" in text or "}" in text else text


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


def has_placeholder(text: object) -> bool:
    """Whether anything would be filled in."""
    return isinstance(text, str) and any(match.group(1) is not None for match in BRACES.finditer(text))


def uses(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], bool]]:
    """Yield each placeholder or lone brace in a value, with its path and whether it is in the key there."""
    match value:
        case str():
            yield from ((match_, path, False) for match_ in _found(value))
        case dict():
            for key, inner in value.items():
                yield from ((match_, (*path, key), True) for match_ in _found(key))
                yield from uses(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from uses(inner, (*path, index))


def fault_of_use(use: str) -> str | None:
    """Say what is wrong with a placeholder or lone brace, as `uses` yields it."""
    if use in NAMES:
        return None
    if use in {"{", "}"}:
        return f"a lone `{use}`: a literal brace is written `{use * 2}`"
    guess = closest(use, NAMES)
    hint = f"did you mean `{{{guess}}}`?" if guess else "there are `{path}`, `{name}` and `{namespace}`"
    return f"unknown placeholder `{{{use}}}`; {hint} (a literal brace is written `{{{{`)"


def _found(text: str) -> Iterator[str]:
    if "{" in text or "}" in text:
        for match in BRACES.finditer(text):
            if match.group(1) is not None:
                yield match.group(1)
            elif len(match.group()) == 1:
                yield match.group()
