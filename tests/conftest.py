"""Fixtures: one sandbox for a whole test process, given a new state for each test."""

import gc
import importlib
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import reconciler
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


class Tracers(NamedTuple):
    """What traces a thread, and the threads that it begins: for coverage, if that is measured."""

    own: Any
    begun: Any

    @classmethod
    def now(cls) -> "Tracers":
        """Those that trace now."""
        return cls(sys.gettrace(), threading.gettrace())

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Have these trace what runs within."""
        before = Tracers.now()
        self._begin()
        try:
            yield
        finally:
            before._begin()

    def _begin(self) -> None:
        sys.settrace(self.own)
        threading.settrace(self.begun)


NONE = Tracers(None, None)
COVERAGE = pytest.StashKey[Tracers]()
"""Those of coverage."""


def pytest_configure() -> None:
    """Handle Ctrl-C, which a shell disables for background jobs; processes that tests start would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Trace that modules are imported, whichever test is the first that needs one."""
    if session.config.getoption("dist", "no") == "no":  # this process runs tests itself
        for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Trace nothing between tests, and nothing in the process that distributes them: it takes twice as long."""
    session.config.stash[COVERAGE] = Tracers.now()
    with NONE.tracing():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Trace what a test needs, unless others cover its lines."""
    with tracers_of(item).tracing():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Trace a test, unless others cover its lines."""
    with tracers_of(pyfuncitem).tracing():
        return (yield)


def tracers_of(item: pytest.Item) -> Tracers:
    """Return what traces a test."""
    return NONE if item.get_closest_marker("untraced") else item.config.stash[COVERAGE]


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
    # What is done once per process, such as what is cached, is traced if a test that is traced is the first to need it.
    items.sort(key=lambda item: item.get_closest_marker("untraced") is not None)


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
    """The sandbox of this process, which is not traced."""
    with ExitStack() as stack:
        with NONE.tracing():
            sandbox = stack.enter_context(running({}, routes=ROUTES))
        yield sandbox


@pytest.fixture(scope="session")
def traced_sandbox(pytestconfig: pytest.Config) -> Iterator[Sandbox]:
    """The other one of this process, which is traced."""
    with ExitStack() as stack:
        with pytestconfig.stash[COVERAGE].tracing():
            sandbox = stack.enter_context(running({}, routes=ROUTES))
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
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox, empty, without faults, latency, and limits."""
    traced = request.node.get_closest_marker("sandbox_traced") and not request.node.get_closest_marker("untraced")
    sandbox: Sandbox = request.getfixturevalue("traced_sandbox" if traced else "shared_sandbox")
    sandbox.replace_state({})
    sandbox.set_latency(0)
    sandbox.set_workers(None)
    sandbox.set_rate_limit(None)
    return sandbox


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
