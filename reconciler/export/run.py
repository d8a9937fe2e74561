"""An export from beginning to end: read the folder, read the service, bring the two together, write."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.export.checking import disagreements
from reconciler.export.envelope import document_of
from reconciler.export.existing import Existing, read_existing
from reconciler.export.folder import Folder
from reconciler.export.hoisting import hoist
from reconciler.export.names import file_of
from reconciler.export.rehearsing import rehearsal
from reconciler.export.sections import Exported, export_target
from reconciler.export.sharing import profile_document
from reconciler.export.sight import LiveSnapshot, read_all
from reconciler.export.targets import ExportRequest, Known
from reconciler.export.updating import update
from reconciler.manifests.layers import literal
from reconciler.model.kind import Kinds
from reconciler.model.progress import Progress
from reconciler.model.protocols import Reader
from reconciler.model.targets import Level
from reconciler.system.whole_file import save


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an export.

    Attributes:
        targets: how many were exported.
        written: the files that changed, sorted.
        warnings: what is not in them, and why.
        whole: whether something could be read of everything that was asked for.
    """

    targets: int
    written: tuple[Path, ...]
    warnings: tuple[str, ...]
    whole: bool


def run_export(
    asked: ExportRequest,
    reader: Reader,
    kinds: Kinds,
    concurrency: int,
    *,
    folder: Path,
    profile: str | None = None,
    state: Path | None = None,
    progress: Progress | None = None,
) -> Done:
    """Write what is live as manifests; see `cli.export` for what becomes of those that are there.

    Args:
        asked: which targets and sections.
        reader: the service.
        kinds: all kinds.
        concurrency: how many requests at once.
        folder: of the manifests.
        profile: the name of the profile to share what projects without documents have in common; None for none.
        state: a file for a state of the sandbox; None for none.
        progress: is told how far it is.

    Raises:
        ManifestErrors: the manifests in the folder are not in order.
        ServiceError: nothing that is named is there, or nothing can be read.
        OutputFailed: a file could not be written, or cannot be updated in place.
    """
    existing = read_existing(folder, kinds)
    progress = progress or Progress()
    sight = read_all(asked, reader, kinds, concurrency, progress)
    existing = existing.with_paths(sight.targets)
    progress.begin("writing manifests")
    exported = [export_target(known, sight.live, kinds) for known in sight.targets]
    files = Folder(folder, existing)
    new = [each for each in exported if not _updated(each, files, sight, asked)]
    documents = {each.known: document_of(each.known.target, literal(each.spec)) for each in new}
    if profile is not None:
        documents |= _hoisted(profile, new, sight, kinds, files=files, folder=folder)
    for known, document in documents.items():
        files.add(file_of(folder, known.target), document)
    texts = files.texts()
    of_sets = disagreements({**existing.texts, **texts}, sight.targets, sight.live, kinds)
    warnings = (*_about(existing), *sight.warnings, *(why for each in exported for why in each.left_out), *of_sets)
    rehearsed = {} if state is None else {state: rehearsal(sight, reader, kinds)}
    for path, text in (texts | rehearsed).items():
        save(path, text)
    return Done(len(exported), tuple(sorted(texts)), warnings, sight.whole)


def _updated(exported: Exported, files: Folder, sight: LiveSnapshot, asked: ExportRequest) -> bool:
    """Bring a target's document up to date, if it has one."""
    known, existing = exported.known, files.existing
    written, place = existing.written(known, asked.sections), existing.place_of(known)
    if written is None or place is None:
        return False
    document = existing.documents[place.path][place.number]
    spec = update(written, exported, sight.live, existing.shapes)
    files.change(place, document | ({"spec": spec} if spec or "spec" in document else {}))
    return True


def _hoisted(
    profile: str, new: Iterable[Exported], sight: LiveSnapshot, kinds: Kinds, *, files: Folder, folder: Path
) -> Mapping[Known, dict[str, Any]]:
    """Return the documents of projects that share a profile, which is added unless it is there."""
    projects = [each for each in new if each.known.target.level is Level.PROJECT]
    there = files.existing.profile(profile)
    found = hoist(profile, projects, sight.live, kinds, there)
    if found.profile and there is None:
        files.add(folder / "profiles" / f"{profile}.yaml", profile_document(profile, found.profile))
    return found.documents


def _about(existing: Existing) -> Iterable[str]:
    for path in existing.templates:
        yield f"{path} is a template, which is not looked into: what it declares may now be declared twice"
