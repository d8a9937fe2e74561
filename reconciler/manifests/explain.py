"""Where each layer's say in a value is written."""

from collections.abc import Iterator
from typing import Any

from reconciler.manifests.layers import Effective, Layer, Path
from reconciler.model.targets import Key


def steps(field: str, spec: Any) -> Path | None:
    """Return the path a dotted field means in a spec, whose keys may hold dots themselves; None where it means none."""
    if not field:
        return ()
    if not isinstance(spec, dict):
        return None
    for key in sorted(spec, key=len, reverse=True):
        if field == key:
            return (key,)
        if field.startswith(f"{key}."):
            rest = steps(field[len(key) + 1 :], spec[key])
            if rest is not None:
                return (key, *rest)
    return None


def path_within(section: Any, part: Path, name: Key | None, field: str | None) -> Path:
    """Return the path to an object of a section, or to a field of it, as far as the section declares it."""
    path: Path = ()
    here = section
    for step in (*part, *(() if name is None else (name,))):
        if isinstance(here, dict) and step in here:
            path, here = (*path, step), here[step]
        elif isinstance(here, list):
            alike = [index for index, entry in enumerate(here) if str(entry).casefold() == str(step).casefold()]
            return (*path, *alike[:1])
    return (*path, *(steps(field or "", here) or ()))


def sayings(whole: Effective, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield `path:line` and the value of each layer that has a say in a field, lowest first."""
    for layer in whole.layers:
        written = whole.written(layer, path)
        if written:
            yield layer.document.find(("spec", *written), key=True).line, _value(whole, layer, path, written)


def _value(whole: Effective, layer: Layer, path: Path, written: Path) -> Any:
    if path[0] == "prune":
        return layer.prune if len(path) == 1 else (layer.prune or [])[path[1]]
    value = layer.section(whole.shapes[path[0]], whole.values)
    for step, own_step in zip(path[1:], written[1:], strict=True):
        value = value[own_step if isinstance(value, list) else step]
    return value
