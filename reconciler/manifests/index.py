"""An index of all that documents declare."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from reconciler.manifests.creation import OWN_SURROUNDINGS, Surroundings
from reconciler.manifests.declared import Declared, DeclaredSet, DeclaredTarget, declare
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.project_sets import by_group, chosen, groups_around
from reconciler.manifests.sources import TEMPLATE, Document, Source, Steps
from reconciler.manifests.stack.layers import Layer
from reconciler.manifests.stack.sections import SectionSpecs
from reconciler.model.targets import LEVELS, Level, Target


def everywhere(_target: Target, _steps: Steps) -> bool:
    """Whether locks bind: they do in all targets."""
    return True


def nowhere(_target: Target, _steps: Steps) -> bool:
    """Whether locks bind: they do in no target."""
    return False


@dataclass(slots=True)
class Index:
    """All documents: profiles and sets by name, targets by `Target.identity`.

    `whole` is False if a document could not be read, and so a profile that is missing may be in there. `today` is in
    UTC: exceptions end; None while it is not known. `binds` says of the values at some steps of a target's spec whether
    a broken lock is an error: `accept --until` mends those of the targets that it is about, and leaves others as they
    are.
    """

    specs: SectionSpecs
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Any, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True
    today: date | None = None
    around: Surroundings = OWN_SURROUNDINGS
    binds: Callable[[Target, Steps], bool] = everywhere

    @property
    def documents(self) -> Iterator[Document]:
        """All documents: profiles first, then those of targets, then sets."""
        yield from (layer.document for layer in self.profiles.values())
        yield from (each.layer.document for each in self.targets.values())
        yield from (each.layer.document for each in self.sets.values())

    @property
    def sources(self) -> dict[str, Source]:
        """The files that hold documents, by path."""
        return {document.source.path: document.source for document in self.documents}

    @property
    def documents_by_file(self) -> dict[str, tuple[Document, ...]]:
        """The documents of each file that is no template, as they were read: what they say depends on nothing else."""
        files: dict[str, list[Document]] = {}
        for document in sorted(self.documents, key=lambda document: document.number):
            if not document.source.path.endswith(TEMPLATE):
                files.setdefault(document.source.path, []).append(document)
        return {path: tuple(documents) for path, documents in files.items()}

    @property
    def counts(self) -> dict[str, int]:
        """The number of documents of each sort of which there are any."""
        numbers = dict(Counter(str(declared.target.level) for declared in self.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self.sets), "profile": len(self.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups to discover the projects of, sorted, as the sets name them."""
        return tuple(sorted({declared.select.group for declared in self.sets.values() if declared.select.group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """The groups of which a set selects archived projects too."""
        selected = (declared.select for declared in self.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    def perhaps_archived(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some projects, in lower case, that sets leave out and no list shows if they are archived.

        Archived projects are listed only for a group of which a set selects them.

        Args:
            paths: of projects that no list shows.
        """
        listed = self.groups_with_archived
        selected = (declared.select for declared in self.sets.values())
        hiding = [select for select in selected if select.group and select.group not in listed]
        folded = {path.casefold() for path in paths}
        return frozenset(
            path
            for select in hiding
            for path in chosen(select, (each for each in folded if each.startswith(f"{select.group}/".casefold())))
        )

    @property
    def sections_below(self) -> dict[str, frozenset[str]]:
        """By group, as of `groups`, the sections that projects below it may declare, by all documents about them."""
        named = {each.select.group for each in self.sets.values() if each.select.group}
        sections: dict[str, set[str]] = {group.casefold(): set() for group in named}
        inside = by_group(sections, str)

        def declare(names: Iterable[str], layer: Layer, groups: Iterable[str]) -> None:
            layers = [layer, *(self.profiles[name] for name in names if name in self.profiles)]
            for group in groups:
                sections[group].update(section for each in layers for section in each.sections)

        for own in self.targets.values() if named else ():
            if own.target.level is Level.PROJECT and own.target.ref is not None:
                ref = own.target.ref
                declare(
                    own.metadata.profiles, own.layer, groups_around(ref, sections) if isinstance(ref, str) else sections
                )
        for declared in self.sets.values() if named else ():
            select = declared.select
            below = inside.get(select.group.casefold(), ())
            paths = [select.group] if select.group else select.projects
            around = {group for path in paths for group in groups_around(path, sections)}
            declare(declared.metadata.profiles, declared.layer, {*below, *around})
        return {group: frozenset(sections[group.casefold()]) for group in sorted(named)}

    def without(self, documents: Collection[Document]) -> "Index":
        """Return an index of all documents but some."""
        return Index(
            self.specs,
            {name: each for name, each in self.profiles.items() if each.document not in documents},
            {name: each for name, each in self.targets.items() if each.layer.document not in documents},
            {name: each for name, each in self.sets.items() if each.layer.document not in documents},
            today=self.today,
            around=self.around,
        )

    def extend(self, documents: Iterable[Document], diagnostics: Diagnostics) -> None:
        """Add what documents declare, and what is wrong with them."""
        for document in documents:
            declared, problems = declare(document, self.specs, self.around)
            self.whole &= declared is not None
            for diagnostic in (*problems, *(() if declared is None else self._add(declared))):
                diagnostics.add(document, diagnostic)

    def _add(self, declared: Declared) -> Iterator[Diagnostic]:
        """Add what a document declares; yield an error if another one has declared the same."""
        steps: Steps = ("metadata", "name")
        match declared:
            case Layer():
                layer, name = declared, declared.document.value["metadata"]["name"]
                first, what = self.profiles.setdefault(name, layer), f"profile `{name}`"
            case DeclaredSet(metadata=metadata, layer=layer):
                first, what = self.sets.setdefault(metadata.name, declared).layer, f"set `{metadata.name}`"
            case _:
                layer, target = declared.layer, declared.target
                first, what = self.targets.setdefault(target.identity, declared).layer, str(target)
                named = "id" if isinstance(target.ref, int) else "path"
                steps = ("kind",) if target.ref is None else ("metadata", named)
        if first is not layer:
            yield Diagnostic(steps, f"{what} is already declared at {first.document.find(steps)}")
