"""Protected branches of a project or a top-level group, each known by its name, in which `*` stands for anything."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from reconciler.model.endpoints import Collection, Existing, Listing, Names, Relations, Writes
from reconciler.model.entries import Entries, Subject
from reconciler.model.kind import Archived, Kind, Needs, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import Holder, Item
from reconciler.model.targets import Level, Target

WHO = "roles (`developer`, `maintainer`, `admin`), users (`{user: ada}`), invited groups (`{group: acme/leads}`)"
EMPTY = "an empty list would not mean nobody, but any Maintainer: leave the field out, or name somebody"
NO_KEYS = "a deploy key can push and do nothing else: declare it in `allowed_to_push`"
ROLES_ONLY = "the rule of a group holds roles only: developer, maintainer or admin"


class ProtectedBranch(Item):
    """The rule for all branches of a project that a name matches."""

    misplaced: ClassVar[Mapping[str, str]] = {
        "name": "the name of a protected branch is its key",
        "push_access_level": "declare the role in `allowed_to_push`, such as [maintainer]",
        "merge_access_level": "declare the role in `allowed_to_merge`, such as [maintainer]",
    }

    allowed_to_push: Entries = Field(
        default=("maintainer",),
        description=f"Who may push: {WHO} and deploy keys (`{{deploy_key: release}}`). An empty list: nobody.",
        examples=[["maintainer", {"deploy_key": "release"}]],
    )
    allowed_to_merge: Entries = Field(
        default=("maintainer",),
        description=f"Who may merge: {WHO}. An empty list: nobody.",
        examples=[["developer", {"group": "acme/leads"}]],
    )
    allowed_to_unprotect: Entries = Field(
        default=("maintainer",),
        description=f"Who may change and delete the rule: {WHO}. Only those: not the owner, if no entry names them.",
        examples=[["maintainer"]],
    )
    allow_force_push: bool = Field(
        default=False, description="Whether those who may push may rewrite the history.", examples=[False]
    )
    code_owner_approval_required: bool = Field(
        default=False, description="Whether changes need the approval of a code owner.", examples=[True]
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A rule can be changed by somebody, and keys only push."""
        if "allowed_to_unprotect" in self.model_fields_set and not self.allowed_to_unprotect:
            yield "allowed_to_unprotect", EMPTY
        for name in ("allowed_to_merge", "allowed_to_unprotect"):
            if any(isinstance(entry, Subject) and entry.deploy_key is not None for entry in getattr(self, name)):
                yield name, NO_KEYS


class GroupProtectedBranch(ProtectedBranch):
    """The rule for all branches of a group's projects that a name matches."""

    def errors(self) -> Iterator[tuple[str, str]]:
        """A group's rule names nobody."""
        yield from super().errors()
        for name in LISTS:
            if any(isinstance(entry, Subject) for entry in getattr(self, name)):
                yield name, ROLES_ONLY


LISTS = {
    "allowed_to_push": "push_access_levels",
    "allowed_to_merge": "merge_access_levels",
    "allowed_to_unprotect": "unprotect_access_levels",
}

SHORTEST_WORD = 3


def holder(entry: Json) -> Holder | None:
    """Return the group whose rule a project's list shows too."""
    return Holder("a group above") if entry.get("inherited") else None


def leads_to(target: Target, name: str, other: str) -> bool:
    """Return whether the service may take one name for another: that of a group's rule is a search.

    All words of three and more characters must occur, whatever their case; a quoted phrase is one word. Without such a
    word the whole name counts.
    """
    if target.level is not Level.GROUP:
        return name == other
    parts = name.lower().split('"')
    words = [word for part in parts[::2] for word in part.split()] + parts[1::2]
    long = [word for word in words if len(word) >= SHORTEST_WORD]
    return all(word in other.lower() for word in long) if long else name.lower() == other.lower()


def losses(_old: Existing) -> Iterator[str]:
    """Another rule that matches the same branches still holds."""
    yield "branches that match no other rule are open to every Developer, force pushes and deletions included"
    yield "an approval rule for this branch alone holds for all branches then"


BRANCHES = Collection(
    "protected_branches",
    ProtectedBranch,
    title="protected branch",
    key="name",
    path_field="name",
    listing=Listing(holder=holder),
    names=Names(unique=False, leads_to=leads_to),
    writes=Writes(
        method="PATCH",
        renames=False,
        once=True,
        defaults=dict.fromkeys(LISTS, "maintainer"),
    ),
    relations=Relations(entries=LISTS),
    losses=losses,
)

KIND = Kind(
    name="protected_branches",
    summary="Who may push to, merge into and unprotect branches, by name or wildcard.",
    models={Level.GROUP: dict[str, GroupProtectedBranch | None], Level.PROJECT: dict[str, ProtectedBranch | None]},
    parts=(BRANCHES,),
    needs=Needs(
        roles={Level.GROUP: Role.OWNER, Level.PROJECT: Role.MAINTAINER},
        same_to_read=False,
        archived=Archived.READ_ONLY,
        top_level=True,
        switches={"repository_access_level": "the repository"},
    ),
    pages={
        Level.GROUP: "{target}/-/settings/repository#js-protected-branches-settings",
        Level.PROJECT: "{target}/-/settings/repository#js-protected-branches-settings",
    },
)
