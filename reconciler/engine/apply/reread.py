"""Reading again: `TargetReader` reads the parts of changes, right before they are sent and afterwards."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from reconciler.engine.apply.options import Stop
from reconciler.engine.apply.targets import Numbers
from reconciler.engine.compare.matching import NamedObjects, by_birth
from reconciler.engine.compare.references import with_sent_names
from reconciler.engine.lookups import look_up_names
from reconciler.engine.read import completed, decode, learn_ids, numbered, read_part
from reconciler.errors import ServiceError, Stopped, WaitTooLong
from reconciler.model.diff import as_before, as_read
from reconciler.model.endpoints import Collection, Reading
from reconciler.model.item import Change, Create, Delete, Outcome, Status, Update, makes
from reconciler.model.kind import Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import Known, LivePart, LiveState, Lookup, Reference, Unreadable, Vocabulary
from reconciler.model.targets import Address, Key, Target


class CurrentObjects(NamedObjects):
    """The objects of a part that was read again, indexed: a section may have thousands of changes.

    Attributes:
        live: the part.
    """

    def __init__(self, part: Part, live_part: LiveRecord | Objects) -> None:
        objects = Objects((live_part,)) if isinstance(live_part, LiveRecord) else live_part
        super().__init__(part, objects.own)
        self.live = live_part
        self.by_id |= {record.id: record for record in objects.promotable.values()}

    @property
    def model(self) -> type[Resource]:
        """The model of the objects, or that of the settings at this level."""
        return type(self.live.resource) if isinstance(self.live, LiveRecord) else self.part.model

    def with_names_of(self, changes: Iterable[Change], *, forced: bool = False) -> "CurrentObjects":
        """Return the part with the entries' names of some changes: another token may see other names.

        Args:
            changes: the changes that are planned again.
            forced: whether fields that the service does not show count as different.
        """
        reads = {change.read.id: change.read for change in changes if not isinstance(change, Create)}

        def called(record: LiveRecord) -> LiveRecord:
            record = replace(record, unshown={}) if forced and record.unshown else record
            return as_before(record, reads[record.id]) if record.id in reads and record.entries else record

        if isinstance(self.live, LiveRecord):
            return CurrentObjects(self.part, called(self.live))
        return CurrentObjects(self.part, replace(self.live, own=tuple(map(called, self.live.own))))

    def with_only(self, changed: Sequence[tuple[Create | Update, LiveRecord]]) -> "CurrentObjects":
        """Return the part with the objects of some changes, and without other objects with their names.

        Args:
            changed: the changes, each with its object, also of other parts.
        """
        changed = [(change, record) for change, record in changed if change.address.part == self.part.name]
        if isinstance(self.live, LiveRecord):
            return CurrentObjects(self.part, changed[0][1])
        own = {record.id: record for _, record in changed}
        names = [name for change, _ in changed for name in (change.address.name, getattr(change, "renamed_from", None))]
        about = own.keys() | {record.id for record in self.named(*names)}
        others = (record for record in self.live.own if record.id not in about)
        return CurrentObjects(self.part, replace(self.live, own=(*own.values(), *others)))

    def made_by(self, change: Create | Update, made_id: int | None) -> LiveRecord | None:
        """Return the object that a change has made or updated, with its entries' sent names; None if it is gone.

        If two runs create an object of one name at the same time, and requests address it by name, the second run
        deletes the first object: then the object of the other run counts.

        Args:
            change: the change.
            made_id: the ID of the created object, if it is known.
        """
        number = change.read.id if made_id is None and isinstance(change, Update) else made_id
        is_by_name = isinstance(self.part, Collection) and self.part.path_field == self.part.key
        if made_id is None and makes(change):
            record = next(iter(self.new(change)), None)
        else:
            rivals = self.new(change) if is_by_name and isinstance(change, Create) else []
            record = self.by_id.get(number) or next(iter(rivals), None)
        return with_sent_names(record, change) if record and record.entries else record

    def taken(self, name: Key | None) -> list[LiveRecord]:
        """Return the objects with a name that must be unique; empty if names need not be unique."""
        return self.named(name) if isinstance(self.part, Collection) and self.part.names.unique else []

    def new(self, change: Create | Update) -> list[LiveRecord]:
        """Return the objects with a new object's name, or referred target, that did not exist before.

        Only our own objects count against a successor of our own. A promotion makes an object where there was none.
        """
        if isinstance(change, Update):
            return self.named(change.address.name)
        namesakes = self.named(change.address.name, change.target_id)
        before = change.replaces_ids
        return [record for record in namesakes if record.id not in before and (record.ours or not before)]

    def keeps(self, number: int | None, *, is_accepted: bool) -> bool:
        """Return whether an object is kept; one whose deletion was accepted may still be listed for a while."""
        is_fading = is_accepted and isinstance(self.part, Collection) and self.part.deletion.fades
        return number in self.by_id and not is_fading


class Unasked(Unreadable):
    """A part that was not read again, since the run ended before."""


Reread = Mapping[tuple[str, str], CurrentObjects | Unreadable]
"""The parts that were read again, by section and part."""


class Lists:
    """A `Reader` that remembers each list as it was read last."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self.concurrency = reader, reader.concurrency
        self._read: dict[str, list[Json]] = {}
        self._secrets: dict[str, dict[Key, list[tuple[LiveRecord, str]]]] = {}

    def get(self, path: str) -> Json:
        """See `Reader`."""
        return self._reader.get(path)

    def recall(self, path: str) -> Json:
        """See `Reader`."""
        return self._reader.recall(path)

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """See `Reader`."""
        self._read[path] = self._reader.pages(path, whole=whole)
        # values of the former reading: an object may be gone, or have a new namesake
        self._secrets.pop(path, None)
        return self._read[path]

    def secrets(self, part: Collection, address: Address, number: int | None) -> list[tuple[LiveRecord, str]]:
        """Return the own objects with a name, each with the value of its secret, newest last.

        Args:
            part: the collection.
            address: the name.
            number: the numeric ID of the target, if it is known.

        Raises:
            ServiceError: the list cannot be read, or an entry of it is invalid.
        """
        path = part.path(numbered(part, address.target, self._reader, number))
        listed = self._read[path] if path in self._read else self.pages(path)
        if path not in self._secrets:
            by_name: dict[Key, list[tuple[LiveRecord, str]]] = {}
            for entry in completed(part, Reading(self, address.target, listed, {})):
                record = decode(part, address.target, entry)
                for name in {part.identity(name) for name in record.names} if record.ours else ():
                    by_name.setdefault(name, []).append((record, entry[part.secret_field]))
            self._secrets[path] = by_name
        ours = [] if address.name is None else self._secrets[path].get(part.identity(address.name), [])
        return sorted(ours, key=lambda pair: by_birth(pair[0]))


