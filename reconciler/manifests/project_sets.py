"""Who has a say in each target: the sets that select it, by priority, and its own document, each with its profiles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.documents import DeclaredSet, Index, Selection
from reconciler.manifests.layers import (
    PRUNE,
    Effective,
    Layer,
    Placeholders,
    SectionSpec,
    effective,
    placeholder_values,
)
from reconciler.manifests.sources import Document, Steps
from reconciler.model.targets import Level, Target
from reconciler.model.wording import unknown

SOME = 3
"""Projects that are named where many could be."""


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


def compose(
    index: Index, discovered: Discovered | None, paths: Mapping[Target, str], diagnostics: Diagnostics
) -> list[Composition]:
    """Return what makes up each target, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project are about one target.

    Args:
        index: what the documents declare.
        discovered: what the groups hold; None if nobody has asked the service yet.
        paths: of targets that are named by ID, as far as they are known otherwise.
        diagnostics: for what is wrong.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    there = _discovered_projects(discovered)
    known = {**paths, **{Target(Level.PROJECT, number): path for path, number in there.values()}}
    targets: dict[Any, Composition] = {
        identity: Composition(
            each.target, each.target.ref if isinstance(each.target.ref, str) else known.get(each.target)
        )
        for identity, each in index.targets.items()
    }
    projects = [each.path for each in targets.values() if each.target.level is Level.PROJECT and each.path]
    for declared in sorted(index.sets.values(), key=lambda each: (each.metadata.priority, each.metadata.name)):
        document, metadata = declared.layer.document, declared.metadata
        layers, missing = _profiles(metadata.profiles, None, index)
        whole = len(layers) == len(metadata.profiles)
        contribution = Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority)
        offered = _candidates(declared.select, discovered, projects)
        selected = [path for path in offered if _passes(declared.select, path)]
        for found in (*missing, *_idle(declared, offered, selected, discovered)):
            diagnostics.add(document, found)
        for folded, path in {path.casefold(): path for path in selected}.items():
            target = Target(Level.PROJECT, path)
            _, number = there.get(folded, (path, None))
            by_number = targets.get(Target(Level.PROJECT, number).identity)
            composition = targets.get(target.identity) or by_number or Composition(target, path)
            targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for identity, own in index.targets.items():
        composition = targets[identity]
        layers, missing = _profiles(own.metadata.profiles, composition, index)
        for found in (*missing, *_unfillable(own.layer, composition)):
            diagnostics.add(own.layer.document, found)
        whole = len(layers) == len(own.metadata.profiles)
        composition.parts.append(Contribution((*layers, own.layer), whole, own.metadata.labels))
    return sorted(targets.values(), key=lambda each: each.target.order)


def _discovered_projects(discovered: Discovered | None) -> dict[str, tuple[str, int]]:
    """Return the path and the ID of each project that was discovered, by its path in lower case."""
    groups = [() if isinstance(found, Hidden) else found for found in (discovered or {}).values()]
    return {each.path.casefold(): (each.path, each.id) for members in groups for each in members if each.id is not None}


def _candidates(select: Selection, discovered: Discovered | None, documented: Iterable[str]) -> list[str]:
    """Return the paths of the projects that a set is about as far as they pass its globs.

    Before the discovery, the projects in the group that have documents of their own are taken to be there and not
    archived.
    """
    if not select.group:
        return select.projects
    if discovered is None:
        return [path for path in documented if is_below(select.group, path)]
    found = discovered[select.group]
    shown = () if isinstance(found, Hidden) else found
    return [member.path for member in shown if select.archived or not member.archived]


def is_below(group: str, path: str) -> bool:
    """Whether a path is that of something in a group, or in one of its subgroups."""
    return path.casefold().startswith(f"{group.casefold()}/")


def _passes(select: Selection, path: str) -> bool:
    """Whether a project that a set may be about passes its globs."""
    return any(matches(glob, path) for glob in select.include) and not any(
        matches(glob, path) for glob in select.exclude
    )


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


