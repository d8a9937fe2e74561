"""Users, whose records are read, and whom administrators delete; the members of groups and projects.

The spec does not define these endpoints; they follow production servers, whose jobs are done at once here: a deleted
user is gone with all that is theirs, with `hard_delete` also the groups that have no other owner.
"""

from typing import Any

from ..answers import Answer, refused
from ..call import Call, Route
from ..collection import PAGE, page_of
from ..parameters import boolean, integers, read, text
from ..state import GroupOrProject, User
from . import sections
from .instance import show_user
from .service_accounts import ACCOUNTS


def get_user(call: Call) -> Answer:
    """`GET /users/:user_id`."""
    number = call.number("user_id")
    call.caller()
    return Answer(200, show_user(call, user_of(call, number)))


def delete_user(call: Call) -> Answer:
    """`DELETE /users/:user_id`, also of service accounts; 409 for the only owner of a group."""
    sent = read(call, boolean("hard_delete"))
    number = call.number("user_id")
    call.instance()
    state = call.state
    if any(account.id == number for account in ACCOUNTS.section.of(state.instance)):
        return ACCOUNTS.delete(call)
    user = user_of(call, number)
    alone = [group for group in state.groups.values() if [owner.user for owner in group.owners] == [user.username]]
    if alone and not sent.get("hard_delete"):
        raise refused(409, "User cannot be removed while is the sole-owner of a group")
    for group in alone:
        if group.id in state.groups:  # it may have lain in one of the others
            state.remove(group)
    state.remove_user(user, sections())
    call.changed = True
    return Answer(204)


def block_user(call: Call) -> Answer:
    """`POST /users/:user_id/block`, and `unblock`: a blocked user stays a member, and is refused everywhere."""
    number, blocked = call.number("user_id"), not call.route.path.endswith("/unblock")
    call.instance()
    user = user_of(call, number)
    if blocked and user.id == call.caller().id:
        raise refused(403, "403 Forbidden - API initiating user cannot be blocked by the API")
    call.changed = user.blocked != blocked
    user.blocked = blocked
    return Answer(201, call.changed or None)


def user_of(call: Call, number: int, message: str = "404 User Not Found") -> User:
    """Return the user of an ID, else 404."""
    user = call.state.users.get(number)
    if user is None:
        raise refused(404, message)
    return user


def list_members(call: Call) -> Answer:
    """`GET /groups/:id/members`, and for projects: by ID; `all` adds inherited members and those of invited groups."""
    sent = read(call, text("query"), integers("user_ids"), *PAGE)
    place, state = call.visible_place(), call.state
    members = [
        (user, role)
        for user in state.users.values()
        if (role := role_in(call, user, place))
        and (not sent.get("user_ids") or user.id in sent["user_ids"])
        and (sent.get("query") or "").lower() in f"{user.username} {user.name}".lower()
    ]
    members.sort(key=lambda pair: pair[0].id)
    return page_of(call, members, lambda pair: show_member(call, *pair))


def get_member(call: Call) -> Answer:
    """`GET /groups/:id/members/:user_id`, and for projects, and with `all`."""
    number = call.number("user_id")
    place = call.visible_place()
    user = user_of(call, number, "404 Not found")
    role = role_in(call, user, place)
    if not role:
        raise refused(404, "404 Not found")
    return Answer(200, show_member(call, user, role))


def role_in(call: Call, user: User, place: GroupOrProject) -> int:
    """Return the level of a user in a place: with `all` in the path, the inherited one too."""
    return call.state.membership(user, place) if "/members/all" in call.route.path else place.role_of(user)


def show_member(call: Call, user: User, level: int) -> dict[str, Any]:
    """Return the record of a member."""
    record = {"access_level": level, "expires_at": None, "membership_state": "active"}
    return {**show_user(call, user), **record}


ROUTES = (
    Route("GET", "/users/:user_id", get_user, scopes=("read_user",)),
    Route("DELETE", "/users/:user_id", delete_user),
    Route("POST", "/users/:user_id/block", block_user),
    Route("POST", "/users/:user_id/unblock", block_user),
    *(
        Route("GET", f"/{level}/:id/members/all{member}", answer, anonymous=True)
        for level in ("groups", "projects")
        for member, answer in (("", list_members), ("/:user_id", get_member))
    ),
)
