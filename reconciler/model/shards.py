"""A `Shard`: a part of the targets, for a run of several jobs.

Not in `targets`, since options need it without pydantic.
"""

from dataclasses import dataclass

from pydantic import PositiveInt


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of several; every target is in exactly one, on every machine alike.

    A target stays in its part when others are added or removed, and few targets move when the number of parts changes.
    """

    number: PositiveInt
    """Which part, from 1."""
    total: PositiveInt
    """How many parts there are."""

    def __str__(self) -> str:
        """The shard as the command line takes it."""
        return f"{self.number}/{self.total}"
