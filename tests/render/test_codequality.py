"""The code quality report, as merge requests read it."""

import json
from dataclasses import replace
from typing import Any

from reconciler.errors import LocatedDiagnostic
from reconciler.reports import render_plan, render_validation
from tests.render.samples import about, sample, tree

UNKNOWN = LocatedDiagnostic("./manifests/a.yaml", 3, 5, "unknown key `enabeld`", "    enabeld: true")
EMPTY = LocatedDiagnostic("b.yaml", 0, 0, "is empty\x1b", severity="warning")


def test_each_fault_is_an_issue_at_its_line() -> None:
    assert json.loads(render_validation([UNKNOWN, EMPTY], {}, "codequality")) == [
        {
            "description": "unknown key `enabeld`",
            "check_name": "reconciler-error",
            "fingerprint": "40a06898abfcad205697c8c8dd6355633c4ad28667d7ca4a591455bbc6f51ef5",
            "severity": "critical",
            "location": {"path": "manifests/a.yaml", "lines": {"begin": 3}},
        },
        {
            "description": "is empty\\u001b",
            "check_name": "reconciler-warning",
            "fingerprint": "695ec4c9e118c80f32b85b590e32f95917ddd8e0c33530f911f3c72438155082",
            "severity": "minor",
            "location": {"path": "b.yaml", "lines": {"begin": 1}},
        },
    ]


def test_valid_manifests_have_no_issues() -> None:
    assert render_validation([], {}, "codequality") == "[]\n"


def fingerprints(*faults: LocatedDiagnostic) -> list[str]:
    return [issue["fingerprint"] for issue in json.loads(render_validation(faults, {}, "codequality"))]


def test_a_fault_that_moves_stays_the_same_issue() -> None:
    assert fingerprints(UNKNOWN) == fingerprints(replace(UNKNOWN, line=7, path="manifests//a.yaml"))


def test_a_fault_stays_the_same_issue_when_what_it_speaks_of_moves() -> None:
    twice = replace(UNKNOWN, message="group acme is already declared at b.yaml:4:18")
    assert fingerprints(twice) == fingerprints(replace(twice, message="group acme is already declared at b.yaml:9:18"))


def test_faults_that_read_alike_are_issues_of_their_own() -> None:
    alike = [UNKNOWN, replace(UNKNOWN, line=9), replace(UNKNOWN, path="c.yaml"), replace(UNKNOWN, message="odd")]
    assert len(set(fingerprints(*alike))) == 4


def test_a_problem_of_a_plan_is_an_issue_where_it_is_asked_for() -> None:
    def of(origin: str) -> list[Any]:
        saved = sample()
        targets = tuple(target.with_origins(lambda *_: origin) for target in tree(saved).targets)
        complaints: list[Any] = json.loads(render_plan(about(saved, targets), "codequality"))
        return complaints

    (issue,) = of("manifests/a:b.yaml:14")
    assert issue | {"fingerprint": ""} == {
        "description": "project acme/payments/api: approval settings.retain_approvals_on_push: locked by group acme; "
        "unlock it there or leave the field out",
        "check_name": "reconciler-error",
        "fingerprint": "",
        "severity": "critical",
        "location": {"path": "manifests/a:b.yaml", "lines": {"begin": 14}},
    }
    assert of("template.yaml.j2")[0]["location"] == {"path": "template.yaml.j2", "lines": {"begin": 1}}
