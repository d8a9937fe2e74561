"""The checkout of a CI job: what a merge request names is read only there, for beside it lie the job's secret files."""

import os
from pathlib import Path

from reconciler.system.processes import repository

REPOSITORY = ".git"
LEADS_OUT = (
    "is a link, or behind one, that leads out of the checkout: a CI job reads nothing there; commit the file itself"
)


def lies_outside(path: Path | str) -> bool:
    """Whether this is a CI job, and a path leads to something outside of its checkout, or to what git keeps there.

    The checkout is the nearest folder around the working directory that has `.git`, or the working directory.
    """
    return bool(os.environ.get("CI")) and not _is_inside(path, _checkout())


def leads_out(path: Path | str) -> bool:
    """Whether this is a CI job, and a path goes through its checkout and leads out of it: only links do."""
    if not lies_outside(path):
        return False
    top = _checkout()
    return any(_is_inside(folder, top) for folder in Path(os.path.abspath(path)).parents)  # noqa: PTH100 - without `..`


def _checkout() -> Path:
    return repository(Path()) or Path.cwd()


def _is_inside(path: Path | str, top: Path) -> bool:
    real = Path(os.path.realpath(path))
    return real.is_relative_to(top) and REPOSITORY not in real.relative_to(top).parts
