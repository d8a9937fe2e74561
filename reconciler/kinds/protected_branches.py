"""Protected branches of a project or a top-level group, each known by its name, in which `*` stands for anything."""

import re
from collections.abc import Iterator, Mapping, Sequence
from json import loads
from typing import ClassVar

from pydantic import Field

from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.direction import ENTRIES, FALSE, TRUE, Directions
from reconciler.model.endpoints import Collection, Existing, Listing, Names, Relations, Writes
from reconciler.model.entries import Entries, Subject
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.in_effect import InEffect
from reconciler.model.kind import Archived, Barrier, Kind, Needs, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import NOT_HERE, POLICIES, Holder, Item, LiveRecord, recognized
from reconciler.model.targets import Level, Target

SUBJECTS = "roles (`developer`, `maintainer`, `admin`), users (`{user: ada}`), invited groups (`{group: acme/leads}`)"
UNPROTECT = "allowed_to_unprotect"
EMPTY_LIST_ERROR = "an empty list would not mean nobody, but any Maintainer: leave the field out, or name somebody"
NO_KEYS = "a deploy key can push and do nothing else: declare it in `allowed_to_push`"
ROLES_ONLY = "the rule of a group holds roles only: developer, maintainer or admin"


class ProtectedBranch(Item):
    """The rule for all branches of a project that a name matches."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "name": "the name of a protected branch is its key",
        "branch": "the name of a protected branch is its key",
        **{
            f"{name}_access_level{end}": f"declare the role in `allowed_to_{name}`, such as [maintainer]; [] is nobody"
            for name in ("push", "merge", "unprotect")
            for end in ("", "s")
        },
        **{
            f"developers_can_{name}": f"list `developer` in `allowed_to_{name}`, or leave that role out of the list"
            for name in ("push", "merge")
        },
        "force_push": Alias("allow_force_push"),
        "code_owner_approval": Alias("code_owner_approval_required"),
        "protected": "a declared rule protects: leave `protected: true` out, and write `NAME: null` for false",
        **dict.fromkeys(("inherited", "branch_protection_id"), "the service sets this: leave it out"),
    }

    directions: ClassVar[Directions] = {
        "allowed_to_push": ENTRIES,
        "allowed_to_merge": ENTRIES,
        "allowed_to_unprotect": ENTRIES,
        "allow_force_push": FALSE,
        "code_owner_approval_required": TRUE,
    }

    allowed_to_push: Entries = Field(
        default=("maintainer",),
        description=f"Who may push: {SUBJECTS} and deploy keys (`{{deploy_key: release}}`). An empty list: nobody.",
        examples=[["maintainer", {"deploy_key": "release"}]],
    )
    allowed_to_merge: Entries = Field(
        default=("maintainer",),
        description=f"Who may merge: {SUBJECTS}. An empty list: nobody.",
        examples=[["developer", {"group": "acme/leads"}]],
    )
    allowed_to_unprotect: Entries = Field(
        default=("maintainer",),
        description=f"Who may change and delete the rule: {SUBJECTS}; nobody else, not even the owner.",
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
            yield "allowed_to_unprotect", EMPTY_LIST_ERROR
        for name in ("allowed_to_merge", "allowed_to_unprotect"):
            if any(isinstance(entry, Subject) and entry.deploy_key is not None for entry in getattr(self, name)):
                yield name, NO_KEYS


class GroupProtectedBranch(ProtectedBranch):
    """The rule for all branches of a group's projects that a name matches."""

    def errors(self) -> Iterator[tuple[str, str]]:
        """A group's rule has roles only."""
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


def decode(entry: Json) -> LiveRecord:
    """Read a rule. A rule that the service has made has no entry for the Maintainers, who all may change it."""
    shown = {name: entry[name] for name in ProtectedBranch.model_fields if name in entry}
    if not shown:
        raise KeyError("allow_force_push")
    fields = ProtectedBranch.model_fields.keys() - POLICIES
    read_only = {name: NOT_HERE for name in sorted(fields) if name not in shown}
    if shown.get(UNPROTECT) == []:
        shown[UNPROTECT] = ["maintainer"]
    rule, unknown = recognized(ProtectedBranch, shown)
    return LiveRecord(rule, read_only=read_only, unknown=unknown)


def holder(entry: Json) -> Holder | None:
    """Return the group whose rule a project's list shows too."""
    return Holder("a group above") if entry.get("inherited") else None


def leads_to(target: Target, name: str, other: str) -> bool:
    """Return whether the service may take one name for another: a group's rule is looked up by a search.

    All words of three and more characters must occur, whatever their case; a quoted phrase is one word. Without such a
    word the whole name counts.
    """
    if target.level is not Level.GROUP:
        return name == other
    parts = name.lower().split('"')
    words = [word for part in parts[::2] for word in part.split()] + parts[1::2]
    long = [word for word in words if len(word) >= SHORTEST_WORD]
    return all(word in other.lower() for word in long) if long else name.lower() == other.lower()


EVENT_FIELDS = {
    "protected_branch_allow_force_push_updated": "allow_force_push",
    "protected_branch_code_owner_approval_required_updated": "code_owner_approval_required",
}
"""By the name of an audit event, the switch that it has changed."""

EVENT_LISTS = {"allowed to push and merge": "allowed_to_push", "allowed to merge": "allowed_to_merge"}
"""By the words of an audit event, the list."""

DESCRIBED = {"Developers + Maintainers": "developer", "Maintainers": "maintainer", "Instance admins": "admin"}
NO_ONE = "No one"


