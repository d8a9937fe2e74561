"""Formats: found by their files, and imported only when asked for."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

from reconciler.document.stored import load_plan, load_report, save
from reconciler.document.style import Style
from reconciler.errors import LocatedDiagnostic, UsageError
from reconciler.model.item import Status
from reconciler.reports import FORMATS, render_plan, render_report, render_validation
from tests.building import KINDS
from tests.render.samples import done, sample


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_for_something(name: str) -> None:
    renderer = import_module("reconciler.text" if name == "text" else f"reconciler.reports.{name.replace('-', '_')}")
    assert {"plan", "report", "validation", "diagnosis"} & set(vars(renderer))


def test_knowing_the_formats_imports_none_of_them() -> None:
    code = "import sys, reconciler.reports; print(sorted(set(sys.modules) & {'pydantic', 'deepdiff', 'reconciler.model.plan'}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "[]\n"


@pytest.mark.untraced
def test_deepdiff_is_not_imported_for_plain_values() -> None:
    code = (
        "import sys; from tests.render.samples import sample; from reconciler.reports import Style, render_plan;"
        "render_plan(sample(), style=Style(verbose=True)); print('deepdiff' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "False\n"


def test_an_unknown_format_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(UsageError) as mistaken:
        render_plan(sample(), "pdf")
    assert str(mistaken.value) == f"no format pdf; there are {', '.join(FORMATS)}"


def test_a_format_that_is_not_for_reports_says_so() -> None:
    with pytest.raises(UsageError) as mistaken:
        render_report(done(), "terraform-report")
    assert str(mistaken.value) == (
        "terraform-report is a format of plan and drift, not of apply and revert, which has html, json, junit, "
        "markdown, prometheus, text"
    )


def test_the_json_of_a_plan_is_the_saved_plan() -> None:
    text = render_plan(sample(), "json", style=Style(colour=True, verbose=True, quiet=True))
    assert text == save(sample())
    assert load_plan(text, KINDS) == sample()


def test_the_json_of_a_report_is_the_saved_report() -> None:
    report = done((Status.FAILED, "400"))
    text = render_report(report, "json")
    assert text == save(report)
    assert load_report(text, KINDS) == report


def test_the_json_of_a_validation_lists_the_faults() -> None:
    faults = [
        LocatedDiagnostic("a.yaml", 3, 5, "unknown key", "x: 1"),
        LocatedDiagnostic("b.yaml", 0, 0, "is empty", severity="warning"),
    ]
    assert json.loads(render_validation(faults, {"user": 1, "project": 2, "set": 1}, "json")) == {
        "format": "reconciler.validation/v1",
        "valid": False,
        "faults": [
            {"path": "a.yaml", "line": 3, "column": 5, "severity": "error", "message": "unknown key"},
            {"path": "b.yaml", "line": 0, "column": 0, "severity": "warning", "message": "is empty"},
        ],
        "documents": {"user": 1, "project": 2, "set": 1},
        "targets": 3,
    }
    assert json.loads(render_validation(faults[1:], {}, "json"))["valid"] is True


def test_the_terraform_report_is_three_numbers() -> None:
    assert render_plan(sample(), "terraform-report") == '{"create": 1, "update": 2, "delete": 1}\n'
