"""Where each value of a target comes from: the layers that set it, and the steps to it as each of them writes it.

Begin with `declarations` and `find`. Steps lead from a spec down to a value. In a list of names that layers unite, the
last step in a target's spec is the position in the merged list; in a `Trace`, it is the entry itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from reconciler.manifests.layers import PRUNE, UNMANAGED, Layer, Placeholders, SectionSpec, Stack, fill, fill_all
from reconciler.manifests.sources import Location, Steps
from reconciler.model.targets import Key

Trace = Mapping[Steps, Sequence["Declaration"]]
"""By the steps to each value of a section, as a target has it: its declarations, lowest first."""


class Declaration(NamedTuple):
    """A value as one layer declares it.

    Attributes:
        layer: the layer.
        steps: to the value, as the layer writes them.
        value: as the target has it, with canonical names and placeholders filled in.
    """

    layer: Layer
    steps: Steps
    value: Any

    @property
    def line(self) -> str:
        """The place of its key, as `path:line`."""
        return self.layer.document.find(("spec", *self.steps), at_key=True).line

    def __str__(self) -> str:
        """`profile baseline (manifests/base.yaml:12)`, or the place alone of an own document."""
        return f"{self.layer.title} ({self.line})" if self.layer.title else self.line


def declarations(stack: Stack, steps: Steps) -> Sequence[Declaration]:
    """Return the declarations of the value at some steps of a target's spec, lowest first: the last one has won."""
    section, *inner = steps
    if section in {PRUNE, UNMANAGED}:
        return [*(_prunings if section == PRUNE else _unmanaged)(stack, inner)]
    spec = stack.specs.get(section)
    if spec is not None and len(inner) == 2 and inner[0] in spec.lists:
        names = stack.sections[section].get(inner[0])
        steps = (section, inner[0], _entry(names[inner[1]])) if isinstance(names, list) else steps
    return trace(stack, section).get(steps, ())


def find(stack: Stack, steps: Steps, *, at_key: bool = False) -> tuple[Layer, Location]:
    """Return the layer that set the value at some steps, or the innermost value that contains it; and the location."""
    top, is_exact = next(
        (declared[-1], length == len(steps))
        for length in range(len(steps), 0, -1)
        if (declared := declarations(stack, steps[:length]))
    )
    return top.layer, top.layer.document.find(("spec", *top.steps), at_key=at_key or not is_exact)


@lru_cache(maxsize=1024)  # accept asks for the sections of one target after those of all others
def trace(stack: Stack, section: str) -> Trace:
    """Return the declarations of each value of a section.

    The steps to an entry of a list of names end in its `repr`.
    """
    merged: dict[Steps, list[Declaration]] = {}
    for layer in stack.layers:
        if section in layer.sections:
            for steps, declaration in traced(layer, stack.specs[section], stack.values).items():
                merged.setdefault(steps, []).append(declaration)
    for winning, layer in stack.winners.items():
        for steps in [steps for steps in merged if steps[: len(winning)] == winning]:
            # The last declaration is taken as the one that has won: that is a minimum of a lower layer if it is the
            # strictest.
            merged[steps].sort(key=lambda declaration: declaration.layer is layer)
    return merged


def traced(layer: Layer, spec: SectionSpec, values: Placeholders | None) -> Mapping[Steps, Declaration]:
    """Return a layer's declarations in a section, by the steps to them in the spec of a target with these values."""
    return _traced(layer, spec, None if values is None or layer.normalized is not None else tuple(values.items()))


@lru_cache(maxsize=256)
def _traced(
    layer: Layer, spec: SectionSpec, value_items: tuple[tuple[str, str], ...] | None
) -> Mapping[Steps, Declaration]:
    filled = None if value_items is None else dict(value_items)
    name = spec.kind.name
    declared: dict[Steps, Declaration] = {}
    place = (name,), (name,), layer.section(spec, filled)
    for steps, written, value in _values(spec, filled, place, layer.sections[name]):
        declared.setdefault(steps, Declaration(layer, written, value))
    return declared


