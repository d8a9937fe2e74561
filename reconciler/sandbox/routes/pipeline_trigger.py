"""Running a pipeline with a trigger token or a job token (spec section 4.8): what the tokens are for."""

from typing import Any

from ..attributes import read, text
from ..call import Answer, Call, Route, invalid
from ..errors import refused
from ..state import DEVELOPER, Project, User
from .instance import show_user
from .trigger_tokens import Trigger, alive


def trigger_pipeline(call: Call) -> Answer:
    """`POST /projects/:id/trigger/pipeline`: the token in the body is the only credential; a wrong one gives 404."""
    sent = read(call, text("ref", required=True, blank=False), text("token", required=True, blank=False))
    variables = call.sent.get("variables", {})
    if not isinstance(variables, dict):
        raise invalid(call.state, {"variables": "is invalid"})
    project = call.state.find_project(call.parts["id"])
    trigger = next(
        (each for each in (alive(call.state, project) if project else ()) if each.token == sent["token"]), None
    )
    user = trigger.owner if trigger else _of_job(call, sent["token"])
    if project is None or user is None or not call.state.visible(user, project):
        raise refused(404, "404 Not Found")
    if any(not isinstance(value, str) for value in variables.values()):
        raise refused(400, "variables needs to be a map of key-valued strings")
    if call.state.access(user, project) < DEVELOPER:
        raise refused(400, {"base": ["Insufficient permissions to create a new pipeline"]})
    if sent["ref"] != project.default_branch:
        raise refused(400, {"base": ["Reference not found"]})
    call.changed = True
    return Answer(201, _run(call, project, trigger, user))


def _of_job(call: Call, value: str) -> User | None:
    """Whose CI job has that token; 401 where the job is over."""
    user, token = call.state.tokens.get(value, (None, None))
    if token is None or token.kind != "job":
        return None
    if token.revoked or (token.expires_at is not None and token.expires_at <= call.state.today()):
        raise refused(401, "401 Unauthorized")
    return user


def _run(call: Call, project: Project, trigger: Trigger | None, user: User) -> dict[str, Any]:
    """Start it. One that a job starts belongs to that job's pipeline."""
    number, now = call.state.number("pipelines").give(), call.state.tick()
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
        "user": show_user(user, call.url),
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


ROUTES = (Route("POST", "/projects/:id/trigger/pipeline", trigger_pipeline, credential=False),)
