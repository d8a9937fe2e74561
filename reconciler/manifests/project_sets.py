"""The projects that sets select, and the conflicts between sets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import Selection
from reconciler.manifests.layers import PRUNE, Contribution, Effective, SectionSpec, effective
from reconciler.manifests.sources import Steps

SOME = 3
"""Projects that are named where many could be."""


@dataclass(frozen=True, slots=True)
class Member:
    """A project of a group: full path, and the ID and the keys of what is switched off if the service was asked."""

    path: str
    archived: bool = False
    id: int | None = None
    off: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Hidden:
    """A group whose projects cannot be listed; `absent` if it does not exist, or the token cannot see it."""

    reason: str
    absent: bool = False


Discovered = Mapping[str, Iterable[Member] | Hidden]
"""By group, as sets name it, all projects of it and its subgroups."""


def projects_by_path(discovered: Discovered | None) -> dict[str, Member]:
    """Return each discovered project with an ID, by its path in lower case."""
    groups = [() if isinstance(found, Hidden) else found for found in (discovered or {}).values()]
    return {each.path.casefold(): each for members in groups for each in members if each.id is not None}


def archived_left_out(select: Selection, discovered: Discovered) -> Iterator[str]:
    """Yield the paths of the archived projects that a set would select if they were not archived."""
    found = discovered[select.group] if select.group and not select.archived else ()
    for member in () if isinstance(found, Hidden) else found:
        if member.archived and passes(select, member.path):
            yield member.path


def candidates(select: Selection, discovered: Discovered | None, documented: Iterable[str]) -> list[str]:
    """Return the paths of the projects that a set selects if they match its globs.

    Before the discovery, these are the projects of the group that have documents.
    """
    if not select.group:
        return select.projects
    if discovered is None:
        return [path for path in documented if is_below(select.group, path)]
    found = discovered[select.group]
    shown = () if isinstance(found, Hidden) else found
    return [member.path for member in shown if select.archived or not member.archived]


def is_below(group: str, path: str) -> bool:
    """Whether a path is inside a group or one of its subgroups."""
    return path.casefold().startswith(f"{group.casefold()}/")


def passes(select: Selection, path: str) -> bool:
    """Whether a project matches the globs of a set."""
    return any(matches(glob, path) for glob in select.include) and not any(
        matches(glob, path) for glob in select.exclude
    )


def matches(glob: str, path: str) -> bool:
    """Whether a glob matches a full path: `*` and `?` stay within one part of it, `**` is any number of parts."""
    parts = path.casefold().split("/")
    reached = {0}
    for part in glob.casefold().split("/"):
        if part == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], part)}
    return len(parts) in reached


def idle(title: str, select: Selection, offered: Sequence[str], discovered: Discovered | None) -> Iterator[Diagnostic]:
    """Yield a warning for each glob of a set that includes no project, or if the set selects none."""
    if discovered is None and select.group:
        return
    found = (discovered or {}).get(select.group)
    unmatched = [
        Diagnostic(("select", "include", index), f"`{glob}` includes no project; there are {_some(offered)}", "warning")
        for index, glob in enumerate(select.include if offered else ())
        if not any(matches(glob, path) for path in offered)
    ]
    yield from unmatched
    if isinstance(found, Hidden):
        yield Diagnostic(("select", "group"), found.reason)
    elif not unmatched and not any(passes(select, path) for path in offered):
        yield Diagnostic(("select",), f"{title} matches no project", "warning", at_key=True)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:SOME]) + (", ..." if len(paths) > SOME else "")


def set_conflicts(
    sets: Sequence[Contribution], whole: Effective, compared: set[tuple[int, ...]]
) -> Iterator[tuple[Effective, Diagnostic]]:
    """Yield an error for each value that two sets of equal priority set differently: nothing may depend on file order.

    Each set is compared with all before it, merged. Sets without placeholders are compared for the first of their
    common targets only, by `compared`, so that many sets cost no more than many comparisons.
    """
    for priority, group in groupby(sets, key=lambda part: part.priority):
        equals = list(group)
        key = tuple(map(id, equals))
        if len(equals) == 1 or key in compared:
            continue
        if not any(layer.placeholders for part in equals for layer in part.layers):
            compared.add(key)
        before = effective(whole.target, equals[0].layers, whole.specs, whole.values)
        for part in equals[1:]:
            wanted = effective(whole.target, part.layers, whole.specs, whole.values)
            for steps in _disagreements(before, wanted):
                layer, location = before.find(steps)
                other = next(each for each in equals if layer in each.layers)
                message = (
                    f"{part.layers[-1].title} and {other.layers[-1].title} ({location}) have the same priority, "
                    f"{priority}, and disagree here: give one of them a higher priority"
                )
                yield wanted, Diagnostic(steps, message)
            before = before.under(*part.layers)


def _disagreements(one: Effective, other: Effective) -> Iterator[Steps]:
    """Yield the steps to each value that two sets set differently."""
    if other.sets_prune and one.sets_prune and set(one.prune) != set(other.prune):
        yield (PRUNE,)
    for name in one.sections.keys() & other.sections.keys():
        spec, mine, theirs = one.specs[name], one.sections[name], other.sections[name]
        different = list(_differences(spec, (name,), mine, theirs))
        yield from different or ([(name,)] if _displaces(spec, mine, theirs) else [])


def _displaces(spec: SectionSpec, one: Any, other: Any) -> bool:
    """Whether one of two values of a section drops a part of the other, so that their order matters."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return spec.kind.beneath(one, other) != one or spec.kind.beneath(other, one) != other


def _differences(spec: SectionSpec, steps: Steps, one: Any, other: Any) -> Iterator[Steps]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() & other.keys()):
            if len(steps) > 1 or not spec.merges_as_set(key):
                yield from _differences(spec, (*steps, key), one[key], other[key])
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield steps
