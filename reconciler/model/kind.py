"""A `Kind`: one section of the manifests, as data; and a type of field that kinds share.

The engine knows no kind by name: it receives a mapping of kinds, which `kinds` collects.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum, StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator

from reconciler.model.audit import Trace
from reconciler.model.direction import Strictness
from reconciler.model.endpoints import Collection, Singleton, as_json
from reconciler.model.foreign_keys import Alias, unknown_key
from reconciler.model.in_effect import InEffect
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Wanted
from reconciler.model.targets import Key, Level
from reconciler.model.wording import KNOWN_ARE, listed

Part = Singleton | Collection

ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _as_day(raw: object) -> object:
    if not (isinstance(raw, str) and ISO_DAY.fullmatch(raw)):
        return raw
    try:
        return date.fromisoformat(raw)
    except ValueError as error:
        raise ValueError(f"not a day of the calendar: {raw}") from error


GivenDay = Annotated[date, BeforeValidator(_as_day, json_schema_input_type=str)]
"""A plain date as YYYY-MM-DD."""

Day = Annotated[date | None, BeforeValidator(_as_day, json_schema_input_type=str | None)]
"""A plain date as YYYY-MM-DD; YAML reads one, and JSON has a text."""


class Role(IntEnum):
    """Roles of members, with the numbers that the service uses for them (`access_level`)."""

    GUEST = 10
    PLANNER = 15
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50


class Archived(StrEnum):
    """Access to a section of an archived project."""

    OPEN = "readable and writable"
    READ_ONLY = "readable only"
    CLOSED = "neither readable nor writable"


@dataclass(frozen=True, slots=True)
class Barrier:
    """A rule of the service that may refuse a change although the role suffices, and that no response shows.

    Attributes:
        reason: of the refusal.
        remedy: the fix.
        is_whole: whether it refuses all changes of the section, so that no further one need be tried.
    """

    reason: str
    remedy: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of the service for reading and writing a section (deployed behaviour, sections 1 to 6).

    They explain refusals of the service, also expected ones; no section is refused because of them.

    Attributes:
        roles: by level, the lowest role that may write; without the level, everybody who sees the target may.
        readers: by level, the lowest role that may read, if writing needs a higher one.
        archived: access in an archived project.
        switches: features of which the project needs at least one: the key of its record, and the feature in words.
        licensed: whether only the paid editions have the section.
        top_level: whether among groups only the top-level ones have the section.
        barrier: a further rule that may forbid a change; None without one.
    """

    roles: Mapping[Level, Role] = field(default_factory=dict)
    readers: Mapping[Level, Role] = field(default_factory=dict)
    archived: Archived = Archived.OPEN
    switches: Mapping[str, str] = field(default_factory=dict)
    licensed: bool = False
    top_level: bool = False
    barrier: Barrier | None = None


@dataclass(frozen=True, slots=True)
class ReadSection:
    """The live objects of one section of one target, for a state of the sandbox.

    Attributes:
        level: of the target.
        username: of the user behind the token, who owns in the state each object that is shown completely.
        parts: by part, the live objects; unreadable parts are absent.
    """

    level: Level
    username: str
    parts: Mapping[str, tuple[LiveRecord, ...]]

    def fields(self, part_name: str) -> dict[str, Json]:
        """Return the fields of a settings record; none if it could not be read."""
        return next((as_json(record.resource) for record in self.parts.get(part_name, ())), {})

    def items(self, part: Collection) -> list[dict[str, Json]]:
        """Return the objects of a part, each with its ID, its name under its key, and age and owner of a secret."""
        return [
            {
                **({part.id_field: record.id} if part.id_field else {}),
                part.key: record.names[0],
                **_sandbox_fields(part, record),
            }
            | ({"created_at": record.created_at.isoformat()} if record.created_at else {})
            | ({"owner": self.username if record.ours else None} if part.secret_field else {})
            for record in self.parts.get(part.name, ())
        ]

    def numbers(self, part_name: str) -> list[int]:
        """Return the IDs of the objects of a part."""
        return sorted({record.id for record in self.parts.get(part_name, ()) if record.id is not None})


def _sandbox_fields(part: Collection, record: LiveRecord) -> dict[str, Json]:
    """Return the fields of an object, with the entries of its lists as the service stores them."""
    fields = as_json(record.resource)
    for name, key in part.relations.entries.items():
        fields.pop(name, None)
        rows = record.entries.get(name, ())
        fields[key] = [entry for row in rows if (entry := row.sandbox_entry) is not None]
    return fields


