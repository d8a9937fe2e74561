"""The installation that the acceptance tests use: that of two variables, else a sandbox."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.installation import JOBS, LOST, Installation, World, wait_for_removal

STATE = """
users: [{username: root, admin: true, tokens: [root-token]}]
instance: {enforce_job_token_allowlist: false, now: NOW}
"""
REMARKS: list[str] = []


@contextmanager
def _sandbox(folder: Path, program: Path, now: str = "null") -> Iterator[Installation]:
    (folder / "state.yaml").write_text(STATE.replace("NOW", now))
    line = [sys.executable, "-m", "tests.sandbox_routes", "state.yaml"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LOST)}
    kept["PYTHONPATH"] = str(Path(__file__).parents[2])
    with subprocess.Popen(line, cwd=folder, env=kept, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(word.strip(";") for word in process.stderr.readline().split() if word.startswith("http"))
        try:
            with Installation(url, "root-token", program) as installation:
                yield installation
        finally:
            process.terminate()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report what the installation lacks, and what it has not removed yet."""
    for remark in REMARKS:
        terminalreporter.write_line(f"installation: {remark}")


def _tell(config: pytest.Config, text: str) -> None:
    """Say at once what is done; one of several workers has no terminal."""
    terminal, captured = map(config.pluginmanager.getplugin, ("terminalreporter", "capturemanager"))
    if terminal is not None:
        with captured.global_and_fixture_disabled():
            terminal.write(f"\ninstallation: {text}\n", flush=True)


@pytest.fixture(scope="session")
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The service of RECONCILER_ACCEPTANCE_URL, or a sandbox as deployed."""
    if "RECONCILER_ACCEPTANCE_URL" not in os.environ:
        with _sandbox(tmp_path_factory.mktemp("sandbox"), request.getfixturevalue("program")) as installation:
            installation.look(tmp_path_factory.mktemp("look"))
            yield installation
            assert (installation.lacks, installation.remarks, wait_for_removal(installation)) == ([], [], [])
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # all is removed then too
    url, token = (os.environ[f"RECONCILER_ACCEPTANCE_{name}"] for name in ("URL", "TOKEN"))
    with Installation(url.rstrip("/"), token) as installation:
        _tell(request.config, f"looking what {url} has, in a group, a project and a user that are made for it")
        installation.look(tmp_path_factory.mktemp("look"))
        _tell(request.config, "looked; a test takes up to a minute")
        yield installation
        _tell(request.config, f"waiting for at most {JOBS} seconds until its jobs have removed what was deleted")
        left = wait_for_removal(installation)
        REMARKS.extend([*installation.remarks, *(f"its jobs have not removed {each} yet" for each in left)])


@pytest.fixture
def world(installation: Installation, tmp_path: Path) -> Iterator[World]:
    """A group of a random name in the installation, with an owner, removed at the end."""
    with installation.world(tmp_path) as world:
        yield world


@pytest.fixture
def aging_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The same, where time can be let pass: a sandbox of its own has a clock that goes on at each write."""
    if "RECONCILER_ACCEPTANCE_URL" in os.environ:
        with request.getfixturevalue("installation").world(tmp_path) as world:
            yield world
        return
    with (
        _sandbox(tmp_path, request.getfixturevalue("program"), f"'{datetime.now(UTC).isoformat()}'") as installation,
        installation.world(tmp_path) as world,
    ):
        yield world
