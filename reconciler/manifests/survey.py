"""YAML text to plain values with the place of every key and value, and everything that is wrong with it.

This is the thorough reading, for files in which something is wrong and for those that use anchors or tags. What is too
big is refused before it is built.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.manifests.events import DEEPEST, LOADER, NO_KEY, Root, is_nothing
from reconciler.manifests.scalars import CORE, MAY_BE_OTHER_THAN_TEXT, resolve, resolve_tagged, unknown_tag
from reconciler.manifests.syntax import Flaw, explain

MOST_EXPANSION = 10_000
MERGE_KEY = (
    "merge keys (`<<`) are not YAML 1.2: put what is shared into a document of `kind: Profile` with "
    "`metadata: {name: base}`, and name it where it is used: `metadata: {profiles: [base]}`"
)
LEFT_OUT: Any = object()
"""In place of a key that is wrong in itself, so that nobody complains of it again."""

TYPE_NAMES: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", type(None): "null"}


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
        roots: the documents that could be read whole; empty ones are left out.
        spots: by the `id` of each container, for each key or index where the key and the value begin.
        flaws: what is wrong.
        whole: whether the text could be read to its end.
    """

    roots: tuple[Root, ...]
    spots: dict[int, dict[Any, tuple[Spot, Spot]]]
    flaws: tuple[Flaw, ...]
    whole: bool


def survey(text: str) -> Survey:
    """Read a text, whatever is wrong with it."""
    surveyor = _Surveyor()
    whole = surveyor.build(text)
    return Survey(tuple(surveyor.roots), surveyor.spots, tuple(surveyor.flaws), whole)


class _Hopeless(Exception):
    """Reading cannot go on past the flaw just noted."""


@dataclass(slots=True)
class _Anchored:
    """What an anchor stands for; its size is 0 until it is complete."""

    value: Any
    size: int = 0


@dataclass(slots=True)
class _Surveyor:
    """Builds values from events, and notes places and flaws."""

    flaws: list[Flaw] = field(default_factory=list)
    spots: dict[int, dict[Any, tuple[Spot, Spot]]] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    _container: Any = None
    _key: Any = NO_KEY
    _key_event: Any = None
    _outer: list[tuple[Any, Any, _Anchored | None, int]] = field(default_factory=list)
    _anchors: dict[str, _Anchored] = field(default_factory=dict)
    _nodes: int = 0
    _expanded: int = 0

    def build(self, text: str) -> bool:
        """Read as far as reading can go on, and return whether that is the whole text."""
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
            self.flaws.append(explain(error, text))
        else:
            return True
        if self._outer:
            self.roots.pop()
        return False

    def _scalar(self, event: Any) -> None:
        value: Any = event.value
        self._nodes += 1
        try:
            value.encode()
            if event.tag is not None:
                value = resolve_tagged(event.tag, value)
            elif event.implicit[0] and (not value or value[0] in MAY_BE_OTHER_THAN_TEXT):
                value = resolve(value)
        except UnicodeEncodeError:
            self._flaw(event, "an escape in this text stands for no character", hopeless=True)
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
        self._container, self._key = container, NO_KEY

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
            if self._key is NO_KEY:
                self._key, self._key_event = self._checked_key(value, event), event
                return
            key, self._key = self._key, NO_KEY
            if key is not LEFT_OUT:
                container[key] = value
                self._note(key, self._key_event, event)
        elif container is not None:
            container.append(value)
            self._note(len(container) - 1, event, event)
        elif value is not None or not is_nothing(event):
            self.roots.append(Root(value, event.start_mark.line + 1))

    def _note(self, key: Any, key_event: Any, event: Any) -> None:
        where = key_event if is_nothing(event) else event
        value = _spot(where, getattr(event, "value", None))
        spots = self.spots.setdefault(id(self._container), {})
        spots[key] = (value if key_event is event else _spot(key_event)), value

    def _checked_key(self, key: Any, event: Any) -> Any:
        if key.__class__ is not str:
            return self._misfit(key, event)
        if key == "<<" and event.__class__ is yaml.ScalarEvent and event.implicit[0]:
            self._flaw(event, MERGE_KEY)
            return LEFT_OUT
        if key in self._container:
            first = self.spots[id(self._container)][key][0]
            self._flaw(event, f"`{key}` is given twice; first on line {first.line}, column {first.column}")
        return key

    def _misfit(self, key: Any, event: Any) -> str:
        if key.__class__ in {dict, list}:
            self._flaw(event, "a key must be text: quote it if the bracket is part of it", hopeless=True)
        text = str(getattr(event, "value", key))
        self._flaw(event, f"`{text}` is {TYPE_NAMES[key.__class__]}, and a key must be text: quote it")
        return text

    def _flaw(self, event: Any, message: str, *, hopeless: bool = False) -> None:
        self.flaws.append(Flaw(event.start_mark.line + 1, event.start_mark.column + 1, message))
        if hopeless:
            raise _Hopeless


def _spot(event: Any, text: str | None = None) -> Spot:
    return Spot(event.start_mark.line + 1, event.start_mark.column + 1, text)
