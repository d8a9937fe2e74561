"""Users and their tokens, which administrators make, and the members of groups and projects."""

from hashlib import sha256

from reconciler.sandbox.answers import Answer, refused
from reconciler.sandbox.call import Call, Route, invalid
from reconciler.sandbox.parameters import boolean, day, integer, read, text, texts
from reconciler.sandbox.routes.instance import show_token, show_user
from reconciler.sandbox.routes.users import get_member, list_members, show_member, user_of
from reconciler.sandbox.state import MAINTAINER, OWNER, ROLES, AccessToken, Group, MemberRole, Role

SCOPES = ("api", "read_api", "read_user", "admin_mode", "sudo", "self_rotate")
_LEVELS: dict[int, Role] = {number: name for name, number in ROLES.items()}
_PASSWORDS = ("password", "reset_password", "force_random_password")
_NEW_USER = (
    *(text(name, required=True) for name in ("email", "name", "username")),
    boolean("admin"),
    boolean("can_create_group"),
)
_NEW_TOKEN = (text("name", required=True), texts("scopes", required=True), day("expires_at"))


def create_user(call: Call) -> Answer:
    """`POST /users`; the address counts as verified."""
    sent = read(call, *_NEW_USER, any_of=_PASSWORDS)
    call.instance()
    state = call.state
    if any(sent["email"] in user.emails for user in state.users.values()):
        raise refused(409, "Email has already been taken")
    if sent["username"].lower() in state.users_by_name.keys() | state.groups_by_path.keys():
        raise refused(409, "Username has already been taken")
    values = {name: sent[name] for name in ("username", "name")}
    rights = {"admin": bool(sent.get("admin")), "can_create_group": sent.get("can_create_group", True)}
    user = state.add_user({**values, "emails": [sent["email"]], **rights})
    call.changed = True
    record = {"email": sent["email"], "is_admin": user.admin, "created_at": state.show_time(user.created_at)}
    return Answer(201, {**show_user(call, user), **record})


def create_token(call: Call) -> Answer:
    """`POST /users/:user_id/personal_access_tokens`; a day in the past makes a token that has expired."""
    sent = read(call, *_NEW_TOKEN)
    if not sent["scopes"]:
        raise refused(422, "Scopes can't be blank")
    if not set(sent["scopes"]) <= set(SCOPES):
        raise invalid(call.state, {"scopes": "does not have a valid value"})
    number = call.number("user_id")
    call.instance()
    state, user = call.state, user_of(call, number)
    token = AccessToken.model_validate(
        {
            "token": f"glpat-{sha256(f'{user.id} {len(state.tokens)}'.encode()).hexdigest()[:20]}",
            "name": sent["name"],
            "scopes": sent["scopes"],
            "expires_at": sent.get("expires_at"),
            "created_at": state.tick(),
        },
        context=state,
    )
    user.tokens.append(token)
    state.users_by_token[token.token] = user
    call.changed = True
    return Answer(201, {**show_token(state, user, token), "token": token.token})


def add_member(call: Call) -> Answer:
    """`POST /groups/:id/members` for owners, `POST /projects/:id/members` for maintainers, but for owners of it."""
    levels = tuple(_LEVELS)
    who = (integer("user_id"), text("username"))
    sent = read(call, *who, integer("access_level", required=True, values=levels), any_of=("user_id", "username"))
    place, state, level = call.visible_place(), call.state, sent["access_level"]
    user = state.users.get(sent.get("user_id") or 0) or state.users_by_name.get((sent.get("username") or "").lower())
    if user is None:
        raise refused(404, "404 User Not Found")
    if place.role_of(user):
        raise refused(409, "Member already exists")
    call.require(place, OWNER if isinstance(place, Group) or level == OWNER else MAINTAINER)
    for group in state.groups_above(place):
        if group.role_of(user) > level:
            role = _LEVELS[group.role_of(user)].capitalize()
            reason = f"should be greater than or equal to {role} inherited membership from group {group.name}"
            raise refused(400, {"access_level": [reason]})
    place.members.append(MemberRole(user=user.username, role=_LEVELS[level]))
    state.forget_access()
    call.changed = True
    return Answer(201, show_member(call, user, level))


def update_member(call: Call) -> Answer:
    """`PUT /groups/:id/members/:user_id`, and for projects."""
    number = call.number("user_id")
    level = read(call, integer("access_level", required=True, values=tuple(_LEVELS)))["access_level"]
    place = call.visible_place()
    call.require(place, OWNER if isinstance(place, Group) or level == OWNER else MAINTAINER)
    user = user_of(call, number, "404 Not found")
    member = next((each for each in place.members if each.user == user.username), None)
    if member is None:
        raise refused(404, "404 Not found")
    call.changed = member.role != _LEVELS[level]
    member.role = _LEVELS[level]
    call.state.forget_access()
    return Answer(200, show_member(call, user, level))


def remove_member(call: Call) -> Answer:
    """`DELETE /groups/:id/members/:user_id`, and for projects."""
    number = call.number("user_id")
    place = call.visible_place()
    call.require(place, OWNER if isinstance(place, Group) else MAINTAINER)
    name = user_of(call, number, "404 Not found").username
    kept = [each for each in place.members if each.user != name]
    if len(kept) == len(place.members):
        raise refused(404, "404 Not found")
    if isinstance(place, Group) and [each.user for each in place.owners] == [name]:
        raise refused(403, "403 Forbidden")
    place.members = kept
    call.state.forget_access()
    call.changed = True
    return Answer(204)


ROUTES = (
    Route("POST", "/users", create_user),
    Route("POST", "/users/:user_id/personal_access_tokens", create_token),
    *(
        route
        for level in ("groups", "projects")
        for route in (
            Route("GET", f"/{level}/:id/members", list_members, anonymous=True),
            Route("GET", f"/{level}/:id/members/:user_id", get_member, anonymous=True),
            Route("POST", f"/{level}/:id/members", add_member),
            Route("PUT", f"/{level}/:id/members/:user_id", update_member),
            Route("DELETE", f"/{level}/:id/members/:user_id", remove_member),
        )
    ),
)
