"""`apply -i`: which groups of equal changes to apply, asked on the terminal one by one."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import click

from reconciler.cli.outputs import write_stderr
from reconciler.cli.session import Session
from reconciler.documents.groups import EntryGroup, grouped
from reconciler.documents.plan_file import SavedPlan
from reconciler.model.plan import Change, Plan
from reconciler.model.wording import counted, listed
from reconciler.planning.creation import needs
from reconciler.planning.selection import keep_changes
from reconciler.render import Style, render_plan
from reconciler.render.text import changes
from reconciler.render.wording import least

ANSWERS = ("yes", "no", "all", "quit", "details")


@dataclass(frozen=True, slots=True)
class ChosenChanges:
    """The part of a plan that will be done.

    Attributes:
        plan: with the chosen changes.
        left: the plan of the changes that were not decided when the questions were ended.
    """

    plan: SavedPlan
    left: Plan


def choose(session: Session, saved: SavedPlan) -> ChosenChanges:
    """Show the problems and numbers of a plan, and ask for each group of its changes, and for each change in none.

    Creations of targets come first: what needs a target that will not be created is not asked about, and left out.

    Raises:
        Abort: the terminal was closed, or Ctrl-C.
    """
    style = session.style(sys.stderr)
    groups = (group for block in grouped(saved.plan.changes, least(style)) for group in block.groups)
    questions = sorted(groups, key=lambda group: not any(_created(group)))
    write_stderr(render_plan(saved, "text", replace(style, quiet=True)).rstrip("\n"))
    chosen: list[Change] = []
    asked = 0
    while questions:
        question, *rest = questions
        asked += 1
        answer = _ask(question, f"{asked} of {asked + len(rest)}", style)
        if answer == "quit":
            return _chosen(saved, chosen, questions)
        if answer == "all":
            chosen += [each for group in questions for each in group.entries]
            break
        chosen += question.entries if answer == "yes" else ()
        questions = rest if answer == "yes" else _without(rest, {*_created(question)})
    return _chosen(saved, chosen, [])


def _created(group: EntryGroup[Change]) -> Iterator[str]:
    """Yield the targets that some changes create, as `needs` names them."""
    return (str(each.address.target).casefold() for each in group.entries if not each.address.section)


def _without(questions: Sequence[EntryGroup[Change]], declined: set[str]) -> list[EntryGroup[Change]]:
    """Return questions less the changes that need a target which will not be created."""
    left = (
        replace(group, entries=tuple(each for each in group.entries if declined.isdisjoint(needs(each))))
        for group in questions
    )
    return [group for group in left if group.entries]


def _chosen(saved: SavedPlan, chosen: Sequence[Change], left: Sequence[EntryGroup[Change]]) -> ChosenChanges:
    undecided = [each for group in left for each in group.entries]
    if len(chosen) == sum(1 for _ in saved.plan.changes):
        return ChosenChanges(saved, Plan(()))
    plan = keep_changes(saved.plan, chosen)
    rest = replace(saved, targets=plan.targets, dependent=plan.dependent, whole=plan.whole, commit=None)
    return ChosenChanges(rest, keep_changes(saved.plan, undecided))


def _ask(group: EntryGroup[Change], number: str, style: Style) -> str:
    """Show a group of changes and return what to do about it."""
    write_stderr(f"\n{changes(group.entries, replace(style, group_by='change', quiet=False, verbose=False))}")
    question = f"{number}: apply {counted(len(group.entries), 'change')}? ({listed(ANSWERS, 'or')})"
    while (answer := click.prompt(question, value_proc=_answer, err=True)) == "details":
        write_stderr(changes(group.entries, replace(style, group_by="target", quiet=False, verbose=True)))
    return str(answer)


def _answer(text: str) -> str:
    """Return the answer that a text begins, such as `y`."""
    for answer in ANSWERS:
        if text and answer.startswith(text.strip().lower()):
            return answer
    raise click.UsageError(f"answer {listed(ANSWERS, 'or')}")
