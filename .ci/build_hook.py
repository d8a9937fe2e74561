"""A build hook of hatchling: the packages name the commit that they were built from, in reconciler/COMMIT."""

import os
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "reconciler/COMMIT"


class CommitHook(BuildHookInterface[Any]):
    """Adds the file; a package that is built from another one has it already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built. An editable installation is a checkout, and has none."""
        commit = commit_of(Path(self.root))
        if version != "editable" and commit and not (Path(self.root) / NAME).exists():
            file = Path(mkdtemp()) / "COMMIT"
            file.write_text(f"{commit}\n", encoding="utf-8")
            build_data["force_include"][str(file)] = NAME


def commit_of(root: Path) -> str:
    """Return the commit of a checkout, or, outside of one, that which SOURCE_COMMIT names; empty if none is known."""
    if not (root / ".git").exists():
        return os.environ.get("SOURCE_COMMIT", "").strip()
    named = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "-C", root, "status", "--porcelain", "-uno"], capture_output=True, check=False)
    return f"{named.stdout.strip()}{'+changes' if changed.stdout else ''}" if named.returncode == 0 else ""
