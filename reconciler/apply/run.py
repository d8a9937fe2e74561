"""The application of a plan: users, then groups, then projects; targets of one level side by side.

New groups and projects are created first; targets that an import is filling come last. Groups come before projects
because their approval settings decide what the projects may set. Within a target, changes are made in order, each
request is recorded, and doubts are settled by reading.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby

from reconciler.apply.creation import LiveTarget, NewTarget, Patient, tokens_of
from reconciler.apply.imports import Creating, Imports
from reconciler.apply.journal import recorded
from reconciler.apply.objects import Made, ObjectCreation
from reconciler.apply.outcomes import (
    RESULT_UNKNOWN,
    RUN_ENDED,
    UNVERIFIED,
    ApplyOptions,
    CanaryRun,
    FailureLimit,
    Fate,
    Stop,
)
from reconciler.apply.prepare import Preparation, Ready, planned_again, prepare_creation
from reconciler.apply.targets import Targets, apart, waves
from reconciler.apply.verify import (
    NotAsked,
    Numbers,
    Reread,
    Verifier,
    collection_of,
    unapplied,
    with_created,
)
from reconciler.errors import Forbidden, NotFound, OutputFailed, RateLimited, Refused, ServiceError, Stopped
from reconciler.fleet.causes import NO_RECORD, ProjectRecord, read_membership, read_record, why_refused
from reconciler.live.caller import UNKNOWN_CALLER, ask_caller
from reconciler.live.crew import side_by_side
from reconciler.model.diff import AsRead
from reconciler.model.kind import Archived, Kinds
from reconciler.model.plan import Change, Create, Delete, Outcome, Plan, SectionPlan, Status, TargetPlan, makes
from reconciler.model.protocols import Json, Service
from reconciler.model.state import LivePart, PartAddress, Section
from reconciler.model.targets import Level, Target
from reconciler.model.wording import advised

TAKEN_MESSAGE = "has already been taken"
"""In the refusal of a creation: the name is that of another object."""


class Application:
    """A plan that is carried out. A failed change stops nothing but itself; it is an outcome, never an exception.

    Attributes:
        unfinished, left_out: see `Creations`.
        canary: how the canary went; None without one, or before its end.
        numbers: the IDs of paths, as far as the run has learned them.
    """

    def __init__(self, plan: Plan, service: Service, kinds: Kinds) -> None:
        self._plan, self._service, self._kinds = plan, service, kinds
        self._busy: list[TargetPlan] = []
        self._begun: dict[Target, list[TargetRun | CreationRun]] = {}
        self._stop = Stop()
        self.unfinished: list[str] = []
        self.left_out: list[str] = []
        self.canary: CanaryRun | None = None
        self.numbers = Numbers()

    def run(self, options: ApplyOptions) -> None:
        """Carry it out. A `KeyboardInterrupt` ends it at once, also where the service never answers."""
        self._stop = options.stop
        again: dict[Target, list[Section]] = {}
        for section in self._plan.dependent if options.recheck else planned_again(self._plan):
            again.setdefault(section.target, []).append(section)
        self._busy = [target for target in self._plan.targets if any(target.changes) or target.target in again]
        first, later = self._stages(again, options.canary)
        changes = sum(1 for target in self._busy for _ in target.changes)
        options.progress.begin("applying", (target.target for target in (*first, *later)), changes)
        targets = Targets(self._service, options, tokens_of(self._plan))
        self.numbers = targets.numbers
        if not options.recheck:
            self.numbers.learn(self._plan.ids)
        imports = Imports(targets, self._kinds)
        self.unfinished, self.left_out = imports.unfinished, imports.left_out
        runs = Runs(targets, imports, self._kinds, again, self._begun)
        began = datetime.now(UTC)
        runs.carry_out(first)
        if options.canary:
            tried = tuple(target.target for target in self._plan.targets if target.target in options.canary)
            self.canary = CanaryRun(tried, not self._sick(options), began, datetime.now(UTC))
            options.write_log.canary(len(tried), in_order=self.canary.in_order)
        if not self._sick(options):
            runs.carry_out(later)
        sick = self._sick(options)
        if sick:
            others = f" and {len(sick) - 1} more" if len(sick) > 1 else ""
            options.stop.hold(f"the canary is not in order: {sick[0]}{others}")

    def _sick(self, options: ApplyOptions) -> list[str]:
        """Return the targets of the canary that are not in order by now."""
        canary = [target for target in self._plan.targets if target.target in options.canary]
        return [str(target.target) for target in canary if not self._outcome(target).in_order]

    def _stages(
        self, again: Mapping[Target, Iterable[Section]], canary: Collection[Target]
    ) -> tuple[list[TargetPlan], list[TargetPlan]]:
        """Return what comes first, and what only if that is in order. Creations are apart from what is declared.

        Settings of the canary that do not change, but may have to after a change to a group that comes later, are read
        and planned again after that.
        """
        first: list[TargetPlan] = []
        later: list[TargetPlan] = []
        groups = any(target.target.level is Level.GROUP and target.target not in canary for target in self._busy)
        for target in chain.from_iterable(apart(busy) if busy.creation else [busy] for busy in self._busy):
            if target.target not in canary:
                later.append(target)
                continue
            waiting = {section.kind for section in again.get(target.target, ())} if groups else set[str]()
            late = [section for section in target.sections if section.section in waiting and not section.changes]
            now = [section for section in target.sections if section not in late]
            first.append(replace(target, sections=tuple(now)))
            later += [replace(target, sections=tuple(late))] if late else []
        return first, later

    @property
    def outcomes(self) -> list[TargetPlan]:
        """The targets that had changes, with the outcomes as far as known by now, in the order of the plan."""
        return [self._outcome(target) for target in self._busy]

    @property
    def read(self) -> dict[PartAddress, LivePart]:
        """The parts that the run has read, as it read them last."""
        runs = [run for begun in self._begun.values() for run in begun if isinstance(run, TargetRun)]
        return {(run.target.target, *place): live for run in runs for place, live in run.verifier.read_last.items()}

    def _outcome(self, target: TargetPlan) -> TargetPlan:
        """Return what became of a target, some of whose sections may not have been begun."""
        sections = [section for run in self._begun.get(target.target, ()) for section in run.outcome.sections]
        begun = {section.section for section in sections}
        skipped = partial(Outcome, status=Status.SKIPPED, reason=self._stop.reason or RUN_ENDED)
        sections += [
            replace(section, outcomes=tuple(map(skipped, section.changes)))
            for section in target.sections
            if section.section not in begun
        ]
        order = [section.section for section in target.sections]
        return replace(target, sections=tuple(sorted(sections, key=lambda section: order.index(section.section))))


class Runs:
    """The runs of a plan's targets, stage by stage: creations, then what is declared, then what an import fills."""

    def __init__(
        self,
        targets: Targets,
        imports: Imports,
        kinds: Kinds,
        again: Mapping[Target, Sequence[Section]],
        begun: dict[Target, list["TargetRun | CreationRun"]],
    ) -> None:
        self._targets, self._imports, self._kinds, self._again, self._begun = targets, imports, kinds, again, begun
        self._options = targets.options
        self._created: dict[Target, CreationRun] = {}

    def carry_out(self, stage: Sequence[TargetPlan]) -> None:
        """Carry out one stage."""
        self._imports.arrive({target.arriving for target in stage} - {""})
        for wave in waves(target for target in stage if target.creation):
            side_by_side(self._create, wave, self._targets.service.concurrency)
            self._fill(wave)
        declared = [target for target in stage if not target.creation]
        later = {target.target for target in declared if target.importing or self._imports.holds_up(target)}
        self._apply(target for target in declared if target.target not in later)
        creating = Creating(self._create, self._refuse, self._fail)
        for ended in self._imports.ended([target for target in declared if target.target in later], creating):
            self._apply(ended)

    def _apply(self, plans: Iterable[TargetPlan]) -> None:
        for _, wave in groupby(plans, key=lambda plan: plan.target.level):
            side_by_side(self._apply_one, wave, self._targets.service.concurrency)

    def _apply_one(self, plan: TargetPlan) -> None:
        run = TargetRun(plan, self._kinds, self._targets)
        self._begun.setdefault(plan.target, []).append(run)
        kinds = {section.section for section in plan.sections}
        run.run([section for section in self._again.get(plan.target, []) if section.kind in kinds])
        done = sum(outcome.status is Status.DONE for outcome in run.outcome.outcomes)
        self._options.progress.step(plan.target, done)

    def _create(self, plan: TargetPlan) -> None:
        """Create a target, unless the service takes no further imports now."""
        run = CreationRun(plan, self._targets)
        if not self._imports.takes(run.change):
            self._imports.postpone(plan, run.change)
            return
        self._begin(plan, run)
        run.run()
        if run.refusal:
            self._begun[plan.target].remove(run)
            self._imports.postpone(plan, run.change, run.refusal)

    def _refuse(self, plan: TargetPlan, fate: Fate) -> None:
        run = CreationRun(plan, self._targets)
        self._begin(plan, run)
        run.refuse(fate)

    def _fail(self, target: Target, reason: str) -> None:
        if self._targets[target].is_ours:
            self._created[target].fail(reason)

    def _fill(self, wave: Iterable[TargetPlan]) -> None:
        """Wait for the archives that new groups are made of, and compare the groups once these have arrived."""
        runs = [self._created[plan.target] for plan in wave if plan.target in self._created]
        filled = [run for run in runs if run.is_filled]
        self._imports.arrive(str(run.target.target.ref) for run in filled)
        for run in filled:
            run.look_again()

    def _begin(self, plan: TargetPlan, run: "CreationRun") -> None:
        self._created[plan.target] = run
        self._begun.setdefault(plan.target, []).append(run)


