"""The application of a plan: users, then groups, then projects; targets of one level side by side.

New groups and projects are created first; targets that an import is filling come last. Groups come before projects
because their approval settings decide what the projects may set. Within a target, changes are made in order, each
request is recorded, and doubts are settled by reading.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from urllib.parse import quote

from reconciler.apply.creation import CreationRun, Patient, tokens_of
from reconciler.apply.imports import Creating, Imports
from reconciler.apply.journal import recorded
from reconciler.apply.outcomes import (
    ENDED,
    UNKNOWN,
    ApplyOptions,
    FailureLimit,
    Fate,
    Outcome,
    Status,
    Stop,
    TargetOutcome,
)
from reconciler.apply.prepare import Preparation, Ready, planned_again
from reconciler.apply.targets import Targets, apart, waves
from reconciler.apply.verify import (
    Reread,
    Verifier,
    collection_of,
    elder,
    unapplied,
    with_created,
)
from reconciler.errors import AnswerLost, BadAnswer, Forbidden, NotFound, OutputFailed, Refused, ServiceError, Stopped
from reconciler.fleet.causes import ARCHIVED, NOBODY, UNARCHIVE, ProjectRecord, read_record
from reconciler.live.read import side_by_side
from reconciler.model.diff import AsRead
from reconciler.model.endpoints import CREATED
from reconciler.model.kind import Archived, Kinds
from reconciler.model.plan import Change, Create, Delete, Plan, SectionPlan, TargetPlan, Update, makes
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.resource import Found
from reconciler.model.state import Section, Unreadable
from reconciler.model.targets import Address, Level, Target

TRIES = 3
"""How often a creation is sent whose answer is lost each time and that is found not to have been carried out."""

NOT_DELIVERED = "a token could not be delivered, so the run was ended"


class Application:
    """A plan that is carried out. A failed change stops nothing but itself; it is an outcome, never an exception.

    Attributes:
        unfinished, left_out: see `Creations`.
    """

    def __init__(self, plan: Plan, service: Service, kinds: Kinds) -> None:
        self._plan, self._service, self._kinds = plan, service, kinds
        self._busy: list[TargetPlan] = []
        self._begun: dict[Target, list[TargetRun | CreationRun]] = {}
        self._stop = Stop()
        self.unfinished: list[str] = []
        self.left_out: list[str] = []

    def run(self, options: ApplyOptions) -> None:
        """Carry it out. A `KeyboardInterrupt` ends it at once, also where the service never answers."""
        self._stop = options.stop
        again: dict[Target, list[Section]] = {}
        for section in self._plan.dependent if options.recheck else planned_again(self._plan):
            again.setdefault(section.target, []).append(section)
        self._busy = [target for target in self._plan.targets if any(target.changes) or target.target in again]
        stages = self._stages(again, options.canary)
        options.progress.begin("applying", (target.target for stage in stages for target in stage))
        targets = Targets(self._service, options, tokens_of(self._plan))
        imports = Imports(targets, self._kinds)
        self.unfinished, self.left_out = imports.unfinished, imports.left_out
        runs = Runs(targets, imports, self._kinds, again, self._begun)
        for stage in stages:
            runs.carry_out(stage)
            canary = [each for each in self._plan.targets if each.target in options.canary]
            sick = [str(each.target) for each in canary if not self._outcome(each).in_order]
            if sick:
                others = f" and {len(sick) - 1} more" if len(sick) > 1 else ""
                options.stop.hold(f"the canary is not in order: {sick[0]}{others}")
                return

    def _stages(
        self, again: Mapping[Target, Iterable[Section]], canary: Collection[Target]
    ) -> tuple[list[TargetPlan], list[TargetPlan]]:
        """Return what comes first, and what only if that is in order. Creations are apart from what is declared.

        Settings of the canary that do not change, but may have to after a change to a group that comes later, are read
        and planned again after that.
        """
        first: list[TargetPlan] = []
        later: list[TargetPlan] = []
        groups = any(each.target.level is Level.GROUP and each.target not in canary for each in self._busy)
        for target in chain.from_iterable(apart(each) if each.creation else [each] for each in self._busy):
            if target.target not in canary:
                later.append(target)
                continue
            waiting = {section.kind for section in again.get(target.target, ())} if groups else set[str]()
            late = [each for each in target.sections if each.section in waiting and not each.changes]
            now = [each for each in target.sections if each not in late]
            first.append(replace(target, sections=tuple(now)))
            later += [replace(target, sections=tuple(late))] if late else []
        return first, later

    @property
    def outcomes(self) -> list[TargetOutcome]:
        """The outcome of each target that had changes, as far as known by now, in the order of the plan."""
        return [self._outcome(target) for target in self._busy]

    def _outcome(self, target: TargetPlan) -> TargetOutcome:
        """Return what became of a target, some of whose sections may not have been begun."""
        pieces = [piece for run in self._begun.get(target.target, ()) for piece in run.outcome.by_section]
        begun = {section.section for section, _ in pieces}
        skipped = partial(Outcome, status=Status.SKIPPED, reason=self._stop.reason or ENDED)
        pieces += [(each, tuple(map(skipped, each.changes))) for each in target.sections if each.section not in begun]
        order = [section.section for section in target.sections]
        pieces.sort(key=lambda piece: order.index(piece[0].section))
        plan = replace(target, sections=tuple(section for section, _ in pieces))
        return TargetOutcome(plan, tuple(outcome for _, outcomes in pieces for outcome in outcomes))


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
        self._imports.arrive({each.arriving for each in stage} - {""})
        for wave in waves(each for each in stage if each.creation):
            side_by_side(self._create, wave, self._options.concurrency)
            self._fill(wave)
        declared = [each for each in stage if not each.creation]
        later = {each.target for each in declared if each.importing or self._imports.holds_up(each)}
        self._apply(each for each in declared if each.target not in later)
        creating = Creating(self._create, self._refuse, self._fail)
        for ended in self._imports.ended([each for each in declared if each.target in later], creating):
            self._apply(ended)

    def _apply(self, plans: Iterable[TargetPlan]) -> None:
        for _, wave in groupby(plans, key=lambda plan: plan.target.level):
            side_by_side(self._apply_one, wave, self._options.concurrency)

    def _apply_one(self, plan: TargetPlan) -> None:
        run = TargetRun(plan, self._kinds, self._targets)
        self._begun.setdefault(plan.target, []).append(run)
        kinds = {section.section for section in plan.sections}
        run.run([section for section in self._again.get(plan.target, []) if section.kind in kinds])
        done = sum(each.status is Status.DONE for each in run.outcome.outcomes)
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

    def _begin(self, plan: TargetPlan, run: CreationRun) -> None:
        self._created[plan.target] = run
        self._begun.setdefault(plan.target, []).append(run)


def apply_plan(plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> list[TargetOutcome]:
    """Carry out a plan and return what became of each target that had changes, in the order of the plan."""
    application = Application(plan, service, kinds)
    application.run(options)
    return application.outcomes


@dataclass(frozen=True, slots=True)
class Made:
    """An object that was created.

    Attributes:
        id: its ID.
        step: what paths name it by.
        secret: its secret, if it has one.
    """

    id: int
    step: str
    secret: str | None = None


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
        self.delivered: set[Address] = set()
        self.made: dict[Address, int] = {}
        self.sections: list[SectionPlan] = []
        self.attempts: list[Attempt] = []
        self.doubtful: list[int] = []
        self.closed: dict[str, str] = {}
        self.archived: bool | None = None

    @property
    def outcome(self) -> TargetOutcome:
        """The outcome so far: in a run that is not over, the next change is unknown, and the rest is skipped."""
        known = [attempt.outcome for attempt in self.attempts]
        plan = replace(self.target, sections=(*self.sections, *self.target.sections[len(self.sections) :]))
        rest = list(plan.changes)[len(known) :]
        known += [Outcome(change, Status.FAILED, UNKNOWN, unconfirmed=True) for change in rest[:1]]
        known += [Outcome(change, Status.SKIPPED, ENDED) for change in rest[1:]]
        return TargetOutcome(plan, tuple(known))

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
                attempt = self._attempted(change, ready)
                self.attempts.append(attempt)
                if self.options.failures is not None:
                    self._count(attempt, self.options.failures)
        if self.options.verify:
            self._verify()

    def _attempted(self, change: Change, ready: Ready) -> Attempt:
        """Carry out a change, unless it is refused or nothing is left to do."""
        fate = None if self.options.stop.held else ready.refused.get(id(change))
        if fate is not None:
            return Attempt(Outcome(change, fate.status, fate.reason))
        if id(change) in ready.done and not self.options.stop.reason:
            return Attempt(self._delivered_again(ready.done[id(change)]), was_done=True)
        return self._carry_out(change)

    def _delivered_again(self, done: Outcome) -> Outcome:
        """Return a change that was done before; the value of its token is delivered, as that run may have been cut."""
        change = done.change
        if isinstance(change, Create) and done.created and done.created.id is not None:
            self.made[change.address] = done.created.id
        if not self._is_secret(change):
            return done
        try:
            self._hand_over(change.address, self._secrets(change.address)[-1][1])
        except OutputFailed as error:
            self.options.stop.cancel(NOT_DELIVERED)
            reason = f"it exists now, and its value could not be delivered: {error}"
            return replace(done, status=Status.FAILED, reason=reason)
        return done

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
        if isinstance(change, Delete) and (obstacle := self._deliver_successor(change)) is not None:
            return Attempt(obstacle)
        made: Made | None = None
        sent = 0
        try:
            for template in change.requests:
                request = self._completed(change, template, made)
                if makes(change) and not sent:
                    made = recorded(self.options, change, request, partial(self._create, change, request))
                else:
                    recorded(self.options, change, request, partial(self.service.send, request))
                sent += 1
        except (LookupError, OutputFailed) as error:
            failed = Outcome(change, Status.FAILED, str(error), as_made(change, made), unconfirmed=sent > 0)
            return Attempt(failed, made)
        except ServiceError as error:
            self.options.stop.after(error)
            if (isinstance(error, Stopped) or not error.sent) and not error.ambiguous and not sent:
                return Attempt(Outcome(change, Status.SKIPPED, self.options.stop.reason or ENDED))
            doubt = error if error.ambiguous or isinstance(error, Refused | NotFound) else None
            unconfirmed = error.ambiguous or sent > 0
            reason = self._why(change, error)
            failed = Outcome(change, Status.FAILED, reason, as_made(change, made), unconfirmed=unconfirmed)
            return Attempt(failed, made, doubt)
        return Attempt(Outcome(change, Status.DONE, created=as_made(change, made)), made)

    def _why(self, change: Change, error: ServiceError) -> str:
        """Return why a change failed; if an archived project refuses it, the rest of its section is closed.

        Nothing that a plan reads shows that a project is archived: the first refusal takes one request for the cause.
        """
        section = change.address.section
        needs = self.kinds[section].needs
        if not isinstance(error, Forbidden) or needs.archived is Archived.OPEN or self.options.stop.reason:
            return str(error)
        if self.archived is None:
            self.archived = self._is_archived()
        if not self.archived:
            return str(error)
        self.closed[section] = ARCHIVED
        return f"{ARCHIVED}; {UNARCHIVE} ({error})"

    def _is_archived(self) -> bool:
        try:
            record = read_record(self.target.target, self.service, NOBODY)
        except ServiceError as error:
            self.options.stop.after(error)
            return False
        return isinstance(record, ProjectRecord) and bool(record.archived)

    def _completed(self, change: Change, request: Request, made: Made | None) -> Request:
        """Return a request with the IDs of the objects that this run has created.

        Raises:
            LookupError: one of them was not created; says which.
        """
        path = request.path.replace("{id}", made.step) if made else request.path
        body = request.body and {field: self._id_for(change, value) for field, value in request.body.items()}
        return replace(request, path=path, body=body)

    def _id_for(self, change: Change, value: Json) -> Json:
        """Return a value of a body, or the ID for which it stands."""
        if not (isinstance(value, dict) and value.keys() == {CREATED}):
            return value
        address = replace(change.address, name=value[CREATED])
        if address not in self.made:
            raise LookupError(f'{address.title} "{address.name}" was not created, and this refers to it')
        return self.made[address]

    def _create(self, change: Create | Update, request: Request) -> Made | None:
        """Create or promote an object and deliver the value of its secret, which is part of it; return `Attempt.made`.

        One whose answer is lost is looked for, and sent again only if it does not exist.
        """
        left = TRIES
        sent = False
        made = None
        while not sent:
            left -= 1
            try:
                made, sent = self._checked(change, request, self.service.send(request)), True
            except ServiceError as error:
                made = self._read_back(change, request, error) if error.ambiguous else None
                sent = made is not None
                if not sent and not (error.ambiguous and left):
                    raise
        if made is None or (isinstance(change, Create) and change.target_id is not None):
            return None
        if isinstance(change, Create) and made.secret is not None:
            self._deliver(change, made, made.secret)
        self.made[change.address] = made.id
        return made

    def _checked(self, change: Create | Update, request: Request, answer: Json) -> Made | None:
        """Return a new object, if the response to its creation holds it.

        Raises:
            BadAnswer: it is needed and missing.
        """
        part = collection_of(change.address, self.kinds)
        fields = answer if isinstance(answer, dict) else {}
        number, step, secret = (fields.get(name or part.id_field) for name in ("", part.path_field, part.secret_field))
        if (
            type(number) is int
            and isinstance(step, int | str)
            and (part.secret_field is None or isinstance(secret, str))
        ):
            return Made(number, quote(str(step), safe=""), secret if part.secret_field else None)
        if part.secret_field is not None or part.refers or len(change.requests) > 1:
            raise BadAnswer(str(request), "unexpected response: the body is not the new object")
        return None

    def _read_back(self, change: Create | Update, request: Request, lost: ServiceError) -> Made | None:
        """Return the object that a creation with a lost answer has made; None if it has made none.

        Raises:
            AnswerLost: that is unknown.
        """
        part = collection_of(change.address, self.kinds)
        objects = self.verifier.again([change])[change.address.section, change.address.part]
        if isinstance(objects, Unreadable):
            reason = f"{lost.reason}; checking whether it succeeded: {objects.reason}"
            raise AnswerLost(str(request), reason) from lost
        # A secret that is not shown whole belongs to somebody else, who has just created one of the same name.
        new = [found for found in objects.new(change) if part.secret_field is None or found.ours]
        if len(new) > 1:
            raise AnswerLost(str(request), f"{lost.reason}; and {len(new)} new objects have this name now")
        if not new:
            return None
        number = new[0].id or 0
        step = new[0].path_id or str(number)
        if part.secret_field is None:
            return Made(number, step)
        secrets = {found.id: secret for found, secret in self.verifier.lists.secrets(part, change.address)}
        return Made(number, step, secrets[number])

    def _deliver(self, change: Create, made: Made, secret: str) -> None:
        """Hand over the secret of a created token; one that cannot be delivered is deleted again."""
        try:
            self._hand_over(change.address, secret)
        except OutputFailed as error:
            self.options.stop.cancel(NOT_DELIVERED)
            raise OutputFailed(f"{error}; the undelivered token {made.id} {self._taken_back(change, made)}") from error

    def _hand_over(self, address: Address, secret: str) -> None:
        if self.options.deliver is None:
            raise OutputFailed("no token sink is configured")
        self.options.deliver(address, secret)
        self.delivered.add(address)

    def _deliver_successor(self, change: Delete) -> Outcome | None:
        """Deliver what has succeeded a token; return what becomes of its deletion if that fails.

        The run that created the successor may have been killed before it could deliver it.
        """
        if change.successor_id is None or change.address in self.delivered:
            return None
        try:
            ours = self._secrets(change.address)
            if change.successor_id not in {found.id for found, _ in ours}:
                return Outcome(change, Status.STALE, f"its successor (ID {change.successor_id}) no longer exists")
            self._hand_over(change.address, ours[-1][1])
        except ServiceError as error:
            self.options.stop.after(error)
            return Outcome(change, Status.FAILED, f"the value of its successor could not be read for delivery: {error}")
        except OutputFailed as error:
            self.options.stop.cancel(NOT_DELIVERED)
            return Outcome(change, Status.FAILED, f"the value of its successor could not be delivered: {error}")
        return None

    def _secrets(self, address: Address) -> list[tuple[Found, str]]:
        return self.verifier.lists.secrets(collection_of(address, self.kinds), address)

    def _taken_back(self, change: Create, made: Made) -> str:
        """Delete what was just created, and say what came of it; a journal that is full must not keep it from that."""
        try:
            self.service.send(Request("DELETE", f"{change.requests[0].path}/{made.step}"))
        except ServiceError as error:
            return f"could not be deleted again and should be: {error}"
        return "was deleted again"

    def _verify(self) -> None:
        """Read again what was changed or may have been; what the service silently dropped is not done."""
        open_ones = [
            each
            for each in self.attempts
            if (each.outcome.status is Status.DONE and not each.was_done) or each.doubt is not None
        ]
        live = self.verifier.again(each.outcome.change for each in open_ones)
        settled = {id(each): self._looked_at(each, live) for each in open_ones}
        if self.options.failures is not None:
            for each in open_ones:
                suspected = each.doubt is not None
                self.options.failures.count(settled[id(each)].outcome, self.options.stop, suspected=suspected)
        self.attempts = [settled.get(id(each), each) for each in self.attempts]

    def _looked_at(self, attempt: Attempt, live: Reread) -> Attempt:
        return Attempt(with_created(self._settled(attempt, live), live))

    def _settled(self, attempt: Attempt, live: Reread) -> Outcome:
        """Return what became of a change by what the service shows of it."""
        outcome, change, made = attempt.outcome, attempt.outcome.change, attempt.made
        try:
            lacking = (self.verifier.unapplied if attempt.doubt else unapplied)(change, live, made.id if made else None)
        except LookupError as error:
            if attempt.doubt:
                return outcome
            reason = f"applied, but cannot be verified: {error}"
            return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)
        if attempt.doubt:
            return self._still_there(attempt, attempt.doubt) if lacking else self._found_done(attempt, attempt.doubt)
        if lacking:
            return replace(outcome, status=Status.DROPPED, reason=lacking)
        if isinstance(change, Create) and made is not None and (first := elder(change, live, made.id)) is not None:
            reason = self._withdrawn(change, made, first)
            return replace(outcome, status=Status.FAILED, reason=reason, unconfirmed=True)
        return outcome

    def _still_there(self, attempt: Attempt, doubt: ServiceError) -> Outcome:
        """Return what became of a change that failed; of a removal of what is listed and not found, say why that is."""
        outcome, change = attempt.outcome, attempt.outcome.change
        refers = isinstance(change, Delete) and isinstance(doubt, NotFound)
        level = collection_of(change.address, self.kinds).key_level if refers else None
        if level is None:
            return outcome
        hidden = f"it is still listed, so this token cannot see that {level}; an owner who can see it can remove it"
        return replace(outcome, reason=f"{outcome.reason}; {hidden}")

    def _found_done(self, attempt: Attempt, doubt: ServiceError) -> Outcome:
        """Return what became of a change that failed, or may have, and is nevertheless as wanted."""
        outcome = attempt.outcome
        if makes(outcome.change) and not doubt.ambiguous and attempt.made is None:
            return replace(outcome, status=Status.STALE, reason="another user made the same change at the same time")
        if self._is_secret(outcome.change):
            return replace(outcome, reason=f"{outcome.reason}; a token exists whose value was not delivered: delete it")
        return Outcome(outcome.change, Status.DONE, created=outcome.created)

    def _withdrawn(self, change: Create, made: Made, first: int) -> str:
        """Delete what was created though somebody else had just created the same: all runs that see both agree.

        Return what came of it.
        """
        reason = f"another user created the same object at the same time, ID {first}; this run's, ID {made.id}, "
        reason += self._taken_back(change, made)
        if self._is_secret(change):
            instead = self._delivered_instead(change.address, first)
            reason += f"; the delivered value is void{', and the value of the other was delivered' * instead}"
        return reason

    def _delivered_instead(self, address: Address, number: int) -> bool:
        """Deliver the secret of the other token of a name, if it is ours; return whether that is done."""
        secrets = {found.id: secret for found, secret in self._secrets(address)}
        try:
            self._hand_over(address, secrets[number])
        except (KeyError, OutputFailed):
            return False
        return True

    def _is_secret(self, change: Change) -> bool:
        return isinstance(change, Create) and collection_of(change.address, self.kinds).secret_field is not None


def as_made(change: Change, made: Made | None) -> AsRead | None:
    """Return the object that a change has created, as far as that is known without reading it."""
    number = made.id if made else change.target_id if isinstance(change, Create) else None
    if not isinstance(change, Create) or change.address.name is None or number is None:
        return None
    return AsRead(number, (change.address.name,), change.after, {})
