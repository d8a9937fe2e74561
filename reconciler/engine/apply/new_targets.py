"""The creation of groups and projects, before all else: parents first, those of one depth in parallel. See `NewTarget`.

Each takes one look and one POST. A path belongs to one target alone, and the service refuses a second one, so that
no target is created twice: a doubtful creation is looked up by its path. A creation that fails blocks the targets in a
group, and those that refer to it.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from reconciler.engine.apply.agree import PLAN_WAS_EDITED
from reconciler.engine.apply.create import CreateOnce
from reconciler.engine.apply.journal import recorded
from reconciler.engine.apply.options import NotAttempted
from reconciler.engine.apply.refusals import creation_failure
from reconciler.engine.apply.targets import Targets
from reconciler.engine.compare.creation import variables_of
from reconciler.engine.roster import TargetRecord, fetch_record
from reconciler.errors import (
    AnswerLost,
    NotFound,
    OutputFailed,
    RateLimited,
    Refused,
    ServiceError,
    Stopped,
    Unauthorized,
)
from reconciler.model.creation import FILE, VARIABLE
from reconciler.model.diff import AsRead
from reconciler.model.item import RESULT_UNKNOWN, RUN_ENDED, Change, Create, Outcome, Status
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target
from reconciler.system.processes import own_tokens, reveals_token

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")

# The creator sees a new target at once; any other token gets 404 until a job of GitLab has run (deployed behaviour,
# section g 16).
VISIBLE_AFTER = (0.5, 1, 2, 4, 8, 15)
"""Seconds between looks for a new target, which may not be visible at once."""


@dataclass(frozen=True, slots=True)
class LiveTarget:
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
    def of(cls, target_record: TargetRecord, *, is_ours: bool) -> "LiveTarget":
        """Return the live target that a record shows."""
        return cls(target_record.id, target_record.path, target_record.fields.get("visibility"), is_ours)


class NewTarget:
    """The creation of one group or project.

    Args:
        plan: of the target, with nothing but its creation.
        run_targets: what the run knows of all targets.

    Attributes:
        change: as it was planned.
        target: the group or project.
        result: the outcome; None if no creation was needed, since the target exists by now.
        is_begun: whether the service was asked to create it, and has not postponed that.
        refusal: the reason why the service postponed the import; empty if it did not.
    """

    def __init__(self, plan: TargetPlan, run_targets: Targets) -> None:
        self.plan, self.target, self.targets = plan, plan.target, run_targets
        self.options = run_targets.options
        self.change = next(change for change in plan.changes if isinstance(change, Create))
        self.result: Outcome | None = Outcome(self.change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True)
        self.is_begun, self.refusal = False, ""
        self._creation = CreationRequest(self.change, run_targets)
        self._visibility: Json = None

    @property
    def outcome(self) -> TargetPlan:
        """The target with the outcome so far."""
        if not self.is_begun:
            return self.plan.with_outcomes((self._skipped(),))
        if self.result is not None:
            return self.plan.with_outcomes((self.result,))
        return self.plan.with_changes(lambda _: None)

    @property
    def sources(self) -> Collection[str]:
        """The sources of the target's import; empty if it is not imported."""
        imported: Collection[str] = self.change.after.get("import") or ()
        return imported

    @property
    def is_filled(self) -> bool:
        """Whether this run has created a group from an archive, which arrives in the background."""
        return self.targets[self.target].is_ours and "from_archive" in self.change.after

    def run(self) -> None:
        """Create the target, if no obstacle prevents that now."""
        self.is_begun, self.refusal = True, ""
        try:
            self.result = self._created()
        except (LookupError, OutputFailed) as error:
            self.result = Outcome(self.change, Status.FAILED, str(error))
        except ServiceError as error:
            # Of GitHub, the service accepts six imports a minute for each user (deployed behaviour, section f 3):
            # further ones wait for the next round instead of failing.
            if isinstance(error, RateLimited) and self.sources and not error.ambiguous:
                self.is_begun, self.refusal = False, _why(self.change, error)
                return
            self.options.stop.after(error, is_remedy_shown=True)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous:
                self.result = self._skipped()
            else:
                self.result = Outcome(self.change, Status.FAILED, _why(self.change, error), unconfirmed=error.ambiguous)
        self._settle()

    def refuse(self, not_attempted: NotAttempted) -> None:
        """Record that the target is not created."""
        self.is_begun, self.result = True, not_attempted.outcome(self.change)
        self._settle()

    def fail(self, reason: str) -> None:
        """Record that the target was created, and differs from the request."""
        self._correct(Status.FAILED, reason)

    def look_again(self) -> None:
        """Compare a group with its declaration, once its archive has arrived or the time is over."""
        has_arrived = self.targets.not_attempted(self.target) is None
        try:
            place = self._creation.look() if has_arrived and "visibility" in self.change.after else None
        except (LookupError, ServiceError) as error:
            self.fail(f"applied, but cannot be verified: {error}")
            return
        lowered = _lowered(self.change, place.visibility if place else self._visibility)
        if lowered:
            self._correct(Status.DROPPED, lowered)

    def _skipped(self) -> Outcome:
        return Outcome(self.change, Status.SKIPPED, self.options.stop.reason or RUN_ENDED)

    def _correct(self, outcome_status: Status, reason: str) -> None:
        created = self.result or Outcome(self.change, Status.DONE)
        self.result = replace(
            created, status=outcome_status, reason=reason, unconfirmed=outcome_status is Status.FAILED
        )
        self._count()

    def _settle(self) -> None:
        """Block the targets that depend on a failed creation, and count the failure."""
        match self.result:
            case Outcome(status=Status.FAILED):
                self.targets.give_up(self.target, f"{self.target} was not created")
            case Outcome(status=Status.STALE | Status.SKIPPED as status, reason=reason):
                self.targets.give_up(self.target, reason, status)
        self._count()
        done = self.result is not None and self.result.status is Status.DONE
        self.options.progress.step(self.target, int(done))

    def _count(self) -> None:
        """Count a failure, after which the run may have to end."""
        if self.options.failures is not None and self.result is not None:
            self.options.failures.count(self.result, self.options.stop)

    def _created(self) -> Outcome | None:
        """Create the target, unless the run ends, a dependency is missing, or the target exists by now.

        Raises:
            LookupError: the path redirects, the plan was edited, a variable is empty, or a file has changed since the
                plan.
            OutputFailed: the journal cannot be written.
            ServiceError: the target was not created, or may not have been.
        """
        stopped = self.options.stop.reason
        not_attempted = NotAttempted(Status.SKIPPED, stopped) if stopped else self.targets.not_attempted(self.target)
        if not_attempted is not None:
            return not_attempted.outcome(self.change)
        place = self._creation.look()
        if place is None:
            change = self.targets.completed(self.change)
            if isinstance(change, NotAttempted):
                return change.outcome(self.change)
            place = self._creation.create(change)
        if place.is_ours:
            return self._compared(place)
        # A saved plan is stale then, and must not create the target elsewhere.
        if self.options.recheck and not self.targets.is_in_archive(self.target):
            return Outcome(self.change, Status.STALE, f"{self.target} exists now (ID {place.id}); plan again")
        self.targets.learn(self.target, place.id, is_ours=False)
        LOG.info("%s exists now (ID %d), so it is not created", self.target, place.id)
        return None

    def _compared(self, live_target: LiveTarget) -> Outcome:
        """Return the outcome of a creation; a group from an archive is compared once that has arrived."""
        outcome, self._visibility = self._arrived(live_target), live_target.visibility
        lowered = "" if self.is_filled else _lowered(self.change, live_target.visibility)
        is_done = outcome.status is Status.DONE
        return replace(outcome, status=Status.DROPPED, reason=lowered) if lowered and is_done else outcome

    def _arrived(self, live_target: LiveTarget) -> Outcome:
        """Return the outcome of a creation, by the path of the target that was created."""
        path, wanted = live_target.path.casefold(), str(self.target.ref).casefold()
        # After any failure, an import from Bitbucket creates the project in the caller's own namespace (section f 5). A
        # service below a relative URL root shows paths with that root.
        went_astray = path != wanted and not path.endswith(f"/{wanted}")
        shown = _hidden(live_target.path, self.targets.tokens) if went_astray else live_target.path
        done = Outcome(self.change, Status.DONE, created=AsRead(live_target.id, (shown,), self.change.after, {}))
        if went_astray:
            reason = (
                f"it went to {shown} (ID {live_target.id}): this is where the service puts an import that it cannot "
                f"put into {namespace_of(self.target)}; delete it there, and see that the group exists and takes "
                "imports"
            )
            return replace(done, status=Status.FAILED, reason=reason, unconfirmed=True)
        self.targets.learn(self.target, live_target.id, is_ours=True)
        return done


