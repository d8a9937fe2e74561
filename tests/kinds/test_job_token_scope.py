"""The life of a job token scope: its switch, and its two allowlists."""

from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.kinds.job_token_scope import GROUPS, fault_of_entry
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Level, Scope
from reconciler.service import Client
from tests.building import API, section
from tests.kinds.behind import group_in, project_in, rewriting, speaking_with
from tests.story import Story, failures

NUMBER = Scope(Level.PROJECT, 100)
LIB = Scope(Level.PROJECT, "acme/lib")
WEB = Scope(Level.PROJECT, "acme/web")

URL = "projects/acme%2Fapi/job_token_scope"
PROJECTS = f"GET {URL}/allowlist?per_page=100&page=1"
HIDDEN = "not found, not visible to this token, or not served by this server"
GROUPS_LIST = f"GET {URL}/groups_allowlist?per_page=100&page=1"
WRITE = "projects/100/job_token_scope"


def wanted(value: object, scope: Scope = API, *, prune: bool = False) -> Any:
    return section("job_token_scope", value, scope, prune=prune)


def put(story: Story, *, projects: object = (), groups: object = (), enabled: bool = True) -> None:
    """Let the project have this scope."""
    with rewriting(story) as state:
        project_in(state)["job_token_scope"] = {
            "inbound_enabled": enabled,
            "project_allowlist": projects,
            "group_allowlist": groups,
        }


def kept(story: Story) -> tuple[bool, list[int], list[int]]:
    scope = project_in(story.sandbox.state())["job_token_scope"]
    return scope["inbound_enabled"], scope["project_allowlist"], scope["group_allowlist"]


def add_project(number: int) -> str:
    return f'POST {WRITE}/allowlist {{"target_project_id": {number}}}'


def add_group(number: int) -> str:
    return f'POST {WRITE}/groups_allowlist {{"target_group_id": {number}}}'


def remove_project(number: int) -> str:
    return f"DELETE {WRITE}/allowlist/{number}"


def remove_group(number: int) -> str:
    return f"DELETE {WRITE}/groups_allowlist/{number}"


def switch(enabled: str) -> str:
    return f'PATCH {URL} {{"enabled": {enabled}}}'


def test_the_life_of_a_job_token_scope(story: Story) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return story.step(wanted(value, prune=prune))

    assert step({}) == []
    assert step({"enabled": True}) == []
    assert step({"enabled": False}) == [switch("false")]
    assert step({"enabled": True, "projects": ["acme/lib"], "groups": ["acme/tools"]}) == [
        add_project(101),
        add_group(11),
        switch("true"),
    ]
    assert step({"enabled": False, "projects": [102]}, prune=True) == [
        add_project(102),
        switch("false"),
        remove_project(101),
    ]
    assert step({"projects": ["acme/lib"]}) == [add_project(101)]
    assert step({"groups": [10]}, prune=True) == [add_group(10), remove_group(11)]
    assert kept(story) == (False, [101, 102], [10])
    assert step({"groups": []}) == []
    assert step({"groups": []}, prune=True) == [remove_group(10)]
    assert step({}, prune=True) == [remove_project(101), remove_project(102)]
    assert kept(story) == (False, [], [])


def test_an_empty_section_that_is_pruned_empties_both_lists_and_leaves_the_switch(story: Story) -> None:
    put(story, projects=[102, 101], groups=[11], enabled=False)
    assert story.step(wanted({}, prune=True)) == [remove_project(101), remove_project(102), remove_group(11)]
    assert kept(story) == (False, [], [])


def test_an_empty_section_that_is_not_pruned_reads_nothing(story: Story) -> None:
    put(story, projects=[101])
    story.plan(wanted({}))
    assert story.requests() == []


def test_only_the_lists_that_are_declared_are_pruned(story: Story) -> None:
    put(story, projects=[101], groups=[11])
    assert story.step(wanted({"enabled": True}, prune=True)) == []
    assert story.step(wanted({"projects": []}, prune=True)) == [remove_project(101)]
    assert kept(story) == (True, [], [11])


