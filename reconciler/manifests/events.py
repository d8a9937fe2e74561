"""YAML text to plain values, straight from the parser's events, refusing what is too big before it is built.

The events come from libyaml; its `compose` and `load` would crash the interpreter on deep nesting. Positions are kept
only when asked for (`survey`), which is when something turned out to be wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.manifests.scalars import CORE, MAY_BE_OTHER_THAN_TEXT, resolve, resolve_tagged, unknown_tag
from reconciler.manifests.syntax import Flaw, explain

DEEPEST = 64
MOST_EXPANSION = 10_000
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MERGE_KEY = (
    "merge keys (`<<`) are not YAML 1.2: share settings through a Profile, or repeat the whole value by an alias"
)
TYPE_NAMES: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", type(None): "null"}
_NO_KEY: Any = object()


@dataclass(frozen=True, slots=True)
class Root:
    """The value of one document, and the line (from 1) on which its content begins."""

    value: Any
    line: int


class NotYaml(Exception):
    """The text is not what we read as YAML.

    Attributes:
        flaws: what is wrong with it, at least one.
        roots: the documents that could be read all the same.
        whole: whether those are all.
    """

    def __init__(self, flaws: tuple[Flaw, ...], roots: tuple[Root, ...], *, whole: bool) -> None:
        self.flaws = flaws
        self.roots = roots
        self.whole = whole
        super().__init__(flaws)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a key or value begins, both from 1, and its text if it is a scalar."""

    line: int
    column: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """A text's documents with the places of everything in them.

    Attributes:
        roots: the documents.
        spots: by the `id` of each container, for each key or index where the key and the value begin.
    """

    roots: tuple[Root, ...]
    spots: dict[int, dict[Any, tuple[Spot, Spot]]]


def read(text: str) -> tuple[Root, ...]:
    """Return the documents of a text; empty ones are left out.

    Raises:
        NotYaml: with everything that is wrong.
    """
    builder = _Builder()
    try:
        builder.build(text)
    except _AnyFlaw:
        builder = _Builder(flaws=[], spots={})
        whole = builder.build_what_is_whole(text)
        raise NotYaml(tuple(builder.flaws or ()), tuple(builder.roots), whole=whole) from None
    return tuple(builder.roots)


def survey(text: str) -> Survey:
    """Return the documents of a text, as far as it can be read, with places."""
    builder = _Builder(flaws=[], spots={})
    builder.build_what_is_whole(text)
    return Survey(tuple(builder.roots), builder.spots or {})


class _AnyFlaw(Exception):
    """Something is wrong: the first reading gives up at once, the second where it cannot go on."""


@dataclass(slots=True)
class _Anchored:
    """What an anchor stands for; its size is 0 until it is complete."""

    value: Any
    size: int = 0


