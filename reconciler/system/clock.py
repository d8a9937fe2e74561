"""The time of this machine, which everything but the sandbox reads here."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """Return the time, with UTC as its time zone."""
    return datetime.now(UTC)


def today() -> date:
    """Return the day in UTC, by which exceptions, permissions and tokens end."""
    return now().date()
