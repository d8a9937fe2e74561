"""The waves: users, then groups, then projects; targets of a wave side by side.

A group's approval settings decide what its projects may set, which is why groups come first.
"""

from itertools import groupby

from reconciler.apply.outcomes import ENDED, ApplyOptions, Outcome, Status, TargetOutcome
from reconciler.apply.target import TargetRun
from reconciler.apply.verify import Numbers
from reconciler.live.read import side_by_side
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Service
from reconciler.model.state import Section
from reconciler.model.targets import Target


class Application:
    """A plan that is carried out. A failed change stops nothing but itself; it is an outcome, never an exception."""

    def __init__(self, plan: Plan, service: Service, kinds: Kinds) -> None:
        self._plan, self._service, self._kinds = plan, service, kinds
        self._busy: list[TargetPlan] = []
        self._begun: dict[Target, TargetRun] = {}

    def run(self, options: ApplyOptions) -> None:
        """Carry it out. A `KeyboardInterrupt` ends it at once, also where the service never answers."""
        again: dict[Target, list[Section]] = {}
        for section in self._plan.dependent if options.recheck else planned_again(self._plan):
            again.setdefault(section.target, []).append(section)
        self._busy = [target for target in self._plan.targets if any(target.changes) or target.target in again]
        options.progress.begin("applying", (target.target for target in self._busy))

        numbers = Numbers()

        def work(target: TargetPlan) -> None:
            run = self._begun[target.target] = TargetRun(target, self._service, self._kinds, options, numbers)
            run.run(again.get(target.target, []))
            options.progress.step(target.target, sum(each.status is Status.DONE for each in run.outcome.outcomes))

        for _, wave in groupby(self._busy, key=lambda target: target.target.level):
            side_by_side(work, wave, options.concurrency)

    @property
    def outcomes(self) -> list[TargetOutcome]:
        """The outcome of each target that had changes, as far as known by now, in the order of the plan."""
        return [self._outcome(target) for target in self._busy]

    def _outcome(self, target: TargetPlan) -> TargetOutcome:
        begun = self._begun.get(target.target)
        if begun is not None:
            return begun.outcome
        return TargetOutcome(target, tuple(Outcome(change, Status.SKIPPED, ENDED) for change in target.changes))


def apply_plan(plan: Plan, service: Service, kinds: Kinds, options: ApplyOptions) -> list[TargetOutcome]:
    """Carry out a plan and return what became of each target that had changes, in the order of the plan."""
    application = Application(plan, service, kinds)
    application.run(options)
    return application.outcomes


def planned_again(plan: Plan) -> list[Section]:
    """Return the sections that are read and planned again right before they are written."""
    changed = {
        (target.target, section.section) for target in plan.targets for section in target.sections if section.changes
    }
    whole = [section for section in plan.whole if (section.target, section.kind) in changed]
    return list({(section.target, section.kind): section for section in (*whole, *plan.dependent)}.values())
