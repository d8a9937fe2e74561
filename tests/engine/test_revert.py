"""The way back from an apply: the state is as it was before, and what others changed since stays and is a problem."""

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from reconciler.apply import TargetOutcome
from reconciler.documents.report import Report, load_report, make_report, save_report
from reconciler.live.read import read_part
from reconciler.model.diff import fields_of
from reconciler.model.plan import Plan
from reconciler.model.resource import Found
from reconciler.model.targets import Level, Target
from reconciler.planning.revert import WayBack
from reconciler.planning.run import draw_plan
from reconciler.sandbox import Sandbox
from tests.building import KINDS, USER
from tests.engine_driver import EngineDriver, failures
from tests.render.samples import saved_plan
from tests.test_fewest_calls import (
    STATES_OF_ALL,
    WANTED_OF_ALL,
    Plain,
    declared,
    found_in,
    service,
    thorough,
    without_both_names,
)
from tests.trust import all_writes


def report_of(engine: EngineDriver, plan: Plan, outcomes: Sequence[TargetOutcome]) -> Report:
    """Return the report of an apply, as it is read from a file."""
    report = make_report(saved_plan(plan), outcomes, datetime.now(UTC), engine.client.traffic)
    return load_report(save_report(report), KINDS)


def planned_back(engine: EngineDriver, report: Report) -> Plan:
    """Return the plan of the way back."""
    engine.sandbox.clear_log()
    way_back = WayBack(report.done, KINDS, "digest")
    return draw_plan(way_back.left, engine.client, KINDS, concurrency=1, make=way_back.plan)


def problems(plan: Plan) -> list[str]:
    """Return the problems of a plan."""
    return [f"{each.address.name or each.address.title}.{each.field}: {each.reason}" for each in plan.problems]


@pytest.fixture(params=[True, False], ids=["verified", "not verified"])
def verify(request: pytest.FixtureRequest) -> bool:
    """Whether the apply read again what it had changed."""
    return bool(request.param)


def shown(engine: EngineDriver, state: dict[str, Any]) -> list[tuple[str, str, list[Any]]]:
    """Return all that the service shows of all its targets, without the IDs of objects."""
    targets = [Target(Level.INSTANCE), USER]
    targets += [Target(Level(level), each["path"]) for level in ("group", "project") for each in state[f"{level}s"]]
    found = []
    for target in targets:
        for kind in KINDS.values():
            for part in kind.parts if target.level in kind.models else ():
                live = read_part(engine.client, part, target, {})
                objects = live if isinstance(live, tuple) else (live,) if isinstance(live, Found) else ()
                fields = [(sorted(map(str, each.names)), fields_of(each.resource)) for each in objects]
                found.append((str(target), part.name, sorted(fields, key=str)))
    return found


def visible(state: dict[int, Plain]) -> dict[int, Plain]:
    """Return a state without the events that the service does not show."""
    for project in state.values():
        if project["notification_settings"]["level"] != "custom":
            project["notification_settings"]["events"] = None
    return state


def test_all_that_the_examples_change_is_changed_back(sandbox: Sandbox, dialect: str, verify: bool) -> None:
    with EngineDriver(sandbox, all_writes.service(dialect)) as engine:
        before = shown(engine, sandbox.state())
        plan = engine.plan(*all_writes.everything())
        outcomes = engine.apply(plan, verify=verify)
        assert failures(outcomes) == []
        after = shown(engine, sandbox.state())
        report = report_of(engine, plan, outcomes)
        back = planned_back(engine, report)
        assert problems(back) == [
            "00u7.None: does not exist, and this API cannot create one: provision the user with the identity provider, "
            "or leave the identity out"
        ]
        undone = engine.apply(back)
        assert failures(undone) == []
        now = shown(engine, sandbox.state())
        (lost,) = [each for each in before if each not in now]
        assert lost[:2] == ("group acme", "scim_identities")
        again = planned_back(engine, report)
        assert (list(again.changes), problems(again)) == ([], problems(back))
        forth = planned_back(engine, report_of(engine, back, undone))
        assert problems(forth) == []
        assert failures(engine.apply(forth)) == []
        assert shown(engine, sandbox.state()) == after


@thorough
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL)
def test_whatever_an_apply_does_is_undone_and_done_again(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain]
) -> None:
    wanted = copy.deepcopy(wanted)
    without_both_names(live, wanted)
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        before = visible(found_in(sandbox.state()))
        plan = engine.plan(*declared(wanted))
        outcomes = engine.apply(plan)
        after = visible(found_in(sandbox.state()))
        report = report_of(engine, plan, outcomes)
        back = planned_back(engine, report)
        assert problems(back) == []
        undone = engine.apply(back)
        assert failures(undone) == []
        assert visible(found_in(sandbox.state())) == before
        again = planned_back(engine, report)
        assert (list(again.changes), problems(again)) == ([], [])
        forth = planned_back(engine, report_of(engine, back, undone))
        assert problems(forth) == []
        assert failures(engine.apply(forth)) == []
        assert visible(found_in(sandbox.state())) == after
