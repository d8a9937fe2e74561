"""One thing of each name on the service: found again by a marker in its text, updated in place, never doubled."""

from collections.abc import Sequence
from typing import Protocol, TypeVar
from urllib.parse import quote

from reconciler.errors import BadAnswer, NotFound, ServiceError
from reconciler.model.protocols import Json, Request

MAX_TEXT_LENGTH = 1_000_000
"""Characters that the service accepts in one text."""

MAX_KEEP_ATTEMPTS = 3
"""Attempts to make a thing whose response is lost each time and which is then missing."""

Thing = TypeVar("Thing")
Outcome_co = TypeVar("Outcome_co", covariant=True)


class Board(Protocol):
    """The part of a client that this needs. Its methods raise `ServiceError`s and nothing else."""

    def get(self, path: str) -> Json:
        """See `protocols.Reader`."""

    def visible(self, path: str) -> list[Json]:
        """Return all items of all pages that the token may see, of a list that may hold others."""

    def send(self, request: Request) -> Json:
        """See `protocols.Service`."""


class Keeper(Protocol[Thing, Outcome_co]):
    """What one sort of thing needs, so that `keep_one` can keep one of it. Each method may raise `ServiceError`."""

    def existing(self) -> Sequence[Thing]:
        """Return what is there, the oldest first."""

    def keep(self, things: Sequence[Thing], /) -> Outcome_co:
        """Update the first of those that are there, and remove the others."""

    def make(self) -> Outcome_co:
        """Make one."""


def keep_one(keeper: Keeper[Thing, Outcome_co]) -> Outcome_co:
    """Update what is there, or make it; whatever others do at the same time.

    If nobody knows whether it was made, or another run was faster, it is looked for again.

    Raises:
        ServiceError: it could not be kept.
    """
    left = MAX_KEEP_ATTEMPTS
    while True:
        left -= 1
        things = keeper.existing()
        try:
            return keeper.keep(things) if things else keeper.make()
        except ServiceError as error:
            somebody_was_faster = isinstance(error, NotFound) if things else error.ambiguous or error.status == 409
            if not (somebody_was_faster and left):
                raise


def marker(sort: str, name: str) -> str:
    """Return the first line of a text of that name: an HTML comment, which is not shown.

    Args:
        sort: of the thing, such as `note`.
        name: tells it from others of its sort.
    """
    return f"<!-- reconciler {sort}: {quote(name, safe=' /').replace('--', '-%2D')} -->"


def as_stored(text: str) -> str:
    """Return a text as the service stores it: without carriage returns and trailing blanks."""
    return text.replace("\r", "").rstrip()


def own_user(board: Board) -> int:
    """Return the ID of the token's user. Only what this user wrote counts, whatever others write into theirs.

    Raises:
        ServiceError: it cannot be read.
    """
    user = board.get("user")
    if isinstance(user, dict) and isinstance(user.get("id"), int):
        return int(user["id"])
    raise BadAnswer("GET user", "unexpected response: the user has no numeric id")


def project_path(project: str) -> str:
    """Return the path of a project's endpoints, of its ID or its full path."""
    return f"projects/{quote(project, safe='')}"
