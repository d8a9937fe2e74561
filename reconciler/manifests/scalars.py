"""What a plain YAML scalar means, by the core schema of YAML 1.2: `yes` and `2026-12-01` are text."""

import re
from functools import lru_cache

Scalar = str | int | float | bool | None

LONGEST_NUMBER = 300
"""Digits beyond which nobody means a number (and Python would refuse to print it)."""

MAY_BE_OTHER_THAN_TEXT = frozenset("-+.0123456789~nNtTfF")
"""The first characters of everything that is not text; the empty scalar, which is null, has none."""

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
BASES = {"0o": 8, "0x": 16}

CORE = "tag:yaml.org,2002:"
TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "null": (type(None),),
}


@lru_cache(maxsize=8192)
def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar without a tag.

    Raises:
        ValueError: a number too long to be one.
    """
    if text in WORDS:
        return WORDS[text]
    integer = INTEGER.fullmatch(text)
    if not integer and not FLOAT.fullmatch(text):
        return float(text.replace(".", "").lower()) if SPECIAL_FLOAT.fullmatch(text) else text
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of more than {LONGEST_NUMBER} characters: quote it if it is meant as text")
    return int(text[2:], BASES[text[:2]]) if text[:2] in BASES else int(text) if integer else float(text)


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar that bears a tag.

    Raises:
        ValueError: a tag other than those of the core schema, or text that the tag does not fit.
    """
    name = tag.removeprefix(CORE)
    if tag == "!" or (tag.startswith(CORE) and name == "str"):
        return text
    if not tag.startswith(CORE) or name not in TYPES:
        raise unknown_tag(tag)
    value = resolve(text)
    if not isinstance(value, TYPES[name]) or (isinstance(value, bool) and name != "bool"):
        raise ValueError(f"the tag `!!{name}` does not fit this value")
    return float(value) if name == "float" and isinstance(value, int) else value


def unknown_tag(tag: str) -> ValueError:
    """Return the error that says that manifests know no such tag."""
    shown = "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag
    return ValueError(f"unknown tag `{shown}`: manifests are plain YAML, leave the tag out")
