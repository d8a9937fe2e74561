"""The packages and the image, built once for all test processes."""

import fcntl
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.release.image import Image, instructions_of
from tests.release.wheels import pack_wheels

ROOT = Path(__file__).parent.parent.parent
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@dataclass(frozen=True)
class Release:
    """What was built.

    Attributes:
        wheel: built from the sdist.
        sdist: built from the checkout.
        image: its steps have been carried out; in its environment are reconciler and what it needs, and nothing else.
    """

    wheel: Path
    sdist: Path
    image: Image


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build everything, or wait for the test process that does."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "release"
    folder.mkdir(exist_ok=True)
    # The Dockerfile's `python` and `pip` are those of whoever runs the tests; only /usr/bin and /bin stay in a container.
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    environment = OFFLINE | {"PATH": path, "HOME": str(folder), "PIP_FIND_LINKS": str(folder / "wheels")}
    image = Image(folder / "root", ROOT, instructions_of((ROOT / "Dockerfile").read_text()), environment)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _build(folder)
            image.build()
            (folder / "done").touch()
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return Release(wheel, sdist, image)


def _build(folder: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pack_wheels([*project["project"]["dependencies"], *project["build-system"]["requires"]], folder / "wheels")
    line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(ROOT)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
