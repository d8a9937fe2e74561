"""Layers of settings, each one document's spec, laid over each other to what is to be true of one target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.manifests.documents import Document
from reconciler.manifests.placeholders import Filling, fill
from reconciler.manifests.shapes import Shape, Shapes, spell, spell_entry, spell_key
from reconciler.manifests.sources import Place
from reconciler.model.targets import Target

Path = tuple[Any, ...]
"""Keys and indices from a spec down to a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The settings that one document brings.

    Attributes:
        document: where they are written.
        title: such as `profile baseline`.
        sections: as written.
        prune: as written; None where it is not.
        placeholders: those used, each with where.
        spelled: the sections with their names in canonical form; None where that takes a target, to fill in its path.
    """

    document: Document
    title: str
    sections: Mapping[str, Any]
    prune: list[str] | None
    placeholders: Mapping[str, Path]
    spelled: Mapping[str, Any] | None

    def values(self, values: Filling | None) -> Filling | None:
        """Return what to fill in; None where there is nothing to be filled in."""
        return values if self.spelled is None else None

    def section(self, shape: Shape, values: Filling | None) -> Any:
        """Return a section's value for a target."""
        name = shape.kind.name
        return self.spelled[name] if self.spelled is not None else spell(shape, self.sections[name], values)


@dataclass(frozen=True, slots=True)
class Effective:
    """What is to be true of one target, and the layers that say so.

    Attributes:
        target: the target; None for a profile or set looked at by itself.
        layers: lowest first; the last is the target's own document, or a set's.
        sections: merged, in the order of the kinds.
        prune: of the topmost layer that has one.
        values: of the placeholders; None to leave them as they are, where no path is known.
        shapes: of all kinds.
    """

    target: Target | None
    layers: tuple[Layer, ...]
    sections: Mapping[str, Any]
    prune: list[str]
    values: Filling | None
    shapes: Shapes

    @property
    def sets_prune(self) -> bool:
        """Whether any layer says what is pruned, be it nothing."""
        return any(layer.prune is not None for layer in self.layers)

    def under(self, upper: "Effective") -> "Effective":
        """Return what this and what lies over it come to, for the same target."""
        return Effective(
            self.target,
            self.layers + upper.layers,
            _merged(self.shapes, self.sections, upper.sections),
            upper.prune if upper.sets_prune else self.prune,
            self.values,
            self.shapes,
        )

    def find(self, path: Path, *, key: bool = False) -> tuple[Layer, Place]:
        """Return the layer that brought what is at a path, and where; or else of the innermost thing around it."""
        layer, written, whole = next(
            (layer, written, length == len(path))
            for length in range(len(path), 0, -1)
            for layer in reversed(self.layers)
            if (written := self.written(layer, path[:length]))
        )
        return layer, layer.document.find(("spec", *written), key=key or not whole)

    def written(self, layer: Layer, path: Path) -> Path | None:
        """Return the path at which a layer writes what is at a path of the merged spec; None where it does not."""
        if path[0] == "prune":
            return None if layer.prune is None or (len(path) > 1 and path[1] >= len(layer.prune)) else path
        shape, values = self.shapes.get(path[0]), layer.values(self.values)
        here: Any = layer.sections
        merged: Any = self.sections
        written: list[Any] = []
        for depth, step in enumerate(path):
            merged = merged.get(step) if isinstance(merged, Mapping) else merged[step]
            found = _candidate(shape, path[: depth + 1], here, merged, values)
            if found is None:
                return None
            written.append(found)
            here = here[found]
        return tuple(written)


def merge(shape: Shape, lower: Any, upper: Any) -> Any:
    """Lay one value of a section over another: mappings key by key, sets of names united, all else replaced."""
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    lower = shape.kind.beneath(lower, upper)
    merged = dict(lower)
    for key, value in upper.items():
        below = lower.get(key)
        if shape.unites(key) and isinstance(below, list) and isinstance(value, list):
            merged[key] = below + [entry for entry in value if entry not in below]
        else:
            merged[key] = _overlay(below, value)
    return merged


def effective(
    target: Target | None, layers: tuple[Layer, ...], shapes: Shapes, values: Filling | None = None
) -> Effective:
    """Merge the layers, lowest first; sections that the target's level does not have are left out."""
    sections: Mapping[str, Any] = {}
    prune: list[str] = []
    for layer in layers:
        prune = prune if layer.prune is None else layer.prune
        fitting = (name for name in layer.sections if target is None or target.level in shapes[name].kind.models)
        sections = _merged(shapes, sections, {name: layer.section(shapes[name], values) for name in fitting})
    return Effective(target, layers, sections, prune, values, shapes)


def _merged(shapes: Shapes, lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lay some sections over others, in the order of the kinds."""
    return {
        name: merge(shape, lower[name], upper[name])
        if name in lower and name in upper
        else (upper if name in upper else lower)[name]
        for name, shape in shapes.items()
        if name in lower or name in upper
    }


def _overlay(lower: Any, upper: Any) -> Any:
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _overlay(lower.get(key), value)
    return merged


def _candidate(shape: Shape | None, path: Path, here: Any, wanted: Any, values: Filling | None) -> Any:
    """Return the key or index at which a layer writes what the merged spec has at a path; None where it does not."""
    *above, step = path
    if isinstance(here, list):
        return _index(shape, path, here, wanted, values)
    if not isinstance(here, Mapping):
        return None

    def spelled(key: str) -> Any:
        if len(above) == 1 and shape:
            return spell_key(shape, key, values)
        return key if values is None else fill(key, values)

    if step in here and spelled(step) == step:
        return step
    return next((key for key in here if spelled(key) == step), None)


def _index(shape: Shape | None, path: Path, here: list[Any], wanted: Any, values: Filling | None) -> int | None:
    """Return where in its list a layer has an entry: lists of names are united, so that there only the name counts."""
    if len(path) == 3 and shape and path[1] in shape.lists:
        return next((i for i, entry in enumerate(here) if spell_entry(shape, path[1], entry, values) == wanted), None)
    return path[-1] if isinstance(path[-1], int) and path[-1] < len(here) else None
