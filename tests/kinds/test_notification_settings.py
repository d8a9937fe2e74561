"""The life of notification settings: overall, in a group, in a project."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.engine.read import read_part
from reconciler.kinds.notification_settings import SETTINGS
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord
from reconciler.model.targets import Target
from tests.answering import Answering
from tests.building import ACME, API, USER, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import group_in, project_in, rewriting, speaking_with, user_in

URLS = {
    USER: "notification_settings",
    ACME: "groups/acme/notification_settings",
    API: "projects/acme%2Fapi/notification_settings",
}

EVERYWHERE = [
    "new_note",
    "new_issue",
    "reopen_issue",
    "close_issue",
    "reassign_issue",
    "issue_due",
    "new_merge_request",
    "push_to_merge_request",
    "reopen_merge_request",
    "close_merge_request",
    "reassign_merge_request",
    "merge_merge_request",
    "failed_pipeline",
    "fixed_pipeline",
    "success_pipeline",
    "moved_project",
    "merge_when_pipeline_succeeds",
]
DEPLOYED_ONLY = [
    "new_release",
    "change_reviewer_merge_request",
    "service_account_failed_pipeline",
    "service_account_success_pipeline",
    "service_account_fixed_pipeline",
]
ALL_EVENTS = sorted([*EVERYWHERE, *DEPLOYED_ONLY, "new_epic", "approver"])
ABSENT = {
    ("spec", USER): [*DEPLOYED_ONLY, "approver"],
    ("spec", ACME): [*DEPLOYED_ONLY, "approver"],
    ("spec", API): [*DEPLOYED_ONLY, "approver"],
    ("deployed", USER): [],
    ("deployed", ACME): ["approver"],
    ("deployed", API): ["new_epic"],
}
"""What cannot be set there (spec section 6; deployed behaviour, section 1)."""

at_every_level = pytest.mark.parametrize("target", list(URLS), ids=str)


def wanted(value: object, target: Target) -> Any:
    return section("notification_settings", value, target)


def put(engine: EngineDriver, target: Target, settings: Mapping[str, Any], name: str = "ada") -> None:
    """Let a user have these settings there."""
    with rewriting(engine) as state:
        if target == USER:
            user_in(state, name)["notification_settings"] = settings
        else:
            place = group_in(state) if target == ACME else project_in(state)
            place["notification_settings"] = {**place["notification_settings"], name: settings}


def kept(engine: EngineDriver, target: Target, name: str = "ada") -> dict[str, Any]:
    """What the service remembers of a user's settings there."""
    state = engine.sandbox.state()
    if target == USER:
        return dict(user_in(state, name)["notification_settings"])
    return dict((group_in(state) if target == ACME else project_in(state))["notification_settings"][name])


@pytest.mark.untraced
@at_every_level
def test_the_life_of_notification_settings(engine: EngineDriver, target: Target) -> None:
    url = URLS[target]

    def step(value: object) -> list[str]:
        return engine.step(wanted(value, target))

    assert step({}) == []
    assert step({"level": "watch"}) == [f'PUT {url} {{"level": "watch"}}']
    assert step({"level": "custom", "events": {"new_issue": True, "failed_pipeline": False}}) == [
        f'PUT {url} {{"failed_pipeline": false, "new_issue": true, "level": "custom"}}'
    ]
    assert step({"level": "custom", "events": {"new_issue": True, "new_note": True}}) == [
        f'PUT {url} {{"new_note": true}}'
    ]
    assert step({"level": "custom"}) == []
    assert step({"level": "mention"}) == [f'PUT {url} {{"level": "mention"}}']
    assert step({"level": "custom", "events": {"new_issue": False}}) == [
        f'PUT {url} {{"new_issue": false, "level": "custom"}}'
    ]
    assert kept(engine, target)["events"] == {"failed_pipeline": False, "new_issue": False, "new_note": True}


@pytest.mark.untraced
@at_every_level
@pytest.mark.parametrize("level", ["disabled", "participating", "watch", "global", "mention", "custom"])
def test_every_level_can_be_had(engine: EngineDriver, target: Target, level: str) -> None:
    put(engine, target, {"level": "watch" if level == "disabled" else "disabled"})
    assert engine.step(wanted({"level": level}, target)) == [f'PUT {URLS[target]} {{"level": "{level}"}}']


@at_every_level
def test_a_plan_reads_the_settings_once_and_nothing_else(engine: EngineDriver, target: Target) -> None:
    engine.plan(wanted({"level": "custom", "events": {"new_issue": True}}, target))
    assert engine.requests() == [f"GET {URLS[target]}"]


@at_every_level
def test_settings_that_were_never_made_have_the_default_level(engine: EngineDriver, target: Target) -> None:
    assert engine.step(wanted({"level": "participating" if target == USER else "global"}, target)) == []


