"""Two plans, or two reports, compared: what is new, gone or different, and a plan without what is known already."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AwareDatetime, Field, computed_field

from reconciler.documents.checksum import DOCUMENT
from reconciler.documents.ledger import Item, Line, Subject, fingerprint, ledger
from reconciler.documents.plan_file import BaselineShare, SavedPlan
from reconciler.documents.report import Report
from reconciler.model.diff import Fields, inside
from reconciler.model.plan import (
    Addressed,
    Change,
    Plan,
    Problem,
    SectionPlan,
    Unmanaged,
    WidenedObject,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Key, Level, Target

T = TypeVar("T", Change, Problem, Unmanaged, WidenedObject)

Fingerprints = Mapping[str, int]
"""How often each fingerprint occurs."""

NO_FINGERPRINTS: Fingerprints = MappingProxyType({})

FORMAT: Final = "reconciler.comparison/v1"


@dataclass(frozen=True, slots=True)
class Place:
    """One value that differs."""

    path: str
    """Where, such as `live.due_date` or `status`."""
    before: Json
    """The value in the older document; null for none."""
    after: Json
    """The value in the newer document; null for none."""


@dataclass(frozen=True, slots=True)
class Difference(Addressed):
    """A change, an outcome or a problem that only one of two documents has, or that differs between them."""

    address: Annotated[Address, Field(exclude=True)]
    item: Annotated[Item, Field(exclude=True)]
    """It, as the newer document has it, or as the older one had it."""
    news: Literal["new", "gone", "different"]
    """Whether only the newer document has it, only the older one, or both, with other values."""
    before: Fields | None
    """How it was; null if it is new. Its keys are `action`, `live.NAME` and `declared.NAME` for a field, and so on."""
    after: Fields | None
    """How it is; null if it is gone."""
    places: tuple[Place, ...] = ()
    """The values that differ, if both documents have it."""

    @computed_field
    @property
    def level(self) -> Level:
        """The level of its target."""
        return self.address.target.level

    @computed_field
    @property
    def ref(self) -> Key | None:
        """The target's full path or numeric ID; null for the instance and for the user behind the token."""
        return self.address.target.ref

    @computed_field
    @property
    def section(self) -> str:
        """The section's name; empty for what is about the target itself: its creation, and problems of all of it."""
        return self.address.section


