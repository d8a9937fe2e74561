"""The guard: what speaks against applying a plan. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.plan import Delete, Plan, SectionPlan, TargetPlan

SHARE = 0.3
"""A section that would lose more than this share of its objects is objected to, once it holds `FEW` or more."""

FEW = 10
MANY = 20
"""A plan that would delete more objects than this is objected to."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the person who applies a plan has allowed.

    Attributes:
        deletes: how many deletions are meant; None for no word about it.
        changes: how many changes at most; None for any number.
    """

    deletes: int | None = None
    changes: int | None = None


def objections(plan: Plan, limits: Limits) -> Iterator[str]:
    """Yield each reason not to apply the plan, with what to type if it is meant."""
    changes = list(plan.changes)
    if limits.changes is not None and len(changes) > limits.changes:
        yield f"the plan makes {len(changes)} changes, more than --max-changes {limits.changes}"
    deletes = sum(isinstance(change, Delete) for change in changes)
    if limits.deletes is not None:
        if deletes > limits.deletes:
            yield f"the plan deletes {deletes} objects, more than --allow-deletes {limits.deletes}"
        return
    meant = f"if that is meant, add --allow-deletes {deletes}"
    for target in plan.targets:
        for section in target.sections:
            yield from _loss(target, section, meant)
    if deletes > MANY:
        yield f"the plan deletes {deletes} objects, more than {MANY} in all; {meant}"


def _loss(target: TargetPlan, section: SectionPlan, meant: str) -> Iterator[str]:
    lost = sum(isinstance(change, Delete) for change in section.changes)
    if section.found >= FEW and lost > SHARE * section.found:
        yield f"{target.scope} would lose {lost} of its {section.found} {section.section.replace('_', ' ')}; {meant}"
