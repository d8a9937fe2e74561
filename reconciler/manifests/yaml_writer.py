"""Plain values to YAML text that the manifest reader reads back to the same values.

Text is quoted wherever a reader of YAML may take it for something else, and a character that could steer a terminal or
turn text around is written as an escape.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reconciler.manifests.yaml_reader import resolve

SIMPLE = re.compile(r"(?:[^\W\d]|/)[\w./*-]*(?: [\w./*-]+)*")
"""Text that needs no quotes, unless it is one of `WORDS` or a number."""

WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 reads as booleans or null."""

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A value that needs no quotes: manifests are YAML 1.2, in which a day is text."""

LONGEST_PLAIN = 100


class Indents(NamedTuple):
    """How many columns mappings, and the dashes of lists, are indented below their key."""

    mapping: int = 2
    dash: int = 2


STANDARD = Indents()


def write_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as one text."""
    return "---\n".join("".join(block(document, 0, STANDARD)) for document in documents)


def block(value: Any, column: int, indents: Indents) -> list[str]:
    """Return the lines of a mapping or a list at a column, without brackets."""
    pad = " " * column
    if isinstance(value, list):
        return [f"{pad}- {inline(entry)}\n" for entry in value]
    lines = []
    for key, inner in value.items():
        head, body = behind_key(inner, column, indents)
        lines += [f"{pad}{_text(key)}: {head}".rstrip() + "\n", *body]
    return lines


def behind_key(value: Any, column: int, indents: Indents) -> tuple[str, list[str]]:
    """Return what is written on the line of a key at a column, and the lines below it."""
    match value:
        case dict() if value:
            return "", block(value, column + indents.mapping, indents)
        case [_, *_]:
            return "", block(value, column + indents.dash, indents)
        case str() if "\n" in value and not value[0].isspace():
            lines = value.removesuffix("\n").split("\n")
            if lines[-1] and all(line.isprintable() and line == line.rstrip() for line in lines):
                pad = " " * (column + indents.mapping)
                return "|" if value.endswith("\n") else "|-", [f"{pad}{line}".rstrip() + "\n" for line in lines]
    return inline(value), []


def inline(value: Any) -> str:
    """Return a value on one line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_text(key)}: {inline(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(inline, value)) + "]"
        case str() if DAY.fullmatch(value):
            return value
        case str():
            return _text(value)
    return json.dumps(value)


def _text(text: str) -> str:
    is_simple = len(text) <= LONGEST_PLAIN and SIMPLE.fullmatch(text) and text.lower() not in WORDS
    if is_simple and resolve(text) == text:
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in json.dumps(text, ensure_ascii=False))


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
