"""A part of the targets, for a run of several jobs. Apart from targets, which are imported where pydantic is not."""

from dataclasses import dataclass

from pydantic import PositiveInt


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of several; every target is in exactly one, on whichever machine it is asked.

    A target keeps its part when others are added or removed, and few move when the number of parts changes.
    """

    number: PositiveInt
    """Which part, from 1."""
    total: PositiveInt
    """How many parts there are."""

    def __str__(self) -> str:
        """Return it as the command line takes it."""
        return f"{self.number}/{self.total}"
