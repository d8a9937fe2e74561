"""The preparation of a section right before it is written: reading, planning again, and refusals. See `Preparation`.

A section is prepared in one of five ways, by how it was planned:

- *fresh*: this run has planned it. Only lists in which the service would create a name twice are read again.
- *saved*: the plan comes from a file. All parts with changes are read again: a change is stale if its object differs,
  and was edited if planning again does not give it.
- *new target*: the target did not exist, or an import was filling it. The section is read and planned from the changes
  that the plan shows.
- *parent changed*: the settings of a group above may have changed. The section is read and planned as it is declared.
- *written whole*: the change sends fields that nobody declared. The record is read and planned as it is declared, so
  that no field is set back that somebody else has changed meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.engine.apply.agree import already_created, exceeding_changes, planned_again, refusal, unplanned_outcomes
from reconciler.engine.apply.options import NotAttempted
from reconciler.engine.apply.reread import Reread, TargetReader, collection_of
from reconciler.engine.apply.targets import Targets
from reconciler.engine.compare.creation import references
from reconciler.engine.compare.effect import with_effects
from reconciler.engine.compare.planner import plan_section
from reconciler.model.item import (
    Change,
    Create,
    Delete,
    Keep,
    Outcome,
    Status,
    Update,
    changes_in,
    effect_of,
    object_of,
    with_effect,
)
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.state import NO_MINIMUMS, LivePart, LiveState, PartAddress, Section, Unreadable
from reconciler.model.targets import Key


@dataclass(frozen=True, slots=True)
class Ready:
    """A section that is ready to be written.

    Attributes:
        plan: the target without its other sections, with the changes as they are sent.
        settled: the outcomes of changes that are not sent, since they are refused or already done; by the `id` of the
            change, because changes have no hash.
    """

    plan: TargetPlan
    settled: Mapping[int, Outcome] = field(default_factory=dict)

    @property
    def open(self) -> list[Change]:
        """The changes that are to be sent."""
        return [change for change in self.plan.changes if id(change) not in self.settled]

    def settling(self, outcomes: Iterable[Outcome]) -> "Ready":
        """Return this section with the outcomes of further changes."""
        return replace(self, settled={**self.settled, **{id(outcome.change): outcome for outcome in outcomes}})


class Preparation:
    """The preparation of one target's sections.

    Args:
        target_plan: as it was planned.
        run_targets: the state of all targets in this run.
        target_reader: reads again.
        again: the sections to read and plan again, by kind.
    """

    def __init__(
        self,
        target_plan: TargetPlan,
        run_targets: Targets,
        target_reader: TargetReader,
        replanned: Mapping[str, Section],
    ) -> None:
        self.target, self.targets, self.replanned = target_plan, run_targets, replanned
        self.options, self.reader, self.kinds = run_targets.options, target_reader, target_reader.kinds

    def prepare(self, section: str) -> Ready:
        """Return a section, ready to be written."""
        plan, not_attempted = self.target.only([section]), self.targets.not_attempted(self.target.target)
        if not_attempted is not None:
            return Ready(plan).settling(map(not_attempted.outcome, plan.changes))
        ready = self._with_new_ids(plan).settling(self._stale(plan))
        # A run that ends reads nothing again: it will not carry anything out.
        prepared = ready if self.options.stop.reason else self._strategy(section, plan)(ready)
        # Of a reading during which the run has ended, as by a refused token, nothing can be concluded.
        return replace(prepared, settled=ready.settled) if self.options.stop.reason else prepared

    def _strategy(self, section: str, plan: TargetPlan) -> Callable[[Ready], Ready]:
        recheck = self.options.recheck
        # An import fills the target meanwhile: what the plan was made from is outdated, as for a target that did not
        # exist.
        filled = self.target.importing or (self.target.arriving and not recheck)
        if filled or self.targets[self.target.target].is_new:
            return self._new_target
        if section in self.replanned:
            return partial(self._parent_changed, self.replanned[section])
        if recheck:
            return self._saved
        return self._written_whole if written_whole(plan, self.kinds) else self._fresh

    def _stale(self, plan: TargetPlan) -> Iterator[Outcome]:
        """Yield the outcomes of deletions that the inventory does not bear out any more."""
        for change in plan.changes:
            reason = self.options.stale.get((change.address.target, *object_of(change)))
            if reason:
                yield Outcome(change, Status.STALE, reason)

    def _with_new_ids(self, plan: TargetPlan) -> Ready:
        """Return a section with the IDs of targets that this run has created; changes that lack one are refused."""
        refused: list[Outcome] = []

        def completed(change: Change) -> Change:
            change = self.targets.with_made(change)
            result = self.targets.completed(change) if refers_to_new(change) else change
            if isinstance(result, NotAttempted):
                refused.append(result.outcome(change))
                return change
            return result

        return Ready(plan.with_changes(completed)).settling(refused)

    def _fresh(self, ready: Ready) -> Ready:
        changes = repeatable(ready.open, self.kinds)
        if not changes:
            return ready
        return ready.settling(already_created(changes, self.reader.again(changes)))

    def _saved(self, ready: Ready) -> Ready:
        return self._compared(ready, ready.open)

    def _new_target(self, ready: Ready) -> Ready:
        """Plan the section again from its shown changes."""
        shown = [change for change in ready.open if not isinstance(change, Delete)]
        if not shown:
            return ready
        live = self.reader.again(shown)
        unread = next((part for part in live.values() if isinstance(part, Unreadable)), None)
        if unread is not None:
            return ready.settling(
                Outcome(change, Status.FAILED, f"cannot be read: {unread.reason}") for change in shown
            )
        planned = self.planned_from(shown, live)
        deletions = [change for change in ready.open if isinstance(change, Delete)]
        refused = [change for change in ready.plan.changes if id(change) in ready.settled]
        planned = _with_origins_of(planned, shown)
        effects = {change.address: effect_of(change) for change in shown}
        planned = planned.with_changes(lambda change: with_effect(change, effects.get(change.address)))
        items = (*planned.changes, *deletions, *refused, *planned.problems, *ready.plan.findings)
        ready = Ready(replace(planned, items=items), ready.settled)
        return self._compared(ready, deletions) if self.options.recheck else ready

    def _parent_changed(self, section: Section, ready: Ready) -> Ready:
        planned = self._in_place_of(ready, plan_section(section, LiveState(self._parts(section), {}), self.kinds))
        return Ready(planned).settling(exceeding_changes(planned, ready.plan) if self.options.recheck else ())

    def _written_whole(self, ready: Ready) -> Ready:
        """Send all declared fields of a record, with the other fields as they are now."""
        whole = [replace(change, after=change.declared) for change in ready.open if isinstance(change, Update)]
        return Ready(self._in_place_of(ready, self.planned_from(whole, self.reader.again(whole))))

    def _in_place_of(self, ready: Ready, planned: TargetPlan) -> TargetPlan:
        """Return a settings section as it is planned now, with the other findings about it."""
        (explained,) = with_effects(Plan((planned,)), LiveState({}, {}), self.kinds).targets
        explained = _with_origins_of(explained, ready.plan.changes)
        others = (finding for finding in ready.plan.findings if finding.code != "problem")
        return replace(explained, items=(*explained.changes, *explained.problems, *others))

    def _parts(self, section: Section) -> dict[PartAddress, LivePart]:
        return {
            (section.target, section.kind, name): self.reader.read(section.kind, name, wanted)
            for name, wanted in section.wanted.items()
        }

    def _compared(self, ready: Ready, changes: Iterable[Change]) -> Ready:
        """Read and plan changes of a saved plan again, and settle those that planning does not give any more."""
        live = self.reader.again(changes)
        if self.options.stop.reason:  # nothing else is asked
            return ready
        refusals = [(change, refusal(change, live, self.kinds)) for change in changes]
        shown = [change for change, reason in refusals if not reason]
        ready = ready.settling(Outcome(change, Status.STALE, reason) for change, reason in refusals if reason)
        if not shown:
            return ready
        planned = self.planned_from(shown, live, forced=True)
        return ready.settling(unplanned_outcomes(shown, planned, live, self.kinds[shown[0].address.section]))

    def planned_from(self, shown: Sequence[Change], reread_parts: Reread, *, forced: bool = False) -> TargetPlan:
        """Plan the section of some changes again, with their results as its declaration.

        Args:
            shown: the changes.
            reread_parts: the parts of these changes, as they were read.
            forced: whether fields that the service does not show count as different.
        """
        called = {
            place: part if isinstance(part, Unreadable) else part.with_names_of(shown, forced=forced)
            for place, part in reread_parts.items()
        }
        before = {name: tuple(changes_in(items)) for name, items in self.target.by_section.items()}
        return planned_again(shown, called, self.kinds, self.reader.answer, before)


def _with_origins_of(planned: TargetPlan, shown: Iterable[Change]) -> TargetPlan:
    """Return a section that was planned again, with the origins of the changes that were shown."""
    origins = {change.address: change.origin for change in shown}
    return planned.with_origins(lambda address, _: origins.get(address, ""))


def reread_sections(target_plan: TargetPlan, kinds: Kinds) -> set[str]:
    """Return the sections that an apply of a fresh plan reads and plans again before it writes them."""
    return written_whole(target_plan, kinds) | declared_again(target_plan, kinds).keys()


def written_whole(target_plan: TargetPlan, kinds: Kinds) -> set[str]:
    """Return the sections with a change that sends undeclared fields too."""
    changed = (
        (change.address.section, change.address.part) for change in target_plan.changes if change.address.section
    )
    return {section for section, part in changed if kinds[section].part(part).whole}


def declared_again(target_plan: TargetPlan, kinds: Kinds) -> dict[str, Section]:
    """Return, by name, the settings sections that are planned again after the groups above them were changed."""
    keeps = (item for item in target_plan.items if isinstance(item, Keep) and item.id is None)
    return {keep.address.section: _declared(keep, kinds) for keep in keeps}


def _declared(keep: Keep, kinds: Kinds) -> Section:
    """Return the declared section of settings that are planned again."""
    target, kind = keep.address.target, kinds[keep.address.section]
    value = kind.models[target.level].model_validate(dict(keep.after))
    at_least: Mapping[Key | None, frozenset[str]] = {None: frozenset(keep.at_least)} if keep.at_least else NO_MINIMUMS
    return Section(target, kind.name, kind.wanted(value, prune=keep.prune), keep.prune, at_least=at_least)


def repeatable(changes: Iterable[Change], kinds: Kinds) -> list[Change]:
    """Return the creations that the service would silently repeat, since their names need not be unique."""
    return [
        change
        for change in changes
        if isinstance(change, Create) and not collection_of(change.address, kinds).names.unique
    ]


def refers_to_new(change: Change) -> bool:
    """Return whether the requests of a change lack the ID of a target that the run creates."""
    return any(True for request in change.requests for _ in references(request.body))
