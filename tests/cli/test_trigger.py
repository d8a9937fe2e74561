"""`apply --trigger`: one pipeline after a complete apply with changes, which never changes the result."""

from typing import Any

import pytest

from tests.cli_runner import CliRunner, Ended

TOKEN = "glptt-0123456789abcdefghij"
PLACE = "--trigger acme/lib@main"


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, dialect: str) -> None:
    """A milestone to create, and a project whose pipelines a token of ada starts."""
    monkeypatch.setenv("RECONCILER_TRIGGER_TOKEN", f" {TOKEN}\n")
    cli_runner.project("{milestones: {a: {}}}")
    state = cli_runner.sandbox.state()
    lib = next(each for each in state["projects"] if each["path"] == "acme/lib")
    lib["trigger_tokens"] = [{"description": "runs", "owner": "ada", "token": TOKEN}]
    cli_runner.sandbox.replace_state({**state, "instance": {**state["instance"], "dialect": dialect}})
    cli_runner.sandbox.clear_log()


def started(cli_runner: CliRunner) -> list[tuple[Any, int]]:
    """Return the body and the status of each request for a pipeline, and forget them."""
    log = [each for each in cli_runner.sandbox.log() if each["target"].endswith("/trigger/pipeline")]
    cli_runner.sandbox.clear_log()
    return [(each["body"], each["status"]) for each in log]


def apply(cli_runner: CliRunner, options: str) -> Ended:
    done = cli_runner(f"apply --yes {options}")
    assert TOKEN not in done.out + done.err
    return done


def test_a_pipeline_is_started_once_after_changes_that_are_all_done(cli_runner: CliRunner) -> None:
    inputs = "--trigger-input stage=production --trigger-input note=a=b"
    done = apply(cli_runner, f"{PLACE} {inputs} --report text=r.txt --report json=reports/r.json")
    page = cli_runner.sandbox.api_url.replace("/api/v4", "/acme/lib/-/pipelines/1")
    assert (done.code, done.err) == (0, f"A pipeline was started in acme/lib: {page}\n")
    body = {"ref": "main", "token": "[REDACTED]", "inputs": {"stage": "production", "note": "a=b"}}
    assert started(cli_runner) == [(body | {"variables": {"RECONCILER_REPORT": "reports/r.json"}}, 201)]

    # nothing to do: nothing to tell
    assert (apply(cli_runner, PLACE).code, started(cli_runner)) == (0, [])

    # done in part: neither
    cli_runner.project("{milestones: {b: {}, c: {}}}")
    cli_runner.sandbox.set_faults(["status=403,method=POST,match=milestones,nth=2"])
    assert (apply(cli_runner, PLACE).code, started(cli_runner)) == (3, [])
    cli_runner.sandbox.set_faults([])

    # narrowed, by number, without a report
    assert apply(cli_runner, "--trigger 101@main --target acme/api --quiet").err == ""
    assert started(cli_runner) == [({"ref": "main", "token": "[REDACTED]"}, 201)]


def test_where_nobody_may_set_variables_it_is_started_without(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    for project in state["projects"]:
        project["ci_pipeline_variables_minimum_override_role"] = "no_one_allowed"
    cli_runner.sandbox.replace_state(state)
    cli_runner.sandbox.clear_log()
    done = apply(cli_runner, f"{PLACE} --report json=r.json")
    assert (done.code, done.err.startswith("A pipeline was started in acme/lib: ")) == (0, True)
    assert [status for _, status in started(cli_runner)] == [400, 201]


@pytest.mark.parametrize(
    ("place", "fault", "told"),
    [
        ("acme/lib@gone", "", "no pipeline was started in acme/lib: {}: 400 Reference not found"),
        ("acme/lib@gone --report json=r.json", "", "no pipeline was started in acme/lib: {}: 400 Reference not found"),
        (
            "acme/nothing@main --quiet",
            "",
            "no pipeline was started in acme/nothing: {}: 404 Not Found; there is no such project, it has no branch or tag main, "
            "or RECONCILER_TRIGGER_TOKEN holds no trigger token of it\n",
        ),
        (
            "acme/lib@main --trigger-input stage=mars",
            "status=422,match=pipeline",
            "no pipeline runs in acme/lib: {}: 422 Unprocessable Entity; the service may have left a failed pipeline there\n",
        ),
        (
            "acme/lib@main",
            "reset-before,match=pipeline",
            "it is unknown whether a pipeline was started in acme/lib: {}: ",
        ),
        (
            "acme/lib@main",
            "status=502,match=pipeline",
            "it is unknown whether a pipeline was started in acme/lib: {}: ",
        ),
        ("acme/lib@main", "truncate,match=pipeline", "it is unknown whether a pipeline was started in acme/lib: {}: "),
    ],
)
def test_a_pipeline_that_does_not_start_is_a_warning_and_is_asked_for_once(
    cli_runner: CliRunner, place: str, fault: str, told: str
) -> None:
    cli_runner.sandbox.set_faults([fault] if fault else [])
    done = apply(cli_runner, f"--trigger {place}")
    path = f"projects/{place.partition('@')[0].replace('/', '%2F')}/trigger/pipeline"
    assert done.code == 0
    assert done.err.startswith(told.format(f"POST {path}"))
    assert len(started(cli_runner)) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--trigger acme/lib", "--trigger takes PROJECT@REF, such as acme/deploy@main, not 'acme/lib'"),
        ("--trigger @main", "--trigger takes PROJECT@REF, such as acme/deploy@main, not '@main'"),
        (f"{PLACE} --trigger-input stage", "--trigger-input takes KEY=VALUE, not 'stage'"),
        ("--trigger-input stage=production", "--trigger-input goes with --trigger"),
    ],
)
def test_what_is_written_wrong_is_refused_before_anything_is_requested(
    cli_runner: CliRunner, options: str, told: str
) -> None:
    done = apply(cli_runner, options)
    assert (done.code, done.err) == (64, f"reconciler: {told}\n")
    assert cli_runner.sandbox.log() == []


def test_without_a_token_nothing_is_applied(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECONCILER_TRIGGER_TOKEN")
    done = apply(cli_runner, PLACE)
    assert (done.code, done.err) == (
        64,
        "reconciler: --trigger needs a trigger token of that project; set the environment variable "
        "RECONCILER_TRIGGER_TOKEN\n",
    )
    assert cli_runner.sandbox.log() == []
