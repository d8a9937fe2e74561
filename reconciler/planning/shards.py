"""Shards: every target in exactly one of them, on whichever machine it is asked. Pure.

A target keeps its shard when others are added or removed, and few move when the number of shards changes.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import blake2b

from pydantic import PositiveInt

from reconciler.errors import UsageError
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Key, Level, Target

TOGETHER = "groups"
"""The home of all groups and projects of which nobody can tell which is below which."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of several."""

    number: PositiveInt
    """Which part, from 1."""
    total: PositiveInt
    """How many parts there are."""

    def __str__(self) -> str:
        """Return it as the command line takes it."""
        return f"{self.number}/{self.total}"


def read_shard(text: str) -> Shard:
    """Read `I/N`.

    Raises:
        UsageError: it is not that.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if not match or int(match[1]) > int(match[2]):
        raise UsageError(f"--shard takes I/N with I from 1 to N, such as 2/5; not {text}")
    return Shard(int(match[1]), int(match[2]))


def share(desired: DesiredState, whole: DesiredState, shard: Shard, kinds: Kinds) -> DesiredState:
    """Return a shard of the desired state.

    A project whose settings depend on those of a group in the manifests is in the shard of that group.

    Args:
        desired: what is to be divided.
        whole: all targets there are, so that what a run is narrowed to moves nothing to another shard.
        shard: which part.
        kinds: all kinds.
    """
    homes = _Homes(whole, kinds)
    targets = tuple(each for each in desired.targets if _number(homes.of(each), shard.total) == shard.number)
    return replace(desired, targets=targets)


def share_plan(plan: Plan, shard: Shard, kinds: Kinds) -> Plan:
    """Return a shard of a plan: of whichever plan, every target is in exactly one."""
    targets = (
        DesiredTarget(target.target, tuple(Section(target.target, each.section, {}) for each in target.sections))
        for target in plan.targets
    )
    whole = DesiredState(tuple(targets), "")
    kept = {target.target for target in share(whole, whole, shard, kinds).targets}
    return Plan(
        tuple(target for target in plan.targets if target.target in kept),
        tuple(section for section in plan.dependent if section.target in kept),
        tuple(section for section in plan.whole if section.target in kept),
    )


class _Homes:
    """Where targets belong: to themselves, or to the topmost group that others inherit from."""

    def __init__(self, whole: DesiredState, kinds: Kinds) -> None:
        self.inherited = frozenset(name for name, kind in kinds.items() if kind.inherits)
        heirs = [target for target in whole.targets if self._takes_part(target)]
        groups = [target.target.ref for target in heirs if target.target.level is Level.GROUP]
        self.groups = frozenset(ref.casefold() for ref in groups if isinstance(ref, str))
        # A group known only by its ID may be above any project, a project known only by its ID below any group.
        self.any_above = len(self.groups) < len(groups)
        self.together = bool(groups) and any(isinstance(target.target.ref, int) for target in heirs)

    def of(self, target: DesiredTarget) -> str:
        """Return the name of a target's home, the same for all that must stay together."""
        scope = target.target
        if not self._takes_part(target):
            return str(Target(*scope.identity))
        top = _topmost(scope.ref, self.groups)
        if self.together and (top or self.any_above or isinstance(scope.ref, int)):
            return TOGETHER
        return str(Target(Level.GROUP, top) if top else Target(*scope.identity))

    def _takes_part(self, target: DesiredTarget) -> bool:
        return target.target.level is not Level.USER and any(each.kind in self.inherited for each in target.sections)


def _topmost(ref: Key | None, groups: Collection[str]) -> str | None:
    """The topmost of some groups that is above a path or has it itself."""
    parts = str(ref).casefold().split("/")
    return next((path for end in range(1, len(parts) + 1) if (path := "/".join(parts[:end])) in groups), None)


def _number(home: str, total: int) -> int:
    """Which shard a home falls to: the one that bids most for it (rendezvous hashing)."""
    return max(range(1, total + 1), key=lambda number: blake2b(f"{number} {home}".encode(), digest_size=8).digest())
