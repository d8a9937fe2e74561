"""Who has a say in each target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.documents import DeclaredSet, Index, Select
from reconciler.manifests.layers import Effective, Layer, Placeholders, SectionSpec, placeholder_values
from reconciler.manifests.sources import Document, Steps
from reconciler.model.targets import Level, Target
from reconciler.model.wording import unknown


@dataclass(frozen=True, slots=True)
class Member:
    """A project of a group, as the service knows it.

    Attributes:
        path: its full path.
        archived: whether it is archived.
        id: its numeric ID, by which a document may name it; None where nobody has asked the service.
    """

    path: str
    archived: bool = False
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Hidden:
    """A group whose projects cannot be listed.

    Attributes:
        reason: why.
        absent: whether there is no such group, or none the token may see.
    """

    reason: str
    absent: bool = False


Discovered = Mapping[str, Iterable[Member] | Hidden]
"""By group, as sets name it, all projects in it and in its subgroups."""


def candidates(declared: DeclaredSet, discovered: Discovered | None, documented: Iterable[str]) -> list[str]:
    """Return the paths of the projects that a set is about as far as they pass its globs.

    Args:
        declared: the set.
        discovered: what the groups hold; None if nobody has asked the service yet.
        documented: the paths of the projects that have documents of their own: before the discovery, those in the group
            are taken to be there and not archived.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    select = declared.declared.select
    if not select.group:
        return select.projects
    if discovered is None:
        return [path for path in documented if path.casefold().startswith(f"{select.group.casefold()}/")]
    found = discovered[select.group]
    shown = () if isinstance(found, Hidden) else found
    return [member.path for member in shown if select.archived or not member.archived]


def matches(glob: str, path: str) -> bool:
    """Whether a glob is about a full path: `*` and `?` stay within a part of it, `**` is any number of parts."""
    parts = path.casefold().split("/")
    reached = {0}
    for part in glob.casefold().split("/"):
        if part == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], part)}
    return len(parts) in reached


def disagreements(one: Effective, other: Effective) -> Iterator[Steps]:
    """Yield the paths at which two sets want different things of one target."""
    if other.sets_prune and one.sets_prune and set(one.prune) != set(other.prune):
        yield ("prune",)
    for name in one.sections.keys() & other.sections.keys():
        shape, mine, theirs = one.shapes[name], one.sections[name], other.sections[name]
        different = list(_differences(shape, (name,), mine, theirs))
        yield from different or ([(name,)] if _displaces(shape, mine, theirs) else [])


