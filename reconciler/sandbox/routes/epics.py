"""Epics of a group and their labels (spec section 4.20), as far as a client of epics meets them.

Differences: production has one flag for both dates, takes labels as a list too, answers 403 to an unknown number and
500 to `parent_id: null`, and has its errors in arrays under `message.base`, or in a sentence about something else.
"""

import re
from contextlib import suppress
from datetime import date
from typing import Any, Literal

from pydantic import Field

from ..answers import Answer, refused
from ..call import Call, Route, invalid
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import Attribute, boolean, read, text
from ..records import CountedItem, Date, StoredItem, Time
from ..state import OWNER, PLANNER, Group

_State = Literal["opened", "closed"]
_EVENTS: dict[str, _State] = {"close": "closed", "reopen": "opened"}
_DATES = ("start_date", "due_date")
_CHANGEABLE = (
    "add_labels",
    "color",
    "confidential",
    "description",
    "due_date_fixed",
    "due_date_is_fixed",
    "labels",
    "parent_id",
    "remove_labels",
    "start_date_fixed",
    "start_date_is_fixed",
    "state_event",
    "title",
    "start_date",
    "end_date",
)
_QUICK_ACTION = re.compile(r"^/(\w+).*\n?", re.MULTILINE)
_DEEPEST = 7


def _labels(call: Call, given: Any) -> list[str]:
    """Read names: a string with commas; in production also a list of such strings."""
    if isinstance(given, list) and not call.state.deployed:
        raise invalid(call.state, {"labels": "is invalid"})
    parts = given if isinstance(given, list) else [given or ""]
    return sorted({name.strip() for part in parts for name in str(part).split(",") if name.strip()})


def _parent(given: Any) -> int | None:
    """Read the ID of a parent, not its number within a group; the empty string is null."""
    if isinstance(given, bool) or not (given == "" or str(given).isdigit()):
        raise ValueError
    return int(given) if given != "" else None


_COMMON = (
    *(text(name) for name in ("description", "start_date_fixed", "due_date_fixed")),
    *(boolean(name) for name in ("confidential", "start_date_is_fixed", "due_date_is_fixed")),
    Attribute(lambda given: given, "labels"),
    Attribute(_parent, "parent_id"),
)


class Label(StoredItem):
    """A label of a group."""

    name: str
    color: str = "#6699cc"
    description: str | None = None


class EpicRecord(CountedItem):
    """An epic. Its dates are kept while they are not fixed, and not shown."""

    title: str
    description: str | None = None
    labels: list[str] = Field(default_factory=list)
    confidential: bool = False
    parent_id: int | None = None
    start_date: Date | None = None
    due_date: Date | None = None
    start_date_is_fixed: bool = False
    due_date_is_fixed: bool = False
    state: _State = "opened"
    closed_at: Time | None = None


class _Labels(RouteCollection[Label]):
    def list_items(self, call: Call) -> Answer:
        """Answer with the labels of the group and, if not asked otherwise, of the groups above, by name."""
        sent = read(call, boolean("include_ancestor_groups"), boolean("only_group_labels"), *PAGE)
        group = call.visible_group()
        groups = call.state.groups_above(group) if sent.get("include_ancestor_groups", True) else [group]
        labels = sorted((label for owner in groups for label in self.section.of(owner)), key=lambda label: label.name)
        return page_of(call, labels, lambda item: self.show(call, group, item))


