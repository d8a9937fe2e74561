"""Causes and remedies of refused or invisible targets and sections: the table `REASONS`, for plan, apply and doctor.

A refusal explains little. One more request for a target that fails finds the cause; where many targets of a group fail
alike, one request finds it for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

from reconciler.engine.compare.exceptions import excepting_section
from reconciler.engine.crew import side_by_side
from reconciler.engine.read import TRY_AGAIN, answer_or_error
from reconciler.engine.roster import (
    OTHER_LEVEL,
    PATH_FIELDS,
    TargetRecord,
    fetch_record,
    has_other_level,
    is_off,
    is_scheduled_for_deletion,
)
from reconciler.errors import ConfigurationError, Forbidden, NotFound, ServiceError
from reconciler.model.caller import UNKNOWN_CALLER, Caller
from reconciler.model.kind import Archived, Kinds, Needs, Role
from reconciler.model.obstacle import Effect, Obstacle
from reconciler.model.protocols import Json, Reader
from reconciler.model.state import DesiredState, DesiredTarget, Listed, LiveState, PartAddress, Section, Unreadable
from reconciler.model.targets import Address, Level, Target
from reconciler.model.wording import closest

OWNER = "user"
TOKEN = "personal_access_tokens/self"  # noqa: S105 - a path
FOR_ADMINISTRATORS = "keys/0"
"""A record that never exists, and that only administrators may ask for: 404 for them, 403 for everybody else."""


# 404 counts as a refusal: GitLab hides the existence of objects that a token may not see.
REFUSALS = frozenset({403, 404})

MIN_TARGETS_OF_CAUSE = 3
"""If this many targets fail alike, one request about their group replaces one for each target."""

INHERITED = "what holds in the groups above"
"""The cause of obstacles that all projects of a group share which fail alike."""

ARCHIVED = "the project is archived"
"""The reason why nothing can be written in a project."""
UNARCHIVE = "unarchive it, or {}"
"""The remedy for `ARCHIVED`; the placeholder is an `omission_remedy`."""
AT_THE_TOP = "only groups at the top have these settings", "declare them there"
"""The reason why a subgroup has no such section, and the remedy."""
FORBIDDEN = 403
NOT_LICENSED = "not in this edition, or no right to it (403 Forbidden)"
NO_EDITION = "the Community Edition has no such settings"
LEAVE_OUT = "leave the section out"
ADMINISTRATOR = "an administrator's token (with the scope admin_mode if the service uses admin mode)"
WRONG_REQUESTS = (400, 413, 415, 422)
REQUEST_REFUSED = "the service rejects this request, and a retry will not help: correct what the response names"


ADMIN_MODE = "use a token that has the scope admin_mode too"
"""The remedy for an administrator's `shortfall`."""


@dataclass(frozen=True, slots=True)
class ProjectRecord:
    """The record of a project or a group, as far as it explains what may be read and written there.

    A project's record holds the caller's role by membership of the project and of the groups above, not by membership
    of an invited group (deployed behaviour, section 7.8). A group's record holds no role.

    Attributes:
        role: of the caller, as the service counts; None if unknown.
        inherited: whether that role comes from the groups above alone.
        archived: whether the project is archived; None if unknown.
        off: the record's keys of features that are switched off.
        nested: whether a group has a group above it; None if unknown.
    """

    role: int | None = None
    inherited: bool = False
    archived: bool | None = None
    off: frozenset[str] = frozenset()
    nested: bool | None = None


NO_RECORD = ProjectRecord()
NO_MEMBER = 0
"""The role of a user who has none."""


Access = Literal["read", "write", "both"]


