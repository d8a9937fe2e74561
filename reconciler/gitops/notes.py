"""One note on a merge request: posted once, then updated in place, so that there is one of a name and no more."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from urllib.parse import quote

from reconciler.errors import BadAnswer, ConfigurationError, NotFound, ServiceError
from reconciler.model.protocols import Json, Request

LONGEST = 1_000_000
"""Characters the service takes in one note."""

TRIES = 3
"""How often a note is posted whose answer is lost each time and that is then not there."""

READING = "?order_by=created_at&sort=asc&activity_filter=only_comments"
"""What is asked of the list: oldest first, without what the service itself tells about a merge request."""


class Board(Protocol):
    """The part of a client that notes need. Its methods raise `ServiceError`s and nothing else."""

    def get(self, path: str) -> Json:
        """See `wire.Reader`."""

    def visible(self, path: str) -> list[Json]:
        """Return all items of all pages that the token may see, of a list that may hold others."""

    def send(self, request: Request) -> Json:
        """See `wire.Service`."""


class Posting(StrEnum):
    """What became of a note."""

    POSTED = "posted"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Where a note goes.

    Attributes:
        project: its ID or its full path.
        iid: the number of the merge request in the project.
    """

    project: str
    iid: int

    @property
    def notes(self) -> str:
        """The path of its notes."""
        return f"projects/{quote(self.project, safe='')}/merge_requests/{self.iid}/notes"

    def __str__(self) -> str:
        """As people name it."""
        return f"{self.project}!{self.iid}"


def post_note(board: Board, place: MergeRequest, name: str, text: str) -> Posting:
    """Post the note of that name, or update the one that is there; one that is as it should be takes no write.

    Only notes of the token's own user count, whatever others write into theirs. A note that is posted while an answer
    gets lost, or by two runs at the same time, is found by its name: the oldest stays, the others are deleted.

    Args:
        board: the service.
        place: the merge request.
        name: tells the note from others of the same user; stands in it, hidden.
        text: Markdown.

    Raises:
        ConfigurationError: the text is empty, or too long for a note.
        ServiceError: it could not be posted.
    """
    own = _Own(board, place, marker(name), _body(name, text))
    left = TRIES
    while True:
        left -= 1
        found = own.found()
        try:
            return own.keep(found) if found else own.post()
        except ServiceError as error:
            somebody_was_faster = isinstance(error, NotFound) if found else error.ambiguous
            if not (somebody_was_faster and left):
                raise


def marker(name: str) -> str:
    """Return what a note of that name begins with: a comment, so that nobody sees it, whatever the name."""
    return f"<!-- reconciler note: {quote(name, safe=' /').replace('--', '-%2D')} -->"


def _body(name: str, text: str) -> str:
    """Return the note as the service keeps it: without carriage returns and without blanks at its end."""
    if not text.strip():
        raise ConfigurationError("there is nothing in it")
    body = f"{marker(name)}\n\n{text}".replace("\r", "").rstrip()
    if len(body) > LONGEST:
        raise ConfigurationError(
            f"a note may have {LONGEST:,} characters, and this one has {len(body):,}; "
            "what --report markdown=FILE writes has 60,000 at most"
        )
    return body


@dataclass(frozen=True, slots=True)
class _Note:
    """A note of the token's own user."""

    id: int
    body: str


@dataclass(frozen=True, slots=True)
class _Own:
    """The notes of one name, of the token's own user."""

    board: Board
    place: MergeRequest
    marker: str
    body: str

    def found(self) -> Sequence[_Note]:
        """Return those that are there, the oldest first."""
        marked = []
        for note in self.board.visible(f"{self.place.notes}{READING}"):
            match note:
                case {"id": int(number), "body": str(body), "author": {"id": int(author)}, "system": False}:
                    if body.startswith(self.marker):
                        marked.append((author, _Note(number, body)))
        user = self._user() if marked else None
        return sorted((note for author, note in marked if author == user), key=lambda note: note.id)

    def post(self) -> Posting:
        """Post it."""
        self.board.send(Request("POST", self.place.notes, {"body": self.body}))
        return Posting.POSTED

    def keep(self, found: Sequence[_Note]) -> Posting:
        """Let the first one say what it should, and delete the others."""
        first, *others = found
        if first.body != self.body:
            self.board.send(Request("PUT", f"{self.place.notes}/{first.id}", {"body": self.body}))
        for each in others:
            with suppress(NotFound):
                self.board.send(Request("DELETE", f"{self.place.notes}/{each.id}"))
        return Posting.UNCHANGED if first.body == self.body and not others else Posting.UPDATED

    def _user(self) -> int:
        user = self.board.get("user")
        if isinstance(user, dict) and isinstance(user.get("id"), int):
            return int(user["id"])
        raise BadAnswer("GET user", "the answer is not what the service promises: it has no number")
