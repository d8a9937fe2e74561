"""Layers of settings."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from reconciler.manifests.sources import Document, Location, Steps
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Resource
from reconciler.model.targets import Key, Level, Target
from reconciler.model.wording import closest

NAMES = ("path", "name", "namespace")
PLACEHOLDER = re.compile(r"\{\{(path|name|namespace)\}\}|\{(path|name|namespace)\}")
"""A literal one, which is written with doubled braces, or one to be filled in."""
WORD = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Placeholders = Mapping[str, str]
"""The value of each placeholder; a target may lack some."""


def placeholder_values(path: str | None) -> Placeholders:
    """Return what the placeholders stand for in a target; the user has no path."""
    if path is None:
        return {}
    namespace, slash, name = path.rpartition("/")
    return {"path": path, "name": name} | ({"namespace": namespace} if slash else {})


def fill(text: str, values: Placeholders, *, lower: bool = False) -> str:
    """Fill in the placeholders, in lower case if asked to; literal ones lose their second braces, all else stays."""

    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        value = values.get(name, match.group())
        return value.lower() if lower else value

    return PLACEHOLDER.sub(replace, text) if "{" in text else text


def fill_all(value: Any, values: Placeholders) -> Any:
    """Fill in the placeholders in the keys and strings of a value."""
    match value:
        case str():
            return fill(value, values)
        case dict():
            return {fill(key, values): fill_all(inner, values) for key, inner in value.items()}
        case list():
            return [fill_all(inner, values) for inner in value]
    return value


def literal(value: Any) -> Any:
    """Return a value as a manifest has to write it so that placeholder_values in gives back this value."""
    match value:
        case str():
            return re.sub(r"\{(path|name|namespace)\}", r"{{\1}}", value) if "{" in value else value
        case dict():
            return {literal(key): literal(inner) for key, inner in value.items()}
        case list():
            return [literal(inner) for inner in value]
    return value


def has_placeholder(text: object) -> bool:
    """Whether placeholder_values in would change a text."""
    return isinstance(text, str) and PLACEHOLDER.search(text) is not None


def braces(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], bool]]:
    """Yield each text with a brace in a value, with its path and whether it is the key there."""
    match value:
        case str() if "{" in value:
            yield value, path, False
        case dict():
            for key, inner in value.items():
                if "{" in key:
                    yield key, (*path, key), True
                yield from braces(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from braces(inner, (*path, index))


def uses(text: str) -> tuple[str, ...]:
    """Return the placeholders to be filled in."""
    return tuple(match[2] for match in PLACEHOLDER.finditer(text) if match[2])


def doubt(text: str) -> str | None:
    """Say which word in braces looks like a misspelt placeholder."""
    for word in WORD.findall(text):
        guess = None if word in NAMES else closest(word, NAMES)
        if guess:
            return f"`{{{word}}}` is no placeholder and stays as it is; did you mean `{{{guess}}}`?"
    return None


OLD_NAMES = "renamed_from"


@dataclass(frozen=True, slots=True)
class SectionSpec:
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

    def merges_as_set(self, field: str) -> bool:
        """Whether lists of that field, from several layers, are added up."""
        return field in self.lists and self.lists[field].key_level is not None


SectionSpecs = Mapping[str, SectionSpec]


def section_specs(kinds: Kinds) -> SectionSpecs:
    """Return how the values of each section are made."""
    return {name: _shape(kind) for name, kind in kinds.items()}


def normalize(shape: SectionSpec, section: Any, values: Placeholders | None) -> Any:
    """Return a section with its names in canonical form and, unless `values` is None, its placeholders filled in."""
    if not isinstance(section, dict):
        return section if values is None else fill_all(section, values)
    if shape.items:
        return {normalize_key(shape, key, values): _item(shape.items, item, values) for key, item in section.items()}
    if values is None and section.keys().isdisjoint(shape.lists):
        return section
    return {normalize_key(shape, key, values): _field(shape, key, value, values) for key, value in section.items()}


def normalize_key(shape: SectionSpec, key: str, values: Placeholders | None) -> Any:
    """Return a key of a section as `normalize` does."""
    return _name(shape.items, key, values) if shape.items else key if values is None else fill(key, values)


def normalize_entry(shape: SectionSpec, field: str, entry: Any, values: Placeholders | None) -> Any:
    """Return an entry of a list of names as `normalize` does."""
    return _name(shape.lists[field], entry, values)


def _shape(kind: Kind) -> SectionSpec:
    check = {level: _check(model) for level, model in kind.models.items()}
    collections = {part.name: part for part in kind.parts if isinstance(part, Collection)}
    if all(isinstance(model, type) and issubclass(model, Resource) for model in kind.models.values()):
        return SectionSpec(kind, None, collections, check)
    (items,) = collections.values()
    return SectionSpec(kind, items, {}, check)


@lru_cache(maxsize=256)
def _check(type_: Any) -> Callable[[Any], Any]:
    return TypeAdapter(type_).validator.validate_python


def _name(collection: Collection, name: Any, values: Placeholders | None) -> Any:
    if not isinstance(name, str):
        return name
    if values is not None:
        name = fill(name, values, lower=collection.lowers_placeholders)
    return collection.canonical_key(name)


def _item(collection: Collection, item: Any, values: Placeholders | None) -> Any:
    if not isinstance(item, dict) or (values is None and OLD_NAMES not in item):
        return item
    normalized = item if values is None else fill_all(item, values)
    if OLD_NAMES not in item:
        return normalized
    old = item[OLD_NAMES]
    if isinstance(old, list):
        return {**normalized, OLD_NAMES: [_name(collection, name, values) for name in old]}
    return {**normalized, OLD_NAMES: _name(collection, old, values)}


def _field(shape: SectionSpec, key: str, value: Any, values: Placeholders | None) -> Any:
    if key in shape.lists and isinstance(value, list):
        return [normalize_entry(shape, key, entry, values) for entry in value]
    return value if values is None else fill_all(value, values)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The settings that one document brings.

    Attributes:
        document: where they are written.
        title: such as `profile baseline`.
        sections: as written.
        prune: as written; None where it is not.
        placeholders: those used, each with where.
        normalized: the sections with their names in canonical form; None where that takes a target's path.
    """

    document: Document
    title: str
    sections: Mapping[str, Any]
    prune: list[str] | None
    placeholders: Mapping[str, Steps]
    normalized: Mapping[str, Any] | None

    def values(self, values: Placeholders | None) -> Placeholders | None:
        """Return what to fill in; None where there is nothing to be filled in."""
        return values if self.normalized is None else None

    def section(self, shape: SectionSpec, values: Placeholders | None) -> Any:
        """Return a section's value for a target."""
        name = shape.kind.name
        return self.normalized[name] if self.normalized is not None else normalize(shape, self.sections[name], values)


