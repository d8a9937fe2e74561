"""What the sandbox serves: one module a kind, found by looking into this folder.

A module gives `ROUTES`, its endpoints, and may give `SECTIONS`, what it keeps on users, groups and projects.
"""

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..call import Route
    from ..state import Section


@cache
def routes() -> "tuple[Route, ...]":
    """Every endpoint of every kind."""
    return tuple(route for name in _names() for route in import_module(f"{__name__}.{name}").ROUTES)


@cache
def sections() -> "tuple[Section, ...]":
    """Every section of every kind."""
    return tuple(
        section for name in _names() for section in getattr(import_module(f"{__name__}.{name}"), "SECTIONS", ())
    )


def _names() -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(__path__))
