"""Results that cannot be written: refused before any request, or reported after the others are written."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.cli import main
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.items import changes_of, note_of
from tests.limits import no_file_longer_than
from tests.states import a_small_service

DONE = 'project acme/api\n  + milestone "a"                             done\nApplied: 1 created. '


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.sandbox.clear_log()


def titles(cli_runner: CliRunner) -> list[str]:
    return [each["title"] for each in cli_runner.sandbox.state()["projects"][0]["milestones"]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "apply --yes --report terraform-report=F",
            "terraform-report is a format of plan and drift, not of apply and revert",
        ),
        ("apply --yes --report json=F --report xml=F", "no format xml; there are codequality, fleet, html, "),
        (
            "apply --yes --format codequality",
            "codequality is a format of plan and drift, validate, not of apply and revert",
        ),
        (
            "apply --yes --report codequality=F",
            "codequality is a format of plan and drift, validate, not of apply and revert",
        ),
        (
            "doctor --report html=F",
            "html is a format of plan and drift, apply and revert, not of doctor, which has json, text",
        ),
        (
            "validate --format html",
            "html is a format of plan and drift, apply and revert, not of validate, which has codequality, ",
        ),
        ("apply --yes --tokens-to F --report json=F", "--tokens-to and --report json name the same file: F"),
        ("apply --yes --journal F --tokens-to ./F", "--journal and --tokens-to name the same file: F"),
        ("apply --yes --plan here --report json=F", "--plan and --report json name the same file: F"),
        ("plan --out F --report html=link", "--out and --report html name the same file: link"),
        ("plan --report html=new/F --report json=x/../new/F", "--report html and --report json name the same file: "),
        ("plan --token-file token --out token", "--token-file and --out name the same file: token"),
        ("merge here --out F", "--out and FILE name the same file: here"),
        ("apply --yes --report json=manifests/new.yaml", "PATHS and --report json name the same file: manifests/new."),
        ("plan F --out link", "PATHS and --out name the same file: link"),
        ("plan --values F --report text=F", "--values and --report text name the same file: F"),
        ("plan --report json= manifests", "--report json: . is a folder; name a file in it"),
        ("apply --yes --report html=manifests", "--report html: manifests is a folder; name a file in it"),
        ("drift --report json=./reconciler.yaml", "reconciler.yaml and --report json name the same file: "),
    ],
)
def test_what_cannot_come_out_well_is_refused_before_anything_is_requested(
    cli_runner: CliRunner, line: str, said: str
) -> None:
    cli_runner.write("F", "as it was")
    cli_runner.write("token", "ada-token\n").chmod(0o600)
    Path("here").hardlink_to("F")
    Path("link").symlink_to("F")
    done = cli_runner(line)
    assert (done.code, done.out) == (64, "")
    assert done.err.startswith(f"reconciler: {said}")
    assert cli_runner.sandbox.log() == []
    assert (Path("F").read_text(), Path("token").read_text(), Path("new").exists()) == (
        "as it was",
        "ada-token\n",
        False,
    )


def test_the_working_directory_holds_manifests_beside_the_configuration(cli_runner: CliRunner) -> None:
    for configuration in ("", "paths: .\n"):
        cli_runner.write("reconciler.yaml", configuration)
        for line in ("validate .", "validate", "plan ."):
            done = cli_runner(line)
            assert (done.code, done.err) == (0, "")
    refused = cli_runner("plan . --out reconciler.yaml")
    assert (refused.code, refused.err) == (64, "reconciler: PATHS and --out name the same file: reconciler.yaml\n")


def test_a_saved_plan_is_no_manifest(cli_runner: CliRunner) -> None:
    cli_runner("plan --out plan.json")
    done = cli_runner("apply plan.json --yes")
    said = "reconciler: plan.json: is a plan or a report, not a manifest; --plan takes a saved plan\n"
    assert (done.code, done.out, done.err) == (1, "", said)


def test_what_is_shown_is_not_overwritten(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    assert cli_runner("apply --yes --report json=report.json").code == 0
    for file in ("plan.json", "report.json"):
        assert cli_runner(f"show {file} --report text={file}").err == (
            f"reconciler: FILE and --report text name the same file: {file}\n"
        )
        assert cli_runner(f"show {file} --report text=/dev/null --report json=/dev/null").code == 0
    assert cli_runner("show report.json --format codequality").code == 64


@pytest.mark.untraced
def test_all_that_can_be_written_is_and_the_failures_are_told_last(cli_runner: CliRunner) -> None:
    cli_runner.write("file", "")
    more = "--report json=file/below --report html=new/report.html --report text=/dev/full"
    failed = "reconciler: file/below: File exists\n/dev/full: No space left on device\n"
    planned = cli_runner(f"plan {more} --out new/plan.json")
    assert (planned.code, planned.err) == (1, failed)
    assert planned.changes.startswith('project acme/api\n  + milestone "a"\nPlan: ')
    assert sorted(each.name for each in Path("new").iterdir()) == ["plan.json", "report.html"]
    done = cli_runner(f"apply --yes {more}")
    assert (done.code, done.err) == (3, failed)
    assert done.out.startswith(DONE)
    assert titles(cli_runner) == ["a"]
    nothing_left = cli_runner(f"apply --yes {more}")
    assert (nothing_left.code, nothing_left.err) == (1, failed)


@contextmanager
def standard_output(stream: io.TextIOWrapper | None) -> Iterator[None]:
    before = sys.stdout
    sys.stdout = stream  # None, if it was closed before the start
    try:
        yield
    finally:
        sys.stdout = before


def test_where_stdout_takes_nothing_stderr_takes_what_was_done(cli_runner: CliRunner) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 - it cannot be closed without an error
    with standard_output(full):
        planned = cli_runner("plan --out plan.json")
        done = cli_runner("apply --yes --plan plan.json --report json=report.json")
    with pytest.raises(OSError, match="No space left"):
        full.close()
    assert (planned.code, planned.err) == (1, "reconciler: standard output: No space left on device\n")
    assert done.code == 3
    assert done.err.startswith(DONE)
    assert done.err.endswith("\nreconciler: standard output: No space left on device\n")
    assert json.loads(Path("report.json").read_text())["summary"]["created"] == 1


def test_a_result_for_a_closed_stdout_is_an_error(cli_runner: CliRunner) -> None:
    with standard_output(None):
        planned = cli_runner("plan")
    assert (planned.code, planned.err) == (1, "reconciler: standard output is closed\n")


def in_a_process(line: str, shell: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a shell does, with streams of its own; `$@` is the command."""
    command = [sys.executable, "-m", "reconciler", *line.split()]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        ["sh", "-c", shell, "sh", *command], capture_output=True, env=environment, encoding="latin-1", check=False
    )


