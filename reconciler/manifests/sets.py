"""Which projects a `ProjectSet` is about, and where two sets of equal standing disagree."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from reconciler.manifests.catalogue import DeclaredSet
from reconciler.manifests.documents import Select
from reconciler.manifests.layers import Effective, Path
from reconciler.manifests.shapes import Shape


@dataclass(frozen=True, slots=True)
class Member:
    """A project of a group, as the service knows it.

    Attributes:
        path: its full path.
        archived: whether it is archived.
        id: its numeric ID, by which a document may name it; None where nobody has asked the service.
    """

    path: str
    archived: bool = False
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Hidden:
    """A group whose projects cannot be listed.

    Attributes:
        reason: why.
        absent: whether there is no such group, or none the token may see.
    """

    reason: str
    absent: bool = False


Discovered = Mapping[str, Iterable[Member] | Hidden]
"""By group, as sets name it, all projects in it and in its subgroups."""


def candidates(declared: DeclaredSet, discovered: Discovered | None, documented: Iterable[str]) -> list[str]:
    """Return the paths of the projects that a set is about as far as they pass its globs.

    Args:
        declared: the set.
        discovered: what the groups hold; None if nobody has asked the service yet.
        documented: the paths of the projects that have documents of their own: before the discovery, those in the group
            are taken to be there and not archived.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    select = declared.declared.select
    if not select.group:
        return select.projects
    if discovered is None:
        return [path for path in documented if path.casefold().startswith(f"{select.group.casefold()}/")]
    found = discovered[select.group]
    shown = () if isinstance(found, Hidden) else found
    return [member.path for member in shown if select.archived or not member.archived]


def matches(glob: str, path: str) -> bool:
    """Whether a glob is about a full path: `*` and `?` stay within a part of it, `**` is any number of parts."""
    parts = path.casefold().split("/")
    reached = {0}
    for part in glob.casefold().split("/"):
        if part == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], part)}
    return len(parts) in reached


def disagreements(one: Effective, other: Effective) -> Iterator[Path]:
    """Yield the paths at which two sets want different things of one target."""
    if other.sets_prune and one.sets_prune and set(one.prune) != set(other.prune):
        yield ("prune",)
    for name in one.sections.keys() & other.sections.keys():
        shape, mine, theirs = one.shapes[name], one.sections[name], other.sections[name]
        different = list(_differences(shape, (name,), mine, theirs))
        yield from different or ([(name,)] if _displaces(shape, mine, theirs) else [])


def _displaces(shape: Shape, one: Any, other: Any) -> bool:
    """Whether one of two values of a section leaves something of the other out, so that their order matters."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return shape.kind.beneath(one, other) != one or shape.kind.beneath(other, one) != other


def passes(select: Select, path: str) -> bool:
    """Whether a project that a set may be about passes its globs."""
    return any(matches(glob, path) for glob in select.include) and not any(
        matches(glob, path) for glob in select.exclude
    )


def _differences(shape: Shape, path: Path, one: Any, other: Any) -> Iterator[Path]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() & other.keys()):
            if len(path) > 1 or not shape.unites(key):
                yield from _differences(shape, (*path, key), one[key], other[key])
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield path
