"""The targets: each section as it was read, and the record of a target only where that would tell something more.

Whoever could read what only its writers can read could write it: no more need be asked. What a refusal comes from, and
whether the rest can be written, the record tells.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.address import Address, Level, Scope
from reconciler.doctor.findings import Access, Finding, Front, SectionState, TargetState, Verdict
from reconciler.doctor.places import Place, read_place, role_name
from reconciler.errors import NotFound, ServiceError
from reconciler.kind import Archived, Kinds, Needs
from reconciler.live import side_by_side
from reconciler.plan import Plan, Problem, TargetPlan
from reconciler.state import DesiredState, LiveState, Section, Target, Unreadable
from reconciler.wire import Reader

REFUSALS = frozenset({403, 404})

TRY_AGAIN = "try again; where it stays so, see what the service logs about it"

Explanation = tuple[str, str]
"""Why something cannot be done, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Question:
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
    front: Front
    moved: Mapping[Scope, str]
    read_only: bool

    @property
    def owner(self) -> str:
        """Whose token it is, in words."""
        return self.front.token.owner or "the owner of the token"

    @property
    def writing(self) -> bool:
        """Whether something may be written at all."""
        return not self.read_only and self.front.token.writes is not Access.NO

    def unread(self, section: Section) -> list[Unreadable]:
        """Return why parts of a section could not be read."""
        parts = [self.live.parts[section.scope, section.kind, part] for part in section.wanted]
        return [part for part in parts if isinstance(part, Unreadable)]


