"""Progress on stderr: a live line on a terminal, or a log line every ten seconds in a CI job. Begin with `watched`."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from reconciler.cli.logs import handlers
from reconciler.cli.options import OutputOptions
from reconciler.cli.outputs import is_terminal, write_stderr

if TYPE_CHECKING:
    from rich.table import Table

    from reconciler.model.progress import Progress
    from reconciler.service import Traffic

LOG = logging.getLogger("reconciler")

EVERY = 10.0
"""Seconds between two log lines."""

WORTH_ESTIMATING = 3.0
"""Seconds after which the rate of a stage is worth an estimate."""


@contextmanager
def shown(progress: "Progress", traffic: "Traffic", output: OutputOptions) -> Iterator[None]:
    """Show progress while this block runs, if anybody can see it."""
    if output.log_format == "text" and output.color != "never" and _welcomes_colour(is_terminal(sys.stderr)):
        with _moving(progress, traffic):
            yield
    elif os.environ.get("CI") and not is_terminal(sys.stderr) and not output.quiet:
        with every(EVERY, lambda: LOG.info("%s", sentence(progress, traffic))):
            yield
    else:
        yield


@contextmanager
def watched(traffic: "Traffic", output: OutputOptions) -> "Iterator[Progress]":
    """Show progress on stderr while this block runs."""
    from reconciler.model.progress import Progress

    progress = Progress(lambda: traffic.requests)
    with shown(progress, traffic, output):
        yield progress


def is_coloured(output: OutputOptions, *, terminal: bool) -> bool:
    """Whether text is coloured: as `--color` says, else unless NO_COLOR is set, on a terminal or with FORCE_COLOR."""
    if output.color != "auto":
        return output.color == "always"
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0") and not os.environ.get("NO_COLOR")
    return forced or _welcomes_colour(terminal)


def _welcomes_colour(terminal: bool) -> bool:
    """Whether colours and moving lines are welcome on a terminal."""
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def sentence(progress: "Progress", traffic: "Traffic") -> str:
    """Return the progress, such as `reading: 312 of 1,000 targets, 1,872 requests, 164/s, 12 s left`."""
    from reconciler.model.wording import counted

    passed, requests = progress.seconds, progress.requests()
    facts = []
    if progress.targets:
        facts.append(f"{progress.done:,} of {counted(progress.targets, 'target')}")
    if progress.planned:
        # What is planned again after a change to a group may be more.
        facts.append(f"{progress.changes:,} of {counted(max(progress.planned, progress.changes), 'change')}")
    if requests:
        facts.append(counted(requests, "request"))
    if passed >= WORTH_ESTIMATING:
        facts.append(f"{progress.requests_of_stage / passed:,.0f}/s")
        if 0 < progress.done < progress.targets:
            facts.append(f"{_duration(passed / progress.done * (progress.targets - progress.done))} left")
    facts += [f"waiting: {reason}" for reason in traffic.waiting_for]
    return f"{progress.stage}: {', '.join(facts)}" if facts else progress.stage


@contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` every so many seconds while this block runs."""
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

    live = Live(console=console, get_renderable=line, transient=True, redirect_stdout=False, redirect_stderr=False)
    with live:
        for handler in handlers():
            handler.write = lambda text: console.print(Text(text), soft_wrap=True)
        try:
            yield
        finally:
            for handler in handlers():
                handler.write = write_stderr


def _duration(seconds: float) -> str:
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {remainder} s" if minutes else f"{remainder} s"
