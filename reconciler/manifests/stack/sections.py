"""The form of each section of a spec: how its values are normalized, checked, and merged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from reconciler.manifests.stack.placeholders import Placeholders, fill, fill_all, literal
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds, unknown_kind
from reconciler.model.resource import Resource
from reconciler.model.targets import Level, Target
from reconciler.model.wording import listed, one

OLD_NAMES = "renamed_from"
PRUNE = "prune"
UNMANAGED = "unmanaged"

NO_SECTIONS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class SectionSpec:
    """The form of a section's value, and the rules by which it is normalized and merged.

    Attributes:
        kind: the section.
        items: the collection whose items the section's keys name; None if its keys are fields.
        lists: by field, the collections whose names the field lists.
        check: by level, the function that turns a value into its model, or raises pydantic's `ValidationError`.
    """

    kind: Kind
    items: Collection | None
    lists: Mapping[str, Collection]
    check: Mapping[Level, Callable[[Any], Any]]

    def merges_as_set(self, field: str) -> bool:
        """Whether the lists of that field in several layers are united."""
        return field in self.lists and self.lists[field].names.level is not None

    def merge(self, lower: Any, upper: Any) -> Any:
        """Merge two values of the section: mappings key by key, sets of names united, all else replaced."""
        if not isinstance(lower, dict) or not isinstance(upper, dict):
            return upper
        lower = self.kind.beneath(lower, upper)
        merged = dict(lower)
        for key, value in upper.items():
            below = lower.get(key)
            if self.merges_as_set(key) and isinstance(below, list) and isinstance(value, list):
                merged[key] = _united(below, value)
            else:
                merged[key] = _overlay(below, value)
        return merged

    def normalize(self, section: Any, values: Placeholders | None) -> Any:
        """Return a section with canonical names and, unless `values` is None, with its placeholders filled in."""
        if not isinstance(section, dict):
            return fill_all(section, values)
        if self.items is None and values is None and section.keys().isdisjoint(self.lists):
            return section
        value_of = self._field if self.items is None else self._item
        normal = {self.normalize_key(key, values): value_of(key, value, values) for key, value in section.items()}
        return section if normal == section else normal  # most are: a fleet has no room for two of each

    def normalize_key(self, key: str, values: Placeholders | None) -> Any:
        """Return a key of the section as `normalize` does."""
        return fill(key, values) if self.items is None else _normalize_name(self.items, key, values)

    def shared_key(self, key: str, target: Target) -> str:
        """Return a key as a profile writes it, with `{path}` for the project's path in patterns."""
        lowered = self.items is not None and self.items.names.lowers_placeholders
        path = target.ref.lower() if lowered and isinstance(target.ref, str) else None
        if path is not None and f"{key}/".startswith(f"{path}/"):
            return f"{{path}}{literal(key[len(path) :])}"
        return str(literal(key))

    def normalize_entry(self, field: str, entry: Any, values: Placeholders | None) -> Any:
        """Return an entry of a list of names as `normalize` does."""
        return _normalize_name(self.lists[field], entry, values)

    def _field(self, key: str, value: Any, values: Placeholders | None) -> Any:
        if key in self.lists and isinstance(value, list):
            return [self.normalize_entry(key, entry, values) for entry in value]
        return fill_all(value, values)

    def _item(self, _key: str, item: Any, values: Placeholders | None) -> Any:
        if not isinstance(item, dict) or OLD_NAMES not in item:
            return item if values is None else fill_all(item, values)
        old = item[OLD_NAMES]
        names = [self.normalize_key(name, values) for name in old] if isinstance(old, list) else None
        return {**fill_all(item, values), OLD_NAMES: self.normalize_key(old, values) if names is None else names}


def _united(lower: list[Any], upper: list[Any]) -> list[Any]:
    """Return the entries of two lists; those that are no names, which is an error, may be of any type."""
    names = {entry for entry in lower if isinstance(entry, str)}
    return lower + [entry for entry in upper if entry not in (names if isinstance(entry, str) else lower)]


def _normalize_name(collection: Collection, name: Any, values: Placeholders | None) -> Any:
    if not isinstance(name, str):
        return fill_all(name, values)
    return collection.names.canonical(fill(name, values, lower=collection.names.lowers_placeholders))


def _overlay(lower: Any, upper: Any) -> Any:
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _overlay(lower.get(key), value)
    return merged


SectionSpecs = Mapping[str, SectionSpec]


def section_specs(kinds: Kinds) -> SectionSpecs:
    """Return the form of each section."""
    return {name: _section_spec(kind) for name, kind in kinds.items()}


def _section_spec(kind: Kind) -> SectionSpec:
    check = {level: _check(model) for level, model in kind.models.items()}
    collections = {part.name: part for part in kind.parts if isinstance(part, Collection)}
    if all(isinstance(model, type) and issubclass(model, Resource) for model in kind.models.values()):
        return SectionSpec(kind, None, collections, check)
    (items,) = collections.values()
    return SectionSpec(kind, items, {}, check)


@lru_cache(maxsize=256)
def _check(type_: Any) -> Callable[[Any], Any]:
    return TypeAdapter(type_).validator.validate_python


def unknown_section(name: str, specs: SectionSpecs, known: Iterable[str]) -> str:
    """Return the message about a section that does not exist, among the known ones."""
    return unknown_kind(name, [spec.kind for spec in specs.values()], known)


def level_error(name: str, level: Level, specs: SectionSpecs) -> str | None:
    """Return an error if targets of a level cannot have a section; it names the document kinds that can."""
    models = specs[name].kind.models
    if level in models:
        return None
    allowed = [other for other, spec in specs.items() if level in spec.kind.models]
    owners = listed(owner.document_kind for owner in models)
    return f"{name} belong to {owners}; {one(level.document_kind)} may hold {listed(allowed)}"
