"""Test reading, service, export and the server of the sandbox with the oldest dependencies that pyproject.toml allows.

They are installed in an environment of their own, `build/floors`; what they need themselves is for pip to choose.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / "build" / "floors"
TESTS = (
    "tests/manifests",
    "tests/service",
    *(f"tests/export/test_{name}.py" for name in ("command", "hoist", "update", "yaml_edit")),
    *(f"tests/sandbox/test_{name}.py" for name in ("faults", "project_import", "requests", "server", "state_files")),
)
"""Those in which the dependencies do the work: the other tests of export and sandbox repeat it for each kind."""


def floors(dependencies: list[str]) -> list[str]:
    """Return the oldest version of each dependency as a constraint of pip.

    Raises:
        ValueError: a dependency does not begin with the oldest version, such as `click>=8.3.2`.
    """
    constraints = []
    for dependency in dependencies:
        form = re.fullmatch(r"([\w.-]+)>=([\w.]+)(?:,<[\w.]+)?", dependency)
        if form is None:
            raise ValueError(f"pyproject.toml: {dependency!r} has no oldest version")
        constraints.append(f"{form[1]}=={form[2]}")
    return constraints


def main() -> int:
    """Install, test, and return the exit code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = ENVIRONMENT / "constraints.txt"
    python = ENVIRONMENT / "bin" / "python"
    venv.create(ENVIRONMENT, with_pip=True)
    constraints.write_text("\n".join(floors(project["dependencies"])) + "\n", encoding="utf-8")
    # Most of what is installed is never imported: compiling it all would take longer than the tests.
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--constraint", constraints]
    subprocess.run([python, "-m", "pip", *install, "--editable", f"{ROOT}[test]"], check=True)
    tests = ["-q", "-n", "2", "--dist", "worksteal", "-m", "not untraced", *TESTS]
    return subprocess.run([python, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
