"""The import of a project, which is canceled."""

from reconciler.sandbox.answers import Answer, refused
from reconciler.sandbox.call import Call, Route
from reconciler.sandbox.parameters import integer, read
from reconciler.sandbox.routes.project_import import FINAL, IMPORTED, show_import
from reconciler.sandbox.state import OWNER


def cancel_import(call: Call) -> Answer:
    """`POST /import/github/cancel`: of a project that comes from GitHub, for its owners."""
    sent = read(call, integer("project_id", required=True))
    user, state = call.caller(), call.state
    project = state.projects.get(sent["project_id"] or 0)
    started = IMPORTED.of(project) if project else None
    if project is None or started is None or started.type != "github":
        raise refused(404, "404 Not found")
    if not state.visible(user, project):
        raise refused(404, "Not Found")
    call.require(project, OWNER, "Unauthorized access")
    if started.status in FINAL:
        raise refused(400, f"The import cannot be canceled because it is {started.status}")
    started.status, call.changed = "canceled", True
    record = show_import(call, project, started)
    for name in () if state.deployed else ("refs_url", "relation_type", "import_warning"):
        record.pop(name, None)
    return Answer(200, record)


ROUTES = (Route("POST", "/import/github/cancel", cancel_import),)