def test_entries_that_no_manifest_mentions_are_reported_and_not_touched(story: Story) -> None:
    put(story, projects=[101, 102], groups=[10, 11])
    value = wanted({"projects": [102], "groups": ["acme"]})
    assert [each.address.name for each in story.plan(value).unmanaged] == ["acme/lib", "acme/tools"]
    assert story.step(value) == []


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        ({"enabled": True}, [f"GET {URL}"]),
        ({"projects": ["acme/lib"]}, [PROJECTS]),
        ({"groups": ["acme/tools"]}, [GROUPS_LIST]),
        ({"enabled": True, "groups": [11]}, [f"GET {URL}", GROUPS_LIST]),
        ({"enabled": True, "projects": [101], "groups": [11]}, [f"GET {URL}", PROJECTS, GROUPS_LIST]),
    ],
    ids=str,
)
def test_only_what_is_declared_is_read_and_what_is_on_the_lists_is_not_looked_up(
    story: Story, value: object, reads: list[str]
) -> None:
    put(story, projects=[101], groups=[11])
    assert list(story.plan(wanted(value, prune=True)).changes) == []
    assert story.requests() == reads


def test_emptying_both_lists_reads_them_and_the_number_where_they_do_not_tell_it(story: Story, dialect: str) -> None:
    put(story, projects=[101], groups=[11])
    story.plan(wanted({}, prune=True))
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert story.requests() == [PROJECTS, GROUPS_LIST, *asked]


def test_paths_are_compared_without_regard_to_case(story: Story) -> None:
    put(story, projects=[101], groups=[11])
    assert story.step(wanted({"projects": ["Acme/Lib"], "groups": ["ACME/tools"]}, prune=True)) == []
    assert story.step(wanted({"projects": ["Acme/Web"], "groups": ["Acme"]})) == [add_project(102), add_group(10)]


def test_one_target_by_path_and_by_number_is_added_once_and_kept_once(story: Story) -> None:
    value = wanted({"projects": ["acme/lib", 101], "groups": [11, "acme/tools"]}, prune=True)
    assert story.step(value) == [add_project(101), add_group(11)]
    assert story.step(value) == []


@pytest.mark.parametrize(
    ("scope", "itself"), [(API, "acme/api"), (API, "Acme/API"), (API, 100), (NUMBER, 100)], ids=str
)
def test_the_project_itself_is_never_added_nor_removed(story: Story, scope: Scope, itself: object) -> None:
    assert story.step(wanted({"projects": [itself]}, scope, prune=True)) == []
    put(story, projects=[100])
    assert story.step(wanted({"projects": [itself]}, scope, prune=True)) == []
    assert story.step(wanted({"projects": []}, scope, prune=True)) == []
    assert list(story.plan(wanted({"projects": []}, scope)).unmanaged) == []
    assert kept(story)[1] == [100]


def test_a_project_known_by_its_number_needs_no_lookup(story: Story) -> None:
    value = wanted({"projects": [101], "groups": [11]}, NUMBER)
    plan = story.plan(value)
    assert story.requests() == [
        f"GET {WRITE}/allowlist?per_page=100&page=1",
        f"GET {WRITE}/groups_allowlist?per_page=100&page=1",
    ]
    story.apply(plan)
    assert story.writes() == [add_project(101), add_group(11)]


def test_the_number_is_learned_from_the_list_or_asked_for_once(story: Story, dialect: str) -> None:
    story.plan(wanted({"projects": [101], "groups": [11]}))
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert story.requests() == [PROJECTS, GROUPS_LIST, *asked]


def test_the_number_is_asked_for_once_for_a_list_of_groups(story: Story) -> None:
    story.plan(wanted({"groups": [10, 11]}))
    assert story.requests() == [GROUPS_LIST, "GET projects/acme%2Fapi"]


