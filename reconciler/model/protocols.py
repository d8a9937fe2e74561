"""Requests as values, and the service as protocols: `Reader`, which cannot write, and `Service`, which can."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, BinaryIO, Literal, Protocol, TypeVar

from pydantic import Field

from reconciler.model.targets import Level

Json = Any
"""A JSON value as `json.loads` builds it. Its reader checks it: a kind by its model."""

Kept = TypeVar("Kept")

KeepPage = Callable[[list[Json]], list[Kept]]
"""See `FleetReader.gather`."""

Spread = Callable[[Callable[[str], Any], Sequence[str]], list[Any]]
"""Does the same for some texts, and returns the results in their order."""

Begin = Callable[[Mapping[str, str]], Callable[[bytes], object] | None]
"""Takes the headers of a response by lower-case name, and returns what takes its body piece by piece; None: nothing."""

Concurrency = Callable[[], int]
"""Returns how many requests may be made at once, at this moment."""

Method = Literal["POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Request:
    """One write, ready to send."""

    method: Method
    """The HTTP method."""
    path: str
    """Below the service's URL, percent-encoded; `{id}` is the ID that the change's first request returns."""
    body: Mapping[str, Json] | None = None
    """The JSON body, or null. `{"created": NAME}` in it is the ID of the object that a change before has created."""
    once: Annotated[bool, Field(exclude=True)] = field(default=False, compare=False)
    """Whether it is never sent again, also after a lost answer; see `Writes.once`."""

    def __str__(self) -> str:
        """Method and path, without the body."""
        return f"{self.method} {self.path}"


class Reader(Protocol):
    """The service, for reading only. Its methods raise `ServiceError`s and nothing else.

    It has no method that writes: code that gets a `Reader` cannot change the service.
    """

    @property
    def concurrency(self) -> Concurrency:
        """The number of requests that may be in flight at once."""

    def get(self, path: str) -> Json:
        """Return the JSON answer to `GET {api_url}/{path}`."""

    def recall(self, path: str) -> Json:
        """Return the JSON answer to `GET {api_url}/{path}`, which is requested at most once a run."""

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """Return all items of all pages of `GET {api_url}/{path}` (spec section 1, pagination).

        Args:
            path: of the list.
            whole: whether a response without any header about pages is the whole list; if not, the next page is
                requested.
        """


class FleetReader(Reader, Protocol):
    """The service, read-only."""

    @property
    def moved(self) -> Mapping[tuple[Level, str], int]:
        """The groups and projects that have moved: their numeric IDs by level and requested path."""

    def now(self) -> datetime:
        """Return the time by the service's own clock, as its responses show it; with a time zone."""

    def gather(self, path: str, keep: KeepPage[Kept], spread: Spread | None = None) -> list[Kept]:
        """Return the kept parts of all items of all pages of `GET {api_url}/{path}`.

        Args:
            path: of the list.
            keep: returns the kept part of each item of a page; called again if the list has changed while it was read.
            spread: requests the pages after the first in parallel, if the service shows their number.
        """


class Service(Reader, Protocol):
    """The service, for reading and writing."""

    def send(self, request: Request, *, secrets: Collection[str] = (), file: BinaryIO | None = None) -> Json:
        """Carry out one write and return its JSON answer, None if the response has no body.

        Args:
            request: the write.
            secrets: texts of its body; no error and no message of the run repeats them.
            file: sent as the part `file` of a form, from its beginning; None for a JSON body.
        """

    def pause(self, request: str, seconds: float) -> None:
        """Wait before a request for a job of the service.

        Raises:
            Stopped: the run was ended.
        """
