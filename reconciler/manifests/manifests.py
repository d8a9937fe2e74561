"""The manifests of a run, merged and free of errors: see `Manifests`."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.consistency import check_together
from reconciler.manifests.creation import unordered
from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.index import Index, everywhere
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import Discovered, Member, UnlistedSet, archived_left_out
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.exceptions import endings
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.locks import deviations
from reconciler.manifests.stack.sections import UNMANAGED
from reconciler.manifests.targets import merge_targets
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Address, Identity, Key, Level, Target

NO_PATHS: Mapping[Target, str] = MappingProxyType({})


CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests, merged and free of errors.

    Attributes:
        desired: all targets. Until groups are discovered, sets that name groups apply only to projects with documents.
        files: as the user named them.
        index: the documents that were read.
        targets: what each target wants, by `Target.identity`.
    """

    desired: DesiredState
    files: tuple[str, ...] = ()
    index: Index = field(default_factory=lambda: Index({}), repr=False, compare=False)
    targets: Mapping[Identity, MergedTarget] = field(default_factory=dict, repr=False, compare=False)
    _diagnostics: Diagnostics = field(default_factory=Diagnostics, repr=False, compare=False)
    _known: tuple[Discovered | None, Mapping[Target, str]] = field(default=(None, NO_PATHS), repr=False, compare=False)

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
        discovered, _ = self._known
        hidden = {group: listed for group, listed in (discovered or {}).items() if isinstance(listed, Obstacle)}
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
        return tuple(stack.target for stack in self.stacks if stack.values is None)

    @property
    def archived_left_out(self) -> frozenset[str]:
        """The archived projects that sets leave out, as far as the lists of projects show them, in lower case."""
        discovered = self._known[0] or {}
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
        return merge_manifests(self.index, Diagnostics(), self.files, discovered, paths)

    def of_members(self, discovered: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        """Return what is declared of some projects of groups, as far as these groups tell; nothing if it has errors.

        Args:
            discovered: projects by group, in lower case.
        """
        diagnostics = Diagnostics()
        names = {name for members in discovered.values() for each in members for name in (each.path, each.id)}
        only = {Target(Level.PROJECT, name).identity for name in names}
        shown = {group: discovered[group.casefold()] for group in self.index.groups}
        merged = merge_targets(self.index, shown, NO_PATHS, diagnostics, only=only)
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

    def with_documents(
        self,
        replaced: Mapping[Document, Document],
        added: Iterable[Document] = (),
        binds: Callable[[Target, Steps], bool] = everywhere,
    ) -> "Manifests":
        """Return the manifests with other documents, as `revised` does; locks bind where `Index.binds` says.

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
        return merge_manifests(index, diagnostics, self.files, *self._known) if any(self._known) else alone


def merge_manifests(
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
    targets = merge_targets(index, discovered, paths, diagnostics)
    check_together(index, targets.values(), diagnostics)
    if diagnostics.errors:
        raise ManifestErrors([*diagnostics.located, *diagnostics.advice])
    digest = hashlib.sha256()
    for merged in targets.values():
        digest.update(CANONICAL.encode(_canonical(merged)).encode() + b"\n")
    desired = DesiredState(tuple(each.desired for each in targets.values()), digest.hexdigest())
    known = (discovered, paths)
    return Manifests(desired, files, index, targets, diagnostics, known)


def _canonical(merged: MergedTarget) -> list[Any]:
    """Return a target's desired state in an order that does not depend on the files."""
    whole, desired = merged.stack, merged.desired
    sections = dict(whole.sections)
    for name, section in whole.sections.items():
        united = {key: sorted(section[key], key=str) for key in section if whole.specs[name].merges_as_set(key)}
        sections[name] = {**section, **united} if united else section
    exceptions = [[each.section, str(each.item), str(each.until), *each.fields] for each in desired.exceptions]
    return [
        str(desired.target),
        sections,
        sorted(whole.prune),
        *([sorted(exceptions)] if exceptions else []),
        *([unordered(desired.creation)] if desired.creation else []),
        *([{UNMANAGED: sorted(whole.unmanaged)}] if whole.unmanaged else []),
    ]
