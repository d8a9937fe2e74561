"""The packages, built once for all test processes, and installed by the steps of the Dockerfile."""

import fcntl
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.release.wheels import pack_wheels

ROOT = Path(__file__).parent.parent.parent
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
OFFLINE["PIP_NO_COMPILE"] = "no"  # as pip has it: nothing is compiled before it is imported; the rest takes seconds
STEPS = [line for line in re.findall(r"^RUN (.*)$", (ROOT / "Dockerfile").read_text(), re.M) if "apt-get" not in line]
"""The steps of the Dockerfile that build and install the wheel; the others change the machine."""


@dataclass(frozen=True)
class Release:
    """The built packages.

    Attributes:
        sdist: built from the checkout.
        wheel: built from the sdist.
        installed: an environment that holds the wheel and what it needs, and nothing else.
    """

    sdist: Path
    wheel: Path
    installed: Path

    def __call__(self, *line: str, cwd: Path, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment, in a folder."""
        environment = {"PATH": f"{self.installed / 'bin'}:/usr/bin:/bin", "HOME": str(self.installed), **more}
        program = self.installed / "bin" / line[0]
        return subprocess.run(
            [program, *line[1:]], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build the packages, or wait for the test process that does."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "release"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _build(folder)
            (folder / "done").touch()
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "wheels").iterdir()
    return Release(sdist, wheel, folder / "opt" / "reconciler")


def _build(folder: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pack_wheels([*project["project"]["dependencies"], *project["build-system"]["requires"]], folder / "index")
    _run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(folder / "dist"), str(ROOT)])
    (sdist,) = (folder / "dist").iterdir()
    with tarfile.open(sdist) as archive:
        if sys.version_info < (3, 11, 4):  # it knows no filters yet
            archive.extractall(folder)  # noqa: S202 - built here
        else:
            archive.extractall(folder, filter="data")
    for step in STEPS:
        here = re.sub(r"(?<!\S)/(?=wheels|opt)", f"{folder}/", step)
        _run(["sh", "-ec", here], cwd=folder / sdist.name.removesuffix(".tar.gz"), find_links=folder / "index")


def _run(line: list[str], cwd: Path = ROOT, find_links: Path | None = None) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {**os.environ, **OFFLINE, "PATH": path, "PIP_FIND_LINKS": str(find_links or "")}
    done = subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
