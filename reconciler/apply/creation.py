"""The creation of groups and projects: before everything else of a run, parents first, those of one depth side by side.

Each takes one look and one POST. A path belongs to one target alone, and the service refuses it to a second, so that
nothing is created twice: whatever is in doubt is looked up by its path. A creation that fails holds up what is below
the target, and what refers to it.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from reconciler.apply.imports import Patience, archive_arrives, growing, in_words, look_at_import
from reconciler.apply.outcomes import ENDED, UNKNOWN, ApplyOptions, Fate, Outcome, Status, TargetOutcome
from reconciler.apply.verify import EDITED, Numbers
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
from reconciler.live.read import side_by_side
from reconciler.live.records import TargetRecord, fetch_record
from reconciler.model.creation import FILE, VARIABLE
from reconciler.model.diff import AsRead
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Change, Create, TargetPlan
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target
from reconciler.model.wording import advised
from reconciler.planning.creation import references
from reconciler.system.processes import own_tokens, reveals_token

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")

TRIES = 3
"""How often a creation is sent whose answer is lost each time and that is found not to have been carried out."""

PATIENCE = (0.5, 1, 2, 4, 8, 15)
"""Seconds between looks for what was just created, and may not be visible at once."""

ROUND = 60
"""Seconds after which the service takes further imports, where it took too many."""

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


Recorded = Callable[[Change, Request, Callable[[], Place]], Place]
"""Sends a creation, and notes before and after it what is certain."""


class Creations:
    """The targets that a run creates, and those that it does not. Safe to use from any thread.

    Attributes:
        numbers: the IDs of all targets, as far as they are known.
        unfinished: a sentence for each import that went on when the time was over.
        left_out: a sentence for each import that has finished without some objects.
    """

    def __init__(self, service: Service, options: ApplyOptions, recorded: Recorded) -> None:
        self.service, self.options, self.recorded, self.numbers = service, options, recorded, Numbers()
        self._fates: dict[str, Fate] = {}
        self._new: dict[str, int] = {}
        self._filled: set[str] = set()
        self._runs: dict[str, CreationRun] = {}
        self._secrets: set[str] = set()
        self._full: set[str] = set()
        self._told_of_rounds = False
        self.unfinished: list[str] = []
        self.left_out: list[str] = []

    def fate(self, target: Target) -> Fate | None:
        """Return why nothing can be done in a target: it, or a group above, was not created. None if it can."""
        return next((self._fates[each] for each in _lineage(target) if each in self._fates), None)

    def give_up(self, target: Target, reason: str, status: Status = Status.SKIPPED) -> None:
        """Note why nothing can be done in a target."""
        self._fates[_name(target)] = Fate(status, reason)

    def is_new(self, target: Target) -> bool:
        """Return whether this run has created a target, or has found it where it was to be created."""
        return _name(target) in self._new

    def is_filled(self, target: Target) -> bool:
        """Return whether an archive has come, or may have, into a group above a target."""
        return not self._filled.isdisjoint(_lineage(target)[1:])

    def learn(self, target: Target, number: int) -> None:
        """Note the ID of a new target."""
        self._new[_name(target)] = number
        self.numbers.learn({Reference(target.level, str(target.ref).casefold()): number})

    def begin(self, target: TargetPlan) -> "CreationRun":
        """Return the run that creates a target; the target's plan holds nothing but its creation."""
        run = self._runs[_name(target.target)] = CreationRun(target, self)
        return run

    def arrive(self, paths: Collection[str]) -> None:
        """Wait until the archives have arrived that earlier runs may have sent for these groups."""
        side_by_side(self.arrives, [Target(Level.GROUP, path) for path in sorted(paths)], self.options.concurrency)

    def arrives(self, group: Target) -> bool:
        """Wait until the archive of a group has arrived, and return whether it has. If not, nothing is done there."""
        self._filled.add(_name(group))
        try:
            why = archive_arrives(group, self.service, self.options)
        except Stopped:
            self.give_up(group, ENDED)
            return False
        if why:
            self.leave(group, why)
        return not why

    def wait(self, targets: Iterable[TargetPlan], go_on: Callable[[Iterable[TargetPlan]], None]) -> None:
        """Wait until the imports of targets have ended, and go on with each, or until the time is over.

        Imports that the service took too many of are asked for again in the meantime.
        """
        left, options, next_round = list(targets), self.options, ROUND
        patience, time = Patience(self.service, growing(2, 30), options.wait), in_words(options.wait)
        while left and not options.stop.reason:
            if patience.waited >= next_round:
                next_round += ROUND
                self._next_round(left)
            ended = side_by_side(self._has_ended, left, options.concurrency)
            go_on([each for each, over in zip(left, ended, strict=True) if over])
            left = [each for each, over in zip(left, ended, strict=True) if not over]
            if not left:
                return
            if patience.is_fresh:
                others = f" and {len(left) - 1} more" if len(left) > 1 else ""
                LOG.info("Waiting for the import of %s%s, %s at most", left[0].target, others, time)
            try:
                if patience.pause("GET projects/:id/import"):
                    continue
            except Stopped:
                return
            held = [each for each in left if self.holds_up(each)]
            for run in self._postponed(left):
                run.end(time)
            for each in left:
                if each not in held or not self._has_ended(each):
                    self.leave(each.target, f"the import of {each.target} still runs after {time}")
            go_on(left)
            return

    def takes(self, change: Create) -> bool:
        """Return whether the service takes an import now, as far as the run knows."""
        return self._full.isdisjoint(change.after.get("import") or ())

    def fill(self, change: Create) -> None:
        """Note that the service takes no further imports like this one before the next round."""
        self._full |= change.after["import"].keys()
        if not self._told_of_rounds:
            self._told_of_rounds = True
            LOG.info("The service takes only some imports a minute; the others are asked for again every %d s", ROUND)

    def holds_up(self, plan: TargetPlan) -> bool:
        """Return whether a target, or one that its changes refer to, is an import that the service has yet to take."""
        if not self._full:
            return False
        names = {name for change in plan.changes for request in change.requests for name in references(request.body)}
        parts = [name.partition(" ") for name in names]
        targets = [plan.target, *(Target(Level(level), path) for level, _, path in parts)]
        runs = [self._runs.get(_name(target)) for target in targets]
        return any(run is not None and run.is_postponed for run in runs)

    def _postponed(self, plans: Iterable[TargetPlan]) -> "list[CreationRun]":
        """Return the creations of targets that are yet to be asked for."""
        runs = [self._runs.get(_name(plan.target)) for plan in plans]
        return [run for run in runs if run is not None and run.is_postponed]

    def _next_round(self, plans: Iterable[TargetPlan]) -> None:
        """Ask for postponed imports again, until the service takes no further one."""
        self._full.clear()
        for run in self._postponed(plans):
            run.run()

    def leave(self, target: Target, reason: str) -> None:
        """Note that nothing can be done in a target before the service has ended what it does there."""
        self.unfinished.append(f"{reason}; the service goes on with it, and the same command goes on from there")
        self.give_up(target, self.unfinished[-1])

    def _has_ended(self, plan: TargetPlan) -> bool:
        """Return whether the import of a project has ended; one that failed is noted."""
        if self.fate(plan.target) is not None:
            return True
        if self.holds_up(plan):
            return False
        if not plan.importing:
            return True
        run = self._runs.get(_name(plan.target))
        try:
            begun = run is not None and run.result is not None
            found = look_at_import(plan.target, self.service, begun=begun, secrets=self._secrets)
        except Stopped:
            return False
        except ServiceError as error:
            self.options.stop.after(error)
            self._fail(plan.target, f"its import cannot be watched: {error}")
            return True
        if found.obstacle:
            self._fail(plan.target, advised(found.obstacle.reason, "delete the project, and apply again"))
        if found.left_out:
            self.left_out.append(
                f"the import of {plan.target} has left out {found.left_out}; compare the project with its source"
            )
        return not found.is_running

    def _fail(self, target: Target, reason: str) -> None:
        """Note that the import of a target has failed, so that nothing can be done there."""
        run = self._runs.get(_name(target))
        if run is not None and run.result is not None:
            run.result = replace(run.result, status=Status.FAILED, reason=reason, unconfirmed=True)
            run.count()
        self.give_up(target, f"the import of {target} did not succeed")

    def secret(self, name: str) -> str:
        """Return the token for another service; see `external_token`."""
        value = external_token(name, self.options.own_tokens)
        self._secrets.add(value)
        return value

    def hidden(self, text: str) -> str:
        """Return words of the service without the tokens that were sent."""
        from reconciler.service.responses import hidden  # noqa: PLC0415 - most commands start without HTTP

        return hidden(text, self._secrets)

    def completed(self, change: Change) -> Change | Fate:
        """Return a change with the IDs of the targets that it refers to, or why it is not carried out."""
        ids: dict[str, int] = {}
        for name in {name for request in change.requests for name in references(request.body)}:
            level, _, path = name.partition(" ")
            target = Target(Level(level), path)
            fate = self.fate(target)
            if fate is not None:
                return fate
            try:
                number = self.numbers.of(Reference(target.level, path.casefold()), self.service)
            except ServiceError as error:
                self.options.stop.after(error)
                return Fate(Status.SKIPPED, str(error))
            if isinstance(number, Obstacle):
                return Fate(Status.SKIPPED, f"{target} does not exist yet; apply again once it was created")
            ids[name] = number
        if not ids:
            return change
        requests = tuple(replace(request, body=_filled(request.body, ids)) for request in change.requests)
        if isinstance(change, Create) and change.address.section:
            return replace(change, requests=requests, target_id=next(iter(ids.values())))
        return replace(change, requests=requests)


