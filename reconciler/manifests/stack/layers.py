"""Layers of settings, one per document, and the stack of them that is merged for one target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.manifests.documents import AcceptedDeviation, Selection
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.placeholders import Placeholders
from reconciler.manifests.stack.sections import NO_SECTIONS, SectionSpec, SectionSpecs
from reconciler.model.creation import Creation
from reconciler.model.targets import Target

MOST_FILLED = 5 * 1024 * 1024
"""Characters that the placeholders of one document may come to in one target."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The settings of one document: of a profile, unless it is one of the two below.

    Attributes:
        document: the document.
        title: such as `profile baseline`; empty for a target's own document.
        sections: as written.
        prune: as written; None if it is not.
        placeholders: those used, each with the steps to its uses in the document.
        normalized: the sections with canonical names; None if that needs a target's path.
        locks: by section, `all` or the names of what later layers may not change.
        unmanaged: the sections that a target's own document leaves alone.
        profiles: the names of what is merged beneath it.
        labels: of its target, or of its projects.
    """

    document: Document
    title: str
    sections: Mapping[str, Any]
    prune: list[str] | None
    placeholders: Mapping[str, Sequence[Steps]]
    normalized: Mapping[str, Any] | None
    locks: Mapping[str, Any] = field(default_factory=dict)
    unmanaged: frozenset[str] = NO_SECTIONS
    profiles: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def overfilled(self, values: Placeholders | None) -> str | None:
        """Return a placeholder if those of the document come to more text in a target than any manifest needs."""
        lengths = {name: len(uses) * len((values or {}).get(name, "")) for name, uses in self.placeholders.items()}
        return max(lengths, key=lengths.__getitem__) if sum(lengths.values()) > MOST_FILLED else None

    def section(self, spec: SectionSpec, values: Placeholders | None) -> Any:
        """Return a section's value for a target."""
        name = spec.kind.name
        return self.normalized[name] if self.normalized is not None else spec.normalize(self.sections[name], values)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeclaredTarget(Layer):
    """The own document of a user, group or project, with its exceptions by their positions there."""

    target: Target
    exceptions: Mapping[int, AcceptedDeviation]
    creation: Creation | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeclaredSet(Layer):
    """A set of projects."""

    select: Selection
    priority: int


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The layers of one target, and the spec that they merge into.

    Attributes:
        target: the target.
        layers: lowest first; the last is the target's own document, or a set's.
        sections: merged, in the order of the kinds, without those that are unmanaged.
        prune: of the topmost layer that has one, without the unmanaged sections.
        values: of the placeholders; None to leave them as they are: the path is not known yet.
        specs: of all sections.
        unmanaged: the sections that the target's own document leaves alone, whatever the layers declare.
    """

    target: Target
    layers: tuple[Layer, ...]
    sections: Mapping[str, Any]
    prune: list[str]
    values: Placeholders | None
    specs: SectionSpecs
    unmanaged: frozenset[str] = NO_SECTIONS

    @property
    def sets_prune(self) -> bool:
        """Whether any layer has `prune`, be it empty."""
        return any(layer.prune is not None for layer in self.layers)

    @property
    def has_locks(self) -> bool:
        """Whether any layer locks anything."""
        return any(layer.locks for layer in self.layers)

    def under(self, *layers: Layer) -> "Stack":
        """Merge further layers over this, without the sections that the target's level does not have."""
        sections, prune = dict(self.sections), self.prune
        for layer in layers:
            prune = prune if layer.prune is None else layer.prune
            for name in layer.sections:
                spec = self.specs[name]
                if self.target.level in spec.kind.models:
                    value = layer.section(spec, self.values)
                    sections[name] = spec.merge(sections[name], value) if name in sections else value
        ordered = {name: sections[name] for name in self.specs if name in sections and name not in self.unmanaged}
        prune = [name for name in prune if name not in self.unmanaged]
        return replace(self, layers=self.layers + layers, sections=ordered, prune=prune)

    def of(self, *layers: Layer) -> "Stack":
        """Merge these layers alone, for the same target."""
        return replace(self, layers=(), sections={}, prune=[]).under(*layers)


def stacked(
    target: Target,
    layers: tuple[Layer, ...],
    specs: SectionSpecs,
    values: Placeholders | None = None,
    unmanaged: frozenset[str] = NO_SECTIONS,
) -> Stack:
    """Merge some layers, lowest first."""
    return Stack(target, (), {}, [], values, specs, unmanaged).under(*layers)
