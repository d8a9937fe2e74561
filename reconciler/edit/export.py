"""An export: read the manifests of a folder, read the service, merge the two, and write. Begin with `run_export`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from types import MappingProxyType

from reconciler.edit.check import disagreements
from reconciler.edit.files import Folder, document_path, named_path, read_folder
from reconciler.edit.left_out import LeftOut
from reconciler.edit.own import Addressee, fitting, layer_of, own_specs
from reconciler.edit.read import LiveSnapshot, read_all
from reconciler.edit.sandbox_state import sandbox_state
from reconciler.edit.sections import Exported, Spec, export_target
from reconciler.edit.share import shared
from reconciler.edit.targets import ExportRequest, ResolvedTarget
from reconciler.engine.why import ProjectRecord, section_obstacles
from reconciler.manifests import Member
from reconciler.manifests.documents import profile_document, set_document, target_document
from reconciler.manifests.layers import (
    DEFAULT_BRANCH,
    PRUNE,
    UNMANAGED,
    Layer,
    SectionSpecs,
    literal,
    placeholder_values,
    section_specs,
    stacked,
)
from reconciler.manifests.project_sets import chosen
from reconciler.model.kind import Kinds
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader
from reconciler.model.targets import Level
from reconciler.system.files import save, save_inside

SHARE = 0.8
"""The share of the projects that must have something in common for `--hoist` to move it."""

MOST = 0.5
"""The share that must have an item in common for `--as-set` to put it into the profile."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of new documents.

    Attributes:
        profile: the name of a profile for shared values, which the projects' documents name; None for no such profile.
        as_set: whether the projects of each group become a set with a profile, and get documents only for deviations.
        all_fields: whether a set writes the fields of items that have the service's default too.
        prune: whether a set makes the written sections authoritative.
    """

    profile: str | None = None
    as_set: bool = False
    all_fields: bool = False
    prune: bool = False


PLAIN = Layout()
NOTHING_LEFT_OUT: Mapping[str, Sequence[LeftOut]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export.

    Attributes:
        targets: the number of exported targets.
        texts: of the files that change, by path.
        kept: the files that would have changed, and were kept as they are.
        rehearsal: the file with a state of the sandbox, if one was asked for.
        warnings: other gaps in the files, with reasons.
        left_out: the sections that could not be read, and objects that no manifest can declare.
        whole: whether at least one section of every requested target could be read.
        archived: the number of archived projects that were left out.
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
    export_request: ExportRequest,
    reader: FleetReader,
    kinds: Kinds,
    *,
    folder: Path,
    layout: Layout = PLAIN,
    state: Path | None = None,
    progress: Progress | None = None,
) -> ExportResult:
    """Write the live state as manifests; documents in the folder are updated in place, as `cli.export` says.

    Args:
        export_request: the targets and sections.
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
    done = draw_export(export_request, reader, kinds, folder=folder, layout=layout, state=state, progress=progress)
    save_inside(folder, done.texts)
    for path, text in done.rehearsal.items():
        save(path, text)
    return done


def draw_export(
    export_request: ExportRequest,
    reader: FleetReader,
    kinds: Kinds,
    *,
    folder: Path,
    layout: Layout = PLAIN,
    state: Path | None = None,
    keep_existing: bool = False,
    progress: Progress | None = None,
) -> ExportResult:
    """Return the texts that `run_export` would write; with `keep_existing`, without files that exist.

    Raises:
        ManifestErrors, ServiceError, OutputFailed: see `run_export`.
    """
    files = read_folder(folder, kinds, compact=layout.as_set)
    progress = progress or Progress()
    snapshot = read_all(export_request, reader, kinds, progress)
    files = files.with_discovered(snapshot.targets, snapshot.members)
    progress.begin("writing manifests")
    members = {member.id: member for listed in snapshot.members.values() for member in listed}
    exported = _Writing(files, snapshot, kinds, section_specs(kinds), layout, members).write(export_request)
    changed = files.changed_texts()
    kept = tuple(path for path in changed if keep_existing and path in files.texts)
    texts = {path: text for path, text in changed.items() if path not in kept}
    progress.begin("checking manifests")
    # the texts are read and planned without another request: a warning says where their plan is not empty
    differing = disagreements({**files.texts, **texts}, snapshot.targets, snapshot.live, kinds, snapshot.members)
    warnings = (
        *(
            f"{path} is a template and was not read: settings that it declares may now be declared twice"
            for path in files.templates
        ),
        *snapshot.warnings,
        *differing,
    )
    left_out = (
        *snapshot.left_out,
        *(entry for each in exported for section in each.left_out.values() for entry in section),
    )
    rehearsal = {} if state is None else {state: sandbox_state(snapshot, reader, kinds)}
    archived = len(snapshot.archived)
    return ExportResult(len(exported), texts, kept, rehearsal, warnings, left_out, snapshot.whole, archived)


