"""All files to one catalogue of documents, and the catalogue to the manifests as the rest of the tool sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.address import Scope
from reconciler.errors import Fault, ManifestErrors
from reconciler.kind import Kinds
from reconciler.manifests.assembly import Assembled, assemble, desired_state
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import Document
from reconciler.manifests.files import Unreadable, read_text, search
from reconciler.manifests.shapes import shapes_of
from reconciler.manifests.sources import Source, fault
from reconciler.state import DesiredState


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the manifests declare, merged and free of faults.

    Attributes:
        desired: all targets.
        warnings: what is doubtful, sorted by place.
        files: those read, as the user named them.
    """

    desired: DesiredState
    warnings: tuple[Fault, ...]
    files: tuple[str, ...]
    _assembled: Mapping[Any, Assembled]

    def effective(self, scope: Scope) -> dict[str, Any]:
        """Return the merged spec of a target as plain data.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[scope.identity].effective
        return {**({"prune": list(whole.prune)} if whole.prune else {}), **whole.sections}


def read_catalogue(
    paths: Sequence[Path], kinds: Kinds, values: Mapping[str, Any], env_names: Sequence[str]
) -> tuple[Catalogue, Complaints, tuple[str, ...]]:
    """Return what the files declare, what is wrong with them, and the files."""
    found = search(paths)
    complaints = Complaints()
    complaints.extend(found.faults)
    catalogue = Catalogue(shapes_of(kinds), whole=not found.faults)
    for path in found.files:
        try:
            source = Source(path, read_text(path))
        except Unreadable as error:
            complaints.extend([error.fault])
            catalogue.whole = False
        else:
            _add_documents(source, catalogue, complaints)
    return catalogue, complaints, tuple(found.files)


def assembled(catalogue: Catalogue, complaints: Complaints, files: tuple[str, ...]) -> Manifests:
    """Return the manifests.

    Raises:
        ManifestErrors: with all faults.
    """
    targets = assemble(catalogue, complaints)
    if complaints.errors:
        raise ManifestErrors(complaints.faults)
    by_identity = {each.target.scope.identity: each for each in targets}
    return Manifests(desired_state(targets), complaints.warnings, files, by_identity)


def _add_documents(source: Source, catalogue: Catalogue, complaints: Complaints) -> None:
    reading = source.read()
    complaints.extend(reading.faults)
    catalogue.whole &= reading.whole
    if not reading.roots and not reading.faults:
        complaints.extend([fault(source.path, 0, 0, "holds no document")])
    for number, root in enumerate(reading.roots):
        catalogue.add(Document(source, number, root.line, root.value), complaints)