@dataclass(frozen=True, slots=True)
class Kind:
    """One section of the manifests.

    Attributes:
        name: the section's key in manifests.
        summary: one sentence for the documentation and the schemas.
        models: by level, the type that pydantic checks the section's value against: a `Resource`, or a `dict` of
            `Item | None`. Its keys are the levels at which the section may be declared.
        parts: the section's endpoints, in the order in which they are read and applied. A single part has the section's
            name.
        spec: the section of the service's specification, if any.
        order: the position of the section in a plan; sections without one come last, in alphabetical order.
        split: divides a checked section value into the declarations of its parts, given whether the section is pruned;
            only declared parts appear. None if the section is its only part.
        inherits: takes settings of a group, by field, and returns those that they lock in the projects below it, with
            the locked values; None if a group locks nothing. After a change to a group, the section of the projects
            below it is read and planned again.
        join: returns the section value for the names of its objects, by part: the reverse of `split`, for exports; None
            if the section has each part under the part's own name.
        remainder: returns a lower layer's section without the values that an upper layer's section replaces, both as
            written.
        to_sandbox: returns the section of a sandbox state from live objects; None if the state has each part under the
            part's own name.
        needs: the requirements of the service for reading and writing the section.
        pages: by level, the page of the service's web interface that shows the section, with `{target}` for the page of
            the target; without it, the page is the same for all.
        arrives_in: the list of a group, with all below it, that an archive of a group fills: as long as the list grows,
            the archive is still arriving. Empty if an archive has nothing of the section.
        foreign_names: the names of the section in the service's API and in other tools.
        trace: returns the changes to the section in an audit event; None if the service records none.
        in_repository: whether the section is about the repository: the first push into an empty one may create objects
            of it.
        protects: whether its objects protect something. Manifests are generated with all their fields, since a field
            that is left out is not watched.
        branch_fields: the fields that name branches, in which `{default_branch}` is replaced by the default branch of
            the project; None if that is so in the names of the objects too, and in all their fields.
        in_effect: the combination of its rules, if several may match one name; None if each applies by itself.
    """

    name: str
    summary: str
    models: Mapping[Level, Any]
    parts: tuple[Part, ...]
    spec: str = ""
    order: int = 100
    split: Callable[[Any, bool], Mapping[str, Wanted]] | None = None
    inherits: Callable[[Mapping[str, Json]], Mapping[str, Json]] | None = None
    join: Callable[[Mapping[str, list[Key]]], Mapping[str, Any]] | None = None
    remainder: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] = lambda lower, _upper: lower
    to_sandbox: Callable[[ReadSection], Mapping[str, Json]] | None = None
    needs: Needs = Needs()
    pages: Mapping[Level, str] = field(default_factory=dict)
    arrives_in: str = ""
    foreign_names: tuple[str, ...] = ()
    trace: Trace | None = None
    in_repository: bool = False
    protects: bool = False
    branch_fields: frozenset[str] | None = frozenset()
    in_effect: InEffect | None = None

    def part(self, name: str) -> Part:
        """Return the part with a name."""
        return next(part for part in self.parts if part.name == name)

    @property
    def has_directions(self) -> bool:
        """Whether a change of the section may loosen or tighten protection."""
        return self.protects or any(part.model.admits or part.model.directions for part in self.parts)

    def presence(self, part: Part) -> Strictness:
        """Return whether protection is stricter with an object of a part than without it."""
        if part.model.admits:
            return Strictness.LOOSER
        return Strictness.STRICTER if self.protects else Strictness.EQUAL

    def wanted(self, section_value: Any, *, prune: bool) -> Mapping[str, Wanted]:
        """Return the declarations of each part in a checked section value."""
        return self.split(section_value, prune) if self.split else {self.parts[0].name: section_value}

    def sandbox_section(self, read: ReadSection) -> Mapping[str, Json]:
        """Return the live section in the form of a state of the sandbox."""
        if self.to_sandbox:
            return self.to_sandbox(read)
        return {
            part.name: read.items(part) if isinstance(part, Collection) else read.fields(part.name)
            for part in self.parts
            if part.name in read.parts
        }

    @property
    def prunable(self) -> bool:
        """Whether `prune` may name this section: it has objects, and they can be deleted."""
        return any(isinstance(part, Collection) and part.deletion.prunable for part in self.parts)


Kinds = Mapping[str, Kind]
"""All kinds by name, in the order of their sections in a plan."""

FOREIGN_SECTIONS = frozenset(
    {"badges", "deploy_keys", "files", "group_badges", "group_hooks", "group_labels", "group_ldap_links"}
    | {"group_members", "group_push_rules", "group_saml_links", "group_service_account", "group_settings"}
    | {"group_variables", "hooks", "project_service_account"}
    | {"integrations", "labels", "members", "project", "project_push_rules", "project_security_settings"}
    | {"project_settings", "protected_environments", "push_rules", "remote_mirrors", "resource_groups", "schedules"}
    | {"variables", "webhooks"}
)
"""Sections of other tools that have no counterpart here: a section that is spelled alike is something else."""


def unknown_kind(name: str, kinds: Iterable[Kind], known: Iterable[str]) -> str:
    """Return the message about a section that does not exist: another tool may have a section of this name."""
    foreign = {word: Alias(kind.name) for kind in kinds for word in kind.foreign_names}
    names = list(known)
    name = name.removeprefix("gitlab_")
    if name in FOREIGN_SECTIONS and name not in foreign:
        return f"unknown section `{name}`; {KNOWN_ARE}{listed(names)}"
    return unknown_key("section", name, None, names, foreign)
