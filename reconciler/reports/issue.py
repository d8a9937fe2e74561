"""An issue about drift: opened when something differs, updated in place, closed when all is in order, reopened.

A hidden comment in the issue has the fingerprints that it has reported, so that an update can begin with new
differences. Begin with `keep_issue`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote

from reconciler.model.protocols import Json, Request
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

SEEN, END = "<!-- reconciler seen ", " -->"
"""The beginning and the end of the hidden comment, which is the last line of an issue."""

MEMORY = re.compile(r"([0-9TZ:-]*): ((?:[0-9a-f]+(?:\*[1-9][0-9]{0,5})?(?: |\Z))*)")
"""The content of the hidden comment. Anyone who may edit the issue can write other text, which is ignored."""

RULE = "\n\n---\n\n"
"""Above the last report of a closed issue."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The differences that an issue has reported.

    Attributes:
        time: the time of that report.
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
    """The content of an issue about drift.

    Attributes:
        now: the present differences; no marks if all is in order.
        text: returns the Markdown about them, given the last report.
        assignees: returns the usernames to assign for differences that are new since the last report.
        title: the title of a new issue.
        in_order: the sentence with which the issue is closed.
    """

    now: Memory
    text: Callable[[Memory], str]
    assignees: Callable[[Memory], Sequence[str]]
    title: str
    in_order: str


@dataclass(frozen=True, slots=True)
class KeptIssue:
    """The issue after a run.

    Attributes:
        result: created, updated, closed and so on.
        iid: its number in the project; None if there is no issue.
        unknown: usernames that the service does not know, so that they are not assigned.
    """

    result: Result
    iid: int | None = None
    unknown: Sequence[str] = ()


def keep_issue(board: Board, project: str, name: str, drift: DriftIssue) -> KeptIssue:
    """Open, update, close or reopen the issue of that name; an issue that is right already takes no write.

    Only issues of the token's own user count. Of duplicates, from a lost response or from two runs at the same time,
    the oldest stays, and the others are closed.

    Args:
        board: the service.
        project: the ID or the full path of the project.
        name: distinguishes the issue from other issues of the same user; hidden in its text.
        drift: the content.

    Raises:
        ServiceError: the issue could not be kept.
    """
    user, mark = own_user(board), marker("issue", name)

    def is_ours(issue: Record) -> bool:
        match issue:
            case {"state": str(), "description": str(text), "author": {"id": author}}:
                return author == user and text.startswith(mark)
        return False

    def removal(path: str, duplicate: Record, kept_issue: Record) -> Request | None:
        text = f"This issue is a duplicate of #{kept_issue['iid']}."
        return _closing(path, mark, text) if _is_open(duplicate) else None

    query = f"?author_id={user}&order_by=created_at&sort=asc"
    keeper = Keeper(board, "issue", f"{project_path(project)}/issues", query, "iid", is_ours, removal=removal)
    return _report(keeper, mark, drift) if drift.now.marks else _close(keeper, mark, drift)


def _report(keeper: Keeper, mark: str, drift: DriftIssue) -> KeptIssue:
    """Update the issue if anything is new or gone; reopen a closed issue; open a new issue if there was none."""
    ids_of = cache(lambda username: _ids(keeper.board.get(f"users?username={quote(username, safe='')}"))[:1])

    def wanted(issue: Record | None) -> Record:
        memory, is_open = _last_report(issue), issue is not None and _is_open(issue)
        if is_open and Counter(memory.marks) == Counter(drift.now.marks):
            return {}
        assigned = _ids((issue or {}).get("assignees"))
        # `assignee_ids` replaces the list: people who are assigned already, by hand too, are sent again
        more = [number for name in drift.assignees(memory) for number in ids_of(name) if number not in assigned]
        return {
            **({"title": drift.title} if issue is None else {} if is_open else {"state_event": "reopen"}),
            "description": _description(mark, f"{drift.text(memory)}\n\n{drift.now}"),
            **({"assignee_ids": [*assigned, *more]} if more else {}),
        }

    kept = keeper.keep(wanted)
    if kept.result is Result.UNCHANGED:
        return KeptIssue(kept.result, kept.number)
    was_closed = kept.before is not None and not _is_open(kept.before)
    unknown = [name for name in drift.assignees(_last_report(kept.before)) if not ids_of(name)]
    return KeptIssue(Result.REOPENED if was_closed else kept.result, kept.number, unknown)


def _close(keeper: Keeper, mark: str, drift: DriftIssue) -> KeptIssue:
    """Close the open issues, with a sentence above the last report."""
    issues = [issue for issue in keeper.existing() if _is_open(issue)]
    for issue in issues:
        report = _text_and_comment(issue["description"])[0].removeprefix(mark).strip()
        keeper.board.send(_closing(keeper.path_of(issue), mark, f"{drift.in_order}{RULE}{report}"))
    return KeptIssue(Result.CLOSED, keeper.number_of(issues[0])) if issues else KeptIssue(Result.NOT_NEEDED)


def _closing(path: str, mark: str, text: str) -> Request:
    """Return the write that closes an issue with a text."""
    return Request("PUT", path, {"description": _description(mark, text), "state_event": "close"})


def _description(mark: str, text: str) -> str:
    """Return a description as the service stores it; a text that is too long loses the hidden comment, then its end."""
    whole = as_stored(f"{mark}\n\n{text}")
    return whole if len(whole) <= MAX_TEXT_LENGTH else _text_and_comment(whole)[0][:MAX_TEXT_LENGTH]


def _is_open(issue: Record) -> bool:
    return bool(issue["state"] == "opened")


def _last_report(issue: Record | None) -> Memory:
    """Return the differences that an issue has reported; no differences for a closed issue or without an issue."""
    if issue is None or not _is_open(issue):
        return Memory()
    _, comment = _text_and_comment(issue["description"])
    match = MEMORY.fullmatch(comment)
    if match is None:
        return Memory()
    marks = (word.partition("*") for word in match[2].split())
    return Memory(match[1], Counter({mark: int(count or 1) for mark, _, count in marks}))


def _text_and_comment(text: str) -> tuple[str, str]:
    """Return the text of an issue without its hidden comment, and the content of that comment, which may be empty."""
    report, _, comment = text.rpartition(SEEN)
    if not report or not comment.endswith(END):
        return text, ""
    return report.rstrip("\n"), comment.removesuffix(END)


def _ids(users: Json) -> list[int]:
    """Return the IDs of users; entries of an unexpected structure are skipped."""
    listed = users if isinstance(users, list) else []
    return [entry["id"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), int)]
