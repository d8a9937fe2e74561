"""A kind of settings, as data, and a type of field that kinds share.

The engine knows no kind by name: it receives a mapping of kinds.
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
    """A rule of the service that may refuse a change in spite of the role, and that no response shows.

    Attributes:
        reason: why a change is refused.
        remedy: the fix.
        is_whole: whether it holds for all of the section, so that no further change of it need be tried.
    """

    reason: str
    remedy: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of the service for reading and writing a section (deployed behaviour, sections 1 to 6).

    They explain what the service refuses or would refuse; nothing is refused because of them.

    Attributes:
        roles: by level, the lowest role that may write; without the level, everybody who sees the target may.
        readers: by level, the lowest role that may read, where writing needs a higher one.
        archived: access in an archived project.
        switches: features of which the project needs at least one: the key of its record, and the feature in words.
        licensed: whether only the paid editions have the section.
        top_level: whether among groups only the top-level ones have the section.
        barrier: what else may forbid a change; None where nothing does.
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
        username: of the user behind the token, who owns in the state what that user can read whole.
        parts: by part, what was read; unreadable parts are absent.
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
    """Return the fields of an object, with the entries of its lists as the service keeps them."""
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
        parts: the section's endpoints, in the order in which they are read and applied. Where there is only one, it has
            the section's name.
        spec: the section of the service's specification, if any.
        order: where the section stands in a plan; all that do not say so stand at the end, in alphabetical order.
        split: takes a checked section value, and whether the section is pruned, apart into what is wanted of each
            part, of which only the declared ones appear; None where the section is its only part.
        inherits: takes settings of a group, by field, and returns those that they lock in the projects below it, with
            the values there; None where a group locks nothing. After a change to a group, the section of the projects
            below it is read and planned again.
        join: the section value of the names of its objects, by part: the way back from `split`, for exports; None where
            each part stands under its own name.
        remainder: returns what remains of a lower layer's section under an upper layer's, as both are written.
        to_sandbox: returns the section of a sandbox state from live objects; None where each part has its own name
            there.
        needs: what the service asks of whoever reads and writes it.
        pages: by level, the page of the service's web interface that shows the section, with `{target}` for the page
            of the target; without it, the page is the same for all.
        arrives_in: the list of a group, with all below it, that an archive of a group fills: as long as it grows, the
            archive is still arriving. Empty where an archive holds nothing of the section.
        foreign_names: what the service's API and other tools call the section.
        trace: reads from an audit event what it did to the section; None where the service notes nothing of it.
        in_repository: whether it is about what lies in the repository: the first push into an empty one may make
            objects of it.
        protects: whether its objects protect something. Whatever writes manifests writes them whole, for a field that
            is left out is not watched.
        branch_fields: the fields that name branches, in which `{default_branch}` stands for the default branch of the
            project; None where the names of the objects do so too, and all their fields.
        in_effect: how its rules hold together, where several may match one name; None where each holds by itself.
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
        """Return the part of that name."""
        return next(part for part in self.parts if part.name == name)

    @property
    def has_directions(self) -> bool:
        """Whether a change of it may loosen or tighten protection."""
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
        """Whether `prune` may name this section: it has objects, which can be deleted."""
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
    """Return the message about a section that does not exist: other tools may have one of this name."""
    foreign = {word: Alias(kind.name) for kind in kinds for word in kind.foreign_names}
    names = list(known)
    name = name.removeprefix("gitlab_")
    if name in FOREIGN_SECTIONS and name not in foreign:
        return f"unknown section `{name}`; {KNOWN_ARE}{listed(names)}"
    return unknown_key("section", name, None, names, foreign)
