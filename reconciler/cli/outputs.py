"""Where results go: checked before anything is requested; stdout first, then files; failures are reported last.

Commands begin with `check_outputs`; `results` writes through this module.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from reconciler import CONFIGURATION
from reconciler.cli.options import DEFAULT_PATHS, ConnectionOptions, OutputOptions, SourceOptions
from reconciler.cli.settings import read_file
from reconciler.errors import ConfigurationError, OutputFailed, PlanRefused, ServiceError, UsageError
from reconciler.model.wording import advised
from reconciler.system.files import alone_in, is_replaced, save, save_all
from reconciler.system.secrets import concealed
from reconciler.system.terminal import escaped_lines

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.document.document import RunDocument
    from reconciler.document.style import Style
    from reconciler.reports.audit import Authors

LOG = logging.getLogger("reconciler")

FLEET = "fleet"
"""The format of a page with a history beside it."""

AUDIT = "audit"
"""The report that is a folder of tables; nothing else than a plan has it."""

NO_SOURCES, NO_CONNECTION = SourceOptions(), ConnectionOptions()
"""The options of a command that takes none of them: nothing is read but what `reconciler.yaml` names."""

Named = tuple[str, Path | None]
"""An option and the file that it names; None if the option is not given."""


def check_outputs(
    subject: str,
    output: OutputOptions,
    *files: Named,
    sources: SourceOptions = NO_SOURCES,
    connection: ConnectionOptions = NO_CONNECTION,
) -> None:
    """Refuse formats that do not exist for this command, reports that are folders, and options that name the same file.

    Args:
        subject: the subject of the result, see `reports.check_format`.
        output: the options about files and formats.
        files: other files that are written or read.
        sources: of the manifests.
        connection: the options whose files are read too.

    Raises:
        UsageError: before anything is requested.
    """
    from reconciler.reports import check_format

    tables = {AUDIT} if subject == "plan" else set()
    for format_ in (output.format, *(format_ for format_, _ in output.reports if format_ not in tables)):
        check_format(subject, format_)
    reports = [(f"--report {format_}", Path(name)) for format_, name in output.reports]
    for option, file in reports:
        if file.is_dir() and not option.endswith(AUDIT):
            raise UsageError(f"{option}: {file} is a folder; name a file in it")
        if option.endswith(AUDIT) and is_replaced(file) and file.exists() and not file.is_dir():
            raise UsageError(f"{option}: {file} is a file; name a folder for the tables")
    reports += [(f"the history beside {file}", history_of(file)) for option, file in reports if option.endswith(FLEET)]
    named: dict[object, str] = {}
    for option, path in (*_inputs(sources, connection), *files, *reports):
        if path is None or not is_replaced(path):
            continue
        manifest = option != CONFIGURATION and _includes(sources.paths or DEFAULT_PATHS, path)
        first = "PATHS" if manifest else named.setdefault(_identity(path), option)
        if first != option:
            raise UsageError(f"{first} and {option} name the same file: {path}")


def history_of(page: Path) -> Path:
    """Return the file of the history that lies beside a fleet page: `index.history.json` for `index.html`."""
    return page.with_suffix(".history.json")


def save_fleet(saved: "RunDocument", page: Path, style: "Style", now: "datetime") -> None:
    """Add a run to the history beside a fleet page, and write both, or neither. Runs at the same time wait.

    Runs in the future are not kept, neither an earlier run nor this run.

    Args:
        saved: the run.
        page: the file.
        style: of the page.
        now: the time by the clock of this run.

    Raises:
        OutputFailed: the files cannot be written, or there is a file that is no history of this service; it stays as it
            is.
    """
    from reconciler.document.document import utc
    from reconciler.reports import fleet
    from reconciler.reports.history import History, is_ahead, load_history, save_history, with_run, without_future

    file = history_of(page)
    # a pipe or a device has no history beside it
    if not is_replaced(page):
        save(page, fleet.page(saved, with_run(None, saved), style, authors_of(saved)))
        return
    with alone_in(page.parent):
        try:
            past = load_history(read_file(file), saved.service) if file.exists() else None
        except ConfigurationError as error:
            raise OutputFailed(f"{error}; {page} was not written") from error
        except PlanRefused as error:
            advice = f"{page} was not written; move the file away to begin a new history"
            raise OutputFailed(f"{file}: {error}; {advice}") from error
        empty = History(service=saved.service)
        known = without_future(past or empty, now)
        if past and known != past:
            moments = [*(run.at for run in past.runs), *(each.seen for each in past.differences)]
            LOG.warning(
                "%s is dated in the future, up to %s: later entries were dropped; the clock of a machine is, "
                "or was, wrong",
                file,
                utc(max(moments)),
            )
        history = kept = with_run(known, saved)
        if is_ahead(saved.created_at, now):
            LOG.warning(
                "this run is dated in the future, %s: %s shows it, and its history does not keep it; set the clock "
                "right",
                utc(saved.created_at),
                page,
            )
            kept = known
        save_all({file: save_history(kept), page: fleet.page(saved, history, style, authors_of(saved))})


def save_tables(saved: "RunDocument", folder: Path) -> None:
    """Write the tables for an audit into a folder, or none of them.

    Raises:
        OutputFailed: a file cannot be written.
    """
    from reconciler.reports.audit import csv_files

    save_all({folder / name: text for name, text in csv_files(saved, authors_of(saved)).items()})


def authors_of(saved: "RunDocument") -> "Authors":
    """Return the authors of the exceptions of a plan."""
    from reconciler.memory.blame import line_authors
    from reconciler.reports.audit import exception_places

    return line_authors(exception_places(saved))


def attempt_all(actions: Iterable[Callable[[], object]]) -> None:
    """Do all actions, even if an action fails.

    Raises:
        OutputFailed: with every failure, after the last action.
    """
    failures = []
    for action in actions:
        try:
            action()
        except OutputFailed as error:
            failures.append(str(error))
    if failures:
        raise OutputFailed("\n".join(filter(None, failures)))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; None is a closed stream."""
    return stream is not None and stream.isatty()


def write_stderr(text: str) -> None:
    """Write a message to standard error; if that fails, the message is lost and the run goes on."""
    with suppress(OSError):
        click.echo(text, err=True)


def report_error(error: Exception) -> None:
    """Write an error to stderr, safe for a terminal and without secrets; an error without a message is not written."""
    if str(error):
        remedy = error.remedy if isinstance(error, ServiceError) else ""
        write_stderr(escaped_lines(concealed(f"reconciler: {advised(str(error), remedy)}")))


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


def _inputs(sources: SourceOptions, connection: ConnectionOptions) -> Iterator[Named]:
    """Yield the files that any command may read, except manifests."""
    yield CONFIGURATION, Path(CONFIGURATION)
    yield from (("--values", Path(file)) for file in sources.values)
    for option, file in (("--token-file", connection.token_file), ("--ca-file", connection.ca_file)):
        yield option, Path(file) if file else None


def _includes(paths: Iterable[str], path: Path) -> bool:
    """Whether a file is, or would be, a manifest at or below one of the paths."""
    from reconciler.manifests import is_manifest

    below = [os.path.relpath(os.path.realpath(path), os.path.realpath(top)) for top in paths]
    return any(inner == "." or is_manifest(inner) for inner in below)


def _identity(path: Path) -> object:
    """Return a value that is equal for two names of one file, whether it exists or not."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino
