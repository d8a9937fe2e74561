"""The `Obstacle`: the one type for each reason not to plan, read or write a declaration. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from reconciler.model.exceptions import DeclaredException
from reconciler.model.targets import Address

Effect = Literal["problem", "not applicable", "excepted", "read only"]
"""What an obstacle does to a plan: see `compare.obstacles`."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a declaration cannot be planned, read or written.

    Attributes:
        where: the target, section or object that has the obstacle, or is affected by it.
        reason: in words.
        remedy: the fix; empty if the reason contains it, or none is known.
        cause: a key for obstacles with a common cause, such as the role in a group; empty if the cause is its own.
        effect: on the plan.
        exceptions: if it is excepted, the exceptions that cover the whole declaration.
    """

    where: Address
    reason: str
    remedy: str = ""
    cause: str = ""
    effect: Effect = "problem"
    exceptions: tuple[DeclaredException, ...] = ()

    def at(self, where: Address) -> "Obstacle":
        """Return the obstacle at another address, such as that of an object which refers to an unknown path."""
        return replace(self, where=where)
