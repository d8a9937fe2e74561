"""The documents after edits: their values, the files of new documents, and the resulting texts. Pure.

Begin with `Drafts`; `accepted` tries again with a file closed if its layout cannot be edited.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from reconciler.edit.differences import ODD_LAYOUT, Acceptance, Drift, ManifestFiles
from reconciler.edit.edits import Edit, by_place, copied, edited_value
from reconciler.edit.files import distinct, document_path
from reconciler.edit.moved import FormerPath, as_written, former_paths
from reconciler.edit.yaml_edit import LayoutLost, written
from reconciler.manifests import Manifests, is_manifest
from reconciler.manifests.documents import target_document
from reconciler.manifests.layers import SectionSpecs
from reconciler.manifests.sources import Document, Source
from reconciler.manifests.yaml_emitter import write_document
from reconciler.model.item import Finding
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Drafts:
    """The changed documents, and the new ones.

    Attributes:
        specs: of all sections.
        folders: the files and folders in which manifests are searched, as the user named them.
        files: the existing files, by `str.casefold` of each.
        homes: the folders with documents of targets, by the paths of these targets and of the groups that contain them,
            in lower case.
        moved: the documents that name moved groups or projects, with their present paths.
        values: by document as it was read, its new value.
        added: by target, the file of its new document, and the document's value.
    """

    specs: SectionSpecs
    folders: Sequence[Path]
    files: Mapping[str, Path]
    homes: Mapping[str, Path]
    moved: Sequence[Document] = ()
    values: Mapping[Document, Any] = field(default_factory=dict)
    added: Mapping[Target, tuple[Path, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, manifests: Manifests, folders: Sequence[Path]) -> "Drafts":
        """Return the drafts of manifests without edits."""
        homes: dict[str, Path] = {}
        named = {str(own.target.ref): own for own in manifests.index.targets.values()}
        for path in sorted(named, key=lambda path: path.count("/")):  # a document of the group itself decides first
            file = Path(named[path].document.source.path)
            above = [*file.parents]
            home = above[min(path.count("/"), len(above) - 1)]
            home = home if document_path(home, named[path].target) == file else file.parent
            for enclosing in accumulate(path.casefold().split("/"), "{}/{}".format):
                homes.setdefault(enclosing, home)
        moved = [document for document in manifests.index.documents if document.former]
        files = {file.casefold(): Path(file) for file in manifests.files}
        return cls(manifests.index.specs, folders, files, homes, moved)

    def edited(
        self, edits: Iterable[Edit], originals: Mapping[Hashable, Document | Target], pruned: "Pruned"
    ) -> "Drafts":
        """Return the drafts after further edits.

        Args:
            edits: of documents as these drafts have them.
            originals: by such a document, the document as it was read, or the target of a new document.
            pruned: by such a document, the sections that are pruned for any of its targets.
        """
        values, added = dict(self.values), dict(self.added)
        for place, group in by_place(edits).items():
            kept = pruned.get(place, ()) if isinstance(place, Document) else ()
            original = originals.get(place, place)
            if isinstance(original, Target):
                envelope = {key: part for key, part in target_document(original, {}).items() if key != "spec"}
                path, value = added.get(original) or (self._path(original, group[0].declared_in), envelope)
                added[original] = path, edited_value(value, group, kept, self.specs)
            else:
                values[original] = edited_value(values.get(original, original.value), group, kept, self.specs)
        return replace(self, values=values, added=added)

    def _path(self, target: Target, beside: Document) -> Path:
        """Return the file of a new document.

        It is beside the documents of the nearest targets, else where `export` would put it; the file of the other
        document if a new file would not be found.
        """
        file = Path(beside.source.path)
        enclosing = [*accumulate(str(target.ref).casefold().split("/"), "{}/{}".format)]
        exported = next((top for top in self.folders if top != file and file.is_relative_to(top)), file.parent)
        home = next((self.homes[path] for path in reversed(enclosing) if path in self.homes), exported)
        path = distinct(document_path(home, target), self.files)
        is_read = any(path.is_relative_to(top) and is_manifest(str(path.relative_to(top))) for top in self.folders)
        return path if is_read else file

    @property
    def documents(self) -> tuple[dict[Document, Document], dict[Target, Document]]:
        """The changed documents by the old ones, and the new documents; former keys are forgotten in both."""
        changed = {
            old: Document(old.source, old.number, old.line, copied(value, str)) for old, value in self.values.items()
        }
        new = {
            target: Document(Source(str(path), write_document(value)), 0, 1, copied(value, str))
            for target, (path, value) in self.added.items()
        }
        return changed, new

    def texts(self, existing: Mapping[str, Source], present_paths: Collection[FormerPath]) -> dict[Path, str]:
        """Return the texts of the files that change.

        Args:
            existing: the existing files, by path.
            present_paths: the places where a present path is written; elsewhere, former paths are kept.

        Raises:
            OutputFailed: see `written`.
        """
        added = [(str(path), value) for path, value in self.added.values()]
        texts = {path: source.text for path, source in existing.items()}
        values = dict(self.values)
        for document in self.moved:
            values[document] = as_written(document, values.get(document, document.value), present_paths)
        changed = written(texts, values, added, lambda _path, _before, value: write_document(value))
        return {path: text for path, text in changed.items() if text != texts.get(str(path))}


Pruned = Mapping[Document, Collection[str]]

Attempt = Callable[[Mapping[str, str], Drafts], tuple[Drafts, int, list[Finding]]]
"""Edits manifests, given the closed files; returns the drafts, the number of accepted differences, and the others."""


def accepted(
    drift: Drift, files: ManifestFiles, attempt: Attempt, unacceptable: Iterable[Finding], *, with_paths: bool = True
) -> Acceptance:
    """Return the result of an attempt; a file whose layout it would destroy is closed for the next attempt.

    Args:
        drift: the differences.
        files: the places of the manifests.
        attempt: edits the manifests.
        unacceptable: the differences that are refused in any case.
        with_paths: whether the present paths of moved targets are written.
    """
    closed, sources = files.closed_among(drift.manifests), drift.manifests.index.sources
    moved = [*former_paths(drift.manifests, drift.desired)] if with_paths else []
    while True:
        drafts, count, remaining = attempt(closed, Drafts.of(drift.manifests, files.roots))
        stay = [place.kept(closed[path]) for place in moved if (path := place.document.source.path) in closed]
        try:
            texts = drafts.texts(sources, [place for place in moved if place.document.source.path not in closed])
        except LayoutLost as odd:
            # The next attempt leaves this file alone, so that the loop ends.
            closed[odd.path] = ODD_LAYOUT
            continue
        before = {path: sources[str(path)].text for path in texts if str(path) in sources}
        count += len({place.target for place in moved} - {finding.address.target for finding in stay})
        return Acceptance(before, texts, drift.targets, count, (*unacceptable, *stay, *remaining))