class CreationRun:
    """The creation of one target.

    Attributes:
        result: what became of it; None where it was not needed, since the target exists by now.
        is_postponed: whether the service took too many imports, so that this one is asked for later.
    """

    def __init__(self, target: TargetPlan, creations: Creations) -> None:
        self.change = next(change for change in target.changes if isinstance(change, Create))
        self.target, self.creations = target, creations
        self.service, self.options = creations.service, creations.options
        self.result: Outcome | None = Outcome(self.change, Status.FAILED, UNKNOWN, unconfirmed=True)
        self.is_postponed = False
        self._refusal = ""

    @property
    def outcome(self) -> TargetOutcome:
        """The outcome so far."""
        if self.is_postponed:
            return TargetOutcome(self.target, (self._skipped(),))
        if self.result is not None:
            return TargetOutcome(self.target, (self.result,))
        sections = tuple(replace(section, changes=()) for section in self.target.sections)
        return TargetOutcome(replace(self.target, sections=sections), ())

    @property
    def namespace(self) -> Target:
        """The group that the target is created in."""
        return Target(Level.GROUP, str(self.target.target.ref).rpartition("/")[0])

    def run(self) -> None:
        """Create the target, if nothing prevents that now."""
        self.is_postponed = not self.creations.takes(self.change)
        if self.is_postponed:
            return
        try:
            self.result = self._created()
        except (LookupError, OutputFailed) as error:
            self.result = Outcome(self.change, Status.FAILED, str(error))
        except ServiceError as error:
            if isinstance(error, RateLimited) and "import" in self.change.after and not error.ambiguous:
                self.is_postponed, self._refusal = True, self._why(error)
                self.creations.fill(self.change)
                return
            self.options.stop.after(error)
            if isinstance(error, Stopped) and not error.ambiguous:
                self.result = self._skipped()
            else:
                self.result = Outcome(self.change, Status.FAILED, self._why(error), unconfirmed=error.ambiguous)
        self._settle()

    def end(self, time: str) -> None:
        """Give up a postponed import after a time, such as `30m`."""
        self.is_postponed = False
        if self._refusal:
            reason = advised(self._refusal, f"the service has refused it for {time}: apply again later")
            self.result = Outcome(self.change, Status.FAILED, reason)
        else:
            reason = f"the service has taken no further import for {time}; apply again later"
            self.result = Outcome(self.change, Status.SKIPPED, reason)
        self._settle()

    def _skipped(self) -> Outcome:
        return Outcome(self.change, Status.SKIPPED, self.options.stop.reason or ENDED)

    def _settle(self) -> None:
        """Hold up what depends on a target that was not created, and count the failure."""
        target = self.target.target
        match self.result:
            case Outcome(status=Status.FAILED):
                self.creations.give_up(target, f"{target} was not created")
            case Outcome(status=Status.STALE | Status.SKIPPED as status, reason=reason):
                self.creations.give_up(target, reason, status)
        self.count()
        done = self.result is not None and self.result.status is Status.DONE
        self.options.progress.step(target, int(done))

    def count(self) -> None:
        """Count a failure, after which the run may have to end."""
        if self.options.failures is not None and self.result is not None:
            self.options.failures.count(self.result, self.options.stop)

    def _created(self) -> Outcome | None:
        fate = self.creations.fate(self.target.target)
        if self.options.stop.reason:
            fate = Fate(Status.SKIPPED, self.options.stop.reason)
        if fate is not None:
            return Outcome(self.change, fate.status, fate.reason)
        found = self._look()
        if found is not None:
            return self._adopted(found)
        completed = self.creations.completed(self.change)
        if isinstance(completed, Fate):
            return Outcome(self.change, completed.status, completed.reason)
        (request,) = completed.requests
        self._check_namespace(request)
        with self._prepared(request) as send:
            place = self.creations.recorded(self.change, request, partial(self._until_known, request, send))
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
        if self.options.recheck and not self.creations.is_filled(target):
            return Outcome(self.change, Status.STALE, f"{target} exists now (ID {found.id}); plan again")
        self.creations.learn(target, found.id)
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
            known: Json = self.creations.numbers.of(Reference(Level.GROUP, path.casefold()), self.service)
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
            values = {key: self.creations.secret(body[key][VARIABLE]) for key in variables}
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

    def _until_known(self, request: Request, send: Callable[[], Json]) -> Place:
        """Send a creation until it is known what it has led to.

        One whose answer is lost is looked for, and sent again only if the target does not exist.
        """
        left, waits, doubt = TRIES, iter(PATIENCE), False
        while True:
            left -= 1
            try:
                answer = send()
                break
            except ServiceError as error:
                doubt = doubt or error.ambiguous
                is_new = isinstance(error, NotFound) and self.creations.is_new(self.namespace)
                seconds = next(waits, None) if is_new and not doubt else None
                if seconds is not None:
                    left += 1
                    self.service.pause(str(request), seconds)
                    continue
                found = self._looked_up(error, patiently=doubt) if doubt or isinstance(error, Refused) else None
                if found is not None:
                    return replace(found, is_ours=doubt)
                if not (error.ambiguous and left):
                    error.ambiguous = doubt
                    raise
        return self._made(request, answer)

    def _made(self, request: Request, answer: Json) -> Place:
        """Return a new target by the response to its creation, or, where that does not show it, by a look.

        Raises:
            AnswerLost: it cannot be seen.
        """
        fields = answer if isinstance(answer, dict) else {}
        number, path = fields.get("id"), fields.get("path_with_namespace", fields.get("full_path"))
        if type(number) is int and isinstance(path, str):
            return Place(number, path.strip("/"), fields.get("visibility"))
        try:
            found = self._looked_for(PATIENCE)
        except ServiceError as error:
            raise AnswerLost(str(request), f"it was accepted; {error}") from error
        if found is None:
            raise AnswerLost(str(request), f"it was accepted, and the {self.target.target.level} cannot be read")
        return replace(found, is_ours=True)

    def _looked_up(self, lost: ServiceError, *, patiently: bool) -> Place | None:
        """Look for a target whose creation failed, or may have.

        Raises:
            ServiceError: nobody knows whether it exists.
        """
        try:
            return self._looked_for(PATIENCE[:3] if patiently else ())
        except ServiceError as error:
            reason = f"{lost.reason}; checking whether it succeeded: {error}"
            raise (AnswerLost if patiently else type(lost))(lost.request, reason, lost.status) from error

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
        shown = self.creations.hidden(place.path) if went_astray else place.path
        done = Outcome(change, Status.DONE, created=AsRead(place.id, (shown,), change.after, {}))
        if went_astray:
            reason = (
                f"it went to {shown} (ID {place.id}): this is where the service puts an import that it cannot put "
                f"into {self.namespace}; delete it there, and see that the group exists and takes imports"
            )
            return replace(done, status=Status.FAILED, reason=reason, unconfirmed=True)
        filled = "from_archive" in change.after
        self.creations.learn(target, place.id)
        asked = change.after.get("visibility")
        if filled and self.creations.arrives(target) and asked is not None:
            place = self._look() or place
        if place.visibility is not None and asked is not None and place.visibility != asked:
            reason = f"visibility: asked for {asked}, the service made it {place.visibility}"
            return replace(done, status=Status.DROPPED, reason=reason)
        return done

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


