"""The application of a plan: users, then groups, then projects; targets of one level side by side.

New groups and projects are created first; targets that an import is filling come last. Groups come before projects
because their approval settings decide what the projects may set. Within a target, changes are made in order, each
request is recorded, and doubts are settled by reading.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby

from reconciler.engine.apply.creation import NewTarget, tokens_of
from reconciler.engine.apply.imports import Imports
from reconciler.engine.apply.journal import recorded
from reconciler.engine.apply.last import Referring, late, still_naming
from reconciler.engine.apply.members import SETTLED_AFTER, is_delayed, once_more, planned_once_more
from reconciler.engine.apply.objects import Made, ObjectCreation
from reconciler.engine.apply.once import MAX_CREATE_ATTEMPTS
from reconciler.engine.apply.outcomes import (
    RESULT_UNKNOWN,
    RUN_ENDED,
    UNVERIFIED,
    ApplyOptions,
    CanaryRun,
    Fate,
)
from reconciler.engine.apply.prepare import Preparation, Ready, planned_again
from reconciler.engine.apply.putting_back import put_back
from reconciler.engine.apply.refusals import Refusals
from reconciler.engine.apply.targets import Targets, apart, waves
from reconciler.engine.apply.verify import (
    Reread,
    Unasked,
    Verifier,
    collection_of,
    unapplied,
    with_created,
)
from reconciler.engine.apply.waiting import PatientService
from reconciler.engine.crew import side_by_side
from reconciler.errors import NotFound, OutputFailed, Refused, ServiceError, Stopped
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Delete, Outcome, Status, makes
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, SectionPlan, TargetPlan
from reconciler.model.protocols import Request, Service
from reconciler.model.state import LivePart, PartAddress, Section, Unreadable
from reconciler.model.targets import Level, Target

LOG = logging.getLogger(__name__)

MAY_PASS = frozenset({408, 409, 425, 429, 503})
"""The statuses of what was not carried out, and may be later."""


class Application:
    """A plan that is carried out. A failed change stops nothing but itself; it is an outcome, never an exception.

    Attributes:
        imports: what the service goes on with after the run, and what it has left out.
        canary: how the canary went; None without one, or before its end.
        numbers: the IDs of paths, as far as the run has learned them.
    """

    def __init__(self, plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> None:
        self._plan, self._kinds, self._options = plan, kinds, options
        self._again: dict[Target, list[Section]] = {}
        for section in plan.dependent if options.recheck else planned_again(plan):
            self._again.setdefault(section.target, []).append(section)
        self._busy = [target for target in plan.targets if any(target.changes) or target.target in self._again]
        self._targets = Targets(service, options, tokens_of(plan))
        self.numbers = self._targets.numbers
        if not options.recheck:
            self.numbers.learn(plan.ids)
        self.imports = Imports(self._targets, kinds)
        self._begun: dict[Target, list[NewTarget | TargetRun]] = {}
        self._referring = Referring(self._busy, kinds)
        self.canary: CanaryRun | None = None

    def run(self) -> None:
        """Carry it out. A `KeyboardInterrupt` ends it at once, also where the service never answers."""
        options = self._options
        first, later = self._stages()
        changes = sum(1 for target in self._busy for _ in target.changes)
        options.progress.begin("applying", (target.target for target in (*first, *later)), changes)
        began = options.now()
        self._carry_out(first)
        if options.canary:
            tried = tuple(target.target for target in self._plan.targets if target.target in options.canary)
            self.canary = CanaryRun(tried, not self._sick(), began, options.now())
            options.write_log.canary(len(tried), in_order=self.canary.in_order)
        if not self._sick():
            self._carry_out(later)
        sick = self._sick()
        if sick:
            others = f" and {len(sick) - 1} more" if len(sick) > 1 else ""
            options.stop.hold(f"the canary is not in order: {sick[0]}{others}")
        self._try_again()
        self._end()

    def _try_again(self) -> None:
        """Make once more what the service has refused or dropped for the sake of new members; see `members`."""
        runs = [run for begun in self._begun.values() for run in begun if isinstance(run, TargetRun) and run.delayed]
        if not runs or self._options.stop.reason:
            return
        LOG.info("%s: members who were added a moment ago are tried once more", runs[0].target.target)
        with suppress(Stopped):
            self._targets.service.pause(runs[0].target.target.url, SETTLED_AFTER)
            side_by_side(lambda run: run.try_again(), runs, self._targets.service.concurrency)

    def _end(self) -> None:
        """Delete in groups what projects below them have referred to."""
        waiting = [run for begun in self._begun.values() for run in begun if isinstance(run, TargetRun) and run.waiting]
        if waiting:
            below = [target for target in self.outcomes if target.target.level is Level.PROJECT]
            outcomes = [outcome for target in below for outcome in target.outcomes]
            side_by_side(lambda run: run.end(outcomes), waiting, self._targets.service.concurrency)

    def _stages(self) -> tuple[list[TargetPlan], list[TargetPlan]]:
        """Return what comes first, and what only if that is in order. Creations are apart from what is declared.

        Settings of the canary that do not change, but may have to after a change to a group that comes later, are read
        and planned again after that.
        """
        first: list[TargetPlan] = []
        later: list[TargetPlan] = []
        canary = self._options.canary
        groups = any(target.target.level is Level.GROUP and target.target not in canary for target in self._busy)
        for target in chain.from_iterable(apart(busy) if busy.creation else [busy] for busy in self._busy):
            if target.target not in canary:
                later.append(target)
                continue
            waiting = {section.kind for section in self._again.get(target.target, ())} if groups else set[str]()
            changing = {change.address.section for change in target.changes}
            late = [name for name in target.found if name in waiting and name not in changing]
            first.append(target.only([name for name in target.found if name not in late]))
            later += [target.only(late)] if late else []
        return first, later

    def _sick(self) -> list[str]:
        """Return the targets of the canary that are not in order by now."""
        canary = [target for target in self._plan.targets if target.target in self._options.canary]
        return [str(target.target) for target in canary if not self._outcome(target, waiting=False).in_order]

    def _carry_out(self, stage: Sequence[TargetPlan]) -> None:
        """Carry out one stage: creations, then what is declared, then what an import fills."""
        self.imports.arrive({target.arriving for target in stage} - {""})
        for wave in waves(target for target in stage if target.creation):
            creations = [NewTarget(plan, self._targets) for plan in wave]
            for creation in creations:
                self._begun.setdefault(creation.target, []).append(creation)
            side_by_side(self.imports.create, creations, self._targets.service.concurrency)
            self.imports.fill(creations)
        declared = [target for target in stage if not target.creation]
        later = {target.target for target in declared if target.importing or self.imports.holds_up(target)}
        self._apply(target for target in declared if target.target not in later)
        for ended in self.imports.ended(target for target in declared if target.target in later):
            self._apply(ended)

    def _apply(self, plans: Iterable[TargetPlan]) -> None:
        """Carry out what is declared, level by level."""
        for _, wave in groupby(plans, key=lambda plan: plan.target.level):
            side_by_side(self._apply_one, wave, self._targets.service.concurrency)

    def _apply_one(self, plan: TargetPlan) -> None:
        run = TargetRun(plan, self._kinds, self._targets, self._referring)
        self._begun.setdefault(plan.target, []).append(run)
        kinds = {section.section for section in plan.sections}
        run.run([section for section in self._again.get(plan.target, []) if section.kind in kinds])
        done = sum(outcome.status is Status.DONE for outcome in run.outcome.outcomes)
        self._options.progress.step(plan.target, done)

    @property
    def outcomes(self) -> list[TargetPlan]:
        """The targets that had changes, with the outcomes as far as known by now, in the order of the plan."""
        return [self._outcome(target) for target in self._busy]

    @property
    def read(self) -> dict[PartAddress, LivePart]:
        """The parts that the run has read, as it read them last."""
        runs = [run for begun in self._begun.values() for run in begun if isinstance(run, TargetRun)]
        return {(run.target.target, *place): live for run in runs for place, live in run.verifier.read_last.items()}

    def _outcome(self, target: TargetPlan, *, waiting: bool = True) -> TargetPlan:
        """Return what became of a target, some of whose sections may not have been begun.

        Args:
            target: as it was planned.
            waiting: whether to include the changes that wait for other targets.
        """
        sections = [section for run in self._begun.get(target.target, ()) for section in run.outcome.sections]
        if not waiting:
            runs = [run for run in self._begun.get(target.target, ()) if isinstance(run, TargetRun)]
            left = {id(outcome) for run in runs for outcome in run.waiting}
            sections = [
                replace(section, outcomes=tuple(outcome for outcome in section.outcomes if id(outcome) not in left))
                for section in sections
            ]
        begun = {section.section for section in sections}
        skipped = Fate(Status.SKIPPED, self._options.stop.reason or RUN_ENDED)
        sections += [
            replace(section, outcomes=tuple(map(skipped.outcome, section.changes)))
            for section in target.sections
            if section.section not in begun
        ]
        order = [section.section for section in target.sections]
        return target.with_sections(sorted(sections, key=lambda section: order.index(section.section)))


def apply_plan(plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> list[TargetPlan]:
    """Carry out a plan and return its targets that had changes, with what became of these, in the order of the plan."""
    application = Application(plan, service, kinds, options)
    application.run()
    return application.outcomes


@dataclass(frozen=True, slots=True)
class Attempt:
    """A change that was carried out, or tried, or not.

    Attributes:
        outcome: what became of it, as far as is known.
        made: the object that it created, if that is known; None where it stands for another target, whose ID it has.
        doubt: why it failed, where it may have been carried out nevertheless, or is done without it.
        was_done: whether it was as wanted before anything was sent, so that it is not read once more.
        waits: whether its last requests are not sent yet: they delete what others refer to.
    """

    outcome: Outcome
    made: Made | None = None
    doubt: ServiceError | None = None
    was_done: bool = False
    waits: bool = False

    @property
    def number(self) -> int | None:
        """The ID of the object that it has created, if that is known."""
        known = self.made or self.outcome.created
        return known.id if known else None


class TargetRun:
    """The application of one target's plan."""

    def __init__(self, target: TargetPlan, kinds: Kinds, targets: Targets, referring: Referring) -> None:
        self.target, self.kinds, self.options, self.targets = target, kinds, targets.options, targets
        is_new = targets[target.target].is_new
        self.service = PatientService(targets.service, target.target) if is_new else targets.service
        self.verifier = Verifier(self.service, kinds, target.target, self.options.stop, targets.numbers)
        self.objects = ObjectCreation(self.service, self.verifier, self.options)
        self.refusals = Refusals(target.target, self.service, kinds, self.options.stop)
        self.sections: list[SectionPlan] = []
        self.attempts: list[Attempt] = []
        self.doubtful: list[int] = []
        self._referring = referring
        self._below = referring.below(target)
        self._referred = referring.here(target) | self._below

    @property
    def waiting(self) -> list[Outcome]:
        """The changes that wait for other targets, as far as they are carried out."""
        return [attempt.outcome for attempt in self.attempts if attempt.waits]

    @property
    def outcome(self) -> TargetPlan:
        """The target as it is carried out, with the outcomes so far.

        In a run that is not over, the next change is unknown, and the rest is skipped.
        """
        known = [attempt.outcome for attempt in self.attempts]
        plan = self.target.with_sections((*self.sections, *self.target.sections[len(self.sections) :]))
        rest = list(plan.changes)[len(known) :]
        known += [Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True) for change in rest[:1]]
        known += [Outcome(change, Status.SKIPPED, RUN_ENDED) for change in rest[1:]]
        return plan.with_outcomes(known)

    def run(self, again: Iterable[Section]) -> None:
        """Carry out the plan, section by section.

        Args:
            again: the sections to read and plan again right before.
        """
        wanted = {section.kind: section for section in again}
        preparation = Preparation(self.target, self.targets, self.verifier, wanted)
        for section in self.target.sections:
            ready = preparation.prepare(section)
            self.sections.append(ready.section)
            for change in ready.section.changes:
                self.attempts.append(self._attempted(change, ready))
                self._count(len(self.attempts) - 1)
        if not self._below:
            self._end(attempt.outcome for attempt in self.attempts)
        self._verify(self.attempts)
        self.targets.note_made((attempt.outcome.change.address, attempt.number) for attempt in self.attempts)

    @property
    def delayed(self) -> list[int]:
        """The places of the attempts that may succeed in a moment: see `members`."""
        return [place for place, attempt in enumerate(self.attempts) if is_delayed(attempt.outcome, self.kinds)]

    def try_again(self) -> None:
        """Plan what may succeed by now once more, and carry it out."""
        places = self.delayed
        preparation = Preparation(self.target, self.targets, self.verifier, {})
        sections = planned_once_more([self.attempts[place].outcome for place in places], preparation)
        run = TargetRun(self.target.with_sections(sections), self.kinds, self.targets, self._referring)
        run.run(())
        self.verifier.read_last |= run.verifier.read_last
        for place in places:
            outcome = once_more(self.attempts[place].outcome, run.outcome)
            self.attempts[place] = replace(self.attempts[place], outcome=outcome, doubt=None)

    def end(self, outcomes: Iterable[Outcome]) -> None:
        """Carry out what waits for other targets.

        Args:
            outcomes: of these.
        """
        places = self._end([*outcomes, *(attempt.outcome for attempt in self.attempts)])
        self._verify([self.attempts[place] for place in places])

    def _end(self, outcomes: Iterable[Outcome]) -> list[int]:
        """Delete what others have referred to, unless one of them was left as it was; return which attempts that are.

        Args:
            outcomes: of the changes that may end such a reference.
        """
        places = [place for place, attempt in enumerate(self.attempts) if attempt.waits]
        undone = [outcome for outcome in outcomes if outcome.status is not Status.DONE] if places else []
        for place in places:
            attempt = self.attempts[place]
            change = attempt.outcome.change
            reason = self.options.stop.reason or still_naming(change, undone, self.kinds)
            if reason:
                self.attempts[place] = replace(attempt, outcome=replace(attempt.outcome, reason=reason), waits=False)
            else:
                unknown = Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True)
                self.attempts[place] = Attempt(unknown, attempt.made)
                first, end = len(change.requests) - late(change), len(change.requests)
                self.attempts[place] = self._send(change, first, end, attempt.made)
            self._count(place)
        return places

    def _attempted(self, change: Change, ready: Ready) -> Attempt:
        """Carry out a change, unless it is settled before; of a run that ends, only refusals are."""
        settled, stop = ready.settled.get(id(change)), self.options.stop
        if settled is None or stop.held or (stop.reason and settled.status is Status.DONE):
            return self._carry_out(change)
        if settled.status is Status.DONE:
            return Attempt(self.objects.delivered_again(settled), was_done=True)
        return Attempt(settled)

    def _count(self, place: int) -> None:
        """Count a failure, after which the run may have to end: doubts are settled before, all by one reading."""
        attempt, failures = self.attempts[place], self.options.failures
        if failures is None or attempt.waits:
            return
        if attempt.doubt is None or not self.options.verify:
            failures.count(attempt.outcome, self.options.stop)
            return
        self.doubtful.append(place)
        if not failures.suspect():
            return
        live = self.verifier.again(self.attempts[doubtful].outcome.change for doubtful in self.doubtful)
        for doubtful in self.doubtful:
            self.attempts[doubtful] = self._looked_at(self.attempts[doubtful], live)
            failures.count(self.attempts[doubtful].outcome, self.options.stop, suspected=True)
        self.doubtful = []

    def _carry_out(self, change: Change) -> Attempt:
        """Send the requests of a change; those that delete what others refer to are left for later."""
        skipped = self.options.stop.reason or self.refusals.closed.get(change.address.section)
        if skipped:
            return Attempt(Outcome(change, Status.SKIPPED, skipped))
        if isinstance(change, Delete) and (obstacle := self.objects.delivery.hand_over_successor(change)) is not None:
            return Attempt(obstacle)
        waiting = late(change) if change.address.section in self._referred else 0
        attempt = self._send(change, 0, len(change.requests) - waiting)
        if not waiting or attempt.outcome.status is not Status.DONE:
            return attempt
        is_begun = waiting < len(change.requests)
        status = Status.FAILED if is_begun else Status.SKIPPED
        return Attempt(Outcome(change, status, RUN_ENDED, unconfirmed=is_begun), attempt.made, waits=True)

    def _send(self, change: Change, first: int, end: int, made: Made | None = None) -> Attempt:
        """Send some requests of a change.

        Args:
            change: the change.
            first, end: the place of the first of them, and that after the last.
            made: the object that those before have created, if that is known.
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
            self.options.stop.after(error, told=True)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous and not sent:
                return Attempt(Outcome(change, Status.SKIPPED, self.options.stop.reason or RUN_ENDED))
            doubt = error if error.ambiguous or isinstance(error, Refused | NotFound) else None
            unconfirmed = error.ambiguous or sent > 0
            reason = self.refusals.why(change, error)
            if not error.ambiguous and error.sent and not self.options.stop.refused:
                part = self.kinds[change.address.section].part(change.address.part)
                back = put_back(change, part, sent, self.verifier, partial(self._recorded, change))
                reason += f"; {back.told}" if back else ""
                unconfirmed = unconfirmed and not (back and back.is_whole)
            failed = Outcome(change, Status.FAILED, reason, as_made(change, made), unconfirmed=unconfirmed)
            return Attempt(failed, made, doubt)
        return Attempt(Outcome(change, Status.DONE, created=as_made(change, made)), made)

    def _recorded(self, change: Change, request: Request) -> None:
        is_delicate = request.once and request.method == "DELETE"
        send = partial(self._delete, change, request) if is_delicate else partial(self.service.send, request)
        recorded(self.options, change, request, send)

    def _delete(self, change: Change, request: Request) -> None:
        """Delete an object by a path that leads to another one as soon as it is gone.

        Where the service did not carry that out, and may later, it is looked for before the request is sent again.
        """
        left = MAX_CREATE_ATTEMPTS
        while True:
            left -= 1
            try:
                self.service.send(request)
            except ServiceError as error:
                if error.ambiguous or error.status not in MAY_PASS or not left:
                    raise
                objects = self.verifier.again([change])[change.address.section, change.address.part]
                if isinstance(objects, Unreadable):
                    raise
                if not isinstance(change, Create) and change.read.id in objects.by_id:
                    continue
            return

    def _verify(self, attempts: Iterable[Attempt]) -> None:
        """Read again what was changed or may have been, if wanted; what the service silently dropped is not done."""
        if not self.options.verify:
            return
        open_ones = [
            attempt
            for attempt in attempts
            if (attempt.outcome.status is Status.DONE and not attempt.was_done) or attempt.doubt is not None
        ]
        live = self.verifier.again(attempt.outcome.change for attempt in open_ones)
        # What refers to others comes first: of two that were made at once, one goes before what it names.
        settled = {id(attempt): self._looked_at(attempt, live) for attempt in reversed(open_ones)}
        if self.options.failures is not None:
            for attempt in open_ones:
                suspected = attempt.doubt is not None
                self.options.failures.count(settled[id(attempt)].outcome, self.options.stop, suspected=suspected)
        self.attempts = [settled.get(id(attempt), attempt) for attempt in self.attempts]

    def _looked_at(self, attempt: Attempt, live: Reread) -> Attempt:
        return Attempt(with_created(self._settled(attempt, live), live), attempt.made)

    def _settled(self, attempt: Attempt, live: Reread) -> Outcome:
        """Return what became of a change by what the service shows of it."""
        outcome, change, made = attempt.outcome, attempt.outcome.change, attempt.made
        try:
            lacking = (self.verifier.unapplied if attempt.doubt else unapplied)(change, live, made.id if made else None)
        except LookupError as error:
            unread = live[change.address.section, change.address.part]
            return outcome if attempt.doubt else _unverified(outcome, error, is_asked=not isinstance(unread, Unasked))
        if attempt.doubt:
            return self._still_there(attempt, attempt.doubt) if lacking else self._found_done(attempt, attempt.doubt)
        if lacking:
            return replace(outcome, status=Status.DROPPED, reason=lacking)
        if isinstance(change, Create) and made is not None and (reason := self.objects.withdrawn(change, made, live)):
            return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)
        return outcome

    def _still_there(self, attempt: Attempt, doubt: ServiceError) -> Outcome:
        """Return what became of a change that failed; of a removal of what is listed and not found, say why that is."""
        outcome, change = attempt.outcome, attempt.outcome.change
        refers = isinstance(change, Delete) and isinstance(doubt, NotFound)
        level = collection_of(change.address, self.kinds).names.level if refers else None
        if level is None:
            return outcome
        hidden = f"it is still listed, so this token cannot see that {level}; an owner who can see it can remove it"
        return replace(outcome, reason=f"{outcome.reason}; {hidden}")

    def _found_done(self, attempt: Attempt, doubt: ServiceError) -> Outcome:
        """Return what became of a change that failed, or may have, and is nevertheless as wanted."""
        outcome = attempt.outcome
        if makes(outcome.change) and not doubt.ambiguous and attempt.made is None:
            return replace(outcome, status=Status.STALE, reason="somebody else made the same change at the same time")
        change = outcome.change
        if isinstance(change, Create) and self.objects.is_secret(change.address):
            return replace(outcome, reason=f"{outcome.reason}; a token exists whose value was not delivered: delete it")
        return Outcome(outcome.change, Status.DONE, created=outcome.created)


def _unverified(outcome: Outcome, error: LookupError, *, is_asked: bool) -> Outcome:
    """Return what became of a change that the service has accepted, and that cannot be or was not read again."""
    if not is_asked:
        return replace(outcome, reason=UNVERIFIED)
    reason = f"applied, but cannot be verified: {error}"
    return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)


def as_made(change: Change, made: Made | None) -> AsRead | None:
    """Return the object that a change has created, as far as that is known without reading it."""
    number = made.id if made else change.target_id if isinstance(change, Create) else None
    if not isinstance(change, Create) or change.address.name is None or number is None:
        return None
    return AsRead(number, (change.address.name,), change.after, {})
