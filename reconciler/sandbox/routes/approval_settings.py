"""Merge request approval settings (spec section 4.10): seven entries, each with value, locked and inherited_from.

A project's entry is locked where a group above it, or the instance, enforces a value; writing to a locked entry
is accepted, kept, and not shown. Differences: what `selective_code_owner_removals` needs, whether a group has it,
whether a subgroup may be set, whether `require_password_to_approve` may be sent.
"""

from collections.abc import Mapping
from typing import Any

from ..attributes import boolean, read
from ..call import Answer, Call, Route
from ..errors import Refusal, refused
from ..reading import Reading
from ..state import MAINTAINER, OWNER, Group, Owner, Project, Section, State

AUTHOR, COMMITTER = "allow_author_approval", "allow_committer_approval"
OVERRIDES = "allow_overrides_to_approver_list_per_merge_request"
RETAIN, SELECTIVE = "retain_approvals_on_push", "selective_code_owner_removals"
PASSWORD, AGAIN = "require_password_to_approve", "require_reauthentication_to_approve"
NAMES = (AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE, PASSWORD, AGAIN)
SECTION = "merge_request_approval_settings"

Columns = dict[str, bool]
Entry = dict[str, Any]
_KEPT = (AUTHOR, COMMITTER, OVERRIDES, RETAIN, SELECTIVE, AGAIN)
_FRESH_PROJECT = {**dict.fromkeys(_KEPT, False), COMMITTER: True, OVERRIDES: True}
_FRESH_GROUP = {**dict.fromkeys(_KEPT, True), SELECTIVE: False, AGAIN: False}
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
    """`PUT /groups/:id/merge_request_approval_setting`: the first one makes every entry that is not sent false."""
    group = _group(call)
    sent = _sent(call)
    before: Columns | None = group.sections[SECTION]
    after = {**(before or _FIRST_WRITE), **sent}
    if call.state.deployed:
        after[SELECTIVE] = False
        if sent.keys() == {SELECTIVE}:
            after = before or {}
    elif after[SELECTIVE] and after[RETAIN]:
        raise _refuse_both(call.state)
    if sent and after and after != before:
        group.sections[SECTION] = after
        call.changed = True
    return Answer(200, _group_entries(call.state, group))


def get_project(call: Call) -> Answer:
    """`GET /projects/:id/merge_request_approval_setting`."""
    project = _project(call)
    return Answer(200, _project_entries(call.state, project))


def put_project(call: Call) -> Answer:
    """`PUT /projects/:id/merge_request_approval_setting`: what is not sent stays."""
    project = _project(call)
    sent = _sent(call)
    _check_removals(call.state, project, sent)
    before: Columns = project.sections[SECTION]
    after = {**before, **sent}
    if after != before:
        project.sections[SECTION] = after
        call.changed = True
    return Answer(200, _project_entries(call.state, project))


def _group(call: Call) -> Group:
    """The group, if the caller owns it; production has these settings on top-level groups only."""
    _require_paid_edition(call)
    group = call.group(OWNER)
    if call.state.deployed and group.parent is not None:
        raise refused(403, "403 Forbidden")
    return group


def _project(call: Call) -> Project:
    """The project, if the caller maintains it."""
    _require_paid_edition(call)
    return call.project(MAINTAINER)


def _require_paid_edition(call: Call) -> None:
    """The free edition of production has no such endpoint."""
    if call.state.deployed and not call.state.instance.enterprise:
        raise Refusal(404, {"error": "404 Not Found"})


def _sent(call: Call) -> Columns:
    """What to write. The two `require_` names are one setting, of which the later name wins."""
    sent = read(call, *_ATTRIBUTES[call.state.deployed], any_of=NAMES if call.state.deployed else ())
    if PASSWORD in sent:
        sent.setdefault(AGAIN, sent.pop(PASSWORD))
        sent.pop(PASSWORD, None)
    return sent