@dataclass(frozen=True, slots=True)
class RefusedAccess:
    """A section that a target does not show, or does not let be changed, with all known facts about that.

    Attributes:
        where: the target, or the section.
        needs: of the section.
        record: of the target.
        caller: the user behind the token.
        omission_remedy: see `omission_remedy`.
        writing: whether it is about changing the section.
        status: of the response that refused it; None if nothing was refused yet.
    """

    where: Address
    needs: Needs
    record: ProjectRecord
    caller: Caller = UNKNOWN_CALLER
    omission_remedy: str = LEAVE_OUT
    writing: bool = False
    status: int | None = None

    @property
    def target(self) -> Target:
        """The target."""
        return self.where.target

    @property
    def role(self) -> Role | None:
        """The least role that suffices; None if none in particular does."""
        level = self.target.level
        written = self.needs.roles.get(level)
        return written if self.writing else self.needs.readers.get(level, written)

    @property
    def reasons(self) -> Iterator[Obstacle]:
        """All obstacles that explain the refusal by themselves, in the order of the table."""
        access = "write" if self.writing else "read"
        found = (reason(self) for about, reason in REASONS if about in (access, "both"))
        return (obstacle for obstacle in found if obstacle is not None)


def _edition_lacks(refusal: RefusedAccess) -> Obstacle | None:
    return _no_edition(refusal.target) if refusal.needs.licensed and refusal.caller.enterprise is False else None


def _is_below_the_top(refusal: RefusedAccess) -> Obstacle | None:
    target = refusal.target
    is_nested = target.level is Level.GROUP and (refusal.record.nested or "/" in str(target.ref))
    return Obstacle(target.address, *AT_THE_TOP) if refusal.needs.top_level and is_nested else None


def _is_archived(refusal: RefusedAccess) -> Obstacle | None:
    closed = {Archived.CLOSED, Archived.READ_ONLY} if refusal.writing else {Archived.CLOSED}
    if not refusal.record.archived or refusal.needs.archived not in closed:
        return None
    return Obstacle(refusal.where, ARCHIVED, UNARCHIVE.format(refusal.omission_remedy), effect="not applicable")


def _is_switched_off(refusal: RefusedAccess) -> Obstacle | None:
    switches = refusal.needs.switches
    if not switches or not refusal.record.off.issuperset(switches):
        return None
    words = " and ".join(switches.values())
    remedy = f"switch {words} on, or {refusal.omission_remedy}"
    return Obstacle(refusal.where, f"switched off in the project: {words}", remedy, effect="not applicable")


def _has_no_role(refusal: RefusedAccess) -> Obstacle | None:
    """Return that the caller's role is too low, or that an administrator's token cannot act as one."""
    where, record, caller, least = refusal.target.address, refusal.record, refusal.caller, refusal.role
    suffices = record.role is not None and least is not None and record.role >= least
    if caller.shortfall and not suffices:
        return Obstacle(where, caller.shortfall, ADMIN_MODE, INHERITED)
    if suffices or record.role is None or least is None:
        return None
    needed, role = role_name(least), "no member" if record.role == NO_MEMBER else role_name(record.role)
    reason = f"{caller} is {role} there, and {needed} is needed"
    return Obstacle(where, reason, f"make {caller} {needed}", INHERITED if record.inherited else "")


def _is_barred(refusal: RefusedAccess) -> Obstacle | None:
    barrier, target = refusal.needs.barrier, refusal.target
    # The barrier shows nowhere: it explains a refusal only where the record has been read, and explains nothing.
    if refusal.status is None or not barrier or target.level is not Level.PROJECT or refusal.record is NO_RECORD:
        return None
    return Obstacle(target.address, barrier.reason, barrier.remedy)


def _is_allowed(refusal: RefusedAccess) -> Obstacle | None:
    """Return that the role suffices, so that the cause is unknown."""
    record, caller = refusal.record, refusal.caller
    if refusal.status is None or record.role is None or caller.admin:
        return None
    suffices = f"{caller} is {role_name(record.role)} there, which suffices"
    return Obstacle(refusal.target.address, "", f"{suffices}: ask who administers the service what forbids it")


REASONS: tuple[tuple[Access, Callable[[RefusedAccess], Obstacle | None]], ...] = (
    ("read", _edition_lacks),
    ("read", _is_below_the_top),
    ("both", _is_archived),
    ("read", _is_switched_off),
    ("both", _has_no_role),
    ("write", _is_barred),
    ("write", _is_allowed),
)
"""All causes of a refusal. An unreadable section is reported with all that apply, a refused write with the first."""


