"""The targets of an export: groups with all projects below them, projects, the user, the instance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.engine.crew import ask_each
from reconciler.engine.discovery import GroupListing, discover
from reconciler.engine.lookups import default_branch
from reconciler.engine.read import answer_or_error
from reconciler.engine.roster import OTHER_LEVEL, TargetRecord, fetch_record, has_other_level
from reconciler.engine.why import path_remedy
from reconciler.errors import NotFound, ServiceError
from reconciler.manifests import Manifests, Member
from reconciler.manifests.documents import plausible_path
from reconciler.manifests.project_sets import by_group
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import FleetReader
from reconciler.model.targets import Identity, Level, Target
from reconciler.model.wording import advised


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The targets and sections to export.

    Attributes:
        groups: full paths or numeric IDs, as the user gave them.
        projects: full paths or numeric IDs, as the user gave them.
        pathless: the levels without paths: the instance, the user behind the token.
        sections: names of sections; empty for all.
    """

    groups: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    pathless: tuple[Level, ...] = ()
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target of an export, under its current name.

    Attributes:
        target: by its full path, in the service's own spelling, or by its ID if manifests do not accept the path.
        id: its numeric ID; None for the user.
        full_path: as the service spells it, even if manifests do not accept it; empty for the user.
        is_empty: whether nothing was pushed into its repository yet.
        default_branch: its name; None if unknown.
    """

    target: Target
    id: int | None = None
    full_path: str = ""
    is_empty: bool = False
    default_branch: str | None = field(default=None, compare=False)

    @property
    def path(self) -> str | None:
        """Its full path, as manifests give it and fill it in for placeholders."""
        return self.target.ref if isinstance(self.target.ref, str) else None

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The identities by which manifests may name the target: by path and by ID."""
        return self.target.identity, (self.target.level, self.id)


def branches_of(resolved_targets: Iterable[ResolvedTarget]) -> dict[Identity, str | Obstacle]:
    """Return the default branches of projects, for manifests that name them by path or by ID."""
    return {
        identity: target.default_branch
        for target in resolved_targets
        if target.default_branch
        for identity in target.identities
    }


def paths_of(resolved_targets: Iterable[ResolvedTarget]) -> dict[Target, str]:
    """Return the paths of targets, for manifests that give them by ID."""
    return {
        Target(target.target.level, target.id): target.path
        for target in resolved_targets
        if target.path and target.id is not None
    }


@dataclass(frozen=True, slots=True)
class ResolvedTargets:
    """The targets of an export.

    Attributes:
        targets: each once, in `Target.order`.
        warnings: one for each target that cannot be read, and for each group whose projects cannot be listed.
        members: by full path of each group that was listed, the projects below it, archived ones included.
        archived: the archived projects that are left out.
    """

    targets: tuple[ResolvedTarget, ...]
    warnings: tuple[str, ...]
    members: Mapping[str, tuple[Member, ...]]
    archived: tuple[Member, ...]


def discovered_in(manifests: Manifests, members: Mapping[str, Sequence[Member]]) -> dict[str, tuple[Member, ...]]:
    """Return the projects of the groups that sets name: those that were listed, and those that have documents."""
    documented = [
        declared.target.ref for declared in manifests.desired.targets if declared.target.level is Level.PROJECT
    ]
    known = {path.casefold(): Member(path) for path in documented if isinstance(path, str)}
    known |= {member.path.casefold(): member for listed in members.values() for member in listed}
    placed = by_group(known.values(), lambda member: member.path)
    return {group: tuple(placed.get(group.casefold(), ())) for group in manifests.index.groups}


def resolve_targets(export_request: ExportRequest, reader: FleetReader, switches: frozenset[str]) -> ResolvedTargets:
    """Look up the named groups and projects, once each, and list the projects of each group; see `discover`.

    Raises:
        ServiceError: one that `ENDS_A_RUN`, or none of the named targets can be read.
    """
    named = dict.fromkeys(
        [Target(Level.GROUP, name) for name in export_request.groups]
        + [Target(Level.PROJECT, name) for name in export_request.projects]
    )
    answers = ask_each(_fetch, named, reader)
    failures = {target: answer for target, answer in answers.items() if isinstance(answer, ServiceError)}
    records = {target: answer for target, answer in answers.items() if not isinstance(answer, ServiceError)}
    if failures and not (records or export_request.pathless):
        raise next(iter(failures.values()))
    warnings = [f"{target} cannot be read and is left out ({error})" for target, error in failures.items()]
    targets = [ResolvedTarget(Target(level)) for level in export_request.pathless]
    targets += [_resolved(target.level, *answer) for target, answer in records.items()]
    groups = [path for target, (path, *_) in records.items() if target.level is Level.GROUP]
    listed = discover(dict.fromkeys(groups, GroupListing(True, switches)), reader).groups
    warnings += [
        advised(listing.reason, listing.remedy) for listing in listed.values() if isinstance(listing, Obstacle)
    ]
    members = {group: listing for group, listing in listed.items() if not isinstance(listing, Obstacle)}
    below = {member.id: member for listing in members.values() for member in listing}.values()
    targets += [
        _resolved(Level.PROJECT, member.path, member.id, member.is_empty, member.default_branch)
        for member in below
        if not member.archived
    ]
    # a project may be named by path and by ID, and be in a named group as well
    by_identity = {resolved.target.identity: resolved for resolved in targets}
    ids = {resolved.id for resolved in targets if resolved.target.level is Level.PROJECT}
    return ResolvedTargets(
        tuple(sorted(by_identity.values(), key=lambda resolved: resolved.target.order)),
        tuple(warnings),
        members,
        tuple(member for member in below if member.id not in ids),
    )


def _fetch(target: Target, reader: FleetReader) -> tuple[str, int | None, bool, str | None] | ServiceError:
    """Return path and ID of a group or project, whether its repository is empty, and its default branch; or an error.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    answer = answer_or_error(lambda: _known(fetch_record(target, reader)))
    if not isinstance(answer, NotFound):
        return answer
    why = f"no such {target.level}, or not visible to this token"
    if has_other_level(target, reader):
        other = OTHER_LEVEL[target.level]
        why = f"this is a {other}, not a {target.level}; give it as --{other}"
    else:
        why = f"{why}; {path_remedy(target, reader)}"
    return NotFound(answer.request, f"{answer.reason}: {why}", answer.status)


def _known(target_record: TargetRecord) -> tuple[str, int | None, bool, str | None]:
    fields = target_record.fields
    return target_record.path, target_record.id, fields.get("empty_repo") is True, default_branch(fields)


def _resolved(level: Level, path: str, number: int | None, is_empty: bool, branch: str | None) -> ResolvedTarget:
    try:
        target = Target(level, plausible_path(path))
    except ValueError:
        target = Target(level, number)
    return ResolvedTarget(target, number, path, is_empty, branch)
