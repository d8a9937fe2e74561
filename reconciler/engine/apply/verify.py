"""Reading again: before a change, whether it is stale or forged; after it, whether the service has carried it out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.engine.apply.outcomes import Stop
from reconciler.engine.apply.targets import Numbers
from reconciler.engine.compare.matching import by_birth
from reconciler.engine.compare.references import called_as_sent
from reconciler.engine.lookups import look_up_names
from reconciler.engine.read import completed, decode, learn_ids, numbered, read_part
from reconciler.errors import ServiceError, Stopped, WaitTooLong
from reconciler.model.diff import as_before, as_read, called_alike
from reconciler.model.endpoints import Collection, Reading, Singleton
from reconciler.model.item import Change, Create, Delete, Outcome, Status, Update, makes
from reconciler.model.kind import Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import Known, LivePart, LiveState, Lookup, Reference, Unreadable, Vocabulary
from reconciler.model.targets import Address, Key, Target


class CurrentObjects:
    """The objects of a part that was read again, by ID and by name: a section may have thousands of changes."""

    def __init__(self, part: Part, live: LiveRecord | Objects) -> None:
        self._part, self._live = part, live
        objects = Objects((live,)) if isinstance(live, LiveRecord) else live
        self.by_id = {record.id: record for record in (*objects.own, *objects.promotable.values())}
        self._by_name: dict[Key | None, list[LiveRecord]] = {}
        for record in objects.own:
            for name in self._canonical(record.names):
                self._by_name.setdefault(name, []).append(record)

    @property
    def model(self) -> type[Resource]:
        """The model of the objects, or that of the settings at this level."""
        return type(self._live.resource) if isinstance(self._live, LiveRecord) else self._part.model

    def called_as_in(self, changes: Iterable[Change], *, forced: bool = False) -> LiveRecord | Objects:
        """Return the part with the entries of its lists called as in some changes: another token may see other names.

        Args:
            changes: those that are planned again.
            forced: whether fields that are not shown count as different.
        """
        reads = {change.read.id: change.read for change in changes if not isinstance(change, Create)}

        def called(record: LiveRecord) -> LiveRecord:
            record = replace(record, unshown={}) if forced and record.unshown else record
            return as_before(record, reads[record.id]) if record.id in reads and record.entries else record

        if isinstance(self._live, LiveRecord):
            return called(self._live)
        return replace(self._live, own=tuple(map(called, self._live.own)))

    def named(self, *names: Key | None) -> list[LiveRecord]:
        """Return the objects that have any of some names; a settings record has all."""
        records = [record for name in self._canonical(names) for record in self._by_name.get(name, [])]
        return list({id(record): record for record in records}.values())

    def taken(self, name: Key | None) -> list[LiveRecord]:
        """Return the objects of a name that only one may have; nothing where names need not be unique."""
        return self.named(name) if isinstance(self._part, Collection) and self._part.names.unique else []

    def new(self, change: Create | Update) -> list[LiveRecord]:
        """Return the objects of a new one's name, or of the target it refers to, that were not there before.

        Only our own rival with one that succeeds our own. A promotion makes one where none was.
        """
        if isinstance(change, Update):
            return self.named(change.address.name)
        namesakes = self.named(change.address.name, change.target_id)
        before = change.replaces_ids
        return [record for record in namesakes if record.id not in before and (record.ours or not before)]

    def stands_in(self, change: Change) -> list[LiveRecord]:
        """Return the objects that are there instead of a new one that has gone, where a name may have led to it.

        Of two runs that create one at the same time, the second deletes that of the first.
        """
        is_by_name = isinstance(self._part, Collection) and self._part.path_field == self._part.key
        return self.new(change) if is_by_name and isinstance(change, Create) else []

    def keeps(self, number: int | None) -> bool:
        """Return whether the object of an ID is there to stay; one that was deleted may fade away."""
        return number in self.by_id and not (isinstance(self._part, Collection) and self._part.deletion.fades)

    def has_name(self, record: LiveRecord, *names: Key | None) -> bool:
        """Return whether an object has any of some names."""
        return not self._canonical(names).isdisjoint(self._canonical(record.names))

    def _canonical(self, names: Iterable[Key | None]) -> set[Key | None]:
        if isinstance(self._part, Singleton):
            return {None}
        return {self._part.identity(name) for name in names if name is not None}


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
        self._secrets.pop(path, None)
        return self._read[path]

    def secrets(self, part: Collection, address: Address, number: int | None) -> list[tuple[LiveRecord, str]]:
        """Return the objects of a name that are ours, each with the value of its secret, newest last.

        Args:
            part: the collection.
            address: the name.
            number: the numeric ID of the target, if it is known.

        Raises:
            ServiceError: the list was not read yet, and cannot be; or an entry of it is odd.
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


