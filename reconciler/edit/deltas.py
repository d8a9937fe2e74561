"""The deltas of a target: the values that it would have to declare, in whichever document, for an empty plan. Pure.

Begin with `Deltas.collect`; `place` then decides which document declares each value.
"""

from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from reconciler.edit.edits import Add, Drop, Put, Rename
from reconciler.edit.place import Delta
from reconciler.edit.sections import declarable, item_fields
from reconciler.engine.compare.collections import without_own_project
from reconciler.engine.compare.part import DeclaredPart
from reconciler.manifests.layers import OLD_NAMES, Stack, literal
from reconciler.manifests.sources import Steps
from reconciler.model.diff import AsRead, differences
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Finding, Update
from reconciler.model.kind import Kind, Part
from reconciler.model.plan import TargetPlan
from reconciler.model.renames import exchanged_names
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import LiveState, Reference, Section, Unreadable
from reconciler.model.targets import Address, Key, Target

ROTATION = "a rotation is due, which `apply` carries out"


@dataclass(slots=True)
class Deltas:
    """The changes of manifests that one target needs, and the differences that cannot be accepted.

    Attributes:
        all_fields: whether a new item declares the fields that have the service's default too.
        by_steps: the changes, by their steps.
        refused: by section, name of an object and field, the reason for which the difference cannot be accepted; a name
            or field of None means all.
    """

    all_fields: bool = False
    by_steps: dict[Steps, Delta] = field(default_factory=dict)
    refused: dict[tuple[str, Key | None, str | None], str] = field(default_factory=dict)

    def collect(self, plan: TargetPlan, section: Section, stack: Stack, live: LiveState) -> None:
        """Add the deltas that make the plan of a section empty.

        Args:
            plan: of the section.
            section: the declared section.
            stack: the target's layers, merged.
            live: the live state.
        """
        drift = _Drift(self, section, stack, live, {})
        if drift.kind.join:
            drift.count()
            return
        for change in plan.changes:
            drift.add(change)
        excepted_fields: dict[Address, set[str]] = {}
        for deviation in plan.findings_of("excepted"):
            excepted_fields.setdefault(deviation.address, set()).update(
                deviation.data["before"], deviation.data["after"]
            )
        for problem in plan.problems:
            drift.solve(problem, excepted_fields.get(problem.address, set()))


@dataclass(frozen=True, slots=True)
class _Names:
    """The objects and entries of a part by name, as `_Drift._canonical` returns it.

    Attributes:
        objects: the live objects.
        entries: the declared entries, as the merged spec has them.
        unique: see `Collection.unique_name_of`; empty if objects do not refer to one another.
        exchanged: the declared names that go round in a circle of former names.
    """

    objects: Mapping[Key, list[LiveRecord]]
    entries: Mapping[Key, list[Key]]
    unique: Mapping[Key, Key]
    exchanged: Set[Key]


