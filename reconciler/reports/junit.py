"""JUnit XML (`artifacts:reports:junit`): a target is a test, drift is a failure, a problem is an error.

A plan that `apply` will refuse has one test more, which is an error.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reconciler.document.document import RunDocument, is_remark, utc
from reconciler.document.style import Style
from reconciler.document.wording import (
    details,
    excepted_subject,
    object_label,
    predicate,
    problem_text,
    reason_of,
    remark_text,
    status_text,
)
from reconciler.model.item import Change, Finding, Item, Outcome, Status, changes_in
from reconciler.model.plan import Seen
from reconciler.model.shards import Shard
from reconciler.model.wording import advised, counted
from reconciler.system.terminal import escaped, escaped_lines

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even as a reference."""


def plan(saved: RunDocument, _style: Style) -> str:
    """Return a test for each target, which fails if there is something to change."""
    cases, own = [], saved.by_target
    for seen in saved.targets:
        changes = changes_in(own[seen.target])
        failures = [", ".join([_subject(change), *details(change)]) for change in changes]
        cases.append(_case(seen, own[seen.target], failures, "to change"))
        findings = [item for item in own[seen.target] if isinstance(item, Finding)]
        excepted = [f"{excepted_subject(item)}, {reason_of(item)}" for item in findings if item.code == "excepted"]
        not_applicable = [": ".join(predicate(item)) for item in findings if item.code == "not_applicable"]
        _add_output(cases[-1], [*excepted, *not_applicable, *_remarks(own[seen.target])])
    if saved.refusals:
        case = Element("testcase", {"classname": "reconciler.apply", "name": "apply will refuse this plan"})
        _add(case, "error", counted(len(saved.refusals), "reason"), map(escaped, saved.refusals))
        cases.append(case)
    return _document(f"reconciler plan{_of_shard(saved.shard)}", cases, _run_remarks(saved), saved.created_at)


def report(report: RunDocument, _style: Style) -> str:
    """Return a test for each target that had changes or problems, which fails if a change is not done."""
    cases, own = [], report.by_target
    for seen in report.targets:
        items = own[seen.target]
        if seen.target not in report.eventful:
            continue
        unfinished = [item for item in items if isinstance(item, Outcome) and item.status is not Status.DONE]
        failures = [f"{_subject(outcome.change)}, {status_text(outcome)}" for outcome in unfinished]
        cases.append(_case(seen, items, failures, "not done"))
        _add_output(cases[-1], _remarks(items))
    name = f"reconciler apply{_of_shard(report.shard)}"
    return _document(name, cases, _run_remarks(report), report.began_at, report.time - report.began_at)


def _remarks(items: Iterable[Item]) -> list[str]:
    return [remark_text(item) for item in items if isinstance(item, Finding) and is_remark(item)]


def _run_remarks(document: RunDocument) -> list[str]:
    """Return the remarks on the run."""
    remarks = (item for item in document.items if isinstance(item, Finding) and not item.where and is_remark(item))
    return [escaped(advised(item.reason, item.fix)) for item in remarks]


def _add_output(element: Element, output_lines: Sequence[str]) -> None:
    if output_lines:
        SubElement(element, "system-out").text = _valid("\n".join(output_lines))


def _subject(change: Change) -> str:
    return f"{change.action} {object_label(change.address)}"


def _of_shard(shard: Shard | None) -> str:
    return f", shard {shard}" if shard else ""


def _case(seen: Seen, items: Sequence[Item], failure_lines: list[str], trouble: str) -> Element:
    """Return the test of one target."""
    name = _valid(str(seen.target))
    case = Element("testcase", {"classname": f"reconciler.{seen.target.level}", "name": name})
    if seen.origin:
        case.set("file", _valid(seen.origin.rpartition(":")[0] or seen.origin))
    problems = [
        f"{problem_text(item)}{item.origin and f' ({escaped(item.origin)})'}"
        for item in items
        if isinstance(item, Finding) and item.code == "problem"
    ]
    if problems:
        _add(case, "error", counted(len(problems), "problem"), problems)
    if failure_lines:
        # some readers show either the failure or the errors of a test, mostly the failure: it has the problems too
        also = f", {counted(len(problems), 'problem')}" if problems else ""
        _add(case, "failure", f"{counted(len(failure_lines), 'object')} {trouble}{also}", [*failure_lines, *problems])
    return case


def _add(case: Element, tag: str, message: str, output_lines: Iterable[str]) -> None:
    SubElement(case, tag, {"message": message, "type": tag}).text = _valid("\n".join(output_lines))


def _document(
    name: str, cases: list[Element], output_lines: Sequence[str], time: datetime, duration: timedelta = timedelta()
) -> str:
    """Put the tests into a suite with their numbers."""
    numbers = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{duration.total_seconds():.3f}",
    }
    root = Element("testsuites", numbers)
    suite = SubElement(root, "testsuite", {"name": name, **numbers, "timestamp": utc(time)})
    suite.extend(cases)
    _add_output(suite, output_lines)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _valid(text: str) -> str:
    """Return text of one or more lines without characters that XML cannot hold."""
    return NO_XML.sub(lambda character: f"\\u{ord(character[0]):04x}", escaped_lines(text))
