"""One thing of each name on the service: found again by a marker in its text, updated in place, never doubled.

Notes, issues and merge requests of commands are kept so. Begin with `Keeper.keep`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar
from urllib.parse import quote

from reconciler.errors import BadAnswer, NotFound, ServiceError
from reconciler.model.protocols import Json, Request

MAX_TEXT_LENGTH = 1_000_000
"""Characters that the service accepts in one text."""

MAX_KEEP_ATTEMPTS = 3
"""Attempts to make a thing whose response is lost each time and which is then missing."""

Record = Mapping[str, Json]
"""A thing as the service has it."""

Seen = TypeVar("Seen")
Outcome = TypeVar("Outcome")


class Board(Protocol):
    """The part of a client that a keeper needs. Its methods raise `ServiceError`s and nothing else."""

    def get(self, path: str) -> Json:
        """See `protocols.Reader`."""

    def visible(self, path: str) -> list[Json]:
        """Return all items of all pages that the token may see, of a list that may have others too."""

    def send(self, request: Request) -> Json:
        """See `protocols.Service`."""


class Result(StrEnum):
    """What was done about a note, an issue or a merge request."""

    POSTED = "posted"
    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    CLOSED = "closed"
    REOPENED = "reopened"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class KeptThing:
    """The thing after a run.

    Attributes:
        result: the action.
        number: of the thing.
        before: the thing before the run; None for a new thing.
    """

    result: Result
    number: int
    before: Record | None = None


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps a single note, issue or merge request in a list, whatever other runs and users do at the same time.

    Attributes:
        board: the service.
        title: the sort of thing, for errors.
        path: of the list.
        query: of the list, from the question mark on.
        number: the field with the number that the service gives each thing.
        is_ours: whether a thing of the list is the kept one, or a duplicate of it.
        made: the result if there was no thing before.
        removal: returns the write that removes a duplicate, by the path of the duplicate, the duplicate and the kept
            thing; None to leave the duplicate.
    """

    board: Board
    title: str
    path: str
    query: str
    number: str
    is_ours: Callable[[Record], bool]
    made: Result = Result.OPENED
    removal: Callable[[str, Record, Record], Request | None] = lambda _path, _duplicate, _kept: None

    def existing(self) -> list[Record]:
        """Return the existing thing and its duplicates, the oldest first."""
        listed = self.board.visible(f"{self.path}{self.query}")
        return sorted(
            (thing for thing in listed if self._is_numbered(thing) and self.is_ours(thing)), key=self.number_of
        )

    def keep(self, fields_of: Callable[[Record | None], Record]) -> KeptThing:
        """Update the oldest thing and remove its duplicates, or make a new thing.

        Args:
            fields_of: returns the fields to write for the existing thing: all without a thing, none if all are right.

        Raises:
            ServiceError: the thing could not be kept.
        """
        return until_certain(self.existing, lambda things: self._kept(things, fields_of))

    def path_of(self, thing: Record) -> str:
        """Return the path of a thing of the list."""
        return f"{self.path}/{self.number_of(thing)}"

    def number_of(self, thing: Record) -> int:
        """Return the number of a thing of the list."""
        return int(thing[self.number])

    def _kept(self, things: list[Record], fields_of: Callable[[Record | None], Record]) -> KeptThing:
        if not things:
            made = self.board.send(Request("POST", self.path, fields_of(None)))
            if not self._is_numbered(made):
                raise BadAnswer(f"POST {self.path}", f"unexpected response: the {self.title} has no number")
            return KeptThing(self.made, self.number_of(made))
        first, *others = things
        fields = fields_of(first)
        if fields:
            self.board.send(Request("PUT", self.path_of(first), fields))
        removals = [request for thing in others if (request := self.removal(self.path_of(thing), thing, first))]
        for request in removals:
            with suppress(NotFound):
                self.board.send(request)
        return KeptThing(Result.UPDATED if fields or removals else Result.UNCHANGED, self.number_of(first), first)

    def _is_numbered(self, thing: Json) -> bool:
        return isinstance(thing, dict) and isinstance(thing.get(self.number), int)


def until_certain(look: Callable[[], Seen], act: Callable[[Seen], Outcome]) -> Outcome:
    """Look at the service and act; look again if another run was faster, or the result of the action is unknown.

    Args:
        look: returns what the service has; an empty value for nothing.
        act: does the action by what was seen, and returns its outcome.

    Raises:
        ServiceError: of `look`; or of the last attempt to act.
    """
    attempts = MAX_KEEP_ATTEMPTS
    while True:
        attempts -= 1
        seen = look()
        try:
            return act(seen)
        except ServiceError as error:
            # 409: another run has opened one of the same source branch meanwhile.
            is_gone = bool(seen) and isinstance(error, NotFound)
            if not (attempts and (is_gone or error.ambiguous or error.status == 409)):
                raise


def marker(sort: str, name: str) -> str:
    """Return the first line of a text of that name: an HTML comment, which is not shown.

    Args:
        sort: of the thing, such as `note`.
        name: distinguishes the thing from others of its sort.
    """
    return f"<!-- reconciler {sort}: {quote(name, safe=' /').replace('--', '-%2D')} -->"


def as_stored(text: str) -> str:
    """Return a text as the service stores it: without carriage returns and trailing blanks."""
    return text.replace("\r", "").rstrip()


def own_user(board: Board) -> int:
    """Return the ID of the token's user: only texts of this user count, whatever other users write into theirs.

    Raises:
        ServiceError: the user cannot be read.
    """
    user = board.get("user")
    if isinstance(user, dict) and isinstance(user.get("id"), int):
        return int(user["id"])
    raise BadAnswer("GET user", "unexpected response: the user has no numeric id")


def project_path(project: str) -> str:
    """Return the path of a project's endpoints, of its ID or its full path."""
    return f"projects/{quote(project, safe='')}"
