"""Groups and projects that have moved: the places of their former paths, and documents with the present ones. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.edit.yaml_edit import RenamedKey
from reconciler.manifests import Manifests
from reconciler.manifests.moved import value_at, with_value
from reconciler.manifests.sources import Document, Steps
from reconciler.model.item import Finding, problem_at
from reconciler.model.state import DesiredState
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class FormerPath:
    """A place where a document names a group or project by its former path.

    Attributes:
        document: with the present path.
        steps: to the path.
        target: the group or project, as it is planned.
    """

    document: Document
    steps: Steps
    target: Target

    def kept(self, why: str) -> Finding:
        """Return the problem that the former path is kept."""
        path, place = self.document.former[self.steps], self.document.find(self.steps).line
        return problem_at(self.target.address, f"declared by its former path {path} ({place}), {why}; change it there")


def former_paths(manifests: Manifests, desired: DesiredState) -> Iterator[FormerPath]:
    """Yield the places where documents name some targets by their former paths."""
    moved = {(each.path or "").casefold(): each.target for each in desired.targets if each.former_paths}
    for document in manifests.index.documents:
        for steps in document.former:
            target = moved.get(value_at(document.value, steps).casefold())
            if target is not None:
                yield FormerPath(document, steps, target)


def as_written(document: Document, value: Any, accepted: Collection[FormerPath]) -> Any:
    """Return the value of a document with the present paths that are accepted, and the other former ones.

    Args:
        document: as it was read, with present paths.
        value: its value after edits.
        accepted: the places where the present path is written.
    """
    written = {place.steps for place in accepted if place.document is document}
    # The last entry of a list first, so that the indices of the others do not change if one is removed: the list may
    # have the present path already.
    for steps, former in sorted(document.former.items(), reverse=True):
        path, parent = value_at(document.value, steps), value_at(value, steps[:-1])
        # documents were read with the present paths in place of former ones
        if steps not in written:
            value = with_value(value, steps, former)
        elif isinstance(parent, list):
            number = steps[-1]
            is_there = sum(str(entry).casefold() == path.casefold() for entry in parent) > 1
            entries = [] if is_there else [RenamedKey(path, former)]
            value = with_value(value, steps[:-1], [*parent[:number], *entries, *parent[number + 1 :]])
    return value
