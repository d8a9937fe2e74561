"""The documents of manifests as models: kind, metadata, `create` and `select`, but not the spec.

`DOCUMENTS` has the model of each kind. The JSON Schema of manifests is generated from these models.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from reconciler.model.creation import PREFIXED, Visibility
from reconciler.model.kind import GivenDay
from reconciler.model.targets import LEVELS, Level, Target

API_VERSION = "reconciler/v1"
LONGEST_NAME = 255
NO_LABELS: Mapping[str, str] = MappingProxyType({})

FULL_PATH = r"^(?![0-9]+$)(?!.*\.git$)[^\s/?*#%\\\[\]{}]+(/[^\s/?*#%\\\[\]{}]+)*$"
"""The check of a full path in editors: no URL, no slash at either end, no number."""

GLOB_IN_PATH = re.compile(r"[*\[\]{}]")
ADDRESS_SUFFIX = ".git"
"""The end of an address for `git clone`."""

IMPOSSIBLE_IN_PATH = re.compile(r"[\s?#%\\\x00-\x1f\x7f]")


def plausible_path(path: str) -> str:
    """Return a full path of a group or project.

    Raises:
        ValueError: no group or project can have this path.
    """
    if "://" in path:
        raise ValueError("must be a full path such as acme/payments/api, not an address")
    if path != path.strip("/"):
        raise ValueError("a full path has no slash at either end")
    if IMPOSSIBLE_IN_PATH.search(path) or not path.isprintable():
        raise ValueError("a full path has no blanks, control characters, `?`, `#`, `%` or backslashes")
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        raise ValueError("a full path has no empty parts and none that are `.` or `..`")
    if GLOB_IN_PATH.search(path):
        raise ValueError("a full path has no globs: `select.include` and `select.exclude` of a ProjectSet take them")
    if path.casefold().endswith(ADDRESS_SUFFIX):
        raise ValueError(f"a full path does not end in `{ADDRESS_SUFFIX}`: write {path[: -len(ADDRESS_SUFFIX)]}")
    if any(len(segment) > LONGEST_NAME for segment in path.split("/")):
        raise ValueError(f"a part of a full path has at most {LONGEST_NAME} characters")
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
NO_SECTION: Any = None
"""The default of an optional part that is never null: `model_fields_set` shows whether the part was given."""
DisplayName = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})]


def _lockable(raw_names: object) -> object:
    if raw_names == "all" or (
        isinstance(raw_names, list) and all(isinstance(name, str) and name for name in raw_names)
    ):
        return raw_names
    raise ValueError("must be `all`, or a list of fields or items, such as [level]; quote numbers")


Locked = Annotated[Literal["all"] | list[Text], BeforeValidator(_lockable)]


def _whole(raw_name: object) -> object:
    if isinstance(raw_name, float):
        raise ValueError(f"must be text: `{raw_name}` is a number, quote it")  # noqa: TRY004 - pydantic takes no other
    return raw_name


ItemName = Annotated[Text | Annotated[int, Field(gt=0)], BeforeValidator(_whole)]


def _reasoned(reason: str) -> str:
    if not reason.strip():
        raise ValueError("must not be blank: say why the deviation is accepted")
    return reason


class Envelope(BaseModel):
    """A part of a document around its spec. The JSON Schema of manifests is made of these models."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        field_title_generator=lambda name, _: name.capitalize(),
    )


def _show_exactly_one(schema: dict[str, Any], document_type: type[Any]) -> None:
    schema["oneOf"] = [{"required": [name]} for name in document_type.exactly_one]


class Exclusive(Envelope):
    """A part with keys that exclude each other: exactly one of them must be given."""

    model_config = ConfigDict(json_schema_extra=_show_exactly_one)
    exactly_one: ClassVar[tuple[str, str]]

    @model_validator(mode="after")
    def _has_exactly_one(self) -> Self:
        if len(self.model_fields_set.intersection(self.exactly_one)) != 1:
            raise ValueError(f"needs exactly one of {' and '.join(f'`{name}`' for name in self.exactly_one)}")
        return self


class SharingMetadata(Envelope):
    """Profiles and labels."""

    profiles: list[Text] = Field(
        default=[],
        description="Names of profiles, merged in this order; the `spec` of this document goes over them.",
        examples=[["baseline"]],
    )
    labels: dict[str, str] = Field(
        default={},
        description="Labels of your own, for `--selector team=payments`.",
        examples=[{"team": "payments"}],
    )


