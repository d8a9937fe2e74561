"""Move the values that most projects of a group share into their profile, with placeholders for their own paths. Pure.

Begin with `shared`. The profile has an item if enough projects have it: a project without the item gets a document that
removes it. The profile has a setting with its most frequent value, if enough projects have that. A document can remove
neither a section of its profile nor an entry of an allowlist: the profile has those of most projects too, and projects
that lack them do not use the profile.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import dumps, loads
from math import ceil
from typing import Any

from reconciler.edit.sections import Exported, Spec
from reconciler.edit.targets import ResolvedTarget
from reconciler.manifests.layers import (
    DEFAULT_BRANCH,
    SectionSpec,
    SectionSpecs,
    fill,
    literal,
    placeholder_values,
    unbranched,
)

FEWEST = 2
"""The least number of projects that can share a value."""

ROUNDING = 1e-9
"""The largest rounding error of a product such as 0.8 * 5."""

Context = tuple[str, ...]
"""The position of a text: the section, then the field; for the key of an item, the section alone."""


def shared(
    projects: Sequence[Exported],
    shapes: SectionSpecs,
    lacking: Mapping[ResolvedTarget, frozenset[str]],
    share: float,
    *,
    also_values: bool,
) -> Spec:
    """Return the values that at least a share of the projects have in common, field by field and item by item.

    Args:
        projects: the projects.
        shapes: of all sections.
        lacking: the sections that some projects cannot have: there, any value suits them.
        share: of the projects, but two at least.
        also_values: whether a value needs that share too; otherwise, two projects suffice.
    """
    enough = max(FEWEST, ceil(share * len(projects) - ROUNDING))
    specs = _with_placeholders(projects, shapes)
    members = [
        _Member(spec, lacking.get(project.resolved, frozenset()) | project.undecided, shapes)
        for project, spec in zip(projects, specs, strict=True)
    ]
    counts = Counter(fixture for member in members for fixture in member.fixtures)
    # The most frequent first: each one that goes into the profile excludes the projects without it.
    for fixture in sorted(counts, key=lambda fixture: (-counts[fixture], fixture)):
        having = [member for member in members if fixture in member.fixtures or fixture[0] in member.lacking]
        members = having if len(having) >= enough else members
    profile: Spec = {}
    for name, shape in shapes.items():
        sections = [member.spec[name] for member in members if name in member.spec]
        if len(members) >= enough and sections and all(name in {*member.spec, *member.lacking} for member in members):
            alike = enough if also_values else FEWEST
            section = _items(shape, sections, enough, alike) if shape.items else _usual(shape, sections, alike)
            profile |= {name: section} if section or shape.items else {}
    return profile


@dataclass(frozen=True, slots=True)
class _Member:
    """A project that may use the profile: its values with placeholders, and the sections that it cannot have."""

    spec: Spec
    lacking: frozenset[str]
    shapes: SectionSpecs

    @property
    def fixtures(self) -> set[Context]:
        """The parts of a profile that no document can remove: sections, and entries of lists that layers unite."""
        entries = {
            (name, field, dumps(entry))
            for name, section in self.spec.items()
            for field in self.shapes[name].lists
            for entry in (section.get(field, ()) if self.shapes[name].merges_as_set(field) else ())
        }
        return entries | {(name,) for name in self.spec}


def _items(shape: SectionSpec, section_specs: Sequence[Mapping[str, Any]], enough: int, alike: int) -> Spec:
    """Return the items of a section that enough projects have; an empty section declares the section."""
    counts = Counter(key for section in section_specs for key in section)
    items: Spec = {}
    for key in [key for key, count in counts.items() if count >= enough]:
        having = [section[key] for section in section_specs if key in section]
        item = _usual(shape, having, alike)
        # A rule that protects is in the profile with all fields, or not at all: a later project must be able to get it,
        # and `drift` watches every field.
        if not shape.kind.protects or item.keys() == {field for each in having for field in each}:
            items[key] = item
    return items


def _usual(shape: SectionSpec, field_values: Sequence[Mapping[str, Any]], alike: int) -> Spec:
    """Return the most frequent value of each field, if enough have it, and the entries that all lists have."""
    usual: Spec = {}
    for field in dict.fromkeys(field for value in field_values for field in value):
        having = [value[field] for value in field_values if field in value]
        lacking = len(field_values) - len(having)
        if lacking and not shape.items:  # no document can take a setting from a profile
            continue
        text, count = Counter(map(dumps, having)).most_common(1)[0]
        if shape.merges_as_set(field):
            entries = [entry for entry in having[0] if all(entry in value.get(field, ()) for value in field_values)]
            usual |= {field: entries} if entries or [] in having else {}
        elif all(isinstance(value, dict) for value in having):
            usual |= {field: inner} if (inner := _usual(shape, having, alike)) else {}
        elif count >= max(alike, lacking):
            usual[field] = loads(text)
    return usual


def _with_placeholders(projects: Sequence[Exported], shapes: SectionSpecs) -> Iterator[Spec]:
    """Yield the specs of projects, with placeholders for their paths where these make more projects equal."""
    every = [_ways(project, shapes) for project in projects]
    counts = Counter((text[0], form) for ways in every for text, forms in ways.items() for form in forms)

    def often(text_position: Context, form: str) -> int:
        return counts[text_position, form]

    for project, ways in zip(projects, every, strict=True):
        usual = {text: max(forms, key=partial(often, text[0])) for text, forms in ways.items()}
        yield _changed_spec(project.spec, shapes, lambda *text, usual=usual: usual[text])


def _ways(exported: Exported, shapes: SectionSpecs) -> dict[tuple[Context, str], list[str]]:
    """Return the ways to write each text of a project."""
    texts: dict[tuple[Context, str], str] = {}
    _changed_spec(exported.spec, shapes, lambda *text: texts.setdefault(text, text[1]))
    return {text: _forms(*text, exported.resolved, shapes) for text in texts}


def _forms(text_position: Context, text: str, resolved: ResolvedTarget, shapes: SectionSpecs) -> list[str]:
    """Return the ways to write a text: first without placeholders, then with each that fits.

    The name of the default branch becomes a placeholder: in most projects, a rule for `main` is meant for that branch.
    """
    items = shapes[text_position[0]].items
    lower = len(text_position) == 1 and items is not None and items.names.lowers_placeholders
    field = text_position[2] if len(text_position) > len(("section", "")) else None
    if shapes[text_position[0]].names_branch(field) and text == resolved.default_branch:
        return [f"{{{DEFAULT_BRANCH}}}"]
    own = placeholder_values(resolved.path)
    values, forms = unbranched(own), [str(literal(text))]
    for name, value in own.items():
        word = value.lower() if lower else value
        if word not in text:
            continue
        # Whole words alone: `api` in `apiary` is no name of a project.
        pieces = re.split(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text)
        form = f"{{{name}}}".join(map(literal, pieces))
        if len(pieces) > 1 and fill(form, values, in_lower_case=lower) == text:
            forms.append(form)
    return forms


Change = Callable[[Context, str], str]


def _changed_spec(spec: Spec, shapes: SectionSpecs, change: Change) -> Spec:
    """Return a spec with its texts changed."""
    return {
        name: {change((name,), key): _changed(fields, (name, ""), change) for key, fields in section.items()}
        if shapes[name].items
        else _changed(section, (name,), change)
        for name, section in spec.items()
    }


def _changed(value: Any, text_position: Context, change: Change) -> Any:
    match value:
        case str():
            return change(text_position, value)
        case dict():
            return {key: _changed(inner, (*text_position, key), change) for key, inner in value.items()}
        case list():
            return [_changed(inner, text_position, change) for inner in value]
    return value
