"""Documents as edits leave them: their values, the files that new ones go to, and the texts that come of it. Pure."""

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reconciler.accept.placement import Edit, Except
from reconciler.errors import OutputFailed
from reconciler.export.files import distinct, document_path
from reconciler.export.yaml_edit import RenamedKey, appended_text, updated_text
from reconciler.manifests import is_manifest
from reconciler.manifests.documents import target_document
from reconciler.manifests.sources import Document, Source, Steps
from reconciler.manifests.stack.layers import Layer, Stack
from reconciler.manifests.stack.placeholders import braces, has_placeholder
from reconciler.manifests.stack.placing import Add, Drop, Put
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
        for place, group in by_place(edits).items():
            kept = pruned.get(place, ()) if isinstance(place, Document) else ()
            original = read.get(place, place)
            if isinstance(original, Target):
                path, value = added.get(original) or (
                    self._path(original, group[0].beside),
                    target_document(original, {}),
                )
                added[original] = path, edited_value(value, group, kept, self.specs)
            else:
                values[original] = edited_value(values.get(original, original.value), group, kept, self.specs)
        return Drafts(self.specs, self.folders, self.files, values, added)

    def _path(self, target: Target, beside: Document) -> Path:
        """Return the file of a new document: beside another, or that one's own file if no other would be found."""
        file = Path(beside.source.path)
        path = distinct(document_path(file.parent, target), self.files)
        is_read = any(path.is_relative_to(top) and is_manifest(str(path.relative_to(top))) for top in self.folders)
        return path if is_read else file

    @property
    def documents(self) -> tuple[dict[Document, Document], dict[Target, Document]]:
        """The changed documents by those that were read, and the new ones: none knows of former keys."""
        changed = {
            old: Document(old.source, old.number, old.line, _copied(value, str)) for old, value in self.values.items()
        }
        new = {
            target: Document(Source(str(path), write_document(value)), 0, 1, _copied(value, str))
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


def by_place(edits: Iterable[Edit]) -> dict[Document | Target, list[Edit]]:
    """Return the edits by their places."""
    grouped: dict[Document | Target, list[Edit]] = {}
    for edit in edits:
        grouped.setdefault(edit.place, []).append(edit)
    return grouped


def edited_value(value: Any, edits: Iterable[Edit], kept: Container[str], specs: SectionSpecs) -> Any:
    """Return the value of a document after edits: renamed keys last, and of a list the last entry first.

    Args:
        value: of the document.
        edits: of it.
        kept: the sections whose empty lists and mappings mean something.
        specs: of all sections.
    """
    changed = _copied(value)
    spec = changed.setdefault("spec", {})
    renames: dict[Steps, dict[str, str]] = {}
    for edit in sorted(edits, key=lambda edit: _backwards(edit.steps)):
        match edit.change:
            case Put(value=new):
                _holder(spec, edit.steps)[edit.steps[-1]] = new
            case Add(value=new):
                _holder(spec, edit.steps).setdefault(edit.steps[-1], []).append(new)
            case Except(exception=exception):
                _except(changed.setdefault("metadata", {}).setdefault("exceptions", []), exception)
            case Drop():
                means_something = edit.section in kept or specs[edit.section].items is not None
                _drop(spec, edit.steps, kept=means_something)
            case _:
                renames.setdefault(edit.steps[:-1], {})[edit.steps[-1]] = edit.change.name
    for above, names in renames.items():
        _rename(_holder(spec, (*above, "")), names)
    return changed


def edited_stack(stack: Stack, edits: Mapping[Document | Target, Sequence[Edit]], sections: Container[str]) -> Stack:
    """Return some sections of a target as they are merged after edits of its layers.

    Args:
        stack: the layers.
        edits: as of `by_place`.
        sections: their names.
    """
    layers = list(stack.layers)
    if stack.target in edits:
        layers.append(Layer(edits[stack.target][0].beside, "", {}, None, {}, {}))
    places = [layer.document for layer in stack.layers] + [stack.target] * (len(layers) - len(stack.layers))
    merged = (
        _edited_layer(layer, edits.get(place, ()), stack, sections) for layer, place in zip(layers, places, strict=True)
    )
    return stack.of(*merged)


def _edited_layer(layer: Layer, edits: Sequence[Edit], stack: Stack, sections: Container[str]) -> Layer:
    """Return some sections of a layer after edits."""
    declared = {name: section for name, section in layer.sections.items() if name in sections}
    own = [edit for edit in edits if edit.section in sections]
    if own:
        declared = edited_value({"spec": declared}, own, stack.prune, stack.specs)["spec"]
    if layer.normalized is None or any(has_placeholder(text) for text, *_ in braces(declared if own else {})):
        return replace(layer, sections=declared, normalized=None)
    normalized = (
        {name: stack.specs[name].normalize(section, None) for name, section in declared.items()}
        if own
        else {name: layer.normalized[name] for name in declared}
    )
    return replace(layer, sections=declared, normalized=normalized)


def _copied(value: Any, key: Callable[[Any], Any] = lambda key: key) -> Any:
    match value:
        case dict():
            return {key(name): _copied(inner, key) for name, inner in value.items()}
        case list():
            return [_copied(inner, key) for inner in value]
    return value


def _drop(spec: Any, steps: Steps, *, kept: bool) -> None:
    """Remove a value, and what becomes empty around it and means nothing when it is empty."""
    holder = _holder(spec, steps)
    del holder[steps[-1]]
    if not holder and len(steps) > 1 and not kept:
        _drop(spec, steps[:-1], kept=kept)


def _except(exceptions: list[Any], exception: Mapping[str, Any]) -> None:
    """Add an exception; it takes the place of the one that is about the same, such as one that has ended."""
    about = _about(exception)
    exceptions[:] = [other for other in exceptions if _about(other) != about]
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
        written = key.former if isinstance(key, RenamedKey) else key
        holder[RenamedKey(names[key], written) if key in names else key] = value
