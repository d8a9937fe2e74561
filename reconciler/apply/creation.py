"""The creation of groups and projects: before everything else of a run, parents first, those of one depth side by side.

Each takes one look and one POST. A path belongs to one target alone, and the service refuses it to a second, so that
nothing is created twice: whatever is in doubt is looked up by its path. A creation that fails holds up what is below
the target, and what refers to it.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from reconciler.apply.journal import recorded
from reconciler.apply.once import CreateOnce
from reconciler.apply.outcomes import ENDED, UNKNOWN, Fate, Outcome, Status, TargetOutcome
from reconciler.apply.targets import Targets
from reconciler.apply.verify import EDITED
from reconciler.errors import (
    AnswerLost,
    Forbidden,
    NotFound,
    OutputFailed,
    RateLimited,
    Refused,
    ServiceError,
    Stopped,
    Unauthorized,
)
from reconciler.live.records import TargetRecord, fetch_record
from reconciler.model.creation import FILE, VARIABLE
from reconciler.model.diff import AsRead
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Create, Plan, TargetPlan
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target
from reconciler.model.wording import advised
from reconciler.planning.creation import variables_of
from reconciler.system.processes import own_tokens, reveals_token

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")

PATIENCE = (0.5, 1, 2, 4, 8, 15)
"""Seconds between looks for what was just created, and may not be visible at once."""

REMEDIES = {
    "import source is disabled": "an administrator must enable this import source (`import_sources` in the settings)",
    "has already been taken": "another user, group or project has this path or name: choose another",
    "reserved name": "choose another path",
    "is not allowed since the parent": "`visibility` must not exceed that of the group above",
    "not have read access to the repository": "check the token in {variable}, and `repo_id`",
    "Authentication failed": "check the token in {variable}, and the user it belongs to",
    "GitHub error": "check `repo_id`, and what the token in {variable} may read",
    "BitBucket Server error": "check `url`, `project` and `repo`, and what the token in {variable} may read",
    "is not valid": "{parent} does not exist, or this token may not create projects there",
    "undefined method": "{parent} does not exist",
    "does not exist": "create {parent} first, or add `create` to its manifest",
    "not allowed to import": "this token needs the role Maintainer in {parent}",
    "archive (ending in": "name a file that a service has exported",
    "file is missing": "the URL leads past the service's front proxy, which takes uploads: use its public URL",
    "file is invalid": "the URL leads past the service's front proxy, which takes uploads: use its public URL",
}
"""By words of a refusal, what to do about it."""

BY_STATUS = {
    401: "check the token in {variable}, and what it may read",
    404: "{parent} does not exist, or is not visible to this token",
    413: "the archive is larger than the service allows (`max_import_size`)",
}
"""The same by status, where no words are known."""

_TAKEN = re.compile(r':(\w+)=>\["([^"\]]*)"\]')


@dataclass(frozen=True, slots=True)
class Place:
    """A target as the service shows it.

    Attributes:
        id: its numeric ID.
        path: its full path.
        visibility: None where the response does not show it.
        is_ours: whether this run has created it.
    """

    id: int
    path: str
    visibility: Json = None
    is_ours: bool = True

    @classmethod
    def of(cls, record: TargetRecord, *, is_ours: bool) -> "Place":
        """Return what a record shows."""
        return cls(record.id, record.path, record.fields.get("visibility"), is_ours)


class CreationRun:
    """The creation of one target.

    Attributes:
        result: what became of it; None where it was not needed, since the target exists by now.
        refusal: why the service takes no further imports now, so that this one is asked for later; empty if it does.
    """

    def __init__(self, target: TargetPlan, targets: Targets) -> None:
        self.change = next(change for change in target.changes if isinstance(change, Create))
        self.target, self.targets = target, targets
        self.service, self.options = targets.service, targets.options
        self.result: Outcome | None = Outcome(self.change, Status.FAILED, UNKNOWN, unconfirmed=True)
        self.refusal = ""
        self.visibility: Json = None

    @property
    def outcome(self) -> TargetOutcome:
        """The outcome so far."""
        if self.result is not None:
            return TargetOutcome(self.target, (self.result,))
        sections = tuple(replace(section, changes=()) for section in self.target.sections)
        return TargetOutcome(replace(self.target, sections=sections), ())

    @property
    def namespace(self) -> Target:
        """The group that the target is created in."""
        return Target(Level.GROUP, str(self.target.target.ref).rpartition("/")[0])

    @property
    def is_filled(self) -> bool:
        """Whether this run has created a group of an archive, which arrives by and by."""
        return self.targets[self.target.target].is_ours and "from_archive" in self.change.after

    def run(self) -> None:
        """Create the target, if nothing prevents that now."""
        try:
            self.result = self._created()
        except (LookupError, OutputFailed) as error:
            self.result = Outcome(self.change, Status.FAILED, str(error))
        except ServiceError as error:
            if isinstance(error, RateLimited) and "import" in self.change.after and not error.ambiguous:
                self.refusal = self._why(error)
                return
            self.options.stop.after(error)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous:
                self.result = Outcome(self.change, Status.SKIPPED, self.options.stop.reason or ENDED)
            else:
                self.result = Outcome(self.change, Status.FAILED, self._why(error), unconfirmed=error.ambiguous)
        self._settle()

    def refuse(self, fate: Fate) -> None:
        """Note why the target is not created."""
        self.result = Outcome(self.change, fate.status, fate.reason)
        self._settle()

    def fail(self, reason: str) -> None:
        """Note why the target is not as it was asked for, although it was created."""
        self._correct(Status.FAILED, reason)

    def look_again(self) -> None:
        """Compare a group with what was asked for, now that its archive has arrived, or the time is over."""
        has_arrived = self.targets.fate(self.target.target) is None
        try:
            place = self._look() if has_arrived and "visibility" in self.change.after else None
        except (LookupError, ServiceError) as error:
            self.fail(f"applied, but cannot be verified: {error}")
            return
        lowered = self._lowered(place.visibility if place else self.visibility)
        if lowered:
            self._correct(Status.DROPPED, lowered)

    def _correct(self, status: Status, reason: str) -> None:
        created = self.result or Outcome(self.change, Status.DONE)
        self.result = replace(created, status=status, reason=reason, unconfirmed=status is Status.FAILED)
        self.count()

    def _settle(self) -> None:
        """Hold up what depends on a target that was not created, and count the failure."""
        target = self.target.target
        match self.result:
            case Outcome(status=Status.FAILED):
                self.targets.give_up(target, f"{target} was not created")
            case Outcome(status=Status.STALE | Status.SKIPPED as status, reason=reason):
                self.targets.give_up(target, reason, status)
        self.count()
        done = self.result is not None and self.result.status is Status.DONE
        self.options.progress.step(target, int(done))

    def count(self) -> None:
        """Count a failure, after which the run may have to end."""
        if self.options.failures is not None and self.result is not None:
            self.options.failures.count(self.result, self.options.stop)

    def _created(self) -> Outcome | None:
        fate = self.targets.fate(self.target.target)
        if self.options.stop.reason:
            fate = Fate(Status.SKIPPED, self.options.stop.reason)
        if fate is not None:
            return Outcome(self.change, fate.status, fate.reason)
        found = self._look()
        if found is not None:
            return self._adopted(found)
        completed = self.targets.completed(self.change)
        if isinstance(completed, Fate):
            return Outcome(self.change, completed.status, completed.reason)
        (request,) = completed.requests
        self._check_namespace(request)
        with self._prepared(request) as send:
            place = recorded(self.options, self.change, request, partial(self._sent, request, send))
        return self._finished(place) if place.is_ours else self._adopted(place)

    def _look(self) -> Place | None:
        """Return the target, if it is there.

        Raises:
            LookupError: its path leads to another target.
        """
        target = self.target.target
        try:
            found = Place.of(fetch_record(target, self.service), is_ours=False)
        except NotFound:
            return None
        if found.path.casefold() != str(target.ref).casefold():
            raise LookupError(f"this path leads to {target.level} {found.path} (ID {found.id}), which has moved there")
        return found

    def _adopted(self, found: Place) -> Outcome | None:
        """Return what becomes of a creation that somebody else, or an archive, has carried out meanwhile."""
        target = self.target.target
        if self.options.recheck and not self.targets.is_in_archive(target):
            return Outcome(self.change, Status.STALE, f"{target} exists now (ID {found.id}); plan again")
        self.targets.learn(target, found.id, is_ours=False)
        LOG.info("%s exists now (ID %d), so it is not created", target, found.id)
        return None

    def _check_namespace(self, request: Request) -> None:
        """Refuse the request of a saved plan that would create the target elsewhere.

        Raises:
            LookupError: it would, or nobody knows.
        """
        body = request.body or {}
        number = body.get("parent_id", body.get("namespace_id"))
        if self.options.recheck and isinstance(number, int):
            path = str(self.namespace.ref)
            known: Json = self.targets.numbers.of(Reference(Level.GROUP, path.casefold()), self.service)
            if isinstance(known, Obstacle):
                record = self.service.get(f"namespaces/{quote(path, safe='')}")
                known = record.get("id") if isinstance(record, dict) else None
            if known != number:
                raise LookupError(EDITED)

    @contextmanager
    def _prepared(self, request: Request) -> Iterator[Callable[[], Json]]:
        """Yield what sends a request, with what its placeholders stand for.

        Raises:
            LookupError: a variable is empty, or a file is not the one of the plan.
        """
        body = dict(request.body or {})
        variables = [key for key, value in body.items() if _is(value, VARIABLE)]
        if variables:
            values = {key: external_token(body[key][VARIABLE], self.options.own_tokens) for key in variables}
            yield partial(self._imported, replace(request, body=body | values), values.values())
        elif FILE in body:
            path, fields = Path(body.pop(FILE)[FILE]), replace(request, body=body)
            try:
                with path.open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != self.change.after["sha256"]:
                        raise LookupError(f"{path} is not the archive of the plan: its SHA-256 differs; plan again")
                    yield lambda: self.service.post(fields, file=file)
            except OSError as error:
                raise LookupError(f"{path}: {error.strerror}") from error
        else:
            yield lambda: self.service.send(request)

    def _imported(self, request: Request, secrets: Collection[str]) -> Json:
        """Ask for an import. A 401 is about the token for the other service, or the rights there: it ends no run."""
        try:
            return self.service.post(request, secrets=secrets)
        except Unauthorized as error:
            raise Refused(error.request, error.reason, error.status) from error

    def _sent(self, request: Request, send: Callable[[], Json]) -> Place:
        """Send a creation, and return what it has led to: a new target, or that of somebody else.

        Raises:
            AnswerLost: the new target cannot be seen.
        """
        waits = iter(PATIENCE)
        place = CreateOnce(
            find=self._find,
            send=lambda: _shown(send()),
            adopt=lambda existing, is_ours: replace(existing, is_ours=is_ours),
            waits=lambda error: self._waits(request, error, waits),
        ).run()
        if place is not None:
            return place
        try:
            existing = self._looked_for(PATIENCE)
        except ServiceError as error:
            raise AnswerLost(str(request), f"it was accepted; {error}") from error
        if existing is None:
            raise AnswerLost(str(request), f"it was accepted, and the {self.target.target.level} cannot be read")
        return replace(existing, is_ours=True)

    def _waits(self, request: Request, error: ServiceError, waits: Iterator[float]) -> bool:
        """Pause where the group that this run has just created is not visible yet; return whether it is that."""
        is_new = isinstance(error, NotFound) and self.targets[self.namespace].is_new
        seconds = next(waits, None) if is_new else None
        if seconds is not None:
            self.service.pause(str(request), seconds)
        return seconds is not None

    def _find(self, lost: ServiceError, is_in_doubt: bool) -> Place | None:
        """Look for a target whose creation was refused, or may have been carried out.

        Raises:
            ServiceError: nobody knows whether it exists.
        """
        if not is_in_doubt and not isinstance(lost, Refused):
            return None
        try:
            return self._looked_for(PATIENCE[:3] if is_in_doubt else ())
        except ServiceError as error:
            reason = f"{lost.reason}; checking whether it succeeded: {error}"
            raise (AnswerLost if is_in_doubt else type(lost))(lost.request, reason, lost.status) from error

    def _looked_for(self, waits: Iterable[float]) -> Place | None:
        """Look for the target, also later: what was just created may not be visible at once."""
        found = self._look()
        for seconds in waits:
            if found is not None:
                break
            self.service.pause(f"GET {self.target.target.url}".rstrip("/"), seconds)
            found = self._look()
        return found

    def _finished(self, place: Place) -> Outcome:
        """Return what became of a creation that was carried out."""
        target, change = self.target.target, self.change
        path, wanted = place.path.casefold(), str(target.ref).casefold()
        went_astray = path != wanted and not path.endswith(f"/{wanted}")
        shown = _hidden(place.path, self.targets.tokens) if went_astray else place.path
        done = Outcome(change, Status.DONE, created=AsRead(place.id, (shown,), change.after, {}))
        if went_astray:
            reason = (
                f"it went to {shown} (ID {place.id}): this is where the service puts an import that it cannot put "
                f"into {self.namespace}; delete it there, and see that the group exists and takes imports"
            )
            return replace(done, status=Status.FAILED, reason=reason, unconfirmed=True)
        self.targets.learn(target, place.id, is_ours=True)
        self.visibility = place.visibility
        lowered = "" if self.is_filled else self._lowered(place.visibility)
        return replace(done, status=Status.DROPPED, reason=lowered) if lowered else done

    def _lowered(self, visibility: Json) -> str:
        """Return that the service made the target less visible than was asked for; nothing if it did not."""
        asked = self.change.after.get("visibility")
        is_lowered = visibility is not None and asked is not None and visibility != asked
        return f"visibility: asked for {asked}, the service made it {visibility}" if is_lowered else ""

    def _why(self, error: ServiceError) -> str:
        """Return why a creation failed, and what to do about it."""
        imported = self.change.after.get("import")
        variable = next(iter(imported.values()))["token_env"] if imported else ""
        parent = str(self.namespace) if self.namespace.ref else ""
        words = _TAKEN.sub(r"\1: \2", str(error)) if isinstance(error, Refused) else str(error)
        remedy = next((remedy for known, remedy in REMEDIES.items() if known in words), "")
        remedy = remedy or BY_STATUS.get(error.status or 0, "")
        if not remedy and isinstance(error, Forbidden):
            where = f"in {parent}" if parent else "at the top level, where a service may allow none by its API"
            remedy = f"this token may not create {self.target.target.level}s {where}"
        return advised(words, remedy.format(variable=variable, parent=parent))


def tokens_of(plan: Plan) -> frozenset[str]:
    """Return the tokens for other services that the creations of a plan take."""
    names = {name for target in plan.targets for name in variables_of(target)}
    return frozenset(filter(None, (os.environ.get(name, "").strip() for name in names)))


def external_token(name: str, own: Collection[str]) -> str:
    """Return the token for another service that an environment variable holds.

    Args:
        name: of the variable.
        own: our own tokens, which go to no other service.

    Raises:
        LookupError: the variable is not set, or empty, or holds one of these.
    """
    value = os.environ.get(name, "").strip()
    if reveals_token(name, value, {*own, *own_tokens(os.environ)}):
        raise LookupError(
            f"the environment variable {name} holds a token of reconciler, which goes to no other service"
        )
    if not value:
        raise LookupError(f"the environment variable {name} is not set; it must hold the token for the import")
    if not value.isprintable():
        raise LookupError(f"the environment variable {name} holds bytes that no token has")
    return value


def _shown(answer: Json) -> Place | None:
    """Return a new target, if the response to its creation shows it."""
    fields = answer if isinstance(answer, dict) else {}
    number, path = fields.get("id"), fields.get("path_with_namespace", fields.get("full_path"))
    if type(number) is int and isinstance(path, str):
        return Place(number, path.strip("/"), fields.get("visibility"))
    return None


def _hidden(text: str, tokens: Collection[str]) -> str:
    """Return words of the service without the tokens that were sent."""
    from reconciler.service.responses import hidden  # noqa: PLC0415 - most commands start without HTTP

    return hidden(text, tokens)


class Patient:
    """The service of a target that was just created: until something of it was seen, a 404 is not believed."""

    def __init__(self, service: Service, target: Target) -> None:
        self._service, self._target, self._seen = service, target, False

    def get(self, path: str) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.get(path), path)

    def pages(self, path: str) -> list[Json]:
        """See `Service`."""
        return self._patiently(lambda: self._service.pages(path), path)

    def send(self, request: Request) -> Json:
        """See `Service`."""
        return self.post(request)

    def post(self, request: Request, *, secrets: Collection[str] = (), file: BinaryIO | None = None) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.post(request, secrets=secrets, file=file), request.path)

    def pause(self, request: str, seconds: float) -> None:
        """See `Service`."""
        self._service.pause(request, seconds)

    def _patiently(self, ask: Callable[[], Answer], path: str) -> Answer:
        for seconds in () if self._seen else PATIENCE:
            try:
                answer = ask()
            except NotFound:
                if self._is_visible():
                    break
                self.pause(path, seconds)
            else:
                self._seen = True
                return answer
        return ask()

    def _is_visible(self) -> bool:
        try:
            fetch_record(self._target, self._service)
        except NotFound:
            return False
        self._seen = True
        return True


def _is(value: Json, placeholder: str) -> bool:
    return isinstance(value, dict) and value.keys() == {placeholder}
