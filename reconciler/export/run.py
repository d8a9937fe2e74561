"""An export from beginning to end: read the folder, read the service, bring the two together, write."""

from dataclasses import dataclass
from pathlib import Path

from reconciler.export.check import disagreements
from reconciler.export.files import Folder, document_path, read_folder
from reconciler.export.hoist import hoist
from reconciler.export.read import LiveSnapshot, read_all
from reconciler.export.sandbox_state import sandbox_state
from reconciler.export.sections import Exported, export_target
from reconciler.export.targets import ExportRequest
from reconciler.export.update import update
from reconciler.manifests.documents import profile_document, target_document
from reconciler.manifests.layers import literal, section_specs
from reconciler.model.kind import Kinds
from reconciler.model.progress import Progress
from reconciler.model.protocols import Reader
from reconciler.model.targets import Level
from reconciler.system.files import save


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export.

    Attributes:
        targets: how many were exported.
        written: the files that changed, sorted.
        warnings: what the files lack, and why.
        whole: whether at least one section of every requested target could be read.
    """

    targets: int
    written: tuple[Path, ...]
    warnings: tuple[str, ...]
    whole: bool


def run_export(
    request: ExportRequest,
    reader: Reader,
    kinds: Kinds,
    concurrency: int,
    *,
    folder: Path,
    profile: str | None = None,
    state: Path | None = None,
    progress: Progress | None = None,
) -> ExportResult:
    """Write what is live as manifests; documents in the folder are updated in place, as `cli.export` says.

    Args:
        request: which targets and sections.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        folder: of the manifests.
        profile: the name of a profile for what projects without documents share; None for no profile.
        state: a file for a state of the sandbox; None for no such file.
        progress: shows the stages and steps.

    Raises:
        ManifestErrors: the manifests in the folder have errors.
        ServiceError: none of the named targets can be read.
        OutputFailed: a file could not be written, or cannot be updated in place.
    """
    files = read_folder(folder, kinds)
    progress = progress or Progress()
    snapshot = read_all(request, reader, kinds, concurrency, progress)
    files = files.with_paths(snapshot.targets)
    progress.begin("writing manifests")
    exported = _write_documents(files, snapshot, request, kinds, folder=folder, profile=profile)
    texts = files.changed_texts()
    warnings = (
        *(
            f"{path} is a template and was not read: settings that it declares may now be declared twice"
            for path in files.templates
        ),
        *snapshot.warnings,
        *(warning for each in exported for section in each.left_out.values() for warning in section),
        *disagreements({**files.texts, **texts}, snapshot.targets, snapshot.live, kinds),
    )
    rehearsal = {} if state is None else {state: sandbox_state(snapshot, reader, kinds)}
    for path, text in (texts | rehearsal).items():
        save(path, text)
    return ExportResult(len(exported), tuple(sorted(texts)), warnings, snapshot.whole)


def _write_documents(
    files: Folder, snapshot: LiveSnapshot, request: ExportRequest, kinds: Kinds, *, folder: Path, profile: str | None
) -> list[Exported]:
    """Update the document of each target, or add one; move settings that the added ones share into the profile."""
    exported = [export_target(resolved, snapshot.live, kinds) for resolved in snapshot.targets]
    shapes, new = section_specs(kinds), []
    for each in exported:
        found = files.find(each.resolved)
        if found is None:
            new.append(each)
        else:
            declared = files.declared(found, each.resolved, request.sections)
            files.update(found.layer.document, update(declared, each, snapshot.live, shapes))
    documents = {each.resolved: target_document(each.resolved.target, literal(each.spec)) for each in new}
    if profile is not None:
        projects = [each for each in new if each.resolved.target.level is Level.PROJECT]
        existing = files.profile(profile)
        hoisted = hoist(profile, projects, snapshot.live, kinds, existing)
        documents |= hoisted.documents
        if hoisted.spec and existing is None:
            files.add(folder / "profiles" / f"{profile}.yaml", profile_document(profile, hoisted.spec))
    for resolved, written in documents.items():
        files.add(document_path(folder, resolved.target), written)
    return exported
