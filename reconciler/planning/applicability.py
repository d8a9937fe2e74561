"""Sections that a project cannot have, as the list that discovers it shows: left out, or a problem. Pure.

Nothing is read for them. Only an archived project whose section can still be read is planned, since a problem there is
one only if something would change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.model.kind import Archived, Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, Problem, SectionPlan, TargetPlan
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Address, Target
from reconciler.planning.causes import ARCHIVED, UNARCHIVE, ProjectRecord, together, unfit


@dataclass(frozen=True, slots=True)
class Unfit:
    """A section that its project cannot have.

    Attributes:
        section: the section.
        cause: why, and what to do about it.
        skipped: whether it is left out; else it is a problem.
        readable: whether only its changes are impossible.
    """

    section: Section
    cause: Obstacle
    skipped: bool
    readable: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it is read and planned all the same."""
        return self.readable and not self.skipped


UnfitSections = Mapping[tuple[Target, str], Unfit]
"""By target and section."""


def find_unfit(desired: DesiredState, kinds: Kinds) -> UnfitSections:
    """Return the sections that projects cannot have, as far as lists of projects show that."""
    return {(target.target, each.section.kind): each for target in desired.targets for each in _unfit_of(target, kinds)}


def without(desired: DesiredState, unfit_sections: UnfitSections) -> DesiredState:
    """Return the desired state without sections that are not read."""
    concerned = {target for target, _ in unfit_sections}

    def is_read(section: Section) -> bool:
        found = unfit_sections.get((section.target, section.kind))
        return found is None or found.is_read

    targets = (
        replace(target, sections=tuple(filter(is_read, target.sections))) if target.target in concerned else target
        for target in desired.targets
    )
    return replace(desired, targets=tuple(targets))


def with_unfit(plan: Plan, unfit_sections: UnfitSections, kinds: Kinds) -> Plan:
    """Return a plan with the sections that its targets cannot have, which `without` left out."""
    order = {name: number for number, name in enumerate(kinds)}
    concerned: dict[Target, list[Unfit]] = {}
    for (target, _), each in unfit_sections.items():
        concerned.setdefault(target, []).append(each)

    def told(target: TargetPlan) -> TargetPlan:
        others = concerned[target.target]
        sections = [_without_changes(each, others, kinds) for each in target.sections]
        sections += [_told(each, kinds) for each in others if not each.is_read]
        return replace(target, sections=tuple(sorted(sections, key=lambda each: order.get(each.section, -1))))

    return replace(plan, targets=tuple(told(each) if each.target in concerned else each for each in plan.targets))


def _unfit_of(target: DesiredTarget, kinds: Kinds) -> Iterator[Unfit]:
    listed = target.listed
    if listed is None:
        return
    record = ProjectRecord(archived=listed.archived, off=listed.off)
    for section in target.sections:
        needs, skipped = kinds[section.kind].needs, section.kind in listed.skipped
        causes = list(unfit(target.target.address, needs, record))
        if causes:
            yield Unfit(section, together(causes), skipped)
        elif listed.archived and needs.archived is Archived.READ_ONLY:
            archived = Obstacle(target.target.address, ARCHIVED, UNARCHIVE)
            yield Unfit(section, archived, skipped, readable=True)


def _told(each: Unfit, kinds: Kinds) -> SectionPlan:
    if each.skipped:
        return SectionPlan(each.section.kind, not_applicable=each.cause.reason)
    return SectionPlan(each.section.kind, problems=(_problem(each, kinds),))


def _without_changes(section: SectionPlan, others: list[Unfit], kinds: Kinds) -> SectionPlan:
    """Return a section with a problem instead of changes, where changes are impossible."""
    held = next((each for each in others if each.section.kind == section.section and section.changes), None)
    if held is None:
        return section
    return replace(section, changes=(), problems=(*section.problems, _problem(held, kinds)))


def _problem(each: Unfit, kinds: Kinds) -> Problem:
    section = each.section
    part = next(part for part in kinds[section.kind].parts if part.name in section.wanted)
    address = Address(section.target, section.kind, part.name, part.title)
    return Problem(address, each.cause.reason, remedy=each.cause.remedy)
