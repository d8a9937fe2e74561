"""Targets that a run creates: the order, the exact requests, what depends on whom, and what meets others."""

from collections import Counter
from dataclasses import replace

import pytest

from reconciler.engine.apply import FailureLimit
from reconciler.model.creation import Creation
from reconciler.model.plan import Plan
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.between import Passing, between
from tests.building import SectionPlan, sections_of, with_sections
from tests.engine_driver import EngineDriver
from tests.service.clock import SwiftClock
from tests.states import a_small_service
from tests.trust.creating import applied, new, plan_of, results

ONE = {"1.0": {"due_date": "2026-12-01"}}
LIST = "milestones?include_ancestors=true&per_page=100&page=1"


def made_by_hand(engine: EngineDriver, path: str) -> None:
    """Let somebody create a group or a project in acme."""
    name = path.rpartition("/")[2]
    level = "groups" if name.isupper() else "projects"
    state = engine.sandbox.state()
    state[level].append({"id": 500 + len(state[level]), "path": path, "name": name})
    engine.sandbox.replace_state(state)


@pytest.mark.untraced
def test_groups_come_before_their_projects_and_all_before_what_is_declared(engine: EngineDriver) -> None:
    wanted = (
        new("acme/api2", milestones=ONE),
        new("acme/NEW", notification_settings={"level": "watch"}),
        new("acme/NEW/SUB", Creation("SUB")),
        new("acme/NEW/SUB/api", milestones={**ONE, "2.0": {}}, job_token_scope={"enabled": False}),
        new("acme/lib", None, job_token_scope={"projects": ["acme/new/sub/API"], "groups": ["acme/NEW"]}),
    )
    plan = plan_of(engine, *wanted)
    outcomes = applied(engine, plan)
    assert engine.requests() == [
        "GET groups/acme%2FNEW?with_projects=false",
        'POST groups {"name": "X", "path": "NEW", "parent_id": 10, "visibility": "private"}',
        "GET groups/acme%2FNEW%2FSUB?with_projects=false",
        'POST groups {"name": "SUB", "path": "SUB", "parent_id": 12, "visibility": "private"}',
        "GET projects/acme%2FNEW%2FSUB%2Fapi",
        'POST projects {"name": "X", "path": "api", "namespace_id": 13, "visibility": "private"}',
        "GET projects/acme%2Fapi2",
        'POST projects {"name": "X", "path": "api2", "namespace_id": 10, "visibility": "private"}',
        "GET groups/acme%2FNEW/notification_settings",
        'PUT groups/acme%2FNEW/notification_settings {"level": "watch"}',
        "GET groups/acme%2FNEW/notification_settings",
        f"GET projects/acme%2FNEW%2FSUB%2Fapi/{LIST}",
        'POST projects/acme%2FNEW%2FSUB%2Fapi/milestones {"title": "1.0", "due_date": "2026-12-01"}',
        'POST projects/acme%2FNEW%2FSUB%2Fapi/milestones {"title": "2.0"}',
        "GET projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope",
        'PATCH projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope {"enabled": false}',
        f"GET projects/acme%2FNEW%2FSUB%2Fapi/{LIST}",
        "GET projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope",
        f"GET projects/acme%2Fapi2/{LIST}",
        'POST projects/acme%2Fapi2/milestones {"title": "1.0", "due_date": "2026-12-01"}',
        f"GET projects/acme%2Fapi2/{LIST}",
        'POST projects/101/job_token_scope/allowlist {"target_project_id": 104}',
        'POST projects/101/job_token_scope/groups_allowlist {"target_group_id": 12}',
        "GET projects/acme%2Flib/job_token_scope/allowlist?per_page=100&page=1",
        "GET projects/acme%2Flib/job_token_scope/groups_allowlist?per_page=100&page=1",
    ]
    assert results(outcomes) == [
        "group acme/NEW done ID 12",
        "group acme/NEW notification settings done",
        "group acme/NEW/SUB done ID 13",
        "project acme/NEW/SUB/api done ID 104",
        "project acme/NEW/SUB/api milestone 1.0 done",
        "project acme/NEW/SUB/api milestone 2.0 done",
        "project acme/NEW/SUB/api job token scope done",
        "project acme/api2 done ID 105",
        "project acme/api2 milestone 1.0 done",
        "project acme/lib allowlisted project acme/new/sub/API done",
        "project acme/lib allowlisted group acme/NEW done",
    ]
    assert [*plan_of(engine, *wanted).changes] == []


