"""Approval rules of a project, each known by its name: how many of whom must approve changes of which branches."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.direction import FEWER, MORE, WIDER, Directions
from reconciler.model.endpoints import (
    Collection,
    Existing,
    Listing,
    Named,
    Names,
    New,
    Reading,
    Relations,
    Requests,
    Writes,
)
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Barrier, Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import Item, LiveRecord, Resource, recognized
from reconciler.model.targets import Key, Level
from reconciler.model.wording import counted

ANY = "any_approver"
"""The key of the rule that takes any approver: a project has at most one, whatever the service calls it."""

NAME_OF_ANY = "All Members"
"""What the service's own pages call it when they create it."""

COVERAGE = "Coverage-Check"
MOST_APPROVALS = 100
PROTECTED = "applies_to_all_protected_branches"

NO_APPROVERS_ERROR = (
    "a rule without users and groups has nobody who could approve: name some, or declare `any_approver` instead"
)
NO_BRANCHES = "an empty list would mean all branches: write `any` for these, or `protected` for all that are protected"


PART = "approval_rules"

CHANGES = {
    "approval_rule_created": "created",
    "update_approval_rules": "updated",
    "approval_rule_deleted": "deleted",
}
NUMBER = re.compile(r"number of required approvals (?:of|from [0-9]+ to) ([0-9]+)")
BRANCHES = re.compile(r"Changed target branch to (?:(?P<all>all(?: protected)? branches)|(?P<names>.+) branch(?:es)?)")
EVENT_BRANCHES = {"all branches": "any", "all protected branches": "protected"}


def _as_names(raw: object) -> object:
    """Return names as a set, in the order of the alphabet; names of users and groups ignore case."""
    if not isinstance(raw, list | tuple):
        return raw
    for name in raw:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a name is text: quote `{name}`" if isinstance(name, int) else "a name is text")
    return tuple(sorted({name.casefold() for name in raw}))


def _as_branches(raw: object) -> object:
    if not isinstance(raw, list | tuple):
        return raw
    if not raw:
        raise ValueError(NO_BRANCHES)
    if not all(isinstance(name, str) for name in raw):
        raise ValueError("a branch is text: quote it")
    return tuple(sorted({*raw}))


Approvers = Annotated[tuple[str, ...], BeforeValidator(_as_names, json_schema_input_type=list[str])]

Branches = Annotated[
    Literal["any", "protected"] | tuple[str, ...],
    BeforeValidator(_as_branches, json_schema_input_type=Literal["any", "protected"] | list[str]),
]


def demands_nothing(rule_fields: Mapping[str, Json]) -> bool:
    """Return whether a rule is optional: it is as if it were not there."""
    return rule_fields.get("approvals_required") == 0


def approved_by_all(rule_fields: Mapping[str, Json]) -> bool:
    """Return whether a rule is fulfilled by anybody: it is optional, or names nobody, or fewer users than it needs.

    The service approves a rule by itself that nobody can fulfil. How many a group has is not known.
    """
    needed = rule_fields.get("approvals_required") or 1
    return demands_nothing(rule_fields) or (
        not rule_fields.get("groups") and len(rule_fields.get("users") or ()) < needed
    )


APPROVERS = replace(FEWER, means_all=approved_by_all)


