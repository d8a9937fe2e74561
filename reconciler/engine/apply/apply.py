"""The application of a plan: users, then groups, then projects; targets of one level side by side.

New groups and projects are created first; targets that an import is filling come last. Groups come before projects
because their approval settings decide what the projects may set. Begin with `TargetRun.apply`.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby

from reconciler.engine.apply.imports import Imports
from reconciler.engine.apply.later import SETTLED_AFTER, ReferredSections, is_delayed, second_outcome, still_naming
from reconciler.engine.apply.new_targets import NewTarget, tokens_of
from reconciler.engine.apply.options import ApplyOptions, CanaryRun, NotAttempted, joined
from reconciler.engine.apply.prepare import Preparation, Ready, declared_again
from reconciler.engine.apply.send import Attempt, Sender
from reconciler.engine.apply.settle import verified
from reconciler.engine.apply.targets import Targets, split_creation, waves
from reconciler.engine.crew import side_by_side
from reconciler.errors import Stopped
from reconciler.model.item import RESULT_UNKNOWN, RUN_ENDED, Change, Item, Outcome, Status, section_of
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan, known_ids
from reconciler.model.protocols import Service
from reconciler.model.state import LivePart, PartAddress, Section
from reconciler.model.targets import Level, Target

LOG = logging.getLogger(__name__)


def apply_plan(plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> list[TargetPlan]:
    """Apply a plan, and return its targets that had changes, with the outcomes, in the order of the plan."""
    application = Application(plan, service, kinds, options)
    application.run()
    return application.outcomes


class TargetRun:
    """The application of one target's plan.

    Attributes:
        sender: sends the changes, and reads the target again.
        attempts: the attempted changes so far, in the order of the plan.
    """

    def __init__(
        self, target_plan: TargetPlan, kinds: Kinds, run_targets: Targets, referring: ReferredSections
    ) -> None:
        self.target, self.kinds, self.options, self.targets = target_plan, kinds, run_targets.options, run_targets
        self.sender = Sender(target_plan.target, run_targets, kinds)
        self.attempts: list[Attempt] = []
        self._doubtful: list[int] = []
        self._found = dict(target_plan.sections)
        self._items: dict[str, tuple[Item, ...]] = target_plan.by_section
        self._referring = referring
        self._below = referring.sections_of_projects(target_plan)
        self._referred = referring.own_sections(target_plan) | self._below

    def apply(self, replanned: Mapping[str, Section]) -> None:
        """Apply the plan, section by section: prepare, send, settle.

        Args:
            replanned: the sections to read and plan again right before sending, by kind.
        """
        preparation = Preparation(self.target, self.targets, self.sender.reader, replanned)
        for section in self.target.sections:
            ready = preparation.prepare(section)
            self._found[section], self._items[section] = ready.plan.sections[section], ready.plan.items
            # One after another: of eight parallel writes to one project, GitLab 18.9 refuses five to seven with 409,
            # and titles that must be unique are created several times.
            for change in ready.plan.changes:
                self.attempts.append(self._attempted(change, ready))
                self._count(len(self.attempts) - 1)
        if not self._below:
            self._end(attempt.outcome for attempt in self.attempts)
        # Once for the whole target: one reading for each part, however many of its objects have changed.
        self._settle(range(len(self.attempts)))
        self.targets.note_made((attempt.outcome.change.address, attempt.number) for attempt in self.attempts)

    @property
    def waiting(self) -> list[Outcome]:
        """The partial outcomes of changes that wait for other targets."""
        return [attempt.outcome for attempt in self.attempts if attempt.waits]

    @property
    def outcome(self) -> TargetPlan:
        """The target with the outcomes so far.

        In an unfinished run, the next change has an unknown result, and all later ones are skipped.
        """
        known = [attempt.outcome for attempt in self.attempts]
        plan = replace(self.target, sections=dict(self._found), items=tuple(chain.from_iterable(self._items.values())))
        pending = plan.changes[len(known) :]
        known += [Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True) for change in pending[:1]]
        known += [Outcome(change, Status.SKIPPED, RUN_ENDED) for change in pending[1:]]
        return plan.with_outcomes(known)

    @property
    def delayed(self) -> list[int]:
        """The positions of the attempts that may succeed in a moment: see `is_delayed`."""
        return [place for place, attempt in enumerate(self.attempts) if is_delayed(attempt.outcome, self.kinds)]

    def try_again(self) -> None:
        """Plan the delayed changes again, and send them."""
        places = self.delayed
        changes: dict[str, list[Change]] = {}
        for change in (self.attempts[place].outcome.change for place in places):
            changes.setdefault(change.address.section, []).append(change)
        preparation, again = Preparation(self.target, self.targets, self.sender.reader, {}), self.sender.reader.again
        plans = [preparation.planned_from(shown, again(shown)) for shown in changes.values()]
        run = TargetRun(joined(self.target.only(changes), plans), self.kinds, self.targets, self._referring)
        run.apply({})
        self.sender.reader.read_last |= run.sender.reader.read_last
        for place in places:
            outcome = second_outcome(self.attempts[place].outcome, run.outcome)
            self.attempts[place] = replace(self.attempts[place], outcome=outcome, doubt=None)

    def end(self, outcomes: Iterable[Outcome]) -> None:
        """Send the requests that wait for other targets.

        Args:
            outcomes: of the other targets.
        """
        self._settle(self._end([*outcomes, *(attempt.outcome for attempt in self.attempts)]))

    def _end(self, outcomes: Iterable[Outcome]) -> list[int]:
        """Delete objects that others have referred to, unless a reference was kept; return their positions.

        Args:
            outcomes: of the changes that may remove such a reference.
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
                # Noted before the requests: a run that is cut off within them reports the change as unconfirmed.
                unknown = Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True)
                self.attempts[place] = Attempt(unknown, attempt.made)
                self.attempts[place] = self.sender.send_postponed(attempt)
            self._count(place)
        return places

    def _attempted(self, change: Change, ready: Ready) -> Attempt:
        """Send a change, unless it is settled already; a run that ends settles refusals only."""
        before, stop = ready.settled.get(id(change)), self.options.stop
        if before is None or stop.pause_reason or (stop.reason and before.status is Status.DONE):
            return self.sender.send(change, is_referred=change.address.section in self._referred)
        if before.status is Status.DONE:
            return Attempt(self.sender.objects.deliver_again(before), was_done=True)
        return Attempt(before)

    def _count(self, index: int) -> None:
        """Count a failure, after which the run may have to end; doubts are settled first, all by one reading."""
        attempt, failures = self.attempts[index], self.options.failures
        if failures is None or attempt.waits:
            return
        if attempt.doubt is None or not self.options.verify:
            failures.count(attempt.outcome, self.options.stop)
            return
        self._doubtful.append(index)
        # A reading costs requests: it is made only when the doubts, if all are failures, would end the run.
        if failures.suspect():
            doubtful, self._doubtful = self._doubtful, []
            self._settle(doubtful)

    def _settle(self, places: Iterable[int]) -> None:
        """Read changed and doubtful parts again, if the options say so; a dropped change is not done."""
        if not self.options.verify:
            return
        attempts = [(place, self.attempts[place]) for place in places]
        attempts = [
            (place, attempt)
            for place, attempt in attempts
            if attempt.doubt or (attempt.outcome.status is Status.DONE and not attempt.was_done)
        ]
        after = verified([attempt for _, attempt in attempts], self.sender)
        for (place, before), attempt in zip(attempts, after, strict=True):
            self.attempts[place] = attempt
            if self.options.failures is not None:
                is_doubtful = before.doubt is not None
                self.options.failures.count(attempt.outcome, self.options.stop, suspected=is_doubtful)


