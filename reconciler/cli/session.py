"""The first and last steps of most commands: read the manifests, connect to the service, write the result."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from shutil import get_terminal_size
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

import click

from reconciler import CONFIGURATION
from reconciler.cli.exit_codes import ExitCode, heeding, of_plan, of_report
from reconciler.cli.logs import start_log, warnings_last
from reconciler.cli.options import DEFAULT_PATHS, Given
from reconciler.cli.outputs import FLEET, attempt_all, is_terminal, save_fleet, write_stderr
from reconciler.cli.progress import is_coloured, shown
from reconciler.cli.settings import (
    ALLOW_DELETES_UNTIL,
    duration,
    given_outside,
    open_client,
    read_file,
    reading_token,
    template_variables,
    tokens_of,
)
from reconciler.cli.stdout import write_stdout
from reconciler.errors import LocatedDiagnostic, OutputFailed, PlanRefused, UsageError
from reconciler.system import clock
from reconciler.system.files import save

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from reconciler.document.document import RunDocument
    from reconciler.document.guard import Limits
    from reconciler.document.links import Links
    from reconciler.document.style import Style
    from reconciler.engine.compare.selection import RunSelection
    from reconciler.manifests import Inputs, Manifests
    from reconciler.memory.revision import Revision
    from reconciler.model.kind import Kinds
    from reconciler.model.progress import Progress
    from reconciler.model.state import DesiredState
    from reconciler.service import Client, Traffic

LOG = logging.getLogger("reconciler")

NO_DOCUMENTS: Mapping[Path, str] = MappingProxyType({})


@contextmanager
def naming_document(file: Path) -> Iterator[None]:
    """Name the file in the errors about the document that it holds."""
    try:
        yield
    except PlanRefused as error:
        raise type(error)(f"{file}: {error}") from error


class Session:
    """One run of one command: its options, kinds and manifests, the connection, and where results go."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self._client: Client | None = None
        level = logging.ERROR if given.quiet else logging.DEBUG if given.verbose else logging.INFO
        start_log(level, as_json=given.log_format == "json")

    @property
    def kinds(self) -> "Kinds":
        """All kinds."""
        from reconciler.kinds import all_kinds

        return all_kinds()

    @property
    def inputs(self) -> "Inputs":
        """The sources of the manifests.

        Raises:
            ConfigurationError: see `template_variables`.
        """
        from reconciler.manifests import Inputs

        given = self.given
        paths = [Path(path) for path in given.paths or DEFAULT_PATHS]
        secrets = partial(tokens_of, given)
        return Inputs(paths, self.kinds, given.values, dict(given.set), template_variables(given), secrets)

    def now(self) -> "datetime":
        """Return the time by the clock of this run: the service's where it was asked, else that of the machine."""
        return clock.now() if self._client is None else self._client.now()

    def manifests(self, *, quiet: bool = False, locks_bind: bool = True, dated: bool = True) -> "Manifests":
        """Read the manifests and, unless quiet, log their warnings.

        Args:
            quiet: whether nothing is logged.
            locks_bind: whether broken locks are errors.
            dated: whether exceptions that end are told; a run that asks the service does so once it knows the day.

        Raises:
            ManifestErrors: with every error of every file.
        """
        from reconciler.manifests import read_manifests

        manifests = read_manifests(self.inputs, locks_bind=locks_bind, dated=dated)
        if not quiet:
            self.warn_of(manifests.warnings)
        return manifests

    def warn_of(self, warnings: "Sequence[LocatedDiagnostic]") -> None:
        """Log warnings about manifests; unless verbose, those of one message as one."""
        if warnings:
            from reconciler.document.wording import warned_once

            self.warn(warnings if self.given.verbose else warned_once(warnings))

    def revision(self, name: str, present: "Manifests") -> "Revision":
        """Read the manifests of a git revision whole; warn if HEAD does not descend from it.

        Args:
            name: of the revision, as the user gives it.
            present: the manifests of now.

        Raises:
            ManifestErrors: its `reconciler.yaml` is not valid.
            ConfigurationError: it cannot be read.
            UsageError: the name is not valid.
        """
        from reconciler.memory.revision import read_revision
        from reconciler.memory.snapshot import snapshot

        inputs = self.inputs
        then = snapshot(name, inputs.paths[0])
        parted = then.parted()
        if parted is not None:
            remedy = f"; to leave it out, use the common ancestor: --since {parted}" if parted else ""
            LOG.warning(
                "--since %s: this revision is not an ancestor of the checked-out commit; what changed there since the "
                "two parted counts as changed here%s",
                name,
                remedy,
            )
        given = given_outside("paths", "values", "set", "env")
        return read_revision(then, inputs, present, given=given)

    def limits(self) -> "Limits":
        """Return the limits of a plan that is made now."""
        from reconciler.document.guard import Limits

        return Limits(self.allow_deletes, self.given.max_changes, in_job=self.given.job is not None)

    @cached_property
    def allow_deletes(self) -> int | None:
        """The allowed deletions; none by a permission of `reconciler.yaml` that has ended, which is warned of once."""
        settings = getattr(click.get_current_context(silent=True), "default_map", None) or {}
        until, given = settings.get(ALLOW_DELETES_UNTIL), self.given.allow_deletes
        is_flag = given is not None and bool(given_outside("allow_deletes"))
        if until is None or is_flag or self.now().date() <= until:
            return given
        LOG.warning(
            "%s: allow_deletes ended on %s and no longer counts; remove it, or set a later day", CONFIGURATION, until
        )
        return None

    @property
    def grace(self) -> "timedelta":
        """The age of a successor at which what it succeeds is deleted: the same for commands without the option."""
        context = click.get_current_context(silent=True)
        settings = getattr(context, "default_map", None) or {}
        has_option = context is not None and "grace" in context.params
        return duration("--grace", self.given.grace if has_option else settings.get("grace", self.given.grace))

    def warn(self, warnings: "Iterable[object]") -> None:
        """Log warnings."""
        for warning in warnings:
            LOG.warning("%s", warning)

    @contextmanager
    def client(self, *, brisk: bool = False, only_reads: bool = False, reads_moved: bool = True) -> "Iterator[Client]":
        """Connect to the service; see `open_client`. What only reads takes the token for that, if there is one."""
        token = reading_token() if only_reads else None
        with open_client(self.given, brisk=brisk, token=token, reads_moved=reads_moved) as client:
            self._client = client
            try:
                yield client
            except KeyboardInterrupt:
                client.stop.set()
                raise

    @contextmanager
    def watched(self, traffic: "Traffic") -> "Iterator[Progress]":
        """Show progress on stderr while this block runs."""
        from reconciler.model.progress import Progress

        progress = Progress(lambda: traffic.requests)
        with self.showing(progress, traffic):
            yield progress

    def showing(self, progress: "Progress", traffic: "Traffic") -> AbstractContextManager[None]:
        """Show the progress of a run on stderr while a block runs."""
        return shown(progress, traffic, self.given)

    @contextmanager
    def planning(self, traffic: "Traffic") -> "Iterator[Progress]":
        """Show progress on stderr while this block makes a plan; its warnings come afterwards, or after its error."""
        with warnings_last(), self.watched(traffic) as progress:
            yield progress

    def select(self, desired: "DesiredState") -> "DesiredState":
        """Return the part of a state that the options of `Given.narrowed` select; warn of what is odd about it.

        Raises:
            NothingSelected: a path or a label that is selected is nobody's.
            UsageError: there is no such section, or no target declares it.
        """
        from reconciler.engine.compare.selection import remarks, select

        self.check_sections()
        selected = select(desired, self.selection)
        self.warn(remarks(self.selection, desired))
        return selected

    def check_sections(self) -> None:
        """Refuse an unknown `--section`.

        Raises:
            UsageError: there is no such section.
        """
        from reconciler.model.kind import unknown_kind

        for name in self.given.sections:
            if name not in self.kinds:
                raise UsageError(unknown_kind(name, self.kinds.values(), self.kinds))

    @property
    def selection(self) -> "RunSelection":
        """The selected targets and sections."""
        from reconciler.engine.compare.selection import RunSelection
        from reconciler.model.globs import Globs

        given = self.given
        return RunSelection(Globs(given.targets), Globs(given.excluded), given.labels, given.sections)

    def read_plan(self, file: Path) -> "RunDocument":
        """Return the plan that a file holds.

        Raises:
            ConfigurationError: the file cannot be read.
            PlanRefused: it holds no plan, or an edited one; the message names the file.
        """
        from reconciler.document.stored import load_plan

        with naming_document(file):
            return load_plan(read_file(file), self.kinds)

    def read_report(self, file: Path) -> "RunDocument":
        """Return the report of an apply that a file holds; errors are as of `read_plan`."""
        from reconciler.document.stored import load_report

        with naming_document(file):
            return load_report(read_file(file), self.kinds)

    def info(self, text: str) -> None:
        """Log a message for the person who watches, unless they asked for quiet."""
        LOG.info("%s", text)

    def write_plan(
        self, saved: "RunDocument", out: Path | None = None, *, silent: bool = False, detailed: bool = False
    ) -> ExitCode:
        """Write a plan and, if `out` is given, its document; return the exit code, see `of_plan`."""
        from reconciler.document.stored import save
        from reconciler.reports import render_plan

        documents = {} if out is None else {out: save(saved)}
        self.write_result(partial(render_plan, saved), documents=documents, fleet=saved, silent=silent)
        return of_plan(saved, detailed=detailed, allow_problems=self.given.allow_problems)

    def write_report(self, report: "RunDocument", out: Path | None = None) -> int:
        """Write a report and, if `out` is given, its document; return the exit code, see `of_report`."""
        from reconciler.document.stored import save
        from reconciler.reports import render_report

        documents = {} if out is None else {out: save(report)}
        self.write_result(partial(render_report, report), documents=documents)
        return of_report(report, allow_problems=self.given.allow_problems)

    def write_result(
        self,
        write: "Callable[[str, Style], str]",
        *,
        documents: Mapping[Path, str] = NO_DOCUMENTS,
        fleet: "RunDocument | None" = None,
        silent: bool = False,
        precious: bool = False,
    ) -> None:
        """Write the result to stdout, then each document, then each report; only a second signal interrupts that.

        Args:
            write: returns the result in a format, such as `text`, and a `render.Style`.
            documents: the texts of further files.
            fleet: what a fleet page is about, and its history.
            silent: whether nothing goes to stdout.
            precious: whether the result goes to stderr if stdout fails.

        Raises:
            OutputFailed: with every failure, once all else was written.
        """
        from reconciler.document.style import Style

        plain = Style(group_by=self.given.group_by, links=self.links)

        def show() -> None:
            try:
                write_stdout(write(self.given.format, self.style(sys.stdout)))
            except OutputFailed:
                if precious:
                    write_stderr(write("text", plain))
                raise

        saves = [partial(save, path, text) for path, text in documents.items()]

        def put(format_: str, path: Path) -> None:
            if fleet is not None and format_ == FLEET:
                save_fleet(fleet, path, plain, self.now())
            else:
                save(path, write(format_, plain))

        reports = [partial(put, format_, Path(file)) for format_, file in self.given.reports]
        with self.given.job.keeping(self.given) if self.given.job else nullcontext(), heeding(patience=1):
            attempt_all([*([] if silent else [show]), *saves, *reports])
        if fleet is not None and self.given.job:
            self.given.job.publish(self, fleet)

    def write_reports_so_far(self, write: "Callable[[str, Style], str]") -> None:
        """Write the reports that are files, in case that the run has no time to; `write_result` replaces them.

        Args:
            write: see `write_result`.
        """
        from reconciler.document.style import Style

        plain = Style(group_by=self.given.group_by, links=self.links)
        for format_, file in self.given.reports:
            path = Path(file)
            if path.is_file() or not path.exists():
                with suppress(OutputFailed):
                    save(path, write(format_, plain))

    def style(self, stream: TextIO | None) -> "Style":
        """Return the style of text on a stream; None stands for a closed stream."""
        from reconciler.document.style import Style

        terminal = is_terminal(stream)
        return Style(
            colour=is_coloured(self.given, terminal=terminal),
            verbose=bool(self.given.verbose),
            quiet=self.given.quiet,
            width=get_terminal_size().columns if terminal else None,
            deletions_last=terminal,
            group_by=self.given.group_by,
            links=self.links,
        )

    def links(self, document: "RunDocument | RunDocument") -> "Links":
        """Return the links of a plan or a report, by the variables of a CI job and `reconciler.yaml`."""
        from reconciler.document.links import Links, Places

        here = Path.cwd()
        root = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
        settings = getattr(click.get_current_context(silent=True), "default_map", None) or {}
        return Links(document, Places.of(os.environ, settings, self.kinds, root=str(root), folder=str(here)))
