"""Groups and projects that are created. The spec does not define these endpoints; they follow production servers."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ..answers import Answer, Refusal, refused
from ..call import Call, Insertion, Route
from ..parameters import boolean, integer, read, text
from ..state import DEVELOPER, MAINTAINER, Group, GroupOrProject, Project, SandboxState, User, Visibility
from .instance import namespace_path, show_group, show_project
from .protected_branches import protect_default_branch
from .repository import begin_repository

KEYWORDS = frozenset({"-", "blob", "builds", "commits", "edit", "new", "raw", "tree", "wikis"})
"""Some of the words that no path may end in: the service's own addresses have them there."""

_SLUG = re.compile(r"(?![-_.])[\w.-]+(?<![-_.])(?<!\.git)(?<!\.atom)", re.ASCII)
_SHORTEST = 2
_TAKEN = ["has already been taken"]
_VISIBILITIES = ("private", "internal", "public")
TEXTS = (text("name"), text("path"), text("description"), text("visibility", values=_VISIBILITIES))
SWITCHES = {
    "repository_access_level": "repository_enabled",
    "builds_access_level": "builds_enabled",
    "package_registry_access_level": "packages_enabled",
    "container_registry_access_level": "container_registry_enabled",
    "issues_access_level": "issues_enabled",
    "merge_requests_access_level": "merge_requests_enabled",
}
PROJECT = (
    *TEXTS,
    *(text(name, values=("disabled", "private", "enabled")) for name in SWITCHES),
    boolean("packages_enabled"),
)
_REPOSITORY = (boolean("initialize_with_readme"), text("default_branch"))


def create_group(call: Call) -> Insertion:
    """`POST /groups`: in a group for its maintainers, at the top for everybody who may make groups."""
    sent = read(call, text("name", required=True), text("path", required=True), *TEXTS[2:], integer("parent_id"))
    parent = find_parent(call, sent.get("parent_id"))

    def insert() -> Answer:
        made = add_group(call.state, call.caller(), parent, sent)
        call.changed = True
        return Answer(201, show_group(call, made))

    return insert


def find_parent(call: Call, number: int | None) -> Group | None:
    """Return the group of that ID, in which the caller may make groups, or None without a parent; else 404 or 403."""
    if not number:
        if not call.caller().can_create_group:
            raise refused(403, "403 Forbidden")
        return None
    parent = call.state.groups.get(number)
    if parent is None or not call.state.visible(call.caller(), parent):
        raise refused(404, "404 Group Not Found")
    call.require(parent, MAINTAINER)
    return parent


def add_group(state: SandboxState, owner: User, parent: Group | None, sent: Mapping[str, Any]) -> Group:
    """Make a group with these attributes and that owner; else 400."""
    path = f"{parent.path}/{sent['path']}" if parent else sent["path"]
    visibility = sent.get("visibility") or "private"
    wrong = wrong_group(state, path, sent["name"]) | too_visible(visibility, parent)
    if wrong:
        raise _unsaved(wrong)
    values = {"path": path, "name": sent["name"], "description": sent.get("description"), "visibility": visibility}
    return state.add_group({**values, "members": [{"user": owner.username, "role": "owner"}]})


def add_missing_groups(call: Call, path: str) -> Group | None:
    """Make the groups of a path that are missing; None if one cannot be made, although those above it stay."""
    group: Group | None = None
    for slug in path.split("/"):
        parent = group
        group = call.state.groups_by_path.get(f"{parent.path}/{slug}".lower() if parent else slug.lower())
        if group is None:
            try:
                find_parent(call, parent.id if parent else None)
                group = add_group(call.state, call.caller(), parent, {"path": slug, "name": slug})
                call.changed = True
            except Refusal:
                return None
    return group


def create_project(call: Call) -> Insertion:
    """`POST /projects`: in a group for its developers, or in the caller's own namespace."""
    sent = read(call, *PROJECT, *_REPOSITORY, integer("namespace_id"), any_of=("name", "path"))
    user, state = call.caller(), call.state
    number = sent.get("namespace_id")
    namespace = state.find_namespace(str(number)) if number else user
    if namespace is None:
        raise refused(400, {"base": ["undefined method `organization_id' for nil"]})
    if not may_create(state, user, namespace, DEVELOPER):
        raise refused(400, {"namespace": ["is not valid"]})
    slug = sent.get("path") or re.sub(r"[^\w.]+", "-", sent["name"].lower()).strip("-")
    visibility: Visibility = sent.get("visibility") or "private"
    values: dict[str, Any] = {
        "path": f"{namespace_path(namespace)}/{slug}",
        "name": sent.get("name") or slug,
        "description": sent.get("description"),
        "visibility": lowered(visibility, namespace) if isinstance(namespace, Group) else visibility,
        **({"default_branch": sent["default_branch"]} if sent.get("default_branch") else {}),
        **switched(sent),
    }

    def insert() -> Answer:
        wrong = wrong_project(state, values["path"], values["name"])
        if wrong:
            raise refused(400, wrong)
        call.changed = True
        made = state.add_project(values)
        made.empty_repo = True
        if sent.get("initialize_with_readme"):
            begin_repository(made, {"README.md": f"# {made.name}\n"})
            protect_default_branch(state, made)
        return Answer(201, show_project(call, made))

    return insert


