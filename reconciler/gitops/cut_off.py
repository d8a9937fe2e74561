"""The runs of this clone that write: `.git/reconciler/runs/` has a mark of each, locked as long as its process lives.

A mark that nobody holds is of a run that was killed: neither the log nor a report tells of it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reconciler.errors import OutputFailed, ReconcilerError
from reconciler.system.files import append_line, open_own


@dataclass(frozen=True, slots=True)
class CutOff:
    """A run that has begun to write, and has not ended.

    Attributes:
        began_at: UTC.
        manifests: the full ID of the commit that it applied; empty if there is none.
        reverts: see `apply_log.Apply`.
    """

    began_at: datetime
    manifests: str = ""
    reverts: str = ""


@contextmanager
def marked(common: Path, run: CutOff) -> Iterator[None]:
    """Mark a run while this block writes. When it ends, the marks of runs that were cut off go too.

    After an error, which has told of the run, they stay. Where no mark can be written, there is none.

    Args:
        common: the folder with the repository's data; see `kept_reports.common_folder`.
        run: as it begins.
    """
    handle, path = None, _folder(common) / f"{run.began_at:%Y%m%dT%H%M%S%f}-{os.getpid()}.json"
    with suppress(OutputFailed, OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = open_own(path)
        fcntl.flock(handle, fcntl.LOCK_EX)
        append_line(handle, json.dumps([run.began_at.isoformat(), run.manifests, run.reverts]))
    try:
        yield
        _remove(path, *_left(common))
    except ReconcilerError:
        _remove(path)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def runs_cut_off(common: Path) -> list[CutOff]:
    """Return the runs that were killed since the last one that came to its end, the latest first."""
    runs = (_read(path) for path in reversed(_left(common)))
    return [run for run in runs if run]


def _remove(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _left(common: Path) -> list[Path]:
    """Return the marks that no process holds."""
    with suppress(OSError):
        return sorted(path for path in _folder(common).iterdir() if not _is_held(path))
    return []


def _is_held(path: Path) -> bool:
    with path.open("rb") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _read(path: Path) -> CutOff | None:
    """Return a run by its mark; None if the mark is not whole."""
    try:
        began_at, manifests, reverts = json.loads(path.read_text(encoding="utf-8"))
        return CutOff(datetime.fromisoformat(began_at).astimezone(UTC), str(manifests), str(reverts))
    except (OSError, ValueError, TypeError):
        return None


def _folder(common: Path) -> Path:
    return common / "reconciler" / "runs"
