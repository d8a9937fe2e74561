"""Render Jinja2 templates to text, in a process with limits on time and memory: see `template_process`.

`manifests` creates one `Templates` for all files of a run, and calls `Templates.source` for each template.
"""

import json
import os
import pickle
import re
import signal
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Any, cast

from reconciler.errors import ConfigurationError, ManifestErrors
from reconciler.manifests.sources import MAX_FILE_BYTES, Secrets, Source, located, no_secrets
from reconciler.manifests.yaml_reader import LINE_BREAK, line_at
from reconciler.system.processes import inherited

if TYPE_CHECKING:
    from subprocess import Popen

MOST_SECONDS = 5
"""Processor time that one template may take."""

MOST_RENDERED = 64 * 1024 * 1024
"""Characters to which all templates may render."""

MOST_MEMORY = 512 * 1024 * 1024
"""Bytes of memory that the process may take that renders templates."""

SHORTEST_SECRET = 4
"""Characters of a line of an environment variable that is hidden in messages."""

ENVIRONMENT = "env"
OPEN, CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{OPEN}([0-9]+){CLOSE}")


class Templates:
    """Renders templates with values, and with the environment variables that are named.

    The process is started for the first template, and renders all others until `close`.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        env_names: Sequence[str],
        *,
        secret_values: Secrets = no_secrets,
        seconds: int = MOST_SECONDS,
    ) -> None:
        """Take the values; see `read_manifests`."""
        self._hides_environment = bool(env_names) and ENVIRONMENT in values
        variables = {name: os.environ[name] for name in env_names if name in os.environ}
        lines = {line for value in variables.values() for line in value.splitlines() if len(line) >= SHORTEST_SECRET}
        self._secrets = lambda: lines.union(secret_values())
        given = pickle.dumps((dict(values), (variables, tuple(env_names))))
        self._seconds = seconds
        self._orders = pickle.dumps((seconds, MOST_MEMORY, MAX_FILE_BYTES, given))
        self._process: Popen[bytes] | None = None
        self._rendered = 0

    def source(self, path: str, text: str) -> Source:
        """Return the rendered text of a template.

        Raises:
            ManifestErrors: it cannot be rendered; names the template's own line.
            ConfigurationError: a value is called `env`, and environment variables are named too.
        """
        if self._hides_environment:
            raise ConfigurationError("a template value may not be called `env` beside --env, which it would hide")
        written = Source(path, text, self._secrets)
        if self._rendered <= MOST_RENDERED:
            rendered = self._render(written)
            self._rendered += len(rendered)
        if self._rendered > MOST_RENDERED:
            words = f"all templates up to this one render to more than {MOST_RENDERED // 1024 // 1024} MiB: write less"
            raise ManifestErrors([located(path, words)])

        @cache
        def marks() -> tuple[tuple[int, int], ...]:
            # A second rendering, for the line of an error alone: marks cost time, and a few templates compute with
            # their own text.
            closed = self._process is None
            try:
                return _marks(self._render(written, marked=True), rendered)
            except ManifestErrors:
                return ()
            finally:
                if closed:
                    self.close()

        def own_line(line: int, column: int) -> int | None:
            offset = _offset(rendered, line, column)
            before = bisect_right(marks(), offset, key=lambda mark: mark[0])
            return marks()[before - 1][1] if before else None

        return Source(path, rendered, self._secrets, own_line)

    def close(self) -> None:
        """End the process; for another template it is started again."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _render(self, template_source: Source, *, marked: bool = False) -> str:
        answer = self._asked(pickle.dumps((template_source.path, template_source.text, marked)))
        if "text" in answer:
            return str(answer["text"])
        line = answer["line"]
        if line:
            raise ManifestErrors([template_source.located(line, _indent(template_source.text, line), answer["wrong"])])
        raise ManifestErrors([located(template_source.path, answer["wrong"])])

    def _asked(self, order: bytes) -> dict[str, Any]:
        """Return the answer of the process, or an error if it ends instead."""
        process = self._process = self._process or self._started()
        try:
            _send(process, order)
            line = cast("IO[bytes]", process.stdout).readline()
        except BaseException:
            process.kill()
            self.close()
            raise
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"wrong": self._why_ended(process.returncode), "line": 0}

    def _started(self) -> "Popen[bytes]":
        from subprocess import DEVNULL, PIPE, Popen  # noqa: PLC0415 - only templates need a process

        # With -P no module is imported from the working directory, where anything may lie.
        command = [sys.executable, "-P", "-c", "from reconciler.manifests.template_process import main; main()"]
        process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=inherited())
        _send(process, self._orders)
        return process

    def _why_ended(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"takes more than {self._seconds} s of processor time"
        return f"ended the process that renders it (exit code {code}): it may take too much memory"


def _send(process: "Popen[bytes]", order: bytes) -> None:
    stdin = cast("IO[bytes]", process.stdin)
    with suppress(BrokenPipeError):  # the process has ended: the missing answer says so
        stdin.write(order)
        stdin.flush()


def _marks(marked: str, rendered: str) -> tuple[tuple[int, int], ...]:
    """Return offsets into the rendered text and lines of the template, in order; none if marks changed the text."""
    if MARK.sub("", marked) != rendered:
        return ()
    marks: list[tuple[int, int]] = []
    removed = 0
    for mark in MARK.finditer(marked):
        marks.append((mark.start() - removed, int(mark.group(1))))
        removed += len(mark.group())
    return tuple(marks)


def _offset(text: str, line: int, column: int) -> int:
    ends = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]
    return ends[line - 1] + column - 1


def _indent(text: str, line: int) -> int:
    written = line_at(text, line)
    return len(written) - len(written.lstrip()) + 1
