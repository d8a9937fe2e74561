"""What is wrong, or doubtful, in the manifests."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from reconciler.errors import LocatedDiagnostic
from reconciler.manifests.sources import Location


@dataclass(slots=True)
class Diagnostics:
    """Faults and warnings, in the order in which they were noticed.

    What is wrong at a place that many targets share is said once: by whoever noticed first.
    """

    faults: list[LocatedDiagnostic] = field(default_factory=list)
    _advice: set[LocatedDiagnostic] = field(default_factory=set)
    _said: set[LocatedDiagnostic] = field(default_factory=set)
    _first: dict[tuple[str, int, int, str], Hashable] = field(default_factory=dict)

    def add(self, place: Location, message: str, by: Hashable, severity: str = "error") -> None:
        """Note what is wrong at a place, unless somebody else has noted something there.

        Advice is a warning that only `validate` shows: it is about how a manifest reads, not about this run.
        """
        position = place.position
        if self._first.setdefault((place.source.path, position.line, position.column, severity), by) != by:
            return
        shown = "warning" if severity == "advice" else severity
        fault = place.source.fault(position.line, position.column, message, shown)
        if severity == "advice":
            self._advice.add(fault)
        self.extend([fault])

    def extend(self, faults: Iterable[LocatedDiagnostic]) -> None:
        """Note faults that have no part in the places of others."""
        for fault in faults:
            if fault not in self._said:
                self._said.add(fault)
                self.faults.append(fault)

    @property
    def errors(self) -> bool:
        """Whether anything is wrong, and not merely doubtful."""
        return any(fault.severity == "error" for fault in self.faults)

    @property
    def warnings(self) -> tuple[LocatedDiagnostic, ...]:
        """What is doubtful, sorted by place."""
        return tuple(
            sorted(fault for fault in self.faults if fault.severity == "warning" and fault not in self._advice)
        )

    @property
    def advice(self) -> tuple[LocatedDiagnostic, ...]:
        """What only `validate` warns of, sorted by place."""
        return tuple(sorted(self._advice))
