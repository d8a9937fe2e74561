"""One note on a merge request: posted once, then updated in place, so that each name has one note."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import ConfigurationError, NotFound
from reconciler.gitops.keeping import MAX_TEXT_LENGTH, Board, as_stored, keep_one, marker, own_user, project_path
from reconciler.model.protocols import Request

QUERY = "?order_by=created_at&sort=asc&activity_filter=only_comments"
"""The list's query: oldest first, without the service's own notes on events."""


class Posting(StrEnum):
    """The result of posting a note."""

    POSTED = "posted"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Where a note goes.

    Attributes:
        project: its ID or its full path.
        iid: its number in the project.
    """

    project: str
    iid: int

    @property
    def notes(self) -> str:
        """The path of its notes."""
        return f"{project_path(self.project)}/merge_requests/{self.iid}/notes"

    def __str__(self) -> str:
        """Return `acme/api!7`."""
        return f"{self.project}!{self.iid}"


def post_note(board: Board, place: MergeRequest, name: str, text: str) -> Posting:
    """Post the note of that name, or update it; a note that is already right takes no write.

    Only notes of the token's own user count, whatever others write into theirs. Duplicates, from a lost response or
    from two runs at the same time, are found by their name: the oldest stays, the others are deleted.

    Args:
        board: the service.
        place: the merge request.
        name: tells the note from others of the same user; hidden in its text.
        text: Markdown.

    Raises:
        ConfigurationError: the text is empty, or too long for a note.
        ServiceError: the note could not be posted.
    """
    return keep_one(_NoteKeeper(board, place, marker("note", name), _body(name, text)))


def _body(name: str, text: str) -> str:
    """Return the note as the service stores it: without carriage returns and trailing blanks."""
    if not text.strip():
        raise ConfigurationError("the text is empty")
    body = as_stored(f"{marker('note', name)}\n\n{text}")
    if len(body) > MAX_TEXT_LENGTH:
        raise ConfigurationError(
            f"a note may have {MAX_TEXT_LENGTH:,} characters, and this one has {len(body):,}; "
            "--report markdown=FILE writes at most 60,000"
        )
    return body


@dataclass(frozen=True, slots=True)
class _Note:
    """A note of the token's own user."""

    id: int
    body: str


@dataclass(frozen=True, slots=True)
class _NoteKeeper:
    """Keeps one note of a name, by the token's own user."""

    board: Board
    place: MergeRequest
    marker: str
    body: str

    def existing(self) -> Sequence[_Note]:
        """Return the existing ones, the oldest first."""
        marked = []
        for note in self.board.visible(f"{self.place.notes}{QUERY}"):
            match note:
                case {"id": int(number), "body": str(body), "author": {"id": int(author)}, "system": False}:
                    if body.startswith(self.marker):
                        marked.append((author, _Note(number, body)))
        user = own_user(self.board) if marked else None
        return sorted((note for author, note in marked if author == user), key=lambda note: note.id)

    def make(self) -> Posting:
        """Post the note."""
        self.board.send(Request("POST", self.place.notes, {"body": self.body}))
        return Posting.POSTED

    def keep(self, notes: Sequence[_Note]) -> Posting:
        """Update the first one if it differs, and delete the others."""
        first, *others = notes
        if first.body != self.body:
            self.board.send(Request("PUT", f"{self.place.notes}/{first.id}", {"body": self.body}))
        for duplicate in others:
            with suppress(NotFound):
                self.board.send(Request("DELETE", f"{self.place.notes}/{duplicate.id}"))
        return Posting.UNCHANGED if first.body == self.body and not others else Posting.UPDATED
