"""Markdown that strings from elsewhere cannot break out of, and notes that grow no longer than they may."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from reconciler.render._wording import counted
from reconciler.system.terminal import escaped

LIMIT = 60_000
"""How many characters a note may have."""

NOTICE = 500
"""How many of them are kept free to tell what was left out."""

LONGEST = 300
"""How many characters of one name, reason or line are shown."""


@dataclass(frozen=True, slots=True)
class Block:
    """Entries that are shown together.

    Attributes:
        noun: what an entry is, such as `problem`.
        opening: stands above the entries, where any is shown.
        entries: each ends its last line.
        closing: stands below them.
    """

    noun: str
    opening: str
    entries: tuple[str, ...]
    closing: str = "\n"

    def __str__(self) -> str:
        """The whole block."""
        return f"{self.opening}{''.join(self.entries)}{self.closing}" if self.entries else ""


def collapsible(summary: str, noun: str, language: str, entries: Iterable[str], *, is_open: bool) -> Block:
    """Return a block that opens and closes when its summary is clicked.

    Args:
        summary: HTML.
        noun: what an entry is.
        language: by which the entries are coloured.
        entries: lines that begin with a sign of ours, so that none of them ends the fenced block they stand in.
        is_open: whether it is open at first.
    """
    opening = f"<details{' open' if is_open else ''}>\n<summary>{summary}</summary>\n\n```{language}\n"
    return Block(noun, opening, tuple(entries), "```\n\n</details>\n\n")


def code(text: str) -> str:
    """Return text as inline code, in which Markdown, HTML, mentions and references mean nothing."""
    text = clipped(text) or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text.strip(" ") and (text[0] in "` " or text[-1] in "` ") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def code_in_html(text: str) -> str:
    """Return text as code for the HTML in Markdown: all that could mean anything is a character reference."""
    safe = re.sub(r"[^\w ./-]", lambda each: f"&#{ord(each[0])};", clipped(text))
    return f"<code>{safe}</code>"


def clipped(text: str) -> str:
    """Return text without special characters, shortened if it is very long."""
    text = escaped(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def fitted(head: str, blocks: Iterable[Block], limit: int = LIMIT) -> str:
    """Return a note: all blocks, or as many of their first entries as there is room for, and how many are missing.

    Args:
        head: always shown.
        blocks: the most important first.
        limit: the most characters of the note.
    """
    blocks = tuple(blocks)
    whole = head + "".join(map(str, blocks))
    if len(whole) <= limit:
        return whole.rstrip("\n") + "\n"
    parts = tuple(_beginning(blocks, limit - len(head) - NOTICE))
    return f"{head}{_notice(blocks, parts)}{''.join(map(str, parts))}".rstrip("\n") + "\n"


def _beginning(blocks: Iterable[Block], room: int) -> Iterator[Block]:
    """Yield the blocks, all without entries from the first entry on for which there is no room."""
    for block in blocks:
        sizes = accumulate(map(len, block.entries), initial=len(block.opening) + len(block.closing))
        number = max(0, sum(size <= room for size in sizes) - 1)
        part = replace(block, entries=block.entries[:number])
        yield part
        room = room - len(str(part)) if number == len(block.entries) else 0


def _notice(blocks: Iterable[Block], parts: Iterable[Block]) -> str:
    left_out, all_of = Counter[str](), Counter[str]()
    for block, part in zip(blocks, parts, strict=True):
        left_out[block.noun] += len(block.entries) - len(part.entries)
        all_of[block.noun] += len(block.entries)
    missing = [f"{number} of {counted(all_of[noun], noun)}" for noun, number in left_out.items() if number]
    return f"**Shortened: {', '.join(missing)} left out here.** The other reports of this run have all of it.\n\n"
