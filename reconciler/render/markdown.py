"""Markdown for the note of a merge request: numbers first, then what needs somebody, then the changes by target.

Whatever comes from the service or from manifests stands in code, so that it is nothing but text; and at the beginning
of a line stands nothing but words of ours, so that it is no quick action.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from reconciler.apply import Outcome, Status
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report, TargetReport
from reconciler.errors import LocatedDiagnostic
from reconciler.model.plan import ACTIONS, Action, Change, Problem, TargetPlan, Update
from reconciler.render import Style
from reconciler.render._note import Block, clipped, code, code_in_html, collapsible, fitted
from reconciler.render._numbers import (
    BECAME,
    DONE,
    PLANNED,
    WHOLE,
    Counts,
    became,
    cost_of,
    open_doors,
    plan_in_a_line,
    planned,
    report_in_a_line,
    verdicts,
)
from reconciler.render._wording import complaint, counted, details, differing, label, listed_documents, quoted, waits
from reconciler.system.terminal import escaped

TO_DO: dict[Action, str] = {action: f"to {action}" for action in ACTIONS}
BECAME_OF: dict[Action, str] = dict(zip(ACTIONS, DONE, strict=True))

FEW = 10
"""How many changes are shown without a click."""

MARKERS = {"create": "+", "update": "~", "delete": "-"}


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return what would be changed and what cannot be."""
    numbers = saved.summary
    said = "".join(f"**{code(verdict)}**\n\n" for verdict in (*verdicts(saved), *open_doors(saved.plan)))
    head = (
        f"## {plan_in_a_line(saved)}\n\n"
        f"{said}"
        f"{_table(PLANNED, planned(saved.plan))}"
        f"{cost_of(saved)} {counted(numbers.unmanaged, 'unmanaged object')}.\n"
        f"Read from {code(saved.service)} at {utc(saved.created_at)}.\n\n"
    )
    is_open = numbers.create + numbers.update + numbers.delete <= FEW
    changes = (_group(target, tuple(target.changes), TO_DO, is_open=is_open) for target in saved.plan.targets)
    return fitted(head, [_problems(saved.plan.problems), *changes])


def report(done: Report, _style: Style) -> str:
    """Return what became of the changes: what is not done, what could not be planned, and what is done."""
    waited = ", ".join(map(code, waits(done.requests.waited)))
    requests = counted(done.requests.reads + done.requests.writes, "request")
    head = (
        f"## {report_in_a_line(done)}\n\n"
        f"{_table(BECAME, became(done))}"
        f"{requests} made{waited and f'; waited {waited}'}.\n"
        f"Written to {code(done.service)} from {utc(done.started_at)} to {utc(done.finished_at)}.\n\n"
    )
    return fitted(head, [_unfinished(done.outcomes), _problems(done.problems), *map(_done, done.targets)])


def validation(faults: Sequence[LocatedDiagnostic], documents: Mapping[str, int], _style: Style) -> str:
    """Return the faults of the manifests, by file, each with its line."""
    numbers = Counter(fault.severity for fault in faults)
    verdict = _severities(numbers) or listed_documents(documents)
    head = f"## {'Not valid' if numbers['error'] else 'Valid'}: {verdict}\n\n"
    files = [(path, tuple(found)) for path, found in groupby(faults, lambda fault: fault.path)]
    files.sort(key=lambda file: all(fault.severity != "error" for fault in file[1]))
    return fitted(head, (_file(path, found) for path, found in files))


def _table(columns: Sequence[str], counts: Counts) -> str:
    if not counts:
        return ""
    lines = [f"| section | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for section in sorted({section for section, _ in counts}):
        # a cell ends at a pipe even within code
        name = code(section).replace("|", "\\u007c") if section else WHOLE
        lines.append(f"| {name} | {' | '.join(str(counts[section, column]) for column in columns)} |")
    return "\n".join(lines) + "\n\n"


def _problems(problems: Iterable[Problem]) -> Block:
    entries = [
        f"- {code(str(each.address.target))}: {code(complaint(each))}{each.origin and f' ({code(each.origin)})'}\n"
        for each in problems
    ]
    return Block("problem", f"### {counted(len(entries), 'problem')}\n\n", tuple(entries))


def _unfinished(outcomes: Iterable[Outcome]) -> Block:
    entries = [
        f"- {code(str(each.change.address.target))}: {each.change.action} {code(label(each.change.address))}: "
        f"{each.status}{f': {code(each.reason)}' if each.reason else ''}\n"
        for each in outcomes
        if each.status is not Status.DONE
    ]
    return Block("unfinished change", f"### {counted(len(entries), 'unfinished change')}\n\n", tuple(entries))


def _done(target: TargetReport) -> Block:
    changes = [each.change for each in target.outcomes if each.status is Status.DONE]
    return _group(target, changes, BECAME_OF, is_open=False)


def _group(
    target: TargetPlan | TargetReport, changes: Sequence[Change], verbs: Mapping[Action, str], *, is_open: bool
) -> Block:
    """Return the changes of one target, shown by a click."""
    numbers = Counter(change.action for change in changes)
    words = (f"{numbers[action]} {word}" for action, word in verbs.items() if numbers[action])
    ordered = sorted(changes, key=lambda change: ACTIONS.index(change.action))
    title = f"{code_in_html(str(target.target))}: {', '.join(words)}"
    return collapsible(title, "change", "diff", ("".join(_change(change)) for change in ordered), is_open=is_open)


def _change(change: Change) -> Iterator[str]:
    """Yield the lines of a change: what it is about, and each field with a sign of its own."""
    yield f"{MARKERS[change.action]} {clipped(label(change.address))}\n"
    if isinstance(change, Update):
        if change.renamed_from is not None:
            names = (clipped(quoted(str(name))) for name in (change.renamed_from, change.address.name))
            yield "-     name: {}\n+     name: {}\n".format(*names)
        for field, was, will_be in differing(change):
            yield f"-     {clipped(field)}: {was}\n+     {clipped(field)}: {will_be}\n"
        if change.hint:
            yield f"!     {clipped(escaped(change.hint))}\n"
    else:
        yield from (f"{MARKERS[change.action]}     {clipped(line)}\n" for line in details(change))


def _file(path: str, faults: Sequence[LocatedDiagnostic]) -> Block:
    numbers = Counter(fault.severity for fault in faults)
    entries = ("".join(_fault(fault)) for fault in faults)
    return collapsible(
        f"{code_in_html(path)}: {_severities(numbers)}", "fault", "text", entries, is_open=bool(numbers["error"])
    )


def _fault(fault: LocatedDiagnostic) -> Iterator[str]:
    place = f" {fault.line}:{fault.column}" if fault.line else ""
    yield f"{fault.severity}{place}: {clipped(fault.message)}\n"
    if fault.source:
        caret = len(clipped(fault.source[: fault.column - 1]))
        yield f"  | {clipped(fault.source)}\n  | {' ' * caret}^\n"


def _severities(numbers: Mapping[str, int]) -> str:
    return ", ".join(counted(numbers[severity], severity) for severity in ("error", "warning") if numbers.get(severity))
