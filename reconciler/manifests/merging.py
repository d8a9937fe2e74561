"""The targets: each merged of its layers and checked, then all of them against one another."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from reconciler.manifests.composition import Composition
from reconciler.manifests.consistency import check_creations, contradictions, misplaced_references, path_levels
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.index import Index, clashing_names, overfilled
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import set_conflicts
from reconciler.manifests.stack.exceptions import read_exceptions
from reconciler.manifests.stack.layers import Layer, Stack, stacked
from reconciler.manifests.stack.locks import broken_locks
from reconciler.manifests.stack.sections import PRUNE, level_error
from reconciler.manifests.validation import check_alone, check_section
from reconciler.model.exceptions import DeclaredException
from reconciler.model.state import DesiredTarget, Section
from reconciler.model.targets import Identity, Level, Target


def merge_and_check(
    compositions: list[Composition], index: Index, diagnostics: Diagnostics
) -> dict[Identity, MergedTarget]:
    """Merge and check each target; return the good ones by identity."""
    levels = path_levels(index, diagnostics)
    check_creations(index, diagnostics)
    assembled = merge_targets(compositions, index, diagnostics)
    declared = [each.stack for each in assembled.values()]
    sound = [_sound(each) for each in assembled.values()]
    groups = {str(each.target.ref).casefold(): each for each in sound if each.target.level is Level.GROUP}
    for whole, right in zip(declared, sound, strict=True):
        for diagnostic in chain(misplaced_references(whole, levels), contradictions(right, groups)):
            diagnostics.add_merged(whole, diagnostic)
    return assembled


def _sound(merged: MergedTarget) -> Stack:
    """Return the merged spec of a target without the sections that have errors: these may have any shape."""
    whole, names = merged.stack, {section.kind for section in merged.desired.sections}
    if len(names) == len(whole.sections):
        return whole
    return replace(whole, sections={name: section for name, section in whole.sections.items() if name in names})


def merge_targets(
    compositions: list[Composition], index: Index, diagnostics: Diagnostics
) -> dict[Identity, MergedTarget]:
    """Merge and check each target by itself."""
    compared: set[tuple[int | str, ...]] = set()
    assembled: dict[Identity, MergedTarget] = {}
    for composition in compositions:
        target, layers = composition.target, composition.layers
        too_long = [(layer, error) for layer in layers if (error := overfilled(layer, composition.values))]
        if too_long:
            for layer, error in too_long:
                diagnostics.add(layer.document, error)
        elif all(part.whole for part in composition.parts):
            whole = stacked(target, layers, index.specs, composition.values, layers[-1].unmanaged)
            _check_layers(whole, index, diagnostics)
            sets = [part for part in composition.parts if part.priority is not None]
            for wanted, conflict in set_conflicts(sets, whole, compared) if len(sets) > 1 else ():
                diagnostics.add_merged(wanted, conflict)
            labels = {name: value for part in composition.parts for name, value in part.labels.items()}
            sections = tuple(_sections(whole, target, diagnostics))
            origin = layers[-1].document.origin
            exceptions = tuple(_exceptions(index, whole, diagnostics))
            own = index.targets.get(target.identity)
            creation = own.creation if own else None
            about = (origin, MappingProxyType(labels), composition.path, exceptions, composition.listed, creation)
            desired = DesiredTarget(target, sections, *about, unmanaged=whole.unmanaged)
            assembled[target.identity] = MergedTarget(desired, whole)
        elif composition.parts[-1].priority is None:
            for name, section in layers[-1].sections.items():
                for diagnostic in check_alone(index.specs[name], section, (target.level,)):
                    diagnostics.add(layers[-1].document, diagnostic)
    return assembled


def _sections(whole: Stack, target: Target, diagnostics: Diagnostics) -> Iterator[Section]:
    """Yield the checked sections of a target."""
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


def _exceptions(index: Index, whole: Stack, diagnostics: Diagnostics) -> Iterator[DeclaredException]:
    """Yield the exceptions of a target's own document that are free of errors."""
    own = index.targets.get(whole.target.identity)
    if own is not None and own.exceptions:
        exceptions, problems = read_exceptions(own.exceptions, whole, index.today)
        yield from exceptions
        for problem in problems:
            diagnostics.add(own.layer.document, problem)


def _check_layers(whole: Stack, index: Index, diagnostics: Diagnostics) -> None:
    """Check the layers of a target against its level, and against one another's locks."""
    for layer in whole.layers:
        _check_shared(layer, whole, whole.target, diagnostics)
    for layer, error in broken_locks(whole) if whole.has_locks and index.locks_bind else ():
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
