"""The index of messages, from the mistakes that the tests make."""

import re
from collections.abc import Iterator
from pathlib import Path

from docs.tables import table

MISTAKES = Path(__file__).parent.parent / "tests" / "cli" / "mistakes.txt"

MESSAGE = re.compile(
    r"^(?:reconciler: (?:[\w./-]+:[0-9]+:[0-9]+: )?|[\w./-]+:[0-9]+:[0-9]+: | +[!=] |No \w+ posted: )(.+)$", re.M
)
"""A line with a message, behind what says where it is from."""


def messages() -> str:
    """Return the page: each mistake with the first message about it."""
    rows = ((title, f"`{message}`") for title, message in _mistakes())
    return (
        "# Messages\n\n"
        "A message says what is wrong, where, and what to do. Here are mistakes that people make, each with the "
        "message about it; the tests make each of them, and compare the whole answer.\n\n"
        + table(["mistake", "message"], rows)
    )


def _mistakes() -> Iterator[tuple[str, str]]:
    for part in MISTAKES.read_text(encoding="utf-8").split("\n=== ")[1:]:
        title, _, rest = part.partition("\n")
        message = MESSAGE.search(rest.partition("\n$ ")[2].partition("\n")[2])
        if message:
            yield title, message[1].partition("     ")[0].replace("`", "'")
