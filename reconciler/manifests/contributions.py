"""Who has a say in each target: the sets that match it, by priority, and its own document, each with its profiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifests.catalogue import Catalogue, DeclaredSet
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.layers import Layer
from reconciler.manifests.placeholders import Filling, filling
from reconciler.manifests.sets import Discovered, Hidden, candidates, matches, passes
from reconciler.manifests.words import unknown
from reconciler.model.targets import Level, Target

SOME = 3
"""Projects that are named where many could be."""


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


@dataclass(frozen=True, slots=True)
class Composition:
    """What makes up one target.

    Attributes:
        target: the target, as its own document names it, if it has one.
        path: its full path; None where it has none, or only an ID is known.
        parts: lowest first.
    """

    target: Target
    path: str | None
    parts: list[Contribution] = field(default_factory=list)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of all parts, lowest first."""
        return tuple(layer for part in self.parts for layer in part.layers)

    @property
    def values(self) -> Filling | None:
        """The values of placeholders; None where there are some and they wait for the path to be known."""
        waits = self.nameless and any(layer.placeholders for layer in self.layers)
        return None if waits else filling(self.path)

    @property
    def nameless(self) -> bool:
        """Whether nothing is known of the target but its ID."""
        return self.path is None and isinstance(self.target.ref, int)


def contributions(
    catalogue: Catalogue, discovered: Discovered | None, paths: Mapping[Target, str], complaints: Complaints
) -> list[Composition]:
    """Return what makes up each target, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project are about one target.

    Args:
        catalogue: what the documents declare.
        discovered: see `members`.
        paths: of targets that are named by ID, as far as they are known otherwise.
        complaints: for what is wrong.
    """
    found = _projects(discovered)
    known = {**paths, **{Target(Level.PROJECT, number): path for path, number in found.values()}}
    targets: dict[Any, Composition] = {
        identity: Composition(
            each.target, each.target.ref if isinstance(each.target.ref, str) else known.get(each.target)
        )
        for identity, each in catalogue.targets.items()
    }
    projects = [each.path for each in targets.values() if each.target.level is Level.PROJECT and each.path]
    for declared in sorted(catalogue.sets.values(), key=_standing):
        contribution = _of_set(declared, catalogue, complaints)
        offered = candidates(declared, discovered, projects)
        selected = [path for path in offered if passes(declared.declared.select, path)]
        if discovered is not None or not declared.declared.select.group:
            idle = _complain_of_globs(declared, offered, complaints)
            if not selected and not idle:
                _complain_of_emptiness(declared, discovered, complaints)
        for folded, path in {path.casefold(): path for path in selected}.items():
            scope = Target(Level.PROJECT, path)
            _, number = found.get(folded, (path, None))
            by_number = targets.get(Target(Level.PROJECT, number).identity)
            composition = targets.get(scope.identity) or by_number or Composition(scope, path)
            targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for identity, target in catalogue.targets.items():
        composition = targets[identity]
        layers = _profiles(target.layer.document, target.profiles, composition, catalogue, complaints)
        _complain_of_unfillable(target.layer, composition, complaints)
        whole = len(layers) == len(target.profiles)
        composition.parts.append(Contribution((*layers, target.layer), whole, target.labels))
    return sorted(targets.values(), key=lambda each: each.target.order)


def _projects(discovered: Discovered | None) -> dict[str, tuple[str, int]]:
    """Return the path and the ID of each project that was discovered, by its path in lower case."""
    groups = [() if isinstance(found, Hidden) else found for found in (discovered or {}).values()]
    return {each.path.casefold(): (each.path, each.id) for members in groups for each in members if each.id is not None}


def _standing(declared: DeclaredSet) -> tuple[int, str]:
    metadata = declared.declared.metadata
    return metadata.priority, metadata.name


def _of_set(declared: DeclaredSet, catalogue: Catalogue, complaints: Complaints) -> Contribution:
    metadata = declared.declared.metadata
    layers = _profiles(declared.layer.document, metadata.profiles, None, catalogue, complaints)
    whole = len(layers) == len(metadata.profiles)
    return Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority)


def _complain_of_globs(declared: DeclaredSet, offered: Sequence[str], complaints: Complaints) -> bool:
    """Complain of globs that include none of the projects there are, and tell whether there are such globs."""
    document, select = declared.layer.document, declared.declared.select
    globs = enumerate(select.include if offered else ())
    idle = [(index, glob) for index, glob in globs if not any(matches(glob, path) for path in offered)]
    for index, glob in idle:
        some = ", ".join(offered[:SOME]) + (", ..." if len(offered) > SOME else "")
        message = f"`{glob}` includes no project; there are {some}"
        complaints.add(document.find(("select", "include", index)), message, document, "warning")
    return bool(idle)


def _complain_of_emptiness(declared: DeclaredSet, discovered: Discovered | None, complaints: Complaints) -> None:
    document = declared.layer.document
    found = (discovered or {}).get(declared.declared.select.group)
    if isinstance(found, Hidden):
        complaints.add(document.find(("select", "group")), found.reason, document)
        return
    message = f"{declared.layer.title} matches no project"
    complaints.add(document.find(("select",), key=True), message, document, "warning")


def _profiles(
    document: Document,
    names: Sequence[str],
    composition: Composition | None,
    catalogue: Catalogue,
    complaints: Complaints,
) -> list[Layer]:
    """Return the layers of the profiles; without those, complained of, that are not there or do not fit the target.

    The composition is None for a set, all of whose targets have paths.
    """
    layers = []
    for index, name in enumerate(names):
        path = ("metadata", "profiles", index)
        layer = catalogue.profiles.get(name)
        lacking = _lacking(layer, composition) if layer and composition else None
        if layer and not lacking:
            layers.append(layer)
        elif layer and lacking:
            place = layer.document.find(("spec", *layer.placeholders[lacking]))
            message = f"{layer.title} uses `{{{lacking}}}` ({place}), and {_reason(composition)}"
            complaints.add(document.find(path), message, document)
        elif catalogue.whole:
            complaints.add(document.find(path), unknown("profile", name, catalogue.profiles), document)
    return layers


def _complain_of_unfillable(own: Layer, composition: Composition, complaints: Complaints) -> None:
    """Complain of a placeholder in a target's own document that has no value there."""
    lacking = _lacking(own, composition)
    if lacking:
        message = f"{_reason(composition)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        complaints.add(own.document.find(("spec", *own.placeholders[lacking])), message, own.document)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = filling(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _reason(composition: Composition | None) -> str:
    if composition is None or composition.target.level is Level.USER:
        return "the user has no path"
    return f"{composition.target} has no namespace"
