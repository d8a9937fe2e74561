"""Errors and warnings about manifests.

Checks yield a `Diagnostic` with the steps to a value. `Diagnostics` collects them, and is the only place where steps
become a file, a line and a caret.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.errors import LocatedDiagnostic
from reconciler.manifests.layers import Stack
from reconciler.manifests.sources import Document, Location, Steps
from reconciler.manifests.trace import find
from reconciler.model.targets import Target
from reconciler.model.wording import short

WRITTEN = "\ufdd0"
"""Stands in a message for the value as its file writes it."""

OTHER_FILE_MARK = "\ufdd1"
"""Stands in a message for another place."""

Severity = Literal["error", "warning", "advice"]
"""Advice is a warning that only `validate` shows: it is about how a manifest reads, not about this run.

It is located when it is shown: each place takes another parse of its file.
"""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning about a value, or about its key, wherever it is written.

    Attributes:
        steps: from the document, or from the part of it that was checked, to the value; for a missing key, to the
            mapping.
        message: the error and its remedy; it may hold `WRITTEN` and `OTHER_FILE_MARK`.
        code: pydantic's type of the error; empty for rules of our own.
        value: the wrong value or key.
        elsewhere: returns the other place that the message names.
    """

    steps: Steps
    message: str
    severity: Severity = "error"
    at_key: bool = False
    code: str = ""
    value: Any = None
    elsewhere: Callable[[], str] = str

    def below(self, *steps: Any) -> "Diagnostic":
        """Return the diagnostic with further steps in front."""
        return replace(self, steps=(*steps, *self.steps))

    def text(self, location: Location) -> str:
        """Return the message, with the value as it is written."""
        written = location.position.text
        message = self.message.replace(WRITTEN, short(str(self.value) if written is None else written))
        return message.replace(OTHER_FILE_MARK, self.elsewhere()) if OTHER_FILE_MARK in message else message


Place = Document | Stack
"""Where the steps of a diagnostic begin: in a document, or in the merged spec of a target."""


@dataclass(slots=True)
class Diagnostics:
    """All diagnostics with their places, in the order in which they were found.

    An error in a layer that many targets share is reported once, for the first of them.

    Attributes:
        located: the errors and warnings, each once; advice is located later.
        faulty: each target whose merged spec has an error, and each document that has an error of its own, with the
            section; the section is empty for an error outside of all sections.
    """

    located: dict[LocatedDiagnostic, None] = field(default_factory=dict)
    faulty: set[tuple[Hashable, str]] = field(default_factory=set)
    _advice: list[tuple[Diagnostic, Place, Target | None]] = field(default_factory=list)
    _first: dict[tuple[str, int, int, str], Hashable | None] = field(default_factory=dict)

    def add(self, diagnostic: Diagnostic, place: Place, by: Target | None = None) -> None:
        """Add a diagnostic.

        Args:
            diagnostic: its steps begin at `place`. In a merged spec, it is reported in the layer that set the value.
            place: the document or the merged spec.
            by: the target of the error, if a document is wrong for one target only.
        """
        if diagnostic.severity == "advice":
            self._advice.append((diagnostic, place, by))
            return
        if diagnostic.severity == "error":
            above, *inner = diagnostic.steps or ("",)
            section = str(inner[0]) if inner and above == "spec" else ""
            self.faulty.add((_about(place, by), section))
        self.extend(self._located(diagnostic, place, by))

    def extend(self, located_diagnostics: Iterable[LocatedDiagnostic]) -> None:
        """Add diagnostics that have a place already."""
        self.located |= dict.fromkeys(located_diagnostics)

    def add_unreadable(self, errors: Iterable[LocatedDiagnostic]) -> None:
        """Add the syntax errors of a file; no further error is reported at the same places."""
        for error in errors:
            self._first[error.path, error.line, error.column, error.severity] = None
            self.extend([error])

    def _located(self, diagnostic: Diagnostic, place: Place, by: Target | None) -> Iterator[LocatedDiagnostic]:
        """Yield a diagnostic at its place, unless another target has reported one of this severity there."""
        document, location = _found(diagnostic, place)
        about, position = _about(place, by), location.position
        first = self._first.setdefault(
            (document.source.path, position.line, position.column, diagnostic.severity), about
        )
        if first == about:
            severity = "warning" if diagnostic.severity == "advice" else diagnostic.severity
            note = f" (for {about})" if about is not place and document.is_shared else ""
            yield document.source.located(position.line, position.column, diagnostic.text(location) + note, severity)

    @property
    def errors(self) -> tuple[LocatedDiagnostic, ...]:
        """The errors."""
        return tuple(each for each in self.located if each.severity == "error")

    @property
    def warnings(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings without advice, sorted by place."""
        return tuple(sorted(each for each in self.located if each.severity == "warning"))

    @property
    def advice(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings that only `validate` shows, sorted by place."""
        located = {each for advice in self._advice for each in self._located(*advice)}
        return tuple(sorted(located - self.located.keys()))


def sentence(diagnostic: Diagnostic, place: Place) -> str:
    """Return a diagnostic in one line: its place, then its message."""
    _, location = _found(diagnostic, place)
    return f"{location}: {diagnostic.text(location)}"


def _found(diagnostic: Diagnostic, place: Place) -> tuple[Document, Location]:
    if isinstance(place, Document):
        return place, place.find(diagnostic.steps, at_key=diagnostic.at_key)
    layer, location = find(place, diagnostic.steps[1:], at_key=diagnostic.at_key)
    return layer.document, location


def _about(place: Place, by: Target | None) -> Document | Target:
    """Return the subject of a diagnostic: a target, or a document whatever its targets are."""
    return by or (place if isinstance(place, Document) else place.target)
