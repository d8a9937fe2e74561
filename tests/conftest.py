"""Fixtures: one sandbox for a whole test process, given a new state for each test."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli import run
from reconciler.sandbox import Sandbox, running
from tests.cli_runner import CliRunner, Ended
from tests.engine_driver import EngineDriver
from tests.preloaded import preloaded
from tests.sandbox_routes import ROUTES
from tests.states import a_small_service

OBJECTS_PER_COLLECTION = 20_000
"""Far above what Python has it at: most of the garbage of a test goes without its collector."""

EXAMPLES = Path(__file__).parent.parent / "examples"


def pytest_configure() -> None:
    """Handle Ctrl-C, which a shell disables for background jobs; processes that tests start would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def outside_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """No CI job, whatever runs the tests: in one, files outside of its checkout are refused."""
    for name in [*os.environ]:
        if name == "CI" or name.startswith(("CI_", "GITLAB_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def processes_untraced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace no process but those of tests that say that only a process comes to some lines: it takes twice as long."""
    if request.node.get_closest_marker("processes") is None:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Trace no test in a browser or on the installed package: there may be no browser, and one session sets them up."""
    for item in items:
        if isinstance(item, pytest.Function) and not {"chromium", "release"}.isdisjoint(item.fixturenames):
            item.add_marker("untraced")


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the tests and all that they have imported: none of that ever becomes garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_PER_COLLECTION)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the combinations that the tests have counted."""
    told = [value for each in terminalreporter.getreports("passed") for value in each.user_properties]
    for name in dict.fromkeys(name for name, _ in told):
        terminalreporter.write_line(f"{name}: {sum(int(str(count)) for each, count in told if each == name)}")


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    """The sandbox of this process."""
    with running({}, routes=ROUTES) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def program() -> Iterator[Path]:
    """The command as a program, whose start costs nearly nothing."""
    with preloaded() as program:
        yield program


@pytest.fixture(params=["spec", pytest.param("deployed", marks=pytest.mark.untraced)])
def dialect(request: pytest.FixtureRequest) -> str:
    """The dialect of the service: as specified, or as deployed. Traced is the first, unless a test names both."""
    return str(request.param)


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Sandbox:
    """The sandbox, empty, without faults and without latency."""
    shared_sandbox.replace_state({})
    shared_sandbox.set_latency(0)
    shared_sandbox.set_workers(None)
    return shared_sandbox


@pytest.fixture
def engine(sandbox: Sandbox, dialect: str) -> Iterator[EngineDriver]:
    """The engine on a sandbox with one group and a few projects, once in each dialect."""
    with EngineDriver(sandbox, a_small_service(dialect)) as engine:
        yield engine


@pytest.fixture
def cli_runner(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CliRunner:
    """A user who runs commands as ada, on a small service."""

    def run_captured(arguments: list[str]) -> Ended:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name in ("FORCE_COLOR", "NO_COLOR", "RECONCILER_TOKEN_FILE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RECONCILER_API_URL", sandbox.api_url)
    monkeypatch.setenv("RECONCILER_TOKEN", "ada-token")
    cli_runner = CliRunner(tmp_path, sandbox, run_captured)
    cli_runner.service()
    return cli_runner