BESIDE = "`create` belongs beside `metadata` and `spec`, in a Group or a Project with a `path`"
LOCKS_ABOVE = "locks belong to Profile and ProjectSet: no layer is merged over a target's own document"
MINIMUMS_ABOVE = "at_least belongs to Profile and ProjectSet: no layer is merged over a target's own document"
EXCEPTIONS_BELOW = "exceptions belong in the document of the one target that they are about"


class AcceptedDeviation(Envelope):
    """A deviation that is accepted for a while: its differences are counted, not changed, and make no drift."""

    section: Text = Field(description="The section.", examples=["milestones"])
    item: ItemName | None = Field(
        default=None,
        description="An item of the section, or an entry of its lists; all of them if left out.",
        examples=["2026.12"],
    )
    fields: Annotated[list[Text], Field(min_length=1)] = Field(
        default=[],
        description="The fields; all of them, and creations and deletions too, if left out.",
        examples=[["due_date"]],
    )
    until: GivenDay = Field(description="The last day, YYYY-MM-DD, UTC.", examples=["2027-03-01"])
    reason: Annotated[str, AfterValidator(_reasoned)] = Field(
        description="Why the deviation is accepted; plans and reports show it.",
        examples=["Release is being re-planned, OPS-12"],
    )


class UserMetadata(SharingMetadata):
    """The metadata of the user behind the token."""

    misplaced: ClassVar[Mapping[str, str]] = {
        "create": BESIDE,
        **dict.fromkeys(
            ("path", "id"), "an Instance or a User has neither path nor id: the token determines which one it is"
        ),
        "name": "`name` belongs to Profile and ProjectSet",
        "locks": LOCKS_ABOVE,
        "at_least": MINIMUMS_ABOVE,
    }

    exceptions: list[AcceptedDeviation] = Field(
        default=[],
        description="Deviations that are accepted for a while: reported, counted, and not changed.",
        examples=[[{"section": "milestones", "item": "2026.12", "until": "2027-03-01", "reason": "OPS-12"}]],
    )


class PathOrId(Exclusive):
    """The name of a group or project."""

    exactly_one = ("path", "id")

    path: FullPath = Field(default="", description="The full path. Give this or `id`.", examples=["acme/payments"])
    id: Annotated[int, Field(gt=0)] = Field(
        default=0,
        title="ID",
        description="The numeric ID, which stays when the target moves. Give this or `path`.",
        examples=[1234],
    )


class TargetMetadata(UserMetadata, PathOrId):
    """The metadata of a group: exactly one of `path` and `id`."""

    misplaced: ClassVar[Mapping[str, str]] = {
        "create": BESIDE,
        "name": "`name` belongs to Profile and ProjectSet; give the full `path`",
        "locks": LOCKS_ABOVE,
        "at_least": MINIMUMS_ABOVE,
    }


class ProjectMetadata(TargetMetadata):
    """The metadata of a project: exactly one of `path` and `id`."""

    path: ProjectPath = Field(default="", description="The full path. Give this or `id`.", examples=["acme/web"])


class ProfileMetadata(Envelope):
    """The name of a profile, its locks and its minimums."""

    misplaced: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("path", "id"), "a Profile has no target: documents name it under `profiles`"),
        "exceptions": EXCEPTIONS_BELOW,
    }

    name: Text = Field(description="The name, unique among the documents of a kind.", examples=["baseline"])
    locks: dict[Text, Locked] = Field(
        default={},
        description="By section, the declared fields, items, or `prune`, whose values no later layer may change; `all` "
        "of them.",
        examples=[{"approval_settings": ["allow_author_approval"], "job_token_scope": "all"}],
    )
    at_least: dict[Text, Locked] = Field(
        default={},
        description="By section, the declared fields or items that are minimums: what is stricter on the service is in "
        "order, and later layers may declare it; `all` of them.",
        examples=[{"approval_rules": ["any_approver"], "approval_settings": "all"}],
    )


