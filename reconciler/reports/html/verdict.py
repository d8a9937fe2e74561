"""The verdict at the top of a page: the changes, whether they are safe, and the next step. See `of_plan`."""

from dataclasses import dataclass, replace
from shlex import join

from reconciler.document.document import RunDocument
from reconciler.document.numbers import DONE, UNFINISHED, undoes_loosening
from reconciler.document.wording import (
    count_other_changes,
    deletions_text,
    document_totals,
    effect_phrases,
    effects_text,
    title_of,
)
from reconciler.memory.apply_log import revert_words, short
from reconciler.model.item import ACTIONS, RESULT_UNKNOWN, RUN_ENDED, loosens
from reconciler.model.wording import counted, listed


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """The verdict on a page.

    Attributes:
        tone: `stop`, `care`, `go` or `calm`, which the page's colours repeat.
        headline: the verdict in a sentence.
        advice: the next step.
        command: a command line for the next step; empty for none.
    """

    tone: str
    headline: str
    advice: str
    command: str = ""


def of_plan(document: RunDocument) -> PageVerdict:
    """Return the verdict on a plan: its changes, and whether they are safe; on a way back also its apply."""
    is_ready = any(document.changes) and not document.refusals
    command = join([*revert_words(document.reverts), "--yes"]) if document.reverts and is_ready else ""
    return _naming_apply(document, replace(_of_plan(document), command=command))


def _naming_apply(document: RunDocument, verdict: PageVerdict) -> PageVerdict:
    """Return a verdict that names the apply that is undone; the same verdict if no apply is."""
    if not document.reverts:
        return verdict
    headline = f"{verdict.headline[:1].lower()}{verdict.headline[1:]}"
    return replace(verdict, headline=f"Revert of the apply {short(document.reverts)}: {headline}")


def _of_plan(document: RunDocument) -> PageVerdict:
    numbers, others, deletions = (
        document_totals(document),
        count_other_changes(document),
        deletions_text(document.changes),
    )
    problems = counted(numbers["problems"], "problem") if numbers["problems"] else ""
    if not sum(numbers[action] for action in ACTIONS) and not others:
        if problems:
            return PageVerdict(
                "care",
                f"Nothing to change, but {problems}",
                "Some declared settings cannot be planned. Their cards say why, and how to fix that.",
            )
        state = "before that apply" if document.reverts else "the manifests declare"
        headline = "Nothing to change" if document.reverts else title_of(document)
        return PageVerdict("calm", headline, f"The service is as {state}.")
    verbs = {"creates": numbers["create"], "updates": numbers["update"]}
    parts = [f"{verb} {counted(number, 'object')}" for verb, number in verbs.items() if number]
    words = deletions or (f"{listed(parts)}, deletes nothing" if parts else "this change does nothing")
    words += f"; {counted(others, 'change')} not of this change" if others else ""
    words += f"; {problems}" if problems else ""
    effects = effects_text(document)
    words = f"{effects[:1].lower()}{effects[1:]}; {words}" if effects else words
    headline = f"{words[:1].upper()}{words[1:]}"
    if document.refusals:
        return PageVerdict("stop", f"Refused: {words}", "Nothing is changed until this is resolved.")
    lost = "Not all of a deleted object can be restored."
    loosening = [change for change in document.changes if loosens(change)]
    is_loosening = not all(map(undoes_loosening, loosening))
    cautions = {
        f"Review first what loosens protection, then the deletions. {lost}": is_loosening and deletions,
        "Review first what loosens protection.": is_loosening,
        f"Review the deletions first. {lost}": deletions,
        "Apply tightens again what was loosened on the service; accept keeps it.": loosening,
        "The changes can be applied. The problems hold up nothing else.": problems,
    }
    advice = next((advice for advice, is_needed in cautions.items() if is_needed), "")
    return PageVerdict("care" if advice else "go", headline, advice or "No problems. Ready to apply.")


def of_report(document: RunDocument) -> PageVerdict:
    """Return the verdict on a report: how many changes are done, and the command to go on."""
    return _naming_apply(document, _of_report(document))


def _of_report(document: RunDocument) -> PageVerdict:
    numbers = document_totals(document)
    done = sum(numbers[word] for word in DONE)
    unfinished = sum(numbers[word] for word in UNFINISHED)
    problems = counted(numbers["problems"], "problem") if numbers["problems"] else ""
    effects_and_problems = "".join(f", {phrase}" for phrase in effect_phrases(numbers))
    effects_and_problems += f"; {problems}" if problems else ""
    if not done + unfinished:
        headline, tone = "Nothing to change" + (f", but {problems}" if problems else ""), "care" if problems else "calm"
        return PageVerdict(tone, headline, "Nothing was written.")
    if not unfinished:
        headline = "The change is done" if done == 1 else f"All {done:,} changes are done"
        headline += effects_and_problems
        if problems:
            return PageVerdict("care", headline, "The problems are declared settings that could not be planned.")
        return PageVerdict("go", headline, "Nothing is left to do.")
    headline = f"{done:,} of {done + unfinished:,} changes {'is' if done == 1 else 'are'} done"
    headline = f"{'The change is not done' if done + unfinished == 1 else headline}{effects_and_problems}"
    headline = f"Interrupted: {headline}" if is_interrupted(document) else headline
    report_clause = "" if document.reverts else ", with the JSON report of this run"
    advice = f"{counted(unfinished, 'change')} not done. To go on{report_clause}:"
    return PageVerdict("care" if done else "stop", headline, advice, document.finish)


def is_interrupted(document: RunDocument) -> bool:
    """Return whether a signal ended an apply before all changes were done."""
    return any(outcome.reason in (RUN_ENDED, RESULT_UNKNOWN) for outcome in document.outcomes)
