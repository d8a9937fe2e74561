"""The bench that rows work at: how much there is to do, a folder for it, and what several rows share."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
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
        new: projects that are exported to an empty folder.
        ordered: projects that are planned with nothing to do.
        browsed: projects of the pages that are opened in a browser.
        starts: how often a start is measured.
        latencies: milliseconds of the services that take their time.
        workers: requests that the services with few workers work on at once.
        cost: milliseconds of such a worker for a small read; 60 on a real service.
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
    new: int
    ordered: int
    browsed: tuple[int, ...]
    starts: int
    latencies: tuple[int, ...]
    workers: tuple[int, ...]
    cost: int
    peers: int
    repeat: int


FULL = Sizes(
    name="full",
    projects=1000,
    files=(100, 10_000),
    memory=(2500, 5000, 10_000),
    history=10_000,
    rate=(600, 60),
    section=2000,
    changes=50_000,
    exported=5000,
    new=2000,
    ordered=5000,
    browsed=(10, 500, 5000),
    starts=31,
    latencies=(20, 50, 100),
    workers=(4, 16, 64),
    cost=60,
    peers=200,
    repeat=3,
)
QUICK = replace(
    FULL,
    name="quick",
    projects=100,
    files=(50, 500),
    memory=(100, 200, 400),
    history=500,
    rate=(60, 6),
    section=200,
    changes=5000,
    exported=100,
    new=100,
    ordered=100,
    browsed=(10, 500),
    starts=11,
    latencies=(20, 100),
    workers=(4, 16),
    peers=10,
    repeat=1,
)
TINY = Sizes(
    name="tiny",
    projects=10,
    files=(10, 20),
    memory=(10, 20, 30),
    history=20,
    rate=(60, 2),
    section=10,
    changes=100,
    exported=10,
    new=10,
    ordered=10,
    browsed=(10,),
    starts=1,
    latencies=(20,),
    workers=(16,),
    cost=5,
    peers=10,
    repeat=1,
)


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
