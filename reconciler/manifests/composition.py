"""The documents of each target, lowest first: its sets, by priority, and its own document, each with its profiles."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.index import DeclaredSet, DeclaredTarget, Index
from reconciler.manifests.project_sets import Discovered, Member, by_group, candidates, chosen, idle, projects_by_path
from reconciler.manifests.stack.layers import Contribution, Layer
from reconciler.manifests.stack.placeholders import Placeholders, placeholder_values
from reconciler.model.state import Listed
from reconciler.model.targets import Identity, Level, Target
from reconciler.model.wording import unknown


@dataclass(frozen=True, slots=True)
class Composition:
    """The documents of one target, lowest first.

    Attributes:
        target: as its own document names it, if it has one.
        path: its full path; None for the user, and if only an ID is known.
        parts: the sets that select it, by priority, then its own document.
        member: what a list of projects shows of it; None where none was read.
    """

    target: Target
    path: str | None
    parts: list[Contribution] = field(default_factory=list)
    member: Member | None = None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of all parts, lowest first."""
        return tuple(layer for part in self.parts for layer in part.layers)

    @property
    def values(self) -> Placeholders | None:
        """The values of placeholders; None if there are placeholders and the path is not known yet."""
        waits = self.nameless and any(layer.placeholders for layer in self.layers)
        return None if waits else placeholder_values(self.path)

    @property
    def nameless(self) -> bool:
        """Whether only the ID of the target is known."""
        return self.path is None and isinstance(self.target.ref, int)

    @property
    def listed(self) -> Listed | None:
        """What a list of projects shows to be archived or off.

        A section is skipped if only sets and their profiles declare it, and all these sets skip it.
        """
        if self.member is None or not (self.member.archived or self.member.off):
            return None
        declared = {name for layer in self.layers for name in layer.sections}
        strict = {name for part in self.parts if not part.skips for layer in part.layers for name in layer.sections}
        return Listed(self.member.archived, self.member.off, frozenset(declared - strict))


def compose(
    index: Index,
    discovered: Discovered | None,
    paths: Mapping[Target, str],
    diagnostics: Diagnostics,
    *,
    only: Set[Identity] | None = None,
) -> list[Composition]:
    """Return the documents of each target, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project compose one target.

    Args:
        index: all documents.
        discovered: the projects of groups; None before the discovery.
        paths: the known full paths of targets named by ID.
        diagnostics: takes the errors and warnings.
        only: the targets to compose, by `Target.identity`; None for all.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    there = projects_by_path(discovered)
    known = {**paths, **{Target(Level.PROJECT, each.id): each.path for each in there.values()}}
    documents = index.targets if only is None else {name: index.targets[name] for name in only & index.targets.keys()}
    targets: dict[Any, Composition] = {
        identity: _composition(own.target, known.get(own.target), there) for identity, own in documents.items()
    }
    projects = [each.path for each in targets.values() if each.target.level is Level.PROJECT and each.path]
    documented = by_group(projects, str)
    archived = {path for path, each in there.items() if each.archived}
    creating = (each.target for each in documents.values() if each.creation and each.target.level is Level.PROJECT)
    created = by_group([str(each.ref) for each in creating if str(each.ref).casefold() not in archived], str)
    for declared in sorted(index.sets.values(), key=lambda entry: (entry.metadata.priority, entry.metadata.name)):
        contribution, missing = _of_set(declared, index)
        offered = candidates(declared.select, discovered, documented, created)
        selected = chosen(declared.select, offered)
        for diagnostic in (*missing, *idle(declared.layer.title, declared.select, offered, selected, discovered)):
            diagnostics.add(declared.layer.document, diagnostic)
        for folded, path in {path.casefold(): path for path in selected}.items():
            target = Target(Level.PROJECT, path)
            member = there.get(folded, Member(path))
            if only is not None and target.identity not in only:
                continue
            by_number = targets.get(Target(Level.PROJECT, member.id).identity)
            composition = targets.get(target.identity) or by_number or _composition(target, path, there)
            targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for identity, own in documents.items():
        contribution, missing = _of_document(own, targets[identity], index)
        for diagnostic in missing:
            diagnostics.add(own.layer.document, diagnostic)
        targets[identity].parts.append(contribution)
    return sorted(targets.values(), key=lambda composition: composition.target.order)


def _of_set(declared: DeclaredSet, index: Index) -> tuple[Contribution, list[Diagnostic]]:
    """Return the layers that a set adds to each project it selects, and the errors about its profiles."""
    metadata = declared.metadata
    layers, errors = _profiles(metadata.profiles, None, index)
    whole, skips = len(layers) == len(metadata.profiles), declared.select.not_applicable == "skip"
    return Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority, skips), errors


def _of_document(own: DeclaredTarget, composition: Composition, index: Index) -> tuple[Contribution, list[Diagnostic]]:
    """Return the layers of a target's own document, and the errors about its profiles and placeholders."""
    layers, errors = _profiles(own.metadata.profiles, composition, index)
    whole = len(layers) == len(own.metadata.profiles)
    return Contribution((*layers, own.layer), whole, own.metadata.labels), [
        *errors,
        *_unfillable(own.layer, composition),
    ]


def _composition(target: Target, path: str | None, there: Mapping[str, Member]) -> Composition:
    """Return a target without documents yet."""
    path = target.ref if isinstance(target.ref, str) else path
    return Composition(target, path, member=there.get(path.casefold()) if path else None)


def _profiles(
    names: Sequence[str], composition: Composition | None, index: Index
) -> tuple[list[Layer], list[Diagnostic]]:
    """Return the layers of some profiles, and an error for each that is missing or does not fit the target.

    The composition is None for a set: all its targets have paths.
    """
    layers: list[Layer] = []
    diagnostics: list[Diagnostic] = []
    for number, name in enumerate(names):
        steps = ("metadata", "profiles", number)
        layer = index.profiles.get(name)
        if layer and composition and (lacking := _lacking(layer, composition)):
            location = layer.document.find(layer.placeholders[lacking])
            message = f"{layer.title} uses `{{{lacking}}}` ({location}), and {_why_lacking(composition)}"
            diagnostics.append(Diagnostic(steps, message))
        elif layer:
            layers.append(layer)
        elif index.whole:
            diagnostics.append(Diagnostic(steps, unknown("profile", name, index.profiles)))
    return layers, diagnostics


def _unfillable(own: Layer, composition: Composition) -> Iterator[Diagnostic]:
    """Yield an error if a placeholder in a target's own document has no value."""
    lacking = _lacking(own, composition)
    if lacking:
        message = f"{_why_lacking(composition)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        yield Diagnostic(own.placeholders[lacking], message)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = placeholder_values(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _why_lacking(composition: Composition) -> str:
    if composition.target.ref is None:
        return f"the {composition.target} has no path"
    return f"{composition.target} has no namespace"
