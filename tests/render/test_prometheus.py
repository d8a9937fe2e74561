"""Metrics, as a strict reader of the text format takes them."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.document.document import Requests, RunDocument
from reconciler.document.numbers import totals
from reconciler.model.item import ACTIONS, Create, Outcome, Status, problem_at
from reconciler.model.plan import Plan
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import render_plan, render_report
from tests.building import SectionPlan, target_plan
from tests.render.many import carried_out, many
from tests.render.plans import patiently, reports, saved_plans
from tests.render.samples import API, NOON, about, done, sample, saved_plan

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

LABEL = r'[a-z]+="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d+(?:\.\d+)?(?:e[-+]\d+)?)")


def read(text: str) -> Series:
    """Read metrics strictly: HELP, then TYPE, then samples in order, no series twice, nothing else."""
    series: Series = {}
    assert text.endswith("\n")
    lines = iter(text[:-1].split("\n"))
    families: list[str] = []
    for line in lines:
        if line.startswith("# HELP "):
            _, _, name, _help = line.split(" ", 3)
            assert name not in families
            families.append(name)
            assert next(lines) == f"# TYPE {name} gauge"
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        name, labels, number = found.groups()
        assert name == families[-1]
        key = name, tuple(pairs(labels or ""))
        assert key not in series
        series[key] = float(number)
    return series


def pairs(labels: str) -> Iterator[tuple[str, str]]:
    for name, value in re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels):
        yield name, re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], value)


def test_a_plan_in_metrics() -> None:
    assert render_plan(sample(), "prometheus") == (
        """\
