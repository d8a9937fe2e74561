"""What projects share moves into a profile, so that as few lines as possible declare all of them. Pure.

Lines are counted as they are written. A setting is in the profile with its most frequent value, an item if that saves
lines: a project without it needs a line to say so. A document cannot take away that its profile declares a section or
an allowlist, nor an entry of such a list: all projects above the profile must have these, or they go without it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, chain
from json import dumps
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.edit.check import disagreeing
from reconciler.edit.own import Addressee, own_specs
from reconciler.edit.sections import Exported, Spec
from reconciler.edit.targets import ResolvedTarget
from reconciler.errors import ManifestErrors
from reconciler.manifests.documents import profile_document, target_document
from reconciler.manifests.sources import Document, Source
from reconciler.manifests.stack.layers import Layer, stacked
from reconciler.manifests.stack.placeholders import fill, literal, placeholder_values
from reconciler.manifests.stack.sections import PRUNE, UNMANAGED, SectionSpec, SectionSpecs
from reconciler.manifests.yaml_emitter import height, write_yaml
from reconciler.model.kind import Kinds
from reconciler.model.state import LiveState, Unreadable

FEWEST = 2
"""Projects that can share something."""

ROUNDING = 1e-9
"""How far 0.8 times 5 may be from 4."""

Sections = frozenset[str]
"""Names of sections."""

NO_SECTIONS: Sections = frozenset()
NOTHING_UNFIT: Mapping[ResolvedTarget, Sections] = MappingProxyType({})

ENVELOPE = 4
"""The lines of a project's document around its sections."""


def hoist(projects: Sequence[Exported], shapes: SectionSpecs, share: float) -> Spec:
    """Return the profile of what at least a share of the projects have in common, field by field and item by item."""
    common = _Common(_with_placeholders(projects, shapes), shapes, {}, share)
    sections = Counter(name for project in projects for name in project.spec)
    usual = {name for name, count in sections.items() if count >= common.enough}
    all_usual = [member for member in common.members if usual <= member.whole.keys()]
    spec = common.among(all_usual if len(all_usual) >= common.enough else common.members).spec
    return spec if any(map(any, map(_values, spec.values()))) else {}


def fewest_lines(projects: Sequence[Exported], shapes: SectionSpecs, unfit: Mapping[ResolvedTarget, Sections]) -> Spec:
    """Return the profile with which the documents of the projects, and those without it, have the fewest lines.

    Args:
        projects: those that may go with the profile.
        shapes: of all sections.
        unfit: the sections that some of them cannot have.
    """
    best = _Common(_with_placeholders(projects, shapes, unfit), shapes, {})
    while True:
        better = min(best.others(), key=lambda common: common.lines, default=best)
        if better.lines >= best.lines:
            return best.spec
        best = better


def above(
    projects: Iterable[tuple[Exported, Spec]],
    live: LiveState,
    kinds: Kinds,
    shapes: SectionSpecs,
    unfit: Mapping[ResolvedTarget, Sections] = NOTHING_UNFIT,
    *,
    all_fields: bool,
) -> dict[ResolvedTarget, Spec]:
    """Return the specs of projects' own documents, each above a profile; none if they cannot go together.

    Sections that the project cannot have are left out by the set that brings them, unless the project has a document.
    Undecided ones that the profile declares are `unmanaged`.
    """
    layers: dict[int, Layer] = {}
    addressees = []
    unmanaged: dict[ResolvedTarget, Sections] = {}
    for project, profile in projects:
        if id(profile) not in layers:
            layers[id(profile)] = _layer(profile)
        beneath = (layers[id(profile)],)
        unmanaged[project.resolved] = project.undecided & profile.keys()
        values = placeholder_values(project.resolved.path)
        stack = stacked(project.resolved.target, beneath, shapes, values, unmanaged[project.resolved])
        addressee = Addressee(project, stack, stack.prune, shapes, complete=True)
        if _go_together(addressee, live, unfit.get(project.resolved, NO_SECTIONS)):
            addressees.append(addressee)
    own = {
        project: {**({UNMANAGED: sorted(unmanaged[project])} if unmanaged[project] else {}), **spec}
        for project, spec in own_specs(addressees, live, kinds, all_fields).items()
    }
    declared = {addressee.exported.resolved: addressee.stack.sections.keys() for addressee in addressees}
    return {
        project: spec
        for project, spec in own.items()
        if not (spec and not unfit.get(project, NO_SECTIONS).isdisjoint(declared[project]))
    }