def waves(targets: Iterable[TargetPlan]) -> list[list[TargetPlan]]:
    """Return targets that are to be created so that each wave needs those before: groups by depth, then projects."""
    found: dict[tuple[bool, int], list[TargetPlan]] = {}
    for each in targets:
        is_project = each.target.level is Level.PROJECT
        found.setdefault((is_project, 0 if is_project else str(each.target.ref).count("/")), []).append(each)
    return [found[place] for place in sorted(found)]


def apart(target: TargetPlan) -> Iterator[TargetPlan]:
    """Yield the creation of a target that does not exist, and what is declared of it, each by itself."""
    creation = tuple(section for section in target.sections if not section.section)
    declared = tuple(section for section in target.sections if section.section)
    yield replace(target, sections=creation)
    if declared or target.importing:
        yield replace(target, sections=declared)


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


def _name(target: Target) -> str:
    return str(Target(*target.identity))


def _lineage(target: Target) -> list[str]:
    """Return the names of a target and of the groups above it, as far as its path shows them."""
    own = Target(*target.identity)
    names = str(own.ref).split("/") if isinstance(own.ref, str) else []
    above = ("/".join(names[:end]) for end in range(len(names) - 1, 0, -1))
    return [str(own), *(str(Target(Level.GROUP, path)) for path in above)]


def _is(value: Json, placeholder: str) -> bool:
    return isinstance(value, dict) and value.keys() == {placeholder}


def _filled(body: Json, ids: Mapping[str, int]) -> Json:
    """Return a body with IDs in the place of names."""
    match body:
        case {"id_of": str() as name}:
            return ids[name]
        case dict():
            return {key: _filled(value, ids) for key, value in body.items()}
    return body
