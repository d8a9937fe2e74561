"""The picture of a plan: the output of `reconciler plan` for the manifest in the README, as an SVG of text."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler import __version__
from reconciler.document.document import RunDocument
from reconciler.document.plans import with_plan
from reconciler.document.style import Style
from reconciler.engine.plan import draw_plan
from reconciler.kinds import all_kinds
from reconciler.manifests import Inputs, read_manifests
from reconciler.model.plan import Plan
from reconciler.reports import render_plan
from reconciler.sandbox import running
from reconciler.service import Client

ROOT = Path(__file__).parent.parent

MANIFEST = re.compile(r'```yaml title="manifests/\w+\.yaml"\n(.*?)```', re.DOTALL)

COLUMNS = 100
WIDTH, HEIGHT = 8.4, 20
"""Of one character, in pixels."""

CLASSES = {
    "32": "create", "33": "update", "31": "delete", "1;35": "problem", "1;33": "caution", "1": "target", "2": "origin",
    "0": "",
}  # fmt: skip

STYLE = """
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
  rect { fill: #f6f8fa; stroke: #d1d9e0 }
  .create { fill: #116329 } .update, .caution { fill: #7d4e00 } .delete { fill: #a40e26 } .problem { fill: #8250df }
  .origin { fill: #59636e }
  .target, .problem, .caution { font-weight: bold }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } rect { fill: #151b23; stroke: #3d444d }
    .create { fill: #56d364 } .update, .caution { fill: #e3b341 } .delete { fill: #ff7b72 } .problem { fill: #d2a8ff }
    .origin { fill: #9198a1 }
  }
"""


def picture() -> str:
    """Return the SVG."""
    lines = ["\x1b[1m$ reconciler plan manifests\x1b[0m", *the_plan().splitlines()]
    width, height = COLUMNS * WIDTH + 32, len(lines) * HEIGHT + 28
    plain = escape(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" role="img">\n'
        f"<title>What reconciler plan prints</title>\n<desc>{plain}</desc>\n<style>{STYLE}</style>\n"
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1}" rx="6"/>\n'
        + "".join(f"{run}\n" for number, line in enumerate(lines) for run in _runs(line, 30 + number * HEIGHT))
        + "</svg>\n"
    )


def the_plan() -> str:
    """Return the plan for the README's manifest as a terminal of `COLUMNS` columns shows it."""
    kinds = all_kinds()
    with TemporaryDirectory() as folder, running(ROOT / "examples/state.yaml") as sandbox:
        file = Path(folder, "api.yaml")
        file.write_text(the_manifest(), encoding="utf-8")
        manifests = read_manifests(Inputs([file], kinds))
        desired = manifests.desired
        with Client(sandbox.api_url, "ada-token") as client:
            plan = draw_plan(desired, client, kinds)
            empty = RunDocument(
                service=client.api_url,
                created_at=datetime.now(UTC),
                tool_version=__version__,
                manifests_digest=desired.digest,
                requests_made=client.traffic.reads,
            )
            targets = tuple(
                target.with_origins(lambda *place: f"manifests/{Path(manifests.origin(*place)).name}")
                for target in plan.targets
            )
            saved = with_plan(empty, Plan(targets))
    return render_plan(saved, "text", Style(colour=True, width=COLUMNS, deletions_last=True))


def the_manifest() -> str:
    """Return the manifest in the README."""
    found = MANIFEST.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if found is None:
        raise LookupError("the README shows no manifest")
    return found[1]


def _runs(line: str, y: int) -> Iterator[str]:
    """Yield the words of a line, each at its column, whatever the font."""
    kind, column = "", 0
    for part in re.split(r"(\x1b\[[\d;]*m)", line):
        if part.startswith("\x1b"):
            kind = CLASSES[part[2:-1]]
            continue
        for word in re.finditer(r"\S+(?: \S+)*", part):
            at, length = 16 + (column + word.start()) * WIDTH, len(word[0]) * WIDTH
            marked = f' class="{kind}"' if kind else ""
            yield f'<text x="{at:g}" y="{y}" textLength="{length:g}"{marked}>{escape(word[0], quote=False)}</text>'
        column += len(part)
