"""The `Limiter`: it delays requests, for all threads of a run together, until they may be sent.

Three limits apply at once: `concurrency` (requests in flight), `Pacer` (the rate that the run sets itself) and `Quota`
(the rate limit that the service announces). A waiting thread has no connection. When the service asks for a pause, all
threads wait.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from threading import Condition, Event

from reconciler.errors import Stopped, WaitTooLong
from reconciler.model.wording import counted
from reconciler.service.concurrency import AdaptiveLimit, FixedLimit, Sent
from reconciler.service.policy import AUTO, LONGEST_PAUSE, Clock, Policy, Rate
from reconciler.service.responses import parse_date, parse_number
from reconciler.service.traffic import Traffic, Wait

LOG = logging.getLogger(__name__)

STOPPED = "the run was stopped before the request could be sent"

WORTH_LOGGING = 5
"""Seconds: shorter waits are not logged."""


class Limiter:
    """Delays each request until all limits allow it.

    Args:
        stop: once set, every wait ends in `Stopped`: only requests that need not wait are sent. The limiter sets it too
            when the service asks for too long a wait; no request is sent from then on.
    """

    def __init__(self, policy: Policy, clock: Clock, traffic: Traffic, stop: Event) -> None:
        self._max_wait = policy.max_wait
        self._most = policy.concurrency
        self._clock = clock
        self._traffic = traffic
        self._stop = stop
        self._changed = Condition()
        self._blocked_until = -inf
        self._block_reason = Wait.RATE_LIMIT
        self._words = ""
        self._refusal: WaitTooLong | None = None
        self._limit = AdaptiveLimit() if self._most == AUTO else FixedLimit(self._most)
        self._pacer = Pacer(policy.rate)
        self._quota = Quota()

    def concurrency(self) -> int:
        """Return the number of requests that may be in flight at once; fewer while the service refuses some."""
        return self._limit.requests if self._most == AUTO else self._most

    def acquire(self, request: str) -> Sent:
        """Wait until a request, by its method and path, may be sent; `release` must follow.

        Raises:
            WaitTooLong: the service asks, or has asked before, for a longer wait than `Policy.max_wait`.
            Stopped: the run was stopped during the wait.
        """
        has_waited = False
        while True:
            with self._changed:
                self._raise_refusal(request)
                now = self._clock.monotonic()
                reason, seconds = self._reason_to_wait(now)
                if self._stop.is_set() and (seconds or has_waited):
                    raise Stopped(request, STOPPED)
                has_waited = True
                if not seconds:
                    self._pacer.take(now)
                    return self._limit.send(request, now)
                if seconds == inf:
                    with self._traffic.waiting(reason, self._clock):
                        self._changed.wait()
                    continue
                if seconds > self._max_wait and reason is not Wait.OWN_RATE:
                    self._refuse(request, reason, seconds)
            # Without the lock: other threads must be able to record responses, which may end the reason to wait.
            self.pause(request, reason, seconds)

    def release(self, sent: Sent, status: int | None, headers: Mapping[str, str]) -> None:
        """Record the response to a request; a status of None means that no response came."""
        with self._changed:
            now, before = self._clock.monotonic(), self._limit.requests
            self._limit.answer(sent, now, status)
            if self._limit.requests != before:
                LOG.debug("up to %s in flight", counted(self._limit.requests, "request"))
            if "ratelimit-remaining" in headers:
                self._quota.record(headers, now, self._clock.now())
            self._changed.notify_all()

    def block(self, seconds: float, wait_reason: Wait, words: str = "") -> None:
        """Send no request for this long; `words` are the service's explanation."""
        with self._changed:
            until = self._clock.monotonic() + seconds
            if until > self._blocked_until + WORTH_LOGGING and WORTH_LOGGING <= seconds <= self._max_wait:
                LOG.info("waiting %.0f s: %s%s", seconds, wait_reason, _quoted(words))
            if until > self._blocked_until:
                self._blocked_until, self._block_reason, self._words = until, wait_reason, words

    def pause(self, request: str, wait_reason: Wait, seconds: float) -> None:
        """Wait, in this thread only.

        Raises:
            WaitTooLong, Stopped: see `acquire`.
        """
        with self._traffic.waiting(wait_reason, self._clock):
            stopped = self._clock.wait(seconds, self._stop)
        if stopped:
            with self._changed:
                self._raise_refusal(request)
            raise Stopped(request, STOPPED)

    def _reason_to_wait(self, now: float) -> tuple[Wait, float]:
        """Return the reason to wait and the seconds: 0 for none, `inf` until a response arrives."""
        if self._blocked_until > now:
            return self._block_reason, self._blocked_until - now
        if self._limit.in_flight >= self._limit.requests:
            return Wait.CONCURRENCY, inf
        # Before the run's own rate: a request that the quota delays must not use up its turn.
        seconds = self._quota.wait(now, self._limit.in_flight)
        if 0 < seconds < inf:
            self.block(seconds, Wait.RATE_LIMIT)
        return (Wait.RATE_LIMIT, seconds) if seconds else (Wait.OWN_RATE, self._pacer.wait(now))

    def _refuse(self, request: str, wait_reason: Wait, seconds: float) -> None:
        come_back = self._clock.now() + timedelta(seconds=min(seconds, LONGEST_PAUSE))
        text = (
            f"{wait_reason}{_quoted(self._words)}: retry at {come_back:%Y-%m-%d %H:%M:%S %Z}, in {seconds:.0f} s; "
            f"--max-wait is {self._max_wait:g} s"
        )
        self._refusal = WaitTooLong(request, text, come_back)
        # The stop is for all threads: each of their requests would have to wait as long.
        self._stop.set()
        self._changed.notify_all()
        self._raise_refusal(request)

    def _raise_refusal(self, request: str) -> None:
        if self._refusal is not None:
            raise WaitTooLong(request, self._refusal.reason, self._refusal.come_back)


