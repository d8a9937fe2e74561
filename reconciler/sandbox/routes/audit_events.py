"""Audit events of projects and groups: who changed what, as far as the service notes it (deployed behaviour).

The spec does not define these endpoints; they follow production servers, which note approval settings and the
allowlists of job tokens, and neither the switch beside these, nor milestones, tokens and notification settings. A
licence has them or not: the state's `audit_events_licensed`.
"""

from dataclasses import dataclass
from typing import Any

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..collection import PAGE, page_of
from ..parameters import read, time
from ..records import stamp
from ..state import DEVELOPER, MAINTAINER, OWNER, Place, Project, Section, User

LICENSED: Section[bool] = Section("audit_events_licensed", ("instance",), bool, True)
SECTIONS = (LICENSED,)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event; the author is the user behind the token."""

    id: int
    author: User
    place: Place
    name: str
    details: dict[str, Any]
    created_at: str


def note_event(call: Call, place: Place, name: str, message: str, about: tuple[str, int, str], **details: Any) -> None:
    """Note that the caller has changed something.

    Args:
        call: the request.
        place: the project or the group.
        name: of the event.
        message: its sentence.
        about: the type, the ID and the name of what was changed.
        details: such as `change`, `from` and `to`.
    """
    sort, number, shown = about
    told = {"target_id": number, "target_type": sort, "target_details": shown, "custom_message": message}
    events = call.state.events
    events.append(AuditEvent(len(events) + 1, call.caller(), place, name, details | told, stamp(call.state.now)))


def list_of_project(call: Call) -> Answer:
    """`GET /projects/:id/audit_events`: a Developer sees what they did themselves."""
    return _listed(call, call.visible_project(), whole=MAINTAINER)


def list_of_group(call: Call) -> Answer:
    """`GET /groups/:id/audit_events`: without subgroups and projects; all of it for owners only."""
    return _listed(call, call.visible_group(), whole=OWNER)


def _listed(call: Call, place: Place, whole: int) -> Answer:
    """Answer with the events of a place, the newest first; both bounds belong to the span."""
    if not call.state.instance.enterprise:
        raise Refusal(404, {"error": "404 Not Found"})
    sent = read(call, *PAGE, time("created_after"), time("created_before"))
    call.require(place, DEVELOPER)
    if not LICENSED.of(call.state.instance):
        raise refused(403, "403 Forbidden")
    after, before = sent.get("created_after") or "", sent.get("created_before") or "~"
    user = call.caller()
    sees_all = call.state.access(user, place) >= whole
    events = [
        event
        for event in reversed(call.state.events)
        if event.place is place and after <= event.created_at <= before and (sees_all or event.author is user)
    ]
    return page_of(call, events, lambda event: _show(call, event))


def _show(call: Call, event: AuditEvent) -> dict[str, Any]:
    author = {"author_name": event.author.name or event.author.username, "author_class": "User"}
    return {
        "id": event.id,
        "author_id": event.author.id,
        "entity_id": event.place.id,
        "entity_type": "Project" if isinstance(event.place, Project) else "Group",
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
)
