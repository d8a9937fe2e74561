"""The estimated cost of a run."""

import pytest

from reconciler.doctor import (
    Costs,
    Diagnosis,
    DoctorFinding,
    Estimate,
    Permission,
    SectionState,
    ServiceCheck,
    TargetState,
    Verdict,
    chains_of_apply,
    estimate,
)
from reconciler.document.style import Style
from reconciler.model.plan import Plan
from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from reconciler.reports import render_diagnosis
from tests.building import KINDS, target_plan
from tests.doctor.conftest import Patient


@pytest.mark.parametrize(
    ("chains", "concurrency", "apart", "expected"),
    [
        ([], 8, 0.0, Estimate(0, 0.0)),
        ([1] * 80, 8, 0.0, Estimate(80, 5.0)),
        ([1] * 80, 1, 0.0, Estimate(80, 40.0)),
        ([10, 1, 1], 8, 0.0, Estimate(12, 5.0)),
        ([1] * 80, 8, 0.1, Estimate(80, 8.0)),
        ([10, 1, 1], 8, 0.1, Estimate(12, 5.0)),
    ],
)
def test_time_goes_by_the_longest_chain_the_concurrency_or_the_rate(
    chains: list[int], concurrency: int, apart: float, expected: Estimate
) -> None:
    assert estimate(chains, 0.5, concurrency, apart) == expected


def test_what_depends_on_a_group_is_read_again() -> None:
    target = Target(Level.PROJECT, "acme/api")
    again = Section(target, "approval_settings", {})
    targets = (target_plan(Target(Level.GROUP, "acme"), ()), target_plan(target, ()))
    assert chains_of_apply(Plan(targets, (again,)), KINDS) == [1]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.99, "less than a second"), (1.0, "about 1 second"), (119.4, "about 119 seconds"), (130, "about 2 minutes")],
)
def test_times_are_told_as_people_tell_them(seconds: float, said: str) -> None:
    costs = Costs(Estimate(1000, seconds), Estimate(1, 0.0), changes=1, latency=0.0234, concurrency=8)
    found = Diagnosis(ServiceCheck("https://host.test/api/v4"), costs=costs)
    assert render_diagnosis(found).splitlines()[-1] == (
        f"A plan: 1,000 requests, {said}. Applying it: 1 change by 1 request more, less than a second. "
        "Measured: 23 ms per response, 8 requests at once."
    )


def test_a_rate_that_a_run_sets_itself_is_in_the_estimate(patient: Patient) -> None:
    patient.project("acme/api", "trigger_tokens: {nightly: {}}, job_token_scope: {enabled: true}")
    done = patient.examine("--rate", "100/1")
    assert "A plan: 2 requests, less than a second. Applying it: 1 change by 3 requests more, less" in done.out


def test_a_narrow_terminal_gets_narrow_lines_and_colour_only_repeats_the_verdict() -> None:
    section = SectionState(
        "milestones", Permission.YES, Permission.NO, "the project is archived", "unarchive it, or leave it out"
    )
    odd = DoctorFinding(Verdict.WARNING, "project", "\x1b[31mred")
    target = TargetState(Target(Level.PROJECT, "acme/api"), "", (odd,), (section,))
    found = Diagnosis(ServiceCheck("https://host.test/api/v4"), targets=(target,))
    assert render_diagnosis(found, style=Style(colour=True, width=70)).splitlines() == [
        "\x1b[1mproject acme/api\x1b[0m",
        "  \x1b[1;33mwarning\x1b[0m  project                                   \\u001b[31mred",
        "  \x1b[1;31merror\x1b[0m    milestones",
        "             read: yes, write: no: the project is archived; unarchive",
        "               it, or leave it out",
        "Doctor: 1 error, 1 warning, 0 unknown.",
    ]
