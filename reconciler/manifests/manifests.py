"""Read files into `Manifests`: search, render, parse, index, merge.

Begin with `read_manifests`. `merge_manifests` runs again each time the service has shown more about targets, such as
the projects of a group: see `Manifests.with_discovered`.
"""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.consistency import check_together
from reconciler.manifests.creation import Surroundings, unordered
from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.exceptions import endings
from reconciler.manifests.index import Index, everywhere, nowhere
from reconciler.manifests.layers import AT_LEAST, UNMANAGED, Layer, Stack, section_specs
from reconciler.manifests.locks import deviations
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.moved import with_present_paths
from reconciler.manifests.project_sets import (
    NO_BRANCHES,
    NO_PATHS,
    NOTHING_SHOWN,
    Branches,
    Discovered,
    Member,
    Shown,
    UnlistedSet,
    archived_left_out,
)
from reconciler.manifests.sources import (
    TEMPLATE,
    Document,
    Secrets,
    Steps,
    located,
    no_secrets,
    open_source,
    read_mapping,
    search,
    why_passed_over,
)
from reconciler.manifests.targets import merge_targets
from reconciler.manifests.templates import Templates
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Address, Identity, Key, Level, Target
from reconciler.system import clock

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

NO_VALUES: Mapping[str, Any] = MappingProxyType({})


