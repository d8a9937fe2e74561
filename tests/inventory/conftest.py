"""Fixtures: a user's folder in a git repository, and its manifests at any revision."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.manifests import Inputs, read_manifests
from reconciler.memory.revision import Revision, read_revision
from reconciler.memory.snapshot import snapshot
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository
from tests.inventory.checkout import Checkout, first_clone


class Folder:
    """A user's folder in a repository."""

    def __init__(self, folder: Path) -> None:
        self.git: Repository = repository(folder)

    def write(self, name: str, text: str) -> None:
        path = self.git.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def project(self, name: str, spec: str, path: str = "acme/api") -> None:
        self.write(name, f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}}}\nspec: {spec}\n")

    def then(self, revision: str, now: Inputs, *, given: tuple[str, ...] = (), shared: bool = True) -> Revision:
        """Return the manifests of a revision."""
        present = read_manifests(now) if shared else None
        return read_revision(snapshot(revision, Path()), now, present, given=given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path / "fleet")
    monkeypatch.chdir(made.git.folder)
    return made


@pytest.fixture
def user(cli_runner: CliRunner, tmp_path: Path) -> Checkout:
    """A user whose repository has no remote."""
    return Checkout(replace(cli_runner, folder=tmp_path / "fleet"), repository(tmp_path / "fleet"))


@pytest.fixture
def clone(cli_runner: CliRunner, tmp_path: Path) -> Checkout:
    """A user whose repository has a remote, where the inventory is kept."""
    return first_clone(cli_runner, tmp_path / "alice")
