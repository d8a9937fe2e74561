"""Merge request approval settings of a group or a project (spec 4.10)."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.direction import FALSE, TRUE, Directions
from reconciler.model.endpoints import Singleton
from reconciler.model.foreign_keys import Alias, ForeignKeys, opposite
from reconciler.model.kind import Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import A_LIST, AN_OBJECT, NOT_HERE, LiveRecord, Resource, recognized
from reconciler.model.targets import Level, Target

RETAIN = "retain_approvals_on_push"

PREVENTED_AUTHOR = ("prevent_author_approval", "prevent_approval_by_author", "prevent_merge_requests_author_approval")
PREVENTED_COMMITTERS = (
    "merge_requests_disable_committers_approval",
    "disable_committers_approval",
    "prevent_committer_approval",
    "prevent_committers_approval",
    "prevent_approval_by_commit_author",
    "prevent_merge_requests_committers_approval",
)
PREVENTED_OVERRIDES = (
    "disable_overriding_approvers_per_merge_request",
    "disable_overriding_approvers",
    "prevent_editing_approval_rules",
    "prevent_overrides_to_approver_list_per_merge_request",
)
"""The names that other APIs and tools have for the opposite of a setting."""


class ApprovalSettings(Resource):
    """Settings of who may approve merge requests, and of when approvals are removed."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(("reset_approvals_on_push", "remove_approvals_with_new_commit"), opposite(RETAIN)),
        **dict.fromkeys(PREVENTED_AUTHOR, opposite("allow_author_approval")),
        "merge_requests_author_approval": Alias("allow_author_approval"),
        **dict.fromkeys(PREVENTED_COMMITTERS, opposite("allow_committer_approval")),
        **dict.fromkeys(PREVENTED_OVERRIDES, opposite("allow_overrides_to_approver_list_per_merge_request")),
        "allow_overrides_approver_list_per_merge_request": Alias("allow_overrides_to_approver_list_per_merge_request"),
        "require_password_to_approve": Alias("require_reauthentication_to_approve"),
        **dict.fromkeys(
            ("approvals_before_merge", "approvals_required", "approvers", "approver_groups"),
            "the number of approvals and the approvers belong to a rule in `approval_rules`",
        ),
        "keep_settings_on_destroy": "a document that is removed resets nothing: leave it out",
    }

    directions: ClassVar[Directions] = {
        "allow_author_approval": FALSE,
        "allow_committer_approval": FALSE,
        "allow_overrides_to_approver_list_per_merge_request": FALSE,
        "retain_approvals_on_push": FALSE,
        "selective_code_owner_removals": TRUE,
        "require_reauthentication_to_approve": TRUE,
    }

    allow_author_approval: bool = Field(
        default=False, description="Allow authors to approve their own merge requests.", examples=[False]
    )
    allow_committer_approval: bool = Field(
        default=False, description="Allow users who added commits to approve the merge request.", examples=[False]
    )
    allow_overrides_to_approver_list_per_merge_request: bool = Field(
        default=False,
        description="Allow a merge request to change its list of approvers.",
        examples=[False],
    )
    retain_approvals_on_push: bool = Field(
        default=False, description="Keep approvals when commits are added.", examples=[True]
    )
    selective_code_owner_removals: bool = Field(
        default=False,
        description="On a push, remove only the approvals of code owners whose files changed. Needs "
        "`retain_approvals_on_push: true`; groups may ignore it.",
        examples=[False],
    )
    require_reauthentication_to_approve: bool = Field(
        default=False,
        description="Require approvers to authenticate again. `require_password_to_approve` follows it.",
        examples=[True],
    )

    @classmethod
    def is_moot(cls, name: str, live_fields: Mapping[str, Json]) -> bool:
        """Return whether a choice makes no difference, since all approvals are removed on a push."""
        return name == "selective_code_owner_removals" and live_fields.get(RETAIN) is False

    def warnings(self) -> Iterator[tuple[str, str]]:
        """GitLab refuses this pair (deployed behaviour, section 9, row 16)."""
        declared = {"selective_code_owner_removals", "retain_approvals_on_push"} <= self.model_fields_set
        if declared and self.selective_code_owner_removals and not self.retain_approvals_on_push:
            yield (
                "selective_code_owner_removals",
                "the service refuses `selective_code_owner_removals: true` with `retain_approvals_on_push: false`: "
                "set `retain_approvals_on_push: true`, or `selective_code_owner_removals: false`",
            )


FIELDS = tuple(ApprovalSettings.model_fields)

EVENT_SENTENCE = re.compile(r"Changed (?P<what>.+?)(?: from (?:true|false))? to (?P<value>true|false)")
"""The sentence of an audit event. What was never set has no `from`."""

EVENT_FIELDS = {
    "prevent merge request approval from authors": ("allow_author_approval", True),
    "prevent merge request approval from committers": ("allow_committer_approval", True),
    "prevent users from modifying MR approval rules in merge requests": (
        "allow_overrides_to_approver_list_per_merge_request",
        True,
    ),
    "require new approvals when new commits are added to an MR": ("retain_approvals_on_push", True),
    "selective_code_owner_removals": ("selective_code_owner_removals", False),
    "require user password for approvals": ("require_reauthentication_to_approve", False),
    "require_reauthentication_to_approve": ("require_reauthentication_to_approve", False),
}
"""By the words of an audit event, the setting, and whether the words say the inverse."""