def apply_plan(plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> list[TargetPlan]:
    """Carry out a plan and return its targets that had changes, with what became of these, in the order of the plan."""
    application = Application(plan, service, kinds)
    application.run(options)
    return application.outcomes


class CreationRun:
    """The creation of one target: prepared, carried out, and compared.

    Attributes:
        result: what became of it; None where it was not needed, since the target exists by now.
        refusal: why the service takes no further imports now, so that this one is asked for later; empty if it does.
    """

    def __init__(self, target: TargetPlan, targets: Targets) -> None:
        self.section = next(section for section in target.sections if section.changes)
        self.change = next(change for change in self.section.changes if isinstance(change, Create))
        self.target, self.targets, self.options = target, targets, targets.options
        self.creation = NewTarget(self.change, targets)
        self.result: Outcome | None = Outcome(self.change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True)
        self.refusal = ""
        self._visibility: Json = None

    @property
    def outcome(self) -> TargetPlan:
        """The target with the outcome so far."""
        if self.result is not None:
            return self.target.with_outcomes((self.result,))
        return replace(self.target, sections=tuple(replace(section, changes=()) for section in self.target.sections))

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
                self.refusal = self.creation.why(error)
                return
            self.options.stop.after(error, told=True)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous:
                self.result = Outcome(self.change, Status.SKIPPED, self.options.stop.reason or RUN_ENDED)
            else:
                self.result = Outcome(self.change, Status.FAILED, self.creation.why(error), unconfirmed=error.ambiguous)
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
            place = self.creation.look() if has_arrived and "visibility" in self.change.after else None
        except (LookupError, ServiceError) as error:
            self.fail(f"applied, but cannot be verified: {error}")
            return
        lowered = self.creation.lowered(place.visibility if place else self._visibility)
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
        ready = prepare_creation(self.section, self.creation)
        if ready.open:
            place = self.creation.create(ready.open[0])
            if place.is_ours:
                return self._compared(place)
            fate = self.creation.adopt(place)
        else:
            fate = next(iter(ready.refused.values()), None)
        return Outcome(self.change, fate.status, fate.reason) if fate else None

    def _compared(self, place: LiveTarget) -> Outcome:
        """Return what became of a creation; a group of an archive is compared once that has arrived."""
        outcome, self._visibility = self.creation.outcome(place), place.visibility
        lowered = "" if self.is_filled else self.creation.lowered(place.visibility)
        is_done = outcome.status is Status.DONE
        return replace(outcome, status=Status.DROPPED, reason=lowered) if lowered and is_done else outcome


@dataclass(frozen=True, slots=True)
class Attempt:
    """A change that was carried out, or tried, or not.

    Attributes:
        outcome: what became of it, as far as is known.
        made: the object that it created, if that is known; None where it stands for another target, whose ID it has.
        doubt: why it failed, where it may have been carried out nevertheless, or is done without it.
        was_done: whether it was as wanted before anything was sent, so that it is not read once more.
    """

    outcome: Outcome
    made: Made | None = None
    doubt: ServiceError | None = None
    was_done: bool = False


class TargetRun:
    """The application of one target's plan."""

    def __init__(self, target: TargetPlan, kinds: Kinds, targets: Targets) -> None:
        self.target, self.kinds, self.options, self.targets = target, kinds, targets.options, targets
        is_new = targets[target.target].is_new
        self.service = Patient(targets.service, target.target) if is_new else targets.service
        self.verifier = Verifier(self.service, kinds, target.target, self.options.stop, targets.numbers)
        self.objects = ObjectCreation(self.service, self.verifier, self.options)
        self.sections: list[SectionPlan] = []
        self.attempts: list[Attempt] = []
        self.doubtful: list[int] = []
        self.closed: dict[str, str] = {}
        self.record: ProjectRecord | None = None

    @property
    def outcome(self) -> TargetPlan:
        """The target as it is carried out, with the outcomes so far.

        In a run that is not over, the next change is unknown, and the rest is skipped.
        """
        known = [attempt.outcome for attempt in self.attempts]
        plan = replace(self.target, sections=(*self.sections, *self.target.sections[len(self.sections) :]))
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
        ahead = {
            section.section: preparation.prepare(section)
            for section in self.target.sections
            if preparation.is_ahead(section)
        }
        for section in self.target.sections:
            ready = ahead.get(section.section) or preparation.prepare(section)
            self.sections.append(ready.section)
            for change in ready.section.changes:
                attempt = self._attempted(change, ready)
                self.attempts.append(attempt)
                if self.options.failures is not None:
                    self._count(attempt, self.options.failures)
        if self.options.verify:
            self._verify()
        self.targets.note_made(attempt.outcome for attempt in self.attempts)

    def _attempted(self, change: Change, ready: Ready) -> Attempt:
        """Carry out a change, unless it is refused or nothing is left to do."""
        fate = None if self.options.stop.held else ready.refused.get(id(change))
        if fate is not None:
            return Attempt(Outcome(change, fate.status, fate.reason))
        if id(change) in ready.done and not self.options.stop.reason:
            return Attempt(self.objects.delivered_again(ready.done[id(change)]), was_done=True)
        return self._carry_out(change)

    def _count(self, attempt: Attempt, failures: FailureLimit) -> None:
        """Count a failure, after which the run may have to end: doubts are settled before, all by one reading."""
        if attempt.doubt is None or not self.options.verify:
            failures.count(attempt.outcome, self.options.stop)
            return
        self.doubtful.append(len(self.attempts) - 1)
        if not failures.suspect():
            return
        live = self.verifier.again(self.attempts[place].outcome.change for place in self.doubtful)
        for place in self.doubtful:
            self.attempts[place] = self._looked_at(self.attempts[place], live)
            failures.count(self.attempts[place].outcome, self.options.stop, suspected=True)
        self.doubtful = []

    def _carry_out(self, change: Change) -> Attempt:
        skipped = self.options.stop.reason or self.closed.get(change.address.section)
        if skipped:
            return Attempt(Outcome(change, Status.SKIPPED, skipped))
        if isinstance(change, Delete) and (obstacle := self.objects.delivery.hand_over_successor(change)) is not None:
            return Attempt(obstacle)
        made: Made | None = None
        sent = 0
        try:
            for template in change.requests:
                request = self.objects.completed(change, template, made)
                if makes(change) and not sent:
                    made = recorded(self.options, change, request, partial(self.objects.create, change, request))
                else:
                    recorded(self.options, change, request, partial(self.service.send, request))
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
            reason = self._why(change, error)
            failed = Outcome(change, Status.FAILED, reason, as_made(change, made), unconfirmed=unconfirmed)
            return Attempt(failed, made, doubt)
        return Attempt(Outcome(change, Status.DONE, created=as_made(change, made)), made)

    def _why(self, change: Change, error: ServiceError) -> str:
        """Return why a change failed, and what to do; if the target refuses it, the rest of its section is closed.

        Not everything that a plan reads shows the role: the first refusal in a project takes one request for the cause.
        Where that does not tell the role, as in a group, the user behind the token is asked for too, once a run.
        """
        section = change.address.section
        needs = self.kinds[section].needs
        if isinstance(error, Refused) and isinstance(change, Create) and TAKEN_MESSAGE in error.reason:
            return advised(str(error), collection_of(change.address, self.kinds).names.taken)
        if not isinstance(error, Forbidden) or self.options.stop.reason:
            return advised(str(error), error.remedy)
        target, caller = self.target.target, UNKNOWN_CALLER
        try:
            if self.record is None and (needs.archived is not Archived.OPEN or needs.barrier):
                if target.level is Level.GROUP:
                    caller = ask_caller(self.service)
                    record = read_membership(target, self.service, caller)
                else:
                    record = read_record(target, self.service, UNKNOWN_CALLER)
                self.record = record if isinstance(record, ProjectRecord) else NO_RECORD
            if self.record is None or self.record.role is None:
                caller = ask_caller(self.service)
        except ServiceError as ending:
            self.options.stop.after(ending)
        obstacle = why_refused(target, needs, self.record or NO_RECORD, caller)
        if not obstacle.reason:
            return advised(str(error), obstacle.remedy)
        if needs.barrier is None or needs.barrier.is_whole or obstacle.reason != needs.barrier.reason:
            self.closed[section] = obstacle.reason
        return f"{advised(obstacle.reason, obstacle.remedy)} ({error})"

    def _verify(self) -> None:
        """Read again what was changed or may have been; what the service silently dropped is not done."""
        open_ones = [
            attempt
            for attempt in self.attempts
            if (attempt.outcome.status is Status.DONE and not attempt.was_done) or attempt.doubt is not None
        ]
        live = self.verifier.again(attempt.outcome.change for attempt in open_ones)
        settled = {id(attempt): self._looked_at(attempt, live) for attempt in open_ones}
        if self.options.failures is not None:
            for attempt in open_ones:
                suspected = attempt.doubt is not None
                self.options.failures.count(settled[id(attempt)].outcome, self.options.stop, suspected=suspected)
        self.attempts = [settled.get(id(attempt), attempt) for attempt in self.attempts]

    def _looked_at(self, attempt: Attempt, live: Reread) -> Attempt:
        return Attempt(with_created(self._settled(attempt, live), live))

    def _settled(self, attempt: Attempt, live: Reread) -> Outcome:
        """Return what became of a change by what the service shows of it."""
        outcome, change, made = attempt.outcome, attempt.outcome.change, attempt.made
        try:
            lacking = (self.verifier.unapplied if attempt.doubt else unapplied)(change, live, made.id if made else None)
        except LookupError as error:
            return outcome if attempt.doubt else _unverified(outcome, error)
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


def _unverified(outcome: Outcome, error: LookupError) -> Outcome:
    """Return what became of a change that the service has accepted, and that cannot be read again."""
    if isinstance(error, NotAsked):
        return replace(outcome, reason=UNVERIFIED)
    reason = f"applied, but cannot be verified: {error}"
    return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)


def as_made(change: Change, made: Made | None) -> AsRead | None:
    """Return the object that a change has created, as far as that is known without reading it."""
    number = made.id if made else change.target_id if isinstance(change, Create) else None
    if not isinstance(change, Create) or change.address.name is None or number is None:
        return None
    return AsRead(number, (change.address.name,), change.after, {})
