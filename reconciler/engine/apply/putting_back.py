"""An object that was to be replaced under cover is put back, where the service refuses what was to take its place.

What the service refuses is mostly an entry: somebody has left. The old object may hold the same one, which grants
nothing any more, and is refused as well: then the object comes back with its roles alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.engine.apply.verify import Verifier
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.references import ids_in
from reconciler.errors import Refused, ServiceError
from reconciler.model import entries
from reconciler.model.diff import restorable
from reconciler.model.endpoints import Collection, New
from reconciler.model.item import Change, Finding, Update, makes_anew
from reconciler.model.kind import Part
from reconciler.model.protocols import Request
from reconciler.model.resource import Resource
from reconciler.model.state import LiveState, Section


@dataclass(frozen=True, slots=True)
class PutBack:
    """What came of it.

    Attributes:
        told: in words.
        is_whole: whether all is as it was before the change.
    """

    told: str
    is_whole: bool = False


def put_back(
    change: Change, part: Part, sent: int, verifier: Verifier, send: Callable[[Request], object]
) -> PutBack | None:
    """Put an object back; return what came of it, or None where nothing was deleted.

    Args:
        change: whose replacement was refused.
        part: of its object.
        sent: how many of its requests were carried out.
        verifier: looks up whom the object named.
        send: sends a request.
    """
    if not (isinstance(change, Update) and isinstance(part, Collection) and part.writes.cover) or makes_anew(change):
        return None
    if not any(request.method == "DELETE" for request in change.requests[:sent]):
        return None
    stays = f'{part.title} "{part.writes.cover.name(change.read.names[0])}" protects meanwhile'
    before, others = restorable(part.model, change.read.fields)
    if others:
        return PutBack(f"the old one cannot be put back, for this version does not know what it held; {stays}")
    try:
        without = _create(change, part, before, verifier, send)
    except ServiceError as error:
        return PutBack(f"the old one could not be put back: {error}; {stays}")
    told = f"the old one was put back{without and f', without {without}, which the service refuses'}"
    try:
        for request in change.requests[sent + 1 :]:
            send(request)
    except ServiceError as error:
        return PutBack(f"{told}, and the cover could not be deleted: {error}")
    return PutBack(told, is_whole=not without)


def _create(
    change: Update, part: Collection, before: Resource, verifier: Verifier, send: Callable[[Request], object]
) -> str:
    """Create an object as it was, or with its roles alone; return which entries are left out then."""
    try:
        send(_creation(change, part, before, verifier))
    except (LookupError, Refused):
        named = {
            name: tuple(entry for entry in listed if isinstance(entry, str)) for name, listed in part.entries_of(before)
        }
        left = [entry for _, listed in part.entries_of(before) for entry in listed if not isinstance(entry, str)]
        send(_creation(change, part, before.model_copy(update=named), verifier))
        return ", ".join(map(entries.word, left))
    return ""


def _creation(change: Update, part: Collection, before: Resource, verifier: Verifier) -> Request:
    """Return the request that creates an object as it was.

    Raises:
        LookupError: it names somebody who is not known any more.
    """
    address = change.address
    name = change.read.names[0]
    at = DeclaredPart(Section(address.target, address.section, {}), part, LiveState({}, {}))
    ids, unanswered = ids_in(at, name, before)
    while unanswered:
        lookups = [step for _, step in unanswered if not isinstance(step, Finding)]
        if not lookups:
            raise LookupError(str(name))
        at = DeclaredPart(at.section, part, verifier.answer(at.live, lookups))
        ids, unanswered = ids_in(at, name, before)
    path = address.target.url + (part.writes.suffix or part.suffix)
    new = New(part, address.target, path, name, before, ids=ids)
    return new.post(new.new_name | new.fields)
