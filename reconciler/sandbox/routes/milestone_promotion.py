"""Promoting a project's milestone to its group, and the lists below a milestone (spec section 4.11).

Difference: production answers a promotion with 200 and no record, where by the spec (section 7) a `POST` gives 201.
"""

from dataclasses import replace

from ..attributes import read
from ..call import Answer, Call, Route
from ..errors import refused
from ..pages import PAGE, page_of
from ..state import PLANNER
from .milestones import SECTION, find_milestone, readable_project, shelf, show_milestone, writable_project


def list_nothing(call: Call) -> Answer:
    """The issues and merge requests of a milestone, and its burndown: the sandbox has none."""
    number = call.number("milestone_id")
    read(call, *PAGE)
    find_milestone(readable_project(call), number)
    return page_of(call, (), lambda nothing: nothing)


def promote_milestone(call: Call) -> Answer:
    """`POST /projects/:id/milestones/:milestone_id/promote`: one for the group, in place of all of that title in it.

    The same title in a subgroup or in a project below one is no obstacle, and stays.
    """
    number = call.number("milestone_id")
    project, state = writable_project(call), call.state
    group = project.group
    if group is None:
        raise refused(403, "403 Forbidden")
    call.require(group, PLANNER)
    milestone = find_milestone(project, number)
    for each in [each for each in state.projects.values() if each.group is group]:
        for same in [same for same in shelf(each).values() if same.title == milestone.title]:
            del shelf(each)[same.id]
    now = state.tick()
    promoted = replace(milestone, id=state.number(SECTION).give(), iid=shelf(group).last + 1, state="active")
    promoted.created_at = promoted.updated_at = now
    shelf(group).put(promoted)
    call.changed = True
    return Answer(200, 200) if state.deployed else Answer(201, show_milestone(call, group, promoted))


_ONE = "/projects/:id/milestones/:milestone_id"
ROUTES = (
    Route("GET", f"{_ONE}/issues", list_nothing),
    Route("GET", f"{_ONE}/merge_requests", list_nothing),
    Route("GET", f"{_ONE}/burndown_events", list_nothing),
    Route("POST", f"{_ONE}/promote", promote_milestone),
)
