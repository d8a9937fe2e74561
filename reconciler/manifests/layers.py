"""Layers of settings, one per document: names normalized, placeholders filled in, merged for one target."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from reconciler.manifests.sources import Document, Location, Steps
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Resource
from reconciler.model.targets import Key, Level, Target
from reconciler.model.wording import closest

OLD_NAMES = "renamed_from"
PRUNE = "prune"
UNMANAGED = "unmanaged"

NO_SECTIONS: frozenset[str] = frozenset()

NAMES = ("path", "name", "namespace")
MOST_FILLED = 5 * 1024 * 1024
"""Characters that the placeholders of one document may come to in one target."""
PLACEHOLDER = re.compile(r"\{\{(path|name|namespace)\}\}|\{(path|name|namespace)\}")
"""A literal one, written with doubled braces, or one to fill in."""
WORD = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Placeholders = Mapping[str, str]
"""The value of each placeholder; a target may lack some."""


def placeholder_values(path: str | None) -> Placeholders:
    """Return the values of the placeholders for a target; the user has no path."""
    if path is None:
        return {}
    namespace, slash, name = path.rpartition("/")
    return {"path": path, "name": name} | ({"namespace": namespace} if slash else {})


def fill(text: str, values: Placeholders | None, *, lower: bool = False) -> str:
    """Fill in the placeholders, and strip the second braces of literal ones; without values, return the text."""

    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return f"{{{literal}}}"
        value = (values or {}).get(name, match.group())
        return value.lower() if lower else value

    return text if values is None or "{" not in text else PLACEHOLDER.sub(replace, text)


def fill_all(value: Any, values: Placeholders | None) -> Any:
    """Fill in the placeholders in the keys and strings of a value."""
    return value if values is None else _with_texts(value, lambda text: fill(text, values))


def literal(value: Any) -> Any:
    """Return a value as a manifest writes it, with literal braces doubled: filling in gives back the value."""
    return _with_texts(
        value, lambda text: re.sub(r"\{(path|name|namespace)\}", r"{{\1}}", text) if "{" in text else text
    )


def unfilled(text: str, values: Placeholders) -> str:
    """Return a text as a manifest writes it, with placeholders in place of their values, whatever their case."""
    text = literal(text)
    for name, value in values.items():
        text = re.sub(re.escape(value), f"{{{name}}}", text, flags=re.IGNORECASE)
    return text


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with its keys and strings changed."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): _with_texts(inner, change) for key, inner in value.items()}
        case list():
            return [_with_texts(inner, change) for inner in value]
    return value


def has_placeholder(text: object) -> bool:
    """Whether a text has placeholders, literal ones included."""
    return isinstance(text, str) and PLACEHOLDER.search(text) is not None


def braces(value: Any, steps: Steps = ()) -> Iterator[tuple[str, Steps, bool]]:
    """Yield each text with a brace in a value, with the steps to it and whether it is the key there."""
    match value:
        case str() if "{" in value:
            yield value, steps, False
        case dict():
            for key, inner in value.items():
                if "{" in key:
                    yield key, (*steps, key), True
                yield from braces(inner, (*steps, key))
        case list():
            for index, inner in enumerate(value):
                yield from braces(inner, (*steps, index))


def placeholders_in(text: str) -> tuple[str, ...]:
    """Return the placeholders to fill in."""
    return tuple(match[2] for match in PLACEHOLDER.finditer(text) if match[2])


def misspelt_placeholder(text: str) -> str | None:
    """Return a warning if a word in braces looks like a misspelt placeholder."""
    for word in WORD.findall(text):
        guess = None if word in NAMES else closest(word, NAMES)
        if guess:
            return f"`{{{word}}}` is no placeholder and stays as it is; did you mean `{{{guess}}}`?"
    return None


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

    def normalize_entry(self, field: str, entry: Any, values: Placeholders | None) -> Any:
        """Return an entry of a list of names as `normalize` does."""
        return _normalize_name(self.lists[field], entry, values)

    def _field(self, key: str, value: Any, values: Placeholders | None) -> Any:
        if key in self.lists and isinstance(value, list):
            return [self.normalize_entry(key, entry, values) for entry in value]
        return fill_all(value, values)

    def _item(self, _key: str, item: Any, values: Placeholders | None) -> Any:
        if not isinstance(item, dict) or OLD_NAMES not in item:
            return fill_all(item, values)
        old = item[OLD_NAMES]
        names = [self.normalize_key(name, values) for name in old] if isinstance(old, list) else None
        return {**fill_all(item, values), OLD_NAMES: self.normalize_key(old, values) if names is None else names}


def _united(lower: list[Any], upper: list[Any]) -> list[Any]:
    """Return the entries of two lists; those that are no names, which is an error, may be of any type."""
    names = {entry for entry in lower if isinstance(entry, str)}
    return lower + [entry for entry in upper if entry not in (names if isinstance(entry, str) else lower)]


def _normalize_name(collection: Collection, name: Any, values: Placeholders | None) -> Any:
    if not isinstance(name, str):
        return name
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


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The settings of one document.

    Attributes:
        document: the document.
        title: such as `profile baseline`; empty for a target's own document.
        sections: as written.
        prune: as written; None if it is not.
        placeholders: those used, each with the steps to its first use in the document.
        normalized: the sections with canonical names; None if that needs a target's path.
        locks: by section, `all` or the names of what later layers may not change.
        uses: how often each placeholder is used.
        unmanaged: the sections that a target's own document leaves alone.
    """

    document: Document
    title: str
    sections: Mapping[str, Any]
    prune: list[str] | None
    placeholders: Mapping[str, Steps]
    normalized: Mapping[str, Any] | None
    locks: Mapping[str, Any] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)
    unmanaged: frozenset[str] = NO_SECTIONS

    def overfilled(self, values: Placeholders | None) -> str | None:
        """Return a placeholder if those of the document come to more text in a target than any manifest needs."""
        lengths = {name: uses * len((values or {}).get(name, "")) for name, uses in self.uses.items()}
        return max(lengths, key=lengths.__getitem__) if sum(lengths.values()) > MOST_FILLED else None

    def section(self, spec: SectionSpec, values: Placeholders | None) -> Any:
        """Return a section's value for a target."""
        name = spec.kind.name
        return self.normalized[name] if self.normalized is not None else spec.normalize(self.sections[name], values)

    def section_with(self, spec: SectionSpec, values: Placeholders | None, keys: Steps) -> Any:
        """Return a section's value for a target; if keys are given, as written, at least what it has there."""
        name = spec.kind.name
        if self.normalized is not None or not keys:
            return self.section(spec, values)
        return spec.normalize({key: self.sections[name][key] for key in keys}, values)


