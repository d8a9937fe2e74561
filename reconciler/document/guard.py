"""The guard: reasons not to apply a plan. Pure; begin with `refusals`.

`plan` reports the reasons before anything is applied, and `apply` refuses with the same words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, NonNegativeInt

from reconciler.model.item import Change, Create, Delete, loosens
from reconciler.model.targets import Target
from reconciler.model.wording import counted, listed

MAX_DELETED_SHARE = 0.3
"""A plan that would delete more than this share of a section of `MIN_GUARDED_OBJECTS` or more is refused."""

MIN_GUARDED_OBJECTS = 10
MAX_UNGUARDED_DELETES = 20
"""A plan that would delete more objects than this is refused, and so are the plans of shards that would together."""

SINK = "add --tokens-to FILE or --tokens-command CMD"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits given when the plan was made."""

    allow_deletes: NonNegativeInt | None = None
    """How many deletions are allowed; null if the guard's own limits hold."""
    max_changes: NonNegativeInt | None = None
    """How many changes are allowed; null for any number."""
    max_loosening: NonNegativeInt | None = None
    """How many changes may loosen protection; null for any number."""
    sink: Annotated[bool, Field(exclude=True)] = False
    """Whether there is a place for the values of tokens."""
    in_job: Annotated[bool, Field(exclude=True)] = False
    """Whether a job of GitLab CI makes the plan: a variable permits deletions there, and nobody types an option."""

    def permitting(self, deletes: int) -> str:
        """Return the option, or in a job the variable, that permits a number of deletions."""
        return f"RECONCILER_ALLOW_DELETES={deletes}" if self.in_job else f"--allow-deletes {deletes}"


NO_LIMITS = Limits()


def refusals(
    all_changes: Iterable[Change],
    object_counts: Mapping[tuple[Target, str], int | None],
    limits: Limits = NO_LIMITS,
    shards: int = 1,
) -> Iterator[str]:
    """Yield each reason for which `apply` refuses a plan, with the option that permits it.

    Args:
        all_changes: all changes, in the order of the plan.
        object_counts: by target and section, the number of objects that were read; None for an unread section.
        limits: the limits of the run.
        shards: the number of shards, if this is the plan of a single shard.
    """
    changes = list(all_changes)
    if limits.max_changes is not None and len(changes) > limits.max_changes:
        yield f"it makes {counted(len(changes), 'change')}, more than --max-changes {limits.max_changes}"
    loosening = sum(map(loosens, changes))
    if limits.max_loosening is not None and loosening > limits.max_loosening:
        verb = "loosens" if loosening == 1 else "loosen"
        yield (f"{counted(loosening, 'change')} {verb} protection, more than --max-loosening {limits.max_loosening}")
    yield from _excess_deletions(changes, object_counts, limits, shards)
    if not limits.sink:
        yield from _undelivered_tokens(changes)


def _excess_deletions(
    changes: Iterable[Change], object_counts: Mapping[tuple[Target, str], int | None], limits: Limits, shards: int
) -> Iterator[str]:
    places = Counter(
        (change.address.target, change.address.section) for change in changes if isinstance(change, Delete)
    )
    deletes = places.total()
    loss, permitting = f"it deletes {counted(deletes, 'object')}", limits.permitting(deletes)
    remedy = f"start the apply job with the variable {permitting}" if limits.in_job else f"add {permitting}"
    if limits.allow_deletes is not None:
        if deletes > limits.allow_deletes:
            yield f"{loss}, more than {limits.permitting(limits.allow_deletes)}; {remedy}"
        return
    lost = [
        f"{places[place]} of {number} entries of {place[1]} of {place[0]}"
        for place, number in object_counts.items()
        if number and number >= MIN_GUARDED_OBJECTS and places[place] > MAX_DELETED_SHARE * number
    ]
    if lost:
        others = (
            f", more than {MAX_DELETED_SHARE * 100:.0f} % of {counted(len(lost) - 1, 'more section')}"
            if lost[1:]
            else ""
        )
        yield f"it deletes {lost[0]}{others}; {remedy}"
    elif deletes > MAX_UNGUARDED_DELETES:
        yield f"{loss}, more than {MAX_UNGUARDED_DELETES}; {remedy}"
    # shards are planned side by side: together they may delete no more than an undivided run
    elif deletes > MAX_UNGUARDED_DELETES // shards:
        part = f"{MAX_UNGUARDED_DELETES // shards}, which is this shard's part of {MAX_UNGUARDED_DELETES}"
        yield f"{loss}, more than {part}; merge all plans, or {remedy}"


def _undelivered_tokens(changes: Iterable[Change]) -> Iterator[str]:
    created = [change for change in changes if isinstance(change, Create) and change.delivers]
    succeeded = [change for change in changes if isinstance(change, Delete) and change.successor_id is not None]
    if created:
        titles = Counter(change.address.title for change in created)
        tokens = listed(counted(number, title) for title, number in titles.items())
        yield f"it creates {tokens}, whose value is shown only once; {SINK}"
    elif succeeded:
        tokens = counted(len(succeeded), f"rotated {succeeded[0].address.title}")
        yield f"it deletes {tokens}, whose successor's value is delivered first; {SINK}"
