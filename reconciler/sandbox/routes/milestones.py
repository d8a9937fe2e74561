"""Project milestones (spec section 4.11): titles are unique over a project and the groups above it.

Differences: production says what is wrong in one string with a Ruby hash in it, wants at least one attribute in a
`PUT`, knows the state `all`, and reads dates in other forms; what it cannot read is no date, where the spec refuses it.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from itertools import chain
from typing import Any

from ..attributes import boolean, has_words, integers, read, text, time
from ..call import Answer, Call, Insertion, Route
from ..errors import Refusal, refused
from ..pages import PAGE, page_of
from ..reading import Reading
from ..state import PLANNER, SEED, Group, Owner, Project, Section, State

SECTION = "milestones"
_EVENTS = {"close": "closed", "activate": "active"}
_CHANGEABLE = ("title", "description", "start_date", "due_date", "state_event")
_ANCESTORS = ("include_ancestors", "include_parent_milestones")
_TAKEN = "already being used for another group or project milestone."
_SORTS = {
    "due_date": "due_date",
    "start_date": "start_date",
    "name": "title",
    **dict.fromkeys(("created", "created_at"), "created_at"),
    **dict.fromkeys(("updated", "updated_at"), "updated_at"),
    "id": "id",
}
_DAYS = ("%Y-%m-%d", "%Y%m%d", "%d/%m/%Y", "%d %B %Y")
_BLANKS = " \t\n\v\f\r\0"
_FILTERS = (
    integers("iids"),
    integers("ids"),
    *(text(name) for name in ("title", "search", "search_title", "sort", "containing_date", "start_date", "end_date")),
    *(time(name) for name in ("updated_before", "updated_after")),
    *(boolean(name) for name in _ANCESTORS),
    *PAGE,
)
_STATE = [text("state", values=("active", "closed", *more)) for more in ((), ("all", ""))]
_NEW = (text("title", required=True), *(text(name) for name in ("description", "start_date", "due_date")))
_CHANGES = (*(text(name) for name in _CHANGEABLE[:4]), text("state_event", values=tuple(_EVENTS)))


@dataclass(slots=True)
class Milestone:
    """One milestone; `id` is unique in the service, `iid` in its project or group."""

    id: int
    iid: int
    title: str
    description: str | None
    start_date: str | None
    due_date: str | None
    state: str
    created_at: str
    updated_at: str


class Shelf(dict[int, Milestone]):
    """The milestones of one project or group by ID, and the last iid given out there."""

    last = 0

    def put(self, milestone: Milestone) -> None:
        """Keep one."""
        self[milestone.id] = milestone
        self.last = max(self.last, milestone.iid)


def list_milestones(call: Call) -> Answer:
    """`GET /projects/:id/milestones`: by due date, or as `sort` says, and newest first among equals."""
    sent = read(call, _STATE[call.state.deployed], *_FILTERS)
    if sent.keys() >= set(_ANCESTORS):
        key = "error" if call.state.deployed else "message"
        raise Refusal(400, {key: f"{', '.join(_ANCESTORS)} are mutually exclusive"})
    project = readable_project(call)
    ancestors = any(sent.get(name) for name in _ANCESTORS)
    places: list[Group | Project] = [project, *(project.groups() if ancestors else ())]
    found = [(place, each) for place in places for each in shelf(place).values() if _matches(each, sent, ancestors)]
    found.sort(key=lambda pair: -pair[1].id)
    wanted, _, way = (sent.get("sort") or "due_date_asc").rpartition("_")
    if wanted in _SORTS and way in ("asc", "desc"):
        found.sort(key=lambda pair: _rank(pair[1], _SORTS[wanted]), reverse=way == "desc")
        found.sort(key=lambda pair: getattr(pair[1], _SORTS[wanted]) is None)
    return page_of(call, found, lambda pair: show_milestone(call, *pair))


def get_milestone(call: Call) -> Answer:
    """`GET /projects/:id/milestones/:milestone_id`, by `id`, not `iid`."""
    number = call.number("milestone_id")
    project = readable_project(call)
    return Answer(200, show_milestone(call, project, find_milestone(project, number)))


def create_milestone(call: Call) -> Insertion:
    """`POST /projects/:id/milestones`: a new one is active, whatever is sent. No index keeps titles unique."""
    sent = read(call, *_NEW)
    project = writable_project(call)
    wanted = Milestone(0, 0, "", None, None, None, "active", "", "")
    wrong = _fill(wanted, sent, call.state) | _title_faults(wanted.title, project)
    if wrong:
        raise _refuse(call.state, "create", wrong)

    def insert() -> Answer:
        wanted.id, wanted.iid = call.state.number(SECTION).give(), shelf(project).last + 1
        wanted.created_at = wanted.updated_at = call.state.tick()
        shelf(project).put(wanted)
        call.changed = True
        return Answer(201, show_milestone(call, project, wanted))

    return insert


def update_milestone(call: Call) -> Answer:
    """`PUT /projects/:id/milestones/:milestone_id`: the state is saved first, even if the rest is then refused."""
    number = call.number("milestone_id")
    sent = read(call, *_CHANGES, any_of=_CHANGEABLE if call.state.deployed else ())
    project = writable_project(call)
    milestone = find_milestone(project, number)
    if not call.state.deployed:
        call.require_unmodified(milestone.updated_at)
    state = _EVENTS.get(sent.get("state_event") or "", milestone.state)
    if state != milestone.state:
        milestone.state, milestone.updated_at = state, call.state.tick()
        call.changed = True
    wanted = replace(milestone)
    wrong = _fill(wanted, sent, call.state)
    if wanted.title != milestone.title:
        wrong.update(_title_faults(wanted.title, project))
    if wrong:
        raise _refuse(call.state, "update", wrong)
    if wanted != milestone:
        wanted.updated_at = call.state.tick()
        shelf(project).put(wanted)
        call.changed = True
    return Answer(200, show_milestone(call, project, wanted))


def delete_milestone(call: Call) -> Answer:
    """`DELETE /projects/:id/milestones/:milestone_id`."""
    number = call.number("milestone_id")
    project = writable_project(call)
    milestone = find_milestone(project, number)
    if not call.state.deployed:
        call.require_unmodified(milestone.updated_at)
    del shelf(project)[number]
    call.changed = True
    return Answer(204)


def shelf(place: Group | Project) -> Shelf:
    """The milestones kept there."""
    found: Shelf = place.sections[SECTION]
    return found


def readable_project(call: Call) -> Project:
    """The project, if its milestones can be read: issues or merge requests are on; else 404 or 403."""
    project = call.visible_project()
    if not (project.switches["issues_enabled"] or project.switches["merge_requests_enabled"]):
        raise refused(403, "403 Forbidden")
    return project


def writable_project(call: Call) -> Project:
    """The project, if the caller may write its milestones: a planner, and it is not archived; else 404 or 403."""
    project = readable_project(call)
    call.require(project, PLANNER)
    if project.is_archived():
        raise refused(403, "403 Forbidden")
    return project


def find_milestone(project: Project, number: int) -> Milestone:
    """The project's own milestone of that ID; else 404."""
    found = shelf(project).get(number)
    if found is None:
        raise refused(404, "404 Not found")
    return found


