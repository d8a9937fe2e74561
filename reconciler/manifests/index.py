"""The index of all documents: profiles, targets and sets, as `declared` reads them.

`manifests` fills the `Index`; `targets.merge_targets` merges the documents of each target.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, product

from reconciler.manifests.creation import OWN_SURROUNDINGS, Surroundings
from reconciler.manifests.declared import declare
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.layers import DEFAULT_BRANCH, DeclaredSet, DeclaredTarget, Layer, SectionSpecs
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import by_group, chosen, groups_above
from reconciler.manifests.sources import TEMPLATE, Document, Source, Steps
from reconciler.model.targets import LEVELS, Identity, Level, Target


def everywhere(_target: Target, _steps: Steps) -> bool:
    """Return True: locks bind in all targets."""
    return True


def nowhere(_target: Target, _steps: Steps) -> bool:
    """Return False: locks bind in no target."""
    return False


@dataclass(slots=True)
class Index:
    """All documents: profiles and sets by name, targets by `Target.identity`.

    Attributes:
        specs: the form of each section.
        profiles: by name.
        targets: by `Target.identity`.
        sets: by name.
        whole: False if a document could not be read: the missing document may be a profile that another one names.
        today: the day, UTC, on which exceptions are compared with their end; None to skip that.
        surroundings: the files and secrets that `create` is checked against.
        binds: returns whether a broken lock is an error, for a target and the steps in its spec. `accept --until` fixes
            the broken locks of the selected targets, and ignores those of other targets.
        merged: the last merged form of each target without errors. When more projects of groups are known, only targets
            that get other documents are merged again.
    """

    specs: SectionSpecs
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Identity, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True
    today: date | None = None
    surroundings: Surroundings = OWN_SURROUNDINGS
    binds: Callable[[Target, Steps], bool] = everywhere
    merged: dict[Identity, MergedTarget] = field(default_factory=dict)

    @property
    def documents(self) -> Iterator[Document]:
        """All documents: profiles first, then those of targets, then sets."""
        layers = chain(self.profiles.values(), self.targets.values(), self.sets.values())
        yield from (layer.document for layer in layers)

    @property
    def sources(self) -> dict[str, Source]:
        """The files that hold documents, by path."""
        return {document.source.path: document.source for document in self.documents}

    @property
    def documents_by_file(self) -> dict[str, tuple[Document, ...]]:
        """The documents of each file that is no template.

        They can be reused for another revision that has the same file.
        """
        files: dict[str, list[Document]] = {}
        for document in sorted(self.documents, key=lambda document: document.number):
            if not document.source.path.endswith(TEMPLATE):
                files.setdefault(document.source.path, []).append(document)
        return {path: tuple(documents) for path, documents in files.items()}

    @property
    def counts(self) -> dict[str, int]:
        """The number of documents of each sort, without the sorts that have none."""
        numbers = dict(Counter(str(declared.target.level) for declared in self.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self.sets), "profile": len(self.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose projects have to be discovered, sorted, as the sets name them."""
        return tuple(sorted({declared.select.group for declared in self.sets.values() if declared.select.group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """The groups of which a set selects archived projects too."""
        selected = (declared.select for declared in self.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    @property
    def names_default_branch(self) -> bool:
        """Whether a document has `{default_branch}`."""
        layers = chain(self.profiles.values(), self.targets.values(), self.sets.values())
        return any(DEFAULT_BRANCH in layer.placeholders for layer in layers)

    def perhaps_archived(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the projects, in lower case, that may be missing from all lists because they are archived.

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
        """For each of `groups`: the sections that any document may declare for a project below the group."""
        named = sorted({each.select.group for each in self.sets.values() if each.select.group})
        if not named:
            return {}
        sections: dict[str, set[str]] = {group.casefold(): set() for group in named}
        inside = by_group(sections, str)

        def declare(layer: Layer, group_paths: Iterable[str]) -> None:
            profiles = (self.profiles[name] for name in layer.profiles if name in self.profiles)
            for group, each in product(group_paths, (layer, *profiles)):
                sections[group].update(each.sections)

        for own in self.targets.values():
            ref = own.target.ref
            # a project by ID may be below any group
            if own.target.level is Level.PROJECT:
                declare(own, groups_above(ref, sections) if isinstance(ref, str) else sections)
        for declared in self.sets.values():
            select = declared.select
            below = inside.get(select.group.casefold(), ())
            paths = [select.group] if select.group else select.projects
            declare(declared, {*below, *(group for path in paths for group in groups_above(path, sections))})
        return {group: frozenset(sections[group.casefold()]) for group in named}

    def without(self, removed_documents: Collection[Document]) -> "Index":
        """Return an index without some documents."""
        return Index(
            self.specs,
            {name: each for name, each in self.profiles.items() if each.document not in removed_documents},
            {name: each for name, each in self.targets.items() if each.document not in removed_documents},
            {name: each for name, each in self.sets.items() if each.document not in removed_documents},
            today=self.today,
            surroundings=self.surroundings,
        )

    def extend(self, documents: Iterable[Document], diagnostics: Diagnostics) -> None:
        """Add the layers of documents to the index, and their errors to the diagnostics."""
        for document in documents:
            layer, problems = declare(document, self.specs, self.surroundings)
            self.whole &= layer is not None
            for diagnostic in (*problems, *(() if layer is None else self._add(layer))):
                diagnostics.add(diagnostic, document)

    def _add(self, layer: Layer) -> Iterator[Diagnostic]:
        """Add a layer; yield an error if another document has the same target or name."""
        steps: Steps = ("metadata", "name")
        first: Layer
        if isinstance(layer, DeclaredTarget):
            target = layer.target
            first, declared_name = self.targets.setdefault(target.identity, layer), str(target)
            named = "id" if isinstance(target.ref, int) else "path"
            steps = ("kind",) if target.ref is None else ("metadata", named)
        else:
            sort, name = layer.title.split(" ", 1)
            declared_name = f"{sort} `{name}`"
            if isinstance(layer, DeclaredSet):
                first = self.sets.setdefault(name, layer)
            else:
                first = self.profiles.setdefault(name, layer)
        if first is not layer:
            yield Diagnostic(steps, f"{declared_name} is already declared at {first.document.find(steps)}")
