"""The checkout of a CI job: names in a merge request are read only there, since secret files lie beside it.

Begin with `lies_outside` and `tracked`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from reconciler.errors import ConfigurationError
from reconciler.system.processes import git, repository

REPOSITORY = ".git"
LEADS_OUT = (
    "is a link, or behind one, that leads out of the checkout: a CI job reads nothing there; commit the file itself"
)


def in_ci() -> bool:
    """Whether this is a job of a CI system, whose files a merge request may have changed."""
    return bool(os.environ.get("CI"))


def lies_outside(path: Path | str) -> bool:
    """Whether this is a CI job, and a path leads out of its checkout, or to a file that git itself keeps there.

    The checkout is the nearest folder around the working directory that has `.git`, or the working directory.
    """
    return in_ci() and not _is_inside(path, _checkout())


def leads_out(path: Path | str) -> bool:
    """Whether this is a CI job, and a path goes through its checkout and leads out again: only links do that."""
    if not lies_outside(path):
        return False
    top = _checkout()
    return any(_is_inside(folder, top) for folder in Path(os.path.abspath(path)).parents)  # noqa: PTH100 - without `..`


def tracked(files: Sequence[Path]) -> list[Path]:
    """Return the paths that git tracks, or that are below a tracked link or submodule.

    Raises:
        ConfigurationError: git fails.
    """
    top = repository(Path())
    if top is None or not files:
        return []
    try:
        done = git(top, ["ls-files", "-z"])
    except OSError:
        raise ConfigurationError("which files are committed is not known: git is not installed here") from None
    if done.returncode:
        raise ConfigurationError(f"which files are committed is not known: {os.fsdecode(done.stderr).strip()}")
    names = {top / os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    return [path for path in files if not names.isdisjoint(_ways_to(path))]


def _ways_to(path: Path) -> set[Path]:
    """Return a path and the folders above it, as written and as the file system has them."""
    ways = (Path(os.path.abspath(path)), Path(os.path.realpath(path)))  # noqa: PTH100 - without `..`
    return {folder for way in ways for folder in (way, *way.parents)}


def _checkout() -> Path:
    return repository(Path()) or Path.cwd()


def _is_inside(path: Path | str, top: Path) -> bool:
    real = Path(os.path.realpath(path))
    return real.is_relative_to(top) and REPOSITORY not in real.relative_to(top).parts
