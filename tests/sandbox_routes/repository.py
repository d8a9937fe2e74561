"""Branches and commits of a repository, as far as no command asks for them."""

from reconciler.sandbox.answers import Answer, refused
from reconciler.sandbox.call import Call, Route
from reconciler.sandbox.collection import PAGE, page_of
from reconciler.sandbox.parameters import read, text
from reconciler.sandbox.routes.repository import (
    commit_at,
    readable,
    repository_of,
    show_branch,
    show_commit,
    stats_of,
    writable,
)


def list_branches(call: Call) -> Answer:
    """`GET /projects/:id/repository/branches`: by name."""
    read(call, *PAGE)
    project = readable(call)
    return page_of(call, sorted(repository_of(project).branches), lambda name: show_branch(call, project, name))


def create_branch(call: Call) -> Answer:
    """`POST /projects/:id/repository/branches`."""
    sent = read(call, text("branch", required=True, blank=False), text("ref", required=True, blank=False))
    project = writable(call, sent["branch"])
    commit = commit_at(project, sent["ref"])
    if sent["branch"] in repository_of(project).branches:
        raise refused(400, "Branch already exists")
    if commit is None:
        raise refused(400, f"Invalid reference name: {sent['ref']}")
    repository_of(project).branches[sent["branch"]] = commit.id
    call.changed = True
    return Answer(201, show_branch(call, project, sent["branch"]))


def get_commit(call: Call) -> Answer:
    """`GET /projects/:id/repository/commits/:sha`: also by the name of a branch."""
    project = readable(call)
    commit = commit_at(project, call.parts["sha"])
    if commit is None:
        raise refused(404, "404 Commit Not Found")
    return Answer(200, show_commit(call, project, commit) | stats_of(project, commit) | {"last_pipeline": None})


_PATH = "/projects/:id/repository"
ROUTES = (
    Route("GET", f"{_PATH}/branches", list_branches),
    Route("POST", f"{_PATH}/branches", create_branch),
    Route("GET", f"{_PATH}/commits/:sha", get_commit),
)
