"""Verification after writes: changed parts are read and planned again. A change that is still planned was dropped.

`verified` decides doubtful changes in the same way, and `recover` the unconfirmed writes of a killed run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.engine.apply.agree import name_in, planned_again, refusal, unanswered
from reconciler.engine.apply.journal import Intent, Interrupted
from reconciler.engine.apply.options import UNVERIFIED, Stop, TokenSink
from reconciler.engine.apply.reread import Reread, TargetReader, Unasked, collection_of, with_created
from reconciler.engine.apply.send import Attempt, Sender
from reconciler.engine.roster import fetch_record
from reconciler.errors import AnswerLost, NotFound, OutputFailed, ServiceError
from reconciler.model.diff import called_alike
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Finding, Item, Outcome, Status, Update, makes
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord
from reconciler.model.state import Unreadable
from reconciler.model.targets import Key, Target


def verified(attempts: Sequence[Attempt], sender: Sender) -> list[Attempt]:
    """Return attempts with their outcomes by live state, which is read once for all of them."""
    live = sender.reader.again(attempt.outcome.change for attempt in attempts)
    remaining = still_planned(attempts, live, sender.reader)
    # What refers to others comes first: of two that were made at once, one goes before what it names.
    outcomes = [
        with_created(_verified_outcome(attempt, live, remaining, sender), live) for attempt in reversed(attempts)
    ]
    return [Attempt(outcome, attempt.made) for attempt, outcome in zip(attempts, reversed(outcomes), strict=True)]


def _verified_outcome(
    attempt: Attempt, reread_parts: Reread, differences_by_id: Mapping[int, str], sender: Sender
) -> Outcome:
    """Return the outcome of a change by live state.

    Args:
        attempt: the change.
        reread_parts: the parts, as read after the writes.
        differences_by_id: see `still_planned`.
        sender: of the target.
    """
    outcome, change, made = attempt.outcome, attempt.outcome.change, attempt.made
    unread, lacking = reread_parts[change.address.section, change.address.part], differences_by_id.get(id(change))
    if attempt.doubt:
        if lacking is None:
            return outcome
        return _still_listed(attempt, attempt.doubt, sender) if lacking else _found_done(attempt, attempt.doubt, sender)
    if isinstance(unread, Unreadable):
        return _unverified(outcome, unread)
    if lacking:
        return replace(outcome, status=Status.DROPPED, reason=lacking)
    if (
        isinstance(change, Create)
        and made is not None
        and (reason := sender.objects.withdraw(change, made, reread_parts))
    ):
        return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)
    return outcome


def _still_listed(attempt: Attempt, doubt: ServiceError, sender: Sender) -> Outcome:
    """Return the outcome of a failed change; explains a 404 for the removal of an entry that is still listed."""
    outcome, change = attempt.outcome, attempt.outcome.change
    refers = isinstance(change, Delete) and isinstance(doubt, NotFound)
    level = collection_of(change.address, sender.kinds).names.level if refers else None
    if level is None:
        return outcome
    hidden = f"it is still listed, so this token cannot see that {level}; an owner who can see it can remove it"
    return replace(outcome, reason=f"{outcome.reason}; {hidden}")


def _found_done(attempt: Attempt, doubt: ServiceError, sender: Sender) -> Outcome:
    """Return the outcome of a failed or doubtful change whose object is as declared."""
    outcome, change = attempt.outcome, attempt.outcome.change
    if makes(change) and not doubt.ambiguous and attempt.made is None:
        return replace(outcome, status=Status.STALE, reason="somebody else made the same change at the same time")
    if isinstance(change, Create) and sender.objects.is_secret(change.address):
        return replace(outcome, reason=f"{outcome.reason}; a token exists whose value was not delivered: delete it")
    return Outcome(change, Status.DONE, created=outcome.created)


def _unverified(outcome: Outcome, unread: Unreadable) -> Outcome:
    """Return the outcome of an accepted change whose part was not read again."""
    if isinstance(unread, Unasked):
        return replace(outcome, reason=UNVERIFIED)
    reason = f"applied, but cannot be verified: {unread.reason}"
    return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)


def still_planned(attempts: Sequence[Attempt], reread_parts: Reread, target_reader: TargetReader) -> dict[int, str]:
    """Return, by the `id` of each attempted change, the differences that planning would still change; see `dropped`.

    If a deletion is in doubt and is carried out in the background, the list is read once more: if the object is still
    listed, it was not deleted.
    """
    remaining = dropped(attempts, reread_parts, target_reader.kinds)
    fading = [
        attempt
        for attempt in attempts
        if remaining.get(id(attempt.outcome.change)) and _fades(attempt, target_reader.kinds)
    ]
    return remaining | dropped(
        fading, target_reader.again(attempt.outcome.change for attempt in fading), target_reader.kinds
    )


# Users are deleted by a job: until it has run, the list still has the account (deployed behaviour, section a 12).
def _fades(attempt: Attempt, kinds: Kinds) -> bool:
    change = attempt.outcome.change
    part = kinds[change.address.section].part(change.address.part)
    return isinstance(change, Delete) and isinstance(part, Collection) and part.deletion.fades


def dropped(attempts: Iterable[Attempt], reread_parts: Reread, kinds: Kinds) -> dict[int, str]:
    """Return, by the `id` of each attempted change, its remaining differences in words; empty if it is done.

    Each object is compared alone, since others may have its name. No lookup is made: a name that needs one is on no
    object that was read. Changes of unreadable parts are left out.

    Args:
        attempts: the changes. Where there is no doubt, the service has accepted them.
        reread_parts: the parts of these changes, as read after the writes.
        kinds: all kinds.
    """
    remaining: dict[int, str] = {}
    shown: dict[str, list[tuple[Create | Update, LiveRecord]]] = {}
    for attempt in attempts:
        change = attempt.outcome.change
        objects = reread_parts[change.address.section, change.address.part]
        if isinstance(objects, Unreadable):
            continue
        if isinstance(change, Delete):
            exists = objects.keeps(change.read.id, is_accepted=attempt.doubt is None)
            remaining[id(change)] = "it still exists" if exists else ""
            continue
        record = objects.made_by(change, attempt.made.id if attempt.made else None)
        if record is None:
            remaining[id(change)] = "it does not exist"
            continue
        shown.setdefault(change.address.section, []).append((change, record))
        target_id = change.target_id if isinstance(change, Create) else None
        remaining[id(change)] = "" if objects.has_name(record, change.address.name, target_id) else "name"
    for section, pairs in shown.items():
        lost = _lost(kinds[section], pairs, reread_parts, kinds)
        for change, record in pairs:
            wanted, now, name = change.after, called_alike(change.after, record), name_in(change, kinds[section])
            fields = [field + _without(wanted[field], now.get(field)) for field in wanted if (name, field) in lost]
            own = ", ".join(filter(None, (remaining[id(change)], *fields)))
            remaining[id(change)] = f"the service kept its own {own}" if own else ""
    return remaining


def _lost(
    kind: Kind, changed_records: Sequence[tuple[Create | Update, LiveRecord]], reread_parts: Reread, kinds: Kinds
) -> set[tuple[tuple[str, Key | None], str]]:
    """Return the fields of a section that planning again would change, each with the name of its object."""
    # What a creation replaces may fade, or goes with a later run.
    changes = [
        replace(change, replaces_ids=()) if isinstance(change, Create) else change for change, _ in changed_records
    ]
    places = {(kind.name, change.address.part) for change in changes}
    readable = ((place, part) for place, part in reread_parts.items() if not isinstance(part, Unreadable))
    alone = {place: part.with_only(changed_records) for place, part in readable if place in places}
    planned = planned_again(changes, alone, kinds, unanswered)
    return {(name_in(step, kind), field) for step in planned.items for field in _fields_of(step)}


def _fields_of(item: Item) -> Iterable[str]:
    """Return the fields that a step changes, or for which it is a problem."""
    match item:
        case Update():
            return item.after
        case Finding(code="problem", field=str() as field):
            return (field,)
    return ()


def _without(wanted_value: Json, shown: Json) -> str:
    """Return the declared entries that are missing in a live list, in words; empty if that is unknown."""
    if not (isinstance(wanted_value, list) and isinstance(shown, list)):
        return ""
    lost = [entry for entry in wanted_value if entry not in shown]
    words = (" ".join(map(str, next(iter(entry.items())))) if isinstance(entry, dict) else str(entry) for entry in lost)
    return f" (without {', '.join(words)})" if lost else ""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The verdict on an unconfirmed write.

    Attributes:
        intent: the write.
        verdict: in words.
        settled: whether no further action is needed.
    """

    intent: Intent
    verdict: str
    settled: bool = True

    def __str__(self) -> str:
        """Return a summary in one sentence."""
        return f"Unconfirmed write {self.intent}: {self.verdict}."


