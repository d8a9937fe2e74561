"""Pipeline trigger tokens (spec section 4.8), whose whole value only their owner sees; and running a pipeline.

An expired token does not exist. Differences: production shows administrators every value, knows `expires_at`, takes
null for a description, and a `PUT` without a description removes it.
"""

import json
import math
from datetime import timedelta
from hashlib import sha256
from typing import Any

from ..answers import Answer, Refusal, refused
from ..call import Call, Route, invalid
from ..collection import RouteCollection
from ..parameters import read, text, time
from ..records import DatedItem, StoredItem, Time, Username, stamp
from ..state import DEVELOPER, MAINTAINER, OWNER, Project, User
from .instance import show_user

PREFIX = "glptt-"
LONGEST = timedelta(days=365)


class Trigger(DatedItem):
    """A token; `owner` is None if that user was deleted."""

    token: str = ""
    description: str | None = None
    owner: Username | None = None
    last_used: Time | None = None
    expires_at: Time | None = None

    def complete(self) -> None:
        """Derive the value from the ID."""
        self.token = self.token or PREFIX + sha256(f"trigger {self.id}".encode()).hexdigest()[:40]


class Pipeline(StoredItem):
    """A pipeline that was started; only its ID is kept."""


class _Triggers(RouteCollection[Trigger]):
    """A project's tokens; their descriptions need not be unique."""

    def read_new(self, call: Call) -> dict[str, Any]:
        """Read the description, and in production the expiry."""
        expiry = [time("expires_at")] if call.state.deployed else []
        return read(call, text("description", required=True, null=call.state.deployed), *expiry)

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Read the description; in production it is null if it is not sent."""
        sent = read(call, text("description", null=call.state.deployed))
        return {"description": None, **sent} if call.state.deployed else sent

    def items(self, call: Call, owner: Project) -> list[Trigger]:
        """Return the project's tokens that have not expired."""
        now = stamp(call.state.now)
        return [trigger for trigger in self.section.of(owner) if trigger.expires_at is None or trigger.expires_at > now]

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> Trigger:
        """Return a new token. Its expiry must be within a year; an expired token is created, and does not exist."""
        latest = (call.state.now + LONGEST).date().isoformat()
        if (sent.get("expires_at") or "")[:10] >= latest:
            raise _too_late(latest)
        return super().make(call, owner, {**sent, "owner": call.caller().username})

    def update(self, call: Call) -> Answer:
        """Change a token; an unknown token is refused before a lesser role."""
        number, _ = self.key(call), self.read_changes(call)
        self.find(call, call.visible_project(), number)
        return super().update(call)

    def require_right(self, call: Call, owner: Project, item: Trigger) -> None:
        """Allow updates by the owner and administrators, deletions by every maintainer."""
        user = call.caller()
        if call.method == "PUT" and not (user.admin or item.owner == user.username):
            reason = "The current user is not authorized to update the pipeline trigger token"
            raise refused(403, f"403 Forbidden - {reason}")

    def show(self, call: Call, owner: Project, item: Trigger) -> dict[str, Any]:
        """Return the record of a token (spec section 2)."""
        state, user = call.state, call.caller()
        whole = item.owner == user.username or (user.admin and state.deployed)
        record = {
            **super().show(call, owner, item),
            "last_used": state.show_time(item.last_used),
            "token": item.token if whole else item.token.removeprefix(PREFIX)[:4],
            "owner": show_user(call, state.user(item.owner)) if item.owner else None,
        }
        if not state.deployed:
            del record["expires_at"]
        return record


VARIABLES_FROM = {"developer": DEVELOPER, "maintainer": MAINTAINER, "owner": OWNER, "no_one_allowed": math.inf}
"""The access level from which a user may give a pipeline variables."""