class ApprovalRule(Item):
    """The approvals that a merge request needs."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "name": "the name of an approval rule is its key",
        "rule_type": f"the key tells the type: `{ANY}` is the rule for any approver, all others are regular",
        **dict.fromkeys(("usernames", "user_ids", "approvers"), "declare usernames in `users`, such as [ada]"),
        **dict.fromkeys(("group_ids", "approver_groups"), "declare full paths in `groups`, such as [acme/security]"),
        "protected_branches": "declare the names in `branches`, such as [main]",
        "protected_branch_ids": "declare the names in `branches`, such as [main]",
        PROTECTED: Alias("branches", {True: "branches: protected", False: "branches: any"}),
        "approvals_before_merge": Alias("approvals_required"),
        "report_type": "rules about reports are made by hand: only rules for approvers are managed",
        **dict.fromkeys(
            ("eligible_approvers", "contains_hidden_groups", "source_rule", "overridden"),
            "the service derives this: leave it out",
        ),
        "disable_importing_default_any_approver_rule_on_create": f"declare `{ANY}` to manage the rule for any approver",
    }

    directions: ClassVar[Directions] = {
        "approvals_required": replace(MORE, means_all=demands_nothing),
        "users": APPROVERS,
        "groups": APPROVERS,
        "branches": replace(WIDER, means_all=demands_nothing),
    }

    approvals_required: int = Field(
        default=0,
        ge=0,
        le=MOST_APPROVALS,
        description="How many must approve, 0 to 100; 0 makes the rule optional. A creation needs it.",
        examples=[2],
    )
    users: Approvers = Field(
        default=(),
        description="Usernames of members of the project, inherited ones too: the whole list.",
        examples=[["ada"]],
    )
    groups: Approvers = Field(
        default=(),
        description="Full paths of groups: the whole list, except for groups that the token cannot see.",
        examples=[["acme/security"]],
    )
    branches: Branches = Field(
        default="any",
        description="Names of rules in `protected_branches`, of the project or its top-level group; or a word: "
        "`protected` for all protected branches, `any` for all branches. `{default_branch}` is the project's own.",
        examples=[["main"]],
    )


def name_error(name: Key) -> str | None:
    """Return the reason why a name cannot be used; None if it can."""
    if name == COVERAGE:
        return f"`{COVERAGE}` is reserved by the service for a rule about test coverage, which is made by hand"
    return None


def rules(name: Key, wanted: Resource, is_new: bool) -> Iterator[tuple[str, str]]:
    """Yield the fields that contradict a name: the rule for any approver names nobody, all others name somebody."""
    lists = [wanted.users, wanted.groups] if isinstance(wanted, ApprovalRule) else []
    if name == ANY:
        for field in ("users", "groups"):
            if field in wanted.model_fields_set:
                yield field, f"`{ANY}` takes any approver: leave it out, or give the rule another name"
    elif is_new and not any(lists):
        yield "users", NO_APPROVERS_ERROR


def complete(reading: Reading) -> Json:
    """Remove rules of other types, such as the service's rule about test coverage."""
    return [entry for entry in reading.answer if entry["rule_type"] in (ANY, "regular")]


def flaw(name: Key, fields: Mapping[str, Json], record: LiveRecord | None) -> str:
    """Return the reason why the service approves a rule by itself (18.9): more approvals than people who may approve.

    Members of groups that the change adds are unknown, so that such a rule counts as one that can be fulfilled.
    """
    users, groups = {*fields.get("users", ())}, {*fields.get("groups", ())}
    before = record.resource.model_dump() if record else {}
    eligible = record.eligible if record else frozenset()
    if name == ANY or eligible is None or not groups <= {*before.get("groups", ())}:
        return ""
    # Who leaves the list may still be a member of one of the groups.
    kept = eligible if groups else eligible & users
    able = kept | (users - {*before.get("users", ())})
    if len(able) >= fields["approvals_required"]:
        return ""
    number = f"only {len(able)}" if able else "none"
    unable = ", ".join(sorted(users - able))
    return (
        f"needs {counted(fields['approvals_required'], 'approval')}, and {number} of its approvers can approve"
        f"{f' (blocked or gone: {unable})' if unable else ''}: the service approves such a rule by itself; "
        "name more people, or require fewer approvals"
    )


def decode(entry: Json) -> LiveRecord:
    """Read a rule. The rule for any approver has no list of approvers, and any name."""
    branches = "protected" if entry[PROTECTED] else entry["branches"] or "any"
    shown = {"approvals_required": entry["approvals_required"], "branches": branches}
    names: tuple[Key, ...] = (ANY,)
    if entry["rule_type"] != ANY:
        shown |= {"users": entry["users"], "groups": entry["groups"]}
        names = ()
    rule, unknown = recognized(ApprovalRule, shown)
    eligible = entry.get("eligible_approvers")
    able = None if eligible is None else frozenset(user["username"].casefold() for user in eligible)
    return LiveRecord(rule, names, unknown=unknown, eligible=able)


def _branches(fields: dict[str, Json]) -> dict[str, Json]:
    """Return fields as requests hold them: a switch stands for all protected branches, no IDs for all branches."""
    word = fields.pop("branches", None)
    if word == "protected":
        return {**fields, PROTECTED: True}
    if word == "any":
        return {**fields, "protected_branch_ids": [], PROTECTED: False}
    return {**fields, PROTECTED: False} if "protected_branch_ids" in fields else fields


def create(new: New) -> Requests:
    """Return the request with a type: a rule without a type and without approvers would be for any approver."""
    sort = {"name": NAME_OF_ANY, "rule_type": ANY} if new.name == ANY else {**new.new_name, "rule_type": "regular"}
    return (new.post({**sort, **_branches(new.fields)}),)