TAKEN = (
    "failed: POST groups: 400 Failed to save group {name: has already been taken}; another user, group or project has this "
    "path or name: choose another"
)


def test_nothing_depends_on_what_was_not_created(engine: EngineDriver) -> None:
    plan = plan_of(
        engine,
        new("acme/NEW", Creation("tools")),
        new("acme/NEW/SUB", notification_settings={"level": "watch"}),
        new("acme/NEW/api", milestones=ONE),
        new("acme/other", milestones=ONE, job_token_scope={"projects": ["acme/NEW/api"]}),
        new("acme/lib", None, job_token_scope={"projects": ["acme/new/API", "acme/web"]}),
    )
    first, *others = results(applied(engine, plan, failures=FailureLimit("1", planned_count=9)))
    assert first == f"group acme/NEW {TAKEN}"
    assert {each.partition("skipped: ")[2] for each in others} == {"--max-failures 1 was reached"}
    assert results(applied(engine, plan)) == [
        f"group acme/NEW {TAKEN}",
        "group acme/NEW/SUB skipped: group acme/NEW was not created",
        "group acme/NEW/SUB notification settings skipped: group acme/NEW was not created",
        "project acme/NEW/api skipped: group acme/NEW was not created",
        "project acme/NEW/api milestone 1.0 skipped: group acme/NEW was not created",
        "project acme/lib allowlisted project acme/new/API skipped: group acme/NEW was not created",
        "project acme/lib allowlisted project acme/web done",
        "project acme/other done ID 104",
        "project acme/other milestone 1.0 done",
        "project acme/other allowlisted project acme/NEW/api skipped: group acme/NEW was not created",
    ]


def test_a_refusal_names_cause_and_fix(engine: EngineDriver) -> None:
    plan = plan_of(
        engine,
        new("acme/api3", Creation("API", "private")),
        new("acme/api4", Creation("API", "private")),
        new("ADA"),
    )
    assert results(applied(engine, plan)) == [
        "group ADA failed: POST groups: 400 Failed to save group {path: has already been taken}; another user, group or "
        "project has this path or name: choose another",
        "project acme/api3 done ID 104",
        "project acme/api4 failed: POST projects: 400 project_namespace.name: has already been taken; name: has already "
        "been taken; another user, group or project has this path or name: choose another",
    ]


def test_what_is_left_out_of_a_plan_is_looked_up(engine: EngineDriver) -> None:
    """As where somebody applies a part of a plan."""
    wanted = (
        new("acme/NEW"),
        new("acme/NEW/SUB"),
        new("acme/lib", None, job_token_scope={"projects": ["acme/NEW/api"]}),
        new("acme/NEW/api"),
    )
    plan = plan_of(engine, *wanted)
    rest = Plan(tuple(each for each in plan.targets if str(each.target) in ("group acme/NEW/SUB", "project acme/lib")))
    missing = "skipped: {} does not exist yet; apply again once it was created"
    assert results(applied(engine, rest)) == [
        f"group acme/NEW/SUB {missing.format('group acme/NEW')}",
        f"project acme/lib allowlisted project acme/NEW/api {missing.format('project acme/NEW/api')}",
    ]
    engine.sandbox.set_faults([{"kind": "status", "status": 401, "match": "projects/"}])
    assert results(applied(engine, Plan(rest.targets[1:]))) == [
        "project acme/lib allowlisted project acme/NEW/api skipped: GET projects/acme%2Fnew%2Fapi: 401 Unauthorized"
    ]


