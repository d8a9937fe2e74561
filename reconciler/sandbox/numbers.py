"""The IDs of one sort of thing: taken from a state file, then given out in order, none of them twice."""

from .reading import Reading


class Numbers:
    """Gives out the IDs of one sort of thing, in order, never one that is taken."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._next = 1

    def take(self, reading: Reading) -> None:
        """Note an ID that the state file gives."""
        number = reading.optional_integer()
        if number in self._taken:
            raise reading.fault(f"the ID {number} is given twice")
        if number is not None:
            self._taken.add(number)

    def note(self, number: int) -> None:
        """Note an ID that something made up has."""
        self._taken.add(number)

    def give(self) -> int:
        """The next free ID."""
        while self._next in self._taken:
            self._next += 1
        self._next += 1
        return self._next - 1

    def settle(self) -> None:
        """From now on only IDs above every ID so far: what is deleted leaves its ID unused."""
        self._next = max(self._taken | {self._next - 1}) + 1
