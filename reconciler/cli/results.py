"""How a result is written: to stdout, and into the documents and reports of the options. Begin with `write_result`."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from reconciler.cli.exit_codes import ExitCode, of_plan, of_report, signals_handled
from reconciler.cli.options import Job, OutputOptions
from reconciler.cli.outputs import AUDIT, FLEET, attempt_all, is_terminal, save_fleet, save_tables, write_stderr
from reconciler.cli.progress import is_coloured
from reconciler.cli.settings import configured
from reconciler.cli.stdout import write_stdout
from reconciler.errors import OutputFailed
from reconciler.system import clock
from reconciler.system.files import save

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument
    from reconciler.document.links import Links
    from reconciler.document.style import Style

    Write = Callable[[str, Style], str]
    """Returns the result in a format, such as `text`, and a style."""

NO_DOCUMENTS: Mapping[Path, str] = MappingProxyType({})


def write_plan(
    saved: "RunDocument",
    output: OutputOptions,
    job: Job | None,
    out: Path | None = None,
    *,
    current_time: Callable[[], datetime] = clock.now,
    detailed: bool = False,
) -> ExitCode:
    """Write a plan and, if `out` is given, its document; return the exit code, see `of_plan`."""
    from reconciler.document import stored
    from reconciler.reports import render_plan

    documents = {} if out is None else {out: stored.save(saved)}
    write_result(
        partial(render_plan, saved), output, job=job, document_texts=documents, fleet=saved, current_time=current_time
    )
    return of_plan(saved, detailed=detailed, allow_problems=output.allow_problems)


def write_report(report: "RunDocument", output: OutputOptions, job: Job | None, out: Path | None = None) -> int:
    """Write a report and, if `out` is given, its document; return the exit code, see `of_report`."""
    from reconciler.document import stored
    from reconciler.reports import render_report

    documents = {} if out is None else {out: stored.save(report)}
    write_result(partial(render_report, report), output, job=job, document_texts=documents)
    return of_report(report, allow_problems=output.allow_problems)


def write_result(
    write: "Write",
    output: OutputOptions,
    *,
    job: Job | None = None,
    document_texts: Mapping[Path, str] = NO_DOCUMENTS,
    fleet: "RunDocument | None" = None,
    current_time: Callable[[], datetime] = clock.now,
    silent: bool = False,
    precious: bool = False,
) -> None:
    """Write the result to stdout, then each document, then each report; only a second signal interrupts that.

    Args:
        write: the result in each format.
        output: the options.
        job: the CI job, which keeps histories and announces plans.
        document_texts: the texts of further files.
        fleet: what a fleet page is about, and its history.
        current_time: returns the time by the clock of the run.
        silent: whether nothing goes to stdout.
        precious: whether the result goes to stderr if stdout fails.

    Raises:
        OutputFailed: with every failure, once all else was written.
    """
    plain = plain_style(output)

    def show() -> None:
        try:
            write_stdout(write(output.format, style_of(output, sys.stdout)))
        except OutputFailed:
            if precious:
                write_stderr(write("text", plain))
            raise

    saves = [partial(save, path, text) for path, text in document_texts.items()]

    def put(format_: str, path: Path) -> None:
        if fleet is not None and format_ == FLEET:
            save_fleet(fleet, path, plain, current_time())
        elif fleet is not None and format_ == AUDIT:
            save_tables(fleet, path)
        else:
            save(path, write(format_, plain))

    reports = [partial(put, format_, Path(file)) for format_, file in output.reports]
    with job.keeping() if job else nullcontext(), signals_handled(grace_signals=1):
        attempt_all([*([] if silent else [show]), *saves, *reports])
    # last: a plan that could not be written is not announced
    if fleet is not None and job:
        job.publish(fleet)


def write_reports_so_far(write: "Write", output: OutputOptions) -> None:
    """Write the reports that are files, in case the run has no time at its end; `write_result` replaces them."""
    plain = plain_style(output)
    for format_, file in output.reports:
        path = Path(file)
        if path.is_file() or not path.exists():
            with suppress(OutputFailed):
                save(path, write(format_, plain))


def style_of(output: OutputOptions, stream: TextIO | None) -> "Style":
    """Return the style of text on a stream; None stands for a closed stream."""
    from reconciler.document.style import Style

    terminal = is_terminal(stream)
    return Style(
        colour=is_coloured(output, terminal=terminal),
        verbose=bool(output.verbose),
        quiet=output.quiet,
        width=get_terminal_size().columns if terminal else None,
        deletions_last=terminal,
        group_by=output.group_by,
        links=links_of,
    )


def plain_style(output: OutputOptions) -> "Style":
    """Return the style of files: without colour, width and what a terminal changes."""
    from reconciler.document.style import Style

    return Style(group_by=output.group_by, links=links_of)


def links_of(document: "RunDocument") -> "Links":
    """Return the links of a plan or a report, by the variables of a CI job and `reconciler.yaml`."""
    from reconciler.document.links import Links, Places
    from reconciler.kinds import all_kinds

    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    return Links(document, Places.of(os.environ, configured(), all_kinds(), root=str(root), folder=str(here)))