@pytest.mark.untraced
@at_every_level
def test_the_settings_are_those_of_the_user_behind_the_token(engine: EngineDriver, target: Target) -> None:
    put(engine, target, {"level": "custom", "events": {"new_note": True}}, name="bob")
    before = kept(engine, target, "bob")
    engine.step(wanted({"level": "custom", "events": {"new_note": False}}, target))
    assert kept(engine, target, "bob") == before
    with speaking_with(engine, "bob-token"):
        assert engine.step(wanted({"level": "custom", "events": {"new_note": True}}, target)) == []


@pytest.mark.untraced
@at_every_level
def test_a_null_event_is_the_service_s_default(engine: EngineDriver, target: Target) -> None:
    nulls = dict.fromkeys(("failed_pipeline", "fixed_pipeline", "moved_project", "new_note", "success_pipeline"))
    put(engine, target, {"level": "custom", "events": {}})
    assert engine.step(wanted({"level": "custom", "events": nulls}, target)) == []
    put(
        engine,
        target,
        {"level": "custom", "events": {"failed_pipeline": False, "moved_project": False, "new_note": True}},
    )
    assert engine.step(wanted({"level": "custom", "events": nulls}, target)) == [
        f'PUT {URLS[target]} {{"failed_pipeline": true, "moved_project": true, "new_note": false}}'
    ]


@pytest.mark.untraced
@at_every_level
def test_events_that_are_not_declared_stay_as_they_are(engine: EngineDriver, target: Target) -> None:
    put(engine, target, {"level": "custom", "events": {"close_issue": True, "fixed_pipeline": False}})
    engine.step(wanted({"level": "custom", "events": {"new_note": True}}, target))
    assert kept(engine, target)["events"] == {"close_issue": True, "fixed_pipeline": False, "new_note": True}


@pytest.mark.untraced
@at_every_level
def test_each_event_of_the_service_can_be_set_and_each_other_is_a_problem(
    engine: EngineDriver, dialect: str, target: Target
) -> None:
    put(engine, target, {"level": "custom"})
    put_all = wanted({"level": "custom", "events": dict.fromkeys(ALL_EVENTS, True)}, target)
    absent = ABSENT[dialect, target]
    problems = [f"notification settings.events.{name}: this service has no such event here" for name in sorted(absent)]
    plan = engine.plan(put_all)
    assert [f"{each.address.title}.{each.field}: {each.reason}" for each in plan.problems] == problems
    assert failures(engine.apply(plan)) == []
    assert kept(engine, target)["events"] == {
        name: True for name in ALL_EVENTS if name not in {*absent, "failed_pipeline", "fixed_pipeline", "moved_project"}
    }
    assert engine.changes(put_all) == []
    assert engine.problems(put_all) == problems


@pytest.mark.untraced
@at_every_level
def test_each_event_of_the_service_can_be_switched_off(engine: EngineDriver, dialect: str, target: Target) -> None:
    names = [name for name in ALL_EVENTS if name not in ABSENT[dialect, target]]
    put(engine, target, {"level": "custom", "events": dict.fromkeys(names, True)})
    engine.step(wanted({"level": "custom", "events": dict.fromkeys(names, False)}, target))
    assert kept(engine, target)["events"] == dict.fromkeys(names, False)


def test_an_event_that_cannot_be_seen_to_be_missing_is_dropped_and_then_a_problem(
    engine: EngineDriver, dialect: str
) -> None:
    name = {"spec": "new_release", "deployed": "new_epic"}[dialect]
    first, second = sorted([name, "new_note"])
    unknown = wanted({"level": "custom", "events": {name: True, "new_note": True}}, API)
    plan = engine.plan(unknown)
    assert list(plan.problems) == []
    assert failures(engine.apply(plan)) == [
        f"dropped by the service: notification settings None: the service kept its own events.{name}"
    ]
    assert engine.writes() == [f'PUT {URLS[API]} {{"{first}": true, "{second}": true, "level": "custom"}}']
    assert engine.changes(unknown) == []
    assert engine.problems(unknown) == [f"notification settings.events.{name}: this service has no such event here"]


EMAIL_URL = URLS[USER]


@pytest.mark.untraced
def test_an_address_is_set_changed_and_cleared(engine: EngineDriver) -> None:
    def step(address: str | None) -> list[str]:
        return engine.step(wanted({"notification_email": address}, USER))

    assert step(None) == []
    assert step("ada@example.com") == []
    assert step("ops@example.com") == [f'PUT {EMAIL_URL} {{"notification_email": "ops@example.com"}}']
    assert step("ops@example.com") == []
    assert step("ada@example.com") == [f'PUT {EMAIL_URL} {{"notification_email": "ada@example.com"}}']
    assert step("ops@example.com") == [f'PUT {EMAIL_URL} {{"notification_email": "ops@example.com"}}']
    assert step(None) == [f'PUT {EMAIL_URL} {{"notification_email": ""}}']
    assert kept(engine, USER)["notification_email"] is None


