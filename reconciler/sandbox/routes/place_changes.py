"""Groups and projects that are changed, moved, archived and deleted. The spec does not define these endpoints.

A deletion takes a place to another path, where the place waits; a second deletion, with `permanently_remove`, ends it
at once, since the sandbox has no jobs. A top-level group waits for ever, unless its only owner is deleted.
"""

from typing import Any

from ..answers import Answer, refused
from ..call import Call, Route
from ..parameters import boolean, mapping, read, text
from ..state import MAINTAINER, OWNER, GroupOrProject, Project
from .instance import namespace_path, show_group, show_project
from .places import (
    PROJECT,
    SWITCHES,
    TEXTS,
    may_create,
    switched,
    too_visible,
    wrong_group,
    wrong_project,
)
from .protected_branches import DEFAULTS, BranchDefaults
from .repository import repository_of

_DELETION = (boolean("permanently_remove"), text("full_path"))


def update_group(call: Call) -> Answer:
    """`PUT /groups/:id`: name, path, description and visibility."""
    sent = read(call, *TEXTS, mapping(DEFAULTS.name))
    group = call.group(OWNER)
    path, name = _path_of(group, sent), sent.get("name") or group.name
    parent = call.state.groups_by_path.get(group.parent_path.lower())
    wrong = wrong_group(call.state, path, name, group)
    wrong |= too_visible(sent.get("visibility") or group.visibility, parent)
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


def update_project(call: Call) -> Answer:
    """`PUT /projects/:id`: name, path, description, visibility, features, and the default branch."""
    options = (*PROJECT, text("default_branch"))
    sent = read(call, *options, any_of=[option.name for option in options])
    project = call.project(MAINTAINER)
    path, name = _path_of(project, sent), sent.get("name") or project.name
    wrong = wrong_project(call.state, path, name, project)
    if wrong:
        raise refused(400, wrong)
    branch = sent.get("default_branch")
    if branch is not None and not _may_be_default(project, branch):
        raise refused(400, {"base": [f"Could not change HEAD: branch '{branch}' does not exist"]})
    _change(call, project, path, sent)
    if branch is not None:
        # No rule of branches changes, and none comes: production protects the first default branch alone.
        call.changed |= branch != project.default_branch
        project.default_branch = branch
    return Answer(200, show_project(call, project))


def _may_be_default(project: Project, branch: str) -> bool:
    """Return whether a branch exists; if a state has no commits of a project, any branch may be the default."""
    repository = repository_of(project)
    return branch in repository.branches if repository.commits else bool(branch) and not project.empty_repo


def transfer_project(call: Call) -> Answer:
    """`PUT /projects/:id/transfer`: into a group for its maintainers, or into the caller's own namespace."""
    key = read(call, text("namespace", required=True))["namespace"]
    project, state = call.project(OWNER), call.state
    namespace = state.find_namespace(key)
    if namespace is None:
        raise refused(404, "404 Namespace Not Found")
    path = f"{namespace_path(namespace)}/{project.slug}"
    reason = ""
    if not may_create(state, call.caller(), namespace, MAINTAINER):
        reason = "You don't have permission to transfer projects into that namespace."
    elif path == project.path:
        reason = "Project is already in this namespace."
    elif wrong_project(state, path, project.name, project):
        reason = "Project with same name or path in target namespace already exists"
    if reason:
        raise refused(400, f'Failed to transfer project ["{reason}"]')
    state.tick()
    state.move(project, path)
    call.changed = True
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


def _path_of(place: GroupOrProject, sent: dict[str, Any]) -> str:
    """Return the full path that the place shall have."""
    slug = sent.get("path") or place.slug
    return f"{place.parent_path}/{slug}" if place.parent_path else slug


def _change(call: Call, place: GroupOrProject, path: str, sent: dict[str, Any]) -> None:
    before = place.model_copy()
    call.state.tick()
    for name, value in {**sent, **switched(sent)}.items():
        if name in ("name", "description", "visibility", *SWITCHES.values()):
            setattr(place, name, value)
    if path != place.path:
        call.require(place, OWNER)
        call.state.move(place, path)
    call.changed = place != before


def _delete(call: Call, place: GroupOrProject, word: str, sent: dict[str, Any]) -> Answer:
    """Take a place to the path where it waits; or, from there, remove the place with all its content."""
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
    Route("PUT", "/groups/:id", update_group),
    Route("DELETE", "/groups/:id", delete_group),
    Route("PUT", "/projects/:id", update_project),
    Route("DELETE", "/projects/:id", delete_project),
    Route("PUT", "/projects/:id/transfer", transfer_project),
    Route("POST", "/projects/:id/archive", archive_project),
    Route("POST", "/projects/:id/unarchive", archive_project),
)
