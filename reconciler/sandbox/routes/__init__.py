"""The endpoints of the sandbox: one module per kind, found in this folder and in other packages.

A module defines `ROUTES`, its endpoints, and may define `SECTIONS`, its data on the instance, users, groups and
projects. Packages name their modules in the entry point group `reconciler.sandbox_routes`.
"""

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import SandboxError

if TYPE_CHECKING:
    from ..call import Route
    from ..state import Section

GROUP = "reconciler.sandbox_routes"


@cache
def routes() -> "tuple[Route, ...]":
    """Return every endpoint of every kind."""
    return tuple(route for module in modules() for route in module.ROUTES)


@cache
def sections() -> "tuple[Section[Any], ...]":
    """Return every section of every kind."""
    return tuple(section for module in modules() for section in getattr(module, "SECTIONS", ()))


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return our modules, then those of packages, each ordered by name.

    Raises:
        SandboxError: the module of a package cannot be imported, or has no routes; the text names the package.
    """
    ours = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    theirs = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist else entry.value
        try:
            module = entry.load()
            _ = module.ROUTES
        except Exception as error:  # whatever a package raises is its own fault, and said to be
            raise SandboxError(f"sandbox routes {entry.name!r} of the package {package!r}: {error}") from error
        theirs.append(module)
    return (*ours, *theirs)
