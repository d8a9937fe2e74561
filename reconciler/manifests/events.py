"""YAML text to plain values, straight from the parser's events: the quick reading, of files like most.

The events come from libyaml, whose `compose` and `load` would crash the interpreter on deep nesting. Whatever is not as
it mostly is, flaws and anchors alike, is left to `survey`; so is everything where PyYAML comes without libyaml.
"""

from dataclasses import dataclass
from sys import intern
from typing import Any

import yaml

from reconciler.manifests.scalars import MAY_BE_OTHER_THAN_TEXT, resolve

DEEPEST = 64
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NO_KEY: Any = object()
"""In place of the key, while a mapping waits for its next one."""

OPENING: dict[type, type] = {yaml.MappingStartEvent: dict, yaml.SequenceStartEvent: list}
CLOSING = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


@dataclass(frozen=True, slots=True)
class Root:
    """The value of one document, and the line (from 1) on which its content begins."""

    value: Any
    line: int


def read_plain(text: str) -> tuple[Root, ...] | None:
    """Return the documents of a text without the empty ones; None where it has flaws, anchors or tags."""
    if LOADER is yaml.SafeLoader:
        return None
    try:
        return _build(text)
    except (_NotPlain, ValueError, yaml.YAMLError):
        return None


def is_nothing(event: Any) -> bool:
    """Whether an event is that of a value that is not there: `key:` and no more."""
    return event.__class__ is yaml.ScalarEvent and event.value == "" and event.implicit[0]


class _NotPlain(Exception):
    """There is something that the quick reading does not know."""


def _build(text: str) -> tuple[Root, ...]:  # noqa: C901, PLR0912 - calls would cost more than the work
    """Build the documents; with local variables only, for this is where most of the time goes."""
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
