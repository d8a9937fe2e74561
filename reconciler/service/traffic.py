"""What a run asked of the service, and what it waited for: counted by all threads, told in its report."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from threading import Lock

from reconciler.service.policy import Clock


class Wait(StrEnum):
    """What the client waits for."""

    RATE_LIMIT = "rate limit of the service"
    UNAVAILABLE = "service unavailable"
    OWN_RATE = "own rate"
    RETRY = "pause before a retry"
    CONCURRENCY = "fewer requests at once"


class Traffic:
    """What was sent, and how long was waited.

    Attributes:
        reads: GETs, each try counted.
        writes: all other requests, each try counted.
        retries: how many of both were tries after the first.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.writes = 0
        self.retries = 0
        self._answers = 0
        self._answering = 0.0
        self._lock = Lock()
        self._waiting: Counter[Wait] = Counter()
        self._since: dict[Wait, float] = {}
        self._waited: dict[Wait, float] = {}

    @property
    def waited(self) -> Mapping[Wait, float]:
        """Seconds of the run in which some request waited, by reason; requests that wait side by side count once."""
        with self._lock:
            return dict(self._waited)

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return self.reads + self.writes

    @property
    def latency(self) -> float:
        """Seconds that an answer took, on average and without any wait before it; 0 while there is none."""
        with self._lock:
            return self._answering / self._answers if self._answers else 0.0

    @property
    def waiting_for(self) -> list[Wait]:
        """What some request waits for at this moment."""
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
        """Count one answer, and how long it took."""
        with self._lock:
            self._answers += 1
            self._answering += seconds

    def allows_retry(self, share: float, allowance: int) -> bool:
        """Whether there were fewer retries than that share of all requests, and so many more."""
        with self._lock:
            return self.retries < share * (self.reads + self.writes) + allowance

    @contextmanager
    def waiting(self, reason: Wait, clock: Clock) -> Iterator[None]:
        """Count the time that passes in this block."""
        with self._lock:
            if not self._waiting[reason]:
                self._since[reason] = clock.monotonic()
            self._waiting[reason] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[reason] -= 1
                if not self._waiting[reason]:
                    passed = clock.monotonic() - self._since[reason]
                    self._waited[reason] = self._waited.get(reason, 0.0) + passed