@dataclass(frozen=True, slots=True)
class Contribution:
    """One document of a target, with its profiles.

    Attributes:
        layers: its profiles, then its spec.
        whole: whether all the profiles exist and fit the target.
        labels: of the document.
        priority: of a set; None for the target's own document.
        skips: whether sections that a target cannot have are left out.
    """

    layers: tuple[Layer, ...]
    whole: bool
    labels: Mapping[str, str]
    priority: int | None = None
    skips: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Effective:
    """The merged spec of one target, and its layers.

    Attributes:
        target: the target.
        layers: lowest first; the last is the target's own document, or a set's.
        sections: merged, in the order of the kinds, without those that are unmanaged.
        prune: of the topmost layer that has one, without the unmanaged sections.
        values: of the placeholders; None to leave them as they are: the path is not known yet.
        specs: of all sections.
        unmanaged: the sections that the target's own document leaves alone, whatever the layers declare.
    """

    target: Target
    layers: tuple[Layer, ...]
    sections: Mapping[str, Any]
    prune: list[str]
    values: Placeholders | None
    specs: SectionSpecs
    unmanaged: frozenset[str] = NO_SECTIONS

    @property
    def sets_prune(self) -> bool:
        """Whether any layer has `prune`, be it empty."""
        return any(layer.prune is not None for layer in self.layers)

    @property
    def has_locks(self) -> bool:
        """Whether any layer locks anything."""
        return any(layer.locks for layer in self.layers)

    @property
    def references(self) -> Iterator[tuple[Steps, Level, str]]:
        """The paths in lists of groups and of projects, each with the steps to it and the level that it should have."""
        for name, section in self.sections.items():
            lists = self.specs[name].lists
            for part in lists.keys() & (section.keys() if isinstance(section, dict) else ()):
                level = lists[part].names.level
                for number, entry in enumerate(section[part] if level and isinstance(section[part], list) else ()):
                    if level and isinstance(entry, str):
                        yield (name, part, number), level, entry

    def under(self, *layers: Layer) -> "Effective":
        """Merge further layers over this, without the sections that the target's level does not have."""
        sections, prune = dict(self.sections), self.prune
        for layer in layers:
            prune = prune if layer.prune is None else layer.prune
            for name in layer.sections:
                spec = self.specs[name]
                if self.target.level in spec.kind.models:
                    value = layer.section(spec, self.values)
                    sections[name] = spec.merge(sections[name], value) if name in sections else value
        ordered = {name: sections[name] for name in self.specs if name in sections and name not in self.unmanaged}
        prune = [name for name in prune if name not in self.unmanaged]
        return replace(self, layers=self.layers + layers, sections=ordered, prune=prune)

    def of(self, *layers: Layer) -> "Effective":
        """Merge these layers alone, for the same target."""
        return replace(self, layers=(), sections={}, prune=[]).under(*layers)

    def find(self, steps: Steps, *, key: bool = False) -> tuple[Layer, Location]:
        """Return the layer that set the value at some steps, or the innermost value around, and the location."""
        layer, written, whole = next(
            (layer, written, length == len(steps))
            for length in range(len(steps), 0, -1)
            for layer in reversed(self.layers)
            if (written := self._written(layer, steps[:length]))
        )
        return layer, layer.document.find(("spec", *written), key=key or not whole)

    def declaration(self, steps: Steps, others: Iterable[Key]) -> tuple[str, tuple[str, ...]]:
        """Return where the lowest layer sets an item, and names as written there: see `Manifests.declaration`."""
        found = [(layer, path) for layer in self.layers if (path := self._written(layer, steps))]
        layer, written = next((each for each in found if self._value(each[0], steps, each[1]) is not None), found[0])
        own_name = str(written[-1])
        used = {name: value for name, value in (self.values or {}).items() if name in placeholders_in(own_name)}
        names = (unfilled(str(other), used) for other in others)
        return layer.document.find(("spec", *written), key=True).line, (own_name, *names)

    def origins(self, steps: Steps) -> Iterator[tuple[str, Any]]:
        """Yield `path:line` and value of each layer that sets a field, lowest first."""
        for layer, written in self.declarations(steps):
            yield layer.document.find(("spec", *written), key=True).line, self._value(layer, steps, written)

    def declarations(self, steps: Steps) -> Iterator[tuple[Layer, Steps]]:
        """Yield each layer that sets the value at some steps, lowest first, with the steps as it writes them."""
        for layer in self.layers:
            written = self._written(layer, steps)
            if written:
                yield layer, written

    def _value(self, layer: Layer, steps: Steps, written: Steps) -> Any:
        if steps[0] == PRUNE:
            return layer.prune if len(steps) == 1 else (layer.prune or [])[written[1]]
        if steps[0] == UNMANAGED:
            unmanaged = layer.document.value["spec"][UNMANAGED]
            return unmanaged if len(steps) == 1 else unmanaged[steps[1]]
        value: Any = layer.section_with(self.specs[steps[0]], self.values, written[1:2])
        for step, own_step in zip(steps[1:], written[1:], strict=True):
            value = value[own_step if isinstance(value, list) else step]
        return value

    def _written(self, layer: Layer, steps: Steps) -> Steps | None:
        """Return the steps in a layer, as written, to the value at some steps of the merged spec; None if not there."""
        if steps[0] == PRUNE:
            return self._written_prune(layer, steps)
        if steps[0] == UNMANAGED:
            return steps if layer.unmanaged else None
        spec, values = self.specs.get(steps[0]), self.values if layer.normalized is None else None
        here: Any = layer.sections
        merged: Any = self.sections
        written: list[Any] = []
        writing = _Writing(layer, spec, None if values is None else tuple(values.items()))
        for depth, step in enumerate(steps):
            merged = merged.get(step) if isinstance(merged, Mapping) else merged[step]
            found = writing.last(steps[: depth + 1], here, merged)
            if found is None:
                return None
            written.append(found)
            here = here[found]
        return tuple(written)

    def _written_prune(self, layer: Layer, steps: Steps) -> Steps | None:
        """Return the steps to the pruning of a layer, or to its entry for a section; None if it has none."""
        if layer.prune is None or len(steps) == 1:
            return None if layer.prune is None else steps
        name = self.prune[steps[1]] if steps[1] < len(self.prune) else None
        return (PRUNE, layer.prune.index(name)) if name in layer.prune else None


