"""After a run that was killed: its unconfirmed writes are looked for, and values that it created are delivered."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.engine.apply.journal import Intent, Interrupted
from reconciler.engine.apply.outcomes import Stop, TokenSink
from reconciler.engine.apply.verify import Reread, Verifier
from reconciler.engine.roster import fetch_record
from reconciler.errors import NotFound, OutputFailed, ServiceError
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create
from reconciler.model.kind import Kinds, Part
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
    targets: dict[Target, list[Intent]] = {}
    for intent in interrupted.unconfirmed:
        targets.setdefault(intent.change.address.target, []).append(intent)
    for target, noted in targets.items():
        intents = [intent for intent in noted if intent.section]
        yield from (_exists(intent, reader) for intent in noted if not intent.section)
        verifier = Verifier(reader, kinds, target, Stop())
        parts = [_part(intent, kinds) for intent in intents]
        live = verifier.again(intent.change for intent, part in zip(intents, parts, strict=True) if part)
        for intent, part in zip(intents, parts, strict=True):
            if part is None:
                yield Recovered(intent, "unknown; this version has no such section", settled=False)
            else:
                yield _judge(intent, part, live, verifier, deliver)


def _exists(intent: Intent, reader: Reader) -> Recovered:
    """Return whether a target was created."""
    try:
        record = fetch_record(intent.change.address.target, reader)
    except NotFound:
        return Recovered(intent, "it did not succeed")
    except ServiceError as error:
        return Recovered(intent, f"unknown; it could not be checked: {error}", settled=False)
    return Recovered(intent, f"it succeeded; its ID is {record.id}")


def _part(intent: Intent, kinds: Kinds) -> Part | None:
    parts = kinds[intent.section].parts if intent.section in kinds else ()
    return next((part for part in parts if part.name == intent.part), None)


def _judge(intent: Intent, part: Part, live: Reread, verifier: Verifier, deliver: TokenSink | None) -> Recovered:
    change = intent.change
    try:
        lacking = verifier.unapplied(change, live)
    except LookupError as error:
        return Recovered(intent, f"unknown; it could not be checked: {error}", settled=False)
    if not (isinstance(change, Create) and isinstance(part, Collection) and part.secret_field):
        return Recovered(intent, "it did not succeed" if lacking else "it succeeded")
    values = [value for record, value in verifier.secrets(part, change.address) if record.id not in change.replaces_ids]
    if not values:
        return Recovered(intent, "it did not succeed")
    try:
        if deliver is None:
            raise OutputFailed("add --tokens-to FILE or --tokens-command CMD")
        deliver(change.address, values[-1])
    except OutputFailed as error:
        return Recovered(intent, f"it succeeded, and its value is not delivered: {error}", settled=False)
    return Recovered(intent, "it succeeded, and its value was delivered now")