NOT_HERE = Surroundings(digest=lambda _archive: "")
"""Surroundings for documents that are only compared: archives are not read."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The sources of manifests, in any revision: paths, the values and variables of templates, and secrets to hide.

    `settings` win over the values in `values_files`.
    """

    paths: Sequence[Path]
    kinds: Kinds
    values_files: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    env_names: Sequence[str] = ()
    secrets: Secrets = no_secrets

    def values(self, content_of: Callable[[Path], bytes | None] = lambda _file: None) -> dict[str, Any]:
        """Return the values for templates.

        Args:
            content_of: returns the content of a values file in another revision, or None to read it from disk.

        Raises:
            ManifestErrors: a file of values is not valid.
        """
        values: dict[str, Any] = {}
        for file in map(Path, self.values_files):
            # a later file wins, key by key at the top only
            values |= read_mapping(open_source(str(file), content_of(file)))
        return {**values, **self.settings}


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests, merged and free of errors.

    Attributes:
        desired: all targets. Until groups are discovered, sets that name groups apply only to projects with documents.
        files: as the user named them.
        index: the documents that were read.
        targets: the merged targets, by `Target.identity`.
    """

    desired: DesiredState
    files: tuple[str, ...] = ()
    index: Index = field(default_factory=lambda: Index({}), repr=False, compare=False)
    targets: Mapping[Identity, MergedTarget] = field(default_factory=dict, repr=False, compare=False)
    _diagnostics: Diagnostics = field(default_factory=Diagnostics, repr=False, compare=False)
    _shown: Shown = field(default=NOTHING_SHOWN, repr=False, compare=False)

    @property
    def warnings(self) -> tuple[LocatedDiagnostic, ...]:
        """All warnings, sorted by place."""
        return self._diagnostics.warnings

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
        discovered = self._shown.discovered or {}
        hidden = {group: listed for group, listed in discovered.items() if isinstance(listed, Obstacle)}
        unlisted = []
        for declared in self.index.sets.values():
            if declared.select.group in hidden:
                profiles = [self.index.profiles[profile] for profile in declared.profiles]
                origin = declared.document.find(("select", "group")).line
                obstacle = hidden[declared.select.group].at(Target(Level.GROUP, declared.select.group).address)
                unlisted.append(UnlistedSet(obstacle, origin, (*profiles, declared), declared.select))
        return tuple(sorted(unlisted, key=lambda unlisted_set: unlisted_set.origin))

    @property
    def pathless(self) -> tuple[Target, ...]:
        """The targets named by ID whose placeholders wait for their paths."""
        return tuple(each.stack.target for each in self.targets.values() if each.stack.values is None)

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as the lists of projects show them, in lower case."""
        discovered = self._shown.discovered or {}
        selected = [declared.select for declared in self.index.sets.values()] if discovered else []
        return frozenset(path.casefold() for select in selected for path in archived_left_out(select, discovered))

    def ending(self, today: date) -> tuple[LocatedDiagnostic, ...]:
        """Return a warning about each exception that has ended, or will within two weeks, sorted by place."""
        diagnostics = Diagnostics()
        for declared in self.index.targets.values():
            for number, written in declared.exceptions.items():
                for warning in endings(number, written.until, today):
                    diagnostics.add(warning, declared.document)
        return diagnostics.warnings

    def of(self, target: Target) -> MergedTarget:
        """Return a target and its layers.

        Raises:
            KeyError: no such target.
        """
        return self.targets[target.identity]

    def inherited(self, target: Target, field: str) -> Iterator[str]:
        """Yield a line about each object of a group above a target that applies to the target too.

        Args:
            target: the target. The groups above a target named by ID are not known.
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
        """Return the place of an object or a field of any target: see `MergedTarget.origin`."""
        merged = self.targets.get(address.target.identity)
        return merged.origin(address, field) if merged else ""

    def declaration(self, address: Address, others: Iterable[Key] = ()) -> tuple[str, tuple[str, ...]] | None:
        """Return the place of an item of any target: see `MergedTarget.declaration`."""
        merged = self.targets.get(address.target.identity)
        return merged.declaration(address, others) if merged else None

    def with_discovered(
        self,
        discovered: Discovered | None,
        paths: Mapping[Target, str] = NO_PATHS,
        branches: Branches = NO_BRANCHES,
    ) -> "Manifests":
        """Return the manifests with all sets applied, and with placeholders filled in wherever a path is known.

        Args:
            discovered: the projects below each of `groups`; None before the discovery.
            paths: the known full paths of targets named by ID.
            branches: the default branches of projects that no list shows.

        Raises:
            ManifestErrors: such as two sets that disagree on a project.
            KeyError: a group is missing.
        """
        return merge_manifests(self.index, Diagnostics(), self.files, Shown(discovered, paths, branches))

    def with_branches(self, branches: Branches) -> "Manifests":
        """Return the manifests with further default branches; see `with_discovered`."""
        return self.with_discovered(*self._shown._replace(branches={**self._shown.branches, **branches}))

    def with_moved(self, present_paths: Mapping[Identity, str]) -> "Manifests":
        """Return the manifests with the present paths of groups and projects that documents name by former ones.

        Where the present path would lead to errors, such as two documents of one project, the former one stays.

        Args:
            present_paths: by `Target.identity` with the former path.
        """
        documents = self.index.documents if present_paths else ()
        renamed = {document: with_present_paths(document, present_paths) for document in documents}
        moved = {document: after for document, after in renamed.items() if after is not document}
        if not moved:
            return self
        try:
            return self._revised(moved, (), Diagnostics(), self.index.binds)
        except ManifestErrors:
            paths, manifests = {*present_paths.values()}, self
            # One path after the other: an error of one must not keep the former paths of all others.
            for path in sorted(paths) if len(paths) > 1 else ():
                manifests = manifests.with_moved({old: new for old, new in present_paths.items() if new == path})
            return manifests

    def of_members(self, members_by_group: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        """Return the desired state of some projects of groups; empty if there are errors.

        Args:
            members_by_group: the projects by group, in lower case; sets see no other projects.
        """
        diagnostics = Diagnostics()
        names = {name for members in members_by_group.values() for each in members for name in (each.path, each.id)}
        only = {Target(Level.PROJECT, name).identity for name in names}
        shown = {group: members_by_group[group.casefold()] for group in self.index.groups}
        merged = merge_targets(self.index, Shown(shown), diagnostics, only=only)
        return () if diagnostics.errors else tuple(each.desired for each in merged.values())

    def revised(
        self, replaced: Mapping[Document, Document], added: Iterable[Document]
    ) -> "tuple[Manifests | None, frozenset[tuple[Hashable, str]]]":
        """Return the manifests with some documents replaced and added, and the same knowledge of the service.

        Args:
            replaced: for each old document, the new one.
            added: further documents.

        Returns:
            The manifests, None if they have errors; and the targets and documents at fault, each with the section.
        """
        diagnostics = Diagnostics()
        try:
            return self._revised(replaced, added, diagnostics), frozenset()
        except ManifestErrors:
            return None, frozenset(diagnostics.faulty)

    def with_documents(
        self,
        replaced: Mapping[Document, Document],
        added: Iterable[Document] = (),
        binds: Callable[[Target, Steps], bool] = everywhere,
    ) -> "Manifests":
        """Return the manifests with some documents replaced and added, as `revised` does.

        `binds` becomes `Index.binds`.

        Raises:
            ManifestErrors: with all errors.
        """
        return self._revised(replaced, added, Diagnostics(), binds)

    def _revised(
        self,
        replaced: Mapping[Document, Document],
        added: Iterable[Document],
        diagnostics: Diagnostics,
        binds: Callable[[Target, Steps], bool] = everywhere,
    ) -> "Manifests":
        index = self.index.without(replaced.keys())
        index.binds = binds
        index.extend((*replaced.values(), *added), diagnostics)
        alone = merge_manifests(index, diagnostics, self.files)
        return merge_manifests(index, diagnostics, self.files, self._shown) if any(self._shown) else alone


def read_manifests(inputs: Inputs, *, locks_bind: bool = True, dated: bool = True) -> Manifests:
    """Read, render, merge and check the manifests in files and folders.

    Templates may read the values of `inputs`, and the environment variables in its `env_names` as `env.NAME`. Unless
    `locks_bind`, a broken lock is no error yet: see `Manifests.deviations`. Unless `dated`, nothing warns of exceptions
    that end: see `Manifests.ending`.

    Raises:
        ManifestErrors: with all errors of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    templates = Templates(inputs.values(), inputs.env_names, secret_values=inputs.secrets)
    searched = search(inputs.paths)
    passed_over = [located(path, why_passed_over(path), "warning") for path in searched.passed_over]
    index = Index(
        section_specs(inputs.kinds),
        whole=not searched.errors,
        today=clock.today() if dated else None,
        surroundings=Surroundings(secrets=inputs.secrets),
        binds=everywhere if locks_bind else nowhere,
    )
    diagnostics = Diagnostics(dict.fromkeys([*searched.errors, *passed_over]))
    return _read(dict.fromkeys(searched.files), templates, index, diagnostics)


