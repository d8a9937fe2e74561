"""How much a plan or a report is: in one line, and by section."""

from collections import Counter

from reconciler.apply import Status
from reconciler.plan import Change, Create, Delete, Plan, Update
from reconciler.planfile import summary
from reconciler.render._wording import counted
from reconciler.report import Report

ACTIONS: dict[type[Change], str] = {Create: "create", Update: "update", Delete: "delete"}
"""In the order in which they are shown within a target."""

DONE: dict[type[Change], str] = {Create: "created", Update: "updated", Delete: "deleted"}

UNFINISHED = "unfinished"
"""Failed, stale, skipped or dropped by the service."""

PROBLEMS = "problems"

PLANNED = (*ACTIONS.values(), PROBLEMS)
BECAME = (*DONE.values(), UNFINISHED, PROBLEMS)

WHOLE = "whole target"
"""What stands for the section where nothing of a target can be seen."""

Counts = Counter[tuple[str, str]]
"""How many there are of a section and one of `PLANNED` or of `BECAME`."""


def plan_in_a_line(plan: Plan) -> str:
    """Return how much a plan would change: `Plan: 1 to create, 1 problem`."""
    numbers = summary(plan)
    words = [f"{numbers[action]} to {action}" for action in ACTIONS.values() if numbers[action]]
    words += [counted(numbers["problems"], "problem")] if numbers["problems"] else []
    return f"Plan: {', '.join(words) or 'nothing to change'}"


def report_in_a_line(report: Report) -> str:
    """Return how much was changed and was not: `Applied: 1 created, 1 dropped by the service`."""
    counts = report.counts
    words = [f"{counts[word]} {word}" for word in (*DONE.values(), "failed", "stale", "skipped") if counts[word]]
    words += [f"{counts['dropped']} dropped by the service"] if counts["dropped"] else []
    words += [counted(counts["problems"], "problem")] if counts["problems"] else []
    return f"Applied: {', '.join(words) or 'nothing to change'}"


def planned(plan: Plan) -> Counts:
    """Count the changes and problems of a plan."""
    counts = Counts()
    for target in plan.targets:
        for section in target.sections:
            counts.update((section.section, ACTIONS[type(change)]) for change in section.changes)
            counts.update((section.section, PROBLEMS) for _ in section.problems)
    return counts


def became(report: Report) -> Counts:
    """Count the outcomes and problems of a report."""
    counts = Counts()
    for target in report.targets:
        for outcome in target.outcomes:
            became = DONE[type(outcome.change)] if outcome.status is Status.DONE else UNFINISHED
            counts[outcome.change.address.section, became] += 1
        counts.update((section.section, PROBLEMS) for section in target.plan.sections for _ in section.problems)
    return counts
