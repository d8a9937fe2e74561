"""Running a pipeline with a trigger token (spec section 4.8): what the tokens are for."""

from typing import Any

from ..attributes import read, text
from ..call import Answer, Call, Route
from ..errors import refused
from .instance import show_user
from .trigger_tokens import alive


def trigger_pipeline(call: Call) -> Answer:
    """`POST /projects/:id/trigger/pipeline`: the trigger token is the only credential; a wrong one gives 404."""
    sent = read(call, text("ref", required=True, blank=False), text("token", required=True, blank=False))
    project = call.state.find_project(call.parts["id"])
    found = [each for each in (alive(call.state, project) if project else ()) if each.token == sent["token"]]
    if project is None or not found:
        raise refused(404, "404 Not Found")
    variables = call.sent.get("variables", {})
    if not isinstance(variables, dict) or any(not isinstance(value, str) for value in variables.values()):
        raise refused(400, "variables needs to be a map of key-valued strings")
    if sent["ref"] != project.default_branch:
        raise refused(400, {"base": ["Reference not found"]})
    trigger, number = found[0], call.state.number("pipelines").give()
    trigger.last_used = now = call.state.tick()
    call.changed = True
    moment = call.state.show_time(now)
    record: dict[str, Any] = {
        "id": number,
        "iid": number,
        "project_id": project.id,
        "sha": "0" * 40,
        "ref": sent["ref"],
        "status": "created",
        "source": "trigger",
        "created_at": moment,
        "updated_at": moment,
        "web_url": f"{call.url}/{project.path}/-/pipelines/{number}",
        "before_sha": "0" * 40,
        "tag": False,
        "yaml_errors": None,
        "user": show_user(trigger.owner, call.url) if trigger.owner else None,
        "started_at": None,
        "finished_at": None,
        "committed_at": None,
        "duration": None,
        "queued_duration": None,
        "coverage": None,
        "archived": False,
    }
    return Answer(201, record)


ROUTES = (Route("POST", "/projects/:id/trigger/pipeline", trigger_pipeline, credential=False),)
