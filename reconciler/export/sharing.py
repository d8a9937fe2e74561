"""What most projects share: a profile of it, with placeholders where names begin with a project's own path. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from json import dumps, loads
from math import ceil
from typing import Any

from reconciler.export.sections import Exported, Spec
from reconciler.manifests.documents import API_VERSION
from reconciler.manifests.layers import SectionSpec, SectionSpecs, literal
from reconciler.model.targets import Target

PROFILE = "Profile"

FEWEST = 2
"""Projects that can be said to share something."""

ROUNDING = 1e-9
"""How far 0.8 times 5 may be from 4."""

Path = tuple[str, ...]
"""Section and keys down to a value; for an entry of a list that adds up, the entry itself comes last, as JSON."""


def profile_document(name: str, spec: Spec) -> dict[str, Any]:
    """Return the document of a profile."""
    return {"apiVersion": API_VERSION, "kind": PROFILE, "metadata": {"name": name}, "spec": spec}


def shared(projects: Sequence[Exported], shapes: SectionSpecs, share: float) -> Spec:
    """Return what at least this share of the projects have in common, field by field and item by item.

    A field or an item that a profile sets, a project's own document can set otherwise. What it cannot take away must be
    common to all: that a section of items or a list that adds up is declared, and an entry of such a list.
    """
    if len(projects) < FEWEST:
        return {}
    leaves = [leaf for project in projects for leaf in dict.fromkeys(_leaves_of(project, shapes))]
    enough = ceil(share * len(projects) - ROUNDING)
    common = [
        (path, value)
        for (path, value), count in Counter(leaves).items()
        if count >= (len(projects) if _stays(shapes[path[0]], path) else enough)
    ]
    if all(_is_empty(*leaf) for leaf in common):
        return {}
    spec: Spec = {}
    for path, value in common:
        _put(spec, path, loads(value), shapes)
    return {name: spec[name] for name in shapes if name in spec}


def _leaves_of(project: Exported, shapes: SectionSpecs) -> Iterator[tuple[Path, str]]:
    for name, section in project.spec.items():
        if shapes[name].items:
            yield (name,), "{}"
        yield from _leaves(shapes[name], section, project.known.target)


def _leaves(shape: SectionSpec, section: Mapping[str, Any], target: Target) -> Iterator[tuple[Path, str]]:
    """Yield each value with its path; an item as such too, be it without fields."""
    for key, value in section.items():
        name = _with_placeholder(shape, key, target)
        path = (shape.kind.name, name)
        match value:
            case list() if shape.merges_as_set(key):
                yield path, "[]"
                yield from (((*path, dumps(entry)), "true") for entry in value)
            case dict():
                if shape.items:
                    yield path, "{}"
                yield from (((*path, literal(inner)), _value(each)) for inner, each in value.items())
            case _:
                yield path, _value(value)


def _with_placeholder(shape: SectionSpec, key: str, target: Target) -> str:
    """Return a key as a profile writes it, with `{path}` for the project's path in patterns."""
    lowered = shape.items is not None and shape.items.lowers_placeholders
    path = target.ref.lower() if lowered and isinstance(target.ref, str) else None
    if path is not None and f"{key}/".startswith(f"{path}/"):
        return f"{{path}}{literal(key[len(path) :])}"
    return str(literal(key))


def _value(value: Any) -> str:
    return dumps(literal(value))


def _is_empty(path: Path, value: str) -> bool:
    """Whether a leaf says no more than that a section or a list is declared."""
    return len(path) == 1 or value == "[]"


def _stays(shape: SectionSpec, path: Path) -> bool:
    """Whether a document cannot take away what is at a path of a profile."""
    return len(path) == 1 or shape.merges_as_set(path[1])


def _put(spec: Spec, path: Path, value: Any, shapes: SectionSpecs) -> None:
    section, *keys = path
    inside = spec.setdefault(section, {})
    match keys:
        case [key]:
            inside.setdefault(key, value)
        case [key, entry] if shapes[section].merges_as_set(key):
            inside[key].append(loads(entry))
        case [key, field]:
            inside.setdefault(key, {})[field] = value
