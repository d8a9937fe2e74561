"""The second stage, for `--since`: which targets another revision, or the last apply, declares otherwise."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from reconciler.engine.discovery import Discovery
from reconciler.engine.survey import Added, FleetSurvey
from reconciler.gitops.revision import Revision
from reconciler.manifests import Manifests
from reconciler.manifests.project_sets import NO_SUCH_GROUP, UnlistedSet
from reconciler.model.absence import undeclared
from reconciler.model.effective import digest_of
from reconciler.model.inventory import Inventory, TargetLine, target_name, target_order
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget, Reference
from reconciler.model.targets import PATHLESS, Target
from reconciler.model.wording import counted

LOG = logging.getLogger("reconciler")


def compare(run: FleetSurvey) -> Added:
    """Compare with the revision, or with the inventory, if the run is about what has changed since then.

    Nothing is deleted because only a revision declares it: the plan says what stays for want of an inventory. Without
    one, everything has changed since the last apply.
    """
    stored = run.inventory.stored
    known = stored.inventory if stored is not None and stored.commit else None
    if run.scope.since_applied:
        if stored is None and run.inventory.error is None:
            LOG.warning(
                "--since applied: this run has no inventory, and plans all targets; an inventory takes a git "
                "repository, and neither --no-inventory nor `inventory: false`"
            )
        today = run.reader.now().date()
        compared = None if known is None else frozenset(_changed_since_apply(run.manifests, known, run.live.ids, today))
        return {"changed": compared}
    if run.past is None:
        return {}
    past = _with_discovered(run.past, run.discovery)
    for warning in past.warnings:
        LOG.warning("--since %s", warning)
    changed = frozenset(_changed_since_revision(run.whole, past.declared, past.manifests.unlisted))
    added = {"past": past, "changed": changed}
    number = 0 if known is not None or run.inventory.error else undeclared(run.whole, past.manifests.desired, run.kinds)
    if not number:
        return added
    unknown = "is no longer declared; no inventory knows it: it stays"
    if number > 1:
        unknown = "are no longer declared; no inventory knows them: they stay"
    lines = (*run.inventory.lines, f"{counted(number, 'object')} {unknown}")
    return {**added, "inventory": replace(run.inventory, lines=lines)}


def _changed_since_revision(
    now: DesiredState, then: Iterable[DesiredTarget], unlisted: Sequence[UnlistedSet]
) -> Iterator[Target]:
    """Yield the targets whose effective spec differs from that of a revision, or may differ as far as anybody knows."""
    digests = {target.target.identity: digest_of(target) for target in then}
    for target in now.targets:
        is_same = digests.get(target.target.identity) == digest_of(target)
        if not is_same or any(unlisted_set.may_select(target) for unlisted_set in unlisted):
            yield target.target


def _changed_since_apply(
    now: Manifests, inventory: Inventory, ids: Mapping[Reference, int | Obstacle], today: date
) -> Iterator[Target]:
    """Yield the targets that were not applied as they are declared now, or that time has changed since then."""
    ordered = sorted(inventory.targets.values(), key=lambda line: target_order(line.target))
    by_path = {(line.target.partition(" ")[0], line.path.casefold()): line for line in ordered}
    pathless = {*now.pathless}

    def applied(target: Target) -> TargetLine | None:
        if target.level in PATHLESS:
            return inventory.targets.get(target_name(target.level, None))
        if isinstance(target.ref, str):
            path = target.ref.casefold()
            number = ids.get(Reference(target.level, path))
            if not isinstance(number, int):
                return by_path.get((str(target.level), path))
            return inventory.targets.get(target_name(target.level, number))
        return inventory.targets.get(target_name(target.level, target.ref))

    for target in now.desired.targets:
        line = applied(target.target)
        is_due = line is not None and line.again is not None and line.again <= today
        if line is None or is_due or target.target in pathless or line.digest != digest_of(target):
            yield target.target


def _with_discovered(past: Revision, discovery: Discovery) -> Revision:
    """Return a revision with all sets applied. A group that does not exist counts as one without projects."""
    members = {group: discovery.groups[group] for group in past.manifests.index.groups}
    shown = {
        group: () if isinstance(listed, Obstacle) and listed.cause == NO_SUCH_GROUP else listed
        for group, listed in members.items()
    }
    return past.with_discovered(shown, discovery.paths) if shown or past.manifests.pathless else past
