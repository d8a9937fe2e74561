"""A shell at a reader's desk: our own commands run in this process, against the sandbox; all else in bash."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml

from reconciler.cli import run
from reconciler.cli.sandbox import sandbox as sandbox_command
from reconciler.demo import STATE
from reconciler.sandbox import Sandbox, generate
from tests.docs.pages import ROOT, SHELL, Block, Step, steps

PLAIN = re.compile(r"""reconciler(?: +(?:[\w./=:,@%+{}~^-]|\$\w+|"[^"`\\]*"|'[^'$]*')+)*""")
"""One of our commands with words that need no shell: variables, but no globs, pipes or other commands."""

SANDBOX = re.compile(r"reconciler (sandbox\b.*) &")

THE_SERVICE = "https://gitlab.example.com"
LOOPBACK = "http://127.0.0.1:8080"
"""What pages call the service, and where a sandbox serves if nothing else is said."""

TOKEN = "YOUR_TOKEN"
"""What pages call the token."""

FOLDERS = ("examples", "schemas", "templates")
"""What of a checkout lies in a reader's folder."""

SECONDS = 60


class Keyboard(io.StringIO):
    """A terminal at which somebody says yes to whatever is asked."""

    def isatty(self) -> bool:
        return True


class Shell:
    """What one page is typed into: a new folder, a sandbox as the service, ada's token."""

    def __init__(self, folder: Path, sandbox: Sandbox, patch: pytest.MonkeyPatch) -> None:
        self._sandbox = sandbox
        self._patch = patch
        self._url = THE_SERVICE
        self._code = 0
        for name in [name for name in os.environ if name.startswith(("CI", "GIT_", "RECONCILER_"))]:
            patch.delenv(name)
        for name in FOLDERS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name)
        self._set(
            HOME=str(folder),
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            RECONCILER_API_URL=sandbox.api_url,
            RECONCILER_TOKEN="ada-token",
            GIT_AUTHOR_NAME="Ada",
            GIT_AUTHOR_EMAIL="ada@example.com",
            GIT_COMMITTER_NAME="Ada",
            GIT_COMMITTER_EMAIL="ada@example.com",
            GIT_CONFIG_GLOBAL=os.devnull,
        )
        patch.chdir(folder)
        self._serve(ROOT / "examples/state.yaml")

    def do(self, block: Block) -> None:
        """Write the file that a block is, or type its lines and see that what it shows is what comes.

        Raises:
            AssertionError: something else comes, or a line fails and the block does not say so by `echo $?`.
        """
        if block.not_run:
            return
        if block.title:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language in SHELL:
            lines = list(steps(block))
            for step, following in zip(lines, [*lines[1:], Step("", None)], strict=True):
                self._type(step, block, may_fail=following.line == "echo $?")

    def _type(self, step: Step, block: Block, *, may_fail: bool) -> None:
        if step.line == "echo $?":
            printed = f"{self._code}\n"
        else:
            self._code, printed = self._answer(step.line)
        told = f"{block.place}: $ {step.line}\n{printed}"
        assert may_fail or self._code == 0 or step.line == "echo $?", f"{told}(exit code {self._code})"
        if step.shown is not None:
            assert printed == step.shown, told

    def _answer(self, line: str) -> tuple[int, str]:
        """Carry out one line; return its exit code, and what a terminal shows of both outputs."""
        for told, real in ((THE_SERVICE, self._sandbox.base_url), (LOOPBACK, self._sandbox.base_url)):
            if told in line:
                self._url = told
                line = line.replace(told, real)
        line = line.replace(TOKEN, "ada-token")
        if serving := SANDBOX.fullmatch(line):
            self._start(shlex.split(serving[1])[1:])
            return 0, ""
        if line.startswith("export "):
            self._set(**dict(word.split("=", 1) for word in self._words(line)[1:]))
            return 0, ""
        code, printed = self._run(self._words(line)[1:]) if PLAIN.fullmatch(line) else _in_bash(line)
        return code, printed.replace(self._sandbox.base_url, self._url)

    def _run(self, arguments: list[str]) -> tuple[int, str]:
        printed = io.StringIO()
        self._patch.setattr(sys, "stdin", Keyboard("y\n"))
        with redirect_stdout(printed), redirect_stderr(printed):
            code = run(arguments)
        return code, printed.getvalue()

    def _start(self, arguments: list[str]) -> None:
        """Let the sandbox of this process serve what another one would serve on its own port."""
        asked = sandbox_command.make_context("sandbox", arguments).params
        if asked["generate"]:
            state = generate(asked["generate"], asked["seed"])
            state["instance"]["dialect"] = asked["dialect"]
            self._sandbox.replace_state(state)
        else:
            self._serve(asked["state"] or STATE)
        self._sandbox.set_latency(asked["latency"])
        self._sandbox.set_rate_limit(asked["rate_limit"])
        self._sandbox.set_faults(asked["faults"])

    def _serve(self, state: Path) -> None:
        self._sandbox.replace_state(yaml.safe_load(state.read_text(encoding="utf-8")))

    def _words(self, line: str) -> list[str]:
        """Split a line as a shell does, variables first: no page has one whose value needs quoting."""
        return shlex.split(os.path.expandvars(line))

    def _set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)


def _in_bash(line: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout
