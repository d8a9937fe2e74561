"""The way to an empty plan: place what the plan asks for, plan again, until nothing is left that can be accepted."""

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from io import StringIO
from itertools import product
from pathlib import Path

from reconciler.accept.drafts import Drafts, Unchangeable
from reconciler.accept.placement import Edit, Place, Placement, place_of
from reconciler.accept.wishes import Wishes
from reconciler.fleet.lacking_sections import find_lacking
from reconciler.manifests import Manifests
from reconciler.manifests.sources import TEMPLATE, Document
from reconciler.model.endpoints import Collection as Objects
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Change, Plan, Problem, TargetPlan, Update
from reconciler.model.state import DesiredState, LiveState, Lookup, Reference, Unreadable, Vocabulary
from reconciler.model.targets import Key, Target
from reconciler.planning.obstacles import with_obstacles
from reconciler.planning.planner import make_plan

TO_CREATE = "does not exist, and `apply` creates it"
IN_TEMPLATE = "in a template"
ODD_LAYOUT = "whose layout would be lost"
CONTRADICTION = "manifests that agree with what is live would have errors"
UNASKED = "not looked up"


Fault = tuple[Hashable, str]
"""A document as it was read, or a target, and the section that has errors there."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Manifests and live state, and the plan between the two.

    Attributes:
        manifests: with all that is known of groups and paths.
        desired: the part of them that was planned: only these targets and sections are accepted.
        plan: of that part.
        live: what was read for the plan, and looked up.
        inapplicable: sections that a target cannot have; such a target agrees to any value.
    """

    manifests: Manifests
    desired: DesiredState
    plan: Plan
    live: LiveState
    inapplicable: Set[tuple[Target, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """Where manifests are.

    Attributes:
        roots: the files and folders that are searched for manifests, as the user named them.
        closed: by file, as manifests name it, why it must not change.
    """

    roots: Sequence[Path]
    closed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Manifests that agree with what is live.

    Attributes:
        before: by path, the texts of the files that change, without a byte order mark; a new file has none.
        texts: by path, the new texts of the files that change, and those of new files; sorted.
        targets: how many targets were compared.
        accepted: how many changes and problems of the plan are gone; of an update, each field counts.
        refused: what is left of the plan, each with the reason; a change as a problem too.
    """

    before: Mapping[Path, str]
    texts: Mapping[Path, str]
    targets: int
    accepted: int
    refused: tuple[Problem, ...]

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff, as `git apply` reads it, each with its line break."""
        for path, text in self.texts.items():
            before = self.before.get(path)
            names = "/dev/null" if before is None else f"a/{path.as_posix()}", f"b/{path.as_posix()}"
            for line in unified_diff(_lines(before or ""), _lines(text), *names):
                yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


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
    manifests, targets = drift.manifests, drift.plan.targets
    created = [each.target for each in targets if each.creation]
    out = {each.target for each in targets if any(problem.address == each.target.address for problem in each.problems)}
    out.update(created)
    planned = {(each.target, s.kind) for each in drift.desired.targets if each.target not in out for s in each.sections}
    held = [each for each in drift.plan.problems if (each.address.target, each.address.section) not in planned]
    held += (Problem(each.address, TO_CREATE) for each in created)
    asked = Counter(
        _place(problem)
        for each in targets
        for section in each.sections
        if (each.target, section.section) in planned
        for problem in (*section.problems, *_as_problems(section.changes))
    )
    closed = {**files.closed, **{path: IN_TEMPLATE for path in manifests.files if path.endswith(TEMPLATE)}}
    sources = manifests.sources
    while True:
        drafts = Drafts(manifests.specs, files.roots, {file.casefold(): Path(file) for file in manifests.files})
        rounds = _Rounds(
            manifests,
            planned,
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
        new = _newly_unfit(rounds.current.desired, drift.inapplicable, kinds)
        accepted = (asked - Counter(map(_place, left))).total()
        return Acceptance(before, texts, len(targets) - len(out), accepted, (*held, *left, *new))


def _unknown(manifests: Manifests) -> set[tuple[Place, str]]:
    """Return the places of profiles and sets, each with its sections, that have targets that nobody knows."""
    layers = {layer for each in manifests.unlisted for layer in each.layers}
    return {(place_of(layer.document), section) for layer in layers for section in manifests.specs}


def _newly_unfit(desired: DesiredState, inapplicable: Container[tuple[Target, str]], kinds: Kinds) -> Iterator[Problem]:
    """Yield a problem for each section that was left out, and is not where its target has a document of its own."""
    lacking = (each for each in find_lacking(desired, kinds) if each.effect == "problem")
    new = [each for each in lacking if (each.where.target, each.where.section) in inapplicable]
    targets = dict.fromkeys(each.where.target for each in new)
    yield from with_obstacles(Plan(tuple(TargetPlan(target, ()) for target in targets)), new, kinds).problems


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
        targets = (
            replace(each, sections=tuple(s for s in each.sections if (each.target, s.kind) in self.planned))
            for each in self.current.desired.targets
        )
        desired = replace(self.current.desired, targets=tuple(each for each in targets if each.sections))
        plan, missing = make_plan(desired, self.live, self.kinds)
        while missing:
            self.live = _unasked(self.live, missing)
            plan, missing = make_plan(desired, self.live, self.kinds)
        return plan

    def _wishes(self, plan: Plan) -> dict[Target, Wishes]:
        declared = {
            (each.target, section.kind): section for each in self.current.desired.targets for section in each.sections
        }
        wholes = {whole.target: whole for whole in self.current.layered}
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
            self.current.layered,
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
        for whole in self.current.layered:
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
            for whole in self.current.layered
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
        for target in plan.targets:
            for section in target.sections:
                given_up = self.given_up.get((target.target, section.section), "")
                refused = wishes.get(target.target, Wishes()).refused
                for problem in (*section.problems, *_as_problems(section.changes)):
                    places = ((section.section, name, field_) for name, field_ in self._places(problem))
                    reason = next((refused[place] for place in places if place in refused), given_up)
                    reason = reason or problem.reason or CONTRADICTION
                    remedy = problem.remedy if reason == problem.reason else ""
                    yield replace(problem, reason=reason, remedy=remedy)

    def _places(self, problem: Problem) -> Iterator[tuple[Key | None, str | None]]:
        """Yield the names and fields under which a difference may have been refused, the nearest first."""
        name, part = problem.address.name, self.kinds[problem.address.section].part(problem.address.part)
        identity = part.identity(name) if name is not None and isinstance(part, Objects) else None
        yield from product(dict.fromkeys((name, identity, None)), dict.fromkeys((problem.field, None)))


def _place(problem: Problem) -> Hashable:
    return problem.address, problem.field


def _as_problems(changes: Iterable[Change]) -> Iterator[Problem]:
    """Yield what is left of changes: of an update, one problem for each field."""
    for change in changes:
        for field_ in change.after if isinstance(change, Update) and change.renamed_from is None else (None,):
            yield Problem(change.address, "", field_)


def _unasked(live: LiveState, missing: Iterable[Lookup]) -> LiveState:
    """Return what was read, with what nobody has looked up as unknown: accepting asks for nothing."""
    unknown = {each: Obstacle(each.target.address, UNASKED) for each in missing}
    references = {each: why for each, why in unknown.items() if isinstance(each, Reference)}
    lists = {each: why for each, why in unknown.items() if isinstance(each, Vocabulary)}
    return replace(live, ids={**live.ids, **references}, names={**live.names, **lists})


def _lines(text: str) -> list[str]:
    """Return the lines as `git` sees them: other characters that break lines may be within a text."""
    return StringIO(text).readlines()
