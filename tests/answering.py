"""A service that answers from memory: what a test does not need of it is the same for all tests."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.model.protocols import Json, Spread
from reconciler.model.targets import Level


class Answering:
    """A `FleetReader` that is asked one thing at a time; a test's own one has another `get`."""

    moved: Mapping[tuple[Level, str], int] = {}

    def concurrency(self) -> int:
        return 1

    def get(self, path: str) -> Json:
        raise NotImplementedError(path)

    def recall(self, path: str) -> Json:
        return self.get(path)

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        del whole
        return list(self.get(path))

    def gather(self, path: str, keep: Callable[[list[Any]], list[Any]], spread: Spread | None = None) -> list[Any]:
        del spread
        return keep(self.pages(path))

    def now(self) -> datetime:
        return datetime.now(UTC)
