"""Members who were added a moment ago: rules do not take them before the service's job has run.

Lists of members tell of them at once, so that the plan has no problem. The service refuses them in rules of branches
and tags, and drops them from approval rules without a word (GitLab 18.9). At the end of the run, that is tried again.
"""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.engine.apply.prepare import Preparation
from reconciler.model.endpoints import Collection
from reconciler.model.entries import ROSTERS
from reconciler.model.item import Change, Delete, Outcome, Status
from reconciler.model.kind import Kinds
from reconciler.model.plan import SectionPlan, TargetPlan

SETTLED_AFTER = 5
"""Seconds to wait before the second try: the job mostly takes less."""

REFUSED = "user is not a member of the project"
"""In the refusal of a rule of branches or tags."""

DONE_NOW = "at the second try, since members who were added a moment ago are known by now"


def is_delayed(outcome: Outcome, kinds: Kinds) -> bool:
    """Return whether a change may succeed in a moment. The plan has found all users among the members."""
    change, part = outcome.change, kinds[outcome.change.address.section].part(outcome.change.address.part)
    if isinstance(change, Delete) or not isinstance(part, Collection) or getattr(change, "renamed_from", None):
        return False
    if outcome.status is Status.FAILED:
        return REFUSED in outcome.reason
    users = [field for field, named in part.relations.named.items() if named.within == ROSTERS["user"].suffix]
    return outcome.status is Status.DROPPED and any(f"{field} (without " in outcome.reason for field in users)


def planned_once_more(outcomes: Iterable[Outcome], preparation: Preparation) -> tuple[SectionPlan, ...]:
    """Return the plan of what is still to be made of some changes, by section."""
    by_section: dict[str, list[Change]] = {}
    for outcome in outcomes:
        by_section.setdefault(outcome.change.address.section, []).append(outcome.change)
    again = preparation.verifier.again
    return tuple(preparation.planned_from(changes, again(changes)) for changes in by_section.values())


def once_more(outcome: Outcome, again: TargetPlan) -> Outcome:
    """Return what became of a change in the end; as it was, unless the second try has succeeded."""
    address = outcome.change.address
    for tried in again.outcomes:
        if tried.change.address == address and tried.status is Status.DONE:
            return replace(
                outcome,
                status=Status.DONE,
                reason=DONE_NOW,
                created=outcome.created or tried.created,
                unconfirmed=False,
            )
    return outcome
