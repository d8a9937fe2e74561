"""The last requests of a run: deletions of objects to which other objects refer, and second tries.

`send` sends the requests of `deleting_requests` last; `apply` tries again what `is_delayed` says.
"""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.endpoints import Collection
from reconciler.model.entries import ROSTERS
from reconciler.model.item import Change, Delete, Outcome, Status, Update, makes_anew
from reconciler.model.kind import Kinds
from reconciler.model.plan import TargetPlan
from reconciler.model.targets import Level

SETTLED_AFTER = 5
"""Seconds to wait before the second try: the job mostly takes less."""

REFUSED = "user is not a member of the project"
"""A part of the message with which a rule of branches or tags is refused."""

DONE_NOW = "at the second attempt, since the service knows new members after a moment"


class ReferredSections:
    """The sections whose objects are named by changes of a plan.

    Args:
        target_plans: of the plan.
        kinds: all kinds.
    """

    def __init__(self, target_plans: Iterable[TargetPlan], kinds: Kinds) -> None:
        self._kinds = kinds
        self._below: dict[str, set[str]] = {}
        for target in target_plans:
            if target.target.level is Level.PROJECT:
                self._below.setdefault(_top(target), set()).update(self.own_sections(target))

    def own_sections(self, target_plan: TargetPlan) -> set[str]:
        """Return the sections of a target whose objects are named by its own changes."""
        changed = {change.address.section for change in target_plan.changes} - {""}
        parts = (part for section in changed for part in self._kinds[section].parts if isinstance(part, Collection))
        return {named.section for part in parts for named in part.relations.named.values()} - {""}

    def sections_of_projects(self, target_plan: TargetPlan) -> set[str]:
        """Return the sections of a group whose objects changes of its projects name, or may name."""
        if target_plan.target.level is not Level.GROUP:
            return set()
        top = _top(target_plan)
        known = [self._below.get(top, set()), self._below.get("", set())] if top else self._below.values()
        return set[str]().union(*known)


def _top(target_plan: TargetPlan) -> str:
    """Return the path of a target's top-level group; empty if it is unknown."""
    path = target_plan.path or (target_plan.target.ref if isinstance(target_plan.target.ref, str) else "")
    return path.partition("/")[0].casefold()


def deleting_requests(change: Change) -> int:
    """Return the number of requests of a change that delete an object; they are its last requests."""
    if isinstance(change, Delete):
        return len(change.requests)
    if not (isinstance(change, Update) and makes_anew(change)):
        return 0
    return next(place for place, request in enumerate(reversed(change.requests)) if request.method != "DELETE")


def still_naming(change: Change, undone: Iterable[Outcome], kinds: Kinds) -> str:
    """Return a sentence about an object that still names an object which a change deletes; empty if there is none."""
    name = change.read.names[0] if isinstance(change, Update | Delete) else None
    for other in (outcome.change for outcome in undone if isinstance(outcome.change, Update | Delete)):
        part = kinds[other.address.section].part(other.address.part)
        relations = part.relations.named if isinstance(part, Collection) else {}
        for field, named in relations.items():
            listed = other.read.fields.get(field)
            if named.section == change.address.section and isinstance(listed, list) and name in listed:
                return f'the {part.title} "{other.address.name}" still names it, because it was not {other.action}d'
    return ""


def is_delayed(outcome: Outcome, kinds: Kinds) -> bool:
    """Return whether a change may succeed in a moment: the service does not apply a new membership at once."""
    change, part = outcome.change, kinds[outcome.change.address.section].part(outcome.change.address.part)
    if isinstance(change, Delete) or not isinstance(part, Collection) or getattr(change, "renamed_from", None):
        return False
    if outcome.status is Status.FAILED:
        return REFUSED in outcome.reason
    users = [field for field, named in part.relations.named.items() if named.within == ROSTERS["user"].suffix]
    return outcome.status is Status.DROPPED and any(f"{field} (without " in outcome.reason for field in users)


def second_outcome(outcome: Outcome, second_try: TargetPlan) -> Outcome:
    """Return the outcome of a change after the second try: unchanged, unless that has succeeded."""
    address = outcome.change.address
    for tried in second_try.outcomes:
        if tried.change.address == address and tried.status is Status.DONE:
            created = outcome.created or tried.created
            return replace(outcome, status=Status.DONE, reason=DONE_NOW, created=created, unconfirmed=False)
    return outcome
