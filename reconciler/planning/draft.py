"""A section's plan in the making: what was found out so far, shared by the planning of all its parts."""

from datetime import timedelta

from reconciler.model.diff import become, differences, uncompared, without
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.plan import Change, Problem, SectionPlan, Unmanaged
from reconciler.model.resource import Found, Resource
from reconciler.model.state import LiveState, Reference, Section
from reconciler.model.targets import Address, Key, Target


class Draft:
    """Collects changes and problems of one section.

    Attributes:
        missing: takes the references whose number is needed and not known.
        grace: see `DesiredState.grace`.
        found: how many objects the section holds.
    """

    def __init__(self, section: Section, live: LiveState, missing: set[Reference], grace: timedelta) -> None:
        self.section, self.live, self.missing, self.grace = section, live, missing, grace
        self.target: Target = section.target
        self.creates: list[Change] = []
        self.updates: list[Change] = []
        self.deletes: list[Change] = []
        self.problems: list[Problem] = []
        self.unmanaged: list[Unmanaged] = []
        self.found = 0

    def done(self) -> SectionPlan:
        """Return the section's plan."""
        return SectionPlan(
            self.section.kind,
            self.found,
            (*self.creates, *self.updates, *self.deletes),
            tuple(self.problems),
            tuple(self.unmanaged),
        )

    def settle(self, address: Address, wanted: Resource, found: Found) -> Resource | None:
        """Return what can be had of what is wanted, noting problems; None where the whole contradicts itself."""
        _, after = differences(wanted, found)
        read_only = {name: reason for name, reason in found.read_only.items() if name in after}
        self.problems += [Problem(address, reason, name) for name, reason in sorted(read_only.items())]
        possible = without(wanted, [*read_only, *uncompared(wanted, found)])
        if not differences(possible, found)[1]:
            return possible
        whole = become(found.resource, possible, found.unknown)
        errors = [Problem(address, why, name) for name, why in whole.errors()]
        self.problems += errors
        return None if errors else possible

    def address(self, part: Singleton | Collection, name: Key | None = None) -> Address:
        """Return the address of an object of a part, or of the part itself."""
        return Address(self.target, self.section.kind, part.name, part.title, name)
