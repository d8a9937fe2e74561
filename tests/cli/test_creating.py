"""`apply` of what does not exist yet, as a person runs it."""

import json
from pathlib import Path

import pytest

from tests.cli_runner import BREAK, CliRunner
from tests.items import changes_of, said

SECRET = "ghp_0123456789abcdef"
MANIFEST = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team, labels: {tier: canary}}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/api, labels: {tier: canary}}
create: {import: {github: {repo_id: 42, token_env: GITHUB_TOKEN}}}
spec: {milestones: {"1.0": {}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/web}
spec: {milestones: {"1.0": {}}}
"""


@pytest.fixture(autouse=True)
def _manifests(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner.write("manifests/new.yaml", MANIFEST)
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)


def with_imports(cli_runner: CliRunner, **repository: object) -> None:
    """Enable imports from GitHub, where a repository goes as told."""
    state = cli_runner.sandbox.state()
    imports = {"tokens": [SECRET], "repositories": [{"github": 42, **repository}]}
    state["instance"] |= {"import_sources": ["github"], "imports": imports}
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_no_output_and_no_file_holds_the_token_of_another_service(cli_runner: CliRunner) -> None:
    with_imports(cli_runner, fails=f"no access with {SECRET}")
    planned = cli_runner("plan --out plan.json -v")
    done = cli_runner(
        "apply --plan plan.json --yes -v --journal journal --report json=report.json --report html=r.html"
    )
    assert (planned.code, done.code) == (0, 3)
    reason = "its import failed: no access with [a secret]; delete the project, and apply again"
    assert f"+ project acme/team/api                     failed: {reason}" in done.out
    outputs = [planned.out, planned.err, done.out, done.err]
    files = [Path(name).read_text() for name in ("plan.json", "journal", "report.json", "r.html")]
    assert [text for text in (*outputs, *files) if SECRET in text] == []
    assert [text.count("GITHUB_TOKEN") > 0 for text in files] == [True] * 4


def test_an_apply_whose_import_goes_on_is_done_in_part(cli_runner: CliRunner) -> None:
    with_imports(cli_runner, endless=True)
    cli_runner.write("manifests/new.yaml", MANIFEST.replace('spec: {milestones: {"1.0": {}}}', "", 1))
    done = cli_runner("apply --yes --wait 0s")
    goes_on = (
        "the import of project acme/team/api still runs after 0s; the service goes on with it, and the same command goes "
        "on from there"
    )
    assert (done.code, done.err) == (3, f"Waiting for the import of project acme/team/api, 0s at most\n{goes_on}\n")
    assert "\nApplied: 3 created. 12 requests made.\n" in done.out
    assert cli_runner("apply --yes --wait soon").code == 64


def test_what_an_import_left_out_is_in_every_report(cli_runner: CliRunner) -> None:
    with_imports(cli_runner, left_out={"issue": 2})
    done = cli_runner("apply --yes --report json=report.json --report html=report.html --report markdown=report.md")
    lost = "the import of project acme/team/api has left out issue (2 of 2); compare the project with its source"
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-2] == lost
    assert said(json.loads(Path("report.json").read_text()), "stays") == [lost]
    assert [lost in Path(name).read_text().replace(BREAK, "") for name in ("report.html", "report.md")] == [True, True]


def test_the_canary_is_created_first_and_the_rest_waits_for_its_import(cli_runner: CliRunner) -> None:
    with_imports(cli_runner, fails="too large")
    done = cli_runner("apply --yes --canary tier=canary")
    assert done.code == 3
    assert "skipped: the canary is not in order: project acme/team/api" in done.out
    assert [each["target"] for each in cli_runner.sandbox.log() if each["method"] != "GET"] == [
        "/api/v4/groups",
        "/api/v4/import/github",
    ]


@pytest.mark.untraced
def test_what_failed_is_created_by_the_next_attempt(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    with_imports(cli_runner)
    monkeypatch.delenv("GITHUB_TOKEN")
    done = cli_runner("apply --yes --report json=report.json")
    assert done.code == 3
    assert "failed: the environment variable GITHUB_TOKEN is not set; it must hold the token for the import" in done.out
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    cli_runner.sandbox.clear_log()
    again = cli_runner("apply --yes --retry-failed report.json --report json=report.json")
    assert (again.code, again.err) == (0, "")
    assert [each["target"] for each in cli_runner.sandbox.log() if each["method"] != "GET"] == [
        "/api/v4/import/github",
        "/api/v4/projects/acme%2Fteam%2Fapi/milestones",
    ]
    report = json.loads(Path("report.json").read_text())
    outcomes = [change["outcome"] for change in changes_of(report, "") if change["target"] == "project acme/team/api"]
    assert [(each["status"], each["created"]["id"]) for each in outcomes] == [("done", 104)]


@pytest.mark.untraced
@pytest.mark.parametrize("value", [None, "", " "])
@pytest.mark.parametrize("spec", ["", 'spec: {milestones: {"1.0": {}}}'])
def test_an_import_without_its_token_is_the_problem_of_its_target_alone(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, value: str | None, spec: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", value or "")
    if value is None:
        monkeypatch.delenv("GITHUB_TOKEN")
    cli_runner.write(
        "manifests/new.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/imported}\n"
        f"create: {{import: {{github: {{repo_id: 42, token_env: GITHUB_TOKEN}}}}}}\n{spec}\n",
    )
    unset = "GITHUB_TOKEN is not set or empty, and the import of project acme/imported needs it\n"
    planned = cli_runner("plan --out plan.json")
    assert (planned.code, planned.err) == (0, unset)
    cli_runner.sandbox.clear_log()
    for command in ("apply --yes", "apply --yes --plan plan.json", "apply --yes --canary acme/imported"):
        done = cli_runner(command)
        assert done.code == 3
        assert "failed: the environment variable GITHUB_TOKEN is not set; it must hold the token" in done.out
    assert [each for each in cli_runner.sandbox.log() if each["method"] != "GET"] == []


def test_a_complete_apply_of_creations_starts_a_pipeline(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_imports(cli_runner)
    monkeypatch.setenv("RECONCILER_TRIGGER_TOKEN", "trigger-token")
    done = cli_runner("apply --yes --trigger acme/lib@main")
    assert done.code == 0
    assert "no pipeline was started in acme/lib" in done.err
