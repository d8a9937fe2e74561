"""A shell for the lines of a page: our own commands run in this process, against sandboxes; all others in bash."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Self

import pytest
import yaml

from reconciler.cli import run
from reconciler.cli.sandbox import DEMO_STATE
from reconciler.cli.sandbox import sandbox as sandbox_command
from reconciler.sandbox import Sandbox, generate, running
from tests.docs.pages import ROOT, SHELL, Block, Step, steps

PLAIN = re.compile(r"""reconciler(?: +(?:[\w./=:,@%+{}~^-]|\$\w+|"[^"`\\]*"|'[^'$]*')+)*""")
"""One of our commands with words that need no shell: variables, but no globs, pipes or other commands."""

SUBSTITUTED = re.compile(r"\$\((.*)\)")
"""A command whose output becomes a part of a line."""

SANDBOX = re.compile(r"reconciler (sandbox\b.*) &")

THE_SERVICE = "https://gitlab.example.com"
"""The URL of the reader's own service on pages; here it is a sandbox too."""

TOKEN = "YOUR_TOKEN"
"""The token for it on pages."""

CHECKOUT = ("examples", "schemas", "templates")
"""The folders of a checkout that pages use."""

VARYING = re.compile(
    r"\b(?:[0-9a-f]{40}|[0-9a-f]{7})\b|(?<=verified after )[0-9]+(?= s;)"
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?= UTC)"
    r"| Waited [0-9.]+ s for fewer requests at once\."
)
"""What differs each time: the ID of a commit, short or whole, how long a canary took, and waits on a slow machine."""

SECONDS = 60


class Keyboard(io.StringIO):
    """A terminal at which somebody answers each question with yes."""

    def isatty(self) -> bool:
        return True


class Shell:
    """The shell for one page: in a checkout, with nothing else that the page does not set up itself."""

    def __init__(self, folder: Path, service: Sandbox, program: Path, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._stack = ExitStack()
        self._code = 0
        service.replace_state(yaml.safe_load((ROOT / "examples/state.yaml").read_text(encoding="utf-8")))
        self._services = {THE_SERVICE: service}
        for name in [name for name in os.environ if name.startswith(("CI", "GIT_", "RECONCILER_"))]:
            patch.delenv(name)
        for name in CHECKOUT:
            shutil.copytree(ROOT / name, folder / name)
        self._set(
            HOME=str(folder),
            PATH=os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
            GIT_AUTHOR_NAME="Ada",
            GIT_AUTHOR_EMAIL="ada@example.com",
            GIT_COMMITTER_NAME="Ada",
            GIT_COMMITTER_EMAIL="ada@example.com",
            GIT_CONFIG_GLOBAL=os.devnull,
        )
        patch.chdir(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self._stack.close()

    def do(self, block: Block) -> None:
        """Write the file of a block, or run its lines and compare their output with what the block shows.

        Raises:
            AssertionError: the output differs, or a line fails and the block has no `echo $?` after it.
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
        context = f"{block.place}: $ {step.line}\n{printed}"
        assert may_fail or self._code == 0 or step.line == "echo $?", f"{context}(exit code {self._code})"
        if step.shown is not None:
            assert VARYING.sub("", printed) == VARYING.sub("", step.shown), context

    def _answer(self, line: str) -> tuple[int, str]:
        """Run one line; return its exit code, and both outputs as a terminal shows them."""
        for origin, service in self._services.items():
            line = line.replace(origin, service.base_url)
        line = line.replace(TOKEN, "ada-token")
        if serving := SANDBOX.fullmatch(line):
            self._start(shlex.split(serving[1])[1:])
            return 0, ""
        if line.startswith("export "):
            line = SUBSTITUTED.sub(lambda found: self._in_bash(found[1])[1].strip(), line)
            self._set(**dict(word.split("=", 1) for word in self._words(line)[1:]))
            return 0, ""
        if line.startswith("unset "):
            self._patch.delenv(line.removeprefix("unset "))
            return 0, ""
        code, printed = self._run(self._words(line)[1:]) if PLAIN.fullmatch(line) else self._in_bash(line)
        for origin, service in self._services.items():
            printed = printed.replace(service.base_url, origin)
        return code, printed

    def _run(self, arguments: list[str]) -> tuple[int, str]:
        printed = io.StringIO()
        self._patch.setattr(sys, "stdin", Keyboard("y\n"))
        with redirect_stdout(printed), redirect_stderr(printed):
            code = run(arguments)
        return code, printed.getvalue()

    def _in_bash(self, line: str) -> tuple[int, str]:
        """Run a line in a new bash, and change to the folder in which it ends."""
        reads, writes = os.pipe()
        with os.fdopen(reads, encoding="utf-8") as folder:
            try:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", f"trap 'pwd >&{writes}' EXIT\n{line}"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[writes],
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
            finally:
                os.close(writes)
            self._patch.chdir(folder.read().strip())
        return done.returncode, done.stdout

    def _start(self, arguments: list[str]) -> None:
        """Start the sandbox that a line asks for, in this process."""
        options = sandbox_command.make_context("sandbox", arguments).params
        origin = f"http://127.0.0.1:{options['port']}"
        assert origin not in self._services, f"port {options['port']} is in use"
        state = options["state"] or DEMO_STATE
        if options["generate"]:
            state = generate(options["generate"], options["seed"] or 0)
            state["instance"]["dialect"] = options["dialect"]
        self._services[origin] = self._stack.enter_context(
            running(state, options["latency"], options["rate_limit"], options["fault_specs"])
        )

    def _words(self, line: str) -> list[str]:
        """Split a line as a shell does, variables first: no page has one whose value needs quoting."""
        return shlex.split(os.path.expandvars(line))

    def _set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)