def _check_removals(state: State, project: Project, sent: Mapping[str, bool]) -> None:
    """Refuse what cannot be together, judged by what will hold after the write, locks included.

    The spec lets `selective_code_owner_removals` be on only while retain is off, production only while it is on;
    production reads retain through the root group and selective through the direct one.
    """
    entries = _project_entries(state, project)
    retain = sent.get(RETAIN, entries[RETAIN]["value"])
    if not state.deployed:
        if retain and sent.get(SELECTIVE, entries[SELECTIVE]["value"]):
            raise _refuse_both(state)
        return
    direct: Columns | None = project.group.sections[SECTION] if project.group else None
    withheld = direct is not None and not direct[RETAIN]
    selective = sent.get(SELECTIVE, project.sections[SECTION][SELECTIVE] and not withheld)
    if selective and not retain:
        raise _refuse_both(state)


def _refuse_both(state: State) -> Exception:
    if state.deployed:
        return refused(400, f"{SELECTIVE} can only be enabled when {RETAIN} is enabled")
    return refused(400, {SELECTIVE: [f"can only be enabled when {RETAIN} is disabled"]})


def _group_entries(state: State, group: Group) -> dict[str, Entry]:
    columns: Columns = group.sections[SECTION] or _FRESH_GROUP
    entries = {name: _entry(columns[name]) for name in _KEPT}
    if state.deployed:
        entries[SELECTIVE] = _entry(False, None if columns[RETAIN] else "group")
    _lock_by_instance(state, entries)
    return _in_order(entries)


def _project_entries(state: State, project: Project) -> dict[str, Entry]:
    columns: Columns = project.sections[SECTION]
    entries = {name: _entry(columns[name]) for name in _KEPT}
    above = list(project.groups())
    for group in above[-1:] if state.deployed else above:
        _lock_by_group(state, entries, group.sections[SECTION] or _FRESH_GROUP)
    _lock_by_instance(state, entries)
    return _in_order(entries)


def _lock_by_group(state: State, entries: dict[str, Entry], enforced: Columns) -> None:
    for name in (AUTHOR, COMMITTER, OVERRIDES, RETAIN):
        if not enforced[name]:
            entries[name] = _entry(False, "group")
    if enforced[AGAIN]:
        entries[AGAIN] = _entry(True, "group")
    if state.deployed and not enforced[RETAIN]:
        entries[SELECTIVE] = _entry(False, "group")
    if not state.deployed and enforced[SELECTIVE]:
        entries[SELECTIVE] = _entry(True, "group")


def _lock_by_instance(state: State, entries: dict[str, Entry]) -> None:
    allowed: Columns = state.instance.sections[SECTION]
    for name in (AUTHOR, COMMITTER, OVERRIDES):
        if not allowed[name]:
            entries[name] = _entry(False, "instance")


def _entry(value: bool, inherited_from: str | None = None) -> Entry:
    return {"value": value, "locked": inherited_from is not None, "inherited_from": inherited_from}


def _in_order(entries: dict[str, Entry]) -> dict[str, Entry]:
    return {name: entries[AGAIN if name == PASSWORD else name] for name in NAMES}


def _load_columns(reading: Reading, fresh: Columns) -> Columns:
    fields = reading.fields(*NAMES)
    columns = {name: fields[name].boolean(fresh[name]) for name in _KEPT}
    if not fields[AGAIN].given():
        columns[AGAIN] = fields[PASSWORD].boolean(False)
    return columns


def _load_project(reading: Reading, _state: State, _owner: Owner) -> Columns:
    return _load_columns(reading, _FRESH_PROJECT)


def _load_group(reading: Reading, _state: State, _owner: Owner) -> Columns | None:
    return _load_columns(reading, _FRESH_GROUP) if reading.given() else None


def _load_instance(reading: Reading, _state: State, _owner: Owner) -> Columns:
    fields = reading.fields(AUTHOR, COMMITTER, OVERRIDES)
    return {name: fields[name].boolean(True) for name in (AUTHOR, COMMITTER, OVERRIDES)}


def _dump(columns: Columns | None) -> Columns | None:
    return None if columns is None else dict(columns)


SECTIONS = (
    Section(SECTION, "instance", _load_instance, _dump),
    Section(SECTION, "group", _load_group, _dump),
    Section(SECTION, "project", _load_project, _dump),
)
ROUTES = (
    Route("GET", "/groups/:id/merge_request_approval_setting", get_group),
    Route("PUT", "/groups/:id/merge_request_approval_setting", put_group),
    Route("GET", "/projects/:id/merge_request_approval_setting", get_project),
    Route("PUT", "/projects/:id/merge_request_approval_setting", put_project),
)
