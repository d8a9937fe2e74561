"""One target's plan carried out: its changes one after another, each request recorded, doubts settled by reading."""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.apply.outcomes import ENDED, UNKNOWN, ApplyOptions, Outcome, Status, TargetOutcome
from reconciler.apply.rebuilding import forgery
from reconciler.apply.succession import Lists, Succession, collection_of
from reconciler.apply.verify import Numbers, Reread, Verifier, elder, stale_reason, unapplied
from reconciler.errors import AnswerLost, BadAnswer, NotFound, OutputFailed, Refused, ServiceError, Stopped
from reconciler.live.read import decode
from reconciler.model.kind import Kinds
from reconciler.model.plan import Change, Create, Delete, SectionPlan, TargetPlan, Update
from reconciler.model.protocols import Json, Request, Service
from reconciler.model.state import LiveState, Section, Unreadable
from reconciler.planning.parts import identity
from reconciler.planning.planner import plan_section

TRIES = 3
"""How often a creation is sent whose answer is lost each time and that is found not to have been carried out."""


class TargetRun:
    """The application of one target's plan."""

    def __init__(
        self, target: TargetPlan, service: Service, kinds: Kinds, terms: ApplyOptions, numbers: Numbers
    ) -> None:
        self.target, self.service, self.kinds, self.terms = target, service, kinds, terms
        lists = Lists(service)
        self.look = Verifier(lists, kinds, target.target, terms.stop, numbers)
        self.succession = Succession(lists, kinds, terms)
        self.in_doubt: dict[int, ServiceError] = {}
        self.made: dict[int, int] = {}
        self.sections: list[SectionPlan] = []
        self.known: list[Outcome] = []

    @property
    def outcome(self) -> TargetOutcome:
        """The outcome so far: in a run that is not over, the next change is unknown, and the rest is skipped."""
        known = list(self.known)
        plan = replace(self.target, sections=(*self.sections, *self.target.sections[len(self.sections) :]))
        for change in list(plan.changes)[len(known) :]:
            on_its_way = len(known) == len(self.known)
            known.append(
                Outcome(change, Status.FAILED, UNKNOWN) if on_its_way else Outcome(change, Status.SKIPPED, ENDED)
            )
        return TargetOutcome(plan, tuple(known))

    def run(self, again: Iterable[Section]) -> None:
        """Carry out the plan, section by section.

        Args:
            again: the sections to read and plan again right before.
        """
        wanted = {section.kind: section for section in again}
        for section in self.target.sections:
            if section.section in wanted and not self.terms.stop.reason:
                planned = self._planned_again(wanted[section.section])
                stale = unshown(planned, section) if self.terms.recheck else {}
            else:
                planned, stale = section, self._stale(section)
            self.sections.append(planned)
            for change in planned.changes:
                why = stale.get(id(change))
                self.known.append(Outcome(change, Status.STALE, why) if why else self._carry_out(change))
        if self.terms.verify:
            self.known = self._verified(self.known)

    def _planned_again(self, section: Section) -> SectionPlan:
        """Read a section and plan it again, since a group above was changed or the whole record is written."""
        kind = self.kinds[section.kind]
        parts = {
            (section.target, section.kind, name): self.look.read(kind.part(name), wanted)
            for name, wanted in section.wanted.items()
        }
        return plan_section(section, LiveState(parts, {}), self.kinds)[0]

    def _stale(self, section: SectionPlan) -> dict[int, str]:
        """Read again what will be changed, or could be made twice; return by change why it is out of date."""
        old = section.changes if self.terms.recheck else repeatable(section, self.kinds)
        if self.terms.stop.reason or not old:
            return {}
        live = self.look.again(old)
        return {id(change): why for change in old if (why := stale_reason(change, live) or self._forgery(change, live))}

    def _forgery(self, change: Change, live: Reread) -> str:
        """Say why a change of a saved plan must not be carried out although its object has not moved."""
        objects = live[change.address.section, change.address.part]
        if not self.terms.recheck or isinstance(objects, Unreadable):
            return ""
        part = self.kinds[change.address.section].part(change.address.part)
        found = None if isinstance(change, Create) else objects.by_id.get(change.read.id)
        return forgery(change, part, found, self.look.number)

    def _carry_out(self, change: Change) -> Outcome:
        if self.terms.stop.reason:
            return Outcome(change, Status.SKIPPED, self.terms.stop.reason)
        obstacle = self.succession.obstacle(change) if isinstance(change, Delete) else None
        if obstacle is not None:
            return obstacle
        answers: list[Json] = []
        try:
            for request in change.requests:
                answers.append(self._send(change, _complete(request, answers), first=not answers))
        except (ServiceError, OutputFailed) as error:
            if isinstance(error, ServiceError):
                self.terms.stop.after(error)
            if isinstance(error, Stopped) and not error.ambiguous and not answers:
                return Outcome(change, Status.SKIPPED, ENDED)
            if isinstance(error, ServiceError) and (error.ambiguous or isinstance(error, Refused | NotFound)):
                self.in_doubt[id(change)] = error
            return Outcome(change, Status.FAILED, str(error))
        return Outcome(change, Status.DONE)

    def _send(self, change: Change, request: Request, *, first: bool = False) -> Json:
        """Send one request, and note before and after it what is certain.

        The answer to the first request of a creation may hold a value to deliver; that is part of carrying it out.
        """
        try:
            number = self.terms.record.intend(change, request)
        except OutputFailed:
            self.terms.stop.cancel("the journal could not be written, so that the run was ended")
            raise
        try:
            if first and isinstance(change, Create):
                answer = self._create(change, request)
                self._keep_id(change, answer)
                self._deliver(change, answer)
            else:
                answer = self.service.send(request)
        except (ServiceError, OutputFailed) as error:
            doubtful = isinstance(error, ServiceError) and error.ambiguous
            self.terms.record.result(number, "in doubt" if doubtful else "failed", str(error))
            raise
        self.terms.record.result(number, "done")
        return answer

    def _create(self, change: Create, request: Request) -> Json:
        """Send a creation; one whose answer is lost is looked for, and sent again only if it is not there."""
        left = TRIES
        while True:
            left -= 1
            try:
                return self._checked(change, request, self.service.send(request))
            except ServiceError as error:
                if not error.ambiguous:
                    raise
                entry = self._read_back(change, request, error)
                if entry is not None:
                    return entry
                if not left:
                    raise

    def _keep_id(self, change: Create, answer: Json) -> None:
        """Remember which object was created; entries that stand for other targets have the IDs of those."""
        if isinstance(answer, dict) and isinstance(answer.get("id"), int) and change.target_id is None:
            self.made[id(change)] = answer["id"]

    def _checked(self, change: Create, request: Request, answer: Json) -> Json:
        """Return the answer to a creation if it holds what is needed of it.

        Raises:
            BadAnswer: it does not.
        """
        secret = collection_of(change.address, self.kinds).secret_field
        if len(change.requests) == 1 and secret is None:
            return answer
        whole = isinstance(answer, dict) and isinstance(answer.get("id"), int)
        if whole and (secret is None or isinstance(answer.get(secret), str)):
            return answer
        raise BadAnswer(str(request), "unexpected response: the body is not the new object")

    def _read_back(self, change: Create, request: Request, lost: ServiceError) -> Json:
        """Return the entry of the object that a creation with a lost answer has made; None if it has made none.

        Raises:
            ServiceError: ambiguous, if it cannot be told.
        """
        part = collection_of(change.address, self.kinds)
        try:
            entries = self.service.pages(request.path)
            found = [(entry, decode(part, change.address.target, entry)) for entry in entries]
        except ServiceError as error:
            raise AnswerLost(str(request), f"{lost.reason}; looking whether it was carried out: {error}") from error
        names = {identity(part, name) for name in (change.address.name, change.target_id) if name is not None}
        new = [
            entry
            for entry, each in found
            if each.id not in change.replaces_ids
            and not names.isdisjoint(identity(part, name) for name in each.names)
            # What is not shown whole belongs to somebody else, who has just created one of the same name.
            and (part.secret_field is None or part.secret_is_complete(str(entry.get(part.secret_field) or "")))
        ]
        if len(new) > 1:
            raise AnswerLost(str(request), f"{lost.reason}; and there are {len(new)} new ones of this name now")
        return new[0] if new else None

    def _deliver(self, change: Create, answer: Json) -> None:
        """Hand over the value of a created token; one that cannot be delivered is deleted again."""
        field = collection_of(change.address, self.kinds).secret_field
        if field is None:
            return
        try:
            if self.terms.deliver is None:
                raise OutputFailed("there is nowhere to deliver its value to")
            self.terms.deliver(change.address, answer[field])
            self.succession.note(change.address)
        except OutputFailed as error:
            self.terms.stop.cancel("a token could not be delivered, so that the run was ended")
            number = answer["id"]
            raise OutputFailed(f"{error}; the undelivered token {number} {self._taken_back(change, number)}") from error

    def _taken_back(self, change: Create, number: int) -> str:
        """Delete what was just created, and say what came of it; a journal that is full must not keep it from that."""
        try:
            self.service.send(Request("DELETE", f"{change.requests[0].path}/{number}"))
        except ServiceError as error:
            return f"could not be deleted again and should be: {error}"
        return "was deleted again"

    def _verified(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Read again what was changed or may have been; what the service silently dropped is not done."""
        known = {id(each) for each in outcomes if each.status is Status.DONE or id(each.change) in self.in_doubt}
        live = self.look.again(each.change for each in outcomes if id(each) in known)
        return [self._settle(each, live) if id(each) in known else each for each in outcomes]

    def _settle(self, outcome: Outcome, live: Reread) -> Outcome:
        """Return what became of a change by what the service shows of it."""
        change = outcome.change
        lost = self.in_doubt.get(id(change))
        made = self.made.get(id(change))
        try:
            lacking = unapplied(change, live, made)
        except LookupError as error:
            if lost:
                return outcome
            return replace(outcome, status=Status.FAILED, reason=f"carried out, but cannot be verified: {error}")
        if lost:
            return outcome if lacking else self._found_done(outcome, lost)
        if lacking:
            return replace(outcome, status=Status.DROPPED, reason=lacking)
        if isinstance(change, Create) and made is not None and (first := elder(change, live, made)) is not None:
            return self._withdrawn(change, made, first)
        return outcome

    def _found_done(self, outcome: Outcome, lost: ServiceError) -> Outcome:
        """Return what became of a change that failed, or may have, and is nevertheless as wanted."""
        if isinstance(outcome.change, Create) and not lost.ambiguous and id(outcome.change) not in self.made:
            return replace(outcome, status=Status.STALE, reason="done by somebody else at the same time")
        if self._is_secret(outcome.change):
            return replace(outcome, reason=f"{outcome.reason}; one is there, whose value was not delivered: delete it")
        return Outcome(outcome.change, Status.DONE)

    def _withdrawn(self, change: Create, made: int, first: int) -> Outcome:
        """Delete what was created though somebody else had just created the same: all runs that see both agree."""
        reason = f"somebody else created one at the same time, ID {first}; this run's, ID {made}, "
        reason += self._taken_back(change, made)
        if self._is_secret(change):
            instead = self.succession.delivered_instead(change.address, first)
            reason += f"; the value that was delivered is void{', and that of the other was delivered' * instead}"
        return Outcome(change, Status.FAILED, reason)

    def _is_secret(self, change: Change) -> bool:
        return isinstance(change, Create) and collection_of(change.address, self.kinds).secret_field is not None


def unshown(planned: SectionPlan, saved: SectionPlan) -> dict[int, str]:
    """Return the changes of a section that was planned again which do more than the saved plan shows, and why not."""
    shown = {change.address: change.after for change in saved.changes if isinstance(change, Update)}
    return {
        id(change): "it would do more than the saved plan shows, since a group above was changed; plan again"
        for change in planned.changes
        if not (isinstance(change, Update) and change.after.items() <= shown.get(change.address, {}).items())
    }


def repeatable(section: SectionPlan, kinds: Kinds) -> list[Change]:
    """Return the creations that the service would carry out twice without a word: their names need not be unique."""
    return [
        change
        for change in section.changes
        if isinstance(change, Create) and not collection_of(change.address, kinds).unique_names
    ]


def _complete(request: Request, answers: list[Json]) -> Request:
    """Fill in the ID of the object that the first request created."""
    if "{id}" not in request.path:
        return request
    return replace(request, path=request.path.replace("{id}", str(answers[0]["id"])))
