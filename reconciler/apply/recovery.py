"""After a run that was killed: its unconfirmed writes are looked for, and values that it created are delivered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.apply.journal import Intent, Interrupted
from reconciler.apply.outcomes import Stop, TokenSink
from reconciler.apply.succession import Lists, ours_of
from reconciler.apply.verify import Reread, Verifier, unapplied
from reconciler.errors import OutputFailed
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Create
from reconciler.model.protocols import Reader
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class Recovered:
    """The finding about an unconfirmed write.

    Attributes:
        intent: the write.
        verdict: what became of it.
        settled: whether nothing about it is left to be done.
    """

    intent: Intent
    verdict: str
    settled: bool = True

    def __str__(self) -> str:
        """All of it in one sentence."""
        return f"Unconfirmed write {self.intent}: {self.verdict}."


def recover(interrupted: Interrupted, reader: Reader, kinds: Kinds, deliver: TokenSink | None) -> Iterator[Recovered]:
    """Look for unconfirmed writes, one reading for each section of each target, and deliver values they created."""
    scopes: dict[Target, list[Intent]] = {}
    for intent in interrupted.unconfirmed:
        scopes.setdefault(intent.change.address.target, []).append(intent)
    for target, intents in scopes.items():
        yield from _Recovery(target, reader, kinds, deliver).settle(intents)


class _Recovery:
    """The recovery of one target."""

    def __init__(self, target: Target, reader: Reader, kinds: Kinds, deliver: TokenSink | None) -> None:
        self.lists, self.kinds, self.deliver = Lists(reader), kinds, deliver
        self.look = Verifier(self.lists, kinds, target, Stop())

    def settle(self, intents: Iterable[Intent]) -> Iterator[Recovered]:
        """Yield what became of each write."""
        parts = [(intent, self._part(intent)) for intent in intents]
        live = self.look.again(intent.change for intent, part in parts if part)
        for intent, part in parts:
            if part is None:
                yield Recovered(intent, "unknown; this version has no such section", settled=False)
            else:
                yield self._judged(intent, part, live)

    def _part(self, intent: Intent) -> Part | None:
        parts = self.kinds[intent.section].parts if intent.section in self.kinds else ()
        return next((part for part in parts if part.name == intent.part), None)

    def _judged(self, intent: Intent, part: Part, live: Reread) -> Recovered:
        change = intent.change
        try:
            lacking = unapplied(change, live)
        except LookupError as error:
            return Recovered(intent, f"unknown; it could not be looked for: {error}", settled=False)
        if isinstance(change, Create) and isinstance(part, Collection) and part.secret_field:
            return self._delivered(intent, part, change)
        return Recovered(intent, "it did not succeed" if lacking else "it succeeded")

    def _delivered(self, intent: Intent, part: Collection, change: Create) -> Recovered:
        """Deliver the newest value of ours that was not there before."""
        ours = ours_of(part, change.address, self.lists.read[part.path(change.address.target)])
        values = [value for found, value in ours if found.id not in change.replaces_ids]
        if not values:
            return Recovered(intent, "it did not succeed")
        try:
            if self.deliver is None:
                raise OutputFailed("add --tokens-to FILE or --tokens-command CMD")
            self.deliver(change.address, values[-1])
        except OutputFailed as error:
            return Recovered(intent, f"it succeeded, and its value is not delivered: {error}", settled=False)
        return Recovered(intent, "it succeeded, and its value was delivered now")
