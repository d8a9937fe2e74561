"""The time of this machine; everything except the sandbox reads it here, so that tests can set it."""

from datetime import UTC, date, datetime

GLANCE = 0.5
"""The most seconds until the main thread, which waits, notices a signal: see `engine.crew` and `service.transport`."""


def now() -> datetime:
    """Return the time, with UTC as its time zone."""
    return datetime.now(UTC)


def today() -> date:
    """Return the day in UTC, by which exceptions, permissions and tokens end."""
    return now().date()
