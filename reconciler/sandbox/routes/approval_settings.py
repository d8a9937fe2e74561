"""Merge request approval settings (spec section 4.10): seven entries, each with value, locked and inherited_from.

A project's entry is locked if a group above it, or the instance, enforces a value; writing to a locked entry is
accepted, kept, and not shown. Differences: the needs of `selective_code_owner_removals`, whether a group has it,
whether a subgroup may be set, whether `require_password_to_approve` may be sent.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..parameters import boolean, read
from ..records import Record
from ..state import MAINTAINER, OWNER, Group, Project, SandboxState, StateSection
from .audit_events import note_event

AUTHOR, COMMITTER = "allow_author_approval", "allow_committer_approval"
OVERRIDES = "allow_overrides_to_approver_list_per_merge_request"
RETAIN, SELECTIVE = "retain_approvals_on_push", "selective_code_owner_removals"
PASSWORD, AGAIN = "require_password_to_approve", "require_reauthentication_to_approve"
NAMES = (AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE, PASSWORD, AGAIN)
Entry = dict[str, Any]
_KEPT = (AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE, AGAIN)


class ProjectApprovals(Record):
    """The settings of a project itself."""

    allow_author_approval: bool = False
    allow_committer_approval: bool = True
    allow_overrides_to_approver_list_per_merge_request: bool = True
    retain_approvals_on_push: bool = False
    selective_code_owner_removals: bool = False
    require_reauthentication_to_approve: bool = False

    @model_validator(mode="before")
    @classmethod
    def _know_both_names(cls, value: Any) -> Any:
        """Take two `require_` names for one setting; `require_reauthentication_to_approve` takes precedence."""
        if not isinstance(value, Mapping) or PASSWORD not in value:
            return value
        kept = {name: inner for name, inner in value.items() if name != PASSWORD and inner is not None}
        return {AGAIN: value[PASSWORD], **kept}


class GroupApprovals(ProjectApprovals):
    """The settings that a group enforces."""

    allow_author_approval: bool = True
    retain_approvals_on_push: bool = True


class InstanceApprovals(Record):
    """The settings that the instance allows."""

    allow_author_approval: bool = True
    allow_committer_approval: bool = True
    allow_overrides_to_approver_list_per_merge_request: bool = True


FIRST = "group_merge_request_approval_setting_created"
"""The event of the first write to a group, one for each setting that it changes."""

EVENTS = {
    AUTHOR: (
        "project_merge_requests_author_approval_updated",
        "prevent merge request approval from authors",
        True,
    ),
    COMMITTER: (
        "project_merge_requests_disable_committers_approval_updated",
        "prevent merge request approval from committers",
        True,
    ),
    OVERRIDES: (
        "project_disable_overriding_approvers_per_merge_request_updated",
        "prevent users from modifying MR approval rules in merge requests",
        True,
    ),
    RETAIN: (
        "project_reset_approvals_on_push_updated",
        "require new approvals when new commits are added to an MR",
        True,
    ),
    SELECTIVE: ("selective_code_owner_removals_updated", "selective_code_owner_removals", False),
    AGAIN: ("require_reauthentication_to_approve_updated", "require_reauthentication_to_approve", False),
}
"""By setting, the event of a project, its words, and whether these say the inverse."""

NAME = "merge_request_approval_settings"
OF_INSTANCE = StateSection(NAME, ("instance",), InstanceApprovals, InstanceApprovals())
OF_GROUP: StateSection[GroupApprovals | None] = StateSection(NAME, ("group",), GroupApprovals | None, None)
OF_PROJECT = StateSection(NAME, ("project",), ProjectApprovals, ProjectApprovals())
SECTIONS = (OF_INSTANCE, OF_GROUP, OF_PROJECT)
_ATTRIBUTES = {
    False: tuple(boolean(name, blank=False) for name in _KEPT),
    True: tuple(boolean(name, blank=False) for name in NAMES),
}
_FIRST_WRITE = dict.fromkeys(_KEPT, False)


def get_group(call: Call) -> Answer:
    """`GET /groups/:id/merge_request_approval_setting`."""
    group = _group(call)
    return Answer(200, _group_entries(call.state, group))


def put_group(call: Call) -> Answer:
    """`PUT /groups/:id/merge_request_approval_setting`: the first such request sets all other entries to false."""
    group = _group(call)
    sent = _sent(call)
    kept = OF_GROUP.of(group)
    before = kept.model_dump() if kept else {}
    after = {**(before or _FIRST_WRITE), **sent}
    if call.state.deployed:
        after[SELECTIVE] = False
        if sent.keys() == {SELECTIVE}:
            after = before
    elif after[SELECTIVE] and after[RETAIN]:
        raise _refuse_both(call.state)
    if sent and after != before:
        OF_GROUP.put(group, GroupApprovals(**after))
        call.changed = True
        _note(call, group, GroupApprovals().model_dump() | before, after, "" if before else FIRST)
    return Answer(200, _group_entries(call.state, group))


def get_project(call: Call) -> Answer:
    """`GET /projects/:id/merge_request_approval_setting`."""
    project = _project(call)
    return Answer(200, _project_entries(call.state, project))


def put_project(call: Call) -> Answer:
    """`PUT /projects/:id/merge_request_approval_setting`: entries outside of the request stay."""
    project = _project(call)
    sent = _sent(call)
    _check_removals(call.state, project, sent)
    before = OF_PROJECT.of(project)
    after = before.model_copy(update=sent)
    if after != before:
        OF_PROJECT.put(project, after)
        call.changed = True
        _note(call, project, before.model_dump(), after.model_dump())
    return Answer(200, _project_entries(call.state, project))


def _note(call: Call, place: Group | Project, before: Entry, after: Entry, first: str = "") -> None:
    """Note each changed setting in the words of the service, which mostly name the inverse."""
    sort = "Project" if isinstance(place, Project) else "Group"
    for name, (event, words, inverse) in EVENTS.items():
        if before[name] != after[name]:
            was, becomes = (str(value != inverse).lower() for value in (before[name], after[name]))
            message = f"Changed {words} from {was} to {becomes}"
            own = first or (event if sort == "Project" else f"{name}_updated")
            details = {} if first else {"change": words, "from": was, "to": becomes}
            note_event(call, place, own, message, (sort, place.id, place.path), **details)


def _group(call: Call) -> Group:
    """Return the group, if the caller owns it and it has no parent: subgroups have no such settings."""
    _require_paid_edition(call)
    group = call.group(OWNER)
    if group.parent_path or not call.state.instance.licensed:
        raise refused(403, "403 Forbidden")
    return group


def _project(call: Call) -> Project:
    """Return the project, if the caller maintains it."""
    _require_paid_edition(call)
    project = call.project(MAINTAINER)
    if not call.state.instance.licensed:
        raise refused(403, "403 Forbidden")
    return project


def _require_paid_edition(call: Call) -> None:
    """Refuse with 404, as the free edition of production does, which has no such endpoint."""
    if call.state.deployed and not call.state.instance.enterprise:
        raise Refusal(404, {"error": "404 Not Found"})


def _sent(call: Call) -> dict[str, bool]:
    """Return the attributes to write, with the two `require_` names as one."""
    call.cost = 6.0
    sent = read(call, *_ATTRIBUTES[call.state.deployed], any_of=NAMES if call.state.deployed else ())
    if PASSWORD in sent:
        sent.setdefault(AGAIN, sent.pop(PASSWORD))
        sent.pop(PASSWORD, None)
    return sent


def _check_removals(state: SandboxState, project: Project, sent: Mapping[str, bool]) -> None:
    """Refuse a combination that is invalid after the write, locks included.

    The spec lets `selective_code_owner_removals` be on only while retain is off, production only while it is on;
    production reads retain through the root group and selective through the direct one.
    """
    entries = _project_entries(state, project)
    retain = sent.get(RETAIN, entries[RETAIN]["value"])
    if not state.deployed:
        if retain and sent.get(SELECTIVE, entries[SELECTIVE]["value"]):
            raise _refuse_both(state)
        return
    group = state.group_of(project)
    direct = OF_GROUP.of(group) if group else None
    withheld = direct is not None and not direct.retain_approvals_on_push
    selective = sent.get(SELECTIVE, OF_PROJECT.of(project).selective_code_owner_removals and not withheld)
    if selective and not retain:
        raise _refuse_both(state)


def _refuse_both(state: SandboxState) -> Exception:
    if state.deployed:
        return refused(400, f"{SELECTIVE} can only be enabled when {RETAIN} is enabled")
    return refused(400, {SELECTIVE: [f"can only be enabled when {RETAIN} is disabled"]})


def _group_entries(state: SandboxState, group: Group) -> dict[str, Entry]:
    kept = OF_GROUP.of(group) or GroupApprovals()
    entries = {name: _entry(value) for name, value in kept.model_dump().items()}
    if state.deployed:
        entries[SELECTIVE] = _entry(False, None if kept.retain_approvals_on_push else "group")
    _lock_by_instance(state, entries)
    return _in_order(entries)


def _project_entries(state: SandboxState, project: Project) -> dict[str, Entry]:
    entries = {name: _entry(value) for name, value in OF_PROJECT.of(project).model_dump().items()}
    above = list(state.groups_above(project))
    for group in above[-1:] if state.deployed else above:
        _lock_by_group(state, entries, (OF_GROUP.of(group) or GroupApprovals()).model_dump())
    _lock_by_instance(state, entries)
    return _in_order(entries)


def _lock_by_group(state: SandboxState, entries: dict[str, Entry], enforced: dict[str, bool]) -> None:
    for name in (AUTHOR, COMMITTER, OVERRIDES, RETAIN):
        if not enforced[name]:
            entries[name] = _entry(False, "group")
    if enforced[AGAIN]:
        entries[AGAIN] = _entry(True, "group")
    if state.deployed and not enforced[RETAIN]:
        entries[SELECTIVE] = _entry(False, "group")
    if not state.deployed and enforced[SELECTIVE]:
        entries[SELECTIVE] = _entry(True, "group")


def _lock_by_instance(state: SandboxState, entries: dict[str, Entry]) -> None:
    for name, allowed in OF_INSTANCE.of(state.instance).model_dump().items():
        if not allowed:
            entries[name] = _entry(False, "instance")


def _entry(value: bool, inherited_from: str | None = None) -> Entry:
    return {"value": value, "locked": inherited_from is not None, "inherited_from": inherited_from}


def _in_order(entries: dict[str, Entry]) -> dict[str, Entry]:
    return {name: entries[AGAIN if name == PASSWORD else name] for name in NAMES}


ROUTES = (
    Route("GET", "/groups/:id/merge_request_approval_setting", get_group),
    Route("PUT", "/groups/:id/merge_request_approval_setting", put_group),
    Route("GET", "/projects/:id/merge_request_approval_setting", get_project),
    Route("PUT", "/projects/:id/merge_request_approval_setting", put_project),
)
