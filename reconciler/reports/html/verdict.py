"""The first thing that a page says: what would happen or has happened, whether it is safe, and what to do next."""

from dataclasses import dataclass, replace
from shlex import join

from reconciler.document.document import RunDocument
from reconciler.document.numbers import DONE, UNFINISHED
from reconciler.document.wording import already, deletions_in_words, numbers_in, title_of
from reconciler.memory.apply_log import revert_words, short
from reconciler.model.item import ACTIONS, RESULT_UNKNOWN, RUN_ENDED
from reconciler.model.wording import counted, listed


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


def of_plan(shown: RunDocument) -> PageVerdict:
    """Return what a plan would do, and whether that is safe; of a way back, which apply it undoes, and by what."""
    is_ready = any(shown.changes) and not shown.refusals
    command = join([*revert_words(shown.reverts), "--yes"]) if shown.reverts and is_ready else ""
    return _undoing(shown, replace(_of_plan(shown), command=command))


def _undoing(shown: RunDocument, verdict: PageVerdict) -> PageVerdict:
    """Return the verdict on a revert, which names the apply."""
    if not shown.reverts:
        return verdict
    headline = f"{verdict.headline[:1].lower()}{verdict.headline[1:]}"
    return replace(verdict, headline=f"Revert of the apply {short(shown.reverts)}: {headline}")


def _of_plan(shown: RunDocument) -> PageVerdict:
    numbers, apart, deletions = numbers_in(shown), already(shown), deletions_in_words(shown.changes)
    problems = counted(numbers["problems"], "problem") if numbers["problems"] else ""
    if not sum(numbers[action] for action in ACTIONS) and not apart:
        if problems:
            return PageVerdict(
                "care",
                f"Nothing to change, but {problems}",
                "Some declared settings cannot be planned. Their cards say why, and how to fix that.",
            )
        state = "before that apply" if shown.reverts else "the manifests declare"
        headline = "Nothing to change" if shown.reverts else title_of(shown)
        return PageVerdict("calm", headline, f"The service is as {state}.")
    verbs = {"creates": numbers["create"], "updates": numbers["update"]}
    parts = [f"{verb} {counted(number, 'object')}" for verb, number in verbs.items() if number]
    words = deletions or (f"{listed(parts)}, deletes nothing" if parts else "this change does nothing")
    words += f"; {counted(apart, 'change')} not of this change" if apart else ""
    words += f"; {problems}" if problems else ""
    headline = words.capitalize()
    if shown.refusals:
        return PageVerdict("stop", f"Refused: {words}", "Nothing is changed until this is resolved.")
    if deletions:
        return PageVerdict("care", headline, "Review the deletions first. Not all of a deleted object can be restored.")
    if problems:
        return PageVerdict("care", headline, "The changes can be applied. The problems hold up nothing else.")
    return PageVerdict("go", headline, "No problems. Ready to apply.")


def of_report(shown: RunDocument) -> PageVerdict:
    """Return how much of a plan is done, and how to go on; of a revert, which apply it undid."""
    return _undoing(shown, _of_report(shown))


def _of_report(shown: RunDocument) -> PageVerdict:
    numbers = numbers_in(shown)
    done = sum(numbers[word] for word in DONE)
    left = sum(numbers[word] for word in UNFINISHED)
    problems = counted(numbers["problems"], "problem") if numbers["problems"] else ""
    but = f"; {problems}" if problems else ""
    if not done + left:
        headline, tone = "Nothing to change" + (f", but {problems}" if problems else ""), "care" if problems else "calm"
        return PageVerdict(tone, headline, "Nothing was written.")
    if not left:
        headline = "The change is done" if done == 1 else f"All {done:,} changes are done"
        if problems:
            advice = "The problems are declared settings that could not be planned."
            return PageVerdict("care", f"{headline}{but}", advice)
        return PageVerdict("go", headline, "Nothing is left to do.")
    headline = f"{done:,} of {done + left:,} changes {'is' if done == 1 else 'are'} done"
    headline = f"{'The change is not done' if done + left == 1 else headline}{but}"
    headline = f"Interrupted: {headline}" if is_interrupted(shown) else headline
    by = "" if shown.reverts else ", with the JSON report of this run"
    advice = f"{counted(left, 'change')} not done. To go on{by}:"
    return PageVerdict("care" if done else "stop", headline, advice, shown.finish)


def is_interrupted(shown: RunDocument) -> bool:
    """Return whether a signal ended an apply before everything was done."""
    return any(outcome.reason in (RUN_ENDED, RESULT_UNKNOWN) for outcome in shown.outcomes)
