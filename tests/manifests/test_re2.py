"""Which texts are regular expressions to RE2: each row was tried with RE2 itself."""

import pytest

from reconciler.model.re2 import re2_error

RIGHT = [
    r"^v[0-9]+\.[0-9]+$",
    "(?:a|b){1000}",
    "(?:(?:a{10}){10}){10}",
    "(?i)a(?-i:b)(?s-m:c)(?)",
    "(?P<major>[0-9])(?<minor>[0-9])()",
    "[[:alpha:]_[:^digit:]]+",
    "[]a]|[^]a-]|[a-]|[a-b-c]",
    r"[\d\-\]\x41\x{41}\pL\p{^Greek}\P{Lu}\0\n]",
    r"\A\b\B\z\C\pN\a\f\r\t\v\_\/\12\0",
    r"\Qa+(\E+|\Q\Ea|\Qb[",
    "a{,3}{}{x",
    "a*?b+?c??d{2}?e{2,}?f{0}g{3,4}",
    "^*|$+|(|a)*",
    "a(?i)*",
    "é[à-ü]",
]

WRONG = {
    "a++": "`+` repeats a repetition: use a group, `(?:...)+`",
    "a**": "`*` repeats a repetition: use a group, `(?:...)*`",
    "a{2}{3}": "`{3}` repeats a repetition: use a group, `(?:...){3}`",
    "a*??": "`?` repeats a repetition: use a group, `(?:...)?`",
    "+a": "`+` has nothing before it to repeat",
    "a|*": "`*` has nothing before it to repeat",
    "({2})": "`{2}` has nothing before it to repeat",
    "v(?:a|b){2000}": "`{2000}` repeats more than 1,000 times, nested counts multiplied",
    "a{1001,}": "`{1001,}` repeats more than 1,000 times, nested counts multiplied",
    "(a{10}|b){101}": "`{101}` repeats more than 1,000 times, nested counts multiplied",
    "a{1000}(?i){2}": "`{2}` repeats more than 1,000 times, nested counts multiplied",
    "a{3,2}": "`{3,2}` ends before it begins",
    "[z-a]": "`z-a` ends before it begins in `[z-a`",
    r"[\x{7a}-\x61]": r"`\x{7a}-\x61` ends before it begins in `[\x{7a}-\x61`",
    r"[a-\d]": r"it has no `\d`",
    "[[:foo:]]": "it has no `[:foo:]`",
    "[a": "a `[` is not closed",
    "[a-": "a `[` is not closed",
    "[": "a `[` is not closed",
    "(a": "a `(` is not closed",
    "a)": "a `)` closes nothing",
    "v(?=x)": "it has no `(?=`",
    "v(?!x)": "it has no `(?!`",
    "(?<=v)x": "it has no `(?<=`",
    "(?<!v)x": "it has no `(?<!`",
    "(?>v)": "it has no `(?>`",
    "(?i-)": "it has no `(?i`",
    r"(a)\1": r"it has no `\1`",
    r"\Z": r"it has no `\Z`",
    r"\pq": r"it has no `\p`",
    r"\p{a}": r"it has no `\p`",
    r"\x4": r"it has no `\x`",
    r"\x{110000}": r"it has no `\x`",
    r"[\b]": r"it has no `\b`",
    "a\\": "it ends with a `\\`",
}


@pytest.mark.parametrize("pattern", RIGHT)
def test_a_pattern_of_re2(pattern: str) -> None:
    assert re2_error(pattern) is None


@pytest.mark.parametrize("pattern", WRONG)
def test_no_pattern_of_re2(pattern: str) -> None:
    assert re2_error(pattern) == WRONG[pattern]
