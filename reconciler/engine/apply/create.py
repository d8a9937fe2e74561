"""The creation of objects in the sections of one target: no object is created twice, and token values are delivered.

A request is sent until its result is known: see `CreateOnce`, which creates groups and projects too.
Somebody else may create the same object at the same time. If a name must be unique, the service refuses the second
request. If not, both runs read the list afterwards and keep the elder object: the run of the younger deletes its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import quote

from reconciler.engine.apply.options import ApplyOptions
from reconciler.engine.apply.reread import CurrentObjects, Reread, TargetReader, collection_of
from reconciler.engine.apply.sinks import NOT_DELIVERED, Delivery
from reconciler.engine.apply.targets import ABOVE, filled
from reconciler.engine.discovery import project_numbers
from reconciler.engine.read import read_part
from reconciler.errors import AnswerLost, BadAnswer, NotFound, OutputFailed, ServiceError
from reconciler.model.diff import only
from reconciler.model.endpoints import CREATED, SECTION, Collection, Existing, FieldIds, number_of
from reconciler.model.item import Change, Create, Outcome, Status, Update
from reconciler.model.kind import Kinds
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import Unreadable
from reconciler.model.targets import Address, Key, Level, Target

MAX_CREATE_ATTEMPTS = 3
"""The most tries of a creation whose response is lost each time, while a look shows that it was not carried out."""

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class CreateOnce(Generic[Item, Found]):
    """One creation.

    Attributes:
        find: returns the item with the new item's name after a failed request; None if there is none. Takes the
            error, and whether a request may have been carried out.
        send: sends the request, and returns the new item; None if the response does not show it.
        adopt: returns the item for a found one. Takes that, and whether a request of this run may have created it.
        tries: the most tries, if each time the response is lost and the request was not carried out.
        waits: pauses, and returns whether to send again a request that was certainly not carried out.
    """

    find: Callable[[ServiceError, bool], Found | None]
    send: Callable[[], Item | None]
    adopt: Callable[[Found, bool], Item]
    tries: int = MAX_CREATE_ATTEMPTS
    waits: Callable[[ServiceError], bool] = lambda _error: False

    def run(self) -> Item | None:
        """Create the item, and return it; None if it was created and the response does not show it.

        Raises:
            ServiceError: it was not created; ambiguous if it may have been.
        """
        tries_left, is_in_doubt = self.tries, False
        while True:
            try:
                return self.send()
            except ServiceError as error:
                is_in_doubt = is_in_doubt or error.ambiguous
                # Does not count as a try: the request was certainly not carried out.
                if not is_in_doubt and self.waits(error):
                    continue
                # Looked up before anything is sent again: a lost response does not say whether the object exists.
                existing = self.find(error, is_in_doubt)
                if existing is not None:
                    return self.adopt(existing, is_in_doubt)
                tries_left -= 1
                if not (error.ambiguous and tries_left):
                    # The last try alone may be a certain refusal; an earlier one may still have created the object.
                    error.ambiguous = is_in_doubt
                    raise


def elder(new_ids: Iterable[int | None], made_id: int) -> int | None:
    """Return the lowest ID of several new items with one name, if it is lower than that of this run's item.

    The service counts its IDs up, so that of two that were made at once all see the same one as the elder.

    Args:
        new_ids: the IDs of the items with the name that did not exist before.
        made_id: the ID of this run's item.
    """
    return min((number for number in new_ids if number is not None and number < made_id), default=None)


@dataclass(frozen=True, slots=True)
class Made:
    """An object that was created.

    Attributes:
        id: its ID.
        step: its last step in paths.
        secret: its secret, if it has one.
    """

    id: int
    step: str
    secret: str | None = None


class ObjectCreation:
    """The creation of the objects of one target.

    Attributes:
        delivery: delivers the values of created tokens.
    """

    def __init__(self, service: Service, target_reader: TargetReader, options: ApplyOptions) -> None:
        self.service, self.reader, self.kinds, self.options = service, target_reader, target_reader.kinds, options
        self.delivery = Delivery(target_reader, options)
        self._made: dict[tuple[str, str, Key | None], int] = {}

    def completed(self, change: Change, request: Request, made: Made | None) -> Request:
        """Return a request with the IDs of the objects that this run has created.

        Raises:
            LookupError: one of them was not created; the message names it.
        """
        path = request.path.replace("{id}", made.step) if made else request.path
        body = filled(request.body, partial(self._id_for, change))
        part = self.kinds[change.address.section].part(change.address.part)
        return replace(request, path=path, body=body, once=isinstance(part, Collection) and part.writes.once)

    def _id_for(self, change: Change, placeholder: Mapping[str, Json]) -> Json:
        """Return the ID for a placeholder of a body; the value itself if it is no placeholder."""
        if CREATED not in placeholder or not placeholder.keys() <= ABOVE:
            return placeholder
        section, part = placeholder.get(SECTION, change.address.section), placeholder.get(SECTION, change.address.part)
        if (section, part, placeholder[CREATED]) not in self._made:
            title = self.kinds[section].part(part).title
            raise LookupError(f'{title} "{placeholder[CREATED]}" was not created, and this refers to it')
        return self._made[section, part, placeholder[CREATED]]

    def create(self, change: Create | Update, request: Request) -> Made | None:
        """Create or promote an object, and deliver the value of its secret.

        Return the object, if it is known; None for an entry that refers to a target and has its ID.
        """
        made = CreateOnce(
            find=lambda error, is_in_doubt: self._find(change, request, error) if is_in_doubt else None,
            send=lambda: self._shown(change, request, self.service.send(request)),
            adopt=lambda existing, _is_ours: self._adopted(change, existing),
            tries=1 if request.once else MAX_CREATE_ATTEMPTS,
        ).run()
        if made is None or (isinstance(change, Create) and change.target_id is not None):
            return None
        if isinstance(change, Create) and made.secret is not None:
            self._deliver(change, made, made.secret)
        self._made[change.address.section, change.address.part, change.address.name] = made.id
        return made

    def _shown(self, change: Create | Update, request: Request, answer: Json) -> Made | None:
        """Return a new object, if the response to its creation holds it.

        Raises:
            BadAnswer: the response lacks an ID or a secret that is needed.
        """
        part = collection_of(change.address, self.kinds)
        fields = answer if isinstance(answer, dict) else {}
        number = fields.get(part.id_field) if part.id_field else number_of(change.address.name)
        step, secret = (fields.get(name or part.id_field) for name in (part.path_field, part.secret_field))
        if type(number) is int and isinstance(step, int | str) and (not part.secret_field or isinstance(secret, str)):
            return Made(number, quote(str(step), safe=""), secret if part.secret_field else None)
        if part.secret_field or part.relations.refers or any("{id}" in request.path for request in change.requests):
            raise BadAnswer(str(request), "unexpected response: the body is not the new object")
        return None

    def _find(self, change: Create | Update, request: Request, lost: ServiceError) -> LiveRecord | None:
        """Return the object of a creation with a lost response; None if it was not created.

        A certain refusal needs no look: verification reads the objects that somebody else has created.

        Raises:
            AnswerLost: whether it was created is unknown.
        """
        part = collection_of(change.address, self.kinds)
        objects = self.reader.again([change])[change.address.section, change.address.part]
        if isinstance(objects, Unreadable):
            reason = f"{lost.reason}; checking whether it succeeded: {objects.reason}"
            raise AnswerLost(str(request), reason) from lost
        # A secret that is not shown whole belongs to somebody else, who has just created one of the same name.
        new = [existing for existing in objects.new(change) if not part.secret_field or existing.ours]
        if len(new) > 1:
            raise AnswerLost(str(request), f"{lost.reason}; and {len(new)} new objects have this name now")
        return new[0] if new else None

    def _adopted(self, change: Create | Update, record: LiveRecord) -> Made:
        """Return an object that was found after a lost response, with the value of its secret."""
        part = collection_of(change.address, self.kinds)
        number = record.id or 0
        if not part.secret_field:
            return Made(number, record.path_id or str(number))
        return Made(number, record.path_id or str(number), self.delivery.values(change.address)[number])

    def _deliver(self, change: Create, made: Made, secret: str) -> None:
        """Deliver the secret of a created token; a token that cannot be delivered is deleted again."""
        try:
            self.delivery.hand_over(change.address, secret)
        except OutputFailed as error:
            self.options.stop.cancel(NOT_DELIVERED)
            raise OutputFailed(
                f"{error}; the undelivered token {made.id} {self._delete_created(change, made)}"
            ) from error

    def deliver_again(self, outcome: Outcome) -> Outcome:
        """Return a change that was done before, after delivering the value of its token again."""
        change = outcome.change
        if isinstance(change, Create) and outcome.created and outcome.created.id is not None:
            self._made[change.address.section, change.address.part, change.address.name] = outcome.created.id
        if not (isinstance(change, Create) and self.is_secret(change.address)):
            return outcome
        try:
            self.delivery.hand_over(change.address, [*self.delivery.values(change.address).values()][-1])
        except OutputFailed as error:
            self.options.stop.cancel(NOT_DELIVERED)
            reason = f"it exists now, and its value could not be delivered: {error}"
            return replace(outcome, status=Status.FAILED, reason=reason)
        return outcome

    def is_secret(self, address: Address) -> bool:
        """Return whether an address is that of a token, whose value is delivered."""
        return bool(collection_of(address, self.kinds).secret_field)

    def withdraw(self, change: Create, made: Made, reread_parts: Reread) -> str:
        """Delete this run's object if somebody else created an elder one at the same time; return a message.

        The message is empty if no elder object exists, or if it was deleted instead. All runs decide alike.
        """
        objects = reread_parts[change.address.section, change.address.part]
        if (
            isinstance(objects, Unreadable)
            or (first := elder((existing.id for existing in objects.new(change)), made.id)) is None
        ):
            return ""
        reason = f"somebody else created the same object at the same time, ID {first}; this run's, ID {made.id}, "
        part = collection_of(change.address, self.kinds)
        if part.path_field == part.key:
            elders = [existing for existing in objects.new(change) if (existing.id or 0) < made.id]
            if len(elders) > 1 or self._reached(change, part, objects) != first:
                return reason + "is still there: delete one of them"
            return self._delete_elder(change, first, made, reason)
        reason += self._delete_created(change, made)
        if self.is_secret(change.address):
            instead = self.delivery.hand_over_other(change.address, first)
            reason += f"; the delivered value is void{', and the value of the other was delivered' * instead}"
        return reason

    def _reached(self, change: Create, part: Collection, current_objects: CurrentObjects) -> int | None:
        """Return the ID of the object that a request by the name of a new one would reach."""
        leads_to, name = part.names.leads_to or (lambda _target, name, other: name == other), str(change.address.name)
        names = (
            (number, str(record.names[0])) for number, record in current_objects.by_id.items() if number is not None
        )
        return min(number for number, other in names if leads_to(change.address.target, name, other))

    def _delete_elder(self, change: Create, first: int, made: Made, reason: str) -> str:
        """Delete the elder object, since a request by name reaches the one with the lowest ID; return a message.

        What names that one names this run's before: an approval rule would hold for all branches meanwhile. Return what
        came of it if both are still there.
        """
        try:
            # References first: a rule whose last branch is deleted applies to all branches.
            for request in self._references_replaced(change, first, made.id):
                with suppress(NotFound):  # the other run has deleted it again
                    self.service.send(request)
            # Sent once: with the elder object gone, the same path leads to this run's object.
            self.service.send(Request("DELETE", f"{change.requests[0].path}/{made.step}", once=True))
        except (LookupError, ServiceError) as error:
            return f"{reason}is still there, because the other could not be deleted: {error}"
        return ""

    def _references_replaced(self, change: Create, first: int, mine: int) -> Iterator[Request]:
        """Yield the requests that replace references to an object by references to its namesake.

        Objects of the target may name it; where that is a group, those of the projects in it too.
        """
        above = change.address.target
        places = [(above, self.reader.number)]
        if above.level is Level.GROUP:
            numbers_below = project_numbers(above, self.reader.lists)
            places += [(Target(Level.PROJECT, number), number) for number in numbers_below]
        everywhere = (
            (target, number, part, field)
            for target, number in places
            for part, field in naming_fields(change.address.section, target.level, self.kinds)
        )
        for target, number, part, field in everywhere:
            live = read_part(self.reader.lists, part, target, {}, number)
            if isinstance(live, Unreadable) and live.status != HTTPStatus.FORBIDDEN:  # as in an edition without them
                raise LookupError(live.reason)
            eldest = {record.names[0]: record for record in reversed(live.own)} if isinstance(live, Objects) else {}
            # A younger one of the same name is taken back by the run that has made it, and cannot be changed till then.
            for record in eldest.values():
                rows = record.entries.get(field, ())
                names = getattr(record.resource, field)
                if isinstance(names, tuple) and part.writes.update and first in {row.id for row in rows}:
                    numbers: dict[tuple[str, str], list[Json]] = {(field, name): [] for name in names}
                    for row in rows:
                        numbers[field, row.shown].append(mine if row.id == first else row.id)
                    wanted = only(record.resource, [field])
                    path = target.url + (part.writes.suffix or part.suffix)
                    ids = FieldIds(named=numbers)
                    yield from part.writes.update(
                        Existing(part, target, path, record.names[0], wanted, record, ids=ids)
                    )

    def _delete_created(self, change: Create, made: Made) -> str:
        """Delete a created object, and return the result in words; a full journal cannot prevent it."""
        try:
            self.service.send(Request("DELETE", f"{change.requests[0].path}/{made.step}"))
        except ServiceError as error:
            return f"could not be deleted again and should be: {error}"
        return "was deleted again"


def naming_fields(section: str, level: Level, kinds: Kinds) -> Iterator[tuple[Collection, str]]:
    """Yield the collections of a level, each with a field that names objects of a section."""
    for kind in kinds.values():
        for part in kind.parts if level in kind.models else ():
            if isinstance(part, Collection):
                named = part.relations.named.items()
                yield from ((part, field) for field, reference in named if reference.section == section)
