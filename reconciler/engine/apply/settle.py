"""After writes: what was sent is read, and planned again. What is still planned was dropped, or not carried out.

So are doubts settled, and at the beginning of a run the unconfirmed writes of one that was killed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.engine.apply.agree import Sent, dropped
from reconciler.engine.apply.journal import Intent, Interrupted
from reconciler.engine.apply.options import UNVERIFIED, Stop, TokenSink
from reconciler.engine.apply.reread import Reread, TargetReader, Unasked, collection_of, with_created
from reconciler.engine.apply.send import Attempt, Sender
from reconciler.engine.records import fetch_record
from reconciler.errors import NotFound, OutputFailed, ServiceError
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Outcome, Status, makes
from reconciler.model.kind import Kinds, Part
from reconciler.model.protocols import Reader
from reconciler.model.state import Unreadable
from reconciler.model.targets import Target


def settled(attempts: Sequence[Attempt], sender: Sender) -> list[Attempt]:
    """Return what became of some attempts by what the service shows of them, which is read once."""
    live = sender.reader.again(attempt.outcome.change for attempt in attempts)
    sent = [
        Sent(attempt.outcome.change, attempt.made.id if attempt.made else None, is_accepted=not attempt.doubt)
        for attempt in attempts
    ]
    left = still_planned(sent, live, sender.reader)
    # What refers to others comes first: of two that were made at once, one goes before what it names.
    outcomes = [with_created(_settled(attempt, live, left, sender), live) for attempt in reversed(attempts)]
    return [Attempt(outcome, attempt.made) for attempt, outcome in zip(attempts, reversed(outcomes), strict=True)]


def _settled(attempt: Attempt, live: Reread, left: Mapping[int, str], sender: Sender) -> Outcome:
    """Return what became of a change.

    Args:
        attempt: the change.
        live: the parts, as they were read since.
        left: see `still_planned`.
        sender: of the target.
    """
    outcome, change, made = attempt.outcome, attempt.outcome.change, attempt.made
    unread, lacking = live[change.address.section, change.address.part], left.get(id(change))
    if attempt.doubt:
        if lacking is None:
            return outcome
        return _still_there(attempt, attempt.doubt, sender) if lacking else _found_done(attempt, attempt.doubt, sender)
    if isinstance(unread, Unreadable):
        return _unverified(outcome, unread)
    if lacking:
        return replace(outcome, status=Status.DROPPED, reason=lacking)
    if isinstance(change, Create) and made is not None and (reason := sender.objects.withdrawn(change, made, live)):
        return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)
    return outcome


def _still_there(attempt: Attempt, doubt: ServiceError, sender: Sender) -> Outcome:
    """Return what became of a change that failed; of a removal of what is listed and not found, say why that is."""
    outcome, change = attempt.outcome, attempt.outcome.change
    refers = isinstance(change, Delete) and isinstance(doubt, NotFound)
    level = collection_of(change.address, sender.kinds).names.level if refers else None
    if level is None:
        return outcome
    hidden = f"it is still listed, so this token cannot see that {level}; an owner who can see it can remove it"
    return replace(outcome, reason=f"{outcome.reason}; {hidden}")


def _found_done(attempt: Attempt, doubt: ServiceError, sender: Sender) -> Outcome:
    """Return what became of a change that failed, or may have, and is nevertheless as wanted."""
    outcome, change = attempt.outcome, attempt.outcome.change
    if makes(change) and not doubt.ambiguous and attempt.made is None:
        return replace(outcome, status=Status.STALE, reason="somebody else made the same change at the same time")
    if isinstance(change, Create) and sender.objects.is_secret(change.address):
        return replace(outcome, reason=f"{outcome.reason}; a token exists whose value was not delivered: delete it")
    return Outcome(change, Status.DONE, created=outcome.created)


def _unverified(outcome: Outcome, unread: Unreadable) -> Outcome:
    """Return what became of a change that the service has accepted, and that cannot be or was not read again."""
    if isinstance(unread, Unasked):
        return replace(outcome, reason=UNVERIFIED)
    reason = f"applied, but cannot be verified: {unread.reason}"
    return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)


def still_planned(sent: Sequence[Sent], live: Reread, reader: TargetReader) -> dict[int, str]:
    """Return, by the `id` of each change that was sent, what planning it again would still do; see `dropped`.

    Where a deletion is in doubt and its object may fade away, the list is read once more: if the object is still there,
    nothing has deleted it.
    """
    left = dropped(sent, live, reader.kinds)
    fading = [one for one in sent if left.get(id(one.change)) and _fades(one, reader.kinds)]
    return left | dropped(fading, reader.again(one.change for one in fading), reader.kinds)


def _fades(sent: Sent, kinds: Kinds) -> bool:
    part = kinds[sent.change.address.section].part(sent.change.address.part)
    return isinstance(sent.change, Delete) and isinstance(part, Collection) and part.deletion.fades


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
        again = TargetReader(reader, kinds, target, Stop())
        parts = [_part(intent, kinds) for intent in intents]
        live = again.again(intent.change for intent, part in zip(intents, parts, strict=True) if part)
        for intent, part in zip(intents, parts, strict=True):
            if part is None:
                yield Recovered(intent, "unknown; this version has no such section", settled=False)
            else:
                yield _judge(intent, part, live, again, deliver)


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


def _judge(intent: Intent, part: Part, live: Reread, reader: TargetReader, deliver: TokenSink | None) -> Recovered:
    change = intent.change
    unread = live[intent.section, intent.part]
    if isinstance(unread, Unreadable):
        return Recovered(intent, f"unknown; it could not be checked: {unread.reason}", settled=False)
    lacking = still_planned([Sent(change, is_accepted=False)], live, reader)[id(change)]
    if not (isinstance(change, Create) and isinstance(part, Collection) and part.secret_field):
        return Recovered(intent, "it did not succeed" if lacking else "it succeeded")
    values = [value for record, value in reader.secrets(part, change.address) if record.id not in change.replaces_ids]
    if not values:
        return Recovered(intent, "it did not succeed")
    try:
        if deliver is None:
            raise OutputFailed("add --tokens-to FILE or --tokens-command CMD")
        deliver(change.address, values[-1])
    except OutputFailed as error:
        return Recovered(intent, f"it succeeded, and its value is not delivered: {error}", settled=False)
    return Recovered(intent, "it succeeded, and its value was delivered now")
