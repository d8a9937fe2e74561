"""The requests of a run and its waits, counted by all threads, for its report."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from threading import RLock

from reconciler.service.policy import Clock


class Wait(StrEnum):
    """Reasons to wait."""

    RATE_LIMIT = "rate limit of the service"
    UNAVAILABLE = "service unavailable"
    OWN_RATE = "own rate"
    RETRY = "pause before a retry"
    CONCURRENCY = "fewer requests at once"
    CREATION = "creation or import by the service"


class Traffic:
    """The requests and waits of a run.

    Attributes:
        reads: GET requests, each try counted.
        writes: all other requests, each try counted.
        retries: how many of both were tries after the first.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.writes = 0
        self.retries = 0
        self._responses = 0
        self._response_seconds = 0.0
        self._lock = RLock()  # a signal's handler may read the numbers in the middle of a count, in the same thread
        self._waiting: Counter[Wait] = Counter()
        self._since: dict[Wait, float] = {}
        self._waited: dict[Wait, float] = {}

    @property
    def waited(self) -> Mapping[Wait, float]:
        """Seconds in which at least one request waited, by reason."""
        with self._lock:
            return dict(self._waited)

    @property
    def requests(self) -> int:
        """Requests sent."""
        return self.reads + self.writes

    @property
    def latency(self) -> float:
        """Average seconds that a response took, without waits before the request; 0 before the first response."""
        with self._lock:
            return self._response_seconds / self._responses if self._responses else 0.0

    @property
    def waiting_for(self) -> list[Wait]:
        """The reasons for which requests wait at this moment."""
        with self._lock:
            return sorted(+self._waiting)

    def count(self, method: str, *, again: bool) -> None:
        """Count one request."""
        with self._lock:
            self.retries += again
            if method == "GET":
                self.reads += 1
            else:
                self.writes += 1

    def answered(self, seconds: float) -> None:
        """Count one response that took so long."""
        with self._lock:
            self._responses += 1
            self._response_seconds += seconds

    def allows_retry(self, share: float, allowance: int) -> bool:
        """Whether there were fewer retries than this share of all requests plus the allowance."""
        with self._lock:
            return self.retries < share * (self.reads + self.writes) + allowance

    @contextmanager
    def waiting(self, wait_reason: Wait, clock: Clock) -> Iterator[None]:
        """Count the time that passes in this block as a wait."""
        with self._lock:
            if not self._waiting[wait_reason]:
                self._since[wait_reason] = clock.monotonic()
            self._waiting[wait_reason] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[wait_reason] -= 1
                if not self._waiting[wait_reason]:
                    passed = clock.monotonic() - self._since[wait_reason]
                    self._waited[wait_reason] = self._waited.get(wait_reason, 0.0) + passed
