"""Text made safe to show: it can steer no terminal, turn no text around, and command no log of a CI job."""

import json
import re
from unicodedata import category

SPECIAL = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories never shown as they are: controls, bidi and other format marks, line separators."""

COMMAND = re.compile(r"(?<=#)#(?=\w*\[)|(?<!\S):(?=:[A-Za-z])")
"""The character that makes a command for the log of a CI job: in `##vso[`, `##teamcity[`, `##[`, and `::error`."""


def escaped(text: str) -> str:
    r"""Return text with every special character as JSON writes it, such as \u202e, and without commands of CI logs."""
    if not text.isprintable():
        text = "".join(json.dumps(each)[1:-1] if category(each) in SPECIAL else each for each in text)
    return COMMAND.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped_lines(text: str) -> str:
    """Return text with each of its lines `escaped`."""
    return "\n".join(map(escaped, text.split("\n")))


def blanked(text: str) -> str:
    """Return text of the same width, with a blank for whatever `escaped` would change."""
    if not text.isprintable():
        text = "".join(" " if category(each) in SPECIAL else each for each in text)
    return COMMAND.sub(" ", text)
