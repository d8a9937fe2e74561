"""The command in forked processes: it gets what a process gets, ends as it does, and is killed with its program."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli_runner import CliRunner

pytestmark = pytest.mark.untraced


def test_arguments_folder_environment_and_streams_arrive(program: Path, cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    more = os.environ | {"A_LONG_ONE": "x" * 100_000, "A_SECOND": "y" * 100_000}
    done = subprocess.run(
        [program, "plan", "--detailed-exitcode"], env=more, capture_output=True, text=True, check=False
    )
    inside = cli_runner("plan --detailed-exitcode")
    assert (done.returncode, done.stdout, done.stderr) == (inside.code, inside.out, inside.err) == (2, inside.out, "")
    wrong = subprocess.run([program, "nonsense"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (64, "", cli_runner("nonsense").err)


def test_a_program_that_is_killed_takes_the_command_with_it(program: Path) -> None:
    with subprocess.Popen([program, "sandbox", "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Serving http://127.0.0.1:")
        process.kill()
        process.stderr.read()  # which ends when nobody can write any more