def _quoted(words: str) -> str:
    return f' ("{words}")' if words else ""


SPACING = 1.02
"""Factor by which requests are spaced wider than the rate allows, so that none falls into an earlier window."""

LATE = 0.01
"""A request may be late by this share of the period without delaying the next one."""


class Pacer:
    """The rate that a run sets itself: requests are evenly spaced.

    With `SPACING` and `LATE`, no window of the rate's seconds ever has a request too many, as long as the travel time
    to the service varies by less than a hundredth of the window.
    """

    def __init__(self, rate: Rate | None) -> None:
        self._spacing = 0.0 if rate is None else SPACING * rate.seconds / rate.requests
        self._late = 0.0 if rate is None else min(self._spacing, LATE * rate.seconds)
        self._next = -inf

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(self._next - now, 0.0)

    def take(self, now: float) -> None:
        """Record that a request is sent."""
        if self._spacing:
            self._next = max(self._next, now - self._late) + self._spacing


@dataclass(slots=True)
class QuotaWindow:
    """A fixed window of one throttle of the service.

    Attributes:
        reset: its end by the service's clock, in seconds since 1970.
        ends: its end by our clock's `monotonic`.
        remaining: requests left in it.
        whole: the requests it began with.
    """

    reset: int
    ends: float
    remaining: int
    whole: int


class Quota:
    """The requests that the service's `RateLimit-*` headers allow (deployed behaviour, section 7.4).

    `RateLimit-Limit` is not read: GitLab 18.9 converts it to a window of 60 seconds, whatever the real window is.
    """

    def __init__(self) -> None:
        self._windows: dict[str, QuotaWindow] = {}

    def record(self, headers: Mapping[str, str], now: float, time_of_day: datetime) -> None:
        """Record the headers of a response.

        Args:
            headers: by lower-case name.
            now: by our clock's `monotonic`.
            time_of_day: at the same moment; the service's `Date` is preferred, since clocks differ.
        """
        remaining, reset = (
            parse_number(headers.get("ratelimit-remaining")),
            parse_number(headers.get("ratelimit-reset")),
        )
        if remaining is None or reset is None:
            return
        name = headers.get("ratelimit-name", "")
        window = self._windows.get(name)
        if window is None or window.reset < reset:
            service_time = parse_date(headers.get("date", "")) or time_of_day
            whole = remaining + (parse_number(headers.get("ratelimit-observed")) or 0)
            self._windows[name] = QuotaWindow(reset, now + reset - service_time.timestamp(), remaining, max(whole, 1))
        elif window.reset == reset:
            window.remaining = min(window.remaining, remaining)

    def wait(self, now: float, in_flight: int) -> float:
        """Return the seconds for which no request may be sent: 0, or `inf` until a response arrives.

        The service may not have counted the requests in flight yet, so each is subtracted once more.
        """
        longest = 0.0
        for window in self._windows.values():
            if window.ends <= now:
                window.remaining = window.whole
            if window.remaining <= in_flight:
                longest = max(longest, inf if in_flight else window.ends - now)
        return longest
