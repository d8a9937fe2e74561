"""Pipeline trigger tokens (spec section 4.8): their value is shown in full to their owner only.

Expired ones are as if they were gone. Differences: production shows administrators every value, knows `expires_at`,
takes null for a description, and a `PUT` without one takes the description away.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from ..attributes import Attribute, read, text, time
from ..call import Answer, Call, Insertion, Route
from ..errors import Refusal, refused
from ..pages import PAGE, page_of
from ..reading import Reading, stamp
from ..state import MAINTAINER, SEED, Owner, Project, Section, State, User
from .instance import show_user

PREFIX = "glptt-"
LONGEST = timedelta(days=365)


@dataclass(slots=True)
class Trigger:
    """One token; `owner` is None when that user is gone."""

    id: int
    token: str
    description: str | None
    owner: User | None
    created_at: str
    updated_at: str
    last_used: str | None = None
    expires_at: str | None = None


Triggers = dict[int, Trigger]


def list_triggers(call: Call) -> Answer:
    """`GET /projects/:id/triggers`, by ID."""
    read(call, *PAGE)
    project = _project(call)
    return page_of(call, alive(call.state, project), lambda trigger: _show(call, trigger))


def get_trigger(call: Call) -> Answer:
    """`GET /projects/:id/triggers/:trigger_id`."""
    number = call.number("trigger_id")
    return Answer(200, _show(call, _find(call.state, _project(call), number)))


def create_trigger(call: Call) -> Insertion:
    """`POST /projects/:id/triggers`: descriptions need not be unique."""
    sent = read(call, text("description", required=True, null=call.state.deployed), *_expiry(call.state))
    project = _project(call)
    expires_at = _checked_expiry(call.state, sent.get("expires_at"))
    owner = call.caller()

    def insert() -> Answer:
        number, now = call.state.number(SECTION).give(), call.state.tick()
        trigger = Trigger(number, _value(number), sent["description"], owner, now, now, expires_at=expires_at)
        _triggers(project)[number] = trigger
        call.changed = True
        return Answer(201, _show(call, trigger))

    return insert


def update_trigger(call: Call) -> Answer:
    """`PUT /projects/:id/triggers/:trigger_id`: for its owner and administrators only."""
    number = call.number("trigger_id")
    sent = read(call, text("description", null=call.state.deployed))
    project = call.visible_project()
    trigger = _find(call.state, project, number)
    _require_builds(call, project)
    user = call.caller()
    if not (user.admin or trigger.owner is user):
        raise refused(403, "403 Forbidden - The current user is not authorized to update the pipeline trigger token")
    if not call.state.deployed:
        call.require_unmodified(trigger.updated_at)
    description = sent.get("description", None if call.state.deployed else trigger.description)
    if description != trigger.description:
        trigger.description, trigger.updated_at = description, call.state.tick()
        call.changed = True
    return Answer(200, _show(call, trigger))


def delete_trigger(call: Call) -> Answer:
    """`DELETE /projects/:id/triggers/:trigger_id`: for every maintainer."""
    number = call.number("trigger_id")
    project = _project(call)
    trigger = _find(call.state, project, number)
    call.require_unmodified(trigger.updated_at)
    del _triggers(project)[number]
    call.changed = True
    return Answer(204)


def _project(call: Call) -> Project:
    project = call.visible_project()
    _require_builds(call, project)
    return project


def _require_builds(call: Call, project: Project) -> None:
    """Maintainers only, and nobody where the project is archived or builds nothing."""
    call.require(project, MAINTAINER)
    if project.is_archived() or not project.switches["builds_enabled"]:
        raise refused(403, "403 Forbidden")


def _triggers(project: Project) -> Triggers:
    found: Triggers = project.sections[SECTION]
    return found


def alive(state: State, project: Project) -> list[Trigger]:
    """The project's tokens that have not expired, by ID."""
    now = stamp(state.now)
    return [
        trigger
        for _, trigger in sorted(_triggers(project).items())
        if trigger.expires_at is None or trigger.expires_at > now
    ]


def _find(state: State, project: Project, number: int) -> Trigger:
    trigger = _triggers(project).get(number)
    if trigger is None or (trigger.expires_at is not None and trigger.expires_at <= stamp(state.now)):
        raise refused(404, "404 Not found")
    return trigger


def _expiry(state: State) -> list[Attribute]:
    return [time("expires_at")] if state.deployed else []


def _checked_expiry(state: State, expires_at: str | None) -> str | None:
    """Only the far end is limited; a token that has expired already is created, and gone."""
    latest = (state.now + LONGEST).date().isoformat()
    if expires_at is not None and expires_at[:10] >= latest:
        raise _too_late(latest)
    return expires_at


def _too_late(latest: str) -> Refusal:
    inner = json.dumps({"expires_at": [f"must be before {latest}"]}, separators=(",", ":"))
    return refused(400, f"400 Bad request - {inner}")


def _value(number: int) -> str:
    return PREFIX + sha256(f"trigger {number}".encode()).hexdigest()[:40]


def _show(call: Call, trigger: Trigger) -> dict[str, Any]:
    state, user = call.state, call.caller()
    whole = trigger.owner is user or (user.admin and state.deployed)
    record = {
        "id": trigger.id,
        "description": trigger.description,
        "created_at": state.show_time(trigger.created_at),
        "updated_at": state.show_time(trigger.updated_at),
        "last_used": state.show_time(trigger.last_used),
        "token": trigger.token if whole else trigger.token.removeprefix(PREFIX)[:4],
        "owner": show_user(trigger.owner, call.url) if trigger.owner else None,
    }
    if state.deployed:
        record["expires_at"] = state.show_time(trigger.expires_at)
    return record


def _load(reading: Reading, state: State, _owner: Owner) -> Triggers:
    triggers: Triggers = {}
    for item in reading.items():
        fields = item.fields(
            "id", "token", "description", "owner", "created_at", "updated_at", "last_used", "expires_at"
        )
        number = fields["id"].optional_integer() or state.number(SECTION).give()
        created = fields["created_at"].optional_time() or SEED
        triggers[number] = Trigger(
            number,
            fields["token"].text(_value(number)),
            fields["description"].optional_text(),
            state.user_named(fields["owner"]) if fields["owner"].given() else None,
            created,
            fields["updated_at"].optional_time() or created,
            fields["last_used"].optional_time(),
            fields["expires_at"].optional_time(),
        )
    return triggers


def _dump(triggers: Triggers) -> list[dict[str, Any]]:
    return [
        {
            "id": trigger.id,
            "token": trigger.token,
            "description": trigger.description,
            "owner": trigger.owner.username if trigger.owner else None,
            "created_at": trigger.created_at,
            "updated_at": trigger.updated_at,
            "last_used": trigger.last_used,
            "expires_at": trigger.expires_at,
        }
        for trigger in triggers.values()
    ]


SECTION = "trigger_tokens"
_PATH = "/projects/:id/triggers"
SECTIONS = (Section(SECTION, "project", _load, _dump, numbered=True),)
ROUTES = (
    Route("GET", _PATH, list_triggers, parameters_first=True),
    Route("GET", f"{_PATH}/:trigger_id", get_trigger, parameters_first=True),
    Route("POST", _PATH, create_trigger, parameters_first=True),
    Route("PUT", f"{_PATH}/:trigger_id", update_trigger, parameters_first=True),
    Route("DELETE", f"{_PATH}/:trigger_id", delete_trigger, parameters_first=True),
)
