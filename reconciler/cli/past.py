"""`--since`: the manifests as they were at a revision, and what has become of them."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.cli.settings import template_variables

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.discovery import Discovery
    from reconciler.history import Snapshot
    from reconciler.manifests import Manifests
    from reconciler.since import Comparison
    from reconciler.state import DesiredState
    from reconciler.wire import Reader


@dataclass(frozen=True, slots=True)
class Past:
    """The manifests of a revision.

    Attributes:
        manifests: as they were; those that are the same now only as far as others depend on them.
        touched: the targets, by `Scope.identity`, that can have changed; None if any can.
    """

    manifests: "Manifests"
    touched: frozenset[Hashable] | None


def read_past(session: "Session", now: "Manifests", revision: str) -> Past:
    """Read the manifests of a revision: as few of them as it takes, for most will be the same as now.

    Raises:
        ManifestErrors: with every fault of every file.
        ConfigurationError: the revision cannot be read.
    """
    from reconciler.history import is_as_then, snapshot

    then = snapshot(revision, session.paths[0])
    _warn_of_parting(session, then)
    files = then.manifests(session.paths)
    same = {name for name in now.files if name in files and is_as_then(name, files[name])}
    shared = now.shared_files
    if shared <= same and session.template_values(then.file) == session.template_values():
        changed = {name: id_ for name, id_ in files.items() if name not in same}
        past = _read(session, then, changed | {name: files[name] for name in shared})
        if not past.shared_files & {f"{revision}:{name}" for name in changed}:
            names = {f"{revision}:{name}" for name in changed}
            return Past(past, past.declared_in(names) | now.declared_in(set(now.files) - same))
    return Past(_read(session, then, files), None)


def compare_with_past(
    session: "Session", now: "DesiredState", past: Past, discovery: "Discovery", reader: "Reader"
) -> "Comparison":
    """Compare now with then, less what is not there any more, and knowing what is only called otherwise.

    A group that is gone by now counts as one without projects.

    Raises:
        ManifestErrors: a group cannot be listed for another reason.
    """
    from reconciler.manifests import Hidden
    from reconciler.since import compare, removed
    from reconciler.whereabouts import names_now

    found = {group: discovery.groups[group] for group in past.manifests.groups}
    shown = {
        group: () if isinstance(members, Hidden) and members.absent else members for group, members in found.items()
    }
    before = past.manifests
    if shown or before.pathless:
        before = before.with_discovered(shown, discovery.paths)
    then = replace(
        before.desired, targets=tuple(each for each in before.desired.targets if each.scope not in before.pathless)
    )
    touched = past.touched
    if touched is not None:
        then = replace(then, targets=tuple(each for each in then.targets if each.scope.identity in touched))
    lost = names_now([each.scope for each in removed(now, then)], reader, session.given.concurrency, discovery.ids)
    present = {target.scope.identity for target in now.targets}
    successors = {scope.identity: name for scope, names in lost.items() for name in names if name in present}
    gone = {scope.identity for scope, names in lost.items() if not names}
    then = replace(then, targets=tuple(each for each in then.targets if each.scope.identity not in gone))
    if touched is not None:
        touched |= frozenset(successors.values())
    return compare(now, then, session.kinds, successors, touched)


def _read(session: "Session", then: "Snapshot", files: dict[str, str]) -> "Manifests":
    """Read some manifests as they were; templates get the values that were with them."""
    from reconciler.manifests import read_contents

    return read_contents(
        then.contents(files),
        session.kinds,
        values=session.template_values(then.file),
        env_names=template_variables(session.given),
    )


def _warn_of_parting(session: "Session", then: "Snapshot") -> None:
    parted = then.parted()
    if parted is not None:
        instead = f"; to leave that alone, give --since {parted}, where the two parted" if parted else ""
        session.warn(
            [
                f"--since {then.revision}: this is no ancestor of what is checked out: what was declared there since, "
                f"and is not here, counts as removed{instead}"
            ]
        )
