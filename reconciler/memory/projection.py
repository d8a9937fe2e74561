"""The inventory after an apply: the changes of its report, merged into the stored inventory. Pure.

Nothing is predicted. Three inventories are merged: the one that the run was planned from, this one with the changes of
the report, and the one that is stored now, which another apply may have changed. Begin with `Projection`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Protocol, TypeVar

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from reconciler.errors import InventoryUnreadable, PlanRefused
from reconciler.memory.absence import LastApplied, is_listed
from reconciler.memory.inventory import (
    Inventory,
    ObjectKey,
    ObjectLine,
    TargetLine,
    inventory_text,
    read_inventory,
    target_names,
)
from reconciler.model.diff import AsRead
from reconciler.model.endpoints import Collection as Listing
from reconciler.model.item import (
    Change,
    Create,
    Delete,
    Finding,
    Item,
    Keep,
    Outcome,
    Status,
    Update,
    address_of,
    is_about_run,
    makes,
    makes_anew,
    section_of,
    target_of,
)
from reconciler.model.kind import Kinds
from reconciler.model.plan import Seen
from reconciler.model.protocols import Json
from reconciler.model.resource import Objects
from reconciler.model.state import LivePart, PartAddress
from reconciler.model.targets import Address, Key, Target

SENT = frozenset({Status.DONE, Status.DROPPED, Status.FAILED})
"""The outcomes of changes for which a write may have been sent."""

Place = tuple[str, str, str]
"""Target, section and part, as the inventory names them."""

Name = TypeVar("Name")
Value = TypeVar("Value")


def _lines(inventory: Inventory) -> tuple[str, ...]:
    return tuple(inventory_text(inventory).removesuffix("\n").split("\n"))


def _inventory(raw_lines: Json, info: ValidationInfo) -> Inventory:
    """Parse an inventory from its lines in JSON; the context of the validation is all kinds."""
    if not (isinstance(raw_lines, list) and all(isinstance(line, str) for line in raw_lines)):
        raise ValueError("must be lines of an inventory")
    try:
        return read_inventory("\n".join(raw_lines), info.context or {})[0]
    except InventoryUnreadable as error:
        raise PlanRefused(f"the saved plan is damaged: the inventory in it cannot be read: {error.reason}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The inventory that a run was planned from, and facts about the run as a whole."""

    seen: Annotated[Inventory, PlainValidator(_inventory), PlainSerializer(_lines, return_type=tuple[str, ...])]
    """The lines of the inventory: an apply takes all others for newer ones."""
    commit: str = ""
    """The commit of the manifests; empty if they are not as committed."""
    whole: bool = False
    """Whether the plan is about all that the manifests declare, with the inputs of `reconciler.yaml`."""
    absent: tuple[ObjectKey, ...] = ()
    """The objects that the plan deletes since they are no longer declared, each by target, section, part and ID."""
    missing: tuple[ObjectKey, ...] = ()
    """The objects of the inventory, and of the plan, that a complete listing of the run lacks, likewise."""
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By target, all collections that the manifests declare, as `section/part`."""
    released: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By target, the sections that `unmanaged` leaves alone, and single objects, as `section/part/ID`."""
    unknown: tuple[str, ...] = ()
    """The targets of which it is not known what is declared."""
    former: Mapping[str, str] = field(default_factory=dict)
    """By target that has moved, the path by which the manifests still name it: their commit declares no other."""

    def path(self, name: str, seen: Seen) -> str:
        """Return the full path of a target, as the manifests name it; empty for the instance and the user."""
        return self.former.get(name) or seen.path or (seen.target.ref if isinstance(seen.target.ref, str) else "")


class Report(Protocol):
    """The results of a plan."""

    @property
    def targets(self) -> Sequence[Seen]:
        """The targets of the run."""

    @property
    def items(self) -> Sequence[Item]:
        """The outcomes, the objects in order, and the findings."""


class Commits(Protocol):
    """The ancestors of the applied commit."""

    def contains(self, commit: str) -> bool:
        """Return whether the applied commit is that commit, or descends from it."""

    def last_applied(self, commit: str) -> LastApplied:
        """Return the position of the last apply's commit."""


