"""Files to `Manifests`: read, merged and checked, with the origin of every field."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.creation import CREATE, Surroundings, namesakes, too_visible, unordered
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.index import (
    Composition,
    DeclaredSet,
    DeclaredTarget,
    Index,
    clashing_names,
    compose,
    contradictions,
    misplaced_references,
    overfilled,
    path_levels,
    sections_below,
)
from reconciler.manifests.project_sets import (
    Discovered,
    Member,
    UnlistedSet,
    archived_left_out,
    chosen,
    set_conflicts,
)
from reconciler.manifests.sources import (
    TEMPLATE,
    Document,
    Search,
    Source,
    Steps,
    located,
    open_source,
    read_mapping,
    search,
    why_passed_over,
)
from reconciler.manifests.stack.exceptions import exceptions_on, read_exceptions
from reconciler.manifests.stack.layers import Layer, Stack, stacked
from reconciler.manifests.stack.locks import Lock, broken_locks, deviations, lock_on
from reconciler.manifests.stack.placeholders import literal, placeholders_in, unfilled
from reconciler.manifests.stack.sections import PRUNE, UNMANAGED, SectionSpec, SectionSpecs, level_error, section_specs
from reconciler.manifests.stack.trace import declarations, field_path, find, object_path
from reconciler.manifests.validation import check_alone, check_section
from reconciler.model.exceptions import DeclaredException
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import LEVELS, Address, Key, Level, Target

if TYPE_CHECKING:
    from reconciler.manifests.templates import Templates

Identity = Hashable
"""See `Target.identity`."""

NO_VALUES: Mapping[str, Any] = MappingProxyType({})
NO_PATHS: Mapping[Target, str] = MappingProxyType({})
NOT_HERE = Surroundings(digest=lambda _archive: "")
"""Archives are not looked at."""
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The sources of manifests, in any revision: the user's paths, and what templates may read.

    `settings` win over the values in `values_files`.
    """

    paths: Sequence[Path]
    kinds: Kinds
    values_files: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    env_names: Sequence[str] = ()

    def values(self, content: Callable[[Path], bytes | None] = lambda _file: None) -> dict[str, Any]:
        """Return the values for templates; `content` returns a file of values as it was then, None for that on disk.

        Raises:
            ManifestErrors: a file of values is not valid.
        """
        values: dict[str, Any] = {}
        for file in map(Path, self.values_files):
            values |= read_mapping(open_source(str(file), content(file)))
        return {**values, **self.settings}


