"""What the YAML parser complains of, in our words and at its place."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

UNCLOSED_TEXT = "the quoted text begun on line {line} is not closed"
TRANSLATIONS = (
    ("mapping values are not allowed", "a colon may not stand here: quote the text it is in, or check the indentation"),
    ("could not find expected ':'", "a key needs a colon and a space behind it; or check the indentation"),
    ("unknown escape character", "there is no such escape: use single quotes, or write `\\\\` for a backslash"),
    ("invalid Unicode character escape", "this escape stands for no character"),
    ("hexdecimal number", "this escape needs more hexadecimal digits"),
    ("hexadecimal number", "this escape needs more hexadecimal digits"),
    ("unexpected end of stream", UNCLOSED_TEXT),
    ("unexpected document", UNCLOSED_TEXT),
    ("node content", "a value is missing here, or a bracket is not closed"),
    ("<document start>", "this does not belong to what stands before it: check the indentation"),
    ("or ']'", "the list begun on line {line} is not closed: `]` is missing, or a comma"),
    ("or '}'", "the mapping begun on line {line} is not closed: `}}` is missing, or a comma"),
    ("undefined tag handle", "unknown tag: manifests are plain YAML, leave the tag out"),
    ("incompatible YAML document", "manifests are YAML 1.2: leave the %YAML line out"),
    ("unknown directive", "`%` begins a directive: quote the text if it is meant as text"),
    ("expected key", "a key and a colon were expected here: check the indentation of the mapping begun on line {line}"),
    ("'-' indicator", "an entry `- ...` was expected here: check the indentation of the list begun on line {line}"),
    ("expected <block end>", "this does not belong to what was begun on line {line}: check the indentation"),
    ("sequence entries are not allowed", "a list entry `- ...` may not stand here: put it on its own line"),
    ("comment or line break", "text behind `|` or `>` begins on the next line"),
    ("chomping or indentation", "text behind `|` or `>` begins on the next line"),
    ("while scanning an alias", "`*` begins an alias: quote the text if it is meant as text"),
    ("while scanning an anchor", "`&` begins an anchor: quote the text if it is meant as text"),
)
"""What libyaml, or PyYAML's own parser, says, in part, and how we say it."""


@dataclass(frozen=True, slots=True, order=True)
class Flaw:
    """One thing wrong with a text, with its place (line and column from 1, in characters)."""

    line: int
    column: int
    message: str


def explain(error: yaml.YAMLError | UnicodeEncodeError, text: str) -> Flaw:
    """Return what the parser, or the encoding of the text for it, complains of."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return _unprintable(text)
    line, column = _within(text, error.problem_mark.line + 1, error.problem_mark.column + 1)
    begun = error.context_mark.line + 1 if error.context_mark else line
    character = line_at(text, line)[column - 1 : column]
    return Flaw(line, column, _message(str(error.problem), str(error.context), begun, character))


def line_at(text: str, line: int) -> str:
    """Return the text of a line, empty beyond the end."""
    lines = _lines(text)
    return lines[line - 1] if line <= len(lines) else ""


@lru_cache(maxsize=16)
def _lines(text: str) -> list[str]:
    """Take a text apart once, for there may be as many flaws as lines."""
    return LINE_BREAK.split(text)


def _within(text: str, line: int, column: int) -> tuple[int, int]:
    """Return the place, or, beyond the last line with anything on it, the end of that line."""
    lines = LINE_BREAK.split(text.rstrip())
    return (line, column) if line <= len(lines) else (len(lines), len(lines[-1]) + 1)


def _message(problem: str, context: str, begun: int, character: str) -> str:
    if "cannot start any token" in problem:
        return _wrong_beginning(character)
    for part, translation in TRANSLATIONS:
        if part in problem or part in context:
            return translation.format(line=begun)
    return f"not YAML: {problem}"


def _wrong_beginning(character: str) -> str:
    if character == "\t":
        return "a tab may not indent: use spaces"
    return f"a value may not begin with {character} : quote it"


def _unprintable(text: str) -> Flaw:
    found: Any = NOT_PRINTABLE.search(text)
    before = LINE_BREAK.split(text[: found.start()])
    message = f"the character U+{ord(found.group()):04X} may not stand in YAML: leave it out"
    return Flaw(len(before), len(before[-1]) + 1, message)
