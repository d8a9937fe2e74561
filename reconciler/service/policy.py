"""How patient the client is, and the clock it goes by: both handed in, so that no test waits for real time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from time import monotonic
from typing import Protocol, Self


class Clock(Protocol):
    """Time, as the client sees it. Its methods are called from any thread."""

    def now(self) -> datetime:
        """Return the time of day, with a time zone."""

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back."""

    def wait(self, seconds: float, event: Event) -> bool:
        """Let so many seconds pass, or fewer if the event is set; return whether it is."""


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        """See `Clock`."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See `Clock`."""
        return monotonic()

    def wait(self, seconds: float, event: Event) -> bool:
        """See `Clock`."""
        return event.wait(seconds)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in so many seconds, both above zero."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `N/SECONDS`, such as `600/60`.

        Raises:
            ValueError: it is something else, in words fit for whoever wrote it.
        """
        requests, _, seconds = text.partition("/")
        try:
            rate = cls(int(requests), float(seconds))
        except ValueError:
            raise ValueError(f"not N/SECONDS, such as 600/60: {text!r}") from None
        if rate.requests < 1 or not 0 < rate.seconds <= LONGEST_PERIOD:
            raise ValueError(f"both numbers must be above zero, and the seconds no more than a day: {text!r}")
        return rate


LONGEST_PERIOD = 86400
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient the client is, and how much it asks of the service.

    Attributes:
        connect_timeout: seconds until a connection stands.
        read_timeout: seconds without a single byte.
        total_timeout: seconds for one request, from its connection to the last byte of its answer.
        max_wait: the longest wait, in seconds, that the service may ask for; the run ends where it asks for more.
        tries: how often one request is sent at most.
        tries_unheard: the same while the run has not heard from the service at all: its URL may well be wrong.
        retry_share: how many retries a run may make, as a share of its requests...
        retry_allowance: ...and so many more, whatever it does.
        first_backoff: seconds; before each next try up to twice as long as before, by chance.
        longest_backoff: seconds.
        concurrency: how many requests may be in flight at once, if the service keeps up.
        rate: the limit the run sets itself, or None.
        follow_moved: whether what has moved is written to where it is now.
        largest_answer: bytes of a body, once unpacked.
    """

    connect_timeout: float = 10
    read_timeout: float = 60
    total_timeout: float = 120
    max_wait: float = 300
    tries: int = 6
    tries_unheard: int = 3
    retry_share: float = 0.2
    retry_allowance: int = 50
    first_backoff: float = 0.5
    longest_backoff: float = 30
    concurrency: int = 64
    rate: Rate | None = None
    follow_moved: bool = False
    largest_answer: int = 32 * 2**20


DEFAULT_POLICY = Policy()