def section_obstacles(
    where: Address, needs: Needs, project_record: ProjectRecord, omission_remedy: str = LEAVE_OUT
) -> Iterator[Obstacle]:
    """Yield the obstacles to a section in a project that are independent of the caller; see `omission_remedy`."""
    refusal = RefusedAccess(where, needs, project_record, omission_remedy=omission_remedy)
    yield from filter(None, (_is_archived(refusal), _is_switched_off(refusal)))


def lacking_sections(target: DesiredTarget, kinds: Kinds, today: date) -> Iterator[Obstacle]:
    """Yield an obstacle for each section that a project cannot have, if a list of projects shows that.

    Nothing is read for such a section. Only an archived project whose section can still be read is planned, since a
    problem there is one only if something would change.
    """
    listed = target.listed or Listed()
    record = ProjectRecord(archived=listed.archived, off=listed.off)
    for section in target.sections if target.listed or target.unplannable else ():
        kind, is_skipped = kinds[section.kind], section.kind in target.skipped
        where = address_of(section, kinds)
        obstacles = list(section_obstacles(where, kind.needs, record, omission_remedy(section)))
        if not obstacles and section.kind in target.unplannable:
            obstacles = [target.unplannable[section.kind].at(where)]
            is_skipped &= obstacles[0].effect == "not applicable"
        if obstacles:
            about = () if is_skipped else excepting_section(section, target.excepts(section.kind, today), kind)
            effect: Effect = "not applicable" if is_skipped else "excepted" if about else "problem"
            yield replace(combined(obstacles), effect=effect, exceptions=about)
        elif record.archived and kind.needs.archived is Archived.READ_ONLY:
            yield unchangeable(section, kinds, is_skipped=is_skipped)


def unchangeable(section: Section, kinds: Kinds, *, is_skipped: bool) -> Obstacle:
    """Return that a section of an archived project cannot be changed."""
    remedy = UNARCHIVE.format(omission_remedy(section))
    effect: Effect = "not applicable" if is_skipped else "read only"
    return Obstacle(address_of(section, kinds), ARCHIVED, remedy, effect=effect)


def read_obstacle(refusal: RefusedAccess, reason: str) -> Obstacle:
    """Return the obstacle of a section that could not be read, by all known facts.

    Args:
        refusal: of the service.
        reason: the request and the response, in words.
    """
    where, needs, status = refusal.where, refusal.needs, refusal.status
    if status not in REFUSALS:
        return Obstacle(where, reason, REQUEST_REFUSED if status in WRONG_REQUESTS else TRY_AGAIN)
    obstacles = list(refusal.reasons)
    if obstacles:
        return combined(obstacles)
    remedy = _requirements(refusal.target, needs) or "check whether the service supports this section"
    if needs.licensed and status == FORBIDDEN:
        # The record shows nothing against this target, so that the others of its group are refused for the same reason.
        shared = INHERITED if refusal.record.role is not None else ""
        return Obstacle(where, NOT_LICENSED, f"{remedy}; otherwise leave the section out", shared)
    return Obstacle(where, reason, remedy)


def write_obstacle(refusal: RefusedAccess) -> Obstacle:
    """Return the obstacle of a refused change to a section; its reason is empty if none is known."""
    return next(refusal.reasons, Obstacle(refusal.where, "", _requirements(refusal.target, refusal.needs)))


def ask_caller(reader: Reader) -> Caller:
    """Look up the user behind the token: one request a run, and two more for an administrator.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    owner = _record(reader, OWNER)
    return caller_of(owner, _record(reader, TOKEN) if owner.get("is_admin") is True else {}, reader)


def caller_of(owner: Mapping[str, Json], token_record: Mapping[str, Json], reader: Reader) -> Caller:
    """Return the caller by the records of user and token; one request shows whether a scope is missing.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    name, number, scopes = owner.get("username"), owner.get("id"), token_record.get("scopes")
    admin = owner.get("is_admin") is True
    # With Admin Mode, an administrator's token without this scope sees private projects as 404, and a plan would advise
    # to become a member. Whether the service uses Admin Mode, only a refusal shows.
    doubtful = admin and isinstance(scopes, list) and "admin_mode" not in scopes
    lacking = doubtful and isinstance(answer_or_error(lambda: reader.recall(FOR_ADMINISTRATORS)), Forbidden)
    return Caller(
        name if isinstance(name, str) else None,
        number if type(number) is int else None,
        admin=admin and not lacking,
        lacks_admin_mode=lacking,
    )


