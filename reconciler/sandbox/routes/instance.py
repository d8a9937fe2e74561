"""The endpoints with which every client starts: user, version, token, projects and groups.

The spec does not define these endpoints; their records follow production servers.
"""

from typing import Any

from ..answers import Answer, refused
from ..call import Call, Route
from ..collection import PAGE, page_of
from ..parameters import boolean, integer, read, text
from ..state import REPORTER, AccessToken, Group, Project, SandboxState, User

WHOLE_RECORD, SIMPLE_RECORD = 0.47, 0.18
"""What a project in a list costs; see `Call.cost`."""


def show_user(call: Call, user: User) -> dict[str, Any]:
    """Return a user as part of other records."""
    return {
        "id": user.id,
        "username": user.username,
        "public_email": None if call.state.deployed else "",
        "name": user.name,
        "state": "blocked" if user.blocked else "active",
        "locked": False,
        "avatar_url": f"{call.url}/avatar.png",
        "web_url": f"{call.url}/{user.username}",
    }


def show_basic_project(call: Call, project: Project) -> dict[str, Any]:
    """Return the limited project record (spec section 2)."""
    state, url = call.state, call.url
    namespace = _show_namespace(call, state.group_of(project) or state.user(project.parent_path))
    names = [group.name for group in state.groups_above(project)] or [namespace["name"]]
    spaces = " / ".join(reversed(names))
    host = url.partition("://")[2]
    return {
        "id": project.id,
        "description": project.description,
        "name": project.name,
        "name_with_namespace": f"{spaces} / {project.name}",
        "path": project.slug,
        "path_with_namespace": project.path,
        "created_at": state.show_time(project.created_at),
        "last_activity_at": state.show_time(project.last_activity_at),
        **({"default_branch": project.default_branch} if _shows_code(call, project) else {}),
        "tag_list": list(project.topics),
        "topics": list(project.topics),
        "ssh_url_to_repo": f"git@{host.partition(':')[0]}:{project.path}.git",
        "http_url_to_repo": f"{url}/{project.path}.git",
        "web_url": f"{url}/{project.path}",
        "avatar_url": None,
        "star_count": 0,
        "namespace": namespace,
    }


def _shows_code(call: Call, project: Project) -> bool:
    """Whether the caller sees the content of the repository: of a private project, Guests do not (18.9)."""
    may = project.visibility != "private" or call.state.access(call.user, project) >= REPORTER
    return project.repository_enabled and may


def get_user(call: Call) -> Answer:
    """`GET /user`: the owner of the token."""
    user = call.caller()
    record = show_user(call, user)
    record.update(
        created_at=call.state.show_time(user.created_at),
        email=user.emails[0],
        commit_email=user.emails[0],
        bot=user.bot,
        two_factor_enabled=False,
        external=False,
    )
    if call.state.users[user.id].admin:
        record["is_admin"] = True
    return Answer(200, record)


def get_version(call: Call) -> Answer:
    """`GET /version`."""
    call.caller()
    call.cost = 0.1
    instance = call.state.instance
    kas = {"enabled": False, "externalUrl": None, "externalK8sProxyUrl": None, "version": None}
    return Answer(
        200,
        {"version": instance.version, "revision": instance.revision, "kas": kas, "enterprise": instance.enterprise},
    )


def get_token(call: Call) -> Answer:
    """`GET /personal_access_tokens/self`: the personal token in use; 400 for tokens of OAuth and CI jobs."""
    user, token = call.caller(), call.token
    assert token is not None  # noqa: S101 - a caller has a token
    if token.kind != "personal":
        reason = "This endpoint requires token type to be a personal access token"
        raise refused(400, f"400 Bad request - {reason}")
    return Answer(200, {**show_token(call.state, user, token), "last_used_ips": []})


def get_key(call: Call) -> Answer:
    """`GET /keys/:id`, which only administrators may ask for; nobody has an SSH key here."""
    call.number("id")
    call.instance()
    raise refused(404, "404 Key Not Found")


def show_token(state: SandboxState, user: User, token: AccessToken) -> dict[str, Any]:
    """Return the record of a user's token, without its value."""
    return {
        "id": token.id,
        "name": token.name,
        "revoked": token.revoked,
        "created_at": state.show_time(token.created_at),
        "description": None,
        "scopes": list(token.scopes),
        "user_id": user.id,
        "last_used_at": None,
        "active": token.expires_at is None or token.expires_at > state.today(),
        "expires_at": token.expires_at,
    }


