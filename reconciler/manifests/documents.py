"""The documents of the files: the envelope as models, and an index of all that they declare, each spec as a layer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.layers import (
    PRUNE,
    Layer,
    Placeholders,
    SectionSpec,
    SectionSpecs,
    braces,
    has_placeholder,
    misspelt_placeholder,
    placeholders_in,
)
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.validation import check_alone, diagnose
from reconciler.model.targets import LEVELS, Level, Target
from reconciler.model.wording import listed, unknown

API_VERSION = "reconciler/v1"
NOTHING: Mapping[str, str] = MappingProxyType({})

FULL_PATH = r"^(?![0-9]+$)[^\s/?#%\\]+(/[^\s/?#%\\]+)*$"
"""What an editor checks of a full path: no address, no slash at either end, nothing that would be taken for an ID."""

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


def _plausible_project_path(path: str) -> str:
    if "/" not in path.strip("/"):
        name = path.strip("/")
        raise ValueError(
            f"a project's full path begins with its group or user, such as acme/{name}; a group is kind: Group"
        )
    return plausible_path(path)


FullPath = Annotated[str, AfterValidator(plausible_path), WithJsonSchema({"type": "string", "pattern": FULL_PATH})]
ProjectPath = Annotated[
    str, AfterValidator(_plausible_project_path), WithJsonSchema({"type": "string", "pattern": FULL_PATH})
]
Text = Annotated[str, Field(min_length=1)]


class Envelope(BaseModel):
    """A part of what every document has around its spec. The JSON Schema of manifests is made of these models."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        field_title_generator=lambda name, _: name.capitalize(),
    )


class UserMetadata(Envelope):
    """What goes with the settings of the user behind the token."""

    misplaced: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("path", "id"), "a User has neither path nor id: it is the user behind the token"),
        "name": "`name` belongs to Profile and ProjectSet",
    }

    profiles: list[Text] = Field(
        default=[],
        description="Names of profiles. They are merged in this order; the `spec` beside goes over them.",
        examples=[["baseline"]],
    )
    labels: dict[str, str] = Field(
        default={},
        description="Words of your own, by which `--selector team=payments` finds its targets.",
        examples=[{"team": "payments"}],
    )


class PathOrId(Envelope):
    """The name of a group or project."""

    path: FullPath = Field(default="", description="The full path. Give this or `id`.", examples=["acme/payments"])
    id: Annotated[int, Field(gt=0)] = Field(
        default=0,
        title="ID",
        description="The numeric ID, which stays when the target moves. Give this or `path`.",
        examples=[1234],
    )


class TargetMetadata(UserMetadata, PathOrId):
    """Which group, by exactly one of `path` and `id`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["path"]}, {"required": ["id"]}]})
    misplaced: ClassVar[Mapping[str, str]] = {"name": "`name` belongs to Profile and ProjectSet; give the full `path`"}


class ProjectMetadata(TargetMetadata):
    """Which project, by exactly one of `path` and `id`."""

    path: ProjectPath = Field(default="", description="The full path. Give this or `id`.", examples=["acme/web"])


class ProfileMetadata(Envelope):
    """What a profile is called by those who share it."""

    misplaced: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("path", "id"), "a Profile is about no target: documents name it under `profiles`"
    )

    name: Text = Field(description="What it is called; no two of a kind have one name.", examples=["baseline"])


class SetMetadata(UserMetadata, ProfileMetadata):
    """What a set is called, and where it stands among sets."""

    misplaced: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("path", "id"), "a ProjectSet has no path: name its projects under `select`, by `group` or by `projects`"
    )

    priority: int = Field(
        default=0,
        description="Sets of higher priority are merged over those of lower; 0 if left out.",
        examples=[10],
    )


class Selection(Envelope):
    """Which projects a set is about: those of a group, or those listed, that pass the globs."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["group"]}, {"required": ["projects"]}]})

    group: FullPath = Field(
        default="",
        description="All projects of this group, subgroups included, as they are when planning.",
        examples=["acme"],
    )
    projects: list[ProjectPath] = Field(
        default=[], description="These projects, by full path.", examples=[["a/b", "a/c"]]
    )
    include: list[Text] = Field(
        default=["**"], description="Globs on the full path; everything if left out.", examples=[["acme/services/**"]]
    )
    exclude: list[Text] = Field(
        default=[], description="Globs on the full path; nothing if left out.", examples=[["acme/services/legacy-*"]]
    )
    archived: bool = Field(
        default=False, description="Whether archived projects are selected too; not if left out.", examples=[False]
    )


