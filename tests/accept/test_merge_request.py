"""`accept --merge-request`: one commit on a branch, one merge request, and no file changed here."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import BadAnswer, ConfigurationError, NotFound, Refused, ServiceError
from reconciler.model.protocols import Request
from reconciler.reports.keeping import Result
from reconciler.reports.proposals import Proposal, ProposalTarget, propose
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.service.connecting import connected
from tests.states import a_small_service

ACCEPT = "accept --merge-request acme/web"
API = "/api/v4/projects/acme%2Fweb"
FILE = f"GET {API}/repository/files/manifests%2Fproject.yaml?ref=main"
BRANCH = f"GET {API}/repository/branches/reconciler%2Faccept"
COMMIT = f"POST {API}/repository/commits"
LIST = f"GET {API}/merge_requests?state=opened&source_branch=reconciler%2Faccept&target_branch=main&sort=asc&per_page=100&page=1"
OPEN = f"POST {API}/merge_requests"
HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: "
DECLARED = '{milestones: {"1": {due_date: 2026-12-31}}}'


@pytest.fixture(autouse=True, params=["spec", "deployed"])
def _drifted(cli_runner: CliRunner, request: pytest.FixtureRequest) -> None:
    """A checkout whose manifests are on the default branch of `acme/web`, and a due date that somebody moved."""
    repository(cli_runner.folder)
    cli_runner.project(DECLARED)
    state = a_small_service(request.param)
    state["projects"][2]["repository"] = {"files": {"manifests/project.yaml": f"{HEAD}{DECLARED}\n", "README.md": "x"}}
    cli_runner.sandbox.replace_state(state)
    live(cli_runner, "2027-01-31")


def live(cli_runner: CliRunner, due: str, **more: Any) -> None:
    """Play somebody who moves the due date."""
    state = cli_runner.sandbox.state()
    state["projects"][0] |= {"milestones": [{"title": "1", "id": 1, "due_date": due}], **more}
    cli_runner.sandbox.replace_state(state)


def web(cli_runner: CliRunner) -> dict[str, Any]:
    """Return the project with the repository."""
    found: dict[str, Any] = cli_runner.sandbox.state()["projects"][2]
    return found


def on_branch(cli_runner: CliRunner, name: str = "reconciler/accept") -> dict[str, Any]:
    """Return the last commit of a branch."""
    repository = web(cli_runner)["repository"]
    found: dict[str, Any] = next(each for each in repository["commits"] if each["id"] == repository["branches"][name])
    return found


def accept(cli_runner: CliRunner, more: str = "") -> tuple[int, str, list[str]]:
    """Run the command; return its exit code, its output, and its requests for the repository and merge requests."""
    cli_runner.sandbox.clear_log()
    done = cli_runner(f"{ACCEPT} {more}")
    log = [f"{each['method']} {each['target']}" for each in cli_runner.sandbox.log()]
    return done.code, done.out + done.err, [each for each in log if API in each]


def compared(before: str, after: str) -> list[str]:
    """Return the requests for the files in which two commits differ."""
    pages = "&per_page=100&page=1"
    spans = [f"GET {API}/repository/commits?ref_name=main..reconciler%2Faccept{pages}"]
    for folder in ("", "&path=manifests"):
        spans += [f"GET {API}/repository/tree?ref={commit}{folder}{pages}" for commit in (before, after)]
    return spans


@pytest.mark.untraced
def test_one_commit_and_one_merge_request(cli_runner: CliRunner) -> None:
    mine = Path("manifests/project.yaml").read_text()
    requests = [f"GET {API}", FILE, BRANCH, COMMIT, LIST, OPEN]
    assert accept(cli_runner) == (0, "Merge request opened: acme/web!1 (1 file)\n", requests)
    assert Path("manifests/project.yaml").read_text() == mine
    commit, main = on_branch(cli_runner), on_branch(cli_runner, "main")
    assert commit["parent"] == main["id"]
    assert commit["files"] == {**main["files"], "manifests/project.yaml": mine.replace("2026-12-31", "2027-01-31")}
    title = "Accept live values: 1 difference in 1 file"
    assert commit["message"].splitlines()[0] == title
    (request,) = web(cli_runner)["merge_requests"]
    assert (request["title"], request["source_branch"], request["target_branch"], request["remove_source_branch"]) == (
        title,
        "reconciler/accept",
        "main",
        True,
    )
    assert request["description"] == (
        "`reconciler accept` proposes manifests that agree with the live values:\n\n- `manifests/project.yaml`"
    )
    requests = [f"GET {API}", FILE, BRANCH, LIST]
    assert accept(cli_runner) == (0, "Merge request unchanged: acme/web!1 (1 file)\n", requests)

    live(cli_runner, "2027-02-28")
    first = on_branch(cli_runner)["id"]
    requests = [f"GET {API}", FILE, BRANCH, *compared(main["id"], first), COMMIT, LIST]
    assert accept(cli_runner) == (0, "Merge request updated: acme/web!1 (1 file)\n", requests)
    commit = on_branch(cli_runner)
    assert (commit["parent"], "2027-02-28" in commit["files"]["manifests/project.yaml"]) == (main["id"], True)

    live(cli_runner, "2027-02-28", milestones=[{"title": "1", "due_date": "2027-02-28", "state": "closed"}])
    cli_runner.project(DECLARED.replace("}}}", ", state: active}}}"))
    state = cli_runner.sandbox.state()
    state["projects"][2]["repository"] = {
        "files": {"manifests/project.yaml": Path("manifests/project.yaml").read_text()}
    }
    state["projects"][2]["merge_requests"][0]["title"] = "Old title"
    cli_runner.sandbox.replace_state(state)
    requests = [f"GET {API}", FILE, BRANCH, COMMIT, LIST, f"PUT {API}/merge_requests/1"]
    assert accept(cli_runner) == (0, "Merge request updated: acme/web!1 (1 file)\n", requests)


def test_a_merge_request_of_a_fork_or_of_somebody_else_is_never_taken_for_ours(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    branches = {"source_branch": "reconciler/accept", "target_branch": "main", "title": "Theirs"}
    theirs = [{"iid": 1, "source_project_id": 4711, "author": "ada", **branches}]
    state["projects"][2]["merge_requests"] = theirs
    cli_runner.sandbox.replace_state(state)
    assert accept(cli_runner)[:2] == (0, "Merge request opened: acme/web!2 (1 file)\n")
    assert accept(cli_runner)[:2] == (0, "Merge request unchanged: acme/web!2 (1 file)\n")
    assert [each["title"] for each in web(cli_runner)["merge_requests"]] == [
        "Theirs",
        "Accept live values: 1 difference in 1 file",
    ]
    live(cli_runner, "2026-12-31")
    still_open = "nothing is left to accept, and acme/web!2 is still open; close it\n"
    assert accept(cli_runner)[:2] == (0, f"Merge request not needed: nothing to accept\n{still_open}")
    state = cli_runner.sandbox.state()
    state["projects"][2]["merge_requests"] = [{"iid": 1, "author": "bob", **branches}]
    cli_runner.sandbox.replace_state(state)
    assert accept(cli_runner)[:2] == (0, "Merge request not needed: nothing to accept\n")
    live(cli_runner, "2027-01-31")
    code, said, _ = accept(cli_runner)
    assert code == 1
    assert "Another open merge request already exists for this source branch: !1" in said
    assert [each["title"] for each in web(cli_runner)["merge_requests"]] == ["Theirs"]


def test_exceptions_are_proposed_with_their_end_and_reason(cli_runner: CliRunner) -> None:
    code, said, _ = accept(cli_runner, "--until 2099-03-01 --reason OPS-12")
    assert (code, said) == (0, "Merge request opened: acme/web!1 (1 file)\n")
    (request,) = web(cli_runner)["merge_requests"]
    assert (request["title"], request["description"]) == (
        "Except 1 difference until 2099-03-01: 1 file",
        "`reconciler accept` proposes exceptions until 2099-03-01: `OPS-12`\n\n- `manifests/project.yaml`",
    )
    assert "until: 2099-03-01, reason: OPS-12}" in on_branch(cli_runner)["files"]["manifests/project.yaml"]


@pytest.mark.untraced
def test_nothing_to_accept(cli_runner: CliRunner) -> None:
    accept(cli_runner)
    live(cli_runner, "2026-12-31")
    said = "Merge request not needed: nothing to accept\n"
    still_open = "nothing is left to accept, and acme/web!1 is still open; close it\n"
    listed = f"GET {API}/merge_requests?state=opened&source_branch=reconciler%2Faccept&per_page=100&page=1"
    assert accept(cli_runner) == (0, said + still_open, [listed])
    live(cli_runner, "2027-02-28", issues_enabled=False, merge_requests_enabled=False)
    code, told, requests = accept(cli_runner)
    assert (code, told.startswith(f"{said}not accepted: "), requests) == (3, True, []), "who cannot read does not know"
    live(cli_runner, "2026-12-31", issues_enabled=True)
    state = cli_runner.sandbox.state()
    state["projects"][2]["merge_requests"] = []
    cli_runner.sandbox.replace_state(state)
    assert accept(cli_runner)[1] == said


def test_a_file_that_moved_on_the_default_branch_is_told_and_nothing_is_done(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/other.yaml", HEAD.replace("acme/api", "acme/lib") + '{milestones: {"2": {}}}\n')
    live(cli_runner, "2027-01-31", visibility="public")
    state = cli_runner.sandbox.state()
    state["projects"][2]["repository"] = {"files": {"manifests/project.yaml": "changed"}}
    cli_runner.sandbox.replace_state(state)
    code, said, requests = accept(cli_runner)
    assert (code, said) == (
        1,
        "reconciler: nothing was committed to acme/web: manifests/other.yaml is not on main, manifests/project.yaml "
        "differs from main; bring the checkout in line with main and try again\n",
    )
    assert {request.partition(" ")[0] for request in requests} == {"GET"}
    assert set(web(cli_runner)["repository"]["branches"]) == {"main"}


def test_a_file_that_moves_between_reading_and_committing(cli_runner: CliRunner) -> None:
    """The service compares the file once more when it commits."""
    path = "manifests/project.yaml"
    with connected(cli_runner.sandbox.api_url, token="ada-token") as client:
        commits = "projects/acme%2Fweb/repository/commits"

        class Hurried:
            """A client with somebody who pushes before each of its commits."""

            get, visible = client.get, client.visible

            def send(self, request: Request, **more: Any) -> Any:
                action = {"action": "update", "file_path": path, "content": "pushed"}
                client.send(Request("POST", commits, {"branch": "main", "commit_message": "x", "actions": [action]}))
                return client.send(request, **more)

        proposal = Proposal({path: f"{HEAD}{DECLARED}\n"}, {path: "new"}, "t", "d")
        with pytest.raises(Refused, match="The file has changed since you started editing it"):
            propose(Hurried(), ProposalTarget("acme/web", "reconciler/accept"), proposal)
    assert set(web(cli_runner)["repository"]["branches"]) == {"main"}
    assert web(cli_runner)["merge_requests"] == []


def test_commits_of_others_are_never_overwritten(cli_runner: CliRunner) -> None:
    accept(cli_runner)
    state = cli_runner.sandbox.state()
    repository = state["projects"][2]["repository"]
    repository["commits"].append({**repository["commits"][-1], "id": "f" * 40, "message": "Mine"})
    repository["branches"]["reconciler/accept"] = "f" * 40
    cli_runner.sandbox.replace_state(state)
    code, said, requests = accept(cli_runner)
    assert (code, said, requests[-1]) == (
        1,
        "reconciler: the branch reconciler/accept of acme/web has changes of somebody else; merge or delete it, or name "
        "another one with --branch\n",
        BRANCH,
    )
    assert accept(cli_runner, "--branch other")[1] == "Merge request opened: acme/web!2 (1 file)\n"
    assert accept(cli_runner, "--branch main")[:2] == (
        1,
        "reconciler: main is the default branch of acme/web; name another one with --branch\n",
    )


def rewritten(cli_runner: CliRunner, number: int, *changes: dict[str, Any]) -> None:
    """Replace the last commits of the branch by others on top of the default branch, and move that if told."""
    state = cli_runner.sandbox.state()
    repository = state["projects"][2]["repository"]
    commits = {each["id"]: each for each in repository["commits"]}
    head = commits[repository["branches"]["reconciler/accept"]]
    parent = repository["branches"]["main"]
    for index, change in enumerate(changes):
        made = {**head, "parent": parent, "id": f"{number}{index}".ljust(40, "f"), **change}
        made["files"] = {
            path: text for path, text in {**head["files"], **made.get("files", {})}.items() if text is not None
        }
        repository["commits"].append(made)
        parent = made["id"]
    repository["branches"]["reconciler/accept"] = parent
    cli_runner.sandbox.replace_state(state)


MINE = {"manifests/project.yaml": "mine\n"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([{"files": MINE}], id="amended"),
        pytest.param([{"files": {"NOTES.md": "mine"}}], id="amended with a file"),
        pytest.param(
            [{"files": {"manifests/project.yaml": None, "manifests/project.yaml/inner.yaml": "x"}}],
            id="amended to a folder",
        ),
        pytest.param([{"files": {"README.md": None}}], id="amended without a file"),
        pytest.param([{"files": {"README.md": None, "README.md/a": "x"}}], id="amended from a file to a folder"),
        pytest.param([{"message": "Mine", "files": MINE}, {}], id="rebased onto work of somebody else"),
        pytest.param([{}, {"message": "Mine\n\nReconciler-Proposal: " + "0" * 64}], id="squashed"),
    ],
)
def test_work_of_others_is_never_overwritten_though_our_message_stays(
    cli_runner: CliRunner, changes: list[dict[str, Any]]
) -> None:
    accept(cli_runner)
    rewritten(cli_runner, 1, *changes)
    before = web(cli_runner)["repository"]
    live(cli_runner, "2027-02-28")
    code, said, _ = accept(cli_runner)
    assert (code, said) == (
        1,
        "reconciler: the branch reconciler/accept of acme/web has changes of somebody else; merge or delete it, or name "
        "another one with --branch\n",
    )
    assert web(cli_runner)["repository"] == before


def test_a_proposal_that_was_rebased_or_merged_as_it_is_gets_the_next_one(cli_runner: CliRunner) -> None:
    accept(cli_runner)
    rewritten(cli_runner, 1, {"author_name": "Somebody"})
    live(cli_runner, "2027-02-28")
    assert accept(cli_runner)[1] == "Merge request updated: acme/web!1 (1 file)\n"
    state = cli_runner.sandbox.state()
    repository = state["projects"][2]["repository"]
    repository["branches"]["main"] = repository["branches"]["reconciler/accept"]
    cli_runner.sandbox.replace_state(state)
    main = on_branch(cli_runner, "main")
    cli_runner.write("manifests/project.yaml", main["files"]["manifests/project.yaml"])
    live(cli_runner, "2027-03-31")
    assert accept(cli_runner)[1] == "Merge request updated: acme/web!1 (1 file)\n"
    assert on_branch(cli_runner)["parent"] == main["id"]


@pytest.mark.untraced
@pytest.mark.parametrize("match", ["commits", "merge_requests"])
def test_a_lost_answer_is_looked_for(cli_runner: CliRunner, match: str) -> None:
    cli_runner.sandbox.set_faults([f"reset-after,method=POST,match={match}"])
    done = {"commits": "opened", "merge_requests": "updated"}[match]
    assert accept(cli_runner)[:2] == (0, f"Merge request {done}: acme/web!1 (1 file)\n")
    assert len(web(cli_runner)["repository"]["commits"]) == 2
    assert len(web(cli_runner)["merge_requests"]) == 1


def test_new_files_marks_and_what_is_refused(cli_runner: CliRunner) -> None:
    """The file is in a folder of the checkout; its byte order mark stays; what cannot be accepted is told."""
    profile = 'apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: p}\nspec: {milestones: {"1": {due_date: 2026-12-31}}}\n'
    documents = [
        f"{HEAD.replace('path', 'profiles: [p], path').replace('acme/api', path)}{{}}\n"
        for path in ("acme/api", "acme/lib")
    ]
    text = "---\n".join([profile, *documents])
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write("manifests/all.yaml", f"\ufeff{text}")
    cli_runner.write("manifests/tokens.yaml.j2", HEAD.replace("acme/api", "acme/tools/cli") + "{milestones: {t: {}}}\n")
    state = cli_runner.sandbox.state()
    state["projects"][1]["milestones"] = [{"title": "1", "due_date": "2026-12-31"}]
    state["projects"][2]["repository"] = {"files": {"manifests/all.yaml": f"\ufeff{text}"}}
    cli_runner.sandbox.replace_state(state)
    code, said, _ = accept(cli_runner)
    assert code == 3
    assert "Merge request opened: acme/web!1 (1 file)\n" in said
    files = on_branch(cli_runner)["files"]
    assert files["manifests/all.yaml"].startswith("\ufeff")
    (request,) = web(cli_runner)["merge_requests"]
    assert "These differences stay:\n\n- `not accepted: " in request["description"]


def test_only_files_of_a_checkout_can_be_committed(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli_runner.folder / ".git").rename("moved")
    assert accept(cli_runner)[:2] == (
        1,
        "reconciler: --merge-request needs a git checkout: run it in the clone of acme/web\n",
    )
    (cli_runner.folder / "inner/.git").mkdir(parents=True)
    monkeypatch.chdir(cli_runner.folder / "inner")
    code, said, _ = accept(cli_runner, "../manifests")
    assert (code, "../manifests/project.yaml is outside of the git checkout " in said) == (1, True)
    done = cli_runner(f"{ACCEPT} --diff")
    assert (done.code, "accept takes --diff or --merge-request, not both" in done.err) == (64, True)
    alone = cli_runner("accept --branch mine")
    assert (alone.code, "--branch goes with --merge-request" in alone.err) == (64, True)


def test_a_file_whose_name_no_request_can_have_is_told(cli_runner: CliRunner) -> None:
    """Git and the service know names as bytes, and requests as UTF-8."""
    (cli_runner.folder / "manifests/project.yaml").rename(cli_runner.folder / "manifests/\udcff.yaml")
    code, said, requests = accept(cli_runner)
    assert (code, said, requests) == (
        1,
        "reconciler: manifests/\\udcff.yaml: the name of the file is not UTF-8, which --merge-request needs: rename it\n",
        [],
    )


class Board:
    """A service whose answers are given."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.sent: list[str] = []

    def get(self, path: str) -> Any:
        found = self.answers.get(path.partition("?")[0])
        if found is None:
            raise NotFound(f"GET {path}", "404 Not Found", 404)
        return found

    def visible(self, path: str) -> list[Any]:
        found: list[Any] = self.answers[path.partition("?")[0]].pop(0)
        return found

    def send(self, request: Request, **_more: Any) -> Any:
        self.sent.append(f"{request.method} {request.path}")
        answer = self.answers.get(self.sent[-1])
        if isinstance(answer, ServiceError):
            raise answer
        return answer