@dataclass(frozen=True, slots=True)
class Effective:
    """What is to be true of one target, and the layers that say so.

    Attributes:
        target: the target; None for a profile or set looked at by itself.
        layers: lowest first; the last is the target's own document, or a set's.
        sections: merged, in the order of the kinds.
        prune: of the topmost layer that has one.
        values: of the placeholders; None to leave them as they are, where no path is known.
        shapes: of all kinds.
    """

    target: Target | None
    layers: tuple[Layer, ...]
    sections: Mapping[str, Any]
    prune: list[str]
    values: Placeholders | None
    shapes: SectionSpecs

    @property
    def sets_prune(self) -> bool:
        """Whether any layer says what is pruned, be it nothing."""
        return any(layer.prune is not None for layer in self.layers)

    def under(self, upper: "Effective") -> "Effective":
        """Return what this and what lies over it come to, for the same target."""
        return Effective(
            self.target,
            self.layers + upper.layers,
            _merged(self.shapes, self.sections, upper.sections),
            upper.prune if upper.sets_prune else self.prune,
            self.values,
            self.shapes,
        )

    def find(self, path: Steps, *, key: bool = False) -> tuple[Layer, Location]:
        """Return the layer that brought what is at a path, and where; or else of the innermost thing around it."""
        layer, written, whole = next(
            (layer, written, length == len(path))
            for length in range(len(path), 0, -1)
            for layer in reversed(self.layers)
            if (written := self.written(layer, path[:length]))
        )
        return layer, layer.document.find(("spec", *written), key=key or not whole)

    def written(self, layer: Layer, path: Steps) -> Steps | None:
        """Return the path at which a layer writes what is at a path of the merged spec; None where it does not."""
        if path[0] == "prune":
            return None if layer.prune is None or (len(path) > 1 and path[1] >= len(layer.prune)) else path
        shape, values = self.shapes.get(path[0]), layer.values(self.values)
        here: Any = layer.sections
        merged: Any = self.sections
        written: list[Any] = []
        for depth, step in enumerate(path):
            merged = merged.get(step) if isinstance(merged, Mapping) else merged[step]
            found = _candidate(shape, path[: depth + 1], here, merged, values)
            if found is None:
                return None
            written.append(found)
            here = here[found]
        return tuple(written)


