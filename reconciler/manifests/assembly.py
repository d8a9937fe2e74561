"""The catalogue of documents to the desired state: every target with its layers merged and checked."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from reconciler.address import Level, Scope
from reconciler.manifests.catalogue import Catalogue, DeclaredTarget
from reconciler.manifests.checks import check_alone, checked, complain
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.layers import Effective, Layer, effective
from reconciler.manifests.placeholders import filling
from reconciler.manifests.shapes import Shape, Shapes
from reconciler.manifests.specs import complain_of_clashes, fault_of_level
from reconciler.manifests.words import unknown
from reconciler.state import DesiredState, Section, Target

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Assembled:
    """A target as the planner gets it, and how it came about."""

    target: Target
    effective: Effective


def assemble(catalogue: Catalogue, complaints: Complaints) -> tuple[Assembled, ...]:
    """Return every target that is free of faults, in `Scope.order`."""
    assembled = [_of_document(declared, catalogue, complaints) for declared in catalogue.targets.values()]
    return tuple(sorted((each for each in assembled if each), key=lambda each: each.target.scope.order))


def desired_state(assembled: tuple[Assembled, ...]) -> DesiredState:
    """Return the targets with a digest that depends on nothing but what is to be true."""
    digest = hashlib.sha256()
    for each in assembled:
        digest.update(CANONICAL.encode(_canonical(each)).encode() + b"\n")
    return DesiredState(tuple(each.target for each in assembled), digest.hexdigest())


def _of_document(declared: DeclaredTarget, catalogue: Catalogue, complaints: Complaints) -> Assembled | None:
    layers = _profiles(declared, catalogue, complaints)
    if layers is None:
        alone = effective(None, (declared.layer,), catalogue.shapes)
        check_alone(alone, (declared.scope.level,), complaints)
        return None
    return _assembled(declared.scope, (*layers, declared.layer), declared.labels, catalogue.shapes, complaints)


def _profiles(declared: DeclaredTarget, catalogue: Catalogue, complaints: Complaints) -> list[Layer] | None:
    """Return the layers of the profiles; None, with complaints, where one is not there or does not fit the target."""
    document, layers = declared.layer.document, []
    for index, name in enumerate(declared.profiles):
        path = ("metadata", "profiles", index)
        layer = catalogue.profiles.get(name)
        if layer is None:
            if catalogue.whole:
                complaints.add(document.find(path), unknown("profile", name, catalogue.profiles), document)
            continue
        lacking = [name for name in layer.placeholders if name not in filling(declared.scope)]
        if lacking:
            complaints.add(document.find(path), _unfillable(lacking[0], declared.scope, layer), document)
            continue
        layers.append(layer)
    return layers if len(layers) == len(declared.profiles) else None


def _unfillable(placeholder: str, scope: Scope, layer: Layer) -> str:
    place = layer.document.find(("spec", *layer.placeholders[placeholder]))
    if scope.level is Level.USER:
        reason = "the user has no path"
    elif isinstance(scope.ref, int):
        reason = "a target given by `id` has no path here: give its `path` instead"
    else:
        reason = f"{scope} has no namespace"
    return f"{layer.title} uses `{{{placeholder}}}` ({place}), and {reason}"


def _assembled(
    scope: Scope, layers: tuple[Layer, ...], labels: Mapping[str, str], shapes: Shapes, complaints: Complaints
) -> Assembled | None:
    whole = effective(scope, layers, shapes)
    for layer in layers[:-1]:
        _check_layer(layer, whole, scope, complaints)
    sections = []
    for name in whole.sections:
        section = checked(whole, shapes[name], scope, complaints)
        if section is not None:
            pruned = name in whole.prune
            sections.append(Section(scope, name, shapes[name].kind.split(section, pruned), pruned))
    for index, name in enumerate(whole.prune):
        if name and not any(name in layer.document.value["spec"] for layer in layers):
            message = f"{name} is to be pruned and is not declared: write `{name}: {{}}` if nothing may exist there"
            complain(whole, ("prune", index), message, complaints)
    origin = layers[-1].document.origin
    return Assembled(Target(scope, tuple(sections), origin, MappingProxyType(dict(labels))), whole)


def _check_layer(layer: Layer, whole: Effective, scope: Scope, complaints: Complaints) -> None:
    """Complain of sections of a shared layer that the target's level does not have, or whose names come to the same."""
    for name, value in layer.sections.items():
        shape = whole.shapes[name]
        fault = fault_of_level(name, scope.level, whole.shapes)
        if fault:
            complaints.add(layer.document.find(("spec", name), key=True), f"{fault} (for {scope})", scope)
        elif layer.placeholders:
            complain_of_clashes(layer.document, shape, value, whole.values, complaints)


def _canonical(each: Assembled) -> Any:
    whole = each.effective
    sections = {name: _unordered(whole.shapes[name], section) for name, section in whole.sections.items()}
    return [str(each.target.scope), sections, sorted(whole.prune)]


def _unordered(shape: Shape, section: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: sorted(value, key=str) if shape.unites(key) else value for key, value in section.items()}
