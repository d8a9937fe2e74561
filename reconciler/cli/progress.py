"""How far a run is, on stderr: one line that moves on a terminal, one every ten seconds in a CI job's log."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from reconciler.cli.options import Given
from reconciler.cli.outputs import is_terminal, write_stderr
from reconciler.system.terminal import escaped_lines

if TYPE_CHECKING:
    from rich.table import Table

    from reconciler.model.progress import Progress
    from reconciler.service import Traffic

LOG = logging.getLogger("reconciler")

EVERY = 10.0
"""Seconds between two lines of a log."""

WORTH_ESTIMATING = 3.0
"""Seconds after which the pace of a stage tells something about its end."""


class ToStderr(logging.Handler):
    """Writes our own log to stderr; above the line that moves, while there is one.

    Attributes:
        write: puts out one message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.write: Callable[[str], None] = write_stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; whatever it quotes, it can neither steer a terminal nor command the log of a CI job."""
        self.write(escaped_lines(self.format(record)))


@contextmanager
def shown(progress: "Progress", traffic: "Traffic", given: Given) -> Iterator[None]:
    """Show how far a run is for as long as this block takes, if there is anybody to see it."""
    if given.quiet:
        yield
    elif given.log_format == "text" and welcomes_colour(is_terminal(sys.stderr)):
        with _moving(progress, traffic):
            yield
    elif os.environ.get("CI") and not is_terminal(sys.stderr):
        with every(EVERY, lambda: LOG.info("%s", sentence(progress, traffic))):
            yield
    else:
        yield


def welcomes_colour(terminal: bool) -> bool:
    """Whether what is written there may hold more than plain lines."""
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def sentence(progress: "Progress", traffic: "Traffic") -> str:
    """Say how far a run is, such as `reading: 312 of 1,000 targets, 1,872 requests, 164/s, 12 s left`."""
    passed, requests = progress.seconds, progress.requests()
    facts = []
    if progress.targets:
        facts.append(f"{progress.done:,} of {counted(progress.targets, 'target')}")
    if progress.changes:
        facts.append(counted(progress.changes, "change"))
    if requests:
        facts.append(counted(requests, "request"))
    if passed >= WORTH_ESTIMATING:
        facts.append(f"{progress.requests_of_stage / passed:,.0f}/s")
        if 0 < progress.done < progress.targets:
            facts.append(f"{_duration(passed / progress.done * (progress.targets - progress.done))} left")
    facts += [f"waiting: {reason}" for reason in traffic.waiting_for]
    return f"{progress.stage}: {', '.join(facts)}" if facts else progress.stage


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 target`, `1,000 targets`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Do something again and again while this block runs, first after so many seconds."""
    over = Event()

    def repeat() -> None:
        while not over.wait(seconds):
            act()

    thread = Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _moving(progress: "Progress", traffic: "Traffic") -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    console = Console(stderr=True)
    spinner = Spinner("dots")

    def line() -> "Table":
        bar = ProgressBar(total=progress.targets or None, completed=progress.done, width=20, pulse=not progress.targets)
        table = Table.grid(padding=(0, 1))
        table.add_row(spinner, bar, Text(sentence(progress, traffic), no_wrap=True, overflow="ellipsis"))
        return table

    handlers = [handler for handler in LOG.handlers if isinstance(handler, ToStderr)]
    live = Live(console=console, get_renderable=line, transient=True, redirect_stdout=False, redirect_stderr=False)
    with live:
        for handler in handlers:
            handler.write = lambda text: console.print(Text(text), soft_wrap=True)
        try:
            yield
        finally:
            for handler in handlers:
                handler.write = write_stderr


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
