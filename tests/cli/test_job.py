"""What commands do by themselves in a job of GitLab CI: `tests/gitops` runs whole pipelines, each command in its process."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.reports.history import FORMAT
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY, repository
from tests.inventory.git_server import GitServer, git_server
from tests.service.test_connection import LOOPBACK

REF = "refs/reconciler/fleet"
FAILED = "**No plan of 1a2b3c4d.** [The job](https://gitlab.example.com/jobs/1) failed; its log says why."
MERGE_REQUEST = {"CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_PROJECT_ID": "900"}
BRANCH = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
PART = {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "2"}


@pytest.fixture
def job(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A job of a project that has a merge request; its variables."""
    state = cli_runner.sandbox.state()
    state["users"] += [
        {"id": 6, "username": "notes", "bot": True, "tokens": ["note-token"]},
        {"id": 7, "username": "reader", "bot": True, "tokens": [{"token": "reader-token", "scopes": ["read_api"]}]},
    ]
    state["groups"][0]["members"].append({"user": "reader", "role": "maintainer"})
    members = [{"user": "notes", "role": "reporter"}]
    state["projects"].append({"id": 900, "path": "acme/settings", "members": members, "merge_requests": [7]})
    cli_runner.sandbox.replace_state(state)
    variables = {
        **NOBODY,
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_API_V4_URL": cli_runner.sandbox.api_url,
        "CI_JOB_NAME": "reconciler-plan",
        "CI_JOB_URL": "https://gitlab.example.com/jobs/1",
        "CI_COMMIT_SHORT_SHA": "1a2b3c4d",
        "CI_PROJECT_ID": "900",
        "RECONCILER_NOTE_TOKEN": "note-token",
    }
    given(monkeypatch, variables)
    cli_runner.project("{milestones: {a: {}}}")
    return monkeypatch


