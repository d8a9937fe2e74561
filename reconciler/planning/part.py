"""One declared part of a section, with what planning it takes. Pure."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Generic, TypeVar

from reconciler.model.diff import become, differences, uncompared, without
from reconciler.model.endpoints import NO_SIBLINGS, Collection, Siblings, Singleton
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Change, Problem, Step
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import LiveState, PartAddress, Section
from reconciler.model.targets import Address, Key
from reconciler.planning.exceptions import NO_EXCEPTIONS, PartExceptions, held_back
from reconciler.planning.obstacles import as_problem

PartType = TypeVar("PartType", bound=Singleton | Collection)


Locks = Mapping[str, tuple[Json, Obstacle]]
"""By field, the value that it will have, and why it can have no other."""


NO_LOCKS: Locks = MappingProxyType({})


NO_NAMES: Mapping[Key, Obstacle] = MappingProxyType({})


Before = Mapping[str, Sequence[Change]]
"""By section, the changes of the same target that are carried out before."""


NOTHING_BEFORE: Before = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DeclaredPart(Generic[PartType]):
    """One part of a declared section, and what planning it takes besides its live objects.

    Attributes:
        section: the declaration.
        part: the endpoint.
        live: its IDs, and when it was read.
        grace: see `DesiredState.grace`.
        siblings: the objects of the collection, where some refer to others.
        exceptions: those of the section that are not over.
        locks: what changes of the plan to the groups above lock.
        taken: why names cannot be given, since changes of the plan give them to objects of the groups above.
        before: what the plan does before in sections whose objects this one may name: see `Relations.named`.
        at_the_top: the same of the topmost group, whose objects may be named too.
    """

    section: Section
    part: PartType
    live: LiveState
    grace: timedelta = timedelta()
    siblings: Siblings = NO_SIBLINGS
    exceptions: PartExceptions = NO_EXCEPTIONS
    locks: Locks = dataclasses.field(default_factory=dict)
    taken: Mapping[Key, Obstacle] = dataclasses.field(default_factory=dict)
    before: Before = dataclasses.field(default_factory=dict)
    at_the_top: Before = dataclasses.field(default_factory=dict)

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

    def problem(self, name: Key | None, reason: str, remedy: str = "", *, field: str | None = None) -> Problem:
        """Return a problem of an object, or of the part itself."""
        return as_problem(Obstacle(self.address(name), reason, remedy), field=field)

    def held_back(
        self, names: Iterable[Key], wanted: Resource, plan: Callable[[Resource], Iterator[Step]]
    ) -> Iterator[Step]:
        """Plan an object, less what exceptions hold back: see `exceptions.held_back`."""
        return held_back(self.exceptions, self.part, names, wanted, plan) if self.exceptions else plan(wanted)


def applicable(
    at: DeclaredPart[PartType], name: Key | None, wanted: Resource, record: LiveRecord
) -> tuple[Resource | None, list[Problem]]:
    """Return the part of `wanted` that can be applied, and a problem for each read-only or invalid field.

    The first is None if the result would be invalid, where the object is not so already.
    """
    _, after = differences(wanted, record)
    read_only = {field: reason for field, reason in sorted(record.read_only.items()) if field in after}
    problems = [at.problem(name, reason, field=field) for field, reason in read_only.items()]
    possible = without(wanted, [*read_only, *uncompared(wanted, record)])
    if not differences(possible, record)[1]:
        return possible, problems
    whole = become(record.resource, possible, record.unknown)
    before = become(record.resource, Resource(), record.unknown)
    known = {*record.resource.errors(), *_broken_rules(at, name, before, record)}
    errors = [error for error in (*whole.errors(), *_broken_rules(at, name, whole, record)) if error not in known]
    problems += [at.problem(name, reason, field=field) for field, reason in errors]
    return None if errors else possible, problems


def _broken_rules(
    at: DeclaredPart[PartType], name: Key | None, whole: Resource, record: LiveRecord
) -> Iterable[tuple[str, str]]:
    """Return `(field, fault)` for each field that does not go with the name; nothing if the token cannot see all."""
    objects = at.live.parts.get(at.place)
    if not isinstance(at.part, Collection) or not isinstance(objects, Objects) or name is None:
        return ()
    is_seen = all(partly_seen.id != record.id for partly_seen, _ in objects.hidden)
    return at.part.names.rules(name, whole, True) if is_seen else ()