class CreationRequest:
    """The request that creates a group or a project, sent until its result is known.

    Args:
        change: as it was planned.
        run_targets: what the run knows of all targets.
    """

    def __init__(self, change: Create, run_targets: Targets) -> None:
        self.change, self.target, self.targets = change, change.address.target, run_targets
        self.service, self.options = run_targets.service, run_targets.options

    def look(self) -> LiveTarget | None:
        """Return the target, if it exists.

        Raises:
            LookupError: its path redirects to another target.
        """
        target = self.target
        try:
            place = LiveTarget.of(fetch_record(target, self.service), is_ours=False)
        except NotFound:
            return None
        # A redirect of a project that has moved: creating the target would end the redirect that others may use.
        if place.path.casefold() != str(target.ref).casefold():
            raise LookupError(f"this path leads to {target.level} {place.path} (ID {place.id}), which has moved there")
        return place

    def create(self, change: Change) -> LiveTarget:
        """Create the target, unless somebody else has created it.

        Args:
            change: the creation, with all IDs.
        """
        self._check_namespace(change)
        (request,) = change.requests
        with self._sending(request) as send:
            return recorded(self.options, self.change, request, partial(self._sent, request, send))

    def _check_namespace(self, change: Change) -> None:
        """Raise if the saved plan would create the target in another namespace.

        Raises:
            LookupError: it would, or the namespace is unknown.
        """
        (request,) = change.requests
        body = request.body or {}
        number = body.get("parent_id", body.get("namespace_id"))
        # A saved plan may be old or edited: the ID in it must be that of the declared group.
        if self.options.recheck and isinstance(number, int):
            path = str(namespace_of(self.target).ref)
            known: Json = self.targets.numbers.of(Reference(Level.GROUP, path.casefold()), self.service)
            if isinstance(known, Obstacle):
                record = self.service.get(f"namespaces/{quote(path, safe='')}")
                known = record.get("id") if isinstance(record, dict) else None
            if known != number:
                raise LookupError(PLAN_WAS_EDITED)

    @contextmanager
    def _sending(self, request: Request) -> Iterator[Callable[[], Json]]:
        """Yield a function that sends a request, with the values of its placeholders.

        Raises:
            LookupError: a variable is empty, or a file has changed since the plan.
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
                    # The plan was reviewed for one archive: another file of the same name must not be sent.
                    if hashlib.file_digest(file, "sha256").hexdigest() != self.change.after["sha256"]:
                        raise LookupError(f"{path} is not the archive of the plan: its SHA-256 differs; plan again")
                    yield lambda: self.service.send(fields, file=file)
            except OSError as error:
                raise LookupError(f"{path}: {error.strerror}") from error
        else:
            yield lambda: self.service.send(request)

    def _imported(self, request: Request, secrets: Collection[str]) -> Json:
        """Request an import. A 401 is about the token for the other service, or its rights: it ends no run."""
        try:
            return self.service.send(request, secrets=secrets)
        except Unauthorized as error:
            raise Refused(error.request, error.reason, error.status) from error

    def _sent(self, request: Request, send: Callable[[], Json]) -> LiveTarget:
        """Send a creation, and return the new target, or a target that somebody else has created meanwhile."""
        waits = iter(VISIBLE_AFTER)
        place = CreateOnce(
            find=self._find,
            send=lambda: _shown(send()),
            adopt=lambda existing, is_ours: replace(existing, is_ours=is_ours),
            waits=lambda error: self._waits(request, error, waits),
        ).run()
        if place is not None:
            return place
        try:
            existing = self._looked_for(VISIBLE_AFTER)
        except ServiceError as error:
            raise AnswerLost(str(request), f"it was accepted; {error}") from error
        if existing is None:
            raise AnswerLost(str(request), f"it was accepted, and the {self.target.level} cannot be read")
        return replace(existing, is_ours=True)

    def _waits(self, request: Request, error: ServiceError, waits: Iterator[float]) -> bool:
        """Pause if this run's new group is not visible yet; return whether it paused."""
        is_new = isinstance(error, NotFound) and self.targets[namespace_of(self.target)].is_new
        seconds = next(waits, None) if is_new else None
        if seconds is not None:
            self.service.pause(str(request), seconds)
        return seconds is not None

    def _find(self, lost: ServiceError, is_in_doubt: bool) -> LiveTarget | None:
        """Look for a target whose creation was refused, or may have been carried out.

        Raises:
            ServiceError: it is unknown whether the target exists.
        """
        # GitLab refuses a taken path with 400, as any invalid request: only a look shows whether the target exists.
        if not is_in_doubt and not isinstance(lost, Refused):
            return None
        try:
            return self._looked_for(VISIBLE_AFTER[:3] if is_in_doubt else ())
        except ServiceError as error:
            reason = f"{lost.reason}; checking whether it succeeded: {error}"
            raise (AnswerLost if is_in_doubt else type(lost))(lost.request, reason, lost.status) from error

    def _looked_for(self, waits: Iterable[float]) -> LiveTarget | None:
        """Look for the target repeatedly, since a new target may not be visible at once."""
        place = self.look()
        for seconds in waits:
            if place is not None:
                break
            self.service.pause(f"GET {self.target.url}".rstrip("/"), seconds)
            place = self.look()
        return place


