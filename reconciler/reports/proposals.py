"""A merge request that proposes new texts of files: a branch with one commit on top of the default branch.

The branch is ours as long as it has what the last proposal wrote: its one commit names the digest of the files that it
changes, so that a second run makes no commit, and work of anybody else is never overwritten. Begin with `propose`.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha1, sha256
from urllib.parse import quote, urlencode

from reconciler.errors import BadAnswer, ConfigurationError, NotFound
from reconciler.model.protocols import Json, Request
from reconciler.reports.keeping import Board, Keeper, Record, Result, as_stored, own_user, project_path, until_certain

BYTE_ORDER_MARK = "\ufeff".encode()

TRAILER = re.compile(r"^Reconciler-Proposal: ([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """New texts of files.

    Attributes:
        before: by path in the repository, the texts that were changed; a new file has none.
        texts: by path in the repository, the new texts.
        title: of the merge request and of the commit.
        description: Markdown.
    """

    before: Mapping[str, str]
    texts: Mapping[str, str]
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class ProposalTarget:
    """The project and the branch of a proposal.

    Attributes:
        project: the ID or the full path of the project.
        branch: the branch to commit to.
    """

    project: str
    branch: str

    @property
    def url(self) -> str:
        """The path of the project's endpoints."""
        return project_path(self.project)


def propose(board: Board, place: ProposalTarget, proposal: Proposal) -> tuple[Result, int]:
    """Commit the texts to the branch, on top of the default branch, and open or update its merge request.

    Nothing is committed if the branch has the same proposal already.

    Returns:
        What was done with the merge request, and its number.

    Raises:
        ConfigurationError: a file is not on the default branch as it was read, the branch has commits of other people,
            or the repository is empty; nothing was done.
        ServiceError: the service refuses. There is no commit, or no merge request for it; a second run does what is
            missing.
    """
    target = _default_branch(board, place)
    changes, actions = _planned(board, place, proposal, target)
    committed = _committed(_Branch(board, place, target), proposal.title, _digest(changes), actions)
    keeper = _keeper(board, place, target_branch=target, sort="asc")
    texts = {"title": proposal.title, "description": as_stored(proposal.description)}

    def wanted(merge_request: Record | None) -> Record:
        if merge_request is None:
            return {"source_branch": place.branch, "target_branch": target, "remove_source_branch": True} | texts
        return {} if merge_request.items() >= texts.items() else texts

    kept = keeper.keep(wanted)
    return (Result.UPDATED if committed and kept.result is Result.UNCHANGED else kept.result), kept.number


def open_merge_request(board: Board, place: ProposalTarget) -> int | None:
    """Return the number of our open merge request of the branch; None without such a merge request."""
    keeper = _keeper(board, place)
    return next(map(keeper.number_of, keeper.existing()), None)


def _keeper(board: Board, place: ProposalTarget, **narrowed: str) -> Keeper:
    """Return the keeper of our open merge request of the branch.

    A fork may have a branch of the same name, and anybody may open another merge request of our branch: these are not
    ours.
    """
    query = _query(state="opened", source_branch=place.branch, **narrowed)
    user = cache(partial(own_user, board))

    def is_ours(merge_request: Record) -> bool:
        author = merge_request.get("author")
        own = merge_request.get("project_id")
        is_own = isinstance(own, int) and merge_request.get("source_project_id") == own
        return is_own and isinstance(author, dict) and author.get("id") == user()

    return Keeper(board, "merge request", f"{place.url}/merge_requests", f"?{query}", "iid", is_ours)


