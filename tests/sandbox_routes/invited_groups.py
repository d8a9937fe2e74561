"""Groups that are invited to projects: their members are members of the project too."""

from reconciler.sandbox.answers import Answer, refused
from reconciler.sandbox.call import Call, Route
from reconciler.sandbox.collection import PAGE, page_of
from reconciler.sandbox.parameters import integer, read
from reconciler.sandbox.state import MAINTAINER, ROLES, Invitation


def list_groups(call: Call) -> Answer:
    """`GET /projects/:id/invited_groups`: those that the caller can see."""
    read(call, *PAGE)
    project, state = call.visible_project(), call.state
    found = [group for group, _ in state.invited_to(project) if state.visible(call.user, group)]
    return page_of(
        call,
        found,
        lambda group: {
            "id": group.id,
            "web_url": f"{call.url}/groups/{group.path}",
            "name": group.name,
            "avatar_url": None,
            "full_name": " / ".join(reversed([each.name for each in state.groups_above(group)])),
            "full_path": group.path,
        },
    )


def share(call: Call) -> Answer:
    """`POST /projects/:id/share`: invite a group that the caller can see."""
    levels = {number: role for role, number in ROLES.items()}
    sent = read(call, integer("group_id", required=True), integer("group_access", required=True, values=tuple(levels)))
    project, state = call.project(MAINTAINER), call.state
    group = state.groups.get(sent["group_id"])
    if group is None or not state.visible(call.user, group):
        raise refused(404, "404 Group Not Found")
    if any(each is group for each, _ in state.invited_to(project)):
        raise refused(409, "Group has already been taken")
    invitation = {"group_id": group.id, "role": levels[sent["group_access"]]}
    project.invited_groups.append(Invitation.model_validate(invitation, context=state))
    state.forget_access()
    call.changed = True
    record = {"project_id": project.id, "group_id": group.id, "group_access": sent["group_access"]}
    return Answer(201, {"id": len(project.invited_groups), **record, "expires_at": None, "member_role_id": None})


def unshare(call: Call) -> Answer:
    """`DELETE /projects/:id/share/:group_id`."""
    number = call.number("group_id")
    project = call.project(MAINTAINER)
    kept = [each for each in project.invited_groups if each.group_id != number]
    if len(kept) == len(project.invited_groups):
        raise refused(404, "404 Group Link Not Found")
    project.invited_groups = kept
    call.state.forget_access()
    call.changed = True
    return Answer(204)


ROUTES = (
    Route("GET", "/projects/:id/invited_groups", list_groups),
    Route("POST", "/projects/:id/share", share),
    Route("DELETE", "/projects/:id/share/:group_id", unshare),
)