def _idle(
    declared: DeclaredSet, offered: Sequence[str], selected: Sequence[str], discovered: Discovered | None
) -> Iterator[Diagnostic]:
    """Yield the globs of a set that include none of the projects there are, or else that it selects none."""
    select = declared.select
    if discovered is None and select.group:
        return
    found = (discovered or {}).get(select.group)
    idle = [
        Diagnostic(("select", "include", index), f"`{glob}` includes no project; there are {_some(offered)}", "warning")
        for index, glob in enumerate(select.include if offered else ())
        if not any(matches(glob, path) for path in offered)
    ]
    yield from idle
    if isinstance(found, Hidden):
        yield Diagnostic(("select", "group"), found.reason)
    elif not selected and not idle:
        yield Diagnostic(("select",), f"{declared.layer.title} matches no project", "warning", at_key=True)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:SOME]) + (", ..." if len(paths) > SOME else "")


def _profiles(
    names: Sequence[str], composition: Composition | None, index: Index
) -> tuple[list[Layer], list[Diagnostic]]:
    """Return the layers of the profiles, without those that are not there or do not fit the target: these are errors.

    The composition is None for a set, all of whose targets have paths.
    """
    layers: list[Layer] = []
    found: list[Diagnostic] = []
    for number, name in enumerate(names):
        steps = ("metadata", "profiles", number)
        layer = index.profiles.get(name)
        lacking = _lacking(layer, composition) if layer and composition else None
        if layer and lacking:
            location = layer.document.find(layer.placeholders[lacking])
            message = f"{layer.title} uses `{{{lacking}}}` ({location}), and {_why_lacking(composition)}"
            found.append(Diagnostic(steps, message))
        elif layer:
            layers.append(layer)
        elif index.whole:
            found.append(Diagnostic(steps, unknown("profile", name, index.profiles)))
    return layers, found


def _unfillable(own: Layer, composition: Composition) -> Iterator[Diagnostic]:
    """Yield a placeholder in a target's own document that has no value there."""
    lacking = _lacking(own, composition)
    if lacking:
        message = f"{_why_lacking(composition)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        yield Diagnostic(own.placeholders[lacking], message)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = placeholder_values(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _why_lacking(composition: Composition | None) -> str:
    if composition is None or composition.target.level is Level.USER:
        return "the user has no path"
    return f"{composition.target} has no namespace"


def set_conflicts(
    composition: Composition, whole: Effective, compared: set[tuple[int, ...]]
) -> Iterator[tuple[Effective, Diagnostic]]:
    """Yield where two sets of equal priority want different things of a target: nothing may depend on their order.

    Each is compared with what those before it come to together, and sets without placeholders only for the first of the
    targets that they have in common, by `compared`: many sets cost no more than many comparisons.
    """
    sets = [part for part in composition.parts if part.priority is not None]
    for priority, group in groupby(sets, key=lambda part: part.priority):
        equals = list(group)
        key = tuple(map(id, equals))
        if len(equals) == 1 or key in compared:
            continue
        if not any(layer.placeholders for part in equals for layer in part.layers):
            compared.add(key)
        before = effective(whole.target, equals[0].layers, whole.specs, whole.values)
        for part in equals[1:]:
            wanted = effective(whole.target, part.layers, whole.specs, whole.values)
            for steps in _disagreements(before, wanted):
                layer, location = before.find(steps)
                other = next(each for each in equals if layer in each.layers)
                message = (
                    f"{part.layers[-1].title} and {other.layers[-1].title} ({location}) have the same priority, "
                    f"{priority}, and disagree here: give one of them a higher priority"
                )
                yield wanted, Diagnostic(steps, message)
            before = before.under(*part.layers)