P = "projects/1"
TEXTS = Proposal({"a": "1"}, {"a": "2", "b": "3"}, "t", "d")


def board(**more: Any) -> Board:
    """A service with one of two files."""
    file = {"content": b64encode(b"1").decode(), "commit_id": "c"}
    answers = {P: {"default_branch": "main"}, f"{P}/repository/files/a": file, f"{P}/merge_requests": [[]]}
    return Board(answers | {f"{P}/{path}" if " " not in path else path: value for path, value in more.items()})


def test_a_merge_request_that_another_run_opens_meanwhile_is_updated() -> None:
    another = Refused(f"POST {P}/merge_requests", "409 Another open merge request already exists", 409)
    ours = {
        "iid": 7,
        "title": "t",
        "description": "other",
        "author": {"id": 2},
        "project_id": 1,
        "source_project_id": 1,
    }
    service = board(merge_requests=[[], [ours]], **{f"POST {P}/merge_requests": another})
    service.answers["user"] = {"id": 2}
    assert propose(service, ProposalTarget("1", "x"), TEXTS) == (Result.UPDATED, 7)
    assert service.sent == [f"POST {P}/repository/commits", f"POST {P}/merge_requests", f"PUT {P}/merge_requests/7"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            {"repository/branches/x": {}},
            f"GET {P}/repository/branches/x: unexpected response: the branch has no commit",
        ),
        ({"repository/files/a": {}}, f"GET {P}/repository/files/a: unexpected response: the file has no content"),
        (
            {"repository/files/a": {"content": "a", "commit_id": "c"}},
            f"GET {P}/repository/files/a: unexpected response: the file's content is not base64",
        ),
        (
            {"repository/files/a": {"content": "ä===", "commit_id": "c"}},
            f"GET {P}/repository/files/a: unexpected response: the file's content is not base64",
        ),
        ({}, f"POST {P}/merge_requests: unexpected response: the merge request has no number"),
    ],
)
def test_an_odd_response_is_told(answers: dict[str, Any], said: str) -> None:
    answers |= {"merge_requests": [[], [{}], []]}
    with pytest.raises(BadAnswer) as raised:
        propose(board(**answers), ProposalTarget("1", "x"), TEXTS)
    assert str(raised.value) == said


def test_an_odd_folder_is_told() -> None:
    branch = {"commit": {"message": f"t\n\nReconciler-Proposal: {'0' * 64}"}}
    tree = {"repository/commits": [[{"id": "2", "parent_ids": ["1"]}]], "repository/tree": [[], [{"path": "a"}]]}
    with pytest.raises(BadAnswer) as raised:
        propose(board(**tree, **{"repository/branches/x": branch}), ProposalTarget("1", "x"), TEXTS)
    assert str(raised.value) == (f"GET {P}/repository/tree: unexpected response: a file has no path, ID, mode or type")


def test_a_repository_without_a_commit_is_told() -> None:
    service = board()
    service.answers[P] = {"default_branch": None}
    with pytest.raises(ConfigurationError, match="1 has no default branch: push a first commit"):
        propose(service, ProposalTarget("1", "x"), TEXTS)
    service = board(**{"repository/files/b": {"content": "", "commit_id": "c"}})
    with pytest.raises(ConfigurationError, match="b is new here, and already on main; bring"):
        propose(service, ProposalTarget("1", "x"), TEXTS)