def _default_branch(board: Board, place: ProposalTarget) -> str:
    project = board.get(place.url)
    name = project.get("default_branch") if isinstance(project, dict) else None
    if not isinstance(name, str):
        raise ConfigurationError(f"{place.project} has no default branch: push a first commit")
    if name == place.branch:
        raise ConfigurationError(f"{name} is the default branch of {place.project}; name another one with --branch")
    return name


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that a commit changes.

    Attributes:
        path: in the repository.
        before: git's ID of the old content; None for a new file.
        after: git's ID of the new content; None for a removed file.
    """

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _TreeEntry:
    """An entry of a folder of a commit: a file, or a folder, whose ID is of all that is below."""

    id: str
    mode: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class _Branch:
    """The branch of the proposal: one commit of ours, on top of the target branch."""

    board: Board
    place: ProposalTarget
    target: str

    def has_proposal(self, digest: str) -> bool | None:
        """Return whether the branch has the proposal of a digest; False for an older proposal, None without a branch.

        Raises:
            ConfigurationError: the branch has something else than a proposal.
        """
        message = self._last_message()
        if message is None:
            return None
        made = TRAILER.search(message)
        if made is not None and made[1] == digest:
            return True
        if made is None or not self._is_unchanged(made[1]):
            raise ConfigurationError(
                f"the branch {self.place.branch} of {self.place.project} has changes of somebody else; merge or delete "
                "it, or name another one with --branch"
            )
        return False

    def commit(self, title: str, digest: str, actions: Sequence[Json], *, replaces: bool) -> None:
        """Make one commit on top of the target branch.

        Args:
            title: the first line of its message.
            digest: of the files that the proposal changes.
            actions: of the commit.
            replaces: whether the commit replaces an older proposal.
        """
        body = {
            "branch": self.place.branch,
            "start_branch": self.target,
            "commit_message": f"{title}\n\nReconciler-Proposal: {digest}",
            "actions": list(actions),
            "stats": False,
            **({"force": True} if replaces else {}),
        }
        self.board.send(Request("POST", f"{self.place.url}/repository/commits", body))

    def _last_message(self) -> str | None:
        """Return the message of the branch's last commit; None if there is no such branch."""
        path = f"{self.place.url}/repository/branches/{quote(self.place.branch, safe='')}"
        try:
            branch = self.board.get(path)
        except NotFound:
            return None
        match branch:
            case {"commit": {"message": str(message)}}:
                return message
        raise BadAnswer(f"GET {path}", "unexpected response: the branch has no commit")

    def _is_unchanged(self, digest: str) -> bool:
        """Return whether the branch has only the proposal of that digest, whose message an amended commit keeps."""
        span = _query(ref_name=f"{self.target}..{self.place.branch}")
        match self.board.visible(f"{self.place.url}/repository/commits?{span}"):
            case []:
                return True
            case [{"id": str(head), "parent_ids": [str(parent)]}]:
                return _digest(self._changes(parent, head)) == digest
        return False

    def _changes(self, old_commit: str, new_commit: str, folder: str = "") -> Iterator[_Change]:
        """Yield the files of a folder that differ between two commits; an empty commit has no files."""
        sides = [(commit, self._entries(commit, folder) if commit else {}) for commit in (old_commit, new_commit)]
        for path in sorted({path for _, entries in sides for path in entries}):
            pair = [(commit, entries.get(path)) for commit, entries in sides]
            if pair[0][1] == pair[1][1]:
                continue
            inside = [commit if entry and entry.is_folder else "" for commit, entry in pair]
            if any(inside):
                yield from self._changes(inside[0], inside[1], path)
            files = [entry.id if entry and not entry.is_folder else None for _, entry in pair]
            if any(files):
                yield _Change(path, files[0], files[1])

    def _entries(self, commit: str, folder: str) -> dict[str, _TreeEntry]:
        """Return the entries of a folder of a commit, by path."""
        path = f"{self.place.url}/repository/tree"
        wanted = {"ref": commit} | ({"path": folder} if folder else {})
        entries = {}
        for entry in self.board.visible(f"{path}?{_query(**wanted)}"):
            match entry:
                case {"path": str(name), "id": str(number), "mode": str(mode), "type": str(sort)}:
                    entries[name] = _TreeEntry(number, mode, sort == "tree")
                case _:
                    raise BadAnswer(f"GET {path}", "unexpected response: a file has no path, ID, mode or type")
        return entries


def _committed(proposal_branch: _Branch, title: str, digest: str, actions: Sequence[Json]) -> bool:
    """Commit the proposal unless the branch has it already; return whether there is a new commit."""

    def commit(has_proposal: bool | None) -> bool:
        if not has_proposal:
            proposal_branch.commit(title, digest, actions, replaces=has_proposal is not None)
        return not has_proposal

    return until_certain(lambda: proposal_branch.has_proposal(digest), commit)


def _planned(
    board: Board, place: ProposalTarget, proposal: Proposal, target_branch: str
) -> tuple[Sequence[_Change], Sequence[Json]]:
    """Return the changes of the files, and the action of each for the service.

    Raises:
        ConfigurationError: with each file that is not on the default branch as it was read.
    """
    actions: list[Json] = []
    changes, moved = [], []
    for path, text in proposal.texts.items():
        before = proposal.before.get(path)
        file = _read(board, place, path, target_branch)
        if file is None and before is None:
            actions.append({"action": "create", "file_path": path, "content": text})
            changes.append(_Change(path, None, _blob(text.encode())))
        elif file is not None and before is not None and file[0].removeprefix(BYTE_ORDER_MARK) == before.encode():
            content, commit = file
            new = (BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b"") + text.encode()
            # The service refuses the commit if the file has changed since this one; an unknown ID it takes unchecked
            # (18.9).
            action = {"action": "update", "file_path": path, "content": new.decode(), "last_commit_id": commit}
            actions.append(action)
            changes.append(_Change(path, _blob(content), _blob(new)))
        else:
            moved.append(f"{path} {_fault(file is not None, before is not None)} {target_branch}")
    if moved:
        raise ConfigurationError(
            f"nothing was committed to {place.project}: {', '.join(moved)}; "
            f"bring the checkout in line with {target_branch} and try again"
        )
    return changes, actions


def _read(board: Board, place: ProposalTarget, path: str, target_branch: str) -> tuple[bytes, str] | None:
    """Return the content of a file on the target branch, and the commit at which it was read.

    None for a missing file.
    """
    url = f"{place.url}/repository/files/{quote(path, safe='')}"
    try:
        file = board.get(f"{url}?{_query(ref=target_branch)}")
    except NotFound:
        return None
    match file:
        case {"content": str(content), "commit_id": str(commit)}:
            try:
                return b64decode(content), commit
            except ValueError:
                raise BadAnswer(f"GET {url}", "unexpected response: the file's content is not base64") from None
    raise BadAnswer(f"GET {url}", "unexpected response: the file has no content")


def _digest(file_changes: Iterable[_Change]) -> str:
    """Return the SHA-256 (hex) of the changes of a commit."""
    files = sorted([change.path, change.before, change.after] for change in file_changes)
    return sha256(json.dumps(files).encode()).hexdigest()


def _blob(content: bytes) -> str:
    """Return git's ID of a file's content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _fault(exists: bool, is_expected: bool) -> str:
    if not exists:
        return "is not on"
    return "differs from" if is_expected else "is new here, and already on"


def _query(**values: str) -> str:
    return urlencode(values, quote_via=quote, safe="")
