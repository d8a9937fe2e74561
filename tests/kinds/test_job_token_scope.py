"""The life of a job token scope: its switch, and its two allowlists."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.kinds.job_token_scope import GROUPS
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Level, Target
from reconciler.service import Client
from tests.building import API, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import group_in, project_in, rewriting, speaking_with

NUMBER = Target(Level.PROJECT, 100)
LIB = Target(Level.PROJECT, "acme/lib")
WEB = Target(Level.PROJECT, "acme/web")

URL = "projects/acme%2Fapi/job_token_scope"
PROJECTS = f"GET {URL}/allowlist?per_page=100&page=1"
HIDDEN = "not found, not visible to this token, or not served by this server"
GROUPS_LIST = f"GET {URL}/groups_allowlist?per_page=100&page=1"
WRITE = "projects/100/job_token_scope"


def wanted(value: object, target: Target = API, *, prune: bool = False) -> Any:
    return section("job_token_scope", value, target, prune=prune)


def put(
    engine: EngineDriver, *, projects: Sequence[int] = (), groups: Sequence[int] = (), enabled: bool = True
) -> None:
    """Let the project have this scope."""
    with rewriting(engine) as state:
        project_in(state)["job_token_scope"] = {
            "inbound_enabled": enabled,
            "project_allowlist": list(projects),
            "group_allowlist": list(groups),
        }


def kept(engine: EngineDriver) -> tuple[bool, list[int], list[int]]:
    target = project_in(engine.sandbox.state())["job_token_scope"]
    return target["inbound_enabled"], target["project_allowlist"], target["group_allowlist"]


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


@pytest.mark.untraced
def test_the_life_of_a_job_token_scope(engine: EngineDriver) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return engine.step(wanted(value, prune=prune))

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
    assert kept(engine) == (False, [101, 102], [10])
    assert step({"groups": []}) == []
    assert step({"groups": []}, prune=True) == [remove_group(10)]
    assert step({}, prune=True) == [remove_project(101), remove_project(102)]
    assert kept(engine) == (False, [], [])


def test_an_empty_section_that_is_pruned_empties_both_lists_and_leaves_the_switch(engine: EngineDriver) -> None:
    put(engine, projects=[102, 101], groups=[11], enabled=False)
    assert engine.step(wanted({}, prune=True)) == [remove_project(101), remove_project(102), remove_group(11)]
    assert kept(engine) == (False, [], [])


def test_an_empty_section_that_is_not_pruned_reads_nothing(engine: EngineDriver) -> None:
    put(engine, projects=[101])
    engine.plan(wanted({}))
    assert engine.requests() == []


def test_only_the_lists_that_are_declared_are_pruned(engine: EngineDriver) -> None:
    put(engine, projects=[101], groups=[11])
    assert engine.step(wanted({"enabled": True}, prune=True)) == []
    assert engine.step(wanted({"projects": []}, prune=True)) == [remove_project(101)]
    assert kept(engine) == (True, [], [11])


def test_entries_that_no_manifest_mentions_are_reported_and_not_touched(engine: EngineDriver) -> None:
    put(engine, projects=[101, 102], groups=[10, 11])
    value = wanted({"projects": [102], "groups": ["acme"]})
    assert [each.address.name for each in engine.plan(value).findings_of("unmanaged")] == ["acme/lib", "acme/tools"]
    assert engine.step(value) == []


@pytest.mark.untraced
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
    engine: EngineDriver, value: object, reads: list[str]
) -> None:
    put(engine, projects=[101], groups=[11])
    assert list(engine.plan(wanted(value, prune=True)).changes) == []
    assert engine.requests() == reads


def test_emptying_both_lists_reads_them_and_the_number_where_they_do_not_tell_it(
    engine: EngineDriver, dialect: str
) -> None:
    put(engine, projects=[101], groups=[11])
    engine.plan(wanted({}, prune=True))
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert engine.requests() == [PROJECTS, GROUPS_LIST, *asked]


@pytest.mark.untraced
def test_paths_are_compared_without_regard_to_case(engine: EngineDriver) -> None:
    put(engine, projects=[101], groups=[11])
    assert engine.step(wanted({"projects": ["Acme/Lib"], "groups": ["ACME/tools"]}, prune=True)) == []
    assert engine.step(wanted({"projects": ["Acme/Web"], "groups": ["Acme"]})) == [add_project(102), add_group(10)]


def test_one_target_by_path_and_by_number_is_added_once_and_kept_once(engine: EngineDriver) -> None:
    value = wanted({"projects": ["acme/lib", 101], "groups": [11, "acme/tools"]}, prune=True)
    assert engine.step(value) == [add_project(101), add_group(11)]
    assert engine.step(value) == []


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("target", "itself"), [(API, "acme/api"), (API, "Acme/API"), (API, 100), (NUMBER, 100)], ids=str
)
def test_the_project_itself_is_never_added_nor_removed(engine: EngineDriver, target: Target, itself: object) -> None:
    assert engine.step(wanted({"projects": [itself]}, target, prune=True)) == []
    put(engine, projects=[100])
    assert engine.step(wanted({"projects": [itself]}, target, prune=True)) == []
    assert engine.step(wanted({"projects": []}, target, prune=True)) == []
    assert list(engine.plan(wanted({"projects": []}, target)).findings_of("unmanaged")) == []
    assert kept(engine)[1] == [100]


def test_a_project_known_by_its_number_needs_no_lookup(engine: EngineDriver) -> None:
    value = wanted({"projects": [101], "groups": [11]}, NUMBER)
    plan = engine.plan(value)
    assert engine.requests() == [
        f"GET {WRITE}/allowlist?per_page=100&page=1",
        f"GET {WRITE}/groups_allowlist?per_page=100&page=1",
    ]
    engine.apply(plan)
    assert engine.writes() == [add_project(101), add_group(11)]


def test_the_number_is_learned_from_the_list_or_asked_for_once(engine: EngineDriver, dialect: str) -> None:
    engine.plan(wanted({"projects": [101], "groups": [11]}))
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert engine.requests() == [PROJECTS, GROUPS_LIST, *asked]


def test_the_number_is_asked_for_once_for_a_list_of_groups(engine: EngineDriver) -> None:
    engine.plan(wanted({"groups": [10, 11]}))
    assert engine.requests() == [GROUPS_LIST, "GET projects/acme%2Fapi"]


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
def test_the_number_is_learned_from_the_project_s_other_objects(
    engine: EngineDriver, kind: str, objects: object
) -> None:
    with rewriting(engine) as state:
        project_in(state)[kind] = objects
    engine.plan(wanted({"groups": [11]}), section(kind, {}))
    assert "GET projects/acme%2Fapi" not in engine.requests()
    assert len({request.partition("?")[0] for request in engine.requests()}) == 2


def test_what_several_projects_refer_to_is_looked_up_once(engine: EngineDriver, dialect: str) -> None:
    sections = [
        wanted({"projects": ["acme/web", "acme/lib"], "groups": ["acme/tools"]}, target) for target in (API, LIB)
    ]
    sections.append(wanted({"projects": ["ACME/api"], "groups": ["acme/Tools"]}, WEB))
    plan = engine.plan(*sections)
    lists = [
        f"GET {target.url}job_token_scope/{name}?per_page=100&page=1"
        for target in (API, LIB, WEB)
        for name in ("allowlist", "groups_allowlist")
    ]
    numbers = ["GET projects/acme%2Fapi", "GET projects/acme%2Flib", "GET projects/acme%2Fweb"]
    lookups = ["GET groups/acme%2Ftools?with_projects=false", *(numbers if dialect == "spec" else [])]
    assert engine.requests()[:6] == lists
    assert engine.requests()[6:] == lookups
    engine.apply(plan)
    assert engine.writes() == [
        *(f'POST projects/100/job_token_scope/allowlist {{"target_project_id": {number}}}' for number in (101, 102)),
        'POST projects/100/job_token_scope/groups_allowlist {"target_group_id": 11}',
        'POST projects/101/job_token_scope/allowlist {"target_project_id": 102}',
        'POST projects/101/job_token_scope/groups_allowlist {"target_group_id": 11}',
        'POST projects/102/job_token_scope/allowlist {"target_project_id": 100}',
        'POST projects/102/job_token_scope/groups_allowlist {"target_group_id": 11}',
    ]


def test_a_path_that_leads_nowhere_is_a_problem_and_holds_up_only_removals(engine: EngineDriver) -> None:
    put(engine, projects=[101], groups=[11])
    value = wanted({"projects": ["acme/gone", "acme/web"], "groups": ["gone"]}, prune=True)
    assert engine.problems(value) == [
        f"allowlisted project.None: {HIDDEN} (project acme/gone: 404 Project Not Found)",
        f"allowlisted group.None: {HIDDEN} (group gone: 404 Group Not Found)",
    ]
    assert engine.changes(value) == [
        "+ allowlisted project acme/web",
    ]


def test_a_path_that_has_moved_stands_for_the_project_it_has_moved_to(engine: EngineDriver) -> None:
    put(engine, projects=[101])
    with rewriting(engine) as state:
        project_in(state, "acme/lib")["renamed_from"] = ["acme/old-lib"]
    assert engine.changes(wanted({"projects": ["acme/old-lib"]}, prune=True)) == []


def vault(engine: EngineDriver) -> None:
    """Add a project and a group that ada cannot see."""
    with rewriting(engine) as state:
        state["groups"].append({"id": 60, "path": "secret"})
        state["projects"].append({"id": 600, "path": "secret/vault"})


def test_what_cannot_be_seen_is_a_problem_by_its_path_and_refused_by_its_number(engine: EngineDriver) -> None:
    vault(engine)
    assert engine.problems(wanted({"projects": ["secret/vault"], "groups": ["secret"]})) == [
        f"allowlisted project.None: {HIDDEN} (project secret/vault: 404 Project Not Found)",
        f"allowlisted group.None: {HIDDEN} (group secret: 404 Group Not Found)",
    ]
    reason = "that you are attempting to access does not exist or you don't have permission to perform this action"
    assert failures(engine.apply(engine.plan(wanted({"projects": [600], "groups": [60]})))) == [
        f"failed: allowlisted project 600: POST {WRITE}/allowlist: 400 Bad request - The target_project {reason}",
        f"failed: allowlisted group 60: POST {WRITE}/groups_allowlist: 400 Bad request - The target_group {reason}",
    ]


def test_a_number_that_nobody_has_is_refused(engine: EngineDriver) -> None:
    assert failures(engine.apply(engine.plan(wanted({"projects": [999], "groups": [999]})))) == [
        f"failed: allowlisted project 999: POST {WRITE}/allowlist: 404 target_project_id not found Not Found",
        f"failed: allowlisted group 999: POST {WRITE}/groups_allowlist: 404 target_group_id not found Not Found",
    ]


def test_an_entry_that_cannot_be_seen_stays_if_it_is_a_project_and_goes_if_it_is_a_group(engine: EngineDriver) -> None:
    vault(engine)
    put(engine, projects=[600, 101], groups=[60])
    value = wanted({}, prune=True)
    assert failures(engine.apply(engine.plan(value))) == [
        f"failed: allowlisted project secret/vault: DELETE {WRITE}/allowlist/600: 404 Project Not Found; it is still "
        "listed, so this token cannot see that project; an owner who can see it can remove it"
    ]
    assert kept(engine) == (True, [600], [])


ENFORCED = (
    "400 Bad request - Job token scope cannot be disabled for this project because it is enforced for the instance. "
    "Contact your administrator to modify this setting."
)


def test_a_limit_that_the_instance_enforces_cannot_be_lifted(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        state["instance"]["enforce_job_token_allowlist"] = True
    assert engine.step(wanted({"enabled": True})) == []
    value = wanted({"enabled": False, "projects": [101]})
    assert failures(engine.apply(engine.plan(value))) == [f"failed: job token scope None: PATCH {URL}: {ENFORCED}"]
    assert kept(engine) == (True, [101], [])


def test_a_limit_that_is_off_but_enforced_is_shown_as_on(engine: EngineDriver) -> None:
    put(engine, enabled=False)
    with rewriting(engine) as state:
        state["instance"]["enforce_job_token_allowlist"] = True
    assert engine.step(wanted({"enabled": True})) == []


def test_the_switch_is_read_again_after_it_was_thrown(engine: EngineDriver) -> None:
    engine.apply(engine.plan(wanted({"enabled": False})))
    assert engine.requests() == [switch("false"), f"GET {URL}"]


class Forgetful(Client):
    """A client of an older service, which acknowledges some writes and carries out none of them."""

    def send(self, request: Request, **_more: Any) -> Json:
        self.traffic.count(request.method, again=False)
        return None


def test_a_switch_that_older_services_acknowledge_and_do_not_throw_is_seen_through(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({"enabled": False}))
    usual = engine.client
    with Forgetful(engine.sandbox.api_url, "ada-token") as engine.client:
        assert failures(engine.apply(plan)) == [
            "dropped by the service: job token scope None: the service kept its own enabled"
        ]
    engine.client = usual


@pytest.mark.untraced
def test_what_another_writer_did_after_the_plan_is_told_as_theirs(engine: EngineDriver) -> None:
    put(engine, projects=[101], groups=[11])
    plan = engine.plan(wanted({"projects": ["acme/web", 103], "groups": ["acme"]}, prune=True))
    with speaking_with(engine, "bob-token"):
        engine.client.send(Request("POST", f"{WRITE}/allowlist", {"target_project_id": 102}))
        engine.client.send(Request("DELETE", f"{WRITE}/allowlist/101"))
        engine.client.send(Request("POST", f"{WRITE}/groups_allowlist", {"target_group_id": 10}))
        engine.client.send(Request("DELETE", f"{WRITE}/groups_allowlist/11"))
    assert failures(engine.apply(plan)) == [
        "stale: allowlisted project acme/web: somebody else made the same change at the same time",
        "stale: allowlisted group acme: somebody else made the same change at the same time",
    ]
    assert kept(engine) == (True, [102, 103], [10])


def test_a_plan_that_is_read_again_first_has_nothing_to_do_where_all_is_as_wanted(engine: EngineDriver) -> None:
    put(engine, projects=[101])
    plan = engine.plan(wanted({"projects": ["acme/web", 103]}, prune=True))
    assert failures(engine.apply(plan, recheck=True)) == []
    assert failures(engine.apply(plan, recheck=True)) == []
    assert engine.writes() == []


@pytest.mark.untraced
def test_more_than_a_page_of_entries_is_read_page_by_page(engine: EngineDriver, dialect: str) -> None:
    numbers = list(range(1001, 1151))
    put(engine, projects=numbers, groups=numbers)
    value = wanted({"projects": numbers[:-1], "groups": numbers[1:]}, prune=True)
    plan = engine.plan(value)
    lists = [
        f"GET {URL}/{name}?per_page=100&page={page}" for name in ("allowlist", "groups_allowlist") for page in (1, 2)
    ]
    asked = {"spec": ["GET projects/acme%2Fapi"], "deployed": []}[dialect]
    assert engine.requests() == lists + asked
    assert [str(request) for change in plan.changes for request in change.requests] == [
        remove_project(1150),
        remove_group(1001),
    ]


@pytest.mark.untraced
def test_more_entries_than_the_service_allows_are_refused(engine: EngineDriver) -> None:
    put(engine, projects=list(range(1001, 1201)), groups=list(range(1001, 1201)))
    outcomes = engine.apply(engine.plan(wanted({"projects": [101], "groups": [11]})))
    reason = "400 Bad request - Validation failed: Source project exceeds the allowable number of {}"
    assert failures(outcomes) == [
        f"failed: allowlisted project 101: POST {WRITE}/allowlist: {reason.format('project links in this direction')}",
        f"failed: allowlisted group 11: POST {WRITE}/groups_allowlist: {reason.format('group links')}",
    ]


def test_without_the_role_no_part_can_be_read_for_one_cause(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        group_in(state)["members"] = [{"user": "ada", "role": "developer"}]
    assert engine.problems(wanted({"enabled": True, "projects": [101], "groups": [11]}, prune=True)) == [
        "job token scope.None: cannot be read: the token's owner is Developer there, and Maintainer is needed"
    ]


def test_an_archived_project_is_changed_like_any_other(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        project_in(state)["archived"] = True
    assert engine.step(wanted({"enabled": False, "projects": [101]})) == [add_project(101), switch("false")]


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
    assert GROUPS.read(API, {"id": 4, "web_url": web_url, "name": "x"}).names == names
    assert GROUPS.read(API, {"id": 4, "name": "x"}).names == (4,)


@pytest.mark.parametrize("entry", ["/acme/lib", "acme/lib/", "acme//lib"])
def test_an_entry_is_a_path_or_a_number(entry: str) -> None:
    assert GROUPS.name_error(entry) == (
        "an entry is a full path such as acme/payments/lib, without a slash at either end"
    )
    assert GROUPS.name_error("acme/lib") is None
    assert GROUPS.name_error(12) is None


@pytest.mark.parametrize(
    "value", [{"projects": [0]}, {"projects": [True]}, {"groups": [""]}, {"groups": None}], ids=str
)
def test_what_is_neither_is_no_entry(value: object) -> None:
    with pytest.raises(ValidationError):
        wanted(value)
