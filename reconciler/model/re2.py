"""The grammar of RE2, the regular expressions of the service. See `re2_error`.

Python's own `re` is another language: it accepts patterns that RE2 refuses, such as `a++` and `x{2000}`, and warns of
patterns that RE2 accepts, such as `[[:alpha:]]`.
"""

import re
from dataclasses import dataclass, field

MOST_REPEATED = 1000
"""The bound of `{n}`, and of nested ones multiplied."""

COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
FLAGS = re.compile(r"\(\?(?:[imsU]*|[imsU]*-[imsU]+)([:)])")
NAME = re.compile(r"\(\?P?<(\w+)>")
CODE_POINT = re.compile(r"x(?:[0-9A-Fa-f]{2}|\{(?:0*10|0*[0-9A-Fa-f])?[0-9A-Fa-f]{1,4}\})")
OCTAL = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}")
PROPERTY = re.compile(
    r"[pP](?:[CLMNPSZ]|\{\^?(?:C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?|[A-Z][a-z]{2}[A-Za-z_]*)\})"
)
"""A class of Unicode: a category, or the name of a script."""

POSIX = re.compile(r"\[:(.*?):\]", re.DOTALL)
POSIX_NAMES = frozenset(
    {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper"}
    | {"word", "xdigit"}
)
CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
CLASSES = frozenset("dswDSW")
POSITIONS = frozenset("AbBzC")


def re2_error(pattern: str) -> str | None:
    """Return the reason why a text is no regular expression of RE2; None if it is one."""
    try:
        _Reader(pattern).read()
    except ValueError as error:
        return str(error)
    return None


@dataclass(slots=True)
class _Group:
    """An open group, or the whole pattern.

    Attributes:
        weight: the greatest product of nested repetition counts so far.
        last: the weight of its last element, which a repetition would repeat; None if there is nothing to repeat.
        repeated: whether the last element is a repetition, which cannot be repeated.
    """

    weight: int = 1
    last: int | None = None
    repeated: bool = False

    def add(self, weight: int = 1) -> None:
        """Add a character, a class or a group."""
        self.weight, self.last, self.repeated = max(self.weight, weight), weight, False


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right."""

    text: str
    at: int = 0
    groups: list[_Group] = field(default_factory=lambda: [_Group()])

    def read(self) -> None:
        """Read the whole pattern.

        Raises:
            ValueError: the pattern is invalid.
        """
        while self.at < len(self.text):
            group, character = self.groups[-1], self.text[self.at]
            count = COUNT.match(self.text, self.at) if character == "{" else None
            if character == "(":
                self._open()
            elif character == ")":
                self._close()
            elif character == "|":
                group.last, group.repeated = None, False
                self.at += 1
            elif character in "*+?" or count:
                self._repeat(group, count)
            elif character == "[":
                self._class()
                group.add()
            elif character == "\\":
                self._escape()
            else:
                self.at += 1
                group.add()
        if len(self.groups) > 1:
            raise ValueError("a `(` is not closed")

    def _open(self) -> None:
        if not self.text.startswith("(?", self.at):
            self.groups.append(_Group())
            self.at += 1
            return
        flags = FLAGS.match(self.text, self.at)
        opened = NAME.match(self.text, self.at) or flags
        if not opened:
            operator = self.text[self.at : self.at + (4 if self.text[self.at + 2 : self.at + 3] == "<" else 3)]
            raise ValueError(f"it has no `{operator}`")
        if opened is flags and opened[1] != ":":
            self.groups[-1].repeated = False
        else:
            self.groups.append(_Group())
        self.at = opened.end()

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise ValueError("a `)` closes nothing")
        inner = self.groups.pop()
        self.groups[-1].add(inner.weight)
        self.at += 1

    def _repeat(self, regex_group: _Group, count: "re.Match[str] | None") -> None:
        written = count[0] if count else self.text[self.at]
        if regex_group.repeated:
            raise ValueError(f"`{written}` repeats a repetition: use a group, `(?:...){written}`")
        if regex_group.last is None:
            raise ValueError(f"`{written}` has nothing before it to repeat")
        if count:
            least = int(count[1])
            most = int(count[3]) if count[3] else least
            if max(least, most) * regex_group.last > MOST_REPEATED:
                raise ValueError(f"`{written}` repeats more than {MOST_REPEATED:,} times, nested counts multiplied")
            if most < least:
                raise ValueError(f"`{written}` ends before it begins")
            regex_group.last *= max(most, 1)
            regex_group.weight = max(regex_group.weight, regex_group.last)
        self.at += len(written)
        # `+?` is one repetition, which matches as little as possible
        self.at += self.text.startswith("?", self.at)
        regex_group.repeated = True

    def _escape(self) -> None:
        """Read an escape outside a class."""
        group, following = self.groups[-1], self.text[self.at + 1 : self.at + 2]
        if following == "Q":
            quoted = self.text[self.at + 2 :].partition("\\E")[0]
            self.at += 2 + len(quoted) + (2 if "\\E" in self.text[self.at + 2 :] else 0)
            if quoted:
                group.add()
            return
        if following in POSITIONS and following:
            self.at += 2
        elif not self._class_escape():
            self._character()
        group.add()

    def _class_escape(self) -> bool:
        """Read an escape for a class of characters; False if there is none."""
        if self.text[self.at + 1 : self.at + 2] in CLASSES and self.at + 1 < len(self.text):
            self.at += 2
            return True
        named = PROPERTY.match(self.text, self.at + 1)
        if named:
            self.at = named.end()
        return named is not None

    def _character(self) -> int:
        """Read one character, which may be escaped, and return its number."""
        character = self.text[self.at]
        self.at += 1
        if character != "\\":
            return ord(character)
        rest = self.text[self.at : self.at + 1]
        if not rest:
            raise ValueError("it ends with a `\\`")
        code, octal = CODE_POINT.match(self.text, self.at), OCTAL.match(self.text, self.at)
        if code:
            self.at = code.end()
            return int(code[0].strip("x{}"), 16)
        if octal:
            self.at = octal.end()
            return int(octal[0], 8)
        self.at += 1
        if rest in CONTROLS:
            return CONTROLS[rest]
        if not rest.isascii() or rest.isalnum():
            raise ValueError(f"it has no `\\{rest}`")
        return ord(rest)

    def _class(self) -> None:
        begun = self.at
        self.at += 2 if self.text.startswith("[^", self.at) else 1
        first = True
        # a `]` that comes first is a character of the class
        while first or not self.text.startswith("]", self.at):
            first = False
            if self.at >= len(self.text):
                raise ValueError("a `[` is not closed")
            posix = POSIX.match(self.text, self.at)
            if posix:
                if posix[1].removeprefix("^") not in POSIX_NAMES:
                    raise ValueError(f"it has no `{posix[0]}`")
                self.at = posix.end()
            elif not (self.text[self.at] == "\\" and self._class_escape()):
                self._range(begun)
        self.at += 1

    def _range(self, begun: int) -> None:
        start, low = self.at, self._character()
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return
        self.at += 1
        if self.at >= len(self.text):
            raise ValueError("a `[` is not closed")
        if self._character() < low:
            raise ValueError(f"`{self.text[start : self.at]}` ends before it begins in `{self.text[begun : self.at]}`")