def update(old: Existing) -> Requests:
    """Return the request: lists are replaced as a whole, except for groups that the token cannot see."""
    return (old.send(_branches(old.fields) | old.new_name),)


def trace(event: AuditEvent) -> Iterator[Traced]:
    """Yield the changes of an event to a rule. Events have display names of approvers, not usernames."""
    done = CHANGES.get(event.name)
    if done is None:
        return
    names = tuple(name for name in (event.details.get("target_details"), event.target_id) if name is not None)
    text = str(event.details.get("custom_message"))
    if done != "updated":
        yield Traced(PART, names=names, removed=done == "deleted")
    number, branches = NUMBER.search(text), BRANCHES.fullmatch(text)
    if number:
        yield Traced(PART, "approvals_required", int(number[1]), names)
    if branches:
        listed = sorted(branches["names"].split(", ")) if branches["names"] else EVENT_BRANCHES[branches["all"]]
        yield Traced(PART, "branches", listed, names)


def losses(_old: Existing) -> Iterable[str]:
    """Yield the loss; the service deletes the copies of the rule in merge requests too."""
    yield "merge requests, open ones included, no longer need its approval"


RULES = Collection(
    PART,
    ApprovalRule,
    title="approval rule",
    key="name",
    decode=decode,
    listing=Listing(complete=complete),
    # GitLab has no unique index for regular rules: of 6 POSTs at once, 1 to 6 succeeded (18.9).
    names=Names(unique=False, error=name_error, fixed=frozenset({ANY}), rules=rules, exchangeable=True),
    writes=Writes(create=create, update=update, required=("approvals_required",), defaults={"branches": "any"}),
    relations=Relations(
        named={
            # GitLab 18.9 answers 201 and drops users who are not members, or whose name differs in case: what remains
            # may be a rule without approvers, which it approves by itself. Unknown branches are dropped too: the rule
            # is for all then.
            "users": Named(
                shown="users",
                sent="user_ids",
                key="username",
                within="members/all",
                unknown='the project has no member "{name}", or none that this token can see',
                remedy="add the user to the project, or correct the username",
                unlisted="use the token of a member, or leave `users` out",
            ),
            "groups": Named(shown="groups", sent="group_ids", key="full_path", hides="contains_hidden_groups"),
            "branches": Named(
                shown="protected_branches",
                sent="protected_branch_ids",
                key="name",
                within="protected_branches",
                section="protected_branches",
                unknown='no rule in protected_branches has the name "{name}"',
                remedy="declare it there, or correct the name",
                unlisted="switch the repository on if it is off, or leave `branches` out",
                bare="applies to all branches then",
            ),
        },
        flaw=flaw,
    ),
    losses=losses,
)


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the rules with the IDs of groups and branches."""
    rules: list[dict[str, Any]] = [
        {
            "id": record.id,
            "name": record.names[0],
            "rule_type": ANY if record.names[0] == ANY else "regular",
            "approvals_required": getattr(record.resource, "approvals_required", 0),
            "users": list(getattr(record.resource, "users", ())),
            "group_ids": _numbers(record, "groups"),
            "protected_branch_ids": _numbers(record, "branches"),
            PROTECTED: getattr(record.resource, "branches", "") == "protected",
        }
        for record in read.parts.get(PART, ())
    ]
    return {PART: rules}


def _numbers(record: LiveRecord, field: str) -> list[int]:
    return sorted(row.id for row in record.entries.get(field, ()))


KIND = Kind(
    name=PART,
    foreign_names=(
        "merge_requests_approval_rules",
        "merge_request_approval_rules",
        "project_approval_rule",
        "project_approval_rules",
    ),
    summary="Who must approve merge requests, and how many of them, by name.",
    models={Level.PROJECT: dict[str, ApprovalRule | None]},
    parts=(RULES,),
    order=110,
    trace=trace,
    to_sandbox=to_sandbox,
    protects=True,
    branch_fields=frozenset({"branches"}),
    needs=Needs(
        roles={Level.PROJECT: Role.MAINTAINER},
        readers={Level.PROJECT: Role.REPORTER},
        licensed=True,
        barrier=Barrier(
            "the service's administrators or a security policy forbid changes of approval rules",
            "let an administrator allow them in the instance's settings of merge request approvals",
            is_whole=True,
        ),
    ),
    pages={Level.PROJECT: "{target}/-/settings/merge_requests#js-merge-request-approval-settings"},
)
