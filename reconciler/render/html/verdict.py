"""The first thing that a page says: what would happen or has happened, whether it is safe, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.documents.groups import is_done
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.model.plan import ACTIONS, Delete
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
        return Verdict(
            "care",
            f"Nothing to change, but {problems}",
            "Some declared settings cannot be planned. Their cards say why, and how to fix that.",
        )
    deletions = [each for each in changes if isinstance(each, Delete)]
    counts = {action: sum(each.action == action for each in changes) for action in ACTIONS}
    parts = [f"{action}s {counted(counts[action], 'object')}" for action in ("create", "update") if counts[action]]
    headline = _deleted(deletions) if deletions else f"{listed(parts).capitalize()}, deletes nothing"
    headline += f"; {problems}" if problems else ""
    if saved.refusals:
        return Verdict(
            "stop", f"Refused: {headline[0].lower()}{headline[1:]}", "Nothing is changed until this is resolved."
        )
    if deletions:
        return Verdict("care", headline, "Review the deletions first. Not all of a deleted object can be restored.")
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
            return Verdict(
                "care", f"{headline}; {problems}", "The problems are declared settings that could not be planned."
            )
        return Verdict("go", headline, "Nothing is left to do.")
    headline = f"{done:,} of {counted(len(outcomes), 'change')} {'is' if done == 1 else 'are'} done"
    headline += f"; {problems}" if problems else ""
    if is_interrupted(report):
        headline = f"Interrupted: {headline}"
    left = counted(len(outcomes) - done, "change")
    advice = f"{left} not done. To go on, with the JSON report of this run:"
    command = "reconciler apply --retry-failed report.json"
    return Verdict("care" if done else "stop", headline, advice, command)


def _deleted(deletions: Sequence[Delete]) -> str:
    """Return how much is deleted: `Deletes 12 objects in 3 projects`."""
    targets = {each.address.target for each in deletions}
    levels = {str(target.level) for target in targets}
    places = counted(len(targets), levels.pop() if len(levels) == 1 else "target")
    return f"Deletes {counted(len(deletions), 'object')} in {places}"
