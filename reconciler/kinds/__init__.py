"""The kinds of settings: ours, one module each in this folder, and those of installed packages.

Each module has, in this order: its model, what its endpoints do unlike others, its endpoints, and `KIND`, with which a
reader begins. A package names its kinds in the entry point group `reconciler.kinds`.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import MappingProxyType

from reconciler.errors import ConfigurationError
from reconciler.model.kind import Kind, Kinds

GROUP = "reconciler.kinds"


@cache
def all_kinds() -> Kinds:
    """Return every kind by name, in the order of sections in a plan.

    Raises:
        ConfigurationError: the kind of a package cannot be used; the message names the package.
    """
    kinds: dict[str, Kind] = {}
    for module in iter_modules(__path__):
        kind: Kind = import_module(f"{__name__}.{module.name}").KIND
        kinds[kind.name] = kind
    for entry in entry_points(group=GROUP):
        kind = _loaded(entry)
        if kinds.setdefault(kind.name, kind) is not kind:
            raise _unusable(entry, "another kind has this name")
    return MappingProxyType(
        {kind.name: kind for kind in sorted(kinds.values(), key=lambda kind: (kind.order, kind.name))}
    )


def _loaded(entry_point: EntryPoint) -> Kind:
    try:
        kind = entry_point.load()
    except Exception as error:  # the code of a package may raise anything
        raise _unusable(entry_point, f"{type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(kind, Kind):
        raise _unusable(entry_point, f"{entry_point.value} is not a Kind")
    if kind.name != entry_point.name:
        raise _unusable(entry_point, f"the entry point must be named {kind.name}, like the kind")
    return kind


def _unusable(entry_point: EntryPoint, reason: str) -> ConfigurationError:
    package = f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else entry_point.module
    return ConfigurationError(
        f"package {package}: section {entry_point.name} cannot be used: {reason}; update or uninstall the package"
    )
