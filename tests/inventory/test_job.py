"""Applies and reverts in a CI job: with whose token the list is pushed, and in whose name."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.memory.store import INVENTORY_BRANCH
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.inventory.checkout import REMOTE, Checkout
from tests.inventory.git_server import REPOSITORY, GitServer, git_server
from tests.service.test_connection import LOOPBACK


@pytest.fixture
def server(tmp_path: Path, cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """The server of the job: it has the repository and the API. Its job token may not push."""
    with serving(tmp_path, cli_runner, monkeypatch) as made:
        yield made


@contextmanager
def serving(
    tmp_path: Path, cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, *, tls: bool = True
) -> Iterator[GitServer]:
    (tmp_path / "served").mkdir()
    with git_server(tmp_path / "served", tls=tls) as made:
        made.api = cli_runner.sandbox.api_url.removeprefix("http://").removesuffix("/api/v4")
        made.tokens, made.readers = {"ada-token", "job-token"}, {"job-token"}
        variables = {
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_SERVER_URL": made.url,
            "CI_PROJECT_PATH": REPOSITORY.removesuffix(".git"),
            "CI_JOB_TOKEN": "job-token",
            "GITLAB_USER_NAME": "Mona",
            "GITLAB_USER_EMAIL": "mona@example.com",
            "RECONCILER_API_URL": f"{made.url}/api/v4",
            "RECONCILER_CA_FILE": str(LOOPBACK),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def job(cli_runner: CliRunner, tmp_path: Path) -> Checkout:
    """The checkout of a job, in a folder that others have configured."""
    made = Checkout(replace(cli_runner, folder=tmp_path / "build"), repository(tmp_path / "build"))
    made.git.git("config", "user.name", "Somebody else")
    made.git.git("remote", "add", "origin", "https://elsewhere.invalid/")
    made.write("reconciler.yaml", REMOTE)
    made.write(".gitignore", ".reconciler/\n")
    return made


def last(server: GitServer) -> str:
    """Return author and committer of the last apply."""
    return server.git("show", "--no-patch", "--format=%an <%ae>, %cn <%ce>", INVENTORY_BRANCH)


def test_the_list_is_pushed_in_the_name_of_whose_token_it_is(server: GitServer, job: Checkout) -> None:
    sandbox = job.cli.sandbox
    job.milestones("a", "b")
    job.commit("first")
    sandbox.clear_log()
    assert job.apply()[0] == 0
    assert server.users() == ["fetch gitlab-ci-token:job-token", "push reconciler:ada-token"]
    assert [entry["target"] for entry in sandbox.log()].count("/api/v4/user") == 1
    assert last(server) == "Mona <mona@example.com>, Ada <ada@example.com>"
    job.milestones("a")
    job.commit("second")
    sandbox.set_faults(["status=403,method=GET,match=/user"])
    assert job.apply() == (0, ["project acme/api", '  - milestone "b"                             done'])
    assert last(server) == "Mona <mona@example.com>, reconciler <>"
    sandbox.set_faults([])
    server.canned["/api/v4/user"] = b'{"id": 1}'
    server.users()
    code, lines = job.run("revert --last --yes")
    assert (code, lines[:2]) == (0, ["project acme/api", '  + milestone "b"                             done'])
    assert server.users() == ["fetch gitlab-ci-token:job-token", "push reconciler:ada-token"]
    assert last(server) == "Mona <mona@example.com>, reconciler <>"
    assert (job.live(), job.run("log")[1][0][:5]) == (["a", "b"], "apply")


@pytest.mark.untraced
def test_reports_name_the_last_applies_and_ask_for_nothing_more(
    server: GitServer, job: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = "drift --report json=drift.json --report fleet=fleet.html"
    job.milestones("a", "b")
    first = job.commit("first")
    assert job.run(reports)[0] == 2
    assert applies_of(job) == []
    assert job.apply()[0] == 0
    job.milestones("a")
    second = job.commit("second")
    monkeypatch.setenv("GITLAB_USER_NAME", "Tim")
    assert job.apply()[0] == 0
    assert job.run("revert --last --yes")[0] == 0
    asked = []
    for line in ("drift", "drift --who", reports):
        server.asked.clear()
        assert job.run(line)[0] == 0
        asked.append([*server.asked])
    assert asked[0] == asked[1] == asked[2] != []
    assert applies_of(job) == [
        ("Tim", {"created": 1}, second, 0, True),
        ("Tim", {"deleted": 1}, second, 0, False),
        ("Mona", {"created": 2}, first, 0, False),
    ]
    server.asked.clear()
    for line in ("", "show drift.json --report fleet=fleet.html"):
        assert not line or job.run(line)[0] == 0
        _, _, applies = (job.git.folder / "fleet.html").read_text().partition('id="applies"')
        assert re.findall('<p class="label">(.*?)</p>', applies.partition("</section>")[0]) == [
            *("Tim: 1 created", "Tim: 1 deleted", "Mona: 2 created")
        ]
    assert server.asked == []


def applies_of(job: Checkout) -> list[tuple[object, ...]]:
    """Return who did what, of which commit, with which exit code, and whether that was a revert, by the JSON report."""
    applies = json.loads((job.git.folder / "drift.json").read_text())["applies"]
    names = ("author", "counts", "manifests", "result")
    return [(*(each[name] for name in names), bool(each["reverts"])) for each in applies]


@pytest.mark.untraced
def test_the_token_of_the_job_is_that_of_who_started_it(
    server: GitServer, job: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.readers = set()
    monkeypatch.setenv("RECONCILER_API_URL", job.cli.sandbox.api_url)
    job.milestones("a")
    job.commit("first")
    assert job.apply()[0] == 0
    assert server.users() == ["fetch gitlab-ci-token:job-token", "push gitlab-ci-token:job-token"]
    assert last(server) == "Mona <mona@example.com>, Mona <mona@example.com>"


def test_on_this_machine_the_list_is_kept_over_plain_http_as_the_api_is(
    cli_runner: CliRunner, job: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere only with --insecure-http, for both. No proxy sees the token."""
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(tmp_path, cli_runner, monkeypatch, tls=False) as server:
        job.milestones("a")
        job.commit("first")
        assert job.apply()[0] == 0
        assert server.users() == ["fetch gitlab-ci-token:job-token", "push reconciler:ada-token"]
        monkeypatch.delenv("GITLAB_CI")
        job.git.git("remote", "set-url", "origin", server.remote.replace("//", "//mona:ada-token@"))
        assert job.plan() == (0, [])
        assert server.users() == ["fetch mona:ada-token"]
        job.git.git("remote", "set-url", "origin", "http://gitlab.invalid/acme/settings.git")
        assert job.plan()[0] == 1
        code, lines = job.plan("--insecure-http")
        assert (code, "Could not resolve host: gitlab.invalid" in " ".join(lines)) == (3, True)


@pytest.mark.untraced
@pytest.mark.usefixtures("server")
def test_a_job_that_is_retried_counts_only_what_it_has_sent_itself(job: Checkout) -> None:
    job.milestones("a", "b")
    job.commit("first")
    assert job.run("plan --out ../plan.json")[0] == 0
    job.cli.sandbox.set_faults(["status=403,method=POST,times=1"])
    assert job.apply("--plan ../plan.json")[0] == 3
    job.cli.sandbox.set_faults([])
    for _ in range(2):
        assert job.apply("--plan ../plan.json")[0] == 0
    job.change(lambda project: project.update(description="x"))
    assert job.apply("--plan ../plan.json")[0] == 0
    rows = [line.split("  ") for line in job.run("log")[1][1:]]
    assert [next(cell for cell in row if "created" in cell or "nothing" in cell) for row in rows] == ["1 created"] * 2
