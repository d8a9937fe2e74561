"""Entries of rules that protect branches and tags: each names a role, a user, a group or a deploy key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from .answers import refused
from .call import Call, invalid
from .records import AnyUsername, GroupId, StoredItem
from .state import DEVELOPER, MAINTAINER, GroupOrProject, Project, SandboxState, User

ROLE_NAMES = {0: "No one", 30: "Developers + Maintainers", 40: "Maintainers", 60: "Instance admins"}
LEVELS = tuple(ROLE_NAMES)
AccessLevel = Literal[0, 30, 40, 60]
KEYS = "enabled_deploy_keys"
"""The section of a project that holds its deploy keys."""
_TAKEN = "has already been taken"
_NOBODY = "-"
"""A name that no user can have."""


class Entry(StoredItem):
    """An entry; if it has a user, a group or a key, its level means nothing."""

    access_level: AccessLevel = 40
    user: AnyUsername | None = None
    group_id: GroupId | None = None
    deploy_key_id: int | None = None

    @property
    def subject(self) -> tuple[str, object]:
        """The subject of the entry: the word for it in errors, and its name or number."""
        for word, value in (("user", self.user), ("group", self.group_id), ("deploy key", self.deploy_key_id)):
            if value is not None:
                return word, value
        return "access level", self.access_level

    def allows(self, state: SandboxState, user: User, project: Project) -> bool:
        """Whether the entry means that user. Roles are for members who may push.

        Nobody may push to an archived project.
        """
        if self.user is not None:
            return self.user == user.username
        if self.group_id is not None:
            group = state.groups.get(self.group_id)
            return group is not None and state.membership(user, group) > 0
        if self.deploy_key_id is not None or self.access_level == 0:
            return False
        if self.access_level == 60:
            return user.admin
        can_push = project.repository_enabled and not state.is_archived(project)
        return can_push and state.membership(user, project) >= self.access_level


E = TypeVar("E", bound=Entry)


def read_entries(call: Call, name: str, levels: Sequence[int], keys: Sequence[str]) -> list[dict[str, Any]] | None:
    """Return the entries sent in a list, each with the declared keys; None if the list was not sent."""
    sent = call.sent.get(name)
    if sent is None:
        return None
    if not isinstance(sent, list) or not all(isinstance(entry, Mapping) for entry in sent):
        raise invalid(call.state, {name: "is invalid"})
    entries = [{key: entry[key] for key in keys if key in entry} for entry in sent]
    if not {entry.get("access_level") for entry in entries} <= {None, *levels}:
        raise invalid(call.state, {f"{name}[access_level]": "does not have a valid value"})
    return entries


def changed_entry(state: SandboxState, entry: E, sent: Mapping[str, Any]) -> E:
    """Return the entry with its new values."""
    values: dict[str, Any] = {}
    if "access_level" in sent:
        values["access_level"] = MAINTAINER if sent["access_level"] is None else sent["access_level"]
    if "user_id" in sent:
        user = state.users.get(sent["user_id"] or 0)
        values["user"] = user.username if user else sent["user_id"] and _NOBODY
    values.update((name, sent[name]) for name in ("group_id", "deploy_key_id") if name in sent)
    return entry.model_copy(update=values)


def entry_faults(state: SandboxState, owner: GroupOrProject, entries: Iterable[Entry], label: str) -> Iterator[str]:
    """Yield the errors about refused entries; `label` is the list in words."""
    licensed = isinstance(owner, Project) and state.instance.licensed
    for entry in entries:
        word, _ = entry.subject
        if word in ("user", "group") and not licensed:
            yield f"{label} {word} must be blank"
        elif reason := _fault(state, owner, entry):
            yield f"{label} {word} {reason}"


def _fault(state: SandboxState, owner: GroupOrProject, entry: Entry) -> str:
    """Return the error about an entry in that place; empty if it is accepted."""
    match entry.subject:
        case "user", name:
            user = state.users_by_name.get(str(name).lower())
            if user is None:
                return "can't be blank"
            is_known = state.membership(user, owner) and state.has_settled(user, owner)
            return "" if is_known else "is not a member of the project"
        case "group", number:
            invited = any(group.id == number and role >= DEVELOPER for group, role in state.invited_to(owner))
            return "" if invited else "does not have access to the project"
        case "deploy key", number:
            writes = [key.can_push for key in keys_of(owner) if key.id == number]
            return "" if any(writes) else "is not enabled for this project" if writes else "can't be blank"
    return ""


def taken(entries: Sequence[Entry], wanted: Entry, label: str) -> str:
    """Return the error about an entry beside the existing ones; empty if it can be added."""
    word, _ = wanted.subject
    same = any(entry.subject == wanted.subject and entry.id != wanted.id for entry in entries)
    return f"{label} {word} {_TAKEN}" if same else ""


def keys_of(owner: GroupOrProject) -> list[Any]:
    """Return the deploy keys of a project; a group has none."""
    return list(getattr(owner, KEYS, ()))


def show_entry(state: SandboxState, owner: GroupOrProject, entry: Entry, *, with_key: bool) -> dict[str, Any]:
    """Return the record of an entry; the free builds of the service know roles and keys only."""
    word, _ = entry.subject
    user = state.users_by_name[entry.user.lower()] if entry.user else None
    name = ROLE_NAMES[entry.access_level]
    if user is not None:
        name = user.name
    elif word == "group":
        name = state.groups[entry.group_id or 0].name
    elif word == "deploy key":
        name = next((key.title for key in keys_of(owner) if key.id == entry.deploy_key_id), name)
    record: dict[str, Any] = {"id": entry.id, "access_level": entry.access_level, "access_level_description": name}
    if with_key:
        record["deploy_key_id"] = entry.deploy_key_id
    if state.instance.enterprise:
        record |= {"user_id": user.id if user else None, "group_id": entry.group_id}
    return record


def exists(state: SandboxState, owner: GroupOrProject, entry: Entry) -> bool:
    """Whether the subject of an entry still exists."""
    return (
        (entry.user is None or entry.user.lower() in state.users_by_name)
        and (entry.group_id is None or entry.group_id in state.groups)
        and (entry.deploy_key_id is None or any(key.id == entry.deploy_key_id for key in keys_of(owner)))
    )


def belongs(state: SandboxState, owner: GroupOrProject, entry: Entry) -> bool:
    """Whether the user of an entry is still a member, and its group still invited."""
    gone = entry.user is not None and not state.membership(state.user(entry.user), owner)
    return not gone and invites(state, owner, entry)


def invites(state: SandboxState, owner: GroupOrProject, entry: Entry) -> bool:
    """Whether the group of an entry is still invited."""
    return entry.group_id is None or any(group.id == entry.group_id for group, _ in state.invited_to(owner))


def unprocessable(reasons: Iterable[str]) -> None:
    """Refuse with 422 if there are reasons, each of them once."""
    wrong = list(dict.fromkeys(filter(None, reasons)))
    if wrong:
        raise refused(422, wrong)


def number_entries(state: SandboxState, rule: StoredItem) -> None:
    """Give IDs to the new entries of a rule."""
    for entries in rule.parts():
        for entry in entries:
            entry.id = entry.id or state.numbers(type(entry)).give()
