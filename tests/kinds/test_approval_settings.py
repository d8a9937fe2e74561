"""The life of merge request approval settings: of a group, of a subgroup, of a project."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.errors import Refused
from reconciler.model.item import Update
from reconciler.model.protocols import Request
from reconciler.model.targets import Level, Target
from tests.building import ACME, API, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import group_in, project_in, rewriting, speaking_with

TOOLS = Target(Level.GROUP, "acme/tools")
CLI = Target(Level.PROJECT, "acme/tools/cli")

GROUP_URL = "groups/acme/merge_request_approval_setting"
TOOLS_URL = "groups/acme%2Ftools/merge_request_approval_setting"
URL = "projects/acme%2Fapi/merge_request_approval_setting"
CLI_URL = "projects/acme%2Ftools%2Fcli/merge_request_approval_setting"

AUTHOR, COMMITTER = "allow_author_approval", "allow_committer_approval"
OVERRIDES = "allow_overrides_to_approver_list_per_merge_request"
RETAIN, SELECTIVE = "retain_approvals_on_push", "selective_code_owner_removals"
AGAIN = "require_reauthentication_to_approve"

FRESH_GROUP = {AUTHOR: True, COMMITTER: True, OVERRIDES: True, RETAIN: True, SELECTIVE: False, AGAIN: False}
FRESH_PROJECT = {AUTHOR: False, COMMITTER: True, OVERRIDES: True, RETAIN: False, SELECTIVE: False, AGAIN: False}


def wanted(value: object, target: Target = API) -> Any:
    return section("approval_settings", value, target)


def line(url: str, sent: Mapping[str, bool]) -> str:
    return f"PUT {url} {json.dumps(dict(sent), sort_keys=True)}"


def in_order(writes: list[str]) -> list[str]:
    """The same with the keys of every body sorted: their order means nothing."""
    parts = [write.split(" ", 2) for write in writes]
    return [f"{method} {url} {json.dumps(json.loads(body), sort_keys=True)}" for method, url, body in parts]


def of_group(settings: Mapping[str, bool], path: str = "acme") -> Any:
    """An edit: let a group have these settings, the rest as it is where nothing was ever set."""

    def edit(state: dict[str, Any]) -> None:
        group_in(state, path)["merge_request_approval_settings"] = {**FRESH_GROUP, **settings}

    return edit


def of_project(settings: Mapping[str, bool], path: str = "acme/api") -> Any:
    """An edit: let a project have these settings of its own, the rest as it is in a fresh one."""

    def edit(state: dict[str, Any]) -> None:
        project_in(state, path)["merge_request_approval_settings"] = {**FRESH_PROJECT, **settings}

    return edit


def put(engine: EngineDriver, *edits: Any) -> None:
    with rewriting(engine) as state:
        for edit in edits:
            edit(state)


def raw(engine: EngineDriver, target: Target = API) -> Any:
    """What the service keeps, behind all locks; of a group, None where nothing was ever set."""
    state = engine.sandbox.state()
    place = project_in(state, str(target.ref)) if target.level is Level.PROJECT else group_in(state, str(target.ref))
    return place.get("merge_request_approval_settings")


def read_only(*names: str, by: str = "group acme") -> list[str]:
    why = f"locked by {by}; unlock it there or leave the field out"
    return [f"approval settings.{name}: {why}" for name in sorted(names)]


@pytest.mark.untraced
def test_the_life_of_a_project_s_approval_settings(engine: EngineDriver) -> None:
    def step(value: object) -> list[str]:
        return in_order(engine.step(wanted(value)))

    assert step({}) == []
    assert step(FRESH_PROJECT) == []
    assert step({AUTHOR: True}) == [line(URL, FRESH_PROJECT | {AUTHOR: True})]
    assert step({COMMITTER: False, OVERRIDES: False}) == [
        line(URL, FRESH_PROJECT | {AUTHOR: True, COMMITTER: False, OVERRIDES: False})
    ]
    assert step({RETAIN: True, AGAIN: True}) == [
        line(URL, {AUTHOR: True, COMMITTER: False, OVERRIDES: False, RETAIN: True, SELECTIVE: False, AGAIN: True})
    ]
    assert step(FRESH_PROJECT) == [line(URL, FRESH_PROJECT)]


@pytest.mark.untraced
@pytest.mark.parametrize("name", FRESH_PROJECT)
def test_each_setting_of_a_project_is_sent_with_all_others_and_they_stay(
    engine: EngineDriver, dialect: str, name: str
) -> None:
    before = FRESH_PROJECT | {SELECTIVE: False, RETAIN: dialect == "deployed" and name == SELECTIVE}
    put(engine, of_project(before))
    after = before | {name: not before[name]}
    assert in_order(engine.step(wanted({name: after[name]}))) == [line(URL, after)]
    assert {key: raw(engine)[key] for key in after} == after


@pytest.mark.untraced
@pytest.mark.parametrize("name", [AUTHOR, COMMITTER, OVERRIDES, RETAIN, AGAIN])
def test_the_first_write_to_a_group_keeps_what_it_shows_of_the_rest(engine: EngineDriver, name: str) -> None:
    assert raw(engine, ACME) is None
    after = FRESH_GROUP | {name: not FRESH_GROUP[name]}
    assert in_order(engine.step(wanted({name: after[name]}, ACME))) == [line(GROUP_URL, after)]
    assert {key: raw(engine, ACME)[key] for key in after} == after


def test_the_life_of_a_group_s_approval_settings(engine: EngineDriver) -> None:
    def step(value: object) -> list[str]:
        return in_order(engine.step(wanted(value, ACME)))

    assert step({}) == []
    assert step(FRESH_GROUP) == []
    assert raw(engine, ACME) is None
    strict = {AUTHOR: False, COMMITTER: False, OVERRIDES: False, RETAIN: False, SELECTIVE: False, AGAIN: True}
    assert step(strict) == [line(GROUP_URL, strict)]
    assert step({OVERRIDES: True}) == [line(GROUP_URL, strict | {OVERRIDES: True})]
    assert step(FRESH_GROUP) == [line(GROUP_URL, FRESH_GROUP)]


@pytest.mark.parametrize(("target", "url"), [(ACME, GROUP_URL), (API, URL)], ids=str)
def test_a_plan_reads_the_settings_once_and_nothing_else(engine: EngineDriver, target: Target, url: str) -> None:
    engine.plan(wanted({AUTHOR: True, AGAIN: True}, target))
    assert engine.requests() == [f"GET {url}"]


def test_one_change_is_planned_however_many_settings_change(engine: EngineDriver) -> None:
    (change,) = engine.plan(wanted({AUTHOR: True, COMMITTER: True, AGAIN: True})).changes
    assert dict(change.after) == {AUTHOR: True, AGAIN: True}  # type: ignore[union-attr]  # an update


def test_what_the_group_has_locked_is_a_problem_each_and_the_rest_is_done(engine: EngineDriver) -> None:
    put(engine, of_group({AUTHOR: False, OVERRIDES: False, AGAIN: True}), of_project({OVERRIDES: True}))
    value = wanted({AUTHOR: True, OVERRIDES: True, AGAIN: False, COMMITTER: False})
    assert engine.problems(value) == read_only(AUTHOR, OVERRIDES, AGAIN)
    assert failures(engine.apply(engine.plan(value))) == []
    assert in_order(engine.writes()) == [line(URL, {COMMITTER: False, RETAIN: False, SELECTIVE: False})]
    assert engine.problems(value) == read_only(AUTHOR, OVERRIDES, AGAIN)
    assert engine.changes(value) == []


def test_a_locked_setting_that_is_as_wanted_is_in_order(engine: EngineDriver) -> None:
    put(engine, of_group({AUTHOR: False, COMMITTER: False, OVERRIDES: False, RETAIN: False, AGAIN: True}))
    same = {AUTHOR: False, COMMITTER: False, OVERRIDES: False, RETAIN: False, SELECTIVE: False, AGAIN: True}
    assert engine.step(wanted(same)) == []


def test_the_value_behind_a_lock_is_not_changed(engine: EngineDriver) -> None:
    own = FRESH_PROJECT | {AUTHOR: True, RETAIN: True}
    put(engine, of_group({AUTHOR: False, RETAIN: False}), of_project(own))
    engine.step(wanted({COMMITTER: False, AUTHOR: False}))
    assert {name: raw(engine)[name] for name in own} == own | {COMMITTER: False}


def test_what_the_instance_has_locked_is_locked_in_groups_and_projects(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        state["instance"]["merge_request_approval_settings"] = {COMMITTER: False}
    value = {AUTHOR: False, COMMITTER: True}
    for target in (ACME, API):
        assert engine.problems(wanted(value, target)) == read_only(COMMITTER, by="the instance")
    rest = {name: setting for name, setting in FRESH_GROUP.items() if name != COMMITTER}
    engine.apply(engine.plan(wanted(value, ACME)))
    assert in_order(engine.writes()) == [line(GROUP_URL, rest | {AUTHOR: False})]


REFUSAL = {
    "spec": f"{SELECTIVE}: can only be enabled when {RETAIN} is disabled",
    "deployed": f"{SELECTIVE} can only be enabled when {RETAIN} is enabled",
}


def test_selective_removals_are_had_on_the_side_of_retain_that_the_service_wants(
    engine: EngineDriver, dialect: str
) -> None:
    right, wrong = {RETAIN: dialect == "deployed", SELECTIVE: True}, {RETAIN: dialect != "deployed", SELECTIVE: True}
    assert failures(engine.apply(engine.plan(wanted(wrong)))) == [
        f"failed: approval settings None: PUT {URL}: 400 {REFUSAL[dialect]}"
    ]
    assert in_order(engine.step(wanted(right))) == [line(URL, FRESH_PROJECT | right)]
    assert failures(engine.apply(engine.plan(wanted({RETAIN: wrong[RETAIN]})))) == [
        f"failed: approval settings None: PUT {URL}: 400 {REFUSAL[dialect]}"
    ]
    both_off = {RETAIN: wrong[RETAIN], SELECTIVE: False}
    assert in_order(engine.step(wanted(both_off))) == [line(URL, FRESH_PROJECT | both_off)]


def test_the_pair_that_the_deployed_service_refuses_is_doubtful() -> None:
    for pair in ({RETAIN: True, SELECTIVE: True}, {RETAIN: False, SELECTIVE: True}, {RETAIN: False}, {SELECTIVE: True}):
        declared = wanted(pair).wanted["approval_settings"]
        refused = list(pair.values()) == [False, True]
        assert [field for field, _ in declared.warnings()] == ([SELECTIVE] if refused else [])


def test_selective_removals_of_a_group_are_had_by_the_spec_and_dropped_in_production(
    engine: EngineDriver, dialect: str
) -> None:
    value = wanted({RETAIN: dialect == "deployed", SELECTIVE: True}, ACME)
    outcomes = engine.apply(engine.plan(value))
    assert (
        failures(outcomes)
        == {
            "spec": [],
            "deployed": [
                f"dropped by the service: approval settings None: the service kept its own {SELECTIVE}",
            ],
        }[dialect]
    )
    assert in_order(engine.writes()) == [
        line(GROUP_URL, FRESH_GROUP | {RETAIN: dialect == "deployed", SELECTIVE: True})
    ]


def test_a_group_that_does_not_retain_locks_its_own_selective_removals_in_production(
    engine: EngineDriver, dialect: str
) -> None:
    put(engine, of_group({RETAIN: False}))
    value = wanted({SELECTIVE: True, AUTHOR: False}, ACME)
    assert engine.problems(value) == {"spec": [], "deployed": read_only(SELECTIVE)}[dialect]
    assert failures(engine.apply(engine.plan(value))) == []
    assert in_order(engine.writes()) == [
        line(GROUP_URL, FRESH_GROUP | {AUTHOR: False, RETAIN: False, SELECTIVE: dialect == "spec"})
    ]


def test_a_hidden_selective_removal_does_not_keep_a_project_from_being_changed(
    engine: EngineDriver, dialect: str
) -> None:
    put(
        engine,
        of_group({RETAIN: False}),
        of_project({RETAIN: dialect == "deployed", SELECTIVE: True}, "acme/tools/cli"),
    )
    if dialect == "deployed":
        with pytest.raises(Refused, match=REFUSAL[dialect]):
            engine.client.send(Request("PUT", CLI_URL, {AUTHOR: True}))
    assert in_order(engine.step(wanted({AUTHOR: True}, CLI))) == [
        line(CLI_URL, {AUTHOR: True, COMMITTER: True, OVERRIDES: True, SELECTIVE: dialect == "spec", AGAIN: False})
    ]


def test_a_selective_removal_that_is_locked_on_stays_as_it_is_behind_the_lock(
    engine: EngineDriver, dialect: str
) -> None:
    put(engine, of_group({RETAIN: False, SELECTIVE: True}), of_project({SELECTIVE: True}))
    engine.step(wanted({AUTHOR: True}))
    assert raw(engine)[SELECTIVE] is (dialect == "spec")
    assert raw(engine)[AUTHOR] is True


def test_a_project_below_a_changed_group_is_read_and_planned_again(engine: EngineDriver) -> None:
    both = wanted({AUTHOR: False}, ACME), wanted({AUTHOR: True, COMMITTER: False})
    plan = engine.plan(*both)
    assert [str(change.requests[0]) for change in plan.changes] == [f"PUT {GROUP_URL}", f"PUT {URL}"]
    outcomes = engine.apply(plan)
    assert [request.partition(" {")[0] for request in engine.requests()] == [
        f"GET {GROUP_URL}",
        f"PUT {GROUP_URL}",
        f"GET {GROUP_URL}",
        f"GET {URL}",
        f"PUT {URL}",
        f"GET {URL}",
    ]
    assert in_order(engine.writes()) == [
        line(GROUP_URL, FRESH_GROUP | {AUTHOR: False}),
        line(URL, {COMMITTER: False, OVERRIDES: True, RETAIN: False, SELECTIVE: False, AGAIN: False}),
    ]
    assert failures(outcomes) == []
    assert [f"{each.field}: {each.reason}" for target in outcomes for each in target.problems] == [
        f"{AUTHOR}: locked by group acme; unlock it there or leave the field out"
    ]
    assert engine.problems(*both) == read_only(AUTHOR)


def test_what_the_group_unlocks_the_project_has_in_the_same_run(engine: EngineDriver) -> None:
    put(engine, of_group({AUTHOR: False, RETAIN: False}))
    both = wanted({AUTHOR: True, RETAIN: True}, ACME), wanted({AUTHOR: True, RETAIN: True})
    assert engine.problems(*both) == read_only(AUTHOR, RETAIN)
    outcomes = engine.apply(engine.plan(*both))
    assert in_order(engine.writes()) == [
        line(GROUP_URL, FRESH_GROUP),
        line(URL, FRESH_PROJECT | {AUTHOR: True, RETAIN: True}),
    ]
    assert [problem for target in outcomes for problem in target.problems] == []
    assert failures(outcomes) == []
    assert engine.problems(*both) == engine.changes(*both) == []


def test_what_the_group_locks_as_wanted_the_project_need_not_write(engine: EngineDriver) -> None:
    both = wanted({AGAIN: True}, ACME), wanted({AGAIN: True})
    assert engine.changes(*both) == ["~ approval settings None"]
    assert in_order(engine.step(*both)) == [line(GROUP_URL, FRESH_GROUP | {AGAIN: True})]


def test_what_the_group_locks_in_the_same_plan_the_project_cannot_have(engine: EngineDriver) -> None:
    put(engine, of_group({RETAIN: True, SELECTIVE: True}), of_project({RETAIN: True, SELECTIVE: True}))
    group = wanted({AUTHOR: False, RETAIN: False, AGAIN: True}, ACME)
    plan = engine.plan(group, wanted({AUTHOR: True, COMMITTER: False, RETAIN: True, SELECTIVE: True, AGAIN: False}))
    assert [str(change.requests[0]) for change in plan.changes] == [f"PUT {GROUP_URL}", f"PUT {URL}"]
    remedy = "which locks it here; change it there or leave the field out"
    assert [f"{each.field}: {each.reason}; {each.fix}" for each in plan.problems] == [
        f"{AUTHOR}: group acme sets it to false in this plan, {remedy}",
        f"{AGAIN}: group acme sets it to true in this plan, {remedy}",
        f"{RETAIN}: group acme sets it to false in this plan, {remedy}",
        f"{SELECTIVE}: group acme sets it to false in this plan, {remedy}",
    ]


def test_settings_are_read_again_once_where_their_group_stays_as_it_is(engine: EngineDriver) -> None:
    engine.apply(engine.plan(wanted({AUTHOR: True}, ACME), wanted({AUTHOR: True})))
    assert [request.partition(" {")[0] for request in engine.requests()] == [f"GET {URL}", f"PUT {URL}", f"GET {URL}"]


def test_what_another_writer_sets_after_the_plan_stays_where_nobody_declares_it(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({AUTHOR: True}))
    put(engine, of_project({AGAIN: True, RETAIN: True}))
    assert failures(engine.apply(plan)) == []
    assert in_order(engine.writes()) == [line(URL, FRESH_PROJECT | {AUTHOR: True, AGAIN: True, RETAIN: True})]


def test_what_another_writer_sets_after_the_plan_is_set_right_where_it_is_declared(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({AUTHOR: True, COMMITTER: True}))
    put(engine, of_project({COMMITTER: False}))
    [outcome] = engine.apply(plan)
    assert failures([outcome]) == []
    assert in_order(engine.writes()) == [line(URL, FRESH_PROJECT | {AUTHOR: True})]
    assert [change.before for change in outcome.changes if isinstance(change, Update)] == [
        {AUTHOR: False, COMMITTER: False}
    ]


def test_what_another_writer_has_done_meanwhile_is_not_written_again(engine: EngineDriver) -> None:
    plan = engine.plan(wanted({AUTHOR: True}))
    put(engine, of_project({AUTHOR: True}))
    [outcome] = engine.apply(plan)
    assert [*outcome.outcomes] == []
    assert engine.requests() == [f"GET {URL}"]


def test_a_subgroup_has_no_settings(engine: EngineDriver) -> None:
    value = wanted({AUTHOR: False}, TOOLS)
    assert engine.problems(value) == [
        "approval settings.None: cannot be read: only groups at the top have these settings"
    ]
    assert engine.changes(value) == []


def test_a_maintainer_of_a_group_may_not_read_its_settings(engine: EngineDriver) -> None:
    with speaking_with(engine, "bob-token"):
        assert engine.problems(wanted({AUTHOR: False}, ACME)) == [
            "approval settings.None: cannot be read: bob is Maintainer there, and Owner is needed"
        ]


def test_an_archived_project_is_changed_like_any_other(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        project_in(state)["archived"] = True
    assert in_order(engine.step(wanted({AUTHOR: True}))) == [line(URL, FRESH_PROJECT | {AUTHOR: True})]


def test_what_another_writer_set_after_the_plan_is_not_overwritten_when_it_is_read_again_first(
    engine: EngineDriver,
) -> None:
    plan = engine.plan(wanted({AUTHOR: True}))
    with speaking_with(engine, "bob-token"):
        engine.client.send(Request("PUT", URL, {COMMITTER: False}))
    assert failures(engine.apply(plan, recheck=True)) == [
        "stale: approval settings None: it has changed since the plan was made: allow_committer_approval: true -> false"
    ]
    assert engine.writes() == []