def get_project(call: Call) -> Answer:
    """`GET /projects/:id`."""
    project = call.visible_project()
    record = show_project(call, project)
    if call.user is not None:
        record["permissions"] = _permissions(call.state, project, call.user)
    return Answer(200, record)


def list_groups_of_project(call: Call) -> Answer:
    """`GET /projects/:id/groups`: the groups above, and with `with_shared` the invited groups, hidden ones too."""
    wanted = read(call, boolean("with_shared"), integer("shared_min_access_level"), *PAGE)
    project, state = call.visible_project(), call.state
    groups = [*state.groups_above(project)]
    if wanted.get("with_shared"):
        least = wanted.get("shared_min_access_level") or 0
        groups += [group for group, role in state.invited_to(project) if role >= least]
    keys = ("id", "web_url", "name", "avatar_url", "full_name", "full_path")
    groups.sort(key=lambda group: (group.name.lower(), group.id))
    return page_of(call, groups, lambda group: {key: show_group(call, group)[key] for key in keys})


def get_group(call: Call) -> Answer:
    """`GET /groups/:id`."""
    return Answer(200, show_group(call, call.visible_group()))


def list_groups(call: Call) -> Answer:
    """`GET /groups`: the groups that the caller can see, by name."""
    wanted, state = read(call, boolean("top_level_only"), *PAGE), call.state
    groups = [
        group
        for group in state.groups.values()
        if state.visible(call.user, group) and not (wanted.get("top_level_only") and group.parent_path)
    ]
    groups.sort(key=lambda group: (group.name.lower(), group.id))
    return page_of(call, groups, lambda group: show_group(call, group))


def list_subgroups(call: Call) -> Answer:
    """`GET /groups/:id/subgroups`, and `descendant_groups`: the groups that the caller can see, by name."""
    read(call, *PAGE)
    group, state = call.visible_group(), call.state
    deep = call.route.path.endswith("/descendant_groups")
    groups = [
        below
        for below in state.groups.values()
        if group in list(state.groups_above(below))[1 : None if deep else 2] and state.visible(call.user, below)
    ]
    groups.sort(key=lambda below: (below.name.lower(), below.id))
    return page_of(call, groups, lambda below: show_group(call, below))


def list_projects(call: Call) -> Answer:
    """`GET /groups/:id/projects`: projects that the caller can see, without the caller's roles.

    No project is shared, so `with_shared` has no effect; `simple` asks for the limited record.
    """
    wanted = read(
        call,
        boolean("include_subgroups"),
        boolean("with_shared"),
        boolean("archived"),
        boolean("active"),
        boolean("simple"),
        text("visibility", values=("private", "internal", "public")),
        text("order_by", values=("id", "created_at")),
        text("sort", values=("asc", "desc")),
        *PAGE,
    )
    group, state = call.visible_group(), call.state
    projects = [
        project
        for project in state.projects.values()
        if group in (state.groups_above(project) if wanted.get("include_subgroups") else (state.group_of(project),))
        and wanted.get("visibility") in (None, project.visibility)
        and wanted.get("archived") in (None, state.is_archived(project) or bool(project.marked_for_deletion_on))
        and wanted.get("active") in (None, not (state.is_archived(project) or _is_doomed(state, project)))
        and state.visible(call.user, project)
    ]
    projects.sort(key=lambda project: project.id, reverse=wanted.get("sort") != "asc")
    simple = wanted.get("simple", False)
    call.cost = 0.0

    def show(project: Project) -> dict[str, Any]:
        call.cost += SIMPLE_RECORD if simple else WHOLE_RECORD
        return show_project(call, project, simple=simple)

    return page_of(call, projects, show)


def _is_doomed(state: SandboxState, project: Project) -> bool:
    """Whether the deletion of a project, or of a group above it, is scheduled; a group's projects show no date."""
    return any(place.marked_for_deletion_on for place in (project, *state.groups_above(project)))


def show_group(call: Call, group: Group) -> dict[str, Any]:
    """Return the record of a group."""
    return {
        "id": group.id,
        "web_url": f"{call.url}/groups/{group.path}",
        "name": group.name,
        "path": group.slug,
        "description": group.description,
        "visibility": group.visibility,
        "avatar_url": None,
        "full_name": " / ".join(reversed([above.name for above in call.state.groups_above(group)])),
        "full_path": group.path,
        "created_at": call.state.show_time(group.created_at),
        "parent_id": _parent_id(call.state, group),
        "archived": call.state.is_archived(group),
        "marked_for_deletion_on": group.marked_for_deletion_on,
    }


