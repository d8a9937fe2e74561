"""A note on a merge request: posted once, then updated in place, so that each name has a single note.

Begin with `post_note`; `keeping` has what notes share with issues and merge requests.
"""

from dataclasses import dataclass
from functools import cache, partial

from reconciler.errors import ConfigurationError
from reconciler.model.protocols import Request
from reconciler.reports.keeping import (
    MAX_TEXT_LENGTH,
    Board,
    Keeper,
    Record,
    Result,
    as_stored,
    marker,
    own_user,
    project_path,
)

QUERY = "?order_by=created_at&sort=asc&activity_filter=only_comments"
"""The list's query: oldest first, without the service's own notes on events."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The merge request of a note.

    Attributes:
        project: the ID or the full path of its project.
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


def post_note(board: Board, merge_request: MergeRequest, name: str, text: str) -> Result:
    """Post the note of that name, or update it; a note that is right already takes no write.

    Only notes of the token's own user count: another user could write the hidden name into a note. Duplicates, from a
    lost response or from two runs at the same time, have the same name: the oldest stays, the others are deleted.

    Args:
        board: the service.
        merge_request: the merge request.
        name: distinguishes the note from other notes of the same user; hidden in its text.
        text: Markdown.

    Raises:
        ConfigurationError: the text is empty, or too long for a note.
        ServiceError: the note could not be posted.
    """
    body = _body(name, text)
    user = cache(partial(own_user, board))

    def is_ours(note: Record) -> bool:
        match note:
            case {"body": str(body), "author": {"id": int(author)}, "system": False}:
                return body.startswith(marker("note", name)) and author == user()
        return False

    def removal(path: str, _duplicate: Record, _kept: Record) -> Request:
        return Request("DELETE", path)

    keeper = Keeper(board, "note", merge_request.notes, QUERY, "id", is_ours, Result.POSTED, removal)
    return keeper.keep(lambda note: {} if note and note["body"] == body else {"body": body}).result


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
