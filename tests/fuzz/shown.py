"""What a plan shows that will happen, and what really did: the one must explain the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.building import KINDS

State = Mapping[str, Any]

FRESH_GROUP = {
    "allow_author_approval": True,
    "allow_committer_approval": True,
    "allow_overrides_to_approver_list_per_merge_request": True,
    "retain_approvals_on_push": True,
    "selective_code_owner_removals": False,
    "require_reauthentication_to_approve": False,
}
NAMES = {
    "milestones": "title",
    "trigger_tokens": "description",
    "container_repository_protection_rules": "repository_path_pattern",
}
IGNORED = frozenset({"id", "iid", "created_at", "updated_at", "token", "owner", "last_used", "expires_at"})
DEFAULTS = (None, "", "active")
TITLES = {(kind.name, part.name): part.title for kind in KINDS.values() for part in kind.parts}


@dataclass(frozen=True)
class Thing:
    """An object or a settings section: where, what it is called, and what is in it."""

    level: str
    path: str | None
    section: str
    name: Any
    fields: Mapping[str, Any]


def things(state: State) -> dict[Any, Thing]:
    """Return everything that a plan can change, by what identifies it whatever it is called."""
    paths = {project["id"]: project["path"] for project in state["projects"]}
    groups = {group["id"]: group["path"] for group in state["groups"]}
    found: dict[Any, Thing] = {}
    for level, place in _places(state):
        path = place.get("path")
        for section, name in NAMES.items():
            for each in place.get(section, ()) if level == "project" else ():
                fields = {key: value for key, value in each.items() if key not in IGNORED and key != name}
                found[section, each["id"]] = Thing(level, path, section, each[name], fields)
        notified = place.get("notification_settings", {})
        own = notified if level == "user" else notified.get("ada", {"level": "global", "events": {}})
        found[level, path, "n"] = Thing(level, path, "notification_settings", None, own["events"] | _plain(own))
        if level != "user":
            columns = place.get("merge_request_approval_settings") or FRESH_GROUP
            found[level, path, "a"] = Thing(level, path, "approval_settings", None, columns)
        if level == "project":
            target = place["job_token_scope"]
            found[path, "s"] = Thing(level, path, "job_token_scope", None, {"enabled": target["inbound_enabled"]})
            for part, known in (("project_allowlist", paths), ("group_allowlist", groups)):
                for number in target[part]:
                    found[path, part, number] = Thing(level, path, "job_token_scope", (number, known[number]), {})
    return found


def unexplained(before: State, after: State, plan: Mapping[str, Any]) -> list[str]:
    """Return what is different now although the plan shows no such thing."""
    old, new = things(before), things(after)
    shown = list(_shown(plan, before))
    return [
        f"{old.get(key)} became {new.get(key)}"
        for key in {**old, **new}
        if old.get(key) != new.get(key) and not any(_explains(each, old.get(key), new.get(key)) for each in shown)
    ]


def _places(state: State) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from (("user", user) for user in state["users"] if user["username"] == "ada")
    yield from (("group", group) for group in state["groups"])
    yield from (("project", project) for project in state["projects"])


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != "events"}


@dataclass(frozen=True)
class _Shown:
    """A change as the plan shows it."""

    level: str
    path: Any
    section: str
    action: str
    names: tuple[Any, ...]
    values: tuple[Any, ...]


def _shown(plan: Mapping[str, Any], state: State) -> Iterator[_Shown]:
    targets = {target["target"]: target for target in plan["targets"]}
    for item in plan["items"]:
        if "action" not in item:
            continue
        level, ref = targets[item["target"]]["level"], targets[item["target"]]["ref"]
        numbers = {each["id"]: each["path"] for each in state.get(f"{level}s", ()) if "path" in each}
        path = numbers.get(ref) if isinstance(ref, int) else ref
        values = tuple(_scalars(item.get("after", {})))
        if item["action"] == "keep":  # settings that are planned again
            yield _Shown(level, path, item["section"], "update", (None,), values)
        elif item["title"] == TITLES.get((item["section"], item.get("part", item["section"]))):
            names = (item["name"], item.get("renamed_from"))
            yield _Shown(level, path, item["section"], item["action"], names, values)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scalars(inner)
    else:
        yield value


def _explains(shown: _Shown, old: Thing | None, new: Thing | None) -> bool:
    thing = new or old
    assert thing is not None
    if (shown.level, shown.path, shown.section) != (thing.level, thing.path, thing.section):
        return False
    if old is None or new is None:
        action = "create" if old is None else "delete"
        named = shown.names[0] in (thing.name if isinstance(thing.name, tuple) else (thing.name,))
        return shown.action == action and named and (new is None or _holds(shown, {}, new.fields))
    renamed = old.name == new.name or (old.name in shown.names and new.name == shown.names[0])
    known = new.name == shown.names[0] or old.name == shown.names[0]
    return shown.action == "update" and renamed and known and _holds(shown, old.fields, new.fields)


def _holds(shown: _Shown, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the change shows every value that is new."""
    return all(
        value in shown.values or (name not in old and value in DEFAULTS)
        for name, value in new.items()
        if name not in old or old[name] != value
    )
