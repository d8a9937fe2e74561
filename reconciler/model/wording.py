"""Words that several stages need: counts, enumerations, and did-you-mean."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

MAX_VALUE_LENGTH = 60
"""Characters of a value that a message quotes."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 problem`, `2,000 problems`, `2 branches`."""
    plural = "es" if noun.endswith(("ch", "sh", "x")) else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def one(noun: str) -> str:
    """Return a noun with its article: `a milestone`, `an epic`, `a User`."""
    return f"{'an' if noun[0] in 'aeioAEIO' else 'a'} {noun}"


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return `a, b and c`."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else str(end)


def advised(reason: str, remedy: str) -> str:
    """Return a reason, which may be a sentence of the service, and what to do: `does not exist; correct the path`."""
    return f"{reason.removesuffix('.')}; {remedy}" if reason and remedy else reason or remedy


def short(text: str) -> str:
    """Return the text, cut if it is long."""
    return text if len(text) <= MAX_VALUE_LENGTH else text[:MAX_VALUE_LENGTH] + "..."


def unknown(what: str, word: str, allowed: Iterable[str]) -> str:
    """Say that a word is not among those allowed, and which it may have been meant to be."""
    known = list(allowed)
    guess = closest(word, known)
    if guess:
        return f"unknown {what} `{short(word)}`; did you mean `{guess}`?"
    return f"unknown {what} `{short(word)}`; {'known are ' + listed(known) if known else 'there is none'}"


def closest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that is most like this one, if any is."""
    return _closest(word[:MAX_VALUE_LENGTH].lower(), tuple(allowed))


@lru_cache(maxsize=1024)
def _closest(word: str, allowed: tuple[str, ...]) -> str | None:
    by_lower = {known.lower(): known for known in allowed}
    matches = get_close_matches(word, by_lower, n=1)
    return by_lower[matches[0]] if matches else None
