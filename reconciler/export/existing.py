"""The manifests that are in the folder already: where each target has its document, and what lies beneath that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from reconciler.errors import ManifestErrors
from reconciler.export.envelope import target_of
from reconciler.export.sharing import PROFILE
from reconciler.export.targets import Known, paths_of
from reconciler.export.updating import PRUNE, Written
from reconciler.manifests import Manifests, read_contents
from reconciler.manifests.layers import SectionSpecs, merge, placeholder_values, section_specs
from reconciler.manifests.loader import TEMPLATE
from reconciler.manifests.sources import Source, Unreadable, read_text, search
from reconciler.model.kind import Kinds
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document is.

    Attributes:
        path: the file.
        number: which of the file's documents, from 0.
    """

    path: Path
    number: int


@dataclass(frozen=True, slots=True)
class Existing:
    """What is in the folder.

    Attributes:
        texts: by file, as they are.
        documents: by file, its documents as plain values.
        templates: files that are not looked into.
        shapes: of all kinds.
    """

    texts: Mapping[Path, str] = field(default_factory=dict)
    documents: Mapping[Path, list[Any]] = field(default_factory=dict)
    templates: tuple[Path, ...] = ()
    shapes: SectionSpecs = field(default_factory=dict)
    _places: Mapping[Any, tuple[Target, Place]] = field(default_factory=dict)
    _manifests: Manifests | None = None

    def with_paths(self, targets: Iterable[Known]) -> "Existing":
        """Return the same, with the placeholders of documents that give an ID filled in."""
        known = None if self._manifests is None else self._manifests.with_discovered(None, paths_of(targets))
        return replace(self, _manifests=known)

    def place_of(self, known: Known) -> Place | None:
        """Return where a target has its document, be it by path or by number."""
        _, place = self._found(known)
        return place

    def written(self, known: Known, adding: Iterable[str]) -> Written | None:
        """Return what the manifests say of a target that has a document."""
        target, place = self._found(known)
        if place is None or target is None or self._manifests is None:
            return None
        own = dict(self.documents[place.path][place.number].get("spec") or {})
        whole = self._manifests.effective(target)
        prune = tuple(whole.pop(PRUNE, ()))
        beneath = {}
        for name in whole:
            layers = [value for _, value in self._manifests.explain(target, (name,))]
            below = layers[:-1] if name in own else layers
            if below:
                beneath[name] = reduce(partial(merge, self.shapes[name]), below)
        return Written(own, beneath, prune, adding, values=placeholder_values(known.path))

    def profile(self, name: str) -> dict[str, Any] | None:
        """Return the spec of the profile of that name, if there is one."""
        for documents in self.documents.values():
            for document in documents:
                if document["kind"] == PROFILE and document["metadata"]["name"] == name:
                    return dict(document.get("spec", {}))
        return None

    def _found(self, known: Known) -> tuple[Target | None, Place | None]:
        for identity in (known.target.identity, (known.target.level, known.number)):
            if identity in self._places:
                return self._places[identity]
        return None, None


def read_existing(folder: Path, kinds: Kinds) -> Existing:
    """Read the manifests of a folder, which need not be there yet.

    Raises:
        ManifestErrors: they are not in order, so that nobody can tell what to change.
    """
    if not folder.exists():
        return Existing()
    files = [Path(path) for path in search([folder]).files]
    templates = tuple(path for path in files if path.name.endswith(TEMPLATE))
    texts = {path: _text(path) for path in files if path not in templates}
    manifests = read_contents({str(path): text.encode() for path, text in texts.items()}, kinds)
    documents = {path: [root.value for root in Source(str(path), text).read().roots] for path, text in texts.items()}
    places = {}
    for path, values in documents.items():
        for number, value in enumerate(values):
            target = target_of(value)
            if target is not None:
                places[target.identity] = (target, Place(path, number))
    return Existing(texts, documents, templates, section_specs(kinds), places, manifests)


def _text(path: Path) -> str:
    """Return what is in a file.

    Raises:
        ManifestErrors: it cannot be read.
    """
    try:
        return read_text(str(path))
    except Unreadable as error:
        raise ManifestErrors([error.diagnostic]) from None
