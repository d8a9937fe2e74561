"""Merge requests of a project and the notes on them, as far as a pipeline and `accept` need them.

The spec does not define these endpoints; they follow production servers. Whether the branches of a merge request exist,
or differ, is not checked.
"""

from typing import Any, Literal

from pydantic import ValidationInfo, model_validator

from ..answers import Answer, Refusal, refused
from ..call import Call
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import boolean, read, text
from ..records import CountedItem, DatedItem, Username
from ..state import DEVELOPER, MAINTAINER, REPORTER, Project, SandboxState
from .instance import show_user

LONGEST = 1_000_000
"""Characters of a note."""

_State = Literal["opened", "closed", "merged"]
_EVENTS: dict[str, _State] = {"close": "closed", "reopen": "opened"}
_LIST = (
    text("state", values=("opened", "closed", "merged", "all")),
    text("source_branch"),
    text("target_branch"),
)
_FIELDS = (text("description"), boolean("remove_source_branch"))


class MergeRequestRecord(CountedItem):
    """A merge request. A state file may give only its number, and the fork from which it comes."""

    title: str = "Change something"
    description: str | None = None
    author: Username | None = None
    source_branch: str = "change"
    source_project_id: int | None = None
    target_branch: str = "main"
    state: _State = "opened"
    remove_source_branch: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        return {"iid": value} if type(value) is int else value


