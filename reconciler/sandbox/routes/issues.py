"""Issues of a project, and users by name to assign them to, as far as `reconciler issue` needs them.

The spec does not define these endpoints; they follow production servers.
"""

import re
from typing import Any, Literal

from pydantic import Field

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import integer, integers, read, text
from ..records import CountedItem, Time, Username
from ..state import GUEST, PLANNER, Project
from .instance import show_user

LONGEST = 1_048_576
"""Characters of a description."""

_State = Literal["opened", "closed"]
_EVENTS: dict[str, _State] = {"close": "closed", "reopen": "opened"}
_LIST = (
    text("state", values=("opened", "closed", "all")),
    integer("author_id"),
)
_FIELDS = (text("title", blank=False), text("description"), integers("assignee_ids"))
_QUICK_ACTION = re.compile(r"^/(close|reopen|title)\b[ \t]*(.*)\n?", re.MULTILINE)


class Issue(CountedItem):
    """An issue."""

    author: Username
    title: str
    description: str | None = None
    state: _State = "opened"
    assignees: list[Username] = Field(default_factory=list)
    closed_at: Time | None = None


class _Issues(RouteCollection[Issue]):
    """The issues of a project; a project whose issues are off has no issues and takes none."""

    def select(self, call: Call, owner: Project, sent: dict[str, Any]) -> list[tuple[Project, Issue]]:
        """Return the issues of a state and of an author."""
        author, wanted = sent.get("author_id"), sent.get("state") or "all"
        return [
            (owner, issue)
            for issue in self.items(call, owner)
            if wanted in ("all", issue.state) and author in (None, call.state.user(issue.author).id)
        ]

    def owner(self, call: Call) -> Project:
        """Return the project, if the caller may see it."""
        return call.visible_project()

    def owner_to_write(self, call: Call) -> Project:
        """Return the project, if issues are on and it is not archived."""
        project = call.project(GUEST)
        call.require_open(project)
        if not project.issues_enabled:
            raise refused(403, "403 Forbidden")
        return project

    def items(self, call: Call, owner: Project) -> list[Issue]:
        """Return the issues of the project."""
        return self.section.of(owner) if owner.issues_enabled else []

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the requested changes; an event becomes the state."""
        names = [attribute.name for attribute in self.changes]
        sent = _with_assignees(call, read(call, *self.changes, any_of=names))
        event = sent.pop("state_event", None)
        return sent | ({"state": _EVENTS[event]} if event else {})

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> Issue:
        """Return a new issue of the caller."""
        return super().make(call, owner, _with_assignees(call, sent) | {"author": call.caller().username})

    def require_right(self, call: Call, owner: Project, item: Issue) -> None:
        """Allow the author and planners."""
        if item.author != call.caller().username:
            call.require(owner, PLANNER)

    def check(self, call: Call, owner: Project, wanted: Issue, before: Issue | None) -> None:
        """Refuse a text that is too long, carry quick actions out, and drop assignees who cannot see the project."""
        limits = {"title": 255, "description": LONGEST}
        for name, longest in limits.items():
            if len(getattr(wanted, name) or "") > longest:
                raise Refusal(400, {"message": {name: [f"is too long (maximum is {longest} characters)"]}})
        for action, rest in _QUICK_ACTION.findall(wanted.description or ""):
            if action == "title":
                wanted.title = rest.strip() or wanted.title
            else:
                wanted.state = _EVENTS[action]
        wanted.description = _QUICK_ACTION.sub("", wanted.description or "").replace("\r", "").rstrip() or None
        state = call.state
        wanted.assignees = [name for name in wanted.assignees if state.access(state.user(name), owner)]
        if not state.instance.enterprise:
            wanted.assignees = wanted.assignees[:1]
        if before is None or wanted.state != before.state:
            wanted.closed_at = state.tick() if wanted.state == "closed" else None

    def show(self, call: Call, owner: Project, item: Issue) -> dict[str, Any]:
        """Return the record of an issue, as production shows it."""
        state = call.state
        assignees = [show_user(call, state.user(name)) for name in item.assignees]
        return {
            "id": item.id,
            "iid": item.iid,
            "project_id": owner.id,
            "title": item.title,
            "description": item.description,
            "state": item.state,
            "created_at": state.show_time(item.created_at),
            "updated_at": state.show_time(item.updated_at),
            "closed_at": state.show_time(item.closed_at),
            "labels": [],
            "assignees": assignees,
            "assignee": next(iter(assignees), None),
            "author": show_user(call, state.user(item.author)),
            "type": "ISSUE",
            "issue_type": "issue",
            "confidential": False,
            "web_url": f"{call.url}/{owner.path}/-/issues/{item.iid}",
        }


def _with_assignees(call: Call, sent: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with usernames for IDs; an unknown ID is ignored."""
    ids = sent.pop("assignee_ids", None)
    if ids is None:
        return sent
    users = call.state.users
    return sent | {"assignees": [users[number].username for number in ids if number in users]}


def list_users(call: Call) -> Answer:
    """`GET /users`: all users, or the user of a username."""
    sent = read(call, text("username"), *PAGE)
    call.caller()
    name = (sent.get("username") or "").lower()
    users = [user for user in call.state.users.values() if name in ("", user.username.lower())]
    return page_of(call, users, lambda user: show_user(call, user))


ISSUES = _Issues(
    "issues",
    Issue,
    "/projects/:id/issues",
    part="issue_iid",
    key="iid",
    filters=_LIST,
    order=("created_at", "updated_at"),
    new=(text("title", required=True, blank=False), *_FIELDS[1:]),
    changes=(*_FIELDS, text("state_event", values=tuple(_EVENTS))),
)
SECTIONS = (ISSUES.section,)
ROUTES = (
    *ISSUES.routes("list", "get", "create", "update"),
    Route("GET", "/users", list_users, scopes=("read_user",)),
)
