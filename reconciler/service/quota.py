"""What the service says is left of its rate limit, in `RateLimit-*` headers (deployed behaviour, section 7.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf

from reconciler.service.dates import parse_date

LONGEST_NUMBER = 12
"""Digits of a number in a header that can be meant."""


@dataclass(slots=True)
class _Window:
    """A fixed window of one throttle of the service.

    Attributes:
        reset: its end in the service's own time, seconds since 1970.
        ends: its end by our clock's `monotonic`.
        left: the requests left in it, by the last answer that counted.
        whole: the requests it began with.
    """

    reset: int
    ends: float
    left: int
    whole: int


class Quota:
    """The windows that answers have told of. `RateLimit-Limit`, which is not of the same window, is not read."""

    def __init__(self) -> None:
        self._windows: dict[str, _Window] = {}

    def note(self, headers: Mapping[str, str], now: float, time_of_day: datetime) -> None:
        """Take in what the headers of an answer say.

        Args:
            now: by our clock's `monotonic`.
            time_of_day: at the same moment; the service's `Date` is preferred, since clocks differ.
        """
        left, reset = _number(headers, "ratelimit-remaining"), _number(headers, "ratelimit-reset")
        if left is None or reset is None:
            return
        name = headers.get("ratelimit-name", "")
        window = self._windows.get(name)
        if window is None or window.reset < reset:
            there = parse_date(headers.get("date", "")) or time_of_day
            whole = left + (_number(headers, "ratelimit-observed") or 0)
            self._windows[name] = _Window(reset, now + reset - there.timestamp(), left, max(whole, 1))
        elif window.reset == reset:
            window.left = min(window.left, left)

    def wait(self, now: float, in_flight: int) -> float:
        """Return for how many seconds nothing more may be sent: 0, or infinity for until an answer comes in.

        Requests in flight may not be in what the service counted yet, so each is taken off once more.
        """
        longest = 0.0
        for window in self._windows.values():
            if window.ends <= now:
                window.left = window.whole
            if window.left <= in_flight:
                longest = max(longest, inf if in_flight else window.ends - now)
        return longest


def _number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None
