"""Documents of groups and projects that have moved, with the present paths in place of the former ones.

`Manifests.with_moved` replaces documents by these; a `Document` keeps its former paths for messages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests.documents import LEVEL_OF
from reconciler.manifests.sources import Document, Steps
from reconciler.model.targets import Identity, Level, Target


def with_present_paths(document: Document, present_paths: Mapping[Identity, str]) -> Document:
    """Return a document that names groups and projects by their present paths; the same document if none has moved.

    Args:
        document: a document of any kind.
        present_paths: the paths of the groups and projects that have moved, by `Target.identity` with the former path.
    """
    moved = {steps: target for steps, target in _named(document.value) if target.identity in present_paths}
    if not moved:
        return document
    value = document.value
    for steps, target in moved.items():
        value = with_value(value, steps, present_paths[target.identity])
    former = {steps: str(target.ref) for steps, target in moved.items()}
    return replace(document, value=value, former={**document.former, **former})


def value_at(document_value: Any, steps: Steps) -> Any:
    """Return the part of a document's value at some steps."""
    for step in steps:
        document_value = document_value[step]
    return document_value


def with_value(value: Any, steps: Steps, replacement: Any) -> Any:
    """Return the value of a document with another part at some steps."""
    if not steps:
        return replacement
    first, *others = steps
    changed = with_value(value[first], tuple(others), replacement)
    if isinstance(value, list):
        return [*value[:first], changed, *value[first + 1 :]]
    return {**value, first: changed}


def _named(value: Any) -> Iterator[tuple[Steps, Target]]:
    """Yield the groups and projects that a document names to address them, each with the steps to its path."""
    level, path = LEVEL_OF.get(value["kind"]), (value.get("metadata") or {}).get("path")
    if level and path:
        yield ("metadata", "path"), Target(level, path)
    for number, listed in enumerate(value.get("select", {}).get("projects", ())):
        yield ("select", "projects", number), Target(Level.PROJECT, listed)
