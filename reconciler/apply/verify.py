"""Looking again: before a change, whether it is out of date; after it, whether the service has carried it out."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from reconciler.apply.outcomes import Stop
from reconciler.errors import ServiceError
from reconciler.live.read import learn_ids, read_part
from reconciler.live.records import look_up_id
from reconciler.model.diff import as_read, fields_of, moved
from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Change, Create, Delete, Update
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import Found, Resource
from reconciler.model.state import LivePart, Reference, Unknown, Unreadable
from reconciler.model.targets import Key, Target
from reconciler.planning.parts import identity


class Objects:
    """What a part held when it was read again, by ID and by name: a section may have thousands of changes."""

    def __init__(self, part: Part, live: Found | tuple[Found, ...]) -> None:
        self._part = part
        self._all = [live] if isinstance(live, Found) else list(live)
        self.by_id = {found.id: found for found in self._all}
        self._by_name: dict[Key, list[Found]] = {}
        for found in self._all:
            for name in self._spelt(found.names):
                self._by_name.setdefault(name, []).append(found)

    def named(self, *names: Key | None) -> list[Found]:
        """Return the objects that answer to any of some names; a settings record answers to all."""
        if isinstance(self._part, Singleton):
            return self._all
        found = [each for name in self._spelt(names) for each in self._by_name.get(name, [])]
        return list({id(each): each for each in found}.values())

    def answers_to(self, found: Found, *names: Key | None) -> bool:
        """Tell whether an object answers to any of some names."""
        return isinstance(self._part, Singleton) or not self._spelt(names).isdisjoint(self._spelt(found.names))

    def _spelt(self, names: Iterable[Key | None]) -> set[Key]:
        if isinstance(self._part, Singleton):
            return set()
        return {identity(self._part, name) for name in names if name is not None}


Reread = Mapping[tuple[str, str], Objects | Unreadable]
"""What was read again, by section and part."""


class Numbers:
    """The numeric IDs of paths, for all targets of a run: learned from what is read, or asked for once."""

    def __init__(self) -> None:
        self._known: dict[Reference, int | Unknown] = {}
        self._asking: dict[Reference, Lock] = {}

    def learn(self, ids: Mapping[Reference, int | Unknown]) -> None:
        """Take in what was read."""
        self._known.update(ids)

    def of(self, reference: Reference, reader: Reader) -> int | Unknown:
        """Return the ID of a path."""
        with self._asking.setdefault(reference, Lock()):
            if reference not in self._known:
                self._known[reference] = look_up_id(reference, reader)
        return self._known[reference]


class Verifier:
    """Reads parts of one target again."""

    def __init__(
        self, reader: Reader, kinds: Kinds, target: Target, stop: Stop, numbers: Numbers | None = None
    ) -> None:
        self.reader, self.kinds, self.target, self.stop = reader, kinds, target, stop
        self.numbers = numbers or Numbers()

    def number(self, reference: Reference) -> int:
        """Return the numeric ID of a path.

        Raises:
            LookupError: it cannot be told.
        """
        try:
            number = self.numbers.of(reference, self.reader)
        except ServiceError as error:
            self.stop.after(error)
            raise LookupError(str(error)) from error
        if isinstance(number, Unknown):
            raise LookupError(f"{reference.level} {reference.path}: {number.reason}")  # noqa: TRY004 - no wrong type
        return number

    def read(self, part: Part, wanted: Resource | Mapping[Any, Any]) -> LivePart:
        """Read one part; while writing, no failure to read is worth losing the rest of the run for."""
        if self.stop.refused:
            return Unreadable(self.stop.reason)
        try:
            return read_part(self.reader, part, self.target, wanted)
        except ServiceError as error:
            self.stop.after(error)
            return Unreadable(str(error))

    def again(self, changes: Iterable[Change]) -> Reread:
        """Read the parts that some changes are about, once each."""
        wanted: dict[tuple[str, str], Mapping[str, Json]] = {}
        for change in changes:
            after = {} if isinstance(change, Delete) else change.after
            wanted.setdefault((change.address.section, change.address.part), after)
        return {(section, name): self._objects(section, name, after) for (section, name), after in wanted.items()}

    def _objects(self, section: str, name: str, wanted: Mapping[str, Json]) -> Objects | Unreadable:
        part = self.kinds[section].part(name)
        live = self.read(part, wanted)
        self.numbers.learn(learn_ids({(self.target, section, name): live}, self.kinds))
        return live if isinstance(live, Unreadable) else Objects(part, live)


def stale_reason(change: Change, live: Reread) -> str:
    """Say why a change is out of date; empty where it is not."""
    objects = live[change.address.section, change.address.part]
    if isinstance(objects, Unreadable):
        return f"cannot be read again: {objects.reason}"
    if isinstance(change, Create):
        return "it exists by now" if _new_ones(change, objects) else ""
    former = change.renamed_from if isinstance(change, Update) else None
    namesakes = objects.named(change.address.name)
    found = objects.by_id.get(change.read.id) or next(iter(namesakes or objects.named(former)), None)
    if found is None:
        return "it is gone by now"
    since = moved(change.read, as_read(found))
    if since:
        return f"it has changed since the plan was made: {since}"
    return "its new name is taken by now" if former is not None and namesakes else ""


def unapplied(change: Change, live: Reread, made: int | None = None) -> str:
    """Say what the service shows otherwise than a change wants it; empty where it is as wanted.

    Args:
        change: that was carried out, or may have been.
        live: what was read since.
        made: the ID of the object that it created, where that is known.

    Raises:
        LookupError: it cannot be told, for the part cannot be read.
    """
    objects = live[change.address.section, change.address.part]
    if isinstance(objects, Unreadable):
        raise LookupError(objects.reason)  # noqa: TRY004  # nothing is of a wrong type here
    if isinstance(change, Delete):
        return "it is still there" if change.read.id in objects.by_id else ""
    found = _changed_ones(change, objects, made)
    if not found:
        return "it is not there"
    shown = [(fields_of(each.resource), each.unshown) for each in found]
    lost = [
        name
        for name, value in change.after.items()
        if all(fields.get(name) != value and name.partition(".")[0] not in unshown for fields, unshown in shown)
    ]
    if not objects.answers_to(found[0], change.address.name, change.target_id if isinstance(change, Create) else None):
        lost.insert(0, "name")
    return f"the service kept its own {', '.join(lost)}" if lost else ""


def elder(change: Create, live: Reread, made: int) -> int | None:
    """Return the ID of another new object of the same name that is older than the one that was made, if there is one.

    The service counts its IDs up, so that of two that were made at once all see the same one as the elder.
    """
    objects = live[change.address.section, change.address.part]
    new = [] if isinstance(objects, Unreadable) else _new_ones(change, objects)
    return min((found.id for found in new if found.id is not None and found.id < made), default=None)


def _changed_ones(change: Create | Update, objects: Objects, made: int | None) -> list[Found]:
    """The object that a change is about; of a creation whose ID is not known, all new ones of its name."""
    if isinstance(change, Create) and made is None:
        return _new_ones(change, objects)
    found = objects.by_id.get(made if isinstance(change, Create) else change.read.id)
    return [] if found is None else [found]


def _new_ones(change: Create, objects: Objects) -> list[Found]:
    """The objects of a new one's name, or of the target it refers to, that were not there before.

    Only our own rival with one that succeeds our own.
    """
    namesakes = objects.named(change.address.name, change.target_id)
    return [each for each in namesakes if each.id not in change.replaces_ids and (each.ours or not change.replaces_ids)]
