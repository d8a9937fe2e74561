"""Errors and warnings about manifests: found without a place, they get file, line and caret here, and only here."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.errors import LocatedDiagnostic
from reconciler.manifests.sources import Document, Location, Steps
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.trace import find
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
        steps: from the document, the spec or the section to the value; for a missing key, to the mapping.
        message: the error and its remedy; it may hold `WRITTEN` and `ELSEWHERE`.
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
        """Return the same, seen from further above."""
        return replace(self, steps=(*steps, *self.steps))

    def text(self, location: Location) -> str:
        """Return the message, with the value as it is written."""
        written = location.position.text
        message = self.message.replace(WRITTEN, short(str(self.value) if written is None else written))
        return message.replace(OTHER_FILE_MARK, self.elsewhere()) if OTHER_FILE_MARK in message else message


@dataclass(slots=True)
class Diagnostics:
    """All diagnostics with their places, in the order in which they were found.

    An error in a layer that many targets share is reported once, for the first of them.

    Attributes:
        located: all of them but advice.
        faulty: the targets whose merged specs have errors, and the documents that have errors of their own, each with
            the section; without one, it is empty.
    """

    located: list[LocatedDiagnostic] = field(default_factory=list)
    faulty: set[tuple[Hashable, str]] = field(default_factory=set)
    _advice: list[Callable[[], LocatedDiagnostic | None]] = field(default_factory=list)
    _seen: set[LocatedDiagnostic] = field(default_factory=set)
    _first: dict[tuple[str, int, int, str], Hashable | None] = field(default_factory=dict)

    def add(self, document: Document, diagnostic: Diagnostic, by: Hashable = None) -> None:
        """Add a diagnostic of a document; `by` names the target that it is for, if only for one."""
        section = str(diagnostic.steps[1]) if len(diagnostic.steps) > 1 and diagnostic.steps[0] == "spec" else ""

        def locate() -> LocatedDiagnostic | None:
            location = document.find(diagnostic.steps, key=diagnostic.at_key)
            return self._located(location, diagnostic, document if by is None else by)

        self._add(locate, diagnostic, document if by is None else by, section)

    def add_merged(self, whole: Stack, diagnostic: Diagnostic) -> None:
        """Add a diagnostic of a merged spec, in the layer that set the value."""

        def locate() -> LocatedDiagnostic | None:
            layer, location = find(whole, diagnostic.steps, key=diagnostic.at_key)
            return self._located(location, diagnostic, whole.target, _for(whole.target, layer))

        self._add(locate, diagnostic, whole.target, str(diagnostic.steps[0]))

    def add_declared(self, layer: Layer, diagnostic: Diagnostic, by: Target) -> None:
        """Add a diagnostic of a target about what one of its layers declares, with its steps there, as written."""

        def locate() -> LocatedDiagnostic | None:
            location = layer.document.find(("spec", *diagnostic.steps), key=diagnostic.at_key)
            return self._located(location, diagnostic, by, _for(by, layer))

        self._add(locate, diagnostic, by, str(diagnostic.steps[0]))

    def extend(self, diagnostics: Iterable[LocatedDiagnostic]) -> None:
        """Add diagnostics that have a place already."""
        for located in diagnostics:
            if located not in self._seen:
                self._seen.add(located)
                self.located.append(located)

    def add_unreadable(self, errors: Iterable[LocatedDiagnostic]) -> None:
        """Add errors of a text as YAML: what the values there would be wrong as is not reported too."""
        for error in errors:
            self._first[error.path, error.line, error.column, error.severity] = None
            self.extend([error])

    def _add(
        self, locate: Callable[[], LocatedDiagnostic | None], diagnostic: Diagnostic, by: Hashable, section: str
    ) -> None:
        if diagnostic.severity == "advice":
            self._advice.append(locate)
            return
        if diagnostic.severity == "error":
            self.faulty.add((by, section))
        located = locate()
        self.extend([] if located is None else [located])

    def _located(
        self, location: Location, diagnostic: Diagnostic, by: Hashable, note: str = ""
    ) -> LocatedDiagnostic | None:
        """Return a diagnostic at its place; None if another target has reported something there."""
        position = location.position
        if (
            self._first.setdefault((location.source.path, position.line, position.column, diagnostic.severity), by)
            != by
        ):
            return None
        severity = "warning" if diagnostic.severity == "advice" else diagnostic.severity
        return location.source.located(position.line, position.column, diagnostic.text(location) + note, severity)

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
        located = {diagnostic for locate in self._advice if (diagnostic := locate()) is not None}
        return tuple(sorted(located - self._seen))


def _for(target: Target, layer: Layer) -> str:
    """Return for which target a layer that others have too is wrong."""
    return f" (for {target})" if layer.title else ""
