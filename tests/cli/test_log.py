"""`log`, and `revert` by the log: the applies that are recorded, and those whose report is in this clone."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.memory.apply_log import Apply
from reconciler.memory.clone import clone_of
from reconciler.memory.remotes import Person
from reconciler.memory.store import INVENTORY_BRANCH, Store, open_place
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository
from tests.render.test_html import data_of

ADA = Person("Ada", "ada@example.com")
WHEN = datetime(2026, 12, 1, 10, tzinfo=UTC)
JOB = "https://gitlab.example.com/acme/settings/-/jobs/1"

HOW = """\
`reconciler revert ID` shows the way back from an apply whose report is at hand. For any other apply, download the JSON
report from the artifacts of its job, then: reconciler revert REPORT
"""


class Recorder:
    """Records applies in the repository of a user's folder."""

    def __init__(self, cli_runner: CliRunner) -> None:
        self.cli_runner = cli_runner
        self.git: Repository = repository(cli_runner.folder)
        self.number = 0

    def record(
        self, *, job: str = "", result: int = 0, reverts: str = "", report: str = "", changed: bool = True
    ) -> str:
        """Record an apply and return its ID; keep its report, if there is one."""
        self.number += 1
        when = WHEN.replace(hour=10 + self.number)
        if report:
            when = datetime.fromisoformat(json.loads(report)["finished_at"])
        with open_place(self.git.folder, INVENTORY_BRANCH, None, ADA) as place:
            store = Store(place, self.cli_runner.sandbox.api_url.removesuffix("/api/v4"), ())
            apply = Apply(
                when=when,
                author=ADA.name,
                author_email=ADA.email,
                counts={"created": self.number} if changed else {},
                service=store.service,
                result=result,
                job=job,
                reverts=reverts,
            )
            stored = store.read()
            name = store.write(stored, lambda inventory: replace(inventory, applied=""), apply)
        if report:
            clone_of(self.git.folder).keep_report(name, when, report)
        return name


@pytest.fixture
def recorder(cli_runner: CliRunner) -> Recorder:
    return Recorder(cli_runner)


def applied(cli_runner: CliRunner, name: str) -> str:
    """Create a milestone and return the report."""
    cli_runner.project(f"{{milestones: {{{name}: {{}}}}}}")
    assert cli_runner("apply --yes --no-inventory --report json=applied.json").code == 0
    report = Path("applied.json").read_text()
    Path("applied.json").unlink()
    return report


@pytest.mark.untraced
def test_the_log_shows_the_last_applies(cli_runner: CliRunner, recorder: Recorder) -> None:
    none = cli_runner("log")
    assert (none.code, none.out, none.err) == (0, "No apply is recorded yet.\n", "")
    assert cli_runner("revert").out == none.out
    first, second = recorder.record(job=JOB), recorder.record(result=3)
    shown = cli_runner("log")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (
        "apply    when                  by   changes    manifests\n"
        f"{second[:7]}  2026-12-01 12:00 UTC  Ada  2 created             exit code 3\n"
        f"{first[:7]}  2026-12-01 11:00 UTC  Ada  1 created             {JOB}\n"
    )
    content = json.loads(cli_runner("log -n 1 --format json").out)
    assert [apply["id"] for apply in content["applies"]] == [second]
    assert json.loads(cli_runner("revert --format json").out) == json.loads(cli_runner("log --format json").out)


def test_outside_of_a_repository_no_apply_is_recorded(cli_runner: CliRunner) -> None:
    assert cli_runner("log").out == "No apply is recorded yet.\n"
    assert json.loads(cli_runner("revert --format json").out)["applies"] == []
    assert cli_runner("revert").out == "No apply is recorded yet.\n"
    assert cli_runner("revert abcdef1").err == (
        "reconciler: no recorded apply begins with abcdef1, and there is no such file; see `reconciler log`\n"
    )


