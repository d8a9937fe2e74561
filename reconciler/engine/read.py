"""Reading live state: `read_live` reads the declared parts of all targets in parallel, `read_part` reads one part.

Only declared parts are read. Nothing here can write: it is handed a `Reader`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeVar

from reconciler.engine.compare.creation import empty_parts, existing
from reconciler.engine.crew import ask_each
from reconciler.errors import (
    BadAnswer,
    Forbidden,
    NotFound,
    ScopeMissing,
    ServiceError,
    Stopped,
    Unauthorized,
    Unreachable,
    WaitTooLong,
)
from reconciler.model.creation import ToCreate
from reconciler.model.diff import fields_of, with_rows
from reconciler.model.endpoints import Collection, Reading
from reconciler.model.entries import EntryRow
from reconciler.model.kind import Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader, Json, Reader
from reconciler.model.resource import LiveRecord, Objects, Resource, Wanted
from reconciler.model.state import DesiredState, LivePart, LiveState, PartAddress, Reference, Unreadable
from reconciler.model.targets import Identity, Level, Target

ENDS_A_RUN = (ScopeMissing, Stopped, Unauthorized, Unreachable, WaitTooLong)
"""Errors after which every further request would fail too."""

UNEXPECTED = "unexpected response: the body does not have the documented structure"

TRY_AGAIN = "try again; if it fails again, check the logs of the service"

RECORDS = {"user": ("users/{}", "username"), "group": ("groups/{}?with_projects=false", "full_path")}
"""For each kind of subject in an entry: the path of its record, and the field that holds the name."""

EarlyParts = Mapping[PartAddress, tuple[Wanted, LivePart]]
"""Parts that were read while groups were listed, each with the declaration for which it was read."""

NOTHING_READ: EarlyParts = MappingProxyType({})

Result = TypeVar("Result")


def read_live(
    desired: DesiredState,
    reader: FleetReader,
    kinds: Kinds,
    progress: Progress | None = None,
    *,
    early: EarlyParts = NOTHING_READ,
    ids: Mapping[Reference, int | Obstacle] = MappingProxyType({}),
    absent: Mapping[Identity, ToCreate | Obstacle] = MappingProxyType({}),
) -> LiveState:
    """Read every declared part of every target, except parts that were read before for the same declaration.

    Args:
        early: the parts that were read before.
        absent: the targets of which no part is read; see `LiveState.absent`.
        ids: the known numeric IDs; any other ID that a path needs is requested.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`. Any other failure is an `Unreadable`.
    """
    wanted = {
        (target.target, section.kind, part): declared
        for target in existing(desired, absent).targets
        for section in target.sections
        for part, declared in section.wanted.items()
    }
    progress = progress or Progress()
    progress.begin("reading", (target for target, _, _ in wanted))

    def read(address: PartAddress, reader: FleetReader) -> LivePart:
        target, section, part = address
        # A kind may read more for what is declared, and a set that was expanded since may declare more.
        before, early_part = early.get(address, (None, None))
        if early_part is None or before != wanted[address]:
            number = ids.get(Reference(target.level, str(target.ref).casefold()))
            known = number if isinstance(number, int) else None
            early_part = read_part(reader, kinds[section].part(part), target, wanted[address], known)
        progress.step(target)
        return early_part

    parts = ask_each(read, wanted, reader)
    live = LiveState(parts, {**ids, **learn_ids(parts, kinds)}, reader.now())
    return without_targets(live, desired, kinds, absent)


def without_targets(
    live: LiveState, desired: DesiredState, kinds: Kinds, absent: Mapping[Identity, ToCreate | Obstacle]
) -> LiveState:
    """Return live state in which further targets are absent, so that their parts are empty."""
    missing = (target for target in desired.targets if target.target.identity in absent)
    parts = {**live.parts, **dict(empty_parts(missing, kinds))} if absent else live.parts
    return replace(live, parts=parts, absent={**live.absent, **absent})


def read_part(
    reader: Reader, part: Part, target: Target, declaration: Resource | Mapping[Any, Any], number: int | None = None
) -> LivePart:
    """Read one part of one target.

    Args:
        declaration: the declaration of the part, or for a singleton, the declared fields as JSON.
        number: the target's own numeric ID, if known; otherwise it is requested where the path needs it.

    Raises:
        ServiceError: see `read_live`.
    """

    def ask() -> LiveRecord | Objects:
        if not isinstance(part, Collection):
            answer = reader.get(part.path(target))
            return decode(part, target, completed(part, Reading(reader, target, answer, _fields(declaration))))
        at = numbered(part, target, reader, number)
        answer = reader.pages(part.path(at), whole=not part.listing.has_pages)
        answer = completed(part, Reading(reader, target, answer, _fields(declaration)))
        objects = with_names(part, _sound(part, target, lambda: part.objects(target, answer)), reader)
        return replace(objects, target_id=at.ref) if at is not target and isinstance(at.ref, int) else objects

    answer = answer_or_error(ask)
    if isinstance(answer, ServiceError):
        return Unreadable(str(answer), isinstance(answer, NotFound), answer.status)
    return answer


def numbered(part: Collection, target: Target, reader: Reader, number: int | None = None) -> Target:
    """Return the target by its numeric ID if the path of the list needs that, else unchanged.

    Raises:
        ServiceError: its ID is not known, and the service does not return it.
    """
    if not part.listing.needs_numeric_id or isinstance(target.ref, int):
        return target
    path = target.url.rstrip("/")
    record = {"id": number} if number is not None else reader.get(path)
    shown_id = record.get("id") if isinstance(record, dict) else None
    if type(shown_id) is not int:
        raise BadAnswer(f"GET {path}", UNEXPECTED)
    return Target(target.level, shown_id)


def completed(part: Part, reading: Reading) -> Json:
    """Return a response, with any values that the kind adds by further requests.

    Raises:
        BadAnswer: the response does not have the documented structure.
    """
    complete = part.listing.complete if isinstance(part, Collection) else part.complete
    return reading.answer if complete is None else _sound(part, reading.target, lambda: complete(reading))


def _fields(declaration: Resource | Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the declared fields as JSON."""
    if isinstance(declaration, Resource):
        return fields_of(declaration)
    return {name: fields_of(item) if isinstance(item, Resource) else item for name, item in declaration.items()}


def learn_ids(live_parts: Mapping[PartAddress, LivePart], kinds: Kinds) -> dict[Reference, int | Obstacle]:
    """Collect the numeric IDs that live state has shown, so that they need not be requested."""
    ids: dict[Reference, int | Obstacle] = {}
    for (target, section, name), live in live_parts.items():
        part = kinds[section].part(name)
        if isinstance(live, Objects) and live.target_id is not None:
            ids[Reference(target.level, str(target.ref).casefold())] = live.target_id
        for record in live.own if isinstance(live, Objects) else ():
            if record.owner_id is not None and isinstance(target.ref, str):
                ids[Reference(target.level, target.ref.casefold())] = record.owner_id
            if isinstance(part, Collection) and part.names.level and record.id is not None:
                ids |= {
                    Reference(part.names.level, n.casefold()): record.id for n in record.names if isinstance(n, str)
                }
            if record.entries:
                ids |= {Reference(Level(who), subject): number for who, subject, number in _subjects(record)}
    return ids


def _subjects(record: LiveRecord) -> Iterator[tuple[str, str, int]]:
    """Yield the users and groups that entries name, with their IDs."""
    for row in chain.from_iterable(record.entries.values()):
        who, name = row.identity
        if who in RECORDS and isinstance(name, str) and row.number is not None:
            yield who, name, row.number


def answer_or_error(ask: Callable[[], Result]) -> Result | ServiceError:
    """Return an answer, or the error that occurred instead.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    try:
        return ask()
    except ENDS_A_RUN:
        raise
    except ServiceError as error:
        return error


def decode(part: Part, target: Target, answer: Json) -> LiveRecord:
    """Parse a response by its kind.

    Raises:
        BadAnswer: the kind cannot parse it, so the response does not have the documented structure.
    """
    return _sound(part, target, lambda: part.read(target, answer))


def _sound(part: Part, target: Target, ask: Callable[[], Result]) -> Result:
    try:
        return ask()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The text of a KeyError is only the name of the missing key.
        reason = f"unexpected response: {error} is missing" if isinstance(error, KeyError) else UNEXPECTED
        raise BadAnswer(f"GET {part.path(target).partition('?')[0]}", reason) from error


def with_names(part: Collection, objects: Objects, reader: Reader) -> Objects:
    """Return objects whose entries have names, for all users and groups that the token can see.

    Raises:
        ServiceError: a record cannot be read, for another reason than 403 or 404.
    """
    if not part.relations.entries:
        return objects
    own = (_named(record, reader.recall) for record in objects.own)
    return replace(objects, own=tuple(own))


def _named(record: LiveRecord, get: Callable[[str], Json]) -> LiveRecord:
    rows = {name: tuple(_row(row, get) for row in listed) for name, listed in record.entries.items()}
    return with_rows(record, rows)


def _row(row: EntryRow, get: Callable[[str], Json]) -> EntryRow:
    who, _ = row.identity
    if row.number is None or who not in RECORDS:
        return row
    path, field = RECORDS[who]
    try:
        record = get(path.format(row.number))
    # A hidden group or user is no error: its entry keeps its ID, and is compared by that.
    except (NotFound, Forbidden):
        return row
    name = record.get(field) if isinstance(record, dict) else None
    return replace(row, shown={who: name.casefold()}) if isinstance(name, str) and name.strip() else row