def read_record(target: Target, reader: Reader, caller: Caller) -> ProjectRecord | ServiceError:
    """Return the record of a project or a group, or the error if it cannot be read.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    answer = answer_or_error(lambda: fetch_record(target, reader))
    if isinstance(answer, ServiceError):
        return answer
    record = answer.fields
    archived = record.get("archived")
    role, inherited = _role(record, caller)
    return ProjectRecord(
        role=role,
        inherited=inherited,
        archived=archived if isinstance(archived, bool) else None,
        off=frozenset(key for key, value in record.items() if is_off(value)),
        nested=record["parent_id"] is not None if "parent_id" in record else None,
    )


def read_membership(group: Target, reader: Reader, caller: Caller) -> ProjectRecord | ServiceError:
    """Return a record with the caller's role in a group, which the group's own record does not show.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    if caller.admin:
        return ProjectRecord(role=Role.OWNER)
    if caller.number is None:
        return NO_RECORD
    answer = answer_or_error(lambda: reader.get(f"{group.url}members/all/{caller.number}"))
    match answer:
        case {"access_level": int(role)}:
            return ProjectRecord(role=role)
        case NotFound():
            return ProjectRecord(role=NO_MEMBER)
    return answer if isinstance(answer, ServiceError) else NO_RECORD


def role_name(access_level: int) -> str:
    """Return the service's name for a role."""
    return Role(access_level).name.capitalize() if access_level in set(Role) else f"of access level {access_level}"


def absence_obstacle(
    target: Target, reader: Reader, caller: Callable[[], Caller], *, licensed: bool = False
) -> Obstacle:
    """Return the obstacle of a group or project that is not visible; checks for the wrong level first.

    Args:
        target: the target.
        reader: the service.
        caller: returns the user behind the token; called only where the obstacle depends on it.
        licensed: whether all requested sections exist in the paid editions alone.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    if has_other_level(target, reader):
        return wrong_level_obstacle(target)
    obstacle = not_found(target, caller(), licensed=licensed)
    if target.level is Level.GROUP and isinstance(target.ref, str):
        return replace(obstacle, remedy=f"{obstacle.remedy}; a group whose deletion is scheduled has another path")
    return obstacle


def wrong_level_obstacle(target: Target) -> Obstacle:
    """Return the obstacle of a target that is declared as a group although it is a project, or the reverse."""
    other, wrong = OTHER_LEVEL[target.level], "the ID of a" if isinstance(target.ref, int) else "a"
    reason = f"this is {wrong} {other}, not {wrong.removesuffix('a')}a {target.level}"
    return Obstacle(target.address, reason, f"declare it with `kind: {str(other).capitalize()}`")


def not_found(target: Target, caller: Caller, *, licensed: bool = False, inside: str = "") -> Obstacle:
    """Return the obstacle of a target that does not exist or is not visible, or of many targets `inside` a group."""
    if caller.shortfall:
        reason = f"not found{inside}, or hidden: {caller.shortfall}"
        return Obstacle(target.address, reason, f"{ADMIN_MODE}, or correct it in the manifest")
    reason = f"not found{inside}, or not visible to {caller}"
    if licensed:
        reason = f"not found, not visible to {caller}, or not in this edition"
    remedy = f"correct it in the manifest, or make {caller} a member"
    if isinstance(target.ref, str):
        remedy = f"correct it in the manifest, make {caller} a member, or create it: `create: {{}}` in its document"
    return Obstacle(target.address, reason, remedy)


def group_absence_obstacle(group: str, reader: Reader, caller: Caller) -> Obstacle:
    """Return the obstacle of many invisible targets in one group, which may be invisible itself.

    Raises:
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    target = Target(Level.GROUP, group)
    if isinstance(answer_or_error(lambda: fetch_record(target, reader)), TargetRecord):
        return not_found(target, caller, inside=f" in {group}")
    if caller.shortfall:
        reason = f"not found, and group {group} is hidden too: {caller.shortfall}"
        return Obstacle(target.address, reason, f"{ADMIN_MODE}, or correct the path in the manifest")
    return Obstacle(
        target.address,
        f"not found, and group {group} is not visible to {caller} either",
        f"correct the path in the manifest, or make {caller} a member of the group",
    )


