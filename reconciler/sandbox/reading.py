"""Typed access to the values of a state file, each of which knows its place in it.

Null and absent are alike: both mean the default. Every method raises `StateError` with the place.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from .errors import StateError


class Reading:
    """One value of a state, and where it stands."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def fault(self, text: str) -> StateError:
        """The error to raise about this value."""
        return StateError(f"{self.place}: {text}" if self.place else text)

    def given(self) -> bool:
        """Whether there is anything but null."""
        return self.value is not None

    def fields(self, *known: str) -> "Fields":
        """The members of a mapping; a key that is not known is an error."""
        if self.value is None:
            return Fields({}, self.place)
        if not isinstance(self.value, Mapping):
            raise self.fault(f"must be a mapping, not {_kind(self.value)}")
        for key in self.value:
            if key not in known:
                raise self.fault(f"unknown key {key!r}; known are {', '.join(known)}")
        return Fields(self.value, self.place)

    def entries(self) -> Iterator[tuple[str, "Reading"]]:
        """The members of a mapping with free keys."""
        if self.value is None:
            return
        if not isinstance(self.value, Mapping):
            raise self.fault(f"must be a mapping, not {_kind(self.value)}")
        for key, value in self.value.items():
            yield str(key), Reading(value, f"{self.place}.{key}")

    def items(self) -> Iterator["Reading"]:
        """The members of a list."""
        if self.value is None:
            return
        if not isinstance(self.value, list | tuple):
            raise self.fault(f"must be a list, not {_kind(self.value)}")
        for position, value in enumerate(self.value):
            yield Reading(value, f"{self.place}[{position}]")

    def text(self, default: str | None = None) -> str:
        """A string; without a default it must be there."""
        found = self.optional_text()
        if found is None:
            if default is None:
                raise self.fault("is missing")
            return default
        return found

    def optional_text(self) -> str | None:
        """A string or null."""
        if self.value is None or isinstance(self.value, str):
            return self.value
        raise self.fault(f"must be a string, not {_kind(self.value)}; quote it")

    def choice(self, allowed: Collection[str], default: str) -> str:
        """One of a few strings."""
        found = self.text(default)
        if found not in allowed:
            raise self.fault(f"{found!r} is none of {', '.join(allowed)}")
        return found

    def boolean(self, default: bool) -> bool:
        """True or false."""
        found = self.optional_boolean()
        return default if found is None else found

    def optional_boolean(self) -> bool | None:
        """True, false or null."""
        if self.value is None or isinstance(self.value, bool):
            return self.value
        raise self.fault(f"must be true or false, not {_kind(self.value)}")

    def optional_integer(self) -> int | None:
        """A whole number above zero, or null."""
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 1:
            raise self.fault(f"must be a whole number above zero, not {self.value!r}")
        return self.value

    def optional_date(self) -> str | None:
        """A plain date as `YYYY-MM-DD`, or null."""
        if self.value is None:
            return None
        if isinstance(self.value, date) and not isinstance(self.value, datetime):
            return self.value.isoformat()
        try:
            return date.fromisoformat(self.value).isoformat()
        except (TypeError, ValueError):
            raise self.fault(f"must be a date like 2026-12-31, not {self.value!r}") from None

    def optional_time(self) -> str | None:
        """A moment as `YYYY-MM-DDTHH:MM:SS.mmmZ`, or null; a plain date is its midnight."""
        if self.value is None:
            return None
        try:
            text = self.value.isoformat() if isinstance(self.value, date) else self.value
            return stamp(moment(text))
        except (TypeError, ValueError):
            raise self.fault(f"must be a time like 2026-12-31T23:59:59Z, not {self.value!r}") from None


class Fields:
    """The members of a mapping, by name; one that is not there reads as null."""

    __slots__ = ("_place", "_values")

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = values
        self._place = place

    def __getitem__(self, name: str) -> Reading:
        place = f"{self._place}.{name}" if self._place else name
        return Reading(self._values.get(name), place)


def moment(text: str) -> datetime:
    """The moment an ISO 8601 text means; without an offset it is UTC. Raises `ValueError`."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(when: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`: the one form moments are kept in, so that they sort as text."""
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03d}Z"


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), f"the {type(value).__name__} {value!r}")
