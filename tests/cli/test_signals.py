"""Signals at every point: requests in flight are finished, a second signal stops at once, and exit codes are right."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore, Thread, main_thread
from time import sleep

import pytest

from reconciler.cli.exit_codes import signals_handled
from reconciler.cli.sandbox import _run
from tests.canned import answer, answering
from tests.cli_runner import CliRunner

NEVER = None

GO_ON = "To go on, run the same command again: what was done is not done again.\n"


def send(*numbers: int) -> None:
    """Send signals to the thread that runs the command, in the order of their numbers.

    It does not run before all are sent: between a handler and the next call of the system, a signal would end no wait.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    sleep(0)  # a thread that waits for its turn already, such as the sandbox's, would take it between two signals
    try:
        for number in numbers:
            signal.pthread_kill(main_thread().ident or 0, number)
    finally:
        sys.setswitchinterval(before)


def first(*numbers: int) -> Callable[[str], None]:
    """Send signals at the first request, and answer none."""
    left = [numbers]
    return lambda _request: send(*left.pop()) if left else NEVER


@pytest.fixture(autouse=True)
def _manifests(cli_runner: CliRunner) -> None:
    for name in ("api", "lib", "web"):
        cli_runner.project("{milestones: {a: {}}}", f"acme/{name}", f"manifests/{name}.yaml")


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("plan", signal.SIGINT),
        ("drift", signal.SIGHUP),
        ("doctor", signal.SIGTERM),
        ("export --group acme -o out", signal.SIGINT),
        ("apply --yes", signal.SIGHUP),
    ],
)
def test_a_service_that_never_answers_holds_nobody(cli_runner: CliRunner, line: str, number: int) -> None:
    with answering(first(number)) as url:
        done = cli_runner(f"{line} --api-url {url}")
    assert (done.code, done.out, done.err) == (128 + number, "", "\nInterrupted.\n")
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


@pytest.mark.untraced
def test_a_process_ends_though_its_threads_wait_for_ever(cli_runner: CliRunner) -> None:
    del cli_runner
    asked = Semaphore(0)
    with answering(lambda _: asked.release()) as url:
        line = [sys.executable, "-m", "reconciler", "plan", "--api-url", url]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            asked.acquire()
            process.send_signal(signal.SIGINT)
            assert (process.wait(), process.stderr.read()) == (130, "\nInterrupted.\n")


@pytest.mark.untraced
def test_the_first_ctrl_c_finishes_what_is_in_flight_and_reports(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {t1: {}, t2: {}}, milestones: {a: {}}}", "acme/api", "manifests/api.yaml")
    os.mkfifo("gate")
    line = [
        sys.executable,
        "-m",
        "reconciler",
        "apply",
        "--yes",
        "--tokens-command",
        "sh -c 'cat >/dev/null; echo waiting >&2; read x <gate'",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        assert process.stderr.readline() == "Finishing the requests in flight; a second signal stops at once.\n"
        Path("gate").write_text("\n")
        out = process.stdout.read()
        assert (process.wait(), process.stderr.read()) == (130, GO_ON)
    assert '  + milestone "a"                             done\n' in out
    assert '  + trigger token "t1"                        done\n' in out
    assert '  + trigger token "t2"                        skipped: the run ended before this change\n' in out


def serve(request: str) -> bytes | None:
    """Answer as a service without milestones that never responds to one creation."""
    head, _, body = request.partition("\r\n\r\n")
    if head.startswith("GET"):
        return answer("200 OK", "[]", x_next_page="", x_total="0")
    if "lib" in head and json.loads(body)["title"] == "b":
        send(signal.SIGHUP, signal.SIGINT)
        return NEVER
    made = {"id": 1, "description": None, "start_date": None, "due_date": None, "state": "active"}
    return answer("201 Created", json.dumps(made | json.loads(body)))


def test_the_second_signal_stops_at_once_and_all_that_is_known_is_reported(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    with answering(serve) as url:
        done = cli_runner(f"apply --yes --no-verify --concurrency 1 --journal journal --api-url {url}")
    assert (done.code, done.err) == (129, f"Finishing the requests in flight; a second signal stops at once.\n{GO_ON}")
    assert done.out == (
        "project acme/api\n"
        '  + milestone "a"                             done\n'
        "project acme/lib\n"
        '  + milestone "a"                             done\n'
        '  + milestone "b"                             failed: the run was interrupted; the result is unknown\n'
        '  + milestone "c"                             skipped: the run ended before this change\n'
        "project acme/web\n"
        '  + milestone "a"                             skipped: the run ended before this change\n'
        "Applied: 2 created, 1 failed, 2 skipped. "
        "9 requests made.\n"
    )
    events = [json.loads(each)["event"] for each in Path("journal").read_text().splitlines()]
    assert events == ["begin", "intent", "result", "intent", "result", "intent"]


def test_a_signal_ends_waiting_and_the_report_is_written_before_the_service_answers(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}}}", "acme/lib", "manifests/lib.yaml")
    file, first_reports = Path("report.json"), []

    def serve(request: str) -> bytes:
        head, _, body = request.partition("\r\n\r\n")
        if head.startswith("GET"):
            return answer("200 OK", "[]", x_next_page="", x_total="0")
        send(signal.SIGTERM)
        while not file.exists():
            sleep(0.01)
        first_reports.append(file.read_text())
        made = {"id": 1, "description": None, "start_date": None, "due_date": None, "state": "active"}
        return answer("201 Created", json.dumps(made | json.loads(body)))

    with answering(serve) as url:
        line = "apply --yes --no-verify --concurrency 1 --report json=report.json --report text=/dev/null"
        done = cli_runner(f"{line} --api-url {url}")
    assert (done.code, done.out.count("Applied: ")) == (143, 1)
    [early] = map(json.loads, first_reports)
    assert (early["summary"]["created"], early["summary"]["failed"], early["summary"]["skipped"]) == (0, 1, 3)
    late = json.loads(file.read_text())
    assert (late["summary"]["created"], late["summary"]["failed"], late["summary"]["skipped"]) == (1, 0, 3)