def test_what_cannot_be_read_of_a_new_target_fails(engine: EngineDriver) -> None:
    plan = plan_of(
        engine,
        new("acme/a", milestones=ONE, job_token_scope={"projects": ["acme/b", "acme/web"]}),
        new("acme/b", Creation("b", "private")),
    )
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "milestones"}])
    assert results(applied(engine, plan)) == [
        "project acme/a done ID 104",
        "project acme/a milestone 1.0 failed: cannot be read: GET projects/acme%2Fa/milestones: 403 Forbidden",
        "project acme/a allowlisted project acme/b done",
        "project acme/a allowlisted project acme/web done",
        "project acme/b done ID 105",
    ]


def test_a_path_that_leads_to_what_has_moved_is_left_alone(sandbox: Sandbox) -> None:
    def move(passing: Passing) -> None:
        if passing.status == 404:
            passing.status, passing.json = 200, {"id": 7, "path_with_namespace": "acme/elsewhere"}

    with (
        between(sandbox.api_url) as service,
        EngineDriver(
            sandbox, a_small_service("deployed"), Client(service.api_url, "ada-token", clock=SwiftClock())
        ) as engine,
    ):
        plan = plan_of(engine, new("acme/a"))
        service.alter = move
        assert results(applied(engine, plan)) == [
            "project acme/a failed: this path leads to project acme/elsewhere (ID 7), which has moved there"
        ]


def test_a_signal_before_a_creation_leaves_it_for_the_next_run(engine: EngineDriver) -> None:
    plan = plan_of(engine, new("acme/a"))
    engine.sandbox.set_faults([{"kind": "status", "status": 429, "retry_after": 9}])
    engine.client.stop.set()
    assert results(applied(engine, plan)) == ["project acme/a skipped: the run ended before this change"]


def test_a_missing_right_is_named(engine: EngineDriver) -> None:
    state = engine.sandbox.state()
    state["groups"][0]["members"] = [{"user": "ada", "role": "reporter"}]
    state["users"][1]["can_create_group"] = False
    engine.sandbox.replace_state(state)
    plan = plan_of(engine, new("NEW"), new("acme/NEW"), new("acme/p"), new("ada/own"))
    assert results(applied(engine, plan)) == [
        "group NEW failed: POST groups: 403 Forbidden; this token may not create groups at the top level, where a service "
        "may allow none by its API",
        "group acme/NEW failed: POST groups: 403 Forbidden; this token may not create groups in group acme",
        "project acme/p failed: POST projects: 400 namespace: is not valid; group acme does not exist, or this token may "
        "not create projects there",
        "project ada/own done ID 104",
    ]


def test_what_the_service_made_less_visible_is_reported_once(engine: EngineDriver) -> None:
    wanted = new("acme/low", Creation("low", "internal"), milestones=ONE)
    assert results(applied(engine, plan_of(engine, wanted))) == [
        "project acme/low dropped by the service ID 104: visibility: asked for internal, the service made it private",
        "project acme/low milestone 1.0 done",
    ]
    assert [*plan_of(engine, wanted).changes] == []


