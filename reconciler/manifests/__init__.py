"""Files to the desired state: found, rendered, read, merged and checked, with each fault at its place.

What is offered here is imported when it is asked for: to read plain YAML takes no model of any kind.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.manifests.elsewhere import Elsewhere, read_elsewhere
    from reconciler.manifests.files import is_manifest
    from reconciler.manifests.manifests import Manifests, read_contents, read_manifests
    from reconciler.manifests.sets import Hidden, Member

__all__ = [
    "Elsewhere",
    "Hidden",
    "Manifests",
    "Member",
    "is_manifest",
    "read_contents",
    "read_elsewhere",
    "read_manifests",
]

HOMES = {
    "Elsewhere": "elsewhere",
    "Hidden": "sets",
    "Manifests": "manifests",
    "Member": "sets",
    "is_manifest": "files",
    "read_contents": "manifests",
    "read_elsewhere": "elsewhere",
    "read_manifests": "manifests",
}


def __getattr__(name: str) -> Any:
    """Import what is offered."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
