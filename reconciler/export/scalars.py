"""Plain values as ruamel nodes: text in quotes wherever anybody might take it for something else."""

import re
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, PlainScalarString

from reconciler.manifests.yaml_reader import resolve

SIMPLE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./*-]*( [A-Za-z0-9_./*-]+)*")
"""Text that means itself without quotes; what other readers of YAML take for something else is not among it."""

WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What YAML 1.1 took for something else."""

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""Needs no quotes as a value: manifests are YAML 1.2, in which a day is text."""

LINES = re.compile(
    r"[^\s\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff][^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]*"
)
"""Text of several lines that can be written as it is, below a `|`."""

LONGEST_PLAIN = 100


def node(value: Any) -> Any:
    """Return a value as ruamel writes it under a resolver that knows text only."""
    match value:
        case dict():
            return CommentedMap({key_node(key): node(inner) for key, inner in value.items()})
        case list():
            return CommentedSeq([node(inner) for inner in value])
        case bool() | None:
            return PlainScalarString({True: "true", False: "false", None: "null"}[value])
        case str():
            return _text(value)
    return PlainScalarString(value)


def key_node(key: str) -> Any:
    """Return the key of a mapping, which is never written on several lines."""
    return key if _is_simple(key) else DoubleQuotedScalarString(key)


def _text(text: str) -> Any:
    if _is_simple(text) or DAY.fullmatch(text):
        return PlainScalarString(text)
    if "\n" in text and LINES.fullmatch(text) and not re.search(r"[ \t]\n|\n\n$|[ \t]$", text):
        return LiteralScalarString(text)
    return DoubleQuotedScalarString(text)


def _is_simple(text: str) -> bool:
    return (
        len(text) <= LONGEST_PLAIN
        and SIMPLE.fullmatch(text) is not None
        and text.lower() not in WORDS
        and resolve(text) == text
    )