def _displaces(shape: SectionSpec, one: Any, other: Any) -> bool:
    """Whether one of two values of a section leaves something of the other out, so that their order matters."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return shape.kind.beneath(one, other) != one or shape.kind.beneath(other, one) != other


def passes(select: Select, path: str) -> bool:
    """Whether a project that a set may be about passes its globs."""
    return any(matches(glob, path) for glob in select.include) and not any(
        matches(glob, path) for glob in select.exclude
    )


def _differences(shape: SectionSpec, path: Steps, one: Any, other: Any) -> Iterator[Steps]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() & other.keys()):
            if len(path) > 1 or not shape.merges_as_set(key):
                yield from _differences(shape, (*path, key), one[key], other[key])
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield path


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
    def values(self) -> Placeholders | None:
        """The values of placeholders; None where there are some and they wait for the path to be known."""
        waits = self.nameless and any(layer.placeholders for layer in self.layers)
        return None if waits else placeholder_values(self.path)

    @property
    def nameless(self) -> bool:
        """Whether nothing is known of the target but its ID."""
        return self.path is None and isinstance(self.target.ref, int)


def contributions(
    index: Index, discovered: Discovered | None, paths: Mapping[Target, str], diagnostics: Diagnostics
) -> list[Composition]:
    """Return what makes up each target, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project are about one target.

    Args:
        index: what the documents declare.
        discovered: see `members`.
        paths: of targets that are named by ID, as far as they are known otherwise.
        diagnostics: for what is wrong.
    """
    found = _projects(discovered)
    known = {**paths, **{Target(Level.PROJECT, number): path for path, number in found.values()}}
    targets: dict[Any, Composition] = {
        identity: Composition(
            each.target, each.target.ref if isinstance(each.target.ref, str) else known.get(each.target)
        )
        for identity, each in index.targets.items()
    }
    projects = [each.path for each in targets.values() if each.target.level is Level.PROJECT and each.path]
    for declared in sorted(index.sets.values(), key=_standing):
        contribution = _of_set(declared, index, diagnostics)
        offered = candidates(declared, discovered, projects)
        selected = [path for path in offered if passes(declared.declared.select, path)]
        if discovered is not None or not declared.declared.select.group:
            idle = _complain_of_globs(declared, offered, diagnostics)
            if not selected and not idle:
                _complain_of_emptiness(declared, discovered, diagnostics)
        for folded, path in {path.casefold(): path for path in selected}.items():
            scope = Target(Level.PROJECT, path)
            _, number = found.get(folded, (path, None))
            by_number = targets.get(Target(Level.PROJECT, number).identity)
            composition = targets.get(scope.identity) or by_number or Composition(scope, path)
            targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for identity, target in index.targets.items():
        composition = targets[identity]
        layers = _profiles(target.layer.document, target.profiles, composition, index, diagnostics)
        _complain_of_unfillable(target.layer, composition, diagnostics)
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


def _of_set(declared: DeclaredSet, index: Index, diagnostics: Diagnostics) -> Contribution:
    metadata = declared.declared.metadata
    layers = _profiles(declared.layer.document, metadata.profiles, None, index, diagnostics)
    whole = len(layers) == len(metadata.profiles)
    return Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority)


def _complain_of_globs(declared: DeclaredSet, offered: Sequence[str], diagnostics: Diagnostics) -> bool:
    """Complain of globs that include none of the projects there are, and tell whether there are such globs."""
    document, select = declared.layer.document, declared.declared.select
    globs = enumerate(select.include if offered else ())
    idle = [(index, glob) for index, glob in globs if not any(matches(glob, path) for path in offered)]
    for index, glob in idle:
        some = ", ".join(offered[:SOME]) + (", ..." if len(offered) > SOME else "")
        message = f"`{glob}` includes no project; there are {some}"
        diagnostics.add(document.find(("select", "include", index)), message, document, "warning")
    return bool(idle)


def _complain_of_emptiness(declared: DeclaredSet, discovered: Discovered | None, diagnostics: Diagnostics) -> None:
    document = declared.layer.document
    found = (discovered or {}).get(declared.declared.select.group)
    if isinstance(found, Hidden):
        diagnostics.add(document.find(("select", "group")), found.reason, document)
        return
    message = f"{declared.layer.title} matches no project"
    diagnostics.add(document.find(("select",), key=True), message, document, "warning")


def _profiles(
    document: Document,
    names: Sequence[str],
    composition: Composition | None,
    index: Index,
    diagnostics: Diagnostics,
) -> list[Layer]:
    """Return the layers of the profiles; without those, complained of, that are not there or do not fit the target.

    The composition is None for a set, all of whose targets have paths.
    """
    layers = []
    for number, name in enumerate(names):
        path = ("metadata", "profiles", number)
        layer = index.profiles.get(name)
        lacking = _lacking(layer, composition) if layer and composition else None
        if layer and not lacking:
            layers.append(layer)
        elif layer and lacking:
            place = layer.document.find(("spec", *layer.placeholders[lacking]))
            message = f"{layer.title} uses `{{{lacking}}}` ({place}), and {_reason(composition)}"
            diagnostics.add(document.find(path), message, document)
        elif index.whole:
            diagnostics.add(document.find(path), unknown("profile", name, index.profiles), document)
    return layers


def _complain_of_unfillable(own: Layer, composition: Composition, diagnostics: Diagnostics) -> None:
    """Complain of a placeholder in a target's own document that has no value there."""
    lacking = _lacking(own, composition)
    if lacking:
        message = f"{_reason(composition)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        diagnostics.add(own.document.find(("spec", *own.placeholders[lacking])), message, own.document)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = placeholder_values(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _reason(composition: Composition | None) -> str:
    if composition is None or composition.target.level is Level.USER:
        return "the user has no path"
    return f"{composition.target} has no namespace"