def read_contents(
    contents: Mapping[str, bytes | tuple[Document, ...]],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    surroundings: Surroundings = NOT_HERE,
) -> Manifests:
    """Read manifests that are not on disk, such as those of another revision, by path; see `read_manifests`.

    Args:
        contents: by path, the content of a file, or its documents if it was read before: see `Index.documents_by_file`.
        kinds: all kinds.
        values: of templates.
        env_names: see `Inputs`.
        surroundings: the files that `create` refers to; by default, archives are not read.
    """
    return _read(
        contents, Templates(values, env_names), Index(section_specs(kinds), surroundings=surroundings), Diagnostics()
    )


def _read(
    contents: Mapping[str, bytes | tuple[Document, ...] | None],
    templates: Templates,
    index: Index,
    diagnostics: Diagnostics,
) -> Manifests:
    """Add the documents of files to an index, and merge them; a file whose content is None is read from disk."""
    with closing(templates):
        for path, content in contents.items():
            if isinstance(content, tuple):
                index.extend(content, diagnostics)
                continue
            try:
                source = open_source(path, content, index.surroundings.secrets)
                if path.endswith(TEMPLATE):
                    source = templates.source(path, source.text)
            except ManifestErrors as errors:
                diagnostics.extend(errors.diagnostics)
                # the unreadable file may have the profile that another document names: its absence is no error then
                index.whole = False
                continue
            reading = source.read()
            if reading.errors:
                diagnostics.add_unreadable(reading.errors)
            elif not (reading.documents or source.own_line):
                diagnostics.extend([located(path, "holds no document", "warning")])
            index.whole &= reading.whole
            index.extend(reading.documents, diagnostics)
    return merge_manifests(index, diagnostics, tuple(contents))


def merge_manifests(
    index: Index,
    diagnostics: Diagnostics,
    file_names: tuple[str, ...],
    knowledge: Shown = NOTHING_SHOWN,
) -> Manifests:
    """Merge and check all targets.

    Raises:
        ManifestErrors: with all errors.
    """
    targets = merge_targets(index, knowledge, diagnostics)
    check_together(index, targets.values(), diagnostics)
    if diagnostics.errors:
        raise ManifestErrors([*diagnostics.located, *diagnostics.advice])
    digest = hashlib.sha256()
    for merged in targets.values():
        digest.update(CANONICAL.encode(_canonical(merged)).encode() + b"\n")
    desired = DesiredState(tuple(each.desired for each in targets.values()), digest.hexdigest())
    return Manifests(desired, file_names, index, targets, diagnostics, knowledge)


def _canonical(merged: MergedTarget) -> list[Any]:
    """Return a target's desired state in an order that does not depend on the files, nor on its default branch."""
    whole, desired = merged.stack.unnamed, merged.desired
    sections = dict(whole.sections)
    for name, section in whole.sections.items():
        spec = whole.specs[name]
        for key in spec.lists:
            # united lists have the order of the layers, which says nothing
            if key in section and spec.merges_as_set(key):
                sections[name] = {**sections[name], key: sorted(section[key], key=str)}
    written = (section.written or section for section in desired.sections)
    minimums = {section.kind: section.minimums for section in written if section.at_least}
    exceptions = [
        [
            each.section,
            str(each.item if each.written_item is None else each.written_item),
            str(each.until),
            *each.fields,
        ]
        for each in desired.exceptions
    ]
    return [
        str(desired.target),
        sections,
        sorted(whole.prune),
        *([sorted(exceptions)] if exceptions else []),
        *([unordered(desired.creation)] if desired.creation else []),
        *([{UNMANAGED: sorted(whole.unmanaged)}] if whole.unmanaged else []),
        *([sorted([each.section, each.part, str(each.name)] for each in whole.let_go)] if whole.let_go else []),
        *([{AT_LEAST: minimums}] if minimums else []),
    ]
