"""The `Policy` of the client: timeouts, retries and limits; and its `Clock`. Both are arguments, so that no test waits.

The functions decide which failures are retried, which requests may have been carried out, and how long to wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from threading import Event
from time import monotonic
from typing import Literal, Self

from reconciler.errors import AnswerLost, BadAnswer, RateLimited, ServiceError, Unreachable, Untrusted
from reconciler.service.responses import parse_date
from reconciler.system import clock


class Clock:
    """The clock of the machine; tests have a clock of their own. Its methods are called from any thread."""

    def now(self) -> datetime:
        """Return the time of day, with a time zone."""
        return clock.now()

    def monotonic(self) -> float:
        """Return seconds since some moment, never fewer than before."""
        return monotonic()

    def wait(self, seconds: float, stop_event: Event) -> bool:
        """Wait so many seconds, or until the event is set; return whether it is set."""
        return stop_event.wait(seconds)


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
            raise ValueError(f"takes N/SECONDS, such as 600/60; not {text}") from None
        if rate.requests < 1 or not 0 < rate.seconds <= LONGEST_PERIOD:
            raise ValueError(f"both numbers must be above zero, and the seconds no more than a day: {text!r}")
        return rate


LONGEST_PERIOD = 86400
"""Seconds."""

AUTO: Literal["auto"] = "auto"
"""Instead of a number of requests in flight: as many as the service can handle."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Timeouts, retries and limits of the client.

    Attributes:
        connect_timeout: seconds to open a connection.
        read_timeout: seconds without a single byte.
        total_timeout: seconds for one request, from its connection to the last byte of its response.
        max_wait: seconds; the run ends if the service asks for a longer wait.
        tries: the most tries of one request.
        first_tries: the most tries before the first response of the run, since the URL may be wrong.
        retry_share: the retries that a run may make, as a share of its requests.
        retry_allowance: retries on top of that share.
        first_backoff: seconds at most before the second try; the maximum doubles with each try.
        longest_backoff: seconds.
        concurrency: the number of requests that may be in flight at once, if the service refuses none; or `AUTO`.
        rate: the run's own limit, or None.
        follow_moved: whether groups and projects that have moved may be written to.
        reads_moved: whether the content of moved targets is read at the new path; their own records always are.
        largest_response: bytes of a decoded response body.
    """

    connect_timeout: float = 10
    read_timeout: float = 60
    total_timeout: float = 120
    max_wait: float = 300
    tries: int = 6
    first_tries: int = 3
    retry_share: float = 0.2
    retry_allowance: int = 50
    first_backoff: float = 0.5
    longest_backoff: float = 30
    concurrency: int | Literal["auto"] = 1
    rate: Rate | None = None
    follow_moved: bool = False
    reads_moved: bool = True
    largest_response: int = 32 * 2**20


DEFAULT_POLICY = Policy()

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that may not come again in a retry."""

CONFLICT = 409
"""A lock on the object, which passes (deployed behaviour, section 7.2), or a conflict, which stays (spec section 7)."""

TRIES_OF_CONFLICTS = 2
"""A lock is gone by the second try; a conflict stays."""

LONGEST_PAUSE = 366 * 86400
"""Seconds; a longer pause means never."""

MAX_HEADER_DIGITS = 20
"""Digits of a number of seconds that are read."""


def is_in_doubt(error: ServiceError, pause: float | None) -> bool:
    """Whether a write with this failure may have been carried out.

    Args:
        error: the failure.
        pause: the response's `Retry-After`; together with a 503, it means that nothing was carried out.
    """
    if isinstance(error, (AnswerLost, BadAnswer)):
        return True
    # In maintenance, GitLab answers 503 with `Retry-After` before a write reaches the application.
    return error.status is not None and error.status >= 500 and not (error.status == 503 and pause is not None)


def is_transient(method: str, error: ServiceError, *, in_doubt: bool) -> bool:
    """Whether the same request may be sent again, and may then succeed.

    A POST that may have been carried out is not sent again, since that would create a second object; nor is a POST with
    409 or 425, whose meaning depends on the endpoint.
    """
    if isinstance(error, Unreachable):
        return not isinstance(error, Untrusted)
    if method == "POST":
        return not in_doubt and (isinstance(error, RateLimited) or error.status == 503)
    return isinstance(error, AnswerLost) or error.status in TRANSIENT


def has_own_limit(method: str, path: str) -> bool:
    """Return whether a 429 is about this endpoint alone, as for imports of projects, which the caller postpones."""
    # GitLab 18.9 accepts six imports from GitHub a minute, and answers 429 without `Retry-After` (section f 3).
    return method == "POST" and path.startswith("import/")


def max_tries(policy: Policy, error: ServiceError, *, heard: bool) -> int:
    """Return the most tries of a request with this failure.

    Args:
        policy: the limits of the client.
        error: the failure.
        heard: whether the service has responded to any request of this run.
    """
    if error.status == CONFLICT:
        return min(policy.tries, TRIES_OF_CONFLICTS)
    # Before the first response, a wrong URL is as likely as a service that is down: the error must come soon.
    return min(policy.tries, policy.first_tries) if isinstance(error, Unreachable) and not heard else policy.tries


def backoff(policy: Policy, tries: int, random: Random) -> float:
    """Return the seconds to wait after this many tries: random, up to a bound that doubles each time."""
    # Random from 0, so that threads that were refused together do not retry together.
    return random.uniform(0, min(policy.longest_backoff, policy.first_backoff * 2 ** (tries - 1)))


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of `Retry-After` (RFC 9110, section 10.2.3), not below 0; None if missing or invalid.

    A date is relative to the service's own `Date` where there is one, since clocks differ.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:MAX_HEADER_DIGITS]), LONGEST_PAUSE))
    then = parse_date(text)
    if then is None:
        return None
    service_time = parse_date(headers.get("date", "")) or now
    return min(max((then - service_time).total_seconds(), 0.0), LONGEST_PAUSE)