def effective(
    target: Target,
    layers: tuple[Layer, ...],
    specs: SectionSpecs,
    values: Placeholders | None = None,
    unmanaged: frozenset[str] = NO_SECTIONS,
) -> Effective:
    """Merge some layers, lowest first."""
    return Effective(target, (), {}, [], values, specs, unmanaged).under(*layers)


@dataclass(frozen=True, slots=True)
class _Writing:
    """How a layer writes the names in one of its sections.

    Attributes:
        layer: the layer.
        spec: of the section; None where there is no such section.
        values: of the placeholders; None to leave them as they are.
    """

    layer: Layer
    spec: SectionSpec | None
    values: tuple[tuple[str, str], ...] | None

    def last(self, steps: Steps, here: Any, wanted: Any) -> Any:
        """Return the last of some steps as written, given the value above it; None if the layer does not have it.

        Args:
            steps: in the merged spec, from the section's name on.
            here: what the layer has above the last one.
            wanted: the merged value at the steps.
        """
        *above, step = steps
        if isinstance(here, list):
            if len(steps) == 3 and self.spec and steps[1] in self.spec.lists:
                # Sets of names are united: only the name counts.
                return _places(self.layer, self.spec, steps[1], self.values).get(repr(wanted))
            return step if isinstance(step, int) and step < len(here) else None
        if not isinstance(here, Mapping):
            return None
        spec, values = self.spec if len(above) == 1 else None, _as_values(self.values)
        if step in here and (spec.normalize_key(step, values) if spec else fill(step, values)) == step:
            return step
        if spec:
            return _spellings(self.layer, spec, self.values).get(step)
        return next((key for key in here if fill(key, values) == step), None)