METADATA = "Whom the document is about, and what is merged into it."


class AnyDocument(Envelope):
    """What every document has. What is left out of a `spec` is not managed."""

    apiVersion: Literal["reconciler/v1"] = Field(  # noqa: N815 - the manifests' own spelling
        title="API version", description="The version of this format.", examples=[API_VERSION]
    )
    spec: dict[str, Any] = Field(default={}, description="The sections. What is left out is not managed.")


class UserDocument(AnyDocument):
    """Settings of the user behind the token, wherever no group or project says otherwise."""

    kind: Literal["User"]
    metadata: UserMetadata = Field(
        default=UserMetadata(), title="Metadata", description=METADATA, examples=[{"profiles": ["baseline"]}]
    )


class GroupDocument(AnyDocument):
    """Settings of one group. Its notification settings are those of the user behind the token."""

    kind: Literal["Group"]
    metadata: TargetMetadata = Field(title="Metadata", description=METADATA, examples=[{"path": "acme/payments"}])


class ProjectDocument(AnyDocument):
    """Settings of one project. Its notification settings are those of the user behind the token."""

    kind: Literal["Project"]
    metadata: ProjectMetadata = Field(
        title="Metadata", description=METADATA, examples=[{"path": "acme/payments/api", "profiles": ["baseline"]}]
    )


class ProfileDocument(AnyDocument):
    """Settings that others share by naming this profile."""

    kind: Literal["Profile"]
    metadata: ProfileMetadata = Field(title="Metadata", description=METADATA, examples=[{"name": "baseline"}])


class ProjectSetDocument(AnyDocument):
    """Settings of many projects."""

    kind: Literal["ProjectSet"]
    metadata: SetMetadata = Field(
        title="Metadata", description=METADATA, examples=[{"name": "services", "priority": 10}]
    )
    select: Selection = Field(
        title="Select",
        description="Which projects the set is about: those of a group, or those listed.",
        examples=[{"group": "acme", "include": ["acme/services/**"]}],
    )


TargetDocument = UserDocument | GroupDocument | ProjectDocument

DOCUMENTS: Mapping[str, type[AnyDocument]] = {
    "User": UserDocument,
    "Group": GroupDocument,
    "Project": ProjectDocument,
    "Profile": ProfileDocument,
    "ProjectSet": ProjectSetDocument,
}
LEVEL_OF: Mapping[str, Level] = {level.document_kind: level for level in LEVELS}
"""The level of the targets that documents of a kind are about."""


def levels_of(kind: str) -> tuple[Level, ...]:
    """Return the levels of the targets that the spec of a kind of document is for: of a profile, all of them."""
    if kind == "Profile":
        return LEVELS
    return (Level.PROJECT,) if kind == "ProjectSet" else (LEVEL_OF[kind],)


def target_document(
    target: Target, spec: Mapping[str, Any], profiles: Sequence[str] = (), labels: Mapping[str, str] = NOTHING
) -> dict[str, Any]:
    """Return the document of a target as a manifest writes it."""
    metadata: dict[str, Any] = {}
    if target.ref is not None:
        metadata["id" if isinstance(target.ref, int) else "path"] = target.ref
    metadata |= {"profiles": [*profiles]} if profiles else {}
    metadata |= {"labels": dict(labels)} if labels else {}
    envelope = {"apiVersion": API_VERSION, "kind": target.level.document_kind}
    return {**envelope, **({"metadata": metadata} if metadata else {}), "spec": spec}


