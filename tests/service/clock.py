"""A clock that never makes a test wait: each wait sets it forward."""

from datetime import UTC, datetime, timedelta
from threading import Event, Lock

from hypothesis import HealthCheck, settings

from reconciler.service import Clock

patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Settings for properties without time limits."""

NOON = datetime(2026, 10, 10, 12, tzinfo=UTC)


class SwiftClock(Clock):
    """A clock for tests. Safe to use from any thread.

    Attributes:
        waits: the seconds of each wait, in their order.
    """

    def __init__(self, start: datetime = NOON) -> None:
        self.waits: list[float] = []
        self._start = start
        self._passed = 0.0
        self._lock = Lock()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        with self._lock:
            return self._passed

    def wait(self, seconds: float, event: Event) -> bool:
        with self._lock:
            self.waits.append(seconds)
        if not event.is_set():
            self.advance(seconds)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Set the clock forward."""
        with self._lock:
            self._passed += seconds
