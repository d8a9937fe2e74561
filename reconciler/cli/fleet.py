"""Which targets a run is about: those of the sets too, narrowed to what was asked for, has changed, or falls to us."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli.past import compare_with_past, read_past
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.live.discovery import Discovery
    from reconciler.manifests import Manifests
    from reconciler.model.state import DesiredState
    from reconciler.model.targets import Address
    from reconciler.model.targets import Target as DesiredTarget
    from reconciler.planning.run import Known
    from reconciler.planning.shards import Shard
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a run is about.

    Attributes:
        desired: the targets; the digest is that of all there are.
        known: what came to light on the way.
        shard: which part of the targets these are, if they were divided.
        kept: why some targets keep objects that are no longer declared.
        manifests: what asks for them.
    """

    desired: "DesiredState"
    known: "Known"
    shard: "Shard | None"
    kept: "Mapping[DesiredTarget, str]"
    manifests: "Manifests"


def fleet_of_run(session: "Session", client: "Client", failed: "Iterable[Address] | None") -> Fleet:
    """Read the manifests, discover what they are about, and narrow it all to what the command line asks for.

    Raises:
        ManifestErrors: with every fault of every file.
        ConfigurationError: the revision of `--since` cannot be read.
        UsageError: nothing is selected, or an option is not what it should be.
    """
    from reconciler.planning.run import Known

    shard = _shard(session.given.shard)
    if session.given.everything and session.given.since is None:
        raise UsageError("--all goes with --since; without it, all targets are planned anyway")
    now = session.manifests()
    past = None if session.given.since is None else read_past(session, now, session.given.since)
    discovery = _discover(session, [now, past.manifests] if past else [now], client)
    if now.groups or now.pathless:
        told = now.warnings
        now = now.with_discovered({group: discovery.groups[group] for group in now.groups}, discovery.paths)
        session.warn(doubt for doubt in now.warnings if doubt not in told)
    comparison, kept = compare_with_past(session, now, past, discovery, client) if past else (None, {})
    whole = comparison.desired if comparison else now.desired
    desired = session.select(whole, failed)
    if comparison and not session.given.everything and failed is None:
        desired = comparison.narrowed(desired)
    if shard is not None:
        from reconciler.planning.shards import share

        desired = share(desired, whole, shard, session.kinds)
    return Fleet(desired, Known(discovery.ids, whole.targets, _held(discovery)), shard, kept, now)


def _shard(given: str | None) -> "Shard | None":
    number, total = os.environ.get("CI_NODE_INDEX"), os.environ.get("CI_NODE_TOTAL")
    of_job = f"{number}/{total}" if given is None and number and total else None
    if of_job is None and given is None:
        return None
    from reconciler.planning.shards import read_shard

    shard = read_shard(of_job or str(given))
    if of_job and shard.total > 1:
        LOG.warning(
            "only shard %s of the targets, as CI_NODE_INDEX and CI_NODE_TOTAL say; for all targets add --shard 1/1",
            shard,
        )
    return shard


def _discover(session: "Session", revisions: "Sequence[Manifests]", client: "Client") -> "Discovery":
    from reconciler.live.discovery import discover
    from reconciler.manifests import Hidden
    from reconciler.planning.causes import refuse_unless_api

    groups = {group: False for each in revisions for group in each.groups}
    for each in revisions:
        groups |= dict.fromkeys(each.groups_with_archived, True)
    pathless = {target for each in revisions for target in each.pathless}
    discovery = discover(groups, client, session.given.concurrency, pathless)
    if discovery.groups and all(isinstance(each, Hidden) for each in discovery.groups.values()):
        refuse_unless_api(client, client.api_url)
    return discovery


def _held(discovery: "Discovery") -> dict["DesiredTarget", str]:
    """Return the targets of which nobody can tell what their placeholders stand for."""
    advice = "its manifest uses `{path}`, `{name}` or `{namespace}`; give `path` instead of `id`"
    return {
        target: f"the path of {target} is not known ({reason}), and {advice}"
        for target, reason in discovery.unknown.items()
    }
