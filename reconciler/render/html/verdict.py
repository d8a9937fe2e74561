"""The first thing that a page says: what would happen or has happened, whether it is safe, and what to do next."""

from dataclasses import dataclass, replace
from shlex import join

from reconciler.documents.groups import is_done
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report
from reconciler.gitops.apply_log import revert_words, short
from reconciler.model.wording import counted, listed
from reconciler.render.html.cards import is_interrupted
from reconciler.render.wording import deletions_in_words, number_of_changes


@dataclass(frozen=True, slots=True)
class PageVerdict:
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


def of_plan(saved: SavedPlan) -> PageVerdict:
    """Return what a plan would do, and whether that is safe; of a way back, which apply it undoes, and by what."""
    verdict = _of_plan(saved)
    if not saved.reverts:
        return verdict
    is_ready = any(saved.plan.changes) and not saved.refusals
    command = join([*revert_words(saved.reverts), "--yes"]) if is_ready else ""
    headline = f"{verdict.headline[:1].lower()}{verdict.headline[1:]}"
    return replace(verdict, headline=f"Revert of the apply {short(saved.reverts)}: {headline}", command=command)


def _of_plan(saved: SavedPlan) -> PageVerdict:
    numbers = saved.summary
    creates, updates = numbers.create, numbers.update
    changes = creates + updates + numbers.delete
    problems = counted(numbers.problems, "problem") if numbers.problems else ""
    already = number_of_changes(numbers.not_of_change)
    if not changes and not already and not problems:
        state = "before that apply" if saved.reverts else "the manifests declare"
        return PageVerdict("calm", "Nothing to change", f"The service is as {state}.")
    if not changes and not already:
        return PageVerdict(
            "care",
            f"Nothing to change, but {problems}",
            "Some declared settings cannot be planned. Their cards say why, and how to fix that.",
        )
    deletions = deletions_in_words(saved.plan)
    parts = [
        f"{verb} {counted(number, 'object')}" for verb, number in (("creates", creates), ("updates", updates)) if number
    ]
    words = deletions or (f"{listed(parts)}, deletes nothing" if parts else "this change does nothing")
    words += f"; {counted(already, 'change')} not of this change" if already else ""
    words += f"; {problems}" if problems else ""
    headline = words.capitalize()
    if saved.refusals:
        return PageVerdict("stop", f"Refused: {words}", "Nothing is changed until this is resolved.")
    if deletions:
        return PageVerdict("care", headline, "Review the deletions first. Not all of a deleted object can be restored.")
    if problems:
        return PageVerdict("care", headline, "The changes can be applied. The problems hold up nothing else.")
    return PageVerdict("go", headline, "There is no problem. The plan can be applied.")


def of_report(report: Report) -> PageVerdict:
    """Return how much of a plan is done, and how to go on; of a revert, which apply it undid."""
    verdict = _of_report(report)
    if not report.reverts:
        return verdict
    headline = f"{verdict.headline[:1].lower()}{verdict.headline[1:]}"
    return replace(verdict, headline=f"Revert of the apply {short(report.reverts)}: {headline}")


def _of_report(report: Report) -> PageVerdict:
    outcomes = list(report.outcomes)
    done = sum(map(is_done, outcomes))
    problems = counted(report.counts.problems, "problem") if report.counts.problems else ""
    if not outcomes:
        headline, tone = "Nothing to change" + (f", but {problems}" if problems else ""), "care" if problems else "calm"
        return PageVerdict(tone, headline, "Nothing was written.")
    if done == len(outcomes):
        headline = "The change is done" if done == 1 else f"All {done:,} changes are done"
        if problems:
            return PageVerdict(
                "care", f"{headline}; {problems}", "The problems are declared settings that could not be planned."
            )
        return PageVerdict("go", headline, "Nothing is left to do.")
    is_one = len(outcomes) == 1
    headline = (
        "The change is not done"
        if is_one
        else f"{done:,} of {len(outcomes):,} changes {'is' if done == 1 else 'are'} done"
    )
    headline += f"; {problems}" if problems else ""
    if is_interrupted(report):
        headline = f"Interrupted: {headline}"
    left = counted(len(outcomes) - done, "change")
    by = "" if report.reverts else ", with the JSON report of this run"
    return PageVerdict("care" if done else "stop", headline, f"{left} not done. To go on{by}:", report.finish)
