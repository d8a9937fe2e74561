"""Users, whose records are read, and whom administrators delete.

The spec does not define these endpoints; they follow production servers, whose jobs are done at once here: a deleted
user is gone with all that is theirs, with `hard_delete` also the groups that have no other owner.
"""

from ..answers import Answer, refused
from ..call import Call, Route
from ..parameters import boolean, read
from ..state import User
from . import sections
from .instance import show_user
from .service_accounts import ACCOUNTS


def get_user(call: Call) -> Answer:
    """`GET /users/:user_id`."""
    number = call.number("user_id")
    call.caller()
    return Answer(200, show_user(call.state, user_of(call, number), call.url))


def delete_user(call: Call) -> Answer:
    """`DELETE /users/:user_id`, which is for service accounts too; 409 for the only owner of a group."""
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


def user_of(call: Call, number: int, message: str = "404 User Not Found") -> User:
    """Return the user of an ID, else 404."""
    user = call.state.users.get(number)
    if user is None:
        raise refused(404, message)
    return user


ROUTES = (
    Route("GET", "/users/:user_id", get_user, scopes=("read_user",)),
    Route("DELETE", "/users/:user_id", delete_user),
)
