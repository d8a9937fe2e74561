"""Times in headers: HTTP dates and `Retry-After`, which takes seconds as well (RFC 9110, sections 5.6.7 and 10.2.3)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 366 * 86400
"""Seconds; who asks for more means never."""


def parse_date(text: str) -> datetime | None:
    """Return an HTTP date, with a time zone; None for anything else."""
    try:
        found = parsedate_to_datetime(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def pause_asked_for(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that `Retry-After` asks for, not below 0; None where there is none that makes sense.

    A date is taken relative to the service's own `Date` where it sends one, since clocks differ.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:LONGEST_NUMBER]), LONGEST_PAUSE))
    then = parse_date(text)
    if then is None:
        return None
    here = parse_date(headers.get("date", "")) or now
    return min(max((then - here).total_seconds(), 0.0), LONGEST_PAUSE)


LONGEST_NUMBER = 20
"""Digits: more do not make it any longer."""