class SetMetadata(SharingMetadata, ProfileMetadata):
    """The name of a set, its priority, its locks and its minimums."""

    misplaced: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("path", "id"), "a ProjectSet has no path: name its projects under `select`, by `group` or by `projects`"
        ),
        "select": "`select` belongs beside `metadata`, not in it",
        "exceptions": EXCEPTIONS_BELOW,
    }

    priority: int = Field(
        default=0,
        description="Sets of higher priority are merged over those of lower; 0 if left out.",
        examples=[10],
    )


class Selection(Exclusive):
    """The projects of a set: those of a group, or those listed, that match the globs."""

    exactly_one = ("group", "projects")

    group: FullPath = Field(
        default="",
        description="All projects of this group and its subgroups, at the time of planning.",
        examples=["acme"],
    )
    projects: list[ProjectPath] = Field(
        default=[], description="These projects, by full path.", examples=[["a/b", "a/c"]]
    )
    include: list[Text] = Field(
        default=["**"],
        description="Globs on the full path, `*` within one part of it, `**` across parts; everything if left out.",
        examples=[["acme/services/**"]],
    )
    exclude: list[Text] = Field(
        default=[],
        description="Globs on the full path, as `include`; nothing if left out. Other sets and the project's own "
        "document still count.",
        examples=[["acme/services/legacy-*"]],
    )
    archived: bool = Field(
        default=False, description="Whether archived projects are selected too; not if left out.", examples=[False]
    )
    not_applicable: Literal["skip", "problem"] = Field(
        default="skip",
        description="A section that a project cannot have (archived, or its feature is off) is left out and counted "
        "(`skip`), or a `problem`; always a problem if the project's own document or its profiles declare it.",
        examples=["skip"],
    )


class OptionalStages(Envelope):
    """The parts of an import that GitLab leaves out unless they are asked for."""

    single_endpoint_notes_import: bool = Field(
        default=False, description="Import comments in a slower and more thorough way.", examples=[True]
    )
    attachments_import: bool = Field(
        default=False, description="Import attachments of Markdown texts.", examples=[True]
    )
    collaborators_import: bool = Field(
        default=False, description="Import direct collaborators of the repository as members.", examples=[True]
    )


TOKEN_BY_NAME = dict.fromkeys(
    ("personal_access_token", "token", "password"),
    "secrets do not belong in manifests: set an environment variable, and give its name under `token_env`",
)
PLACED = dict.fromkeys(
    ("new_name", "target_namespace"), "the document's `path` says where the project is created: leave this out"
)


class ExternalSource(Envelope):
    """A repository of another service."""

    misplaced: ClassVar[Mapping[str, str]] = {**TOKEN_BY_NAME, **PLACED}

    token_env: Text = Field(
        description="The environment variable that holds a token of that service. Only `apply` uses it, and only where "
        "the project does not exist yet.",
        examples=["IMPORT_TOKEN"],
    )
    timeout_strategy: Literal["optimistic", "pessimistic"] = Field(
        default="pessimistic",
        description="Whether an import goes on (`optimistic`) or fails (`pessimistic`) if one of its stages takes too "
        "long; GitLab's default if left out.",
        examples=["optimistic"],
    )


def _numbered(repository: object) -> object:
    if isinstance(repository, str) and not repository.isdecimal():
        name = repository if re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII) else "OWNER/NAME"
        raise ValueError(
            f"must be the number of the repository: GitHub shows it as `id` at https://api.github.com/repos/{name}"
        )
    return repository


class GitHubSource(ExternalSource):
    """A repository on GitHub."""

    repo_id: Annotated[int, Field(gt=0), BeforeValidator(_numbered)] = Field(
        title="Repository ID", description="The numeric ID of the repository.", examples=[5]
    )
    github_hostname: Text = Field(
        default="",
        title="GitHub hostname",
        description="The host of GitHub Enterprise; github.com if left out.",
        examples=["https://github.example.com"],
    )
    optional_stages: OptionalStages = Field(
        default=OptionalStages(),
        title="Optional stages",
        description="Further parts of the import.",
        examples=[{"attachments_import": True}],
    )


class BitbucketServerSource(ExternalSource):
    """A repository on a Bitbucket Server."""

    misplaced: ClassVar[Mapping[str, str]] = {
        **ExternalSource.misplaced,
        **{f"bitbucket_server_{name}": f"write `{name}`" for name in PREFIXED["bitbucket_server"]},
    }

    url: Text = Field(
        title="URL",
        description="The address of the server.",
        examples=["https://bitbucket.example.com"],
    )
    username: Text = Field(description="The user whose token it is.", examples=["ada"])
    project: Text = Field(description="The key of the project.", examples=["PAY"])
    repo: Text = Field(
        title="Repository",
        description="The name of the repository.",
        examples=["api"],
    )


