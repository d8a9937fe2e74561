"""Sending the requests of one change, each recorded before and after it. Begin with `Sender`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from reconciler.engine.apply.create import MAX_CREATE_ATTEMPTS, Made, ObjectCreation
from reconciler.engine.apply.journal import recorded
from reconciler.engine.apply.later import deleting_requests
from reconciler.engine.apply.new_targets import PatientService
from reconciler.engine.apply.refusals import Refusals
from reconciler.engine.apply.reread import TargetReader, with_answers
from reconciler.engine.apply.targets import Targets
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.references import ids_in
from reconciler.errors import NotFound, OutputFailed, Refused, ServiceError, Stopped
from reconciler.model import entries
from reconciler.model.diff import AsRead, restorable
from reconciler.model.endpoints import Collection, New
from reconciler.model.item import RUN_ENDED, Change, Create, Delete, Finding, Outcome, Status, Update, makes, makes_anew
from reconciler.model.kind import Kinds, Part
from reconciler.model.protocols import Request
from reconciler.model.resource import Resource
from reconciler.model.state import LiveState, Section, Unreadable
from reconciler.model.targets import Target

# 409 is a lock of GitLab on the project, 503 its maintenance mode (deployed behaviour, sections 7.2).
MAY_PASS = frozenset({408, 409, 425, 429, 503})
"""The statuses of requests that were not carried out, and may be later."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A change with its outcome so far.

    Attributes:
        outcome: the known outcome.
        made: the created object, if it is known; None for an entry that refers to a target and has its ID.
        doubt: the error, if the change may have been carried out nevertheless, or was made by somebody else.
        was_done: whether the object was as declared before any request, so that it is not verified.
        waits: whether its last requests are not sent yet: they delete an object to which others refer.
    """

    outcome: Outcome
    made: Made | None = None
    doubt: ServiceError | None = None
    was_done: bool = False
    waits: bool = False

    @property
    def number(self) -> int | None:
        """The ID of the created object, if it is known."""
        known = self.made or self.outcome.created
        return known.id if known else None


class Sender:
    """Sends the changes of one target.

    Attributes:
        reader: reads the target again.
        objects: creates its objects.
    """

    def __init__(self, target: Target, run_targets: Targets, kinds: Kinds) -> None:
        self.kinds, self.options = kinds, run_targets.options
        is_new = run_targets[target].is_new
        self.service = PatientService(run_targets.service, target) if is_new else run_targets.service
        self.reader = TargetReader(self.service, kinds, target, self.options.stop, run_targets.numbers)
        self.objects = ObjectCreation(self.service, self.reader, self.options)
        self._refusals = Refusals(target, self.service, kinds, self.options.stop)

    def send(self, change: Change, *, is_referred: bool) -> Attempt:
        """Send the requests of a change, unless the run ends.

        Args:
            change: the change.
            is_referred: whether others may refer to its object, so that requests that delete it are sent later.
        """
        skipped = self.options.stop.reason or self._refusals.closed.get(change.address.section)
        if skipped:
            return Attempt(Outcome(change, Status.SKIPPED, skipped))
        # The predecessor is the only working token until the value of its successor has arrived.
        if isinstance(change, Delete) and (obstacle := self.objects.delivery.hand_over_successor(change)) is not None:
            return Attempt(obstacle)
        waiting = deleting_requests(change) if is_referred else 0
        attempt = self._sent(change, 0, len(change.requests) - waiting)
        if not waiting or attempt.outcome.status is not Status.DONE:
            return attempt
        is_begun = waiting < len(change.requests)
        status = Status.FAILED if is_begun else Status.SKIPPED
        return Attempt(Outcome(change, status, RUN_ENDED, unconfirmed=is_begun), attempt.made, waits=True)

    def send_postponed(self, attempt: Attempt) -> Attempt:
        """Send the requests of a change that were postponed."""
        change = attempt.outcome.change
        return self._sent(change, len(change.requests) - deleting_requests(change), len(change.requests), attempt.made)

    def _sent(self, change: Change, first: int, end: int, made: Made | None = None) -> Attempt:
        """Send some requests of a change.

        Args:
            change: the change.
            first, end: the position of the first request, and the position after the last.
            made: the object that earlier requests have created, if it is known.
        """
        sent = first
        try:
            for template in change.requests[first:end]:
                request = self.objects.completed(change, template, made)
                if makes(change) and not sent:
                    made = recorded(self.options, change, request, partial(self.objects.create, change, request))
                else:
                    self._recorded(change, request)
                sent += 1
        except (LookupError, OutputFailed) as error:
            failed = Outcome(change, Status.FAILED, str(error), as_made(change, made), unconfirmed=sent > 0)
            return Attempt(failed, made)
        except ServiceError as error:
            self.options.stop.after(error, is_remedy_shown=True)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous and not sent:
                return Attempt(Outcome(change, Status.SKIPPED, self.options.stop.reason or RUN_ENDED))
            return self._failed(change, error, sent, made)
        return Attempt(Outcome(change, Status.DONE, created=as_made(change, made)), made)

    def _failed(self, change: Change, error: ServiceError, sent_count: int, made: Made | None) -> Attempt:
        """Return the outcome of a change after an error, and restore the object that it was to replace.

        Args:
            change: the change.
            error: of one of its requests.
            sent_count: the number of earlier requests, all carried out.
            made: the object that these have created, if it is known.
        """
        doubt = error if error.ambiguous or isinstance(error, Refused | NotFound) else None
        unconfirmed = error.ambiguous or sent_count > 0
        reason = self._refusals.why(change, error)
        # After a lost response nothing is restored: the replacement may exist.
        if not error.ambiguous and error.sent and not self.options.stop.refused:
            part = self.kinds[change.address.section].part(change.address.part)
            message, is_whole = put_back(change, part, sent_count, self.reader, partial(self._recorded, change))
            reason += f"; {message}" if message else ""
            unconfirmed = unconfirmed and not is_whole
        failed = Outcome(change, Status.FAILED, reason, as_made(change, made), unconfirmed=unconfirmed)
        return Attempt(failed, made, doubt)

    def _recorded(self, change: Change, request: Request) -> None:
        is_delicate = request.once and request.method == "DELETE"
        send = partial(self._delete, change, request) if is_delicate else partial(self.service.send, request)
        recorded(self.options, change, request, send)

    def _delete(self, change: Change, request: Request) -> None:
        """Delete an object by a path that leads to another object as soon as the first is gone.

        After a transient refusal, the object is looked up before the request is sent again.
        """
        tries_left = MAX_CREATE_ATTEMPTS
        while True:
            tries_left -= 1
            try:
                self.service.send(request)
            except ServiceError as error:
                # After a lost response, the path may lead to the next object by now.
                if error.ambiguous or error.status not in MAY_PASS or not tries_left:
                    raise
                objects = self.reader.again([change])[change.address.section, change.address.part]
                if isinstance(objects, Unreadable):
                    raise
                if not isinstance(change, Create) and change.read.id in objects.by_id:
                    continue
            return


def as_made(change: Change, made: Made | None) -> AsRead | None:
    """Return the object that a change has created, with its known fields, without reading it."""
    number = made.id if made else change.target_id if isinstance(change, Create) else None
    if not isinstance(change, Create) or change.address.name is None or number is None:
        return None
    return AsRead(number, (change.address.name,), change.after, {})


def put_back(
    change: Change, part: Part, sent_count: int, target_reader: TargetReader, send_request: Callable[[Request], object]
) -> tuple[str, bool]:
    """Restore a deleted object; return the result in words, empty if none was deleted, and whether it is complete.

    Args:
        change: the refused replacement.
        part: of the object.
        sent_count: the number of requests that were carried out.
        target_reader: looks up the subjects that the object named.
        send_request: sends a request.
    """
    if not (isinstance(change, Update) and isinstance(part, Collection) and part.writes.cover) or makes_anew(change):
        return "", False
    if not any(request.method == "DELETE" for request in change.requests[:sent_count]):
        return "", False
    stays = f'{part.title} "{part.writes.cover.name(change.read.names[0])}" protects meanwhile'
    before, others = restorable(part.model, change.read.fields)
    if others:
        return f"the old one cannot be put back, because this version does not know its values; {stays}", False
    try:
        without = _create(change, part, before, target_reader, send_request)
    except ServiceError as error:
        return f"the old one could not be put back: {error}; {stays}", False
    message = f"the old one was put back{without and f', without {without}, which the service refuses'}"
    try:
        for request in change.requests[sent_count + 1 :]:
            send_request(request)
    except ServiceError as error:
        return f"{message}, and the cover could not be deleted: {error}", False
    return message, not without


def _create(
    update: Update,
    part: Collection,
    resource: Resource,
    target_reader: TargetReader,
    send_request: Callable[[Request], object],
) -> str:
    """Create an object as it was, or with its roles alone; return the entries that are left out."""
    try:
        send_request(_creation(update, part, resource, target_reader))
    except (LookupError, Refused):
        named = {
            name: tuple(entry for entry in listed if isinstance(entry, str))
            for name, listed in part.entries_of(resource)
        }
        omitted = [entry for _, listed in part.entries_of(resource) for entry in listed if not isinstance(entry, str)]
        send_request(_creation(update, part, resource.model_copy(update=named), target_reader))
        return ", ".join(map(entries.word, omitted))
    return ""


def _creation(update: Update, part: Collection, resource: Resource, target_reader: TargetReader) -> Request:
    """Return the request that creates an object as it was.

    Raises:
        LookupError: it names a subject that is not known any more.
    """
    address = update.address
    name = update.read.names[0]
    at = DeclaredPart(Section(address.target, address.section, {}), part, LiveState({}, {}))
    ids, unanswered = ids_in(at, name, resource)
    while unanswered:
        lookups = [step for _, step in unanswered if not isinstance(step, Finding)]
        if not lookups:
            raise LookupError(str(name))
        at = DeclaredPart(at.section, part, with_answers(at.live, lookups, target_reader.answer))
        ids, unanswered = ids_in(at, name, resource)
    path = address.target.url + (part.writes.suffix or part.suffix)
    new = New(part, address.target, path, name, resource, ids=ids)
    return new.post(new.new_name | new.fields)
