"""Which targets a run is about: those of the sets too, narrowed to what was asked for, has changed, or falls to us."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.address import Address
    from reconciler.cli.session import Session
    from reconciler.discovery import Discovery
    from reconciler.history import Snapshot
    from reconciler.manifests import Manifests
    from reconciler.shards import Shard
    from reconciler.since import Comparison
    from reconciler.state import DesiredState, Reference
    from reconciler.wire import Reader


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run is about.

    Attributes:
        desired: the targets; the digest is that of all there are.
        ids: the numeric IDs that came to light on the way.
    """

    desired: "DesiredState"
    ids: "Mapping[Reference, int]"


def scope_of_run(session: "Session", reader: "Reader", failed: "Iterable[Address] | None") -> Scope:
    """Read the manifests, discover what their sets are about, and narrow it all to what the command line asks for.

    Raises:
        ManifestErrors: with every fault of every file.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: nothing is selected, or an option is not what it should be.
    """
    shard = _shard(session.given.shard)
    if session.given.everything and session.given.since is None:
        raise UsageError("--all goes with --since; without it, all targets are planned anyway")
    now = session.manifests()
    snapshot, then = _then(session, session.given.since)
    discovery = _discover(session, now, then, reader)
    if now.groups:
        told = now.warnings
        now = now.with_discovered({group: discovery.groups[group] for group in now.groups})
        session.warn(doubt for doubt in now.warnings if doubt not in told)
    whole = now.desired
    comparison = None
    if then is not None and snapshot is not None:
        _warn_of_parting(session, snapshot)
        comparison = _compare(session, whole, _discovered_then(then, discovery), reader, discovery.ids)
        whole = comparison.desired
    desired = session.select(whole, failed)
    if comparison and not session.given.everything:
        desired = comparison.narrowed(desired)
    if shard is not None:
        from reconciler.shards import share

        desired = share(desired, whole, shard, session.kinds)
    return Scope(desired, discovery.ids)


def _shard(given: str | None) -> "Shard | None":
    number, total = os.environ.get("CI_NODE_INDEX"), os.environ.get("CI_NODE_TOTAL")
    if given is None and number and total:
        given = f"{number}/{total}"
    if given is None:
        return None
    from reconciler.shards import read_shard

    return read_shard(given)


def _then(session: "Session", revision: str | None) -> "tuple[Snapshot, Manifests] | tuple[None, None]":
    """Read the manifests as they were; templates get the values that were with them."""
    if revision is None:
        return None, None
    from reconciler.history import snapshot
    from reconciler.manifests import read_contents

    found = snapshot(revision, session.paths[0])
    then = read_contents(
        found.manifests(session.paths),
        session.kinds,
        values=session.template_values(found.file),
        env_names=session.given.environment,
    )
    return found, then


def _discover(session: "Session", now: "Manifests", then: "Manifests | None", reader: "Reader") -> "Discovery":
    from reconciler.discovery import discover

    revisions = [now, then] if then else [now]
    groups = {group: group in each.groups_with_archived for each in revisions[::-1] for group in each.groups}
    for each in revisions:
        groups |= dict.fromkeys(each.groups_with_archived, True)
    return discover(groups, reader, session.given.concurrency)


def _discovered_then(then: "Manifests", discovery: "Discovery") -> "DesiredState":
    """What was declared then of the projects there are now; a group that is gone by now has none."""
    from reconciler.manifests import Hidden

    found = {group: discovery.groups[group] for group in then.groups}
    shown = {group: () if isinstance(members, Hidden) else members for group, members in found.items()}
    return then.with_discovered(shown).desired if shown else then.desired


def _compare(
    session: "Session",
    now: "DesiredState",
    then: "DesiredState",
    reader: "Reader",
    ids: "Mapping[Reference, int]",
) -> "Comparison":
    """Compare now with then, less what is not there any more, and knowing what is only called otherwise."""
    from dataclasses import replace

    from reconciler.since import compare, removed
    from reconciler.whereabouts import names_now

    lost = names_now([each.scope for each in removed(now, then)], reader, session.given.concurrency, ids)
    gone = {scope.identity for scope, names in lost.items() if not names}
    present = {target.scope.identity for target in now.targets}
    successors = {scope.identity: name for scope, names in lost.items() for name in names if name in present}
    left = tuple(target for target in then.targets if target.scope.identity not in gone)
    return compare(now, replace(then, targets=left), session.kinds, successors)


def _warn_of_parting(session: "Session", snapshot: "Snapshot") -> None:
    parted = snapshot.parted()
    if parted is not None:
        instead = f"; to leave that alone, give --since {parted}, where the two parted" if parted else ""
        session.warn(
            [
                f"--since {snapshot.revision}: this is no ancestor of what is checked out: what was declared there "
                f"since, and is not here, counts as removed{instead}"
            ]
        )
