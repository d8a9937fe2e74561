"""JUnit XML: a target is a test; valid whatever the strings hold."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.document.document import RunDocument
from reconciler.model.item import Create, Status, problem_at
from reconciler.model.plan import Plan
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import render_plan, render_report
from tests.building import SectionPlan, target_plan
from tests.render.many import carried_out, many
from tests.render.plans import patiently, reports, saved_plans
from tests.render.samples import done, sample, saved_plan, tree


def test_each_target_of_a_plan_is_a_test() -> None:
    assert render_plan(sample(), "junit") == (
        """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="1" time="0.000">
  <testsuite name="reconciler plan" tests="2" failures="1" errors="1" time="0.000" timestamp="2026-12-01T12:00:00Z">
    <testcase classname="reconciler.project" name="project acme/payments/api">
      <error message="1 problem" type="error">approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out</error>
      <failure message="4 objects to change, 1 problem" type="failure">update approval settings, allow_author_approval: true -&gt; false
create milestone "2026.12", due_date: 2026-12-31
update milestone "2026.11", renamed from "Nov 2026", state: active -&gt; closed
delete trigger token "legacy-integration"
approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out</failure>
    </testcase>
    <testcase classname="reconciler.project" name="project acme/payments/lib" />
  </testsuite>
</testsuites>
"""
    )


def test_what_is_not_done_is_a_failure() -> None:
    report = done((Status.DROPPED, "the service kept its own level"), (Status.FAILED, ""))
    assert render_report(report, "junit") == (
        """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="1" errors="1" time="60.000">
  <testsuite name="reconciler apply" tests="1" failures="1" errors="1" time="60.000" timestamp="2026-12-01T12:00:00Z">
    <testcase classname="reconciler.project" name="project acme/payments/api">
      <error message="1 problem" type="error">approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out</error>
      <failure message="2 objects not done, 1 problem" type="failure">update approval settings, dropped by the service: the service kept its own level
create milestone "2026.12", failed
approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_a_test_names_the_file_of_its_target() -> None:
    case = read(render_report(carried_out(many(5), 100), "junit")).find(".//testcase")
    assert case is not None
    assert case.attrib["file"] == "manifests/projects.yaml"
    (failure,) = case
    assert failure.attrib["message"] == "1 object not done"


@pytest.mark.untraced
@patiently
@given(st.text(min_size=1))
@example("]]>\x00\x1b[1m\ud800\ufffe\uffff\u202e\r\n</failure>")
def test_no_string_breaks_the_document(text: str) -> None:
    target = Target(Level.PROJECT, text)
    address = Address(target, text, text, text, text)
    section = SectionPlan(text, 1, (Create(address, {text: text}, ()),), (problem_at(address, text, text),))
    document = render_plan(saved_plan(Plan((target_plan(target, (section,), text),))), "junit")
    root = read(document)
    assert [each.tag for each in root.iter()] == ["testsuites", "testsuite", "testcase", "error", "failure"]
    assert root.findtext(".//failure", "").count("\n") == 1


@pytest.mark.untraced
@patiently
@given(saved_plans(), reports())
def test_the_numbers_are_those_of_the_tests(saved: RunDocument, report: RunDocument) -> None:
    assert_counted(render_plan(saved, "junit"), len(tree(saved).targets) + bool(saved.refusals))
    assert_counted(render_report(report, "junit"), len(report.eventful))


def assert_counted(document: str, tests: int) -> None:
    suite = read(document)[0]
    cases = suite.findall("testcase")
    numbers = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")}
    assert numbers == {
        "tests": tests,
        "failures": len([case for case in cases if case.find("failure") is not None]),
        "errors": len([case for case in cases if case.find("error") is not None]),
    }


def read(document: str) -> ET.Element:
    return ET.fromstring(document.encode())  # noqa: S314 - our own document
