"""The matrix of targets by sections: what plans and reports know of each."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from reconciler.document.compare import fingerprints_of, new_in
from reconciler.document.document import RunDocument
from reconciler.document.merge import merge_reports
from reconciler.document.plans import make_report
from reconciler.document.stored import load_plan, load_report, save
from reconciler.engine.compare.obstacles import with_obstacles
from reconciler.engine.compare.planner import make_plan
from reconciler.errors import PlanRefused
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Outcome, Status, not_applicable_at
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.shards import Shard
from reconciler.model.state import DesiredState, DesiredTarget, Section, Unreadable
from reconciler.model.targets import Level, Target
from reconciler.reports.coverage import Matrix, Row, State, matrix
from tests.building import KINDS, SectionPlan, live, section, target_plan
from tests.render.samples import MINUTE, NOON, Traffic, about, milestone, saved_plan, spoilt, tree

GROUP = Target(Level.GROUP, "acme")
API, DOCS, GONE, LIB, TWIN = (Target(Level.PROJECT, f"acme/{name}") for name in ("api", "docs", "gone", "lib", "twin"))
NUMBERED = Target(Level.PROJECT, 12)

RULES = "container_repository_protection_rules"


def plan() -> RunDocument:
    """Return a plan with a cell in each state: two targets are problems as a whole, one of them by its ID."""
    declared = {
        GROUP: [section("approval_settings", {"allow_author_approval": True}, GROUP)],
        API: [
            section("milestones", {"a": {"state": "closed"}}, API, prune=True),
            section("trigger_tokens", {"ci": {}}, API),
            section(RULES, {"acme/api/*": {}}, API),
        ],
        DOCS: [section("milestones", {"a": None}, DOCS), section("trigger_tokens", {}, DOCS)],
        GONE: [section("milestones", {"a": {}}, GONE), section("trigger_tokens", {}, GONE)],
        LIB: [section("milestones", {"a": {}}, LIB)],
        TWIN: [section("milestones", {"a": {}}, TWIN)],
        NUMBERED: [section("milestones", {"a": {}}, NUMBERED)],
    }
    excepted = DeclaredException("milestones", date(2100, 1, 1), "later")
    entry = {"value": True, "locked": False, "inherited_from": None}
    found = live(
        {
            (GROUP, "approval_settings", "approval_settings"): {"allow_author_approval": entry},
            (API, "milestones", "milestones"): [milestone(1, "a"), milestone(2, "b")],
            (API, "trigger_tokens", "trigger_tokens"): Unreadable("403"),
            (API, RULES, RULES): [
                {"id": 1, "repository_path_pattern": "acme/api/*"},
                {"id": 2, "repository_path_pattern": "acme/api/x"},
            ],
            (DOCS, "milestones", "milestones"): [milestone(3, "a")],
            (DOCS, "trigger_tokens", "trigger_tokens"): [],
            (GONE, "milestones", "milestones"): Unreadable("404", absent=True),
            (GONE, "trigger_tokens", "trigger_tokens"): Unreadable("404", absent=True),
            (LIB, "milestones", "milestones"): [milestone(4, "a"), milestone(5, "b")],
            (TWIN, "milestones", "milestones"): [],
            (NUMBERED, "milestones", "milestones"): [milestone(6, "a")],
        }
    )

    def desired(target: Target, sections: list[Section]) -> DesiredTarget:
        path = "acme/numbered" if target is NUMBERED else None
        return DesiredTarget(target, tuple(sections), path=path, exceptions=(excepted,) * (target is DOCS))

    state = DesiredState(tuple(desired(*each) for each in declared.items()), "5f2c")
    made = make_plan(state, found, KINDS)
    twin = Obstacle(TWIN.address, "is the same project as another", effect="read only")
    made = with_obstacles(made, [twin], KINDS)
    archived = not_applicable_at(LIB, "trigger_tokens", "the project is archived")
    return saved_plan(made.with_findings([archived]))


def applied(saved: RunDocument, *statuses: Status) -> RunDocument:
    """Return the report of the plan: its changes, in their order, became so."""
    left = iter(statuses)
    outcomes = [
        target.with_outcomes(Outcome(change, next(left)) for change in target.changes)
        for target in tree(saved).targets
        if any(target.changes)
    ]
    return make_report(saved, outcomes, NOON, Traffic(9, 2), NOON + MINUTE)


def shown(found: Matrix) -> dict[str, list[str]]:
    return {str(row.target): [str(state) for state in row.states] for row in found.rows}


SECTIONS = ("approval_settings", RULES, "milestones", "trigger_tokens")

PLANNED = {
    "group acme": ["in order", "not declared", "not declared", "not declared"],
    "project acme/api": ["not declared", "unmanaged", "deletions", "problem"],
    "project acme/docs": ["not declared", "not declared", "excepted", "in order"],
    "project acme/gone": ["not declared", "not declared", "problem", "problem"],
    "project acme/lib": ["not declared", "not declared", "unmanaged", "not applicable"],
    "project acme/twin": ["not declared", "not declared", "problem", "not declared"],
    "project 12": ["not declared", "not declared", "in order", "not declared"],
}


def test_a_plan_knows_the_state_of_each_section_of_each_target() -> None:
    saved = plan()
    found = matrix(load_plan(save(saved), KINDS))
    assert found.sections == SECTIONS
    assert shown(found) == PLANNED
    assert [row.path for row in found.rows if row.path] == ["acme/numbered"]
    assert found.rows[0] == Row(GROUP, (State.IN_ORDER, *[State.NOT_DECLARED] * 3))


def test_equal_rows_share_their_states() -> None:
    targets = tuple(target_plan(each, (SectionPlan("milestones"),)) for each in (API, LIB))
    found = matrix(saved_plan(Plan(targets)))
    assert found.rows[0].states is found.rows[1].states


def test_after_an_apply_a_section_is_as_bad_as_the_worst_that_became_of_it() -> None:
    saved = plan()
    states = {}
    for status in Status:
        report = load_report(save(applied(saved, Status.DONE, status)), KINDS)
        found = shown(matrix(report))
        states[str(status)] = found["project acme/api"][2]
        assert {**found, "project acme/api": PLANNED["project acme/api"]} == PLANNED
    assert states == {
        "done": "in order",
        "failed": "problem",
        "stale": "changes",
        "skipped": "changes",
        "dropped": "problem",
    }


def test_a_target_of_which_all_is_a_problem_has_it_in_all_sections_that_it_declares() -> None:
    def as_undeclared(content: dict[str, Any]) -> None:
        (gone,) = (each for each in content["targets"] if each["ref"] == "acme/gone")
        gone["sections"] = {"": 0}

    old = load_plan(spoilt(save(plan()), as_undeclared), KINDS)
    assert shown(matrix(old)) == PLANNED | {"project acme/gone": ["problem"] * 4}


def test_reports_of_shards_are_merged_with_what_was_in_order() -> None:
    saved = plan()
    whole = applied(saved, Status.DONE, Status.DONE)
    halves = [
        applied(replace(about(saved, tree(saved).targets[number - 1 :: 2]), shard=Shard(number, 2)), *[Status.DONE] * 2)
        for number in (1, 2)
    ]
    merged = merge_reports({"1.json": halves[0], "2.json": halves[1]})
    assert merged.commit == whole.commit
    assert [str(seen.target) for seen in merged.targets] == [*PLANNED]
    assert shown(matrix(merged)) == shown(matrix(whole))


def test_a_target_that_is_in_order_in_two_reports_is_refused() -> None:
    done = applied(plan(), Status.DONE, Status.DONE)
    parts = {"one.json": done, "two.json": done}
    with pytest.raises(PlanRefused) as refused:
        merge_reports(parts)
    assert str(refused.value) == "cannot merge: group acme is in one.json and in two.json"


def test_a_damaged_target_that_is_in_order_is_refused() -> None:
    text = save(applied(plan(), Status.DONE, Status.DONE))
    with pytest.raises(PlanRefused) as refused:
        load_report(spoilt(text, lambda content: content["targets"][0].update(ref=None)), KINDS)
    assert str(refused.value) == "damaged: 'group acme' is no target of the level group"


def test_what_a_baseline_has_too_is_still_no_order() -> None:
    saved = plan()
    news = new_in(saved, fingerprints_of(saved))
    assert news.is_empty
    # of what a baseline has too, it is known that it differs, not how
    assert shown(matrix(news)) == {
        name: ["changes" if state == "deletions" else state for state in states] for name, states in PLANNED.items()
    }