def _rank(each: Milestone, field: str) -> str | int:
    """What to sort by: numbers as such, texts without regard to case, what is not there as an empty one."""
    value: str | int | None = getattr(each, field)
    return value if isinstance(value, int) else (value or "").lower()


def _matches(each: Milestone, sent: dict[str, Any], ancestors: bool) -> bool:
    return (
        (ancestors or not sent.get("iids") or each.iid in sent["iids"])
        and _is_asked_for(each, sent)
        and sent.get("state") in (None, "", "all", each.state)
        and has_words(sent.get("search"), each.title, each.description)
        and has_words(sent.get("search_title"), each.title)
        and (not sent.get("updated_after") or each.updated_at >= sent["updated_after"])
        and (not sent.get("updated_before") or each.updated_at <= sent["updated_before"])
        and _in_time(each, sent)
    )


def _is_asked_for(each: Milestone, sent: dict[str, Any]) -> bool:
    """Whether `ids` or `title` names it; whoever says both asks for all of either."""
    ids, title = sent.get("ids"), sent.get("title")
    return not (ids or title) or each.id in (ids or ()) or each.title == title


def _in_time(each: Milestone, sent: dict[str, Any]) -> bool:
    begins, ends = each.start_date or "0000", each.due_date or "9999"
    day, first, last = (sent.get(name) for name in ("containing_date", "start_date", "end_date"))
    return (not day or begins <= day <= ends) and (not (first and last) or (begins <= last and ends >= first))