def show_project(call: Call, project: Project, *, simple: bool = False) -> dict[str, Any]:
    """Return the record of a project: the limited one if that was asked for, or without a token, else the whole one."""
    record = show_basic_project(call, project)
    record["visibility"] = project.visibility
    return record if simple or call.user is None else {**record, **_details(call, project)}


def get_namespace(call: Call) -> Answer:
    """`GET /namespaces/:id`: a group for its members, a personal namespace for its user and for administrators."""
    user, state = call.caller(), call.state
    namespace = state.find_namespace(call.parts["id"])
    if isinstance(namespace, Group):
        mine = state.access(user, namespace) > 0
    else:
        mine = namespace is not None and (user.admin or namespace.id == user.id)
    if namespace is None or not mine:
        raise refused(404, "404 Namespace Not Found")
    return Answer(200, _show_namespace(call, namespace))


def namespace_path(namespace: Group | User) -> str:
    """Return the full path of a group, or of the personal namespace of a user."""
    return namespace.path if isinstance(namespace, Group) else namespace.username


def _show_namespace(call: Call, namespace: Group | User) -> dict[str, Any]:
    group, path = namespace if isinstance(namespace, Group) else None, namespace_path(namespace)
    return {
        "id": namespace.id if isinstance(namespace, Group) else namespace.namespace_id,
        "name": namespace.name,
        "path": path.rpartition("/")[2],
        "kind": "group" if group else "user",
        "full_path": path,
        "parent_id": _parent_id(call.state, group) if group else None,
        "avatar_url": None,
        "web_url": f"{call.url}/groups/{path}" if group else f"{call.url}/{path}",
    }


def _parent_id(state: SandboxState, group: Group) -> int | None:
    parent = state.groups_by_path.get(group.parent_path.lower())
    return parent.id if parent else None


def _details(call: Call, project: Project) -> dict[str, Any]:
    state = call.state
    return {
        "visibility": project.visibility,
        "archived": state.is_archived(project),
        "empty_repo": project.empty_repo,
        "repository_access_level": _level(project.repository_enabled),
        "package_registry_access_level": _level(project.packages_enabled),
        "packages_enabled": project.packages_enabled,
        "container_registry_enabled": project.container_registry_enabled,
        "container_registry_access_level": _level(project.container_registry_enabled),
        "builds_access_level": _level(project.builds_enabled),
        "jobs_enabled": project.builds_enabled,
        "issues_enabled": project.issues_enabled,
        "merge_requests_enabled": project.merge_requests_enabled,
        "marked_for_deletion_on": project.marked_for_deletion_on,
        "shared_with_groups": [
            {
                "group_id": group.id,
                "group_name": group.name,
                "group_full_path": group.path,
                "group_access_level": role,
                "expires_at": None,
            }
            for group, role in state.invited_to(project)
            if state.visible(call.user, group)
        ],
    }


def _level(enabled: bool) -> str:
    return "enabled" if enabled else "disabled"


def _permissions(state: SandboxState, project: Project, user: User) -> dict[str, Any]:
    """Return the user's roles as a member of the project and of the groups above; administrators have none."""
    direct = project.role_of(user)
    above = max((group.role_of(user) for group in state.groups_above(project)), default=0)
    return {
        "project_access": {"access_level": direct, "notification_level": 3} if direct else None,
        "group_access": {"access_level": above, "notification_level": 3} if above else None,
    }


ROUTES = (
    Route("GET", "/user", get_user, scopes=("read_user",)),
    Route("GET", "/version", get_version, scopes=("read_user",)),
    Route("GET", "/personal_access_tokens/self", get_token, scopes=("any",)),
    Route("GET", "/keys/:id", get_key),
    Route("GET", "/namespaces/:id", get_namespace),
    Route("GET", "/projects/:id", get_project, anonymous=True),
    Route("GET", "/projects/:id/groups", list_groups_of_project, anonymous=True),
    Route("GET", "/groups/:id", get_group, anonymous=True),
    Route("GET", "/groups", list_groups, anonymous=True),
    Route("GET", "/groups/:id/subgroups", list_subgroups, anonymous=True),
    Route("GET", "/groups/:id/descendant_groups", list_subgroups, anonymous=True),
    Route("GET", "/groups/:id/projects", list_projects, anonymous=True),
)