@dataclass(frozen=True)
class Projection:
    """The changes that a report makes to the inventory.

    Attributes:
        report: of an apply.
        basis: of its plan.
        history: the ancestors of the applied commit.
        kinds: all kinds.
        planned: the changes of the plan.
        read: the last objects that the apply has read, by target, section and part.
        first: the targets of the canary, if the run ended early: of other targets, only collections with a write count.
            None for a run that was completed.
    """

    report: Report
    basis: Basis
    history: Commits
    kinds: Kinds
    planned: Collection[Change] = ()
    read: Mapping[PartAddress, LivePart] = field(default_factory=dict)
    first: Collection[Target] | None = None

    def onto(self, inventory: Inventory) -> Inventory:
        """Return the stored inventory with the lines that this run adds, changes and removes.

        A line that both sides have changed is that of the stored inventory; a target that both have changed has no
        digest.
        """
        seen, applied = self.basis.seen, inventory.applied
        # If newer manifests were applied meanwhile, an object that this run missed may exist again: an entry of an
        # allowlist has the ID of the listed project, so that a new entry equals the old one.
        is_overtaken = applied != seen.applied and not self.history.contains(applied)
        gone = self._deleted if is_overtaken else self._deleted | self._missing
        theirs = {key: line for key, line in inventory.objects.items() if key not in gone}
        objects = united(seen.objects, self._objects(gone), theirs, lambda _, line: line)
        holders = {key[0] for key in objects} | {line.target for line in inventory.unknown}
        targets = united(seen.targets, self._targets(holders), inventory.targets, _without_digest)
        known = holders | inventory.targets.keys()
        targets = {name: line for name, line in targets.items() if line.digest or name in known}
        if self.basis.commit and not is_overtaken and not self.history.last_applied(applied).may_be_newer:
            applied = self.basis.commit
        return replace(inventory, applied=applied, targets=targets, objects=objects)

    def _objects(self, gone: Collection[ObjectKey]) -> Mapping[ObjectKey, ObjectLine]:
        """Return the lines of objects after this run, if no other run has changed any."""
        removed = {*gone, *self._released_objects}
        lines = {key: line for key, line in self.basis.seen.objects.items() if key not in removed}
        live = dict(self._found)
        live |= {(*place, number): name for place, item in self._counting for name, number in _live(item)}
        for key, name in live.items():
            if key not in self._deleted and key not in self._missing:
                is_renamed = was_renamed(self.basis.seen, key[0], self.basis.path(key[0], self._named[key[0]]))
                lines[key] = line_of(key, name, self.basis, self.history.contains, is_renamed=is_renamed)
        return lines

    def _targets(self, holders: Collection[str]) -> Mapping[str, TargetLine]:
        """Return the lines of targets after this run, if no other run has changed any.

        Args:
            holders: the targets that have lines of objects.
        """
        lines = dict(self.basis.seen.targets)
        for name, target in self._named.items():
            if target.digest and (self._is_whole_target(name) or any(place[0] == name for place in self._begun)):
                lines[name] = self._target_line(name, target, lines.get(name))
        if self._is_whole:
            # a target that no document declares keeps its line only as long as it has objects
            known = {*self._declared, *self._named, *self.basis.unknown, *holders}
            lines = {name: line for name, line in lines.items() if name in known}
        return lines

    def _target_line(self, name: str, seen: Seen, former_line: TargetLine | None) -> TargetLine:
        items, path = self._items[name], self.basis.path(name, seen)
        outcomes = [item for item in items if isinstance(item, Outcome)]
        is_done = seen.done and self._is_whole_target(name) and all(item.status is Status.DONE for item in outcomes)
        if is_done and not any(isinstance(item, Finding) and item.code == "problem" for item in items):
            return TargetLine(name, path, seen.digest, seen.again)
        wrote = any(item.status in SENT for item in outcomes)
        if former_line is None or (wrote and former_line.digest != seen.digest):
            return TargetLine(name, path)  # its digest is of a spec that this run has already changed
        return replace(former_line, path=path)

    @property
    def _released_objects(self) -> Iterator[ObjectKey]:
        """The objects that are no longer declared, or were released.

        Only those whose commit the applied one contains.
        """
        for key, line in self.basis.seen.objects.items() if self._is_whole else ():
            named = {line.section, f"{line.section}/{line.part}/{line.id}"}
            released = not named.isdisjoint(self._released.get(line.target, ()))
            declared = f"{line.section}/{line.part}" in self._declared.get(line.target, ())
            is_known = declared or line.target in self.basis.unknown
            if (released or not is_known) and line.at and self.history.contains(line.at):
                yield key

    @property
    def _is_whole(self) -> bool:
        return self.basis.whole and self.first is None

    @cached_property
    def _named(self) -> Mapping[str, Seen]:
        return by_name(self.report.targets, self.basis.seen)

    @cached_property
    def _names(self) -> Mapping[Target, str]:
        return {target.target: name for name, target in self._named.items()}

    @cached_property
    def _declared(self) -> Mapping[str, Collection[str]]:
        return self._by_name(self.basis.declared)

    @cached_property
    def _released(self) -> Mapping[str, Collection[str]]:
        return self._by_name(self.basis.released)

    def _by_name(self, places_by_name: Mapping[str, Collection[str]]) -> Mapping[str, Collection[str]]:
        """Return declared objects by the present names of targets: targets that this run has created have an ID now."""
        learned = {str(target.target): name for name, target in self._named.items()}
        return {learned.get(name, name): places for name, places in places_by_name.items()}

    @cached_property
    def _items(self) -> Mapping[str, Sequence[Item]]:
        """The items of each target."""
        items: dict[str, list[Item]] = {name: [] for name in self._named}
        for item in self.report.items:
            if not is_about_run(item) and target_of(item) in self._names:
                items[self._names[target_of(item)]].append(item)
        return items

    @cached_property
    def _begun(self) -> frozenset[Place]:
        """The collections in which a change was tried."""
        return frozenset(
            place_of(name, item)
            for name, items in self._items.items()
            for item in items
            if isinstance(item, Outcome) and item.status is not Status.SKIPPED
        )

    def _is_whole_target(self, name: str) -> bool:
        """Return whether all collections of a target count."""
        return self.first is None or self._named[name].target in self.first

    def _counts(self, place: Place) -> bool:
        """Return whether a collection counts."""
        return place[0] in self._named and (self._is_whole_target(place[0]) or place in self._begun)

    @property
    def _counting(self) -> Iterator[tuple[Place, Item]]:
        """The items of collections that count, each with its place."""
        for name, items in self._items.items():
            for item in items:
                place = place_of(name, item)
                if self._counts(place) and collection_at(place, self.kinds):
                    yield place, item

    @cached_property
    def _listed(self) -> Mapping[Place, Mapping[int, Collection[Key]]]:
        """The names of each object by ID, of the collections that the apply has read, as of its last reading."""
        listed: dict[Place, Mapping[int, Collection[Key]]] = {}
        for (target, section, part), live in self.read.items():
            place = (self._names.get(target, ""), section, part)
            collection = collection_at(place, self.kinds)
            if self._counts(place) and collection and isinstance(live, Objects):
                own = ((record.id, record.names) for record in live.own if not record.below)
                listed[place] = {number: {*map(collection.identity, names)} for number, names in own if number}
        return listed

    @cached_property
    def _deleted(self) -> frozenset[ObjectKey]:
        """The objects that this run has deleted."""
        return frozenset((*place, number) for place, item in self._counting for number in _deleted(item))

    @cached_property
    def _missing(self) -> frozenset[ObjectKey]:
        """The objects that a complete listing lacks.

        Objects that this run created after the listing do not count as missing.
        """
        # a listing may have been read before the creation, and lack the new object
        before_it = (pair for pair in self._counting if not (isinstance(pair[1], Outcome) and pair[1].created))
        known = {*self.basis.seen.objects}
        known |= {(*place, number) for place, item in before_it for _, number in _live(item)}
        gone = (key for key in known if key[:3] in self._listed and key[3] not in self._listed[key[:3]])
        # of collections that the apply did not read again, the plan's reading counts
        before = (key for key in self.basis.missing if key[:3] not in self._listed and self._counts(key[:3]))
        return frozenset((*before, *gone))

    @property
    def _found(self) -> Iterator[tuple[ObjectKey, Key]]:
        """The objects that the plan declares and of which exactly one exists, whether or not this run created it.

        An import may have created it with the target, or a concurrent run.
        """
        for change in self.planned:
            place, name = place_of(self._names.get(change.address.target, ""), change), change.address.name
            part, listed = collection_at(place, self.kinds), self._listed.get(place, {})
            if part is not None and name is not None and not isinstance(change, Delete):
                ids = [number for number, names in listed.items() if part.identity(name) in names]
                # several objects of one name do not show which one is ours
                if len(ids) == 1:
                    yield (*place, ids[0]), name