@dataclass(frozen=True, slots=True)
class News:
    """The result of a comparison in numbers."""

    new: int
    """How many changes or problems only the newer document has."""
    gone: int
    """How many only the older one has."""
    different: int
    """How many differ."""
    same: int
    """How many are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes between two saved plans, or between two reports."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.comparison/v1"] = FORMAT
    """The format of this document."""
    of: Literal["plan", "report"]
    """The documents compared."""
    since: AwareDatetime
    """When the older plan was made, or the older apply ended, UTC."""
    until: AwareDatetime
    """When the newer plan was made, or the newer apply ended, UTC."""
    summary: News
    """The result in numbers."""
    differences: tuple[Difference, ...]
    """By target: the instance, then the user, then groups, then projects."""


def compare(old: SavedPlan | Report, new: SavedPlan | Report) -> Comparison:
    """Return what has changed between two plans, or between two reports.

    Changes, and problems, of the same object are compared with each other; equal ones first, where several are about
    objects of one name.
    """
    left: dict[Subject, list[Line]] = defaultdict(list)
    for line in ledger(old.targets):
        left[line.subject].append(line)
    same, others = 0, []
    for line in ledger(new.targets):
        equal = next((earlier for earlier in left[line.subject] if earlier.facts == line.facts), None)
        if equal is None:
            others.append(line)
        else:
            left[line.subject].remove(equal)
            same += 1
    differences = [_difference(line, left[line.subject].pop(0) if left[line.subject] else None) for line in others]
    gone = (line for lines in left.values() for line in lines)
    differences += [Difference(line.address, line.item, "gone", line.facts, None) for line in gone]
    words = Counter(difference.news for difference in differences)
    return Comparison(
        of="plan" if isinstance(new, SavedPlan) else "report",
        since=_time(old),
        until=_time(new),
        summary=News(words["new"], words["gone"], words["different"], same),
        differences=tuple(sorted(differences, key=lambda difference: difference.address.target.order)),
    )


def _difference(line: Line, earlier: Line | None) -> Difference:
    if earlier is None:
        return Difference(line.address, line.item, "new", None, line.facts)
    places = tuple(_values(earlier.facts, line.facts))
    return Difference(line.address, line.item, "different", earlier.facts, line.facts, places)


def _values(before: Fields, after: Fields) -> Iterator[Place]:
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if isinstance(was, list | dict) and isinstance(now, list | dict):
            yield from (Place(name + path, *values) for path, *values in inside(was, now))
        elif was != now:
            yield Place(name, was, now)


def _time(document: SavedPlan | Report) -> AwareDatetime:
    return document.created_at if isinstance(document, SavedPlan) else document.finished_at


def seen_before(before: SavedPlan, now: SavedPlan) -> Counter[str]:
    """Return the fingerprints of an earlier plan, as far as it is about sections that the present plan has too.

    A run of some targets or sections, or of one shard, knows nothing about the others: they are not gone.
    """
    places = {
        (target.target.identity, name)
        for target in now.targets
        for name in ("", *(section.section for section in target.sections))
    }
    lines = (line for line in ledger(before.targets) if (line.address.target.identity, line.address.section) in places)
    return Counter(line.mark for line in lines)


def left_alone_in(plan: Plan) -> Counter[str]:
    """Return the fingerprints of the objects that a plan names and does not change."""
    marks = Counter(map(fingerprint, plan.unmanaged))
    for target in plan.targets:
        marks.update(map(fingerprint, target.widened))
    return marks


def news_of(saved: SavedPlan, seen: Fingerprints, left_alone: Fingerprints = NO_FINGERPRINTS) -> SavedPlan:
    """Return what is new in a plan; its `known` counts the rest. Of equal changes, so many are known as were seen.

    Args:
        saved: the plan.
        seen: the fingerprints of changes and problems.
        left_alone: those of objects that are named and not changed.
    """
    left, alone = Counter(seen), Counter(left_alone)

    def narrowed(section: SectionPlan) -> SectionPlan:
        return replace(
            section,
            changes=_without(section.changes, left),
            problems=_without(section.problems, left),
            unmanaged=_without(section.unmanaged, alone),
            widened=_without(section.widened, alone),
        )

    targets = tuple(
        replace(target, sections=tuple(narrowed(section) for section in target.sections)) for target in saved.targets
    )
    created = {change.address.section for target in targets for change in target.changes if change.action == "create"}
    hints = tuple(hint for hint in saved.hints if hint.section in created)
    plan = replace(saved, targets=targets, hints=hints)
    now, new = saved.summary, plan.summary
    changes = sum(1 for _ in saved.plan.changes) - sum(1 for _ in plan.plan.changes)
    known = BaselineShare(
        changes,
        now.problems - new.problems,
        changed=_places(saved.plan.changes) - _places(plan.plan.changes),
        troubled=_places(saved.plan.problems) - _places(plan.plan.problems),
        unmanaged=now.unmanaged - new.unmanaged,
        gone=left.total(),
    )
    return replace(plan, known=known)


def _places(entries: Iterable[Change | Problem]) -> frozenset[tuple[Target, str]]:
    return frozenset((entry.address.target, entry.address.section) for entry in entries)


def _without(items: Iterable[T], known: Counter[str]) -> tuple[T, ...]:
    """Return the items that are not known; each that is known is taken from these."""
    new = []
    for item in items:
        mark = fingerprint(item)
        if known[mark] > 0:
            known[mark] -= 1
        else:
            new.append(item)
    return tuple(new)
