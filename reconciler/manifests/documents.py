"""The documents of the files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.layers import (
    Layer,
    Placeholders,
    SectionSpec,
    SectionSpecs,
    braces,
    doubt,
    effective,
    has_placeholder,
    normalize,
    normalize_key,
    uses,
)
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.validation import Misfit, check_alone, misfits
from reconciler.model.targets import LEVELS, Level, Target
from reconciler.model.wording import listed, unknown

API_VERSION = "reconciler/v1"

IMPOSSIBLE_IN_PATH = re.compile(r"[\s?#%\\\x00-\x1f\x7f]")


def plausible_path(path: str) -> str:
    """Check what every full path of a group or project has in common.

    Raises:
        ValueError: says what is wrong.
    """
    if "://" in path:
        raise ValueError("must be a full path such as acme/payments/api, not an address")
    if path != path.strip("/"):
        raise ValueError("a full path has no slash at either end")
    if IMPOSSIBLE_IN_PATH.search(path) or not path.isprintable():
        raise ValueError("a full path has no blanks, control characters, `?`, `#`, `%` or backslashes")
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        raise ValueError("a full path has no empty parts and none that are `.` or `..`")
    if path.isdecimal():
        raise ValueError(f"`{path}` would be taken for an ID: write id: {path}, or the full path")
    return path


def plausible_project_path(path: str) -> str:
    """Check what every full path of a project has in common.

    Raises:
        ValueError: says what is wrong.
    """
    if "/" not in path.strip("/"):
        name = path.strip("/")
        raise ValueError(
            f"a project's full path begins with its group or user, such as acme/{name}; a group is kind: Group"
        )
    return plausible_path(path)


FullPath = Annotated[str, AfterValidator(plausible_path)]
ProjectPath = Annotated[str, AfterValidator(plausible_project_path)]
Name = Annotated[str, Field(min_length=1)]
Spec = Annotated[dict[str, Any], Field(description="The sections, by name, and `prune`.")]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class UserMetadata(_Shape):
    """What goes with the settings of the user behind the token."""

    misplaced: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("path", "id"), "a User has neither path nor id: it is the user behind the token"),
        "name": "`name` belongs to Profile and ProjectSet",
    }

    profiles: list[Name] = Field(default=[], description="Merged first, in this order.")
    labels: dict[str, str] = Field(default={}, description="Free, for `--selector`.")


class TargetMetadata(UserMetadata):
    """Which group, by exactly one of `path` and `id`."""

    misplaced: ClassVar[Mapping[str, str]] = {"name": "`name` belongs to Profile and ProjectSet; give the full `path`"}

    path: FullPath = Field(default="", description="The full path.")
    id: Annotated[int, Field(gt=0)] = Field(default=0, description="The numeric ID.")


class ProjectMetadata(TargetMetadata):
    """Which project."""

    path: ProjectPath = Field(default="", description="The full path.")


class ProfileMetadata(_Shape):
    """What a profile is called by those who share it."""

    misplaced: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("path", "id"), "a Profile is about no target: documents name it under `profiles`"
    )

    name: Name


class SetMetadata(UserMetadata):
    """What a set is called, and where it stands among sets."""

    misplaced: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("path", "id"), "a ProjectSet has no path: name its projects under `select`, by `group` or by `projects`"
    )

    name: Name
    priority: int = Field(default=0, description="Sets of higher priority are merged over those of lower.")


class Select(_Shape):
    """Which projects a set is about: those of a group, or those listed, that pass the globs."""

    group: FullPath = Field(default="", description="A group, subgroups included.")
    projects: list[ProjectPath] = Field(default=[], description="Full paths.")
    include: list[Name] = Field(default=["**"], description="Globs on the full path.")
    exclude: list[Name] = Field(default=[], description="Globs on the full path.")
    archived: bool = Field(default=False, description="Whether archived projects are among them.")


class _Document(_Shape):
    apiVersion: Literal["reconciler/v1"]  # noqa: N815 - the manifests' own spelling
    spec: Spec = {}


class UserDocument(_Document):
    """Settings of the user behind the token."""

    kind: Literal["User"]
    metadata: UserMetadata = UserMetadata()


class GroupDocument(_Document):
    """Settings of one group."""

    kind: Literal["Group"]
    metadata: TargetMetadata


class ProjectDocument(_Document):
    """Settings of one project."""

    kind: Literal["Project"]
    metadata: ProjectMetadata


class ProfileDocument(_Document):
    """Settings that others share."""

    kind: Literal["Profile"]
    metadata: ProfileMetadata


class ProjectSetDocument(_Document):
    """Settings of many projects."""

    kind: Literal["ProjectSet"]
    metadata: SetMetadata
    select: Select


DOCUMENTS: Mapping[str, type[_Document]] = {
    "User": UserDocument,
    "Group": GroupDocument,
    "Project": ProjectDocument,
    "Profile": ProfileDocument,
    "ProjectSet": ProjectSetDocument,
}
LEVELS_OF: Mapping[str, Level] = {
    "User": Level.USER,
    "Group": Level.GROUP,
    "Project": Level.PROJECT,
    "ProjectSet": Level.PROJECT,
}
ADAPTERS: Mapping[str, TypeAdapter[Any]] = {name: TypeAdapter(model) for name, model in DOCUMENTS.items()}


def scope_of(document: UserDocument | GroupDocument | ProjectDocument) -> Target:
    """Return the target a document is about."""
    metadata = document.metadata
    if isinstance(metadata, TargetMetadata):
        return Target(LEVELS_OF[document.kind], metadata.path or metadata.id)
    return Target(Level.USER)


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
class Index:
    """What the documents declare.

    Attributes:
        shapes: of all kinds of sections.
        profiles: by name.
        targets: by what two spellings of one target have in common.
        sets: by name.
        whole: whether everything could be read; if not, what is missing may only be hidden.
    """

    shapes: SectionSpecs
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Any, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True

    def add(self, document: Document, diagnostics: Diagnostics) -> None:
        """Add what a document declares; of a faulty one, only complain, of all that is wrong with it."""
        kind = _kind_of(document, diagnostics)
        if kind is None:
            self.whole = False
            return
        adapter = ADAPTERS[kind]
        try:
            declared = adapter.validate_python(document.value)
        except ValidationError as error:
            for misfit in misfits(error, document.value, DOCUMENTS[kind]):
                place = document.find(misfit.path, key=misfit.key)
                message = self._of_spec(misfit) or misfit.message(place.position.text)
                diagnostics.add(place, message, document)
            self.whole = False
            spec = document.value.get("spec")
            if isinstance(spec, dict):
                self._layer(
                    document,
                    kind,
                    "" if kind in [level.document_kind for level in LEVELS] else kind,
                    spec,
                    diagnostics,
                    alone=True,
                )
            return
        self._declare(document, declared, diagnostics)

    def _of_spec(self, misfit: Misfit) -> str | None:
        """Say where a key belongs that stands beside `spec` instead of in it."""
        key = misfit.path[-1] if misfit.key and len(misfit.path) == 1 else None
        return f"`{key}` belongs under `spec`" if key == PRUNE or key in self.shapes else None

    def _declare(self, document: Document, declared: Any, diagnostics: Diagnostics) -> None:
        match declared:
            case ProfileDocument():
                name = declared.metadata.name
                layer = self._layer(document, "Profile", f"profile {name}", declared.spec, diagnostics, alone=True)
                first = self.profiles.setdefault(name, layer)
                if first is not layer:
                    _complain_of_second(document, ("metadata", "name"), first, f"profile `{name}`", diagnostics)
            case ProjectSetDocument():
                self._set(document, declared, diagnostics)
            case _:
                self._target(document, declared, diagnostics)

    def _set(self, document: Document, declared: ProjectSetDocument, diagnostics: Diagnostics) -> None:
        name = declared.metadata.name
        layer = self._layer(document, "ProjectSet", f"set {name}", declared.spec, diagnostics, alone=True)
        if len(declared.select.model_fields_set & {"group", "projects"}) != 1:
            message = "select needs exactly one of `group` and `projects`"
            diagnostics.add(document.find(("select",), key=True), message, document)
            return
        first = self.sets.setdefault(name, DeclaredSet(declared, layer))
        if first.layer is not layer:
            _complain_of_second(document, ("metadata", "name"), first.layer, f"set `{name}`", diagnostics)

    def _target(
        self, document: Document, declared: UserDocument | GroupDocument | ProjectDocument, diagnostics: Diagnostics
    ) -> None:
        metadata = declared.metadata
        if not isinstance(declared, UserDocument) and len(metadata.model_fields_set & {"path", "id"}) != 1:
            message = "needs exactly one of `path` and `id`"
            diagnostics.add(document.find(("metadata",), key=True), message, document)
            self._layer(document, declared.kind, "", declared.spec, diagnostics, alone=True)
            return
        scope = scope_of(declared)
        layer = self._layer(document, declared.kind, "", declared.spec, diagnostics, alone=False)
        target = DeclaredTarget(scope, tuple(metadata.profiles), metadata.labels, layer)
        first = self.targets.setdefault(scope.identity, target)
        if first is not target:
            where = ("metadata", "path" if isinstance(scope.ref, str) else "id") if scope.ref else ("kind",)
            _complain_of_second(document, where, first.layer, str(scope), diagnostics)

    def _layer(
        self,
        document: Document,
        kind: str,
        title: str,
        spec: Mapping[str, Any],
        diagnostics: Diagnostics,
        *,
        alone: bool,
    ) -> Layer:
        level = LEVELS_OF.get(kind)
        layer = read_layer(document, spec, self.shapes, diagnostics, level=level, title=title)
        if alone:
            check_alone(effective(None, (layer,), self.shapes), (level,) if level else LEVELS, diagnostics)
        return layer


def _kind_of(document: Document, diagnostics: Diagnostics) -> str | None:
    value = document.value
    if not isinstance(value, dict):
        message = f"a manifest is a mapping with apiVersion, kind, metadata and spec, not {_what(value)}"
        diagnostics.add(document.find(()), message, document)
        return None
    kind = value.get("kind")
    if isinstance(kind, str) and kind in DOCUMENTS:
        return kind
    if "apiVersion" not in value and "kind" not in value:
        message = f"not a manifest: apiVersion ({API_VERSION}) and kind ({listed(DOCUMENTS, 'or')}) are missing"
        diagnostics.add(document.find(()), message, document)
    elif "kind" not in value:
        message = f"the key `kind` is missing: {listed(DOCUMENTS, 'or')}"
        diagnostics.add(document.find(()), message, document)
    else:
        place = document.find(("kind",))
        text = place.position.text
        message = unknown("kind", text, DOCUMENTS) if text else f"must be one of {listed(DOCUMENTS, 'or')}"
        diagnostics.add(place, message, document)
    return None


def _what(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "a single value"


def _complain_of_second(
    document: Document, path: tuple[str, ...], first: Layer, what: str, diagnostics: Diagnostics
) -> None:
    message = f"{what} is already declared at {first.document.find(path)}"
    diagnostics.add(document.find(path), message, document)


PRUNE = "prune"


def read_layer(
    document: Document,
    spec: Mapping[str, Any],
    shapes: SectionSpecs,
    diagnostics: Diagnostics,
    *,
    level: Level | None,
    title: str = "",
) -> Layer:
    """Return the layer that a spec makes.

    Args:
        document: where the spec is.
        spec: as written.
        shapes: of all kinds.
        diagnostics: for what is wrong.
        level: of the target; None for a profile, which any may use.
        title: what the layer is called; empty for a target's own.
    """
    sections: dict[str, Any] = {}
    for name, value in spec.items():
        fault = None if name == PRUNE else _fault_of_section(name, value, level, shapes)
        if fault:
            diagnostics.add(document.find(("spec", name), key=True), fault, document)
        elif name != PRUNE:
            sections[name] = value
    prune = _prune(document, spec[PRUNE], shapes, diagnostics) if PRUNE in spec else None
    placeholders, filled_in = _placeholders(document, sections, diagnostics)
    normalized = {name: normalize(shapes[name], value, None) for name, value in sections.items()}
    for name, value in sections.items():
        if isinstance(value, dict) and len(normalized[name]) < len(value):
            complain_of_clashes(document, shapes[name], value, None, diagnostics)
    return Layer(document, title, sections, prune, placeholders, None if filled_in else normalized)


def complain_of_clashes(
    document: Document, shape: SectionSpec, section: Any, values: Placeholders | None, diagnostics: Diagnostics
) -> None:
    """Complain of names in a section, as written, that come to the same."""
    first: dict[Any, str] = {}
    for key in section if isinstance(section, dict) else ():
        name = normalize_key(shape, key, values)
        if name in first:
            place = document.find(("spec", shape.kind.name, first[name]), key=True)
            message = f"`{key}` and `{first[name]}` ({place}) are one and the same name"
            diagnostics.add(document.find(("spec", shape.kind.name, key), key=True), message, document)
        first.setdefault(name, key)


def fault_of_level(name: str, level: Level, shapes: SectionSpecs) -> str | None:
    """Say where a section belongs if it does not belong to a level."""
    models = shapes[name].kind.models
    if level in models:
        return None
    allowed = [other for other, shape in shapes.items() if level in shape.kind.models]
    owners = listed([owner.document_kind for owner in models])
    return f"{name} belong to {owners}; a {level.document_kind} may hold {listed(allowed)}"


def _fault_of_section(name: str, value: Any, level: Level | None, shapes: SectionSpecs) -> str | None:
    if name not in shapes:
        return unknown("section", name, [PRUNE, *shapes])
    if level and (fault := fault_of_level(name, level, shapes)):
        return fault
    if value is None:
        advice = ": leave it out" + (
            ", or write `{}` and list it in `prune` if nothing may exist there" if shapes[name].kind.prunable else ""
        )
        return f"{name} has no value{advice}"
    return None


def _prune(document: Document, prune: Any, shapes: SectionSpecs, diagnostics: Diagnostics) -> list[str]:
    path = ("spec", PRUNE)
    if not isinstance(prune, list):
        diagnostics.add(document.find(path), "prune must be a list of sections: `prune: [milestones]`", document)
        return []
    good: list[str] = []
    for index, name in enumerate(prune):
        fault = _fault_of_pruned(name, shapes)
        if fault:
            diagnostics.add(document.find((*path, index)), fault, document)
        good.append("" if fault else name)
    return good


def _fault_of_pruned(name: Any, shapes: SectionSpecs) -> str | None:
    if isinstance(name, str) and name in shapes and shapes[name].kind.prunable:
        return None
    prunable = [section for section, shape in shapes.items() if shape.kind.prunable]
    if not isinstance(name, str):
        return f"prune lists the names of sections: {listed(prunable)}"
    if name not in shapes:
        return unknown("section", name, prunable)
    return f"{name} are settings, which cannot be pruned; prunable are {listed(prunable)}"


def _placeholders(
    document: Document, sections: Mapping[str, Any], diagnostics: Diagnostics
) -> tuple[dict[str, Steps], bool]:
    """Return the placeholders used, each with where, and whether placeholder_values in changes anything."""
    found: dict[str, Steps] = {}
    changes = False
    for name, value in sections.items():
        for text, path, key in braces(value, (name,)):
            changes |= has_placeholder(text)
            for use in uses(text):
                found.setdefault(use, path)
            misspelt = doubt(text)
            if misspelt:
                diagnostics.add(document.find(("spec", *path), key=key), misspelt, document, "warning")
    return found, changes
