"""The governor: when the next request may be sent, for all threads of a run together.

Whoever waits here holds no connection. What the service asks for is obeyed by the whole run, not by the thread it told.
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from math import inf
from threading import Condition, Event

from reconciler.errors import Stopped, WaitTooLong
from reconciler.service.ceiling import Ceiling
from reconciler.service.dates import LONGEST_PAUSE
from reconciler.service.pace import Pace
from reconciler.service.policy import Clock, Policy
from reconciler.service.quota import Quota
from reconciler.service.traffic import Traffic, Wait

LOG = logging.getLogger(__name__)

WORTH_TELLING = 5
"""Seconds of a wait that whoever watches should know of."""


class ConcurrencyLimit:
    """Lets requests go, each in its turn.

    Args:
        stop: once set, waits that the service or a failure brought about end in `Stopped`. It is set here as well when
            the service asks for too long a wait; from then on nothing is let go.
    """

    def __init__(self, policy: Policy, clock: Clock, traffic: Traffic, stop: Event) -> None:
        self._max_wait = policy.max_wait
        self._clock = clock
        self._traffic = traffic
        self._stop = stop
        self._turn = Condition()
        self._in_flight = 0
        self._held_until = -inf
        self._held_for = Wait.RATE_LIMIT
        self._words = ""
        self._over: WaitTooLong | None = None
        self._ceiling = Ceiling(policy.concurrency)
        self._pace = Pace(policy.rate)
        self._quota = Quota()
        self._never = Event()

    def enter(self, request: str) -> float:
        """Wait until a request may be sent; `leave` must follow. Returns the clock's `monotonic` at its start.

        Raises:
            WaitTooLong: the service asks for a longer wait than the run may take, now or at some time before.
            Stopped: the run was ended while this waited.
        """
        while True:
            with self._turn:
                self._refuse_if_over(request)
                now = self._clock.monotonic()
                reason, seconds = self._obstacle(now)
                if not seconds:
                    self._pace.take(now)
                    self._in_flight += 1
                    return now
                if seconds == inf:
                    with self._traffic.waiting(reason, self._clock):
                        self._turn.wait()
                    continue
                if seconds > self._max_wait and reason is not Wait.OWN_RATE:
                    self._end(request, reason, seconds)
            self.pause(request, reason, seconds)

    def leave(self, started: float, status: int | None, headers: Mapping[str, str]) -> None:
        """Take note of an answer, or with None for its status, of its absence."""
        with self._turn:
            now = self._clock.monotonic()
            self._ceiling.note(started, now, status, self._in_flight)
            self._in_flight -= 1
            if "ratelimit-remaining" in headers:
                self._quota.note(headers, now, self._clock.now())
            self._turn.notify_all()

    def hold(self, seconds: float, reason: Wait, words: str = "") -> None:
        """Let nothing go for so long; `words` are the service's own about it."""
        with self._turn:
            self._hold(self._clock.monotonic(), seconds, reason, words)

    def pause(self, request: str, reason: Wait, seconds: float) -> None:
        """Let time pass.

        Raises:
            WaitTooLong, Stopped: see `enter`.
        """
        event = self._never if reason is Wait.OWN_RATE else self._stop
        with self._traffic.waiting(reason, self._clock):
            ended = self._clock.wait(seconds, event)
        if ended:
            with self._turn:
                self._refuse_if_over(request)
            raise Stopped(request, "the run was ended before it could be sent")

    def _obstacle(self, now: float) -> tuple[Wait, float]:
        """What is in the way, and for how many seconds: 0 if nothing is, infinity for until an answer comes in."""
        if self._held_until > now:
            return self._held_for, self._held_until - now
        if self._in_flight >= self._ceiling.requests:
            return Wait.CONCURRENCY, inf
        left = self._quota.wait(now, self._in_flight)
        if 0 < left < inf:
            self._hold(now, left, Wait.RATE_LIMIT)
        return (Wait.RATE_LIMIT, left) if left else (Wait.OWN_RATE, self._pace.wait(now))

    def _hold(self, now: float, seconds: float, reason: Wait, words: str = "") -> None:
        until = now + seconds
        if until > self._held_until + WORTH_TELLING and WORTH_TELLING <= seconds <= self._max_wait:
            LOG.info("waiting %.0f s: %s%s", seconds, reason, _quoted(words))
        if until > self._held_until:
            self._held_until, self._held_for, self._words = until, reason, words

    def _end(self, request: str, reason: Wait, seconds: float) -> None:
        come_back = self._clock.now() + timedelta(seconds=min(seconds, LONGEST_PAUSE))
        said = (
            f"{reason}{_quoted(self._words)}: it asks to come back at {come_back:%Y-%m-%d %H:%M:%S %Z}, in "
            f"{seconds:.0f} s; --max-wait is {self._max_wait:g} s"
        )
        self._over = WaitTooLong(request, said, come_back)
        self._stop.set()
        self._turn.notify_all()
        self._refuse_if_over(request)

    def _refuse_if_over(self, request: str) -> None:
        if self._over is not None:
            raise WaitTooLong(request, self._over.reason, self._over.come_back)


def _quoted(words: str) -> str:
    return f' ("{words}")' if words else ""