@dataclass(frozen=True, slots=True)
class _Writing:
    """Merges live state into the documents of the folder."""

    files: Folder
    snapshot: LiveSnapshot
    kinds: Kinds
    shapes: SectionSpecs
    layout: Layout
    members: Mapping[int | None, Member]

    def write(self, export_request: ExportRequest) -> list[Exported]:
        """Update the document of each target, or add one; shared values of added documents go into profiles."""
        layout, live = self.layout, self.snapshot.live
        exported = [
            export_target(target, live, self.kinds, all_fields=self._all_fields, empty_lists=layout.prune)
            for target in self.snapshot.targets
        ]
        if layout.as_set:
            exported = [read.without(self._lacking(read.resolved)) for read in exported]
        documents = {read.resolved: document for read in exported if (document := self.files.find(read.resolved))}
        declared = [
            self.files.declared(documents[read.resolved], read, export_request.sections)
            for read in exported
            if read.resolved in documents
        ]
        specs = own_specs(declared, live, self.kinds, self._all_fields)
        above = [addressee for addressee in declared if layout.as_set and addressee.lower]
        fits = fitting(above, specs, live, self.kinds)
        standalone = [addressee.alone for addressee in above if addressee.exported.resolved not in fits]
        specs |= own_specs(standalone, live, self.kinds, self._all_fields)
        for resolved, document in documents.items():
            self.files.update(document.document, specs[resolved])
        new = [read for read in exported if read.resolved not in documents]
        self._write_new(new, {addressee.exported.resolved.full_path for addressee in standalone})
        return exported

    @property
    def _all_fields(self) -> bool:
        """Whether the fields of items that have the service's default are written too."""
        return self.layout.all_fields or not self.layout.as_set

    def _write_new(self, additions: list[Exported], leaving_paths: set[str]) -> None:
        """Write the documents of targets that have none.

        The projects of `leaving_paths` have documents, but leave the set.
        """
        projects = {read.resolved.full_path: read for read in additions if read.resolved.target.level is Level.PROJECT}
        for read in additions:
            if read.resolved.full_path not in projects:
                self._add_whole(read)
        if self.layout.profile is not None:
            self._hoist([*projects.values()], self.layout.profile)
            return
        for group, members in self._sets():
            below = [projects.pop(member.path) for member in members if member.path in projects]
            self._write_set(below, leaving_paths, group, members)
        for project in projects.values():
            self._add_whole(project)

    def _sets(self) -> Iterator[tuple[str, tuple[Member, ...]]]:
        """Yield each group that becomes a set, with the projects below it: groups that no requested group contains."""
        groups = self.snapshot.members if self.layout.as_set else {}
        for group, members in groups.items():
            if not any(group.casefold().startswith(f"{other}/".casefold()) for other in groups):
                yield group, members

    def _add_whole(self, exported: Exported) -> None:
        self._add(exported, self._pruning(literal(exported.spec), exported.left_out))

    def _add(self, exported: Exported, spec: Spec, profiles: tuple[str, ...] = ()) -> None:
        target = exported.resolved.target
        self.files.add(document_path(self.files.path, target), target_document(target, spec, profiles))

    def _hoist(self, projects: list[Exported], name: str) -> None:
        """Write the profile, if it does not exist and a project can use it, and a document for each project."""
        existing = self.files.manifests.index.profiles.get(name)
        profile = {} if existing else shared(projects, self.shapes, {}, SHARE, also_values=True)
        layer = existing or layer_of(profile, f"profile {name}")
        says = existing is not None or any(profile.values())
        specs = self._above({project: (layer,) for project in projects if says and project.resolved.path})
        for project in projects:
            if project.resolved in specs:
                self._add(project, specs[project.resolved], (name,))
            else:
                self._add_whole(project)
        if specs and existing is None:
            self.files.add(named_path(self.files.path, f"profiles/{name}"), profile_document(name, profile))

    def _write_set(
        self, projects: list[Exported], leaving_paths: set[str], group: str, group_members: tuple[Member, ...]
    ) -> None:
        """Write the set of a group and its profile, or extend it, and documents for the projects that deviate.

        Projects that cannot use the profile are excluded from the set.
        """
        index = self.files.manifests.index
        existing, profile = index.sets.get(group), index.profiles.get(group)
        current = {member.path for member in group_members if not member.archived}
        covering = {read.resolved: self.files.manifests.targets.get(read.resolved.target.identity) for read in projects}
        layers_by_project = {read: merged.stack.layers for read in projects if (merged := covering[read.resolved])}
        free = [read for read in projects if read not in layers_by_project and read.resolved.path in current]
        added: Spec = {}
        if not existing:
            lacking = {read.resolved: self._lacking(read.resolved) for read in free}
            added = {} if profile else self._pruning(shared(free, self.shapes, lacking, MOST, also_values=False))
            layer = profile or layer_of(added, f"profile {group}")
            layers_by_project |= {read: (layer,) for read in free if profile or added}
        specs = self._above(layers_by_project)
        for read in projects:
            if read.resolved not in specs:
                self._add_whole(read)
            elif specs[read.resolved]:
                self._add(read, specs[read.resolved])
        inside = {resolved.full_path for resolved in specs}
        if existing:
            inside |= {
                project.full_path for project in self.snapshot.targets if self.files.find(project)
            } - leaving_paths
            selected = chosen(existing.select, current)
            self.files.exclude(existing.document, sorted({*selected} - inside))
        elif profile or added:
            excluded = sorted(current - (inside & {read.resolved.full_path for read in free}))
            select = {"group": group} | ({"exclude": [*map(escape, excluded)]} if excluded else {})
            self.files.add(self._beside(group, "set"), set_document(group, [group], select))
            if added:
                self.files.add(self._beside(group, "profile"), profile_document(group, added))

    def _beside(self, group: str, sort: str) -> Path:
        """Return the file for shared values: in the folder itself.

        `accept` puts the documents of deviating projects beside it.
        """
        return named_path(self.files.path, f"{group.replace('/', '.')}.{sort}")

    def _lacking(self, resolved: ResolvedTarget) -> frozenset[str]:
        """Return the sections that a project cannot have, according to the list of the group."""
        member = self.members.get(resolved.id) if resolved.target.level is Level.PROJECT else None
        if member is None:
            return frozenset()
        record = ProjectRecord(archived=member.archived, off=member.off)
        return frozenset(
            kind.name
            for kind in self.kinds.values()
            if any(section_obstacles(resolved.target.address, kind.needs, record))
        )

    def _above(self, layers_by_project: Mapping[Exported, tuple[Layer, ...]]) -> dict[ResolvedTarget, Spec]:
        """Return the specs of projects' documents above profiles and sets, for projects whose plan is empty then."""
        addressees = [self._addressee(project, layers) for project, layers in layers_by_project.items()]
        specs = own_specs(addressees, self.snapshot.live, self.kinds, self._all_fields)
        fits = fitting(addressees, specs, self.snapshot.live, self.kinds)
        unmanaged = {addressee.exported.resolved: sorted(addressee.stack.unmanaged) for addressee in addressees}
        return {
            resolved: {**({UNMANAGED: unmanaged[resolved]} if unmanaged[resolved] else {}), **spec}
            for resolved, spec in specs.items()
            if resolved in fits
        }

    def _addressee(self, exported: Exported, layers: tuple[Layer, ...]) -> Addressee:
        """Return a project without a document; sections that the first push decides are `unmanaged` there."""
        target, branch = exported.resolved.target, exported.resolved.default_branch
        values = {**placeholder_values(exported.resolved.path), **({DEFAULT_BRANCH: branch} if branch else {})}
        unmanaged = exported.undecided & {name for layer in layers for name in layer.sections}
        stack = stacked(target, layers, self.shapes, values, unmanaged)
        prunable = [name for name, kind in self.kinds.items() if kind.prunable and name not in stack.prune]
        pruned = [*stack.prune, *(prunable if self.layout.prune else ())]
        lacking = self._lacking(exported.resolved) if self.layout.as_set else frozenset[str]()
        return Addressee(exported, stack, pruned, self.shapes, complete=True, lacking=lacking)

    def _pruning(self, spec: Spec, left_out: Mapping[str, Sequence[LeftOut]] = NOTHING_LEFT_OUT) -> Spec:
        """Return a spec that prunes the sections that it declares, if the layout says so."""
        prunable = [name for name in spec if self.kinds[name].prunable and name not in left_out]
        return {PRUNE: prunable, **spec} if self.layout.prune and prunable else spec
