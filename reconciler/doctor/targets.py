"""The targets: each section as it was read, and the record of a target only where that would tell something more.

Whoever could read what only its writers can read could write it: no more need be asked. What a refusal comes from, and
whether the rest can be written, the record tells.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.doctor.findings import Access, Finding, SectionState, ServiceCheck, TargetState, Verdict
from reconciler.errors import NotFound, ServiceError
from reconciler.live.read import side_by_side
from reconciler.model.kind import Archived, Kinds
from reconciler.model.plan import Plan, Problem, TargetPlan
from reconciler.model.protocols import Reader
from reconciler.model.state import Cause, DesiredState, DesiredTarget, LiveState, Section, Unreadable
from reconciler.model.targets import Address, Level, Target
from reconciler.planning.causes import (
    ARCHIVED,
    REFUSALS,
    UNKNOWN,
    Caller,
    ProjectRecord,
    not_found,
    read_record,
    record_would_tell,
    role_missing,
    role_name,
    why_absent,
    why_unread,
)

NOTHING = Cause("", "")

Told = ProjectRecord | ServiceError | Cause
"""The record of a target, or why there is none; or why nothing of it is visible."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What is to be found out, and what is known already.

    Attributes:
        plan: for these targets, with its problems.
        moved: where projects are that have moved, and that are not to be written to.
        read_only: whether nothing is to be written.
    """

    desired: DesiredState
    live: LiveState
    plan: Plan
    kinds: Kinds
    front: ServiceCheck
    moved: Mapping[Target, str]
    read_only: bool

    @property
    def caller(self) -> Caller:
        """Whose token it is."""
        token = self.front.token
        return Caller(token.owner, token.admin, self.front.enterprise)

    @property
    def writing(self) -> bool:
        """Whether something may be written at all."""
        return not self.read_only and self.front.token.writes is not Access.NO

    def unread(self, section: Section) -> list[Unreadable]:
        """Return why parts of a section could not be read."""
        parts = [self.live.parts[section.target, section.kind, part] for part in section.wanted]
        return [part for part in parts if isinstance(part, Unreadable)]


def look_at_targets(question: CheckContext, reader: Reader, concurrency: int) -> tuple[TargetState, ...]:
    """Tell what can be read and written of each section of each target.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    unseen = {target.target: target for target in question.desired.targets if _is_unseen(target, question)}
    hidden = {scope for scope, target in unseen.items() if _would_be_seen(target, question)}
    scopes = [
        target.target
        for target in question.desired.targets
        if target.target in hidden or _record_would_tell(target, question)
    ]

    def ask(scope: Target) -> Told:
        if scope in hidden:
            return why_absent(scope, reader, question.caller)
        record = read_record(scope, reader, question.caller)
        return not_found(question.caller) if isinstance(record, NotFound) and scope in unseen else record

    told = dict(zip(scopes, side_by_side(ask, scopes, concurrency), strict=True))
    return tuple(
        _look_at(target, planned, told.get(target.target), question)
        for target, planned in zip(question.desired.targets, question.plan.targets, strict=True)
    )


def _is_unseen(target: DesiredTarget, question: CheckContext) -> bool:
    """Whether nothing of a target is there to be read."""
    unread = [(len(section.wanted), question.unread(section)) for section in target.sections]
    return bool(unread) and all(len(parts) == many and all(each.absent for each in parts) for many, parts in unread)


def _would_be_seen(target: DesiredTarget, question: CheckContext) -> bool:
    """Whether something of a group or a project would be there if it were visible, whatever the service's edition."""
    licensed = all(question.kinds[section.kind].needs.licensed for section in target.sections)
    return target.target.level is not Level.USER and not (licensed and not question.front.enterprise)


def _record_would_tell(target: DesiredTarget, question: CheckContext) -> bool:
    """Whether the record is worth a request: a refusal is to be explained, or reading tells nothing of writing."""
    refused = [
        question.kinds[section.kind].needs
        for section in target.sections
        if any(part.status in REFUSALS for part in question.unread(section))
    ]
    if record_would_tell(target.target, refused):
        return True
    open_to_readers = (not question.kinds[section.kind].needs.same_to_read for section in target.sections)
    return question.writing and target.target not in question.moved and any(open_to_readers)