def may_create(state: SandboxState, user: User, namespace: Group | User, role: int) -> bool:
    """Whether the user has that role in a group, or owns a personal namespace, or is an administrator."""
    if isinstance(namespace, Group):
        return state.access(user, namespace) >= role
    return user.admin or namespace.id == user.id


def lowered(visibility: Visibility, parent: Group | None) -> Visibility:
    """Return the visibility, or that of the parent if it is less."""
    return parent.visibility if parent and _is_above(visibility, parent) else visibility


def _is_above(visibility: str, group: Group) -> bool:
    return _VISIBILITIES.index(visibility) > _VISIBILITIES.index(group.visibility)


def _is_free(state: SandboxState, path: str, this: GroupOrProject | None) -> bool:
    """Whether no other user, group or project has the path."""
    key = path.lower()
    places = [
        by_path[key]
        for by_path in (state.users_by_name, state.groups_by_path, state.projects_by_path)
        if key in by_path
    ]
    return places in ([], [this])


def _is_named(places: Mapping[int, GroupOrProject], path: str, name: str, this: GroupOrProject | None) -> bool:
    """Whether another place beside that path has that name."""
    parent = path.rpartition("/")[0].lower()
    return any(
        place.name == name and place is not this and place.parent_path.lower() == parent for place in places.values()
    )


def wrong_group(state: SandboxState, path: str, name: str, this: Group | None = None) -> dict[str, list[str]]:
    """Return the errors about a group's path and name, by attribute."""
    wrong = {"name": _TAKEN} if "/" in path and _is_named(state.groups, path, name, this) else {}
    slug = path.rpartition("/")[2]
    reasons = [f"is too short (minimum is {_SHORTEST} characters)"] if len(slug) < _SHORTEST else []
    reasons += _malformed(slug, "or end in '.', '.git' or '.atom'.")
    if not reasons and not _is_free(state, path, this):
        reasons = _TAKEN
    return {**wrong, "path": reasons} if reasons else wrong


def wrong_project(state: SandboxState, path: str, name: str, this: Project | None = None) -> dict[str, list[str]]:
    """Return the errors about a project's path and name, by attribute."""
    reasons = _malformed(path.rpartition("/")[2], "end in '.git' or end in '.atom'")
    if reasons:
        return {"project_namespace.path": reasons, "path": reasons}
    named = {"project_namespace.name": _TAKEN, "name": _TAKEN} if _is_named(state.projects, path, name, this) else {}
    return named if _is_free(state, path, this) else {**named, "path": _TAKEN}


def _malformed(slug: str, ends: str) -> list[str]:
    """Return the errors about the last part of a path alone."""
    if slug in KEYWORDS:
        return [f"{slug} is a reserved name"]
    if _SLUG.fullmatch(slug):
        return []
    start = "Cannot start with '-'" + (" " if ends.startswith("or") else ", ")
    return [
        "can only include non-accented letters, digits, '_', '-' and '.'. It must not start with '-', '_', or '.', "
        "nor end with '-', '_', '.', '.git', or '.atom'.",
        f"can contain only letters, digits, '_', '-' and '.'. {start}{ends}",
    ]


def too_visible(visibility: str, parent: Group | None) -> dict[str, list[str]]:
    """Return the errors about a group's visibility, by attribute."""
    if parent is None or not _is_above(visibility, parent):
        return {}
    reason = f"{visibility} is not allowed since the parent group has a {parent.visibility} visibility."
    return {"visibility_level": [reason]}


def _unsaved(wrong: dict[str, list[str]]) -> Refusal:
    """Refuse with 400 and a Ruby hash, as production answers a creation."""
    pairs = (f":{name}=>[{', '.join(map(json.dumps, reasons))}]" for name, reasons in wrong.items())
    return refused(400, f"Failed to save group {{{', '.join(pairs)}}}")


def switched(sent: dict[str, Any]) -> dict[str, bool]:
    """Return the features that a request switches on and off, by attribute of a project."""
    plain = {"packages_enabled": sent["packages_enabled"]} if sent.get("packages_enabled") is not None else {}
    return plain | {SWITCHES[name]: sent[name] != "disabled" for name in SWITCHES if sent.get(name)}


ROUTES = (
    Route("POST", "/groups", create_group),
    Route("POST", "/projects", create_project),
)
