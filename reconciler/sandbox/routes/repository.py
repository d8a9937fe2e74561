"""The repository of a project: files, branches and commits (spec section 4.3), as far as a client commits manifests.

Each commit keeps all files, and files are text. The spec defines commits alone; files and branches follow production.
Differences: production describes faults of a commit in sentences of its own.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha1, sha256
from typing import Any

from pydantic import Field

from ..answers import Answer, refused
from ..call import Call, Route
from ..collection import PAGE, page_of
from ..parameters import Attribute, boolean, read, text
from ..records import SEED, Record, Time
from ..state import DEVELOPER, MAINTAINER, REPORTER, Project, StateSection
from .protected_branches import protect_default_branch, rules_for

ACTIONS = ("create", "update", "move", "delete", "chmod")
_NEW = (
    *(text(name) for name in ("start_branch", "start_sha", "author_name", "author_email")),
    boolean("force"),
    boolean("stats"),
)


class Commit(Record):
    """A commit, with all files after it."""

    id: str
    parent: str | None = None
    message: str
    author_name: str = "Root"
    author_email: str = "root@example.com"
    created_at: Time = SEED
    files: dict[str, str] = Field(default_factory=dict)


class StoredRepository(Record):
    """Commits, the oldest first, and the latest commit of each branch.

    A state file may give only files: they are in the first commit of the default branch.
    """

    files: dict[str, str] = Field(default_factory=dict)
    commits: list[Commit] = Field(default_factory=list)
    branches: dict[str, str] = Field(default_factory=dict)


REPOSITORY: StateSection[StoredRepository] = StateSection(
    "repository", ("project",), StoredRepository, StoredRepository()
)


def get_file(call: Call) -> Answer:
    """`GET` and `HEAD /projects/:id/repository/files/:file_path`."""
    sent = read(call, text("ref", required=True, blank=False))
    project = readable(call)
    commit = commit_at(project, sent["ref"])
    if commit is None:
        raise refused(404, "404 Commit Not Found")
    path = call.parts["file_path"]
    if path not in commit.files:
        raise refused(404, "404 File Not Found")
    content = commit.files[path].encode()
    record = {
        "file_name": path.rpartition("/")[2],
        "file_path": path,
        "size": len(content),
        "encoding": "base64",
        "content_sha256": sha256(content).hexdigest(),
        "ref": sent["ref"],
        "blob_id": _blob(content),
        "commit_id": commit.id,
        "last_commit_id": next(change.id for change in _commits_of(project, commit, path)),
        "execute_filemode": False,
    }
    headers = [(f"x-gitlab-{name.replace('_', '-')}", str(value)) for name, value in record.items()]
    return Answer(200, record | {"content": b64encode(content).decode()}, headers)


def list_tree(call: Call) -> Answer:
    """`GET /projects/:id/repository/tree`: the folders of a folder, then its files."""
    sent = read(call, text("ref"), text("path"), *PAGE)
    project = readable(call)
    commit = commit_at(project, sent.get("ref") or project.default_branch)
    if commit is None:
        raise refused(404, "404 Tree Not Found")
    folder = (sent.get("path") or "").strip("/")
    below = _below(commit, folder) if folder else commit.files
    start = f"{folder}/" if folder else ""
    if folder and not below:
        raise refused(404, "404 invalid revision or path Not Found")
    names = sorted({path.removeprefix(start).partition("/")[0] for path in below})
    entries = [_show_entry(commit, f"{start}{name}") for name in names]
    return page_of(call, sorted(entries, key=lambda entry: entry["type"] == "blob"), lambda entry: entry)


def _show_entry(commit: Commit, path: str) -> dict[str, Any]:
    """Return a file, or a folder with the digest of its whole content."""
    content = commit.files.get(path)
    if content is None:
        own = {"id": _digest(_below(commit, path)), "type": "tree", "mode": "040000"}
    else:
        own = {"id": _blob(content.encode()), "type": "blob", "mode": "100644"}
    entry = own | {"name": path.rpartition("/")[2], "path": path}
    return {name: entry[name] for name in ("id", "name", "type", "path", "mode")}


def get_branch(call: Call) -> Answer:
    """`GET /projects/:id/repository/branches/:branch`."""
    project, name = readable(call), call.parts["branch"]
    if name not in repository_of(project).branches:
        raise refused(404, "404 Branch Not Found")
    return Answer(200, show_branch(call, project, name))


def list_commits(call: Call) -> Answer:
    """`GET /projects/:id/repository/commits`: newest first, without totals; an unknown ref has none.

    `a..b` are the commits of b that a does not have.
    """
    sent = read(call, text("ref_name"), text("path"), *PAGE)
    project = readable(call)
    if not repository_of(project).branches:
        raise refused(404, "404 Repository Not Found")
    without, _, ref = (sent.get("ref_name") or project.default_branch).rpartition("..")
    start, excluded = commit_at(project, ref), commit_at(project, without) if without else None
    path = (sent.get("path") or "").lstrip("/")
    if start is None or (without and excluded is None):
        commits = []
    else:
        known = {ancestor.id for ancestor in _ancestors(project, excluded)} if excluded else set()
        reachable = _commits_of(project, start, path) if path else _ancestors(project, start)
        commits = [commit for commit in reachable if commit.id not in known]
    answer = page_of(call, commits, lambda commit: show_commit(call, project, commit))
    kept = [header for header in answer.headers if not header[0].startswith("x-total")]
    return Answer(answer.status, answer.body, kept)


def create_commit(call: Call) -> Answer:
    """`POST /projects/:id/repository/commits`: all actions, or none."""
    sent = _read_commit(call)
    project, name = writable(call, sent["branch"]), sent["branch"]
    repository = repository_of(project)
    is_first = not repository.branches
    onto = _start(project, sent)
    known = commit_at(project, onto) if onto else None
    files = dict(known.files) if known else {}
    for action in sent["actions"]:
        _carry_out(project, known, action, files)
    user, now = call.caller(), call.state.tick()
    content = {
        "parent": known.id if known else None,
        "message": sent["commit_message"],
        "author_name": sent.get("author_name") or user.name,
        "author_email": sent.get("author_email") or user.emails[0],
        "created_at": now,
        "files": files,
    }
    commit = Commit(id=_digest(content), **content)
    repository.commits.append(commit)
    repository.branches[name] = commit.id
    if is_first:
        # The first branch is the default one, whatever its name (seen at 18.9).
        project.default_branch = name if project.empty_repo else project.default_branch
        project.empty_repo = False
        if name == project.default_branch:
            protect_default_branch(call.state, project)
    call.changed = True
    stats = stats_of(project, commit) if sent.get("stats", True) else {}
    return Answer(201, show_commit(call, project, commit) | stats)


def _read_commit(call: Call) -> dict[str, Any]:
    """Return the attributes of a commit; 400 if one is missing or invalid."""
    sent = read(call, *_NEW)
    if not call.state.deployed:
        required = (text("branch", required=True), text("commit_message", required=True))
        sent |= read(call, *required, Attribute(_actions, "actions", required=True))
    for name in ("branch", "commit_message"):
        sent[name] = str(call.sent.get(name) or "")
        if not sent[name]:
            raise refused(400, f"400 Bad request - {name} is required")
    actions = sent["actions"] = call.sent.get("actions")
    if not isinstance(actions, list):
        raise refused(400, "400 Bad request - actions must be an array")
    if not actions:
        raise refused(400, "400 Bad request - Provide at least one action, or set allow_empty to true")
    for index, action in enumerate(actions):
        reason = _fault(action)
        if reason:
            raise refused(400, f"400 Bad request - actions[{index}]{reason}")
    if sent.get("start_branch") and sent.get("start_sha"):
        raise refused(400, "400 Bad request - start_branch, start_sha are mutually exclusive")
    return sent


def _actions(given: Any) -> Any:
    if not isinstance(given, list):
        raise ValueError  # noqa: TRY004 - the one error by which a coercion refuses
    return given


def _fault(action: Mapping[str, Any]) -> str:
    """Return the error about the form of an action; empty if it is valid."""
    name = action.get("action")
    if not name:
        return "[action] is required"
    if name not in ACTIONS:
        return f"[action] must be one of: {', '.join(ACTIONS)}"
    if not action.get("file_path"):
        return "[file_path] is required"
    if name == "update" and action.get("content") is None:
        return "[content] is required for update action"
    if name == "move" and not action.get("previous_path"):
        return "[previous_path] is required for move action"
    return "" if action.get("encoding") in (None, "text", "base64") else "[encoding] must be text or base64"


def _start(project: Project, sent: Mapping[str, Any]) -> str | None:
    """Return the branch or commit on which a commit is made; None for the first commit of a repository."""
    repository, name = repository_of(project), sent["branch"]
    start = sent.get("start_sha") or sent.get("start_branch")
    if not repository.branches:
        return None
    if start and start != name:
        if name in repository.branches and not sent.get("force"):
            said = f"A branch called '{name}' already exists. Switch to that branch in order to make changes"
            raise refused(400, said)
        if commit_at(project, start) is None:
            raise refused(400, f"Cannot find start_{'sha' if sent.get('start_sha') else 'branch'} '{start}'")
        return str(start)
    if name not in repository.branches:
        raise refused(400, "You can only create or edit files when you are on a branch")
    return str(name)


def _carry_out(project: Project, onto: Commit | None, action: Mapping[str, Any], files: dict[str, str]) -> None:
    """Change the files by an action; 400 if it does not fit the files."""
    name, path = action["action"], str(action["file_path"])
    if ".." in path.split("/"):
        raise refused(400, "Path cannot include directory traversal")
    before = str(action["previous_path"]) if name == "move" else path
    if name in ("create", "move") and path in files:
        raise refused(400, "A file with this name already exists")
    if name in ("create", "move") and any(name.startswith(f"{path}/") for name in files):
        raise refused(400, "A directory with this name already exists")
    if name != "create" and before not in files:
        raise refused(400, "A file with this name doesn't exist")
    seen = commit_at(project, str(action["last_commit_id"])) if action.get("last_commit_id") else None
    if onto is not None and seen is not None and before in seen.files and name != "create":
        changed, as_seen = (next(_commits_of(project, start, before)) for start in (onto, seen))
        if changed.id != as_seen.id:
            raise refused(400, f"The file has changed since you started editing it: {before}")
    content = files.pop(before, "")
    if action.get("content") is not None:
        content = str(action["content"])
        content = b64decode(content).decode(errors="replace") if action.get("encoding") == "base64" else content
    if name != "delete":
        files[path] = content


def begin_repository(project: Project, files: dict[str, str]) -> None:
    """Make the first commit of the default branch."""
    repository = REPOSITORY.of(project)
    content: dict[str, Any] = {"message": "Initial commit", "files": files}
    repository.commits.append(Commit(id=_digest(content), **content))
    project.empty_repo = False
    repository.branches[project.default_branch] = repository.commits[-1].id


def repository_of(project: Project) -> StoredRepository:
    """Return the repository; files of a state file become its first commit."""
    repository = REPOSITORY.of(project)
    if repository.files:
        begin_repository(project, repository.files)
        repository.files = {}
    return repository


def commit_at(project: Project, ref: str) -> Commit | None:
    """Return the commit of a branch, of its ID, or of HEAD."""
    repository = repository_of(project)
    name = project.default_branch if ref == "HEAD" else ref
    wanted = repository.branches.get(name, name)
    return next((commit for commit in repository.commits if commit.id == wanted), None)


def _ancestors(project: Project, commit: Commit) -> Iterator[Commit]:
    """Yield a commit, its parent, and so on."""
    by_id = {ancestor.id: ancestor for ancestor in repository_of(project).commits}
    ancestor: Commit | None = commit
    while ancestor is not None:
        yield ancestor
        ancestor = by_id.get(ancestor.parent or "")


def _commits_of(project: Project, commit: Commit, path: str) -> Iterator[Commit]:
    """Yield the commits that changed a file, or files in a folder: from the given commit back."""
    following: Commit | None = None
    for ancestor in [*_ancestors(project, commit), None]:
        if following is not None and _below(following, path) != (_below(ancestor, path) if ancestor else {}):
            yield following
        following = ancestor


def _below(commit: Commit, path: str) -> dict[str, str]:
    return {name: text for name, text in commit.files.items() if name == path or name.startswith(f"{path}/")}


def readable(call: Call) -> Project:
    """Return the project, if the caller may read its code."""
    project = call.visible_project()
    if project.visibility == "private":
        call.require(project, REPORTER)
    return project


def writable(call: Call, branch: str) -> Project:
    """Return the project, if the caller may push to the branch; the default branch is protected without a rule too."""
    project = call.project(DEVELOPER)
    if call.state.is_archived(project):
        raise refused(403, "403 Forbidden")
    rules = rules_for(call.state, project, branch)
    user = call.caller()
    if rules and not user.admin:
        allowed = any(entry.allows(call.state, user, project) for rule in rules for entry in rule.push_access_levels)
    else:
        allowed = branch != project.default_branch or call.state.access(user, project) >= MAINTAINER
    if not allowed:
        raise refused(403, "403 Forbidden - You are not allowed to push into this branch")
    return project


def _blob(content: bytes) -> str:
    """Return git's ID of a file's content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    return sha1(json.dumps(content, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def show_branch(call: Call, project: Project, name: str) -> dict[str, Any]:
    """Return the record of a branch."""
    commit = commit_at(project, name)
    assert commit is not None  # noqa: S101 - a branch has one
    is_default = name == project.default_branch
    return {
        "name": name,
        "merged": False,
        "protected": is_default or bool(rules_for(call.state, project, name)),
        "default": is_default,
        "commit": show_commit(call, project, commit),
        "web_url": f"{call.url}/{project.path}/-/tree/{name}",
    }


def show_commit(call: Call, project: Project, commit: Commit) -> dict[str, Any]:
    """Return the record of a commit."""
    time = call.state.show_time(commit.created_at)
    people = {
        f"{word}_{name}": value
        for word in ("author", "committer")
        for name, value in (("name", commit.author_name), ("email", commit.author_email))
    }
    return {
        "id": commit.id,
        "short_id": commit.id[:8],
        "title": commit.message.partition("\n")[0],
        "message": commit.message,
        **people,
        "authored_date": time,
        "committed_date": time,
        "created_at": time,
        "parent_ids": [commit.parent] if commit.parent else [],
        "trailers": {},
        "extended_trailers": {},
        "web_url": f"{call.url}/{project.path}/-/commit/{commit.id}",
    }


def stats_of(project: Project, commit: Commit) -> dict[str, Any]:
    """Return the numbers of added and deleted lines: the difference in length of each file."""
    parent = commit_at(project, commit.parent) if commit.parent else None
    before = parent.files if parent else {}
    added = deleted = 0
    for path in {**before, **commit.files}:
        old, new = (set(files.get(path, "").splitlines()) for files in (before, commit.files))
        added, deleted = added + len(new - old), deleted + len(old - new)
    return {"stats": {"additions": added, "deletions": deleted, "total": added + deleted}, "status": None}


SECTIONS = (REPOSITORY,)
_PATH = "/projects/:id/repository"
ROUTES = (
    Route("GET", f"{_PATH}/files/:file_path", get_file),
    Route("GET", f"{_PATH}/tree", list_tree),
    Route("GET", f"{_PATH}/branches/:branch", get_branch),
    Route("GET", f"{_PATH}/commits", list_commits),
    Route("POST", f"{_PATH}/commits", create_commit),
)
