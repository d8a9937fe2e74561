"""`accept`: edits manifests until their plan is empty, in two passes, and verifies the result.

First, the deltas of each target are completed: they are carried out for this target alone and planned again, which
shows the values that they uncover in lower layers, and those that a problem has hidden. So a surprise can only come
from other targets of its profiles and sets. The second pass corrects such surprises in the own documents alone.
Differences that the last plan still shows are refused.

Manifests that would have errors are not written: a target at fault prevents each change of its profiles and sets, and
if it is at fault again, no change is written for it.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import product

from reconciler.edit.completion import alone, checked, collected, joined
from reconciler.edit.deltas import Deltas
from reconciler.edit.differences import (
    CONTRADICTION,
    Acceptance,
    Drift,
    ManifestFiles,
    differences_of,
    number_of_changes,
    place,
    plan_again,
)
from reconciler.edit.drafts import Drafts, accepted
from reconciler.edit.edits import Edit, by_place, edited_stack
from reconciler.edit.place import Difference, Membership, Placement, is_merged
from reconciler.manifests import Manifests
from reconciler.manifests.layers import OLD_NAMES, Stack
from reconciler.manifests.sources import Document
from reconciler.model.endpoints import Collection as Objects
from reconciler.model.item import Finding
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, LiveState, Section, Unreadable
from reconciler.model.targets import Key, Target

Place = tuple[Target, str]
"""A target, and a section of it."""
Fault = tuple[Hashable, str]
"""A document as it was read, or a target, and the section that has errors there."""
NO_FAULTS: Set[Fault] = frozenset()


GIVEN_UP = 2
"""The number of faults of a target in a section after which its differences there are refused."""


def accept(drift: Drift, kinds: Kinds, files: ManifestFiles) -> Acceptance:
    """Return manifests whose plan is empty, except for differences that cannot be accepted.

    These are: a target that does not exist yet, a rotation that is due, a section that cannot be read, a value in a
    template or under a lock, and an entry of a list that a profile declares for other targets too.

    Args:
        drift: the differences between manifests and service.
        kinds: all kinds.
        files: the places of the manifests.
    """

    def attempt(closed: Mapping[str, str], drafts: Drafts) -> tuple[Drafts, int, list[Finding]]:
        drafts, remaining = _Accepting(drift, kinds, closed).run(_Revision(drift.manifests, drafts))
        return drafts, number_of_changes(drift.asked - Counter(map(place, remaining))), remaining

    return accepted(drift, files, attempt, drift.unacceptable)


@dataclass(frozen=True, slots=True)
class _Revision:
    """The manifests after some edits.

    Attributes:
        manifests: the merged manifests.
        drafts: the edited documents.
        read: by document of `manifests`, the document as it was read, or the target of a new document.
    """

    manifests: Manifests
    drafts: Drafts
    read: Mapping[Hashable, Document | Target] = field(default_factory=dict)

    def edited(self, edits: Iterable[Edit], base: Manifests) -> "tuple[_Revision | None, Set[Fault]]":
        """Return the manifests after further edits, None if they would have errors, and the faults.

        Args:
            edits: of documents as `manifests` has them.
            base: the manifests as they were read.
        """
        # an empty section that is pruned says that no object may exist: edits must not drop it
        pruned: dict[Document, set[str]] = {}
        for stack in self.manifests.stacks:
            for layer in stack.layers:
                pruned.setdefault(layer.document, set()).update(stack.prune)
        drafts = self.drafts.edited(edits, self.read, pruned)
        changed, new = drafts.documents
        read: dict[Hashable, Document | Target] = {document: old for old, document in changed.items()}
        read |= {document: target for target, document in new.items()}
        revised, faulty = base.revised(changed, new.values())
        if revised is None:
            return None, frozenset((read.get(place, place), section) for place, section in faulty)
        return _Revision(revised, drafts, read), NO_FAULTS


@dataclass(frozen=True, slots=True)
class _Accepting:
    """One attempt, with some files closed.

    Attributes:
        drift: see `accept`.
        kinds: all kinds.
        closed: the files that must not change, each with the reason.
    """

    drift: Drift
    kinds: Kinds
    closed: Mapping[str, str]

    def run(self, revision: _Revision) -> tuple[Drafts, list[Finding]]:
        """Return the edited documents, and the remaining differences, each with the reason."""
        plan, live = self._plan(revision.manifests, self.drift.live)
        deltas, live = self._completed(self._deltas(plan, revision.manifests, live), revision.manifests, live)
        faults: Counter[Place] = Counter()
        revision, refusals = self._pass(revision, deltas, live, faults)
        plan, live = self._plan(revision.manifests, live)
        deltas = self._deltas(plan, revision.manifests, live)
        # only own documents: a further change of a profile could surprise its other targets again, without end
        verified, further = self._pass(revision, deltas, live, faults, only_own=True)
        if verified is not revision:
            plan, live = self._plan(verified.manifests, live)
        return verified.drafts, [*self._remaining(plan, refusals | further, faults)]

    def _plan(self, manifests: Manifests, live: LiveState) -> tuple[Plan, LiveState]:
        return plan_again(manifests.desired, self.drift.planned, live, self.kinds)

    def _deltas(self, plan: Plan, manifests: Manifests, live: LiveState) -> dict[Target, Deltas]:
        """Return the deltas that make a plan empty."""
        declared = {
            (section.target, section.kind): section
            for target in manifests.desired.targets
            for section in target.sections
        }
        stacks = {stack.target: stack for stack in manifests.stacks}
        return collected(plan, declared, stacks, live)

    def _completed(
        self, deltas: Mapping[Target, Deltas], manifests: Manifests, live: LiveState
    ) -> tuple[Mapping[Target, Deltas], LiveState]:
        """Return the deltas, and those that appear when these are carried out for each target alone."""
        stacks: dict[Target, Stack] = {}
        declared: dict[Place, Section] = {}
        desired = []
        for target in manifests.desired.targets:
            if target.target in deltas:
                stack = manifests.of(target.target).stack
                sections = {steps[0] for steps in deltas[target.target].by_steps}
                edited = alone(stack, deltas[target.target], sections, stack.prune)
                correct = [section for name in edited.sections for section in checked(edited, name)]
                stacks[target.target] = edited
                declared |= {(section.target, section.kind): section for section in correct}
                desired.append(replace(target, sections=tuple(correct)))
        plan, live = plan_again(DesiredState(tuple(desired), ""), self.drift.planned, live, self.kinds)
        further = collected(plan, declared, stacks, live)
        return {target: joined(own, further.get(target)) for target, own in deltas.items()}, live

    def _pass(
        self,
        revision: _Revision,
        deltas: Mapping[Target, Deltas],
        live: LiveState,
        fault_counts: Counter[Place],
        *,
        only_own: bool = False,
    ) -> tuple[_Revision, dict[Difference, str]]:
        """Return the manifests with deltas carried out, and the reasons for the refused ones.

        Args:
            revision: the manifests.
            deltas: of each target.
            live: the live state.
            fault_counts: the number of faults of each target, by section; it is updated.
            only_own: whether no profile and no set may change.
        """
        refused = {(target, *at): reason for target, own in deltas.items() for at, reason in own.refused.items()}
        specs = self.drift.manifests.index.specs
        while True:
            members = self._members(revision.manifests, deltas, live, fault_counts, only_own=only_own)
            # A target named by ID is checked before its sets are known: its document must be complete without them.
            restated = {
                (target, name)
                for target, name in fault_counts
                if isinstance(target.ref, int) and specs[name].items is None
            }
            placement = Placement.of(revision.manifests.stacks, members, self.closed, restated)
            refused |= placement.refused
            edits = _necessary([*placement.edits.values()], members)
            revised, faulty = revision.edited(edits, self.drift.manifests) if edits else (revision, NO_FAULTS)
            if revised is not None:
                return revised, refused
            needing = {(target, edit.section) for edit in edits for target in edit.targets}
            # Each round refuses the changes of at least one target, so that this ends.
            fault_counts.update(needing & self._blamed(edits, faulty, revision, members) or needing)

    def _members(
        self,
        manifests: Manifests,
        deltas: Mapping[Target, Deltas],
        live: LiveState,
        fault_counts: Counter[Place],
        *,
        only_own: bool,
    ) -> Membership:
        unreadable = {
            (target, section) for (target, section, _), part in live.parts.items() if isinstance(part, Unreadable)
        }
        by_target = {
            target: {at: delta for at, delta in own.by_steps.items() if fault_counts.get((target, at[0]), 0) < GIVEN_UP}
            for target, own in deltas.items()
        }
        # If no target counts as known, no profile and no set may change.
        known = frozenset() if only_own else self.drift.planned - unreadable - fault_counts.keys()
        fixed = {layer for hidden in manifests.unlisted for layer in hidden.layers}
        return Membership.of(manifests.stacks, by_target, known, self.drift.inapplicable, fixed)

    def _blamed(
        self, edits: Sequence[Edit], faulty: Set[Fault], revision: _Revision, members: Membership
    ) -> Set[Place]:
        """Return the targets at fault, and those that share changed profiles and sets with them; with the section."""
        changed = {(edit.document, edit.section) for edit in edits if edit.shared}
        blamed = {(place, section) for place, section in faulty if isinstance(place, Target)}
        for layer, stacks in members.stacks.items():
            read = revision.read.get(layer.document, layer.document)
            for section in {section for _, section in faulty}:
                group = {(stack.target, section) for stack in stacks}
                shares = (layer.document, section) in changed and not faulty.isdisjoint(group)
                blamed |= group if shares or (read, section) in faulty else set()
        return blamed

    def _remaining(
        self, plan: Plan, reasons: Mapping[Difference, str], fault_counts: Counter[Place]
    ) -> Iterator[Finding]:
        """Yield the differences that remain in the plan, each with the reason."""
        for problem in differences_of(plan):
            target, section = problem.address.target, problem.address.section
            places = ((target, section, name, field_) for name, field_ in self._places(problem))
            given_up = CONTRADICTION if fault_counts.get((target, section), 0) >= GIVEN_UP else ""
            reason = next((reasons[place] for place in places if place in reasons), given_up)
            reason = reason or problem.reason or CONTRADICTION
            yield replace(problem, reason=reason, fix=problem.fix if reason == problem.reason else "")

    def _places(self, problem: Finding) -> Iterator[tuple[Key | None, str | None]]:
        """Yield the names and fields under which a difference may have been refused, the nearest first.

        A problem of a whole object may be about its former names.
        """
        name, part = problem.address.name, self.kinds[problem.address.section].part(problem.address.part)
        identity = part.identity(name) if name is not None and isinstance(part, Objects) else None
        yield from product(dict.fromkeys((name, identity, None)), dict.fromkeys((problem.field, None, OLD_NAMES)))


def _necessary(edits: Sequence[Edit], members: Membership) -> list[Edit]:
    """Return the edits that have to be made.

    A field that a profile or set no longer needs is not removed, unless it would be merged again: the edits of higher
    layers may cover it. It is removed too if another profile or set replaces the null of an item, which may uncover it.
    """
    revived = {edit.section for edit in edits if edit.is_revival}
    places = by_place(edit for edit in edits if not (edit.uncovers and edit.section in revived))
    conditional = [edit for edit in edits if edit.is_conditional]
    wanted = {target for edit in conditional for target in edit.targets}
    stacks = {stack.target: stack for layer in members.stacks.values() for stack in layer if stack.target in wanted}
    for edit in conditional:
        place_edits = places[edit.place]
        places[edit.place] = [other for other in place_edits if other is not edit]
        edited = (
            (edited_stack(stacks[target], places, {edit.section}, stacks[target].prune), steps)
            for target, steps in edit.needed_by
        )
        if any(is_merged(stack, steps) for stack, steps in edited):
            places[edit.place] = place_edits
    return [edit for place_edits in places.values() for edit in place_edits]