class Application:
    """The application of a plan. A failed change stops only itself; it is an outcome, never an exception.

    Attributes:
        imports: the imports that continue after the run, and the objects that they have left out.
        canary: the result of the canary; None without a canary, or before its end.
        numbers: the known IDs of paths.
    """

    def __init__(self, plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> None:
        self._plan, self._kinds, self._options = plan, kinds, options
        again = ((target.target, declared_again(target, kinds)) for target in plan.targets)
        self._again = {target: sections for target, sections in again if sections}
        self._busy = [target for target in plan.targets if target.changes or target.target in self._again]
        self._targets = Targets(service, options, tokens_of(plan))
        self.numbers = self._targets.numbers
        if not options.recheck:  # a saved plan is no credential: an ID in it might be that of another project
            self.numbers.learn(known_ids(plan.targets))
        self.imports = Imports(self._targets, kinds)
        self._begun: dict[Target, list[NewTarget | TargetRun]] = {}
        self._referring = ReferredSections(self._busy, kinds)
        self.canary: CanaryRun | None = None

    def run(self) -> None:
        """Apply the plan. A `KeyboardInterrupt` ends it at once, even if the service never responds."""
        options = self._options
        first, later = in_stages(self._busy, options.canary, self._again)
        changes = sum(len(target.changes) for target in self._busy)
        options.progress.begin("applying", (target.target for target in (*first, *later)), changes)
        began = options.now()
        self._carry_out(first)
        if options.canary:
            tried = tuple(target.target for target in self._plan.targets if target.target in options.canary)
            self.canary = CanaryRun(tried, not self._unhealthy_canaries(), began, options.now())
            options.write_log.canary(len(tried), in_order=self.canary.in_order)
        if not self._unhealthy_canaries():
            self._carry_out(later)
        unhealthy = self._unhealthy_canaries()
        if unhealthy:
            others = f" and {len(unhealthy) - 1} more" if len(unhealthy) > 1 else ""
            options.stop.pause(f"the canary is not in order: {unhealthy[0]}{others}")
        self._try_again()
        self._end()

    @property
    def outcomes(self) -> list[TargetPlan]:
        """The targets that had changes, with the outcomes so far, in the order of the plan."""
        return [self._outcome(target) for target in self._busy]

    @property
    def read(self) -> dict[PartAddress, LivePart]:
        """The parts that the run has read, each as it was read last."""
        read = ((run.target.target, run.sender.reader.read_last) for run in self._runs)
        return {(target, *place): live for target, last in read for place, live in last.items()}

    @property
    def _runs(self) -> list[TargetRun]:
        return [run for begun in self._begun.values() for run in begun if isinstance(run, TargetRun)]

    def _carry_out(self, stage: Sequence[TargetPlan]) -> None:
        """Apply one stage: creations, then declared sections, then targets that an import fills."""
        # First of all: an archive leaves out each subgroup or milestone whose name it finds in the group.
        self.imports.arrive({target.arriving for target in stage} - {""})
        # A subgroup and a project take the ID of the group that the wave before has created.
        for wave in waves(target for target in stage if target.creation):
            creations = [NewTarget(plan, self._targets) for plan in wave]
            for creation in creations:
                self._begun.setdefault(creation.target, []).append(creation)
            side_by_side(self.imports.create, creations, self._targets.service.concurrency)
            self.imports.fill(creations)
        declared = [target for target in stage if not target.creation]
        later = {target.target for target in declared if target.importing or self.imports.is_postponed(target)}
        # Targets without an import do not wait for those with one, which may take half an hour.
        self._apply(target for target in declared if target.target not in later)
        for ended in self.imports.ended(target for target in declared if target.target in later):
            self._apply(ended)

    def _apply(self, plans: Iterable[TargetPlan]) -> None:
        """Apply declared sections, level by level."""
        # Groups first: their approval settings lock those of projects (deployed behaviour, section 4).
        for _, wave in groupby(plans, key=lambda plan: plan.target.level):
            side_by_side(self._apply_one, wave, self._targets.service.concurrency)

    def _apply_one(self, plan: TargetPlan) -> None:
        run = TargetRun(plan, self._kinds, self._targets, self._referring)
        self._begun.setdefault(plan.target, []).append(run)
        again = self._again.get(plan.target, {})
        run.apply({name: section for name, section in again.items() if name in plan.sections})
        done = sum(outcome.status is Status.DONE for outcome in run.outcome.outcomes)
        self._options.progress.step(plan.target, done)

    def _try_again(self) -> None:
        """Try changes again that the service refused or dropped because of new members; see `later`."""
        runs = [run for run in self._runs if run.delayed]
        if not runs or self._options.stop.reason:
            return
        LOG.info("%s: members who were added a moment ago are tried once more", runs[0].target.target)
        with suppress(Stopped):
            self._targets.service.pause(runs[0].target.target.url, SETTLED_AFTER)
            side_by_side(TargetRun.try_again, runs, self._targets.service.concurrency)

    def _end(self) -> None:
        """Delete objects of groups that objects of projects have referred to."""
        waiting = [run for run in self._runs if run.waiting]
        if waiting:
            below = [target for target in self.outcomes if target.target.level is Level.PROJECT]
            outcomes = [outcome for target in below for outcome in target.outcomes]
            side_by_side(lambda run: run.end(outcomes), waiting, self._targets.service.concurrency)

    def _unhealthy_canaries(self) -> list[str]:
        """Return the canary targets that are not in order; changes that wait for other targets count as in order."""
        canary = [target for target in self._plan.targets if target.target in self._options.canary]
        waiting = {id(outcome) for run in self._runs for outcome in run.waiting}
        outcomes = ((target, self._outcome(target)) for target in canary)
        return [
            str(target.target)
            for target, outcome in outcomes
            if not replace(outcome, items=tuple(item for item in outcome.items if id(item) not in waiting)).in_order
        ]

    def _outcome(self, target_plan: TargetPlan) -> TargetPlan:
        """Return a target with its outcomes so far; the changes of pending sections are skipped."""
        begun = [one.outcome for one in self._begun.get(target_plan.target, ())]
        sections = {name for plan in begun for name in plan.sections}
        skipped = NotAttempted(Status.SKIPPED, self._options.stop.reason or RUN_ENDED)
        skipped_plan = target_plan.only(target_plan.sections.keys() - sections).with_changes(skipped.outcome)
        return joined(target_plan, [*begun, skipped_plan])


def in_stages(
    target_plans: Iterable[TargetPlan],
    canary_targets: Iterable[Target],
    replanned: Mapping[Target, Mapping[str, Section]],
) -> tuple[list[TargetPlan], list[TargetPlan]]:
    """Return two stages: the canary, and all other targets. Creations are separate from declared sections.

    Unchanged settings of the canary that a change to a later group may affect are read and planned again after that
    change.

    Args:
        target_plans: the targets to apply.
        canary_targets: the targets that come first.
        replanned: the sections to be read and planned again, by target and kind.
    """
    first: list[TargetPlan] = []
    later: list[TargetPlan] = []
    busy, canary_targets = list(target_plans), {*canary_targets}
    groups = any(target.target.level is Level.GROUP and target.target not in canary_targets for target in busy)
    for target in chain.from_iterable(split_creation(target) if target.creation else [target] for target in busy):
        if target.target not in canary_targets:
            later.append(target)
            continue
        changed = {section_of(change) for change in target.changes}
        waiting = {*replanned.get(target.target, ())} if groups else set[str]()
        late = [name for name in target.sections if name in waiting - changed]
        first.append(target.only([name for name in target.sections if name not in late]))
        later += [target.only(late)] if late else []
    return first, later