@pytest.mark.parametrize(
    ("kind", "objects"),
    [
        ("milestones", [{"title": "1.0"}]),
        (
            "container_repository_protection_rules",
            [{"repository_path_pattern": "acme/api/a", "minimum_access_level_for_push": "owner"}],
        ),
    ],
)
def test_the_number_is_learned_from_the_project_s_other_objects(story: Story, kind: str, objects: object) -> None:
    with rewriting(story) as state:
        project_in(state)[kind] = objects
    story.plan(wanted({"groups": [11]}), section(kind, {}))
    assert "GET projects/acme%2Fapi" not in story.requests()
    assert len({request.partition("?")[0] for request in story.requests()}) == 2


def test_what_several_projects_refer_to_is_looked_up_once(story: Story, dialect: str) -> None:
    sections = [wanted({"projects": ["acme/web", "acme/lib"], "groups": ["acme/tools"]}, scope) for scope in (API, LIB)]
    sections.append(wanted({"projects": ["ACME/api"], "groups": ["acme/Tools"]}, WEB))
    plan = story.plan(*sections)
    lists = [
        f"GET {scope.url}job_token_scope/{name}?per_page=100&page=1"
        for scope in (API, LIB, WEB)
        for name in ("allowlist", "groups_allowlist")
    ]
    numbers = ["GET projects/acme%2Fapi", "GET projects/acme%2Flib", "GET projects/acme%2Fweb"]
    lookups = ["GET groups/acme%2Ftools?with_projects=false", *(numbers if dialect == "spec" else [])]
    assert story.requests()[:6] == lists
    assert story.requests()[6:] == lookups
    story.apply(plan)
    assert story.writes() == [
        *(f'POST projects/100/job_token_scope/allowlist {{"target_project_id": {number}}}' for number in (101, 102)),
        'POST projects/100/job_token_scope/groups_allowlist {"target_group_id": 11}',
        'POST projects/101/job_token_scope/allowlist {"target_project_id": 102}',
        'POST projects/101/job_token_scope/groups_allowlist {"target_group_id": 11}',
        'POST projects/102/job_token_scope/allowlist {"target_project_id": 100}',
        'POST projects/102/job_token_scope/groups_allowlist {"target_group_id": 11}',
    ]


def test_a_path_that_leads_nowhere_is_a_problem_and_holds_up_only_removals(story: Story) -> None:
    put(story, projects=[101], groups=[11])
    value = wanted({"projects": ["acme/gone", "acme/web"], "groups": ["gone"]}, prune=True)
    assert story.problems(value) == [
        f"allowlisted project.None: {HIDDEN} (GET projects/acme%2Fgone: 404 Project Not Found)",
        f"allowlisted group.None: {HIDDEN} (GET groups/gone: 404 Group Not Found)",
    ]
    assert story.changes(value) == [
        "+ allowlisted project acme/web",
    ]


def test_a_path_that_has_moved_stands_for_the_project_it_has_moved_to(story: Story) -> None:
    put(story, projects=[101])
    with rewriting(story) as state:
        project_in(state, "acme/lib")["renamed_from"] = ["acme/old-lib"]
    assert story.changes(wanted({"projects": ["acme/old-lib"]}, prune=True)) == []


def vault(story: Story) -> None:
    """Add a project and a group that ada cannot see."""
    with rewriting(story) as state:
        state["groups"].append({"id": 60, "path": "secret"})
        state["projects"].append({"id": 600, "path": "secret/vault"})


def test_what_cannot_be_seen_is_a_problem_by_its_path_and_refused_by_its_number(story: Story) -> None:
    vault(story)
    assert story.problems(wanted({"projects": ["secret/vault"], "groups": ["secret"]})) == [
        f"allowlisted project.None: {HIDDEN} (GET projects/secret%2Fvault: 404 Project Not Found)",
        f"allowlisted group.None: {HIDDEN} (GET groups/secret: 404 Group Not Found)",
    ]
    reason = "that you are attempting to access does not exist or you don't have permission to perform this action"
    assert failures(story.apply(story.plan(wanted({"projects": [600], "groups": [60]})))) == [
        f"failed: allowlisted project 600: POST {WRITE}/allowlist: 400 Bad request - The target_project {reason}",
        f"failed: allowlisted group 60: POST {WRITE}/groups_allowlist: 400 Bad request - The target_group {reason}",
    ]


