"""Files to the desired state: found, rendered, read, merged and checked, with each error at its place.

What is offered here is imported when it is asked for: to read plain YAML takes no model of any kind.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.manifests.manifests import Inputs, Manifests, read_contents, read_manifests
    from reconciler.manifests.project_sets import Member, UnlistedSet
    from reconciler.manifests.sources import is_manifest

__all__ = [
    "Inputs",
    "Manifests",
    "Member",
    "UnlistedSet",
    "is_manifest",
    "read_contents",
    "read_manifests",
]

HOMES = {"Member": "project_sets", "UnlistedSet": "project_sets", "is_manifest": "sources"}
"""The modules of what does not come from `manifests`."""


def __getattr__(name: str) -> Any:
    """Import what is offered."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES.get(name, 'manifests')}"), name)
