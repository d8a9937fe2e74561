"""The targets: each composed of its documents, merged and checked by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from itertools import groupby
from types import MappingProxyType
from typing import Any

from reconciler.manifests.declared import DeclaredSet, DeclaredTarget
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.documents import Selection
from reconciler.manifests.index import Index
from reconciler.manifests.layer import clashing_names
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import Discovered, Member, by_group, candidates, chosen, idle, projects_by_path
from reconciler.manifests.sources import Steps
from reconciler.manifests.stack.exceptions import read_exceptions
from reconciler.manifests.stack.layers import MOST_FILLED, Layer, Stack, stacked
from reconciler.manifests.stack.locks import broken_locks
from reconciler.manifests.stack.placeholders import placeholder_values
from reconciler.manifests.stack.sections import PRUNE, SectionSpec, level_error
from reconciler.manifests.stack.trace import find
from reconciler.manifests.validation import check_alone, check_section
from reconciler.model.exceptions import DeclaredException
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget, Listed, Section
from reconciler.model.targets import Identity, Level, Target
from reconciler.model.wording import unknown


@dataclass(frozen=True, slots=True)
class Contribution:
    """One document of a target, with its profiles.

    Attributes:
        layers: its profiles, then its spec.
        whole: whether all the profiles exist and fit the target.
        labels: of the document.
        priority: of a set.
        skips: whether sections that a target cannot have are left out.
        named: the positions of the projects that a set lists, by `Target.identity`.
    """

    layers: tuple[Layer, ...]
    whole: bool
    labels: Mapping[str, str]
    priority: int = 0
    skips: bool = False
    named: Mapping[Identity, int] = field(default_factory=dict)

    def origin(self, target: Target) -> str:
        """Return where the document names a target: of a set, in its list of projects; else where it begins."""
        document, number = self.layers[-1].document, self.named.get(target.identity)
        return document.origin if number is None else document.find(("select", "projects", number)).line


@dataclass(slots=True)
class Composition:
    """The documents of one target.

    Attributes:
        target: as its own document names it, if it has one.
        path: its full path; None for the user, and if only an ID is known.
        member: what a list of projects shows of it; None where none was read.
        own: its own document, if it has one.
        parts: the sets that select it, by priority, then its own document.
        complete: whether the parts are all that the manifests have for it.
    """

    target: Target
    path: str | None
    member: Member | None
    own: DeclaredTarget | None = None
    parts: list[Contribution] = field(default_factory=list)
    complete: bool = True

    @property
    def sets(self) -> list[Contribution]:
        """The parts that are sets."""
        return self.parts if self.own is None else self.parts[:-1]

    @property
    def nameless(self) -> bool:
        """Whether only the ID of the target is known."""
        return self.path is None and isinstance(self.target.ref, int)


def merge_targets(
    index: Index,
    discovered: Discovered | None,
    paths: Mapping[Target, str],
    diagnostics: Diagnostics,
    *,
    only: Set[Identity] | None = None,
) -> dict[Identity, MergedTarget]:
    """Compose, merge and check each target by itself; return the good ones by identity, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project compose one target.

    Args:
        index: all documents.
        discovered: the projects of groups; None before the discovery.
        paths: the known full paths of targets named by ID.
        diagnostics: takes the errors and warnings.
        only: the targets to merge, by `Target.identity`; None for all.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    compared: set[tuple[int | str, ...]] = set()
    compositions = _compose(index, discovered, paths, diagnostics, only)
    merged = (_merge(composition, index, diagnostics, compared) for composition in compositions)
    return {target.desired.target.identity: target for target in merged if target is not None}


