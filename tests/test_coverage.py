"""The matrix of targets by sections: what plans and reports know of each."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from reconciler.apply import Outcome, Status
from reconciler.documents.comparison import news_of
from reconciler.documents.coverage import Matrix, Row, State, matrix
from reconciler.documents.ledger import marks
from reconciler.documents.merge import merge_reports
from reconciler.documents.plan_file import SavedPlan, load_plan, save_plan
from reconciler.documents.report import InOrder, Report, load_report, make_report, save_report
from reconciler.errors import PlanRefused
from reconciler.model.exceptions import DeclaredException
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import SectionPlan, TargetPlan
from reconciler.model.state import DesiredState, DesiredTarget, Section, Unreadable
from reconciler.model.targets import Level, Target
from reconciler.planning.obstacles import with_obstacles
from reconciler.planning.planner import make_plan
from reconciler.planning.selection import Shard
from tests.building import KINDS, live, section
from tests.render.samples import EMPTY, MINUTE, NOON, Traffic, milestone, saved_plan, spoilt

GROUP = Target(Level.GROUP, "acme")
API, DOCS, GONE, LIB, TWIN = (Target(Level.PROJECT, f"acme/{name}") for name in ("api", "docs", "gone", "lib", "twin"))
NUMBERED = Target(Level.PROJECT, 12)

RULES = "container_repository_protection_rules"


def plan() -> SavedPlan:
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
    archived = SectionPlan("trigger_tokens", not_applicable="the project is archived")
    targets = (replace(each, sections=(*each.sections, *[archived] * (each.target is LIB))) for each in made.targets)
    return replace(saved_plan(made), targets=tuple(targets))


def applied(saved: SavedPlan, *statuses: Status) -> Report:
    """Return the report of the plan: its changes, in their order, became so."""
    left = iter(statuses)
    outcomes = [
        target.with_outcomes(Outcome(change, next(left)) for change in target.changes)
        for target in saved.targets
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
    found = matrix(load_plan(save_plan(saved), KINDS))
    assert found.sections == SECTIONS
    assert shown(found) == PLANNED
    assert [row.path for row in found.rows if row.path] == ["acme/numbered"]
    assert found.rows[0] == Row(GROUP, (State.IN_ORDER, *[State.NOT_DECLARED] * 3))


def test_equal_rows_share_their_states() -> None:
    found = matrix(replace(EMPTY, targets=tuple(TargetPlan(each, (SectionPlan("milestones"),)) for each in (API, LIB))))
    assert found.rows[0].states is found.rows[1].states


def test_after_an_apply_a_section_is_as_bad_as_the_worst_that_became_of_it() -> None:
    saved = plan()
    states = {}
    for status in Status:
        report = load_report(save_report(applied(saved, Status.DONE, status)), KINDS)
        found = shown(matrix(report))
        states[str(status)] = found["project acme/api"][2]
        assert {**found, "project acme/api": PLANNED["project acme/api"]} == PLANNED
    assert states == {
        "done": "in order",
        "failed": "problem",
        "stale": "changes",
        "skipped": "changes",
        "dropped by the service": "problem",
    }


def test_a_report_holds_what_is_in_order_in_groups() -> None:
    quiet = (SectionPlan("milestones"), SectionPlan("trigger_tokens"))
    targets = [TargetPlan(Target(Level.PROJECT, f"acme/p{number:05}"), quiet) for number in range(5000)]
    report = make_report(replace(EMPTY, targets=tuple(targets)), [], NOON, Traffic(9, 0), NOON)
    assert report.targets == ()
    (group,) = report.in_order
    assert (group.level, group.sections, group.unmanaged, len(group.targets)) == (
        Level.PROJECT,
        ("milestones", "trigger_tokens"),
        (),
        5000,
    )
    text = save_report(report)
    assert len(text) < 30 * 5000
    assert load_report(text, KINDS) == report


def test_documents_of_older_versions_are_read_and_show_what_they_know() -> None:
    saved = plan()
    done = applied(saved, Status.DONE, Status.DONE)
    report = load_report(spoilt(save_report(done), lambda content: content.pop("in_order")), KINDS)
    found = matrix(report)
    assert found.sections == SECTIONS[1:]
    assert [str(row.target.ref) for row in found.rows] == [
        "acme/api",
        "acme/docs",
        "acme/gone",
        "acme/lib",
        "acme/twin",
    ]

    def as_it_was(content: dict[str, Any]) -> None:
        (gone,) = (each for each in content["targets"] if each["ref"] == "acme/gone")
        del gone["sections"][1:]

    old = load_plan(spoilt(save_plan(saved), as_it_was), KINDS)
    assert shown(matrix(old)) == PLANNED | {"project acme/gone": ["problem"] * 4}


def test_reports_of_shards_are_merged_with_what_was_in_order() -> None:
    saved = plan()
    whole = applied(saved, Status.DONE, Status.DONE)
    halves = [
        applied(
            replace(saved, shard=Shard(number, 2), targets=saved.targets[number - 1 :: 2]), Status.DONE, Status.DONE
        )
        for number in (1, 2)
    ]
    merged = merge_reports({"1.json": halves[0], "2.json": halves[1]})
    assert merged.commit == whole.commit
    assert (
        merged.in_order
        == whole.in_order
        == (
            InOrder(Level.GROUP, ("approval_settings",), (), ("acme",)),
            InOrder(Level.PROJECT, ("milestones",), (), (12,)),
        )
    )
    assert shown(matrix(merged)) == shown(matrix(whole))


def test_a_target_that_is_in_order_in_two_reports_is_refused() -> None:
    done = applied(plan(), Status.DONE, Status.DONE)
    parts = {"one.json": replace(done, targets=()), "two.json": replace(done, targets=())}
    with pytest.raises(PlanRefused) as refused:
        merge_reports(parts)
    assert str(refused.value) == "cannot merge: group acme is in one.json and in two.json"


def test_a_damaged_target_that_is_in_order_is_refused() -> None:
    text = save_report(applied(plan(), Status.DONE, Status.DONE))
    with pytest.raises(PlanRefused) as refused:
        load_report(spoilt(text, lambda content: content["in_order"][0].update(targets=[None])), KINDS)
    assert str(refused.value) == "damaged: a target of the level group with the ref None"


def test_what_a_baseline_has_too_is_still_no_order() -> None:
    saved = plan()
    news = news_of(saved, marks(saved.targets))
    assert not any(news.plan.changes)
    assert not any(news.plan.problems)
    # of what a baseline has too, it is known that it differs, not how
    assert shown(matrix(news)) == {
        name: ["changes" if state == "deletions" else state for state in states] for name, states in PLANNED.items()
    }
