"""The box on each page with steps to follow: which service to start, and as whom, so that the page works as printed."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

MARK = "<!-- service: written by `python -m docs` -->\n"
"""The line before the box on a page."""

BOX = re.compile(rf"{re.escape(MARK)}(?:>.*\n)*")

TEXT = """\
> **To follow this page on your own machine**, start the sandbox as the service and work as `ada`, who owns its groups.
> In a new terminal, in a checkout of reconciler, with reconciler [installed](TUTORIAL#install) and its environment
> active (`. .venv/bin/activate`):
>
> ```bash
> mkdir ~/rehearsal && cp -r examples ~/rehearsal && cd ~/rehearsal
> reconciler sandbox --state examples/state.yaml &
> export RECONCILER_API_URL=http://127.0.0.1:8080/api/v4 RECONCILER_TOKEN=ada-token
> ```
>
> To clean up afterwards: `kill $(jobs -p); cd; rm -r ~/rehearsal`, and close the terminal, which forgets its variables.
"""


def pages() -> list[Path]:
    """Return the pages that have the box."""
    folders = [ROOT / name for name in ("docs", "examples")]
    found = sorted(page for folder in folders for page in folder.rglob("*.md"))
    return [page for page in found if MARK in page.read_text(encoding="utf-8")]


def with_box(page: Path, text: str) -> str:
    """Return the text of a page with the current box."""
    tutorial = posixpath.relpath((ROOT / "docs/tutorial.md").as_posix(), page.parent.as_posix())
    return BOX.sub(MARK + TEXT.replace("TUTORIAL", tutorial), text)
