"""What has a say in each target, merged and checked, to the desired state."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from types import MappingProxyType
from typing import Any

from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.checks import check_alone, checked, complain
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.contributions import Composition, Contribution
from reconciler.manifests.layers import Effective, Layer, effective
from reconciler.manifests.levels import levels_of, misplaced_references
from reconciler.manifests.sets import disagreements
from reconciler.manifests.shapes import Shape, Shapes
from reconciler.manifests.specs import complain_of_clashes, fault_of_level
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Target

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Assembled:
    """A target as the planner gets it, and how it came about."""

    target: DesiredTarget
    effective: Effective


def assemble(compositions: list[Composition], catalogue: Catalogue, complaints: Complaints) -> tuple[Assembled, ...]:
    """Return the targets, with complaints of all that is wrong with them."""
    shapes, levels = catalogue.shapes, levels_of(catalogue, complaints)
    compared: set[tuple[int, ...]] = set()
    assembled = tuple(
        _assembled(each, shapes, compared, complaints) for each in compositions if _is_whole(each, shapes, complaints)
    )
    for each in assembled:
        for path, message in misplaced_references(each.effective, levels):
            complain(each.effective, path, message, complaints)
    return assembled


def desired_state(assembled: tuple[Assembled, ...]) -> DesiredState:
    """Return the targets with a digest that depends on nothing but what is to be true."""
    digest = hashlib.sha256()
    for each in assembled:
        digest.update(CANONICAL.encode(_canonical(each)).encode() + b"\n")
    return DesiredState(tuple(each.target for each in assembled), digest.hexdigest())


def _is_whole(target: Composition, shapes: Shapes, complaints: Complaints) -> bool:
    """Whether no profile is missing; where one is, the target's own document is checked by itself."""
    if all(part.whole for part in target.parts):
        return True
    own = target.parts[-1]
    if own.priority is None:
        check_alone(effective(None, own.layers[-1:], shapes), (target.target.level,), complaints)
    return False


def _assembled(
    target: Composition, shapes: Shapes, compared: set[tuple[int, ...]], complaints: Complaints
) -> Assembled:
    scope, parts, layers, values = target.target, target.parts, target.layers, target.values
    each = [effective(scope, part.layers, shapes, values) for part in parts]
    whole = reduce(Effective.under, each)
    for layer in layers:
        if layer.title or layer.placeholders:
            _check_shared(layer, whole, scope, complaints)
    if len(parts) > 2 or (len(parts) == 2 and parts[1].priority is not None):
        _check_sets(parts, each, compared, complaints)
    sections = []
    for name in whole.sections:
        section = checked(whole, shapes[name], scope, complaints)
        if section is not None:
            pruned = name in whole.prune
            sections.append(Section(scope, name, shapes[name].kind.split(section, pruned), pruned))
    _check_prune(whole, complaints)
    labels = {name: value for part in parts for name, value in part.labels.items()}
    origin = layers[-1].document.origin
    return Assembled(DesiredTarget(scope, tuple(sections), origin, MappingProxyType(labels), target.path), whole)


def _check_shared(layer: Layer, whole: Effective, target: Target, complaints: Complaints) -> None:
    """Complain of sections of a layer that the target's level does not have, or whose names come to the same."""
    for name, value in layer.sections.items():
        shape = whole.shapes[name]
        fault = fault_of_level(name, target.level, whole.shapes)
        if fault:
            complaints.add(layer.document.find(("spec", name), key=True), f"{fault} (for {target})", target)
        elif layer.placeholders:
            complain_of_clashes(layer.document, shape, value, whole.values, complaints)


def _check_sets(
    parts: list[Contribution], each: list[Effective], compared: set[tuple[int, ...]], complaints: Complaints
) -> None:
    """Complain where two sets of equal priority want different things: nothing may depend on their order.

    Each is compared with what those before it come to together, and sets without placeholders only for the first of the
    targets that they have in common: many sets cost no more than many comparisons.
    """
    sets = [(part, wanted) for part, wanted in zip(parts, each, strict=True) if part.priority is not None]
    for _, group in groupby(sets, key=lambda pair: pair[0].priority):
        equals = list(group)
        key = tuple(id(part) for part, _ in equals)
        if key in compared:
            continue
        if not any(layer.placeholders for part, _ in equals for layer in part.layers):
            compared.add(key)
        before = equals[0][1]
        for other, wanted in equals[1:]:
            for path in disagreements(before, wanted):
                layer, place = before.find(path)
                one = next(part for part, _ in equals if layer in part.layers)
                message = (
                    f"{other.layers[-1].title} and {one.layers[-1].title} ({place}) have the same priority, "
                    f"{other.priority}, and disagree here: give one of them a higher priority"
                )
                complain(wanted, path, message, complaints)
            before = before.under(wanted)


def _check_prune(whole: Effective, complaints: Complaints) -> None:
    for index, name in enumerate(whole.prune):
        if name and not any(name in layer.document.value.get("spec", {}) for layer in whole.layers):
            message = f"{name} is to be pruned but not declared: write `{name}: {{}}` if nothing may exist there"
            complain(whole, ("prune", index), message, complaints)


def _canonical(each: Assembled) -> Any:
    whole = each.effective
    shapes = whole.shapes
    sections = {
        name: _unordered(shapes[name], section) if shapes[name].lists else section
        for name, section in whole.sections.items()
    }
    return [str(each.target.target), sections, sorted(whole.prune)]


def _unordered(shape: Shape, section: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: sorted(value, key=str) if shape.unites(key) else value for key, value in section.items()}
