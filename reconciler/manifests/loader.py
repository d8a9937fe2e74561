"""Files to `Manifests`: read, merged and checked, with the origin of every field."""

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.creation import Surroundings, namesakes, too_visible, unordered
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
from reconciler.manifests.index import (
    Composition,
    Index,
    clashing_names,
    compose,
    contradictions,
    misplaced_references,
    overfilled,
    path_levels,
)
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import (
    Discovered,
    Member,
    UnlistedSet,
    archived_left_out,
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
from reconciler.manifests.stack.exceptions import read_exceptions
from reconciler.manifests.stack.layers import Layer, Stack, stacked
from reconciler.manifests.stack.locks import broken_locks, deviations
from reconciler.manifests.stack.sections import PRUNE, UNMANAGED, SectionSpec, level_error, section_specs
from reconciler.manifests.validation import check_alone, check_section
from reconciler.model.exceptions import DeclaredException
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Address, Key, Level, Target

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
class Manifests:
    """The manifests, merged and free of errors.

    Attributes:
        desired: all targets. Until groups are discovered, sets that name groups apply only to projects with documents.
        warnings: sorted by place.
        files: as the user named them.
        index: the documents that were read.
        targets: what each target wants, by `Target.identity`.
    """

    desired: DesiredState
    warnings: tuple[LocatedDiagnostic, ...]
    files: tuple[str, ...]
    index: Index = field(repr=False, compare=False)
    targets: Mapping[Identity, MergedTarget] = field(repr=False, compare=False)
    _diagnostics: Diagnostics = field(repr=False, compare=False)
    _known: tuple[Discovered | None, Mapping[Target, str]] = field(default=(None, NO_PATHS), repr=False, compare=False)

    @property
    def advice(self) -> tuple[LocatedDiagnostic, ...]:
        """The warnings that only `validate` shows, sorted by place; to locate each, its file is parsed again."""
        return self._diagnostics.advice

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The layers of each target."""
        return tuple(merged.stack for merged in self.targets.values())

    @property
    def deviations(self) -> Iterator[tuple[Target, Layer, Steps]]:
        """The values of targets' own documents that break locks, by their steps there, as written."""
        for stack in (stack for stack in self.stacks if stack.has_locks):
            for layer, steps in deviations(stack):
                if not layer.title:
                    yield stack.target, layer, steps

    @property
    def unlisted(self) -> tuple[UnlistedSet, ...]:
        """The sets whose groups cannot be listed, in the order of their places."""
        discovered, _ = self._known
        hidden = {group: listed for group, listed in (discovered or {}).items() if isinstance(listed, Obstacle)}
        unlisted = []
        for declared in self.index.sets.values():
            if declared.select.group in hidden:
                profiles = [self.index.profiles[profile] for profile in declared.metadata.profiles]
                origin = declared.layer.document.find(("select", "group")).line
                obstacle = hidden[declared.select.group].at(Target(Level.GROUP, declared.select.group).address)
                unlisted.append(UnlistedSet(obstacle, origin, (*profiles, declared.layer), declared.select))
        return tuple(sorted(unlisted, key=lambda each: each.origin))

    @property
    def pathless(self) -> tuple[Target, ...]:
        """The targets named by ID whose placeholders wait for their paths."""
        return tuple(stack.target for stack in self.stacks if stack.values is None)

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as the lists of projects show them, in lower case."""
        discovered = self._known[0] or {}
        selected = [declared.select for declared in self.index.sets.values()] if discovered else []
        return frozenset(path.casefold() for select in selected for path in archived_left_out(select, discovered))

    def of(self, target: Target) -> MergedTarget:
        """Return what a target wants.

        Raises:
            KeyError: no such target.
        """
        return self.targets[target.identity]

    def inherited(self, target: Target, field: str) -> Iterator[str]:
        """Yield the objects of groups above a target that hold there too, as far as their documents are here.

        Args:
            target: the target; of one named by ID, the groups are not known.
            field: a section, or an object of it or a field of that, joined by dots.
        """
        section, _, rest = field.partition(".")
        names = str(target.ref).split("/")
        paths = ["/".join(names[:end]) for end in range(1, len(names))]
        above = (self.targets.get(Target(Level.GROUP, path).identity) for path in paths)
        for group in (group for group in above if group and group.hands_down(section)):
            for name, wanted in group.spec.get(section, {}).items():
                if wanted is not None and f"{rest}.".startswith(f"{name}." if rest else ""):
                    place, _ = group.explain((section, name))[-1]
                    yield f'also holds here: "{name}" of {group.desired.target} ({place})'

    def origin(self, address: Address, field: str | None = None) -> str:
        """Return where something of any target is declared: see `MergedTarget.origin`."""
        merged = self.targets.get(address.target.identity)
        return merged.origin(address, field) if merged else ""

    def declaration(self, address: Address, others: Iterable[Key] = ()) -> tuple[str, tuple[str, ...]] | None:
        """Return where an item of any target is declared: see `MergedTarget.declaration`."""
        merged = self.targets.get(address.target.identity)
        return merged.declaration(address, others) if merged else None

    def with_discovered(self, discovered: Discovered | None, paths: Mapping[Target, str] = NO_PATHS) -> "Manifests":
        """Return the manifests with all sets applied, and with placeholders filled in wherever a path is known.

        Args:
            discovered: the projects below each of `groups`; None before the discovery.
            paths: the known full paths of targets named by ID.

        Raises:
            ManifestErrors: such as two sets that disagree on a project.
            KeyError: a group is missing.
        """
        return _manifests(self.index, Diagnostics(), self.files, discovered, paths)

    def of_members(self, discovered: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        """Return what is declared of some projects of groups, as far as these groups tell; nothing if it has errors.

        Args:
            discovered: projects by group, in lower case.
        """
        diagnostics = Diagnostics()
        names = {name for members in discovered.values() for each in members for name in (each.path, each.id)}
        only = {Target(Level.PROJECT, name).identity for name in names}
        shown = {group: discovered[group.casefold()] for group in self.index.groups}
        compositions = compose(self.index, shown, NO_PATHS, diagnostics, only=only)
        merged = _merge(compositions, self.index, diagnostics)
        return () if diagnostics.errors else tuple(each.desired for each in merged.values())

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
        index = self.index.without(replaced.keys())
        for document in (*replaced.values(), *added):
            for each in index.add(document):
                diagnostics.add(document, each)
        alone = _manifests(index, diagnostics, self.files)
        return _manifests(index, diagnostics, self.files, *self._known) if any(self._known) else alone


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
    with _IndexReader(index, values, env_names, secrets) as reader:
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
    with _IndexReader(index, values, env_names) as reader:
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
class _IndexReader:
    """Reads files into an index; as a context manager, it ends the process that renders templates."""

    index: Index
    values: Mapping[str, Any]
    env_names: Sequence[str]
    secrets: Collection[str] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    parsed: dict[str, "_Parsed"] = field(default_factory=dict)
    _templates: "Templates | None" = None

    def __enter__(self) -> "_IndexReader":
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
    desired = DesiredState(tuple(each.desired for each in targets.values()), digest.hexdigest())
    known = (discovered, paths)
    return Manifests(desired, diagnostics.warnings, files, index, targets, diagnostics, known)


def _canonical(merged: MergedTarget) -> Any:
    """Return a target's desired state in an order that does not depend on the files."""
    whole = merged.stack
    sections = {name: _unordered(whole.specs[name], section) for name, section in whole.sections.items()}
    exceptions = [
        [*map(str, (each.section, each.item, each.until)), *each.fields] for each in merged.desired.exceptions
    ]
    creation = merged.desired.creation
    return [
        str(merged.desired.target),
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


def _assemble(compositions: list[Composition], index: Index, diagnostics: Diagnostics) -> dict[Identity, MergedTarget]:
    """Merge and check each target; return the good ones by identity."""
    levels = path_levels(index, diagnostics)
    _check_creations(index, diagnostics)
    assembled = _merge(compositions, index, diagnostics)
    declared = [each.stack for each in assembled.values()]
    sound = [_sound(each) for each in assembled.values()]
    groups = {str(each.target.ref).casefold(): each for each in sound if each.target.level is Level.GROUP}
    for whole, right in zip(declared, sound, strict=True):
        for found in chain(misplaced_references(whole, levels), contradictions(right, groups)):
            diagnostics.add_merged(whole, found)
    return assembled


def _sound(each: MergedTarget) -> Stack:
    """Return the merged spec of a target without the sections that have errors: these may have any shape."""
    whole, names = each.stack, {section.kind for section in each.desired.sections}
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


def _merge(compositions: list[Composition], index: Index, diagnostics: Diagnostics) -> dict[Identity, MergedTarget]:
    """Merge and check each target by itself."""
    compared: set[tuple[int | str, ...]] = set()
    assembled: dict[Identity, MergedTarget] = {}
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
            assembled[target.identity] = MergedTarget(desired, whole)
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