def _look_at(target: DesiredTarget, planned: TargetPlan, told: Told | None, question: CheckContext) -> TargetState:
    whole = _fault_of_target(target, told, question)
    sections = tuple(_look_at_section(section, planned, told, whole, question) for section in target.sections)
    return TargetState(target.target, target.origin, (whole,) if whole else (), sections)


def _fault_of_target(target: DesiredTarget, told: Told | None, question: CheckContext) -> Finding | None:
    """Say what is wrong with a target as a whole: nobody can see it, or it has moved."""
    level = str(target.target.level)
    if target.target in question.moved:
        said = f"has moved to {question.moved[target.target]}"
        verdict = Verdict.WARNING if question.read_only else Verdict.ERROR
        return Finding(verdict, level, said, "name it so in the manifest, or write to it with --follow-moved")
    if isinstance(told, Cause):
        return Finding(Verdict.ERROR, level, told.reason, told.remedy)
    return None


def _look_at_section(
    section: Section, planned: TargetPlan, told: Told | None, whole: Finding | None, question: CheckContext
) -> SectionState:
    unread = question.unread(section)
    if unread:
        write = Access.UNASKED if question.read_only else Access.NO
        record = told if isinstance(told, ProjectRecord) else UNKNOWN
        needs = question.kinds[section.kind].needs
        why = NOTHING if whole else why_unread(unread[0], section.target, needs, record, question.caller)
        return SectionState(section.kind, Access.NO, write, why.reason, why.remedy)
    write, why = _writing(section, told, question)
    return SectionState(section.kind, Access.YES, write, why.reason, why.remedy, tuple(_problems(section, planned)))


def _writing(section: Section, told: Told | None, question: CheckContext) -> tuple[Access, Cause]:
    """Tell whether what was read could be written."""
    token, needs = question.front.token, question.kinds[section.kind].needs
    if question.read_only:
        return Access.UNASKED, NOTHING
    if section.target in question.moved:
        return Access.NO, NOTHING
    if token.writes is Access.NO:
        return Access.NO, Cause("the token may only read", "use one with the scope api, or ask with --read-only")
    if not needs.same_to_read:
        hindrance = _hindrance_of_writers(section, told, question)
        if hindrance is not None:
            return hindrance
    if token.writes is Access.UNKNOWN:
        return Access.UNKNOWN, Cause("what the token may do is not told", "")
    return Access.YES, NOTHING


def _hindrance_of_writers(section: Section, told: Told | None, question: CheckContext) -> tuple[Access, Cause] | None:
    """Say what keeps whoever can read from writing as well, or that nobody can tell."""
    needs = question.kinds[section.kind].needs
    if not isinstance(told, ProjectRecord):
        return Access.UNKNOWN, Cause(f"the project's record cannot be read: {told}", "")
    if told.archived and needs.archived is Archived.READ_ONLY:
        return Access.NO, ARCHIVED
    if told.role is not None and told.role < needs.roles[section.target.level]:
        return Access.NO, role_missing(needs, section.target.level, told, question.caller)
    if told.role is None:
        needed = role_name(needs.roles[section.target.level])
        return Access.UNKNOWN, Cause(f"the service does not tell {question.caller}'s role; {needed} is needed", "")
    if told.archived is None:
        return Access.UNKNOWN, Cause("the service does not tell whether the project is archived", "")
    return None


def _problems(section: Section, planned: TargetPlan) -> Iterator[Finding]:
    """Yield what else a plan could not do in a section that can be read."""
    for each in planned.sections:
        if each.section == section.kind:
            yield from map(_problem, each.problems)


def _problem(problem: Problem) -> Finding:
    field = f".{problem.field}" if problem.field else ""
    about = f"{_called(problem.address)}{field}"
    return Finding(Verdict.ERROR, about, problem.reason, problem.remedy)


def _called(address: Address) -> str:
    if address.name is None:
        return address.title
    return f'{address.title} "{address.name}"' if isinstance(address.name, str) else f"{address.title} {address.name}"
