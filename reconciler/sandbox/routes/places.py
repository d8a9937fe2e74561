"""Groups and projects that are created, changed, archived and deleted.

The spec does not define these endpoints; they follow production servers. A deletion takes a place to another path,
where it waits; a second one, with `permanently_remove`, ends it at once, since the sandbox has no jobs. A top-level
group waits for ever, unless its only owner is deleted.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from ..answers import Answer, Refusal, refused
from ..call import Call, Insertion, Route
from ..parameters import boolean, integer, mapping, read, text
from ..state import DEVELOPER, MAINTAINER, OWNER, Group, Place, Project, State, User, Visibility
from .instance import namespace_path, show_group, show_project
from .protected_branches import DEFAULTS, BranchDefaults, protect_default_branch
from .repository import begin_repository

KEYWORDS = frozenset({"-", "blob", "builds", "commits", "edit", "new", "raw", "tree", "wikis"})
"""Some of the words that no path may end in: the service's own addresses have them there."""

_SLUG = re.compile(r"(?![-_.])[\w.-]+(?<![-_.])(?<!\.git)(?<!\.atom)", re.ASCII)
_SHORTEST = 2
_TAKEN = ["has already been taken"]
_VISIBILITIES = ("private", "internal", "public")
_TEXTS = (text("name"), text("path"), text("description"), text("visibility", values=_VISIBILITIES))
_SWITCHES = {
    "repository_access_level": "repository_enabled",
    "builds_access_level": "builds_enabled",
    "package_registry_access_level": "packages_enabled",
    "container_registry_access_level": "container_registry_enabled",
    "issues_access_level": "issues_enabled",
    "merge_requests_access_level": "merge_requests_enabled",
}
_PROJECT = (
    *_TEXTS,
    *(text(name, values=("disabled", "private", "enabled")) for name in _SWITCHES),
    boolean("packages_enabled"),
)
_REPOSITORY = (boolean("initialize_with_readme"), text("default_branch"))
_DELETION = (boolean("permanently_remove"), text("full_path"))


def create_group(call: Call) -> Insertion:
    """`POST /groups`: in a group for its maintainers, at the top for everybody who may make groups."""
    sent = read(call, text("name", required=True), text("path", required=True), *_TEXTS[2:], integer("parent_id"))
    parent = find_parent(call, sent.get("parent_id"))

    def insert() -> Answer:
        made = add_group(call.state, call.caller(), parent, sent)
        call.changed = True
        return Answer(201, show_group(call, made))

    return insert


def find_parent(call: Call, number: int | None) -> Group | None:
    """Return the group of that ID, in which the caller may make groups, or None for the top; else 404 or 403."""
    if not number:
        if not call.caller().can_create_group:
            raise refused(403, "403 Forbidden")
        return None
    parent = call.state.groups.get(number)
    if parent is None or not call.state.visible(call.caller(), parent):
        raise refused(404, "404 Group Not Found")
    call.require(parent, MAINTAINER)
    return parent


def add_group(state: State, owner: User, parent: Group | None, sent: Mapping[str, Any]) -> Group:
    """Make a group with these attributes and that owner; else 400."""
    path = f"{parent.path}/{sent['path']}" if parent else sent["path"]
    visibility = sent.get("visibility") or "private"
    wrong = _wrong_group(state, path, sent["name"]) | _too_visible(visibility, parent)
    if wrong:
        raise _unsaved(wrong)
    values = {"path": path, "name": sent["name"], "description": sent.get("description"), "visibility": visibility}
    return state.add_group({**values, "members": [{"user": owner.username, "role": "owner"}]})


def add_missing_groups(call: Call, path: str) -> Group | None:
    """Make the groups of a path that are missing; None where one cannot be, although those above it stay."""
    found: Group | None = None
    for slug in path.split("/"):
        parent = found
        found = call.state.groups_by_path.get(f"{parent.path}/{slug}".lower() if parent else slug.lower())
        if found is None:
            try:
                find_parent(call, parent.id if parent else None)
                found = add_group(call.state, call.caller(), parent, {"path": slug, "name": slug})
                call.changed = True
            except Refusal:
                return None
    return found