def trace(event: AuditEvent) -> Iterator[Traced]:
    """Yield the changes of an event to a rule; the service records none of `allowed_to_unprotect`."""
    names = tuple(name for name in (event.details.get("target_details"), event.target_id) if name is not None)
    after = event.details.get("to")
    switches: dict[str, Json] = {}
    lists: dict[str, Json] = {}
    match event.name:
        case "protected_branch_created" | "protected_branch_removed":
            removed = event.name.endswith("removed")
            yield Traced(PART, names=names, removed=removed)
            if not removed:
                switches = {name: event.details.get(name) for name in EVENT_FIELDS.values()}
                lists = {name: event.details.get(LISTS[name]) for name in EVENT_LISTS.values()}
        case "protected_branch_updated" if event.details.get("change") in EVENT_LISTS:
            lists = {EVENT_LISTS[event.details["change"]]: _read_list(after)}
        case name if name in EVENT_FIELDS:
            switches = {EVENT_FIELDS[name]: {"true": True, "false": False}.get(str(after))}
    for name, value in switches.items():
        if isinstance(value, bool):
            yield Traced(PART, name, value, names)
    for name, words in lists.items():
        if isinstance(words, list):
            yield Traced(PART, name, [DESCRIBED.get(word) for word in dict.fromkeys(words) if word != NO_ONE], names)


def _read_list(value: Json) -> Json:
    try:
        return loads(str(value))
    except ValueError:
        return None


def losses(_old: Existing) -> Iterator[str]:
    """Yield the loss, with a condition: another rule that matches the same branches still protects them."""
    yield "branches that match no other rule are open to every Developer, force pushes and deletions included"


def matches(pattern: str, name: str) -> bool:
    """Return whether a rule holds for a branch, or for all branches of another rule; `*` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def together(fields_of_rules: Sequence[Mapping[str, Json]]) -> Mapping[str, Json]:
    """Return the rule that several rules are for a branch: the most permissive of them decides, but for code owners.

    Who may push may merge, and rewrite the history where any of the rules allows that.
    """
    push, merge = (_either(fields_of_rules, name) for name in ("allowed_to_push", "allowed_to_merge"))
    return {
        "allowed_to_push": push,
        # GitLab 18.9 lets a Maintainer who may push merge where nobody may merge.
        "allowed_to_merge": [*push, *merge],
        **{name: any(fields.get(name) is True for fields in fields_of_rules) for name in EVENT_FIELDS.values()},
    }


def _either(fields_of_rules: Sequence[Mapping[str, Json]], name: str) -> list[Json]:
    """Return the entries of a list of several rules; a list that this version does not know is an entry of its own."""
    lists = (fields[name] for fields in fields_of_rules if name in fields)
    return [entry for listed in lists for entry in (listed if isinstance(listed, list) else [str(listed)])]


def flaw(fields_of_rules: Sequence[Mapping[str, Json]]) -> str:
    """Return the reason why nobody may push or merge; empty if somebody may, or if a list is not known."""
    if any(fields.get(name) != [] for fields in fields_of_rules for name in EVENT_LISTS.values()):
        return ""
    return "nobody may push or merge: list a role in `allowed_to_merge`, unless the branch is to stay as it is"


PART = "protected_branches"

BRANCHES = Collection(
    PART,
    ProtectedBranch,
    title="protected branch",
    key="name",
    path_field="name",
    decode=decode,
    listing=Listing(holder=holder, inherits=True),
    # GitLab has no unique index: 6 POSTs at once made 6 rules of one name (18.9).
    names=Names(unique=False, leads_to=leads_to),
    writes=Writes(
        method="PATCH",
        # PATCH answers 200 to another `name`, and ignores it (18.9).
        renames=False,
        # A DELETE of a group's rule that is sent again deletes another rule whose name contains this one (18.9).
        once=True,
        defaults=dict.fromkeys(LISTS, "maintainer"),
        keepers=UNPROTECT,
    ),
    relations=Relations(entries=LISTS),
    losses=losses,
)

KIND = Kind(
    name=PART,
    foreign_names=(
        "branches",
        "protected_branch",
        "branch_protection",
        "branch_protections",
        "group_protected_branches",
        "group_branch_protection",
    ),
    summary="Who may push to, merge into and unprotect branches, by name, wildcard or `{default_branch}`.",
    models={Level.GROUP: dict[str, GroupProtectedBranch | None], Level.PROJECT: dict[str, ProtectedBranch | None]},
    parts=(BRANCHES,),
    trace=trace,
    in_repository=True,
    protects=True,
    branch_fields=None,
    in_effect=InEffect(
        matches,
        together,
        fields=frozenset({*EVENT_LISTS.values(), *EVENT_FIELDS.values()}),
        verbs={"allowed_to_push": "push", "allowed_to_merge": "merge", "allow_force_push": "rewrite the history"},
        flaw=flaw,
    ),
    needs=Needs(
        roles={Level.GROUP: Role.OWNER, Level.PROJECT: Role.MAINTAINER},
        readers={Level.PROJECT: Role.PLANNER},
        archived=Archived.READ_ONLY,
        top_level=True,
        switches={"repository_access_level": "the repository"},
        barrier=Barrier(
            f"`{UNPROTECT}` of the rule names neither the token's user nor a role that suffices, or a security policy "
            "holds the rule",
            "use the token of somebody whom the rule names, or exempt the branch from the policy",
            is_whole=False,
        ),
    ),
    pages={
        Level.GROUP: "{target}/-/settings/repository#js-protected-branches-settings",
        Level.PROJECT: "{target}/-/settings/repository#js-protected-branches-settings",
    },
)
