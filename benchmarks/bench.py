"""The bench that rows work at: how much there is to do, a folder for it, and what several rows share."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.fleet import Work, write_manifests, write_state

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work the rows are.

    Attributes:
        name: `full`, `quick` or `tiny`.
        projects: for requests, latency and CPU.
        files: manifests to read: few, and many.
        memory: projects of the plans whose memory is compared, ascending.
        history: projects of which one has changed.
        rate: requests, and seconds of a window that takes them.
        section: changes in one section.
        changes: of the plan that is rendered, and of that which is read again.
        exported: projects that are exported.
        browsed: projects of the pages that are opened in a browser.
        starts: how often a start is measured.
        peers: projects that each tool brings into order.
        repeat: how often everything else is measured.
    """

    name: str
    projects: int
    files: tuple[int, int]
    memory: tuple[int, int, int]
    history: int
    rate: tuple[int, int]
    section: int
    changes: int
    exported: int
    browsed: tuple[int, ...]
    starts: int
    peers: int
    repeat: int


FULL = Sizes(
    "full",
    1000,
    (100, 10_000),
    (2500, 5000, 10_000),
    10_000,
    (600, 60),
    2000,
    50_000,
    5000,
    (10, 500, 5000),
    31,
    50,
    3,
)
QUICK = Sizes("quick", 100, (50, 500), (100, 200, 400), 500, (60, 6), 200, 5000, 100, (10, 500), 11, 10, 3)
TINY = Sizes("tiny", 10, (10, 20), (10, 20, 30), 20, (60, 2), 10, 100, 10, (10,), 1, 10, 1)


@dataclass(slots=True)
class Bench:
    """Where one run measures.

    Attributes:
        sizes: how much.
        folder: its own, empty at first.
    """

    sizes: Sizes
    folder: Path
    _made: dict[Hashable, Any] = field(default_factory=dict)

    def manifests(self, count: int) -> Path:
        """Return a folder with the manifests of so many projects."""

        def make() -> Path:
            folder = self.folder / f"manifests-{count}"
            write_manifests(folder, count)
            return folder

        return self.once(("manifests", count), make)

    def state(self, count: int, *, drifted: bool = False) -> tuple[Path, Work]:
        """Return a state with so many projects, as the manifests want them or not, and the work that is."""

        def make() -> tuple[Path, Work]:
            file = self.folder / f"state-{count}-{'drifted' if drifted else 'in-order'}.json"
            return file, write_state(file, count, drifted=drifted)

        return self.once(("state", count, drifted), make)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Make something the first time it is asked for."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made