def update_group(call: Call) -> Answer:
    """`PUT /groups/:id`: name, path, description and visibility."""
    sent = read(call, *_TEXTS, mapping(DEFAULTS.name))
    group = call.group(OWNER)
    path, name = _path_of(group, sent), sent.get("name") or group.name
    parent = call.state.groups_by_path.get(group.parent_path.lower())
    wrong = _wrong_group(call.state, path, name, group)
    wrong |= _too_visible(sent.get("visibility") or group.visibility, parent)
    if wrong:
        raise refused(400, wrong)
    if sent.get(DEFAULTS.name):
        DEFAULTS.put(group, BranchDefaults.model_validate(sent[DEFAULTS.name]))
    _change(call, group, path, sent)
    return Answer(200, show_group(call, group))


def delete_group(call: Call) -> Answer:
    """`DELETE /groups/:id`."""
    sent = read(call, *_DELETION)
    group = call.group(OWNER)
    if sent.get("permanently_remove") and not group.parent_path:
        raise refused(400, "`permanently_remove` option is only available for subgroups.")
    return _delete(call, group, "subgroup" if group.parent_path else "group", sent)


def create_project(call: Call) -> Insertion:
    """`POST /projects`: in a group for its developers, or in the caller's own namespace."""
    sent = read(call, *_PROJECT, *_REPOSITORY, integer("namespace_id"), any_of=("name", "path"))
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
        **_switched(sent),
    }

    def insert() -> Answer:
        wrong = wrong_project(state, values["path"], values["name"])
        if wrong:
            raise refused(400, wrong)
        call.changed = True
        made = state.add_project(values)
        if sent.get("initialize_with_readme"):
            begin_repository(made, {"README.md": f"# {made.name}\n"})
            protect_default_branch(state, made)
        return Answer(201, show_project(call, made))

    return insert


def may_create(state: State, user: User, namespace: Group | User, role: int) -> bool:
    """Whether the user has that role in a group, or the personal namespace is theirs or they are an administrator."""
    if isinstance(namespace, Group):
        return state.access(user, namespace) >= role
    return user.admin or namespace is user


def update_project(call: Call) -> Answer:
    """`PUT /projects/:id`: name, path, description, visibility, and what is switched on."""
    sent = read(call, *_PROJECT, any_of=[each.name for each in _PROJECT])
    project = call.project(MAINTAINER)
    path, name = _path_of(project, sent), sent.get("name") or project.name
    wrong = wrong_project(call.state, path, name, project)
    if wrong:
        raise refused(400, wrong)
    _change(call, project, path, sent)
    return Answer(200, show_project(call, project))


def archive_project(call: Call) -> Answer:
    """`POST /projects/:id/archive`, and `unarchive`."""
    project, archived = call.project(OWNER), not call.route.path.endswith("/unarchive")
    if archived and project.archived:
        raise refused(400, "Project is already archived.")
    project.archived = archived
    call.changed = True
    return Answer(201, show_project(call, project))


def delete_project(call: Call) -> Answer:
    """`DELETE /projects/:id`."""
    sent = read(call, *_DELETION)
    return _delete(call, call.project(OWNER), "project", sent)


def lowered(visibility: Visibility, parent: Group | None) -> Visibility:
    """Return the visibility, or that of the parent if it is less."""
    return parent.visibility if parent and _is_above(visibility, parent) else visibility


def _is_above(visibility: str, group: Group) -> bool:
    return _VISIBILITIES.index(visibility) > _VISIBILITIES.index(group.visibility)


def _is_free(state: State, path: str, this: Place | None) -> bool:
    """Whether no user, group or project has the path, other than this one."""
    key = path.lower()
    found = [each[key] for each in (state.users_by_name, state.groups_by_path, state.projects_by_path) if key in each]
    return found in ([], [this])


def _is_named(places: Mapping[int, Place], path: str, name: str, this: Place | None) -> bool:
    """Whether one of the places beside that path has that name, other than this one."""
    parent = path.rpartition("/")[0].lower()
    return any(
        each.name == name and each is not this and each.parent_path.lower() == parent for each in places.values()
    )