def _disagreements(one: Effective, other: Effective) -> Iterator[Steps]:
    """Yield the steps to what two sets want to be different in one target."""
    if other.sets_prune and one.sets_prune and set(one.prune) != set(other.prune):
        yield (PRUNE,)
    for name in one.sections.keys() & other.sections.keys():
        spec, mine, theirs = one.specs[name], one.sections[name], other.sections[name]
        different = list(_differences(spec, (name,), mine, theirs))
        yield from different or ([(name,)] if _displaces(spec, mine, theirs) else [])


def _displaces(spec: SectionSpec, one: Any, other: Any) -> bool:
    """Whether one of two values of a section leaves something of the other out, so that their order matters."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return spec.kind.beneath(one, other) != one or spec.kind.beneath(other, one) != other


def _differences(spec: SectionSpec, steps: Steps, one: Any, other: Any) -> Iterator[Steps]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() & other.keys()):
            if len(steps) > 1 or not spec.merges_as_set(key):
                yield from _differences(spec, (*steps, key), one[key], other[key])
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield steps


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What shows that a path is that of a group, or of a project: where it, or a project inside, is written."""

    document: Document
    steps: Steps
    inside: str = ""

    def __str__(self) -> str:
        location = self.document.find(self.steps)
        return f"project {self.inside} is in it, see {location}" if self.inside else f"see {location}"


@dataclass(frozen=True, slots=True)
class PathLevels:
    """The paths that the documents use as those of groups and of projects, in lower case: no path is both."""

    groups: dict[str, _Evidence] = field(default_factory=dict)
    projects: dict[str, _Evidence] = field(default_factory=dict)

    def error(self, path: str, level: Level) -> str | None:
        """Say that a path that is used as that of a group or a project is the path of the other."""
        others, what = (self.projects, "project") if level is Level.GROUP else (self.groups, "group")
        evidence = others.get(path.casefold())
        return None if evidence is None else f"{path} is a {what}, not a {level} ({evidence})"

    def misplaced(self, whole: Effective) -> Iterator[Diagnostic]:
        """Yield what is wrong with lists of groups that name projects, and the other way round."""
        for name, section in whole.sections.items():
            lists = whole.specs[name].lists
            for part in lists.keys() & (section.keys() if isinstance(section, dict) else ()):
                level = lists[part].key_level
                for number, entry in enumerate(section[part] if level and isinstance(section[part], list) else ()):
                    error = self.error(entry, level) if level and isinstance(entry, str) else None
                    if error:
                        right = next(key for key, each in lists.items() if each.key_level not in {None, level})
                        yield Diagnostic((name, part, number), f"{error}: list it under `{right}`")


def path_levels(index: Index, diagnostics: Diagnostics) -> PathLevels:
    """Return what the documents say of paths; those that they take for projects wrongly are errors."""
    levels = PathLevels()
    projects: list[tuple[str, Document, Steps]] = []
    for each in index.targets.values():
        if isinstance(each.target.ref, str):
            document, steps = each.layer.document, ("metadata", "path")
            if each.target.level is Level.GROUP:
                levels.groups.setdefault(each.target.ref.casefold(), _Evidence(document, steps))
            else:
                projects.append((each.target.ref, document, steps))
    for declared in index.sets.values():
        document, select = declared.layer.document, declared.select
        if select.group:
            levels.groups.setdefault(select.group.casefold(), _Evidence(document, ("select", "group")))
        projects += [(path, document, ("select", "projects", number)) for number, path in enumerate(select.projects)]
    for path, document, steps in projects:
        above = path.casefold().rpartition("/")[0]
        while above and above not in levels.groups:
            levels.groups[above] = _Evidence(document, steps, path)
            above = above.rpartition("/")[0]
    for path, document, steps in projects:
        error = levels.error(path, Level.PROJECT)
        if error:
            diagnostics.add(document, Diagnostic(steps, f"{error}: give the full path of a project"))
        else:
            levels.projects.setdefault(path.casefold(), _Evidence(document, steps))
    return levels
