"""Words that several folders need: counts (`counted`), enumerations (`listed`), and did-you-mean (`closest`)."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

MAX_VALUE_LENGTH = 60
"""Characters of a value that a message quotes."""

KNOWN_ARE = "known are "
MOST_LISTED = 30
"""Known words that a message lists."""

MOST_COMPARED = 100
"""Known words that an unknown one is compared with."""

LONGEST_COMPARED = 60
"""Characters of an unknown word that are compared."""

NEGATIONS = frozenset(
    {"block", "deny", "disable", "disabled", "disallow", "except", "exclude", "forbid", "ignore", "never", "no", "not"}
    | {"prevent", "remove", "reset", "skip", "without"}
)
"""Words that turn a meaning into its opposite: a guess must have the same ones as the unknown word."""

WORD = re.compile("[a-z]+")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 problem`, `2,000 problems`, `2 branches`."""
    plural = "es" if noun.endswith(("ch", "sh", "x")) else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def one(noun: str) -> str:
    """Return a noun with its article: `a milestone`, `an epic`, `a User`."""
    return f"{'an' if noun[0] in 'aeioAEIO' else 'a'} {noun}"


def listed(terms: Iterable[str], conjunction: str = "and") -> str:
    """Return `a, b and c`."""
    *most, end = terms
    return f"{', '.join(most)} {conjunction} {end}" if most else str(end)


def advised(reason: str, remedy: str) -> str:
    """Return a reason, which may be a sentence of the service, and the fix: `does not exist; correct the path`."""
    return f"{reason.removesuffix('.')}; {remedy}" if reason and remedy else reason or remedy


def short(text: str) -> str:
    """Return the text, cut if it is long."""
    return text if len(text) <= MAX_VALUE_LENGTH else text[:MAX_VALUE_LENGTH] + "..."


def unknown(what: str, word: str, allowed: Iterable[str]) -> str:
    """Return the message about an unknown word, with the known word that may have been meant."""
    known = list(allowed)
    guess = closest(word, known)
    if guess:
        return f"unknown {what} `{short(word)}`; did you mean `{guess}`?"
    if len(known) > MOST_LISTED:
        known = [*known[:MOST_LISTED], f"{len(known) - MOST_LISTED:,} more"]
    return f"unknown {what} `{short(word)}`; {KNOWN_ARE + listed(known) if known else 'there is none'}"


def closest(word: str, allowed: Iterable[str], most: int | None = MOST_COMPARED) -> str | None:
    """Return the most similar allowed word; None if none is similar, or if the most similar one means the opposite.

    Args:
        word: the unknown word.
        allowed: the known words.
        most: the number of known words above which there is no guess, since each comparison takes time and a file may
            have thousands of unknown words; None for words of the command line.
    """
    guess = most_like(word, allowed, most)
    return None if guess is None or _negations(guess) != _negations(word) else guess


def most_like(word: str, allowed: Iterable[str], most: int | None = MOST_COMPARED) -> str | None:
    """Return the most similar allowed word, whatever it means; None if none is similar."""
    known = tuple(allowed)
    return None if most is not None and len(known) > most else _most_like(word[:LONGEST_COMPARED].lower(), known)


@lru_cache(maxsize=1024)
def _most_like(word: str, choices: tuple[str, ...]) -> str | None:
    by_lower = {known.lower(): known for known in choices}
    matches = get_close_matches(word, by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _negations(word: str) -> frozenset[str]:
    return NEGATIONS.intersection(WORD.findall(word.lower()))
