"""The preparation of a write: what is read and planned again right before a section is carried out, what is refused.

A section is prepared in one of four ways, by how it was planned:

- *fresh*: this run has planned it. Only lists in which the service would create a name twice are read again.
- *saved*: the plan comes from a file. All that changes is read again: what has moved is stale, and a change to which
  planning does not lead was edited.
- *new target*: the target did not exist, or an import was filling it. The section is read and planned from the changes
  that the plan shows.
- *parent changed*: the settings of a group above may have changed, or the whole record is sent. The section is read and
  planned from the manifests.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.engine.apply.agree import PLAN_WAS_EDITED, as_declared, exceeding, is_possible, repeated, settled
from reconciler.engine.apply.outcomes import Fate
from reconciler.engine.apply.targets import Targets, refers_above
from reconciler.engine.apply.verify import Reread, Verifier, collection_of
from reconciler.engine.compare.creation import references
from reconciler.engine.compare.earlier import Earlier
from reconciler.engine.compare.planner import plan_section
from reconciler.model.item import Change, Create, Delete, Finding, Outcome, Status
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, SectionPlan, TargetPlan
from reconciler.model.state import LivePart, LiveState, PartAddress, Section, Unreadable


@dataclass(frozen=True, slots=True)
class Ready:
    """A section that is ready to be carried out.

    Attributes:
        section: with its changes as they are sent.
        settled: the outcomes of changes that are not carried out, since they are refused, or as wanted before anything
            was sent; by the `id` of the change, for changes have no hash.
    """

    section: SectionPlan
    settled: Mapping[int, Outcome] = field(default_factory=dict)

    @property
    def open(self) -> list[Change]:
        """The changes that are carried out."""
        return [change for change in self.section.changes if id(change) not in self.settled]

    def settling(self, outcomes: Iterable[Outcome]) -> "Ready":
        """Return the same, with the outcomes of further changes."""
        return replace(self, settled={**self.settled, **{id(outcome.change): outcome for outcome in outcomes}})


class Preparation:
    """The preparation of one target's sections.

    Args:
        target: as it was planned.
        targets: what the run knows of all targets.
        verifier: reads again.
        again: the sections to read and plan again, by kind.
    """

    def __init__(
        self,
        target: TargetPlan,
        targets: Targets,
        verifier: Verifier,
        again: Mapping[str, Section],
    ) -> None:
        self.target, self.targets, self.again = target, targets, again
        self.options, self.verifier, self.kinds = targets.options, verifier, verifier.kinds

    def prepare(self, section: SectionPlan) -> Ready:
        """Return a section as it is carried out now."""
        fate = self.targets.fate(self.target.target)
        if fate is not None:
            return Ready(section).settling(map(fate.outcome, section.changes))
        ready = self._with_new_ids(section)
        # A run that ends reads nothing again: it will not carry anything out.
        prepared = ready if self.options.stop.reason else self._strategy(section.section)(ready)
        # Of a reading during which the run has ended, as by a refused token, nothing can be concluded.
        return replace(prepared, settled=ready.settled) if self.options.stop.reason else prepared

    def _strategy(self, section: str) -> Callable[[Ready], Ready]:
        recheck = self.options.recheck
        filled = self.target.importing or (self.target.arriving and not recheck)
        if filled or self.targets[self.target.target].is_new:
            return self._new_target
        if section in self.again:
            return partial(self._parent_changed, self.again[section])
        return self._saved if recheck else self._fresh

    def _with_new_ids(self, section: SectionPlan) -> Ready:
        """Return a section with the IDs of the targets that this run has created, without the changes that lack one."""
        known = [self.targets.with_made(change) for change in section.changes]
        completed = [(change, self.targets.completed(change) if refers_to_new(change) else change) for change in known]
        changes = tuple(change if isinstance(result, Fate) else result for change, result in completed)
        refused = (result.outcome(change) for change, result in completed if isinstance(result, Fate))
        return Ready(replace(section, changes=changes)).settling(refused)

    def _fresh(self, ready: Ready) -> Ready:
        changes = repeatable(ready.open, self.kinds)
        if not changes:
            return ready
        return ready.settling(repeated(changes, self.verifier.again(changes)))

    def _saved(self, ready: Ready) -> Ready:
        return self._compared(ready, ready.open)

    def _new_target(self, ready: Ready) -> Ready:
        """Deletions are never added: those that the plan shows must not have moved."""
        shown = [change for change in ready.open if not isinstance(change, Delete)]
        if not shown:
            return ready
        live = self.verifier.again(shown)
        unread = next((part for part in live.values() if isinstance(part, Unreadable)), None)
        if unread is not None:
            return ready.settling(
                Outcome(change, Status.FAILED, f"cannot be read: {unread.reason}") for change in shown
            )
        planned = self.planned_from(shown, live)
        deletions = [change for change in ready.open if isinstance(change, Delete)]
        refused = [change for change in ready.section.changes if id(change) in ready.settled]
        origins = {change.address: change.origin for change in shown}
        changes = [replace(change, origin=origins.get(change.address, "")) for change in planned.changes]
        findings = [replace(problem, origin=origins.get(problem.address, "")) for problem in planned.problems]
        section = replace(
            planned,
            changes=(*changes, *deletions, *refused),
            findings=(*findings, *ready.section.findings),
        )
        ready = Ready(section, ready.settled)
        return self._compared(ready, deletions) if self.options.recheck else ready

    def _parent_changed(self, again: Section, ready: Ready) -> Ready:
        (planned,) = plan_section(again, LiveState(self._parts(again), {}), self.kinds).sections
        planned = replace(planned, findings=(*planned.problems, *_not_problems(ready.section)))
        return Ready(planned).settling(exceeding(planned, ready.section) if self.options.recheck else ())

    def _parts(self, section: Section) -> dict[PartAddress, LivePart]:
        return {
            (section.target, section.kind, name): self.verifier.read(section.kind, name, wanted)
            for name, wanted in section.wanted.items()
        }

    def _compared(self, ready: Ready, changes: Sequence[Change]) -> Ready:
        """Read and plan again what changes of a saved plan are about, and settle those to which that does not lead."""
        lacking = [(change, refers_above(change)) for change in changes]
        ready = ready.settling(
            Outcome(change, Status.STALE, f"{above} was not created, and this refers to it")
            for change, above in lacking
            if above
        )
        live = self.verifier.again(changes)
        if self.options.stop.reason:  # nothing else is asked
            return ready
        shown = [change for change, above in lacking if not above]
        edited = [change for change in shown if not is_possible(change, live, self.kinds)]
        ready = ready.settling(Outcome(change, Status.STALE, PLAN_WAS_EDITED) for change in edited)
        shown = [change for change in shown if change not in edited]
        if not shown:
            return ready
        kind = self.kinds[ready.section.section]
        return ready.settling(settled(shown, self.planned_from(shown, live, forced=True), live, kind))

    def planned_from(self, shown: Sequence[Change], live: Reread, *, forced: bool = False) -> SectionPlan:
        """Plan the section of some changes again, declared as they leave it.

        Args:
            shown: the changes.
            live: the parts that they are about, as they were read.
            forced: whether fields that are not shown count as different: they were forced, or go along with another.
        """
        section, absences = as_declared(shown, live, self.kinds)
        parts: dict[PartAddress, LivePart] = {}
        for name in section.wanted:
            part = live[section.kind, name]
            parts[section.target, section.kind, name] = (
                part if isinstance(part, Unreadable) else part.called_as_in(shown, forced=forced)
            )
        before = {own.section: own.changes for own in self.target.sections}
        state = LiveState(parts, {}, absences=absences)
        while True:
            planned = plan_section(section, state, self.kinds, earlier=Earlier(here=before))
            if not planned.lookups:
                return planned.sections[0]
            state = self.verifier.answer(state, planned.lookups)


def planned_again(plan: Plan) -> list[Section]:
    """Return the sections that are read and planned again right before they are written."""
    changed = {
        (target.target, section.section) for target in plan.targets for section in target.sections if section.changes
    }
    whole = [section for section in plan.whole if (section.target, section.kind) in changed]
    return list({(section.target, section.kind): section for section in (*whole, *plan.dependent)}.values())


def _not_problems(section: SectionPlan) -> Iterator[Finding]:
    return (finding for finding in section.findings if finding.code != "problem")


def repeatable(changes: Iterable[Change], kinds: Kinds) -> list[Change]:
    """Return the creations that the service would carry out twice without a word: their names need not be unique."""
    return [
        change
        for change in changes
        if isinstance(change, Create) and not collection_of(change.address, kinds).names.unique
    ]


def refers_to_new(change: Change) -> bool:
    """Return whether the requests of a change lack the ID of a target that a run creates."""
    return any(True for request in change.requests for _ in references(request.body))
