"""How many requests may be in flight at once: one more for each round that goes well, half as many for a bad one."""

from math import inf

SLOW = 1.0
"""Seconds: what is answered faster is never too slow."""

SLOWER = 4
"""How many times as slow as at its best the service is when it is too slow."""

WEIGHT = 0.2
"""Of the latest answer in the average."""

OVERLOADED = frozenset({429, 503})


class Ceiling:
    """Additive increase, multiplicative decrease, between 1 and a most.

    Attributes:
        requests: how many may be in flight, at least 1; a fraction does not make one more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.requests = most
        self._exact = float(most)
        self._cut_at = -inf
        self._best = inf
        self._average = 0.0

    def note(self, started: float, ended: float, status: int | None, in_flight: int) -> None:
        """Take note of one answer.

        Args:
            started: when its request was sent, in seconds of the same clock as `ended`.
            status: None where no answer came, which tells nothing.
            in_flight: how many requests were in flight, this one included.
        """
        if status is None:
            return
        taken = ended - started
        self._average = taken if self._best == inf else self._average + WEIGHT * (taken - self._average)
        self._best = min(self._best, taken)
        if status not in OVERLOADED and self._average <= max(SLOW, SLOWER * self._best):
            self._set(min(self._exact + 1 / self._exact, self._most))
        elif started >= self._cut_at:  # what was sent before the last cut tells nothing of how it went since
            self._cut_at = ended
            self._average = self._best
            self._set(max(min(self._exact, in_flight) / 2, 1))

    def _set(self, exact: float) -> None:
        self._exact = exact
        self.requests = int(exact)
