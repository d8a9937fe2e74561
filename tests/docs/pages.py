"""The pages that people read, taken apart: files to write, lines to type, and what is then to be seen."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("README.md"),
        *(ROOT / "templates").rglob("README.md"),
    ]
)

SHELL = ("bash", "console")
"""How blocks are marked that are typed into a shell; a `console` shows what is answered, a `bash` does not."""

SHOWN = (
    "cron",
    "diff",
    "dockerfile",
    "html",
    "ini",
    "jinja",
    "json",
    "lua",
    "markdown",
    "promql",
    "python",
    "text",
    "toml",
    "yaml",
)
"""How blocks are marked that are only looked at."""

NOT_RUN = re.compile(r"<!-- not run: (.+) -->\s*")
"""Stands before a block that no test runs, with the reason."""

TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page.

    Attributes:
        place: `page:line`.
        language: what it is marked as.
        text: what stands in it, each line ended.
        title: the file that it is, if it is one.
        not_run: why no test runs it; empty for blocks that are run.
    """

    place: str
    language: str
    text: str
    title: str = ""
    not_run: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One line to type, and what is then to be seen: None where the page does not show it."""

    line: str
    shown: str | None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page, in its order; indented ones are shell, as in old READMEs."""
    reason = ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        place = f"{page.relative_to(ROOT)}:{token.map[0] + 1 if token.map else 0}"
        match token.type:
            case "html_block":
                found = NOT_RUN.fullmatch(token.content)
                reason = found[1] if found else ""
            case "code_block":
                yield Block(place, "bash", token.content, "", reason)
                reason = ""
            case "fence":
                language, _, rest = token.info.strip().partition(" ")
                title = TITLE.search(rest)
                yield Block(place, language, token.content, title[1] if title else "", reason)
                reason = ""
            case _ if not token.type.endswith("_open"):
                reason = ""


def steps(block: Block) -> Iterator[Step]:
    """Yield what is to be typed; a line that ends with a backslash goes on in the next."""
    if block.language == "bash":
        for line in _joined(block.text.splitlines()):
            if line and not line.startswith("#"):
                yield Step(line, None)
        return
    prompt, *commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not prompt, f"{block.place}: what is shown before the first `$ `?"
    for command in commands:
        line, *shown = _joined(command.splitlines())
        yield Step(line, "".join(f"{each}\n" for each in shown))


def _joined(lines: list[str]) -> list[str]:
    """Put a line that goes on together: only the first lines of a command do."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1].removesuffix("\\").rstrip() + " " + line.strip()
        else:
            joined.append(line)
    return joined
