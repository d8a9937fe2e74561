"""YAML 1.2 text to plain values, bounded: a quick reader for most files, and one that finds positions and errors.

Both build values from the parser's events, since libyaml's `compose` and `load` crash the interpreter on deep nesting.
The events are those of PyYAML, which has libyaml's parser: ruamel.yaml, which writes (`yaml_emitter`), parses in Python
alone, and takes 25 times as long. A plan of hundreds of projects reads megabytes, and writes nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any

import yaml

from reconciler.model.wording import short

Scalar = str | int | float | bool | None

MAX_NUMBER_LENGTH = 300
"""Characters of a number; Python does not print much longer ones."""

MAY_BE_OTHER_THAN_TEXT = frozenset("-+.0123456789~nNtTfF")
"""The first characters of all values that are not text; the empty scalar, null, has none."""

PLAIN_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
PLAIN_INTEGER = re.compile("-?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

CORE = "tag:yaml.org,2002:"
TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "null": (type(None),),
}


@lru_cache(maxsize=8192)
def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar without a tag.

    Raises:
        ValueError: a number that is too long, or not written in plain decimal. `0012345` is 12345 to YAML 1.2 and 5349
            to YAML 1.1: as an ID, one of the two names somebody else.
    """
    if text in PLAIN_WORDS:
        return PLAIN_WORDS[text]
    integer = INTEGER.fullmatch(text)
    if not integer and not FLOAT.fullmatch(text):
        return float(text.replace(".", "").lower()) if SPECIAL_FLOAT.fullmatch(text) else text
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(f"a number of more than {MAX_NUMBER_LENGTH} characters: quote it if it is meant as text")
    if integer and not PLAIN_INTEGER.fullmatch(text):
        raise ValueError(
            f"`{short(text)}` is not a number in plain decimal: leave out leading zeros, `+` and prefixes such as "
            "`0x`, or quote it if it is meant as text"
        )
    return int(text) if integer else float(text)


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with a tag.

    Raises:
        ValueError: a tag other than those of the core schema, or text that the tag does not fit.
    """
    name = tag.removeprefix(CORE)
    if tag == "!" or (tag.startswith(CORE) and name == "str"):
        return text
    if not tag.startswith(CORE) or name not in TYPES:
        raise unknown_tag(tag)
    value = resolve(text)
    if not isinstance(value, TYPES[name]) or (isinstance(value, bool) and name != "bool"):
        raise ValueError(f"the tag `!!{name}` does not fit this value")
    return float(value) if name == "float" and isinstance(value, int) else value


def unknown_tag(tag: str) -> ValueError:
    """Return the error about an unknown tag."""
    shown = "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag
    return ValueError(f"unknown tag `{shown}`: manifests are plain YAML, leave the tag out")


NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

DEEPEST = 64
TOO_DEEP = f"nested more than {DEEPEST} deep"
UNCLOSED_TEXT = "the quoted text begun on line {line} is not closed"
TRANSLATIONS = (
    (
        "mapping values are not allowed",
        "a colon is not allowed here: quote the text it is in, or check the indentation",
    ),
    ("could not find expected ':'", "a key needs a colon and a space behind it; or check the indentation"),
    ("unknown escape character", "unknown escape: use single quotes, or write `\\\\` for a backslash"),
    ("invalid Unicode character escape", "this escape is not a character"),
    ("hexdecimal number", "this escape needs more hexadecimal digits"),
    ("hexadecimal number", "this escape needs more hexadecimal digits"),
    ("unexpected end of stream", UNCLOSED_TEXT),
    ("unexpected document", UNCLOSED_TEXT),
    ("node content", "a value is missing here, or a bracket is not closed"),
    ("<document start>", "this does not continue what is before it: check the indentation"),
    ("or ']'", "the list begun on line {line} is not closed: `]` is missing, or a comma"),
    ("or '}'", "the mapping begun on line {line} is not closed: `}}` is missing, or a comma"),
    ("undefined tag handle", "unknown tag: manifests are plain YAML, leave the tag out"),
    ("incompatible YAML document", "manifests are YAML 1.2: leave the %YAML line out"),
    ("unknown directive", "`%` begins a directive: quote the text if it is meant as text"),
    ("expected key", "a key and a colon were expected here: check the indentation of the mapping begun on line {line}"),
    ("'-' indicator", "an entry `- ...` was expected here: check the indentation of the list begun on line {line}"),
    ("expected <block end>", "this does not continue what begins on line {line}: check the indentation"),
    ("sequence entries are not allowed", "a list entry `- ...` is not allowed here: put it on its own line"),
    ("comment or line break", "text behind `|` or `>` begins on the next line"),
    ("chomping or indentation", "text behind `|` or `>` begins on the next line"),
    ("while scanning an alias", "`*` begins an alias: quote the text if it is meant as text"),
    ("maximum nesting depth", TOO_DEEP),
    ("while scanning an anchor", "`&` begins an anchor: quote the text if it is meant as text"),
)
"""Parts of the messages of libyaml, and of PyYAML's own parser, and our words for them."""


