"""All files to one catalogue of documents: found, rendered, read."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.kind import Kinds
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.files import Unreadable, read_text, search
from reconciler.manifests.shapes import shapes_of
from reconciler.manifests.sources import Source, fault

if TYPE_CHECKING:
    from reconciler.manifests.templates import Templates

TEMPLATE = ".j2"


def read_catalogue(
    paths: Sequence[Path], kinds: Kinds, values: Mapping[str, Any], env_names: Sequence[str]
) -> tuple[Catalogue, Complaints, tuple[str, ...]]:
    """Return what the files declare, what is wrong with them, and the files."""
    found = search(paths)
    complaints = Complaints()
    complaints.extend(found.faults)
    catalogue = Catalogue(shapes_of(kinds), whole=not found.faults)
    read_source = _reader(values, env_names)
    for path in found.files:
        try:
            source = read_source(path)
        except Unreadable as error:
            complaints.extend([error.fault])
            catalogue.whole = False
        else:
            _add_documents(source, catalogue, complaints)
    return catalogue, complaints, tuple(found.files)


def _reader(values: Mapping[str, Any], env_names: Sequence[str]) -> Callable[[str], Source]:
    """Return what reads a file, and renders it if it is a template."""

    @cache
    def templates() -> "Templates":
        from reconciler.manifests.templates import Templates  # noqa: PLC0415 - jinja2 takes 50 ms to import

        return Templates(values, env_names)

    def read(path: str) -> Source:
        text = read_text(path)
        return templates().source(path, text) if path.endswith(TEMPLATE) else Source(path, text)

    return read


def _add_documents(source: Source, catalogue: Catalogue, complaints: Complaints) -> None:
    reading = source.read()
    complaints.extend(reading.faults)
    catalogue.whole &= reading.whole
    if not reading.roots and not reading.faults:
        complaints.extend([fault(source.path, 0, 0, "holds no document")])
    for number, root in enumerate(reading.roots):
        catalogue.add(Document(source, number, root.line, root.value), complaints)
