"""Audit events of projects, groups and all of them: who changed what, as far as the service notes changes.

The spec does not define these endpoints; they follow production servers (deployed behaviour), which note approval
settings and the allowlists of job tokens, and neither the switch beside these, nor milestones, tokens and notification
settings. Only the paid tiers have them: the state's `licensed`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..collection import PAGE, page_of
from ..parameters import Attribute, integer, read, text, time
from ..records import stamp
from ..state import DEVELOPER, MAINTAINER, OWNER, GroupOrProject, Project, User

ENTITIES = ("Project", "User", "Group", "Gitlab::Audit::InstanceScope")

TOTALS = ("x-total", "x-total-pages")
LAST = re.compile(r', <[^>]*>; rel="last"')


@dataclass(frozen=True, slots=True)
class AuditEventRecord:
    """An event; the author is the user behind the token."""

    id: int
    author: User
    place: GroupOrProject
    name: str
    details: dict[str, Any]
    created_at: str


def note_event(
    call: Call, place: GroupOrProject, name: str, message: str, about: tuple[str, int, str], **details: Any
) -> None:
    """Note that the caller has changed something.

    Args:
        call: the request.
        place: the project or the group.
        name: of the event.
        message: its sentence.
        about: the type, the ID and the name of the changed object.
        details: such as `change`, `from` and `to`.
    """
    sort, number, shown = about
    common = {"target_id": number, "target_type": sort, "target_details": shown, "custom_message": message}
    events = call.state.events
    events.append(
        AuditEventRecord(len(events) + 1, call.caller(), place, name, details | common, stamp(call.state.now))
    )


def list_of_project(call: Call) -> Answer:
    """`GET /projects/:id/audit_events`: a Developer sees only their own events."""
    return _listed(call, call.visible_project(), whole=MAINTAINER)


def list_of_group(call: Call) -> Answer:
    """`GET /groups/:id/audit_events`, without subgroups and projects: all events for owners, else one's own."""
    return _listed(call, call.visible_group(), whole=OWNER)


def _listed(call: Call, place: GroupOrProject, whole: int) -> Answer:
    """Answer with the events of a place: all events for a caller who has that role there, else the caller's own."""
    sent = _read(call)
    call.require(place, DEVELOPER)
    _require_licence(call)
    user = call.caller()
    sees_all = call.state.access(user, place) >= whole
    here = (event for event in _within(call, sent) if event.place is place)
    events = [event for event in here if sees_all or event.author.id == user.id]
    return page_of(call, events, lambda event: _show(call, event))


def list_of_all(call: Call) -> Answer:
    """`GET /audit_events`: the events of all projects and groups, for administrators; its pages have no totals."""
    sent = _read(call, text("entity_type", values=ENTITIES), integer("entity_id"))
    call.instance()
    _require_licence(call)
    if "entity_id" in sent and "entity_type" not in sent:
        raise Refusal(400, {"error": "entity_type is missing"})
    entity = (sent.get("entity_type"), sent.get("entity_id"))
    events = [
        event
        for event in _within(call, sent)
        if all(wanted in (None, own) for wanted, own in zip(entity, (_entity(event), event.place.id), strict=True))
    ]
    answer = page_of(call, events, lambda event: _show(call, event))
    headers = [(name, LAST.sub("", text)) for name, text in answer.headers if name not in TOTALS]
    return replace(answer, headers=headers)


def _read(call: Call, *parameters: Attribute) -> dict[str, Any]:
    if not call.state.instance.enterprise:
        raise Refusal(404, {"error": "404 Not Found"})
    return read(call, *PAGE, time("created_after"), time("created_before"), *parameters)


def _require_licence(call: Call) -> None:
    if not call.state.instance.licensed:
        raise refused(403, "403 Forbidden")


def _within(call: Call, sent: dict[str, Any]) -> Iterator[AuditEventRecord]:
    """Yield the events of a span, the newest first; the span includes both bounds."""
    after, before = sent.get("created_after") or "", sent.get("created_before") or "~"
    return (event for event in reversed(call.state.events) if after <= event.created_at <= before)


def _entity(event: AuditEventRecord) -> str:
    return "Project" if isinstance(event.place, Project) else "Group"


def _show(call: Call, event: AuditEventRecord) -> dict[str, Any]:
    author = {"author_name": event.author.name or event.author.username, "author_class": "User"}
    return {
        "id": event.id,
        "author_id": event.author.id,
        "entity_id": event.place.id,
        "entity_type": _entity(event),
        "event_name": event.name,
        "details": {
            **event.details,
            **author,
            "event_name": event.name,
            "author_email": next(iter(event.author.emails), None),
            "ip_address": "127.0.0.1",
            "entity_path": event.place.path,
        },
        "created_at": call.state.show_time(event.created_at),
    }


ROUTES = (
    Route("GET", "/projects/:id/audit_events", list_of_project, anonymous=True),
    Route("GET", "/groups/:id/audit_events", list_of_group, anonymous=True),
    Route("GET", "/audit_events", list_of_all),
)
