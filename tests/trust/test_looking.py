"""Looking again, at one object among many: by its ID, whatever else became of it, and not by comparing all with all."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import reconciler
from reconciler.document.stored import load_plan, save
from reconciler.model.protocols import Json, Request
from reconciler.sandbox import Sandbox
from tests.building import KINDS, section
from tests.engine_driver import EngineDriver, failures
from tests.render.samples import saved_plan, tree
from tests.states import a_small_service
from tests.trust.test_settling import applied

pytestmark = pytest.mark.untraced

PACKAGE = Path(reconciler.__file__).parent / "engine"
COMPARING = {str(file) for folder in (PACKAGE / "compare", PACKAGE / "apply") for file in folder.glob("*.py")}
"""The modules that plan, apply and compare."""


def test_a_deletion_that_the_service_drops_is_not_done_because_the_object_has_changed(sandbox: Sandbox) -> None:
    def meddle(_request: Request, _send: Callable[[], Json]) -> Json:
        state = sandbox.state()
        state["projects"][0]["milestones"][0]["description"] = "changed"
        sandbox.replace_state(state)
        return None

    _, told = applied(sandbox, meddle, section("milestones", {"a": None}), milestones=[{"title": "a"}])
    assert told == ["dropped by the service: milestone a: it still exists"]


def test_a_deletion_is_done_though_somebody_else_has_made_another_of_that_name(sandbox: Sandbox) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        state = sandbox.state()
        state["projects"][0]["milestones"].append({"id": 7, "title": "a"})
        sandbox.replace_state(state)
        return answer

    _, told = applied(sandbox, meddle, section("milestones", {"a": None}), milestones=[{"title": "a"}])
    assert told == []


def test_a_rename_that_the_service_drops_is_named(sandbox: Sandbox) -> None:
    def meddle(_request: Request, _send: Callable[[], Json]) -> Json:
        return {}

    wanted = section("milestones", {"b": {"renamed_from": "a", "description": "d"}})
    _, told = applied(sandbox, meddle, wanted, milestones=[{"title": "a"}])
    assert told == ["dropped by the service: milestone b: the service kept its own name, description"]


def test_what_was_deleted_after_its_change_is_not_there(sandbox: Sandbox) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        state = sandbox.state()
        state["projects"][0]["milestones"] = []
        sandbox.replace_state(state)
        return answer

    wanted = section("milestones", {"a": {"description": "d"}})
    _, told = applied(sandbox, meddle, wanted, milestones=[{"title": "a"}])
    assert told == ["dropped by the service: milestone a: it does not exist"]


def test_what_was_deleted_and_made_anew_since_the_plan_is_another_object(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        put(sandbox, {"id": 1, "title": "a"})
        plan = engine.plan(section("milestones", {"a": {"description": "d"}}))
        put(sandbox, {"id": 2, "title": "a"})
        assert failures(engine.apply(plan, recheck=True)) == [
            "stale: milestone a: it has changed since the plan was made: ID: 1 -> 2"
        ]


MANY: dict[str, Callable[[int], tuple[list[Json], dict[str, Json]]]] = {
    "updates": lambda many: (
        [{"title": f"m{number}"} for number in range(many)],
        {f"m{number}": {"description": "new"} for number in range(many)},
    ),
    "deletions": lambda many: (
        [{"title": f"m{number}"} for number in range(many)],
        {f"m{number}": None for number in range(many)},
    ),
    "creations": lambda many: ([], {f"m{number}": {} for number in range(many)}),
}


@pytest.mark.parametrize("sort", MANY)
def test_twice_the_changes_in_one_section_cost_twice_the_work(sandbox: Sandbox, sort: str) -> None:
    small, large = (calls_of_an_apply(sandbox, *MANY[sort](many)) for many in (20, 80))
    assert 3 * small < large < 4.4 * small


def calls_of_an_apply(sandbox: Sandbox, live: list[Json], wanted: dict[str, Json]) -> int:
    """Apply a saved plan and return how many of the functions that compare and match were called meanwhile."""
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename in COMPARING

    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        put(sandbox, *live)
        saved = save(saved_plan(engine.plan(section("milestones", wanted))))
        threading.setprofile(count)
        sys.setprofile(count)
        try:
            outcomes = engine.apply(tree(load_plan(saved, KINDS)), recheck=True)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        assert failures(outcomes) == []
        assert len(engine.writes()) == len(wanted)
    return calls


def put(sandbox: Sandbox, *milestones: Json) -> None:
    """Let the project have these milestones and no others."""
    state = sandbox.state()
    state["projects"][0]["milestones"] = list(milestones)
    sandbox.replace_state(state)