def united(
    base: Mapping[Name, Value],
    ours: Mapping[Name, Value],
    theirs: Mapping[Name, Value],
    both: Callable[[Value | None, Value | None], Value | None],
) -> dict[Name, Value]:
    """Return the three-way merge of a mapping; `both` merges a value that both sides have changed."""
    result = dict(theirs)
    for name in base.keys() | ours.keys():
        before, mine, other = base.get(name), ours.get(name), theirs.get(name)
        if mine != before:
            value = mine if other == before else both(mine, other)
            result.pop(name, None)
            if value is not None:
                result[name] = value
    return result


def line_of(
    object_key: ObjectKey, name: Key, basis: Basis, contains: Callable[[str], bool], *, is_renamed: bool
) -> ObjectLine:
    """Return the line of a declared, live object; it keeps the commit that declared it first.

    Args:
        object_key: the object.
        name: its declared name.
        basis: of the plan.
        contains: returns whether the applied commit contains another.
        is_renamed: whether its target had another path: an older commit declares the object below that path.
    """
    before = basis.seen.objects.get(object_key)
    if before is None or before.name != name or is_renamed:
        return ObjectLine(*object_key[:3], name, object_key[3], basis.commit)
    return before if not basis.commit or (before.at and contains(before.at)) else replace(before, at=basis.commit)


