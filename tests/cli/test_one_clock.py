"""One clock decides in a run: the service's where anything was asked, whatever the clock of the machine shows."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.checksum import with_checksum
from tests.cli_runner import CliRunner
from tests.states import a_small_service

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
"""The time of the service."""

TODAY, TOMORROW, YESTERDAY = (NOW.date() + timedelta(days=days) for days in (0, 1, -1))


@pytest.fixture(params=[-400, 400], ids=["behind", "ahead"], autouse=True)
def _apart(request: pytest.FixtureRequest, cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service with a milestone and a branch rule; the clock of the machine is more than a year apart."""
    there = NOW + timedelta(days=request.param)
    monkeypatch.setattr("reconciler.system.clock.now", lambda: there)
    state = a_small_service("deployed")
    state["instance"]["now"] = NOW.isoformat()
    state["projects"][0]["milestones"] = [{"title": f"m{number}"} for number in range(12)]
    cli_runner.sandbox.replace_state(state)


def excepted(cli_runner: CliRunner, until: object) -> None:
    """Declare a milestone with an exception until a day."""
    exception = f"{{section: milestones, item: v1, until: {until}, reason: Later}}"
    cli_runner.write(
        "manifests/project.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/api\n"
        f"  exceptions: [{exception}]\nspec: {{milestones: {{v1: {{}}}}}}\n",
    )


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("until", "warning"),
    [
        (YESTERDAY, f"expired on {YESTERDAY}: its differences are changes again; remove it"),
        (TODAY, f"expires on {TODAY}: its differences will be changes afterwards"),
        (
            TODAY + timedelta(days=14),
            f"expires on {TODAY + timedelta(days=14)}: its differences will be changes afterwards",
        ),
        (TODAY + timedelta(days=15), ""),
    ],
)
@pytest.mark.parametrize("command", ["plan", "drift", "apply --yes", "accept --diff"])
def test_an_exception_ends_on_the_service_s_day(
    cli_runner: CliRunner, until: object, warning: str, command: str
) -> None:
    excepted(cli_runner, until)
    told = [f"manifests/project.yaml:5:55: warning: this exception {warning}"] if warning else []
    assert [line for line in cli_runner(command).err.splitlines() if "this exception" in line] == told


@pytest.mark.untraced
@pytest.mark.parametrize(("until", "counts"), [(YESTERDAY, False), (TODAY, True)])
@pytest.mark.parametrize("command", ["plan", "apply --yes"])
def test_a_permission_of_the_repository_ends_on_the_service_s_day(
    cli_runner: CliRunner, until: object, command: str, *, counts: bool
) -> None:
    cli_runner.project("{prune: [milestones], milestones: {}}")
    cli_runner.write("reconciler.yaml", f"allow_deletes: {{count: 12, until: {until}}}\n")
    done = cli_runner(command)
    ended = f"reconciler.yaml: allow_deletes ended on {until} and no longer counts; remove it, or set a later day\n"
    assert done.err.count(ended) == (not counts)
    assert ("it deletes 12 " in done.out + done.err) == (not counts)


def test_documents_are_dated_by_the_service(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {v1: {}}}")
    assert cli_runner("plan --out plan.json").code == 0
    assert json.loads(Path("plan.json").read_text())["created_at"] == "2026-06-15T12:00:00Z"
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --plan plan.json --yes --report json=report.json")
    assert (done.code, done.err) == (0, "")
    assert [each["target"] for each in cli_runner.sandbox.log()][:1] == ["/api/v4/version"]
    report = json.loads(Path("report.json").read_text())
    assert (report["started_at"], report["finished_at"]) == ("2026-06-15T12:00:00Z", "2026-06-15T12:00:01Z")


def redated(file: str, at: datetime) -> None:
    """Let a document be of another time."""
    content: dict[str, Any] = json.loads(Path(file).read_text())
    content.pop("checksum")
    Path(file).write_text(with_checksum(content | {"created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ")}))


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("hours", "refusal"),
    [
        (-25, "the plan was made at 2026-06-14T11:00:00Z, 25 hours ago, and plans older than 24 hours are refused"),
        (1, "the plan was made in the future, at 2026-06-15T13:00:00Z, and it is 2026-06-15T12:00:00Z"),
    ],
)
def test_a_plan_is_as_old_as_the_service_says(cli_runner: CliRunner, hours: int, refusal: str) -> None:
    cli_runner.project("{milestones: {v1: {}}}")
    assert cli_runner("plan --out plan.json").code == 0
    redated("plan.json", NOW + timedelta(hours=hours))
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, refusal in done.err) == (1, True), done.err


@pytest.mark.untraced
def test_the_history_of_a_fleet_page_goes_by_the_service_s_clock(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {v1: {}}}")
    assert cli_runner("drift --report fleet=fleet.html").err == ""
    state = cli_runner.sandbox.state()
    state["instance"]["now"] = (NOW + timedelta(days=1)).isoformat()
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("drift --report fleet=fleet.html").err == ""
    runs = json.loads(Path("fleet.history.json").read_text())["runs"]
    assert [run["at"] for run in runs] == ["2026-06-15T12:00:00Z", "2026-06-16T12:00:00Z"]


def test_a_token_expires_by_the_service_s_clock(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    state["users"][1]["tokens"] = [
        {"token": "ada-token", "name": "ci", "expires_at": f"{NOW.date() + timedelta(days=3)}"}
    ]
    cli_runner.sandbox.replace_state(state)
    assert (
        "  warning  expiry                                    2026-06-18, in 3 days; renew it in time\n"
        in cli_runner("doctor").out
    )


@pytest.mark.untraced
def test_a_canary_is_as_long_as_the_service_says(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {v1: {}}}")
    assert cli_runner("apply --yes --canary acme/api --report json=report.json").code == 0
    canary = json.loads(Path("report.json").read_text())["canary"]
    assert {canary["started_at"][:10], canary["finished_at"][:10]} == {f"{NOW.date()}"}