def namespace_of(target: Target) -> Target:
    """Return the group that a target is created in."""
    return Target(Level.GROUP, str(target.ref).rpartition("/")[0])


def _lowered(change: Create, visibility: Json) -> str:
    """Return a sentence if the service made the target less visible than requested; else empty."""
    asked = change.after.get("visibility")
    is_lowered = visibility is not None and asked is not None and visibility != asked
    return f"visibility: asked for {asked}, the service made it {visibility}" if is_lowered else ""


def _why(change: Create, error: ServiceError) -> str:
    """Return the reason of a failed creation, with the fix."""
    imported = change.after.get("import")
    variable = next(iter(imported.values()))["token_env"] if imported else ""
    return creation_failure(change.address.target, variable, error)


def tokens_of(plan: Plan) -> frozenset[str]:
    """Return the tokens for other services that the creations of a plan use."""
    names = {name for target in plan.targets for name in variables_of(target)}
    return frozenset(filter(None, (os.environ.get(name, "").strip() for name in names)))


def external_token(name: str, own: Collection[str]) -> str:
    """Return the token for another service that an environment variable holds.

    Args:
        name: of the variable.
        own: our own tokens, which must go to no other service.

    Raises:
        LookupError: the variable is not set, or empty, or holds one of our own tokens.
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


def _shown(answer: Json) -> LiveTarget | None:
    """Return a new target, if the response to its creation shows it."""
    fields = answer if isinstance(answer, dict) else {}
    number, path = fields.get("id"), fields.get("path_with_namespace", fields.get("full_path"))
    if type(number) is int and isinstance(path, str):
        # The response to an import begins the path with a slash (deployed behaviour, section f 7).
        return LiveTarget(number, path.strip("/"), fields.get("visibility"))
    return None


def _hidden(text: str, tokens: Collection[str]) -> str:
    """Return a text of the service without the tokens that were sent."""
    from reconciler.service.responses import hidden  # noqa: PLC0415 - most commands start without HTTP

    return hidden(text, tokens)


def _is(value: Json, placeholder: str) -> bool:
    return isinstance(value, dict) and value.keys() == {placeholder}


class PatientService:
    """The service for a new target: a 404 is retried until a part of the target has been seen."""

    def __init__(self, service: Service, target: Target) -> None:
        self._service, self._target, self._seen = service, target, False
        self.concurrency = service.concurrency

    def get(self, path: str) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.get(path), path)

    def recall(self, path: str) -> Json:
        """See `Service`."""
        return self._service.recall(path)

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """See `Service`."""
        return self._patiently(lambda: self._service.pages(path, whole=whole), path)

    def send(self, request: Request, *, secrets: Collection[str] = (), file: BinaryIO | None = None) -> Json:
        """See `Service`."""
        return self._patiently(lambda: self._service.send(request, secrets=secrets, file=file), request.path)

    def pause(self, request: str, seconds: float) -> None:
        """See `Service`."""
        self._service.pause(request, seconds)

    def _patiently(self, ask: Callable[[], Result], path: str) -> Result:
        for seconds in () if self._seen else VISIBLE_AFTER:
            try:
                answer = ask()
            except NotFound:
                # The target itself is visible, so that the 404 is about what was asked for.
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
