"""Files, branches and commits: section 4.3 of the spec, and production where the spec is silent."""

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import pytest

from reconciler.sandbox import StateError

from .sandbox_client import CREATED, HOST, WEB, SandboxClient, a_service

REPOSITORY = f"{WEB}/repository"
COMMITS = f"{REPOSITORY}/commits"
FILES = {"manifests/api.yaml": "a\n", "README.md": "b"}
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])


def given(service: SandboxClient, dialect: str = "spec", **web: Any) -> SandboxClient:
    """A project with two files."""
    return service.given(a_service(dialect, web={"repository": {"files": FILES}, **web}))


def commit(service: SandboxClient, *actions: Any, user: str = "ada", **more: Any) -> Any:
    """Make a commit on `main`, unless it says otherwise; return its status, and the refusal or the record."""
    body = {"branch": "main", "commit_message": "Change", "actions": list(actions), **more}
    status, shown = service.ask(f"POST {COMMITS}", body, user=user)
    return (status, shown.get("message")) if status >= 400 else (status, shown)


def content(service: SandboxClient, path: str, ref: str = "main") -> str | None:
    """The text of a file; None where there is none."""
    status, shown = service.ask(f"GET {REPOSITORY}/files/{path.replace('/', '%2F')}?ref={ref}")
    return b64decode(shown["content"]).decode() if status == 200 else None


def update(path: str, text: str, **more: Any) -> dict[str, Any]:
    """An action that updates a file."""
    return {"action": "update", "file_path": path, "content": text, **more}


def create(path: str, text: str, **more: Any) -> dict[str, Any]:
    """An action that creates a file."""
    return {"action": "create", "file_path": path, "content": text, **more}


