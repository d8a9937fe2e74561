"""The journal of a run that writes: opened, and first cleared of writes that earlier runs left unconfirmed."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import ConfigurationError, OutputFailed

if TYPE_CHECKING:
    from reconciler.engine.apply import TokenSink, WriteLog
    from reconciler.engine.apply.journal import Intent, Journal
    from reconciler.model.kind import Kinds
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class RunJournal:
    """The journal of this run, if it has one.

    Attributes:
        journal: None if no path was given.
        unsettled: writes of earlier runs that could not be settled.
    """

    journal: "Journal | None" = None
    unsettled: "list[Intent]" = field(default_factory=list)

    def run(self, service: str, digest: str) -> "AbstractContextManager[object]":
        """Return a context manager that records the start and the end of this run."""
        return self.journal.run(service, digest, self.unsettled) if self.journal else nullcontext()

    @property
    def log(self) -> "WriteLog":
        """The log in which this run records its writes."""
        from reconciler.engine.apply import NoWriteLog

        return self.journal or NoWriteLog()

    @property
    def failures(self) -> list[OutputFailed]:
        """The error of the lines that could not be written, if there were any."""
        if not (self.journal and self.journal.failure):
            return []
        return [
            OutputFailed(
                f"{self.journal.failure}; the journal is incomplete, and the next run with it confirms the rest"
            )
        ]


@contextmanager
def open_journal(
    journal_path: Path | None, client: "Client", kinds: "Kinds", sink: "TokenSink | None"
) -> Iterator[RunJournal]:
    """Open the journal, if a path is given, after settling the writes that earlier runs left unconfirmed.

    Raises:
        OutputFailed: see `Journal`.
        ConfigurationError: the journal has unconfirmed writes to another service.
    """
    if journal_path is None:
        yield RunJournal()
        return
    from reconciler.engine.apply import recover
    from reconciler.engine.apply.journal import Journal

    with Journal(journal_path) as journal:
        run_journal = RunJournal(journal)
        interrupted = journal.interrupted
        if interrupted is not None:
            LOG.info("%s", interrupted)
            if interrupted.unconfirmed and interrupted.service != client.api_url:
                raise ConfigurationError(
                    f"{journal_path} holds unconfirmed writes to {interrupted.service}; run there first, or name "
                    "another journal"
                )
            for recovered in recover(interrupted, client, kinds, sink):
                LOG.log(logging.INFO if recovered.settled else logging.WARNING, "%s", recovered)
                if not recovered.settled:
                    run_journal.unsettled.append(recovered.intent)
        yield run_journal