def merge(shape: SectionSpec, lower: Any, upper: Any) -> Any:
    """Lay one value of a section over another: mappings key by key, sets of names united, all else replaced."""
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    lower = shape.kind.beneath(lower, upper)
    merged = dict(lower)
    for key, value in upper.items():
        below = lower.get(key)
        if shape.merges_as_set(key) and isinstance(below, list) and isinstance(value, list):
            merged[key] = below + [entry for entry in value if entry not in below]
        else:
            merged[key] = _overlay(below, value)
    return merged


def effective(
    target: Target | None, layers: tuple[Layer, ...], shapes: SectionSpecs, values: Placeholders | None = None
) -> Effective:
    """Merge the layers, lowest first; sections that the target's level does not have are left out."""
    sections: Mapping[str, Any] = {}
    prune: list[str] = []
    for layer in layers:
        prune = prune if layer.prune is None else layer.prune
        fitting = (name for name in layer.sections if target is None or target.level in shapes[name].kind.models)
        sections = _merged(shapes, sections, {name: layer.section(shapes[name], values) for name in fitting})
    return Effective(target, layers, sections, prune, values, shapes)


def _merged(shapes: SectionSpecs, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lay some sections over others, in the order of the kinds."""
    return {
        name: merge(shape, lower[name], upper[name])
        if name in lower and name in upper
        else (upper if name in upper else lower)[name]
        for name, shape in shapes.items()
        if name in lower or name in upper
    }


def _overlay(lower: Any, upper: Any) -> Any:
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _overlay(lower.get(key), value)
    return merged


def _candidate(shape: SectionSpec | None, path: Steps, here: Any, wanted: Any, values: Placeholders | None) -> Any:
    """Return the key or index at which a layer writes what the merged spec has at a path; None where it does not."""
    *above, step = path
    if isinstance(here, list):
        return _index(shape, path, here, wanted, values)
    if not isinstance(here, Mapping):
        return None

    def normalized(key: str) -> Any:
        if len(above) == 1 and shape:
            return normalize_key(shape, key, values)
        return key if values is None else fill(key, values)

    if step in here and normalized(step) == step:
        return step
    return next((key for key in here if normalized(key) == step), None)


def _index(
    shape: SectionSpec | None, path: Steps, here: list[Any], wanted: Any, values: Placeholders | None
) -> int | None:
    """Return where in its list a layer has an entry: lists of names are united, so that there only the name counts."""
    if len(path) == 3 and shape and path[1] in shape.lists:
        return next(
            (i for i, entry in enumerate(here) if normalize_entry(shape, path[1], entry, values) == wanted), None
        )
    return path[-1] if isinstance(path[-1], int) and path[-1] < len(here) else None


def field_path(field: str, spec: Any) -> Steps | None:
    """Return the path a dotted field means in a spec, whose keys may hold dots themselves; None where it means none."""
    if not field:
        return ()
    if not isinstance(spec, dict):
        return None
    for key in sorted(spec, key=len, reverse=True):
        if field == key:
            return (key,)
        if field.startswith(f"{key}."):
            rest = field_path(field[len(key) + 1 :], spec[key])
            if rest is not None:
                return (key, *rest)
    return None


def object_path(section: Any, part: Steps, name: Key | None, field: str | None) -> Steps:
    """Return the path to an object of a section, or to a field of it, as far as the section declares it."""
    path: Steps = ()
    here = section
    for step in (*part, *(() if name is None else (name,))):
        if isinstance(here, dict) and step in here:
            path, here = (*path, step), here[step]
        elif isinstance(here, list):
            alike = [index for index, entry in enumerate(here) if str(entry).casefold() == str(step).casefold()]
            return (*path, *alike[:1])
    return (*path, *(field_path(field or "", here) or ()))


def origins(whole: Effective, path: Steps) -> Iterator[tuple[str, Any]]:
    """Yield `path:line` and the value of each layer that has a say in a field, lowest first."""
    for layer in whole.layers:
        written = whole.written(layer, path)
        if written:
            yield layer.document.find(("spec", *written), key=True).line, _value(whole, layer, path, written)


def _value(whole: Effective, layer: Layer, path: Steps, written: Steps) -> Any:
    if path[0] == "prune":
        return layer.prune if len(path) == 1 else (layer.prune or [])[path[1]]
    value = layer.section(whole.shapes[path[0]], whole.values)
    for step, own_step in zip(path[1:], written[1:], strict=True):
        value = value[own_step if isinstance(value, list) else step]
    return value