def test_a_number_that_nobody_has_is_refused(story: Story) -> None:
    assert failures(story.apply(story.plan(wanted({"projects": [999], "groups": [999]})))) == [
        f"failed: allowlisted project 999: POST {WRITE}/allowlist: 404 target_project_id not found Not Found",
        f"failed: allowlisted group 999: POST {WRITE}/groups_allowlist: 404 target_group_id not found Not Found",
    ]


def test_an_entry_that_cannot_be_seen_stays_if_it_is_a_project_and_goes_if_it_is_a_group(story: Story) -> None:
    vault(story)
    put(story, projects=[600, 101], groups=[60])
    value = wanted({}, prune=True)
    assert failures(story.apply(story.plan(value))) == [
        f"failed: allowlisted project secret/vault: DELETE {WRITE}/allowlist/600: 404 Project Not Found"
    ]
    assert kept(story) == (True, [600], [])


ENFORCED = (
    "400 Bad request - Job token scope cannot be disabled for this project because it is enforced for the instance. "
    "Contact your administrator to modify this setting."
)


def test_a_limit_that_the_instance_enforces_cannot_be_lifted(story: Story) -> None:
    with rewriting(story) as state:
        state["instance"]["enforce_job_token_allowlist"] = True
    assert story.step(wanted({"enabled": True})) == []
    value = wanted({"enabled": False, "projects": [101]})
    assert failures(story.apply(story.plan(value))) == [f"failed: job token scope None: PATCH {URL}: {ENFORCED}"]
    assert kept(story) == (True, [101], [])


def test_a_limit_that_is_off_but_enforced_is_shown_as_on(story: Story) -> None:
    put(story, enabled=False)
    with rewriting(story) as state:
        state["instance"]["enforce_job_token_allowlist"] = True
    assert story.step(wanted({"enabled": True})) == []


def test_the_switch_is_read_again_after_it_was_thrown(story: Story) -> None:
    story.apply(story.plan(wanted({"enabled": False})))
    assert story.requests() == [switch("false"), f"GET {URL}"]


class Forgetful(Client):
    """A client of an older service, which acknowledges some writes and carries out none of them."""

    def send(self, request: Request) -> Json:
        self.traffic.count(request.method, again=False)
        return None


def test_a_switch_that_older_services_acknowledge_and_do_not_throw_is_seen_through(story: Story) -> None:
    plan = story.plan(wanted({"enabled": False}))
    usual = story.client
    with Forgetful(story.sandbox.api_url, "ada-token") as story.client:
        assert failures(story.apply(plan)) == [
            "dropped by the service: job token scope None: the service kept its own enabled"
        ]
    story.client = usual


def test_what_another_writer_did_after_the_plan_is_told_as_theirs(story: Story) -> None:
    put(story, projects=[101], groups=[11])
    plan = story.plan(wanted({"projects": ["acme/web", 103], "groups": ["acme"]}, prune=True))
    with speaking_with(story, "bob-token"):
        story.client.send(Request("POST", f"{WRITE}/allowlist", {"target_project_id": 102}))
        story.client.send(Request("DELETE", f"{WRITE}/allowlist/101"))
        story.client.send(Request("POST", f"{WRITE}/groups_allowlist", {"target_group_id": 10}))
        story.client.send(Request("DELETE", f"{WRITE}/groups_allowlist/11"))
    assert failures(story.apply(plan)) == [
        "stale: allowlisted project acme/web: done by somebody else at the same time",
        "stale: allowlisted group acme: done by somebody else at the same time",
    ]
    assert kept(story) == (True, [102, 103], [10])


