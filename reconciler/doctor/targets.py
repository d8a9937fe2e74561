"""The targets: whether each section can be read and written. Begin with `check_targets`.

A section that only its writers can read needs no further request. The record of a target is read only if it explains a
refusal, or shows whether other sections can be written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.document.diagnosis import DoctorFinding, Permission, SectionState, ServiceCheck, TargetState, Verdict
from reconciler.engine.compare.selection import restrict
from reconciler.engine.crew import ask_each
from reconciler.engine.planned import Planned
from reconciler.engine.why import (
    NO_RECORD,
    REFUSALS,
    ProjectRecord,
    RefusedAccess,
    absence_obstacle,
    not_found,
    omission_remedy,
    read_membership,
    read_obstacle,
    read_record,
    record_explains,
    role_name,
)
from reconciler.errors import NotFound, ServiceError
from reconciler.manifests import Manifests
from reconciler.model.caller import Caller
from reconciler.model.codes import code_of
from reconciler.model.creation import ToCreate
from reconciler.model.item import Finding
from reconciler.model.kind import Needs
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Reader
from reconciler.model.state import DesiredTarget, LiveState, Section
from reconciler.model.targets import Level, Target

Record = ProjectRecord | ServiceError | Obstacle
"""The record of a target, the error of reading it, or the obstacle that hides the whole target."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The targets of a check, and the facts known before it.

    Attributes:
        checked: their plan and live state; see `engine.plan.checked`.
        service: the service and the token.
        plan: for these targets, with its problems.
        moved: the moved projects, which are not written to, each with the reason.
        read_only: whether only reading is checked.
    """

    checked: Planned
    service: ServiceCheck
    plan: Plan
    moved: Mapping[Target, Obstacle]
    read_only: bool

    @property
    def targets(self) -> tuple[DesiredTarget, ...]:
        """The targets."""
        return self.checked.declared.desired.targets

    @property
    def live(self) -> LiveState:
        """The live state of the targets."""
        return self.checked.live

    @property
    def caller(self) -> Caller:
        """The owner of the token."""
        return replace(self.service.token.caller, enterprise=self.service.enterprise)

    def needs(self, section: Section) -> Needs:
        """Return the needs of a section for reading and writing."""
        return self.checked.run.kinds[section.kind].needs


def context_of(checked: Planned, service_check: ServiceCheck, *, read_only: bool) -> CheckContext:
    """Return the context of a check of the targets of a run.

    Args:
        checked: their plan and live state; see `engine.plan.checked`.
        service_check: the service and the token.
        read_only: whether only reading is checked.
    """
    moved = {
        obstacle.where.target: obstacle
        for obstacle in checked.obstacles
        if obstacle.where.target in checked.roster.moves and not obstacle.where.section
    }
    failed = checked.run.scope.failed
    plan = checked.plan if failed is None else restrict(checked.plan, failed)
    return CheckContext(checked, service_check, plan, moved, read_only)


def check_targets(context: CheckContext) -> tuple[TargetState, ...]:
    """Return the permissions to read and to write each section of each target.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    unseen = {target.target: target for target in context.targets if context.live.shows_nothing_of(target)}
    hidden = {target for target, desired in unseen.items() if _is_visible_if_it_exists(desired, context)}
    explained = {target.target for target in context.targets if _needs_record(target, context)}
    writing = {target.target for target in context.targets if _needs_role(target, context)}
    asked = [target.target for target in context.targets if target.target in hidden | explained | writing]

    def ask(target: Target, reader: Reader) -> Record:
        if target in hidden:
            return absence_obstacle(target, reader, lambda: context.caller)
        if target.level is Level.GROUP and target not in explained:
            return read_membership(target, reader, context.caller)
        record = read_record(target, reader, context.caller)
        return not_found(target, context.caller) if isinstance(record, NotFound) and target in unseen else record

    records = ask_each(ask, asked, context.checked.roster)
    return tuple(
        _check(target, planned, records.get(target.target), context)
        for target, planned in zip(context.targets, context.plan.targets, strict=True)
    )


def check_lists(manifests: Manifests) -> Iterator[DoctorFinding]:
    """Yield a finding for each group whose projects cannot be listed."""
    groups = {group.obstacle.where: group for group in reversed(manifests.unlisted)}
    for group in groups.values():
        yield DoctorFinding(
            Verdict.ERROR, "manifests", f"{group.origin}: {group.obstacle.reason}", group.obstacle.remedy
        )


def _is_visible_if_it_exists(target: DesiredTarget, context: CheckContext) -> bool:
    """Return whether some section of an existing group or project would be visible, in any edition of the service."""
    licensed = all(context.needs(section).licensed for section in target.sections)
    return target.target.ref is not None and not (licensed and not context.service.enterprise)


def _needs_record(target: DesiredTarget, context: CheckContext) -> bool:
    """Return whether the record can explain a refusal, so that it is worth a request."""
    if target.target.identity in context.live.absent:
        return False
    refused = [
        context.needs(section)
        for section in target.sections
        if any(part.status in REFUSALS for part in context.live.unread(section).values())
    ]
    return record_explains(target.target, refused)


def _needs_role(target: DesiredTarget, context: CheckContext) -> bool:
    """Return whether the role is worth a request: not everybody who can read may write."""
    if target.target.identity in context.live.absent or target.target in context.moved:
        return False
    writing = not context.read_only and context.service.token.writes is not Permission.NO
    return writing and any(target.target.level in context.needs(section).readers for section in target.sections)


