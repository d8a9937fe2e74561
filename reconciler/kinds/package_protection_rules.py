"""Protection rules for the packages of a project, each known by its type and pattern, as `TYPE:PATTERN`."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, get_args

from pydantic import Field

from reconciler.model.direction import LEVEL, Directions
from reconciler.model.endpoints import Collection, Existing, Listing, Names, New, Requests, Writes
from reconciler.model.foreign_keys import ForeignKeys, above
from reconciler.model.kind import Archived, Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import Item, LiveRecord, recognized
from reconciler.model.targets import Key, Level

Type = Literal["conan", "generic", "helm", "maven", "npm", "nuget", "pypi"]
TYPES = get_args(Type)
PATTERN, TYPE = "package_name_pattern", "package_type"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"

NAMES = {
    "npm": re.compile(r"(@?[A-Za-z0-9_.*-]+/)?[A-Za-z0-9_.*-]+"),
    "pypi": re.compile(r"[A-Za-z0-9_.*-]+"),
}
"""The patterns that the service takes, by type; any others for the other types."""

NO_LEVEL = "a protection rule needs at least one of minimum_access_level_for_push and minimum_access_level_for_delete"


class PackageProtectionRule(Item):
    """The roles that may push and delete the packages that match a pattern."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(
            ("package_name_pattern", "package_type", "name"), "type and pattern are the key of a rule: `npm:@acme/*`"
        ),
        **above("push"),
        "package_protection_rule_id": "the service sets this: leave it out",
    }

    directions: ClassVar[Directions] = {
        "minimum_access_level_for_push": LEVEL,
        "minimum_access_level_for_delete": LEVEL,
    }

    minimum_access_level_for_push: Literal["maintainer", "owner", "admin"] | None = Field(
        default=None,
        description="Lowest role that may push. Null removes this protection.",
        examples=["maintainer"],
    )
    minimum_access_level_for_delete: Literal["owner", "admin"] | None = Field(
        default=None,
        description="Lowest role that may delete. GitLab keeps it only where its feature flag for it is on. "
        "A level that is shown as null is not compared.",
        examples=["admin"],
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A rule needs at least one level."""
        levels = {self.minimum_access_level_for_push, self.minimum_access_level_for_delete}
        if self.model_fields_set.issuperset((PUSH, DELETE)) and levels == {None}:
            yield PUSH, f"{NO_LEVEL}; to have no such rule, write null in its place"

    def warnings(self) -> Iterator[tuple[str, str]]:
        """A creation needs a level, and the one to delete may be dropped."""
        if self.model_fields_set.isdisjoint((PUSH, DELETE)):
            yield PUSH, f"a rule without a level cannot be created where it does not exist yet: set {PUSH}"
        elif self.minimum_access_level_for_delete is not None:
            yield DELETE, "GitLab drops this level, unless its feature flag packages_protected_packages_delete is on"


def name_of(fields: Mapping[str, Json]) -> str:
    """Return the name of a rule."""
    return f"{fields[TYPE]}:{fields[PATTERN]}"


def key_of(name: Key) -> dict[str, Json]:
    """Return the fields that the service keeps for a rule's name."""
    sort, _, pattern = str(name).partition(":")
    return {PATTERN: pattern, TYPE: sort}


def name_error(name: Key) -> str | None:
    """Return the reason why the service refuses a name; None if it does not."""
    sort, colon, pattern = str(name).partition(":")
    if not colon or sort not in TYPES:
        return f"a rule is named by type and pattern, such as `npm:@acme/*`; the types are {', '.join(TYPES)}"
    if not pattern.strip():
        return f"after `{sort}:` comes a pattern, in which `*` stands for any characters"
    if sort in NAMES and not NAMES[sort].fullmatch(pattern):
        return f"a pattern of type {sort} is the name of such a package, in which `*` stands for any characters"
    return None


def decode(entry: Json) -> LiveRecord:
    """Read a rule. A level to delete that is shown as null may be hidden: it is compared with nothing."""
    shown = {PUSH: entry.get(PUSH) or None}
    hidden = entry.get(DELETE) is None
    rule, unknown = recognized(PackageProtectionRule, shown if hidden else {**shown, DELETE: entry[DELETE]})
    return LiveRecord(rule, (name_of(entry),), unknown=unknown, unshown={DELETE: PUSH} if hidden else {})


def create(new: New) -> Requests:
    """Return the request, which has pattern and type in place of the name."""
    return (new.post(key_of(new.name) | new.fields),)


def update(old: Existing) -> Requests:
    """Return the request, which changes pattern and type in place."""
    return (old.send((key_of(old.name) if old.new_name else {}) | old.fields),)


def losses(old: Existing) -> Iterator[str]:
    """Yield the losses, with a condition: another rule whose pattern matches the same packages still protects them."""
    for verb, field in (("pushing", PUSH), ("deleting", DELETE)):
        level = getattr(old.found.resource, field)
        if level is not None:
            yield f"{verb} no longer takes the role {level}, unless another rule says so"


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the rules as a state of the sandbox holds them: with pattern and type."""
    rules = (
        {name: value for name, value in rule.items() if name != RULES.key} | key_of(rule[RULES.key])
        for rule in read.items(RULES)
    )
    return {RULES.name: [rule for rule in rules if rule.get(PUSH) or rule.get(DELETE)]}


RULES = Collection(
    "package_protection_rules",
    PackageProtectionRule,
    title="package protection rule",
    suffix="packages/protection/rules",
    key="name",
    decode=decode,
    # The list has neither pages nor an order: a changed rule moves to its end (18.9).
    listing=Listing(has_pages=False),
    names=Names(error=name_error),
    writes=Writes(create=create, update=update, method="PATCH"),
    losses=losses,
)

KIND = Kind(
    name="package_protection_rules",
    foreign_names=("project_package_protection_rule", "packages_protection_rules"),
    summary="Which roles may push and delete packages, by type and pattern, such as `npm:@acme/*`.",
    models={Level.PROJECT: dict[str, PackageProtectionRule | None]},
    parts=(RULES,),
    to_sandbox=to_sandbox,
    protects=True,
    needs=Needs(
        roles={Level.PROJECT: Role.MAINTAINER},
        archived=Archived.CLOSED,
        switches={"package_registry_access_level": "the package registry"},
    ),
    pages={Level.PROJECT: "{target}/-/settings/packages_and_registries"},
)
