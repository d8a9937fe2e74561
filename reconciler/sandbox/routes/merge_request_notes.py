"""Notes on merge requests, as far as a pipeline's note needs them; the spec has none of these endpoints.

They follow what production servers do. A merge request here is a number in its project, and nothing else.
"""

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from ..attributes import read, text
from ..call import Answer, Call, Route
from ..errors import Refusal, refused
from ..pages import PAGE, page_of
from ..reading import Reading
from ..state import MAINTAINER, REPORTER, SEED, Owner, Project, Section, State, User
from .instance import show_user

SECTION = "merge_request_notes"
MERGE_REQUESTS = "merge_requests"
LONGEST = 1_000_000
_LIST = (
    text("order_by", values=("created_at", "updated_at")),
    text("sort", values=("asc", "desc")),
    text("activity_filter", values=("all_notes", "only_comments", "only_activity")),
    *PAGE,
)


@dataclass(slots=True)
class Note:
    """One note; `id` is unique in the service, `merge_request` a number in the project."""

    id: int
    merge_request: int
    author: User
    body: str
    system: bool
    internal: bool
    created_at: str
    updated_at: str


def list_notes(call: Call) -> Answer:
    """`GET .../notes`, newest first; internal ones are taken out of each page for those who may not see them."""
    number = call.number("merge_request_iid")
    sent = read(call, *_LIST)
    project = _merge_request(call, number)
    kept = {"only_comments": (False,), "only_activity": (True,)}.get(sent.get("activity_filter") or "", (False, True))
    found = [each for each in _notes(project).values() if each.merge_request == number and each.system in kept]
    order = sent.get("order_by") or "created_at"
    found.sort(key=lambda note: (getattr(note, order), note.id), reverse=sent.get("sort") != "asc")
    answer = page_of(call, found, lambda note: note)
    shown = [_show(call, project, note) for note in answer.body if _may_see(call, project, note)]
    return Answer(answer.status, shown, answer.headers)


def get_note(call: Call) -> Answer:
    """`GET .../notes/:note_id`."""
    project, note = _found(call)
    return Answer(200, _show(call, project, note))


def create_note(call: Call) -> Answer:
    """`POST .../notes`: takes carriage returns out, and blanks at the end."""
    number = call.number("merge_request_iid")
    sent = read(call, text("body", required=True))
    project = _merge_request(call, number)
    if project.is_archived():
        raise refused(403, "403 Forbidden")
    body = _body(call.state, sent["body"])
    now = call.state.tick()
    note = Note(call.state.number(SECTION).give(), number, call.caller(), body, False, False, now, now)
    _notes(project)[note.id] = note
    call.changed = True
    return Answer(201, _show(call, project, note))


def update_note(call: Call) -> Answer:
    """`PUT .../notes/:note_id`: by its author, or a maintainer; never one that the service has written."""
    sent = read(call, text("body", blank=False))
    project, note = _found(call)
    _require_author(call, project, note)
    if "body" in sent:
        note.body, note.updated_at = _body(call.state, sent["body"]), call.state.tick()
        call.changed = True
    return Answer(200, _show(call, project, note))


def delete_note(call: Call) -> Answer:
    """`DELETE .../notes/:note_id`."""
    project, note = _found(call)
    _require_author(call, project, note)
    del _notes(project)[note.id]
    call.changed = True
    return Answer(204)


def _merge_request(call: Call, number: int) -> Project:
    """Return the project of a merge request that the caller may see, else 404."""
    project = call.visible_project()
    seen = project.visibility != "private" or call.state.access(call.user, project) >= REPORTER
    there = project.switches["merge_requests_enabled"] and number in project.sections[MERGE_REQUESTS]
    if not (seen and there):
        raise refused(404, "404 MergeRequest Not Found")
    return project


def _found(call: Call) -> tuple[Project, Note]:
    number, wanted = call.number("merge_request_iid"), call.number("note_id")
    project = _merge_request(call, number)
    note = _notes(project).get(wanted)
    if note is None or note.merge_request != number or not _may_see(call, project, note):
        raise refused(404, "404 Not found")
    return project, note


def _may_see(call: Call, project: Project, note: Note) -> bool:
    return not note.internal or call.state.access(call.user, project) >= REPORTER


def _require_author(call: Call, project: Project, note: Note) -> None:
    if note.system or project.is_archived():
        raise refused(403, "403 Forbidden")
    if note.author is not call.user:
        call.require(project, MAINTAINER)


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


def _notes(project: Project) -> dict[int, Note]:
    found: dict[int, Note] = project.sections[SECTION]
    return found


def _show(call: Call, project: Project, note: Note) -> dict[str, Any]:
    return {
        "id": note.id,
        "type": None,
        "body": note.body,
        "attachment": None,
        "author": show_user(note.author, call.url),
        "created_at": call.state.show_time(note.created_at),
        "updated_at": call.state.show_time(note.updated_at),
        "system": note.system,
        "noteable_id": note.merge_request,
        "noteable_type": "MergeRequest",
        "project_id": project.id,
        "resolvable": False,
        "confidential": note.internal,
        "internal": note.internal,
        "noteable_iid": note.merge_request,
        "commands_changes": {},
    }


def _load_merge_requests(reading: Reading, _state: State, _owner: Owner) -> list[int]:
    numbers = [item.optional_integer() for item in reading.items()]
    return [number for number in numbers if number is not None]


def _load(reading: Reading, state: State, owner: Owner) -> dict[int, Note]:
    found = {}
    for item in reading.items():
        fields = item.fields(*(field.name for field in dataclass_fields(Note)))
        merge_request = fields["merge_request"].optional_integer()
        if merge_request is None or merge_request not in owner.sections[MERGE_REQUESTS]:
            raise fields["merge_request"].fault(f"there is no merge request {merge_request}")
        created = fields["created_at"].optional_time() or SEED
        note = Note(
            fields["id"].optional_integer() or state.number(SECTION).give(),
            merge_request,
            state.user_named(fields["author"]),
            fields["body"].text(),
            fields["system"].boolean(False),
            fields["internal"].boolean(False),
            created,
            fields["updated_at"].optional_time() or created,
        )
        found[note.id] = note
    return found


def _dump(found: dict[int, Note]) -> list[dict[str, Any]] | None:
    names = [field.name for field in dataclass_fields(Note)]
    plain = [{name: getattr(note, name) for name in names} for note in found.values()]
    return [{**fields, "author": fields["author"].username} for fields in plain] or None


_PATH = "/projects/:id/merge_requests/:merge_request_iid/notes"
SECTIONS = (
    Section(MERGE_REQUESTS, "project", _load_merge_requests, lambda found: found or None),
    Section(SECTION, "project", _load, _dump, numbered=True),
)
ROUTES = (
    Route("GET", _PATH, list_notes),
    Route("GET", f"{_PATH}/:note_id", get_note),
    Route("POST", _PATH, create_note),
    Route("PUT", f"{_PATH}/:note_id", update_note),
    Route("DELETE", f"{_PATH}/:note_id", delete_note),
)