class ImportSource(Exclusive):
    """Where a project is imported from: exactly one of `github` and `bitbucket_server`."""

    exactly_one = ("github", "bitbucket_server")
    misplaced: ClassVar[Mapping[str, str]] = {
        "gitlab": "a project of another GitLab cannot be imported; supported are github and bitbucket_server"
    }

    github: GitHubSource = Field(
        default=NO_SECTION,
        title="GitHub",
        description="A repository on GitHub. Give this or `bitbucket_server`.",
        examples=[{"repo_id": 5, "token_env": "GITHUB_TOKEN"}],
    )
    bitbucket_server: BitbucketServerSource = Field(
        default=NO_SECTION,
        title="Bitbucket Server",
        description="A repository on a Bitbucket Server. Give this or `github`.",
        examples=[
            {
                "url": "https://bitbucket.example.com",
                "username": "ada",
                "token_env": "BITBUCKET_TOKEN",
                "project": "PAY",
                "repo": "api",
            }
        ],
    )


class TargetCreation(Envelope):
    """The creation of a target that does not exist."""

    name: DisplayName = Field(
        default="",
        description="The display name; the last part of the path if left out. It is unique among the groups, and among "
        "the projects, of a namespace.",
        examples=["New Team"],
    )
    visibility: Visibility = Field(
        default="private",
        description="The visibility; if left out, that of the group above it, and `private` at the top level and in "
        "personal namespaces.",
        examples=["private"],
    )


class GroupCreation(TargetCreation):
    """The creation of a group that does not exist. Nothing of it is ever changed afterwards."""

    misplaced: ClassVar[Mapping[str, str]] = {
        "import": "`import` belongs to Project; a group is created from an archive: `from_archive`"
    }

    from_archive: Text = Field(
        default="",
        description="An archive of a group, as `backup` writes it; its path from the folder of this file.",
        examples=["templates/team.tar.gz"],
    )


