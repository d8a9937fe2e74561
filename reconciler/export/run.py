"""An export from beginning to end: read the folder, read the service, bring the two together, write."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.engine.why import ProjectRecord, section_obstacles
from reconciler.errors import ManifestErrors
from reconciler.export.check import disagreements
from reconciler.export.files import Folder, document_path, named_path, read_folder
from reconciler.export.left_out import LeftOut
from reconciler.export.own import own_specs
from reconciler.export.read import LiveSnapshot, read_all
from reconciler.export.sandbox_state import sandbox_state
from reconciler.export.sections import Exported, Spec, export_target, without_empty_lists
from reconciler.export.sharing import (
    NO_SECTIONS,
    Agree,
    Sections,
    above,
    agreeing,
    everyone,
    fewest_lines,
    hoist,
    lines_apart,
)
from reconciler.export.targets import ExportRequest, ResolvedTarget
from reconciler.manifests import Member
from reconciler.manifests.documents import profile_document, set_document, target_document
from reconciler.manifests.project_sets import chosen
from reconciler.manifests.stack.placeholders import literal
from reconciler.manifests.stack.sections import PRUNE, SectionSpecs, section_specs
from reconciler.manifests.yaml_emitter import height
from reconciler.model.kind import Kinds
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader
from reconciler.model.targets import Level
from reconciler.system.files import save, save_inside

SHARE = 0.8
"""The share of the projects that must have something in common for `--hoist` to move it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How new documents are written.

    Attributes:
        profile: the name of a profile for what projects share, which their documents name; None for no such profile.
        as_set: whether the projects of each group become a set with a profile, and get documents only for the rest.
        all_fields: whether a set writes the fields of items that have the service's default too.
        prune: whether a set makes the written sections authoritative.
    """

    profile: str | None = None
    as_set: bool = False
    all_fields: bool = False
    prune: bool = False


PLAIN = Layout()
NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export.

    Attributes:
        targets: how many were exported.
        texts: of the files that change, by path.
        kept: the files that would have changed and are left alone.
        rehearsal: the file with a state of the sandbox, if one was asked for.
        warnings: what the files lack, and why, apart from what is left out.
        left_out: the sections that could not be read, and what no manifest can declare.
        whole: whether at least one section of every requested target could be read.
        archived: how many archived projects were left out.
    """

    targets: int
    texts: Mapping[Path, str]
    kept: tuple[Path, ...]
    rehearsal: Mapping[Path, str]
    warnings: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    whole: bool
    archived: int

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that change, sorted."""
        return tuple(sorted(self.texts))


def run_export(
    request: ExportRequest,
    reader: FleetReader,
    kinds: Kinds,
    *,
    folder: Path,
    layout: Layout = PLAIN,
    state: Path | None = None,
    progress: Progress | None = None,
) -> ExportResult:
    """Write what is live as manifests; documents in the folder are updated in place, as `cli.export` says.

    Args:
        request: which targets and sections.
        reader: the service.
        kinds: all kinds.
        folder: of the manifests.
        layout: of new documents.
        state: a file for a state of the sandbox; None for no such file.
        progress: shows the stages and steps.

    Raises:
        ManifestErrors: the manifests in the folder have errors.
        ServiceError: none of the named targets can be read.
        OutputFailed: a file could not be written, or cannot be updated in place.
    """
    done = draw_export(request, reader, kinds, folder=folder, layout=layout, state=state, progress=progress)
    save_inside(folder, done.texts)
    for path, text in done.rehearsal.items():
        save(path, text)
    return done


def draw_export(
    request: ExportRequest,
    reader: FleetReader,
    kinds: Kinds,
    *,
    folder: Path,
    layout: Layout = PLAIN,
    state: Path | None = None,
    keep: bool = False,
    progress: Progress | None = None,
) -> ExportResult:
    """Return what `run_export` would write; with `keep`, leave files that exist alone.

    Raises:
        ManifestErrors, ServiceError, OutputFailed: see `run_export`.
    """
    files = read_folder(folder, kinds, compact=layout.as_set)
    progress = progress or Progress()
    snapshot = read_all(request, reader, kinds, progress)
    write = partial(_draft, request, snapshot, kinds, files, layout=layout, keep=keep, progress=progress)
    draft: _Draft | None = None
    if layout.as_set or layout.profile is not None:
        # That projects do not go together with what they share is rare, and shows when all is written.
        with suppress(ManifestErrors):
            draft = write(everyone)
    if draft is None or draft.differences:
        draft = write(agreeing)
    warnings = (
        *(
            f"{path} is a template and was not read: settings that it declares may now be declared twice"
            for path in files.templates
        ),
        *snapshot.warnings,
        *draft.differences,
    )
    left_out = (
        *snapshot.left_out,
        *(entry for exported in draft.exported for section in exported.left_out.values() for entry in section),
    )
    rehearsal = {} if state is None else {state: sandbox_state(snapshot, reader, kinds)}
    count = len(draft.exported)
    archived = len(snapshot.archived)
    return ExportResult(count, draft.texts, draft.kept, rehearsal, warnings, left_out, snapshot.whole, archived)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The result of an export that is not written yet.

    Attributes:
        exported: the targets.
        texts: the files that would change.
        kept: those that exist, and are left alone.
        differences: what a plan would still have, a sentence each.
    """

    exported: Sequence[Exported]
    texts: Mapping[Path, str]
    kept: tuple[Path, ...]
    differences: tuple[str, ...]