FORBIDDABLE = (
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
)
"""A group that has false locks them as false."""

REQUIRABLE = ("require_reauthentication_to_approve",)
"""A group that has true locks them as true."""


def decode(target: Target, answer: Json) -> LiveRecord:
    """Read the entries: each has a value, and may be locked by a group or the instance.

    Older servers lack some entries, as `require_reauthentication_to_approve` before release 17.1 (spec section 9).
    """
    entries = {name: answer[name] for name in FIELDS if name in answer}
    if not entries:
        raise KeyError(FIELDS[0])
    values, read_only = {}, dict.fromkeys((name for name in FIELDS if name not in entries), NOT_HERE)
    for name, entry in entries.items():
        match entry:
            case {"value": value, **others}:
                values[name] = value
                if others.get("locked"):
                    read_only[name] = f"locked by {_locker(target, others.get('inherited_from'))}; {UNLOCK}"
            case _:
                values[name] = entry
    settings, unknown = recognized(ApprovalSettings, values)
    return LiveRecord(settings, read_only=read_only, unknown=unknown)


UNLOCK = "unlock it there or leave the field out"


def _locker(target: Target, inherited_from: object) -> str:
    """Return the owner of a lock: of the groups above, only the topmost has settings (deployed behaviour, 12)."""
    if inherited_from != "group":
        return f"the {inherited_from or 'instance'}"
    return f"group {target.ref.partition('/')[0]}" if isinstance(target.ref, str) else "a group above it"


def body(wanted: Resource, record: LiveRecord) -> Mapping[str, Json]:
    """Return all settings that are shown and not locked: older services reset omitted ones to false.

    A value that this version does not know is sent back as it is, so that it stays.

    A locked setting is left out, for the service would keep the value behind the lock and show it again the day the
    lock goes. Only `selective_code_owner_removals` that is locked as false is sent, as false: where a hidden true lies
    behind the lock, the service refuses every update that does not mention it (deployed behaviour, section 12.1).
    """
    # GitLab 18.9 too: the first PUT in a group sets to false whatever it does not name, which locks all its projects.
    settings = {name: getattr(record.resource, name) for name in FIELDS if name in record.resource.model_fields_set}
    settings |= {name: value for name, value in record.unknown.items() if value not in (A_LIST, AN_OBJECT)}
    settings |= {name: getattr(wanted, name) for name in wanted.model_fields_set}
    sent = {name: value for name, value in settings.items() if name not in record.read_only}
    if "selective_code_owner_removals" in record.read_only and settings.get("selective_code_owner_removals") is False:
        sent["selective_code_owner_removals"] = False
    return sent


SETTINGS = Singleton(
    name="approval_settings",
    title="approval settings",
    suffix="merge_request_approval_setting",
    model=ApprovalSettings,
    decode=decode,
    body=body,
    whole=True,
)


def locked_below(group_fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings that a group locks in its projects, with their values (deployed behaviour, section 12)."""
    forbidden = {name: False for name in FORBIDDABLE if group_fields.get(name) is False}
    if "retain_approvals_on_push" in forbidden:
        forbidden["selective_code_owner_removals"] = False
    required = {name: True for name in REQUIRABLE if group_fields.get(name) is True}
    return forbidden | required


def trace(event: AuditEvent) -> Iterator[Traced]:
    """Yield the setting that an event has changed; the service names most of them by their inverse."""
    words = EVENT_SENTENCE.fullmatch(str(event.details.get("custom_message")))
    field, inverse = EVENT_FIELDS.get(words["what"], (None, False)) if words else (None, False)
    if words and field:
        yield Traced("approval_settings", field, (words["value"] == "true") is not inverse)


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the effective values; a setting that a group of the state locks is locked there too."""
    return {"merge_request_approval_settings": read.fields("approval_settings")}


KIND = Kind(
    name="approval_settings",
    foreign_names=(
        "merge_requests_approvals",
        "merge_request_approvals",
        "merge_request_approval_setting",
        "merge_request_approval_settings",
        "project_level_mr_approvals",
        "group_level_mr_approvals",
    ),
    summary="Who may approve merge requests, and when approvals are removed, in a group or a project.",
    spec="4.10",
    models={Level.GROUP: ApprovalSettings, Level.PROJECT: ApprovalSettings},
    parts=(SETTINGS,),
    order=2,
    inherits=locked_below,
    trace=trace,
    to_sandbox=to_sandbox,
    needs=Needs(
        roles={Level.GROUP: Role.OWNER, Level.PROJECT: Role.MAINTAINER},
        licensed=True,
        top_level=True,
    ),
    pages={
        Level.GROUP: "{target}/-/edit#js-merge-request-approval-settings",
        Level.PROJECT: "{target}/-/settings/merge_requests#js-merge-request-approval-settings",
    },
)
