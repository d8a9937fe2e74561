"""The journal that a command holds while it writes; first it settles what earlier runs left unconfirmed there."""

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
class HeldJournal:
    """The journal of this run, or none.

    Attributes:
        unsettled: writes of earlier runs that could not be settled.
    """

    journal: "Journal | None" = None
    unsettled: "list[Intent]" = field(default_factory=list)

    def run(self, service: str, digest: str) -> "AbstractContextManager[object]":
        """Return a context manager that notes the begin and the end of this run."""
        return self.journal.run(service, digest, self.unsettled) if self.journal else nullcontext()

    @property
    def log(self) -> "WriteLog":
        """The log in which this run notes its writes."""
        from reconciler.engine.apply import NoWriteLog

        return self.journal or NoWriteLog()

    @property
    def failures(self) -> list[OutputFailed]:
        """Why lines could not be written."""
        if not (self.journal and self.journal.failure):
            return []
        return [
            OutputFailed(
                f"{self.journal.failure}; the journal is incomplete, and the next run with it confirms the rest"
            )
        ]


@contextmanager
def held_journal(
    journal_path: Path | None, client: "Client", kinds: "Kinds", sink: "TokenSink | None"
) -> Iterator[HeldJournal]:
    """Hold the journal, if there is one, and settle first what earlier runs left unconfirmed in it.

    Raises:
        OutputFailed: see `Journal`.
        ConfigurationError: it holds unconfirmed writes to another service.
    """
    if journal_path is None:
        yield HeldJournal()
        return
    from reconciler.engine.apply import recover
    from reconciler.engine.apply.journal import Journal

    with Journal(journal_path) as journal:
        held = HeldJournal(journal)
        left = journal.interrupted
        if left is not None:
            LOG.info("%s", left)
            if left.unconfirmed and left.service != client.api_url:
                raise ConfigurationError(
                    f"{journal_path} holds unconfirmed writes to {left.service}; run there first, or name another "
                    "journal"
                )
            for recovered in recover(left, client, kinds, sink):
                LOG.log(logging.INFO if recovered.settled else logging.WARNING, "%s", recovered)
                if not recovered.settled:
                    held.unsettled.append(recovered.intent)
        yield held