def _wrong_group(state: State, path: str, name: str, this: Group | None = None) -> dict[str, list[str]]:
    wrong = {"name": _TAKEN} if "/" in path and _is_named(state.groups, path, name, this) else {}
    slug = path.rpartition("/")[2]
    reasons = [f"is too short (minimum is {_SHORTEST} characters)"] if len(slug) < _SHORTEST else []
    reasons += _malformed(slug, "or end in '.', '.git' or '.atom'.")
    if not reasons and not _is_free(state, path, this):
        reasons = _TAKEN
    return {**wrong, "path": reasons} if reasons else wrong


def wrong_project(state: State, path: str, name: str, this: Project | None = None) -> dict[str, list[str]]:
    """Return why no project can have that path and that name, by attribute: nothing if one can."""
    reasons = _malformed(path.rpartition("/")[2], "end in '.git' or end in '.atom'")
    if reasons:
        return {"project_namespace.path": reasons, "path": reasons}
    named = {"project_namespace.name": _TAKEN, "name": _TAKEN} if _is_named(state.projects, path, name, this) else {}
    return named if _is_free(state, path, this) else {**named, "path": _TAKEN}


def _malformed(slug: str, ends: str) -> list[str]:
    """Return what is wrong with the last part of a path in itself."""
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


def _too_visible(visibility: str, parent: Group | None) -> dict[str, list[str]]:
    if parent is None or not _is_above(visibility, parent):
        return {}
    reason = f"{visibility} is not allowed since the parent group has a {parent.visibility} visibility."
    return {"visibility_level": [reason]}


def _unsaved(wrong: dict[str, list[str]]) -> Refusal:
    """400 with a Ruby hash, as production answers a creation."""
    pairs = (f":{name}=>[{', '.join(map(json.dumps, reasons))}]" for name, reasons in wrong.items())
    return refused(400, f"Failed to save group {{{', '.join(pairs)}}}")


def _path_of(place: Place, sent: dict[str, Any]) -> str:
    """Return the full path that the place shall have."""
    slug = sent.get("path") or place.slug
    return f"{place.parent_path}/{slug}" if place.parent_path else slug


def _change(call: Call, place: Place, path: str, sent: dict[str, Any]) -> None:
    before = place.model_copy()
    call.state.tick()
    for name, value in {**sent, **_switched(sent)}.items():
        if name in ("name", "description", "visibility", *_SWITCHES.values()):
            setattr(place, name, value)
    if path != place.path:
        call.require(place, OWNER)
        call.state.move(place, path)
    call.changed = place != before


def _switched(sent: dict[str, Any]) -> dict[str, bool]:
    plain = {"packages_enabled": sent["packages_enabled"]} if sent.get("packages_enabled") is not None else {}
    return plain | {_SWITCHES[name]: sent[name] != "disabled" for name in _SWITCHES if sent.get(name)}


def _delete(call: Call, place: Place, word: str, sent: dict[str, Any]) -> Answer:
    """Take a place to the path where it waits; or, from there, remove it with all that lies in it."""
    if sent.get("permanently_remove"):
        if not place.marked_for_deletion_on:
            raise refused(400, f"{word.removeprefix('sub').capitalize()} must be marked for deletion first.")
        if sent.get("full_path") != place.path:
            raise refused(400, f"`full_path` is incorrect. You must enter the complete path for the {word}.")
        call.state.remove(place)
    elif place.marked_for_deletion_on:
        raise refused(400, f"{word.removeprefix('sub').capitalize()} has already been marked for deletion")
    else:
        place.marked_for_deletion_on = call.state.today()
        place.name = f"{place.name}-deletion_scheduled-{place.id}"
        call.state.move(place, f"{place.path}-deletion_scheduled-{place.id}")
    call.changed = True
    return Answer(202, {"message": "202 Accepted"})


ROUTES = (
    Route("POST", "/groups", create_group),
    Route("PUT", "/groups/:id", update_group),
    Route("DELETE", "/groups/:id", delete_group),
    Route("POST", "/projects", create_project),
    Route("PUT", "/projects/:id", update_project),
    Route("DELETE", "/projects/:id", delete_project),
    Route("POST", "/projects/:id/archive", archive_project),
    Route("POST", "/projects/:id/unarchive", archive_project),
)
