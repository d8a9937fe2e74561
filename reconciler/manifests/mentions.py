"""The files that matter to what a few changed ones declare, told by their bytes. Pure.

YAML spells out all names, except behind a backslash and in templates: a file that mentions no name declares nothing
about it.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate

from reconciler.manifests.layers import Effective
from reconciler.manifests.sources import TEMPLATE
from reconciler.model.targets import Level, Target

SHARED = (b"Profile", b"ProjectSet", b"\\")
"""A document that concerns other targets than its own contains one of these, unless it is rendered."""
ARCHIVE = b"from_archive"
BY_ID = re.compile(rb"id(?<![0-9A-Za-z_]id)(?![0-9A-Za-z_])")
"""Is in each document that gives its target by ID, so that only the service knows which target that is."""
IN_PATH = r"[0-9A-Za-z_./~+-]"
"""Next to one of these, a path is a part of another."""
MANY = 200
"""The number of names from which on a search would take as long as to read all files."""
GROUP = Level.GROUP.document_kind.encode()


def may_concern_others(path: str, content: bytes) -> bool:
    """Whether a file may hold documents that concern targets whose paths it does not mention."""
    return path.endswith(TEMPLATE) or any(word in content for word in SHARED) or BY_ID.search(content) is not None


def may_name_archive(content: bytes) -> bool:
    """Whether a document may depend on another file, which can change while its own does not."""
    return ARCHIVE in content


def may_declare(path: str, content: bytes, mentions: Collection[str]) -> bool:
    """Whether a file may hold documents about targets, each of which mentions one of some texts in lower case."""
    if len(mentions) > MANY or may_concern_others(path, content):
        return True
    text = content.decode(errors="replace").casefold()
    return any(mention in text for mention in mentions)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of some targets, and of those that they refer to, in lower case.

    A file that mentions none of them neither declares one of these targets, nor shows of a path that it is a group's or
    a project's.

    Attributes:
        kinds: the kinds of the documents of targets without a path.
        projects: paths of projects; a longer path shows that one of them is a group's.
        groups: paths of groups.
    """

    kinds: frozenset[bytes]
    projects: frozenset[str]
    groups: frozenset[str]

    @property
    def can_be_searched(self) -> bool:
        """Whether a search finds all of them, and costs less than to read all files."""
        return len(self.projects) + len(self.groups) <= MANY and not any(
            "'" in path for path in self.projects | self.groups
        )

    def are_in(self, content: bytes) -> bool:
        """Whether a file mentions one of them."""
        if any(kind in content for kind in self.kinds):
            return True
        text = content.decode(errors="replace").casefold()
        return any(path in text for path in self.projects) or any(
            path in text and _mentions_group(path, text, content) for path in self.groups
        )


def names_of(targets: Iterable[Target], merged: Iterable[Effective], created: Iterable[Target] = ()) -> Names:
    """Return the names of some targets, those in the lists of their merged specs, and the groups around created ones.

    Args:
        targets: the targets.
        merged: their merged specs.
        created: those of them that are created if they do not exist, by path.
    """
    paths: dict[Level, set[str]] = {Level.GROUP: set(), Level.PROJECT: set()}
    kinds = set()
    for target in created:
        *above, _ = str(target.ref).casefold().split("/")
        paths[Level.GROUP].update(accumulate(above, "{}/{}".format))
    for target in targets:
        if target.ref is None:
            kinds.add(target.level.document_kind.encode())
        else:
            paths[target.level].add(str(target.ref).casefold())
    for whole in merged:
        for _, level, path in whole.references:
            paths[level].add(path.casefold())
    return Names(frozenset(kinds), frozenset(paths[Level.PROJECT]), frozenset(paths[Level.GROUP]))


def _mentions_group(path: str, text: str, content: bytes) -> bool:
    """Whether a text mentions a path as a whole; without a slash, only the document of a group can declare it."""
    if "/" not in path and GROUP not in content:
        return False
    return re.search(f"(?<!{IN_PATH}){re.escape(path)}(?!{IN_PATH})", text) is not None
