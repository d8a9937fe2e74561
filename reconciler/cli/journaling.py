"""The journal of an `apply`: held for the whole command; what earlier runs left unconfirmed is settled first."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from reconciler.apply import NoRecord, Record, TokenSink, recover
from reconciler.apply.journal import Intent, Journal
from reconciler.errors import ConfigurationError, OutputFailed
from reconciler.model.kind import Kinds
from reconciler.service import Client

LOG = logging.getLogger("reconciler")


class Keeping:
    """A journal that is held, or none.

    Attributes:
        unsettled: what it holds of earlier runs that could not be settled.
    """

    def __init__(self, journal: Journal | None, unsettled: Sequence[Intent]) -> None:
        self._journal, self.unsettled = journal, unsettled

    def run(self, service: str, digest: str) -> AbstractContextManager[Record]:
        """Return what keeps the writes of this run."""
        if self._journal is None:
            return nullcontext(NoRecord())
        return self._journal.run(service, digest, self.unsettled)

    @property
    def failures(self) -> list[OutputFailed]:
        """What kept lines from being written."""
        if self._journal is None or not self._journal.failure:
            return []
        return [
            OutputFailed(
                f"{self._journal.failure}; the journal is incomplete, and the next run with it confirms the rest"
            )
        ]


@contextmanager
def keeping(path: Path | None, client: Client, kinds: Kinds, deliver: TokenSink | None) -> Iterator[Keeping]:
    """Hold a journal, if one is kept, and settle what earlier runs left in it.

    Raises:
        OutputFailed: see `Journal`.
        ConfigurationError: it holds unconfirmed writes to another service.
    """
    if path is None:
        yield Keeping(None, [])
        return
    with Journal(path) as journal:
        left, unsettled = journal.interrupted, list[Intent]()
        if left is not None:
            LOG.info("%s", left)
            if left.unconfirmed and left.service != client.api_url:
                raise ConfigurationError(
                    f"{path} holds unconfirmed writes to {left.service}; run there first, or name another journal"
                )
            for found in recover(left, client, kinds, deliver):
                LOG.log(logging.INFO if found.settled else logging.WARNING, "%s", found)
                unsettled += [] if found.settled else [found.intent]
        yield Keeping(journal, unsettled)