@pytest.mark.untraced
@pytest.mark.usefixtures("cli_runner")
def test_standard_streams_that_are_full_or_closed() -> None:
    full = in_a_process("apply --yes", '"$@" >/dev/full')
    assert (full.returncode, full.stderr.startswith(DONE)) == (3, True)
    closed = in_a_process("plan", '"$@" >&-')
    assert (closed.returncode, closed.stderr) == (1, "reconciler: standard output is closed\n")
    mute = in_a_process("plan", '"$@" 2>&-')
    assert (mute.returncode, mute.stdout.startswith("No changes: 1 target is in order. ")) == (0, True)
    silent = in_a_process("plan", '"$@" >/dev/full 2>/dev/full; echo $?; "$@" --nonsense 2>/dev/full')
    assert (silent.returncode, silent.stdout) == (64, "1\n")


@pytest.mark.untraced
def test_other_streams_of_a_process(cli_runner: CliRunner) -> None:
    """All of them closed, those of texts full, and those of an encoding that lacks letters."""
    unheard = in_a_process("apply --report text=report.txt", '"$@" <&- >&- 2>&-; echo $?; CI=1 "$@" --yes 2>&-')
    code, _, shown = unheard.stdout.partition("\n")
    assert (code, unheard.returncode, shown) == ("64", 0, Path("report.txt").read_text())
    cli_runner.service()
    texts = in_a_process("", 'for words in --help --version "plan -h"; do "$@" $words >/dev/full; echo $?; done')
    assert (texts.stdout, texts.stderr) == ("1\n" * 3, "reconciler: standard output: No space left on device\n" * 3)
    cli_runner.project('{milestones: {"年末": {}}}')
    done = in_a_process("apply --yes --report text=report.txt", '"$@"')
    assert (done.returncode, done.stderr) == (0, "")
    assert '  + milestone "\\u5e74\\u672b"' in done.stdout
    assert '  + milestone "年末"' in Path("report.txt").read_text()
    out = in_a_process("plan --report json=/dev/stdout --quiet", '"$@" | cat; "$@" > file; "$@" --out /dev/stderr')
    assert '"format": "reconciler.plan/' in out.stdout.partition("No changes: ")[2]
    assert '"format": "reconciler.plan/' in Path("file").read_text().partition("No changes: ")[2]
    assert '"format": "reconciler.plan/' in out.stderr
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.untraced
def test_reports_link_to_what_the_job_or_the_configuration_tells(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    state = a_small_service(dialect)
    state["projects"][0]["milestones"] = [{"id": 70, "title": "a"}]
    cli_runner.sandbox.replace_state(state)
    repository(cli_runner.folder)
    cli_runner.project("{milestones: {a: null, b: {}}}")
    assert "](" not in cli_runner("plan --format markdown").out
    cli_runner.write(
        "reconciler.yaml", "web_url: https://web.example.com\nrepository_url: https://web.example.com/acme/fleet\n"
    )
    monkeypatch.setenv("CI_COMMIT_SHA", "ab" * 20)
    done = cli_runner("plan --format markdown --out plan.json")
    project = "[`project acme/api`](https://web.example.com/acme/api)"
    assert f"\n\n{project}\n\n```diff\n" in done.out
    planned = changes_of(json.loads(Path("plan.json").read_text()))
    assert [note_of(each, "page") for each in planned] == [{}, {"page": "-/milestones/1"}]
    cli_runner.project("{milestones: {a: {}}, trigger_tokens: {a: {}}}")
    state["projects"][0]["builds_enabled"] = False
    cli_runner.sandbox.replace_state(state)
    line = f"https://web.example.com/acme/fleet/-/blob/{'ab' * 20}/manifests/project.yaml#L4"
    assert f"([`manifests/project.yaml:4`]({line}))\n" in cli_runner("plan --format markdown").out


def test_a_disk_that_is_full_in_mid_run_loses_no_outcome(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}}")
    with no_file_longer_than(1100):
        done = cli_runner("apply --yes --journal journal --report json=report.json")
    created = titles(cli_runner)
    assert 0 < len(created) < 6
    assert done.code == 3
    assert done.out.count("  done\n") == len(created)
    assert f"Applied: {len(created)} created, " in done.out
    assert done.err == (
        "reconciler: journal: File too large; the journal is incomplete, and the next run with it confirms the rest\n"
        "reconciler: report.json: File too large\n"
    )


def test_the_end_of_main_is_the_end_of_the_process(cli_runner: CliRunner) -> None:
    del cli_runner
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    with standard_output(latin), pytest.raises(SystemExit) as ended:
        main(["completion", "bash"])
    assert (ended.value.code, latin.errors) == (0, "backslashreplace")


def test_at_the_end_of_main_what_no_stream_takes_is_discarded(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cli_runner
    monkeypatch.setattr(sys, "stderr", None)
    with Path("/dev/full").open("w") as full:
        with standard_output(full), pytest.raises(SystemExit) as ended:
            main(["completion", "bash"])
        print("discarded too", file=full, flush=True)
    with sys.stderr as opened:
        assert (ended.value.code, opened.name) == (1, os.devnull)
