"""Former names: the objects whose names go round in a circle, such as two objects that exchange their names. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from reconciler.model.resource import Resource
from reconciler.model.targets import Key

Name = TypeVar("Name", str, Key)


def former_names(resources: Mapping[Key, Resource | None], canonical: Callable[[Key], Key]) -> dict[Key, Key]:
    """Return the former name of each wanted object that has exactly one; all names in their canonical form."""
    former: dict[Key, Key] = {}
    for name, resource in resources.items():
        match getattr(resource, "renamed_from", ()):
            case (str() as old,):
                former[canonical(name)] = canonical(old)
    return former


def circles(former_by_name: Mapping[Name, Name]) -> Iterator[tuple[Name, ...]]:
    """Yield the names of each circle, in which each object gets the name of another object.

    A name comes before its former name.

    Args:
        former_by_name: the former name of each object.
    """
    seen: set[Name] = set()
    for start in former_by_name:
        name, passed = start, list[Name]()
        while name in former_by_name and name not in seen:
            seen.add(name)
            passed.append(name)
            name = former_by_name[name]
        if name in passed and former_by_name[name] != name:
            yield tuple(passed[passed.index(name) :])


def exchanged_names(resources: Mapping[Key, Resource | None], canonical: Callable[[Key], Key]) -> frozenset[Key]:
    """Return the canonical names of the wanted objects that are in a circle."""
    return frozenset(name for circle in circles(former_names(resources, canonical)) for name in circle)