def _compose(
    index: Index,
    discovered: Discovered | None,
    paths: Mapping[Target, str],
    diagnostics: Diagnostics,
    only: Set[Identity] | None,
) -> list[Composition]:
    """Return the documents of each target, in the order of the targets; see `merge_targets`."""
    there = projects_by_path(discovered)
    known = {**paths, **{Target(Level.PROJECT, each.id): each.path for each in there.values()}}
    documents = index.targets if only is None else {name: index.targets[name] for name in only & index.targets.keys()}
    targets = {name: _composition(own.target, known.get(own.target), there, own) for name, own in documents.items()}
    offer = _offer(documents.values(), targets.values(), discovered, there)
    for declared in sorted(index.sets.values(), key=lambda entry: (entry.metadata.priority, entry.metadata.name)):
        contribution, errors = _of_set(declared, index)
        offered = offer(declared.select)
        selected = chosen(declared.select, offered)
        for diagnostic in (*errors, *idle(declared.layer.title, declared.select, offered, selected, discovered)):
            diagnostics.add(declared.layer.document, diagnostic)
        for path in {path.casefold(): path for path in selected}.values():
            target = Target(Level.PROJECT, path)
            if only is None or target.identity in only:
                member = there.get(path.casefold(), Member(path))
                by_number = targets.get(Target(Level.PROJECT, member.id).identity)
                composition = targets.get(target.identity) or by_number or _composition(target, path, there)
                targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for name, own in documents.items():
        contribution, errors = _of_document(own, targets[name], index)
        targets[name].parts.append(contribution)
        targets[name].complete = _is_complete(targets[name], index, discovered)
        for diagnostic in (*errors, *_unlisted(own, targets[name], index, discovered)):
            diagnostics.add(own.layer.document, diagnostic)
    return sorted(targets.values(), key=lambda composition: composition.target.order)


def _composition(
    target: Target, path: str | None, there: Mapping[str, Member], own: DeclaredTarget | None = None
) -> Composition:
    """Return a target without its parts."""
    path = target.ref if isinstance(target.ref, str) else path
    return Composition(target, path, there.get(path.casefold()) if path else None, own)


def _is_complete(composition: Composition, index: Index, discovered: Discovered | None) -> bool:
    """Return whether a target with a document has all the parts that the manifests have for it.

    Before the discovery, sets that name groups apply to each path below them. Afterwards, they apply to what the lists
    show: a project that has moved, is archived, or was deleted has lost them.
    """
    if discovered is None:
        return not (composition.target.level is Level.PROJECT and composition.nameless and index.groups)
    return composition.member is not None and not composition.member.archived


def _unlisted(
    own: DeclaredTarget, composition: Composition, index: Index, discovered: Discovered | None
) -> Iterator[Diagnostic]:
    """Yield a warning about a document that has only exceptions, for a project that the list of its group lacks.

    Nothing is read of such a project, so no stage notices that it is not there.
    """
    path = own.target.ref
    if own.target.level is not Level.PROJECT or not isinstance(path, str) or not own.exceptions or own.creation:
        return
    lists = [
        group
        for group, projects in (discovered or {}).items()
        if path.casefold().startswith(f"{group}/".casefold()) and not isinstance(projects, Obstacle)
    ]
    is_read = any(layer.sections for part in composition.parts for layer in part.layers)
    if lists and composition.member is None and not is_read:
        archived = "" if lists[-1] in index.groups_with_archived else "archived, "
        fate = f"it may have been {archived}moved, renamed or deleted"
        message = f"group {lists[-1]} lists no project {path}: {fate}; correct the path, or remove this document"
        yield Diagnostic(("metadata", "path"), message, "warning")


def _offer(
    documents: Iterable[DeclaredTarget],
    targets: Iterable[Composition],
    discovered: Discovered | None,
    there: Mapping[str, Member],
) -> Callable[[Selection], Sequence[str]]:
    """Return the function from a selection to the projects that it chooses from; see `candidates`."""
    documented = [each.path for each in targets if each.target.level is Level.PROJECT and each.path]
    creating = (each.target for each in documents if each.creation and each.target.level is Level.PROJECT)
    archived = {path for path, each in there.items() if each.archived}
    created = [str(each.ref) for each in creating if str(each.ref).casefold() not in archived]
    return partial(
        candidates, discovered=discovered, documented=by_group(documented, str), created=by_group(created, str)
    )


def _of_set(declared: DeclaredSet, index: Index) -> tuple[Contribution, list[Diagnostic]]:
    """Return the layers that a set adds to each project it selects, and the errors about its profiles."""
    metadata = declared.metadata
    layers, errors = _profiles(metadata.profiles, None, index)
    whole, skips = len(layers) == len(metadata.profiles), declared.select.not_applicable == "skip"
    named = {Target(Level.PROJECT, path).identity: number for number, path in enumerate(declared.select.projects)}
    return Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority, skips, named), errors