@dataclass(frozen=True, slots=True, order=True)
class YamlError:
    """An error in a text, at a line and column from 1, in characters."""

    line: int
    column: int
    message: str


def explain(yaml_error: yaml.YAMLError | UnicodeEncodeError, text: str) -> YamlError:
    """Return the error of the parser, or of the encoding of the text for it, in our words."""
    if not isinstance(yaml_error, yaml.MarkedYAMLError) or yaml_error.problem_mark is None:
        return _unprintable(text)
    line, column = _within(text, yaml_error.problem_mark.line + 1, yaml_error.problem_mark.column + 1)
    begun = yaml_error.context_mark.line + 1 if yaml_error.context_mark else line
    character = line_at(text, line)[column - 1 : column]
    return YamlError(line, column, _message(str(yaml_error.problem), str(yaml_error.context), begun, character))


def line_at(text: str, line: int) -> str:
    """Return the text of a line, empty beyond the end."""
    lines = _lines(text)
    return lines[line - 1] if line <= len(lines) else ""


@lru_cache(maxsize=16)
def _lines(text: str) -> list[str]:
    """Split a text once, for all its errors."""
    return LINE_BREAK.split(text)


def _within(text: str, line: int, column: int) -> tuple[int, int]:
    """Return the line and column, or the end of the last line with text if they are beyond it."""
    lines = LINE_BREAK.split(text.rstrip())
    return (line, column) if line <= len(lines) else (len(lines), len(lines[-1]) + 1)


def _message(problem: str, yaml_context: str, begun: int, character: str) -> str:
    if "cannot start any token" in problem:
        return _wrong_beginning(character)
    for part, translation in TRANSLATIONS:
        if part in problem or part in yaml_context:
            return translation.format(line=begun)
    return f"not YAML: {problem}"


def _wrong_beginning(character: str) -> str:
    if character == "\t":
        return "a tab may not indent: use spaces"
    return f"a value may not begin with {character} : quote it"


def _unprintable(text: str) -> YamlError:
    match: Any = NOT_PRINTABLE.search(text)
    before = LINE_BREAK.split(text[: match.start()])
    message = f"the character U+{ord(match.group()):04X} is not allowed in YAML: leave it out"
    return YamlError(len(before), len(before[-1]) + 1, message)


LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NO_KEY: Any = object()
"""The key of a mapping that waits for its next one."""

OPENING: dict[type, type] = {yaml.MappingStartEvent: dict, yaml.SequenceStartEvent: list}
CLOSING = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


@dataclass(frozen=True, slots=True)
class Root:
    """The value of one document, and the line of its content, from 1."""

    value: Any
    line: int


def read_plain(text: str) -> tuple[Root, ...] | None:
    """Return the documents of a text without the empty ones; None if it has errors, anchors or tags."""
    if LOADER is yaml.SafeLoader:
        return None
    try:
        return _build(text)
    except (_NotPlain, ValueError, yaml.YAMLError):
        return None


def is_nothing(event: Any) -> bool:
    """Whether an event is that of a missing value: `key:` and no more."""
    return event.__class__ is yaml.ScalarEvent and event.value == "" and event.implicit[0]


class _NotPlain(Exception):
    """The text has an error, an anchor or a tag, which the quick reader does not handle."""


