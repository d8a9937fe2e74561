"""Targets that do not exist yet: the `Creation` that a manifest declares, and the request for it. Pure.

In a plan a target's creation is a `Create` with the address of the target itself, in the section without a name, which
comes first. Its request holds no secret and no file, but placeholders for them: see `VARIABLE` and `FILE`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter

from reconciler.model.diff import Fields
from reconciler.model.item import Create
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Level, Target

Visibility = Literal["private", "internal", "public"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
"""From the narrowest to the widest."""

IMPORT_ROUTES: Mapping[str, str] = {"github": "import/github", "bitbucket_server": "import/bitbucket_server"}
"""The path of the import request for each source of a project in manifests."""

PREFIXED: Mapping[str, tuple[str, ...]] = {"bitbucket_server": ("url", "username", "project", "repo")}
"""By source, the fields whose names in requests begin with the source, such as `bitbucket_server_url`."""

ID_OF = "id_of"
"""`{"id_of": "group acme/new-team"}` in a body stands for the ID of a target that this run creates."""

VARIABLE = "variable"
"""`{"variable": "GITHUB_TOKEN"}` in a body stands for the value of an environment variable: a secret."""

FILE = "file"
"""`{"file": "templates/team.tar.gz"}` in a body stands for the content of a file, sent as a part of its own."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive of a group.

    Attributes:
        file: its path, from the working directory.
        digest: SHA-256, hex.
    """

    file: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Import:
    """The source of a project's import.

    Attributes:
        source: a key of `SOURCES`.
        token_env: the environment variable with the token of that service.
        fields: the other fields, as manifests name them.
    """

    source: str
    token_env: str
    fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Creation:
    """The group or project that a manifest creates if it does not exist.

    Attributes:
        name: the display name; by default, the last part of the path.
        visibility: as declared; None for that of the namespace.
        archive: the archive from which a group is created.
        source: the source from which a project is imported.
        origin: the place of the document, as path:line.
    """

    name: str
    visibility: Visibility | None = None
    archive: Archive | None = None
    source: Import | None = None
    origin: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Namespace:
    """The group or namespace that a target is created in.

    Attributes:
        path: full path; empty at the top level.
        id: numeric ID; None at the top level, and if this run creates it.
        visibility: the default for targets that are created in it; None if unknown.
    """

    path: str = ""
    id: int | None = None
    visibility: Visibility | None = "private"


TOP_LEVEL = Namespace()


@dataclass(frozen=True, slots=True)
class ToCreate:
    """A target that does not exist and will be created.

    Attributes:
        creation: the declaration.
        namespace: the group or namespace in which it is created.
    """

    creation: Creation
    namespace: Namespace


def creation_request(target: Target, after: Fields, namespace: Namespace) -> Request:
    """Return the request that creates a target (spec 4.1, 4.14; deployed behaviour, sections f and g).

    Args:
        target: the target, by path.
        after: the fields of its creation; see `creation_of`.
        namespace: the group or namespace in which it is created.
    """
    slug = str(target.ref).rpartition("/")[2]
    if "import" in after:
        ((source, fields),) = after["import"].items()
        prefixed = PREFIXED.get(source, ())
        given = {f"{source}_{name}" if name in prefixed else name: value for name, value in fields.items()}
        variable = given.pop("token_env")
        body = {**given, "personal_access_token": {VARIABLE: variable}}
        return Request("POST", IMPORT_ROUTES[source], {**body, "new_name": slug, "target_namespace": namespace.path})
    # imports take the path of the namespace, all other creations its ID
    where = namespace.id if namespace.id is not None or not namespace.path else {ID_OF: f"group {namespace.path}"}
    parent = "parent_id" if target.level is Level.GROUP else "namespace_id"
    body = {"name": after["name"], "path": slug, **({} if where is None else {parent: where})}
    if "from_archive" in after:
        return Request("POST", "groups/import", {**body, FILE: {FILE: after["from_archive"]}})
    return Request("POST", f"{target.level}s", {**body, "visibility": after["visibility"]})


def creation_of(target: Target, creation: Creation, namespace: Namespace) -> Create:
    """Return the change that creates a target."""
    after: dict[str, Json] = {"name": creation.name}
    if creation.source is not None:
        source = {**creation.source.fields, "token_env": creation.source.token_env}
        after["import"] = {creation.source.source: source}
    else:
        visibility = creation.visibility or namespace.visibility
        after |= {"visibility": visibility} if visibility and (creation.visibility or not creation.archive) else {}
    if creation.archive is not None:
        after |= {"from_archive": str(creation.archive.file), "sha256": creation.archive.digest}
    request = creation_request(target, after, namespace)
    return Create(target.address, after, (request,), origin=creation.origin)


def creation_in(after: Fields) -> Creation:
    """Return the creation of which `creation_of` makes these fields; for other fields, any creation.

    Raises:
        ValueError: a value is not of its type.
    """
    content: dict[str, Json] = {"name": after.get("name"), "visibility": after.get("visibility")}
    if "from_archive" in after:
        content["archive"] = {"file": after["from_archive"], "digest": after.get("sha256")}
    for source, fields in _sources().validate_python(after.get("import", {})).items():
        given = {name: value for name, value in fields.items() if name != "token_env"}
        content["source"] = {"source": source, "token_env": fields.get("token_env"), "fields": given}
    return _creations().validate_python(content)


@cache
def _creations() -> TypeAdapter[Creation]:
    return TypeAdapter(Creation)


@cache
def _sources() -> TypeAdapter[dict[str, dict[str, Json]]]:
    return TypeAdapter(dict[str, dict[str, Json]])
