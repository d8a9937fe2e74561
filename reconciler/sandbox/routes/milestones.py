"""Milestones (spec section 4.11): titles are unique over a project and the groups above it.

The spec has milestones of projects only; those of groups follow production servers.

Differences: production has its errors in one string with a Ruby hash, wants at least one attribute in a `PUT`, knows
the state `all`, reads dates in other forms, takes an unreadable date for no date, and answers a promotion with 200 and
no record, where by the spec (section 7) a `POST` gives 201.
"""

import json
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import boolean, integers, read, text, time
from ..records import CountedItem, Date
from ..state import PLANNER, GroupOrProject, Project, SandboxState

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
    *(boolean(name) for name in (*_ANCESTORS, "include_descendants")),
    *PAGE,
)
_STATE = [text("state", values=("active", "closed", *more)) for more in ((), ("all", ""))]
_NEW = (text("title", required=True), *(text(name) for name in ("description", "start_date", "due_date")))
_CHANGES = (*(text(name) for name in _CHANGEABLE[:4]), text("state_event", values=tuple(_EVENTS)))


def _title(given: str) -> str:
    title = given.strip(_BLANKS)
    if not title:
        raise ValueError("can't be blank")
    return title


class MilestoneRecord(CountedItem):
    """A milestone."""

    title: Annotated[str, AfterValidator(_title)]
    description: str | None = None
    start_date: Date | None = None
    due_date: Date | None = None
    state: Literal["active", "closed"] = "active"