def look_at_targets(question: Question, reader: Reader, concurrency: int) -> tuple[TargetState, ...]:
    """Tell what can be read and written of each section of each target.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    scopes = [target.scope for target in question.desired.targets if _record_would_tell(target, question)]

    def ask(scope: Scope) -> Place | ServiceError:
        return read_place(scope, reader, question.front.token)

    places = dict(zip(scopes, side_by_side(ask, scopes, concurrency), strict=True))
    return tuple(
        _look_at(target, planned, places.get(target.scope), question)
        for target, planned in zip(question.desired.targets, question.plan.targets, strict=True)
    )


def _record_would_tell(target: Target, question: Question) -> bool:
    """Whether the record is worth a request: a refusal is to be explained, or reading tells nothing of writing."""
    level, ref = target.scope.level, target.scope.ref
    refused = [
        section for section in target.sections if any(part.status in REFUSALS for part in question.unread(section))
    ]
    if level is Level.GROUP:
        return isinstance(ref, int) and any(question.kinds[section.kind].needs.top_level for section in refused)
    if level is Level.USER:
        return False
    open_to_readers = (not question.kinds[section.kind].needs.same_to_read for section in target.sections)
    return bool(refused) or (question.writing and target.scope not in question.moved and any(open_to_readers))


def _look_at(
    target: Target, planned: TargetPlan, place: Place | ServiceError | None, question: Question
) -> TargetState:
    whole = _fault_of_target(target, place, question)
    sections = tuple(_look_at_section(section, planned, place, whole, question) for section in target.sections)
    return TargetState(target.scope, target.origin, (whole,) if whole else (), sections)


def _fault_of_target(target: Target, place: Place | ServiceError | None, question: Question) -> Finding | None:
    """Say what is wrong with a target as a whole: nobody can see it, or it has moved."""
    level = str(target.scope.level)
    if target.scope in question.moved:
        said = f"has moved to {question.moved[target.scope]}"
        verdict = Verdict.WARNING if question.read_only else Verdict.ERROR
        return Finding(verdict, level, said, "name it so in the manifest, or write to it with --follow-moved")
    unread = [(len(section.wanted), question.unread(section)) for section in target.sections]
    hidden = bool(unread) and all(len(parts) == many and all(each.absent for each in parts) for many, parts in unread)
    if isinstance(place, NotFound) or (hidden and place is None and target.scope.level is not Level.USER):
        said = f"not found, or not visible to {question.owner}"
        return Finding(
            Verdict.ERROR, level, said, f"correct it in the manifest, or have {question.owner} made a member"
        )
    return None


def _look_at_section(
    section: Section, planned: TargetPlan, place: Place | ServiceError | None, whole: Finding | None, question: Question
) -> SectionState:
    unread = question.unread(section)
    if unread:
        write = Access.UNASKED if question.read_only else Access.NO
        said, remedy = ("", "") if whole else _explained(section, unread[0], place, question)
        return SectionState(section.kind, Access.NO, write, said, remedy)
    write, (said, remedy) = _writing(section, place, question)
    return SectionState(section.kind, Access.YES, write, said, remedy, tuple(_problems(section, planned, question)))


def _writing(section: Section, place: Place | ServiceError | None, question: Question) -> tuple[Access, Explanation]:
    """Tell whether what was read could be written."""
    token, needs = question.front.token, question.kinds[section.kind].needs
    if question.read_only:
        return Access.UNASKED, ("", "")
    if section.scope in question.moved:
        return Access.NO, ("", "")
    if token.writes is Access.NO:
        return Access.NO, ("the token may only read", "use one with the scope api, or ask with --read-only")
    if not needs.same_to_read:
        hindrance = _hindrance_of_writers(section, place, question)
        if hindrance is not None:
            return hindrance
    if token.writes is Access.UNKNOWN:
        return Access.UNKNOWN, ("what the token may do is not told", "")
    return Access.YES, ("", "")


def _hindrance_of_writers(
    section: Section, place: Place | ServiceError | None, question: Question
) -> tuple[Access, Explanation] | None:
    """Say what keeps whoever can read from writing as well, or that nobody can tell."""
    needs = question.kinds[section.kind].needs
    if not isinstance(place, Place):
        return Access.UNKNOWN, (f"the project's record cannot be read: {place}", "")
    if place.archived and needs.archived is Archived.READ_ONLY:
        return Access.NO, ARCHIVED
    if place.role is not None and place.role < needs.roles[section.scope.level]:
        return Access.NO, _role_missing(needs, section.scope.level, place.role, question)
    if place.role is None:
        needed = role_name(needs.roles[section.scope.level])
        return Access.UNKNOWN, (f"the service does not tell {question.owner}'s role; {needed} is needed", "")
    if place.archived is None:
        return Access.UNKNOWN, ("the service does not tell whether the project is archived", "")
    return None


def _explained(
    section: Section, unread: Unreadable, place: Place | ServiceError | None, question: Question
) -> Explanation:
    """Say why a section cannot be read, and what to do about it, by all that is known."""
    if unread.status not in REFUSALS:
        return unread.reason, TRY_AGAIN
    needs = question.kinds[section.kind].needs
    causes = list(_causes(section.scope, needs, place if isinstance(place, Place) else Place(), question))
    if causes:
        return "; ".join(said for said, _ in causes), "; ".join(remedy for _, remedy in causes)
    least = needs.roles.get(section.scope.level)
    asks = [f"the role {role_name(least)}"] if least else []
    asks += ["an edition with this feature (Premium or Ultimate)"] if needs.licensed else []
    remedy = f"it takes {' and '.join(asks)}" if asks else "see whether the service has this at all"
    return unread.reason, remedy


ARCHIVED = ("the project is archived", "unarchive it, or leave the section out")


def _causes(scope: Scope, needs: Needs, place: Place, question: Question) -> Iterator[Explanation]:
    """Yield what by itself explains a refusal to read."""
    if needs.licensed and question.front.enterprise is False:
        yield "the Community Edition has no such settings", "leave the section out"
    if needs.top_level and scope.level is Level.GROUP and (place.nested or "/" in str(scope.ref)):
        yield "only groups at the top have these settings", "declare them there"
    if place.archived and needs.archived is Archived.CLOSED:
        yield ARCHIVED
    if needs.switches and place.off.issuperset(needs.switches):
        words = " and ".join(needs.switches.values())
        yield f"switched off in the project: {words}", f"switch {words} on, or leave the section out"
    least = needs.roles.get(scope.level)
    if needs.same_to_read and least is not None and place.role is not None and place.role < least:
        yield _role_missing(needs, scope.level, place.role, question)


def _role_missing(needs: Needs, level: Level, role: int, question: Question) -> Explanation:
    needed = role_name(needs.roles[level])
    return (
        f"{question.owner} is {role_name(role)} there, and {needed} is needed",
        f"have {question.owner} made {needed}",
    )


def _problems(section: Section, planned: TargetPlan, question: Question) -> Iterator[Finding]:
    """Yield what else a plan could not do in a section that can be read."""
    for each in planned.sections:
        if each.section == section.kind:
            yield from (_problem(problem, question) for problem in each.problems)


def _problem(problem: Problem, question: Question) -> Finding:
    field = f".{problem.field}" if problem.field else ""
    about = f"{_called(problem.address)}{field}"
    live = question.live.parts[problem.address.scope, problem.address.section, problem.address.part]
    locked = not isinstance(live, (tuple, Unreadable)) and problem.field in live.locked
    remedy = "change it where it is locked, or leave it out" if locked else ""
    return Finding(Verdict.ERROR, about, problem.reason, remedy)


def _called(address: Address) -> str:
    if address.name is None:
        return address.title
    return f'{address.title} "{address.name}"' if isinstance(address.name, str) else f"{address.title} {address.name}"
