"""The rate limit: requests per window for each token, as production's outermost layer counts them."""

import math
import time
from collections.abc import Callable
from email.utils import formatdate

from .answers import Answer
from .errors import FaultError

Headers = list[tuple[str, str]]


class RateLimit:
    """Counts requests in fixed windows of time.

    Every answer has the `RateLimit-*` headers; `RateLimit-Limit` is the limit for 60 seconds, with any window.
    A request beyond the limit gets 429 and is not carried out.
    """

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._window = -1
        self._observed: dict[str, int] = {}

    def count(self, who: str) -> tuple[Headers, Answer | None]:
        """Count a request; return headers for its answer, and the answer itself if the request is beyond the limit."""
        now = self._clock()
        window = int(now // self._seconds)
        if window != self._window:
            self._window = window
            self._observed.clear()
        observed = self._observed[who] = self._observed.get(who, 0) + 1
        reset = (window + 1) * self._seconds
        headers = [
            ("ratelimit-name", "throttle_authenticated_api" if who else "throttle_unauthenticated_api"),
            ("ratelimit-limit", str(math.ceil(self._limit * 60 / self._seconds))),
            ("ratelimit-observed", str(observed)),
            ("ratelimit-remaining", str(max(self._limit - observed, 0))),
            ("ratelimit-reset", str(math.ceil(reset))),
        ]
        if observed <= self._limit:
            return headers, None
        again = [
            ("ratelimit-resettime", formatdate(reset, usegmt=True)),
            ("retry-after", str(max(math.ceil(reset - now), 1))),
        ]
        return headers, Answer(429, b"Retry later\n", again, "text/plain")


def parse_rate_limit(text: str) -> RateLimit:
    """Return a rate limit from `N/SECONDS`. Raises `FaultError`."""
    count, _, seconds = text.partition("/")
    try:
        limit, period = int(count), float(seconds)
    except ValueError:
        raise FaultError(f"rate limit {text!r}: must be N/SECONDS, as in 600/60") from None
    if limit < 1 or not 0 < period < 1e9:
        raise FaultError(f"rate limit {text!r}: both numbers must be above zero")
    return RateLimit(limit, period)
