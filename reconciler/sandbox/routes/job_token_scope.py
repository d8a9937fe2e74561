"""The CI/CD job token scope (spec section 4.2): a switch and two allowlists, of projects and of groups.

Differences: production's project list always holds the project itself, its allowlist writes take numeric IDs only,
and what is on a list already is refused with 400, in the spec (section 7) with 409.
"""

from bisect import insort
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ..call import Answer, Call, Insertion, Route, find_project
from ..collection import PAGE, page_of
from ..errors import refused
from ..parameters import boolean, integer, read
from ..records import GroupId, ProjectId, Record
from ..state import MAINTAINER, Group, Project, Section, State
from .instance import show_basic_project

MOST = 200


def _each_once(numbers: list[int]) -> list[int]:
    return sorted(set(numbers))


class Scope(Record):
    """What a project's job token scope holds."""

    inbound_enabled: bool = True
    outbound_enabled: bool = False
    project_allowlist: Annotated[list[ProjectId], AfterValidator(_each_once)] = Field(default_factory=list)
    group_allowlist: Annotated[list[GroupId], AfterValidator(_each_once)] = Field(default_factory=list)


SCOPE = Section("job_token_scope", ("project",), Scope, Scope())
ENFORCED: Section[bool | None] = Section("enforce_job_token_allowlist", ("instance",), bool | None, None)
SECTIONS = (SCOPE, ENFORCED)


def get_settings(call: Call) -> Answer:
    """`GET /projects/:id/job_token_scope`: what is in force, so always limited where the instance enforces it."""
    project = call.project(MAINTAINER)
    scope = SCOPE.of(project)
    inbound = scope.inbound_enabled or _enforced(call.state)
    return Answer(200, {"inbound_enabled": inbound, "outbound_enabled": scope.outbound_enabled})


def patch_settings(call: Call) -> Answer:
    """`PATCH /projects/:id/job_token_scope`."""
    enabled = read(call, boolean("enabled", required=True, blank=False))["enabled"]
    project = call.project(MAINTAINER)
    if not enabled and _enforced(call.state):
        raise refused(
            400,
            "400 Bad request - Job token scope cannot be disabled for this project because it is enforced for the "
            "instance. Contact your administrator to modify this setting.",
        )
    scope = SCOPE.of(project)
    call.changed = scope.inbound_enabled != enabled
    scope.inbound_enabled = enabled
    return Answer(204)


def list_projects(call: Call) -> Answer:
    """`GET /projects/:id/job_token_scope/allowlist`, by ID."""
    read(call, *PAGE)
    project = call.project(MAINTAINER)
    numbers = list(SCOPE.of(project).project_allowlist)
    if call.state.deployed:
        numbers.append(project.id)
    found = [call.state.projects[number] for number in sorted(numbers)]
    return page_of(call, found, lambda each: _show_project(call, each))


def add_project(call: Call) -> Insertion:
    """`POST /projects/:id/job_token_scope/allowlist`; the project itself may be added."""
    number = _wanted(call, "target_project_id")
    project = call.project(MAINTAINER)
    target = call.state.projects.get(number)
    if target is None:
        raise refused(404, "404 target_project_id not found Not Found")
    if not call.state.visible(call.user, target):
        raise refused(400, _out_of_reach("target_project"))
    return _add(call, project, "project", number)


def remove_project(call: Call) -> Answer:
    """`DELETE /projects/:id/job_token_scope/allowlist/:target_project_id`; the project itself stays for good."""
    _require_numeric(call)
    number = call.number("target_project_id")
    project = call.visible_project()
    find_project(call, str(number))
    call.require(project, MAINTAINER, _no_modifying())
    if number == project.id:
        raise refused(400, "400 Bad request - Source project cannot be removed from the job token scope")
    _remove(call, SCOPE.of(project).project_allowlist, number, "project")
    return Answer(204)


def list_groups(call: Call) -> Answer:
    """`GET /projects/:id/job_token_scope/groups_allowlist`, by ID."""
    read(call, *PAGE)
    project = call.project(MAINTAINER)
    found = [call.state.groups[number] for number in SCOPE.of(project).group_allowlist]
    return page_of(call, found, lambda each: _show_group(call, each))