def profile_document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a profile as a manifest writes it."""
    return {"apiVersion": API_VERSION, "kind": "Profile", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """A user, group or project that has a document of its own."""

    target: Target
    metadata: UserMetadata
    layer: Layer


@dataclass(frozen=True, slots=True)
class DeclaredSet:
    """A set of projects."""

    metadata: SetMetadata
    select: Selection
    layer: Layer


@dataclass(slots=True)
class Index:
    """What the documents declare.

    Attributes:
        specs: of all kinds of sections.
        profiles: by name.
        targets: by what two spellings of one target have in common.
        sets: by name.
        whole: whether everything could be read; if not, what is missing may only be hidden.
    """

    specs: SectionSpecs
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Any, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True

    def add(self, document: Document) -> list[Diagnostic]:
        """Add what a document declares, and return all that is wrong with it; a faulty one declares nothing."""
        kind = document.value.get("kind") if isinstance(document.value, dict) else None
        model = DOCUMENTS.get(kind) if isinstance(kind, str) else None
        if model is None:
            self.whole = False
            return [_unknown_kind(document.value)]
        try:
            declared: Any = model.model_validate(document.value)
        except ValidationError as error:
            self.whole = False
            found = [self._about_spec(each) for each in diagnose(error, document.value, model)]
            spec = document.value.get("spec")
            return found + self._layer(document, str(kind), "", spec)[1] if isinstance(spec, dict) else found
        match declared:
            case ProfileDocument():
                return self._add_profile(document, declared)
            case ProjectSetDocument():
                return self._add_set(document, declared)
        return self._add_target(document, declared)

    def _about_spec(self, found: Diagnostic) -> Diagnostic:
        """Say where a key belongs that stands beside `spec` instead of in it."""
        key = found.steps[-1] if found.at_key and len(found.steps) == 1 else None
        return replace(found, message=f"`{key}` belongs under `spec`") if key in {PRUNE, *self.specs} else found

    def _add_profile(self, document: Document, declared: ProfileDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, found = self._layer(document, declared.kind, f"profile {name}", declared.spec)
        first = self.profiles.setdefault(name, layer)
        return found if first is layer else [*found, _second(("metadata", "name"), first, f"profile `{name}`")]

    def _add_set(self, document: Document, declared: ProjectSetDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, found = self._layer(document, declared.kind, f"set {name}", declared.spec)
        if len(declared.select.model_fields_set & {"group", "projects"}) != 1:
            return [*found, Diagnostic(("select",), "select needs exactly one of `group` and `projects`", at_key=True)]
        first = self.sets.setdefault(name, DeclaredSet(declared.metadata, declared.select, layer)).layer
        return found if first is layer else [*found, _second(("metadata", "name"), first, f"set `{name}`")]

    def _add_target(self, document: Document, declared: TargetDocument) -> list[Diagnostic]:
        metadata = declared.metadata
        target = Target(LEVEL_OF[declared.kind])
        steps: Steps = ("kind",)
        if isinstance(metadata, TargetMetadata):
            if len(metadata.model_fields_set & {"path", "id"}) != 1:
                found = self._layer(document, declared.kind, "", declared.spec)[1]
                return [Diagnostic(("metadata",), "needs exactly one of `path` and `id`", at_key=True), *found]
            target = Target(target.level, metadata.path or metadata.id)
            steps = ("metadata", "path" if metadata.path else "id")
        layer, found = self._layer(document, declared.kind, "", declared.spec, alone=False)
        first = self.targets.setdefault(target.identity, DeclaredTarget(target, metadata, layer)).layer
        return found if first is layer else [*found, _second(steps, first, str(target))]

    def _layer(
        self, document: Document, kind: str, title: str, spec: Mapping[str, Any], *, alone: bool = True
    ) -> tuple[Layer, list[Diagnostic]]:
        """Return the layer that a spec makes, of what may be merged, and what is wrong with it.

        Args:
            document: where the spec is.
            kind: of the document.
            title: what the layer is called; empty for a target's own.
            spec: as written.
            alone: whether no target will check its sections.
        """
        levels = levels_of(kind)
        errors = {name: self._section_error(name, value, levels) for name, value in spec.items() if name != PRUNE}
        found = [Diagnostic(("spec", name), error, at_key=True) for name, error in errors.items() if error]
        sections = {name: spec[name] for name, error in errors.items() if not error}
        prune, faulty = _read_prune(spec[PRUNE], self.specs) if PRUNE in spec else (None, [])
        found += faulty
        texts = list(braces(sections, ("spec",)))
        placeholders: dict[str, Steps] = {}
        for text, steps, at_key in texts:
            placeholders = dict.fromkeys(placeholders_in(text), steps) | placeholders
            message = misspelt_placeholder(text)
            if message:
                found.append(Diagnostic(steps, message, "warning", at_key))
        normalized = {name: self.specs[name].normalize(value, None) for name, value in sections.items()}
        for name, value in sections.items():
            if isinstance(value, dict) and len(normalized[name]) < len(value):
                found += clashing_names(document, self.specs[name], value, None)
            if alone:
                found += check_alone(self.specs[name], value, levels)
        waits = any(has_placeholder(text) for text, *_ in texts)
        return Layer(document, title, sections, prune, placeholders, None if waits else normalized), found

    def _section_error(self, name: str, value: Any, levels: tuple[Level, ...]) -> str | None:
        if name not in self.specs:
            return unknown("section", name, [PRUNE, *self.specs])
        error = level_error(name, levels[0], self.specs) if len(levels) == 1 else None
        if error is None and value is None:
            advice = ": leave it out" + (
                ", or write `{}` and list it in `prune` if nothing may exist there"
                if self.specs[name].kind.prunable
                else ""
            )
            return f"{name} has no value{advice}"
        return error


def level_error(name: str, level: Level, specs: SectionSpecs) -> str | None:
    """Say where a section belongs if it does not belong to a level."""
    models = specs[name].kind.models
    if level in models:
        return None
    allowed = [other for other, spec in specs.items() if level in spec.kind.models]
    owners = listed(owner.document_kind for owner in models)
    return f"{name} belong to {owners}; a {level.document_kind} may hold {listed(allowed)}"


def clashing_names(
    document: Document, spec: SectionSpec, section: Any, values: Placeholders | None
) -> Iterator[Diagnostic]:
    """Yield the names in a section of a document, as written, that come to the same."""
    above = ("spec", spec.kind.name)
    first: dict[Any, str] = {}
    for key in section if isinstance(section, dict) else ():
        name = spec.normalize_key(key, values)
        if name in first:
            location = document.find((*above, first[name]), key=True)
            message = f"`{key}` and `{first[name]}` ({location}) are one and the same name"
            yield Diagnostic((*above, key), message, at_key=True)
        first.setdefault(name, key)


def _unknown_kind(value: Any) -> Diagnostic:
    kinds = listed(DOCUMENTS, "or")
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        return Diagnostic((), f"a manifest is a mapping with apiVersion, kind, metadata and spec, not {what}")
    if "kind" in value:
        kind = value["kind"]
        is_word = isinstance(kind, str) and kind
        return Diagnostic(("kind",), unknown("kind", kind, DOCUMENTS) if is_word else f"must be one of {kinds}")
    if "apiVersion" in value:
        return Diagnostic((), f"the key `kind` is missing: {kinds}")
    return Diagnostic((), f"not a manifest: apiVersion ({API_VERSION}) and kind ({kinds}) are missing")


def _second(steps: Steps, first: Layer, what: str) -> Diagnostic:
    return Diagnostic(steps, f"{what} is already declared at {first.document.find(steps)}")


def _read_prune(prune: Any, specs: SectionSpecs) -> tuple[list[str], list[Diagnostic]]:
    """Return the sections to be pruned, empty text in place of each that cannot be, and what is wrong."""
    steps = ("spec", PRUNE)
    if not isinstance(prune, list):
        return [], [Diagnostic(steps, "prune must be a list of sections: `prune: [milestones]`")]
    errors = [_prune_error(name, specs) for name in prune]
    found = [Diagnostic((*steps, index), error) for index, error in enumerate(errors) if error]
    return ["" if error else name for name, error in zip(prune, errors, strict=True)], found


def _prune_error(name: Any, specs: SectionSpecs) -> str | None:
    prunable = [section for section, spec in specs.items() if spec.kind.prunable]
    if not isinstance(name, str):
        return f"prune lists the names of sections: {listed(prunable)}"
    if name in prunable:
        return None
    if name not in specs:
        return unknown("section", name, prunable)
    return f"{name} are settings, which cannot be pruned; prunable are {listed(prunable)}"
