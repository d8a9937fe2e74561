"""Targets and addresses: `Target` is a user, group or project, and `Address` an object in a section of a target."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate
from urllib.parse import quote

Key = str | int
"""The name of an object within its section: a title, a pattern, a path, or a numeric ID."""


class Level(StrEnum):
    """The levels at which settings live, in the order in which they are applied."""

    INSTANCE = "instance"
    USER = "user"
    GROUP = "group"
    PROJECT = "project"

    @property
    def document_kind(self) -> str:
        """The `kind` of the documents that are about such targets."""
        return self.capitalize()


LEVELS = tuple(Level)

PATHLESS = (Level.INSTANCE, Level.USER)
"""The levels of which a service shows one target: itself, and the user behind the token."""

Identity = tuple[Level, Key | None]
"""See `Target.identity`."""


@dataclass(frozen=True, slots=True)
class Target:
    """One target: the instance, the user behind the token, a group or a project.

    Attributes:
        level: its level.
        ref: full path or numeric ID; None for the instance and the user.
    """

    level: Level
    ref: Key | None = None

    @property
    def url(self) -> str:
        """The beginning of the target's request paths, with a slash at its end (spec section 1, `:id`)."""
        if self.ref is None:
            return ""
        return _url(self.level, self.ref)

    @property
    def identity(self) -> Identity:
        """A key that is equal for two spellings of one target: paths are compared without regard to case."""
        return self.level, self.ref.casefold() if isinstance(self.ref, str) else self.ref

    @property
    def order(self) -> tuple[int, bool, str, int]:
        """The instance before users before groups before projects; paths alphabetically, then numeric IDs ascending."""
        number = self.ref if isinstance(self.ref, int) else 0
        path = self.ref if isinstance(self.ref, str) else ""
        return LEVELS.index(self.level), isinstance(self.ref, int), path, number

    @property
    def parent(self) -> str:
        """The path of the group or namespace that the target is in; empty at the top level."""
        return str(self.ref).rpartition("/")[0]

    @property
    def groups_above(self) -> list[str]:
        """The paths of the groups above the target, in lower case, the topmost first."""
        return [*accumulate(str(self.ref).casefold().split("/")[:-1], "{}/{}".format)]

    @property
    def address(self) -> "Address":
        """The address of the target itself."""
        return Address(self, "", "", str(self.level), self.ref)

    def __str__(self) -> str:
        """`project acme/payments/api`, `group 12`, `user`, `instance`."""
        return str(self.level) if self.ref is None else f"{self.level} {self.ref}"


@lru_cache(maxsize=4096)
def _url(level: Level, ref: Key) -> str:
    """Return the path of a target; each of its requests begins with it."""
    return f"{level}s/{quote(str(ref), safe='')}/"


@dataclass(frozen=True, slots=True)
class Address:
    """One object, or one settings section, of one target.

    Attributes:
        target: the target.
        section: the manifest's key, such as `milestones`.
        part: one of the section's endpoints; the section's name if it has only one.
        title: the word for such an object, such as `milestone`.
        name: the object's identity within the part; None for a settings section.
    """

    target: Target
    section: str
    part: str
    title: str
    name: Key | None = None