class _MergeRequests(RouteCollection[MergeRequestRecord]):
    """The merge requests of a project."""

    def select(self, call: Call, owner: Project, sent: dict[str, Any]) -> list[tuple[Project, MergeRequestRecord]]:
        """Return the merge requests of a state and of some branches."""
        state = sent.get("state") or "all"
        return [
            (owner, merge_request)
            for merge_request in self.items(call, owner)
            if state in ("all", merge_request.state)
            and sent.get("source_branch", merge_request.source_branch) == merge_request.source_branch
            and sent.get("target_branch", merge_request.target_branch) == merge_request.target_branch
        ]

    def owner(self, call: Call) -> Project:
        """Return the project, if the caller may see its merge requests."""
        project = call.visible_project()
        if project.visibility == "private":
            call.require(project, REPORTER)
        if not project.merge_requests_enabled:
            raise refused(403, "403 Forbidden")
        return project

    def owner_to_write(self, call: Call) -> Project:
        """Return the project, if the caller is a developer and it is not archived."""
        project = self.owner(call)
        call.require(project, DEVELOPER)
        call.require_open(project)
        return project

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the requested changes; an event becomes the state."""
        sent = read(call, *self.changes, any_of=[attribute.name for attribute in self.changes])
        event = sent.pop("state_event", None)
        return sent | ({"state": _EVENTS[event]} if event else {})

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> MergeRequestRecord:
        """Return a new merge request of the caller."""
        return super().make(call, owner, sent | {"author": call.caller().username})

    def check(self, call: Call, owner: Project, wanted: MergeRequestRecord, before: MergeRequestRecord | None) -> None:
        """Refuse a merge request of a branch into itself, and a second open merge request of the same branches."""
        branches = wanted.source_branch, wanted.target_branch
        if branches[0] == branches[1]:
            raise Refusal(422, {"message": ["You can't use same project/branch for source and target"]})
        for other in self.section.of(owner):
            is_other = other is not before and other.state == wanted.state == "opened"
            same_source = other.source_project_id == wanted.source_project_id
            if is_other and same_source and (other.source_branch, other.target_branch) == branches:
                reason = f"Another open merge request already exists for this source branch: !{other.iid}"
                raise Refusal(409, {"message": [reason]})

    def show(self, call: Call, owner: Project, item: MergeRequestRecord) -> dict[str, Any]:
        """Return the record of a merge request, as production shows it."""
        state = call.state
        return {
            "id": item.id,
            "iid": item.iid,
            "project_id": owner.id,
            "title": item.title,
            "description": item.description,
            "state": item.state,
            "created_at": state.show_time(item.created_at),
            "updated_at": state.show_time(item.updated_at),
            "source_branch": item.source_branch,
            "source_project_id": item.source_project_id or owner.id,
            "target_project_id": owner.id,
            "target_branch": item.target_branch,
            "author": show_user(call, state.user(item.author)) if item.author else None,
            "draft": item.title.startswith("Draft:"),
            "detailed_merge_status": "preparing" if call.method == "POST" else "mergeable",
            "force_remove_source_branch": item.remove_source_branch,
            "web_url": f"{call.url}/{owner.path}/-/merge_requests/{item.iid}",
        }


MERGE_REQUESTS = _MergeRequests(
    "merge_requests",
    MergeRequestRecord,
    "/projects/:id/merge_requests",
    part="merge_request_iid",
    key="iid",
    filters=_LIST,
    order=("created_at", "updated_at", "title"),
    new=(*(text(name, required=True, blank=False) for name in ("source_branch", "target_branch", "title")), *_FIELDS),
    changes=(text("title", blank=False), *_FIELDS, text("state_event", values=tuple(_EVENTS))),
)


class MergeRequestNote(DatedItem):
    """A note; `merge_request` is a number in the project."""

    merge_request: int
    author: Username
    body: str
    system: bool = False
    internal: bool = False


def _on_merge_requests(notes: list[MergeRequestNote], info: ValidationInfo) -> list[MergeRequestNote]:
    known = {merge_request.iid for merge_request in info.data.get("merge_requests", ())}
    for note in notes:
        if note.merge_request not in known:
            raise ValueError(f"there is no merge request {note.merge_request}")
    return notes


class _Notes(RouteCollection[MergeRequestNote]):
    """The notes of a merge request; all notes of a project are in one section."""

    def list_items(self, call: Call) -> Answer:
        """Answer with notes, newest first; a page lacks the internal notes that the caller may not see."""
        number = call.number("merge_request_iid")
        sent = read(call, *self.filters, *PAGE)
        project = self.owner(call)
        kept = {"only_comments": (False,), "only_activity": (True,)}.get(
            sent.get("activity_filter") or "", (False, True)
        )
        notes = [note for note in self.section.of(project) if note.merge_request == number and note.system in kept]
        answer = page_of(call, self.in_order([(project, note) for note in notes], sent), lambda pair: pair)
        shown = [self.show(call, *pair) for pair in answer.body if _may_see(call, *pair)]
        return Answer(answer.status, shown, answer.headers)

    def owner(self, call: Call) -> Project:
        """Return the project of a merge request that the caller may see, else 404."""
        number, project = call.number("merge_request_iid"), call.visible_project()
        seen = project.visibility != "private" or call.state.access(call.user, project) >= REPORTER
        if not (seen and project.merge_requests_enabled and _has(project, number)):
            raise refused(404, "404 MergeRequest Not Found")
        return project

    def items(self, call: Call, owner: Project) -> list[MergeRequestNote]:
        """Return the notes of the merge request that the caller may see."""
        number = call.number("merge_request_iid")
        return [note for note in self.section.of(owner) if note.merge_request == number and _may_see(call, owner, note)]

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> MergeRequestNote:
        """Return a new note; carriage returns and trailing blanks are removed from its body."""
        call.require_open(owner)
        body, author = _body(call.state, sent["body"]), call.caller().username
        return MergeRequestNote(merge_request=call.number("merge_request_iid"), author=author, body=body)

    def require_right(self, call: Call, owner: Project, item: MergeRequestNote) -> None:
        """Allow the author and maintainers; nobody for notes that the service wrote."""
        call.require_open(owner)
        if item.system:
            raise refused(403, "403 Forbidden")
        if item.author != call.caller().username:
            call.require(owner, MAINTAINER)

    def check(self, call: Call, owner: Project, wanted: MergeRequestNote, before: MergeRequestNote | None) -> None:
        """Refuse an invalid body, in production with a Ruby hash."""
        wanted.body = _body(call.state, wanted.body)

    def show(self, call: Call, owner: Project, item: MergeRequestNote) -> dict[str, Any]:
        """Return the record of a note, as production shows it."""
        state = call.state
        return {
            "id": item.id,
            "type": None,
            "body": item.body,
            "attachment": None,
            "author": show_user(call, state.user(item.author)),
            "created_at": state.show_time(item.created_at),
            "updated_at": state.show_time(item.updated_at),
            "system": item.system,
            "noteable_id": item.merge_request,
            "noteable_type": "MergeRequest",
            "project_id": owner.id,
            "resolvable": False,
            "confidential": item.internal,
            "internal": item.internal,
            "noteable_iid": item.merge_request,
            "commands_changes": {},
        }


def _may_see(call: Call, project: Project, note: MergeRequestNote) -> bool:
    return not note.internal or call.state.access(call.user, project) >= REPORTER


def _body(state: SandboxState, sent: str | None) -> str:
    body = (sent or "").replace("\r", "").rstrip()
    reason = "" if body else "can't be blank"
    if len(body) > LONGEST:
        reason = f"is too long (maximum is {LONGEST} characters)"
    if not reason:
        return body
    if state.deployed:
        raise Refusal(400, {"message": f'400 Bad request - Note {{:note=>["{reason}"]}}'})
    raise refused(400, {"note": [reason]})


def _has(project: Project, number: int) -> bool:
    return any(merge_request.iid == number for merge_request in MERGE_REQUESTS.section.of(project))


NOTES = _Notes(
    "merge_request_notes",
    MergeRequestNote,
    "/projects/:id/merge_requests/:merge_request_iid/notes",
    part="note_id",
    filters=(text("activity_filter", values=("all_notes", "only_comments", "only_activity")),),
    order=("created_at", "updated_at"),
    new=(text("body", required=True),),
    changes=(text("body", blank=False),),
    validator=_on_merge_requests,
)
SECTIONS = (MERGE_REQUESTS.section, NOTES.section)
ROUTES = (
    *MERGE_REQUESTS.routes("list", "get", "create", "update"),
    *NOTES.routes("list", "create", "update", "delete"),
)
