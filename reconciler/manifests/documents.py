"""The documents of the files: their envelope checked, their spec still as written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from reconciler.manifests.sources import Place, Source, find
from reconciler.model.targets import Level, Target
from reconciler.system.terminal import escaped

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
KIND_OF = {Level.USER: "User", Level.GROUP: "Group", Level.PROJECT: "Project"}
ADAPTERS: Mapping[str, TypeAdapter[Any]] = {name: TypeAdapter(model) for name, model in DOCUMENTS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document of a file, as read.

    Attributes:
        source: the file.
        number: which of the file's documents, from 0.
        line: where its content begins, from 1.
        value: what is written.
    """

    source: Source
    number: int
    line: int
    value: Any

    @property
    def origin(self) -> str:
        """`path:line`, safe to show and to save; of a document that a template rendered to, only the path."""
        path = escaped(self.source.path)
        return path if self.source.own_line else f"{path}:{self.line}"

    def find(self, path: tuple[Any, ...], *, key: bool = False) -> Place:
        """Return where a value (or its key) is written; see `sources.find`."""
        return find(self.source, self.number, path, key=key)


def scope_of(document: UserDocument | GroupDocument | ProjectDocument) -> Target:
    """Return the target a document is about."""
    metadata = document.metadata
    if isinstance(metadata, TargetMetadata):
        return Target(LEVELS_OF[document.kind], metadata.path or metadata.id)
    return Target(Level.USER)
