"""How much a plan or a report is: in one line, and by section."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from reconciler.apply import Status
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.model.plan import ACTIONS, Plan
from reconciler.planning.selection import Shard
from reconciler.render._wording import counted

DONE = tuple(f"{action}d" for action in ACTIONS)

UNFINISHED = "unfinished"
"""Failed, stale, skipped or dropped by the service."""

PROBLEMS = "problems"

PLANNED = (*ACTIONS, PROBLEMS)
BECAME = (*DONE, UNFINISHED, PROBLEMS)

WHOLE = "whole target"
"""What stands for the section where nothing of a target can be seen."""

Counts = Counter[tuple[str, str]]
"""How many there are of a section and one of `PLANNED` or of `BECAME`."""


def of_plan(shard: Shard | None) -> str:
    """Return the first words of a plan's summary, which name the shard that it is about, if it is about one."""
    return f"Plan for shard {shard}" if shard else "Plan"


def of_report(shard: Shard | None) -> str:
    """Return the first words of a report's summary."""
    return f"Applied shard {shard}" if shard else "Applied"


def plan_in_a_line(saved: SavedPlan) -> str:
    """Return how much a plan would change: `Plan: 1 to create, 1 problem`."""
    numbers = saved.summary
    words = [f"{number} to {action}" for action in ACTIONS if (number := getattr(numbers, action))]
    words += [counted(numbers.problems, "problem")] if numbers.problems else []
    return f"{of_plan(saved.shard)}: {', '.join(words) or 'nothing to change'}"


def report_in_a_line(report: Report) -> str:
    """Return how much was changed and was not: `Applied: 1 created, 1 dropped by the service`."""
    counts = asdict(report.counts)
    words = [f"{counts[word]} {word}" for word in (*DONE, "failed", "stale", "skipped") if counts[word]]
    words += [f"{counts['dropped']} dropped by the service"] if counts["dropped"] else []
    words += [counted(counts["problems"], "problem")] if counts["problems"] else []
    return f"{of_report(report.shard)}: {', '.join(words) or 'nothing to change'}"


def cost_of(saved: SavedPlan) -> str:
    """Return what a plan costs: `4 writes to apply; 8 requests were made to plan.`."""
    made = saved.requests_made
    verb = "was" if made == 1 else "were"
    return f"{counted(saved.plan.cost, 'write')} to apply; {counted(made, 'request')} {verb} made to plan."


def verdicts(saved: SavedPlan) -> Iterator[str]:
    """Yield what was allowed for a plan, and why `apply` will refuse it."""
    allowed = saved.limits.allow_deletes
    if allowed is not None:
        yield f"apply may delete up to {counted(allowed, 'object')}: --allow-deletes {allowed}"
    yield from (f"apply will refuse this plan: {reason}" for reason in saved.refusals)


def open_doors(plan: Plan) -> Iterator[str]:
    """Yield where unmanaged objects grant access, and what to write so that they are deleted."""
    counts = Counter(each.address.section for each in plan.unmanaged if each.grants_access)
    if counts:
        numbers = ", ".join(f"{number} in {section}" for section, number in counts.items())
        subject = counted(counts.total(), "unmanaged object")
        verb, them = ("grants", "it") if counts.total() == 1 else ("grant", "them")
        prune = f"prune: [{', '.join(counts)}]"
        yield f"{subject} {verb} access: {numbers}; declare {them}, or write {prune} to delete {them}"


def planned(plan: Plan) -> Counts:
    """Count the changes and problems of a plan."""
    counts = Counts()
    for target in plan.targets:
        for section in target.sections:
            counts.update((section.section, change.action) for change in section.changes)
            counts.update((section.section, PROBLEMS) for _ in section.problems)
    return counts


def became(report: Report) -> Counts:
    """Count the outcomes and problems of a report."""
    counts = Counts()
    for target in report.targets:
        for outcome in target.outcomes:
            word = outcome.word if outcome.status is Status.DONE else UNFINISHED
            counts[outcome.change.address.section, word] += 1
        counts.update((section.section, PROBLEMS) for section in target.sections for _ in section.problems)
    return counts
