"""Exit codes, command by command: one sick project neither stops the others nor hides drift."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli.exit_codes import ExitCode, of_report
from reconciler.document.document import Requests
from reconciler.model.item import Status
from tests.cli_runner import CliRunner
from tests.render.samples import done

SICK = "acme/none"


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}}}")


def sicken(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}}}", SICK, "manifests/sick.yaml")


def codes(cli_runner: CliRunner, *lines: str) -> dict[str, int]:
    return {line: cli_runner(line).code for line in lines}


READS = (
    "plan",
    "plan --allow-problems",
    "plan --detailed-exitcode",
    "plan --detailed-exitcode --allow-problems",
    "drift",
    "drift --allow-problems",
)


@pytest.mark.untraced
def test_the_changes_and_problems_of_a_plan_in_one_number(cli_runner: CliRunner) -> None:
    assert codes(cli_runner, *READS) == dict(zip(READS, (0, 0, 2, 2, 2, 2), strict=True))
    sicken(cli_runner)
    assert codes(cli_runner, *READS) == dict(zip(READS, (3, 0, 2, 2, 2, 2), strict=True))
    cli_runner.service(milestones=[{"title": "a"}])
    assert codes(cli_runner, *READS) == dict(zip(READS, (3, 0, 3, 0, 3, 0), strict=True))
    cli_runner.write("manifests/sick.yaml", "nonsense: true\n")
    assert codes(cli_runner, *READS) == dict.fromkeys(READS, 1)
    assert codes(cli_runner, *(f"{line} --nonsense" for line in READS)) == {f"{line} --nonsense": 64 for line in READS}


@pytest.mark.untraced
def test_a_plan_with_problems_is_saved_shown_merged_and_applied(cli_runner: CliRunner) -> None:
    sicken(cli_runner)
    assert codes(cli_runner, "plan --out plan.json", "show plan.json", "show plan.json --allow-problems") == {
        "plan --out plan.json": 3,
        "show plan.json": 3,
        "show plan.json --allow-problems": 0,
    }
    merged = ("merge plan.json --out whole.json", "merge plan.json --allow-problems")
    assert codes(cli_runner, *merged) == dict(zip(merged, (3, 0), strict=True))
    apply = "apply --plan whole.json --yes --report json=report.json"
    assert cli_runner(apply).code == 3
    assert [each["title"] for each in cli_runner.sandbox.state()["projects"][0]["milestones"]] == ["a"]
    assert json.loads(Path("report.json").read_text())["summary"]["created"] == 1
    lines = ("show report.json", "merge report.json")
    assert codes(cli_runner, *lines) == dict.fromkeys(lines, 3)
    allowed = [f"{line} --allow-problems" for line in (*lines, "apply --yes")]
    assert codes(cli_runner, *allowed) == dict.fromkeys(allowed, 0)


@pytest.mark.untraced
def test_an_apply_is_an_error_only_if_nothing_was_begun(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "method": "POST"}])
    begun = cli_runner("apply --yes --allow-problems")
    assert (begun.code, "1 failed" in begun.out) == (3, True)
    assert cli_runner("apply --yes --max-changes 0").code == 1
    cli_runner.project("{milestones: {a: {due_date: 2026-12-31}}}")
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(milestones=[{"title": "a"}])
    stale = cli_runner("apply --plan plan.json --yes")
    assert (stale.code, "1 stale" in stale.out) == (3, True)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("status", "writes", "signal", "code"),
    [
        (Status.DONE, 4, None, ExitCode.IN_PART),
        (Status.FAILED, 4, None, ExitCode.IN_PART),
        (Status.DROPPED, 4, None, ExitCode.IN_PART),
        (Status.SKIPPED, 4, None, ExitCode.IN_PART),
        (Status.FAILED, 0, None, ExitCode.ERROR),
        (Status.SKIPPED, 0, None, ExitCode.ERROR),
        (Status.STALE, 0, None, ExitCode.IN_PART),
        (Status.SKIPPED, 4, 15, 143),
        (Status.SKIPPED, 0, 1, 129),
        (Status.DONE, 4, 2, ExitCode.IN_PART),
    ],
)
def test_a_report_has_one_exit_code(status: Status, writes: int, signal: int | None, code: int) -> None:
    """The sample's plan has a problem, which makes the code 3 where all changes are done."""
    report = replace(done((status, "why")), requests=Requests(0, writes))
    assert of_report(report, signal=signal) == code
    assert of_report(report, signal=signal, allow_problems=True) == (0 if status is Status.DONE else code)


@pytest.mark.untraced
def test_the_doctor_and_export_tell_a_part_from_nothing(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    sicken(cli_runner)
    part = ("doctor", "export --group acme --section approval_settings -o out")
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")
    assert codes(cli_runner, *part) == dict.fromkeys(part, 3)
    nothing = ("doctor", "export --user --section notification_settings -o out")
    monkeypatch.setenv("RECONCILER_TOKEN", "wrong")
    assert codes(cli_runner, *nothing) == dict.fromkeys(nothing, 1)
    cli_runner.write("manifests/sick.yaml", "nonsense: true\n")
    assert cli_runner("doctor").code == 1
    (cli_runner.folder / "manifests/sick.yaml").unlink()
    monkeypatch.setenv("RECONCILER_TOKEN", "ada-token")
    assert codes(cli_runner, *part) == dict.fromkeys(part, 0)
