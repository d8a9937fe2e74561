"""What is new in a plan since an earlier one: differences that are known already are counted, and shown no more."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from reconciler.documents.plan_file import Known, SavedPlan
from reconciler.model.plan import Change, Create, Delete, Plan, Problem, SectionPlan, Update
from reconciler.model.protocols import Json

T = TypeVar("T", Change, Problem)

Seen = Mapping[str, int]
"""How often each fingerprint occurs."""


@dataclass(frozen=True, slots=True)
class News:
    """A plan compared with what was known before.

    Attributes:
        plan: the plan with the new changes and problems alone; `known` counts the others. Unmanaged objects are no
            drift: all of them are in it.
        gone: how many of the known changes and problems are no longer there.
    """

    plan: SavedPlan
    gone: int

    @property
    def is_new(self) -> bool:
        """Whether any change or problem is new."""
        return any(self.plan.plan.changes) or any(self.plan.plan.problems)

    @property
    def has_changed(self) -> bool:
        """Whether anything is new or gone."""
        return self.is_new or self.gone > 0


def fingerprint(each: Change | Problem) -> str:
    """Return a short text that two changes, or two problems, share if a person would call them equal.

    It depends on the object, and on its values now and as they will be: a value that has moved once more is another
    change. It does not depend on the requests, on where the manifests declare it, or on fields that stay as they are.
    """
    address = each.address
    place = [*address.target.identity, address.section, address.part, address.name]
    facts: Iterable[Json]
    match each:
        case Create():
            facts = each.action, dict(each.after), list(each.replaces_ids)
        case Update():
            facts = each.action, dict(each.before), dict(each.after), each.renamed_from
        case Delete():
            facts = each.action, dict(each.before), each.read.id
        case _:
            facts = "problem", each.field, each.reason
    return sha256(json.dumps([place, *facts], sort_keys=True).encode()).hexdigest()[:16]


def seen_in(plan: Plan) -> Counter[str]:
    """Return the fingerprints of the changes and problems of a plan."""
    return Counter(map(fingerprint, plan.changes)) + Counter(map(fingerprint, plan.problems))


def news_since(saved: SavedPlan, before: SavedPlan | None) -> News:
    """Compare a plan with an earlier one; without one, everything is new."""
    return News(saved, 0) if before is None else news_of(saved, seen_in(before.plan))


def news_of(saved: SavedPlan, seen: Seen) -> News:
    """Compare a plan with what was seen before; of equal changes, so many are known as were seen."""
    left = Counter(seen)

    def fresh(found: Iterable[T]) -> tuple[T, ...]:
        return tuple(each for each in found if not _take(left, fingerprint(each)))

    def narrowed(section: SectionPlan) -> SectionPlan:
        return replace(section, changes=fresh(section.changes), problems=fresh(section.problems))

    targets = tuple(
        replace(target, sections=tuple(narrowed(section) for section in target.sections)) for target in saved.targets
    )
    plan = replace(saved, targets=targets)
    now, new = saved.summary, plan.summary
    changes = (now.create + now.update + now.delete) - (new.create + new.update + new.delete)
    known = Known(changes, now.problems - new.problems)
    return News(replace(plan, known=known), left.total())


def _take(left: Counter[str], mark: str) -> bool:
    """Take one of the known ones, if there is one left."""
    found = left[mark] > 0
    left[mark] -= found
    return found
