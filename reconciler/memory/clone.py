"""The data that a clone keeps of its applies, in `.git/reconciler/`: the last reports, and marks of runs.

A run that writes has a mark, which is locked as long as its process lives. An unlocked mark is that of a killed run,
which has neither a report nor an entry in the log. Begin with `Clone`.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import which

from reconciler.errors import OutputFailed, ReconcilerError
from reconciler.memory.apply_log import KilledRun
from reconciler.system.files import append_line, naming, open_own, replacing
from reconciler.system.processes import git, repository

MAX_KEPT_REPORTS = 10
"""How many reports are kept."""

REPORT_NAME = re.compile(r"([0-9]{8}T[0-9]{6})-([0-9a-f]{40}|[0-9a-f]{64})\.json")


@dataclass(frozen=True, slots=True)
class Clone:
    """The data of a clone, readable for its owner alone; worktrees of the clone share it.

    Attributes:
        folder: `reconciler` in the data folder of the repository.
    """

    folder: Path

    @property
    def reports(self) -> Mapping[str, Path]:
        """The kept reports by the full IDs of their applies, the latest first."""
        try:
            paths = sorted((self.folder / "reports").iterdir(), reverse=True)
        except OSError:
            return {}
        return {name[2]: path for path in paths if (name := REPORT_NAME.fullmatch(path.name))}

    def keep_report(self, apply: str, when: datetime, text: str) -> Path:
        """Keep the report of an apply, and delete all but the last ten.

        Args:
            apply: the full ID of the apply.
            when: its end, UTC.
            text: the report as JSON.

        Raises:
            OutputFailed: the report could not be written.
        """
        folder = self.folder / "reports"
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / report_name(apply, when)
        with replacing(path) as write:
            write(text.encode())
        for old in [*self.reports.values()][MAX_KEPT_REPORTS:]:
            with naming(old):
                old.unlink(missing_ok=True)
        return path

    def report_of(self, apply: str) -> Path | None:
        """Return the report of an apply, by the beginning of its ID; None if there is no report, or more than one.

        Raises:
            OutputFailed: the report belongs to another user.
        """
        kept = [path for name, path in self.reports.items() if apply and name.startswith(apply)]
        if len(kept) != 1:
            return None
        (path,) = kept
        # `revert` writes the values of a report to the service: another user must not be able to provide them.
        if path.is_symlink() or path.stat().st_uid != os.geteuid():
            raise OutputFailed(f"{path} is not a file of yours: delete it")
        return path

    @property
    def killed(self) -> list[KilledRun]:
        """The runs that were killed since the last run that ended, the latest first."""
        runs = (_read(path) for path in reversed(self._unlocked_marks))
        return [run for run in runs if run]

    @contextmanager
    def marked(self, run: KilledRun) -> Iterator[None]:
        """Mark a run while this block writes.

        At its end, the marks of killed runs are removed too; after an error, which the run itself reports, they are
        kept. If the mark cannot be written, the run goes on without a mark.

        Args:
            run: the entry of the log if this run is killed.
        """
        handle, path = None, self.folder / "runs" / f"{run.began_at:%Y%m%dT%H%M%S%f}-{os.getpid()}.json"
        with suppress(OutputFailed, OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = open_own(path)
            # The kernel releases the lock however the process ends, also after SIGKILL.
            fcntl.flock(handle, fcntl.LOCK_EX)
            append_line(handle, json.dumps([run.began_at.isoformat(), run.manifests, run.reverts]))
        try:
            yield
            _remove(path, *self._unlocked_marks)
        except ReconcilerError:
            _remove(path)
            raise
        finally:
            if handle is not None:
                os.close(handle)

    @property
    def _unlocked_marks(self) -> list[Path]:
        """The marks that no process has locked, the oldest first.

        They are ordered by the time of the file: their names have the time of the service, which has whole seconds
        only.
        """
        with suppress(OSError):
            marks = (path for path in (self.folder / "runs").iterdir() if not _is_locked(path))
            return sorted(marks, key=lambda path: path.stat().st_mtime_ns)
        return []


def report_name(apply: str, when: datetime) -> str:
    """Return the name of the file that keeps the report of an apply, by its full ID and its end."""
    return f"{when:%Y%m%dT%H%M%S}-{apply}.json"


def current_clone() -> Clone | None:
    """Return the clone that contains the working directory; None outside of a clone, and without git."""
    top = repository(Path())
    return None if top is None or which("git") is None else clone_of(top)


def clone_of(top: Path) -> Clone:
    """Return the clone of a checkout, by its top folder."""
    done = git(top, ["rev-parse", "--path-format=absolute", "--git-common-dir"])
    return Clone(Path(os.fsdecode(done.stdout).rstrip("\n")) / "reconciler")


def _remove(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _is_locked(path: Path) -> bool:
    with path.open("rb") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _read(path: Path) -> KilledRun | None:
    """Return a run by its mark; None if the mark is incomplete."""
    try:
        began_at, manifests, reverts = json.loads(path.read_text(encoding="utf-8"))
        return KilledRun(datetime.fromisoformat(began_at).astimezone(UTC), str(manifests), str(reverts))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None