def _layer(profile: Spec) -> Layer:
    """Return the layer of a profile that is not written yet."""
    document = profile_document("profile", profile)
    text = Source("profile", write_yaml([document]))
    sections = {name: section for name, section in profile.items() if name != PRUNE}
    return Layer(Document(text, 0, 1, document), "profile", sections, profile.get(PRUNE), {}, None)


def _go_together(addressee: Addressee, live: LiveState, unfit: Sections) -> bool:
    """Whether all sections can be read but those that a project cannot have, and are free of errors."""
    target, stack = addressee.target, addressee.stack
    read = [name for name in stack.sections if name not in unfit]
    addresses = [(target, name, part.name) for name in read for part in stack.specs[name].kind.parts]
    is_read = not any(isinstance(live.parts.get(address, Unreadable("")), Unreadable) for address in addresses)
    return is_read and len(addressee.correct) == len(stack.sections)


Agree = Callable[[Mapping[ResolvedTarget, tuple[Spec, Spec]], LiveState, Kinds], frozenset[ResolvedTarget]]
"""See `agreeing`."""


def everyone(
    pairs: Mapping[ResolvedTarget, tuple[Spec, Spec]], live: LiveState, kinds: Kinds
) -> frozenset[ResolvedTarget]:
    """Return all projects, as if they were `agreeing`."""
    del live, kinds
    return frozenset(pairs)


def agreeing(
    pairs: Mapping[ResolvedTarget, tuple[Spec, Spec]], live: LiveState, kinds: Kinds
) -> frozenset[ResolvedTarget]:
    """Return the projects whose own documents agree with what was read, each above a profile.

    Args:
        pairs: by project, the profile and the spec of its own document.
        live: what was read.
        kinds: all kinds.
    """
    if not pairs:
        return frozenset()
    profiles: dict[int, dict[str, Any]] = {}
    documents = []
    for resolved, (profile, own) in pairs.items():
        beneath = profiles.setdefault(id(profile), profile_document(f"profile-{len(profiles)}", profile))
        documents.append(target_document(resolved.target, own, [beneath["metadata"]["name"]]))
    texts = {
        Path(str(number)): write_yaml([document]) for number, document in enumerate((*profiles.values(), *documents))
    }
    try:
        return frozenset(pairs.keys() - {resolved for resolved, _ in disagreeing(texts, [*pairs], live, kinds)})
    except ManifestErrors:
        if len(pairs) == 1:
            return frozenset()
    # Some are at fault, maybe few of many: they are found by halves.
    every = [*pairs.items()]
    half = len(every) // 2
    return agreeing(dict(every[:half]), live, kinds) | agreeing(dict(every[half:]), live, kinds)


def lines_apart(spec: Spec) -> int:
    """Return how many lines a project's own document has, and the line that takes the project out of a set."""
    return 1 + ENVELOPE + height(spec, 2)


@dataclass(frozen=True, eq=False)
class _Project:
    """A project as a profile would declare it: placeholders stand for its path wherever others have the like.

    Attributes:
        whole: the sections.
        concise: the same, as they are written.
        left_out: the sections of which something is left out.
        unfit: the sections that it cannot have.
    """

    whole: Spec
    concise: Spec
    left_out: Sections
    unfit: Sections

    @cached_property
    def heights(self) -> Mapping[str, int]:
        """How many lines each of its sections has; profiles are tried out by the dozen."""
        return {name: height({name: section}, 2) for name, section in self.concise.items()}

    @cached_property
    def lines(self) -> int:
        """How many lines its document has if it names no profile, and the line that takes it out of a set."""
        return 1 + ENVELOPE + sum(self.heights.values())

    @cached_property
    def variants(self) -> Mapping[str, str]:
        """By section, a text that is the same for projects to which a profile's section means the same."""
        return {
            name: dumps([section, self.concise[name], name in self.left_out, name in self.unfit], sort_keys=True)
            for name, section in self.whole.items()
        }

    def variant(self, name: str) -> str:
        """Return the variant of a section, also of one that it lacks."""
        return self.variants.get(name, str(name in self.unfit))


class _Choice(NamedTuple):
    """A value of a section in a profile, and the lines that it costs: its own, and those above it."""

    lines: int
    value: dict[str, Any]


