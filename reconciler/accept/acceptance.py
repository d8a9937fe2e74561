"""The way to an empty plan: place what the plan asks for, plan again, until nothing is left that can be accepted."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from reconciler.accept.differences import (
    CONTRADICTION,
    ODD_LAYOUT,
    Acceptance,
    Drift,
    ManifestFiles,
    differences_of,
    place,
    plan_again,
)
from reconciler.accept.drafts import Drafts, Unchangeable
from reconciler.accept.placement import Edit, Place, Placement, place_of
from reconciler.accept.wishes import Wishes
from reconciler.manifests import Manifests
from reconciler.manifests.sources import Document
from reconciler.model.endpoints import Collection as Objects
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan, Problem
from reconciler.model.state import LiveState, Unreadable
from reconciler.model.targets import Key, Target

Fault = tuple[Hashable, str]
"""A document as it was read, or a target, and the section that has errors there."""


def accept(drift: Drift, kinds: Kinds, files: ManifestFiles) -> Acceptance:
    """Return the manifests for which the plan is empty, as far as that can be.

    These differences cannot be accepted and stay: a target that does not exist yet, a rotation that is due, a section
    that cannot be read, a value in a template or under a lock, an entry of a list that a profile gives to other targets
    too.

    Args:
        drift: the differences between manifests and service.
        kinds: all kinds.
        files: where the manifests are.
    """
    manifests = drift.manifests
    closed = files.closed_among(manifests)
    sources = manifests.index.sources
    while True:
        drafts = Drafts(manifests.index.specs, files.roots, {file.casefold(): Path(file) for file in manifests.files})
        rounds = _Rounds(
            manifests,
            drift.planned,
            drift.inapplicable,
            drift.live,
            kinds,
            drafts,
            closed,
            manifests,
            banned=_unknown(manifests),
        )
        left = rounds.run()
        try:
            texts = rounds.drafts.texts(sources)
        except Unchangeable as odd:
            closed[str(odd)] = ODD_LAYOUT
            continue
        before = {path: sources[str(path)].text for path in texts if str(path) in sources}
        accepted = (drift.asked - Counter(map(place, left))).total()
        return Acceptance(before, texts, drift.targets, accepted, (*drift.held, *left))


def _unknown(manifests: Manifests) -> set[tuple[Place, str]]:
    """Return the places of profiles and sets, each with its sections, that have targets that nobody knows."""
    layers = {layer for each in manifests.unlisted for layer in each.layers}
    return {(place_of(layer.document), section) for layer in layers for section in manifests.index.specs}


@dataclass(slots=True)
class _Rounds:
    """Each round plans, and edits what the plan asks for; what an edit brings to light is left to the next round.

    Attributes:
        base: the manifests as they were read.
        planned: the targets and sections that are accepted.
        inapplicable: see `Drift`.
        live: what was read.
        kinds: all kinds.
        drafts: the documents with all edits so far.
        closed: by file, why it must not change.
        current: the manifests with all edits so far.
        read: by document of `current`, that of `base`, or the target whose new document it is.
        banned: the places of profiles and sets, each with a section that must not change there.
        given_up: by target and section, why nothing of it is accepted any more.
        restated: targets, each with a section whose declared fields all go into the target's own document.
        made: the edits so far.
    """

    base: Manifests
    planned: Collection[tuple[Target, str]]
    inapplicable: Collection[tuple[Target, str]]
    live: LiveState
    kinds: Kinds
    drafts: Drafts
    closed: Mapping[str, str]
    current: Manifests
    read: Mapping[Hashable, Document | Target] = field(default_factory=dict)
    banned: set[tuple[Place, str]] = field(default_factory=set)
    given_up: dict[tuple[Target, str], str] = field(default_factory=dict)
    restated: set[tuple[Target, str]] = field(default_factory=set)
    made: set[Hashable] = field(default_factory=set)

    def run(self) -> list[Problem]:
        """Edit until nothing is left to edit; return what is left of the plan, each with the reason."""
        while True:
            plan = self._plan()
            wishes = self._wishes(plan)
            edits = self._placed(wishes)
            if not edits:
                return [*self._left(plan, wishes)]
            again = [edit for edit in edits if self._mark(edit) in self.made]
            if again:
                self._drop(again)
            else:
                self._make(edits)

    def _plan(self) -> Plan:
        plan, self.live = plan_again(self.current.desired, self.planned, self.live, self.kinds)
        return plan

    def _wishes(self, plan: Plan) -> dict[Target, Wishes]:
        declared = {
            (each.target, section.kind): section for each in self.current.desired.targets for section in each.sections
        }
        wholes = {whole.target: whole for whole in self.current.stacks}
        wishes: dict[Target, Wishes] = {}
        for each in plan.targets:
            for section in each.sections:
                if section.changes or section.problems:
                    wished = wishes.setdefault(each.target, Wishes())
                    declaration = declared[each.target, section.section]
                    wished.collect(section, declaration, wholes[each.target], self.live)
        return wishes

    def _placed(self, wishes: Mapping[Target, Wishes]) -> list[Edit]:
        unreadable = {(t, s) for (t, s, _), part in self.live.parts.items() if isinstance(part, Unreadable)}
        known = {place for place in self.planned if place not in unreadable}
        return Placement(
            self.current.stacks,
            wishes,
            known,
            self.inapplicable,
            self.closed,
            self.banned,
            self.restated,
            self.given_up.keys(),
        ).place()

    def _make(self, edits: Sequence[Edit]) -> None:
        """Make some edits; if manifests would have errors, drop those that are to blame.

        A field that a profile or set no longer needs stays there unless it must go: what changes above it may drop it.
        So does an item, for one round, where another profile or set gets back items that it may uncover.
        """
        revived = {edit.section for edit in edits if edit.revives}
        edits = [edit for edit in edits if not (edit.uncovers and edit.section in revived)]
        changing = {(edit.document, edit.section) for edit in edits if not edit.is_needless}
        now = [edit for edit in edits if not edit.is_needless or (edit.document, edit.section) in changing] or edits
        faulty = self._attempt(now)
        if faulty and len(now) < len(edits):
            made = {id(edit) for edit in now}
            now = [*now, *self._blamed([edit for edit in edits if id(edit) not in made], faulty)]
            faulty = self._attempt(now)
        if faulty:
            self._drop(self._blamed(now, faulty) or now)

    def _attempt(self, edits: Sequence[Edit]) -> Set[Fault]:
        """Make some edits, unless manifests would have errors; return the targets and documents with errors."""
        pruned: dict[Document, set[str]] = {}
        for whole in self.current.stacks:
            for layer in whole.layers:
                pruned.setdefault(layer.document, set()).update(whole.prune)
        drafts = self.drafts.edited(edits, self.read, pruned)
        changed, new = drafts.documents
        revised, faulty = self.base.revised(changed, new.values())
        read: dict[Hashable, Document | Target] = {document: old for old, document in changed.items()}
        read |= {document: target for target, document in new.items()}
        if revised is None:
            return frozenset((read.get(each, each), section) for each, section in faulty)
        self.made.update(map(self._mark, edits))
        self.drafts, self.current, self.read = drafts, revised, read
        return frozenset()

    def _blamed(self, edits: Iterable[Edit], faulty: Set[Fault]) -> list[Edit]:
        """Return the edits of faulty documents, and of any document of faulty targets, in the sections at fault."""
        sections: dict[Hashable, list[str]] = {}
        for target, section in faulty:
            sections.setdefault(target, []).append(section)
        documents = {
            (self.read.get(layer.document, layer.document), section)
            for whole in self.current.stacks
            for section in sections.get(whole.target, ())
            for layer in whole.layers
        }
        wrong = documents | faulty
        return [
            edit for edit in edits if {(each, edit.section) for each in (self._origin(edit), *edit.targets)} & wrong
        ]

    def _drop(self, edits: Sequence[Edit]) -> None:
        """Leave profiles and sets as they are where edits came to nothing; else give up on the targets."""
        shared = [edit for edit in edits if edit.document is not None and edit.shared]
        self.banned.update((place_of(edit.document), edit.section) for edit in shared if edit.document is not None)
        if not shared:
            places = {(target, edit.section) for edit in edits for target in edit.targets}
            records = {place for place in places if self.drafts.specs[place[1]].items is None}
            self.given_up |= dict.fromkeys((places - records) | (places & self.restated), CONTRADICTION)
            self.restated |= records

    def _mark(self, edit: Edit) -> Hashable:
        return self._origin(edit), edit.steps, repr(edit.wish)

    def _origin(self, edit: Edit) -> Document | Target:
        """Return the document as it was read, or the target of a new one."""
        return edit.targets[0] if edit.document is None else self.read.get(edit.document, edit.document)

    def _left(self, plan: Plan, wishes: Mapping[Target, Wishes]) -> Iterator[Problem]:
        """Yield what is left of the plan, each with the reason."""
        for problem in differences_of(plan):
            target, section = problem.address.target, problem.address.section
            given_up = self.given_up.get((target, section), "")
            refused = wishes.get(target, Wishes()).refused
            places = ((section, name, field_) for name, field_ in self._places(problem))
            reason = next((refused[place] for place in places if place in refused), given_up)
            reason = reason or problem.reason or CONTRADICTION
            yield replace(problem, reason=reason, remedy=problem.remedy if reason == problem.reason else "")

    def _places(self, problem: Problem) -> Iterator[tuple[Key | None, str | None]]:
        """Yield the names and fields under which a difference may have been refused, the nearest first."""
        name, part = problem.address.name, self.kinds[problem.address.section].part(problem.address.part)
        identity = part.identity(name) if name is not None and isinstance(part, Objects) else None
        yield from product(dict.fromkeys((name, identity, None)), dict.fromkeys((problem.field, None)))