def recover(interrupted: Interrupted, reader: Reader, kinds: Kinds, deliver: TokenSink | None) -> Iterator[Recovered]:
    """Check unconfirmed writes, one reading for each section of each target, and deliver created token values."""
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
                yield _recover(intent, part, live, again, deliver)


def _exists(intent: Intent, reader: Reader) -> Recovered:
    """Return the verdict on the creation of a target."""
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


def _recover(
    intent: Intent, part: Part, reread_parts: Reread, target_reader: TargetReader, deliver: TokenSink | None
) -> Recovered:
    change = intent.change
    unread = reread_parts[intent.section, intent.part]
    if isinstance(unread, Unreadable):
        return Recovered(intent, f"unknown; it could not be checked: {unread.reason}", settled=False)
    if refusal(change, reread_parts, target_reader.kinds):
        return Recovered(intent, "unknown; this version makes no such change", settled=False)
    unconfirmed = Attempt(Outcome(change, Status.FAILED), doubt=AnswerLost(intent.request, "unconfirmed"))
    lacking = still_planned([unconfirmed], reread_parts, target_reader)[id(change)]
    if not (isinstance(change, Create) and isinstance(part, Collection) and part.secret_field):
        return Recovered(intent, "it did not succeed" if lacking else "it succeeded")
    values = [
        value for record, value in target_reader.secrets(part, change.address) if record.id not in change.replaces_ids
    ]
    if not values:
        return Recovered(intent, "it did not succeed")
    try:
        if deliver is None:
            raise OutputFailed("add --tokens-to FILE or --tokens-command CMD")
        deliver(change.address, values[-1])
    except OutputFailed as error:
        return Recovered(intent, f"it succeeded, and its value is not delivered: {error}", settled=False)
    return Recovered(intent, "it succeeded, and its value was delivered now")
