"""Globs on paths of groups and projects, with one grammar wherever paths are matched. See `Globs`."""

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

WILD = frozenset("*?[")
"""The characters by which a glob may match more than itself."""


@dataclass(frozen=True)
class Globs:
    """Globs on full paths, without regard to case.

    `*`, `?` and `[...]` match within one part of a path, `**` any number of parts: `acme/*` matches the direct members
    of acme, `acme/**` acme itself and all below it.

    Most globs are the paths of single projects, such as those that a set leaves out: these are found by a lookup.

    Attributes:
        written: the globs as they were written.
    """

    written: Sequence[str] = ()

    def match(self, path: str) -> bool:
        """Return whether a glob matches a full path."""
        folded = path.casefold()
        return folded in self._paths or any(_matches(pattern, folded.split("/")) for pattern in self._patterns)

    def match_any(self, paths: Iterable[str], folded: Set[str]) -> bool:
        """Return whether a glob matches one of some full paths, which are given in lower case too."""
        return not self._paths.isdisjoint(folded) or (bool(self._patterns) and any(map(self.match, paths)))

    @cached_property
    def _paths(self) -> Set[str]:
        return {glob.casefold() for glob in self.written if WILD.isdisjoint(glob)}

    @cached_property
    def _patterns(self) -> Sequence["_Pattern"]:
        patterns = (glob.casefold().split("/") for glob in self.written if not WILD.isdisjoint(glob))
        return [[None if part == "**" else re.compile(translate(part)).match for part in parts] for parts in patterns]


NO_GLOBS = Globs()

_Pattern = Sequence[Callable[[str], object] | None]
"""What matches each part of a path; None stands for any number of parts."""


def _matches(matchers: _Pattern, path_parts: Sequence[str]) -> bool:
    reached = {0}
    for match in matchers:
        if match is None:
            reached = set(range(min(reached, default=len(path_parts) + 1), len(path_parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(path_parts) and match(path_parts[at])}
    return len(path_parts) in reached
