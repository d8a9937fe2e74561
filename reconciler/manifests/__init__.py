"""Read manifests: files are found, rendered, read, merged and checked, and become the desired state.

Begin with `read_manifests`, which returns `Manifests`. The names of this package are imported on their first use:
reading plain YAML loads no model of any kind.
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
"""The modules of the names that `manifests.manifests` does not define."""


def __getattr__(name: str) -> Any:
    """Import a name of this package on its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES.get(name, 'manifests')}"), name)
