"""The endpoints of the sandbox: one module per kind, found in this folder and in other packages. Begin with `routes`.

A module defines `ROUTES`, its endpoints, and may define `SECTIONS`, its data on the instance, users, groups and
projects. Packages name their modules in the entry point group `reconciler.sandbox_routes`.
"""

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..answers import SandboxError

if TYPE_CHECKING:
    from ..call import Route
    from ..state import StateSection

GROUP = "reconciler.sandbox_routes"


@cache
def routes() -> "tuple[Route, ...]":
    """Return every endpoint of every kind."""
    return tuple(route for module in modules() for route in module.ROUTES)


@cache
def sections() -> "tuple[StateSection[Any], ...]":
    """Return every section of every kind."""
    return tuple(section for module in modules() for section in getattr(module, "SECTIONS", ()))


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return our modules, then those of packages, each ordered by name.

    Raises:
        SandboxError: the module of a package cannot be used; the message names the package.
    """
    loaded = [import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    taken = {section.name for module in loaded for section in getattr(module, "SECTIONS", ())}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            module = entry.load()
            names = {section.name for section in getattr(module, "SECTIONS", ())}
            _ = module.ROUTES
        except Exception as error:  # the code of a package may raise anything
            raise _unusable(entry, f"{type(error).__name__}: {error}") from error
        if names & taken:
            raise _unusable(entry, f"another module keeps {', '.join(sorted(names & taken))}")
        loaded.append(module)
        taken |= names
    return tuple(loaded)


def _unusable(entry: EntryPoint, reason: str) -> SandboxError:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
    return SandboxError(
        f"package {package}: sandbox routes {entry.name} cannot be used: {reason}; update or uninstall the package"
    )
