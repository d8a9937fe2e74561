"""All documents of all files, each told apart by its kind: profiles, targets and sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from reconciler.manifests.checks import check_alone
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import (
    ADAPTERS,
    API_VERSION,
    DOCUMENTS,
    KIND_OF,
    LEVELS_OF,
    Document,
    GroupDocument,
    ProfileDocument,
    ProjectDocument,
    ProjectSetDocument,
    UserDocument,
    scope_of,
)
from reconciler.manifests.layers import Layer, effective
from reconciler.manifests.shapes import Shapes
from reconciler.manifests.specs import PRUNE, read_layer
from reconciler.manifests.structure import Misfit, misfits
from reconciler.manifests.words import listed, unknown
from reconciler.model.targets import LEVELS, Target


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """A user, group or project that has a document of its own."""

    target: Target
    profiles: tuple[str, ...]
    labels: Mapping[str, str]
    layer: Layer


@dataclass(frozen=True, slots=True)
class DeclaredSet:
    """A set of projects."""

    declared: ProjectSetDocument
    layer: Layer


@dataclass(slots=True)
class Catalogue:
    """What the documents declare.

    Attributes:
        shapes: of all kinds of sections.
        profiles: by name.
        targets: by what two spellings of one target have in common.
        sets: by name.
        whole: whether everything could be read; if not, what is missing may only be hidden.
    """

    shapes: Shapes
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Any, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True

    def add(self, document: Document, complaints: Complaints) -> None:
        """Add what a document declares; of a faulty one, only complain, of all that is wrong with it."""
        kind = _kind_of(document, complaints)
        if kind is None:
            self.whole = False
            return
        adapter = ADAPTERS[kind]
        try:
            declared = adapter.validate_python(document.value)
        except ValidationError as error:
            for misfit in misfits(error, document.value, DOCUMENTS[kind]):
                place = document.find(misfit.path, key=misfit.key)
                message = self._of_spec(misfit) or misfit.message(place.spot.text)
                complaints.add(place, message, document)
            self.whole = False
            spec = document.value.get("spec")
            if isinstance(spec, dict):
                self._layer(document, kind, "" if kind in KIND_OF.values() else kind, spec, complaints, alone=True)
            return
        self._declare(document, declared, complaints)

    def _of_spec(self, misfit: Misfit) -> str | None:
        """Say where a key belongs that stands beside `spec` instead of in it."""
        key = misfit.path[-1] if misfit.key and len(misfit.path) == 1 else None
        return f"`{key}` belongs under `spec`" if key == PRUNE or key in self.shapes else None

    def _declare(self, document: Document, declared: Any, complaints: Complaints) -> None:
        match declared:
            case ProfileDocument():
                name = declared.metadata.name
                layer = self._layer(document, "Profile", f"profile {name}", declared.spec, complaints, alone=True)
                first = self.profiles.setdefault(name, layer)
                if first is not layer:
                    _complain_of_second(document, ("metadata", "name"), first, f"profile `{name}`", complaints)
            case ProjectSetDocument():
                self._set(document, declared, complaints)
            case _:
                self._target(document, declared, complaints)

    def _set(self, document: Document, declared: ProjectSetDocument, complaints: Complaints) -> None:
        name = declared.metadata.name
        layer = self._layer(document, "ProjectSet", f"set {name}", declared.spec, complaints, alone=True)
        if len(declared.select.model_fields_set & {"group", "projects"}) != 1:
            message = "select needs exactly one of `group` and `projects`"
            complaints.add(document.find(("select",), key=True), message, document)
            return
        first = self.sets.setdefault(name, DeclaredSet(declared, layer))
        if first.layer is not layer:
            _complain_of_second(document, ("metadata", "name"), first.layer, f"set `{name}`", complaints)

    def _target(
        self, document: Document, declared: UserDocument | GroupDocument | ProjectDocument, complaints: Complaints
    ) -> None:
        metadata = declared.metadata
        if not isinstance(declared, UserDocument) and len(metadata.model_fields_set & {"path", "id"}) != 1:
            message = "needs exactly one of `path` and `id`"
            complaints.add(document.find(("metadata",), key=True), message, document)
            self._layer(document, declared.kind, "", declared.spec, complaints, alone=True)
            return
        scope = scope_of(declared)
        layer = self._layer(document, declared.kind, "", declared.spec, complaints, alone=False)
        target = DeclaredTarget(scope, tuple(metadata.profiles), metadata.labels, layer)
        first = self.targets.setdefault(scope.identity, target)
        if first is not target:
            where = ("metadata", "path" if isinstance(scope.ref, str) else "id") if scope.ref else ("kind",)
            _complain_of_second(document, where, first.layer, str(scope), complaints)

    def _layer(
        self, document: Document, kind: str, title: str, spec: Mapping[str, Any], complaints: Complaints, *, alone: bool
    ) -> Layer:
        level = LEVELS_OF.get(kind)
        layer = read_layer(document, spec, self.shapes, complaints, level=level, title=title)
        if alone:
            check_alone(effective(None, (layer,), self.shapes), (level,) if level else LEVELS, complaints)
        return layer


def _kind_of(document: Document, complaints: Complaints) -> str | None:
    value = document.value
    if not isinstance(value, dict):
        message = f"a manifest is a mapping with apiVersion, kind, metadata and spec, not {_what(value)}"
        complaints.add(document.find(()), message, document)
        return None
    kind = value.get("kind")
    if isinstance(kind, str) and kind in DOCUMENTS:
        return kind
    if "apiVersion" not in value and "kind" not in value:
        message = f"not a manifest: apiVersion ({API_VERSION}) and kind ({listed(DOCUMENTS, 'or')}) are missing"
        complaints.add(document.find(()), message, document)
    elif "kind" not in value:
        message = f"the key `kind` is missing: {listed(DOCUMENTS, 'or')}"
        complaints.add(document.find(()), message, document)
    else:
        place = document.find(("kind",))
        text = place.spot.text
        message = unknown("kind", text, DOCUMENTS) if text else f"must be one of {listed(DOCUMENTS, 'or')}"
        complaints.add(place, message, document)
    return None


def _what(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "a single value"


def _complain_of_second(
    document: Document, path: tuple[str, ...], first: Layer, what: str, complaints: Complaints
) -> None:
    message = f"{what} is already declared at {first.document.find(path)}"
    complaints.add(document.find(path), message, document)
