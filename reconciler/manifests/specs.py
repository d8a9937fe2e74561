"""A document's spec as a layer: only what may be merged, with everything else complained of."""

from collections.abc import Mapping
from typing import Any

from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import KIND_OF, Document
from reconciler.manifests.layers import Layer, Path
from reconciler.manifests.placeholders import Filling, braces, doubt, has_placeholder, uses
from reconciler.manifests.shapes import Shape, Shapes, spell, spell_key
from reconciler.manifests.words import listed, unknown
from reconciler.model.targets import Level

PRUNE = "prune"


def read_layer(
    document: Document,
    spec: Mapping[str, Any],
    shapes: Shapes,
    complaints: Complaints,
    *,
    level: Level | None,
    title: str = "",
) -> Layer:
    """Return the layer that a spec makes.

    Args:
        document: where the spec is.
        spec: as written.
        shapes: of all kinds.
        complaints: for what is wrong.
        level: of the target; None for a profile, which any may use.
        title: what the layer is called; empty for a target's own.
    """
    sections: dict[str, Any] = {}
    for name, value in spec.items():
        fault = None if name == PRUNE else _fault_of_section(name, value, level, shapes)
        if fault:
            complaints.add(document.find(("spec", name), key=True), fault, document)
        elif name != PRUNE:
            sections[name] = value
    prune = _prune(document, spec[PRUNE], shapes, complaints) if PRUNE in spec else None
    placeholders, filled_in = _placeholders(document, sections, complaints)
    spelled = {name: spell(shapes[name], value, None) for name, value in sections.items()}
    for name, value in sections.items():
        if isinstance(value, dict) and len(spelled[name]) < len(value):
            complain_of_clashes(document, shapes[name], value, None, complaints)
    return Layer(document, title, sections, prune, placeholders, None if filled_in else spelled)


def complain_of_clashes(
    document: Document, shape: Shape, section: Any, values: Filling | None, complaints: Complaints
) -> None:
    """Complain of names in a section, as written, that come to the same."""
    first: dict[Any, str] = {}
    for key in section if isinstance(section, dict) else ():
        name = spell_key(shape, key, values)
        if name in first:
            place = document.find(("spec", shape.kind.name, first[name]), key=True)
            message = f"`{key}` and `{first[name]}` ({place}) are one and the same name"
            complaints.add(document.find(("spec", shape.kind.name, key), key=True), message, document)
        first.setdefault(name, key)


def fault_of_level(name: str, level: Level, shapes: Shapes) -> str | None:
    """Say where a section belongs if it does not belong to a level."""
    models = shapes[name].kind.models
    if level in models:
        return None
    allowed = [other for other, shape in shapes.items() if level in shape.kind.models]
    owners = listed([KIND_OF[owner] for owner in models])
    return f"{name} belong to {owners}; a {KIND_OF[level]} may hold {listed(allowed)}"


def _fault_of_section(name: str, value: Any, level: Level | None, shapes: Shapes) -> str | None:
    if name not in shapes:
        return unknown("section", name, [PRUNE, *shapes])
    if level and (fault := fault_of_level(name, level, shapes)):
        return fault
    if value is None:
        advice = ": leave it out" + (
            ", or write `{}` and list it in `prune` if nothing may exist there" if shapes[name].kind.prunable else ""
        )
        return f"{name} has no value{advice}"
    return None


def _prune(document: Document, prune: Any, shapes: Shapes, complaints: Complaints) -> list[str]:
    path = ("spec", PRUNE)
    if not isinstance(prune, list):
        complaints.add(document.find(path), "prune must be a list of sections: `prune: [milestones]`", document)
        return []
    good: list[str] = []
    for index, name in enumerate(prune):
        fault = _fault_of_pruned(name, shapes)
        if fault:
            complaints.add(document.find((*path, index)), fault, document)
        good.append("" if fault else name)
    return good


def _fault_of_pruned(name: Any, shapes: Shapes) -> str | None:
    if isinstance(name, str) and name in shapes and shapes[name].kind.prunable:
        return None
    prunable = [section for section, shape in shapes.items() if shape.kind.prunable]
    if not isinstance(name, str):
        return f"prune lists the names of sections: {listed(prunable)}"
    if name not in shapes:
        return unknown("section", name, prunable)
    return f"{name} are settings, which cannot be pruned; prunable are {listed(prunable)}"


def _placeholders(
    document: Document, sections: Mapping[str, Any], complaints: Complaints
) -> tuple[dict[str, Path], bool]:
    """Return the placeholders used, each with where, and whether filling in changes anything."""
    found: dict[str, Path] = {}
    changes = False
    for name, value in sections.items():
        for text, path, key in braces(value, (name,)):
            changes |= has_placeholder(text)
            for use in uses(text):
                found.setdefault(use, path)
            misspelt = doubt(text)
            if misspelt:
                complaints.add(document.find(("spec", *path), key=key), misspelt, document, "warning")
    return found, changes
