"""Wanted objects matched with live ones, by their names and former names. Pure."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.model.obstacle import Obstacle
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.targets import Address, Key

ONE_NAME = "rename or delete the others"
"""What to do about several objects of one name."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A wanted object and the live one that it is.

    Attributes:
        name: the wanted name.
        wanted: the declared fields.
        record: the live object.
        former: the name of the live object, if that is a former name of the wanted one; else None.
    """

    name: Key
    wanted: Resource
    record: LiveRecord
    former: Key | None = None


@dataclass(frozen=True, slots=True)
class Matches:
    """Wanted and live objects by name.

    Attributes:
        pairs: the wanted objects that are live.
        missing: the names of the wanted objects that are not live.
        leftover: the live objects that no wanted one is.
        conflicts: by name of a wanted object, why several live ones may be that.
        namesakes: by name of such an object, these live ones, if all of them have its present name.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[Key, ...]
    leftover: tuple[LiveRecord, ...]
    conflicts: Mapping[Key, Obstacle] = dataclasses.field(default_factory=dict)
    namesakes: Mapping[Key, tuple[LiveRecord, ...]] = dataclasses.field(default_factory=dict)


def by_birth(record: LiveRecord) -> tuple[datetime, int]:
    """Return a key that sorts objects by their creation, as far as the service reports it."""
    return record.created_at or datetime.min.replace(tzinfo=UTC), record.id or 0


def match(
    wanted: Mapping[Key, Resource],
    live: Iterable[LiveRecord],
    canonical: Callable[[Key], Key],
    address: Callable[[Key], Address],
) -> Matches:
    """Match wanted objects with live ones, by their names and former names.

    Args:
        wanted: the declared objects, by name.
        live: the objects that the service has.
        canonical: returns the form in which all names of one object are equal.
        address: returns the address of an object of some name.
    """
    by_name: dict[Key, list[LiveRecord]] = {}
    for record in live:
        for name in {canonical(name) for name in record.names}:
            by_name.setdefault(name, []).append(record)
    spellings: dict[Key, Key] = {}
    for name in wanted:
        spellings.setdefault(canonical(name), name)
    pairs, missing, doubles = [], [], {}
    conflicts: dict[Key, tuple[str, str]] = {}
    claimed: set[int] = set()
    for key, name in spellings.items():
        resource = wanted[name]
        namesakes = tuple(by_name.get(key, ()))
        former_names = [old for old in getattr(resource, "renamed_from", ()) if canonical(old) in by_name]
        renamed = tuple(record for old in former_names for record in by_name[canonical(old)])
        claimed |= {id(record) for record in (*namesakes, *renamed)}
        former = ", ".join(f'"{old}"' for old in former_names)
        match namesakes, renamed:
            case [], []:
                missing.append(name)
            case [record], []:
                pairs.append(Pair(name, resource, record))
            case [], [record]:
                pairs.append(Pair(name, resource, record, record.names[0]))
            case _, []:
                conflicts[name], doubles[name] = (crowd(namesakes), ONE_NAME), namesakes
            case [], _:
                conflicts[name] = crowd(renamed, f"the former name{'s' * (len(former_names) > 1)} {former}"), ONE_NAME
            case _:
                conflicts[name] = f"both this name and the former {former} are live; delete one of them", ""
    leftover = tuple(record for record in live if id(record) not in claimed)
    obstacles = {name: Obstacle(address(name), *conflict) for name, conflict in conflicts.items()}
    return Matches(tuple(pairs), tuple(missing), leftover, obstacles, doubles)


def crowd(namesakes: Sequence[LiveRecord], name: str = "this name") -> str:
    """Say that several objects have a name, and which of them belong to others."""
    strangers = [record for record in namesakes if not record.ours]
    whose = "belongs to another user" if len(strangers) == 1 else "belong to other users"
    others = f"; {_ids(strangers)} {whose}" if 0 < len(strangers) < len(namesakes) else ""
    return f"{len(namesakes)} objects have {name} ({_ids(namesakes)}); expected one{others}"


def _ids(records: Iterable[LiveRecord]) -> str:
    numbers = sorted(record.id or 0 for record in records)
    return f"ID{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
