"""A plan, as a value: what would be changed and by which requests, what cannot be, and what stays as it is.

A plan is complete: every change carries its requests, so its cost is known before it starts, and what cannot be done is
in it as a problem. `engine.compare` makes the list of each target, and `engine.apply` carries it out: a report is the
same list, in which an outcome stands for each change. Begin with `TargetPlan`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.model.codes import code_of
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Item,
    Outcome,
    Status,
    Update,
    change_in,
    changes_in,
    section_of,
)
from reconciler.model.state import Lookup, Reference, Section
from reconciler.model.targets import Address, Target

Step = Change | Finding | Lookup
"""One result of planning. A lookup is what must be asked for before its object can be planned."""


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """One section of a target, for `engine.apply` alone: the rewrite deletes it."""

    section: str
    found: int = 0
    changes: tuple[Change, ...] = ()
    outcomes: tuple[Outcome, ...] = field(default=(), kw_only=True)
    findings: tuple[Finding, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Declared settings that cannot be planned."""
        return tuple(finding for finding in self.findings if finding.code == "problem")


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target: what a plan does there and says of it, as a list; or what became of it."""

    target: Target
    found: Mapping[str, int] = field(default_factory=dict)
    """Its declared sections, in the order in which they are applied: how many objects each held when it was read."""
    items: tuple[Item, ...] = ()
    """By section: changes in the order in which they are carried out, or what became of them, and what is said."""
    origin: str = ""
    """Its manifest, as path:line."""
    exceptions: tuple[DeclaredException, ...] = ()
    """The exceptions of its document, expired ones included."""
    path: str | None = None
    """Its full path, where its manifest gives the ID and the path is known; else null."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels, from `metadata.labels` of its document and of the sets that select it."""
    importing: bool = False
    """Whether an import is to fill it, one that is under way or that the creation starts: `apply` waits for its end."""
    arriving: str = ""
    """The group, this one or one above it, that an archive may still fill: `apply` waits before it creates there."""
    lookups: frozenset[Lookup] = frozenset()
    """What must be asked for before the rest of it can be planned; none in a plan that is shown."""

    def of(self, section: str) -> tuple[Item, ...]:
        """Return the items of a section; of the empty name, those about the target itself."""
        return tuple(item for item in self.items if section_of(item) == section)

    def only(self, sections: Collection[str]) -> "TargetPlan":
        """Return the target without its other sections."""
        numbers = {name: number for name, number in self.found.items() if name in sections}
        return replace(self, found=numbers, items=tuple(item for item in self.items if section_of(item) in sections))

    @property
    def sections(self) -> tuple[SectionPlan, ...]:
        """The target, section by section."""
        return tuple(self._section(name) for name in self.found)

    def _section(self, name: str) -> SectionPlan:
        own = TargetPlan(self.target, {}, self.of(name))
        return SectionPlan(name, self.found[name], own.changes, own.findings, outcomes=own.outcomes)

    def with_sections(self, sections: Iterable[SectionPlan]) -> "TargetPlan":
        """Return the target with other sections."""
        sections = tuple(sections)
        items = (
            item
            for section in sections
            for item in (*section.outcomes, *section.changes[len(section.outcomes) :], *section.findings)
        )
        return replace(self, found={section.section: section.found for section in sections}, items=tuple(items))

    @property
    def creation(self) -> Create | None:
        """The creation of the target itself; None if it exists, or cannot be created."""
        return next((made for made in self.changes if isinstance(made, Create) and not made.address.section), None)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in the order in which they are carried out."""
        return tuple(changes_in(self.items))

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes of the changes; empty before they were begun."""
        return tuple(item for item in self.items if isinstance(item, Outcome))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is said."""
        return tuple(item for item in self.items if isinstance(item, Finding))

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Declared settings that cannot be planned."""
        return self.said("problem")

    def said(self, code: str) -> tuple[Finding, ...]:
        """Return the findings that have a code."""
        return tuple(item for item in self.items if isinstance(item, Finding) and item.code == code)

    @property
    def in_order(self) -> bool:
        """Whether all its changes are done and nothing of it is a problem."""
        return not self.problems and all(outcome.status is Status.DONE for outcome in self.outcomes)

    def saying(self, *findings: Finding) -> "TargetPlan":
        """Return the target with more that is said of it, also in sections that it did not have."""
        if not findings:
            return self
        numbers = dict(self.found)
        for finding in findings:
            numbers.setdefault(finding.address.section, 0)
        return replace(self, found=numbers, items=_arranged(numbers, (*self.items, *findings)))

    def with_changes(self, become: Callable[[Change], Item | None]) -> "TargetPlan":
        """Return the target with something else in the place of each change; None drops it."""
        items = (item if (change := change_in(item)) is None else become(change) for item in self.items)
        return replace(self, items=tuple(item for item in items if item is not None))

    def with_outcomes(self, outcomes: Iterable[Outcome]) -> "TargetPlan":
        """Return the target with the outcomes of its changes, in their order; of the rest nothing is known yet."""
        rest = iter(outcomes)
        return self.with_changes(lambda change: next(rest, change))

    def with_origins(self, origin: Callable[[Address, str | None], str]) -> "TargetPlan":
        """Return the plan with the origins of changes, problems and remarks.

        A problem of all of it is where its document is.
        """

        def placed(item: Item) -> Item:
            match item:
                case Finding():
                    return self._placed(item, origin)
                case Create() | Update() | Delete():
                    place = _ended(item) or origin(item.address, _only_field(item)) or item.origin
                    return replace(item, origin=place)
            return item

        return replace(self, items=tuple(map(placed, self.items)))

    def _placed(self, finding: Finding, origin: Callable[[Address, str | None], str]) -> Finding:
        """Return what is said with its place, if its code has one: of a problem of all of it, that of its document."""
        if finding.code == "problem":
            place = origin(finding.address, finding.field) if finding.address.section else ""
            return replace(finding, origin=place or self.origin)
        if finding.where and not code_of(finding.code).own_form:
            return replace(finding, origin=origin(finding.where, finding.field) or finding.origin)
        return finding