def _draft(
    request: ExportRequest,
    snapshot: LiveSnapshot,
    kinds: Kinds,
    folder: Folder,
    agree: Agree,
    *,
    layout: Layout,
    keep: bool,
    progress: Progress,
) -> _Draft:
    """Bring what was read and the documents of a folder together, and see whether they agree.

    Raises:
        ManifestErrors: the manifests that would be written have errors.
    """
    files = folder.with_discovered(snapshot.targets, snapshot.members)
    progress.begin("writing manifests")
    members = {member.id: member for listed in snapshot.members.values() for member in listed}
    exported = _Writing(files, snapshot, kinds, section_specs(kinds), layout, members, agree).write(request)
    changed = files.changed_texts()
    kept = tuple(path for path in changed if keep and path in files.texts)
    texts = {path: text for path, text in changed.items() if not (keep and path in files.texts)}
    progress.begin("checking manifests")
    differing = disagreements({**files.texts, **texts}, snapshot.targets, snapshot.live, kinds, snapshot.members)
    return _Draft(exported, texts, kept, tuple(differing))


@dataclass(frozen=True, slots=True)
class _Writing:
    """Brings what was read and the documents of the folder together."""

    files: Folder
    snapshot: LiveSnapshot
    kinds: Kinds
    shapes: SectionSpecs
    layout: Layout
    members: Mapping[int | None, Member]
    agree: Agree

    def write(self, request: ExportRequest) -> list[Exported]:
        """Update the document of each target, or add one; move settings that the added ones share into a profile."""
        live = self.snapshot.live
        exported = [
            export_target(target, live, self.kinds, all_fields=self._all_fields, empty_lists=self._with_empty_lists)
            for target in self.snapshot.targets
        ]
        if self.layout.as_set:
            exported = [read.without(self._unfit(read.resolved)) for read in exported]
        documents = {read.resolved: document for read in exported if (document := self.files.find(read.resolved))}
        declared = [
            self.files.declared(documents[read.resolved], read, request.sections)
            for read in exported
            if read.resolved in documents
        ]
        specs = own_specs(declared, live, self.kinds, self._all_fields)
        apart = self._not_above_sets(specs) if self.layout.as_set else frozenset()
        alone = [addressee.alone for addressee in declared if addressee.exported.resolved in apart]
        specs |= own_specs(alone, live, self.kinds, self._all_fields)
        for resolved, document in documents.items():
            self.files.update(document.layer.document, specs[resolved])
        new = [read for read in exported if read.resolved not in documents]
        self._write_new(new, {project.full_path for project in apart})
        return exported

    @property
    def _all_fields(self) -> bool:
        """Whether the fields of items that have the service's default are written too."""
        return self.layout.all_fields or not self.layout.as_set

    @property
    def _with_empty_lists(self) -> bool:
        """Whether empty lists are written: they say something only where the section is pruned."""
        return self.layout.prune

    def _not_above_sets(self, specs: Mapping[ResolvedTarget, Spec]) -> frozenset[ResolvedTarget]:
        """Return the projects whose documents do not agree with what was read above the sets that select them."""
        pairs = {target: (beneath, spec) for target, spec in specs.items() if (beneath := self.files.beneath(target))}
        return frozenset(pairs) - self.agree(pairs, self.snapshot.live, self.kinds)

    def _write_new(self, new: list[Exported], apart: set[str]) -> None:
        """Write the documents of targets that have none; the projects `apart` have some, but leave the set."""
        projects = [project for project in new if project.resolved.target.level is Level.PROJECT]
        for project in new:
            if project.resolved.target.level is not Level.PROJECT:
                self._add_whole(project)
        if self.layout.profile is not None:
            self._hoist(projects, self.layout.profile)
        else:
            for group, members in self._sets():
                paths = {project.path for project in members}
                below = [project for project in projects if project.resolved.full_path in paths]
                self._write_set(below, apart, group, members)
                projects = [project for project in projects if project.resolved.full_path not in paths]
            for project in projects:
                self._add_whole(project)

    def _sets(self) -> Iterator[tuple[str, tuple[Member, ...]]]:
        """Yield the groups that become a set each, with the projects below them: those that no other one contains."""
        groups = self.snapshot.members if self.layout.as_set else {}
        for group, members in groups.items():
            if not any(group.casefold().startswith(f"{other}/".casefold()) for other in groups):
                yield group, members

    def _add_whole(self, exported: Exported) -> None:
        self._add(exported, self._with_prune(literal(exported.concise), left_out=exported.left_out))

    def _add(self, exported: Exported, spec: Spec, profiles: tuple[str, ...] = ()) -> None:
        target = exported.resolved.target
        self.files.add(document_path(self.files.path, target), target_document(target, spec, profiles))

    def _hoist(self, projects: list[Exported], name: str) -> None:
        """Write the profile, if there is none and a project can use it, and a document for each project."""
        existing = self.files.profile(name)
        shared = without_empty_lists(hoist(projects, self.shapes, SHARE), self.kinds)
        profile = shared if existing is None else existing
        specs = self._above(dict.fromkeys((project.resolved for project in projects), profile), projects)
        for project in projects:
            if project.resolved in specs:
                self._add(project, specs[project.resolved], (name,))
            else:
                self._add_whole(project)
        if specs and existing is None:
            self.files.add(named_path(self.files.path, f"profiles/{name}"), profile_document(name, profile))

    def _write_set(self, projects: list[Exported], apart: set[str], group: str, members: tuple[Member, ...]) -> None:
        """Write the set of a group and its profile, or extend it, and documents for the projects that deviate.

        Projects that do not go together with the profile are excluded from the set.
        """
        beneath = {project.resolved: self.files.beneath(project.resolved) for project in projects}
        current = {project.path for project in members if not project.archived}
        lacking = {project.resolved: self._unfit(project.resolved) for project in projects}
        uncovered = [project for project in projects if beneath[project.resolved] is None]
        free = [project for project in uncovered if project.resolved.path in current]
        existing, profile = self.files.manifests.index.sets.get(group), self.files.profile(group)
        shared: Spec = {} if existing or profile else fewest_lines(free, self.shapes, lacking)
        added = self._with_prune(shared if self._with_empty_lists else without_empty_lists(shared, self.kinds))
        if not existing:
            beneath |= {project.resolved: profile or added for project in free}
        inside = set()
        specs = self._above(beneath, projects, lacking)
        for project in projects:
            own = specs.get(project.resolved)
            if own is None or height(own, 2) > lines_apart(project.concise):
                self._add_whole(project)
            else:
                inside.add(project.resolved.full_path)
                if own:
                    self._add(project, own)
        if existing:
            inside |= {project.full_path for project in self.snapshot.targets if self.files.find(project)} - apart
            selected = chosen(existing.select, current)
            self.files.exclude(existing.layer.document, sorted({*selected} - inside))
        elif profile or added:
            excluded = sorted(current - (inside & {project.resolved.full_path for project in free}))
            select = {"group": group} | ({"exclude": [*map(escape, excluded)]} if excluded else {})
            self.files.add(self._beside(group, "set"), set_document(group, [group], select))
            if added:
                self.files.add(self._beside(group, "profile"), profile_document(group, added))

    def _beside(self, group: str, sort: str) -> Path:
        """Return the file for what projects share: in the folder itself, beside which `accept` puts what deviates."""
        return named_path(self.files.path, f"{group.replace('/', '.')}.{sort}")

    def _unfit(self, resolved: ResolvedTarget) -> Sections:
        """Return the sections that a project cannot have, by what the list of the group shows."""
        member = self.members.get(resolved.id) if resolved.target.level is Level.PROJECT else None
        if member is None:
            return NO_SECTIONS
        record = ProjectRecord(archived=member.archived, off=member.off)
        return frozenset(
            kind.name
            for kind in self.kinds.values()
            if any(section_obstacles(resolved.target.address, kind.needs, record))
        )

    def _above(
        self,
        beneath: Mapping[ResolvedTarget, Spec | None],
        projects: Iterable[Exported],
        unfit: Mapping[ResolvedTarget, Sections] = NOTHING,
    ) -> dict[ResolvedTarget, Spec]:
        """Return the specs of the documents of projects above what lies beneath, where the two go together."""
        covered = [(project, profile) for project in projects if (profile := beneath[project.resolved])]
        left_out = {project.resolved: project.left_out for project, _ in covered}
        specs = above(covered, self.snapshot.live, self.kinds, self.shapes, unfit, all_fields=self._all_fields)
        pairs = {
            project.resolved: (profile, specs[project.resolved])
            for project, profile in covered
            if project.resolved in specs
        }
        fitting = self.agree(pairs, self.snapshot.live, self.kinds)
        return {
            resolved: self._with_prune(own, profile, left_out[resolved])
            for resolved, (profile, own) in pairs.items()
            if resolved in fitting
        }

    def _with_prune(self, spec: Spec, profile: Mapping[str, Any] = NOTHING, left_out: Collection[str] = ()) -> Spec:
        """Return a spec that prunes what it declares and what the profile beneath prunes, if that is asked for."""
        beneath = spec.get(PRUNE, profile.get(PRUNE, []))
        own = [name for name in spec if name in self.kinds and self.kinds[name].prunable and name not in left_out]
        prune = [*beneath, *(name for name in own if name not in beneath)] if self.layout.prune else beneath
        spec = {name: section for name, section in spec.items() if name != PRUNE}
        return {**({PRUNE: prune} if prune != profile.get(PRUNE, []) else {}), **spec}
