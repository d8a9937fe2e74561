"""Layers of settings, one per document, and the stack of them that is merged for one target.

Begin with `Layer`, and with `stacked`, which merges layers into a `Stack`. The module has three parts: placeholders in
values; `SectionSpec`, the rules by which the values of a section are normalized, checked and merged; and the layers.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from reconciler.manifests.documents import AcceptedDeviation, Selection
from reconciler.manifests.minimums import NO_FIELDS, Bid, Joined, join
from reconciler.manifests.sources import Document, Steps
from reconciler.model.creation import Creation
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds, unknown_kind
from reconciler.model.resource import POLICIES, Resource
from reconciler.model.state import NO_MINIMUMS
from reconciler.model.targets import Key, Level, Target
from reconciler.model.wording import closest, listed, one

PATH_NAMES = ("path", "name", "namespace")
DEFAULT_BRANCH = "default_branch"
"""The placeholder for the name of a project's default branch, which only the service knows."""
NAMES = (*PATH_NAMES, DEFAULT_BRANCH)
PLACEHOLDER = re.compile(r"\{\{(NAME)\}\}|\{(NAME)\}".replace("NAME", "|".join(NAMES)))
"""A placeholder: the first group is a literal one, written with doubled braces; the second is one to fill in."""
WORD = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Placeholders = Mapping[str, str]
"""The value of each placeholder; a target may lack some."""


def placeholder_values(target_path: str | None) -> Placeholders:
    """Return the values of the placeholders for a target; the user has no path."""
    if target_path is None:
        return {}
    namespace, slash, name = target_path.rpartition("/")
    return {"path": target_path, "name": name} | ({"namespace": namespace} if slash else {})


def unbranched(values: Placeholders | None) -> Placeholders | None:
    """Return the values for texts in which `{default_branch}` has no meaning: there the placeholder is not replaced."""
    return None if values is None else {**values, DEFAULT_BRANCH: f"{{{DEFAULT_BRANCH}}}"}


def unnamed(values: Placeholders | None) -> Placeholders | None:
    """Return the values without the default branch."""
    return None if values is None else {name: value for name, value in values.items() if name != DEFAULT_BRANCH}


