"""Container repository protection rules of a project, each known by its pattern (spec 4.18)."""

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from reconciler.model.direction import LEVEL, Directions
from reconciler.model.endpoints import Collection, Existing, Listing, Names, Requests, Writes
from reconciler.model.foreign_keys import ForeignKeys, above
from reconciler.model.kind import Archived, Kind, Needs, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import Item, LiveRecord, recognized
from reconciler.model.targets import Key, Level, Target

AccessLevel = Literal["maintainer", "owner", "admin"]

PATTERN = re.compile(r"[a-z0-9*]+(([._/]|__|-*)[a-z0-9*])*", re.IGNORECASE | re.ASCII)


class ProtectionRule(Item):
    """The roles that may push to and delete from the container repositories that match a pattern."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(
            ("repository_path_pattern", "container_path_pattern", "name"), "the pattern of a protection rule is its key"
        ),
        **above("push"),
        **above("delete"),
        "protection_rule_id": "the service sets this: leave it out",
    }

    directions: ClassVar[Directions] = {
        "minimum_access_level_for_push": LEVEL,
        "minimum_access_level_for_delete": LEVEL,
    }

    minimum_access_level_for_push: AccessLevel | None = Field(
        default=None,
        description="Lowest role that may push. Null removes this protection.",
        examples=["maintainer"],
    )
    minimum_access_level_for_delete: AccessLevel | None = Field(
        default=None,
        description="Lowest role that may delete. Null removes this protection.",
        examples=["admin"],
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A rule needs at least one level."""
        levels = {self.minimum_access_level_for_push, self.minimum_access_level_for_delete}
        if self.model_fields_set.issuperset(LEVEL_FIELDS) and levels == {None}:
            yield (
                "minimum_access_level_for_push",
                "a protection rule needs at least one of minimum_access_level_for_push and "
                "minimum_access_level_for_delete; to have no such rule, write null in its place",
            )

    def warnings(self) -> Iterator[tuple[str, str]]:
        """A creation needs at least one level."""
        if self.model_fields_set.isdisjoint(LEVEL_FIELDS):
            yield (
                "minimum_access_level_for_push",
                "a rule without a level cannot be created where it does not exist yet: set "
                "minimum_access_level_for_push or minimum_access_level_for_delete",
            )


LEVEL_FIELDS = ("minimum_access_level_for_push", "minimum_access_level_for_delete")


def pattern_error(pattern: Key) -> str | None:
    """Return the reason why no server accepts a pattern; None if one may."""
    fits = PATTERN.fullmatch(str(pattern))
    return None if fits else "a pattern is a container repository path in which `*` stands for any characters"


def pattern_warning(target: Target, pattern: Key) -> str | None:
    """Return the reason why GitLab would refuse a new rule with this pattern (deployed behaviour, section 6).

    The specification allows any pattern, and rules keep theirs when the project is renamed. The path of a project that
    is declared by its ID is unknown, and not checked.
    """
    pattern = str(pattern)
    prefix = target.ref.lower() if isinstance(target.ref, str) else ""
    if pattern != pattern.lower():
        return f"GitLab takes new patterns in lower case only: {pattern.lower()}"
    if not pattern.startswith(prefix):
        return f"GitLab takes new patterns only if they start with the project's path: {prefix}/{pattern.lstrip('/')}"
    return None


def decode(entry: Json) -> LiveRecord:
    """Read a rule: a level that is not set is null, empty or missing."""
    rule, unknown = recognized(ProtectionRule, {name: entry.get(name) or None for name in LEVEL_FIELDS})
    return LiveRecord(rule, unknown=unknown)


def update(old: Existing) -> Requests:
    """Return the request; it removes a level with an empty string."""
    return (old.send(old.new_name | {name: level or "" for name, level in old.fields.items()}),)


def losses(old: Existing) -> Iterator[str]:
    """Yield the losses, with a condition: another rule whose pattern matches the repositories still protects them."""
    for verb, field in zip(("pushing", "deleting"), LEVEL_FIELDS, strict=True):
        level = getattr(old.found.resource, field, None)
        if level is not None:
            yield f"{verb} no longer takes the role {level}, unless another rule says so"


RULES = Collection(
    "container_repository_protection_rules",
    ProtectionRule,
    title="protection rule",
    suffix="registry/protection/repository/rules",
    key="repository_path_pattern",
    decode=decode,
    listing=Listing(has_pages=False),
    names=Names(error=pattern_error, warning=pattern_warning, lowers_placeholders=True),
    writes=Writes(update=update, method="PATCH"),
    losses=losses,
)

KIND = Kind(
    name="container_repository_protection_rules",
    foreign_names=("project_container_repository_protection", "container_registry_protection_rules"),
    summary="Which roles may push to and delete from container repositories, by `repository_path_pattern`.",
    spec="4.18",
    models={Level.PROJECT: dict[str, ProtectionRule | None]},
    parts=(RULES,),
    order=3,
    protects=True,
    needs=Needs(
        roles={Level.PROJECT: Role.MAINTAINER},
        archived=Archived.CLOSED,
        switches={"container_registry_access_level": "the container registry"},
    ),
    pages={Level.PROJECT: "{target}/-/settings/packages_and_registries#container-registry-settings"},
)
