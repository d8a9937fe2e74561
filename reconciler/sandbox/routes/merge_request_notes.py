"""Notes on merge requests, as far as the note of a pipeline needs them; the spec does not define these endpoints.

They follow production servers. A merge request is a mere number in its project.
"""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo

from ..answers import Answer, Refusal, refused
from ..call import Call
from ..collection import PAGE, Collection, page_of
from ..parameters import read, text
from ..records import DatedItem, Username
from ..state import MAINTAINER, REPORTER, Project, Section, State
from .instance import show_user

LONGEST = 1_000_000
_LIST = (
    text("order_by", values=("created_at", "updated_at")),
    text("sort", values=("asc", "desc")),
    text("activity_filter", values=("all_notes", "only_comments", "only_activity")),
    *PAGE,
)


class Note(DatedItem):
    """One note; `merge_request` is a number in the project."""

    merge_request: int
    author: Username
    body: str
    system: bool = False
    internal: bool = False


def _on_merge_requests(notes: list[Note], info: ValidationInfo) -> list[Note]:
    for note in notes:
        if note.merge_request not in info.data.get("merge_requests", ()):
            raise ValueError(f"there is no merge request {note.merge_request}")
    return notes


class _Notes(Collection[Note]):
    """The notes of a merge request; all notes of a project are in one section."""

    def list_items(self, call: Call) -> Answer:
        """Answer with notes, newest first; each page lacks the internal ones that the caller may not see."""
        number = call.number("merge_request_iid")
        sent = read(call, *_LIST)
        project = self.owner(call)
        kept = {"only_comments": (False,), "only_activity": (True,)}.get(
            sent.get("activity_filter") or "", (False, True)
        )
        found = [each for each in self.section.of(project) if each.merge_request == number and each.system in kept]
        order = sent.get("order_by") or "created_at"
        found.sort(key=lambda note: (getattr(note, order), note.id), reverse=sent.get("sort") != "asc")
        answer = page_of(call, found, lambda note: note)
        shown = [self.show(call, project, note) for note in answer.body if _may_see(call, project, note)]
        return Answer(answer.status, shown, answer.headers)

    def owner(self, call: Call) -> Project:
        """Return the project of a merge request that the caller may see, else 404."""
        number, project = call.number("merge_request_iid"), call.visible_project()
        seen = project.visibility != "private" or call.state.access(call.user, project) >= REPORTER
        if not (seen and project.merge_requests_enabled and number in MERGE_REQUESTS.of(project)):
            raise refused(404, "404 MergeRequest Not Found")
        return project

    def items(self, call: Call, owner: Project) -> list[Note]:
        """Return the notes of the merge request that the caller may see."""
        number = call.number("merge_request_iid")
        return [each for each in self.section.of(owner) if each.merge_request == number and _may_see(call, owner, each)]

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> Note:
        """Return a new note; carriage returns and trailing blanks are removed from its body."""
        if call.state.is_archived(owner):
            raise refused(403, "403 Forbidden")
        body, author = _body(call.state, sent["body"]), call.caller().username
        return Note(merge_request=call.number("merge_request_iid"), author=author, body=body)

    def require_right(self, call: Call, owner: Project, item: Note) -> None:
        """Allow the author and maintainers; nobody for notes that the service wrote."""
        if item.system or call.state.is_archived(owner):
            raise refused(403, "403 Forbidden")
        if item.author != call.caller().username:
            call.require(owner, MAINTAINER)

    def check(self, call: Call, owner: Project, wanted: Note, before: Note | None) -> None:  # noqa: ARG002 - others look where
        """Refuse an invalid body, in production with a Ruby hash."""
        wanted.body = _body(call.state, wanted.body)

    def show(self, call: Call, owner: Project, item: Note) -> dict[str, Any]:
        """Return the record of a note, as production shows it."""
        state = call.state
        return {
            "id": item.id,
            "type": None,
            "body": item.body,
            "attachment": None,
            "author": show_user(state.user(item.author), call.url),
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


def _may_see(call: Call, project: Project, note: Note) -> bool:
    return not note.internal or call.state.access(call.user, project) >= REPORTER


def _body(state: State, sent: str | None) -> str:
    body = (sent or "").replace("\r", "").rstrip()
    reason = "" if body else "can't be blank"
    if len(body) > LONGEST:
        reason = f"is too long (maximum is {LONGEST} characters)"
    if not reason:
        return body
    if state.deployed:
        raise Refusal(400, {"message": f'400 Bad request - Note {{:note=>["{reason}"]}}'})
    raise refused(400, {"note": [reason]})


MERGE_REQUESTS: Section[list[int]] = Section("merge_requests", ("project",), list[Annotated[int, Field(gt=0)]], [])
NOTES = _Notes(
    "merge_request_notes",
    Note,
    "/projects/:id/merge_requests/:merge_request_iid/notes",
    part="note_id",
    new=(text("body", required=True),),
    changes=(text("body", blank=False),),
    validator=_on_merge_requests,
)
SECTIONS = (MERGE_REQUESTS, NOTES.section)
ROUTES = NOTES.routes("list", "create", "update", "delete")
