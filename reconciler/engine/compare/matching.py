"""The matching of wanted and live objects by their names and former names: `match` returns `Matches`. Pure."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Part
from reconciler.model.renames import circles
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.targets import Key

NO_EXCHANGE = "leave `renamed_from` out of them, or rename one to a third name first, in a commit of its own"
"""The remedy for objects that exchange names, if it is not known which is which."""

Records = tuple[LiveRecord, ...]

NOTHING_KNOWN: Mapping[Key, LiveRecord] = MappingProxyType({})
NOTHING_UNDECIDED: Mapping[Key, str] = MappingProxyType({})

ONE_NAME = "rename or delete the others"
"""The remedy for several objects of one name."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A wanted object and its live object.

    Attributes:
        name: the wanted name.
        wanted: the declared fields.
        record: the live object.
        former: the live name, if it is another one; else None.
        yielding: the object that has the wanted name, and gets a spare one first, since it waits for `record` in turn;
            None if the name is free by then.
    """

    name: Key
    wanted: Resource
    record: LiveRecord
    former: Key | None = None
    yielding: LiveRecord | None = None


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
    namesakes: Records = ()


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
    unmatched: Records = ()
    unwanted: Records = ()

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
    known: Mapping[Key, LiveRecord] = NOTHING_KNOWN,
    undecided: Mapping[Key, str] = NOTHING_UNDECIDED,
) -> Matches:
    """Match wanted objects with live ones, by their names and former names.

    Args:
        resources: the declared objects, by name.
        live: the objects that the service has.
        canonical: returns the form in which all names of one object are equal.
        in_chains: whether an object may get a name that a live one gives up, since it is renamed too.
        known: the live objects that are known by their IDs, by canonical wanted name.
        undecided: the canonical names of objects that exchange names, and the reason why it is not known which live
            object is which.
    """
    names = _NamesInUse(resources, live, canonical, known, undecided, in_chains=in_chains)
    pairs, missing, conflicts = list[Pair](), dict[Key, Resource](), dict[Key, Conflict]()
    matched: set[int] = set()
    # One object for each identity: two spellings of one name in the manifests declare the same object.
    for key, name in names.spellings.items():
        resource = resources[name]
        namesakes, renamed, others = names.candidates(key)
        # Objects of an ambiguous match are claimed too, so that none of them is pruned before somebody decides.
        matched |= {id(record) for record in (*namesakes, *renamed)}
        ambiguity = _ambiguity(namesakes, renamed, others, undecided.get(key, ""))
        if ambiguity is not None:
            conflicts[name] = Conflict(resource, *ambiguity)
        elif namesakes:
            pairs.append(Pair(name, resource, namesakes[0]))
        elif renamed:
            pairs.append(Pair(name, resource, renamed[0], renamed[0].names[0]))
        else:
            missing[name] = resource
    unmatched = tuple(record for record in live if id(record) not in matched)
    return Matches(tuple(pairs), missing, conflicts, unmatched)


class _NamesInUse:
    """The names of wanted and live objects; see `match` for the arguments.

    Attributes:
        spellings: the names of the wanted objects, by canonical name.
    """

    def __init__(
        self,
        resources: Mapping[Key, Resource],
        live: Sequence[LiveRecord],
        canonical: Callable[[Key], Key],
        known: Mapping[Key, LiveRecord],
        undecided: Mapping[Key, str],
        *,
        in_chains: bool,
    ) -> None:
        self.spellings: dict[Key, Key] = {}
        self._known, self._undecided = known, undecided
        self._by_name: dict[Key, list[LiveRecord]] = {}
        for record in live:
            for name in {canonical(name) for name in record.names}:
                self._by_name.setdefault(name, []).append(record)
        for name in resources:
            self.spellings.setdefault(canonical(name), name)
        self._former = {
            key: [old for old in map(canonical, getattr(resources[name], "renamed_from", ())) if old in self._by_name]
            for key, name in self.spellings.items()
        }
        self._former |= {key: _other_names(record, key, canonical) for key, record in known.items()}
        namesake_counts = {key: len(self._by_name.get(key, ())) for key in self.spellings}
        self._chained = _chained(namesake_counts, self._former) if in_chains else frozenset()

    def candidates(self, name: Key) -> tuple[Records, Records, list[Key]]:
        """Return the objects with a canonical name, those with its former names, and which of these are declared."""
        olds = self._former[name]
        if name in self._known:
            record = self._known[name]
            return ((), (record,), []) if olds else ((record,), (), [])
        others = [old for old in olds if old in self.spellings and old not in self._chained]
        namesakes = () if name in self._chained else tuple(self._by_name.get(name, ()))
        if namesakes and others == olds and name not in self._undecided:
            return namesakes, (), []  # the object was renamed before: another one has its former name since
        renamed = tuple(record for old in olds for record in self._by_name[old])
        return namesakes, renamed, [self.spellings[other] for other in others]


def _other_names(record: LiveRecord, name: Key, canonical: Callable[[Key], Key]) -> list[Key]:
    """Return the canonical live name of an object in a list; none if the wanted name is one of its names."""
    names = [canonical(live_name) for live_name in record.names]
    return [] if name in names else names[:1]


def names_freed_first(pairs: Iterable[Pair], canonical: Callable[[Key], Key]) -> tuple[Pair, ...]:
    """Return pairs in an order in which an object gets a name when no other one has it any more.

    In a circle, the first object cannot wait: the one that has its name yields; see `Pair.yielding`.
    """
    pairs = tuple(pairs)
    renamed = {canonical(pair.former): pair for pair in pairs if pair.former is not None}
    ordered: dict[Key, Pair] = {}
    for pair in pairs:
        waiting: dict[Key, Pair] = {}
        blocking: Pair | None = pair
        while blocking is not None and (name := canonical(blocking.name)) not in waiting and name not in ordered:
            waiting[name] = blocking
            blocking = renamed.get(name) if blocking.former is not None else None
        if waiting and blocking is pair:
            first, second, *_ = waiting
            ordered[first] = replace(pair, yielding=waiting[second].record)
            del waiting[first]
        ordered |= {name: waiting[name] for name in reversed(waiting)}
    return tuple(ordered.values())


def _chained(namesake_counts: Mapping[Key, int], old_names: Mapping[Key, Sequence[Key]]) -> Collection[Key]:
    """Return the objects that are renamed, though live objects have their names or former names are declared.

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
    return former.keys() - {key for circle in circles(former) for key in circle}


def _ambiguity(
    namesakes: Records, renamed_records: Records, other_names: Sequence[Key], doubt: str
) -> tuple[str, str, Records] | None:
    """Return reason, remedy and namesakes of a `Conflict`; None if a wanted object matches at most one live object.

    Args:
        namesakes: the live objects with its name.
        renamed_records: the live objects with its former names.
        other_names: the former names that are names of other wanted objects.
        doubt: the reason why it is not known which object of an exchange it is; empty if that is known.
    """
    if doubt and (namesakes or renamed_records):
        return doubt, NO_EXCHANGE, ()
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
    ownership = "belongs to another user" if len(strangers) == 1 else "belong to other users"
    others = f"; {_ids(strangers)} {ownership}" if 0 < len(strangers) < len(namesakes) else ""
    return f"{len(namesakes)} objects have {name} ({_ids(namesakes)}); expected one{others}"


def _ids(records: Iterable[LiveRecord]) -> str:
    numbers = sorted(record.id or 0 for record in records)
    return f"ID{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
