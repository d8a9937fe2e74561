"""Plain values to YAML text that the manifest reader reads back to the same values.

Each scalar has the style that is chosen here: a word, text in double quotes, or lines below a `|`. Readers of YAML 1.1
read them like those of YAML 1.2, long lines stay lines, and characters that could steer a terminal or turn text around
are escapes.

What is put into files that exist has their indents; a new document has `STANDARD` ones. Text is written line by line:
ruamel.yaml's emitter, which writes the same, took half the time of a large export, and libyaml's cannot indent the
dashes of a list.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import fill
from typing import Any, NamedTuple

PLAIN_SCALAR = re.compile(r"(?:[^\W\d]|/)[\w./*-]*(?: [\w./*-]+)*")
"""Text that needs no quotes, unless it is one of `QUOTED_WORDS`."""

QUOTED_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 or 1.2 reads as booleans or null."""

PLAIN_WORD = re.compile(r"[^\W\d]\w*")
"""An entry of a list that may run on over several lines."""

DAY_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A value that needs no quotes: manifests are YAML 1.2, in which a day is text."""

LONGEST_PLAIN = 100

WIDTH = 120
"""How long a line may become that holds a whole mapping or list."""

MIN_FLOW_SWITCHES = 10
"""Switches in one mapping that are too many to have a line each."""

LONG_LINE = re.compile(rf"^(?=.{{{WIDTH}}}.)( *)\w+: (?:\{{(?:\w+: \w+(?:, )?)+\}}|\[(?:\w+(?:, )?)+\])$", re.MULTILINE)

TO_ESCAPE = re.compile(r"[^ !#-\[\]-~]")
"""Characters that double quotes may not hold as they are; printable ones beyond ASCII may."""

ESCAPES: Mapping[str, str] = {
    **dict(zip("\0\a\b\t\n\v\f\r\x1b", "0abtnvfre", strict=True)),
    **dict(zip('"\\\x85\xa0\u2028\u2029', '"\\N_LP', strict=True)),
}
"""The characters that have an escape of one letter in double quotes."""


class Indents(NamedTuple):
    """How many columns mappings, and the dashes of lists, are indented below their key."""

    mapping: int = 2
    dash: int = 2


STANDARD = Indents()


def write_yaml(documents: Iterable[Mapping[str, Any]], *, compact: bool = False) -> str:
    """Return documents as one text.

    Args:
        documents: plain values.
        compact: whether mappings and lists of single values are written on one line if they fit there; a mapping of
            many switches, or a list of words, runs on over several lines.
    """
    texts = ("".join(f"{line}\n" for line in _lines(document, 0, is_compact=compact)) for document in documents)
    return "---\n".join(LONG_LINE.sub(_wrapped, text) if compact else text for text in texts)


def height(value: Any, column: int = 0) -> int:
    """Return how many lines `write_yaml` needs below a key for a value at a column, if it writes compactly."""
    if not isinstance(value, dict):
        return len(value if isinstance(value, list) else str(value).splitlines())
    deeper = column + STANDARD.mapping
    return sum(
        1
        if _fits(key, inner, column)
        else -(-len(json.dumps(inner)) // WIDTH)
        if _has_many_switches(inner) or _has_words(inner)
        else 1 + height(inner, deeper)
        for key, inner in value.items()
    )


def write_document(document: Mapping[str, Any]) -> str:
    """Return a short document, whose metadata take one line, unless they hold lists of mappings."""
    fits = not has_entries(document.get("metadata", {}))
    lines = (
        f"{key}: {inline(value)}\n" if key == "metadata" and fits else write_yaml([{key: value}])
        for key, value in document.items()
    )
    return "".join(lines)


def has_entries(mapping: Mapping[str, Any]) -> bool:
    """Whether a mapping holds a list of mappings, such as exceptions, which are read better line by line."""
    entries = (entry for value in mapping.values() if isinstance(value, list) for entry in value)
    return any(isinstance(entry, dict) for entry in entries)


def block(value: Any, column: int, indents: Indents) -> str:
    """Return the lines of a mapping or a list at a column, without brackets; none if it is empty."""
    lines = _lines(value, column, indents) if isinstance(value, dict) else _entries(value, column)
    return "".join(f"{line}\n" for line in lines)


def behind_key(value: Any, column: int, indents: Indents) -> tuple[str, str]:
    """Return what is written on the line of a key at a column, and the lines below it."""
    first, *below = _lines({"key": value}, column, indents)
    return first.lstrip().removeprefix("key:").lstrip(), "".join(f"{line}\n" for line in below)


def inline(value: Any) -> str:
    """Return a value on one line, with what it holds between brackets."""
    match value:
        case str():
            return value if _is_simple(value) or DAY_TEXT.fullmatch(value) else _quoted(value)
        case dict():
            return f"{{{', '.join(f'{_key(key)}: {inline(inner)}' for key, inner in value.items())}}}"
        case list():
            return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value)


def _lines(
    mapping: Mapping[str, Any], column: int, indents: Indents = STANDARD, *, is_compact: bool = False
) -> Iterator[str]:
    """Yield the lines of a mapping at a column, without brackets."""
    start, deeper = " " * column, column + indents.mapping
    for key, value in mapping.items():
        word = f"{start}{_key(key)}:"
        if isinstance(value, str) and _is_literal(value):
            yield f"{word} |" if value.endswith("\n") else f"{word} |-"
            inner = " " * deeper
            yield from (line and inner + line for line in value.removesuffix("\n").split("\n"))
        elif not (value and isinstance(value, dict | list)) or (
            is_compact and (_fits(key, value, column) or _has_many_switches(value) or _has_words(value))
        ):
            yield f"{word} {inline(value)}"
        elif isinstance(value, dict):
            yield word
            yield from _lines(value, deeper, indents, is_compact=is_compact)
        else:
            yield word
            yield from _entries(value, column + indents.dash)


def _entries(values: Iterable[Any], column: int) -> Iterator[str]:
    """Yield the lines of a list whose dashes are at a column."""
    dash = " " * column
    yield from (f"{dash}- {inline(value)}" for value in values)


def _key(key: str) -> str:
    return key if _is_simple(key) else _quoted(key)


def _quoted(text: str) -> str:
    return f'"{TO_ESCAPE.sub(_escape, text)}"'


def _fits(key: str, value: Any, column: int) -> bool:
    """Whether a key at a column and its value are written on one line."""
    if isinstance(value, str):
        return not _is_literal(value)
    if not isinstance(value, dict | list):
        return True
    written = json.dumps(value, ensure_ascii=False)
    is_single = "\\n" not in written and not any(
        isinstance(item, dict) and item for item in (value.values() if isinstance(value, dict) else value)
    )
    return is_single and column + len(key) + len(written) <= WIDTH


def _has_many_switches(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) > MIN_FLOW_SWITCHES
        and all(isinstance(each, bool) for each in value.values())
    )


def _has_words(value: Any) -> bool:
    """Whether a value is a list of words, such as names of sections."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, str) and PLAIN_WORD.fullmatch(each) for each in value)
    )


def _wrapped(line: re.Match[str]) -> str:
    """Return a long line of switches broken behind commas."""
    text = line[0].replace(": ", ":\0")
    return fill(text, WIDTH, subsequent_indent=f"{line[1]}  ", break_on_hyphens=False).replace(":\0", ": ")


def _is_simple(text: str) -> bool:
    return len(text) <= LONGEST_PLAIN and PLAIN_SCALAR.fullmatch(text) is not None and text.lower() not in QUOTED_WORDS


def _is_literal(text: str) -> bool:
    """Whether text has several lines that are written as they are, below a `|`."""
    lines = text.removesuffix("\n").split("\n")
    is_readable = all(line.isprintable() and not line.endswith(" ") for line in lines)
    return "\n" in text and is_readable and lines[-1] != "" and not text[0].isspace()


def _escape(character: re.Match[str]) -> str:
    """Return a character of text in double quotes, or its escape; all others are printable."""
    code = ord(character[0])
    if character[0] in ESCAPES:
        return f"\\{ESCAPES[character[0]]}"
    if character[0].isprintable():
        return character[0]
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
