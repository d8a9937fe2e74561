"""Protection rules for the tags of container images, each known by its pattern."""

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from reconciler.model.direction import LEVEL, Directions
from reconciler.model.endpoints import Collection, Existing, Listing, Names, Writes
from reconciler.model.foreign_keys import ForeignKeys
from reconciler.model.kind import Archived, Kind, Needs, Role
from reconciler.model.re2 import re2_error
from reconciler.model.resource import Item
from reconciler.model.targets import Key, Level, Target

AccessLevel = Literal["maintainer", "owner", "admin"]

LEVEL_FIELDS = ("minimum_access_level_for_push", "minimum_access_level_for_delete")
MAX_PATTERN_LENGTH = 100
MAX_RULES = 5
"""Rules that a project may have, with those that make tags immutable, which no list shows."""

HIDDEN = "rules that make tags immutable count too, and no list shows them: see the section's page, or declare fewer"

REPEATED_LETTER = re.compile(r"[A-Za-z0-9/_-]\*")
"""What people write who think of a glob."""


class TagProtectionRule(Item):
    """The roles that may push and delete the image tags that match a pattern."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(("tag_name_pattern", "tag_name_regex", "name"), "the pattern of a protection rule is its key"),
        "immutable": "rules that make tags immutable are made by hand: only roles are managed",
        "protection_rule_id": "the service sets this: leave it out",
    }

    directions: ClassVar[Directions] = {
        "minimum_access_level_for_push": LEVEL,
        "minimum_access_level_for_delete": LEVEL,
    }

    minimum_access_level_for_push: AccessLevel = Field(
        default="maintainer",
        description="Lowest role that may push. A creation needs it.",
        examples=["maintainer"],
    )
    minimum_access_level_for_delete: AccessLevel = Field(
        default="maintainer",
        description="Lowest role that may delete. A creation needs it.",
        examples=["admin"],
    )


def pattern_error(pattern: Key) -> str | None:
    """Return the reason why the service refuses a pattern; None if it does not."""
    pattern = str(pattern)
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"a pattern has at most {MAX_PATTERN_LENGTH} characters; this one has {len(pattern)}"
    if pattern[0] in "*+?":
        return f"a pattern is a regular expression (RE2), which cannot begin with `{pattern[0]}`; `.*` matches any tag"
    error = re2_error(pattern)
    return error and f"a pattern is a regular expression (RE2): {error}"


def pattern_warning(_target: Target, pattern: Key) -> str | None:
    """Return a warning if a pattern looks like a glob, which has another meaning as a regular expression."""
    repeated = REPEATED_LETTER.search(str(pattern))
    if repeated is None:
        return None
    letter = repeated[0][0]
    return (
        f"a pattern is a regular expression (RE2): `{repeated[0]}` is any number of `{letter}`; write `{letter}.*` for "
        f"all that follows a `{letter}`"
    )


def losses(old: Existing) -> Iterator[str]:
    """Yield the losses, with a condition: another rule whose pattern matches the same tags still protects them."""
    for verb, field in zip(("pushing", "deleting"), LEVEL_FIELDS, strict=True):
        level = getattr(old.found.resource, field)
        yield f"{verb} no longer takes the role {level}, unless another rule says so"


RULES = Collection(
    "container_tag_protection_rules",
    TagProtectionRule,
    title="tag protection rule",
    suffix="registry/protection/tag/rules",
    key="tag_name_pattern",
    # No list shows immutable rules, which count for the limit too (18.9).
    listing=Listing(has_pages=False, hides=HIDDEN),
    names=Names(error=pattern_error, warning=pattern_warning),
    writes=Writes(method="PATCH", required=LEVEL_FIELDS, most=MAX_RULES),
    losses=losses,
)

KIND = Kind(
    name="container_tag_protection_rules",
    foreign_names=("project_container_tag_protection", "container_registry_tag_protection_rules"),
    summary="Which roles may push and delete image tags, by `tag_name_pattern`, a regular expression (RE2).",
    models={Level.PROJECT: dict[str, TagProtectionRule | None]},
    parts=(RULES,),
    protects=True,
    needs=Needs(
        roles={Level.PROJECT: Role.MAINTAINER},
        archived=Archived.CLOSED,
        switches={"container_registry_access_level": "the container registry"},
    ),
    pages={Level.PROJECT: "{target}/-/settings/packages_and_registries#container-registry-settings"},
)
