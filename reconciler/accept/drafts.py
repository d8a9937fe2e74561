"""Documents as edits leave them: their values, the files that new ones go to, and the texts that come of it. Pure."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.accept.placement import Edit
from reconciler.accept.wishes import Add, Drop, Except, Put
from reconciler.errors import OutputFailed
from reconciler.export.files import distinct, document_path
from reconciler.export.yaml_edit import RenamedKey, appended_text, updated_text
from reconciler.manifests import is_manifest
from reconciler.manifests.documents import target_document
from reconciler.manifests.sources import Document, Source, Steps
from reconciler.manifests.stack.sections import OLD_NAMES, SectionSpecs
from reconciler.manifests.yaml_writer import write_document
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Drafts:
    """The documents that change, and those that come into being.

    Attributes:
        specs: of all sections.
        folders: the files and folders in which manifests are searched, as the user named them.
        files: the files there are, by `str.casefold` of each.
        values: by document as it was read, its value.
        added: by target, the file of its new document, and the document's value.
    """

    specs: SectionSpecs
    folders: Sequence[Path]
    files: Mapping[str, Path] = field(default_factory=dict)
    values: Mapping[Document, Any] = field(default_factory=dict)
    added: Mapping[Target, tuple[Path, Any]] = field(default_factory=dict)

    def edited(self, edits: Iterable[Edit], read: Mapping[Hashable, Document | Target], pruned: "Pruned") -> "Drafts":
        """Return the drafts after further edits.

        Args:
            edits: of documents as these drafts have them.
            read: by such a document, that as it was read, or the target of a new one.
            pruned: by such a document, the sections that are pruned for any of its targets.
        """
        values, added = dict(self.values), dict(self.added)
        grouped: dict[Document | Target, list[Edit]] = {}
        for edit in edits:
            grouped.setdefault(edit.document or edit.targets[0], []).append(edit)
        for place, group in grouped.items():
            if isinstance(place, Target):
                path = self._path(place, group[0].beside)
                added[place] = path, self._applied(target_document(place, {}), group, ())
                continue
            value = self._applied(place.value, group, pruned.get(place, ()))
            original = read.get(place, place)
            if isinstance(original, Target):
                added[original] = added[original][0], value
            else:
                values[original] = value
        return Drafts(self.specs, self.folders, self.files, values, added)

    def _path(self, target: Target, beside: Document) -> Path:
        """Return the file of a new document: beside another, or that one's own file if no other would be found."""
        file = Path(beside.source.path)
        path = distinct(document_path(file.parent, target), self.files)
        found = any(path.is_relative_to(top) and is_manifest(str(path.relative_to(top))) for top in self.folders)
        return path if found else file

    def _applied(self, value: Any, edits: Iterable[Edit], pruned: Collection[str]) -> Any:
        """Return the value of a document after edits: renamed keys last, and of a list the last entry first."""
        changed = _copied(value)
        spec = changed.setdefault("spec", {})
        renames: dict[Steps, dict[str, str]] = {}
        for edit in sorted(edits, key=lambda edit: _backwards(edit.steps)):
            match edit.wish:
                case Put(value=new):
                    _holder(spec, edit.steps)[edit.steps[-1]] = new
                case Add(value=new):
                    _holder(spec, edit.steps).setdefault(edit.steps[-1], []).append(new)
                case Except(exception=exception):
                    _except(changed.setdefault("metadata", {}).setdefault("exceptions", []), exception)
                case Drop():
                    self._drop(spec, edit.steps, kept=edit.section in pruned)
                case _:
                    renames.setdefault(edit.steps[:-1], {})[edit.steps[-1]] = edit.wish.name
        for above, names in renames.items():
            _rename(_holder(spec, (*above, "")), names)
        return changed

    def _drop(self, spec: Any, steps: Steps, *, kept: bool) -> None:
        """Remove a value, and what becomes empty around it and means nothing when it is empty."""
        holder = _holder(spec, steps)
        del holder[steps[-1]]
        empty_means_something = kept or self.specs[steps[0]].items is not None
        if not holder and len(steps) > 1 and not empty_means_something:
            self._drop(spec, steps[:-1], kept=kept)

    @property
    def documents(self) -> tuple[dict[Document, Document], dict[Target, Document]]:
        """The changed documents by those that were read, and the new ones."""
        changed = {old: Document(old.source, old.number, old.line, value) for old, value in self.values.items()}
        new = {
            target: Document(Source(str(path), write_document(value)), 0, 1, value)
            for target, (path, value) in self.added.items()
        }
        return changed, new

    def texts(self, existing: Mapping[str, Source]) -> dict[Path, str]:
        """Return the texts of the files that change.

        Args:
            existing: the files there are, by path.

        Raises:
            Unchangeable: a file is written in a way that does not survive being updated in place.
            OutputFailed: a file is written in a way that does not survive a further document.
        """
        changes: dict[str, dict[int, Any]] = {}
        for document, value in self.values.items():
            changes.setdefault(document.source.path, {})[document.number] = value
        texts = {path: _updated(existing[path], values) for path, values in changes.items()}
        for path, value in self.added.values():
            source = existing.get(str(path))
            before = texts.get(str(path), "" if source is None else source.text)
            texts[str(path)] = appended_text(Source(str(path), before), write_document(value))
        return {Path(path): text for path, text in sorted(texts.items())}


Pruned = Mapping[Document, Collection[str]]


class Unchangeable(Exception):
    """A file cannot be updated in place; it is the exception's only argument."""


def _updated(source: Source, changes: Mapping[int, Any]) -> str:
    try:
        return updated_text(source, changes)
    except OutputFailed:
        raise Unchangeable(source.path) from None


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copied(inner) for key, inner in value.items()}
        case list():
            return [_copied(inner) for inner in value]
    return value


def _except(exceptions: list[Any], exception: Mapping[str, Any]) -> None:
    """Add an exception; it takes the place of the one that is about the same, such as one that has ended."""
    about = _about(exception)
    exceptions[:] = [each for each in exceptions if _about(each) != about]
    exceptions.append(dict(exception))


def _about(exception: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in exception.items() if key not in {"until", "reason"}}


def _backwards(steps: Steps) -> tuple[int, ...]:
    return tuple(-step for step in steps[-1:] if isinstance(step, int))


def _holder(spec: Any, steps: Steps) -> Any:
    """Return the mapping or list that holds a value, with the mappings on the way to it."""
    here = spec
    for step in steps[:-1]:
        if isinstance(here, dict) and here.get(step) is None:
            here[step] = {}
        here = here[step]
    return here


def _rename(holder: dict[str, Any], names: Mapping[str, str]) -> None:
    """Give items back the names that they have, in their places, and let go of the former names."""
    for key, value in list(holder.items()):
        del holder[key]
        if isinstance(value, dict) and key in names:
            value.pop(OLD_NAMES, None)
        holder[RenamedKey(names[key], key) if key in names else key] = value