def omission_remedy(section: Section) -> str:
    """Return the remedy that removes a section from a target's declarations."""
    return LEAVE_OUT if section.own else f"write `unmanaged: [{section.kind}]` in its own document"


def path_remedy(target: Target, reader: Reader) -> str:
    """Return the remedy for a path that is not found: the most similar path in its group, if there is one.

    Only the first page of the group's list is searched.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    group = Target(Level.GROUP, target.parent).url if target.parent else ""
    listing = {
        Level.GROUP: f"{group}subgroups?per_page=100" if group else "groups?top_level_only=true&per_page=100",
        Level.PROJECT: f"{group}projects?simple=true&per_page=100",
    }[target.level]
    answer = answer_or_error(lambda: reader.get(listing))
    records = answer if isinstance(answer, list) else ()
    paths = [record.get(PATH_FIELDS[target.level]) for record in records if isinstance(record, dict)]
    beside = {
        path.rpartition("/")[2]: path for path in paths if isinstance(path, str) and not is_scheduled_for_deletion(path)
    }
    similar = closest(str(target.ref).rpartition("/")[2], beside)
    return f"the most similar path is {beside[similar]}" if similar else visibility_remedy(reader)


def visibility_remedy(reader: Reader, what: str = "path") -> str:
    """Return the remedy for an object that is not found, and may be hidden from the token.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    shortfall = ask_caller(reader).shortfall
    if shortfall:
        return f"{shortfall}: {ADMIN_MODE}, or correct the {what}"
    return f"correct the {what}, or use a token that can see it"


def combined(obstacles: Sequence[Obstacle]) -> Obstacle:
    """Return several obstacles of one address as one; its cause is set only if all of them share it."""
    causes = {obstacle.cause for obstacle in obstacles}
    return replace(
        obstacles[0],
        reason="; ".join(obstacle.reason for obstacle in obstacles),
        remedy="; ".join(obstacle.remedy for obstacle in obstacles),
        cause=causes.pop() if len(causes) == 1 else "",
    )


def url_remedy(api_url: str) -> str:
    """Return the remedy for a URL that does not end in `/api/v4`; empty if it does."""
    url = urlsplit(api_url)
    if url.path.rstrip("/").endswith("/api/v4"):
        return ""
    host, base = f"{url.scheme}://{url.netloc}", url.path.partition("/api")[0].rstrip("/")
    at_the_top = f", or {host}/api/v4 if that is the page of a group or project" if base else ""
    return f"the URL must end in /api/v4: try {host}{base}/api/v4{at_the_top}"


def address_of(section: Section, kinds: Kinds) -> Address:
    """Return the address of the first declared part of a section."""
    part = next(part for part in kinds[section.kind].parts if part.name in section.wanted)
    return Address(section.target, section.kind, part.name, part.title)


