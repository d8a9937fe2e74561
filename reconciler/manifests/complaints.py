"""What is wrong with the manifests, gathered: each thing once, however many targets it concerns."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from reconciler.errors import Fault
from reconciler.manifests.sources import Place


@dataclass(slots=True)
class Complaints:
    """Faults and warnings, in the order in which they were noticed.

    What is wrong at a place that many targets share is said once: by whoever noticed first.
    """

    faults: list[Fault] = field(default_factory=list)
    _advice: set[Fault] = field(default_factory=set)
    _said: set[Fault] = field(default_factory=set)
    _first: dict[tuple[str, int, int, str], Hashable] = field(default_factory=dict)

    def add(self, place: Place, message: str, by: Hashable, severity: str = "error") -> None:
        """Note what is wrong at a place, unless somebody else has noted something there.

        Advice is a warning that only `validate` shows: it is about how a manifest reads, not about this run.
        """
        spot = place.spot
        if self._first.setdefault((place.source.path, spot.line, spot.column, severity), by) != by:
            return
        shown = "warning" if severity == "advice" else severity
        fault = place.source.fault(spot.line, spot.column, message, shown)
        if severity == "advice":
            self._advice.add(fault)
        self.extend([fault])

    def extend(self, faults: Iterable[Fault]) -> None:
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
    def warnings(self) -> tuple[Fault, ...]:
        """What is doubtful, sorted by place."""
        return tuple(
            sorted(fault for fault in self.faults if fault.severity == "warning" and fault not in self._advice)
        )

    @property
    def advice(self) -> tuple[Fault, ...]:
        """What only `validate` warns of, sorted by place."""
        return tuple(sorted(self._advice))
