"""The text of one file, and faults at places in it, safe to print."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reconciler.errors import Fault
from reconciler.manifests.events import Root, read_plain
from reconciler.manifests.survey import Spot, Survey, survey
from reconciler.manifests.syntax import line_at
from reconciler.system.terminal import blanked, escaped

LONGEST_SHOWN = 200
"""Characters of a source line that are shown."""

LONGEST_MESSAGE = 2000
"""Characters of a message; what is beyond is something of the user's, quoted."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One file's text as the YAML reader gets it.

    Attributes:
        path: as the user named it.
        text: without a byte order mark; of a template, what it rendered to.
        secrets: what a template was given that is never to be shown, the longest first.
        own_line: of a template, the line of its own that brought a line and column of the text, where that is known.
    """

    path: str
    text: str
    secrets: tuple[str, ...] = ()
    own_line: Callable[[int, int], int | None] | None = None

    def read(self) -> "Reading":
        """Return the documents, and everything that is wrong with the text as YAML."""
        roots = read_plain(self.text)
        if roots is not None:
            return Reading(roots)
        found = survey(self.text)
        faults = tuple(self.fault(flaw.line, flaw.column, flaw.message) for flaw in found.flaws)
        return Reading(found.roots, faults, found.whole)

    def fault(self, line: int, column: int, message: str, severity: str = "error") -> Fault:
        """Return a fault at a place of the text."""
        source = line_at(self.text, line)
        if self.own_line:
            message += f" (line {line} of what the template renders to)"
            line = self.own_line(line, column) or line
        for secret in self.secrets:
            source, message = source.replace(secret, "*" * len(secret)), message.replace(secret, "*" * len(secret))
        return fault(self.path, line, column, message, source=source, severity=severity)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text holds.

    Attributes:
        roots: the documents that could be read; empty ones are left out.
        faults: what is wrong.
        whole: whether the text could be read to its end.
    """

    roots: tuple[Root, ...]
    faults: tuple[Fault, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """A line and column of a source, and what is written there if it is a scalar."""

    source: Source
    spot: Spot

    def __str__(self) -> str:
        """`path:line:column`."""
        return f"{self.line}:{self.spot.column}"

    @property
    def line(self) -> str:
        """`path:line`."""
        own_line = self.source.own_line and self.source.own_line(self.spot.line, self.spot.column)
        return f"{escaped(self.source.path)}:{own_line or self.spot.line}"


def fault(path: str, line: int, column: int, message: str, *, source: str = "", severity: str = "error") -> Fault:
    """Return a fault in which nothing can steer a terminal; a source line too long to show is cut, or left out."""
    if len(source) > LONGEST_SHOWN:
        source = source[:LONGEST_SHOWN] + "..." if column <= LONGEST_SHOWN else ""
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "..."
    return Fault(escaped(path), line, column, escaped(message), blanked(source), severity)


def find(source: Source, document: int, path: tuple[Hashable, ...], *, key: bool = False) -> Place:
    """Return where the value at a path (or, if asked, its key) begins; or else the key of the innermost around it.

    The empty path is the document itself.
    """
    places = _survey(source)
    root = places.roots[document]
    own, container = Spot(root.line, 1), root.value
    value = own
    for step in path:
        spots: dict[Any, tuple[Spot, Spot]] = places.spots.get(id(container), {})
        if step not in spots:
            return Place(source, own)
        own, value = spots[step]
        container = container[step]
    return Place(source, own if key else value)


@lru_cache(maxsize=16)
def _survey(source: Source) -> Survey:
    return survey(source.text)
