"""The targets whose declaration changed since a revision or the last apply, for `--since`. See `changed_since`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from reconciler.engine.discovery import Discovery
from reconciler.engine.run import Run
from reconciler.manifests import Manifests
from reconciler.manifests.project_sets import NO_SUCH_GROUP, UnlistedSet
from reconciler.memory.absence import undeclared
from reconciler.memory.effective import digest_of
from reconciler.memory.inventory import Inventory, target_names
from reconciler.memory.revision import Revision
from reconciler.memory.store import OpenInventory
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredState, DesiredTarget, Reference
from reconciler.model.targets import Target
from reconciler.model.wording import counted


@dataclass(frozen=True, slots=True)
class Since:
    """The changes since a revision, or since the last apply.

    Attributes:
        changed: the targets whose declaration differs; None if every target may differ.
        past: the revision, with all sets applied; None without one.
        remarks: sentences of the plan about the comparison.
        warnings: about the manifests of the revision.
    """

    changed: frozenset[Target] | None = None
    past: Revision | None = None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def changed_since(run: Run, manifests: Manifests, discovery: Discovery) -> Since:
    """Compare the manifests with the revision or with the inventory, if the run plans only changed targets.

    Without an inventory, an object that only the revision declares is not deleted: a remark of the plan says so. Every
    target counts as changed since the last apply then.

    Args:
        run: the request of the command.
        manifests: with all sets applied.
        discovery: the projects of groups.
    """
    if run.scope.since_applied:
        return _since_apply(run.inventory, manifests, discovery.ids, run.reader.now().date())
    if run.past is None:
        return Since()
    past = _with_discovered(run.past, discovery)
    changed = _changed_since_revision(manifests.desired, past.declared, past.manifests.unlisted)
    # An inventory knows what is no longer declared; one that cannot be read is a problem of its own.
    is_known = _known(run.inventory) is not None or run.inventory.error is not None
    number = 0 if is_known else undeclared(manifests.desired, past.manifests.desired, run.kinds)
    says = "are no longer declared; no inventory knows them: they stay"
    if number == 1:
        says = "is no longer declared; no inventory knows it: it stays"
    remarks = (f"{counted(number, 'object')} {says}",) if number else ()
    return Since(frozenset(changed), past, remarks, tuple(f"--since {warning}" for warning in past.warnings))


def _known(opened: OpenInventory) -> Inventory | None:
    """Return the inventory; None if the run has none, or none is stored yet."""
    return opened.stored.inventory if opened.stored is not None and opened.stored.commit else None


def _since_apply(
    opened: OpenInventory, manifests: Manifests, ids: Mapping[Reference, int | Obstacle], today: date
) -> Since:
    known = _known(opened)
    if known is not None:
        return Since(frozenset(_changed_since_apply(manifests, known, ids, today)))
    warning = (
        "--since applied: this run has no inventory, and plans all targets; an inventory takes a git repository, and "
        "neither --no-inventory nor `inventory: false`"
    )
    return Since(warnings=(warning,) if opened.stored is None and opened.error is None else ())


def _changed_since_revision(
    desired: DesiredState, former_targets: Iterable[DesiredTarget], unlisted: Sequence[UnlistedSet]
) -> Iterator[Target]:
    """Yield the targets whose effective spec differs, or may differ, from that of a revision."""
    digests = {target.target.identity: digest_of(target) for target in former_targets}
    for target in desired.targets:
        is_same = digests.get(target.target.identity) == digest_of(target)
        if not is_same or any(unlisted_set.may_select(target) for unlisted_set in unlisted):
            yield target.target


def _changed_since_apply(
    manifests: Manifests, inventory: Inventory, ids: Mapping[Reference, int | Obstacle], today: date
) -> Iterator[Target]:
    """Yield the targets whose declaration differs from the applied one, or that are due to change by time alone."""
    names, pathless = target_names(inventory), {*manifests.pathless}
    for declared in manifests.desired.targets:
        target = declared.target
        number = ids.get(Reference(target.level, str(target.ref).casefold()))
        line = inventory.targets.get(names(target, number if isinstance(number, int) else None))
        is_due = line is not None and line.again is not None and line.again <= today
        # the digest of a target whose placeholders wait for its path is unknown
        if line is None or is_due or target in pathless or line.digest != digest_of(declared):
            yield target


def _with_discovered(past: Revision, discovery: Discovery) -> Revision:
    """Return a revision with all sets applied. A group that does not exist counts as one without projects."""
    members = {group: discovery.groups[group] for group in past.manifests.index.groups}
    shown = {
        group: () if isinstance(listed, Obstacle) and listed.cause == NO_SUCH_GROUP else listed
        for group, listed in members.items()
    }
    past = past.with_discovered(shown, discovery.paths) if shown or past.manifests.pathless else past
    return past.with_moved(discovery.present_paths)
