"""The first stage: list the projects of the groups that sets name, and read some of them meanwhile."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.causes import refuse_unless_api
from reconciler.engine.compare.obstacles import without
from reconciler.engine.compare.selection import select
from reconciler.engine.discovery import Ahead, Discovery, GroupListing
from reconciler.engine.discovery import discover as list_groups
from reconciler.engine.existence import Answers, There, find_existing, obstacle
from reconciler.engine.lacking_sections import find_lacking
from reconciler.engine.survey import Added, FleetSurvey
from reconciler.manifests import Manifests, Member
from reconciler.manifests.project_sets import NO_SUCH_GROUP
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Level, Target

LOG = logging.getLogger("reconciler")


def discover(run: FleetSurvey) -> Added:
    """List the projects of all groups, of now and then, and apply the sets to them.

    Groups that the manifests create are asked for first, since none is listed that does not exist.
    """
    listings = _listings(run)
    creating = [target for target in run.manifests.desired.targets if target.creation is not None]
    selected = select(DesiredState(tuple(creating), ""), run.scope.selection, partly=True).targets
    answers = _find_groups(run, listings, creating, [target for target in selected if target.creation is not None])
    missing = _missing_groups(listings, creating, answers)
    listed = {group: listing for group, listing in listings.items() if group not in missing}
    pathless = {target for revision in _revisions(run) for target in revision.pathless}
    discovery = list_groups(listed, run.reader, pathless, ahead=_ahead(run, missing))
    if discovery.groups and all(isinstance(members, Obstacle) for members in discovery.groups.values()):
        refuse_unless_api(run.reader, run.api_url)
    discovery = replace(discovery, groups={**discovery.groups, **missing})
    return {
        "discovery": discovery,
        "answers": answers,
        "live": replace(run.live, ids=discovery.ids),
        "manifests": _with_discovered(run.manifests, discovery),
        "obstacles": (*run.obstacles, *_nameless(discovery)),
    }


def _revisions(run: FleetSurvey) -> list[Manifests]:
    return [run.manifests, *([run.past.manifests] if run.past else [])]


def _listings(run: FleetSurvey) -> dict[str, GroupListing]:
    """Return what is to be known of the projects of each group."""
    groups: dict[str, GroupListing] = {}
    chosen = {*run.scope.selection.sections}
    for revision in _revisions(run):
        with_archived = revision.index.groups_with_archived
        for group, sections in revision.index.sections_below.items():
            below = sections & chosen if chosen else sections
            switches = frozenset(key for name in below for key in run.kinds[name].needs.switches)
            listing = GroupListing(group in with_archived, switches)
            groups[group] = groups.get(group, listing) | listing
    return groups


def _find_groups(
    run: FleetSurvey, groups: Collection[str], creating: Iterable[DesiredTarget], selected: Iterable[DesiredTarget]
) -> Answers:
    """Ask which groups are there before they are listed, as far as the manifests create them or groups above them.

    Of the targets that the manifests create, nothing is asked for above the groups but what is selected.
    """
    listed = {Target(Level.GROUP, group).identity for group in groups}
    above = {(Level.GROUP, path) for group in groups for path in Target(Level.GROUP, group).groups_above}
    needed = {target.target.identity for target in selected}
    around = listed | (above & needed)
    wanted = [target.target for target in creating if target.target.identity in around]
    return find_existing(wanted, run.reader, {}, created=needed)


def _missing_groups(
    groups: Iterable[str], creating: Iterable[DesiredTarget], answers: Answers
) -> dict[str, tuple[()] | Obstacle]:
    """Return the groups that cannot be listed since they do not exist: no projects where the manifests create one."""
    created = {target.target.identity for target in creating}
    missing: dict[str, tuple[()] | Obstacle] = {}
    for group in groups:
        target = Target(Level.GROUP, group)
        above = obstacle(target, answers)
        if answers.get(target.identity, There(0) if above is None else above[1]) is None:
            reason = f"group {group} does not exist yet, and no manifest creates it"
            remedy = "correct the group, or add `create: {}` to its document"
            unknown = Obstacle(target.address, reason, remedy, cause=NO_SUCH_GROUP)
            missing[group] = () if target.identity in created else unknown
    return missing


def _ahead(run: FleetSurvey, missing: Iterable[str]) -> Ahead | None:
    """Return what may be read while groups are listed; None where nobody knows yet what will be planned."""
    if run.past is not None or run.scope.since_applied or run.scope.shard is not None or run.scope.failed is not None:
        return None
    nobody: Mapping[str, Sequence[Member]] = {group.casefold(): () for group in missing}

    def prepare(members: Mapping[str, Sequence[Member]]) -> tuple[DesiredTarget, ...]:
        whole = DesiredState(run.manifests.of_members({**nobody, **members}), "")
        desired = select(whole, run.scope.selection, partly=True)
        return without(desired, find_lacking(desired, run.kinds, run.reader.now().date())).targets

    return Ahead(run.kinds, prepare)


def _with_discovered(manifests: Manifests, discovery: Discovery) -> Manifests:
    """Return the manifests with all sets applied, and warn of what comes to light by that."""
    if not (manifests.index.groups or manifests.pathless):
        return manifests
    listed = {group: discovery.groups[group] for group in manifests.index.groups}
    complete = manifests.with_discovered(listed, discovery.paths)
    reported = {*manifests.warnings}
    for warning in complete.warnings:
        if warning not in reported:
            LOG.warning("%s", warning)
    return complete


def _nameless(discovery: Discovery) -> tuple[Obstacle, ...]:
    """Return an obstacle for each target whose placeholders cannot be filled in."""
    advice = "its manifest uses `{path}`, `{name}` or `{namespace}`; give `path` instead of `id`"
    return tuple(
        replace(reason, reason=f"the path of {target} is not known ({reason.reason}), and {advice}", effect="read only")
        for target, reason in discovery.unknown.items()
    )