def test_what_somebody_has_created_meanwhile_is_adopted_or_stale(engine: EngineDriver) -> None:
    wanted = (
        new("acme/NEW"),
        new("acme/NEW/api", milestones=ONE),
        new("acme/api2", milestones=ONE),
        new("acme/lib", None, job_token_scope={"projects": ["acme/NEW/api", "acme/api2"]}),
    )
    plan = plan_of(engine, *wanted)
    made_by_hand(engine, "acme/NEW")
    made_by_hand(engine, "acme/api2")
    group, project = (f"stale: {name}; plan again" for name in STALE)
    assert results(applied(engine, plan, recheck=True)) == [
        f"group acme/NEW {group}",
        f"project acme/NEW/api {group}",
        f"project acme/NEW/api milestone 1.0 {group}",
        f"project acme/api2 {project}",
        f"project acme/api2 milestone 1.0 {project}",
        f"project acme/lib allowlisted project acme/NEW/api {group}",
        f"project acme/lib allowlisted project acme/api2 {project}",
    ]
    assert engine.writes() == []
    assert results(applied(engine, plan)) == [
        "project acme/NEW/api done ID 505",
        "project acme/NEW/api milestone 1.0 done",
        "project acme/api2 milestone 1.0 done",
        "project acme/lib allowlisted project acme/NEW/api done",
        "project acme/lib allowlisted project acme/api2 done",
    ]
    assert [*plan_of(engine, *wanted).changes] == []


STALE = ("group acme/NEW exists now (ID 502)", "project acme/api2 exists now (ID 504)")


def test_a_saved_plan_creates_what_it_shows_where_it_shows_it(engine: EngineDriver) -> None:
    wanted = (new("acme/NEW", notification_settings={"level": "watch"}), new("acme/NEW/api"), new("ada/own"))
    lib = new("acme/lib", None, job_token_scope={"projects": ["acme/NEW/api"]})
    plan = plan_of(engine, *wanted, lib)
    edited = "failed: the saved plan was edited: its requests do not match the changes it shows; make the plan again"
    assert results(applied(engine, elsewhere(plan), recheck=True)) == [
        f"group acme/NEW {edited}",
        "group acme/NEW notification settings skipped: group acme/NEW was not created",
        "project acme/NEW/api skipped: group acme/NEW was not created",
        "project acme/lib allowlisted project acme/NEW/api skipped: group acme/NEW was not created",
        f"project ada/own {edited}",
    ]
    assert engine.writes() == []
    engine.sandbox.clear_log()
    assert results(applied(engine, plan, recheck=True)) == [
        "group acme/NEW done ID 12",
        "group acme/NEW notification settings done",
        "project acme/NEW/api done ID 104",
        "project acme/lib allowlisted project acme/NEW/api done",
        "project ada/own done ID 105",
    ]
    assert engine.requests()[:8] == [
        "GET groups/acme%2FNEW?with_projects=false",
        "GET groups/acme?with_projects=false",
        'POST groups {"name": "X", "path": "NEW", "parent_id": 10, "visibility": "private"}',
        "GET projects/acme%2FNEW%2Fapi",
        'POST projects {"name": "X", "path": "api", "namespace_id": 12, "visibility": "private"}',
        "GET projects/ada%2Fown",
        "GET groups/ada?with_projects=false",
        "GET namespaces/ada",
    ]


def elsewhere(plan: Plan) -> Plan:
    """Return a plan whose creations lead into the group acme/tools."""
    targets = []
    for target in plan.targets:
        sections = [section for section in sections_of(target) if section.section]
        if target.creation is not None:
            (request,) = target.creation.requests
            body = {key: 11 if isinstance(value, int) else value for key, value in (request.body or {}).items()}
            change = replace(target.creation, requests=(replace(request, body=body),))
            sections.insert(0, SectionPlan("", changes=(change,)))
        targets.append(with_sections(target, sections))
    return replace(plan, targets=tuple(targets))