class _Epics(RouteCollection[EpicRecord]):
    def list_items(self, call: Call) -> Answer:
        """Answer with epics of the group and of the groups below, if not asked otherwise; newest first."""
        sent = read(call, *self.filters, *PAGE)
        group = self.owner(call)
        below = sent.get("include_descendant_groups", True)
        inside = f"{group.path}/" if below else group.path + "//"
        groups = [group, *(other for other in call.state.groups.values() if other.path.startswith(inside))]
        epics = [(owner, item) for owner in groups for item in self.items(call, owner)]
        return page_of(call, self.in_order(epics, sent), lambda pair: self._show_below(call, group, *pair))

    def owner(self, call: Call) -> Group:
        """Return the group, if the caller may see it, and production's edition has epics; else 404 or 403."""
        group = call.visible_group()
        if not call.state.instance.enterprise:
            raise refused(403, "403 Forbidden")
        return group

    def owner_to_write(self, call: Call) -> Group:
        """Return the group, if the caller is a planner."""
        group = self.owner(call)
        call.require(group, PLANNER)
        return group

    def items(self, call: Call, owner: Group) -> list[EpicRecord]:
        """Return the epics that the caller can see: confidential epics need a planner."""
        planner = call.state.access(call.user, owner) >= PLANNER
        return [epic for epic in self.section.of(owner) if planner or not epic.confidential]

    def find(self, call: Call, owner: Group, key: int) -> EpicRecord:
        """Return the epic of that number; else 404, and in production 403, since no right exists for a missing epic."""
        if call.state.deployed and key not in {item.iid for item in self.items(call, owner)}:
            raise refused(403, "403 Forbidden")
        return super().find(call, owner, key)

    def require_right(self, call: Call, owner: Group, item: EpicRecord) -> None:
        """Allow deletions by owners and planners, and not by the roles between them."""
        if call.method == "DELETE" and PLANNER < call.state.access(call.user, owner) < OWNER:
            raise refused(403, "403 Forbidden")

    def require_unmodified(self, call: Call, item: EpicRecord) -> None:
        """Ignore the header, as the service does."""

    def make(self, call: Call, owner: Group, sent: dict[str, Any]) -> EpicRecord:
        """Return a new epic; a parent that does not exist is left out."""
        wanted = EpicRecord.model_construct(title="")
        self._fill(call, owner, wanted, {name: value for name, value in sent.items() if value is not None})
        parent = self._epic(call, wanted.parent_id)
        if parent is None:
            wanted.parent_id = None
        elif not self._readable(call, parent):
            reason = "No matching epic found. Make sure that you are adding a valid epic URL."
            raise refused(400, {"base": [reason]})
        return wanted

    def update(self, call: Call) -> Answer:
        """Change an epic. A confidential epic below or above a public one drops the whole update without a word."""
        key = self.key(call)
        sent = read(call, *self.changes, any_of=_CHANGEABLE if call.state.deployed else ())
        owner = self.owner_to_write(call)
        item = self.find(call, owner, key)
        if "parent_id" in sent and sent["parent_id"] is None and item.parent_id and call.state.deployed:
            raise refused(500, "500 Internal Server Error")
        if sent.get("parent_id") is not None and self._epic(call, sent["parent_id"]) is None:
            raise refused(404, "404 Not found")
        wanted = item.model_copy()
        self._fill(call, owner, wanted, sent)
        if wanted.parent_id != item.parent_id or not self._discloses(call, wanted):
            self.check(call, owner, wanted, item)
            self.save(call, item, wanted)
        return Answer(200, self.show(call, owner, item))

    def unlink(self, call: Call) -> Answer:
        """Take a child away from its parent."""
        key = self.key(call)
        child_id = call.number("child_id")
        owner = self.owner_to_write(call)
        parent, child = self.find(call, owner, key), self._epic(call, child_id)
        if child is None or child.parent_id != parent.id:
            raise refused(404, "404 Not found")
        self.save(call, child, child.model_copy(update={"parent_id": None}))
        return Answer(200, self.show(call, owner, child))

    def check(self, call: Call, owner: Group, wanted: EpicRecord, before: EpicRecord | None) -> None:
        """Refuse a blank or long title, and a parent that is a descendant or would have to be hidden."""
        reason = "can't be blank" if not wanted.title else ""
        reason = "is too long (maximum is 255 characters)" if len(wanted.title) > 255 else reason
        if reason:
            raise refused(400, {"base": [[f"Title {reason}"]]} if call.state.deployed else {"title": [reason]})
        parent = self._epic(call, wanted.parent_id)
        above = list(self._above(call, parent))
        reason = ""
        if before in above:
            reason = "it's already present in this item's hierarchy"
        elif len(above) >= _DEEPEST:
            reason = "reached maximum depth"
        elif parent and parent.confidential and not wanted.confidential:
            reason = (
                "cannot assign a non-confidential epic to a confidential parent. "
                "Make the epic confidential and try again."
            )
        if reason and parent:
            if before is not None and call.state.deployed:
                raise refused(400, {name: ["can't be blank"] for name in ("author", "title", "group", "work_item")})
            raise refused(400, {"base": [f"#{parent.iid} cannot be added: {reason}"]})

    def remove(self, call: Call, owner: Group, item: EpicRecord) -> None:
        """Remove an epic; its children stay, and have no parent."""
        super().remove(call, owner, item)
        for child in self._children(call, item):
            child.parent_id = None

    def show(self, call: Call, owner: Group, item: EpicRecord) -> dict[str, Any]:
        """Return the record (spec section 2). By the spec, only editors see which dates are fixed."""
        deployed, parent = call.state.deployed, self._epic(call, item.parent_id)
        record = super().show(call, owner, item)
        record |= {"group_id": owner.id, "labels": sorted(item.labels), "parent_iid": parent and parent.iid}
        for name in _DATES:
            fixed = record.pop(f"{name}_is_fixed")
            inherited = self._inherited(call, item, name)
            shown = getattr(item, name) if fixed else inherited
            record[name] = shown
            if deployed:
                when = shown and f"{shown}T00:00:00+00:00"
                more = {"is_fixed": fixed, "fixed": shown, "from_inherited_source": when}
            else:
                more = {"is_fixed": fixed, "fixed": getattr(item, name), "from_inherited_source": inherited}
            if deployed or call.state.access(call.user, owner) >= PLANNER:
                record |= {f"{name}_{key}": value for key, value in more.items()}
        full = f"{owner.path}&{item.iid}"
        return record | {
            "references": {"short": f"&{item.iid}", "relative": f"&{item.iid}", "full": full},
            "web_url": f"{call.url}/groups/{owner.path}/-/epics/{item.iid}",
        }

    def _show_below(self, call: Call, group: Group, owner: Group, item: EpicRecord) -> dict[str, Any]:
        """Return the record for the list of a group above: its reference has the path of its own group."""
        record = self.show(call, owner, item)
        if owner is not group:
            record["references"]["relative"] = record["references"]["full"]
        return record

    def _fill(self, call: Call, owner: Group, wanted: EpicRecord, sent: dict[str, Any]) -> None:
        """Set the attributes that were sent, and carry out the quick actions in the description."""
        wanted.title = (sent.get("title") or "").strip() if "title" in sent else wanted.title
        wanted.confidential = bool(sent.get("confidential", wanted.confidential))
        wanted.parent_id = sent.get("parent_id", wanted.parent_id)
        wanted.labels = _labels(call, sent["labels"]) if "labels" in sent else wanted.labels
        events = [sent["state_event"]] if sent.get("state_event") else []
        if "description" in sent:
            description = sent["description"] or ""
            events += _QUICK_ACTION.findall(description)
            wanted.description = sent["description"] and _QUICK_ACTION.sub("", description).rstrip("\n")
        for event in events:
            wanted.state = _EVENTS.get(event, wanted.state)
        if wanted.state == "opened" or wanted.closed_at is None:
            wanted.closed_at = call.state.tick() if wanted.state == "closed" else None
        known = {label.name for group in call.state.groups_above(owner) for label in LABELS.section.of(group)}
        for name in wanted.labels:
            if name not in known:
                LABELS.add(call, owner, Label.model_construct(name=name))
        self._set_dates(call, wanted, sent)

    def _set_dates(self, call: Call, wanted: EpicRecord, sent: dict[str, Any]) -> None:
        """Set dates and their flags. In production a flag is for both dates, and dates without a flag are fixed."""
        flags = {f"{name}_is_fixed": sent[f"{name}_is_fixed"] for name in _DATES if f"{name}_is_fixed" in sent}
        given = {name: sent[f"{name}_fixed"] for name in _DATES if f"{name}_fixed" in sent}
        if call.state.deployed and (flags or given):
            fixed = any(flags.values()) if flags else True
            flags = {f"{name}_is_fixed": fixed for name in _DATES}
            given = given if fixed else {}
        for name, value in given.items():
            setattr(wanted, name, _day(value))
        for name, flag in flags.items():
            setattr(wanted, name, bool(flag))

    def _epic(self, call: Call, number: int | None) -> EpicRecord | None:
        """Return the epic of that ID, of whichever group."""
        return next((epic for epic in self._all(call) if epic.id == number), None)

    def _readable(self, call: Call, epic: EpicRecord) -> bool:
        """Whether the caller can see an epic, of whichever group."""
        groups = (group for group in call.state.groups.values() if call.state.visible(call.user, group))
        return any(epic in self.items(call, group) for group in groups)

    def _children(self, call: Call, item: EpicRecord) -> list[EpicRecord]:
        return [epic for epic in self._all(call) if item.id and epic.parent_id == item.id]

    def _all(self, call: Call) -> list[EpicRecord]:
        return [epic for group in call.state.groups.values() for epic in self.section.of(group)]

    def _above(self, call: Call, epic: EpicRecord | None) -> list[EpicRecord]:
        """Return an epic and the epics above it."""
        ancestors: list[EpicRecord] = []
        while epic is not None:
            ancestors.append(epic)
            epic = self._epic(call, epic.parent_id)
        return ancestors

    def _discloses(self, call: Call, wanted: EpicRecord) -> bool:
        parent = self._epic(call, wanted.parent_id)
        hidden = parent is not None and parent.confidential and not wanted.confidential
        return hidden or (wanted.confidential and not all(child.confidential for child in self._children(call, wanted)))

    def _inherited(self, call: Call, item: EpicRecord, name: str) -> str | None:
        """Return the first or the last of the fixed dates of the children."""
        days = [getattr(child, name) for child in self._children(call, item) if getattr(child, f"{name}_is_fixed")]
        days = [day for day in days if day]
        return (min(days) if name == "start_date" else max(days)) if days else None


def _day(given: str | None) -> str | None:
    """Return the day of a text; null for any other text."""
    with suppress(ValueError):
        return date.fromisoformat(given or "").isoformat()
    return None


LABELS = _Labels("labels", Label, "/groups/:id/labels", part="label_id")
EPICS = _Epics(
    "epics",
    EpicRecord,
    "/groups/:id/epics",
    part="epic_iid",
    key="iid",
    filters=(boolean("include_descendant_groups"),),
    order=("created_at", "updated_at", "title"),
    new=(text("title", required=True), *_COMMON),
    changes=(text("title"), text("state_event", values=tuple(_EVENTS)), *_COMMON),
)
SECTIONS = (LABELS.section, EPICS.section)
ROUTES = (
    *LABELS.routes("list"),
    *EPICS.routes(),
    Route("DELETE", "/groups/:id/epics/:epic_iid/epics/:child_id", EPICS.unlink),
)
