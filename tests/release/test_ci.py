"""The script that CI runs before the tests, with stand-ins for the programs that it looks for."""

import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.release.conftest import ROOT

PROGRAMS = ("bash", "cat", "dirname", "env", "grep", "mkdir")
BESIDE = "\n== the oldest dependencies\npython3 .ci/floors.py\n"
LOOKED_FOR = ("chromium", "chromedriver", "zsh", "fish", "npm", "rsync")
NO_NPM = "Not installed, so its tests are skipped: gitlab-ci-local\n"
OPTIONS = "-qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30"


class Machine:
    """A machine with some programs and a checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name in PROGRAMS:
            (folder / "bin" / name).symlink_to(shutil.which(name) or name)
        self.put("sudo", 'shift; exec "$@"')
        self.put("python3", 'echo "python3 $*"')
        (folder / "checkout" / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", folder / "checkout" / ".ci" / "run")
        (folder / "checkout" / "README.md").write_text("# It\n\n    STEP=one ./check\n\n    STEP=two ./check\n")
        check = folder / "checkout" / "check"
        check.write_text('#!/usr/bin/env bash\necho "$STEP $RECONCILER_SCREENSHOTS"\nexit 7\n')
        check.chmod(0o755)

    def put(self, name: str, script: str) -> None:
        """Put a program on the machine."""
        program = self.folder / "bin" / name
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)

    def run(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the script that CI runs."""
        line = [self.folder / "checkout" / ".ci" / "run"]
        path = {"PATH": str(self.folder / "bin")}
        return subprocess.run(line, env=path | environment, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def ran(machine: Machine) -> str:
    return f"    STEP=one ./check\none {machine.folder}/checkout/screenshots\n{BESIDE}"


def test_where_nothing_is_missing_nothing_is_installed(machine: Machine) -> None:
    for name in LOOKED_FOR:
        machine.put(name, "exit 1")
    machine.put("apt-get", 'echo "apt-get $*"')
    done = machine.run()
    assert (done.returncode, done.stdout, done.stderr) == (7, ran(machine), NO_NPM)
    machine.put("npm", 'echo "npm $*"')
    assert machine.run().stderr == "npm install --silent --global gitlab-ci-local@4.61.1\n"
    machine.put("gitlab-ci-local", "exit 1")
    assert machine.run().stderr == ""


def test_what_is_missing_is_installed(machine: Machine) -> None:
    machine.put("zsh", "exit 1")
    machine.put("apt-get", 'echo "$DEBIAN_FRONTEND $*"')
    done = machine.run()
    assert (done.returncode, done.stdout) == (7, ran(machine))
    assert done.stderr == (
        f"noninteractive {OPTIONS} update\n"
        f"noninteractive {OPTIONS} install --yes --no-install-recommends chromium chromium-driver fish npm rsync\n"
    )


@pytest.mark.parametrize("program", ["apt-get", "sudo"])
def test_what_cannot_be_installed_does_not_fail_the_run(machine: Machine, program: str) -> None:
    machine.put("apt-get", "exit 100")
    machine.put(program, 'echo "E: no" >&2; exit 100')
    done = machine.run()
    assert (done.returncode, done.stdout) == (7, ran(machine))
    assert done.stderr.endswith(
        "Not installed, so their tests are skipped: chromium chromium-driver zsh fish npm rsync\n"
    )


def test_a_machine_without_apt_does_not_fail_the_run(machine: Machine) -> None:
    done = machine.run()
    assert (done.returncode, done.stdout) == (7, ran(machine))
    assert done.stderr.endswith(
        "Not installed, so their tests are skipped: chromium chromium-driver zsh fish npm rsync\n"
    )


def test_a_failure_with_the_oldest_dependencies_is_one_of_the_run(machine: Machine) -> None:
    machine.put("python3", 'echo "1 failed" >&2; exit 3')
    (machine.folder / "checkout" / "check").write_text("#!/usr/bin/env bash\n")
    done = machine.run()
    assert (done.returncode, done.stdout) == (3, "    STEP=one ./check\n\n== the oldest dependencies\n1 failed\n")


def test_the_oldest_dependencies_are_those_of_the_project() -> None:
    floors = runpy.run_path(str(ROOT / ".ci" / "floors.py"))["floors"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    constraints = [Requirement(constraint) for constraint in floors(project["dependencies"])]
    for requirement, constraint in zip(map(Requirement, project["dependencies"]), constraints, strict=True):
        (oldest,) = [bound.version for bound in requirement.specifier if bound.operator == ">="]
        assert (constraint.name, str(constraint.specifier)) == (requirement.name, f"=={oldest}")
    with pytest.raises(ValueError, match=r"pyproject.toml: 'click>8' has no oldest version"):
        floors(["click>8"])


def test_screenshots_may_go_elsewhere(machine: Machine) -> None:
    done = machine.run(RECONCILER_SCREENSHOTS="pictures")
    assert done.stdout == f"    STEP=one ./check\none pictures\n{BESIDE}"
    assert "screenshots/" in (ROOT / ".gitignore").read_text().splitlines()
