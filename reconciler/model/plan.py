"""A plan, as a value: what would be changed and by which requests, what cannot be, and what stays as it is.

A plan is complete: every change carries its requests, so its cost is known before it starts, and what cannot be done is
in it as a problem. `planning` makes it, and `apply` carries it out: a report is the plan with the outcomes of its
changes. `document.tree` makes both a flat list of items, and back: the engine's issue ends this tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from reconciler.model.codes import code_of
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Change, Create, Delete, Finding, Outcome, Status, Update
from reconciler.model.state import Lookup, Reference, Section
from reconciler.model.targets import Address, Target

Step = Change | Finding | Lookup
"""One result of planning. A lookup is what must be asked for before its object can be planned."""


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """One section of one target: its changes, or what became of them, and its problems."""

    section: str
    """The section's name; empty for what is about the target itself: its creation, and problems of all of it."""
    found: int = 0
    """How many objects the section held when it was read."""
    changes: tuple[Change, ...] = ()
    """Creations, then updates, then deletions, so that nothing is ever unprotected in between."""
    outcomes: tuple[Outcome, ...] = field(default=(), kw_only=True)
    """One for each change, in the order of the plan."""
    findings: tuple[Finding, ...] = ()
    """What is said of it: what cannot be planned, what is left out, and what stays."""
    lookups: frozenset[Lookup] = frozenset()
    """What must be asked for before the rest of the section can be planned; none in a plan that is shown."""

    def said(self, code: str) -> Iterator[Finding]:
        """Yield the findings that have a code."""
        return (finding for finding in self.findings if finding.code == code)

    @property
    def problems(self) -> Iterator[Finding]:
        """Declared settings that cannot be planned."""
        return self.said("problem")

    def saying(self, *findings: Finding) -> "SectionPlan":
        """Return the section with more that is said of it."""
        return replace(self, findings=(*self.findings, *findings)) if findings else self


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target: its changes, or what became of them, and its problems."""

    target: Target
    sections: tuple[SectionPlan, ...]
    """Its declared sections, in the order in which they are applied."""
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

    @property
    def creation(self) -> Create | None:
        """The creation of the target itself; None if it exists, or cannot be created."""
        return next(
            (change for change in self.changes if change.action == "create" and not change.address.section), None
        )

    @property
    def changes(self) -> Iterator[Change]:
        """All changes, in the order in which they are carried out."""
        return (change for section in self.sections for change in section.changes)

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes of the changes; empty before they were begun."""
        return (outcome for section in self.sections for outcome in section.outcomes)

    @property
    def problems(self) -> Iterator[Finding]:
        """All problems."""
        return (problem for section in self.sections for problem in section.problems)

    @property
    def in_order(self) -> bool:
        """Whether all its changes are done and nothing of it is a problem."""
        return not any(self.problems) and all(outcome.status is Status.DONE for outcome in self.outcomes)

    @property
    def unmanaged(self) -> Iterator[Finding]:
        """All live objects that stay as they are because no manifest mentions them."""
        return (step for section in self.sections for step in section.said("unmanaged"))

    @property
    def excepted(self) -> Iterator[Finding]:
        """All changes that exceptions hold back."""
        return (step for section in self.sections for step in section.said("excepted"))

    @property
    def findings(self) -> Iterator[Finding]:
        """Whatever else is said."""
        return (finding for section in self.sections for finding in section.findings)

    @property
    def lookups(self) -> frozenset[Lookup]:
        """What must be asked for before the rest of it can be planned."""
        return frozenset(lookup for section in self.sections for lookup in section.lookups)

    @property
    def not_applicable(self) -> Iterator[SectionPlan]:
        """The sections that the target cannot have."""
        return (section for section in self.sections if any(section.said("not_applicable")))

    def with_outcomes(self, outcomes: Iterable[Outcome]) -> "TargetPlan":
        """Return the target with the outcomes of its changes, given in their order."""
        rest = iter(outcomes)
        sections = (replace(section, outcomes=tuple(islice(rest, len(section.changes)))) for section in self.sections)
        return replace(self, sections=tuple(sections))

    def with_origins(self, origin: Callable[[Address, str | None], str]) -> "TargetPlan":
        """Return the plan with the origins of changes, problems and remarks.

        A problem of all of it is where its document is.
        """
        sections = (
            replace(
                section,
                changes=tuple(
                    replace(
                        change, origin=_ended(change) or origin(change.address, _only_field(change)) or change.origin
                    )
                    for change in section.changes
                ),
                findings=tuple(self._placed(finding, origin) for finding in section.findings),
            )
            for section in self.sections
        )
        return replace(self, sections=tuple(sections))

    def _placed(self, finding: Finding, origin: Callable[[Address, str | None], str]) -> Finding:
        """Return what is said with its place, if its code has one: of a problem of all of it, that of its document."""
        if finding.code == "problem":
            place = origin(finding.address, finding.field) if finding.address.section else ""
            return replace(finding, origin=place or self.origin)
        if finding.where and not code_of(finding.code).own_form:
            return replace(finding, origin=origin(finding.where, finding.field) or finding.origin)
        return finding


def _ended(change: Change) -> str:
    """Return until when something was declared, where that is the reason of its deletion."""
    return change.origin if isinstance(change, Delete) else ""


def _only_field(change: Change) -> str | None:
    """Return the field that a change is about; None if there are several, or none."""
    fields = [*change.after] if isinstance(change, Update) else []
    return fields[0] if len(fields) == 1 else None


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
        return (problem for target in self.targets for problem in target.problems)

    @property
    def unmanaged(self) -> Iterator[Finding]:
        """All unmanaged objects of all targets."""
        return (step for target in self.targets for step in target.unmanaged)

    @property
    def excepted(self) -> Iterator[Finding]:
        """All changes that exceptions hold back."""
        return (step for target in self.targets for step in target.excepted)

    @property
    def lookups(self) -> frozenset[Lookup]:
        """What must be asked for before the rest can be planned."""
        return frozenset(lookup for target in self.targets for lookup in target.lookups)

    @property
    def cost(self) -> int:
        """How many requests the changes take."""
        return sum(len(change.requests) for change in self.changes)

    def with_findings(self, findings: Iterable[Finding]) -> "Plan":
        """Return the plan with more that is said of its sections."""
        said: dict[tuple[Target, str] | None, list[Finding]] = {}
        for finding in findings:
            place = (finding.where.target, finding.where.section) if finding.where else None
            said.setdefault(place, []).append(finding)
        if not said:
            return self
        targets = (
            replace(
                target,
                sections=tuple(
                    replace(section, findings=(*section.findings, *said.get((target.target, section.section), ())))
                    for section in target.sections
                ),
            )
            for target in self.targets
        )
        return replace(self, targets=tuple(targets))
