"""Check documents against one another: a path is a group or a project, and no target is created twice.

`merge_manifests` calls `check_together` once all targets are merged.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import chain, product

from reconciler.manifests.creation import namesakes, too_visible
from reconciler.manifests.diagnostics import OTHER_FILE_MARK, Diagnostic, Diagnostics
from reconciler.manifests.index import Index
from reconciler.manifests.layers import Stack
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.trace import find
from reconciler.manifests.validation import undermined_together
from reconciler.model.diff import is_in_order, quoted
from reconciler.model.resource import Content
from reconciler.model.state import Section
from reconciler.model.targets import Level

PathLevels = Mapping[str, tuple[Level, Document, Steps, str]]
"""For each path in lower case: its level, and the document and the steps that show the level; no path is both.

The last value is the project whose path implies the group; it is empty where a document names the path itself.
"""


def check_together(index: Index, merged_targets: Collection[MergedTarget], diagnostics: Diagnostics) -> None:
    """Check documents, and the targets that are merged from them, against one another."""
    levels = _path_levels(index, diagnostics)
    creating = [(each.target, each.creation, each.document) for each in index.targets.values() if each.creation]
    for document, diagnostic in chain(too_visible(creating), namesakes(creating)) if creating else ():
        diagnostics.add(diagnostic, document)
    declared = ((merged.desired.target, merged) for merged in merged_targets)
    groups = {str(target.ref).casefold(): merged for target, merged in declared if target.level is Level.GROUP}
    for merged in merged_targets:
        together = _with_groups(merged, groups) if groups and merged.desired.target.level is Level.PROJECT else ()
        for diagnostic in chain(_misplaced_references(merged.stack, levels), together):
            diagnostics.add(diagnostic, merged.stack)


def _path_levels(index: Index, diagnostics: Diagnostics) -> PathLevels:
    """Return the levels of the paths in the documents; a group used as a project is an error."""
    levels: dict[str, tuple[Level, Document, Steps, str]] = {}
    projects: list[tuple[str, Document, Steps]] = []
    for own in index.targets.values():
        path, steps = own.target.ref, ("metadata", "path")
        if isinstance(path, str) and own.target.level is Level.GROUP:
            levels.setdefault(path.casefold(), (Level.GROUP, own.document, steps, ""))
        elif isinstance(path, str):
            projects.append((path, own.document, steps))
    for declared in index.sets.values():
        document, select = declared.document, declared.select
        if select.group:
            levels.setdefault(select.group.casefold(), (Level.GROUP, document, ("select", "group"), ""))
        projects += [(path, document, ("select", "projects", number)) for number, path in enumerate(select.projects)]
    for path, document, steps in projects:
        above = path.casefold().rpartition("/")[0]
        while above and above not in levels:
            levels[above] = (Level.GROUP, document, steps, path)
            above = above.rpartition("/")[0]
    for path, document, steps in projects:
        error = _level_conflict(path, Level.PROJECT, levels)
        if error:
            diagnostics.add(Diagnostic(steps, f"{error}: give the full path of a project"), document)
        levels.setdefault(path.casefold(), (Level.PROJECT, document, steps, ""))
    return levels


def _misplaced_references(stack: Stack, levels: PathLevels) -> Iterator[Diagnostic]:
    """Yield an error for each project in a list of groups, and each group in a list of projects."""
    for name, section in stack.sections.items():
        lists = stack.specs[name].lists
        for part in lists.keys() & (section.keys() if isinstance(section, dict) else ()):
            level, entries = lists[part].names.level, section[part]
            for number, entry in enumerate(entries if level and isinstance(entries, list) else ()):
                error = _level_conflict(entry, level, levels) if level and isinstance(entry, str) else None
                if error:
                    right = next(key for key, each in lists.items() if each.names.level not in {None, level})
                    yield Diagnostic(("spec", name, part, number), f"{error}: list it under `{right}`")


def _with_groups(merged: MergedTarget, merged_groups: Mapping[str, MergedTarget]) -> Iterator[Diagnostic]:
    """Yield advice about the sections of a project, as far as the declared groups above it declare these too.

    Sections with errors are skipped, since their values may have any type.

    Args:
        merged: the project.
        merged_groups: the declared groups, by path in lower case.
    """
    above = [merged_groups[path] for path in merged.desired.target.groups_above if path in merged_groups]
    for section, group in product(merged.desired.sections, above):
        if any(each.kind == section.kind for each in group.desired.sections):
            yield from chain(_contradictions(merged, section, group), _undermined(merged, section, group))


def _contradictions(merged: MergedTarget, section: Section, merged_group: MergedTarget) -> Iterator[Diagnostic]:
    """Yield advice for each field of a project that a group locks at another value."""
    name, at_least = section.kind, section.at_least.get(None, ())
    kind, model = merged.stack.specs[name].kind, merged.stack.specs[name].model(Level.PROJECT)
    declared = merged.stack.sections[name]
    locked = kind.inherits(merged_group.stack.sections[name]) if kind.inherits else {}
    for key, value in locked.items():
        is_minimum = key in at_least and is_in_order(model, key, locked, {**locked, **declared})
        if key in declared and declared[key] != value and not is_minimum:
            where = f"group {merged_group.desired.target.ref} locks it at {quoted(value)} ({OTHER_FILE_MARK})"
            message = f"{where}: change it there or leave it out"
            yield Diagnostic(
                ("spec", name, key), message, "advice", elsewhere=partial(_place, merged_group.stack, name)
            )


def _undermined(merged: MergedTarget, section: Section, merged_group: MergedTarget) -> Iterator[Diagnostic]:
    """Yield advice about each rule of a project and one of a group of which the other undermines the one."""
    name, owner = section.kind, f"group {merged_group.desired.target.ref}, {OTHER_FILE_MARK}"
    contents = (Content(each.stack.sections[name]) for each in (merged, merged_group))
    for rule, rule_above, message in undermined_together(merged.stack.specs[name], *contents, owner):
        elsewhere = partial(_place, merged_group.stack, name, rule_above)
        yield Diagnostic(("spec", name, rule), message, "advice", at_key=True, elsewhere=elsewhere)


def _place(stack: Stack, *steps: str) -> str:
    """Return the place of a section of a merged spec, or of an item there, as `path:line`."""
    return find(stack, steps, at_key=True)[1].line


def _level_conflict(path: str, level: Level, levels: PathLevels) -> str | None:
    """Return the error if a path that is used as a group is known as a project, or the reverse; else None."""
    known, document, steps, inside = levels.get(path.casefold(), (level, None, (), ""))
    if known is level or document is None:
        return None
    location = document.find(steps)
    return f"{path} is a {known}, not a {level} ({f'project {inside} is in it, see ' if inside else 'see '}{location})"