def given(job: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        job.setenv(name, value)


def written() -> list[str]:
    """Return the files of the job's folder."""
    return sorted(path.name for path in Path(".reconciler").iterdir())


def settings_project(cli_runner: CliRunner) -> dict[str, Any]:
    projects: list[dict[str, Any]] = cli_runner.sandbox.state()["projects"]
    return next(each for each in projects if each["path"] == "acme/settings")


def notes(cli_runner: CliRunner) -> list[str]:
    """Return the visible texts of the notes."""
    posted = settings_project(cli_runner).get("merge_request_notes", [])
    return [note["body"].partition("-->\n\n")[2] for note in posted]


def test_the_plan_of_a_merge_request_is_saved_and_posted_and_so_is_that_there_is_none(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    given(job, {**MERGE_REQUEST, "RECONCILER_SINCE": "0" * 40, "RECONCILER_IMAGE": "i:1"})
    done = cli_runner("plan --all")
    assert (done.code, done.err) == (0, "Note reconciler-plan posted: 900!7\n")
    assert written() == ["plan.html", "plan.json", "tfplan.json"]
    assert Path(".reconciler/tfplan.json").read_text() == '{"create": 1, "update": 0, "delete": 0}\n'
    [note] = notes(cli_runner)
    assert note.startswith("## Plan: 1 to create")
    cli_runner.write("reconciler.yaml", "pathes: manifests\n")
    for line in ("plan", "merge .reconciler/plan.json", "plan --nonsense", "merge --nonsense"):
        assert cli_runner(line).code in {1, 64}
        assert notes(cli_runner) == [FAILED]
    job.setenv("CI_COMMIT_SHORT_SHA", "another")
    cli_runner.write("applied.json", '{"format": "reconciler.report/v4"}')
    for line in ("merge applied.json", "merge .reconciler/report-*.json", "merge drift-1.json drift-2.json", "drift"):
        assert (cli_runner(line).code, notes(cli_runner)) == (1, [FAILED])
    job.delenv("RECONCILER_NOTE_TOKEN")
    assert cli_runner("plan").err.splitlines()[-1] == (
        "No note posted: no token (CI job tokens may not comment): set RECONCILER_NOTE_TOKEN to a token with the scope "
        "api that may comment there"
    )


def test_a_merge_request_is_compared_with_its_target_and_other_plans_with_what_was_applied(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    job.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", "base")
    assert "--since base: " in cli_runner("plan").err
    job.setenv("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "target")
    assert "--since target: " in cli_runner("plan").err
    job.setenv("RECONCILER_SINCE", "asked")
    assert "--since asked: " in cli_runner("plan").err
    assert "--since flag: " in cli_runner("plan --since flag").err
    for name in ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "RECONCILER_SINCE"):
        job.delenv(name)
    assert cli_runner("plan").code == 0


@pytest.mark.untraced
def test_a_plan_of_the_default_branch_comes_with_the_pipeline_that_applies_it(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    given(job, {**BRANCH, "RECONCILER_IMAGE": "i:1", "CI_RUNNER_TAGS": '["docker", "linux"]'})
    assert cli_runner("plan --report html=elsewhere.html").code == 0
    assert written() == ["apply.yml", "plan.json", "tfplan.json"]
    pipeline = json.loads(Path(".reconciler/apply.yml").read_text())
    assert pipeline["default"] == {"image": {"name": "i:1", "entrypoint": [""]}, "tags": ["docker", "linux"]}
    apply = pipeline["reconciler-apply"]
    assert (apply["when"], apply["environment"], apply["resource_group"]) == (
        "manual",
        {"name": "reconciler"},
        "reconciler",
    )
    assert cli_runner("apply --plan .reconciler/plan.json --yes").code == 0
    assert [name for name in written() if name not in {"apply.yml", "plan.json", "tfplan.json"}] == [
        "junit.xml",
        "report.html",
        "report.json",
    ]
    given(job, {"RECONCILER_ENVIRONMENT": "production", "CI_RUNNER_TAGS": "docker, linux"})
    assert cli_runner("plan").code == 0
    pipeline = json.loads(Path(".reconciler/apply.yml").read_text())
    apply = pipeline["reconciler-apply"]
    assert pipeline["default"]["tags"] == ["docker", "linux"]
    assert (apply["when"], "environment" in apply, apply["resource_group"]) == ("on_success", False, "production")
    Path(".reconciler/apply.yml").unlink()
    job.delenv("RECONCILER_IMAGE")
    assert cli_runner("plan").code == 0
    assert "apply.yml" not in written()


def test_jobs_side_by_side_write_their_parts_and_later_ones_merge_them(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    cli_runner.project("{milestones: {a: {}}}", "acme/lib", "manifests/lib.yaml")
    given(job, {**MERGE_REQUEST, **BRANCH, "RECONCILER_IMAGE": "i:1", "RECONCILER_APPLY": "auto", "CI_NODE_TOTAL": "2"})
    for number in ("1", "2"):
        job.setenv("CI_NODE_INDEX", number)
        done = cli_runner("plan")
        assert (done.code, done.err) == (
            0,
            "--since applied: this run has no inventory, and plans all targets; an inventory takes a git repository, "
            "and neither --no-inventory nor `inventory: false`\n",
        )
    assert written() == ["plan-1.json", "plan-2.json"]
    assert notes(cli_runner) == []
    job.delenv("CI_NODE_INDEX")
    parts = [".reconciler/plan-1.json", ".reconciler/plan-2.json"]
    assert cli_runner("merge", *parts).code == 0
    assert written() == ["apply.yml", "plan-1.json", "plan-2.json", "plan.html", "plan.json", "tfplan.json"]
    [note] = notes(cli_runner)
    assert note.startswith("## Plan: 2 to create")
    pipeline = json.loads(Path(".reconciler/apply.yml").read_text())
    assert [job for job in pipeline if job.startswith("reconciler-")] == [
        "reconciler-approve",
        "reconciler-apply",
        "reconciler-report",
    ]
    assert (pipeline["reconciler-approve"]["when"], pipeline["reconciler-apply"]["parallel"]) == ("on_success", 2)
    assert "tags" not in pipeline["default"]  # an empty list is refused
    for number in ("1", "2"):
        job.setenv("CI_NODE_INDEX", number)
        assert cli_runner("apply --plan .reconciler/plan.json --yes").code == 0
    job.setenv("CI_NODE_INDEX", "1")
    assert cli_runner("apply --plan .reconciler/plan-1.json --yes").code == 0  # the plan of a part, and done already
    assert cli_runner("validate").code == 0
    assert {"report-1.json", "report-2.json", "codequality.json"} <= set(written())
    assert cli_runner("drift").code == 0
    job.delenv("CI_NODE_INDEX")
    assert cli_runner("merge .reconciler/report-1.json .reconciler/report-2.json").code == 0
    assert {"report.json", "report.html", "junit.xml"} <= set(written())


def test_drift_has_the_last_report_as_its_baseline_and_an_issue_where_it_is_asked_for(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    files = ["drift.html", "drift.json", "junit.xml", "reconciler.prom"]
    given(job, {"RECONCILER_READ_TOKEN": "reader-token", "RECONCILER_TOKEN": "no-token"})
    assert cli_runner("drift").code == 2
    assert written() == files
    assert cli_runner("drift").code == 2
    assert written() == files
    cli_runner.write("reconciler.yaml", "baseline: .reconciler/drift.json\nissue: {}\n")
    done = cli_runner("drift")
    assert (done.code, done.out.splitlines()[0]) == (0, "Nothing new: 1 change as in the baseline.")
    assert done.err == "Issue drift opened: 900#1\n"
    assert written() == ["baseline.json", *files]
    done = cli_runner("merge .reconciler/drift.json --report html=.reconciler/drift.html")
    assert done.err.splitlines()[-1].startswith("reconciler: FILE and --report json name the same file")
    Path(".reconciler/drift.json").replace("drift-1.json")
    done = cli_runner("merge drift-1.json")
    assert (done.code, done.err) == (0, "Issue drift unchanged: 900#1\n")
    job.delenv("RECONCILER_NOTE_TOKEN")
    done = cli_runner("drift")
    assert done.err.splitlines()[-1].startswith("No issue kept: no token (CI job tokens may not open issues): set ")
    job.setenv("RECONCILER_READ_TOKEN", "")
    assert cli_runner("drift").code == 1
    cli_runner.write("token", "ada-token\n").chmod(0o600)
    job.setenv("RECONCILER_READ_TOKEN", "no-token")
    assert cli_runner("drift --token-file token").code == 0
    assert [cli_runner(f"drift --token-file token --shard {part}").err for part in ("1/2", "2/2")] == ["", ""]
    assert cli_runner("drift --token-file token --shard 1/1").err.startswith("No issue kept: ")


def test_what_was_committed_redirects_nothing(cli_runner: CliRunner, job: pytest.MonkeyPatch) -> None:
    cli_runner.write("elsewhere/note", "secret")
    Path(".reconciler").symlink_to("elsewhere")
    assert cli_runner("validate").code == 0
    assert not Path(".reconciler").is_symlink()
    Path(".reconciler/codequality.json").unlink()
    Path(".reconciler/codequality.json").symlink_to("../elsewhere/note")
    Path(".reconciler/plan.json").symlink_to("../elsewhere/note")
    assert cli_runner("validate").code == 0
    assert written() == ["codequality.json"]
    assert Path("elsewhere/note").read_text() == "secret"
    cli_runner.write("other/reconciler.yaml", "")
    Path("other/.reconciler").write_text("a file")
    job.chdir("other")
    done = cli_runner("validate")
    assert (done.code, done.err) == (1, "reconciler: .reconciler: File exists\n")


def test_what_is_committed_below_the_folder_is_in_no_artifact_and_is_no_baseline(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    cli_runner.write("reconciler.yaml", "baseline: .reconciler/drift.json\n")
    assert cli_runner("drift").code == 2
    names = ["apply.yml", "drift-9.json", "more/plan.json", "plan-1.json", "plan-9.json", "plan.json", "report-9.json"]
    for name in names:
        cli_runner.write(f".reconciler/{name}", "{}")
    Path(".reconciler/more/link").symlink_to("..")
    submodule = repository(cli_runner.folder / ".reconciler/module")
    submodule.commit()
    repository(cli_runner.folder).git("add", ".reconciler", "manifests")
    given(job, PART)
    done = cli_runner("plan")
    assert written() == ["module", "more", "plan-2.json"]
    assert [*Path(".reconciler/more").iterdir()] == []
    warned = [line for line in done.err.splitlines() if "is committed" in line and "/module/" not in line]
    assert warned[0] == (
        ".reconciler/apply.yml is committed, and a job takes nothing from there: git rm --cached .reconciler/apply.yml"
    )
    assert len(warned) == 12
    cli_runner.write(".reconciler/plan.json", "{}")
    assert cli_runner("apply --plan .reconciler/plan.json --yes").err.splitlines()[-1] == (
        "reconciler: .reconciler/plan.json: No such file or directory; check the path"
    )
    job.delenv("CI_NODE_INDEX")
    cli_runner.write(".reconciler/drift.json", "{}")
    done = cli_runner("drift")
    first = "no earlier run of this job has left a report of drift; without a baseline everything is new"
    assert (done.code, first in done.err, "baseline.json" in done.err) == (2, True, False)
    assert cli_runner("drift").code == 2  # the index still has the name, as in the next checkout
    Path(".git/index").write_text("nonsense")  # git cannot tell what is committed
    cli_runner.write(".reconciler/report.json", "stale")
    assert cli_runner("apply --plan nothing --yes").code == 1
    assert "report.json" not in written()


@pytest.mark.untraced
def test_who_starts_a_job_is_told_the_variable_that_permits_deletions(
    cli_runner: CliRunner, job: pytest.MonkeyPatch
) -> None:
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"] = [{"title": f"m{number}"} for number in range(21)]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{prune: [milestones], milestones: {}}")
    remedy = "it deletes 21 of 21 entries of milestones of project acme/api; "
    job.delenv("CI")
    assert f"{remedy}add --allow-deletes 21\n" in cli_runner("apply --yes").err
    job.setenv("CI", "true")
    given(job, MERGE_REQUEST)
    remedy += "start the apply job with the variable RECONCILER_ALLOW_DELETES=21"
    told = cli_runner("apply --yes").err
    assert told.count(f"{remedy}\n") == 2
    assert f"apply will refuse this plan: {remedy}\n" in cli_runner("plan --out part.json").out
    assert f"apply will refuse this plan: {remedy}\n" in cli_runner("merge part.json").out
    job.setenv("RECONCILER_ALLOW_DELETES", "20")
    more = remedy.replace(
        "of 21 entries of milestones of project acme/api", "objects, more than RECONCILER_ALLOW_DELETES=20"
    )
    assert f"apply may delete up to 20 objects: RECONCILER_ALLOW_DELETES=20\napply will refuse this plan: {more}\n" in (
        cli_runner("plan --report codequality=quality.json --report junit=junit.xml").out
    )
    job.setenv("RECONCILER_ALLOW_DELETES", "21")
    assert "apply may delete up to 21 objects: RECONCILER_ALLOW_DELETES=21\n" in cli_runner("plan").out
    reports = [path.read_text() for path in (*Path(".reconciler").iterdir(), Path("quality.json"), Path("junit.xml"))]
    assert not any("--allow-deletes" in text for text in (told, *notes(cli_runner), *reports))
    assert cli_runner("apply --yes").code == 0


def test_outside_of_a_job_a_command_does_what_its_line_says(cli_runner: CliRunner, job: pytest.MonkeyPatch) -> None:
    job.delenv("CI")
    given(job, {**MERGE_REQUEST, **PART, "RECONCILER_SINCE": "nothing"})
    cli_runner.write("reconciler.yaml", "issue: {}\n")
    assert cli_runner("plan --shard 1/1 --out plan.json").code == 0
    assert cli_runner("drift --shard 1/1 --report fleet=page.html").code == 2
    assert cli_runner("validate").code == 0
    assert cli_runner("apply --plan plan.json --yes").code == 0
    assert not Path(".reconciler").exists()
    assert notes(cli_runner) == []


@pytest.fixture
def server(tmp_path: Path, job: pytest.MonkeyPatch) -> Any:
    """A git server that the job's project is on."""
    with git_server(tmp_path / "served") as server:
        server.tokens = {"glcbt-job-token"}
        job.setenv("CI_SERVER_URL", server.url)
        job.setenv("CI_PROJECT_PATH", "acme/settings")
        job.setenv("CI_JOB_TOKEN", "glcbt-job-token")
        job.setenv("CI_SERVER_TLS_CA_FILE", str(LOOPBACK))
        yield server


def kept(server: GitServer, name: str = "index.history.json") -> int:
    """Return the number of runs that a history at the ref knows."""
    history = json.loads(server.git("show", f"{REF}:{name}"))
    assert history["format"] == FORMAT
    return len(history["runs"])


def test_the_history_of_a_fleet_page_is_kept_in_a_ref(
    cli_runner: CliRunner, job: pytest.MonkeyPatch, server: GitServer
) -> None:
    page = "--report fleet=public/index.html"
    done = cli_runner(f"drift {page}")
    assert (done.code, done.err) == (2, f"There is no history at {REF}, so this page begins one.\n")
    assert kept(server) == 1
    Path("public/index.history.json").unlink()
    assert (cli_runner(f"show .reconciler/drift.json {page}").err, kept(server)) == ("", 1)
    done = cli_runner(f"plan {page}")
    assert kept(server) == 1  # the history is here already, and somebody else's to keep
    Path("public/index.history.json").unlink()
    Path("public/link").symlink_to("/")
    assert cli_runner("show .reconciler/plan.json --report fleet=public/other.html").err != ""
    assert not Path("public/link").is_symlink()
    Path("public/link").symlink_to("elsewhere")
    absolute = cli_runner.folder / "public/other.html"  # such a folder is not of the checkout, and stays as it is
    assert cli_runner(f"show .reconciler/plan.json --report fleet={absolute}").code == 0
    assert Path("public/link").is_symlink()
    assert (kept(server), kept(server, "other.history.json")) == (1, 1)
    assert server.git("rev-list", "--count", REF) == "1"

    Path("public/other.history.json").unlink()
    server.readers.add("glcbt-job-token")
    done = cli_runner(f"drift --quiet {page}")
    assert done.err.startswith(
        "the history could not be kept, so the next page does not know this run: with CI_JOB_TOKEN"
    )
    Path("public/index.history.json").unlink()
    server.tokens.clear()
    done = cli_runner(f"drift {page}")
    assert done.code == 1
    assert done.err.startswith(f"reconciler: the history at {REF} cannot be fetched: with CI_JOB_TOKEN: ")
    job.setenv("CI_SERVER_URL", "http://gitlab.example.com")
    done = cli_runner(f"drift {page}")
    assert done.code == 2
    assert done.err.startswith("no history is kept: ")
