"""The table `CODES`: one row for each code of a finding or of a note in a plan. Pure.

All formats follow these rows, in their order. A code without a form of its own, or without a row (`UNKNOWN`), is a
remark: all formats for people show its sentence and its fix.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Shown = Literal["always", "verbose", "never"]


@dataclass(frozen=True, slots=True)
class Code:
    """The display rules of all findings or notes with one code.

    Attributes:
        noun: the noun for counts, such as `problem`.
        sign: the marker of its line.
        phrase: the beginning of its reason, which is shown beside the object's name; the remainder is in the next
            column.
        counted: its key in the summary; empty if the summary does not count it.
        blocks: whether the object of the finding is not planned.
        exit_code: the exit code of a plan that has one.
        drifts: whether `drift` counts it.
        shown: whether text shows it always, with `--verbose`, or never.
        by_reason: of a finding: whether equal reasons are shown together, whatever their objects are.
        separates: of a note: whether changes that differ in it are not equal.
        planned: whether it is about the future, so that the report of an apply does not repeat it.
        own_form: of a finding: whether formats show it in a form of its own, such as a card; else it is a remark.
        warns: of a finding: whether `doctor` warns of it.
    """

    noun: str
    sign: str = "="
    phrase: str = ""
    counted: str = ""
    blocks: bool = False
    exit_code: int = 0
    drifts: bool = False
    shown: Shown = "always"
    by_reason: bool = False
    separates: bool = False
    planned: bool = False
    own_form: bool = False
    warns: bool = False


UNKNOWN = Code("remark")

CODES: Mapping[str, Code] = {
    # findings about a target, a section or an object
    "problem": Code(
        "problem", "!", counted="problems", blocks=True, exit_code=3, drifts=True, by_reason=True, own_form=True
    ),
    "excepted": Code("excepted change", counted="excepted", own_form=True),
    "widened": Code("object that applies more widely", "~", planned=True, own_form=True),
    "unmanaged": Code("unmanaged object", "?", "is unmanaged", counted="unmanaged", shown="verbose", own_form=True),
    "not_applicable": Code(
        "section that is not applicable",
        "?",
        "is not applicable",
        counted="not_applicable",
        shown="verbose",
        by_reason=True,
        own_form=True,
    ),
    "inherited": Code("inherited object", "=", "is inherited", shown="verbose", planned=True, own_form=True),
    "hidden": Code(
        "list with entries that this token cannot see",
        "=",
        "keeps {field}",
        shown="verbose",
        planned=True,
        own_form=True,
    ),
    "flaw": Code("rule that nobody can fulfil", "?", by_reason=True, planned=True, warns=True),
    "closed": Code("branch that nobody may push or merge into", "?", by_reason=True, planned=True, warns=True),
    "undermined": Code("rule that another one undermines", "?", by_reason=True, planned=True, warns=True),
    "restored": Code("change that was put back", planned=True, own_form=True),
    "adopted": Code("object of somebody else", "=", "is adopted", planned=True),
    "doomed": Code("entry for a group or project whose deletion is scheduled", "?"),
    # findings about the run
    "rename": Code("possible rename", own_form=True),
    "stays": Code("remark on the inventory", own_form=True),
    # notes on changes
    "effect": Code("effect on protection", separates=True),
    "renamed": Code("rename on the service", separates=True),
    "hint": Code("hint", separates=True),
    "at_least": Code("minimum", separates=True),
    "unused_names": Code("former name that no object has", separates=True),
    "loss": Code("loss", shown="verbose"),
    "page": Code("web page", shown="never"),
    "source": Code("source", shown="never"),
    "changed_by": Code("author"),
}


_PLACES = {name: place for place, name in enumerate(CODES)}


def code_of(name: str) -> Code:
    """Return the row of a code; `UNKNOWN` if there is none."""
    return CODES.get(name, UNKNOWN)


def place_of(name: str) -> int:
    """Return the position of a code in the table; a code without a row comes last."""
    return _PLACES.get(name, len(_PLACES))
