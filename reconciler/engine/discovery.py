"""Discovery: the lists of the projects of groups that sets name, each read once a run.

Pages are requested in parallel, and listed projects are read while further pages arrive. The manifests get the
projects, and the planner gets the IDs that the lists show. Begin with `discover_members`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TypeVar

from reconciler.engine.compare.obstacles import without
from reconciler.engine.compare.selection import select
from reconciler.engine.creations import as_now_declared
from reconciler.engine.crew import Crew, ask_each, share_tasks
from reconciler.engine.lookups import default_branch, look_up_default_branch, look_up_paths
from reconciler.engine.read import TRY_AGAIN, UNEXPECTED, EarlyParts, answer_or_error, read_part
from reconciler.engine.roster import (
    ExistingTarget,
    Roster,
    fetch_record,
    has_other_level,
    is_off,
    is_scheduled_for_deletion,
    missing_group,
)
from reconciler.engine.run import Run
from reconciler.engine.why import ADMIN_MODE, ask_caller, lacking_sections, refuse_unless_api, visibility_remedy
from reconciler.errors import BadAnswer, Forbidden, NotFound, ServiceError, Stopped
from reconciler.manifests import Manifests, Member
from reconciler.manifests.project_sets import NO_SUCH_GROUP, REPOSITORY, Branches, groups_above, projects_by_path
from reconciler.model.kind import Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import FleetReader, Json, Reader, Spread
from reconciler.model.resource import Wanted
from reconciler.model.state import DesiredState, DesiredTarget, LivePart, PartAddress, Reference
from reconciler.model.targets import Identity, Key, Level, Target

# By default the list has projects of other groups that are shared with this one (deployed behaviour, section 7.8). In
# the order of IDs, a project that is created while pages are read comes last, and shifts no page.
QUERY = "include_subgroups=true&with_shared=false{more}&order_by=id&sort=asc"
"""The query of a list of a group's projects."""
UNARCHIVED = "&archived=false"
SIMPLE_PARAMETER = "&simple=true"
"""Requests short records, which lack the switches of features and `archived`: a tenth of the size, half the work."""

Result = TypeVar("Result")

Prepare = Callable[[Mapping[str, tuple[Member, ...]]], Iterable[DesiredTarget]]
"""Returns the desired state of some projects, which are given by group; empty if it is not known for sure."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The projects of groups, and the IDs and paths that their lists show.

    Attributes:
        groups: by group, as the manifests name it: its projects and those of its subgroups, or the obstacle to listing
            them.
        ids: the numeric ID of each target, by its path in lower case.
        paths: the full paths of the targets that are declared by ID.
        unknown: the obstacles to knowing the paths of the others.
        parts: the parts of projects that were read early, each with the declaration for which it was read.
        present_paths: the paths of moved groups and projects, by `Target.identity` with the former path.
    """

    groups: Mapping[str, tuple[Member, ...] | Obstacle]
    ids: Mapping[Reference, int]
    paths: Mapping[Target, str] = field(default_factory=dict)
    unknown: Mapping[Target, Obstacle] = field(default_factory=dict)
    parts: EarlyParts = field(default_factory=dict)
    present_paths: Mapping[Identity, str] = field(default_factory=dict)

    @property
    def listed(self) -> frozenset[str | int]:
        """The projects that lists of projects have shown, by path in lower case and by number."""
        members = projects_by_path(self.groups)
        return frozenset((*members, *(member.id for member in members.values() if member.id is not None)))


