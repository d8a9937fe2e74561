"""The CI/CD job token scope (spec section 4.2): a switch and two allowlists, of projects and of groups.

Differences: production's project list always has the project itself, its allowlist writes take numeric IDs only, and an
entry that is on a list already is refused with 400, in the spec (section 7) with 409.
"""

from bisect import insort
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..answers import Answer, refused
from ..call import Call, Insertion, Route, find_project
from ..collection import PAGE, page_of
from ..parameters import boolean, integer, read
from ..records import GroupId, ProjectId, Record
from ..state import MAINTAINER, GroupOrProject, Project, SandboxState, StateSection
from .audit_events import note_event
from .instance import show_basic_project

MOST = 200


def _each_once(numbers: list[int]) -> list[int]:
    return sorted(set(numbers))


class ScopeRecord(Record):
    """The switches and allowlists of a project."""

    inbound_enabled: bool = True
    outbound_enabled: bool = False
    project_allowlist: Annotated[list[ProjectId], AfterValidator(_each_once)] = Field(default_factory=list)
    group_allowlist: Annotated[list[GroupId], AfterValidator(_each_once)] = Field(default_factory=list)


SCOPE = StateSection("job_token_scope", ("project",), ScopeRecord, ScopeRecord())
ENFORCED: StateSection[bool | None] = StateSection("enforce_job_token_allowlist", ("instance",), bool | None, None)
SECTIONS = (SCOPE, ENFORCED)


def get_settings(call: Call) -> Answer:
    """`GET /projects/:id/job_token_scope`: the setting in effect, so always true if the instance enforces the limit."""
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


class _Allowlist:
    """An allowlist, of project IDs or of group IDs. An index keeps its entries unique."""

    def __init__(self, what: Literal["project", "group"]) -> None:
        self.what = what
        self.part = f"target_{what}_id"

    def list_entries(self, call: Call) -> Answer:
        """Answer with a page of the list, ordered by ID."""
        read(call, *PAGE)
        project = call.project(MAINTAINER)
        numbers = [*self.entries(call.state, project)]
        if self.what == "project":
            call.cost = 2 + 0.06 * len(numbers)
        if self.what == "project" and call.state.deployed:
            numbers.append(project.id)
        targets = self.targets(call.state)
        return page_of(call, [targets[number] for number in sorted(numbers)], lambda target: _show(call, target))

    def add(self, call: Call) -> Insertion:
        """Check a new entry, which may be the project itself; return the function that inserts it."""
        _require_numeric(call)
        number = read(call, integer(self.part, required=True, blank=False))[self.part]
        project = call.project(MAINTAINER)
        self.require_existing(call.state, number)
        if not call.state.visible(call.user, self.targets(call.state)[number]):
            raise refused(
                400,
                f"400 Bad request - The target_{self.what} that you are attempting to access does not exist or you "
                "don't have permission to perform this action",
            )
        entries = self.entries(call.state, project)
        self.require_absent(call.state, entries, number)
        if len(entries) >= MOST:
            direction = " in this direction" if self.what == "project" else ""
            reason = f"Source project exceeds the allowable number of {self.what} links{direction}"
            raise refused(400, f"400 Bad request - Validation failed: {reason}")

        def insert() -> Answer:
            self.require_absent(call.state, entries, number)
            insort(entries, number)
            call.changed = True
            self.note(call, project, number, "added to")
            return Answer(201, {"source_project_id": project.id, self.part: number})

        return insert

    def remove(self, call: Call) -> Answer:
        """Remove an entry: a group even if the caller cannot see it, but never the project itself."""
        _require_numeric(call)
        number = call.number(self.part)
        project = call.visible_project()
        if self.what == "project":
            find_project(call, str(number))
        else:
            self.require_existing(call.state, number)
        call.require(project, MAINTAINER, "403 Forbidden - Insufficient permissions to modify the job token scope")
        if self.what == "project" and number == project.id:
            raise refused(400, "400 Bad request - Source project cannot be removed from the job token scope")
        entries = self.entries(call.state, project)
        if number not in entries:
            raise refused(400, f"400 Bad request - Target {self.what} is not in the job token scope")
        entries.remove(number)
        call.changed = True
        self.note(call, project, number, "removed from")
        return Answer(204)

    def note(self, call: Call, project: Project, number: int, done: str) -> None:
        """Note in the audit the added or removed entry."""
        other = self.targets(call.state)[number]
        kept = "inbound list of allowed projects" if self.what == "project" else "list of allowed groups"
        message = f"{self.what.capitalize()} {other.path} was {done} {kept} for {project.path}"
        name = f"secure_ci_job_token_{self.what}_{done.partition(' ')[0]}"
        note_event(call, project, name, message, (self.what.capitalize(), number, other.name))

    def entries(self, state: SandboxState, project: Project) -> list[int]:
        """Return the IDs on the list, without those of projects and groups that were removed."""
        scope = SCOPE.of(project)
        numbers = scope.project_allowlist if self.what == "project" else scope.group_allowlist
        numbers[:] = [number for number in numbers if number in self.targets(state)]
        return numbers

    def targets(self, state: SandboxState) -> Mapping[int, GroupOrProject]:
        """Return the projects or groups that can be on the list."""
        return state.projects if self.what == "project" else state.groups

    def require_existing(self, state: SandboxState, number: int) -> None:
        """Refuse an unknown ID with 404."""
        if number not in self.targets(state):
            raise refused(404, f"404 {self.part} not found Not Found")

    def require_absent(self, state: SandboxState, entries: list[int], number: int) -> None:
        """Refuse an ID that is on the list already."""
        if number in entries:
            text = f"This {self.what} is already in the job token allowlist."
            raise refused(400, f"400 Bad request - {text}") if state.deployed else refused(409, f"409 Conflict: {text}")


def _enforced(state: SandboxState) -> bool:
    """Whether the instance enforces the allowlist: in production by default, in the spec only if the state says so."""
    enforced = ENFORCED.of(state.instance)
    return state.deployed if enforced is None else enforced


def _require_numeric(call: Call) -> None:
    if call.state.deployed:
        call.number("id")


def _show(call: Call, place: GroupOrProject) -> dict[str, Any]:
    if not isinstance(place, Project):
        return {"id": place.id, "web_url": f"{call.url}/groups/{place.path}", "name": place.name}
    record = show_basic_project(call, place)
    if call.state.deployed:
        if place.visibility != "public":
            record.pop("default_branch", None)  # a project without a repository has none
        record["visibility"] = place.visibility
    return record


PROJECTS, GROUPS = _Allowlist("project"), _Allowlist("group")
_PATH = "/projects/:id/job_token_scope"
ROUTES = (
    Route("GET", _PATH, get_settings),
    Route("PATCH", _PATH, patch_settings),
    Route("GET", f"{_PATH}/allowlist", PROJECTS.list_entries),
    Route("POST", f"{_PATH}/allowlist", PROJECTS.add),
    Route("DELETE", f"{_PATH}/allowlist/:target_project_id", PROJECTS.remove),
    Route("GET", f"{_PATH}/groups_allowlist", GROUPS.list_entries),
    Route("POST", f"{_PATH}/groups_allowlist", GROUPS.add),
    Route("DELETE", f"{_PATH}/groups_allowlist/:target_group_id", GROUPS.remove),
)