class TargetReader:
    """Reads parts of one target again.

    Attributes:
        read_last: the parts that were read, each as it was read last, by section and part.
    """

    def __init__(
        self, reader: Reader, kinds: Kinds, target: Target, stop: Stop, known_numbers: Numbers | None = None
    ) -> None:
        self.lists, self.kinds, self.target, self.stop = Lists(reader), kinds, target, stop
        self.numbers = known_numbers or Numbers()
        self.names: dict[Vocabulary, Known | Obstacle] = {}
        self.read_last: dict[tuple[str, str], LivePart] = {}

    @property
    def number(self) -> int | None:
        """The numeric ID of the target, if it is known."""
        return self.numbers.known(Reference(self.target.level, str(self.target.ref)))

    def secrets(self, part: Collection, address: Address) -> list[tuple[LiveRecord, str]]:
        """See `Lists.secrets`."""
        return self.lists.secrets(part, address, self.number)

    def answer(self, lookup: Lookup) -> int | Known | Obstacle:
        """Return the answer to a lookup, or the obstacle to one; each list is requested once."""
        try:
            if isinstance(lookup, Vocabulary):
                self.names[lookup] = self.names.get(lookup) or look_up_names(lookup, self.lists)
                return self.names[lookup]
            return self.numbers.of(lookup, self.lists)
        except ServiceError as error:
            self.stop.after(error)
            return Obstacle(self.target.address, str(error))

    def read(self, section: str, name: str, declaration: Resource | Mapping[Any, Any]) -> LivePart:
        """Read one part; a failure does not end the run."""
        if self.stop.refused:
            return Unreadable(self.stop.reason)
        try:
            live = read_part(self.lists, self.kinds[section].part(name), self.target, declaration, self.number)
        except (Stopped, WaitTooLong) as error:
            self.stop.after(error)
            return Unasked(str(error))
        except ServiceError as error:
            self.stop.after(error)
            return Unreadable(str(error))
        self.read_last[section, name] = live
        return live

    def again(self, changes: Iterable[Change]) -> Reread:
        """Read the parts of some changes, once each."""
        wanted: dict[tuple[str, str], dict[Any, Any]] = {}
        for change in changes:
            after = {} if isinstance(change, Delete) else change.after
            fields = wanted.setdefault((change.address.section, change.address.part), {})
            fields |= after if change.address.name is None else {change.address.name: after}
        return {(section, name): self._objects(section, name, after) for (section, name), after in wanted.items()}

    def _objects(self, section: str, name: str, declared_fields: Mapping[str, Json]) -> CurrentObjects | Unreadable:
        part = self.kinds[section].part(name)
        live = self.read(section, name, declared_fields)
        self.numbers.learn(learn_ids({(self.target, section, name): live}, self.kinds))
        return live if isinstance(live, Unreadable) else CurrentObjects(part, live)


def with_answers(
    live: LiveState, lookups: Iterable[Lookup], answer_to: Callable[[Lookup], int | Known | Obstacle]
) -> LiveState:
    """Return live state with the answers to lookups."""
    ids, names = dict(live.ids), dict(live.names)
    for lookup in lookups:
        found = answer_to(lookup)
        if isinstance(lookup, Reference) and not isinstance(found, Known):
            ids[lookup] = found
        else:
            names[cast("Vocabulary", lookup)] = cast("Known | Obstacle", found)
    return replace(live, ids=ids, names=names)


def collection_of(address: Address, kinds: Kinds) -> Collection:
    """Return the collection of an object's address."""
    part = kinds[address.section].part(address.part)
    if not isinstance(part, Collection):
        raise TypeError(f"nothing can be created in {address.section}.{address.part}")
    return part


def with_created(outcome: Outcome, reread_parts: Reread) -> Outcome:
    """Return an outcome with the created object, as it was read since."""
    change = outcome.change
    objects = reread_parts[change.address.section, change.address.part]
    if not isinstance(change, Create) or isinstance(objects, Unreadable):
        return outcome
    made = outcome.created and objects.by_id.get(outcome.created.id)
    new = [made] if made else objects.new(change) if outcome.status is Status.DONE else []
    return replace(outcome, created=as_read(new[0])) if len(new) == 1 else outcome