class _Milestones(RouteCollection[MilestoneRecord]):
    """The milestones of a project or group; `_ANCESTORS` adds those of the groups above to a list.

    A project's list shows these to everybody who sees the project, and a group's list to everybody who sees the groups.
    `include_descendants` adds those of the groups and projects below in the same way.
    """

    def list_items(self, call: Call) -> Answer:
        """Answer with milestones by due date, or as `sort` says, newest first among equal dates."""
        sent = read(call, _STATE[call.state.deployed], *_FILTERS)
        if sent.keys() >= set(_ANCESTORS):
            key = "error" if call.state.deployed else "message"
            raise Refusal(400, {key: f"{', '.join(_ANCESTORS)} are mutually exclusive"})
        owner = self.owner(call)
        ancestors = any(sent.get(name) for name in _ANCESTORS)
        places = _with_groups_above(call.state, owner) if ancestors else [owner]
        if call.level == "group":
            below = call.state.below(owner) if sent.get("include_descendants") else []
            others = [place for place in (*places, *below) if place is not owner and _is_shown(call, place)]
            places = [owner, *others]
        milestones = [
            (place, milestone)
            for place in places
            for milestone in self.section.of(place)
            if _matches(milestone, sent, ancestors)
        ]
        milestones.sort(key=lambda pair: -pair[1].id)
        wanted, _, way = (sent.get("sort") or "due_date_asc").rpartition("_")
        if wanted in _SORTS and way in ("asc", "desc"):
            milestones.sort(key=lambda pair: _rank(pair[1], _SORTS[wanted]), reverse=way == "desc")
            milestones.sort(key=lambda pair: getattr(pair[1], _SORTS[wanted]) is None)
        return page_of(call, milestones, lambda pair: self.show(call, *pair))

    def owner(self, call: Call) -> GroupOrProject:
        """Return the owner, if the caller can see it and, in a project, issues or merge requests are on."""
        if call.level == "group":
            return call.visible_group()
        project = call.visible_project()
        if not (project.issues_enabled or project.merge_requests_enabled):
            raise refused(403, "403 Forbidden")
        return project

    def owner_to_write(self, call: Call) -> GroupOrProject:
        """Return the owner, if the caller is a planner and it is not archived; else 404 or 403."""
        owner = self.owner(call)
        call.require(owner, PLANNER)
        call.require_open(owner)
        return owner

    def make(self, call: Call, owner: GroupOrProject, sent: dict[str, Any]) -> MilestoneRecord:
        """Return a new milestone, which is always active. No index keeps titles unique."""
        wanted = MilestoneRecord.model_construct(title="")
        wrong = _fill(wanted, sent, call.state) | title_faults(call.state, wanted.title, owner)
        if wrong:
            raise _refuse(call.state, "create", wrong)
        return wanted

    def update(self, call: Call) -> Answer:
        """Change a milestone; the state is saved first, even if all else is refused."""
        number = self.key(call)
        sent = read(call, *_CHANGES, any_of=_CHANGEABLE if call.state.deployed else ())
        owner = self.owner_to_write(call)
        milestone = self.find(call, owner, number)
        self.require_unmodified(call, milestone)
        state = _EVENTS.get(sent.get("state_event") or "", milestone.state)
        if state != milestone.state:
            self.save(call, milestone, milestone.model_copy(update={"state": state}))
        wanted = milestone.model_copy()
        wrong = _fill(wanted, sent, call.state)
        if wanted.title != milestone.title:
            wrong.update(title_faults(call.state, wanted.title, owner))
        if wrong:
            raise _refuse(call.state, "update", wrong)
        if wanted != milestone:
            self.save(call, milestone, wanted)
        return Answer(200, self.show(call, owner, milestone))

    def require_unmodified(self, call: Call, item: MilestoneRecord) -> None:
        """Refuse with 412 in the spec only: production does not honour the header for milestones."""
        if not call.state.deployed:
            super().require_unmodified(call, item)

    def show(self, call: Call, owner: GroupOrProject, item: MilestoneRecord) -> dict[str, Any]:
        """Return the record of a milestone (spec section 2); production and a group's list add its address."""
        record = {
            **super().show(call, owner, item),
            "project_id" if isinstance(owner, Project) else "group_id": owner.id,
            "expired": item.due_date is not None and item.due_date < call.state.today(),
        }
        if call.state.deployed or call.level == "group":
            path = owner.path if isinstance(owner, Project) else f"groups/{owner.path}"
            record["web_url"] = f"{call.url}/{path}/-/milestones/{item.iid}"
        return record

    def list_nothing(self, call: Call) -> Answer:
        """Answer with an empty list: the sandbox has no issues, merge requests and burndown events."""
        number = self.key(call)
        read(call, *PAGE)
        self.find(call, self.owner(call), number)
        return page_of(call, (), lambda nothing: nothing)

    def promote(self, call: Call) -> Answer:
        """Create the milestone in the group, and remove it from all projects of the group.

        Milestones of the same title in subgroups and their projects stay.
        """
        number = self.key(call)
        project, state = call.visible_project(), call.state
        self.owner_to_write(call)
        group = state.group_of(project)
        if group is None:
            raise refused(403, "403 Forbidden")
        call.require(group, PLANNER)
        promoted = self.find(call, project, number).model_copy(update={"state": "active"})
        for inside in [place for place in state.projects.values() if state.group_of(place) is group]:
            for same in [same for same in self.section.of(inside) if same.title == promoted.title]:
                self.remove(call, inside, same)
        self.add(call, group, promoted)
        return Answer(200, 200) if state.deployed else Answer(201, self.show(call, group, promoted))


def _is_shown(call: Call, place: GroupOrProject) -> bool:
    """Whether a group's list shows a place's milestones: the caller sees it, and a project has the feature on."""
    is_on = not isinstance(place, Project) or place.issues_enabled or place.merge_requests_enabled
    return is_on and call.state.visible(call.user, place)


def _rank(milestone: MilestoneRecord, field: str) -> str | int:
    """Return the sort key: a number, or a text in lower case, empty for null."""
    value: str | int | None = getattr(milestone, field)
    return value if isinstance(value, int) else (value or "").lower()


