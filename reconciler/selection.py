"""Narrowing a run: by target, by label, by section. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reconciler.errors import UsageError
from reconciler.state import DesiredState, Target


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run is narrowed to; nothing given means everything.

    Attributes:
        targets: globs on paths or numeric IDs; `user` for the user.
        labels: all of these `key=value` pairs must be among a target's labels.
        sections: names of sections.
    """

    targets: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    sections: tuple[str, ...] = ()


def select(desired: DesiredState, selection: Selection) -> DesiredState:
    """Return the part of the desired state that is selected; the digest stays that of the whole.

    Raises:
        UsageError: nothing is left of a state that was not empty, which is never what was meant.
    """
    targets = tuple(_selected(desired.targets, selection))
    if desired.targets and not targets:
        raise UsageError("no target is selected: check --target and --selector against the manifests")
    return replace(desired, targets=targets)


def _selected(targets: Iterable[Target], selection: Selection) -> Iterator[Target]:
    for target in targets:
        if selection.targets and not any(_matches(target, glob) for glob in selection.targets):
            continue
        if any(target.labels.get(key) != value for key, value in selection.labels):
            continue
        if selection.sections:
            kept = tuple(section for section in target.sections if section.kind in selection.sections)
            yield replace(target, sections=kept)
        else:
            yield target


def _matches(target: Target, glob: str) -> bool:
    name = str(target.scope.level if target.scope.ref is None else target.scope.ref)
    return fnmatchcase(name.casefold(), glob.casefold())
