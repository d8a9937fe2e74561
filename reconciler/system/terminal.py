"""Text made safe to show: no control sequences, no reversed text, no commands for the log of a CI job.

Begin with `escaped`.
"""

import json
import re
from itertools import pairwise
from unicodedata import category, is_normalized

SPECIAL = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that are always escaped: controls, bidi and other format marks, line separators."""

COMMAND = re.compile(r"(?<=#)#(?=\w*\[)|(?<!\S):(?=:[A-Za-z])")
"""The character that makes a command of a log line: in `##vso[`, `##teamcity[`, `##[`, and `::error`."""


def escaped(text: str) -> str:
    r"""Return text with special characters escaped as in JSON, such as \u202e, and without commands of CI logs.

    Characters that Unicode normalisation would change are escaped too, so that names that look the same differ.
    """
    if not is_normalized("NFC", text):
        neighbours = pairwise(("", *text))
        text = "".join(
            _as_json(character) if _is_composed(last, character) else character for last, character in neighbours
        )
    if not text.isprintable():
        text = "".join(_as_json(character) if category(character) in SPECIAL else character for character in text)
    return COMMAND.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escaped_lines(text: str) -> str:
    """Return text with each of its lines `escaped`."""
    return "\n".join(map(escaped, text.split("\n")))


def _is_composed(previous: str, character: str) -> bool:
    """Whether Unicode's composed form (NFC) replaces this character, alone or with the previous character."""
    alone = is_normalized("NFC", character)
    return not alone or (is_normalized("NFC", previous) and not is_normalized("NFC", previous + character))


def _as_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def blanked(text: str) -> str:
    """Return text of the same width, with blanks for special characters and commands."""
    if not text.isprintable():
        text = "".join(" " if category(character) in SPECIAL else character for character in text)
    return COMMAND.sub(" ", text)
