"""A real git repository around a user's folder."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

NOBODY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": "2026-03-01T12:00:00Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_COMMITTER_DATE": "2026-03-01T12:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}


@dataclass(frozen=True)
class Repository:
    """A git repository with a checkout."""

    folder: Path

    def git(self, *arguments: str) -> str:
        """Run git and return its output."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **NOBODY},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the ID of the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def repository(folder: Path) -> Repository:
    """Make a folder a git repository."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Repository(folder)
    made.git("init", "--quiet", "--initial-branch", "main")
    return made
