"""Print the section of the changelog about the version that a tag names, and refuse a tag that is not the version."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def version(root: Path) -> str:
    """Return the version that pyproject.toml takes: that of the package.

    Raises:
        ValueError: the package has none.
    """
    named = re.search(r'^__version__ = "(.+)"$', (root / "reconciler" / "__init__.py").read_text(), re.MULTILINE)
    if named is None:
        raise ValueError("reconciler/__init__.py has no version")
    return named[1]


def section(changelog: str, released: str) -> str:
    """Return the text below the heading of a version, such as `## 0.1.0` or `## 0.1.0 - 2026-11-24`.

    Raises:
        ValueError: there is no such heading, or nothing below it.
    """
    parts = re.split(r"^## (\S+).*\n", changelog, flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2], strict=True)).get(released, "").strip()
    if not text:
        raise ValueError(f"CHANGELOG.md has no section {released}: rename Unreleased, and begin a new one")
    return f"{text}\n"


def main(tag: str, root: Path = ROOT) -> int:
    """Print the section, and return the exit code."""
    try:
        released = version(root)
        if tag != f"v{released}":
            raise ValueError(f"the tag {tag} is not v{released}, the version of reconciler/__init__.py")
        text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), released)
    except ValueError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a script
        return 1
    print(text, end="")  # noqa: T201 - likewise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