def add_group(call: Call) -> Insertion:
    """`POST /projects/:id/job_token_scope/groups_allowlist`."""
    number = _wanted(call, "target_group_id")
    project = call.project(MAINTAINER)
    target = call.state.groups.get(number)
    if target is None:
        raise refused(404, "404 target_group_id not found Not Found")
    if not call.state.visible(call.user, target):
        raise refused(400, _out_of_reach("target_group"))
    return _add(call, project, "group", number)


def remove_group(call: Call) -> Answer:
    """`DELETE /projects/:id/job_token_scope/groups_allowlist/:target_group_id`, also of one the caller cannot see."""
    _require_numeric(call)
    number = call.number("target_group_id")
    project = call.visible_project()
    if number not in call.state.groups:
        raise refused(404, "404 target_group_id not found Not Found")
    call.require(project, MAINTAINER, _no_modifying())
    _remove(call, SCOPE.of(project).group_allowlist, number, "group")
    return Answer(204)


def _enforced(state: State) -> bool:
    """Production enforces it unless told otherwise; the spec knows no such thing."""
    enforced = ENFORCED.of(state.instance)
    return state.deployed if enforced is None else enforced


def _wanted(call: Call, name: str) -> int:
    _require_numeric(call)
    number: int = read(call, integer(name, required=True, blank=False))[name]
    return number


def _require_numeric(call: Call) -> None:
    if call.state.deployed:
        call.number("id")


def _add(call: Call, project: Project, what: str, number: int) -> Insertion:
    """Check an entry for one of the allowlists. An index keeps the entries unique."""
    entries = {"project": SCOPE.of(project).project_allowlist, "group": SCOPE.of(project).group_allowlist}[what]
    _require_absent(call.state, entries, number, what)
    if len(entries) >= MOST:
        direction = " in this direction" if what == "project" else ""
        reason = f"Source project exceeds the allowable number of {what} links{direction}"
        raise refused(400, f"400 Bad request - Validation failed: {reason}")

    def insert() -> Answer:
        _require_absent(call.state, entries, number, what)
        insort(entries, number)
        call.changed = True
        return Answer(201, {"source_project_id": project.id, f"target_{what}_id": number})

    return insert


def _require_absent(state: State, entries: list[int], number: int, what: str) -> None:
    if number in entries:
        text = f"This {what} is already in the job token allowlist."
        raise refused(400, f"400 Bad request - {text}") if state.deployed else refused(409, f"409 Conflict: {text}")


def _remove(call: Call, entries: list[int], number: int, what: str) -> None:
    if number not in entries:
        raise refused(400, f"400 Bad request - Target {what} is not in the job token scope")
    entries.remove(number)
    call.changed = True


def _out_of_reach(what: str) -> str:
    return (
        f"400 Bad request - The {what} that you are attempting to access does not exist or you don't have "
        "permission to perform this action"
    )


def _no_modifying() -> str:
    return "403 Forbidden - Insufficient permissions to modify the job token scope"


def _show_project(call: Call, project: Project) -> dict[str, Any]:
    record = show_basic_project(call.state, project, call.url)
    if call.state.deployed:
        if project.visibility != "public":
            del record["default_branch"]
        record["visibility"] = project.visibility
    return record


def _show_group(call: Call, group: Group) -> dict[str, Any]:
    return {"id": group.id, "web_url": f"{call.url}/groups/{group.path}", "name": group.name}


_PATH = "/projects/:id/job_token_scope"
ROUTES = (
    Route("GET", _PATH, get_settings),
    Route("PATCH", _PATH, patch_settings),
    Route("GET", f"{_PATH}/allowlist", list_projects),
    Route("POST", f"{_PATH}/allowlist", add_project),
    Route("DELETE", f"{_PATH}/allowlist/:target_project_id", remove_project),
    Route("GET", f"{_PATH}/groups_allowlist", list_groups),
    Route("POST", f"{_PATH}/groups_allowlist", add_group),
    Route("DELETE", f"{_PATH}/groups_allowlist/:target_group_id", remove_group),
)