def with_causes(desired: DesiredState, live: LiveState, reader: Reader, kinds: Kinds, api_url: str = "") -> LiveState:
    """Return live state in which each unreadable part has its cause.

    It takes at most one request for each target that fails, and one for each cause that many targets share. If these
    do not show the cause, the user behind the token may be the reason: `ask_caller`, once a run.

    Args:
        api_url: of the service, to check if nothing at all can be read; empty to skip the check.

    Raises:
        ConfigurationError: there are many targets, and not one of them is visible; or the URL is not that of an API.
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    failures = list(_failures(desired, live, kinds))
    if not failures:
        return live
    if api_url and sum(len(failure.unread) for failure in failures) == len(live.parts):
        refuse_unless_api(reader, api_url)
    explained: list[Explained] = []
    if (
        sum(failure.may_lack_edition for failure in failures) >= MIN_TARGETS_OF_CAUSE
        and _version(reader).get("enterprise") is False
    ):
        explained = [
            failure.because(_no_edition(failure.target), is_absent=False)
            for failure in failures
            if failure.may_lack_edition
        ]
        failures = [failure for failure in failures if not failure.may_lack_edition]
    if MIN_TARGETS_OF_CAUSE <= sum(failure.absent for failure in failures) == len(desired.targets):
        caller = ask_caller(reader)
        remedy = f"{caller.shortfall}; {ADMIN_MODE}" if caller.shortfall else "check the token and the service"
        raise ConfigurationError(f"none of the {len(failures)} targets is visible to {caller}: {remedy}")
    batches: dict[object, list[_Failure]] = {}
    for failure in failures:
        batches.setdefault(failure.likeness, []).append(failure)
    explanations = side_by_side(
        partial(_explain_alike, reader=reader, kinds=kinds), batches.values(), reader.concurrency
    )
    unexplained = [failure for _, others in explanations for failure in others]
    explained += [parts_explained for parts_explained, _ in explanations]
    explained += side_by_side(partial(_explain, reader=reader, kinds=kinds), unexplained, reader.concurrency)
    parts = {**live.parts, **{place: part for parts_explained in explained for place, part in parts_explained.items()}}
    return replace(live, parts=parts)


def refuse_unless_api(reader: Reader, api_url: str) -> None:
    """Raise if a URL does not end as that of an API does, and no API answers below it.

    Raises:
        ConfigurationError: it is such a URL.
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    remedy = url_remedy(api_url)
    if remedy and not isinstance(_version(reader).get("version"), str):
        raise ConfigurationError(f"{api_url}: nothing was found there, and no API answers: {remedy}")


Explained = Mapping[PartAddress, Unreadable]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A target with parts that could not be read.

    Attributes:
        unread: these parts, by address.
        absent: whether no part of the target is visible.
        licensed: whether all these sections exist in the paid editions alone.
        omission_remedies: by section, see `omission_remedy`.
    """

    target: Target
    unread: Explained
    absent: bool
    licensed: bool
    omission_remedies: Mapping[str, str]

    @property
    def may_lack_edition(self) -> bool:
        """Whether a missing edition may explain all unread parts."""
        return self.absent and self.licensed

    @property
    def likeness(self) -> object:
        """A key that is equal for failures of one group with the same refused parts."""
        refused = frozenset((section, part, part_read.status) for (_, section, part), part_read in self.unread.items())
        return self.target.level, _group(self.target) or self.target, refused

    def because(self, cause: Obstacle, *, is_absent: bool = True) -> Explained:
        """Return all unread parts with one cause."""
        return {place: replace(part, cause=cause, absent=is_absent) for place, part in self.unread.items()}


def _failures(desired: DesiredState, live: LiveState, kinds: Kinds) -> Iterator[_Failure]:
    for target in desired.targets:
        unread = live.unread(*target.sections)
        if unread:
            absent = live.shows_nothing_of(target)
            licensed = all(kinds[section].needs.licensed for _, section, _ in unread)
            omission_remedies = {section.kind: omission_remedy(section) for section in target.sections}
            yield _Failure(target.target, unread, absent and target.target.ref is not None, licensed, omission_remedies)


def _explain_alike(alike: list[_Failure], reader: Reader, kinds: Kinds) -> tuple[Explained, list[_Failure]]:
    """Explain failures that are alike by one request, or only the first failure.

    And return the unexplained failures.
    """
    # Otherwise a missing edition or role would cost a request, and be a problem, for each project of a group.
    first, *others = alike
    if first.absent and len(alike) >= MIN_TARGETS_OF_CAUSE:
        cause = group_absence_obstacle(_group(first.target), reader, ask_caller(reader))
        return {place: part for failure in alike for place, part in failure.because(cause).items()}, []
    explained = _explain(first, reader, kinds)
    shared = {place[1:]: part.cause for place, part in explained.items() if part.cause}
    if len(shared) < len(explained) or any(cause.cause != INHERITED for cause in shared.values()):
        return explained, others
    unread = [part for failure in alike for part in failure.unread.items()]
    return {place: replace(part, cause=shared[place[1:]].at(place[0].address)) for place, part in unread}, []


def _explain(failure: _Failure, reader: Reader, kinds: Kinds) -> Explained:
    """Explain one failure by itself."""
    target = failure.target
    if failure.absent:
        return failure.because(absence_obstacle(target, reader, partial(ask_caller, reader), licensed=failure.licensed))
    # Other statuses, such as 500, have no cause in the record.
    refused = {place: kinds[place[1]].needs for place, part in failure.unread.items() if part.status in REFUSALS}
    record = NO_RECORD
    if record_explains(target, refused.values()):
        read = read_record(target, reader, UNKNOWN_CALLER)
        record = read if isinstance(read, ProjectRecord) else NO_RECORD
    caller = UNKNOWN_CALLER
    if record.role is None and not _all_explained(target, refused.values(), record, caller):
        caller = ask_caller(reader)
        record = replace(record, role=Role.OWNER) if caller.admin else record
        if _membership_may_explain(target, refused.values(), record, caller):
            read = read_membership(target, reader, caller)
            record = read if isinstance(read, ProjectRecord) else record
    return {
        place: replace(
            part,
            cause=read_obstacle(
                RefusedAccess(
                    target.address,
                    kinds[section].needs,
                    record,
                    caller,
                    failure.omission_remedies[section],
                    status=part.status,
                ),
                part.reason,
            ),
        )
        for place, part in failure.unread.items()
        for section in [place[1]]
    }


def record_explains(target: Target, refused: Iterable[Needs]) -> bool:
    """Return whether the record of a target can show why sections were refused."""
    if target.level is Level.GROUP:
        return isinstance(target.ref, int) and any(needs.top_level for needs in refused)
    return target.level is Level.PROJECT and any(needs.roles for needs in refused)


def _membership_may_explain(
    target: Target, refused: Iterable[Needs], project_record: ProjectRecord, caller: Caller
) -> bool:
    """Return whether the caller's role in a group, which was not read yet, can explain refusals."""
    asks = (
        target.level is Level.GROUP
        and project_record is NO_RECORD
        and any(Level.GROUP in needs.roles for needs in refused)
    )
    return asks and not _all_explained(target, refused, project_record, caller)


