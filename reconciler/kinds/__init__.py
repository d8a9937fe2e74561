"""The kinds of settings, one module each; adding one means adding its file here and nothing else.

Each module has, in this order: its model, its codec, its endpoints, and `KIND`.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from reconciler.model.kind import Kind, Kinds


def all_kinds() -> Kinds:
    """Return every kind by name, in the order of sections in a plan."""
    kinds: list[Kind] = [import_module(f"{__name__}.{module.name}").KIND for module in iter_modules(__path__)]
    return MappingProxyType({kind.name: kind for kind in sorted(kinds, key=lambda kind: kind.order)})
