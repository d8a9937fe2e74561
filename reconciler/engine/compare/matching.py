"""The matching of wanted and live objects by their names and former names: `match` returns `Matches`. Pure."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Part
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.targets import Key

ONE_NAME = "rename or delete the others"
"""The remedy for several objects of one name."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A wanted object and its live object.

    Attributes:
        name: the wanted name.
        wanted: the declared fields.
        record: the live object.
        former: the live name, if it is a former name of the wanted object; else None.
    """

    name: Key
    wanted: Resource
    record: LiveRecord
    former: Key | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A wanted object that matches several live ones.

    Attributes:
        wanted: the declared fields.
        reason: why the match is ambiguous.
        remedy: the fix; empty if the reason says it.
        namesakes: the live objects, if all of them have its present name.
    """

    wanted: Resource
    reason: str
    remedy: str = ""
    namesakes: tuple[LiveRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Matches:
    """Wanted and live objects by name.

    Attributes:
        pairs: the wanted objects with one live object each.
        missing: the wanted objects without a live object, by name.
        conflicts: the wanted objects that match several live ones, by name.
        unmatched: the live objects that match no wanted one, and are kept.
        unwanted: the live objects that match no wanted one, and are deleted.
    """

    pairs: tuple[Pair, ...] = ()
    missing: Mapping[Key, Resource] = dataclasses.field(default_factory=dict)
    conflicts: Mapping[Key, Conflict] = dataclasses.field(default_factory=dict)
    unmatched: tuple[LiveRecord, ...] = ()
    unwanted: tuple[LiveRecord, ...] = ()

    @property
    def wanted(self) -> Iterator[tuple[Key, Resource]]:
        """The wanted objects with their names."""
        yield from ((pair.name, pair.wanted) for pair in self.pairs)
        yield from self.missing.items()
        yield from ((name, conflict.wanted) for name, conflict in self.conflicts.items())

    def mapped(
        self, resource_converter: Callable[[Resource], Resource], record_converter: Callable[[LiveRecord], LiveRecord]
    ) -> "Matches":
        """Return these matches with converted wanted fields and live records."""
        return replace(
            self,
            pairs=tuple(
                replace(pair, wanted=resource_converter(pair.wanted), record=record_converter(pair.record))
                for pair in self.pairs
            ),
            missing={name: resource_converter(resource) for name, resource in self.missing.items()},
            conflicts={
                name: replace(conflict, wanted=resource_converter(conflict.wanted))
                for name, conflict in self.conflicts.items()
            },
        )

    def deleting(self, unwanted: Iterable[LiveRecord]) -> "Matches":
        """Return these matches, with some of the leftover objects deleted."""
        return replace(self.less(unwanted), unwanted=tuple(unwanted))

    def less(self, records: Iterable[LiveRecord]) -> "Matches":
        """Return these matches without some of the unmatched live objects."""
        gone = {id(record) for record in records}
        unmatched = tuple(record for record in self.unmatched if id(record) not in gone)
        return replace(self, unmatched=unmatched, unwanted=tuple(r for r in self.unwanted if id(r) not in gone))


class NamedObjects:
    """Live objects of a part, by ID and by name.

    Attributes:
        part: the part.
        by_id: the objects.
    """

    def __init__(self, part: Part, live: Sequence[LiveRecord]) -> None:
        self.part = part
        self.by_id: dict[int | None, LiveRecord] = {}
        self._by_name: dict[Key | None, list[LiveRecord]] = {}
        for record in live:
            self.by_id[record.id] = record
            for name in self.identities(record.names):
                self._by_name.setdefault(name, []).append(record)

    def identities(self, optional_names: Iterable[Key | None]) -> set[Key | None]:
        """Return the identities of some names; for a settings record, always the same one."""
        if isinstance(self.part, Singleton):
            return {None}
        return {self.part.identity(name) for name in optional_names if name is not None}

    def named(self, *names: Key | None) -> list[LiveRecord]:
        """Return the objects with any of some names; a settings record has every name."""
        records = [record for name in self.identities(names) for record in self._by_name.get(name, [])]
        return list({id(record): record for record in records}.values())

    def has_name(self, record: LiveRecord, *names: Key | None) -> bool:
        """Return whether an object has any of some names."""
        return not self.identities(names).isdisjoint(self.identities(record.names))


def by_birth(record: LiveRecord) -> tuple[datetime, int]:
    """Return a sort key: the time of creation, if the service reports it, and the ID."""
    return record.created_at or datetime.min.replace(tzinfo=UTC), record.id or 0


def match(
    resources: Mapping[Key, Resource],
    live: Sequence[LiveRecord],
    canonical: Callable[[Key], Key],
    *,
    in_chains: bool = False,
) -> Matches:
    """Match wanted objects with live ones, by their names and former names.

    Args:
        resources: the declared objects, by name.
        live: the objects that the service has.
        canonical: returns the form in which all names of one object are equal.
        in_chains: whether an object may get a name that a live one gives up, since it is renamed too.
    """
    by_name: dict[Key, list[LiveRecord]] = {}
    for record in live:
        for name in {canonical(name) for name in record.names}:
            by_name.setdefault(name, []).append(record)
    spellings: dict[Key, Key] = {}
    for name in resources:
        spellings.setdefault(canonical(name), name)
    former_names = {
        key: [old for old in map(canonical, getattr(resources[name], "renamed_from", ())) if old in by_name]
        for key, name in spellings.items()
    }
    queue = _queue({key: len(by_name.get(key, ())) for key in spellings}, former_names) if in_chains else {}
    pairs, missing, conflicts = dict[Key, Pair](), dict[Key, Resource](), dict[Key, Conflict]()
    matched: set[int] = set()
    # One object for each identity: two spellings of one name in the manifests declare the same object.
    for key, name in spellings.items():
        resource, olds = resources[name], former_names[key]
        others = [old for old in olds if old in spellings and old not in queue]
        namesakes = () if key in queue else tuple(by_name.get(key, ()))
        if namesakes and others == olds:
            olds = others = []  # the object was renamed before: another one has its former name since
        renamed = tuple(record for old in olds for record in by_name[old])
        # Objects of an ambiguous match are claimed too, so that none of them is pruned before somebody decides.
        matched |= {id(record) for record in (*namesakes, *renamed)}
        ambiguity = _ambiguity(namesakes, renamed, [spellings[other] for other in others])
        if ambiguity is not None:
            conflicts[name] = Conflict(resource, *ambiguity)
        elif namesakes:
            pairs[key] = Pair(name, resource, namesakes[0])
        elif renamed:
            pairs[key] = Pair(name, resource, renamed[0], renamed[0].names[0])
        else:
            missing[name] = resource
    unmatched = tuple(record for record in live if id(record) not in matched)
    # A name has to be free before another object can get it.
    ordered = tuple(pairs[key] for key in sorted(pairs, key=lambda key: queue.get(key, 0)))
    return Matches(ordered, missing, conflicts, unmatched)


def _queue(namesake_counts: Mapping[Key, int], old_names: Mapping[Key, Sequence[Key]]) -> Mapping[Key, int]:
    """Return the objects that are renamed, each with the number of those that give their names up before it.

    An object is renamed, if it has one former name, which is no other's, its own is free or is given up, and no object
    keeps the former one. Those that exchange their names in a circle are not.

    Args:
        namesake_counts: of live objects with each wanted name.
        old_names: the former names that live objects have, by wanted name.
    """
    former = {key: olds[0] for key, olds in old_names.items() if len(olds) == 1 and namesake_counts[key] <= 1}
    staying: set[Key] = {*former}
    while staying:
        given_up = Counter(former.values())
        staying = {
            key
            for key, old in former.items()
            if given_up[old] > 1
            or (namesake_counts[key] and key not in given_up)
            or (old in namesake_counts and old not in former)
        }
        former = {key: old for key, old in former.items() if key not in staying}
    queue: dict[Key, int] = {}
    ready = former.keys() - set(former.values())
    while ready:
        queue |= dict.fromkeys(ready, len(queue))
        ready = {former[key] for key in ready} & former.keys()
    return queue


def _ambiguity(
    namesakes: tuple[LiveRecord, ...], renamed_records: Sequence[LiveRecord], other_names: Sequence[Key]
) -> tuple[str, str, tuple[LiveRecord, ...]] | None:
    """Return reason, remedy and namesakes of a `Conflict`; None if a wanted object matches at most one live object.

    Args:
        namesakes: the live objects with its name.
        renamed_records: the live objects with its former names.
        other_names: the former names that are names of other wanted objects.
    """
    if other_names:
        reason = f'the former name "{other_names[0]}" is that of another declared one'
        return reason, "leave it out of `renamed_from`, or leave that one out", ()
    if len(namesakes) + len(renamed_records) <= 1:
        return None
    if not renamed_records:
        return too_many_objects(namesakes), ONE_NAME, namesakes
    former_names = dict.fromkeys(f'"{record.names[0]}"' for record in renamed_records)
    former = ", ".join(former_names)
    if not namesakes:
        return (
            too_many_objects(renamed_records, f"the former name{'s' * (len(former_names) > 1)} {former}"),
            ONE_NAME,
            (),
        )
    return f"both this name and the former {former} are live; delete one of them", "", ()


def too_many_objects(namesakes: Sequence[LiveRecord], name: str = "this name") -> str:
    """Return the reason that several objects have a name, with the IDs of those that belong to other users."""
    strangers = [record for record in namesakes if not record.ours]
    whose = "belongs to another user" if len(strangers) == 1 else "belong to other users"
    others = f"; {_ids(strangers)} {whose}" if 0 < len(strangers) < len(namesakes) else ""
    return f"{len(namesakes)} objects have {name} ({_ids(namesakes)}); expected one{others}"


def _ids(records: Iterable[LiveRecord]) -> str:
    numbers = sorted(record.id or 0 for record in records)
    return f"ID{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
