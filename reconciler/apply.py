"""Carrying out a plan: users, then groups, then projects; targets side by side, one target's changes in order.

A failed change stops nothing but itself. Dry run is not calling this.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from threading import Event
from typing import Any

from reconciler.address import Address, Key, Scope
from reconciler.diff import fields_of, fingerprint
from reconciler.endpoints import Collection, Singleton
from reconciler.errors import OutputFailed, ServiceError
from reconciler.kind import Kinds, Part
from reconciler.live import read_part
from reconciler.plan import Change, Create, Delete, Plan, TargetPlan, Update
from reconciler.planner import identity, plan_section
from reconciler.resource import Found, Resource
from reconciler.state import LivePart, LiveState, Section, Unreadable
from reconciler.wire import Json, Request, Service

Deliver = Callable[[Address, str], None]
"""Takes the value of a created token to where it is to go, once and for good, or raises `OutputFailed`."""


class Status(StrEnum):
    """What became of a change."""

    DONE = "done"
    FAILED = "failed"
    STALE = "stale"
    SKIPPED = "skipped"
    DROPPED = "dropped by the service"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change and what became of it.

    Attributes:
        reason: why it is not done; empty where it is.
    """

    change: Change
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """What became of one target.

    Attributes:
        plan: as it was carried out; it differs from the plan where a group's change made planning again necessary.
        outcomes: one for each change, in the order of the plan.
    """

    plan: TargetPlan
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a plan is carried out.

    Attributes:
        concurrency: how many targets at once.
        verify: whether what was changed is read again afterwards.
        recheck: whether what will be changed is read again before, and refused as stale if it has moved: for a plan
            that comes from a file.
        deliver: where values of created tokens go; None where none is created.
        stop: set by whoever wants the run to end after what is in flight.
    """

    concurrency: int
    verify: bool
    recheck: bool
    deliver: Deliver | None
    stop: Event


def apply_plan(plan: Plan, service: Service, kinds: Kinds, terms: Terms) -> Iterator[TargetOutcome]:
    """Carry out a plan and yield what became of each target that had changes, in the order of the plan."""
    dependent: dict[Scope, list[Section]] = {}
    for section in plan.dependent:
        dependent.setdefault(section.scope, []).append(section)

    def work(target: TargetPlan) -> TargetOutcome:
        return _Application(target, service, kinds, terms).run(dependent.get(target.scope, []))

    with ThreadPoolExecutor(max_workers=terms.concurrency) as pool:
        for _, wave in groupby(plan.targets, key=lambda target: target.scope.level):
            busy = [target for target in wave if any(target.changes) or target.scope in dependent]
            yield from pool.map(work, busy)


def delivering(plan: Plan, kinds: Kinds) -> list[Create]:
    """Return the changes that create something whose value must be delivered."""
    return [
        change
        for change in plan.changes
        if isinstance(change, Create) and _secret_field(change.address, kinds) is not None
    ]


class _Application:
    """The application of one target's plan."""

    def __init__(self, target: TargetPlan, service: Service, kinds: Kinds, terms: Terms) -> None:
        self.target, self.service, self.kinds, self.terms = target, service, kinds, terms
        self.planned_again: set[str] = set()

    def run(self, dependent: list[Section]) -> TargetOutcome:
        for section in dependent:
            if not self.terms.stop.is_set():
                self._plan_again(section)
        stale = self._stale() if self.terms.recheck else {}
        outcomes = []
        for change in self.target.changes:
            if id(change) in stale:
                outcomes.append(Outcome(change, Status.STALE, stale[id(change)]))
            else:
                outcomes.append(self._carry_out(change))
        return TargetOutcome(self.target, tuple(self._verified(outcomes) if self.terms.verify else outcomes))

    def _plan_again(self, section: Section) -> None:
        """Replace the plan of a section that a change to a group may have changed."""
        kind = self.kinds[section.kind]
        parts = {
            (section.scope, section.kind, name): self._read(kind.part(name), wanted)
            for name, wanted in section.wanted.items()
        }
        self.planned_again.add(section.kind)
        planned = plan_section(section, LiveState(parts, {}), self.kinds)
        sections = [planned if old.section == section.kind else old for old in self.target.sections]
        self.target = replace(self.target, sections=tuple(sections))

    def _carry_out(self, change: Change) -> Outcome:
        if self.terms.stop.is_set():
            return Outcome(change, Status.SKIPPED, "the run was ended before it")
        answers: list[Json] = []
        try:
            for request in change.requests:
                answers.append(self.service.send(_complete(request, answers)))
                if isinstance(change, Create) and len(answers) == 1:
                    self._deliver(change, answers[0])
        except (ServiceError, OutputFailed) as error:
            return Outcome(change, Status.FAILED, str(error))
        return Outcome(change, Status.DONE)

    def _deliver(self, change: Create, answer: Json) -> None:
        """Hand over the value of a created token; one that cannot be delivered is deleted again."""
        field = _secret_field(change.address, self.kinds)
        if field is None:
            return
        try:
            if self.terms.deliver is None:
                raise OutputFailed("there is nowhere to deliver its value to")
            self.terms.deliver(change.address, answer[field])
        except OutputFailed as error:
            self.terms.stop.set()
            raise OutputFailed(f"{error}; {self._revoke(change, answer['id'])}") from error

    def _revoke(self, change: Create, number: int) -> str:
        request = Request("DELETE", f"{change.requests[0].path}/{number}")
        try:
            self.service.send(request)
        except ServiceError as error:
            return f"the undelivered token {number} could not be deleted again and should be: {error}"
        return f"the undelivered token {number} was deleted again"

    def _stale(self) -> dict[int, str]:
        """Read again what will be changed; return by change why it is out of date."""
        old = [change for change in self.target.changes if change.address.section not in self.planned_again]
        live = self._read_again(old)
        return {id(change): why for change in old if (why := self._staleness(change, live))}

    def _staleness(self, change: Change, live: "Reread") -> str:
        part = live[change.address.section, change.address.part]
        if isinstance(part, Unreadable):
            return f"cannot be read again: {part.reason}"
        now = self._now(change, part)
        if isinstance(change, Create):
            return "it exists by now" if now else ""
        former = change.renamed_from if isinstance(change, Update) else None
        if change.fingerprint not in {fingerprint(found) for found in _all(part)}:
            left = now or (former is not None and self._named(part, change.address, {former}))
            return "it has changed since the plan was made" if left else "it is gone by now"
        return "its new name is taken by now" if former is not None and now else ""

    def _verified(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Read again what was changed; what the service silently dropped is not done."""
        live = self._read_again(outcome.change for outcome in outcomes if outcome.status is Status.DONE)
        return [self._verify(outcome, live) if outcome.status is Status.DONE else outcome for outcome in outcomes]

    def _verify(self, outcome: Outcome, live: "Reread") -> Outcome:
        change = outcome.change
        part = live[change.address.section, change.address.part]
        if isinstance(part, Unreadable):
            return replace(outcome, status=Status.FAILED, reason=f"carried out, but cannot be verified: {part.reason}")
        if isinstance(change, Delete):
            still = change.fingerprint in {fingerprint(found) for found in _all(part)}
            return replace(outcome, status=Status.DROPPED, reason="it is still there") if still else outcome
        shown = [fields_of(found.resource) for found in self._now(change, part)]
        if not shown:
            return replace(outcome, status=Status.DROPPED, reason="it is not there")
        lost = [name for name, value in change.after.items() if all(fields.get(name) != value for fields in shown)]
        if not lost:
            return outcome
        return replace(outcome, status=Status.DROPPED, reason=f"the service kept its own {', '.join(lost)}")

    def _read_again(self, changes: Iterable[Change]) -> "Reread":
        """Read the parts that some changes are about, once each."""
        wanted: dict[tuple[str, str], Mapping[str, Json]] = {}
        for change in changes:
            after = {} if isinstance(change, Delete) else change.after
            wanted.setdefault((change.address.section, change.address.part), after)
        return {
            (section, part): self._read(self._part(section, part), after) for (section, part), after in wanted.items()
        }

    def _read(self, part: Part, wanted: Resource | Mapping[Any, Any]) -> LivePart:
        """Read one part; while writing, no failure to read is worth losing the rest of the run for."""
        try:
            return read_part(self.service, part, self.target.scope, wanted)
        except ServiceError as error:
            return Unreadable(str(error))

    def _now(self, change: Change, live: Found | tuple[Found, ...]) -> list[Found]:
        """The live objects of a change's name, or of the target it refers to."""
        names = {change.address.name}
        if isinstance(change, Create):
            names.add(change.target_id)
        return self._named(live, change.address, names)

    def _named(self, live: Found | tuple[Found, ...], address: Address, names: set[Key | None]) -> list[Found]:
        part = self._part(address.section, address.part)
        if isinstance(live, Found) or isinstance(part, Singleton):
            return _all(live)
        wanted = {identity(part, name) for name in names if name is not None}
        return [found for found in live if not wanted.isdisjoint(identity(part, name) for name in found.names)]

    def _part(self, section: str, part: str) -> Part:
        return self.kinds[section].part(part)


Reread = Mapping[tuple[str, str], LivePart]
"""By section and part."""


def _all(live: Found | tuple[Found, ...]) -> list[Found]:
    return [live] if isinstance(live, Found) else list(live)


def _complete(request: Request, answers: list[Json]) -> Request:
    """Fill in the ID of the object that the first request created."""
    if "{id}" not in request.path:
        return request
    return replace(request, path=request.path.replace("{id}", str(answers[0]["id"])))


def _secret_field(address: Address, kinds: Kinds) -> str | None:
    part = kinds[address.section].part(address.part)
    return part.delivers if isinstance(part, Collection) else None