def _as_values(values: tuple[tuple[str, str], ...] | None) -> Placeholders | None:
    return None if values is None else dict(values)


@lru_cache(maxsize=128)
def _spellings(layer: Layer, spec: SectionSpec, values: tuple[tuple[str, str], ...] | None) -> Mapping[Any, str]:
    """Return by canonical name how a layer writes the keys of a section; the first of equal ones."""
    filled = _as_values(values)
    return {spec.normalize_key(key, filled): key for key in reversed(layer.sections[spec.kind.name])}


@lru_cache(maxsize=128)
def _places(
    layer: Layer, spec: SectionSpec, field: str, values: tuple[tuple[str, str], ...] | None
) -> Mapping[str, int]:
    """Return where a layer has an entry of a list, by its canonical name as Python writes it; the first of equal ones.

    Entries that are no names, which is an error, may be of any type.
    """
    filled = _as_values(values)
    entries = [*enumerate(layer.sections[spec.kind.name][field])]
    return {repr(spec.normalize_entry(field, entry, filled)): index for index, entry in reversed(entries)}


def field_path(field: str, spec: Any) -> Steps | None:
    """Return the steps of a dotted field in a spec, whose keys may hold dots themselves; None if there is no such."""
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


def object_path(whole: Effective, section: str, part: Steps, name: Key | None, field: str | None) -> Steps:
    """Return the steps to an object of a declared section, or to its field, as far as the section declares it."""
    steps: Steps = (section,)
    here = whole.sections[section]
    for step in (*part, *(() if name is None else (name,))):
        if isinstance(here, dict) and step in here:
            steps, here = (*steps, step), here[step]
        elif isinstance(here, list):
            index = _listed(whole, steps).get(str(step).casefold())
            return steps if index is None else (*steps, index)
    return (*steps, *(field_path(field or "", here) or ()))


@lru_cache(maxsize=16)
def _listed(whole: Effective, steps: Steps) -> Mapping[str, int]:
    """Return where a merged list has an entry, by the entry in lower case; the first of equal ones."""
    here: Any = whole.sections
    for step in steps:
        here = here[step]
    return {str(entry).casefold(): index for index, entry in reversed([*enumerate(here)])}
