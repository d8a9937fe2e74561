"""The pages for people, parsed: files to write, lines to run, and the output that follows."""

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
"""The languages of blocks whose lines are run; a `console` shows their output, a `bash` does not."""

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
"""The languages of blocks that are only shown."""

NOT_RUN = re.compile(r"<!-- not run: (.+) -->\s*")
"""The comment before a block that no test runs, with the reason."""

TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page.

    Attributes:
        place: `page:line`.
        language: as its first line names it.
        text: its lines, each with its end.
        title: the file to write it to, if any.
        not_run: why no test runs it; empty if it is run.
    """

    place: str
    language: str
    text: str
    title: str = ""
    not_run: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One line to run, and its output; None if the page does not show the output."""

    line: str
    shown: str | None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page, in order; an indented block is shell."""
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
    """Yield the lines to run; a line that ends with a backslash continues on the next."""
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
    """Join continued lines; only the first lines of a command are continued."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1].removesuffix("\\").rstrip() + " " + line.strip()
        else:
            joined.append(line)
    return joined
