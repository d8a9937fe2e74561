"""`reconciler issue`: one issue per name about drift, whatever others do at the same time."""

from typing import Any

import pytest

from reconciler.errors import BadAnswer
from reconciler.reports.issue import DriftIssue, Memory, keep_issue
from reconciler.reports.keeping import MAX_TEXT_LENGTH, Result
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.service.connecting import connected
from tests.states import a_small_service

ISSUES = "/api/v4/projects/acme%2Fweb/issues"
LIST = f"GET {ISSUES}?author_id=2&order_by=created_at&sort=asc&per_page=100&page=1"
FOUND = ["GET /api/v4/user", LIST]
MARKER = "<!-- reconciler issue: drift -->"
IN_ORDER = "**In order since TIME: nothing differs from the manifests, and there are no problems.**"


@pytest.fixture(autouse=True, params=["spec", "deployed"])
def _drifted(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A project in which a milestone is missing; teams, and who is in them."""
    for name in ("CI_PROJECT_ID", "CI_JOB_URL", "RECONCILER_NOTE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    cli_runner.sandbox.replace_state(a_small_service(request.param))
    cli_runner.write("reconciler.yaml", "issue: {assignees: {team: {pay: [bob, nemo], ops: [ada]}}}\n")
    declare(cli_runner, "1")


def declare(cli_runner: CliRunner, *titles: str, path: str = "acme/api", team: str = "pay") -> None:
    """Write the manifest of a project with these milestones, and the report of drift."""
    milestones = "".join(f'"{title}": {{}}, ' for title in titles)
    cli_runner.write(
        f"manifests/{path.replace('/', '-')}.yaml",
        f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}, labels: {{team: {team}, x: y}}}}\n"
        f"spec: {{milestones: {{{milestones}}}}}\n",
    )
    cli_runner("drift --report json=drift.json --report markdown=drift.md")
    cli_runner.sandbox.clear_log()


def run(cli_runner: CliRunner, more: str = "") -> str:
    """Keep the issue of `acme/web`, and return the output."""
    done = cli_runner(f"issue drift.json --project acme/web {more}")
    assert done.code == 0
    return done.out


def issues(cli_runner: CliRunner) -> list[dict[str, Any]]:
    """Return the issues of `acme/web`."""
    found: list[dict[str, Any]] = cli_runner.sandbox.state()["projects"][2]["issues"]
    return found


def asked(cli_runner: CliRunner) -> list[str]:
    """Return the requests so far, and forget them."""
    log = cli_runner.sandbox.log()
    cli_runner.sandbox.clear_log()
    return [f"{each['method']} {each['target']}" for each in log]


def test_an_issue_is_opened_updated_closed_and_reopened(cli_runner: CliRunner) -> None:
    done = cli_runner("issue drift.json --project acme/web")
    assert (done.code, done.out) == (0, "Issue drift opened: acme/web#1\n")
    assert done.err == "nobody has the username nemo; see issue.assignees in reconciler.yaml\n"
    users = ["GET /api/v4/users?username=bob", "GET /api/v4/users?username=nemo"]
    assert asked(cli_runner) == [*FOUND, *users, f"POST {ISSUES}"]
    (issue,) = issues(cli_runner)
    first = issue["description"]
    assert (issue["title"], issue["author"], issue["assignees"]) == (
        "Settings differ from the manifests",
        "ada",
        ["bob"],
    )
    assert first.startswith(f"{MARKER}\n\nLive settings differ from the manifests. This was found at 20")
    assert (cli_runner.folder / "drift.md").read_text().strip() in first
    assert "# New since" not in first
    declare(cli_runner, "1")
    assert run(cli_runner) == "Issue drift unchanged: acme/web#1\n"
    assert asked(cli_runner) == FOUND

    declare(cli_runner, "1", path="acme/lib", team="ops")
    assert run(cli_runner) == "Issue drift updated: acme/web#1\n"
    assert asked(cli_runner) == [*FOUND, "GET /api/v4/users?username=ada", f"PUT {ISSUES}/1"]
    (issue,) = issues(cli_runner)
    new, _, everything = issue["description"].partition("# Everything")
    assert "# New since 20" in new
    assert ("acme/api" in new, "acme/lib" in new) == (False, True)
    assert ("acme/api" in everything, "acme/lib" in everything) == (True, True)
    assert issue["assignees"] == ["bob", "ada"]

    declare(cli_runner, path="acme/lib")
    assert run(cli_runner) == "Issue drift updated: acme/web#1\n"
    (issue,) = issues(cli_runner)
    assert "# New since" not in issue["description"]
    assert issue["assignees"] == ["bob", "ada"]
    asked(cli_runner)

    declare(cli_runner)
    assert run(cli_runner) == "Issue drift closed: acme/web#1\n"
    assert asked(cli_runner) == [*FOUND, f"PUT {ISSUES}/1"]
    (issue,) = issues(cli_runner)
    told = issue["description"].splitlines()
    assert (issue["state"], told[0], told[4]) == ("closed", MARKER, "---")
    assert told[2].startswith("**In order since 20")
    assert "reconciler seen" not in issue["description"]
    assert run(cli_runner) == "Issue drift not needed: acme/web\n"
    assert asked(cli_runner) == FOUND

    declare(cli_runner, "2")
    assert run(cli_runner) == "Issue drift reopened: acme/web#1\n"
    (issue,) = issues(cli_runner)
    assert (issue["state"], "In order since" in issue["description"]) == ("opened", False)
    assert run(cli_runner) == "Issue drift unchanged: acme/web#1\n"


@pytest.mark.untraced
def test_problems_open_an_issue_too_and_the_job_is_named(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example.com/-/jobs/7")
    monkeypatch.setenv("CI_PROJECT_ID", "102")
    state = cli_runner.sandbox.state()
    state["projects"][0]["issues_enabled"] = state["projects"][0]["merge_requests_enabled"] = False
    cli_runner.sandbox.replace_state(state)
    declare(cli_runner, "1")
    done = cli_runner("issue drift.json --name nightly")
    assert (done.code, done.out) == (0, "Issue nightly opened: 102#1\n")
    (issue,) = issues(cli_runner)
    assert issue["title"] == "Settings differ from the manifests: nightly"
    assert issue["description"].startswith("<!-- reconciler issue: nightly -->\n")
    assert " by https://gitlab.example.com/-/jobs/7. reconciler updates" in issue["description"]
    assert cli_runner("issue drift.json").out == "Issue drift opened: 102#2\n"


def test_only_own_issues_count_and_duplicates_are_closed(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    mine = {"author": "ada", "title": "x", "description": f"{MARKER}\n\nold"}
    others = [
        {"author": "bob", "title": "x", "description": MARKER},
        {"author": "ada", "title": "x", "description": f"> {MARKER}"},
        {"author": "ada", "title": "x"},
    ]
    state["projects"][2]["issues"] = [*others, mine, {**mine, "state": "closed"}, mine]
    cli_runner.sandbox.replace_state(state)
    assert run(cli_runner) == "Issue drift updated: acme/web#4\n"
    found = issues(cli_runner)
    assert [each["state"] for each in found] == ["opened", "opened", "opened", "opened", "closed", "closed"]
    assert found[5]["description"] == f"{MARKER}\n\nThis issue is a duplicate of #4."
    assert [each["description"] for each in found[:3]] == [each.get("description") for each in others]
    declare(cli_runner)
    assert run(cli_runner) == "Issue drift closed: acme/web#4\n"
    assert [each["state"] for each in issues(cli_runner)] == ["opened"] * 3 + ["closed"] * 3


@pytest.mark.untraced
@pytest.mark.parametrize("fault", ["reset-after", "not-json"])
def test_an_issue_whose_answer_is_lost_is_looked_for_before_it_is_opened_again(
    cli_runner: CliRunner, fault: str
) -> None:
    cli_runner.sandbox.set_faults([f"{fault},method=POST"])
    assert run(cli_runner) == "Issue drift unchanged: acme/web#1\n"
    assert len(issues(cli_runner)) == 1


def test_a_refusal_is_told_with_advice_and_is_no_failure(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = "set RECONCILER_NOTE_TOKEN to a token with the scope api that may open issues there"
    state = cli_runner.sandbox.state()
    state["projects"][2]["archived"] = True
    cli_runner.sandbox.replace_state(state)
    path = "projects/acme%2Fweb/issues"
    for strict, code in (("", 0), ("--strict", 1)):
        done = cli_runner(f"issue drift.json --project acme/web {strict}")
        assert (done.code, done.out) == (code, "")
        assert done.err == f"No issue kept: POST {path}: 403 Forbidden; the token may not open issues there: {how}\n"
    done = cli_runner("issue drift.json --project acme/none")
    assert done.err.endswith(f"; there is no such project, or the token may not see it: {how}\n")
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "glcbt-x")
    done = cli_runner("issue drift.json --project acme/web")
    assert done.err.endswith(f"; the token is not valid there (CI job tokens may not open issues): {how}\n")


@pytest.mark.untraced
def test_what_is_no_report_of_drift_is_an_error(cli_runner: CliRunner) -> None:
    cli_runner.write("odd.json", "{}")
    cli_runner("apply --yes --report json=report.json")
    cli_runner.sandbox.clear_log()
    write = "plan --out FILE and drift --report json=FILE write one"
    for file, said in {
        "odd.json": f"odd.json: not a saved plan: it does not say that its format is reconciler.plan/v4; {write}",
        "none.json": "none.json: No such file or directory; check the path",
        "report.json": f"report.json: not a saved plan but an apply report: its format is reconciler.report/v4; {write}",
    }.items():
        done = cli_runner(f"issue {file} --project acme/web")
        assert (done.code, done.err) == (1, f"reconciler: {said}\n")
    assert asked(cli_runner) == []
    assert cli_runner("issue drift.json").code == 64


def test_a_shard_that_is_in_order_does_not_close_the_issue_about_all(cli_runner: CliRunner) -> None:
    run(cli_runner)
    cli_runner("drift --shard 1/1 --report json=drift.json")
    assert run(cli_runner) == "Issue drift unchanged: acme/web#1\n"
    asked(cli_runner)
    codes = [cli_runner(f"drift --shard {number}/2 --report json=drift-{number}.json").code for number in (1, 2)]
    asked(cli_runner)
    in_order = codes.index(0) + 1
    done = cli_runner(f"issue drift-{in_order}.json --project acme/web")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"reconciler: drift-{in_order}.json: shard {in_order}/2 of a run knows nothing of the other shards: put all of "
        "them together with merge FILE... --report json=FILE\n"
    )
    assert (asked(cli_runner), issues(cli_runner)[0]["state"]) == ([], "opened")
    cli_runner("merge drift-1.json drift-2.json --report json=drift.json")
    assert run(cli_runner) == "Issue drift unchanged: acme/web#1\n"


def test_settings_of_issues_are_checked(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "issue: {assignes: {}}\n")
    assert "reconciler.yaml:1:9: unknown key `assignes`; did you mean `assignees`?" in cli_runner("plan").err
    cli_runner.write("reconciler.yaml", "issue: {assignees: {team: {pay: bob}}}\n")
    assert cli_runner("plan").err == "reconciler: reconciler.yaml:1:33: `issue` must be a list: [bob]\n"


def a_drift(marks: dict[str, int], text: str) -> DriftIssue:
    """Return a drift without assignees."""
    return DriftIssue(Memory("T", marks), lambda _before: text, lambda _before: (), title="t", in_order="ok")


@pytest.mark.untraced
def test_a_memory_counts_and_one_that_is_too_long_is_left_out(cli_runner: CliRunner) -> None:
    with connected(cli_runner.sandbox.api_url, token="ada-token") as client:
        assert keep_issue(client, "102", "n", a_drift({"ab": 2, "c": 1}, "x")).result is Result.OPENED
        assert issues(cli_runner)[0]["description"].endswith("x\n\n<!-- reconciler seen T: ab*2 c -->")
        assert keep_issue(client, "102", "n", a_drift({"ab": 2, "c": 1}, "y")).result is Result.UNCHANGED
        assert keep_issue(client, "102", "n", a_drift({"ab": 1, "c": 1}, "y")).result is Result.UPDATED
        many = {f"{number:016x}": 1 for number in range(MAX_TEXT_LENGTH // 16)}
        assert keep_issue(client, "102", "n", a_drift(many, "z")).result is Result.UPDATED
        assert issues(cli_runner)[0]["description"] == "<!-- reconciler issue: n -->\n\nz"


@pytest.mark.untraced
@pytest.mark.parametrize(
    "memory",
    [
        "T: ab*f",
        "T: ab*",
        "T: *2",
        "T: ab*0",
        "T: ab**2",
        f"T: ab*{'9' * 5000}",
        "T: ab  c",
        "T ab",
        "yesterday: ab",
        "",
        "T: ab --> <!-- reconciler seen T",
    ],
)
def test_a_memory_that_somebody_edited_is_none(cli_runner: CliRunner, memory: str) -> None:
    with connected(cli_runner.sandbox.api_url, token="ada-token") as client:
        keep_issue(client, "102", "n", a_drift({"ab": 1}, "x"))
        state = cli_runner.sandbox.state()
        text = state["projects"][2]["issues"][0]["description"].replace("T: ab", memory)
        state["projects"][2]["issues"][0]["description"] = text
        cli_runner.sandbox.replace_state(state)
        assert keep_issue(client, "102", "n", a_drift({"ab": 1}, "x")).result is Result.UPDATED
        assert issues(cli_runner)[0]["description"].endswith("x\n\n<!-- reconciler seen T: ab -->")
        keep_issue(client, "102", "n", a_drift({}, "x"))
        assert issues(cli_runner)[0]["description"].endswith("\n\n---\n\nx")


@pytest.mark.untraced
@pytest.mark.parametrize("made", ["[]", '{"iid": null}'])
def test_an_issue_without_a_number_is_no_answer(made: str) -> None:
    user, answers = answer("200 OK", '{"id": 2}'), [answer("200 OK", "[]", x_next_page=""), answer("201 Created", made)]
    with canned(user, *answers * 3) as server:
        with connected(server.api_url) as client, pytest.raises(BadAnswer) as raised:
            keep_issue(client, "1", "n", a_drift({"a": 1}, "x"))
    assert str(raised.value) == "POST projects/1/issues: unexpected response: the issue has no number"