@dataclass(slots=True)
class _Builder:
    """Builds values from events.

    Attributes:
        flaws: collects what is wrong, with places; None to give up at the first flaw.
        spots: collects the places of keys and values; None to keep none.
        roots: the documents.
    """

    flaws: list[Flaw] | None = None
    spots: dict[int, dict[Any, tuple[Spot, Spot]]] | None = None
    roots: list[Root] = field(default_factory=list)
    _container: Any = None
    _key: Any = _NO_KEY
    _key_event: Any = None
    _outer: list[tuple[Any, Any, _Anchored | None, int]] = field(default_factory=list)
    _anchors: dict[str, _Anchored] = field(default_factory=dict)
    _nodes: int = 0
    _expanded: int = 0

    def build(self, text: str) -> None:
        """Read the whole text."""
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
                handler = handlers.get(event.__class__)
                if handler:
                    handler(event)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            if self.flaws is not None:
                self.flaws.append(explain(error, text))
            raise _AnyFlaw from None

    def build_what_is_whole(self, text: str) -> bool:
        """Read as far as reading can go on, and return whether that was the whole text."""
        try:
            self.build(text)
        except _AnyFlaw:
            if self._outer:
                self.roots.pop()
            return False
        return True

    def _scalar(self, event: Any) -> None:
        value: Any = event.value
        self._nodes += 1
        try:
            if event.tag is not None:
                value = resolve_tagged(event.tag, value)
            elif event.implicit[0] and (not value or value[0] in MAY_BE_OTHER_THAN_TEXT):
                value = resolve(value)
        except ValueError as error:
            self._flaw(event, str(error))
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1)
        self._place(value, event)

    def _open(self, container: Any, kind: str, event: Any) -> None:
        self._nodes += 1
        if event.tag not in {None, "!", CORE + kind}:
            self._flaw(event, str(unknown_tag(event.tag)))
        if len(self._outer) == DEEPEST:
            self._flaw(event, f"nested more than {DEEPEST} deep", hopeless=True)
        anchored = None
        if event.anchor:
            anchored = self._anchors[event.anchor] = _Anchored(container)
        self._place(container, event)
        self._outer.append((self._container, self._key, anchored, self._nodes))
        self._container, self._key = container, _NO_KEY

    def _close(self, _event: Any) -> None:
        self._container, self._key, anchored, nodes = self._outer.pop()
        if anchored:
            anchored.size = self._nodes - nodes + 1

    def _alias(self, event: Any) -> None:
        name = event.anchor
        anchored = self._anchors.get(name)
        if anchored is None:
            self._flaw(event, f"the alias `*{name}` has no anchor `&{name}` before it", hopeless=True)
        elif not anchored.size:
            self._flaw(event, f"the alias `*{name}` stands within what it stands for", hopeless=True)
        else:
            self._nodes += anchored.size
            self._expanded += anchored.size
            if self._expanded > MOST_EXPANSION:
                self._flaw(event, f"the aliases stand for more than {MOST_EXPANSION:,} values", hopeless=True)
            self._place(anchored.value, event)

    def _place(self, value: Any, event: Any) -> None:
        container = self._container
        if container.__class__ is dict:
            key = self._key
            if key is _NO_KEY:
                self._key = self._checked_key(value, event)
                self._key_event = event
                return
            self._key = _NO_KEY
            container[key] = value
            if self.spots is not None:
                self._note(container, key, self._key_event, event)
        elif container is not None:
            container.append(value)
            if self.spots is not None:
                self._note(container, len(container) - 1, event, event)
        elif value is not None or event.start_mark.index != event.end_mark.index:
            self.roots.append(Root(value, event.start_mark.line + 1))

    def _note(self, container: Any, key: Any, key_event: Any, event: Any) -> None:
        if self.spots is not None:
            text = getattr(event, "value", None)
            at = key_event if text == "" and _is_plain(event) else event
            self.spots.setdefault(id(container), {})[key] = _spot(key_event), _spot(at, text)

    def _checked_key(self, key: Any, event: Any) -> Any:
        if key.__class__ is not str:
            return self._misfit(key, event)
        if key == "<<" and _is_plain(event):
            self._flaw(event, MERGE_KEY)
        if key in self._container:
            self._flaw(event, f"`{key}` is given twice; first on {self._first(key)}")
        return key

    def _misfit(self, key: Any, event: Any) -> str:
        if key.__class__ in {dict, list}:
            self._flaw(event, "a key must be text", hopeless=True)
        text = str(getattr(event, "value", key))
        self._flaw(event, f"`{text}` is {TYPE_NAMES[key.__class__]}, and a key must be text: quote it")
        return text

    def _first(self, key: str) -> str:
        spot = (self.spots or {})[id(self._container)][key][0] if self.spots else Spot(0, 0)
        return f"line {spot.line}, column {spot.column}"

    def _flaw(self, event: Any, message: str, *, hopeless: bool = False) -> None:
        if self.flaws is None:
            raise _AnyFlaw
        self.flaws.append(Flaw(event.start_mark.line + 1, event.start_mark.column + 1, message))
        if hopeless:
            raise _AnyFlaw


def _spot(event: Any, text: str | None = None) -> Spot:
    return Spot(event.start_mark.line + 1, event.start_mark.column + 1, text)


def _is_plain(event: Any) -> bool:
    return event.__class__ is yaml.ScalarEvent and event.implicit[0]