def trigger_pipeline(call: Call) -> Answer:
    """`POST /projects/:id/trigger/pipeline`: the token in the body is the only credential; a wrong token gives 404.

    The ref may be in the path, which wins over the body.
    """
    if "ref" in call.parts:
        call.sent = {**call.sent, "ref": call.parts["ref"]}
    sent = read(call, text("ref", required=True, blank=False), text("token", required=True, blank=False))
    if call.headers.get("x-gitlab-event") == "Pipeline Hook":
        raise refused(403, "403 Forbidden")  # a pipeline that its own webhook starts would never end
    variables = call.sent.get("variables", {})
    if not isinstance(variables, dict):
        raise invalid(call.state, {"variables": "is invalid"})
    project = call.state.find_project(call.parts["id"])
    alive = TRIGGERS.items(call, project) if project else ()
    trigger = next((other for other in alive if other.token == sent["token"]), None)
    user = call.state.user(trigger.owner) if trigger and trigger.owner else _of_job(call, sent["token"])
    if project is None or user is None or not call.state.visible(user, project):
        raise refused(404, "404 Not Found")
    if any(not isinstance(value, str) for value in variables.values()):
        raise refused(400, "variables needs to be a map of key-valued strings")
    if call.state.access(user, project) < DEVELOPER:
        raise refused(400, {"base": ["Insufficient permissions to create a new pipeline"]})
    needed = VARIABLES_FROM[project.ci_pipeline_variables_minimum_override_role]
    if variables and call.state.access(user, project) < needed:
        raise refused(400, "Insufficient permissions to set pipeline variables")
    if sent["ref"] != project.default_branch:
        raise refused(400, {"base": ["Reference not found"]})
    call.changed = True
    return Answer(201, _run(call, project, trigger, user))


def _of_job(call: Call, value: str) -> User | None:
    """Return the user of the CI job with that token; 401 if the job is over."""
    token = call.state.tokens.get(value)
    if token is None or token.kind != "job":
        return None
    if token.revoked or (token.expires_at is not None and token.expires_at <= call.state.today()):
        raise refused(401, "401 Unauthorized")
    return call.state.users_by_token[value]


def _run(call: Call, project: Project, trigger: Trigger | None, user: User) -> dict[str, Any]:
    """Start a pipeline; a job starts a child pipeline."""
    number, now = call.state.numbers(Pipeline).give(), call.state.tick()
    if trigger:
        trigger.last_used = now
    moment = call.state.show_time(now)
    path = f"/{project.path}/-/pipelines/{number}"
    return {
        "id": number,
        "iid": number,
        "project_id": project.id,
        "sha": "0" * 40,
        "ref": project.default_branch,
        "status": "created",
        "source": "trigger" if trigger else "pipeline",
        "created_at": moment,
        "updated_at": moment,
        "web_url": f"{call.url}{path}",
        "before_sha": "0" * 40,
        "tag": False,
        "yaml_errors": None,
        "user": show_user(call, user),
        "started_at": None,
        "finished_at": None,
        "committed_at": None,
        "duration": None,
        "queued_duration": None,
        "coverage": None,
        "archived": False,
        "detailed_status": {
            "icon": "status_created",
            "text": "Created",
            "label": "created",
            "group": "created",
            "tooltip": "created",
            "has_details": True,
            "details_path": path,
            "illustration": None,
            "favicon": "/assets/ci_favicons/favicon_status_created.png",
        },
    }


def _too_late(latest: str) -> Refusal:
    inner = json.dumps({"expires_at": [f"must be before {latest}"]}, separators=(",", ":"))
    return refused(400, f"400 Bad request - {inner}")


TRIGGERS = _Triggers("trigger_tokens", Trigger, "/projects/:id/triggers", part="trigger_id", feature="builds_enabled")
SECTIONS = (TRIGGERS.section,)
ROUTES = (
    *TRIGGERS.routes(parameters_first=True),
    Route("POST", "/projects/:id/trigger/pipeline", trigger_pipeline, credential=False),
    Route("POST", "/projects/:id/ref/:ref/trigger/pipeline", trigger_pipeline, credential=False),
)
