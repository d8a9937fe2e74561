"""The manifests as the rest of the tool sees them: the desired state, and where it comes from."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from reconciler.address import Scope
from reconciler.errors import Fault, ManifestErrors
from reconciler.manifests.assembly import Assembled, assemble, desired_state
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.contributions import contributions
from reconciler.manifests.explain import sayings, steps
from reconciler.manifests.sets import Discovered
from reconciler.state import DesiredState


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the manifests declare, merged and free of faults.

    Attributes:
        desired: all targets. As long as groups are to be discovered, the sets that name them have a say only in
            projects with documents of their own.
        warnings: what is doubtful, sorted by place.
        files: those read, as the user named them.
    """

    desired: DesiredState
    warnings: tuple[Fault, ...]
    files: tuple[str, ...]
    _catalogue: Catalogue = field(repr=False, compare=False)
    _assembled: Mapping[Any, Assembled] = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose projects are to be discovered, sorted, as the sets name them."""
        selected = (declared.declared.select.group for declared in self._catalogue.sets.values())
        return tuple(sorted({group for group in selected if group}))

    def with_discovered(self, discovered: Discovered) -> "Manifests":
        """Return the manifests with the sets in force, given for each of `groups` the projects below it.

        Raises:
            ManifestErrors: what is wrong shows only now, such as two sets that disagree on a project.
            KeyError: a group is missing.
        """
        return assembled(self._catalogue, Complaints(), self.files, discovered)

    def effective(self, scope: Scope) -> dict[str, Any]:
        """Return the merged spec of a target as plain data of its own.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[scope.identity].effective
        return deepcopy({**({"prune": whole.prune} if whole.prune else {}), **whole.sections})

    def explain(self, scope: Scope, field_: str | Sequence[str | int]) -> list[tuple[str, Any]]:
        """Return who has a say in a field of a target's spec, lowest layer first, as `path:line` and value.

        Args:
            scope: the target.
            field_: the keys from the spec downwards, as a sequence or joined by dots (keys may hold dots themselves).

        Returns:
            Nothing if the merged spec has no such field.

        Raises:
            KeyError: no such target.
        """
        path = steps(field_, self.effective(scope)) if isinstance(field_, str) else tuple(field_)
        return list(sayings(self._assembled[scope.identity].effective, path)) if path else []


def assembled(
    catalogue: Catalogue, complaints: Complaints, files: tuple[str, ...], discovered: Discovered | None = None
) -> Manifests:
    """Return the manifests that a catalogue comes to.

    Raises:
        ManifestErrors: with all faults.
    """
    targets = assemble(contributions(catalogue, discovered, complaints), catalogue.shapes, complaints)
    if complaints.errors:
        raise ManifestErrors(complaints.faults)
    by_identity = {each.target.scope.identity: each for each in targets}
    return Manifests(desired_state(targets), complaints.warnings, files, catalogue, by_identity)
