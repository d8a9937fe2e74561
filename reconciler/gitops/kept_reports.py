"""The reports of the last applies in this clone, in `.git/reconciler/reports/`: for `revert`, and their owner alone."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import OutputFailed
from reconciler.system.files import naming, replacing
from reconciler.system.processes import git

MAX_KEPT_REPORTS = 10
"""How many reports are kept."""

REPORT_NAME = re.compile(r"([0-9]{8}T[0-9]{6})-([0-9a-f]{40}|[0-9a-f]{64})\.json")


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A report of this clone.

    Attributes:
        apply: the full ID of the apply, as the log has it.
        path: of the file.
    """

    apply: str
    path: Path


def keep_report(common: Path, apply: str, when: str, text: str) -> Path:
    """Keep the report of an apply, and delete the oldest ones beyond the last ten.

    Args:
        common: the folder with the repository's data; see `common_folder`.
        apply: the full ID of the apply.
        when: its end, as YYYYMMDDTHHMMSS, UTC.
        text: the report as JSON.

    Raises:
        OutputFailed: it could not be written.
    """
    folder = _folder(common)
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{when}-{apply}.json"
    with replacing(path) as write:
        write(text.encode())
    for old in kept_reports(common)[MAX_KEPT_REPORTS:]:
        with naming(old.path):
            old.path.unlink(missing_ok=True)
    return path


def kept_reports(common: Path) -> list[KeptReport]:
    """Return the kept reports, the latest first."""
    try:
        paths = sorted(_folder(common).iterdir(), reverse=True)
    except OSError:
        return []
    return [KeptReport(name[2], path) for path in paths if (name := REPORT_NAME.fullmatch(path.name))]


def report_of(common: Path, apply: str) -> Path | None:
    """Return the report of an apply, by the beginning of its ID; None if there is none, or more than one.

    Raises:
        OutputFailed: others can write there.
    """
    kept = {report.apply: report.path for report in kept_reports(common) if apply and report.apply.startswith(apply)}
    if len(kept) != 1:
        return None
    (path,) = kept.values()
    if path.is_symlink() or path.stat().st_uid != os.geteuid():
        raise OutputFailed(f"{path} is not a file of yours: delete it")
    return path


def common_folder(top: Path) -> Path:
    """Return the folder of a repository's data, which its worktrees share."""
    done = git(top, ["rev-parse", "--path-format=absolute", "--git-common-dir"])
    return Path(os.fsdecode(done.stdout).rstrip("\n"))


def _folder(common: Path) -> Path:
    return common / "reconciler" / "reports"