def test_a_plan_that_is_read_again_first_is_refused_where_its_objects_have_moved(story: Story) -> None:
    put(story, projects=[101])
    plan = story.plan(wanted({"projects": ["acme/web", 103]}, prune=True))
    assert failures(story.apply(plan, recheck=True)) == []
    assert failures(story.apply(plan, recheck=True)) == [
        "stale: allowlisted project acme/web: it exists by now",
        "stale: allowlisted project 103: it exists by now",
        "stale: allowlisted project acme/lib: it is gone by now",
    ]


def test_more_than_a_page_of_entries_is_read_page_by_page(story: Story, dialect: str) -> None:
    numbers = list(range(1001, 1151))
    put(story, projects=numbers, groups=numbers)
    value = wanted({"projects": numbers[:-1], "groups": numbers[1:]}, prune=True)
    plan = story.plan(value)
    lists = [
        f"GET {URL}/{name}?per_page=100&page={page}" for name in ("allowlist", "groups_allowlist") for page in (1, 2)
    ]
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert story.requests() == lists + asked
    assert [str(request) for change in plan.changes for request in change.requests] == [
        remove_project(1150),
        remove_group(1001),
    ]


def test_more_entries_than_the_service_allows_are_refused(story: Story) -> None:
    put(story, projects=list(range(1001, 1201)), groups=list(range(1001, 1201)))
    outcomes = story.apply(story.plan(wanted({"projects": [101], "groups": [11]})))
    reason = "400 Bad request - Validation failed: Source project exceeds the allowable number of {}"
    assert failures(outcomes) == [
        f"failed: allowlisted project 101: POST {WRITE}/allowlist: {reason.format('project links in this direction')}",
        f"failed: allowlisted group 11: POST {WRITE}/groups_allowlist: {reason.format('group links')}",
    ]


def test_without_the_role_no_part_can_be_read_for_one_cause(story: Story) -> None:
    with rewriting(story) as state:
        group_in(state)["members"] = [{"user": "ada", "role": "developer"}]
    assert story.problems(wanted({"enabled": True, "projects": [101], "groups": [11]}, prune=True)) == [
        "job token scope.None: cannot be read: the token's owner is Developer there, and Maintainer is needed"
    ]


def test_an_archived_project_is_changed_like_any_other(story: Story) -> None:
    with rewriting(story) as state:
        project_in(state)["archived"] = True
    assert story.step(wanted({"enabled": False, "projects": [101]})) == [add_project(101), switch("false")]


@pytest.mark.parametrize(
    ("web_url", "names"),
    [
        ("https://h/groups/acme/b%20c", ("acme/b c", 4)),
        ("https://h/below/groups/acme", ("acme", 4)),
        ("https://h/groups/groups/groups", ("groups/groups", 4)),
        ("https://h/acme", (4,)),
        ("", (4,)),
        (None, (4,)),
    ],
)
def test_a_group_s_path_is_in_its_address_if_anywhere(web_url: str | None, names: tuple[object, ...]) -> None:
    assert GROUPS.decode(API, {"id": 4, "web_url": web_url, "name": "x"}).names == names
    assert GROUPS.decode(API, {"id": 4, "name": "x"}).names == (4,)


@pytest.mark.parametrize("entry", ["/acme/lib", "acme/lib/", "acme//lib"])
def test_an_entry_is_a_path_or_a_number(entry: str) -> None:
    assert fault_of_entry(API, entry) == (
        "an entry is a full path such as acme/payments/lib, without a slash at either end"
    )
    assert fault_of_entry(API, "acme/lib") is None
    assert fault_of_entry(API, 12) is None


@pytest.mark.parametrize(
    "value", [{"projects": [0]}, {"projects": [True]}, {"groups": [""]}, {"groups": None}], ids=str
)
def test_what_is_neither_is_no_entry(value: object) -> None:
    with pytest.raises(ValidationError):
        wanted(value)
