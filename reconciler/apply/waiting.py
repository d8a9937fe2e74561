"""Waiting for what the service does after it has answered: imports of projects, and archives that come into groups.

An import says when it has finished. An archive says nothing: it has arrived once two looks at the group agree.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.apply.outcomes import ApplyOptions
from reconciler.errors import AnswerLost, NotFound, ServerFailure, ServiceError, Stopped
from reconciler.model.protocols import Reader, Service
from reconciler.model.targets import Target

LOG = logging.getLogger(__name__)

CONTENT = ("subgroups", "labels?only_group_labels=true", "milestones", "epics")
"""Lists of a group that an archive fills."""

EMPTY_LOOKS = 5
"""After so many looks at a group that is still empty, its archive is taken to hold nothing."""

NOT_YET = (AnswerLost, NotFound, ServerFailure)
"""After these, one looks again."""

FINAL: Mapping[str, str] = {"failed": "failed", "canceled": "was canceled"}


def growing(first: float, longest: float) -> Iterator[float]:
    """Yield pauses that grow, without end."""
    while True:
        yield first
        first = min(2 * first, longest)


@dataclass(slots=True)
class Patience:
    """Pauses until a time is over.

    Attributes:
        left: seconds.
        is_fresh: whether there was no pause yet.
    """

    service: Service
    pauses: Iterator[float]
    left: float
    is_fresh: bool = True

    def pause(self, request: str) -> bool:
        """Pause, and return whether there was time for that.

        Raises:
            Stopped: the run was ended.
        """
        seconds = min(next(self.pauses), self.left)
        if seconds > 0:
            self.service.pause(request, seconds)
        self.left -= seconds
        self.is_fresh = False
        return seconds > 0


def in_words(seconds: float) -> str:
    """Return a number of seconds as an option takes it, such as `30m`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def archive_arrives(group: Target, service: Service, options: ApplyOptions) -> str:
    """Wait until the archive of a new group has arrived; return why nothing can be done there, or nothing.

    Raises:
        Stopped: the run was ended.
    """
    patience = Patience(service, growing(1, 30), options.wait)
    path, before, empty = f"{group.url}import", _content(group, service), 0
    while patience.pause(f"GET {path}"):
        now = _content(group, service)
        empty += not any(now.values())
        if now == before and (any(now.values()) or empty >= EMPTY_LOOKS):
            LOG.info("%s: the archive has arrived, as far as the service shows that", group)
            return ""
        before = now
    return (
        f"the archive still comes into {group} after {in_words(options.wait)}: the service goes on with it, and the "
        "same command goes on from there"
    )


def _content(group: Target, reader: Reader) -> dict[str, int | None]:
    """Return how many objects each list of a group has; None for one that cannot be read."""

    def count(path: str) -> int | None:
        try:
            return len(reader.pages(f"{group.url}{path}"))
        except Stopped:
            raise
        except ServiceError:
            return None

    return {path: count(path) for path in CONTENT}


@dataclass(frozen=True, slots=True)
class ImportState:
    """How far the import of a project is.

    Attributes:
        is_over: whether it has ended.
        failure: why in vain; empty where it was not.
    """

    is_over: bool
    failure: str = ""


def look_at_import(project: Target, service: Reader, *, begun: bool) -> ImportState:
    """Ask how far the import of a project is.

    Args:
        project: the project.
        service: which.
        begun: whether it has been asked for: then it may not have begun.

    Raises:
        ServiceError: it cannot be watched.
    """
    from reconciler.service.responses import shown  # noqa: PLC0415 - most commands start without HTTP

    try:
        found = service.get(f"{project.url}import")
    except NOT_YET:
        return ImportState(is_over=False)
    record = found if isinstance(found, dict) else {}
    status, words = record.get("import_status"), record.get("import_error")
    if isinstance(status, str) and status in FINAL:
        reason = f"; the service says: {shown(words)}" if isinstance(words, str) and words else ""
        return ImportState(True, f"its import {FINAL[status]}; delete the project and apply again{reason}")
    return ImportState(status == "finished" or (status == "none" and not begun))
