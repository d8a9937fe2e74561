"""One issue about drift: opened when something differs, updated in place, closed when all is in order, reopened.

The issue remembers in a hidden comment what it has told, so that an update can begin with what is new.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from reconciler.errors import BadAnswer
from reconciler.gitops.keeping import MAX_TEXT_LENGTH, Board, as_stored, keep_one, marker, own_user, project_path
from reconciler.model.protocols import Json, Request

SEEN, END = "<!-- reconciler seen ", " -->"
"""The beginning and the end of the hidden comment, which is the last line of an issue."""

MEMORY = re.compile(r"([0-9TZ:-]*): ((?:[0-9a-f]+(?:\*[1-9][0-9]{0,5})?(?: |\Z))*)")
"""What is between them. Everybody who may edit the issue may write something else: that is no memory."""

RULE = "\n\n---\n\n"
"""Stands above the last report of an issue that is closed."""


class Filing(StrEnum):
    """The result of keeping an issue."""

    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    CLOSED = "closed"
    REOPENED = "reopened"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class Memory:
    """What an issue has told already.

    Attributes:
        time: when.
        marks: fingerprints of changes and problems, each with its number.
    """

    time: str = ""
    marks: Mapping[str, int] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        """The hidden comment."""
        marks = " ".join(mark if count == 1 else f"{mark}*{count}" for mark, count in sorted(self.marks.items()))
        return f"{SEEN}{self.time}: {marks}{END}"


@dataclass(frozen=True, slots=True)
class DriftIssue:
    """What an issue is to tell.

    Attributes:
        now: the present differences; no marks if all is in order.
        text: returns the Markdown about them, given what was told before.
        assignees: returns the usernames of those to whom what is new since then matters.
        title: of a new issue.
        in_order: the sentence with which the issue is closed.
    """

    now: Memory
    text: Callable[[Memory], str]
    assignees: Callable[[Memory], Sequence[str]]
    title: str
    in_order: str


@dataclass(frozen=True, slots=True)
class Filed:
    """The issue after a run.

    Attributes:
        filing: what was done.
        iid: its number in the project; None if there is none.
        unknown: usernames that the service does not know, so that they are not assigned.
    """

    filing: Filing
    iid: int | None = None
    unknown: Sequence[str] = ()


def keep_issue(board: Board, project: str, name: str, drift: DriftIssue) -> Filed:
    """Open, update, close or reopen the issue of that name; one that is already right takes no write.

    Only issues of the token's own user count. Of duplicates, from a lost response or from two runs at the same time,
    the oldest stays, and the others are closed.

    Args:
        board: the service.
        project: the ID or the full path of the project.
        name: tells the issue from others of the same user; hidden in its text.
        drift: what it is to tell.

    Raises:
        ServiceError: the issue could not be kept.
    """
    keeper = _IssueKeeper(board, f"{project_path(project)}/issues", marker("issue", name), drift)
    return keep_one(keeper) if drift.now.marks else keeper.close()


@dataclass(frozen=True, slots=True)
class _Issue:
    """An issue of the token's own user."""

    iid: int
    text: str
    is_open: bool
    assignees: Sequence[int]

    @property
    def memory(self) -> Memory:
        """What it has told already; nothing if it is closed."""
        _, comment = _divided(self.text)
        match = MEMORY.fullmatch(comment)
        if match is None or not self.is_open:
            return Memory()
        marks = (word.partition("*") for word in match[2].split())
        return Memory(match[1], Counter({mark: int(count or 1) for mark, _, count in marks}))


