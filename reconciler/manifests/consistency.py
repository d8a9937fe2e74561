"""Checks of documents against one another: a path is a group or a project, and no target is created twice."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product

from reconciler.manifests.creation import namesakes, too_visible
from reconciler.manifests.diagnostics import OTHER_FILE_MARK, Diagnostic, Diagnostics
from reconciler.manifests.index import Index
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.layers import Stack
from reconciler.manifests.stack.trace import find
from reconciler.model.diff import quoted
from reconciler.model.targets import Level


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The place that shows the level of a path: of the path itself, or of a project inside."""

    level: Level
    document: Document
    steps: Steps
    inside: str = ""

    def __str__(self) -> str:
        location = self.document.find(self.steps)
        return f"project {self.inside} is in it, see {location}" if self.inside else f"see {location}"


PathLevels = Mapping[str, _Evidence]
"""The paths of groups and of projects in the documents, in lower case: no path is both."""


def check_together(index: Index, targets: Collection[MergedTarget], diagnostics: Diagnostics) -> None:
    """Check the documents, and the targets that they come to, against one another."""
    levels = _path_levels(index, diagnostics)
    _check_creations(index, diagnostics)
    sound = [_sound(merged) for merged in targets]
    groups = {str(each.target.ref).casefold(): each for each in sound if each.target.level is Level.GROUP}
    for merged, right in zip(targets, sound, strict=True):
        for diagnostic in chain(_misplaced_references(merged.stack, levels), _contradictions(right, groups)):
            diagnostics.add_merged(merged.stack, diagnostic)


def _sound(merged: MergedTarget) -> Stack:
    """Return the merged spec of a target without the sections that have errors: these may have any shape."""
    whole, names = merged.stack, {section.kind for section in merged.desired.sections}
    if len(names) == len(whole.sections):
        return whole
    return replace(whole, sections={name: section for name, section in whole.sections.items() if name in names})


def _path_levels(index: Index, diagnostics: Diagnostics) -> PathLevels:
    """Return the levels of the paths in the documents; a group used as a project is an error."""
    levels: dict[str, _Evidence] = {}
    projects: list[tuple[str, Document, Steps]] = []
    for own in index.targets.values():
        if isinstance(own.target.ref, str):
            document, steps = own.layer.document, ("metadata", "path")
            if own.target.level is Level.GROUP:
                levels.setdefault(own.target.ref.casefold(), _Evidence(Level.GROUP, document, steps))
            else:
                projects.append((own.target.ref, document, steps))
    for declared in index.sets.values():
        document, select = declared.layer.document, declared.select
        if select.group:
            levels.setdefault(select.group.casefold(), _Evidence(Level.GROUP, document, ("select", "group")))
        projects += [(path, document, ("select", "projects", number)) for number, path in enumerate(select.projects)]
    for path, document, steps in projects:
        above = path.casefold().rpartition("/")[0]
        while above and above not in levels:
            levels[above] = _Evidence(Level.GROUP, document, steps, path)
            above = above.rpartition("/")[0]
    for path, document, steps in projects:
        error = _level_conflict(path, Level.PROJECT, levels)
        if error:
            diagnostics.add(document, Diagnostic(steps, f"{error}: give the full path of a project"))
        levels.setdefault(path.casefold(), _Evidence(Level.PROJECT, document, steps))
    return levels


def _check_creations(index: Index, diagnostics: Diagnostics) -> None:
    """Check what documents create against one another."""
    creating = [(each.target, each.creation, each.layer.document) for each in index.targets.values() if each.creation]
    creations = {target.identity: creation for target, creation, _ in creating}
    for target, _, document in creating:
        if (advice := too_visible(target, creations)) is not None:
            diagnostics.add(document, advice)
    for document, error in namesakes(creating) if creating else ():
        diagnostics.add(document, error)


def _misplaced_references(whole: Stack, levels: PathLevels) -> Iterator[Diagnostic]:
    """Yield an error for each project in a list of groups, and each group in a list of projects."""
    for steps, level, path in whole.references:
        error = _level_conflict(path, level, levels)
        if error:
            lists = whole.specs[steps[0]].lists
            right = next(key for key, each in lists.items() if each.names.level not in {None, level})
            yield Diagnostic(steps, f"{error}: list it under `{right}`")


def _contradictions(whole: Stack, groups: Mapping[str, Stack]) -> Iterator[Diagnostic]:
    """Yield advice for each field of a project that a declared group above it locks at another value.

    Args:
        whole: what is declared of the project.
        groups: what is declared of groups, by path in lower case.
    """
    names = str(whole.target.ref).casefold().split("/") if whole.target.level is Level.PROJECT else []
    above = [groups[path] for end in range(1, len(names)) if (path := "/".join(names[:end])) in groups]
    for name, group in product(whole.sections, above):
        inherits, declared = whole.specs[name].kind.inherits, whole.sections[name]
        locked = inherits(group.sections[name]) if inherits and name in group.sections else {}
        for key, value in locked.items():
            if key in declared and declared[key] != value:
                message = (
                    f"group {group.target.ref} locks it at {quoted(value)} ({OTHER_FILE_MARK}): "
                    "change it there or leave it out"
                )
                yield Diagnostic((name, key), message, "advice", elsewhere=partial(_place, group, name))


def _place(whole: Stack, section: str) -> str:
    """Return where a section of a merged spec is declared, as `path:line`."""
    return find(whole, (section,), key=True)[1].line


def _level_conflict(path: str, level: Level, levels: PathLevels) -> str | None:
    """Return an error if a path used at a level is known to be of another."""
    known = levels.get(path.casefold())
    return f"{path} is a {known.level}, not a {level} ({known})" if known and known.level is not level else None