def _all_explained(target: Target, refused: Iterable[Needs], project_record: ProjectRecord, caller: Caller) -> bool:
    """Return whether the cause of each refusal is known."""
    return all(any(RefusedAccess(target.address, needs, project_record, caller).reasons) for needs in refused)


def _requirements(target: Target, needs: Needs) -> str:
    """Return the requirements of a section of a target, in words; empty if it has none."""
    least = needs.roles.get(target.level)
    asks = [f"the role {role_name(least)}"] if least else []
    asks += [ADMINISTRATOR] if target.level is Level.INSTANCE else []
    asks += ["an edition with this feature (Premium or Ultimate)"] if needs.licensed else []
    return f"this needs {' and '.join(asks)}" if asks else ""


def _no_edition(target: Target) -> Obstacle:
    return Obstacle(target.address, NO_EDITION, LEAVE_OUT)


def _version(reader: Reader) -> Mapping[str, Json]:
    answer = answer_or_error(lambda: reader.get("version"))
    return answer if isinstance(answer, dict) else {}


def _group(target: Target) -> str:
    """Return the path of the group that a target is in; empty if unknown."""
    return target.ref.rpartition("/")[0].casefold() if isinstance(target.ref, str) else ""


def _role(record: Mapping[str, Json], caller: Caller) -> tuple[int | None, bool]:
    """Return the caller's role, and whether it is inherited.

    Administrators may do everything, and so may users in their own namespace.
    """
    match record.get("namespace"):
        case {"kind": "user", "full_path": str(path)} if path == caller.name:
            return Role.OWNER, False
    if caller.admin:
        return Role.OWNER, False
    permissions = record.get("permissions")
    shown = permissions if isinstance(permissions, dict) else {}
    levels = {
        key: access["access_level"]
        for key, access in shown.items()
        if isinstance(access, dict) and type(access.get("access_level")) is int
    }
    return max(levels.values(), default=None), set(levels) == {"group_access"}


def _record(reader: Reader, path: str) -> Mapping[str, Json]:
    answer = answer_or_error(lambda: reader.recall(path))
    return answer if isinstance(answer, dict) else {}
