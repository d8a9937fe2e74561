"""Errors and warnings about manifests: found without a place, they get file, line and caret here, and only here."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.errors import LocatedDiagnostic
from reconciler.manifests.layers import Effective
from reconciler.manifests.sources import Document, Location, Steps
from reconciler.model.wording import short

WRITTEN = "\ufdd0"
"""Stands in a message for the value as its file writes it."""

Severity = Literal["error", "warning", "advice"]
"""Advice is a warning that only `validate` shows: it is about how a manifest reads, not about this run."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning about a value, or about its key, wherever it is written.

    Attributes:
        steps: from the document, the spec or the section to the value; for a missing key, to the mapping.
        message: the error and its remedy; it may hold `WRITTEN`.
        code: pydantic's type of the error; empty for rules of our own.
        value: the wrong value or key.
    """

    steps: Steps
    message: str
    severity: Severity = "error"
    at_key: bool = False
    code: str = ""
    value: Any = None

    def below(self, *steps: Any) -> "Diagnostic":
        """Return the same, seen from further above."""
        return replace(self, steps=(*steps, *self.steps))

    def text(self, location: Location) -> str:
        """Return the message, with the value as it is written."""
        written = location.position.text
        return self.message.replace(WRITTEN, short(str(self.value) if written is None else written))


@dataclass(slots=True)
class Diagnostics:
    """All diagnostics with their places, in the order in which they were found.

    An error in a layer that many targets share is reported once, for the first of them.

    Attributes:
        located: all of them.
        faulty: the targets whose merged specs have errors, and the documents that have errors of their own, each with
            the section; without one, it is empty.
    """

    located: list[LocatedDiagnostic] = field(default_factory=list)
    faulty: set[tuple[Hashable, str]] = field(default_factory=set)
    _advice: set[LocatedDiagnostic] = field(default_factory=set)
    _seen: set[LocatedDiagnostic] = field(default_factory=set)
    _first: dict[tuple[str, int, int, str], Hashable] = field(default_factory=dict)

    def add(self, document: Document, found: Diagnostic, by: Hashable = None) -> None:
        """Add a diagnostic of a document; `by` names the target that it is for, if only for one."""
        section = str(found.steps[1]) if len(found.steps) > 1 and found.steps[0] == "spec" else ""
        self._add(document.find(found.steps, key=found.at_key), found, document if by is None else by, section)

    def add_merged(self, whole: Effective, found: Diagnostic) -> None:
        """Add a diagnostic of a merged spec, in the layer that set the value."""
        layer, location = whole.find(found.steps, key=found.at_key)
        note = f" (for {whole.target})" if layer.title else ""
        self._add(location, found, whole.target, str(found.steps[0]), note)

    def extend(self, found: Iterable[LocatedDiagnostic]) -> None:
        """Add diagnostics that have a place already."""
        for each in found:
            if each not in self._seen:
                self._seen.add(each)
                self.located.append(each)

    def _add(self, location: Location, found: Diagnostic, by: Hashable, section: str, note: str = "") -> None:
        position = location.position
        if found.severity == "error":
            self.faulty.add((by, section))
        if self._first.setdefault((location.source.path, position.line, position.column, found.severity), by) != by:
            return
        severity = "warning" if found.severity == "advice" else found.severity
        located = location.source.located(position.line, position.column, found.text(location) + note, severity)
        if found.severity == "advice":
            self._advice.add(located)
        self.extend([located])

    @property
    def errors(self) -> tuple[LocatedDiagnostic, ...]:
        """The errors."""
        return tuple(each for each in self.located if each.severity == "error")

    @property
    def warnings(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings without advice, sorted by place."""
        return tuple(sorted(each for each in self.located if each.severity == "warning" and each not in self._advice))

    @property
    def advice(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings that only `validate` shows, sorted by place."""
        return tuple(sorted(self._advice))