LOOK = "GET groups/acme%2FNEW?with_projects=false"
POST = 'POST groups {"name": "X", "path": "NEW", "parent_id": 10, "visibility": "private"}'


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("fault", "requests", "waits"),
    [
        ("reset-after", [LOOK, POST, LOOK], []),
        ("truncate", [LOOK, POST, LOOK], []),
        ("not-json", [LOOK, POST, LOOK], []),
        ("reset-before", [LOOK, POST, LOOK, LOOK, LOOK, LOOK, POST], [0.5, 1, 2]),
        ("html", [LOOK, POST, LOOK, LOOK, LOOK, LOOK, POST], [0.5, 1, 2]),
    ],
)
def test_a_creation_whose_answer_is_lost_is_looked_for(
    sandbox: Sandbox, fault: str, requests: list[str], waits: list[float]
) -> None:
    clock = SwiftClock()
    with EngineDriver(
        sandbox, a_small_service("deployed"), Client(sandbox.api_url, "ada-token", clock=clock)
    ) as engine:
        plan = plan_of(engine, new("acme/NEW"))
        sandbox.set_faults([{"kind": fault, "method": "POST", "nth": 1}])
        assert results(applied(engine, plan)) == ["group acme/NEW done ID 12"]
        assert (engine.requests(), clock.waits) == (requests, waits)


def test_a_creation_that_is_lost_each_time_may_have_been_made(engine: EngineDriver) -> None:
    plan = plan_of(engine, new("acme/NEW"))
    reset = {"kind": "reset-before", "method": "POST"}
    lost = "group acme/NEW failed (maybe done): POST groups: the response was lost: Connection reset by peer"
    engine.sandbox.set_faults([reset])
    assert results(applied(engine, plan)) == [lost]
    assert len(engine.writes()) == 3
    engine.sandbox.set_faults([reset, {"kind": "status", "status": 403, "method": "GET", "nth": 2}])
    assert results(applied(engine, plan)) == [
        f"{lost}; checking whether it succeeded: GET groups/acme%2FNEW: 403 Forbidden"
    ]


def test_of_two_who_create_the_same_at_once_one_adopts_it(sandbox: Sandbox) -> None:
    with (
        between(sandbox.api_url) as service,
        EngineDriver(
            sandbox, a_small_service("deployed"), Client(service.api_url, "ada-token", clock=SwiftClock())
        ) as engine,
    ):
        plan = plan_of(engine, new("acme/NEW", notification_settings={"level": "watch"}))
        service.alter = lambda passing: made_by_hand(engine, "acme/NEW") if passing.status == 404 else None
        assert results(applied(engine, plan)) == ["group acme/NEW notification settings done"]


def test_what_was_just_created_may_be_hidden_for_a_while(sandbox: Sandbox) -> None:
    hidden = Counter({"GET groups/acme%2FNEW/notification_settings": 2, LOOK: 1})
    made = False

    def lag(passing: Passing) -> None:
        nonlocal made
        if made and hidden[passing.request] > 0:
            hidden[passing.request] -= 1
            passing.status, passing.json = 404, {"message": "404 Group Not Found"}
        made = made or passing.status == 201

    clock = SwiftClock()
    with (
        between(sandbox.api_url) as service,
        EngineDriver(sandbox, a_small_service("deployed"), Client(service.api_url, "ada-token", clock=clock)) as engine,
    ):
        plan = plan_of(
            engine, new("acme/NEW", notification_settings={"level": "watch"}), new("acme/NEW/SUB", Creation("s"))
        )
        sandbox.set_faults([{"kind": "status", "status": 404, "method": "POST", "nth": 2}])
        service.requests.clear()
        service.alter = lag
        assert results(applied(engine, plan)) == [
            "group acme/NEW done ID 12",
            "group acme/NEW notification settings done",
            "group acme/NEW/SUB done ID 13",
        ]
        settings = "GET groups/acme%2FNEW/notification_settings"
        assert [each.partition(" {")[0] for each in service.requests] == [
            LOOK,
            "POST groups",
            "GET groups/acme%2FNEW%2FSUB?with_projects=false",
            "POST groups",  # the group above is not visible yet
            "POST groups",
            settings,
            LOOK,  # nor is it here
            settings,
            LOOK,  # it is, so that a 404 would be believed from now on
            settings,
            "PUT groups/acme%2FNEW/notification_settings",
            settings,
        ]
        assert clock.waits == [0.5, 0.5]
