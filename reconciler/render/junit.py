"""JUnit XML (`artifacts:reports:junit`): a target is a test, drift is a failure, a problem is an error.

A plan that `apply` will refuse has one test more, which is an error.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report
from reconciler.model.plan import Change, Status, TargetPlan
from reconciler.model.wording import counted
from reconciler.planning.selection import Shard
from reconciler.render import Style
from reconciler.render.wording import details, excepted_subject, excepted_text, label, problem_text, status_text
from reconciler.system.terminal import escaped, escaped_lines

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even as a reference."""


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return a test for each target, which fails if there is something to change."""
    cases = []
    for target in saved.targets:
        failures = [", ".join([_subject(change), *details(change)]) for change in target.changes]
        cases.append(_case(target, failures, "to change"))
        held = [f"{excepted_subject(excepted)}, {excepted_text(excepted)}" for excepted in target.excepted]
        left_out = [
            f"{section.section} is not applicable: {section.not_applicable}" for section in target.not_applicable
        ]
        if held or left_out:
            SubElement(cases[-1], "system-out").text = _valid("\n".join([*held, *left_out]))
    if saved.refusals:
        case = Element("testcase", {"classname": "reconciler.apply", "name": "apply will refuse this plan"})
        _add(case, "error", counted(len(saved.refusals), "reason"), map(escaped, saved.refusals))
        cases.append(case)
    return _document(f"reconciler plan{_of_shard(saved.shard)}", cases, saved.created_at)


def report(done: Report, _style: Style) -> str:
    """Return a test for each target that had changes or problems, which fails if a change is not done."""
    cases = []
    for target in done.targets:
        unfinished = [outcome for outcome in target.outcomes if outcome.status is not Status.DONE]
        failures = [f"{_subject(outcome.change)}, {status_text(outcome)}" for outcome in unfinished]
        cases.append(_case(target, failures, "not done"))
    return _document(
        f"reconciler apply{_of_shard(done.shard)}", cases, done.started_at, done.finished_at - done.started_at
    )


def _subject(change: Change) -> str:
    return f"{change.action} {label(change.address)}"


def _of_shard(shard: Shard | None) -> str:
    return f", shard {shard}" if shard else ""


def _case(target: TargetPlan, failures: list[str], trouble: str) -> Element:
    """Return the test of one target.

    Some readers show only one of a test's failure and errors, mostly the failure: it holds everything.
    """
    name = _valid(str(target.target))
    case = Element("testcase", {"classname": f"reconciler.{target.target.level}", "name": name})
    if target.origin:
        case.set("file", _valid(target.origin.rpartition(":")[0] or target.origin))
    problems = [
        f"{problem_text(problem)}{problem.origin and f' ({escaped(problem.origin)})'}" for problem in target.problems
    ]
    if problems:
        _add(case, "error", counted(len(problems), "problem"), problems)
    if failures:
        also = f", {counted(len(problems), 'problem')}" if problems else ""
        _add(case, "failure", f"{counted(len(failures), 'object')} {trouble}{also}", [*failures, *problems])
    return case


def _add(case: Element, tag: str, message: str, lines: Iterable[str]) -> None:
    SubElement(case, tag, {"message": message, "type": tag}).text = _valid("\n".join(lines))


def _document(name: str, cases: list[Element], at: datetime, duration: timedelta = timedelta()) -> str:
    """Put the tests into a suite with their numbers."""
    numbers = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{duration.total_seconds():.3f}",
    }
    root = Element("testsuites", numbers)
    suite = SubElement(root, "testsuite", {"name": name, **numbers, "timestamp": utc(at)})
    suite.extend(cases)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _valid(text: str) -> str:
    """Return text of one or more lines without what XML cannot hold."""
    return NO_XML.sub(lambda character: f"\\u{ord(character[0]):04x}", escaped_lines(text))