def _matches(milestone: MilestoneRecord, sent: dict[str, Any], ancestors: bool) -> bool:
    return (
        (ancestors or not sent.get("iids") or milestone.iid in sent["iids"])
        and _is_asked_for(milestone, sent)
        and sent.get("state") in (None, "", "all", milestone.state)
        and _has_words(sent.get("search"), milestone.title, milestone.description)
        and _has_words(sent.get("search_title"), milestone.title)
        and (not sent.get("updated_after") or milestone.updated_at >= sent["updated_after"])
        and (not sent.get("updated_before") or milestone.updated_at <= sent["updated_before"])
        and _in_time(milestone, sent)
    )


def _has_words(wanted: str | None, *columns: str | None) -> bool:
    """Whether one of the columns has every wanted word; words in quotes are one term, case is ignored.

    Words of one letter count only if there are no other words: then they must be the whole column.
    """
    whole = " ".join((wanted or "").lower().split())
    if not whole:
        return True
    parts = whole.split('"')
    terms = [term for part in parts[::2] for term in part.split()] + parts[1::2]
    terms = [term for term in terms if len(term) > 1]
    texts = [column.lower() for column in columns if column]
    return any(all(term in column for term in terms) if terms else column == whole for column in texts)


def _is_asked_for(milestone: MilestoneRecord, sent: dict[str, Any]) -> bool:
    """Whether `ids` or `title` selects the milestone; with both, one of them suffices."""
    ids, title = sent.get("ids"), sent.get("title")
    return not (ids or title) or milestone.id in (ids or ()) or milestone.title == title


def _in_time(milestone: MilestoneRecord, sent: dict[str, Any]) -> bool:
    begins, ends = milestone.start_date or "0000", milestone.due_date or "9999"
    day, first, last = (sent.get(name) for name in ("containing_date", "start_date", "end_date"))
    return (not day or begins <= day <= ends) and (not (first and last) or (begins <= last and ends >= first))


def _fill(milestone: MilestoneRecord, sent: dict[str, Any], state: SandboxState) -> dict[str, list[str]]:
    """Set the attributes that were sent, and return their errors."""
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
    """Return the day as production reads it, ignoring the time of day; None for anything else."""
    for form in _DAYS:
        with suppress(ValueError):
            return datetime.strptime(given[:10] if form == _DAYS[0] else given, form).date().isoformat()  # noqa: DTZ007 - a day has no zone
    return None


def _with_groups_above(state: SandboxState, place: GroupOrProject) -> list[GroupOrProject]:
    return [place, *(group for group in state.groups_above(place) if group is not place)]


def title_faults(state: SandboxState, title: str, owner: GroupOrProject) -> dict[str, list[str]]:
    """Return the errors about a title in that place; none if it is free and valid."""
    if not title:
        return {"title": ["can't be blank"]}
    places = {id(place): place for place in (*state.below(owner), *_with_groups_above(state, owner))}.values()
    taken = any(milestone.title == title for place in places for milestone in MILESTONES.section.of(place))
    return {"title": [_TAKEN]} if taken else {}


def _refuse(state: SandboxState, verb: str, wrong: dict[str, list[str]]) -> Refusal:
    """Refuse with 400: by the spec (section 7) an object of arrays, in production a string with a Ruby hash."""
    if not state.deployed:
        return refused(400, wrong)
    pairs = (f":{name}=>[{', '.join(map(json.dumps, reasons))}]" for name, reasons in wrong.items())
    return refused(400, f"Failed to {verb} milestone {{{', '.join(pairs)}}}")


MILESTONES = _Milestones(
    "milestones",
    MilestoneRecord,
    "/projects/:id/milestones",
    "/groups/:id/milestones",
    part="milestone_id",
    new=_NEW,
)
_ONE = "/projects/:id/milestones/:milestone_id"
SECTIONS = (MILESTONES.section,)
ROUTES = (
    *MILESTONES.routes(),
    *(
        Route("GET", f"{_ONE}/{name}", MILESTONES.list_nothing)
        for name in ("issues", "merge_requests", "burndown_events")
    ),
    Route("POST", f"{_ONE}/promote", MILESTONES.promote),
)
