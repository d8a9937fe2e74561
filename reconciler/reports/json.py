"""JSON for programs, described by schemas. `apply --plan` takes the JSON of a plan."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import NonNegativeInt, TypeAdapter

from reconciler.document.checksum import DOCUMENT
from reconciler.document.compare import Comparison, StoredComparison
from reconciler.document.document import RunDocument
from reconciler.document.stored import save
from reconciler.document.style import Style
from reconciler.errors import LocatedDiagnostic
from reconciler.model.protocols import Json
from reconciler.model.targets import Level


@dataclass(frozen=True, slots=True)
class ManifestFault:
    """A fault of the manifests, or something doubtful in them."""

    path: str
    """The file."""
    line: NonNegativeInt
    """From 1; 0 for the file as a whole."""
    column: NonNegativeInt
    """From 1, in characters; 0 for the file as a whole."""
    severity: str
    """An `error` keeps the manifests from being applied, a `warning` does not."""
    message: str
    """The error, and what would be right."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The errors and warnings of the manifests."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.validation/v1"]
    """The format of this document."""
    valid: bool
    """Whether there are no errors."""
    faults: tuple[ManifestFault, ...]
    """Errors and warnings, by place."""
    documents: Mapping[str, int]
    """Number of documents of each kind, such as project or set."""
    targets: NonNegativeInt
    """Number of documents about a user, a group or a project."""


def plan(saved: RunDocument, _style: Style) -> str:
    """Return the saved plan, which `apply --plan` takes."""
    return save(saved)


def report(report: RunDocument, _style: Style) -> str:
    """Return the apply report, as it is saved."""
    return save(report)


def comparison(comparison: Comparison, _style: Style) -> str:
    """Return the differences between two plans or reports."""
    stored = StoredComparison.of_comparison(comparison)
    return json.dumps(TypeAdapter(StoredComparison).dump_python(stored, mode="json"), indent=2) + "\n"


def validation(diagnostics: Sequence[LocatedDiagnostic], documents: Mapping[str, int], _style: Style) -> str:
    """Return the faults of the manifests, errors and warnings, by place."""
    content = Validation(
        format="reconciler.validation/v1",
        valid=all(diagnostic.severity != "error" for diagnostic in diagnostics),
        faults=tuple(
            ManifestFault(diagnostic.path, diagnostic.line, diagnostic.column, diagnostic.severity, diagnostic.message)
            for diagnostic in diagnostics
        ),
        documents=documents,
        targets=sum(documents.get(level, 0) for level in Level),
    )
    return json.dumps(TypeAdapter(Validation).dump_python(content, mode="json"), indent=2) + "\n"


class Findings(Protocol):
    """A diagnosis."""

    @property
    def content(self) -> Mapping[str, Json]:
        """The diagnosis as JSON."""


def diagnosis(findings: Findings, _style: Style) -> str:
    """Return the diagnosis of `doctor`."""
    return json.dumps(findings.content, indent=2) + "\n"
