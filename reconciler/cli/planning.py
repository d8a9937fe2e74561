"""From the options of a command to its plan: which targets it is about, and what would change in them.

Commands import this module only when they run, so that the others start fast.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from reconciler import __version__
from reconciler.apply import Status
from reconciler.cli.session import Session
from reconciler.cli.settings import read_file
from reconciler.documents.plan_file import SavedPlan, is_about
from reconciler.documents.report import load_report
from reconciler.errors import PlanRefused, ServiceError, UsageError
from reconciler.fleet.causes import refuse_unless_api
from reconciler.fleet.lacking_sections import lacking_sections
from reconciler.fleet.missing_targets import find_groups, look_for, missing_groups
from reconciler.fleet.run import Known, Move, draw_plan, moved_targets
from reconciler.fleet.unlisted_sets import hold_unlisted
from reconciler.gitops.applied import committed
from reconciler.gitops.compare import Comparison
from reconciler.gitops.past import compare_with_past
from reconciler.live.discovery import Ahead, Discovery, Listing, discover
from reconciler.live.existence import Answers
from reconciler.live.records import fetch_record
from reconciler.manifests import Manifests, Member, UnlistedSet
from reconciler.manifests.project_sets import Discovered
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Address, Level, Target
from reconciler.planning.creation import variables_of
from reconciler.planning.obstacles import with_obstacles, without
from reconciler.planning.renames import rename_hints
from reconciler.planning.revert import WayBack
from reconciler.planning.selection import (
    Shard,
    add_missing,
    matches,
    read_shard,
    restrict,
    share,
)
from reconciler.service import Client

LOG = logging.getLogger("reconciler")

NOTHING: Mapping[str, str] = MappingProxyType({})
NARROWED = "it is narrowed to some targets, sections or changes"


def draw(session: Session, client: Client, grace: timedelta = timedelta(), *, commit: bool = False) -> SavedPlan:
    """Read the manifests and live state and return the plan. Nothing is written: see `planning.draw_plan`.

    Args:
        session: the run.
        client: the service.
        grace: see `DesiredState.grace`.
        commit: whether the plan records the commit of the manifests.
    """
    given = session.given
    failed = failed_before(session)
    with session.watched(client) as progress:
        progress.begin("reading manifests")
        fleet = read_fleet(session, client, failed, partly=True)
        plan = draw_plan(
            replace(without(fleet.desired, fleet.lacking), grace=grace, forced=given.force_events),
            client,
            session.kinds,
            client.concurrency,
            known=fleet.known,
            progress=progress,
            api_url=client.api_url,
        )
    plan = with_obstacles(plan, fleet.obstacles, session.kinds)
    _warn_of_variables(plan)
    if failed is not None:
        plan = restrict(plan, failed)
        declared = {(target.target, section.kind) for target in fleet.known.targets for section in target.sections}
        if fleet.shard is not None and fleet.shard.number > 1:
            # The first shard alone reports what no manifest declares.
            failed = frozenset(each for each in failed if (each.target, each.section) in declared)
        plan = add_missing(plan, failed, declared, session.selection)
    plan = with_obstacles(plan, moved_targets(fleet.known.moved(), follow=given.follow_moved), session.kinds)
    targets = (each.with_origins(fleet.manifests.origin) for each in plan.targets)
    plan = replace(plan, targets=tuple(targets))
    hints = rename_hints(plan, session.kinds, fleet.manifests.declaration)
    saved = _saved(session, client, plan, fleet.desired.digest, fleet.shard)
    narrowed = given.narrowed or (given.since is not None and not given.everything)
    saved = replace(saved, hints=hints, archived=len(fleet.archived), narrowed=narrowed)
    if not commit:
        return saved
    known, why_not = ("", NARROWED) if given.narrowed else committed(session.inputs, fleet.manifests, fleet.read)
    return replace(saved, commit=known or None, uncommitted=why_not)


def _warn_of_variables(plan: Plan) -> None:
    """Warn once of each environment variable with the token of an import that is not set."""
    lacking: dict[str, list[Target]] = {}
    for target in plan.targets:
        for variable in variables_of(target):
            if not os.environ.get(variable, "").strip():
                lacking.setdefault(variable, []).append(target.target)
    for variable, targets in lacking.items():
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        LOG.warning("%s is not set or empty, and the import of %s%s needs it", variable, targets[0], more)


def draw_way_back(session: Session, client: Client, file: Path) -> SavedPlan:
    """Read the report of an apply and live state, and return the plan of the way back. Nothing is written.

    Raises:
        PlanRefused: the file is not such a report, was edited, or is about another service.
    """
    given = session.given
    text = read_file(file)
    report = load_report(text, session.kinds)
    if not is_about(report.service, client.api_url):
        raise PlanRefused(f"{file}: the report is about {report.service!r}, and this is {client.api_url!r}")
    way_back = WayBack(report.done, session.kinds, sha256(text.encode()).hexdigest())
    left = session.select(way_back.left)
    moved = cache(partial(_moved_projects, client))
    with session.watched(client) as progress:
        plan = draw_plan(
            left,
            client,
            session.kinds,
            client.concurrency,
            known=Known(moved=moved),
            progress=progress,
            api_url=client.api_url,
            make=way_back.plan,
        )
    plan = with_obstacles(plan, moved_targets(moved(), follow=given.follow_moved), session.kinds)
    return _saved(session, client, plan, left.digest)


def _saved(session: Session, client: Client, plan: Plan, digest: str, shard: Shard | None = None) -> SavedPlan:
    """Return a plan that was made now, as it can be saved."""
    return SavedPlan(
        service=client.api_url,
        created_at=datetime.now(UTC).replace(microsecond=0),
        tool_version=__version__,
        manifests_digest=digest,
        requests_made=client.traffic.reads,
        shard=shard,
        limits=session.limits(),
        targets=plan.targets,
        dependent=plan.dependent,
        whole=plan.whole,
    )


def failed_before(session: Session) -> frozenset[Address] | None:
    """Return what a previous run did not do, for `--retry-failed`; None without it."""
    file = session.given.retry_failed
    if file is None:
        return None
    report = load_report(read_file(Path(file)), session.kinds)
    failed = frozenset(each.change.address for each in report.outcomes if each.status is not Status.DONE)
    if not failed:
        session.info(f"Nothing failed in {file}.")
    return failed


@dataclass(frozen=True, slots=True)
class Fleet:
    """The targets of a run.

    Attributes:
        desired: the targets; the digest is that of all there are, with `--since` that of all files.
        known: what came to light on the way.
        shard: which part of the targets these are, if they were divided.
        kept: why some targets keep objects that are no longer declared, or are not planned at all.
        lacking: the sections that targets cannot have; those that are not applicable are not among the desired ones.
        manifests: where all of it is declared.
        read: by file, the ID of what was read as an object of the git repository, as far as known.
    """

    desired: DesiredState
    known: Known
    shard: Shard | None
    kept: tuple[Obstacle, ...]
    lacking: tuple[Obstacle, ...]
    manifests: Manifests
    read: Mapping[str, str]

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """All that is known to be in the way before anything is read."""
        return *self.lacking, *self.kept

    @property
    def archived(self) -> frozenset[str]:
        """The archived projects that sets leave out; the first shard alone counts them."""
        if self.shard is not None and self.shard.number > 1:
            return frozenset()
        planned = {(target.path or str(target.target.ref)).casefold() for target in self.known.targets}
        return self.manifests.archived_left_out - planned


def read_fleet(session: Session, client: Client, failed: Iterable[Address] | None, *, partly: bool = False) -> Fleet:
    """Read the manifests, list the groups of project sets, and narrow the targets to the selected ones.

    Args:
        session: the run.
        client: the service.
        failed: what alone is planned; None for everything.
        partly: whether manifests that have not changed since a revision may be left out.

    Raises:
        ManifestErrors: with every error of every file.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: nothing is selected, or an option is not what it should be.
    """
    given, shard = session.given, _shard(session.given.shard)
    if given.everything and given.since is None:
        raise UsageError("--all goes with --since; without it, all targets are planned anyway")
    if given.since is None:
        revisions, now, past = None, session.manifests(), None
    else:
        revisions = session.revisions(given.since, partly=partly and not (given.narrowed or given.everything or shard))
        now, past = revisions.now, revisions.past
    early = past is None and shard is None and failed is None
    found, discovery = _discover(session, [now, past.manifests] if past else [now], client, early=early)
    listed = {group: discovery.groups[group] for group in now.groups}
    if now.groups or now.pathless:
        reported = {*now.warnings}
        now = now.with_discovered(listed, discovery.paths)
        session.warn(warning for warning in now.warnings if warning not in reported)
    comparison: Comparison | None = None
    kept: tuple[Obstacle, ...] = ()
    before: tuple[UnlistedSet, ...] = ()
    if past:
        comparison, kept, before = compare_with_past(now, past, discovery, client, client.concurrency)
    whole = comparison.desired if comparison else now.desired
    if revisions:
        whole = replace(whole, digest=revisions.digest)
    for glob in given.excluded:
        if not any(matches(target, [glob]) for target in whole.targets):
            LOG.warning("--exclude %s matches no target", glob)
    desired = session.select(whole, failed, partly=bool(now.unlisted))
    if comparison and not given.everything and failed is None:
        desired = comparison.narrowed(desired)
    desired, unknown = hold_unlisted(desired, now.unlisted, before)
    if shard is not None:
        desired = share(desired, whole, shard, session.kinds)
    absent = look_for(
        desired, whole, client, client.concurrency, ids=discovery.ids, known=found, api_url=client.api_url
    )
    now = _knowing_archived(now, absent.archived, listed, discovery.paths)
    desired, whole = (_composed_again(each, now.desired, absent.archived) for each in (desired, whole))
    known = Known(
        {**discovery.ids, **absent.ids},
        whole.targets,
        _nameless(discovery),
        cache(partial(_moved_projects, client)),
        discovery.parts,
        absent.targets,
        absent.importing,
    )
    lacking = lacking_sections(desired, session.kinds)
    unlisted = {each.where.target for each in unknown}
    return Fleet(
        without(desired, (each for each in lacking if each.effect == "not applicable")),
        known,
        shard,
        (*(each for each in kept if each.where.target not in unlisted), *unknown),
        lacking,
        now,
        revisions.objects if revisions else NOTHING,
    )


def _knowing_archived(
    manifests: Manifests, archived: Sequence[Member], listed: Discovered, paths: Mapping[Target, str]
) -> Manifests:
    """Return the manifests without archived projects that sets leave out, although documents create these projects.

    Before they are known to be archived, sets select them as if they were to be created, since no list shows them.
    """
    found = archived and manifests.groups
    return manifests.with_discovered({**listed, "": archived}, paths) if found else manifests


def _composed_again(desired: DesiredState, composed: DesiredState, archived: Sequence[Member]) -> DesiredState:
    """Return what is wanted, of archived projects as far as it is declared now that they are known to be archived."""
    if not archived:
        return desired
    names = {Target(Level.PROJECT, each.path).identity for each in archived}
    again = {each.target.identity: each for each in composed.targets if each.target.identity in names}

    def corrected(declared: DesiredTarget) -> DesiredTarget:
        kinds = {section.kind for section in declared.sections}
        own = again.get(declared.target.identity, declared)
        return replace(own, sections=tuple(each for each in own.sections if each.kind in kinds))

    return replace(desired, targets=tuple(map(corrected, desired.targets)))


def _shard(given: str | None) -> Shard | None:
    """Return the shard that was given, else that of a parallel CI job, with a warning."""
    if given is not None:
        return read_shard(given)
    number, total = os.environ.get("CI_NODE_INDEX"), os.environ.get("CI_NODE_TOTAL")
    if not (number and total):
        return None
    shard = read_shard(f"{number}/{total}")
    if shard.total > 1:
        LOG.warning(
            "only shard %s of the targets, as CI_NODE_INDEX and CI_NODE_TOTAL say; for all targets add --shard 1/1",
            shard,
        )
    return shard


def _discover(
    session: Session, revisions: Sequence[Manifests], client: Client, *, early: bool
) -> tuple[Answers, Discovery]:
    """List the projects of all groups; read some of them meanwhile if `early`.

    Groups that the manifests create are asked for first, since none is listed that does not exist. The answers are the
    first value.
    """
    groups: dict[str, Listing] = {}
    for each in revisions:
        with_archived = each.groups_with_archived
        for group, sections in each.sections_below.items():
            chosen = sections & {*session.given.sections} if session.given.sections else sections
            switches = frozenset(key for name in chosen for key in session.kinds[name].needs.switches)
            listing = Listing(group in with_archived, switches)
            groups[group] = groups.get(group, listing) | listing
    pathless = {target for each in revisions for target in each.pathless}
    creating = [each for each in revisions[0].desired.targets if each.creation is not None]
    selected = session.select(DesiredState(tuple(creating), ""), partly=True).targets
    created = [each for each in selected if each.creation is not None]
    found = find_groups(groups, creating, created, client, client.concurrency)
    missing = missing_groups(groups, creating, found)
    nobody: Mapping[str, Sequence[Member]] = {group.casefold(): () for group in missing}

    def prepare(members: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        found = session.select(DesiredState(revisions[0].of_members({**nobody, **members}), ""), partly=True)
        return without(found, lacking_sections(found, session.kinds)).targets

    ahead = Ahead(session.kinds, prepare) if early else None
    listed = {group: listing for group, listing in groups.items() if group not in missing}
    discovery = discover(listed, client, client.concurrency, pathless, ahead=ahead)
    if discovery.groups and all(isinstance(each, Obstacle) for each in discovery.groups.values()):
        refuse_unless_api(client, client.api_url)
    return found, replace(discovery, groups={**discovery.groups, **missing})


def _nameless(discovery: Discovery) -> tuple[Obstacle, ...]:
    """Return an obstacle for each target whose placeholders cannot be filled in."""
    advice = "its manifest uses `{path}`, `{name}` or `{namespace}`; give `path` instead of `id`"
    return tuple(
        replace(each, reason=f"the path of {target} is not known ({each.reason}), and {advice}", effect="read only")
        for target, each in discovery.unknown.items()
    )


def _moved_projects(client: Client) -> dict[Target, Move]:
    """Return the projects whose paths redirected, each with where it is now, and warn of each."""
    moves = {}
    for (level, path), number in client.moved.items():
        try:
            record = fetch_record(Target(level, number), client)
            move = Move(number, record.path, str(record.fields.get("marked_for_deletion_on") or ""))
        except ServiceError:
            move = Move(number)
        LOG.warning("%s %s %s %s", level, path, "is to be deleted, as" if move.doomed else "has moved to", move)
        moves[Target(level, path)] = move
    return moves