def test_what_a_signal_leaves_unverified_is_done_all_the_same(cli_runner: CliRunner) -> None:
    created: list[str] = []

    def serve(request: str) -> bytes:
        head, _, body = request.partition("\r\n\r\n")
        if head.startswith("GET") and not created:
            return answer("200 OK", "[]", x_next_page="", x_total="0")
        if head.startswith("GET"):
            send(signal.SIGTERM)
            return answer("429 Too Many Requests", "{}", retry_after="200")
        created.append(body)
        made = {"id": 1, "description": None, "start_date": None, "due_date": None, "state": "active"}
        return answer("201 Created", json.dumps(made | json.loads(body)))

    unverified = "done: the run ended before it was read again"
    with answering(serve) as url:
        done = cli_runner(f"apply --yes --concurrency 1 --report json=report.json --api-url {url}")
    assert (done.code, sorted(done.err.splitlines())) == (
        143,
        [
            "1 change is done and not verified, since the run ended before: the next plan shows whether the service kept it",
            "Finishing the requests in flight; a second signal stops at once.",
            "To go on, run the same command again: what was done is not done again.",
            "waiting 200 s: rate limit of the service",
        ],
    )
    skipped = "skipped: the run ended before this change"
    assert done.out.partition(" Waited")[0].rstrip("\n") == (
        f'project acme/api\n  + milestone "a"                             {unverified}\n'
        f'project acme/lib\n  + milestone "a"                             {skipped}\n'
        f'project acme/web\n  + milestone "a"                             {skipped}\n'
        "Applied: 1 created, 2 skipped. "
        "8 requests made."
    )
    assert json.loads(Path("report.json").read_text())["summary"]["created"] == 1

    created.clear()
    with answering(serve) as url:
        done = cli_runner(f"apply --yes --concurrency 1 --target acme/web --api-url {url}")
    assert (done.code, done.out.splitlines()[1]) == (143, f'  + milestone "a"                             {unverified}')


@pytest.fixture
def long_report(cli_runner: CliRunner) -> Path:
    """A pipe, and a manifest with a report longer than its buffer, so that the writer waits for a reader."""
    os.mkfifo("pipe")
    description = "long " * 20000
    cli_runner.project(f'{{milestones: {{a: {{description: "{description}"}}}}}}', "acme/api", "manifests/api.yaml")
    return Path("pipe")


def test_a_signal_after_everything_was_done_changes_nothing(cli_runner: CliRunner, long_report: Path) -> None:
    def read() -> str:
        with long_report.open() as pipe:
            begun = pipe.read(1)
            send(signal.SIGTERM)
            return begun + pipe.read()

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read)
        done = cli_runner("apply --yes --report json=pipe")
    assert (done.code, done.err, json.loads(reading.result())["summary"]["created"]) == (0, "", 3)


def test_a_second_signal_ends_an_output_that_nobody_reads(cli_runner: CliRunner, long_report: Path) -> None:
    def listen() -> int:
        pipe = os.open(long_report, os.O_RDONLY)
        os.read(pipe, 1)
        send(signal.SIGINT, signal.SIGTERM)
        return pipe

    with ThreadPoolExecutor() as pool:
        listening = pool.submit(listen)
        done = cli_runner("apply --yes --report json=pipe")
    os.close(listening.result())
    assert (done.code, done.err) == (143, "\nInterrupted.\n")
    assert done.out.startswith("project acme/api\n")


def test_an_interrupted_command_says_so(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("reconciler.kinds.all_kinds", interrupted)
    done = cli_runner("validate")
    assert (done.code, done.out, done.err) == (130, "", "\nInterrupted.\n")


def test_the_demo_ends_with_the_command_that_was_ended() -> None:
    with answering(first(signal.SIGINT)) as url, pytest.raises(KeyboardInterrupt):
        _run(f"plan --api-url {url}", 0)


def test_signals_that_are_ignored_stay_so_and_other_threads_take_none(cli_runner: CliRunner) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_handled() as signals:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) == signals.handle
    finally:
        signal.signal(signal.SIGHUP, before)
    codes: list[int] = []
    thread = Thread(target=lambda: codes.append(cli_runner("validate").code))
    thread.start()
    thread.join()
    assert codes == [0]
