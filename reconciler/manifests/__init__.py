"""Files to the desired state: found, rendered, read, merged and checked, each fault at its place."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.kind import Kinds
from reconciler.manifests.manifests import Manifests, assembled
from reconciler.manifests.reading import read_catalogue
from reconciler.manifests.sets import Member

__all__ = ["Manifests", "Member", "read_manifests"]

NO_VALUES: Mapping[str, Any] = MappingProxyType({})


def read_manifests(
    paths: Sequence[Path], kinds: Kinds, *, values: Mapping[str, Any] = NO_VALUES, env_names: Sequence[str] = ()
) -> Manifests:
    """Read, render, merge and check manifests.

    Args:
        paths: files, and folders to search.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.

    Raises:
        ManifestErrors: with all faults of all files.
    """
    with _collector_paused():
        return assembled(*read_catalogue(paths, kinds, values, env_names))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python from looking for garbage: of a fleet's manifests nearly all stays, and to look costs a third more."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
