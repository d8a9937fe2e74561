"""What the tests say while they prepare an installation, which takes a while where it is a real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation

pytestmark = pytest.mark.untraced
"""Nothing of the tool runs here."""

TEST = "def test_nothing(installation): assert installation.remarks == []"


def test_what_takes_long_is_said_before_it_begins(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    url = {"RECONCILER_ACCEPTANCE_URL": installation.api_url, "RECONCILER_ACCEPTANCE_TOKEN": installation.token}
    top = Path(__file__).parents[2]
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.acceptance.conftest"]
    done = subprocess.run(
        [*line, "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        env={**os.environ, **url, "PYTHONPATH": str(top)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert [text for text in done.stdout.splitlines() if text.startswith("installation: ")] == [
        f"installation: looking what {installation.api_url} has, in a group, a project and a user that are made for it",
        "installation: looked; a test takes up to a minute",
        "installation: waiting for at most 30 seconds until its jobs have removed what was deleted",
    ]
