"""Running commands the way a user does, in a folder of their own, against the sandbox."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.sandbox import Sandbox
from tests.states import a_small_service

BREAK = '<span class="break"></span>'
"""Where a page breaks long names."""

ORIGIN = re.compile(r"(?<=\w|\") {5}\S+(?: and \d+ more)?$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def changes(self) -> str:
        """Standard output without the places where manifests declare what is changed."""
        return ORIGIN.sub("", self.out)


@dataclass
class CliRunner:
    """A user with a folder, an environment, and the sandbox as the service."""

    folder: Path
    sandbox: Sandbox
    _run: Callable[[list[str]], Ended]

    def __call__(self, line: str, *more: str) -> Ended:
        """Run a command; the line is split at blanks."""
        return self._run([*line.split(), *more])

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def project(self, spec: str, path: str = "acme/api", name: str = "manifests/project.yaml") -> None:
        """Write a manifest of one project."""
        self.write(name, f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}}}\nspec: {spec}\n")

    def service(self, **changes: Any) -> None:
        """Give the sandbox its small service, with some fields of `acme/api` changed."""
        state = a_small_service("deployed")
        state["projects"][0] |= changes
        self.sandbox.replace_state(state)
