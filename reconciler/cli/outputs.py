"""Where results go: checked before anything is requested; stdout first, then files; failures are reported last."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from reconciler import CONFIGURATION
from reconciler.cli.options import DEFAULT_PATHS
from reconciler.errors import OutputFailed, ServiceError, UsageError
from reconciler.system.files import is_replaced
from reconciler.system.terminal import escaped_lines

if TYPE_CHECKING:
    from reconciler.cli.options import Given

Named = tuple[str, Path | None]
"""An option and the file that it names; None if the option is not given."""


def check_outputs(given: "Given", subject: str, *files: Named) -> None:
    """Refuse formats that do not exist for this command, and options that name the same file.

    Args:
        given: the options.
        subject: what is written, see `render.check_format`.
        files: other files that are written or read.

    Raises:
        UsageError: before anything is requested.
    """
    from reconciler.render import check_format

    for format_ in (given.format, *(format_ for format_, _ in given.reports)):
        check_format(subject, format_)
    reports = [(f"--report {format_}", Path(file)) for format_, file in given.reports]
    named: dict[object, str] = {}
    for option, path in (*_inputs(given), *files, *reports):
        if path is None or not is_replaced(path):
            continue
        first = "PATHS" if _holds(given.paths or DEFAULT_PATHS, path) else named.setdefault(_identity(path), option)
        if first != option:
            raise UsageError(f"{first} and {option} name the same file: {path}")


def attempt_all(actions: Iterable[Callable[[], object]]) -> None:
    """Do all, even if one fails.

    Raises:
        OutputFailed: with every failure, once all were tried.
    """
    failures = []
    for action in actions:
        try:
            action()
        except OutputFailed as error:
            failures.append(str(error))
    if failures:
        raise OutputFailed("\n".join(filter(None, failures)))


def write_stdout(text: str) -> None:
    """Write a result to standard output.

    Raises:
        OutputFailed: it is closed or full; without a message if its reader has gone, as after `| head`.
    """
    if getattr(sys, "stdout", None) is None:
        raise OutputFailed("standard output is closed")
    try:
        click.echo(text, nl=False, color=True)
    except BrokenPipeError as error:
        raise OutputFailed("") from error
    except OSError as error:
        raise OutputFailed(f"standard output: {error.strerror}") from error


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; None stands for a closed one."""
    return stream is not None and stream.isatty()


def write_stderr(text: str) -> None:
    """Write a message to standard error; if that fails, the message is lost and the run goes on."""
    with suppress(OSError):
        click.echo(text, err=True)


def report_error(error: Exception) -> None:
    """Write an error to standard error, safe for a terminal; one without a message is not written."""
    if str(error):
        remedy = error.remedy if isinstance(error, ServiceError) else ""
        text = f"{str(error).removesuffix('.')}; {remedy}" if remedy else str(error)
        write_stderr(escaped_lines(f"reconciler: {text}"))


def open_stderr() -> None:
    """Discard messages if standard error was closed before the start, so that nothing else fails."""
    if getattr(sys, "stderr", None) is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process runs


def discard_unwritten() -> None:
    """Discard buffered output that cannot be written: a retry at exit would change the exit code."""
    for stream in open_streams():
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_streams() -> Iterator[TextIOWrapper]:
    """Yield standard output and standard error, unless they were closed before the start."""
    yield from (stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, TextIOWrapper))


def _inputs(given: "Given") -> Iterator[Named]:
    """Yield the files that any command may read, apart from manifests."""
    yield CONFIGURATION, Path(CONFIGURATION)
    yield from (("--values", Path(file)) for file in given.values)
    for option, file in (("--token-file", given.token_file), ("--ca-file", given.ca_file)):
        yield option, Path(file) if file else None


def _holds(paths: Iterable[str], path: Path) -> bool:
    """Whether a file is, or would be, a manifest at or below one of the paths."""
    from reconciler.manifests import is_manifest

    below = [os.path.relpath(os.path.realpath(path), os.path.realpath(top)) for top in paths]
    return any(inner == "." or is_manifest(inner) for inner in below)


def _identity(path: Path) -> object:
    """Return a value that is equal for two names of one file, whether it exists or not."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino
