"""Write pages and pictures that come from the code, and the version where pages name it."""

import re
from pathlib import Path

from docs.picture import picture
from docs.reference import pages
from reconciler import __version__

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent

RELEASE = re.compile(r"(?P<of>rev: v|/(gitops(-sharded)?|fleet)@v|/reconciler:)(?P<version>[0-9.]+)")
"""How a page names a release: its tag, its component, its image."""

NAMING = (
    FOLDER / "how-to" / "existing-group.md",
    FOLDER / "how-to" / "your-machine.md",
    ROOT / "templates" / "README.md",
    ROOT / "examples" / "ci" / "fleet.gitlab-ci.yml",
    ROOT / "examples" / "ci" / "github.yml",
)


def generated() -> dict[Path, str]:
    """Return the text of each file that is generated, or names the version."""
    return {
        FOLDER / "plan.svg": picture(),
        **{FOLDER / "reference" / name: text for name, text in pages().items()},
        **{file: _of_this_release(file.read_text(encoding="utf-8")) for file in NAMING},
    }


def _of_this_release(text: str) -> str:
    return RELEASE.sub(lambda found: found["of"] + __version__, text)


if __name__ == "__main__":
    for path, content in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