@dataclass(frozen=True, slots=True)
class _Drift:
    """The differences of one section of one target."""

    deltas: Deltas
    section: Section
    whole: Stack
    live: LiveState
    named: dict[str, _Names]

    @property
    def kind(self) -> Kind:
        return self.whole.specs[self.section.kind].kind

    @property
    def target(self) -> Target:
        return self.section.target

    @property
    def merged(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.whole.sections[self.section.kind]
        return value

    def count(self) -> None:
        """Declare the present state of objects that have no names."""
        assert self.kind.join  # noqa: S101 - see the caller
        parts = {part.name: self._objects(part) for part in self.kind.parts if isinstance(part, Collection)}
        names = {name: [record.names[0] for record in objects] for name, objects in parts.items()}
        for name, value in self.kind.join(names).items():
            self.deltas.by_steps[self.section.kind, name] = Put(value)

    def add(self, planned_change: Create | Update | Delete) -> None:
        """Add the delta that removes a change from the plan."""
        part, name = self._part(planned_change), planned_change.address.name
        match planned_change:
            # due by the clock, not by a difference: no manifest ends it
            case Create(replaces_ids=(_, *_)) | Delete(successor_id=int()):
                self._refuse(name, ROTATION)
            # an update of an object below the group is its promotion: live, the group does not have it
            case Create() | Update(read=AsRead(below=(_, *_))):
                self._drop(part, name)
            case Update() if self._is_exchanged(part, name):
                self._solve_item(part, planned_change.address, "", ())
            case Update(renamed_from=former):
                if former is not None:
                    self._put((name,), Rename(str(literal(former))))
                record = self._record(part, name if former is None else former)
                self._put_fields(name, record, planned_change.after)
            case _:
                self._add(part, name)

    def solve(self, problem: Finding, excepted: Container[str]) -> None:
        """Add the deltas that end a problem, if a manifest can declare the live object, without excepted fields."""
        part, name = self._part(problem), problem.address.name
        read = self.live.parts[self.target, self.section.kind, part.name]
        if isinstance(read, Unreadable):
            self._refuse(name, problem.reason)
        elif isinstance(read, LiveRecord):
            declared: Any = self.section.wanted[part.name]
            differing = differences(declared, read, self.section.at_least.get(None, ()))[1]
            self._put_fields(None, read, [path for path in differing if path not in excepted])
        else:
            self._solve_item(part, problem.address, problem.reason, excepted)

    def _is_exchanged(self, part: Part, item_name: Key | None) -> bool:
        """Return whether an item exchanges its name with other live items: then all of them keep their names."""
        if not isinstance(part, Collection) or item_name is None or not self._named(part, item_name):
            return False
        return part.identity(item_name) in self._names(part).exchanged

    def _solve_item(self, part: Collection, address: Address, reason: str, excepted: Container[str]) -> None:
        name = address.name
        declared: Any = self.section.wanted[part.name]
        wanted_item: Resource | None = declared.get(name)
        former = [record for old in getattr(wanted_item, OLD_NAMES, ()) for record in self._named(part, old)]
        match wanted_item, self._named(part, name), former:
            case None, [_], _:
                self._add(part, name)
            case Resource(), [], []:
                self._drop(part, name)
            case Resource() as resource, [], [record]:
                self._put((name,), Rename(str(literal(record.names[0]))))
                self._put_fields(name, record, self._differing(part, name, resource, record, excepted))
            case Resource() as resource, [record], _ if (
                differing := self._differing(part, name, resource, record, excepted)
            ) or former:
                self._put_fields(name, record, differing)
                if former:
                    self._put((name, OLD_NAMES), Drop())
            case _:
                self._refuse(name, reason)

    def _part(self, plan_item: Create | Update | Delete | Finding) -> Any:
        """Return the endpoint of a step of the plan."""
        return self.kind.part(plan_item.address.part)

    def _differing(
        self, part: Collection, item_name: Key | None, wanted: Resource, record: LiveRecord, excepted: Container[str]
    ) -> list[str]:
        referring = part.referring(wanted, self._names(part).unique)
        at_least = self.section.at_least.get(item_name, ())
        return [path for path in differences(referring, record, at_least)[1] if path not in excepted]

    def _drop(self, part: Collection, item_name: Key | None) -> None:
        """Drop an item, or each entry that names the same object."""
        if self.whole.specs[self.section.kind].items is not None:
            self._put((item_name,), Drop())
            return
        entries = self._names(part).entries.get(self._canonical(part, item_name), ())
        identities = tuple(dict.fromkeys(map(part.identity, entries)))
        for identity in identities:
            self._put((part.name, identity), Drop(identities))

    def _add(self, part: Collection, item_name: Key | None) -> None:
        """Declare a live object."""
        record = self._record(part, item_name)
        shown = record.names[0]
        error = part.name_error(shown)
        if error or len(self._named(part, shown)) > 1:
            self._refuse(item_name, error or f"{len(self._named(part, shown))} objects have this name")
        elif self.whole.specs[self.section.kind].items is None:
            self._put((part.name, part.identity(shown)), Add(literal(shown)))
            self._keep_empty()
        else:
            fields = literal(item_fields(self.kind, record, all_fields=self.deltas.all_fields))
            declared = self._names(part).entries.get(self._canonical(part, shown))
            self._put((shown if declared is None else declared[0],), Put(fields))

    def _keep_empty(self) -> None:
        """Declare the lists that are empty as the section is: beside a list with entries, they would be unmanaged."""
        lists = [part for part in self.kind.parts if isinstance(part, Collection) and part.name in self.section.wanted]
        for part in lists:
            if part.name not in self.merged and not self._objects(part):
                self._put((part.name,), Put([]))

    def _put_fields(self, item_name: Key | None, record: LiveRecord, field_names: Iterable[str]) -> None:
        declarable_ = declarable(record)
        for path in field_names:
            steps = (*(() if item_name is None else (item_name,)), *path.split(".", 1))
            # the live value is not shown, so the declared value stays
            if path.partition(".")[0] in record.unshown:
                continue
            if path in declarable_:
                self._put(steps, Put(literal(declarable_[path])))
            elif path in record.unknown:
                self._refuse(item_name, "no manifest can declare its value", path)
            else:
                self._put(steps, Drop())

    def _put(self, steps: Steps, delta: Delta) -> None:
        self.deltas.by_steps[self.section.kind, *steps] = delta

    def _refuse(self, item_name: Key | None, reason: str, field_path: str | None = None) -> None:
        self.deltas.refused[self.section.kind, item_name, field_path] = reason

    def _objects(self, part: Collection) -> list[LiveRecord]:
        read = self.live.parts[self.target, self.section.kind, part.name]
        objects = read.own if isinstance(read, Objects) else ()
        return without_own_project(DeclaredPart(self.section, part, self.live), objects)

    def _record(self, endpoint: Any, item_name: Key | None) -> LiveRecord:
        """Return the subject of a change: a settings record, or the object of a name."""
        read = self.live.parts[self.target, self.section.kind, endpoint.name]
        return read if isinstance(read, LiveRecord) else self._named(endpoint, item_name)[0]

    def _named(self, part: Collection, item_name: Key | None) -> list[LiveRecord]:
        return self._names(part).objects.get(self._canonical(part, item_name), [])

    def _names(self, part: Collection) -> _Names:
        """Return the live objects by name, collected once: a section may have thousands of changes."""
        if part.name not in self.named:
            live_objects = self._objects(part)
            objects: dict[Key, list[LiveRecord]] = {}
            for record in live_objects:
                for name in {self._canonical(part, name) for name in record.names}:
                    objects.setdefault(name, []).append(record)
            entries: dict[Key, list[Key]] = {}
            has_items = self.whole.specs[self.section.kind].items is not None
            for entry in self.merged if has_items else self.merged.get(part.name, ()):
                entries.setdefault(self._canonical(part, entry), []).append(entry)
            unique = part.unique_name_of(live_objects) if part.relations.refers else {}
            declared: Any = self.section.wanted.get(part.name, {})
            exchanged = exchanged_names(declared, part.identity)
            self.named[part.name] = _Names(objects, entries, unique, exchanged)
        return self.named[part.name]

    def _canonical(self, part: Collection, item_name: Key | None) -> Key:
        """Return the ID of a path if it is known."""
        assert item_name is not None  # noqa: S101 - objects of collections have names
        # entries name one project by its path and another by its ID, and two layers may name the same project both ways
        key = part.identity(item_name)
        number = (
            self.live.ids.get(Reference(part.names.level, str(key)))
            if part.names.level and isinstance(key, str)
            else None
        )
        return number if isinstance(number, int) else key
