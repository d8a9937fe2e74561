"""Two plans, or two reports, compared: what is new, gone or different, and a plan without what is known already."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AwareDatetime, Field, computed_field

from reconciler.documents.checksum import DOCUMENT
from reconciler.documents.plan_file import Known, SavedPlan
from reconciler.documents.report import Report
from reconciler.model.diff import Fields, inside
from reconciler.model.plan import (
    Addressed,
    Change,
    Create,
    Delete,
    Outcome,
    Plan,
    Problem,
    SectionPlan,
    Unmanaged,
    Update,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Key, Level, Target

T = TypeVar("T", Change, Problem)

Seen = Mapping[str, int]
"""How often each fingerprint occurs."""

NOTHING: Seen = MappingProxyType({})

Item = Change | Outcome | Problem
"""What plans and reports have in their lists."""

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
    left: dict[object, list[tuple[Item, Fields]]] = defaultdict(list)
    for item in _items(old):
        left[_subject(item)].append((item, facts(item)))
    same, rest = 0, []
    for item in _items(new):
        subject, found = _subject(item), facts(item)
        equal = next((each for each in left[subject] if each[1] == found), None)
        if equal is None:
            rest.append((subject, item, found))
        else:
            left[subject].remove(equal)
            same += 1
    differences = []
    for subject, item, found in rest:
        if left[subject]:
            _, was = left[subject].pop(0)
            places = tuple(_values(was, found))
            differences.append(Difference(_address(item), item, "different", was, found, places))
        else:
            differences.append(Difference(_address(item), item, "new", None, found))
    gone = (each for kept in left.values() for each in kept)
    differences += [Difference(_address(item), item, "gone", was, None) for item, was in gone]
    words = Counter(each.news for each in differences)
    return Comparison(
        of="plan" if isinstance(new, SavedPlan) else "report",
        since=_time(old),
        until=_time(new),
        summary=News(words["new"], words["gone"], words["different"], same),
        differences=tuple(sorted(differences, key=lambda each: each.address.target.order)),
    )


def facts(each: Item) -> Fields:
    """Return what a person would compare: the values of an object now and as they will be, or why there is a problem.

    They do not depend on the requests, on where the manifests declare it, or on fields that stay as they are.
    """
    match each:
        case Outcome():
            return {**facts(each.change), "status": str(each.status), **_said(reason=each.reason)}
        case Create():
            return {"action": each.action, **_prefixed("declared", each.after), **_said(replaces_ids=each.replaces_ids)}
        case Update():
            values = {**_prefixed("live", each.before), **_prefixed("declared", each.after)}
            return {"action": each.action, **values, **_said(renamed_from=each.renamed_from)}
        case Delete():
            return {"action": each.action, **_prefixed("live", each.before), **_said(id=each.read.id)}
        case _:
            return {"reason": each.reason}


def _prefixed(word: str, fields: Fields) -> Fields:
    return {f"{word}.{name}": value for name, value in fields.items()}


def _said(**facts: Json) -> Fields:
    return {name: value for name, value in facts.items() if value}


def _items(document: SavedPlan | Report) -> Iterator[Item]:
    plan = document.plan
    yield from (plan.changes if isinstance(document, SavedPlan) else plan.outcomes)
    yield from plan.problems


def _subject(item: Item | Unmanaged) -> tuple[object, ...]:
    """Return a value that two items share if they are about the same object."""
    address = _address(item)
    sort = ("problem", item.field) if isinstance(item, Problem) else ("change", None)
    return address.target.identity, address.section, address.part, address.name, *sort


def _address(item: Item | Unmanaged) -> Address:
    return item.change.address if isinstance(item, Outcome) else item.address


def _values(before: Fields, after: Fields) -> Iterator[Place]:
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if isinstance(was, list | dict) and isinstance(now, list | dict):
            yield from (Place(name + path, *values) for path, *values in inside(was, now))
        elif was != now:
            yield Place(name, was, now)


def _time(document: SavedPlan | Report) -> AwareDatetime:
    return document.created_at if isinstance(document, SavedPlan) else document.finished_at


@dataclass(frozen=True, slots=True)
class Unseen:
    """A plan without the changes and problems that were seen before.

    Attributes:
        plan: the new ones alone, and the unmanaged objects that are new; `known` counts the others.
        gone: how many of those that were seen are no longer there.
    """

    plan: SavedPlan
    gone: int

    @property
    def is_new(self) -> bool:
        """Whether any change or problem is new."""
        return any(self.plan.plan.changes) or any(self.plan.plan.problems)

    @property
    def has_changed(self) -> bool:
        """Whether anything is new or gone."""
        return self.is_new or self.gone > 0


def fingerprint(each: Change | Problem) -> str:
    """Return a short text that two changes, or two problems, share if a person would call them equal."""
    return sha256(json.dumps([_subject(each), facts(each)], sort_keys=True).encode()).hexdigest()[:16]


def seen_in(plan: Plan) -> Counter[str]:
    """Return the fingerprints of the changes and problems of a plan."""
    return Counter(map(fingerprint, plan.changes)) + Counter(map(fingerprint, plan.problems))


def seen_before(before: SavedPlan, now: SavedPlan) -> Counter[str]:
    """Return the fingerprints of an earlier plan, as far as it is about sections that the present plan has too.

    A run of some targets or sections, or of one shard, knows nothing about the others: they are not gone.
    """
    places = {
        (target.target.identity, name)
        for target in now.targets
        for name in ("", *(section.section for section in target.sections))
    }
    items = (*before.plan.changes, *before.plan.problems)
    return Counter(
        fingerprint(each) for each in items if (each.address.target.identity, each.address.section) in places
    )


def unmanaged_in(plan: Plan) -> Counter[str]:
    """Return the fingerprints of the unmanaged objects of a plan."""
    return Counter(map(_object, plan.unmanaged))


def _object(each: Unmanaged) -> str:
    return json.dumps([_subject(each), each.id])


def unseen(saved: SavedPlan, seen: Seen, unmanaged: Seen = NOTHING) -> Unseen:
    """Compare a plan with what was seen before; of equal changes, so many are known as were seen.

    Args:
        saved: the plan.
        seen: the fingerprints of changes and problems.
        unmanaged: those of unmanaged objects.
    """
    left, there = Counter(seen), Counter(unmanaged)

    def fresh(found: Iterable[T]) -> tuple[T, ...]:
        return tuple(each for each in found if not _take(left, fingerprint(each)))

    def narrowed(section: SectionPlan) -> SectionPlan:
        others = tuple(each for each in section.unmanaged if not _take(there, _object(each)))
        return replace(section, changes=fresh(section.changes), problems=fresh(section.problems), unmanaged=others)

    targets = tuple(
        replace(target, sections=tuple(narrowed(section) for section in target.sections)) for target in saved.targets
    )
    created = {change.address.section for target in targets for change in target.changes if change.action == "create"}
    hints = tuple(hint for hint in saved.hints if hint.section in created)
    plan = replace(saved, targets=targets, hints=hints)
    now, new = saved.summary, plan.summary
    changes = sum(1 for _ in saved.plan.changes) - sum(1 for _ in plan.plan.changes)
    known = Known(
        changes,
        now.problems - new.problems,
        changed=_places(saved.plan.changes) - _places(plan.plan.changes),
        troubled=_places(saved.plan.problems) - _places(plan.plan.problems),
        unmanaged=now.unmanaged - new.unmanaged,
    )
    return Unseen(replace(plan, known=known), left.total())


def _places(entries: Iterable[Change | Problem]) -> frozenset[tuple[Target, str]]:
    return frozenset((each.address.target, each.address.section) for each in entries)


def _take(left: Counter[str], mark: str) -> bool:
    """Take one of the known ones, if there is one left."""
    found = left[mark] > 0
    left[mark] -= found
    return found