def _arranged(sections: Iterable[str], items: Iterable[Item]) -> tuple[Item, ...]:
    """Return items by section, of each first what it does and then what is said; names decide nothing."""
    places = {name: place for place, name in enumerate(sections)}
    return tuple(sorted(items, key=lambda item: (places[section_of(item)], isinstance(item, Finding))))


def _ended(change: Change) -> str:
    """Return until when something was declared, where that is the reason of its deletion."""
    return change.origin if isinstance(change, Delete) else ""


def _only_field(change: Change) -> str | None:
    """Return the field that a change is about; None if there are several, or none."""
    fields = [*change.after] if isinstance(change, Update) else []
    return fields[0] if len(fields) == 1 else None


def in_order_of_actions(steps: Iterable[Step]) -> tuple[Change, ...]:
    """Return the changes among some steps: creations, then updates, then deletions.

    So nothing is unprotected in between.
    """
    changes = [step for step in steps if isinstance(step, Create | Update | Delete)]
    return tuple(sorted(changes, key=lambda change: ACTIONS.index(change.action)))


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes and problems of all targets.

    Attributes:
        targets: users, then groups, then projects.
        dependent: sections to be read and planned again after the groups above them were changed.
        whole: sections whose change sends fields that nobody declared: read and planned again right before it. A saved
            plan is without them, for what it changes is read again anyway, and must not have moved.
        ids: the numeric IDs of targets that are named by path, as far as answers told them. A saved plan is without
            them: it is no credential, and an ID in it might be that of another project.
    """

    targets: tuple[TargetPlan, ...]
    dependent: tuple[Section, ...] = ()
    whole: tuple[Section, ...] = field(default=(), compare=False)
    ids: Mapping[Reference, int] = field(default_factory=dict, compare=False)

    @property
    def changes(self) -> Iterator[Change]:
        """All changes of all targets."""
        return (change for target in self.targets for change in target.changes)

    @property
    def problems(self) -> Iterator[Finding]:
        """All problems of all targets."""
        return self.said("problem")

    def said(self, code: str) -> Iterator[Finding]:
        """Yield the findings of all targets that have a code."""
        return (finding for target in self.targets for finding in target.said(code))

    @property
    def lookups(self) -> frozenset[Lookup]:
        """What must be asked for before the rest can be planned."""
        return frozenset(lookup for target in self.targets for lookup in target.lookups)

    @property
    def cost(self) -> int:
        """How many requests the changes take."""
        return sum(len(change.requests) for change in self.changes)

    def with_findings(self, findings: Iterable[Finding]) -> "Plan":
        """Return the plan with more that is said of its targets."""
        said: dict[Target, list[Finding]] = {}
        for finding in findings:
            said.setdefault(finding.address.target, []).append(finding)
        targets = (target.saying(*said.get(target.target, ())) for target in self.targets)
        return replace(self, targets=tuple(targets)) if said else self
