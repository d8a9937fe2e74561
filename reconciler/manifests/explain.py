"""Where each layer's say in a value is written."""

from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.manifests.layers import Effective, Layer, Path


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


def sayings(whole: Effective, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield `path:line` and the value of each layer that has a say in a field, lowest first."""
    for layer in whole.layers:
        written = whole.written(layer, path)
        if written:
            yield layer.document.find(("spec", *written), key=True).line, _value(whole, layer, path)


def _value(whole: Effective, layer: Layer, path: Sequence[Any]) -> Any:
    name, *inner = path
    if name == "prune":
        return layer.prune
    value = layer.section(whole.shapes[name], whole.values)
    for step in inner:
        value = value[step]
    return value
