"""The rate a run sets itself: requests evenly spaced, whichever way the service counts them."""

from math import inf

from reconciler.service.policy import Rate

ASIDE = 1.02
"""By how much the requests lie further apart than they might, so that none slips into the window of the last ones."""

LATE = 0.01
"""The share of a period by which a request that went late does not delay the next."""


class Pace:
    """When the next request may go.

    With these two numbers no window of that many seconds ever holds a request too many, as long as the way to the
    service does not vary by more than a hundredth of it.
    """

    def __init__(self, rate: Rate | None) -> None:
        self._apart = 0.0 if rate is None else ASIDE * rate.seconds / rate.requests
        self._late = 0.0 if rate is None else min(self._apart, LATE * rate.seconds)
        self._next = -inf

    def wait(self, now: float) -> float:
        """Return the seconds until then, 0 if it may go now."""
        return max(self._next - now, 0.0)

    def take(self, now: float) -> None:
        """Let one go."""
        if self._apart:
            self._next = max(self._next, now - self._late) + self._apart
