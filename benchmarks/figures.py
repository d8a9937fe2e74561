"""What is measured: figures with their targets, and the noise of the machine that they come from."""

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, measured several times.

    Attributes:
        work: what it is a number of.
        samples: as measured.
        unit: of the samples; empty for ratios and counts.
        at_most: what is to be reached; None where nothing is.
        exactly: whether that is to be met, not to be stayed below.
        about: what else there is to know, such as the server.
    """

    work: str
    samples: tuple[float, ...]
    unit: str = ""
    at_most: float | None = None
    exactly: bool = False
    about: str = ""

    @property
    def value(self) -> float:
        """The median."""
        return median(self.samples)

    @property
    def spread(self) -> float:
        """How far the samples lie apart, as a share of the median."""
        return (max(self.samples) - min(self.samples)) / self.value if self.value else 0.0

    @property
    def ratio(self) -> float | None:
        """The median as a share of the target; None where that is none, or zero."""
        return self.value / self.at_most if self.at_most else None

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        if self.at_most is None:
            return None
        return self.value == self.at_most if self.exactly else self.value <= self.at_most

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "work": self.work,
            "median": self.value,
            "unit": self.unit,
            "spread": round(self.spread, 4),
            "samples": [round(sample, 6) for sample in self.samples],
            "target": self.at_most,
            "exactly": self.exactly,
            "ratio": self.ratio,
            "reached": self.reached,
            "about": self.about,
        }


@dataclass(slots=True)
class Results:
    """All that one run has measured.

    Attributes:
        sizes: how much work it was.
        rows: the figures by row.
        seconds: what each row took.
    """

    sizes: str
    rows: dict[str, list[Figure]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Results":
        """Return what `as_json` returned this of."""
        rows = {
            name: [
                Figure(
                    each["work"], tuple(each["samples"]), *(each[key] for key in ("unit", "target", "exactly", "about"))
                )
                for each in row["figures"]
            ]
            for name, row in kept["rows"].items()
        }
        return cls(kept["sizes"], rows, {name: row["seconds"] for name, row in kept["rows"].items()})

    def completed(self, names: Iterable[str], earlier: "Results") -> "Results":
        """Return the rows of some names, in this order: of earlier results those that were not measured again."""
        earlier_rows = earlier.rows if earlier.sizes == self.sizes else {}
        rows, seconds = {**earlier_rows, **self.rows}, {**earlier.seconds, **self.seconds}
        found = [name for name in names if name in rows]
        return Results(self.sizes, {name: rows[name] for name in found}, {name: seconds[name] for name in found})

    def as_json(self) -> dict[str, Any]:
        """All of it, and the machine."""
        return {
            "machine": machine(),
            "sizes": self.sizes,
            "rows": {
                name: {"seconds": round(self.seconds[name], 1), "figures": [figure.as_json() for figure in figures]}
                for name, figures in self.rows.items()
            },
        }


def machine() -> Mapping[str, Any]:
    """Return what the figures depend on."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
