"""All files to one catalogue of documents: found, rendered, read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.files import Unreadable, as_text, read_text, search, why_passed_over
from reconciler.manifests.sources import Source, fault

if TYPE_CHECKING:
    from reconciler.manifests.templates import Templates

TEMPLATE = ".j2"


@dataclass(slots=True)
class Reader:
    """Reads files one after the other; as a context manager, ends the process for templates after them.

    Attributes:
        catalogue: what they declare.
        complaints: what is wrong with them.
        files: those read.
        values: for templates.
        env_names: the environment variables that templates may read.
        secrets: what is kept out of messages, though a link may lead to a file that holds it.
    """

    catalogue: Catalogue
    values: Mapping[str, Any]
    env_names: Sequence[str]
    secrets: Collection[str] = ()
    complaints: Complaints = field(default_factory=Complaints)
    files: list[str] = field(default_factory=list)
    _templates: "Templates | None" = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._templates is not None:
            self._templates.close()

    def search(self, paths: Sequence[Path]) -> None:
        """Read all manifests at and below some paths."""
        found = search(paths)
        self.complaints.extend(found.faults)
        self.catalogue.whole &= not found.faults
        self.complaints.extend(
            fault(path, 0, 0, why_passed_over(path), severity="warning") for path in found.passed_over
        )
        for path in found.files:
            self.read(path)

    def read(self, path: str, content: bytes | None = None) -> None:
        """Read a file, or its content if that is given."""
        self.files.append(path)
        try:
            source = self._source(path, read_text(path) if content is None else as_text(path, content))
        except Unreadable as error:
            self.complaints.extend([error.fault])
            self.catalogue.whole = False
        else:
            _add_documents(source, self.catalogue, self.complaints)

    def _source(self, path: str, text: str) -> Source:
        if not path.endswith(TEMPLATE):
            return Source(path, text, tuple(self.secrets))
        if self._templates is None:
            from reconciler.manifests.templates import Templates  # noqa: PLC0415 - only templates need a process

            self._templates = Templates(self.values, self.env_names, secrets=self.secrets)
        return self._templates.source(path, text)


def _add_documents(source: Source, catalogue: Catalogue, complaints: Complaints) -> None:
    reading = source.read()
    complaints.extend(reading.faults)
    catalogue.whole &= reading.whole
    if not reading.roots and not reading.faults and not source.own_line:
        complaints.extend([fault(source.path, 0, 0, "holds no document", severity="warning")])
    for number, root in enumerate(reading.roots):
        catalogue.add(Document(source, number, root.line, root.value), complaints)
