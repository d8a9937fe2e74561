"""Pauses: until what was just created can be seen, and until the service has ended what it does after its answer."""

from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO, TypeVar

from reconciler.engine.roster import fetch_record
from reconciler.errors import NotFound
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.targets import Target

Answer = TypeVar("Answer")

VISIBLE_AFTER = (0.5, 1, 2, 4, 8, 15)
"""Seconds between looks for what was just created, and may not be visible at once."""


class PatientService:
    """The service of a target that was just created: until something of it was seen, a 404 is not believed."""

    def __init__(self, service: Service, target: Target) -> None:
        self._service, self._target, self._seen = service, target, False
        self.concurrency = service.concurrency

    def get(self, path: str) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.get(path), path)

    def recall(self, path: str) -> Json:
        """See `Service`."""
        return self._service.recall(path)

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """See `Service`."""
        return self._patiently(lambda: self._service.pages(path, whole=whole), path)

    def send(self, request: Request, *, secrets: Collection[str] = (), file: BinaryIO | None = None) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.send(request, secrets=secrets, file=file), request.path)

    def pause(self, request: str, seconds: float) -> None:
        """See `Service`."""
        self._service.pause(request, seconds)

    def _patiently(self, ask: Callable[[], Answer], path: str) -> Answer:
        for seconds in () if self._seen else VISIBLE_AFTER:
            try:
                answer = ask()
            except NotFound:
                if self._is_visible():
                    break
                self.pause(path, seconds)
            else:
                self._seen = True
                return answer
        return ask()

    def _is_visible(self) -> bool:
        try:
            fetch_record(self._target, self._service)
        except NotFound:
            return False
        self._seen = True
        return True


def pauses(service: Service, request: str, seconds: float, *, longest: float, wait: float) -> Iterator[float]:
    """Pause before each look, longer each time, until the time is over; yield the seconds waited so far.

    Args:
        service: keeps the pauses.
        request: the look, as messages name it.
        seconds: the first pause.
        longest: the longest.
        wait: seconds to wait in all.

    Raises:
        Stopped: the run was ended.
    """
    left = wait
    while left > 0:
        pause = min(seconds, left)
        service.pause(request, pause)
        left -= pause
        seconds = min(2 * seconds, longest)
        yield wait - left


def in_words(seconds: float) -> str:
    """Return a number of seconds as an option takes it, such as `30m`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