@BOTH
def test_files_are_read_at_a_branch_or_a_commit(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    path = f"{REPOSITORY}/files/manifests%2Fapi.yaml"
    _, branch = service.ask(f"GET {REPOSITORY}/branches/main")
    shown = {
        "file_name": "api.yaml",
        "file_path": "manifests/api.yaml",
        "size": 2,
        "encoding": "base64",
        "content_sha256": sha256(b"a\n").hexdigest(),
        "ref": "main",
        "blob_id": "78981922613b2afb6025042ff6bd878ac1994e85",
        "commit_id": branch["commit"]["id"],
        "last_commit_id": branch["commit"]["id"],
        "execute_filemode": False,
    }
    assert service.ask(f"GET {path}?ref=main") == (200, shown | {"content": b64encode(b"a\n").decode()})
    head = service.response(f"HEAD {path}?ref=HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["x-gitlab-content-sha256"] == shown["content_sha256"]
    assert service.ask(f"GET {path}?ref={shown['commit_id']}")[0] == 200
    assert service.ask(f"GET {path}?ref=none") == (404, {"message": "404 Commit Not Found"})
    assert service.ask(f"GET {REPOSITORY}/files/none?ref=main") == (404, {"message": "404 File Not Found"})
    assert service.ask(f"GET {path}")[0] == 400
    assert service.ask(f"GET {path}?ref=main", user="gus")[0] == 403


@BOTH
def test_a_commit_changes_all_files_or_none(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    _, before = service.ask(f"GET {REPOSITORY}/branches/main")
    encoded = {"encoding": "base64", "content": b64encode(b"c\nd\n").decode()}
    actions = [
        update("manifests/api.yaml", "a\nc\n"),
        {"action": "create", "file_path": "new.yaml", **encoded},
        {"action": "move", "file_path": "LIESMICH", "previous_path": "README.md"},
        {"action": "chmod", "file_path": "new.yaml", "execute_filemode": True},
    ]
    status, made = commit(service, *actions, commit_message="Change\n\nWhy")
    millis = ".000" if dialect == "deployed" else ""
    ada = {"name": "Ada", "email": "ada@example.com"}
    assert (status, made) == (
        201,
        {
            "id": made["id"],
            "short_id": made["id"][:8],
            "title": "Change",
            "message": "Change\n\nWhy",
            **{f"author_{name}": value for name, value in ada.items()},
            **{f"committer_{name}": value for name, value in ada.items()},
            **dict.fromkeys(("authored_date", "committed_date", "created_at"), f"2026-03-01T00:00:01{millis}Z"),
            "parent_ids": [before["commit"]["id"]],
            "trailers": {},
            "extended_trailers": {},
            "web_url": f"{HOST}/acme/web/-/commit/{made['id']}",
            "stats": {"additions": 4, "deletions": 1, "total": 5},
            "status": None,
        },
    )
    assert [content(service, path) for path in ("new.yaml", "LIESMICH", "README.md")] == ["c\nd\n", "b", None]
    assert commit(service, {"action": "delete", "file_path": "new.yaml"}, update("none", "x")) == (
        400,
        "A file with this name doesn't exist",
    )
    assert content(service, "new.yaml") == "c\nd\n"
    assert "stats" not in commit(service, {"action": "delete", "file_path": "new.yaml"}, stats=False)[1]
    assert service.ask(f"GET {COMMITS}/main")[1]["last_pipeline"] is None
    assert service.ask(f"GET {COMMITS}/none") == (404, {"message": "404 Commit Not Found"})
    _, listed = service.ask(f"GET {COMMITS}?per_page=2")
    assert [each["title"] for each in listed] == ["Change", "Change"]
    response = service.response(f"GET {COMMITS}?path=manifests&per_page=1")
    assert (response.json()[0]["id"], response.headers["x-next-page"]) == (made["id"], "2")
    assert "x-total" not in response.headers
    assert service.ask(f"GET {COMMITS}?ref_name=none") == (200, [])
    assert service.changes().count(True) == 2


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (create("README.md", "x"), "A file with this name already exists"),
        (create("manifests", "x"), "A directory with this name already exists"),
        (create("../x", "x"), "Path cannot include directory traversal"),
        (update("none", "x"), "A file with this name doesn't exist"),
        ({}, "400 Bad request - actions[0][action] is required"),
        (
            {"action": "odd"},
            "400 Bad request - actions[0][action] must be one of: create, update, move, delete, chmod",
        ),
        ({"action": "create"}, "400 Bad request - actions[0][file_path] is required"),
        (
            {"action": "update", "file_path": "README.md"},
            "400 Bad request - actions[0][content] is required for update action",
        ),
        (
            {"action": "move", "file_path": "x"},
            "400 Bad request - actions[0][previous_path] is required for move action",
        ),
        (create("x", "x", encoding="odd"), "400 Bad request - actions[0][encoding] must be text or base64"),
    ],
)
@BOTH
def test_an_action_that_does_not_fit_is_refused(
    service: SandboxClient, dialect: str, action: dict[str, Any], said: str
) -> None:
    given(service, dialect)
    assert commit(service, action) == (400, said)
    assert service.changes() == [False]


def test_missing_attributes_are_told_in_the_words_of_the_dialect(service: SandboxClient) -> None:
    given(service, "deployed")
    for body, said in {
        "branch is required": {},
        "commit_message is required": {"branch": "main"},
        "actions must be an array": {"branch": "main", "commit_message": "x"},
        "Provide at least one action, or set allow_empty to true": {
            "branch": "main",
            "commit_message": "x",
            "actions": [],
        },
    }.items():
        assert service.ask(f"POST {COMMITS}", said) == (400, {"message": f"400 Bad request - {body}"})
    given(service)
    missing = '400 (Bad request) "branch, commit_message, actions" not given'
    assert service.ask(f"POST {COMMITS}", {}) == (400, {"message": missing})
    odd = {"branch": "main", "commit_message": "x", "actions": "odd"}
    assert service.ask(f"POST {COMMITS}", odd) == (400, {"message": {"actions": ["is invalid"]}})
    both = {"start_branch": "main", "start_sha": "x"}
    said = "400 Bad request - start_branch, start_sha are mutually exclusive"
    assert commit(service, update("README.md", "x"), **both) == (400, said)


@BOTH
def test_a_branch_begins_where_the_commit_says(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    action = update("README.md", "1")
    said = "You can only create or edit files when you are on a branch"
    assert commit(service, action, branch="x") == (400, said)
    assert commit(service, action, branch="x", start_branch="none") == (400, "Cannot find start_branch 'none'")
    assert commit(service, action, branch="x", start_sha="none") == (400, "Cannot find start_sha 'none'")
    assert commit(service, action, branch="x", start_branch="main")[0] == 201
    said = "A branch called 'x' already exists. Switch to that branch in order to make changes"
    assert commit(service, update("README.md", "2"), branch="x", start_branch="main") == (400, said)
    assert commit(service, create("y", "3"), branch="x")[0] == 201
    assert (content(service, "y", "x"), content(service, "README.md", "x"), content(service, "y")) == ("3", "1", None)
    assert commit(service, create("z", "4"), branch="x", start_branch="main", force=True)[0] == 201
    assert (content(service, "y", "x"), content(service, "README.md", "x"), content(service, "z", "x")) == (
        None,
        "b",
        "4",
    )


@BOTH
def test_a_file_that_has_moved_since_it_was_read_is_not_overwritten(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    _, branch = service.ask(f"GET {REPOSITORY}/branches/main")
    read = branch["commit"]["id"]
    assert commit(service, update("README.md", "1", last_commit_id=read))[0] == 201
    said = "The file has changed since you started editing it: README.md"
    assert commit(service, update("README.md", "2", last_commit_id=read)) == (400, said)
    assert commit(service, update("manifests/api.yaml", "2", last_commit_id=read))[0] == 201
    assert commit(service, update("README.md", "2", last_commit_id="0" * 40))[0] == 201
    assert commit(service, create("new", "2", last_commit_id=read))[0] == 201
    assert commit(service, update("new", "3", last_commit_id=read))[0] == 201, "absent there is accepted"


@BOTH
def test_branches_are_listed_and_created(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    status, made = service.ask(f"POST {REPOSITORY}/branches", {"branch": "a/b", "ref": "main"})
    assert (status, made["name"], made["default"], made["protected"]) == (201, "a/b", False, False)
    exists = (400, {"message": "Branch already exists"})
    assert service.ask(f"POST {REPOSITORY}/branches?branch=a/b&ref=main") == exists
    unknown = (400, {"message": "Invalid reference name: none"})
    assert service.ask(f"POST {REPOSITORY}/branches", {"branch": "c", "ref": "none"}) == unknown
    assert [each["name"] for each in service.ask(f"GET {REPOSITORY}/branches")[1]] == ["a/b", "main"]
    assert service.ask(f"GET {REPOSITORY}/branches/a%2Fb") == (200, made)
    assert service.ask(f"GET {REPOSITORY}/branches/none") == (404, {"message": "404 Branch Not Found"})


@BOTH
def test_the_commits_of_a_range_are_those_of_one_branch_alone(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    for branch, texts in (("x", "12"), ("main", "3")):
        for text in texts:
            start = {"start_branch": "main"} if text == "1" else {}
            commit(service, update("README.md", text), branch=branch, commit_message=f"{branch} {text}", **start)

    def titles(ref: str) -> list[str]:
        return [each["title"] for each in service.ask(f"GET {COMMITS}?ref_name={ref}")[1]]

    assert titles("main..x") == ["x 2", "x 1"]
    assert titles("x..main") == ["main 3"]
    assert titles("x..x") == titles("main..none") == titles("none..x") == []


@BOTH
def test_a_folder_lists_its_folders_and_files_with_what_they_hold(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    commit(service, create("manifests/a/b.yaml", "a\n"), update("README.md", "c"), branch="x", start_branch="main")

    def tree(query: str) -> Any:
        status, body = service.ask(f"GET {REPOSITORY}/tree?{query}")
        return body if status >= 400 else [tuple(each.values()) for each in body]

    (_, _, _, _, mode), file = before = tree("ref=main")
    assert (mode, [each[1:4] for each in before]) == (
        "040000",
        [("manifests", "tree", "manifests"), ("README.md", "blob", "README.md")],
    )
    assert (file[0], file[4]) == ("63d8dbd40c23542e740659a7168a0ce3138ea748", "100644")
    folder, changed = tree("ref=x")
    assert [folder[0] != before[0][0], changed[0] != file[0]] == [True, True]
    inner = tree("ref=x&path=manifests")
    assert [each[1:4] for each in inner] == [
        ("a", "tree", "manifests/a"),
        ("api.yaml", "blob", "manifests/api.yaml"),
    ]
    assert tree("path=manifests") == [inner[1]]
    assert tree("ref=none") == {"message": "404 Tree Not Found"}
    assert tree("ref=main&path=none") == {"message": "404 invalid revision or path Not Found"}


@BOTH
def test_who_may_push(service: SandboxClient, dialect: str) -> None:
    given(service, dialect)
    action = update("README.md", "x")
    protected = "403 Forbidden - You are not allowed to push into this branch"
    assert commit(service, action, user="dev") == (403, protected)
    assert commit(service, action, user="dev", branch="x", start_branch="main")[0] == 201
    assert commit(service, action, user="pia") == (403, "403 Forbidden")
    given(service, dialect, archived=True, visibility="public")
    assert commit(service, action) == (403, "403 Forbidden")
    assert service.ask(f"GET {REPOSITORY}/branches", user="eve")[0] == 200


@BOTH
def test_an_empty_repository_begins_with_any_branch(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"GET {COMMITS}") == (404, {"message": "404 Repository Not Found"})
    assert commit(service, create("a", "1"), branch="trunk", start_branch="main")[0] == 201
    assert content(service, "a", "trunk") == "1"


def test_a_state_keeps_commits_and_branches(service: SandboxClient) -> None:
    given(service)
    commit(service, update("README.md", "1", last_commit_id=""), branch="x", start_branch="main")
    state = service.control("GET /-/state").json()
    repository = state["projects"][0]["repository"]
    assert (repository["files"], len(repository["commits"]), set(repository["branches"])) == ({}, 2, {"main", "x"})
    assert repository["commits"][0]["created_at"] == CREATED.replace("Z", ".000Z")
    service.given(state)
    assert (content(service, "README.md", "x"), content(service, "README.md")) == ("1", "b")
    with pytest.raises(StateError, match="must be a string, not a list"):
        service.given(a_service(web={"repository": {"files": {"a": []}}}))
