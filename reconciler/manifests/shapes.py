"""How the values of a section are made, and the one spelling in which its names can be compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from reconciler.manifests.placeholders import Filling, fill, fill_all
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Resource
from reconciler.model.targets import Level

OLD_NAMES = "renamed_from"


@dataclass(frozen=True, slots=True)
class Shape:
    """How the value of a section is made.

    Attributes:
        kind: the section.
        items: the collection whose items the section's keys name; None where its keys are fields.
        lists: by field, the collections whose names the field lists.
        check: by level, what turns a value into its model, or raises pydantic's `ValidationError`.
    """

    kind: Kind
    items: Collection | None
    lists: Mapping[str, Collection]
    check: Mapping[Level, Callable[[Any], Any]]

    def unites(self, field: str) -> bool:
        """Whether lists of that field, from several layers, are added up."""
        return field in self.lists and self.lists[field].key_level is not None


Shapes = Mapping[str, Shape]


def shapes_of(kinds: Kinds) -> Shapes:
    """Return how the values of each section are made."""
    return {name: _shape(kind) for name, kind in kinds.items()}


def spell(shape: Shape, section: Any, values: Filling | None) -> Any:
    """Return a section with its names in canonical form and, unless `values` is None, its placeholders filled in."""
    if not isinstance(section, dict):
        return section if values is None else fill_all(section, values)
    if shape.items:
        return {spell_key(shape, key, values): _item(shape.items, item, values) for key, item in section.items()}
    if values is None and section.keys().isdisjoint(shape.lists):
        return section
    return {spell_key(shape, key, values): _field(shape, key, value, values) for key, value in section.items()}


def spell_key(shape: Shape, key: str, values: Filling | None) -> Any:
    """Return a key of a section as `spell` does."""
    return _name(shape.items, key, values) if shape.items else key if values is None else fill(key, values)


def spell_entry(shape: Shape, field: str, entry: Any, values: Filling | None) -> Any:
    """Return an entry of a list of names as `spell` does."""
    return _name(shape.lists[field], entry, values)


def _shape(kind: Kind) -> Shape:
    check = {level: _check(model) for level, model in kind.models.items()}
    collections = {part.name: part for part in kind.parts if isinstance(part, Collection)}
    if all(isinstance(model, type) and issubclass(model, Resource) for model in kind.models.values()):
        return Shape(kind, None, collections, check)
    (items,) = collections.values()
    return Shape(kind, items, {}, check)


@lru_cache(maxsize=256)
def _check(type_: Any) -> Callable[[Any], Any]:
    return TypeAdapter(type_).validator.validate_python


def _name(collection: Collection, name: Any, values: Filling | None) -> Any:
    if not isinstance(name, str):
        return name
    if values is not None:
        name = fill(name, values, lower=collection.lowers_placeholders)
    return collection.canonical_key(name)


def _item(collection: Collection, item: Any, values: Filling | None) -> Any:
    if not isinstance(item, dict) or (values is None and OLD_NAMES not in item):
        return item
    spelled = item if values is None else fill_all(item, values)
    if OLD_NAMES not in item:
        return spelled
    old = item[OLD_NAMES]
    if isinstance(old, list):
        return {**spelled, OLD_NAMES: [_name(collection, name, values) for name in old]}
    return {**spelled, OLD_NAMES: _name(collection, old, values)}


def _field(shape: Shape, key: str, value: Any, values: Filling | None) -> Any:
    if key in shape.lists and isinstance(value, list):
        return [spell_entry(shape, key, entry, values) for entry in value]
    return value if values is None else fill_all(value, values)