@dataclass(frozen=True, slots=True)
class GroupListing:
    """The facts about the projects of a group that a run needs.

    Attributes:
        archived: whether archived projects have to be listed too.
        switches: the keys of a project's record that show whether a feature is on.
    """

    archived: bool = False
    switches: frozenset[str] = frozenset()

    @property
    def query(self) -> str:
        """The query of the list: only full records show whether a project is archived."""
        return QUERY.format(
            more="" if self.archived else UNARCHIVED if self.switches else SIMPLE_PARAMETER + UNARCHIVED
        )

    def __or__(self, listing: "GroupListing") -> "GroupListing":
        """Return the listing that serves both."""
        return GroupListing(self.archived or listing.archived, self.switches | listing.switches)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The reading of listed projects while further projects are still being listed.

    Attributes:
        kinds: all kinds.
        prepare: returns the desired state of listed projects.
    """

    kinds: Kinds
    prepare: Prepare


def discover(
    groups: Mapping[str, GroupListing],
    reader: FleetReader,
    pathless: Iterable[Target] = (),
    *,
    prefetch: Prefetch | None = None,
) -> Discovery:
    """List the projects of some groups (deployed behaviour, section 7.8), side by side, each group once.

    Args:
        groups: the needed facts of each group, by full path.
        reader: the service.
        pathless: targets declared by ID whose paths are needed; a record is requested for each that no list shows.
        prefetch: reads listed projects in requests that no list needs; None to read only lists.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`. Any other failure is the obstacle of a group.
    """
    wanted: dict[str, GroupListing] = {}
    for group, listing in groups.items():
        wanted[group.casefold()] = wanted.get(group.casefold(), listing) | listing
    lists = _Lists(wanted, reader, prefetch)
    lists.read()
    members_by_group = {group: lists.found[group] for group in wanted}
    ids = {
        Reference(Level.PROJECT, member.path.casefold()): member.id
        for members in members_by_group.values()
        if not isinstance(members, Obstacle)
        for member in members
        if member.id is not None
    }
    listed = {Target(Level.PROJECT, number) for number in ids.values()}
    asked = look_up_paths({*pathless} - listed, reader)
    paths = {target: path for target, path in asked.items() if isinstance(path, str)}
    ids |= {
        Reference(target.level, path.casefold()): target.ref
        for target, path in paths.items()
        if isinstance(target.ref, int)
    }
    unknown = {target: path for target, path in asked.items() if isinstance(path, Obstacle)}
    return Discovery({group: members_by_group[group.casefold()] for group in groups}, ids, paths, unknown, lists.parts)


def discover_members(run: Run, roster: Roster) -> Discovery:
    """List the projects of all groups that the manifests name, at present and in the revision of `--since`.

    Groups with `create` are looked up first: a group that does not exist cannot be listed.
    """
    listings = _listings(run)
    pathless = {target for revision in _revisions(run) for target in revision.pathless}
    if not (listings or pathless):
        return Discovery({}, {})
    creating = [target for target in run.manifests.desired.targets if target.creation is not None]
    selected = select(DesiredState(tuple(creating), ""), run.scope.selection, partly=True).targets
    _find_groups(roster, listings, creating, selected)
    missing = _missing_groups(listings, creating, roster)
    listed = {group: listing for group, listing in listings.items() if group not in missing}
    discovery = discover(listed, roster, pathless, prefetch=_prefetch(run, missing))
    if discovery.groups and all(isinstance(members, Obstacle) for members in discovery.groups.values()):
        refuse_unless_api(roster, run.api_url)
    return replace(discovery, groups={**discovery.groups, **missing})


def with_members(manifests: Manifests, discovery: Discovery) -> Manifests:
    """Return the manifests with all sets applied."""
    if not (manifests.index.groups or manifests.pathless):
        return manifests
    listed = {group: discovery.groups[group] for group in manifests.index.groups}
    return manifests.with_discovered(listed, discovery.paths)


def look_up_unlisted(run: Run, manifests: Manifests, discovery: Discovery, roster: Roster) -> None:
    """Read the record of each documented project that the list of its group lacks, and that this run does not read.

    Such a project may have moved: then its document is about one that the run would plan by its sets alone.

    Args:
        run: the request of the command.
        manifests: with the members of groups.
        discovery: the projects of groups.
        roster: the service.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    listed = discovery.listed
    lists = {group.casefold() for group, members in discovery.groups.items() if not isinstance(members, Obstacle)}
    selected = select(manifests.desired, run.scope.selection, partly=True).targets if _plans_all_selected(run) else ()
    read = {declared.target for declared in selected if declared.sections}
    lacking = [
        declared.target
        for declared in manifests.desired.targets
        if declared.target.level is Level.PROJECT
        and isinstance(declared.target.ref, str)
        and declared.target.identity[1] not in listed
        and declared.target not in read
        and declared.creation is None
        and missing_group(declared.target, roster.answers) is None
        and groups_above(declared.target.ref, lists)
    ]
    ask_each(lambda target, reader: answer_or_error(lambda: fetch_record(target, reader)), lacking, roster)


def with_default_branches(
    manifests: Manifests,
    desired: DesiredState,
    roster: Roster,
    to_create: Collection[Identity],
    listed: Collection[Key],
) -> tuple[Manifests, DesiredState, Branches]:
    """Look up the default branches of the projects to plan that no list shows, and fill them in.

    Args:
        manifests: with the members of groups.
        desired: the part of the manifests to plan.
        roster: the service.
        to_create: the targets that this run creates, by `Target.identity`.
        listed: the projects that a list has shown, by path in lower case and by number.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    unknown = {
        declared.target
        for declared in desired.targets
        if not declared.unplannable.keys().isdisjoint(section.kind for section in declared.sections)
        and declared.target.identity[1] not in listed
    }
    asked = {target for target in unknown if target.identity not in to_create}
    branches: dict[Identity, str | Obstacle] = {
        target.identity: branch for target, branch in ask_each(look_up_default_branch, asked, roster).items()
    }
    for target in unknown - asked:
        reason = "this run creates the project, and its default branch is known afterwards"
        branches[target.identity] = Obstacle(target.address, reason, "plan again then", effect="not applicable")
    if not branches:
        return manifests, desired, branches
    manifests = manifests.with_branches(branches)
    return manifests, as_now_declared(desired, manifests, branches), branches


def _revisions(run: Run) -> list[Manifests]:
    return [run.manifests, *([run.past.manifests] if run.past else [])]


def _listings(run: Run) -> dict[str, GroupListing]:
    """Return, by group, the facts about its projects that the run needs."""
    groups: dict[str, GroupListing] = {}
    chosen = {*run.scope.selection.sections}
    for revision in _revisions(run):
        with_archived = revision.index.groups_with_archived
        for group, sections in revision.index.sections_below.items():
            below = sections & chosen if chosen else sections
            switches = frozenset(key for name in below for key in run.kinds[name].needs.switches)
            if any(run.kinds[name].branch_fields for name in below) and revision.index.names_default_branch:
                switches |= {REPOSITORY}
            listing = GroupListing(group in with_archived, switches)
            groups[group] = groups.get(group, listing) | listing
    return groups


def _find_groups(
    roster: Roster, groups: Collection[str], creating: Iterable[DesiredTarget], selected: Iterable[DesiredTarget]
) -> None:
    """Look up which groups exist before they are listed, if a manifest creates the group or one above it.

    Of the groups above, only those are looked up that the run selects.
    """
    listed = {Target(Level.GROUP, group).identity for group in groups}
    above = {(Level.GROUP, path) for group in groups for path in Target(Level.GROUP, group).groups_above}
    needed = {target.target.identity for target in selected}
    eligible = listed | (above & needed)
    wanted = (target.target for target in creating if target.target.identity in eligible)
    roster.find(wanted, to_create=needed)


def _missing_groups(
    groups: Iterable[str], creating: Iterable[DesiredTarget], roster: Roster
) -> dict[str, tuple[()] | Obstacle]:
    """Return the groups that do not exist: without projects if a manifest creates them, else with an obstacle."""
    created = {target.target.identity for target in creating}
    missing: dict[str, tuple[()] | Obstacle] = {}
    for group in groups:
        target = Target(Level.GROUP, group)
        above = missing_group(target, roster.answers)
        if roster.answers.get(target.identity, ExistingTarget(0) if above is None else above[1]) is None:
            reason = f"group {group} does not exist yet, and no manifest creates it"
            remedy = "correct the group, or add `create: {}` to its document"
            unknown = Obstacle(target.address, reason, remedy, cause=NO_SUCH_GROUP)
            missing[group] = () if target.identity in created else unknown
    return missing


def _plans_all_selected(run: Run) -> bool:
    """Return whether a run plans all targets that are selected by name, label and section."""
    scope = run.scope
    return run.past is None and not scope.since_applied and scope.shard is None and scope.failed is None


def _prefetch(run: Run, group_paths: Iterable[str]) -> Prefetch | None:
    """Return the early reader of listed projects; None if the targets of the plan are not known yet."""
    if not _plans_all_selected(run):
        return None
    none: Mapping[str, Sequence[Member]] = {group.casefold(): () for group in group_paths}

    def prepare(members: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        whole = DesiredState(run.manifests.of_members({**none, **members}), "")
        desired, today = select(whole, run.scope.selection, partly=True), run.reader.now().date()
        lacking = (obstacle for target in desired.targets for obstacle in lacking_sections(target, run.kinds, today))
        return without(desired, lacking).targets

    return Prefetch(run.kinds, prepare)


def project_numbers(group: Target, reader: Reader) -> list[int]:
    """Return the IDs of the projects of a group that are not archived.

    Raises:
        ServiceError: the projects cannot be listed.
    """
    path = f"{group.url}projects"
    members = (_member(entry, path, frozenset()) for entry in reader.pages(f"{path}?{GroupListing().query}"))
    return [member.id for member in members if member.id is not None]


class _Lists:
    """The lists of all groups: each page is a task, and the reading of listed projects is queued behind these tasks.

    Once the lists are complete, readings that have not begun are dropped: the run itself reads these parts.

    Attributes:
        found: the projects of each group, or the obstacle to listing them.
        parts: the parts that were read early.
    """

    def __init__(self, groups: Mapping[str, GroupListing], reader: FleetReader, prefetch: Prefetch | None) -> None:
        self.found: dict[str, tuple[Member, ...] | Obstacle] = {}
        self.parts: dict[PartAddress, tuple[Wanted, LivePart]] = {}
        self._groups, self._reader, self._prefetch = groups, reader, prefetch
        self._shown: dict[str, set[str]] = {}
        self._showing = Lock()
        tasks = [partial(self._list, group) for group in groups]
        self._crew = Crew[Callable[[], None]](lambda task: task(), tasks, reader.concurrency)

    def read(self) -> None:
        """Read all lists."""
        self._crew.run()

    @property
    def are_complete(self) -> bool:
        return len(self.found) == len(self._groups)

    def _list(self, group: str) -> None:
        listed = _list(group, self._groups[group], self._reader, self._spread, partial(self._show, group))
        self.found[group] = listed

    def _spread(self, read_page: Callable[[str], Result], pages: Sequence[str]) -> list[Result]:
        """Fetch pages, with the help of idle workers."""
        results = share_tasks(self._crew, read_page, pages)
        # The crew drops the pages that it has not begun when another task fails.
        if len(results) < len(pages):
            raise Stopped(f"GET {pages[0].partition('?')[0]}", "the run has ended")
        return results

    def _show(self, group: str, listed_projects: Iterable[Member]) -> None:
        """Record listed projects, and read those that the lists of all groups above them have shown."""
        if self._prefetch is None:
            return
        ready = []
        with self._showing:
            for member in listed_projects:
                path = member.path.casefold()
                shown = self._shown.setdefault(path, set())
                # A list that has shifted is read again, and shows its projects once more.
                if group not in shown and not is_scheduled_for_deletion(path):
                    shown.add(group)
                    if len(shown) == len(groups_above(path, self._groups)):
                        ready.append(member)
        if ready:
            self._crew.add(partial(self._prepare, ready, self._prefetch))

    def _prepare(self, listed_projects: Sequence[Member], prefetch: Prefetch) -> None:
        if self.are_complete:
            return
        above = {member.path: groups_above(member.path, self._groups) for member in listed_projects}
        numbers = {member.path.casefold(): member.id for member in listed_projects}
        by_group = {
            group: tuple(member for member in listed_projects if group in above[member.path]) for group in self._groups
        }
        for target in prefetch.prepare(by_group):
            for section in target.sections:
                for part, wanted in section.wanted.items():
                    address = target.target, section.kind, part
                    number = numbers.get(str(target.target.ref).casefold())
                    self._crew.add(
                        partial(self._read, address, prefetch.kinds[section.kind].part(part), wanted, number)
                    )

    def _read(self, address: PartAddress, part: Part, declaration: Wanted, number: int | None) -> None:
        if not self.are_complete:
            self.parts[address] = declaration, read_part(self._reader, part, address[0], declaration, number)


def _list(
    group: str, listing: GroupListing, reader: FleetReader, spread: Spread, show: Callable[[Iterable[Member]], None]
) -> tuple[Member, ...] | Obstacle:
    path = f"{Target(Level.GROUP, group).url}projects"

    def keep(page_entries: list[Json]) -> list[Member]:
        members = [_member(entry, path, listing.switches) for entry in page_entries]
        show(members)
        return members

    def ask() -> tuple[Member, ...]:
        members = reader.gather(f"{path}?{listing.query}", keep, spread)
        # A list with archived projects has those too whose deletion is scheduled (deployed behaviour, section 7.6).
        return tuple(member for member in members if not is_scheduled_for_deletion(member.path))

    answer = answer_or_error(ask)
    return _obstacle(group, answer, reader) if isinstance(answer, ServiceError) else answer


def _obstacle(group: str, error: ServiceError, reader: Reader) -> Obstacle:
    """Return the obstacle to a list of a group's projects."""
    target = Target(Level.GROUP, group)
    reason = f"the projects of group {group} cannot be listed (GET {target.url}projects: {error.reason})"
    if isinstance(error, Forbidden):
        caller = ask_caller(reader)
        remedy = f"{caller.shortfall}: {ADMIN_MODE}" if caller.shortfall else "use a token of a member of the group"
        return Obstacle(target.address, reason, remedy)
    if not isinstance(error, NotFound):
        return Obstacle(target.address, reason, TRY_AGAIN)
    if has_other_level(target, reader):
        wrong = f"{group} is a project, not a group"
        return Obstacle(target.address, wrong, f"list it here, as `projects: [{group}]`", cause=NO_SUCH_GROUP)
    return Obstacle(
        target.address,
        f"{reason}: no such group, or not visible to this token",
        f"{visibility_remedy(reader, 'group')}; if the service cannot list the projects of any group, list them here, "
        "as `projects` instead of `group`",
        cause=NO_SUCH_GROUP,
    )


def _member(entry: Json, path: str, switches: frozenset[str]) -> Member:
    match entry:
        case {"path_with_namespace": str(full_path), "id": int(number)}:
            off = frozenset(key for key in switches if is_off(entry.get(key)))
            is_empty = entry.get("empty_repo") is True
            return Member(full_path, bool(entry.get("archived")), number, off, is_empty, default_branch(entry))
    raise BadAnswer(f"GET {path}", UNEXPECTED)
