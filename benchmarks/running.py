"""Processes: commands run and measured from outside, and servers that run meanwhile."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from benchmarks.fleet import TOKEN

ROOT = Path(__file__).parent.parent
NOTHING: Mapping[str, str] = {}
HEADERS = 25
"""How many an answer of GitLab has, and one of the quick server over TLS."""

RECONCILER = (sys.executable, "-m", "reconciler")


class Failed(Exception):
    """A command did not do what is to be measured; says what it said."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended.

    Attributes:
        wall: seconds from its start to its end.
        cpu: seconds of all its threads, its children included.
        peak: its largest size in MB (of a million bytes).
        output: what it wrote to stdout.
    """

    wall: float
    cpu: float
    peak: float
    output: str


def run(
    command: Sequence[str], folder: Path, variables: Mapping[str, str] = NOTHING, codes: Sequence[int] = (0,)
) -> Finished:
    """Run a command in a folder.

    The peak cannot be smaller than this process: keep it small.

    Raises:
        Failed: it ended with another exit code.
    """
    said, told = folder / "stdout.txt", folder / "stderr.txt"
    with said.open("wb") as out, told.open("wb") as err:
        began = perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=_environment(variables), stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        wall = perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        words = told.read_text(errors="replace")[-2000:] + said.read_text(errors="replace")[-2000:]
        raise Failed(f"{' '.join(command)} ended with {process.returncode}: {words}")
    size = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Finished(wall, used.ru_utime + used.ru_stime, size / 1e6, said.read_text(errors="replace"))


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment less what steers the tool, which is found here, installed or not, or would slow it down.

    Images for containers often forbid Python to keep what it compiles; each process would compile the package again.
    """
    others = ("RECONCILER_", "CI", "COVERAGE_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs in a process of its own.

    Attributes:
        api_url: where.
    """

    api_url: str

    @property
    def variables(self) -> dict[str, str]:
        """What tells the tool of it."""
        return {"RECONCILER_API_URL": self.api_url, "RECONCILER_TOKEN": TOKEN}

    def counts(self) -> dict[str, Any]:
        """Of a quick server, what it counted."""
        counts: dict[str, Any] = httpx.get(self._beside("counts"), timeout=60).json()
        return counts

    def forget_counts(self) -> None:
        """Of a quick server, count from 0."""
        httpx.delete(self._beside("counts"), timeout=60)

    def log(self) -> list[dict[str, Any]]:
        """Of a sandbox, the requests so far."""
        log: list[dict[str, Any]] = httpx.get(self._beside("log"), timeout=60).json()
        return log

    def clear_log(self) -> None:
        """Of a sandbox, forget them."""
        httpx.delete(self._beside("log"), timeout=60)

    def _beside(self, name: str) -> str:
        return self.api_url.removesuffix("/api/v4") + f"/-/{name}"


@contextmanager
def sandbox(state: Path, *options: str) -> Iterator[Server]:
    """Run the sandbox until the block ends."""
    with _serving([*RECONCILER, "sandbox", "--port", "0", "--state", str(state), *options]) as server:
        yield server


@contextmanager
def quick_server(state: Path, latency: int = 0, certificate: Path | None = None) -> Iterator[Server]:
    """Run the quicker server until the block ends.

    Args:
        state: what it begins with.
        latency: milliseconds.
        certificate: for TLS, with its key; then answers have as many headers as GitLab's.
    """
    command = [sys.executable, "-m", "benchmarks.quick_server", "--state", str(state), "--latency", str(latency)]
    command += [] if certificate is None else ["--tls", str(certificate)]
    with _serving(command) as server:
        yield server


@contextmanager
def _serving(command: Sequence[str]) -> Iterator[Server]:
    process = subprocess.Popen(
        command, env=_environment(NOTHING), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    try:
        line = process.stderr.readline()
        if not line.startswith("Serving "):
            raise Failed(f"{' '.join(command)} did not start: {line}{process.stderr.read()}")
        yield Server(line.split()[1].rstrip(";"))
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def console_script() -> list[str]:
    """Return how `reconciler` is called where it is installed."""
    script = shutil.which("reconciler", path=str(Path(sys.executable).parent))
    return [script] if script else [*RECONCILER]
