"""Paths that the documents use as those of groups and as those of projects: no path is both."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.layers import Effective, Path
from reconciler.model.targets import Level


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows of which level a path is.

    Attributes:
        document: where it is written.
        path: of the value there.
        inside: the path of a project in it; empty where the path itself is written.
    """

    document: Document
    path: Path
    inside: str = ""

    def __str__(self) -> str:
        """A reason, with its place."""
        place = self.document.find(self.path)
        return f"project {self.inside} is in it, see {place}" if self.inside else f"see {place}"


@dataclass(slots=True)
class Levels:
    """The paths of groups and of projects, in lower case, each with what shows it."""

    groups: dict[str, Evidence] = field(default_factory=dict)
    projects: dict[str, Evidence] = field(default_factory=dict)

    def fault_of(self, path: str, level: Level) -> str | None:
        """Say that a path that is used as that of a group or a project is the path of the other."""
        others, what = (self.projects, "project") if level is Level.GROUP else (self.groups, "group")
        evidence = others.get(path.casefold())
        return None if evidence is None else f"{path} is a {what}, not a {level} ({evidence})"


def levels_of(catalogue: Catalogue, complaints: Complaints) -> Levels:
    """Return what the documents and sets say of paths, with complaints of those that they take for projects wrongly."""
    levels = Levels()
    named = list(_projects(catalogue))
    for path, document, place in _groups(catalogue):
        levels.groups.setdefault(path.casefold(), Evidence(document, place))
    for path, document, place in named:
        folded = path.casefold()
        above = folded.rpartition("/")[0]
        while above and above not in levels.groups:
            levels.groups[above] = Evidence(document, place, path)
            above = above.rpartition("/")[0]
    for path, document, place in named:
        fault = levels.fault_of(path, Level.PROJECT)
        if fault:
            complaints.add(document.find(place), f"{fault}: give the full path of a project", document)
        else:
            levels.projects.setdefault(path.casefold(), Evidence(document, place))
    return levels


def misplaced_references(whole: Effective, levels: Levels) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with lists of groups that name projects, and the other way round."""
    for name, section in whole.sections.items():
        lists = whole.shapes[name].lists
        for part in lists.keys() & (section.keys() if isinstance(section, dict) else ()):
            level = lists[part].key_level
            for index, entry in enumerate(section[part] if level and isinstance(section[part], list) else ()):
                fault = levels.fault_of(entry, level) if level and isinstance(entry, str) else None
                if fault:
                    right = next(key for key, each in lists.items() if each.key_level not in {None, level})
                    yield (name, part, index), f"{fault}: list it under `{right}`"


def _groups(catalogue: Catalogue) -> Iterator[tuple[str, Document, Path]]:
    for target in catalogue.targets.values():
        if target.target.level is Level.GROUP and isinstance(target.target.ref, str):
            yield target.target.ref, target.layer.document, ("metadata", "path")
    for declared in catalogue.sets.values():
        if declared.declared.select.group:
            yield declared.declared.select.group, declared.layer.document, ("select", "group")


def _projects(catalogue: Catalogue) -> Iterator[tuple[str, Document, Path]]:
    for target in catalogue.targets.values():
        if target.target.level is Level.PROJECT and isinstance(target.target.ref, str):
            yield target.target.ref, target.layer.document, ("metadata", "path")
    for declared in catalogue.sets.values():
        for index, path in enumerate(declared.declared.select.projects):
            yield path, declared.layer.document, ("select", "projects", index)