def _check(
    target: DesiredTarget, planned: TargetPlan, target_record: Record | None, context: CheckContext
) -> TargetState:
    fault, level = None, str(target.target.level)
    absent = context.live.absent.get(target.target.identity)
    if absent is not None:
        return _absent_target(target, planned, absent)
    if target.target in context.moved:
        verdict = Verdict.WARNING if context.read_only else Verdict.ERROR
        moved = context.moved[target.target]
        fault = DoctorFinding(verdict, level, moved.reason, moved.remedy)
    elif isinstance(target_record, Obstacle):
        fault = DoctorFinding(Verdict.ERROR, level, target_record.reason, target_record.remedy)
    sections = []
    excepted = {finding.address.section for finding in planned.findings_of("excepted")}
    excepted -= {problem.address.section for problem in planned.problems}
    for section in target.sections:
        state = _check_section(section, target_record, context)
        if state.read is Permission.NO and section.kind in excepted:
            continue
        if state.read is Permission.YES:
            state = replace(state, findings=tuple(_doctor_findings(planned.only([section.kind]))))
        sections.append(replace(state, said="", remedy="") if fault and state.read is Permission.NO else state)
    return TargetState(target.target, target.origin, (fault,) if fault else (), tuple(sections))


def _absent_target(target: DesiredTarget, planned: TargetPlan, absence: ToCreate | Obstacle) -> TargetState:
    """Return the state of a target that does not exist, or is not planned."""
    if isinstance(absence, Obstacle):
        verdict, reason, remedy, access = Verdict.ERROR, absence.reason, absence.remedy, Permission.NO
    else:
        verdict, reason, remedy, access = Verdict.OK, "does not exist yet: apply creates it", "", Permission.UNASKED
    sections = (
        SectionState(name, access, access, findings=tuple(map(_problem, planned.only([name]).problems)))
        for name in planned.sections
        if name
    )
    creation = DoctorFinding(verdict, str(target.target.level), reason, remedy)
    return TargetState(target.target, target.origin, (creation,), tuple(sections))


def _check_section(section: Section, target_record: Record | None, context: CheckContext) -> SectionState:
    unread = list(context.live.unread(section).values())
    if unread:
        known = target_record if isinstance(target_record, ProjectRecord) else NO_RECORD
        read, write = Permission.NO, Permission.UNASKED if context.read_only else Permission.NO
        refusal = RefusedAccess(
            section.target.address,
            context.needs(section),
            known,
            context.caller,
            omission_remedy(section),
            status=unread[0].status,
        )
        why: Obstacle | None = read_obstacle(refusal, unread[0].reason)
    else:
        read = Permission.YES
        write, why = _write_permission(section, target_record, context)
    return SectionState(section.kind, read, write, "" if why is None else why.reason, "" if why is None else why.remedy)


def _write_permission(
    section: Section, target_record: Record | None, context: CheckContext
) -> tuple[Permission, Obstacle | None]:
    """Return the permission to write a section that was read, with the obstacle."""
    token, where = context.service.token, section.target.address
    if context.read_only:
        return Permission.UNASKED, None
    if section.target in context.moved:
        return Permission.NO, None
    if token.writes is Permission.NO:
        return Permission.NO, Obstacle(
            where, "the token may only read", "use one with the scope api, or add --read-only"
        )
    if section.target.level in context.needs(section).readers:
        obstacle = _write_obstacle(section, target_record, context)
        if obstacle is not None:
            return obstacle
    if token.writes is Permission.UNKNOWN:
        return Permission.UNKNOWN, Obstacle(where, "the token's scopes are unknown")
    return Permission.YES, None


def _write_obstacle(
    section: Section, target_record: Record | None, context: CheckContext
) -> tuple[Permission, Obstacle] | None:
    """Return the obstacle to writing for a caller who can read, or that it is unknown; None if there is none."""
    needs, where = context.needs(section), section.target.address
    if not isinstance(target_record, ProjectRecord):
        source = "role in the group" if section.target.level is Level.GROUP else "project's record"
        return Permission.UNKNOWN, Obstacle(where, f"the {source} cannot be read: {target_record}")
    refusal = RefusedAccess(where, needs, target_record, context.caller, omission_remedy(section), writing=True)
    obstacle = next(refusal.reasons, None)
    if obstacle is not None:
        return Permission.NO, obstacle
    if target_record.role is None:
        reason = (
            f"the role of {context.caller} is not reported; {role_name(needs.roles[section.target.level])} is needed"
        )
        return Permission.UNKNOWN, Obstacle(where, reason)
    if target_record.archived is None and section.target.level is Level.PROJECT:
        return Permission.UNKNOWN, Obstacle(where, "the service does not report whether the project is archived")
    return None


def _doctor_findings(planned: TargetPlan) -> Iterator[DoctorFinding]:
    """Yield the problems of a section, and a warning for each rule that does not do what it says."""
    yield from map(_problem, planned.problems)
    for finding in (finding for finding in planned.findings if code_of(finding.code).warns):
        yield replace(_problem(finding), verdict=Verdict.WARNING)


def _problem(problem: Finding) -> DoctorFinding:
    address = problem.address
    name = f'"{address.name}"' if isinstance(address.name, str) else address.name
    about = address.title if name is None else f"{address.title} {name}"
    field = f".{problem.field}" if problem.field else ""
    return DoctorFinding(Verdict.ERROR, f"{about}{field}", problem.reason, problem.fix)