# HELP reconciler_plan_changes Objects that differ from the manifests.
# TYPE reconciler_plan_changes gauge
reconciler_plan_changes{level="project",group="acme",section="approval_settings",action="create"} 0
reconciler_plan_changes{level="project",group="acme",section="approval_settings",action="delete"} 0
reconciler_plan_changes{level="project",group="acme",section="approval_settings",action="update"} 1
reconciler_plan_changes{level="project",group="acme",section="milestones",action="create"} 1
reconciler_plan_changes{level="project",group="acme",section="milestones",action="delete"} 0
reconciler_plan_changes{level="project",group="acme",section="milestones",action="update"} 1
reconciler_plan_changes{level="project",group="acme",section="trigger_tokens",action="create"} 0
reconciler_plan_changes{level="project",group="acme",section="trigger_tokens",action="delete"} 1
reconciler_plan_changes{level="project",group="acme",section="trigger_tokens",action="update"} 0
# HELP reconciler_plan_protection_changes Differences by their effect on protection; loosened and tightened: by somebody, on the service.
# TYPE reconciler_plan_protection_changes gauge
reconciler_plan_protection_changes{level="project",group="acme",section="approval_settings",effect="loosened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="approval_settings",effect="loosens"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="approval_settings",effect="tightened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="approval_settings",effect="tightens"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="milestones",effect="loosened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="milestones",effect="loosens"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="milestones",effect="tightened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="milestones",effect="tightens"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="trigger_tokens",effect="loosened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="trigger_tokens",effect="loosens"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="trigger_tokens",effect="tightened"} 0
reconciler_plan_protection_changes{level="project",group="acme",section="trigger_tokens",effect="tightens"} 0
# HELP reconciler_plan_problems Declared settings that cannot be planned.
# TYPE reconciler_plan_problems gauge
reconciler_plan_problems{level="project",group="acme",section="approval_settings"} 1
reconciler_plan_problems{level="project",group="acme",section="milestones"} 0
reconciler_plan_problems{level="project",group="acme",section="trigger_tokens"} 0
# HELP reconciler_plan_unmanaged_objects Live objects no manifest mentions.
# TYPE reconciler_plan_unmanaged_objects gauge
reconciler_plan_unmanaged_objects{level="project",group="acme",section="approval_settings"} 0
reconciler_plan_unmanaged_objects{level="project",group="acme",section="milestones"} 3
reconciler_plan_unmanaged_objects{level="project",group="acme",section="trigger_tokens"} 0
# HELP reconciler_plan_excepted_changes Changes that exceptions hold back.
# TYPE reconciler_plan_excepted_changes gauge
reconciler_plan_excepted_changes{level="project",group="acme",section="approval_settings"} 0
reconciler_plan_excepted_changes{level="project",group="acme",section="milestones"} 0
reconciler_plan_excepted_changes{level="project",group="acme",section="trigger_tokens"} 0
# HELP reconciler_plan_not_applicable_sections Sections left out because their target cannot have them.
# TYPE reconciler_plan_not_applicable_sections gauge
reconciler_plan_not_applicable_sections{level="project",group="acme",section="approval_settings"} 0
reconciler_plan_not_applicable_sections{level="project",group="acme",section="milestones"} 0
reconciler_plan_not_applicable_sections{level="project",group="acme",section="trigger_tokens"} 0
# HELP reconciler_plan_exceptions Exceptions by state; expiring ones end within two weeks, and are active too.
# TYPE reconciler_plan_exceptions gauge
reconciler_plan_exceptions{level="project",group="acme",state="active"} 0
reconciler_plan_exceptions{level="project",group="acme",state="expired"} 0
reconciler_plan_exceptions{level="project",group="acme",state="expiring"} 0
# HELP reconciler_plan_refusals Reasons why apply will refuse the plan.
# TYPE reconciler_plan_refusals gauge
reconciler_plan_refusals 0
# HELP reconciler_plan_targets Targets that were planned.
# TYPE reconciler_plan_targets gauge
reconciler_plan_targets{level="project",group="acme"} 2
# HELP reconciler_plan_requests_to_apply Writes needed for the changes.
# TYPE reconciler_plan_requests_to_apply gauge
reconciler_plan_requests_to_apply 4
# HELP reconciler_plan_requests_made Reads made to plan.
# TYPE reconciler_plan_requests_made gauge
reconciler_plan_requests_made 8
# HELP reconciler_plan_timestamp_seconds When it was made, Unix time.
# TYPE reconciler_plan_timestamp_seconds gauge
reconciler_plan_timestamp_seconds 1796126400
# HELP reconciler_plan_success 1 if there are no problems and nothing failed.
# TYPE reconciler_plan_success gauge
reconciler_plan_success 0
# HELP reconciler_plan_last_success_timestamp_seconds When a run last succeeded, Unix time; 0 if this run did not: use max_over_time().
# TYPE reconciler_plan_last_success_timestamp_seconds gauge
reconciler_plan_last_success_timestamp_seconds 0
"""
    )


def test_an_apply_in_metrics() -> None:
    outcomes = (Outcome(next(sample().changes), Status.DONE),)
    target = target_plan(API, (SectionPlan("approval_settings", 1, outcomes=outcomes),))
    report = replace(about(done(), [target]), requests=Requests(3, 1, {"rate": 1.5, "the service": 2.0}))
    assert render_report(report, "prometheus") == (
        """\
# HELP reconciler_apply_outcomes Changes by what became of them.
# TYPE reconciler_apply_outcomes gauge
reconciler_apply_outcomes{level="project",group="acme",section="approval_settings",status="done"} 1
reconciler_apply_outcomes{level="project",group="acme",section="approval_settings",status="dropped"} 0
reconciler_apply_outcomes{level="project",group="acme",section="approval_settings",status="failed"} 0
reconciler_apply_outcomes{level="project",group="acme",section="approval_settings",status="skipped"} 0
reconciler_apply_outcomes{level="project",group="acme",section="approval_settings",status="stale"} 0
# HELP reconciler_apply_problems Declared settings that could not be planned.
# TYPE reconciler_apply_problems gauge
reconciler_apply_problems{level="project",group="acme",section="approval_settings"} 0
# HELP reconciler_apply_requests_made Requests made by the apply.
# TYPE reconciler_apply_requests_made gauge
reconciler_apply_requests_made{kind="read"} 3
reconciler_apply_requests_made{kind="write"} 1
# HELP reconciler_apply_waited_seconds How long the apply waited, by reason.
# TYPE reconciler_apply_waited_seconds gauge
reconciler_apply_waited_seconds{reason="rate"} 1.5
reconciler_apply_waited_seconds{reason="the service"} 2
# HELP reconciler_apply_duration_seconds How long the apply took.
# TYPE reconciler_apply_duration_seconds gauge
reconciler_apply_duration_seconds 60
# HELP reconciler_apply_timestamp_seconds When it was made, Unix time.
# TYPE reconciler_apply_timestamp_seconds gauge
reconciler_apply_timestamp_seconds 1796126460
# HELP reconciler_apply_success 1 if there are no problems and nothing failed.
# TYPE reconciler_apply_success gauge
reconciler_apply_success 1
# HELP reconciler_apply_last_success_timestamp_seconds When a run last succeeded, Unix time; 0 if this run did not: use max_over_time().
# TYPE reconciler_apply_last_success_timestamp_seconds gauge
reconciler_apply_last_success_timestamp_seconds 1796126460
"""
    )


def test_drift_without_problems_is_a_success_of_the_plan() -> None:
    series = read(render_plan(many(10), "prometheus"))
    assert series["reconciler_plan_success", ()] == 1
    assert series["reconciler_plan_last_success_timestamp_seconds", ()] == NOON.timestamp()


def test_what_failed_is_counted_by_its_group_and_section() -> None:
    series = read(render_report(carried_out(many(100)), "prometheus"))
    failed = {labels: number for (_, labels), number in series.items() if ("status", "failed") in labels and number}
    place = ("level", "project"), ("group", "acme"), ("section", "approval_settings"), ("status", "failed")
    assert (sum(failed.values()), failed[place]) == (10, 4)


@pytest.mark.parametrize(
    ("target", "group"),
    [
        (Target(Level.USER), ""),
        (Target(Level.PROJECT, 12), ""),
        (Target(Level.GROUP, "acme"), "acme"),
        (Target(Level.PROJECT, "acme/payments/api"), "acme"),
    ],
)
def test_the_group_is_the_beginning_of_the_path(target: Target, group: str) -> None:
    series = read(render_plan(saved_plan(Plan((target_plan(target, ()),))), "prometheus"))
    assert series["reconciler_plan_targets", (("level", str(target.level)), ("group", group))] == 1


@patiently
@given(st.text(min_size=1))
@example('a"b\\c\nd\x1b\ud800\u2028')
def test_no_string_breaks_the_format(text: str) -> None:
    target = Target(Level.PROJECT, text)
    address = Address(target, text, text, text, text)
    sections = (
        SectionPlan(text, 1, (Create(address, {text: text}, ()),), (problem_at(address, text, text),)),
        SectionPlan(text + "\x1b", 1, (), (problem_at(address, text),)),
        SectionPlan(text + "\\u001b", 1, (), (problem_at(address, text),)),
    )
    saved = saved_plan(Plan((target_plan(target, sections),)))
    series = read(render_plan(saved, "prometheus"))
    assert total(series, "reconciler_plan_problems") == 3
    assert read(
        render_report(
            replace(carried_out(saved), requests=Requests(1, 1, {text: 1.25, f"{text}\n": 1e-05})), "prometheus"
        )
    )


@pytest.mark.untraced
@patiently
@given(saved_plans(), reports())
def test_the_metrics_add_up(saved: RunDocument, report: RunDocument) -> None:
    series, numbers = read(render_plan(saved, "prometheus")), totals(saved.items)
    assert total(series, "reconciler_plan_changes") == sum(numbers[action] for action in ACTIONS)
    assert total(series, "reconciler_plan_problems") == numbers["problems"]
    assert total(series, "reconciler_plan_unmanaged_objects") == numbers["unmanaged"]
    series = read(render_report(report, "prometheus"))
    assert total(series, "reconciler_apply_outcomes") == sum(1 for _ in report.outcomes)


def total(series: Series, name: str) -> float:
    return sum(number for (each, _), number in series.items() if each == name)
