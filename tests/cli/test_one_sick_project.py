"""One project that cannot be read or written neither stops the others nor hides their drift."""

from pathlib import Path

import pytest

from tests.cli_runner import CliRunner

SICK = pytest.mark.parametrize(
    ("sickness", "reason"),
    [
        ("status=501", "501 Not Implemented"),
        ("status=403", "403 Forbidden"),
        ("html,status=200", "the response is not JSON (200, text/html)"),
    ],
)


@pytest.fixture(autouse=True)
def _manifests(cli_runner: CliRunner) -> None:
    """Manifests of three projects: one that will fail, one with drift, and one in order."""
    cli_runner.project("{milestones: {v1: {}}}", "acme/api", "manifests/api.yaml")
    cli_runner.project("{milestones: {v1: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.project("{milestones: {}}", "acme/web", "manifests/web.yaml")


def titles(cli_runner: CliRunner) -> list[list[str]]:
    """Return the titles of each project's milestones."""
    return [[each["title"] for each in project["milestones"]] for project in cli_runner.sandbox.state()["projects"][:3]]


@pytest.mark.untraced
@SICK
def test_what_differs_is_planned_applied_and_seen_beside_a_sick_project(
    cli_runner: CliRunner, sickness: str, reason: str
) -> None:
    cli_runner.sandbox.set_faults([f"{sickness},match=acme%2Fapi"])
    planned = cli_runner("plan")
    problem, change = "  ! milestones: cannot be read", 'project acme/lib\n  + milestone "v1"\n'
    assert (planned.code, problem in planned.out, reason in planned.out, change in planned.changes) == (
        3,
        True,
        True,
        True,
    )
    assert [cli_runner(line).code for line in ("plan --detailed-exitcode", "drift", "plan --allow-problems")] == [
        2,
        2,
        0,
    ]
    assert cli_runner("plan --out plan.json").code == 3
    applied = cli_runner("apply --plan plan.json --yes")
    assert (applied.code, problem in applied.out, f"{change.rstrip()}  " in applied.out) == (3, True, True)
    assert titles(cli_runner) == [[], ["v1"], []]
    assert [cli_runner(line).code for line in ("drift", "plan --detailed-exitcode", "apply --yes")] == [3, 3, 3]
    cli_runner.sandbox.set_faults([])
    assert cli_runner("drift").changes.startswith('project acme/api\n  + milestone "v1"\nPlan: 1 to create')
    assert (cli_runner("apply --yes").code, titles(cli_runner)) == (0, [["v1"], ["v1"], []])


@pytest.mark.untraced
@SICK
def test_a_project_that_turns_sick_after_the_plan_fails_alone(
    cli_runner: CliRunner, sickness: str, reason: str
) -> None:
    cli_runner.sandbox.set_faults([f"{sickness},match=acme%2Fapi,method=POST"])
    applied = cli_runner("apply --yes")
    assert (applied.code, reason in applied.out) == (3, True)
    assert "\nApplied: 1 created, 1 failed. " in applied.out
    assert titles(cli_runner) == [[], ["v1"], []]


@pytest.mark.untraced
@SICK
def test_the_others_are_exported_however_they_are_named(cli_runner: CliRunner, sickness: str, reason: str) -> None:
    cli_runner.sandbox.set_faults([f"{sickness},match=acme%2Fapi"])
    done = cli_runner("export --group acme --section milestones -o all")
    assert (done.code, done.out) == (
        3,
        "all/acme/lib.yaml\nall/acme/tools/cli.yaml\nall/acme/web.yaml\nall/acme.yaml\n",
    )
    assert done.err.startswith(
        f"everything of project acme/api is left out: cannot be read: GET projects/acme%2Fapi/milestones: {reason}"
    )
    done = cli_runner("export --project acme/api --project acme/lib --section milestones -o some")
    assert (done.code, done.out) == (3, "some/acme/lib.yaml\n")
    assert done.err.startswith(f"project acme/api cannot be read and is left out (GET projects/acme%2Fapi: {reason}")
    done = cli_runner("export --project acme/api -o none")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"reconciler: GET projects/acme%2Fapi: {reason}")
    assert not Path("none").exists()


def test_a_token_that_is_refused_ends_the_export_of_all(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["status=401,match=acme%2Fapi"])
    done = cli_runner("export --project acme/api --project acme/lib -o none")
    assert (done.code, done.out, Path("none").exists()) == (1, "", False)
