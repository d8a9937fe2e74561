"""Our own log, which goes to stderr: warnings that come while a plan is made wait until its end.

`command` calls `start_log` before a command runs; commands that plan use `warnings_last`.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from reconciler.cli.options import OutputOptions
from reconciler.cli.outputs import write_stderr
from reconciler.system.secrets import concealed
from reconciler.system.terminal import escaped_lines

LOG = logging.getLogger("reconciler")

AFTER_AN_ERROR = 3
"""How many warnings are written after an error: more would push it off the screen."""


class ToStderr(logging.Handler):
    """Writes our own log to stderr, above the live line while that is shown.

    Attributes:
        write: writes a message.
        waiting: the warnings that wait; None while warnings are written at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.write: Callable[[str], None] = write_stderr
        self.waiting: list[logging.LogRecord] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, safe for a terminal and for the log of a CI job, and without secrets."""
        if self.waiting is not None and record.levelno == logging.WARNING:
            self.waiting.append(record)
        else:
            self.write(escaped_lines(concealed(self.format(record))))


class _JsonLines(logging.Formatter):
    """Writes a record as a JSON object on a line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": time, "level": record.levelname.lower(), "message": record.getMessage()})


def start_log(output: OutputOptions) -> None:
    """Send our own log to stderr, as verbose and in the format that the options ask for."""
    level = logging.ERROR if output.quiet else logging.DEBUG if output.verbose else logging.INFO
    handler = ToStderr()
    if output.log_format == "json":
        handler.setFormatter(_JsonLines())
    LOG.handlers = [handler]
    LOG.propagate = False
    LOG.setLevel(level)


@contextmanager
def warnings_last() -> Iterator[None]:
    """Hold warnings back while this block runs; after an error they wait for `warn_after_error`."""
    for handler in handlers():
        handler.waiting = []
    yield
    for record in _released():
        LOG.handle(record)


def warn_after_error() -> None:
    """Write the last of the waiting warnings, which probably explain the error before them."""
    warnings = _released()
    for record in warnings[-AFTER_AN_ERROR:]:
        LOG.handle(record)
    earlier = len(warnings) - AFTER_AN_ERROR
    if earlier > 0:
        from reconciler.model.wording import counted

        LOG.warning("%s not shown; reconciler validate shows those of the manifests", counted(earlier, "more warning"))


def handlers() -> list[ToStderr]:
    """Return the handlers that write our own log."""
    return [handler for handler in LOG.handlers if isinstance(handler, ToStderr)]


def _released() -> list[logging.LogRecord]:
    """Return the waiting warnings, and let later warnings pass at once."""
    released: list[logging.LogRecord] = []
    for handler in handlers():
        released += handler.waiting or ()
        handler.waiting = None
    return released
