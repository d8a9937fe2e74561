"""An export from beginning to end: read the folder, read the service, bring the two together, write."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reconciler.export.checking import disagreements
from reconciler.export.envelope import document_of
from reconciler.export.existing import Existing, read_existing
from reconciler.export.folder import Folder, save
from reconciler.export.names import file_of
from reconciler.export.sections import Exported, export_target
from reconciler.export.sight import Sight, read_all
from reconciler.export.targets import Asked
from reconciler.export.updating import update
from reconciler.kind import Kinds
from reconciler.wire import Reader


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


def run_export(asked: Asked, reader: Reader, kinds: Kinds, concurrency: int, folder: Path) -> Done:
    """Write what is live as manifests; see `cli.export` for what becomes of those that are there.

    Raises:
        ManifestErrors: the manifests in the folder are not in order.
        ServiceError: something that is named is not there, or nothing can be read.
        OutputFailed: a file could not be written, or cannot be updated in place.
    """
    existing = read_existing(folder, kinds)
    sight = read_all(asked, reader, kinds, concurrency)
    exported = [export_target(known, sight.live, kinds) for known in sight.targets]
    files = Folder(existing)
    for each in exported:
        _put(each, files, folder, sight, asked)
    texts = files.texts()
    doubts = disagreements({**existing.texts, **texts}, sight.targets, sight.live, kinds)
    warnings = (*_about(existing), *sight.warnings, *(why for each in exported for why in each.left_out), *doubts)
    for path, text in texts.items():
        save(path, text)
    return Done(len(exported), tuple(sorted(texts)), warnings, sight.whole)


def _put(exported: Exported, files: Folder, folder: Path, sight: Sight, asked: Asked) -> None:
    """Bring a target's document up to date, or give it one."""
    known, existing = exported.known, files.existing
    written, place = existing.written(known, asked.sections), existing.place_of(known)
    if written is None or place is None:
        files.add(file_of(folder, known.scope), document_of(known.scope, exported.spec))
        return
    document = existing.documents[place.path][place.number]
    spec = update(written, exported, sight.live, existing.shapes)
    files.change(place, document | ({"spec": spec} if spec or "spec" in document else {}))


def _about(existing: Existing) -> Iterable[str]:
    for path in existing.templates:
        yield f"{path} is a template, which is not looked into: what it declares may now be declared twice"
