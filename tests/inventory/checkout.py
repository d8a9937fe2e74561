"""A clone of a repository of manifests, whose user plans and applies by the command line."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reconciler.memory.absence import SHORT_SHA_LENGTH
from reconciler.memory.apply_log import Apply
from reconciler.memory.branch import content, tip, write_commit
from reconciler.memory.store import DEFAULT_COMMITTER, INVENTORY_BRANCH
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY as VARIABLES
from tests.fleet.repository import Repository

REMOTE = "inventory: {remote: origin}\n"
SUMMARIES = ("Plan: ", "No changes: ", "Nothing to do", "Applied: ", "Way back: ", "Reverted: ")


@dataclass(frozen=True)
class Kept:
    """The repository that has the branch of the inventory, bare or not, with the Git directory of which git is run."""

    folder: Path

    def run(self, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run git."""
        command = ["git", f"--git-dir={self.folder}", *arguments]
        return subprocess.run(command, input=sent, env={**os.environ, **VARIABLES}, capture_output=True, check=True)


@dataclass
class Checkout:
    """A clone, or the only repository there is.

    Attributes:
        cli: runs commands in the clone.
        git: the clone.
        commits: by their ID, the names of commits, which outputs show for the IDs; shared by all clones.
    """

    cli: CliRunner
    git: Repository
    commits: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        self.cli.write(name, text)

    def declare(self, spec: str, path: str = "acme/api", name: str = "manifests/project.yaml", more: str = "") -> None:
        """Write the document of a project, with more metadata."""
        head = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}{more}}}\n"
        self.write(name, f"{head}spec: {spec}\n")

    def milestones(self, *titles: str, path: str = "acme/api", name: str = "manifests/project.yaml") -> None:
        """Write the document of a project with some milestones."""
        self.declare(f"{{milestones: {{{', '.join(f'{title}: {{}}' for title in titles)}}}}}", path, name)

    def commit(self, name: str) -> str:
        """Commit everything, and return the ID of the commit."""
        commit = self.git.commit(name)
        self.commits[commit] = name
        return commit

    def run(self, line: str) -> tuple[int, list[str]]:
        """Run a command; return its exit code, and the lines of its outputs without the numbers of a summary."""
        with chdir(self.git.folder):
            done = self.cli(line)
        lines = self.named(done.changes + done.err).splitlines()
        return done.code, [line for line in lines if not line.startswith(SUMMARIES)]

    def plan(self, options: str = "") -> tuple[int, list[str]]:
        """Plan; see `run`."""
        return self.run(f"plan {options}")

    def apply(self, options: str = "") -> tuple[int, list[str]]:
        """Apply; see `run`."""
        return self.run(f"apply --yes {options}")

    def named(self, text: str) -> str:
        """Return a text with the names of commits for their IDs."""
        for commit, name in self.commits.items():
            text = text.replace(commit, f"<{name}>").replace(commit[:SHORT_SHA_LENGTH], f"<{name}>")
        return text

    def live(self, path: str = "acme/api", section: str = "milestones", name: str = "title") -> list[str]:
        """Return the names of the live objects of a project."""
        projects = self.cli.sandbox.state()["projects"]
        return sorted(item[name] for project in projects if project["path"] == path for item in project[section])

    def change(self, change: Callable[[dict[str, Any]], object], path: str = "acme/api") -> None:
        """Change a project behind everybody's back."""
        state = self.cli.sandbox.state()
        change(next(project for project in state["projects"] if project["path"] == path))
        self.cli.sandbox.replace_state(state)

    def inventory(self) -> list[dict[str, Any]]:
        """Return the lines of the list; none if there is no list."""
        return [json.loads(line) for line in self.named(self._text()).splitlines()]

    def listed(self) -> list[str]:
        """Return the listed objects, each with the commit that declared it."""
        lines = self.inventory()
        commits: dict[str, str] = lines[0]["commits"] if lines else {}
        objects = [line for line in lines if "section" in line]
        return [f"{line['target']} {line['name']} {commits.get(str(line.get('at')), '')}".strip() for line in objects]

    def applied(self) -> str:
        """Return the commit whose manifests were applied last, by the list."""
        return next((str(line.get("applied", "")) for line in self.inventory()), "")

    def forge(self, change: Callable[[list[dict[str, Any]]], object]) -> None:
        """Change the lines of the list by hand."""
        lines = [json.loads(line) for line in self._text().splitlines()]
        change(lines)
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        commit = write_commit(self._kept, text, "", Apply(result=0), DEFAULT_COMMITTER)
        self._kept.run(["update-ref", f"refs/heads/{INVENTORY_BRANCH}", commit])

    def clone(self, name: str, *options: str) -> "Checkout":
        """Return another clone of the same remote, in a folder beside this one."""
        folder = self.git.folder.parent / name
        self.git.git("clone", "--quiet", *options, self.remote.as_uri(), str(folder))
        return Checkout(replace(self.cli, folder=folder), Repository(folder), self.commits)

    @property
    def remote(self) -> Path:
        """The folder of the remote."""
        return self.git.folder.parent / "origin.git"

    @property
    def _kept(self) -> Kept:
        return Kept(self.remote if self.remote.exists() else self.git.folder / ".git")

    def _text(self) -> str:
        names = self._kept.run(["for-each-ref", f"refs/heads/{INVENTORY_BRANCH}"]).stdout
        return content(self._kept, INVENTORY_BRANCH, tip(self._kept, INVENTORY_BRANCH)) if names else ""


def first_clone(cli_runner: CliRunner, folder: Path) -> Checkout:
    """Return the first clone of a new remote, where the inventory is kept."""
    made = Repository(folder.parent)
    made.git("init", "--quiet", "--bare", "--initial-branch", "main", str(folder.parent / "origin.git"))
    made.git("clone", "--quiet", (folder.parent / "origin.git").as_uri(), str(folder))
    clone = Checkout(replace(cli_runner, folder=folder), Repository(folder))
    clone.write("reconciler.yaml", REMOTE)
    return clone