def fill(text: str, values: Placeholders | None, *, in_lower_case: bool = False) -> str:
    """Fill in the placeholders, and strip the second braces of literal ones; without values, return the text.

    While the default branch is unknown, its placeholders are not replaced, literal ones included: this text is filled
    in again later.
    """

    def replace(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if DEFAULT_BRANCH in (literal, name) and DEFAULT_BRANCH not in (values or {}):
            return match.group()
        if literal:
            return f"{{{literal}}}"
        value = (values or {}).get(name, match.group())
        return value.lower() if in_lower_case else value

    return text if values is None or "{" not in text else PLACEHOLDER.sub(replace, text)


def fill_all(value: Any, values: Placeholders | None) -> Any:
    """Fill in the placeholders in the keys and strings of a value."""
    return value if values is None else _with_texts(value, lambda text: fill(text, values))


def literal(value: Any, names: Sequence[str] = NAMES) -> Any:
    """Return a value as a manifest writes it, with literal braces doubled: filling in gives back the value."""
    pattern = rf"\{{({'|'.join(names)})\}}"
    return _with_texts(value, lambda text: re.sub(pattern, r"{{\1}}", text) if "{" in text else text)


def unfilled(text: str, placeholders: Placeholders) -> str:
    """Return a text as a manifest writes it, with placeholders in place of their values, whatever their case."""
    text = literal(text)
    for name, value in placeholders.items():
        text = re.sub(re.escape(value), f"{{{name}}}", text, flags=re.IGNORECASE)
    return text


def _with_texts(value: Any, changed_text: Callable[[str], str]) -> Any:
    """Return a value with its keys and strings changed."""
    match value:
        case str():
            return changed_text(value)
        case dict():
            return {changed_text(key): _with_texts(inner, changed_text) for key, inner in value.items()}
        case list():
            return [_with_texts(inner, changed_text) for inner in value]
    return value


def has_placeholder(raw_value: object) -> bool:
    """Whether a text has placeholders, literal ones included."""
    return isinstance(raw_value, str) and PLACEHOLDER.search(raw_value) is not None


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


def misspelt_placeholder(text: str, names: Sequence[str]) -> str | None:
    """Return a warning if a word in braces looks like one of some placeholders, misspelt."""
    for word in WORD.findall(text):
        guess = None if word in NAMES else closest(word, names)
        if guess:
            return f"`{{{word}}}` is no placeholder and stays as it is; did you mean `{{{guess}}}`?"
    return None


OLD_NAMES = "renamed_from"
PRUNE = "prune"
UNMANAGED = "unmanaged"
ALL = "all"
Restriction = Literal["locks", "at_least"]
"""A key of `metadata` by which a profile or a set restricts what later layers may declare."""
LOCKS: Restriction = "locks"
AT_LEAST: Restriction = "at_least"

NO_SECTIONS: frozenset[str] = frozenset()

Released = Mapping[str, Mapping[Key, Key | None]]
"""By part of a section, the names of objects that a document leaves alone, each with the name by which layers declare
the object; None if they do not."""


class LetGo(NamedTuple):
    """An object that a target's own document leaves alone, whatever its profiles and sets declare.

    Attributes:
        steps: to its name, from the document's spec.
        section: its section.
        part: the collection.
        name: in a layer, as the document writes it; in a stack, the identity of the object.
    """

    steps: Steps
    section: str
    part: str
    name: Key


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

    def model(self, level: Level) -> type[Resource]:
        """Return the model of an item, or of a section of fields, of targets of a level."""
        model: type[Resource] = self.items.model if self.items else self.kind.models[level]
        return model

    @property
    def directed(self) -> frozenset[str]:
        """The fields of which one value is stricter than another."""
        return frozenset(name for level in self.kind.models for name in self.model(level).directions)

    def merge(self, lower: Any, upper: Any) -> Any:
        """Merge two values of the section: mappings key by key, sets of names united, all else replaced."""
        if not isinstance(lower, dict) or not isinstance(upper, dict):
            return upper
        # a kind may drop values of the lower layer that lose their meaning, such as events beside another level than
        # `custom`
        lower = self.kind.remainder(lower, upper)
        merged = dict(lower)
        for key, value in upper.items():
            below = lower.get(key)
            if self.merges_as_set(key) and isinstance(below, list) and isinstance(value, list):
                merged[key] = _united(below, value)
            else:
                merged[key] = _overlay(below, value)
        return merged

    def normalize(self, section_value: Any, values: Placeholders | None) -> Any:
        """Return a section with canonical names and, unless `values` is None, with its placeholders filled in."""
        if not isinstance(section_value, dict):
            return fill_all(section_value, self.values_of(values))
        if self.items is None and values is None and section_value.keys().isdisjoint(self.lists):
            return section_value
        value_of = self._field if self.items is None else self._item
        normal = {self.normalize_key(key, values): value_of(key, value, values) for key, value in section_value.items()}
        return section_value if normal == section_value else normal  # most are: a fleet has no room for two of each

    def normalize_key(self, key: str, values: Placeholders | None) -> Any:
        """Return a key of the section as `normalize` does."""
        values = self.values_of(values)
        return fill(key, values) if self.items is None else _normalize_name(self.items, key, values)

    def names_branch(self, field: str | None = None) -> bool:
        """Return whether `{default_branch}` has a meaning in a field, or without one, in the keys of the section."""
        fields = self.kind.branch_fields
        return fields is None or field in fields

    def values_of(self, values: Placeholders | None, field: str | None = None) -> Placeholders | None:
        """Return the values of the placeholders in a field, or without one, in the keys of the section."""
        return values if self.names_branch(field) else unbranched(values)

    def shared_key(self, key: str, target: Target) -> str:
        """Return a key as a profile writes it, with `{path}` for the project's path in patterns."""
        lowered = self.items is not None and self.items.names.lowers_placeholders
        path = target.ref.lower() if lowered and isinstance(target.ref, str) else None
        if path is not None and f"{key}/".startswith(f"{path}/"):
            return f"{{path}}{literal(key[len(path) :])}"
        return str(literal(key))

    def without(self, section_value: Any, names_by_part: Mapping[str, Set[Key]]) -> tuple[Any, Released]:
        """Return a section without some items, and all present and former names of these items.

        A former name is omitted if a remaining item has that name now.

        Args:
            section_value: the section of a merged target.
            names_by_part: the names of the items, by part.
        """
        released: dict[str, dict[Key, Key | None]] = {
            part: dict.fromkeys(names) for part, names in names_by_part.items()
        }
        if not isinstance(section_value, dict):
            return section_value, released
        if self.items is not None:
            names = names_by_part.get(self.items.name, frozenset())
            called = {key: {key, *_former_names(value)} for key, value in section_value.items()}
            kept = {key: value for key, value in section_value.items() if names.isdisjoint(called[key])}
            more = {name: key for key in section_value if key not in kept for name in called[key] - kept.keys()}
            return kept, {self.items.name: {**dict.fromkeys(names), **more}}
        kept = dict(section_value)
        for part, names in names_by_part.items():
            entries, identity = section_value.get(part), self.lists[part].identity
            if isinstance(entries, list):
                gone = [entry for entry in entries if isinstance(entry, str | int) and identity(entry) in names]
                kept[part] = [entry for entry in entries if entry not in gone]
                released[part].update((identity(entry), entry) for entry in gone)
        return kept, released

    def normalize_entry(self, field: str, list_entry: Any, values: Placeholders | None) -> Any:
        """Return an entry of a list of names as `normalize` does."""
        return _normalize_name(self.lists[field], list_entry, self.values_of(values, field))

    def _field(self, key: str, value: Any, values: Placeholders | None) -> Any:
        if key in self.lists and isinstance(value, list):
            return [self.normalize_entry(key, entry, values) for entry in value]
        return fill_all(value, self.values_of(values, key))

    def _item(self, _key: str, item_value: Any, values: Placeholders | None) -> Any:
        if not isinstance(item_value, dict):
            return fill_all(item_value, self.values_of(values))
        fields = item_value if values is None else self._filled_fields(item_value, values)
        if OLD_NAMES not in item_value:
            return fields
        old = item_value[OLD_NAMES]
        names = [self.normalize_key(name, values) for name in old] if isinstance(old, list) else None
        return {**fields, OLD_NAMES: self.normalize_key(old, values) if names is None else names}

    def _filled_fields(self, item_value: dict[str, Any], values: Placeholders) -> dict[str, Any]:
        inner = self.values_of(values)
        return {fill(key, inner): fill_all(value, self.values_of(values, key)) for key, value in item_value.items()}


def _united(lower_list: list[Any], upper_list: list[Any]) -> list[Any]:
    """Return the entries of two lists, each once; entries that are not text are errors, and may be unhashable."""
    names = {entry for entry in lower_list if isinstance(entry, str)}
    return lower_list + [
        entry for entry in upper_list if entry not in (names if isinstance(entry, str) else lower_list)
    ]


def _normalize_name(collection: Collection, raw_name: Any, values: Placeholders | None) -> Any:
    if not isinstance(raw_name, str):
        return fill_all(raw_name, values)
    return collection.names.canonical(fill(raw_name, values, in_lower_case=collection.names.lowers_placeholders))


def _former_names(item_value: Any) -> list[Key]:
    """Return the former names of an item; values of a wrong type are skipped."""
    olds = item_value.get(OLD_NAMES) if isinstance(item_value, dict) else None
    return [old for old in (olds if isinstance(olds, list) else [olds]) if isinstance(old, str)]


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


MOST_FILLED = 5 * 1024 * 1024
"""Characters that the placeholders of one document may expand to in one target."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The settings of one document. A plain `Layer` is that of a profile; targets and sets have the subclasses below.

    Attributes:
        document: the document.
        title: such as `profile baseline`; empty for a target's own document.
        sections: as the document writes them.
        prune: the list in the document; None if the document has none.
        placeholders: those used, each with the steps to its uses in the document.
        normalized: the sections with canonical names; None if they depend on a target's path.
        locks: by section, `all` or the names of the values that later layers may not change.
        at_least: by section, `all` or the names of the values that later layers may only make stricter.
        unmanaged: the sections that a target's own document leaves alone.
        let_go: the single objects that a target's own document leaves alone.
        profiles: the names of the profiles that are merged before this layer.
        labels: the labels of the target, or of the projects of the set.
    """

    document: Document
    title: str
    sections: Mapping[str, Any]
    prune: list[str] | None
    placeholders: Mapping[str, Sequence[Steps]]
    normalized: Mapping[str, Any] | None
    locks: Mapping[str, Any] = field(default_factory=dict)
    at_least: Mapping[str, Any] = field(default_factory=dict)
    unmanaged: frozenset[str] = NO_SECTIONS
    let_go: tuple[LetGo, ...] = ()
    profiles: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def overfilled(self, values: Placeholders | None) -> str | None:
        """Return the placeholder that takes most text if all together expand to more than `MOST_FILLED`; else None."""
        lengths = {name: len(uses) * len((values or {}).get(name, "")) for name, uses in self.placeholders.items()}
        return max(lengths, key=lengths.__getitem__) if sum(lengths.values()) > MOST_FILLED else None

    def section(self, spec: SectionSpec, values: Placeholders | None) -> Any:
        """Return a section's value for a target."""
        name = spec.kind.name
        return self.normalized[name] if self.normalized is not None else spec.normalize(self.sections[name], values)

    def restricted_fields(
        self, restriction: Restriction, spec: SectionSpec, values: Placeholders | None
    ) -> Mapping[Key | None, frozenset[str]]:
        """Return the fields of a section that this layer locks, or of which it declares minimums.

        They are given by item; a section of fields has the one key None.
        """
        written = (self.locks if restriction == LOCKS else self.at_least).get(spec.kind.name, ())
        own = self.section(spec, values) if written and spec.kind.name in self.sections else None
        if not isinstance(own, dict):
            return {}
        if spec.items is None:
            return {None: frozenset(own if written == ALL else own.keys() & {*written})}
        names = own.keys() if written == ALL else {spec.normalize_key(name, values) for name in written}
        return {name: frozenset(own[name]) - POLICIES for name in names if isinstance(own.get(name), dict)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeclaredTarget(Layer):
    """The own document of a user, group or project, with its exceptions by their positions there."""

    target: Target
    exceptions: Mapping[int, AcceptedDeviation]
    creation: Creation | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeclaredSet(Layer):
    """A set of projects."""

    select: Selection
    priority: int


NO_WINNERS: Mapping[Steps, Layer] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The layers of one target, and the spec that they merge into.

    Attributes:
        target: the target.
        layers: lowest first; the last is the target's own document, or a set's.
        sections: the merged sections, in the order of the kinds, without the unmanaged ones.
        prune: from the topmost layer that has `prune`, without the unmanaged sections.
        values: of the placeholders; None while the path of the target is unknown: then placeholders are not replaced.
        specs: of all sections.
        unmanaged: the sections that the target's own document leaves alone, whatever the layers declare.
        let_go: the single objects that the target's own document leaves alone; `sections` are without them.
        released: by section, all names that the objects of `let_go` have or had.
        with_minimums: the sections in which a layer declares minimums.
        winners: by the steps to a value, the layer whose value holds, although a later layer declares a minimum too: it
            has the strictest minimum, or the lock.
    """

    target: Target
    layers: tuple[Layer, ...]
    sections: Mapping[str, Any]
    prune: list[str]
    values: Placeholders | None
    specs: SectionSpecs
    unmanaged: frozenset[str] = NO_SECTIONS
    let_go: tuple[LetGo, ...] = ()
    released: Mapping[str, Released] = field(default_factory=dict)
    with_minimums: frozenset[str] = NO_SECTIONS
    winners: Mapping[Steps, Layer] = field(default_factory=lambda: NO_WINNERS)

    @property
    def sets_prune(self) -> bool:
        """Whether any layer has `prune`, be it empty."""
        return any(layer.prune is not None for layer in self.layers)

    @property
    def has_locks(self) -> bool:
        """Whether any layer locks anything, or has minimums."""
        return any(layer.locks or layer.at_least for layer in self.layers)

    def joined(self, name: str) -> Iterator[tuple[Key | None, Joined]]:
        """Yield the outcome of each item of a section, or of a section of fields, of which a layer has minimums."""
        spec = self.specs[name]
        declaring = [layer for layer in self.layers if name in layer.sections]
        if not any(name in layer.at_least for layer in declaring):
            return
        sections = [layer.section(spec, self.values) for layer in declaring]
        if not all(isinstance(own, dict) for own in sections):
            return
        bids: dict[Key | None, list[Bid]] = {}
        for layer, own in zip(declaring, sections, strict=True):
            locked, at_least = (
                layer.restricted_fields(restriction, spec, self.values) for restriction in (LOCKS, AT_LEAST)
            )
            for key, fields in ({None: own} if spec.items is None else own).items():
                bid = Bid(layer, fields, locked.get(key, NO_FIELDS), at_least.get(key))
                bids.setdefault(key, []).append(bid)
        uniting = [each for each in spec.lists if spec.merges_as_set(each)]
        for key, each in bids.items():
            is_sound = all(bid.fields is None or isinstance(bid.fields, dict) for bid in each)
            if is_sound and any(bid.minimum is not None for bid in each):
                yield key, join(spec.model(self.target.level), each, uniting)

    def minimums(self, name: str) -> Mapping[Key | None, frozenset[str]]:
        """Return the fields of a section that may be stricter on the service, as `Layer.restricted_fields` does."""
        return {key: joined.minimums for key, joined in self.joined(name) if joined.minimums} or NO_MINIMUMS

    @property
    def unnamed(self) -> "Stack":
        """The stack as it is while the default branch is unknown.

        Without `{default_branch}` in a layer, it is this stack itself.
        """
        if self.values is None or not self.names_default_branch:
            return self
        return replace(self, values=unnamed(self.values)).of(*self.layers)

    @property
    def names_default_branch(self) -> bool:
        """Whether a layer has the placeholder of the default branch."""
        return any(DEFAULT_BRANCH in layer.placeholders for layer in self.layers)

    def awaits_default_branch(self, section: str) -> bool:
        """Return whether a section declares an object by the name of the default branch, which is not known yet."""
        objects = self.sections.get(section)
        return isinstance(objects, dict) and any(f"{{{DEFAULT_BRANCH}}}" in str(name) for name in objects)

    def leaves_alone(self, section: str, name: Key, list_name: str = "") -> bool:
        """Return whether the target's own document leaves an object alone.

        Args:
            section: its section.
            name: its name.
            list_name: the list of names that it is in; empty for an item.
        """
        if section in self.unmanaged:
            return True
        items = self.specs[section].items
        collection = self.specs[section].lists[list_name] if items is None else items
        return collection.identity(name) in self.released.get(section, {}).get(collection.name, ())

    def under(self, *layers: Layer) -> "Stack":
        """Return the stack with further layers merged over it.

        Sections that the target's level does not have are left out.
        """
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
        # Kept from layer to layer, not computed from all layers: a stack is made for each layer that is merged.
        with_minimums = self.with_minimums.union(*(layer.at_least for layer in layers))
        merged = _with_winners(
            replace(self, layers=self.layers + layers, sections=ordered, prune=prune, with_minimums=with_minimums)
        )
        return _without_let_go(merged) if self.let_go else merged

    def of(self, *layers: Layer) -> "Stack":
        """Return a stack of these layers alone, for the same target."""
        return replace(self, layers=(), sections={}, prune=[], with_minimums=NO_SECTIONS, winners=NO_WINNERS).under(
            *layers
        )


def _without_let_go(stack: Stack) -> Stack:
    """Return a stack without the items that the target's own document leaves alone."""
    sections, released = dict(stack.sections), dict(stack.released)
    names: dict[str, dict[str, set[Key]]] = {}
    for each in stack.let_go:
        names.setdefault(each.section, {}).setdefault(each.part, set()).add(each.name)
    for name, names_by_part in names.items():
        # after each further layer again: any of them may declare the object anew
        sections[name], released[name] = stack.specs[name].without(sections.get(name), names_by_part)
    kept = {name: section for name, section in sections.items() if section is not None}
    return replace(stack, sections=kept, released=released)


def _with_winners(stack: Stack) -> Stack:
    """Return a stack with the strictest minimum of each value, if a later layer has a looser one."""
    sections, winners = dict(stack.sections), dict[Steps, Layer]()
    for name in [name for name in sections if name in stack.with_minimums]:
        for key, joined in stack.joined(name):
            above = (name,) if key is None else (name, key)
            winners |= {(*above, field): layer for field, (layer, _) in joined.winners.items()}
            strictest = {field: value for field, (_, value) in joined.winners.items()}
            if strictest and (key is None or key in sections[name]):  # not an item that is let go
                own = strictest if key is None else {key: {**sections[name][key], **strictest}}
                sections[name] = {**sections[name], **own}
    return replace(stack, sections=sections, winners=winners) if winners else stack


def stacked(
    target: Target,
    layers: tuple[Layer, ...],
    specs: SectionSpecs,
    values: Placeholders | None = None,
    unmanaged: frozenset[str] = NO_SECTIONS,
    *,
    let_go: Iterable[LetGo] = (),
) -> Stack:
    """Merge layers into the stack of a target.

    Args:
        target: the target.
        layers: lowest first.
        specs: of all sections.
        values: of the placeholders; None while the path is unknown.
        unmanaged: the sections that the target's own document leaves alone.
        let_go: the single objects that it leaves alone, as the document writes them.
    """
    named = tuple(each._replace(name=_let_go_name(each, specs, values)) for each in let_go)
    return Stack(target, (), {}, [], values, specs, unmanaged, named).under(*layers)


def _let_go_name(let_go: LetGo, specs: SectionSpecs, values: Placeholders | None) -> Key:
    """Return the identity of an object that is left alone."""
    spec = specs[let_go.section]
    if spec.items is not None:
        return spec.items.identity(spec.normalize_key(str(let_go.name), values))
    return spec.lists[let_go.part].identity(spec.normalize_entry(let_go.part, let_go.name, values))
