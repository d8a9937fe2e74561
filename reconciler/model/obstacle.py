"""What is in the way of something wanted: one type, from whoever notices it to whoever turns it into words. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from reconciler.model.exceptions import DeclaredException
from reconciler.model.targets import Address

Effect = Literal["problem", "not applicable", "excepted", "read only"]
"""What an obstacle does to a plan: see `compare.obstacles`."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why something wanted cannot be planned, read or written as it is.

    Attributes:
        where: a target, a section of it, or an object: what is in the way, or what it is in the way of.
        reason: why.
        remedy: the fix; empty if the reason contains it, or none is known.
        cause: what many obstacles share, such as the role in a group; they are grouped by it. Empty if it is their own.
        effect: what it does to the plan.
        exceptions: if it is excepted, those that hold back all that it is in the way of.
    """

    where: Address
    reason: str
    remedy: str = ""
    cause: str = ""
    effect: Effect = "problem"
    exceptions: tuple[DeclaredException, ...] = ()

    def at(self, where: Address) -> "Obstacle":
        """Return it as what is in the way of something else, such as of an object that refers to an unknown path."""
        return replace(self, where=where)
