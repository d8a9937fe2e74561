"""The second stage: which targets another revision declares otherwise, for `--since REV`."""

import logging
from collections.abc import Iterator

from reconciler.fleet.survey import Added, FleetSurvey
from reconciler.gitops.revision import Revision
from reconciler.live.discovery import Discovery
from reconciler.manifests.project_sets import NO_SUCH_GROUP
from reconciler.model.effective import digest_of
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState
from reconciler.model.targets import Target

LOG = logging.getLogger("reconciler")


def compare(run: FleetSurvey) -> Added:
    """Compare with the other revision, if there is one. Nothing is deleted because only that revision declares it."""
    whole = run.manifests.desired
    if run.past is None:
        return {"whole": whole}
    past = _with_discovered(run.past, run.discovery)
    for warning in past.warnings:
        LOG.warning("--since %s", warning)
    return {"whole": whole, "changed": frozenset(changed(whole, past))}


def changed(now: DesiredState, past: Revision) -> Iterator[Target]:
    """Yield the targets whose effective spec differs from that of a revision, or may differ as far as anybody knows."""
    then = past.manifests
    pathless, unlisted = {*then.pathless}, then.unlisted
    digests = {each.target.identity: digest_of(each) for each in then.desired.targets if each.target not in pathless}
    for target in now.targets:
        is_same = digests.get(target.target.identity) == digest_of(target)
        if not is_same or any(each.may_select(target) for each in unlisted):
            yield target.target


def _with_discovered(past: Revision, discovery: Discovery) -> Revision:
    """Return a revision with all sets applied. A group that does not exist counts as one without projects."""
    members = {group: discovery.groups[group] for group in past.manifests.groups}
    shown = {
        group: () if isinstance(each, Obstacle) and each.cause == NO_SUCH_GROUP else each
        for group, each in members.items()
    }
    return past.with_discovered(shown, discovery.paths) if shown or past.manifests.pathless else past