@dataclass(frozen=True, slots=True)
class Assembled:
    """A target as the planner gets it, and the layers behind it."""

    target: DesiredTarget
    effective: Stack


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests, merged and free of errors.

    Attributes:
        desired: all targets. Until groups are discovered, sets that name groups apply only to projects with documents.
        warnings: sorted by place.
        files: as the user named them.
    """

    desired: DesiredState
    warnings: tuple[LocatedDiagnostic, ...]
    files: tuple[str, ...]
    _index: Index = field(repr=False, compare=False)
    _assembled: Mapping[Any, Assembled] = field(repr=False, compare=False)
    _diagnostics: Diagnostics = field(repr=False, compare=False)
    _known: tuple[Discovered | None, Mapping[Target, str]] = field(default=(None, NO_PATHS), repr=False, compare=False)

    @property
    def advice(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings that only `validate` shows, sorted by place; to locate each, its file is parsed again."""
        return self._diagnostics.advice

    @property
    def layered(self) -> tuple[Stack, ...]:
        """The merged specs of all targets, with the layers behind them."""
        return tuple(each.effective for each in self._assembled.values())

    @property
    def deviations(self) -> Iterator[tuple[Target, Layer, Steps]]:
        """The values of targets' own documents that break locks, by their steps there, as written."""
        for target, whole in ((each.target, each) for each in self.layered if each.has_locks):
            own = self.declared(target.identity)
            for layer, steps in deviations(whole):
                if own is not None and layer is own.layer:
                    yield target, layer, steps

    @property
    def specs(self) -> SectionSpecs:
        """The form of each section."""
        return self._index.specs

    @property
    def sources(self) -> dict[str, Source]:
        """The files that hold documents, by path."""
        return {document.source.path: document.source for document in self._index.documents}

    @property
    def documents_by_file(self) -> dict[str, tuple[Document, ...]]:
        """The documents of each file that is no template, as they were read: what they say depends on nothing else."""
        files: dict[str, list[Document]] = {}
        for document in sorted(self._index.documents, key=lambda document: document.number):
            if not document.source.path.endswith(TEMPLATE):
                files.setdefault(document.source.path, []).append(document)
        return {path: tuple(documents) for path, documents in files.items()}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups to discover the projects of, sorted, as the sets name them."""
        return tuple(sorted({each.select.group for each in self._index.sets.values() if each.select.group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """The groups of which a set selects archived projects too."""
        selected = (each.select for each in self._index.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    @property
    def unlisted(self) -> tuple[UnlistedSet, ...]:
        """The sets whose groups cannot be listed, in the order of their places."""
        discovered, _ = self._known
        hidden = {group: each for group, each in (discovered or {}).items() if isinstance(each, Obstacle)}
        found = []
        for each in self._index.sets.values():
            if each.select.group in hidden:
                profiles = [self._index.profiles[profile] for profile in each.metadata.profiles]
                origin = each.layer.document.find(("select", "group")).line
                obstacle = hidden[each.select.group].at(Target(Level.GROUP, each.select.group).address)
                found.append(UnlistedSet(obstacle, origin, (*profiles, each.layer), each.select))
        return tuple(sorted(found, key=lambda each: each.origin))

    @property
    def sections_below(self) -> dict[str, frozenset[str]]:
        """By group, as of `groups`, the sections that projects below it may declare, by all documents about them."""
        return sections_below(self._index)

    @property
    def documents(self) -> dict[str, int]:
        """The number of documents of each sort of which there are any."""
        numbers = dict(Counter(str(declared.target.level) for declared in self._index.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self._index.sets), "profile": len(self._index.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    def declared(self, identity: Identity) -> DeclaredTarget | None:
        """Return the document of a target, None if it has none of its own."""
        return self._index.targets.get(identity)

    def covers(self, target: Target) -> bool:
        """Return whether a target has a document of its own, or a set selects it."""
        return target.identity in self._assembled

    def profile(self, name: str) -> Layer | None:
        """Return the layer of a profile, None if there is none of that name."""
        return self._index.profiles.get(name)

    def project_set(self, name: str) -> DeclaredSet | None:
        """Return a set, None if there is none of that name."""
        return self._index.sets.get(name)

    def beneath(self, target: Target) -> Stack:
        """Return what the profiles and sets beneath the document of a target declare.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        return whole.of(*whole.layers[:-1])

    @property
    def pathless(self) -> tuple[Target, ...]:
        """The targets named by ID whose placeholders wait for their paths."""
        return tuple(each.target.target for each in self._assembled.values() if each.effective.values is None)

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as the lists of projects show them, in lower case."""
        discovered, _ = self._known
        sets = self._index.sets.values() if discovered else ()
        return frozenset(path.casefold() for each in sets for path in archived_left_out(each.select, discovered or {}))

    def perhaps_archived(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some projects, in lower case, that sets leave out and no list shows if they are archived.

        Archived projects are listed only for a group of which a set selects them.

        Args:
            paths: of projects that no list shows.
        """
        listed = self.groups_with_archived
        selected = (each.select for each in self._index.sets.values())
        hiding = [select for select in selected if select.group and select.group not in listed]
        folded = {path.casefold() for path in paths}
        return frozenset(
            path
            for select in hiding
            for path in chosen(select, (each for each in folded if each.startswith(f"{select.group}/".casefold())))
        )

    def with_discovered(self, discovered: Discovered | None, paths: Mapping[Target, str] = NO_PATHS) -> "Manifests":
        """Return the manifests with all sets applied, and with placeholders filled in wherever a path is known.

        Args:
            discovered: the projects below each of `groups`; None before the discovery.
            paths: the known full paths of targets named by ID.

        Raises:
            ManifestErrors: such as two sets that disagree on a project.
            KeyError: a group is missing.
        """
        return _manifests(self._index, Diagnostics(), self.files, discovered, paths)

    def of_members(self, discovered: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        """Return what is declared of some projects of groups, as far as these groups tell; nothing if it has errors.

        Args:
            discovered: projects by group, in lower case.
        """
        diagnostics = Diagnostics()
        names = {name for members in discovered.values() for each in members for name in (each.path, each.id)}
        only = {Target(Level.PROJECT, name).identity for name in names}
        shown = {group: discovered[group.casefold()] for group in self.groups}
        compositions = compose(self._index, shown, NO_PATHS, diagnostics, only=only)
        merged = _merge(compositions, self._index, diagnostics)
        return () if diagnostics.errors else tuple(each.target for each in merged.values())

    def revised(
        self, replaced: Mapping[Document, Document], added: Iterable[Document]
    ) -> "tuple[Manifests | None, frozenset[tuple[Hashable, str]]]":
        """Return the manifests with other documents, at the same knowledge of the service.

        Args:
            replaced: by document, what stands in its place.
            added: further documents.

        Returns:
            The manifests, None if they have errors; and the targets and documents at fault, each with the section.
        """
        diagnostics = Diagnostics()
        try:
            return self._revised(replaced, added, diagnostics), frozenset()
        except ManifestErrors:
            return None, frozenset(diagnostics.faulty)

    def with_documents(self, replaced: Mapping[Document, Document], added: Iterable[Document] = ()) -> "Manifests":
        """Return the manifests with other documents, as `revised` does; locks bind, whether they did before or not.

        Raises:
            ManifestErrors: with all errors.
        """
        return self._revised(replaced, added, Diagnostics())

    def _revised(
        self, replaced: Mapping[Document, Document], added: Iterable[Document], diagnostics: Diagnostics
    ) -> "Manifests":
        index = self._index.without(replaced.keys())
        for document in (*replaced.values(), *added):
            for each in index.add(document):
                diagnostics.add(document, each)
        alone = _manifests(index, diagnostics, self.files)
        return _manifests(index, diagnostics, self.files, *self._known) if any(self._known) else alone

    def effective(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as plain data of its own.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        head = {PRUNE: whole.prune} if whole.prune else {}
        if whole.unmanaged:
            head[UNMANAGED] = whole.layers[-1].document.value["spec"][UNMANAGED]
        spec: dict[str, Any] = _copied({**head, **whole.sections})
        return spec

    def unmanaged(self, target: Target, section: str) -> str:
        """Return where the document of a target leaves a section alone, as `path:line`; empty if it does not.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        return whole.layers[-1].document.find(("spec", UNMANAGED)).line if section in whole.unmanaged else ""

    def as_written(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as one manifest writes it, with literal braces doubled.

        Raises:
            KeyError: no such target.
        """
        spec = self.effective(target)
        waits = self._assembled[target.identity].effective.values is None
        written: dict[str, Any] = spec if waits else literal(spec)
        return written

    def origin(self, address: Address, field: str | None = None) -> str:
        """Return where an object, a field of it, or a creation is declared, as `path:line`; empty if nowhere.

        What is not declared in a pruned section has its origin where that is said.
        """
        whole = self._assembled.get(address.target.identity)
        if whole is not None and whole.target.creation and not address.section:
            return whole.effective.layers[-1].document.find((CREATE,), key=True).line
        if whole is None or address.section not in whole.effective.sections:
            return ""
        steps = _steps(whole.effective, address, field)
        around = 1 if address.part == address.section else 2
        if address.name is not None and len(steps) <= around and address.section in whole.effective.prune:
            steps = (PRUNE, whole.effective.prune.index(address.section))
        _, location = find(whole.effective, steps, key=True)
        return location.line

    def lock(self, address: Address, field: str | None = None) -> Lock | None:
        """Return the lock of a profile or a set that holds an object, or a field of it; None if none does.

        An entry of an allowlist is held by the lock of its list.
        """
        whole = self._assembled.get(address.target.identity)
        if whole is None or address.section not in whole.effective.sections:
            return None
        return lock_on(whole.effective, _steps(whole.effective, address, field))

    def declaration(self, address: Address, others: Iterable[Key] = ()) -> tuple[str, tuple[str, ...]] | None:
        """Return where the lowest layer declares an item, as `path:line`, and names as they would be written there.

        Args:
            address: of the item.
            others: further names, of the same target.

        Returns:
            The place; the item's own name and the others, with the placeholders that the item's own name has. None if
            no layer declares the item.
        """
        whole = self._assembled.get(address.target.identity)
        section = whole.effective.sections.get(address.section) if whole else None
        if whole is None or not isinstance(section, dict) or address.name not in section:
            return None
        declared = declarations(whole.effective, (address.section, address.name))
        lowest = next((each for each in declared if each.value is not None), declared[0])
        own_name = str(lowest.steps[-1])
        values = whole.effective.values or {}
        used = {name: value for name, value in values.items() if name in placeholders_in(own_name)}
        return lowest.line, (own_name, *(unfilled(str(other), used) for other in others))

    def remarks(self, target: Target, path: Sequence[str | int]) -> list[str]:
        """Return the lock that holds a field, and the exceptions that are about it, a line each.

        Args:
            target: the target.
            path: the keys from the spec downwards.

        Raises:
            KeyError: no such target.
        """
        found = self._assembled[target.identity]
        lock = lock_on(found.effective, tuple(path))
        return [
            *([f"locked by {lock}"] if lock else []),
            *(
                f"excepted until {each.until}: {each.reason} ({each.origin})"
                for each in exceptions_on(found.target.exceptions, found.effective, tuple(path))
            ),
        ]

    def explain(self, target: Target, path: str | Sequence[str | int]) -> list[tuple[str, Any]]:
        """Return `path:line` and value of each layer that sets a field, lowest first; nothing if none does.

        Args:
            target: the target.
            path: the keys from the spec downwards, as a sequence or joined by dots (keys may hold dots themselves).

        Raises:
            KeyError: no such target.
        """
        steps = field_path(path, self.effective(target)) if isinstance(path, str) else tuple(path)
        declared = declarations(self._assembled[target.identity].effective, steps) if steps else ()
        return [(each.line, each.value) for each in declared]


def _steps(whole: Stack, address: Address, field: str | None) -> Steps:
    """Return the steps to an object, or to its field, in a merged spec, as far as it declares it."""
    part = () if address.part == address.section else (address.part,)
    return object_path(whole, address.section, part, address.name, field)


def read_manifests(
    paths: Sequence[Path],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    secrets: Collection[str] = (),
    locks_bind: bool = True,
) -> Manifests:
    """Read, render, merge and check the manifests in files and folders.

    Templates may read `values`, and the environment variables in `env_names` as `env.NAME`. No message shows a secret.
    Unless `locks_bind`, a broken lock is no error yet: see `Manifests.deviations`.

    Raises:
        ManifestErrors: with all errors of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    found = search(paths)
    index = Index(section_specs(kinds), around=Surroundings(tokens=secrets), locks_bind=locks_bind)
    with _Reader(index, values, env_names, secrets) as reader:
        reader.note(found)
        for path in found.files:
            reader.read(path)
        return _manifests(reader.index, reader.diagnostics, tuple(reader.parsed))


def read_contents(
    contents: Mapping[str, bytes | tuple[Document, ...]],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    around: Surroundings = NOT_HERE,
) -> Manifests:
    """Read manifests that are not on disk, such as those of another revision, by path; see `read_manifests`.

    Args:
        contents: of the files; of one that was read before, its documents, as of `Manifests.documents_by_file`.
        kinds: all kinds.
        values: see `read_manifests`.
        env_names: likewise.
        around: what `create` refers to; without it, archives are not looked at.
    """
    index = Index(section_specs(kinds), around=around)
    with _Reader(index, values, env_names) as reader:
        for path, content in contents.items():
            if isinstance(content, bytes):
                reader.read(path, content)
            else:
                reader.share(path, content)
        return _manifests(reader.index, reader.diagnostics, tuple(reader.parsed))


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The documents of a file, its errors and warnings, and whether all of it could be read."""

    documents: tuple[Document, ...]
    found: tuple[LocatedDiagnostic, ...]
    whole: bool


@dataclass(slots=True)
class _Reader:
    """Reads files into an index; as a context manager, it ends the process that renders templates."""

    index: Index
    values: Mapping[str, Any]
    env_names: Sequence[str]
    secrets: Collection[str] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    parsed: dict[str, "_Parsed"] = field(default_factory=dict)
    _templates: "Templates | None" = None

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._templates is not None:
            self._templates.close()

    def note(self, found: Search) -> None:
        """Take up what a search could not find, and what it passed over."""
        self.diagnostics.extend(found.errors)
        self.index.whole &= not found.errors
        self.diagnostics.extend(located(path, why_passed_over(path), "warning") for path in found.passed_over)

    def read(self, path: str, content: bytes | None = None) -> None:
        """Read a file, or its content if that is given."""
        self.parsed[path] = parsed = self._parse(path, content)
        self._add(parsed)

    def share(self, path: str, documents: tuple[Document, ...]) -> None:
        """Take up the documents of a file that was read before, without errors."""
        self.parsed[path] = parsed = _Parsed(documents, (), whole=True)
        self._add(parsed)

    def _parse(self, path: str, content: bytes | None) -> "_Parsed":
        try:
            source = self._rendered(open_source(path, content, tuple(self.secrets)))
        except ManifestErrors as errors:
            return _Parsed((), errors.diagnostics, whole=False)
        reading = source.read()
        empty = not reading.roots and not reading.errors and not source.own_line
        found = [*reading.errors, *([located(path, "holds no document", "warning")] if empty else ())]
        roots = enumerate(reading.roots)
        documents = tuple(Document(source, number, root.line, root.value) for number, root in roots)
        return _Parsed(documents, tuple(found), reading.whole)

    def _add(self, parsed: "_Parsed") -> None:
        self.diagnostics.extend(parsed.found)
        self.index.whole &= parsed.whole
        for document in parsed.documents:
            for each in self.index.add(document):
                self.diagnostics.add(document, each)

    def _rendered(self, source: Source) -> Source:
        if not source.path.endswith(TEMPLATE):
            return source
        if self._templates is None:
            from reconciler.manifests.templates import Templates  # noqa: PLC0415 - only templates need a process

            self._templates = Templates(self.values, self.env_names, secrets=self.secrets)
        return self._templates.source(source.path, source.text)


def _manifests(
    index: Index,
    diagnostics: Diagnostics,
    files: tuple[str, ...],
    discovered: Discovered | None = None,
    paths: Mapping[Target, str] = NO_PATHS,
) -> Manifests:
    """Merge and check all targets.

    Raises:
        ManifestErrors: with all errors.
    """
    targets = _assemble(compose(index, discovered, paths, diagnostics), index, diagnostics)
    if diagnostics.errors:
        raise ManifestErrors([*diagnostics.located, *diagnostics.advice])
    digest = hashlib.sha256()
    for each in targets.values():
        digest.update(CANONICAL.encode(_canonical(each)).encode() + b"\n")
    desired = DesiredState(tuple(each.target for each in targets.values()), digest.hexdigest())
    known = (discovered, paths)
    return Manifests(desired, diagnostics.warnings, files, index, targets, diagnostics, known)


def _canonical(each: Assembled) -> Any:
    """Return a target's desired state in an order that does not depend on the files."""
    whole = each.effective
    sections = {name: _unordered(whole.specs[name], section) for name, section in whole.sections.items()}
    exceptions = [[*map(str, (each.section, each.item, each.until)), *each.fields] for each in each.target.exceptions]
    creation = each.target.creation
    return [
        str(each.target.target),
        sections,
        sorted(whole.prune),
        *([sorted(exceptions)] if exceptions else []),
        *([unordered(creation)] if creation else []),
        *([{UNMANAGED: sorted(whole.unmanaged)}] if whole.unmanaged else []),
    ]


def _unordered(spec: SectionSpec, section: Mapping[str, Any]) -> Mapping[str, Any]:
    if not spec.lists:
        return section
    return {key: sorted(value, key=str) if spec.merges_as_set(key) else value for key, value in section.items()}


def _copied(value: Any) -> Any:
    """Copy a value, and what aliases share for each of them."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _assemble(compositions: list[Composition], index: Index, diagnostics: Diagnostics) -> dict[Identity, Assembled]:
    """Merge and check each target; return the good ones by identity."""
    levels = path_levels(index, diagnostics)
    _check_creations(index, diagnostics)
    assembled = _merge(compositions, index, diagnostics)
    declared = [each.effective for each in assembled.values()]
    sound = [_sound(each) for each in assembled.values()]
    groups = {str(each.target.ref).casefold(): each for each in sound if each.target.level is Level.GROUP}
    for whole, right in zip(declared, sound, strict=True):
        for found in chain(misplaced_references(whole, levels), contradictions(right, groups)):
            diagnostics.add_merged(whole, found)
    return assembled


def _sound(each: Assembled) -> Stack:
    """Return the merged spec of a target without the sections that have errors: these may have any shape."""
    whole, names = each.effective, {section.kind for section in each.target.sections}
    if len(names) == len(whole.sections):
        return whole
    return replace(whole, sections={name: section for name, section in whole.sections.items() if name in names})


def _check_creations(index: Index, diagnostics: Diagnostics) -> None:
    """Check what documents create against one another."""
    creating = [(each.target, each.creation, each.layer.document) for each in index.targets.values() if each.creation]
    creations = {target.identity: creation for target, creation, _ in creating}
    for target, _, document in creating:
        if (advice := too_visible(target, creations)) is not None:
            diagnostics.add(document, advice)
    for document, error in namesakes(creating) if creating else ():
        diagnostics.add(document, error)


def _merge(compositions: list[Composition], index: Index, diagnostics: Diagnostics) -> dict[Identity, Assembled]:
    """Merge and check each target by itself."""
    compared: set[tuple[int | str, ...]] = set()
    assembled: dict[Identity, Assembled] = {}
    for composition in compositions:
        target, layers = composition.target, composition.layers
        too_long = [(layer, error) for layer in layers if (error := overfilled(layer, composition.values))]
        if too_long:
            for layer, error in too_long:
                diagnostics.add(layer.document, error)
        elif all(part.whole for part in composition.parts):
            whole = stacked(target, layers, index.specs, composition.values, layers[-1].unmanaged)
            _check_layers(whole, index, diagnostics)
            sets = [part for part in composition.parts if part.priority is not None]
            for wanted, conflict in set_conflicts(sets, whole, compared) if len(sets) > 1 else ():
                diagnostics.add_merged(wanted, conflict)
            labels = {name: value for part in composition.parts for name, value in part.labels.items()}
            sections = tuple(_sections(whole, target, diagnostics))
            origin = layers[-1].document.origin
            exceptions = tuple(_exceptions(index, whole, diagnostics))
            own = index.targets.get(target.identity)
            creation = own.creation if own else None
            about = (origin, MappingProxyType(labels), composition.path, exceptions, composition.listed, creation)
            desired = DesiredTarget(target, sections, *about, unmanaged=whole.unmanaged)
            assembled[target.identity] = Assembled(desired, whole)
        elif composition.parts[-1].priority is None:
            for name, section in layers[-1].sections.items():
                for found in check_alone(index.specs[name], section, (target.level,)):
                    diagnostics.add(layers[-1].document, found)
    return assembled


def _sections(whole: Stack, target: Target, diagnostics: Diagnostics) -> Iterator[Section]:
    """Yield the checked sections of a target."""
    for name in whole.sections:
        spec, pruned = whole.specs[name], name in whole.prune
        section, found = check_section(whole, spec, target)
        for each in found:
            diagnostics.add_merged(whole, each)
        if section is not None:
            own = not whole.layers[-1].title and name in whole.layers[-1].sections
            yield Section(target, name, spec.kind.wanted(section, prune=pruned), pruned, own)
    for number, name in enumerate(whole.prune):
        if name and not any(name in layer.document.value.get("spec", {}) for layer in whole.layers):
            undeclared = f"{name} is to be pruned but not declared: write `{name}: {{}}` if nothing may exist there"
            message = level_error(name, target.level, whole.specs) or undeclared
            diagnostics.add_merged(whole, Diagnostic((PRUNE, number), message))


def _exceptions(index: Index, whole: Stack, diagnostics: Diagnostics) -> Iterator[DeclaredException]:
    """Yield the exceptions of a target's own document that are free of errors."""
    own = index.targets.get(whole.target.identity)
    if own is not None and own.metadata.exceptions:
        exceptions, found = read_exceptions(own.metadata.exceptions, whole, index.today)
        yield from exceptions
        for each in found:
            diagnostics.add(own.layer.document, each)


def _check_layers(whole: Stack, index: Index, diagnostics: Diagnostics) -> None:
    """Check the layers of a target against its level, and against one another's locks."""
    for layer in whole.layers:
        _check_shared(layer, whole, whole.target, diagnostics)
    for layer, error in broken_locks(whole) if whole.has_locks and index.locks_bind else ():
        diagnostics.add_declared(layer, error, whole.target)


def _check_shared(layer: Layer, whole: Stack, target: Target, diagnostics: Diagnostics) -> None:
    """Report sections that the target's level does not have, and names that are the same once filled in."""
    for name, value in layer.sections.items():
        if name in whole.unmanaged:
            continue
        error = level_error(name, target.level, whole.specs) if layer.title else None
        if error:
            found = Diagnostic(("spec", name), f"{error} (for {target})", at_key=True)
            diagnostics.add(layer.document, found, by=target)
        elif layer.placeholders:
            for found in clashing_names(layer.document, whole.specs[name], value, whole.values):
                diagnostics.add(layer.document, found)
