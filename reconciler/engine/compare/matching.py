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
    wanted: dict[Key, _Wanted] = {}
    # One object for each identity: two spellings of one name in the manifests declare the same object.
    for name, resource in resources.items():
        key = canonical(name)
        others = (canonical(old) for old in getattr(resource, "renamed_from", ()))
        renamed = {old: tuple(by_name[old]) for old in others if old in by_name and old != key}
        wanted.setdefault(key, _Wanted(name, resource, tuple(by_name.get(key, ())), renamed))
    places = _places(_renames(wanted)) if in_chains else {}
    pairs, missing, conflicts = dict[Key, Pair](), dict[Key, Resource](), dict[Key, Conflict]()
    matched: set[int] = set()
    for key, item in wanted.items():
        # Objects of an ambiguous match are claimed too, so that none of them is pruned before somebody decides.
        matched |= {id(record) for records in (item.namesakes, *item.former.values()) for record in records}
        match _found(key, item, wanted, places):
            case Pair() as pair:
                pairs[key] = pair
            case Conflict() as conflict:
                conflicts[item.name] = conflict
            case _:
                missing[item.name] = item.resource
    unmatched = tuple(record for record in live if id(record) not in matched)
    # A name has to be free before another object can get it.
    ordered = tuple(pairs[key] for key in sorted(pairs, key=lambda key: places.get(key, 0)))
    return Matches(ordered, missing, conflicts, unmatched)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A wanted object, and the live ones that it may be.

    Attributes:
        name: the wanted name.
        resource: the declared fields.
        namesakes: the live objects with that name.
        former: the live objects with each of its former names that any has.
    """

    name: Key
    resource: Resource
    namesakes: tuple[LiveRecord, ...]
    former: Mapping[Key, tuple[LiveRecord, ...]]


def _renames(wanted: Mapping[Key, _Wanted]) -> Mapping[Key, Key]:
    """Return the objects that are renamed, each with its former name.

    An object is, if it has one former name, which is no other's, its own is free or is given up by another, and no
    object keeps the former one.
    """
    former = {
        key: next(iter(item.former))
        for key, item in wanted.items()
        if len(item.former) == 1 and len(item.namesakes) <= 1
    }
    while True:
        given_up = Counter(former.values())
        staying = {
            key
            for key, old in former.items()
            if given_up[old] > 1
            or (wanted[key].namesakes and key not in given_up)
            or (old in wanted and old not in former)
        }
        if not staying:
            return former
        former = {key: old for key, old in former.items() if key not in staying}


def _places(former: Mapping[Key, Key]) -> Mapping[Key, int]:
    """Return for each renamed object how many others must be renamed before it.

    Args:
        former: see `_renames`.
    """
    places = dict.fromkeys(former.keys() - set(former.values()), 0)
    ready = list(places)
    while ready:
        key = ready.pop()
        if former[key] in former:
            places[former[key]] = places[key] + 1
            ready.append(former[key])
    return places


def _found(key: Key, item: _Wanted, wanted: Mapping[Key, _Wanted], places: Mapping[Key, int]) -> Pair | Conflict | None:
    """Return the live object that a wanted one is, or the reason why that is not clear; None if there is none.

    Args:
        key: the canonical name of the wanted object.
        item: the wanted object.
        wanted: all of them, by canonical name.
        places: see `_places`.
    """
    namesakes = () if key in places else item.namesakes
    kept = [old for old in item.former if old in wanted and old not in places]
    # Its object has been renamed: the former name is that of another one since.
    former = {} if namesakes and kept == [*item.former] else item.former
    if former and kept:
        reason = f'the former name "{wanted[kept[0]].name}" is that of another declared one'
        return Conflict(item.resource, reason, "leave it out of `renamed_from`, or leave that one out")
    renamed = tuple(record for records in former.values() for record in records)
    if len(namesakes) + len(renamed) > 1:
        return Conflict(item.resource, *_ambiguity(namesakes, renamed, [old[0].names[0] for old in former.values()]))
    if namesakes:
        return Pair(item.name, item.resource, namesakes[0])
    return Pair(item.name, item.resource, renamed[0], renamed[0].names[0]) if renamed else None


def _ambiguity(
    namesakes: tuple[LiveRecord, ...], renamed_records: Sequence[LiveRecord], former_names: Sequence[Key]
) -> tuple[str, str, tuple[LiveRecord, ...]]:
    """Return reason, remedy and namesakes of a `Conflict`.

    Args:
        namesakes: the live objects with its name.
        renamed_records: the live objects with its former names.
        former_names: the former names that live objects have.
    """
    if not renamed_records:
        return too_many_objects(namesakes), ONE_NAME, namesakes
    former = ", ".join(f'"{old}"' for old in former_names)
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