def by_name(seen_targets: Iterable[Seen], inventory: Inventory) -> dict[str, Seen]:
    """Return targets by their inventory names; targets without a name are left out."""
    names = target_names(inventory)
    named = ((names(target.target, target.id), target) for target in seen_targets)
    return {name: target for name, target in named if name}


def undone(run_report: Report, inventory: Inventory) -> Inventory:
    """Return the inventory after a revert: without the objects that it deleted, and without the digests of its targets.

    A revert adds no object. A target that an earlier run of the same revert changed may be in order now: it has no
    digest either.
    """
    touched = by_name(run_report.targets, inventory)
    names = {target.target: name for name, target in touched.items()}
    deleted = {
        (*place_of(names.get(target_of(item), ""), item), number)
        for item in run_report.items
        if isinstance(item, Outcome)
        for number in _deleted(item)
    }
    objects = {key: line for key, line in inventory.objects.items() if key not in deleted}
    without = {
        name: replace(line, digest="", again=None) for name, line in inventory.targets.items() if name in touched
    }
    return replace(inventory, targets={**inventory.targets, **without}, objects=objects)


def was_renamed(seen: Inventory, name: str, path: str) -> bool:
    """Return whether a target had another path at its last apply."""
    before = seen.targets.get(name)
    return before is not None and before.path not in ("", path)


def collection_at(place: Place, kinds: Kinds) -> Listing | None:
    """Return the collection at a place, if its objects are in the inventory."""
    _, section, name = place
    part = kinds[section].part(name) if section in kinds else None
    return part if isinstance(part, Listing) and is_listed(part) else None


def place_of(name: str, item: Item) -> Place:
    """Return the collection of an item, given the inventory name of its target."""
    return name, section_of(item), address_of(item).part


def _live(item: Item) -> Iterator[tuple[Key, int]]:
    """Yield the object that an item shows to be declared and live, by name and ID."""
    match item:
        case Keep(address=Address(name=str() | int() as kept), id=int(number)):
            yield kept, number
        case Outcome(change=Create() | Update() as change):
            name = change.address.name
            read = item.created if isinstance(change, Create) or makes(change) else change.read
            if name is not None and read is not None and read.id is not None:
                yield name, read.id


def _deleted(item: Item) -> Iterator[int]:
    """Yield the ID of the object that no longer exists: it was deleted, or created anew under another name."""
    match item:
        case Outcome(change=Delete(read=AsRead(id=int(number))), status=Status.DONE):
            yield number
        case Outcome(change=Update(read=AsRead(id=int(number))) as change, status=Status.DONE) if makes_anew(change):
            yield number


def _without_digest(ours: TargetLine | None, theirs: TargetLine | None) -> TargetLine | None:
    """Return the line of a target that both sides have changed: neither digest is right for the result."""
    return theirs if ours is None else replace(theirs or ours, digest="", again=None)