def _build(text: str) -> tuple[Root, ...]:  # noqa: C901, PLR0912 - calls would cost more than the work
    """Build the documents, with local variables only: most of the reading time is spent here."""
    roots: list[Root] = []
    outer: list[tuple[Any, Any]] = []
    container, key = None, NO_KEY
    for event in iter(LOADER(text).get_event, None):
        type_ = event.__class__
        if type_ is yaml.ScalarEvent:
            value = event.value
            if event.implicit[0] and (not value or value[0] in MAY_BE_OTHER_THAN_TEXT):
                value = resolve(value)
        elif type_ in OPENING:
            value = OPENING[type_]()
        elif type_ in CLOSING:
            container, key = outer.pop()
            continue
        elif type_ is yaml.AliasEvent:
            raise _NotPlain
        else:
            continue
        if event.tag is not None or event.anchor is not None:
            raise _NotPlain
        if container.__class__ is dict:
            if key is NO_KEY:
                if value.__class__ is not str or value in container or value == "<<":
                    raise _NotPlain
                # The documents of a fleet have the same keys: one string is kept of each.
                key = intern(value)
                continue
            container[key] = value
            key = NO_KEY
        elif container is not None:
            container.append(value)
        elif value is not None or not is_nothing(event):
            roots.append(Root(value, event.start_mark.line + 1))
        if type_ is not yaml.ScalarEvent:
            if len(outer) == DEEPEST:
                raise _NotPlain
            outer.append((container, key))
            container, key = value, NO_KEY
    return tuple(roots)


MOST_EXPANSION = 10_000
MOST_REPEATED = 5 * 1024 * 1024
"""Characters of the text that all aliases of a file may stand for."""
MERGE_KEY = (
    "merge keys (`<<`) are not YAML 1.2: put what is shared into a document of `kind: Profile` with "
    "`metadata: {name: base}`, and name it where it is used: `metadata: {profiles: [base]}`"
)
SKIPPED_KEY: Any = object()
"""The key of an entry to leave out."""

