"""The stricter of two values of a field, for fields that protect something. Begin with `compare_field`.

A kind declares the direction of each such field in `Resource.directions`. All comparisons follow from one function,
which returns whether one value is at least as strict as another. Values are JSON; null is looser than all others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.entries import LEVELS, Subject
from reconciler.model.protocols import Json


class Strictness(StrEnum):
    """The result of comparing a value with another one."""

    STRICTER = "stricter"
    EQUAL = "equal"
    LOOSER = "looser"
    INCOMPARABLE = "incomparable"


@dataclass(frozen=True, slots=True)
class Direction:
    """The way in which the values of a field become stricter.

    Attributes:
        is_as_strict: returns whether the first value is at least as strict as the second; neither is null.
        means_all: returns whether the field allows everybody in an object with these fields, whatever its value is;
            None if the value alone decides.
    """

    is_as_strict: Callable[[Json, Json], bool]
    means_all: Callable[[Mapping[str, Json]], bool] | None = None

    def compare(self, this: Json, that: Json) -> Strictness:
        """Return whether a value is stricter than another one."""
        forth, back = self._is_as_strict(this, that), self._is_as_strict(that, this)
        if forth:
            return Strictness.EQUAL if back else Strictness.STRICTER
        return Strictness.LOOSER if back else Strictness.INCOMPARABLE

    def value(self, name: str, fields: Mapping[str, Json]) -> Json:
        """Return the value of a field of an object for `compare`: null if the field allows everybody."""
        return None if self.means_all and self.means_all(fields) else fields.get(name)

    def _is_as_strict(self, this: Json, that: Json) -> bool:
        if that is None or this == that:
            return True
        return this is not None and self.is_as_strict(this, that)


Directions = Mapping[str, Direction]
"""By field, for the fields that have one."""


def compare_field(directions: Directions, name: str, this: Mapping[str, Json], that: Mapping[str, Json]) -> Strictness:
    """Return whether a field is stricter in an object than in another one.

    Args:
        directions: of the model of both.
        name: a field that has a direction.
        this, that: the fields of the objects, as JSON. A name and the number of one subject are two entries, unless
            `by_number` has replaced the name.
    """
    direction = directions[name]
    return direction.compare(direction.value(name, this), direction.value(name, that))


def covers(that: Json, this: Json) -> bool:
    """Return whether an entry allows everybody whom another entry allows: a role allows higher roles too."""
    if isinstance(this, str) and isinstance(that, str) and {this, that} <= LEVELS.keys():
        return LEVELS[this] >= LEVELS[that]
    return bool(_identity(this) == _identity(that))


def _identity(entry: Json) -> Json:
    """Return the subject of an entry; usernames and paths ignore case."""
    return Subject(**entry).identity if isinstance(entry, dict) else entry


def by_number(value: Json, spellings: Mapping[tuple[str, str | int], str | int]) -> Json:
    """Return a list of entries with known names replaced by numbers; or numbers by names."""
    if not isinstance(value, list):
        return value
    return [_by_number(entry, spellings) for entry in value]


def _by_number(entry: Json, spellings: Mapping[tuple[str, str | int], str | int]) -> Json:
    if not isinstance(entry, dict):
        return entry
    who, name = Subject(**entry).identity
    return {who: spellings.get((who, name), name)}


_LEVELS = ("maintainer", "owner", "admin")
_WIDTHS = ("protected", "any")


def _is_level_as_strict(this: Json, that: Json) -> bool:
    return this in _LEVELS and that in _LEVELS and _LEVELS.index(this) >= _LEVELS.index(that)


def _are_entries_as_strict(this: Json, that: Json) -> bool:
    are_lists = isinstance(this, list) and isinstance(that, list)
    return are_lists and all(any(covers(wider, entry) for wider in that) for entry in this)


def _are_fewer(this: Json, that: Json) -> bool:
    return isinstance(this, list) and isinstance(that, list) and all(entry in that for entry in this)


def _are_branches_as_strict(this: Json, that: Json) -> bool:
    if isinstance(this, list):
        return isinstance(that, list) and _are_fewer(that, this)
    if isinstance(that, list):
        return this in _WIDTHS
    return this in _WIDTHS and that in _WIDTHS and _WIDTHS.index(this) >= _WIDTHS.index(that)


def _switch(strict: bool) -> Direction:
    return Direction(lambda this, that: type(this) is bool and type(that) is bool and (this is strict or this is that))


TRUE = _switch(True)
"""A switch that is stricter when it is on."""

FALSE = _switch(False)
"""A switch that is stricter when it is off."""

MORE = Direction(lambda this, that: type(this) is int and type(that) is int and this >= that)
"""A number: more is stricter."""

LEVEL = Direction(_is_level_as_strict)
"""The lowest role that may do something: a higher one is stricter, and none means that all may."""

ENTRIES = Direction(_are_entries_as_strict)
"""A list of who may: each entry must be covered, a role by itself and lower ones, all others by themselves alone."""

FEWER = Direction(_are_fewer)
"""A list of names of which each one may do something: fewer are stricter."""

WIDER = Direction(_are_branches_as_strict)
"""The branches of an approval rule: all over all that are protected over named ones, of which more are stricter."""
