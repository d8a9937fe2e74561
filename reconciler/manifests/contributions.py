"""Who has a say in each target: the sets that match it, by priority, and its own document, each with its profiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.address import Level, Scope
from reconciler.manifests.catalogue import Catalogue, DeclaredSet
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.layers import Layer
from reconciler.manifests.placeholders import NAMES, filling
from reconciler.manifests.sets import Discovered, Hidden, members
from reconciler.manifests.words import unknown


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one document brings to a target.

    Attributes:
        layers: its profiles, then its spec.
        whole: whether all the profiles are there and fit the target.
        labels: of the document.
        priority: of a set; None for the target's own document.
    """

    layers: tuple[Layer, ...]
    whole: bool
    labels: Mapping[str, str]
    priority: int | None = None


def contributions(
    catalogue: Catalogue, discovered: Discovered | None, complaints: Complaints
) -> list[tuple[Scope, list[Contribution]]]:
    """Return what makes up each target, lowest first, in the order of the targets."""
    documented = [declared.scope for declared in catalogue.targets.values()]
    parts: dict[Any, tuple[Scope, list[Contribution]]] = {scope.identity: (scope, []) for scope in documented}
    projects = [scope.ref for scope in documented if scope.level is Level.PROJECT and isinstance(scope.ref, str)]
    for declared in sorted(catalogue.sets.values(), key=_standing):
        contribution = _of_set(declared, catalogue, complaints)
        paths = members(declared, discovered, projects)
        if not paths and (discovered is not None or not declared.declared.select.group):
            _complain_of_emptiness(declared, discovered, complaints)
        for path in {path.casefold(): path for path in paths}.values():
            scope = Scope(Level.PROJECT, path)
            parts.setdefault(scope.identity, (scope, []))[1].append(contribution)
    for identity, target in catalogue.targets.items():
        layers = _profiles(target.layer.document, target.profiles, target.scope, catalogue, complaints)
        whole = len(layers) == len(target.profiles)
        parts[identity][1].append(Contribution((*layers, target.layer), whole, target.labels))
    return sorted(parts.values(), key=lambda entry: entry[0].order)


def _standing(declared: DeclaredSet) -> tuple[int, str]:
    metadata = declared.declared.metadata
    return metadata.priority, metadata.name


def _of_set(declared: DeclaredSet, catalogue: Catalogue, complaints: Complaints) -> Contribution:
    metadata = declared.declared.metadata
    layers = _profiles(declared.layer.document, metadata.profiles, None, catalogue, complaints)
    whole = len(layers) == len(metadata.profiles)
    return Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority)


def _complain_of_emptiness(declared: DeclaredSet, discovered: Discovered | None, complaints: Complaints) -> None:
    document = declared.layer.document
    found = (discovered or {}).get(declared.declared.select.group)
    if isinstance(found, Hidden):
        complaints.add(document.find(("select", "group")), found.reason, document)
        return
    message = f"{declared.layer.title} matches no project"
    complaints.add(document.find(("select",), key=True), message, document, "warning")


def _profiles(
    document: Document, names: Sequence[str], scope: Scope | None, catalogue: Catalogue, complaints: Complaints
) -> list[Layer]:
    """Return the layers of the profiles; without those, complained of, that are not there or do not fit the target.

    The scope is None for a set, all of whose targets have paths.
    """
    fillable = filling(scope).keys() if scope else {*NAMES}
    layers = []
    for index, name in enumerate(names):
        path = ("metadata", "profiles", index)
        layer = catalogue.profiles.get(name)
        lacking = [use for use in layer.placeholders if use not in fillable] if layer else []
        if layer and not lacking:
            layers.append(layer)
        elif layer and scope:
            complaints.add(document.find(path), _unfillable(lacking[0], scope, layer), document)
        elif catalogue.whole:
            complaints.add(document.find(path), unknown("profile", name, catalogue.profiles), document)
    return layers


def _unfillable(placeholder: str, scope: Scope, layer: Layer) -> str:
    place = layer.document.find(("spec", *layer.placeholders[placeholder]))
    if scope.level is Level.USER:
        reason = "the user has no path"
    elif isinstance(scope.ref, int):
        reason = "the path of a target given by `id` is not known: give its `path` instead"
    else:
        reason = f"{scope} has no namespace"
    return f"{layer.title} uses `{{{placeholder}}}` ({place}), and {reason}"
