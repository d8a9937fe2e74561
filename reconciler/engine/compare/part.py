"""`DeclaredPart`: the input for planning one part of a section. Pure."""

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
from reconciler.model.state import NOTHING_RECORDED, LiveState, PartAddress, Recorded, Section
from reconciler.model.targets import Address, Key

PartType = TypeVar("PartType", bound=Singleton | Collection)


@dataclass(frozen=True, slots=True)
class DeclaredPart(Generic[PartType]):
    """One part of a declared section, and the facts that planning needs besides its live objects.

    Attributes:
        section: the declaration.
        part: the endpoint.
        live: its IDs, and when it was read.
        objects: all entries of its list; None for a settings record.
        grace: see `DesiredState.grace`.
        exceptions: the section's exceptions that have not expired.
        earlier: the earlier changes of the plan.
        siblings: the objects of the collection, if objects can refer to others of it.
        recorded: what the inventory says of the objects.
    """

    section: Section
    part: PartType
    live: LiveState
    objects: Objects | None = None
    grace: timedelta = timedelta()
    exceptions: PartExceptions = NO_EXCEPTIONS
    earlier: Earlier = NOTHING_EARLIER
    siblings: Siblings = NO_SIBLINGS
    recorded: Recorded = NOTHING_RECORDED

    @property
    def place(self) -> PartAddress:
        """The address of the part in live state."""
        return self.section.target, self.section.kind, self.part.name

    def address(self, name: Key | None = None) -> Address:
        """Return the address of an object, or of the part itself."""
        return Address(self.section.target, self.section.kind, self.part.name, self.part.title, name)

    def at_least(self, name: Key | None) -> frozenset[str]:
        """Return the fields of an object, or of a settings record, that may be stricter than declared."""
        return self.section.at_least.get(name, frozenset())

    @property
    def takes_fewer(self) -> bool:
        """Whether an entry of the list that is declared and missing is in order, since fewer are stricter."""
        return self.part.name != self.section.kind and self.part.name in self.at_least(None)

    def declared_until(self, record: LiveRecord) -> str:
        """Return the last commit that declared a forgotten object; empty for other objects."""
        number = None if record.below else record.id
        return "" if number is None else self.recorded.let_go.get(number, "")

    def was_renamed(self, name: Key) -> bool:
        """Return whether somebody has renamed a declared object on the service."""
        return isinstance(self.part, Collection) and self.part.identity(name) in self.recorded.renamed

    def problem(self, name: Key | None, reason: str, remedy: str = "", *, field: str | None = None) -> Finding:
        """Return a problem of an object, or of the part as a whole."""
        return as_problem(Obstacle(self.address(name), reason, remedy), field=field)
