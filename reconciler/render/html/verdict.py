"""The first thing that a page says: what would happen or has happened, whether it is safe, and what to do next."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.apply import Outcome, Status
from reconciler.documents.groups import is_done, subject_of, target_of
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.model.plan import ACTIONS, Change, Delete
from reconciler.model.wording import counted, listed
from reconciler.render.html.cards import is_interrupted


@dataclass(frozen=True, slots=True)
class Verdict:
    """A page in a sentence.

    Attributes:
        tone: `stop`, `care`, `go` or `calm`: what the page's colours repeat.
        headline: the sentence.
        advice: what to do next.
        command: a command line for that; empty if there is none.
    """

    tone: str
    headline: str
    advice: str
    command: str = ""


def of_plan(saved: SavedPlan) -> Verdict:
    """Return what a plan would do, and whether that is safe."""
    numbers = saved.summary
    changes = list(saved.plan.changes)
    problems = counted(numbers.problems, "problem") if numbers.problems else ""
    if not changes and not problems:
        return Verdict("calm", "Nothing to change", "The service is as the manifests declare.")
    if not changes:
        return Verdict("care", f"Nothing to change, but {problems}", "The manifests declare what cannot be planned.")
    deletions = [each for each in changes if isinstance(each, Delete)]
    counts = {action: sum(each.action == action for each in changes) for action in ACTIONS}
    parts = [f"{action}s {counted(counts[action], 'object')}" for action in ("create", "update") if counts[action]]
    headline = f"{deleted(deletions)}" if deletions else f"{listed(parts).capitalize()}, deletes nothing"
    headline += f"; {problems}" if problems else ""
    if saved.refusals:
        advice = "Nothing will be changed until this is resolved."
        return Verdict("stop", f"{headline}. apply will refuse this plan", advice)
    if deletions:
        return Verdict("care", headline, "Review the deletions first: what a deleted object held does not come back.")
    if problems:
        return Verdict("care", headline, "The changes can be applied. The problems hold up nothing else.")
    return Verdict("go", headline, "There is no problem. The plan can be applied.")


def of_report(report: Report) -> Verdict:
    """Return how much of a plan is done, and how to go on."""
    outcomes = list(report.outcomes)
    done = sum(map(is_done, outcomes))
    problems = counted(report.counts.problems, "problem") if report.counts.problems else ""
    if not outcomes:
        headline, tone = "Nothing to change" + (f", but {problems}" if problems else ""), "care" if problems else "calm"
        return Verdict(tone, headline, "Nothing was written.")
    if done == len(outcomes):
        headline = "The change is done" if done == 1 else f"All {done:,} changes are done"
        if problems:
            return Verdict("care", f"{headline}; {problems}", "The problems are declared settings that no plan holds.")
        return Verdict("go", headline, "Nothing is left to do.")
    headline = f"{done:,} of {counted(len(outcomes), 'change')} {'is' if done == 1 else 'are'} done"
    headline += f"; {problems}" if problems else ""
    if is_interrupted(report):
        headline = f"Interrupted: {headline}"
    skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
    failed = len(outcomes) - done - skipped
    parts = [f"{counted(failed, 'change')} failed"] if failed else []
    parts += [f"{counted(skipped, 'change')} not begun"] if skipped else []
    advice = f"{listed(parts).capitalize()}."
    command = "reconciler apply --retry-failed report.json"
    return Verdict("care" if done else "stop", headline, f"{advice} To go on, with the JSON report of this run:", command)


def deleted(deletions: Iterable[Change | Outcome]) -> str:
    """Return how much is deleted: `Deletes 12 objects in 3 projects`."""
    each = list(deletions)
    targets = {target_of(one) for one in each}
    levels = {target.level for target in targets}
    noun = str(levels.pop()) if len(levels) == 1 else "target"
    return f"Deletes {counted(len([*map(subject_of, each)]), 'object')} in {counted(len(targets), noun)}"