@dataclass(frozen=True, slots=True)
class _IssueKeeper:
    """Keeps one issue of a name, by the token's own user."""

    board: Board
    path: str
    marker: str
    drift: DriftIssue

    def existing(self) -> Sequence[_Issue]:
        """Return the existing ones, the oldest first."""
        user = own_user(self.board)
        issues = []
        for issue in self.board.visible(f"{self.path}?author_id={user}&order_by=created_at&sort=asc"):
            match issue:
                case {"iid": int(iid), "state": str(state), "description": str(text), "author": {"id": author}}:
                    if author == user and text.startswith(self.marker):
                        issues.append(_Issue(iid, text, state == "opened", _ids(issue.get("assignees"))))
        return sorted(issues, key=lambda issue: issue.iid)

    def make(self) -> Filed:
        """Open the issue."""
        ids, unknown = self._looked_up(Memory())
        assigned: dict[str, Any] = {"assignee_ids": ids} if ids else {}
        made = self.board.send(
            Request(
                "POST",
                self.path,
                {"title": self.drift.title, "description": self._whole(self._text(Memory()))} | assigned,
            )
        )
        if isinstance(made, dict) and isinstance(made.get("iid"), int):
            return Filed(Filing.OPENED, made["iid"], unknown)
        raise BadAnswer(f"POST {self.path}", "unexpected response: the issue has no number")

    def keep(self, issues: Sequence[_Issue]) -> Filed:
        """Update the first one if anything is new or gone, reopen it if it is closed, and close the others."""
        first, *others = issues
        for duplicate in others:
            if duplicate.is_open:
                self._change(duplicate, f"This issue is a duplicate of #{first.iid}.", "close")
        memory = first.memory
        if first.is_open and Counter(memory.marks) == Counter(self.drift.now.marks):
            return Filed(Filing.UNCHANGED, first.iid)
        ids, unknown = self._looked_up(memory)
        more = [number for number in ids if number not in first.assignees]
        assigned = {"assignee_ids": [*first.assignees, *more]} if more else {}
        self._change(first, self._text(memory), "" if first.is_open else "reopen", **assigned)
        return Filed(Filing.UPDATED if first.is_open else Filing.REOPENED, first.iid, unknown)

    def close(self) -> Filed:
        """Close those that are open: a sentence stands above the last report."""
        closed = None
        for issue in self.existing():
            if issue.is_open:
                closed = closed or issue.iid
                report = _divided(issue.text)[0].removeprefix(self.marker).strip()
                self._change(issue, f"{self.drift.in_order}{RULE}{report}", "close")
        return Filed(Filing.CLOSED, closed) if closed else Filed(Filing.NOT_NEEDED)

    def _change(self, issue: _Issue, text: str, event: str, **more: Json) -> None:
        body = {"description": self._whole(text), **({"state_event": event} if event else {}), **more}
        self.board.send(Request("PUT", f"{self.path}/{issue.iid}", body))

    def _text(self, memory: Memory) -> str:
        return f"{self.drift.text(memory)}\n\n{self.drift.now}"

    def _whole(self, text: str) -> str:
        """Return a description as the service stores it; one that is too long loses its memory, then its end."""
        whole = as_stored(f"{self.marker}\n\n{text}")
        return whole if len(whole) <= MAX_TEXT_LENGTH else _divided(whole)[0][:MAX_TEXT_LENGTH]

    def _looked_up(self, memory: Memory) -> tuple[list[int], list[str]]:
        """Return the IDs of the users to assign, and the usernames that nobody has."""
        ids, unknown = [], []
        for username in self.drift.assignees(memory):
            users = _ids(self.board.get(f"users?username={quote(username, safe='')}"))
            ids += users[:1]
            unknown += [] if users else [username]
        return ids, unknown


def _divided(text: str) -> tuple[str, str]:
    """Return the text of an issue without the hidden comment, and what the comment holds; empty if there is none."""
    report, _, comment = text.rpartition(SEEN)
    if not report or not comment.endswith(END):
        return text, ""
    return report.rstrip("\n"), comment.removesuffix(END)


def _ids(users: Json) -> list[int]:
    """Return the IDs of users; of an unexpected response, those that are there."""
    listed = users if isinstance(users, list) else []
    return [entry["id"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), int)]
