"""Container repository protection rules of a project, each known by its pattern (spec 4.18)."""

import re
from collections.abc import Iterator, Mapping
from operator import index
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from reconciler.model.endpoints import Collection
from reconciler.model.kind import Archived, Kind, Needs, Rehearsed, Role
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import Found, Item, Resource, name_shown, number_shown, recognized
from reconciler.model.targets import Key, Level, Target

AccessLevel = Literal["maintainer", "owner", "admin"]

PATTERN = re.compile(r"[a-z0-9*]+(([._/]|__|-*)[a-z0-9*])*", re.IGNORECASE | re.ASCII)


class ProtectionRule(Item):
    """Who may push to and delete from the container repositories a pattern matches."""

    minimum_access_level_for_push: AccessLevel | None = Field(
        default=None,
        description="The least role that may push. Null lifts this protection.",
        examples=["maintainer"],
    )
    minimum_access_level_for_delete: AccessLevel | None = Field(
        default=None,
        description="The least role that may delete. Null lifts this protection.",
        examples=["admin"],
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A rule protects against something."""
        levels = {self.minimum_access_level_for_push, self.minimum_access_level_for_delete}
        if self.model_fields_set.issuperset(LEVEL_FIELDS) and levels == {None}:
            yield (
                "minimum_access_level_for_push",
                "a protection rule needs at least one of minimum_access_level_for_push and "
                "minimum_access_level_for_delete; to have no such rule, write null in its place",
            )

    def warnings(self) -> Iterator[tuple[str, str]]:
        """A creation takes at least one level."""
        if self.model_fields_set.isdisjoint(LEVEL_FIELDS):
            yield (
                "minimum_access_level_for_push",
                "a rule without a level cannot be created where it does not exist yet: set "
                "minimum_access_level_for_push or minimum_access_level_for_delete",
            )


LEVEL_FIELDS = ("minimum_access_level_for_push", "minimum_access_level_for_delete")


def fault_of_pattern(_scope: Target, pattern: Key) -> str | None:
    """Say why no server takes this pattern."""
    pattern = str(pattern)
    if len(pattern) > 255:
        return f"a pattern has at most 255 characters; this one has {len(pattern)}"
    if not PATTERN.fullmatch(pattern):
        return "a pattern is a container repository path in which `*` stands for any characters"
    return None


def doubt_of_pattern(target: Target, pattern: Key) -> str | None:
    """Say why the deployed service would refuse a new rule of this pattern (section 6; unchecked prefix for an ID).

    Rules of before a project was renamed keep their patterns, and the specification allows any.
    """
    pattern = str(pattern)
    prefix = target.ref.lower() if isinstance(target.ref, str) else ""
    if pattern != pattern.lower():
        return f"GitLab takes new patterns in lower case only: {pattern.lower()}"
    if not pattern.startswith(prefix):
        return f"GitLab takes new patterns only if they start with the project's path: {prefix}/{pattern.lstrip('/')}"
    return None


def decode(_scope: Target, entry: Json) -> Found:
    """Read one rule; an unset level is null, or empty, or left out."""
    rule, unknown = recognized(ProtectionRule, {name: entry.get(name) or None for name in LEVEL_FIELDS})
    return Found(
        rule,
        names=(name_shown(entry["repository_path_pattern"]),),
        id=index(entry["id"]),
        owner_id=number_shown(entry.get("project_id")),
        unknown=unknown,
    )


def create(path: str, pattern: Key, wanted: Resource, _target_id: int | None) -> tuple[Request, ...]:
    """A creation takes no unset level, neither null nor empty."""
    levels = {name: getattr(wanted, name) for name in LEVEL_FIELDS if getattr(wanted, name) is not None}
    return (Request("POST", path, {"repository_path_pattern": pattern} | levels),)


def update(path: str, pattern: Key, wanted: Resource, found: Found) -> tuple[Request, ...]:
    """An update unsets a level with an empty string."""
    changed: dict[str, Json] = {} if pattern in found.names else {"repository_path_pattern": pattern}
    changed |= {name: getattr(wanted, name) or "" for name in LEVEL_FIELDS if name in wanted.model_fields_set}
    return (Request("PATCH", f"{path}/{found.id}", changed),)


RULES = Collection(
    name="container_repository_protection_rules",
    title="protection rule",
    suffix="registry/protection/repository/rules",
    model=ProtectionRule,
    decode=decode,
    create=create,
    update=update,
    key_error=fault_of_pattern,
    key_warning=doubt_of_pattern,
    lowers_placeholders=True,
)


def rehearsal(read: Rehearsed) -> Mapping[str, Json]:
    """The rules, by their patterns."""
    name = "container_repository_protection_rules"
    return {name: read.items(name, "repository_path_pattern")}


KIND = Kind(
    name="container_repository_protection_rules",
    summary="Which roles may push to and delete from container repositories, by `repository_path_pattern`.",
    spec="4.18",
    models=MappingProxyType({Level.PROJECT: dict[str, ProtectionRule | None]}),
    parts=(RULES,),
    split=lambda section, _prune: {"container_repository_protection_rules": section},
    order=3,
    rehearsal=rehearsal,
    needs=Needs(
        roles=MappingProxyType({Level.PROJECT: Role.MAINTAINER}),
        archived=Archived.CLOSED,
        switches=MappingProxyType({"container_registry_access_level": "the container registry"}),
    ),
)