class ProjectCreation(TargetCreation):
    """The creation of a project that does not exist. Nothing of it is ever changed afterwards."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["import", "visibility"]}})
    misplaced: ClassVar[Mapping[str, str]] = {
        "from_archive": "`from_archive` belongs to Group; a project is imported from another service: `import`"
    }

    import_: ImportSource = Field(
        default=NO_SECTION,
        alias="import",
        title="Import",
        description="Where the project is imported from; an empty project is created if left out.",
        examples=[{"github": {"repo_id": 5, "token_env": "GITHUB_TOKEN"}}],
    )


METADATA = "The target of the document, and the profiles that are merged into it."


CREATE_DESCRIPTION = (
    "The group or project is created if it does not exist; without `create`, a missing one is a problem."
)
NO_CREATION = {"create": "`create` belongs to Group and Project: leave it out"}


def _given(raw_create: object) -> object:
    if raw_create is None or isinstance(raw_create, bool):
        wrong = "`create` has no value" if raw_create is None else "must be a mapping"
        raise ValueError(f"{wrong}: write `create: {{}}` to create it with all defaults, or leave it out")
    return raw_create


class AnyDocument(Envelope):
    """The fields of every document."""

    apiVersion: Literal["reconciler/v1"] = Field(  # noqa: N815 - the manifests' own spelling
        title="API version", description="The version of this format.", examples=[API_VERSION]
    )
    spec: dict[str, Any] = Field(
        default={},
        description="The sections. A section or field that is left out is not managed; an item that is taken out of a "
        "section is deleted if an apply has recorded it.",
    )


class InstanceDocument(AnyDocument):
    """Settings of the whole instance, which only its administrators may change."""

    misplaced: ClassVar[Mapping[str, str]] = NO_CREATION

    kind: Literal["Instance"]
    metadata: UserMetadata = Field(default=UserMetadata(), description=METADATA, examples=[{"profiles": ["baseline"]}])


class UserDocument(AnyDocument):
    """Settings of the user behind the token, wherever no group or project says otherwise."""

    misplaced: ClassVar[Mapping[str, str]] = NO_CREATION

    kind: Literal["User"]
    metadata: UserMetadata = Field(
        default=UserMetadata(), title="Metadata", description=METADATA, examples=[{"profiles": ["baseline"]}]
    )


class GroupDocument(AnyDocument):
    """Settings of one group. Its notification settings are those of the user behind the token."""

    kind: Literal["Group"]
    metadata: TargetMetadata = Field(title="Metadata", description=METADATA, examples=[{"path": "acme/payments"}])
    create: Annotated[GroupCreation, BeforeValidator(_given)] = Field(
        default=NO_SECTION,
        title="Create",
        description=CREATE_DESCRIPTION,
        examples=[{"name": "New Team", "visibility": "private"}],
    )


class ProjectDocument(AnyDocument):
    """Settings of one project. Its notification settings are those of the user behind the token."""

    kind: Literal["Project"]
    metadata: ProjectMetadata = Field(
        title="Metadata", description=METADATA, examples=[{"path": "acme/payments/api", "profiles": ["baseline"]}]
    )
    create: Annotated[ProjectCreation, BeforeValidator(_given)] = Field(
        default=NO_SECTION, title="Create", description=CREATE_DESCRIPTION, examples=[{"visibility": "private"}]
    )


class ProfileDocument(AnyDocument):
    """Settings that others share by naming this profile."""

    misplaced: ClassVar[Mapping[str, str]] = NO_CREATION

    kind: Literal["Profile"]
    metadata: ProfileMetadata = Field(title="Metadata", description=METADATA, examples=[{"name": "baseline"}])


class ProjectSetDocument(AnyDocument):
    """Settings of many projects."""

    misplaced: ClassVar[Mapping[str, str]] = NO_CREATION

    kind: Literal["ProjectSet"]
    metadata: SetMetadata = Field(
        title="Metadata", description=METADATA, examples=[{"name": "services", "priority": 10}]
    )
    select: Selection = Field(
        title="Select",
        description="The projects of the set: those of a group, or those listed.",
        examples=[{"group": "acme", "include": ["acme/services/**"]}],
    )


TargetDocument = InstanceDocument | UserDocument | GroupDocument | ProjectDocument

DOCUMENTS: Mapping[str, type[AnyDocument]] = {
    "Instance": InstanceDocument,
    "User": UserDocument,
    "Group": GroupDocument,
    "Project": ProjectDocument,
    "Profile": ProfileDocument,
    "ProjectSet": ProjectSetDocument,
}
LEVEL_OF: Mapping[str, Level] = {level.document_kind: level for level in LEVELS}
"""The level of the targets that documents of a kind are about."""
LEVELS_OF: Mapping[str, tuple[Level, ...]] = {
    **{kind: (level,) for kind, level in LEVEL_OF.items()},
    "Profile": LEVELS,
    "ProjectSet": (Level.PROJECT,),
}
"""The levels of the targets that the spec of a kind of document is for."""


def metadata_keys(model: type[AnyDocument]) -> Collection[str]:
    """Return the keys of the metadata of a kind of document."""
    metadata: Any = model.model_fields["metadata"].annotation
    return frozenset(metadata.model_fields)


def target_document(
    target: Target, raw_spec: Mapping[str, Any], profiles: Sequence[str] = (), labels: Mapping[str, str] = NO_LABELS
) -> dict[str, Any]:
    """Return the document of a target as a manifest writes it."""
    metadata: dict[str, Any] = {}
    if target.ref is not None:
        metadata["id" if isinstance(target.ref, int) else "path"] = target.ref
    metadata |= {"profiles": [*profiles]} if profiles else {}
    metadata |= {"labels": dict(labels)} if labels else {}
    envelope = {"apiVersion": API_VERSION, "kind": target.level.document_kind}
    return {**envelope, **({"metadata": metadata} if metadata else {}), "spec": raw_spec}


def profile_document(name: str, raw_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a profile as a manifest writes it."""
    return {"apiVersion": API_VERSION, "kind": "Profile", "metadata": {"name": name}, "spec": raw_spec}


def set_document(name: str, profiles: Sequence[str], select: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a set of projects as a manifest writes it; its profiles hold all settings."""
    metadata = {"name": name, "profiles": [*profiles]}
    return {"apiVersion": API_VERSION, "kind": "ProjectSet", "metadata": metadata, "select": {**select}}
