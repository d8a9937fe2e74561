"""The README's first two blocks, pasted one after the other into one fresh shell that has nothing of ours."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.sandbox import Sandbox
from tests.fleet.repository import NOBODY
from tests.release.conftest import OFFLINE, ROOT, Release
from tests.states import a_small_service

pytestmark = pytest.mark.untraced

DEMO = re.compile(r"^    (python3 -m venv .*)$", re.MULTILINE)
INIT = re.compile(r"```bash\n(export .*?)```", re.DOTALL)


def test_the_first_two_blocks_work_when_pasted_one_after_the_other(
    release: Release, tmp_path: Path, sandbox: Sandbox
) -> None:
    readme = (ROOT / "README.md").read_text()
    demo, init = DEMO.findall(readme)[0], INIT.findall(readme)[0]
    assert readme.index(demo) < readme.index(init)
    sandbox.replace_state(a_small_service("deployed"))
    built = release.sdist.parent.parent
    checkout = tmp_path / "checkout"
    shutil.copytree(built / release.sdist.name.removesuffix(".tar.gz"), checkout)
    init = init.replace("https://gitlab.example.com/api/v4", sandbox.api_url).replace("YOUR_TOKEN", "ada-token")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e"],
        input=f"{demo}\n{init}git log --format=%s\nreconciler validate --quiet && echo valid\n",
        cwd=checkout,
        env={"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "HOME": str(tmp_path), **OFFLINE, **NOBODY}
        | {"PIP_FIND_LINKS": str(built / "index")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "command not found" not in done.stderr
    assert done.stdout.endswith("The settings of acme as they are\nvalid\n")