def _values(
    spec: SectionSpec, values: Placeholders | None, traced_place: tuple[Steps, Steps, Any], written_value: Any
) -> Iterator[tuple[Steps, Steps, Any]]:
    """Yield a value and all values in it: its steps in a target's spec, its steps as written, and the value there.

    If two names are equal once filled in, which is an error, the literal one comes first.
    """
    steps, own_steps, value = traced_place
    yield traced_place
    if isinstance(written_value, dict):
        names = [
            (spec.normalize_key(key, values) if len(steps) == 1 else fill(key, spec.values_of(values)), key)
            for key in written_value
        ]
        for name, key in sorted(names, key=lambda pair: pair[0] != pair[1]):
            if name not in value:  # it is under the other one of two equal names
                continue
            yield from _values(spec, values, ((*steps, name), (*own_steps, key), value[name]), written_value[key])
    elif isinstance(written_value, list):
        is_named = len(steps) == 2 and steps[1] in spec.lists
        for number, entry in enumerate(written_value):
            step = _entry(value[number]) if is_named else number
            yield from _values(spec, values, ((*steps, step), (*own_steps, number), value[number]), entry)


def _entry(list_entry: Any) -> str:
    """Return the step to an entry of a list of names: its `repr`, since an entry of a wrong type may be unhashable."""
    return repr(list_entry)


def _prunings(stack: Stack, inner: Sequence[int]) -> Iterator[Declaration]:
    """Yield the declarations of `prune`, or those of the entry at a position of the merged list."""
    for layer in stack.layers:
        if layer.prune is not None and not inner:
            yield Declaration(layer, (PRUNE,), layer.prune)
        elif layer.prune is not None and inner[0] < len(stack.prune) and stack.prune[inner[0]] in layer.prune:
            section = stack.prune[inner[0]]
            yield Declaration(layer, (PRUNE, layer.prune.index(section)), section)


def _unmanaged(stack: Stack, inner: Sequence[int]) -> Iterator[Declaration]:
    """Yield the declaration of `unmanaged` in the target's own document, or that of the entry at a position."""
    for layer in stack.layers:
        if layer.unmanaged or layer.let_go:
            names = fill_all(layer.document.value["spec"][UNMANAGED], stack.values)
            yield Declaration(layer, (UNMANAGED, *inner), names[inner[0]] if inner else names)


def field_path(field: str, raw_spec: Any) -> Steps | None:
    """Return the steps of a dotted field in a spec, whose keys may hold dots; None if there is no such field."""
    if not field:
        return ()
    if not isinstance(raw_spec, dict):
        return None
    # The longest first: in `release.v1.level`, the key may be `release.v1`.
    for key in sorted(raw_spec, key=len, reverse=True):
        if field == key:
            return (key,)
        if field.startswith(f"{key}."):
            inner = field_path(field[len(key) + 1 :], raw_spec[key])
            if inner is not None:
                return (key, *inner)
    return None


def object_path(stack: Stack, section: str, part_steps: Steps, item_name: Key | None, field: str | None) -> Steps:
    """Return the steps to an object of a declared section, or to its field, as far as the section declares it."""
    steps: Steps = (section,)
    here = stack.sections[section]
    for step in (*part_steps, *(() if item_name is None else (item_name,))):
        if isinstance(here, dict) and step in here:
            steps, here = (*steps, step), here[step]
        elif isinstance(here, list):
            index = _listed(stack, steps).get(str(step).casefold())
            return steps if index is None else (*steps, index)
    return (*steps, *(field_path(field or "", here) or ()))


@lru_cache(maxsize=16)
def _listed(stack: Stack, steps: Steps) -> Mapping[str, int]:
    """Return the index of each entry of a merged list, by the entry in lower case; the first of equal ones."""
    here: Any = stack.sections
    for step in steps:
        here = here[step]
    return {str(entry).casefold(): index for index, entry in reversed([*enumerate(here)])}