def test_a_branch_that_holds_anything_else_is_not_read(cli_runner: CliRunner, recorder: Recorder) -> None:
    recorder.git.commit()
    recorder.git.git("branch", INVENTORY_BRANCH)
    done = cli_runner("log")
    assert (done.code, done.out) == (1, "")
    assert f"the branch {INVENTORY_BRANCH} contains other files than inventory.jsonl" in done.err


def test_the_log_is_that_of_the_branch_in_the_configuration(
    cli_runner: CliRunner, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record()
    cli_runner.write("reconciler.yaml", "inventory: false\n")
    assert cli_runner("log").out == "No apply is recorded yet.\n"
    elsewhere = repository(cli_runner.folder.parent / f"{cli_runner.folder.name}-elsewhere")
    recorder.git.git("remote", "add", "origin", str(elsewhere.folder))
    cli_runner.write("reconciler.yaml", "inventory: {branch: reconciler/staging, remote: origin}\n")
    assert cli_runner("log").out == "No apply is recorded yet.\n"
    elsewhere.git("fetch", "--quiet", str(cli_runner.folder), f"{INVENTORY_BRANCH}:reconciler/staging")
    assert cli_runner("log").out.count("1 created") == 1
    monkeypatch.setenv("CI_SERVER_URL", "http://gitlab.example.com")
    monkeypatch.setenv("CI_PROJECT_PATH", "acme/settings")
    monkeypatch.setenv("GITLAB_CI", "true")
    assert "CI_SERVER_URL is not an https URL" in cli_runner("log").err


def test_an_apply_is_reverted_by_its_id(cli_runner: CliRunner, recorder: Recorder) -> None:
    first = recorder.record(report=applied(cli_runner, "one"))
    elsewhere, unknown = recorder.record(job=JOB), recorder.record()
    listed = cli_runner("revert")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[3].endswith("1 created             report at hand")
    assert listed.out.count("report at hand") == 1
    assert listed.out.endswith(HOW)
    planned = cli_runner(f"revert {first[:7].upper()} --out back.json")
    assert (planned.code, planned.err) == (0, "")
    assert '- milestone "one"' in planned.out
    assert json.loads(Path("back.json").read_text())["reverts"] == first
    missing = cli_runner(f"revert {elsewhere[:8]}")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err == (
        f"reconciler: the report of the apply {elsewhere[:7]} is not in this clone; look for its JSON report among the "
        f"artifacts of {JOB}, then: reconciler revert REPORT\n"
    )
    place = f"in the clone of Ada, at .git/reconciler/reports/20261201T130000-{unknown}.json, then"
    assert place in cli_runner(f"revert {unknown}").err
    cli_runner.write(first[:7], "{}")
    assert cli_runner(f"revert {first[:7]}").changes == planned.changes
    assert f"{first[:7]}: not an apply report" in cli_runner(f"revert ./{first[:7]}").err
    cli_runner.write("abcdef", "{}")
    assert "abcdef: not an apply report" in cli_runner("revert abcdef").err
    twin = clone_of(recorder.git.folder).keep_report(first[:7] + "0" * 33, datetime(2026, 12, 1, 9, tzinfo=UTC), "{}")
    assert cli_runner(f"revert {first[:7]}").err == (
        f"reconciler: 2 recorded applies begin with {first[:7]}; give more of the ID\n"
    )
    twin.unlink()


def test_the_latest_apply_is_reverted_and_an_unfinished_revert_is_finished(
    cli_runner: CliRunner, recorder: Recorder
) -> None:
    assert cli_runner("revert --last").err == (
        "reconciler: no apply to revert is recorded; with its JSON report: reconciler revert REPORT\n"
    )
    first = recorder.record(report=applied(cli_runner, "one"))
    recorder.record(report=applied(cli_runner, "two"))
    assert '- milestone "two"' in cli_runner("revert --last").out
    recorder.record(reverts=first, result=3)
    assert '- milestone "one"' in cli_runner("revert --last").out
    recorder.record(reverts=first)
    assert '- milestone "two"' in cli_runner("revert --last").out
    cli_runner.write("applied.json", applied(cli_runner, "three"))
    recorder.record(reverts="1a" * 20, result=3)
    assert "look for its JSON report where that apply ran, then" in cli_runner("revert --last").err
    recorder.record(reverts="applied.json", result=3)
    done = cli_runner("revert --last --yes")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "reconciler: the last revert is not finished, and was made from a report: give that report again, or the ID of "
        "an apply in `reconciler log`\n",
    )


