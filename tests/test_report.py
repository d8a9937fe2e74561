"""The report of an apply: what became of each change, kept and read again."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from reconciler.document.document import RunDocument
from reconciler.document.numbers import summary_of
from reconciler.document.plans import make_report
from reconciler.document.stored import load_report, save
from reconciler.engine.compare.planner import make_plan
from reconciler.errors import PlanRefused
from reconciler.model.item import RESULT_UNKNOWN, Status
from reconciler.model.plan import Plan
from reconciler.model.state import Unreadable
from reconciler.reports import render_report
from tests.building import KINDS, desired, live, section, target_plan
from tests.render.plans import patiently, reports
from tests.render.samples import API, LIB, NOON, Traffic, done, sample, saved_plan, spoilt

NOTHING_COUNTED = dict.fromkeys(
    (
        *("created", "updated", "deleted", "failed", "stale", "skipped", "dropped"),
        *("loosens", "tightens", "problems", "unmanaged", "not_applicable", "excepted"),
    ),
    0,
)


@pytest.mark.untraced
@patiently
@given(reports())
def test_what_is_saved_is_what_is_read(report: RunDocument) -> None:
    assert load_report(save(report), KINDS) == report


def test_a_saved_report_tells_results_and_not_intentions() -> None:
    content = json.loads(save(done((Status.DROPPED, "the service kept its own"), (Status.FAILED, "400"))))
    planned = json.loads(save(sample()))
    assert len(content.pop("checksum")) == 64
    assert content.pop("targets") == planned["targets"]
    items = content.pop("items")
    assert content == {
        "format": "reconciler.report/v4",
        "service": "https://git.example.com/api/v4",
        "created_at": "2026-12-01T12:00:00Z",
        "tool_version": "0.1.0",
        "manifests_digest": "5f2c",
        "commit": None,
        "requests_made": 8,
        "shard": None,
        "narrowed": None,
        "since": "",
        "restored_since": None,
        "reverts": "",
        "limits": {"allow_deletes": None, "max_changes": None, "max_loosening": None},
        "archived": 0,
        "inventory": None,
        "applies": None,
        "started_at": "2026-12-01T12:00:00Z",
        "finished_at": "2026-12-01T12:01:00Z",
        "requests": {"reads": 11, "writes": 4, "waited": {}},
        "canary": None,
        "refusals": [],
        "summary": NOTHING_COUNTED
        | {"updated": 1, "deleted": 1, "failed": 1, "dropped": 1, "problems": 1, "unmanaged": 3},
    }
    statuses = iter([("dropped", "the service kept its own"), ("failed", "400"), ("done", ""), ("done", "")])
    for item in planned["items"]:
        if "action" in item:
            item["outcome"] = dict(zip(("status", "reason"), next(statuses), strict=True))
    assert items == planned["items"]


def test_a_report_of_nothing_is_complete() -> None:
    report = make_report(saved_plan(Plan(())), [], NOON, Traffic(0, 0))
    assert report.complete
    assert summary_of(report) == NOTHING_COUNTED


def test_a_report_ends_now_unless_told_otherwise() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    report = make_report(sample(), [], NOON, Traffic(0, 0))
    assert before <= report.time <= datetime.now(UTC)


def test_changes_whose_outcome_never_came_are_failed() -> None:
    report = make_report(sample(), [], NOON, Traffic(3, 1))
    assert [(each.status, each.reason) for each in report.outcomes] == [(Status.FAILED, RESULT_UNKNOWN)] * 4
    assert summary_of(report) == NOTHING_COUNTED | {"failed": 4, "problems": 1, "unmanaged": 3}


def test_a_target_without_changes_is_reported_only_for_its_problems() -> None:
    wanted = desired(section("milestones", {"x": {}}, API), section("milestones", {}, LIB))
    found = live({(API, "milestones", "milestones"): Unreadable("403"), (LIB, "milestones", "milestones"): []})
    saved = saved_plan(make_plan(wanted, found, KINDS))
    report = make_report(saved, [], NOON, Traffic(2, 0))
    assert report.eventful == {API}
    assert [*report.findings("problem")] == [*saved.findings("problem")]
    assert not report.complete


def test_problems_are_those_of_the_plan_that_was_carried_out() -> None:
    planned_again = target_plan(API, ())
    assert [*make_report(sample(), [planned_again], NOON, Traffic(2, 0)).findings("problem")] == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda report: report["summary"].update(failed=0), "summary.failed should be 1"),
        (
            lambda report: report["items"][0]["outcome"].update(status="lost"),
            "items[0].outcome.status input should be 'done', 'failed', 'stale', 'skipped' or 'dropped'",
        ),
    ],
)
def test_a_damaged_report_is_refused(spoil: Callable[[dict[str, Any]], object], words: str) -> None:
    text = spoilt(save(done((Status.FAILED, "400"))), spoil)
    with pytest.raises(PlanRefused) as refused:
        load_report(text, KINDS)
    assert str(refused.value) == f"the apply report is damaged: {words}"


def test_an_edited_report_is_refused() -> None:
    text = save(done((Status.FAILED, "400"))).replace('"failed": 1', '"failed": 0')
    with pytest.raises(PlanRefused) as refused:
        load_report(text, KINDS)
    assert str(refused.value) == (
        "the apply report was edited after it was saved: its checksum does not match; make it again"
    )


def test_a_plan_is_no_report() -> None:
    with pytest.raises(PlanRefused) as refused:
        load_report(save(sample()), KINDS)
    assert str(refused.value) == (
        "not an apply report but a saved plan: its format is reconciler.plan/v4; apply --report json=FILE writes one"
    )


def test_a_report_tells_what_the_run_waited_for_and_how_long() -> None:
    report = make_report(sample(), [], NOON, Traffic(3, 1, {"rate limit of the service": 61.26, "own rate": 0.04}))
    assert report.made.waited == {"own rate": 0.0, "rate limit of the service": 61.3}
    assert load_report(save(report), KINDS) == report
    last = render_report(report).splitlines()[-1]
    assert last.endswith("4 requests made. Waited 61.3 s for rate limit of the service.")