@dataclass(frozen=True)
class _Common:
    """A profile of some projects; the others go without it.

    Attributes:
        projects: all of them.
        shapes: of all sections.
        known: by section, its text in a profile, and variant, the lines of the section in a document above that; None
            where the two do not go together. Profiles that are tried differ in few sections, and projects in few ways.
        share: of the members that must have something in common.
        chosen: the members among the projects; None for all.
        omitted: the sections that are not in the profile.
    """

    projects: Sequence[_Project]
    shapes: SectionSpecs
    known: dict[tuple[str, str], dict[str, int | None]]
    share: float = 0
    chosen: Sequence[_Project] | None = None
    omitted: Sections = NO_SECTIONS

    def among(self, members: Sequence[_Project]) -> "_Common":
        """Return the profile of other members."""
        return replace(self, chosen=members)

    def others(self) -> Iterator["_Common"]:
        """Yield profiles without some projects that are in the way, and those with one section less."""
        in_the_way = sorted(self._in_the_way(), key=len)
        together = accumulate(in_the_way, lambda one, other: one | other)
        for left_out in chain(in_the_way, together):
            if 0 < len(left_out) <= len(self.members) / 2:
                yield self.among([member for member in self.members if member not in left_out])
        yield from (replace(self, omitted=self.omitted | {name}) for name in self.spec)

    @property
    def members(self) -> Sequence[_Project]:
        """The projects that the profile is made for."""
        return self.projects if self.chosen is None else self.chosen

    @cached_property
    def enough(self) -> int:
        """How many must have something in common."""
        return max(FEWEST, ceil(self.share * len(self.members) - ROUNDING))

    @cached_property
    def spec(self) -> Spec:
        """The profile."""
        if len(self.members) < FEWEST:
            return {}
        spec: Spec = {}
        for name, shape in self.shapes.items():
            if name not in self.omitted and all(
                name in member.whole or name in member.unfit for member in self.members
            ):
                spec[name] = self._items(shape) if shape.items else self._fields(shape)
        return {name: section for name, section in spec.items() if section is not None}

    @cached_property
    def lines(self) -> int:
        """How many lines the profile and all documents have."""
        members = {id(member) for member in self.members}
        inside = [self.lines_of(project) for project in self.projects if id(project) in members]
        outside = [project.lines for project in self.projects if id(project) not in members]
        return height(self.spec, 2) + sum(inside) + sum(outside)

    @cached_property
    def above(self) -> Mapping[str, Callable[[_Project], int | None]]:
        """By section of the profile, what returns the lines of the section in a project's document."""
        return {name: self._lines_above(name, section) for name, section in self.spec.items()}

    def _lines_above(self, name: str, lower: Mapping[str, Any]) -> Callable[[_Project], int | None]:
        """Return what returns the lines of a section in a project's document above that of a profile; see `known`."""
        known = self.known.setdefault((name, dumps(lower)), {})

        def lines(project: _Project) -> int | None:
            variant = project.variant(name)
            if variant not in known:
                section = _above(self.shapes[name], lower, project)
                known[variant] = None if section is None else height({name: section}, 2) if section else 0
            return known[variant]

        return lines

    def lines_of(self, project: _Project) -> int:
        """Return how many lines a project's document has, without the profile if they do not go together."""
        own = 0
        for name in dict.fromkeys((*project.concise, *self.spec)):
            if name not in self.spec:
                own += project.heights[name]
                continue
            above = self.above[name](project)
            if above is None:
                return project.lines
            own += above
        if not own:
            return 0
        return project.lines if not project.unfit.isdisjoint(self.spec) else ENVELOPE + own

    def _in_the_way(self) -> Iterator[set[_Project]]:
        """Yield the projects without which the profile may become longer, and all documents shorter."""
        for name, shape in self.shapes.items():
            having = [member for member in self.members if name in member.whole]
            yield {*self.members} - {*having}
            yield {member for member in having if name in member.left_out}
            for field in shape.lists if not shape.items else ():
                lists = {member: {*map(dumps, member.whole[name].get(field, ()))} for member in having}
                entries = Counter(chain.from_iterable(lists.values()))
                for entry in [entry for entry, count in entries.items() if count >= len(self.members) / 2]:
                    yield {member for member, names in lists.items() if entry not in names}
        yield {member for member in self.members if self.lines_of(member) >= member.lines}

    def _fields(self, shape: SectionSpec) -> dict[str, Any] | None:
        """Return the fields of a section of settings."""
        name = shape.kind.name
        sections = [member.whole[name] for member in self.members if name in member.whole]
        usual = self._usual(shape, sections)
        of_all = {field: value for field, value in usual.items() if all(field in section for section in sections)}
        choices = [self._choice(shape, value) for value in (usual, of_all)]
        return min(choices, key=lambda choice: choice.lines).value or None

    def _usual(self, shape: SectionSpec, sections: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the most frequent value of each field, and the entries that all lists of a field have."""
        usual: dict[str, Any] = {}
        for field in dict.fromkeys(chain.from_iterable(sections)):
            values = [section[field] for section in sections if field in section]
            if shape.merges_as_set(field):
                usual[field] = [entry for entry in values[0] if all(entry in others for others in values)]
            elif all(isinstance(value, dict) for value in values):
                usual |= {field: inner} if (inner := self._usual(shape, values)) else {}
            elif len(most := _most_frequent(values)) >= self.enough:
                usual[field] = most[0]
        return usual

    def _items(self, shape: SectionSpec) -> dict[str, Any]:
        """Return the items of a section that save more lines than they cost; an empty section declares the section."""
        name = shape.kind.name
        having: dict[str, list[_Project]] = {}
        for project in self.members:
            for key in project.whole.get(name, ()):
                having.setdefault(key, []).append(project)
        items: dict[str, Any] = {}
        for key, projects in having.items():
            if len(projects) >= self.enough:
                usual = self._usual(shape, [project.whole[name][key] for project in projects])
                written = [project.concise[name][key].items() for project in projects]
                item = {
                    field: value for field, value in usual.items() if any((field, value) in pairs for pairs in written)
                }
                known = {field for project in projects for field in project.whole[name][key]}
                # What protects is in the profile whole, or not at all: a project that comes later must be able to have
                # it, and every field of it is to be watched.
                if shape.kind.protects and item.keys() != known:
                    continue
                if self.share or self._saved(name, key, item) > 0:
                    items[key] = item
        return items

    def _saved(self, name: str, key: str, item: Mapping[str, Any]) -> int:
        """Return how many lines an item in the profile saves."""
        saved = -height({key: item}, 4)
        known: dict[str, tuple[int, int | None]] = {}
        for project in self.members:
            variant = project.variant(name)
            if variant not in known:
                own = _above_item(name, key, item, project)
                alone = {key: project.concise[name][key]} if key in project.whole.get(name, ()) else {}
                known[variant] = height(alone, 4), None if own is None else height(own, 4)
            without, above = known[variant]
            saved += without - (project.lines if above is None else above)
        return saved

    def _choice(self, shape: SectionSpec, value: dict[str, Any]) -> _Choice:
        """Return a value of a section with its lines."""
        above = map(self._lines_above(shape.kind.name, value), self.members)
        own = sum(member.lines if lines is None else lines for member, lines in zip(self.members, above, strict=True))
        return _Choice(height({shape.kind.name: value}, 2) + own, value)


def _most_frequent(values: Sequence[Any]) -> list[Any]:
    """Return the equal values of which there are most."""
    by_text: dict[str, list[Any]] = {}
    for value in values:
        by_text.setdefault(dumps(value), []).append(value)
    return max(by_text.values(), key=len)


def _values(section: Any) -> list[bool]:
    """Return for each value of a section whether it says more than that a list is declared."""
    return [value != [] for value in section.values()]


def _above(shape: SectionSpec, lower: Mapping[str, Any], project: _Project) -> dict[str, Any] | None:
    """Return a section of a project's own document above that of a profile; None if they do not go together."""
    name = shape.kind.name
    if name not in project.whole:
        return {} if name in project.unfit else None
    if not shape.items:
        own = _overlay(shape, lower, project.whole[name])
        return own if _sorted(shape, shape.merge(lower, own)) == _sorted(shape, project.whole[name]) else None
    items: dict[str, Any] = {}
    for key in {**lower, **project.whole[name]}:
        item = _above_item(name, key, lower.get(key), project)
        if item is None:
            return None
        items |= item
    return items


def _sorted(shape: SectionSpec, section: Mapping[str, Any]) -> dict[str, Any]:
    return {field: sorted(value, key=str) if shape.merges_as_set(field) else value for field, value in section.items()}


def _above_item(name: str, key: str, lower: Mapping[str, Any] | None, project: _Project) -> dict[str, Any] | None:
    """Return an item of a project's own document, by its key, above that of a profile; see `_above`."""
    if name in project.unfit:
        return {}
    fields = project.whole[name].get(key)
    if fields is None:
        return None if name in project.left_out else {key: None}
    concise = project.concise[name][key]
    if lower is None:
        return {key: concise}
    if lower.keys() - fields.keys():
        return None
    differing = {
        field: value
        for field, value in fields.items()
        if (lower[field] != value if field in lower else field in concise)
    }
    return {key: differing} if differing else {}


def _overlay(shape: SectionSpec, lower: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for field, value in whole.items():
        below = lower.get(field)
        if field not in lower:
            own[field] = value
        elif isinstance(value, list) and isinstance(below, list) and shape.merges_as_set(field):
            rest = [entry for entry in value if entry not in below]
            own |= {field: rest} if rest else {}
        elif isinstance(value, dict) and isinstance(below, dict):
            inner = {key: nested for key, nested in value.items() if key not in below or below[key] != nested}
            own |= {field: inner} if inner else {}
        elif value != below:
            own[field] = value
    return own


Context = tuple[str, ...]
"""Where a text stands: the section, then the field; of the key of an item, the section alone."""


def _with_placeholders(
    projects: Sequence[Exported], shapes: SectionSpecs, unfit: Mapping[ResolvedTarget, Sections] = NOTHING_UNFIT
) -> list[_Project]:
    """Return the projects with placeholders for their paths wherever that makes more of them agree."""
    every = [_ways(project, shapes) for project in projects]
    counts = Counter((text[0], form) for ways in every for text, forms in ways.items() for form in forms)
    members = []
    for project, ways in zip(projects, every, strict=True):
        usual = {text: max(forms, key=partial(_often, counts, text[0])) for text, forms in ways.items()}
        whole, concise = (
            _changed_spec(spec, shapes, lambda *text, usual=usual: usual[text])
            for spec in (project.spec, project.concise)
        )
        lacking = unfit.get(project.resolved, NO_SECTIONS) | project.undecided
        members.append(_Project(whole, concise, frozenset(project.left_out), lacking))
    return members


def _often(counts: Counter[tuple[Context, str]], context: Context, form: str) -> int:
    return counts[context, form]


def _ways(project: Exported, shapes: SectionSpecs) -> dict[tuple[Context, str], list[str]]:
    """Return the ways to write each text of a project."""
    texts: dict[tuple[Context, str], str] = {}
    for spec in (project.spec, project.concise):
        _changed_spec(spec, shapes, lambda *text: texts.setdefault(text, text[1]))
    return {text: _forms(*text, project.resolved, shapes) for text in texts}


def _forms(context: Context, text: str, resolved: ResolvedTarget, shapes: SectionSpecs) -> list[str]:
    """Return the ways to write a text: first without placeholders, then with each that fits."""
    items = shapes[context[0]].items
    lower = len(context) == 1 and items is not None and items.names.lowers_placeholders
    values = placeholder_values(resolved.path)
    forms = [str(literal(text))]
    for name, value in values.items():
        word = value.lower() if lower else value
        if word not in text:
            continue
        pieces = re.split(_word(word), text)
        form = f"{{{name}}}".join(map(literal, pieces))
        if len(pieces) > 1 and fill(form, values, lower=lower) == text:
            forms.append(form)
    return forms


def _word(value: str) -> str:
    return rf"(?<![^\W_]){re.escape(value)}(?![^\W_])"


Change = Callable[[Context, str], str]


def _changed_spec(spec: Spec, shapes: SectionSpecs, change: Change) -> Spec:
    """Return a spec with its texts changed."""
    return {
        name: {change((name,), key): _changed(fields, (name, ""), change) for key, fields in section.items()}
        if shapes[name].items
        else _changed(section, (name,), change)
        for name, section in spec.items()
    }


def _changed(value: Any, context: Context, change: Change) -> Any:
    match value:
        case str():
            return change(context, value)
        case dict():
            return {key: _changed(inner, (*context, key), change) for key, inner in value.items()}
        case list():
            return [_changed(inner, context, change) for inner in value]
    return value
