"""The authors of lines of the manifests, by `git blame`. Begin with `line_authors`."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from reconciler.system.processes import git, repository

HEADER = re.compile(r"(?P<commit>[0-9a-f]{40,64}) [0-9]+ (?P<line>[0-9]+)(?: [0-9]+)?")
"""The first line about each line in git's porcelain format."""

UNCOMMITTED = re.compile(r"0+")


def line_authors(origins: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """Return the author of the last commit that changed each line, and the day (UTC) of that commit.

    Lines that are not committed have no author, and neither have lines of files outside of a repository.

    Args:
        origins: as path:line, relative to the working directory.
    """
    lines: dict[str, set[str]] = {}
    for place in origins:
        path, _, line = place.rpartition(":")
        lines.setdefault(path, set()).add(line)
    top = repository(Path())
    return (
        {}
        if top is None
        else {
            f"{path}:{line}": author
            for path, numbers in lines.items()
            for line, author in _authors(top, Path(path).resolve()).items()
            if line in numbers
        }
    )


def _authors(top: Path, path: Path) -> Mapping[str, tuple[str, str]]:
    """Return the authors of a file by line, with one process; none if git does not track the file."""
    done = git(top, ["blame", "--porcelain", "--", str(path)])
    commits: dict[str, dict[str, str]] = {}
    lines: dict[str, str] = {}
    commit = ""
    for text in done.stdout.decode(errors="replace").split("\n"):
        if header := HEADER.fullmatch(text):
            commit = header["commit"]
            lines[header["line"]] = commit
        elif not text.startswith("\t"):
            key, _, value = text.partition(" ")
            # Git writes the author and time of a commit once, with the first of its lines.
            commits.setdefault(commit, {}).setdefault(key, value)
    return {
        line: (commits[commit]["author"], _day(commits[commit]["author-time"]))
        for line, commit in lines.items()
        if not UNCOMMITTED.fullmatch(commit)
    }


def _day(timestamp: str) -> str:
    return str(datetime.fromtimestamp(int(timestamp), UTC).date())
