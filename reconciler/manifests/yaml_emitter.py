"""Plain values to YAML text that the manifest reader reads back to the same values, by ruamel.yaml's emitter.

Each scalar has the style that is chosen here: a word, text in double quotes, or lines below a `|`. ruamel.yaml itself
would leave text without quotes wherever YAML 1.2 allows it, and readers of YAML 1.1 would misread some of it; it would
fold long lines, and print characters that could steer a terminal or turn text around as they are.

The emitter gets events, and leaves out what these documents never have: anchors, tags, a debug mode. `YAML().dump`
makes events from nodes, and nodes from values: that takes four times as long, and an export writes thousands of them.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from io import StringIO
from textwrap import indent
from typing import Any, NamedTuple

from ruamel.yaml import emitter, events

PLAIN_SCALAR = re.compile(r"(?:[^\W\d]|/)[\w./*-]*(?: [\w./*-]+)*")
"""Text that needs no quotes, unless it is one of `QUOTED_WORDS`."""

QUOTED_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 or 1.2 reads as booleans or null."""

PLAIN_WORD = re.compile(r"[^\W\d]\w*")
"""An entry of a list that may run on over several lines."""

DAY_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A value that needs no quotes: manifests are YAML 1.2, in which a day is text."""

LONGEST_PLAIN = 100

LONGEST_KEY = 1000
"""Characters of a key, with escapes, that every parser reads before a colon; a longer one follows a `?`."""

WIDTH = 120
"""How long a line may become that holds a whole mapping or list."""

MIN_FLOW_SWITCHES = 10
"""Switches in one mapping that are too many to have a line each."""

BEYOND_ASCII = re.compile(r"[^\0-\x7F]")


class Indents(NamedTuple):
    """How many columns mappings, and the dashes of lists, are indented below their key."""

    mapping: int = 2
    dash: int = 2


STANDARD = Indents()

IsFlow = Callable[[str, Any, int], bool]
"""Whether the value of a key at a column, which is not empty, is written between brackets."""


def write_yaml(raw_documents: Iterable[Mapping[str, Any]], *, compact: bool = False) -> str:
    """Return documents as one text.

    Args:
        raw_documents: plain values.
        compact: whether mappings and lists of single values are written on one line if they fit there; a mapping of
            many switches, or a list of words, runs on over several lines.
    """
    return _emit(
        raw_documents, STANDARD, _is_compact if compact else _is_never_flow, _WrappingEmitter if compact else _Emitter
    )


def write_document(raw_document: Mapping[str, Any]) -> str:
    """Return a short document, whose metadata take one line, unless they hold lists of mappings."""
    return _emit([raw_document], STANDARD, _is_short_metadata)


def has_entries(mapping: Mapping[str, Any]) -> bool:
    """Whether a mapping holds a list of mappings, such as exceptions, which are read better line by line."""
    entries = (entry for value in mapping.values() if isinstance(value, list) for entry in value)
    return any(isinstance(entry, dict) for entry in entries)


def block(value: Any, column: int, indents: Indents) -> str:
    """Return the lines of a mapping or a list at a column, without brackets; none if it is empty."""
    if not value:
        return ""
    return indent(_emit([value], indents if isinstance(value, dict) else Indents(dash=0)), " " * column)


def behind_key(value: Any, column: int, indents: Indents) -> tuple[str, str]:
    """Return the text on the line of a key at a column, and the lines below it."""
    first, _, below = _emit([{"key": value}], indents).partition("\n")
    return first.removeprefix("key:").lstrip(), indent(below, " " * column)


def inline(value: Any) -> str:
    """Return a value on one line, with its inner values between brackets."""
    return _emit([[value]], STANDARD, None)[1:-2]


class _Columns(emitter.Indents):
    """The columns of the values that enclose a value."""

    def seq_flow_align(self, *_: object) -> int:
        """Return no spaces before a bracket: dashes and brackets need none here."""
        return 0


class _Emitter(emitter.Emitter):
    """Writes each text in the style of its event, and never breaks a line within it."""

    def emit(self, event: events.Event) -> None:
        """Handle an event without a look at the environment for a debug mode, which takes a sixth of the time."""
        self.events.append(event)
        while not self.need_more_events():
            self.event = self.events.pop(0)
            self.state()

    def analyze_scalar(self, scalar: str) -> emitter.ScalarAnalysis:
        """Look at no character: the style has been chosen, and looking takes a third of the time."""
        allowed = True
        return emitter.ScalarAnalysis(scalar, False, False, allowed, allowed, allowed, allowed, allowed)

    def choose_scalar_style(self) -> str:
        """Return the style of the event."""
        return str(self.event.style)

    def process_anchor(self, _indicator: str) -> bool:
        """Write no anchor."""
        return False

    def process_tag(self) -> None:
        """Write no tag."""

    def check_simple_key(self) -> bool:
        """Whether a key comes before its colon, without a `?`, also if line breaks in it are escapes."""
        return len(json.dumps(self.event.value)) <= LONGEST_KEY

    def write_plain(self, text: str, split: bool = True) -> None:
        """Write a text without quotes, which has no line breaks."""
        del split
        self.write_indicator(text, need_whitespace=True)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        """Write a text with all of its characters beyond ASCII, or their escapes if one of them is not printable."""
        self.allow_unicode = "".join(BEYOND_ASCII.findall(text)).isprintable()
        super().write_double_quoted(text, split)


class _WrappingEmitter(_Emitter):
    """Breaks long lines between brackets behind commas."""

    def write_indicator(
        self, indicator: str, need_whitespace: bool, whitespace: bool = False, indention: bool = False
    ) -> None:
        """Write a mark; behind a comma, break the line if the next switch or word would not fit."""
        super().write_indicator(indicator, need_whitespace, whitespace, indention)
        if indicator == "," and isinstance(self.event, events.ScalarEvent):
            is_key = self.flow_context[-1] == "{"
            if self.column + len(f" {self.event.value},") + len(": false") * is_key > WIDTH:
                self.write_indent()


def _is_never_flow(_key: str, _value: Any, _column: int) -> bool:
    return False


def _is_short_metadata(key: str, value: Any, column: int) -> bool:
    return key == "metadata" and column == 0 and not has_entries(value)


def _is_compact(key: str, value: Any, column: int) -> bool:
    return _fits(key, value, column) or _has_many_switches(value) or _has_words(value)


def _emit(
    raw_documents: Iterable[Any],
    indents: Indents,
    is_flow: IsFlow | None = _is_never_flow,
    emitter_type: type[_Emitter] = _Emitter,
) -> str:
    text = StringIO()
    writer = emitter_type(text, width=sys.maxsize)
    writer.indents = _Columns()
    writer.best_map_indent = indents.mapping
    writer.best_sequence_indent, writer.sequence_dash_offset = indents.dash + 2, indents.dash
    writer.emit(events.StreamStartEvent())
    for document in raw_documents:
        writer.emit(events.DocumentStartEvent())
        for event in _events(document, is_flow):
            writer.emit(event)
        writer.emit(events.DocumentEndEvent())
    writer.emit(events.StreamEndEvent())
    return text.getvalue()


def _events(value: Any, is_flow: IsFlow | None, column: int = 0) -> Iterator[events.Event]:
    """Yield the events of a value; what the entries of a list hold is written between brackets.

    Args:
        value: plain values.
        is_flow: how the values of keys are written; None between brackets.
        column: of the keys of a mapping, in a new document.
    """
    match value:
        case dict():
            yield events.MappingStartEvent(None, None, implicit=True, flow_style=is_flow is None)
            for key, inner in value.items():
                yield _key(key)
                is_inline = is_flow is None or is_flow(key, inner, column)
                yield from _events(inner, None if is_inline else is_flow, column + STANDARD.mapping)
            yield events.MappingEndEvent()
        case list():
            yield events.SequenceStartEvent(None, None, implicit=True, flow_style=is_flow is None)
            for entry in value:
                yield from _events(entry, None)
            yield events.SequenceEndEvent()
        case str():
            is_plain = _is_simple(value) or DAY_TEXT.fullmatch(value)
            yield _scalar(value, "" if is_plain else "|" if is_flow is not None and _is_literal(value) else '"')
        case _:
            yield _scalar(json.dumps(value), "")


@lru_cache(maxsize=1024)
def _key(key: str) -> events.ScalarEvent:
    return _scalar(key, "" if _is_simple(key) else '"')


def _scalar(text: str, style: str) -> events.ScalarEvent:
    return events.ScalarEvent(None, None, (True, True), text, style=style)


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


def _is_simple(text: str) -> bool:
    return len(text) <= LONGEST_PLAIN and PLAIN_SCALAR.fullmatch(text) is not None and text.lower() not in QUOTED_WORDS


def _is_literal(text: str) -> bool:
    """Whether text has several lines that are written as they are, below a `|`."""
    lines = text.removesuffix("\n").split("\n")
    is_readable = all(line.isprintable() and not line.endswith(" ") for line in lines)
    return "\n" in text and is_readable and lines[-1] != "" and not text[0].isspace()
