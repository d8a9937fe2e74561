"""Settings that most projects share move into a profile; their documents declare only the rest. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps, loads
from math import ceil
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reconciler.errors import ManifestErrors
from reconciler.export.check import disagreements
from reconciler.export.sections import Exported, Spec
from reconciler.export.targets import ResolvedTarget
from reconciler.export.update import Declared, update
from reconciler.manifests.documents import profile_document, target_document
from reconciler.manifests.layers import (
    PRUNE,
    SectionSpec,
    SectionSpecs,
    literal,
    placeholder_values,
    section_specs,
)
from reconciler.manifests.yaml_writer import write_yaml
from reconciler.model.kind import Kinds
from reconciler.model.state import LiveState, Unreadable
from reconciler.model.targets import Target

SHARE = 0.8
"""The share of the projects that must have something in common for it to move."""

FEWEST = 2
"""Projects that can share something."""

ROUNDING = 1e-9
"""How far 0.8 times 5 may be from 4."""


@dataclass(frozen=True, slots=True)
class SharedProfile:
    """A profile, and the documents of the projects that use it.

    Attributes:
        spec: of the profile; empty if no project uses it.
        documents: by project, its document; without the profile if it would not agree with what was read.
    """

    spec: Spec
    documents: Mapping[ResolvedTarget, dict[str, Any]]


def hoist(
    name: str, projects: Sequence[Exported], live: LiveState, kinds: Kinds, existing: Spec | None = None
) -> SharedProfile:
    """Return the profile of some projects, and their documents.

    Args:
        name: of the profile.
        projects: those without documents so far.
        live: what was read.
        kinds: all kinds.
        existing: the spec of the profile if it exists already.
    """
    shapes = section_specs(kinds)
    spec = shared(projects, shapes) if existing is None else existing
    profile = write_yaml([profile_document(name, spec)])
    documents = {}
    for project in projects:
        document = _above(name, spec, project, live, shapes) if spec else None
        if document is None or not _agrees(profile, document, project.resolved, live, kinds):
            document = target_document(project.resolved.target, literal(project.spec))
        documents[project.resolved] = document
    used = any("profiles" in document["metadata"] for document in documents.values())
    return SharedProfile(spec if used else {}, documents)


def _above(name: str, profile: Spec, project: Exported, live: LiveState, shapes: SectionSpecs) -> dict[str, Any] | None:
    """Return a project's document above the profile; None if they do not go together."""
    target = project.resolved.target
    sections = [section for section in profile if section != PRUNE]
    addresses = [(target, section, part.name) for section in sections for part in shapes[section].kind.parts]
    if any(isinstance(live.parts.get(address, Unreadable("")), Unreadable) for address in addresses):
        return None
    values = placeholder_values(project.resolved.path)
    beneath = {section: shapes[section].normalize(profile[section], values) for section in sections}
    prune = tuple(profile.get(PRUNE, ()))
    declared = Declared({}, beneath, prune, adding=tuple(shapes), complete=True, values=values)
    try:
        return target_document(target, update(declared, project, live, shapes), [name])
    except ValidationError:
        return None


def _agrees(profile: str, document: dict[str, Any], resolved: ResolvedTarget, live: LiveState, kinds: Kinds) -> bool:
    texts = {Path("profile"): profile, Path("project"): write_yaml([document])}
    try:
        return not any(disagreements(texts, [resolved], live, kinds))
    except ManifestErrors:
        return False


Leaf = tuple[tuple[str, ...], str]
"""Section and keys down to a value, and the value as JSON; for an entry of a list that is merged as a set, the entry
itself, as JSON, is the last key."""


def shared(projects: Sequence[Exported], shapes: SectionSpecs) -> Spec:
    """Return what at least `SHARE` of the projects have in common, field by field and item by item.

    A project's own document can set a field or an item otherwise. It cannot take away that a section of items or a list
    merged as a set is declared, nor an entry of such a list: these must be common to all projects.
    """
    if len(projects) < FEWEST:
        return {}
    leaves = [leaf for project in projects for leaf in dict.fromkeys(_leaves_of(project, shapes))]
    enough = ceil(SHARE * len(projects) - ROUNDING)
    common = [
        (path, value)
        for (path, value), count in Counter(leaves).items()
        if count >= (len(projects) if _stays(shapes[path[0]], path) else enough)
    ]
    if all(len(path) == 1 or value == "[]" for path, value in common):  # only that a section or a list is declared
        return {}
    spec: Spec = {}
    for path, value in common:
        _put(spec, path, loads(value), shapes)
    return {name: spec[name] for name in shapes if name in spec}


def _leaves_of(project: Exported, shapes: SectionSpecs) -> Iterator[Leaf]:
    for name, section in project.spec.items():
        if shapes[name].items:
            yield (name,), "{}"
        yield from _leaves(shapes[name], section, project.resolved.target)


def _leaves(shape: SectionSpec, section: Mapping[str, Any], target: Target) -> Iterator[Leaf]:
    """Yield each value with its path; an item as such too, even without fields."""
    for key, value in section.items():
        path = (shape.kind.name, with_placeholder(shape, key, target))
        match value:
            case list() if shape.merges_as_set(key):
                yield path, "[]"
                yield from (((*path, dumps(entry)), "true") for entry in value)
            case dict():
                if shape.items:
                    yield path, "{}"
                yield from (((*path, literal(inner)), dumps(literal(each))) for inner, each in value.items())
            case _:
                yield path, dumps(literal(value))


def with_placeholder(shape: SectionSpec, key: str, target: Target) -> str:
    """Return a key as a profile writes it, with `{path}` for the project's path in patterns."""
    lowered = shape.items is not None and shape.items.lowers_placeholders
    path = target.ref.lower() if lowered and isinstance(target.ref, str) else None
    if path is not None and f"{key}/".startswith(f"{path}/"):
        return f"{{path}}{literal(key[len(path) :])}"
    return str(literal(key))


def _stays(shape: SectionSpec, path: tuple[str, ...]) -> bool:
    """Whether a document cannot take away what is at a path of a profile."""
    return len(path) == 1 or shape.merges_as_set(path[1])


def _put(spec: Spec, path: tuple[str, ...], value: Any, shapes: SectionSpecs) -> None:
    section, *keys = path
    inside = spec.setdefault(section, {})
    match keys:
        case [key]:
            inside.setdefault(key, value)
        case [key, entry] if shapes[section].merges_as_set(key):
            inside[key].append(loads(entry))
        case [key, field]:
            inside.setdefault(key, {})[field] = value