def _of_document(own: DeclaredTarget, composition: Composition, index: Index) -> tuple[Contribution, list[Diagnostic]]:
    """Return the layers of a target's own document, and the errors about its profiles and placeholders."""
    layers, errors = _profiles(own.metadata.profiles, composition, index)
    whole = len(layers) == len(own.metadata.profiles)
    errors += _unfillable(own.layer, composition)
    return Contribution((*layers, own.layer), whole, own.metadata.labels), errors


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
            location = layer.document.find(layer.placeholders[lacking][0])
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
        yield Diagnostic(own.placeholders[lacking][0], message)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = placeholder_values(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _why_lacking(composition: Composition) -> str:
    if composition.target.ref is None:
        return f"the {composition.target} has no path"
    return f"{composition.target} has no namespace"


def _merge(
    composition: Composition, index: Index, diagnostics: Diagnostics, compared: set[tuple[int | str, ...]]
) -> MergedTarget | None:
    """Return a target merged of its documents; None if one of them cannot be filled in, or lacks a profile."""
    parts, target = composition.parts, composition.target
    layers = tuple(layer for part in parts for layer in part.layers)
    waits = composition.nameless and any(layer.placeholders for layer in layers)
    values = None if waits else placeholder_values(composition.path)
    too_long = {layer: name for layer in layers if (name := layer.overfilled(values))}
    for layer, name in too_long.items():
        message = f"the placeholders of this document come to more than {MOST_FILLED // 1024 // 1024} MiB: use fewer"
        diagnostics.add(layer.document, Diagnostic(layer.placeholders[name][0], message))
    if too_long or not all(part.whole for part in parts):
        if composition.own and not too_long:
            _check_own(layers[-1], index, target.level, diagnostics)
        return None
    whole = stacked(target, layers, index.specs, values, layers[-1].unmanaged)
    _check_layers(whole, index, diagnostics)
    for wanted, conflict in _set_conflicts(composition.sets, whole, compared):
        diagnostics.add_merged(wanted, conflict)
    return MergedTarget(_desired(composition, whole, index.today, diagnostics), whole)


def _check_own(own: Layer, index: Index, level: Level, diagnostics: Diagnostics) -> None:
    """Check the sections of a target's own document by themselves: they are not merged with all that is beneath."""
    for name, section in own.sections.items():
        for diagnostic in check_alone(index.specs[name], section, (level,)):
            diagnostics.add(own.document, diagnostic)


def _check_layers(whole: Stack, index: Index, diagnostics: Diagnostics) -> None:
    """Check the layers of a target against its level, and against one another's locks."""
    for layer in whole.layers:
        _check_shared(layer, whole, whole.target, diagnostics)
    for layer, error in broken_locks(whole) if whole.has_locks else ():
        if index.binds(whole.target, error.steps):
            diagnostics.add_declared(layer, error, whole.target)


def _check_shared(layer: Layer, whole: Stack, target: Target, diagnostics: Diagnostics) -> None:
    """Report sections that the target's level does not have, and names that are the same once filled in."""
    for name, value in layer.sections.items():
        if name in whole.unmanaged:
            continue
        error = level_error(name, target.level, whole.specs) if layer.title else None
        if error:
            diagnostic = Diagnostic(("spec", name), f"{error} (for {target})", at_key=True)
            diagnostics.add(layer.document, diagnostic, by=target)
        elif layer.placeholders:
            for diagnostic in clashing_names(layer.document, whole.specs[name], value, whole.values):
                diagnostics.add(layer.document, diagnostic)


def _desired(composition: Composition, whole: Stack, today: date | None, diagnostics: Diagnostics) -> DesiredTarget:
    """Return a target as the planner gets it: with its checked sections, and with all that its documents say of it."""
    own = composition.own
    exceptions: tuple[DeclaredException, ...] = ()
    sections = tuple(_sections(whole, diagnostics))
    if own is not None and own.exceptions:
        exceptions, problems = read_exceptions(own.exceptions, whole, today, complete=composition.complete)
        for problem in problems:
            diagnostics.add(own.layer.document, problem)
    labels = {name: label for part in composition.parts for name, label in part.labels.items()}
    return DesiredTarget(
        whole.target,
        sections,
        origin=composition.parts[-1].origin(composition.target),
        labels=MappingProxyType(labels),
        path=composition.path,
        exceptions=exceptions,
        listed=_listed(composition),
        creation=own.creation if own else None,
        unmanaged=whole.unmanaged,
        skipped=_skipped(composition),
    )


def _listed(composition: Composition) -> Listed | None:
    """Return what a list of projects shows to be archived or off."""
    member = composition.member
    if member is None or not (member.archived or member.off):
        return None
    return Listed(member.archived, member.off)


def _skipped(composition: Composition) -> frozenset[str]:
    """Return the sections that only sets and their profiles declare, and all these sets skip."""
    skipping = {name for part in composition.parts if part.skips for layer in part.layers for name in layer.sections}
    strict = {name for part in composition.parts if not part.skips for layer in part.layers for name in layer.sections}
    return _shared(frozenset(skipping - strict))


@lru_cache(maxsize=256)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """Return the same set for all equal ones: a fleet has few different ones."""
    return names


def _sections(whole: Stack, diagnostics: Diagnostics) -> Iterator[Section]:
    """Yield the checked sections of a target."""
    target = whole.target
    for name in whole.sections:
        spec, pruned = whole.specs[name], name in whole.prune
        section, problems = check_section(whole, spec, target)
        for problem in problems:
            diagnostics.add_merged(whole, problem)
        if section is not None:
            own = not whole.layers[-1].title and name in whole.layers[-1].sections
            yield Section(target, name, spec.kind.wanted(section, prune=pruned), pruned, own)
    for number, name in enumerate(whole.prune):
        if name and not any(name in layer.document.value.get("spec", {}) for layer in whole.layers):
            undeclared = f"{name} is to be pruned but not declared: write `{name}: {{}}` if nothing may exist there"
            message = level_error(name, target.level, whole.specs) or undeclared
            diagnostics.add_merged(whole, Diagnostic((PRUNE, number), message))


def _set_conflicts(
    sets: Sequence[Contribution], whole: Stack, compared: set[tuple[int | str, ...]]
) -> Iterator[tuple[Stack, Diagnostic]]:
    """Yield an error for each value that two sets of equal priority set differently: nothing may depend on file order.

    Each set is compared with all before it, merged. Sets without placeholders are compared for the first of their
    common targets only, by `compared`, so that many sets cost no more than many comparisons.
    """
    for priority, group in groupby(sets, key=lambda part: part.priority):
        equals = list(group)
        key: tuple[int | str, ...] = (*map(id, equals), *sorted(whole.unmanaged))
        if len(equals) == 1 or key in compared:
            continue
        if not any(layer.placeholders for part in equals for layer in part.layers):
            compared.add(key)
        before = whole.of(*equals[0].layers)
        for part in equals[1:]:
            wanted = whole.of(*part.layers)
            for steps in _disagreements(before, wanted):
                layer, location = find(before, steps)
                other = next(each for each in equals if layer in each.layers)
                message = (
                    f"{part.layers[-1].title} and {other.layers[-1].title} ({location}) have the same priority, "
                    f"{priority}, and disagree here: give one of them a higher priority"
                )
                yield wanted, Diagnostic(steps, message)
            before = before.under(*part.layers)


def _disagreements(one: Stack, other: Stack) -> Iterator[Steps]:
    """Yield the steps to each value that two sets set differently."""
    if other.sets_prune and one.sets_prune and set(one.prune) != set(other.prune):
        yield (PRUNE,)
    for name in one.sections.keys() & other.sections.keys():
        spec, mine, theirs = one.specs[name], one.sections[name], other.sections[name]
        different = list(_differences(spec, (name,), mine, theirs))
        yield from different or ([(name,)] if _displaces(spec, mine, theirs) else [])


def _displaces(spec: SectionSpec, one: Any, other: Any) -> bool:
    """Whether one of two values of a section drops a part of the other, so that their order matters."""
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
