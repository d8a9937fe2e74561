"""The conditions of `rules:if`, as the service understands them: what jobs of this project need of them."""

import re
from collections.abc import Mapping

TOKEN = re.compile(r"""\s*(\$\w+|"[^"]*"|'[^']*'|==|!=|&&|\|\||null)""")


def holds(condition: str, variables: Mapping[str, str]) -> bool:
    """Tell whether a condition holds; `&&` binds stronger than `||`."""
    words = _words(condition)
    return any(
        all(_compared(comparison, variables) for comparison in _split(alternative, "&&"))
        for alternative in _split(words, "||")
    )


def _words(condition: str) -> list[str]:
    words, at = [], 0
    while at < len(condition.rstrip()):
        found = TOKEN.match(condition, at)
        assert found, f"not understood: {condition[at:]!r}"
        words.append(found[1])
        at = found.end()
    return words


def _split(words: list[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == at:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _compared(words: list[str], variables: Mapping[str, str]) -> bool:
    match [_value(word, variables) if word not in ("==", "!=") else word for word in words]:
        case [value]:
            return bool(value)
        case [left, "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
    raise AssertionError(f"not a comparison: {words}")


def _value(word: str, variables: Mapping[str, str]) -> str | None:
    if word == "null":
        return None
    return variables.get(word[1:]) if word.startswith("$") else word[1:-1]