def test_level_events_and_address_go_in_one_request(engine: EngineDriver) -> None:
    value = {"level": "custom", "events": {"new_note": True}, "notification_email": "ops@example.com"}
    assert engine.step(wanted(value, USER)) == [
        f'PUT {EMAIL_URL} {{"new_note": true, "level": "custom", "notification_email": "ops@example.com"}}'
    ]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("value", "reads"),
    [
        ({"level": "watch"}, ["GET notification_settings"]),
        ({"notification_email": "ops@example.com"}, ["GET notification_settings"]),
        ({"notification_email": None}, ["GET notification_settings", "GET user"]),
    ],
    ids=["no address", "an address", "no address wanted"],
)
def test_the_user_is_read_only_where_no_address_is_wanted(
    engine: EngineDriver, value: dict[str, object], reads: list[str]
) -> None:
    engine.plan(wanted(value, USER))
    assert engine.requests() == reads


class Nobody(Answering):
    """A reader for which the user has no address."""

    def get(self, path: str) -> Json:
        return {"notification_settings": {"level": "watch", "notification_email": "a@example.com"}, "user": {}}[path]


def test_a_primary_address_that_is_not_told_is_no_obstacle_to_the_rest() -> None:
    found = read_part(Nobody(), SETTINGS, USER, {"notification_email": None})
    assert isinstance(found, LiveRecord)
    assert found.read_only == {
        "notification_email": "null is the primary address, which this server does not show: write the address instead "
        "(GET user: the response has no email)"
    }
    alone = read_part(Nobody(), SETTINGS, USER, {"level": "watch"})
    assert isinstance(alone, LiveRecord)
    assert alone.read_only == {}


def test_an_address_that_is_not_declared_stays_as_it_is(engine: EngineDriver) -> None:
    put(engine, USER, {"level": "watch", "notification_email": "ops@example.com"})
    assert engine.step(wanted({"level": "mention"}, USER)) == [f'PUT {EMAIL_URL} {{"level": "mention"}}']
    assert kept(engine, USER)["notification_email"] == "ops@example.com"


def test_an_address_that_is_not_verified_is_refused_though_the_level_is_saved(engine: EngineDriver) -> None:
    strange = wanted({"level": "watch", "notification_email": "x@elsewhere.org"}, USER)
    assert failures(engine.apply(engine.plan(strange))) == [
        "failed: notification settings None: PUT notification_settings: "
        "400 notification_email: must be an email you have verified"
    ]
    assert kept(engine, USER)["level"] == "watch"
    engine.plan(strange)
    assert failures(engine.apply(engine.plan(strange))) != []
    assert engine.writes() == [f'PUT {EMAIL_URL} {{"notification_email": "x@elsewhere.org"}}']


@pytest.mark.parametrize("target", [ACME, API], ids=str)
def test_only_the_user_has_an_address(target: Target) -> None:
    with pytest.raises(ValidationError, match="notification_email"):
        wanted({"notification_email": None}, target)


@at_every_level
def test_events_without_the_level_custom_beside_them_contradict_themselves(target: Target) -> None:
    for level in ({"level": "watch"}, {}):
        declared = wanted({**level, "events": {"new_note": True}}, target).wanted["notification_settings"]
        assert [field for field, _ in declared.errors()] == ["events"]
    fine = wanted({"level": "custom", "events": {"new_note": True}}, target).wanted["notification_settings"]
    assert list(fine.errors()) == []


@pytest.mark.parametrize(
    "target", [Target(ACME.level, "nowhere"), Target(API.level, "acme/nowhere")], ids=["group", "project"]
)
def test_a_place_that_cannot_be_seen_is_one_problem(engine: EngineDriver, target: Target) -> None:
    assert engine.problems(wanted({"level": "watch"}, target)) == [
        f"{target.level}.None: not found, or not visible to ada"
    ]


def test_settings_of_all_levels_are_written_from_the_user_down(engine: EngineDriver) -> None:
    assert engine.step(*(wanted({"level": "disabled"}, target) for target in URLS)) == [
        f'PUT {url} {{"level": "disabled"}}' for url in URLS.values()
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("address", [None, "ada@example.com", "ops@example.com"])
def test_a_plan_for_the_user_that_is_read_again_first_is_not_stale(engine: EngineDriver, address: str | None) -> None:
    put(engine, USER, {"notification_email": "ops@example.com"})
    plan = engine.plan(wanted({"level": "watch", "notification_email": address}, USER))
    assert failures(engine.apply(plan, recheck=True)) == []
