"""Timeouts, retries and limits of the client, and its clock: both are arguments, so that no test waits."""

from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from time import monotonic
from typing import Self


class Clock:
    """The clock of the machine; tests have one of their own. Its methods are called from any thread."""

    def now(self) -> datetime:
        """Return the time of day, with a time zone."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some moment, never fewer than before."""
        return monotonic()

    def wait(self, seconds: float, event: Event) -> bool:
        """Wait so many seconds, or until the event is set; return whether it is."""
        return event.wait(seconds)


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of requests in a number of seconds, both above zero."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `N/SECONDS`, such as `600/60`.

        Raises:
            ValueError: `text` is no rate; the message is fit for the user.
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
    """Timeouts, retries and limits of the client.

    Attributes:
        connect_timeout: seconds to open a connection.
        read_timeout: seconds without a single byte.
        total_timeout: seconds for one request, from its connection to the last byte of its response.
        max_wait: seconds; the run ends if the service asks for a longer wait.
        tries: how often one request is sent at most.
        tries_unheard: the same before the first response of the run, since the URL may be wrong.
        retry_share: the retries that a run may make, as a share of its requests.
        retry_allowance: retries on top of that share.
        first_backoff: seconds at most before the second try; the maximum doubles with each try.
        longest_backoff: seconds.
        concurrency: how many requests may be in flight at once, if the service keeps up.
        rate: the run's own limit, or None.
        follow_moved: whether groups and projects that have moved may be written to.
        largest_response: bytes of a decoded response body.
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
    largest_response: int = 32 * 2**20


DEFAULT_POLICY = Policy()