def test_a_report_that_is_kept_for_another_apply_is_refused(cli_runner: CliRunner, recorder: Recorder) -> None:
    recorder.record(report=applied(cli_runner, "one"))
    (kept,) = clone_of(recorder.git.folder).reports.values()
    other = recorder.record()
    kept.rename(kept.with_name(f"20261201T120000-{other}.json"))
    refused = cli_runner(f"revert {other[:7]} --yes")
    assert (refused.code, refused.out) == (1, "")
    assert f"UTC, and {other[:7]} ended at 2026-12-01 12:00:00 UTC" in refused.err


def test_a_latest_apply_that_changed_nothing_is_named_and_so_is_the_one_before(
    cli_runner: CliRunner, recorder: Recorder
) -> None:
    report = applied(cli_runner, "one")
    cli_runner("apply --yes --no-inventory --report json=applied.json")
    empty = recorder.record(report=Path("applied.json").read_text(), changed=False)
    alone = cli_runner("revert --last")
    assert (alone.code, alone.err) == (0, f"the apply {empty[:7]} changed nothing\n")
    first = recorder.record(report=report)
    second = recorder.record(report=report)
    recorder.record(reverts=second)
    empty = recorder.record(report=Path("applied.json").read_text(), changed=False)
    done = cli_runner("revert --last")
    assert (done.code, done.out.count("milestone")) == (0, 0)
    assert done.err == (
        f"the apply {empty[:7]} changed nothing; the latest that did, and was not reverted: reconciler revert "
        f"{first[:7]}\n"
    )


def test_the_report_of_a_revert_is_finished_by_the_same_command(cli_runner: CliRunner, recorder: Recorder) -> None:
    first = recorder.record(report=applied(cli_runner, "one"))
    cli_runner.sandbox.set_faults(["status=403,method=DELETE,match=/milestones"])
    failed = cli_runner("revert --last --yes --report json=back.json --report html=back.html")
    assert (failed.code, "1 failed" in failed.out) == (3, True)
    refused = cli_runner("apply --yes --retry-failed back.json")
    command = f"reconciler revert {first[:7]} --yes"
    assert (refused.code, refused.out) == (64, "")
    assert refused.err == f"reconciler: back.json is the report of a revert; finish that with: {command}\n"
    page = Path("back.html").read_text()
    assert command in page
    assert (data_of(page)["commands"], data_of(page)["revert"]) == ("wide", ["reconciler", "revert", first[:7]])
    finish = f"This is a revert of the apply {first[:7]}; to finish it: {command}"
    assert f"Revert of the apply {first[:7]}: " in page
    assert finish in failed.out
    assert finish in cli_runner("show back.json --format markdown").out
    cli_runner.sandbox.set_faults([])
    done = cli_runner(command.removeprefix("reconciler "))
    assert (done.code, "Reverted: 1 deleted. " in done.out) == (0, True)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("revert --yes", "nothing to revert: give the report or the ID of an apply, or --last"),
        ("revert abcd --last", "revert takes a report, the ID of an apply, or --last; not two of them"),
        ("revert --format html", "without REPORT or SHA, revert lists the applies, as text or json; not html"),
    ],
)
def test_a_revert_of_nothing_in_particular_is_refused(cli_runner: CliRunner, line: str, error: str) -> None:
    done = cli_runner(line)
    assert (done.code, done.out, done.err) == (64, "", f"reconciler: {error}\n")
