"""Progress: its text, when it is shown, and that a terminal is left clean."""

import logging
import os
import pty
import sys
import threading
from collections.abc import Iterator

import pytest

from reconciler.cli import progress as module
from reconciler.cli.logs import ToStderr
from reconciler.cli.options import OutputOptions
from reconciler.cli.progress import every, sentence, shown
from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.engine.plan import draw_plan
from reconciler.model.progress import Progress
from reconciler.model.targets import Level, Target
from reconciler.service import Traffic
from reconciler.service.traffic import Wait
from tests.building import API, KINDS, desired, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver
from tests.service.clock import SwiftClock

WEB = Target(Level.PROJECT, "acme/web")

PATIENCE = 20
"""Seconds to wait before a test fails."""


class Watched:
    """Progress that the test controls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.traffic = Traffic()
        self.progress = Progress(lambda: self.traffic.requests, lambda: self.seconds)

    def ask(self, times: int) -> None:
        for _ in range(times):
            self.traffic.count("GET", again=False)

    def says(self) -> str:
        return sentence(self.progress, self.traffic)


def test_what_is_not_known_yet_is_not_said() -> None:
    run = Watched()
    run.progress.begin("reading manifests")
    assert run.says() == "reading manifests"
    run.progress.begin("reading", [API])
    assert run.says() == "reading: 0 of 1 target"
    run.ask(1)
    assert run.says() == "reading: 0 of 1 target, 1 request"


def test_a_target_is_done_after_its_last_step() -> None:
    run = Watched()
    run.progress.begin("reading", [API, API, WEB])
    run.progress.step(API)
    assert run.says() == "reading: 0 of 2 targets"
    run.progress.step(WEB)
    run.progress.step(API)
    assert run.says() == "reading: 2 of 2 targets"


def test_the_time_left_and_the_rate_are_those_of_the_stage() -> None:
    run = Watched()
    run.ask(2_000)
    run.seconds = 100
    run.progress.begin("applying", [Target(Level.PROJECT, number) for number in range(1, 1_801)], 4_000)
    run.ask(50)
    run.seconds += 5
    assert run.says() == "applying: 0 of 1,800 targets, 0 of 4,000 changes, 2,050 requests, 10/s"
    run.progress.step(Target(Level.PROJECT, 1), change_count=3)
    assert run.says() == "applying: 1 of 1,800 targets, 3 of 4,000 changes, 2,050 requests, 10/s, 2 h 29 min left"
    for number in range(2, 101):
        run.progress.step(Target(Level.PROJECT, number))
    assert run.says() == "applying: 100 of 1,800 targets, 3 of 4,000 changes, 2,050 requests, 10/s, 1 min 25 s left"
    for number in range(101, 1_701):
        run.progress.step(Target(Level.PROJECT, number))
    assert run.says() == "applying: 1,700 of 1,800 targets, 3 of 4,000 changes, 2,050 requests, 10/s, 0 s left"


def test_what_is_waited_for_is_said() -> None:
    run = Watched()
    run.progress.begin("reading", [API])
    with run.traffic.waiting(Wait.RETRY, SwiftClock()), run.traffic.waiting(Wait.RATE_LIMIT, SwiftClock()):
        said = "reading: 0 of 1 target, waiting: pause before a retry, waiting: rate limit of the service"
        assert run.says() == said
    assert run.says() == "reading: 0 of 1 target"


def test_what_is_repeated_ends_with_its_block() -> None:
    twice = threading.Semaphore(0)
    with every(0.001, twice.release):
        assert twice.acquire(timeout=PATIENCE)
        assert twice.acquire(timeout=PATIENCE)
    assert [thread.name for thread in threading.enumerate() if thread.name == "progress"] == []


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the log of a CI job that reports progress continuously."""
    monkeypatch.setattr(module, "EVERY", 0.001)
    monkeypatch.setenv("CI", "true")
    told: list[str] = []
    handler = ToStderr()
    handler.write = told.append
    log = logging.getLogger("reconciler")
    before, log.handlers = log.handlers, [handler]
    log.setLevel(logging.INFO)
    yield told
    log.handlers = before


def setting(event: threading.Event) -> bool:
    event.set()
    return True


def test_a_job_says_how_far_it_is_one_line_at_a_time(lines: list[str]) -> None:
    run = Watched()
    run.progress.begin("reading", [API])
    came = threading.Event()
    log = logging.getLogger("reconciler")
    log.handlers[0].addFilter(lambda _record: setting(came))
    with shown(run.progress, run.traffic, OutputOptions()):
        assert came.wait(PATIENCE)
    assert set(lines) == {"reading: 0 of 1 target"}


@pytest.mark.parametrize(
    "given", [OutputOptions(quiet=True), OutputOptions(log_format="json")], ids=["quiet", "nobody there"]
)
def test_who_does_not_want_it_sees_nothing(
    given: OutputOptions, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not given.quiet:
        monkeypatch.delenv("CI")
    run = Watched()
    with shown(run.progress, run.traffic, given):
        assert "progress" not in {thread.name for thread in threading.enumerate()}
    assert lines == []


class Terminal:
    """A terminal, and its output."""

    def __init__(self) -> None:
        self.ours, theirs = pty.openpty()
        self.stream = os.fdopen(theirs, "w", encoding="utf-8")
        self.seen = b""

    def wait_for(self, text: str) -> None:
        while text.encode() not in self.seen:
            self.seen += os.read(self.ours, 4096)

    def text(self) -> str:
        """Close it and return the rest."""
        self.stream.close()
        while True:
            try:
                self.seen += os.read(self.ours, 4096)
            except OSError:
                os.close(self.ours)
                return self.seen.decode()


def terminal_for_stderr(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture, as pytest puts its own stderr back between the fixtures and the test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return terminal


def test_a_terminal_shows_one_line_that_moves_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for_stderr(monkeypatch)
    log = logging.getLogger("reconciler")
    monkeypatch.setattr(log, "handlers", [ToStderr()])
    run = Watched()
    run.progress.begin("reading", [API, WEB])
    with shown(run.progress, run.traffic, OutputOptions()):
        terminal.wait_for("reading: 0 of 2 targets")
        run.progress.step(API)
        terminal.wait_for("reading: 1 of 2 targets")
        log.warning("a long warning stays on one line, however narrow the terminal is: %s", "-" * 40)
    log.warning("later")
    seen = terminal.text()
    assert "a long warning stays on one line, however narrow the terminal is: " + "-" * 40 + "\r\n" in seen
    assert seen.endswith("\x1b[2K" + "later\r\n")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_plain_terminal_shows_nothing_that_moves(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for_stderr(monkeypatch)
    monkeypatch.setenv(name, value)
    run = Watched()
    with shown(run.progress, run.traffic, OutputOptions()):
        pass
    assert terminal.text() == ""


def test_a_plan_says_nothing_on_stderr_where_nobody_watches(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {'1.0': {}}}")
    done = cli_runner("plan")
    assert (done.code, done.err) == (0, "")


def test_a_plan_and_an_apply_count_what_they_do(engine: EngineDriver) -> None:
    sections = (section("milestones", {"1.0": {}, "2.0": {}}), section("job_token_scope", {"enabled": True}))
    run = Watched()
    plan = draw_plan(desired(*sections), engine.client, KINDS, progress=run.progress)
    assert run.says() == "reading: 1 of 1 target"
    terms = ApplyOptions(progress=run.progress)
    assert [target.target for target in apply_plan(plan, engine.client, KINDS, terms)] == [API]
    assert run.says() == "applying: 1 of 1 target, 2 of 2 changes"