def _fill(milestone: Milestone, sent: dict[str, Any], state: State) -> dict[str, list[str]]:
    """Put in what was sent, and say what is wrong with it."""
    wrong: dict[str, list[str]] = {}
    if "title" in sent:
        milestone.title = (sent["title"] or "").strip(_BLANKS)
    if "description" in sent:
        milestone.description = sent["description"]
    for name in ("start_date", "due_date"):
        if name in sent:
            given = sent[name] or ""
            year, dash, _ = given.partition("-")
            if dash and year.isdigit() and len(year) > 4:
                wrong[name] = ["date must not be after 9999-12-31"]
            elif given and not state.deployed and _day(given) != given:
                wrong[name] = ["is invalid"]
            else:
                setattr(milestone, name, _day(given))
    if milestone.start_date and milestone.due_date and milestone.due_date <= milestone.start_date:
        wrong["due_date"] = ["must be greater than start date"]
    return wrong


def _day(given: str) -> str | None:
    """The day meant, as production reads it, whatever the time of day; None for what is no day."""
    for form in _DAYS:
        with suppress(ValueError):
            return datetime.strptime(given[:10] if form == _DAYS[0] else given, form).date().isoformat()  # noqa: DTZ007 - a day has no zone
    return None


def _title_faults(title: str, project: Project) -> dict[str, list[str]]:
    if not title:
        return {"title": ["can't be blank"]}
    places: Iterator[Group | Project] = chain((project,), project.groups())
    taken = any(each.title == title for place in places for each in shelf(place).values())
    return {"title": [_TAKEN]} if taken else {}


def _refuse(state: State, verb: str, wrong: dict[str, list[str]]) -> Refusal:
    """400: an object of arrays by the spec (section 7), one string with a Ruby hash in production."""
    if not state.deployed:
        return refused(400, wrong)
    pairs = (f":{name}=>[{', '.join(map(json.dumps, reasons))}]" for name, reasons in wrong.items())
    return refused(400, f"Failed to {verb} milestone {{{', '.join(pairs)}}}")


def show_milestone(call: Call, place: Group | Project, milestone: Milestone) -> dict[str, Any]:
    """The record of a milestone (spec section 2); production adds its address."""
    state = call.state
    record = {
        "id": milestone.id,
        "iid": milestone.iid,
        "project_id" if isinstance(place, Project) else "group_id": place.id,
        "title": milestone.title,
        "description": milestone.description,
        "state": milestone.state,
        "created_at": state.show_time(milestone.created_at),
        "updated_at": state.show_time(milestone.updated_at),
        "due_date": milestone.due_date,
        "start_date": milestone.start_date,
        "expired": milestone.due_date is not None and milestone.due_date < state.today(),
    }
    if state.deployed:
        path = place.path if isinstance(place, Project) else f"groups/{place.path}"
        record["web_url"] = f"{call.url}/{path}/-/milestones/{milestone.iid}"
    return record


def _load(reading: Reading, state: State, _owner: Owner) -> Shelf:
    found = Shelf()
    for item in reading.items():
        fields = item.fields(*(field.name for field in dataclass_fields(Milestone)))
        created = fields["created_at"].optional_time() or SEED
        title = fields["title"].text().strip(_BLANKS)
        if not title:
            raise fields["title"].fault("can't be blank")
        found.put(
            Milestone(
                fields["id"].optional_integer() or state.number(SECTION).give(),
                fields["iid"].optional_integer() or found.last + 1,
                title,
                fields["description"].optional_text(),
                fields["start_date"].optional_date(),
                fields["due_date"].optional_date(),
                fields["state"].choice(("active", "closed"), "active"),
                created,
                fields["updated_at"].optional_time() or created,
            )
        )
    return found


def _dump(found: Shelf) -> list[dict[str, Any]]:
    return [asdict(milestone) for milestone in found.values()]


_PATH = "/projects/:id/milestones"
SECTIONS = (
    Section(SECTION, "group", _load, _dump, numbered=True),
    Section(SECTION, "project", _load, _dump, numbered=True),
)
ROUTES = (
    Route("GET", _PATH, list_milestones),
    Route("GET", f"{_PATH}/:milestone_id", get_milestone),
    Route("POST", _PATH, create_milestone),
    Route("PUT", f"{_PATH}/:milestone_id", update_milestone),
    Route("DELETE", f"{_PATH}/:milestone_id", delete_milestone),
)