TYPE_NAMES: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a key or value, from 1, and its text if it is a scalar."""

    line: int
    column: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Positions:
    """The complete documents of a text, its errors, and whether it could be read to its end.

    `positions` has, by the `id` of each container and by key or index, the positions of the key and of the value.
    """

    roots: tuple[Root, ...]
    positions: dict[int, dict[Any, tuple[Position, Position]]]
    errors: tuple[YamlError, ...]
    whole: bool


def read_positions(text: str) -> Positions:
    """Read a text with all its errors."""
    builder = _Builder()
    whole = builder.build(text)
    return Positions(tuple(builder.roots), builder.positions, tuple(builder.errors), whole)


class _Hopeless(Exception):
    """The text cannot be read beyond the last error."""


@dataclass(slots=True)
class _Anchored:
    """The value of an anchor; its size is 0 until it is complete. The length is that of its text in characters."""

    value: Any
    size: int = 0
    length: int = 0


@dataclass(slots=True)
class _Builder:
    """Builds values, positions and errors from events."""

    errors: list[YamlError] = field(default_factory=list)
    positions: dict[int, dict[Any, tuple[Position, Position]]] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    _container: Any = None
    _key: Any = NO_KEY
    _key_event: Any = None
    _outer: list[tuple[Any, Any, _Anchored | None, int, int]] = field(default_factory=list)
    _anchors: dict[str, _Anchored] = field(default_factory=dict)
    _nodes: int = 0
    _expanded: int = 0
    _length: int = 0
    _repeated: int = 0

    def build(self, text: str) -> bool:
        """Read as far as possible, and return whether that is the whole text."""
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._open({}, "map", event),
            yaml.SequenceStartEvent: lambda event: self._open([], "seq", event),
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: lambda _event: self._anchors.clear(),
        }
        try:
            for event in yaml.parse(text, Loader=LOADER):
                if event.__class__ in handlers:
                    handlers[event.__class__](event)
        except _Hopeless:
            pass
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            self.errors.append(explain(error, text))
        else:
            return True
        if self._outer:
            self.roots.pop()
        return False

    def _scalar(self, event: Any) -> None:
        value: Any = event.value
        self._nodes += 1
        self._length += len(event.value)
        try:
            # An escape such as `"\ud800"` is half a character, which no request can carry.
            value.encode()
            if event.tag is not None:
                value = resolve_tagged(event.tag, value)
            elif event.implicit[0] and (not value or value[0] in MAY_BE_OTHER_THAN_TEXT):
                value = resolve(value)
        except UnicodeEncodeError:
            self._error(event, "an escape in this text is not a character", hopeless=True)
        except ValueError as error:
            self._error(event, str(error))
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, len(event.value))
        self._place(value, event)

    def _open(self, container: Any, kind: str, event: Any) -> None:
        self._nodes += 1
        if event.tag not in {None, "!", CORE + kind}:
            self._error(event, str(unknown_tag(event.tag)))
        if len(self._outer) == DEEPEST:
            self._error(event, TOO_DEEP, hopeless=True)
        anchored = None
        if event.anchor:
            anchored = self._anchors[event.anchor] = _Anchored(container)
        self._place(container, event)
        self._outer.append((self._container, self._key, anchored, self._nodes, self._length))
        self._container, self._key = container, NO_KEY

    def _close(self, _event: Any) -> None:
        self._container, self._key, anchored, nodes, length = self._outer.pop()
        if anchored:
            anchored.size = self._nodes - nodes + 1
            anchored.length = self._length - length

    def _alias(self, event: Any) -> None:
        name = event.anchor
        anchored = self._anchors.get(name)
        if anchored is None:
            self._error(event, f"the alias `*{name}` has no anchor `&{name}` before it", hopeless=True)
        elif not anchored.size:
            self._error(event, f"the alias `*{name}` is part of the value that it stands for", hopeless=True)
        else:
            self._nodes += anchored.size
            self._expanded += anchored.size
            self._length += anchored.length
            self._repeated += anchored.length
            if self._expanded > MOST_EXPANSION:
                self._error(event, f"the aliases expand to more than {MOST_EXPANSION:,} values", hopeless=True)
            if self._repeated > MOST_REPEATED:
                most = MOST_REPEATED // 1024 // 1024
                self._error(event, f"the aliases expand to more than {most} MiB of text", hopeless=True)
            self._place(anchored.value, event)

    def _place(self, value: Any, event: Any) -> None:
        container = self._container
        if container.__class__ is dict:
            if self._key is NO_KEY:
                self._key, self._key_event = self._checked_key(value, event), event
                return
            key, self._key = self._key, NO_KEY
            if key is not SKIPPED_KEY:
                container[key] = value
                self._note(key, self._key_event, event)
        elif container is not None:
            container.append(value)
            self._note(len(container) - 1, event, event)
        elif value is not None or not is_nothing(event):
            self.roots.append(Root(value, event.start_mark.line + 1))

    def _note(self, key: Any, key_event: Any, event: Any) -> None:
        where = key_event if is_nothing(event) else event
        value = _position(where, getattr(event, "value", None))
        positions = self.positions.setdefault(id(self._container), {})
        positions[key] = (value if key_event is event else _position(key_event)), value

    def _checked_key(self, key: Any, event: Any) -> Any:
        if key.__class__ is not str:
            return self._other_key(key, event)
        if key == "<<" and event.__class__ is yaml.ScalarEvent and event.implicit[0]:
            self._error(event, MERGE_KEY)
            return SKIPPED_KEY
        if key in self._container:
            first = self.positions[id(self._container)][key][0]
            self._error(event, f"`{key}` is given twice; first on line {first.line}, column {first.column}")
        return key

    def _other_key(self, key: Any, event: Any) -> str:
        if key.__class__ in {dict, list}:
            self._error(event, "a key must be text: quote it if the bracket is part of it", hopeless=True)
        text = str(getattr(event, "value", key))
        self._error(event, f"`{text}` is {TYPE_NAMES[key.__class__]}, and a key must be text: quote it")
        return text

    def _error(self, event: Any, message: str, *, hopeless: bool = False) -> None:
        self.errors.append(YamlError(event.start_mark.line + 1, event.start_mark.column + 1, message))
        if hopeless:
            raise _Hopeless


def _position(event: Any, text: str | None = None) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1, text)
