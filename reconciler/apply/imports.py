"""Waiting for what the service does after it has answered: imports of projects, and archives that come into groups.

An import says when it has finished. An archive says nothing: it has arrived once two looks at the group agree.
"""

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.apply.outcomes import ApplyOptions
from reconciler.errors import AnswerLost, NotFound, RateLimited, ServerFailure, ServiceError
from reconciler.live.imports import ImportState, import_state
from reconciler.model.protocols import Reader, Service
from reconciler.model.targets import Target

LOG = logging.getLogger(__name__)

CONTENT = (
    "descendant_groups",
    "labels?include_ancestor_groups=false&include_descendant_groups=true",
    "milestones?include_descendants=true",
    "epics",
)
"""Lists of a group, with all below it, that an archive fills."""

EMPTY_LOOKS = 5
"""After so many looks at a group that is still empty, its archive is taken to hold nothing."""

NOT_YET = (AnswerLost, NotFound, RateLimited, ServerFailure)
"""After these, one looks again."""


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
        waited: seconds so far.
        is_fresh: whether there was no pause yet.
    """

    service: Service
    pauses: Iterator[float]
    left: float
    waited: float = 0
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
        self.waited += seconds
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
    LOG.info("Waiting until the archive of %s has arrived, %s at most", group, in_words(options.wait))
    path, before, empty = f"{group.url}import", _content(group, service), 0
    while patience.pause(f"GET {path}"):
        now = _content(group, service)
        empty += not any(now.values())
        if now == before and (any(now.values()) or empty >= EMPTY_LOOKS):
            LOG.info("%s: the archive has arrived, as far as the service shows that", group)
            return ""
        before = now
    return f"the archive of {group} is still arriving after {in_words(options.wait)}"


def _content(group: Target, reader: Reader) -> dict[str, int | None]:
    """Return how many objects each list of a group has; None for one that cannot be read."""

    def count(path: str) -> int | None:
        try:
            return len(reader.pages(f"{group.url}{path}"))
        except ServiceError:
            return None

    return {path: count(path) for path in CONTENT}


def look_at_import(project: Target, service: Reader, *, begun: bool, secrets: Collection[str]) -> ImportState:
    """Ask how the import of a project is going.

    Args:
        project: the project.
        service: which.
        begun: whether this run has asked for it: then it may not have begun yet.
        secrets: texts that the reason of a failure must not hold.

    Raises:
        ServiceError: it cannot be watched.
    """
    try:
        found = service.get(f"{project.url}import")
    except NOT_YET:
        return ImportState(is_running=True)
    record = found if isinstance(found, dict) else {}
    if begun and record.get("import_status") == "none":
        return ImportState(is_running=True)
    return import_state(project, record, secrets)
