"""Files to the desired state: found, rendered, read, merged and checked, each fault at its place."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.kind import Kinds
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.files import is_manifest
from reconciler.manifests.manifests import Manifests, assembled
from reconciler.manifests.reading import Reader
from reconciler.manifests.sets import Member
from reconciler.manifests.shapes import shapes_of

__all__ = ["Manifests", "Member", "is_manifest", "read_contents", "read_manifests"]

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
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused():
        reader = Reader(Catalogue(shapes_of(kinds)), values, env_names)
        reader.search(paths)
        return assembled(reader.catalogue, reader.complaints, tuple(reader.files))


def read_contents(
    contents: Mapping[str, bytes], kinds: Kinds, *, values: Mapping[str, Any] = NO_VALUES, env_names: Sequence[str] = ()
) -> Manifests:
    """Do as `read_manifests` does, with files that are not on disk, such as those of another git revision.

    Args:
        contents: what is in each file, by its path; see `is_manifest`.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.

    Raises:
        ManifestErrors: with all faults of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused():
        reader = Reader(Catalogue(shapes_of(kinds)), values, env_names)
        for path, content in contents.items():
            reader.read(path, content)
        return assembled(reader.catalogue, reader.complaints, tuple(reader.files))


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
