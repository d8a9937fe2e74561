"""One declared part of a section, with what planning it takes. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from reconciler.engine.compare.earlier import NOTHING_EARLIER, Earlier
from reconciler.engine.compare.exceptions import NO_EXCEPTIONS, PartExceptions
from reconciler.engine.compare.obstacles import as_problem
from reconciler.model.endpoints import NO_SIBLINGS, Collection, Siblings, Singleton
from reconciler.model.item import Finding
from reconciler.model.obstacle import Obstacle
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import LiveState, PartAddress, Section
from reconciler.model.targets import Address, Key

PartType = TypeVar("PartType", bound=Singleton | Collection)


@dataclass(frozen=True, slots=True)
class DeclaredPart(Generic[PartType]):
    """One part of a declared section, and what planning it takes besides its live objects.

    Attributes:
        section: the declaration.
        part: the endpoint.
        live: its IDs, and when it was read.
        objects: all that its list shows; None if it is none, or was not read whole.
        grace: see `DesiredState.grace`.
        exceptions: those of the section that are not over.
        earlier: what the plan changes before.
        siblings: the objects of the collection, where some refer to others.
    """

    section: Section
    part: PartType
    live: LiveState
    objects: Objects | None = None
    grace: timedelta = timedelta()
    exceptions: PartExceptions = NO_EXCEPTIONS
    earlier: Earlier = NOTHING_EARLIER
    siblings: Siblings = NO_SIBLINGS

    @property
    def place(self) -> PartAddress:
        """Where the part is in live state."""
        return self.section.target, self.section.kind, self.part.name

    def address(self, name: Key | None = None) -> Address:
        """Return the address of an object, or of the part itself."""
        return Address(self.section.target, self.section.kind, self.part.name, self.part.title, name)

    def declared_until(self, record: LiveRecord) -> str:
        """Return the commit that declared what is no longer declared, and is deleted for that; empty for others."""
        number = None if record.below else record.id
        return "" if number is None else self.live.absences.get(self.place, {}).get(number, "")

    def problem(self, name: Key | None, reason: str, remedy: str = "", *, field: str | None = None) -> Finding:
        """Return a problem of an object, or of the part itself."""
        return as_problem(Obstacle(self.address(name), reason, remedy), field=field)