class Verifier:
    """Reads parts of one target again.

    Attributes:
        read_last: by section and part, what was read, as it was read last.
    """

    def __init__(
        self, reader: Reader, kinds: Kinds, target: Target, stop: Stop, numbers: Numbers | None = None
    ) -> None:
        self.lists, self.kinds, self.target, self.stop = Lists(reader), kinds, target, stop
        self.numbers = numbers or Numbers()
        self.names: dict[Vocabulary, Known | Obstacle] = {}
        self.read_last: dict[tuple[str, str], LivePart] = {}

    @property
    def number(self) -> int | None:
        """The numeric ID of the target, if it is known."""
        return self.numbers.known(Reference(self.target.level, str(self.target.ref)))

    def secrets(self, part: Collection, address: Address) -> list[tuple[LiveRecord, str]]:
        """See `Lists.secrets`."""
        return self.lists.secrets(part, address, self.number)

    def answer(self, live: LiveState, missing: Iterable[Lookup]) -> LiveState:
        """Return live state with what planning lacks, or why that is unknown."""
        ids, names = dict(live.ids), dict(live.names)
        for lookup in missing:
            try:
                if isinstance(lookup, Vocabulary):
                    names[lookup] = self.names[lookup] = self.names.get(lookup) or look_up_names(lookup, self.lists)
                else:
                    ids[lookup] = self.numbers.of(lookup, self.lists)
            except ServiceError as error:
                self.stop.after(error)
                unknown = Obstacle(self.target.address, str(error))
                if isinstance(lookup, Vocabulary):
                    names[lookup] = unknown
                else:
                    ids[lookup] = unknown
        return replace(live, ids=ids, names=names)

    def read(self, section: str, name: str, wanted: Resource | Mapping[Any, Any]) -> LivePart:
        """Read one part; while writing, no failure to read is worth losing the rest of the run for."""
        if self.stop.refused:
            return Unreadable(self.stop.reason)
        try:
            live = read_part(self.lists, self.kinds[section].part(name), self.target, wanted, self.number)
        except (Stopped, WaitTooLong) as error:
            self.stop.after(error)
            return Unasked(str(error))
        except ServiceError as error:
            self.stop.after(error)
            return Unreadable(str(error))
        self.read_last[section, name] = live
        return live

    def again(self, changes: Iterable[Change]) -> Reread:
        """Read the parts that some changes are about, once each."""
        wanted: dict[tuple[str, str], dict[Any, Any]] = {}
        for change in changes:
            after = {} if isinstance(change, Delete) else change.after
            fields = wanted.setdefault((change.address.section, change.address.part), {})
            fields |= after if change.address.name is None else {change.address.name: after}
        return {(section, name): self._objects(section, name, after) for (section, name), after in wanted.items()}

    def unapplied(self, change: Change, live: Reread, made: int | None = None) -> str:
        """Return as `unapplied` what a change lacks that may not have been carried out.

        An object that may fade away is looked at once more: if it is still there, nothing has deleted it.
        """
        lacking = unapplied(change, live, made, certain=False)
        part = self.kinds[change.address.section].part(change.address.part)
        if lacking and isinstance(change, Delete) and isinstance(part, Collection) and part.deletion.fades:
            return unapplied(change, self.again([change]), certain=False)
        return lacking

    def _objects(self, section: str, name: str, wanted: Mapping[str, Json]) -> CurrentObjects | Unreadable:
        part = self.kinds[section].part(name)
        live = self.read(section, name, wanted)
        self.numbers.learn(learn_ids({(self.target, section, name): live}, self.kinds))
        return live if isinstance(live, Unreadable) else CurrentObjects(part, live)


def collection_of(address: Address, kinds: Kinds) -> Collection:
    """Return the collection in which an object is created."""
    part = kinds[address.section].part(address.part)
    if not isinstance(part, Collection):
        raise TypeError(f"nothing can be created in {address.section}.{address.part}")
    return part


def unapplied(change: Change, live: Reread, made: int | None = None, *, certain: bool = True) -> str:
    """Return what the service shows otherwise than a change wants it; empty where it is as wanted.

    Args:
        change: that was carried out, or may have been.
        live: what was read since.
        made: the ID of the object that it made, where that is known.
        certain: whether the service has accepted it: then an object that is still there may fade away.

    Raises:
        LookupError: it is unknown, for the part cannot be read, or was not.
    """
    objects = live[change.address.section, change.address.part]
    if isinstance(objects, Unreadable):
        raise LookupError(objects.reason)  # noqa: TRY004  # nothing is of a wrong type here
    if isinstance(change, Delete):
        there = objects.keeps(change.read.id) if certain else change.read.id in objects.by_id
        return "it still exists" if there else ""
    if made is None and makes(change):
        records = objects.new(change)
    else:
        known = objects.by_id.get(made if isinstance(change, Create) or made is not None else change.read.id)
        records = [known] if known else objects.stands_in(change)
    records = [called_as_sent(record, change) if record.entries else record for record in records]
    if not records:
        return "it does not exist"
    shown = [(called_alike(change.after, record), record.unshown) for record in records]
    lost = [
        name + _lost_of(value, [fields.get(name) for fields, _ in shown])
        for name, value in change.after.items()
        if all(fields.get(name) != value and name.partition(".")[0] not in unshown for fields, unshown in shown)
    ]
    if not objects.has_name(records[0], change.address.name, change.target_id if isinstance(change, Create) else None):
        lost.insert(0, "name")
    return f"the service kept its own {', '.join(lost)}" if lost else ""


def _lost_of(wanted: Json, shown: Sequence[Json]) -> str:
    """Say who or what of a wanted list is not in any of those that are shown; empty where that is not known."""
    if not (isinstance(wanted, list) and all(isinstance(there, list) for there in shown)):
        return ""
    lost = [entry for entry in wanted if all(entry not in there for there in shown)]
    words = (" ".join(map(str, next(iter(entry.items())))) if isinstance(entry, dict) else str(entry) for entry in lost)
    return f" (without {', '.join(words)})" if lost else ""


def with_created(outcome: Outcome, live: Reread) -> Outcome:
    """Return an outcome with the object that it has created, as it was read since."""
    change = outcome.change
    objects = live[change.address.section, change.address.part]
    if not isinstance(change, Create) or isinstance(objects, Unreadable):
        return outcome
    made = outcome.created and objects.by_id.get(outcome.created.id)
    new = [made] if made else objects.new(change) if outcome.status is Status.DONE else []
    return replace(outcome, created=as_read(new[0])) if len(new) == 1 else outcome
