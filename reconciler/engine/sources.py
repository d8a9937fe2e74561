"""The source of each difference, by the revision of `--since` and the inventory. Makes no request. See `with_sources`.

A difference that the manifests of the revision would not make is of the `change`. Of any other, the inventory shows
whether the target was applied as declared: then the `service` was changed since. If not, the manifests of the last
apply are compared with the same live state: a difference that they make too is of the service, any other is `pending`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from reconciler.engine.compare.planner import NO_PLAN
from reconciler.engine.inventory import inventory_keys, proof
from reconciler.engine.planned import Planned
from reconciler.errors import ConfigurationError, ManifestErrors
from reconciler.memory.effective import digest_of
from reconciler.model.creation import ToCreate
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, Create, Delete, Source, Update, with_note
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredTarget, LiveState
from reconciler.model.targets import Address, Identity, Key, Target

Place = tuple[str, str, Key | None]
"""Section, part, and the identity of an object."""

Differences = Mapping[tuple[Target, Place], Sequence[Change]]
"""The changes of a plan, by the object that they are about."""

UNDECLARED_VALUE = object()
"""The value of a field that a change does not have."""


def with_sources(planned: Planned) -> Plan:
    """Return the plan with a note of the source on each change."""
    if not any(planned.plan.changes):
        return planned.plan
    declared, kinds = planned.declared, planned.run.kinds
    then = None if declared.past is None else declared.past.declared
    former_targets = {target.target.identity: target for target in (declared.whole.targets if then is None else then)}
    before = None if then is None else _former_differences(planned, former_targets)
    pairs = ((target.target, former_targets.get(target.target.identity)) for target in declared.desired.targets)
    known = _by_inventory(planned, {target: whole for target, whole in pairs if whole is not None})
    # Neither a revision nor an inventory: the source of no difference is known.
    if before is None and not known:
        return planned.plan
    applied = _former_differences(planned, _as_applied(planned, known))

    def source(change: Change) -> Source | None:
        if before is not None and _is_new(change, before, kinds):
            return "change"
        status = known.get(change.address.target)
        return "service" if status == "pending" and not _is_new(change, applied, kinds) else status

    def with_source(change: Change) -> Change:
        why = source(change)
        return with_note(change, "source", {"source": why} if why else None)

    return replace(planned.plan, targets=tuple(target.with_changes(with_source) for target in planned.plan.targets))


def _former_differences(planned: Planned, former_targets: Mapping[Identity, DesiredTarget]) -> Differences:
    """Return the changes that the manifests of the revision would make to today's live state."""
    if not former_targets:
        return {}
    desired, live, kinds = planned.declared.desired, planned.live, planned.run.kinds
    targets, absent = [], dict(live.absent)
    for now in desired.targets:
        target = former_targets.get(now.target.identity, DesiredTarget(now.target, ()))
        absent_target = absent.get(now.target.identity)
        if isinstance(absent_target, ToCreate):
            if target.creation is None:
                continue
            absent[now.target.identity] = replace(absent_target, creation=target.creation)
        targets.append(_as_read(live, now, target))
    plan = planned.run.make(replace(desired, targets=tuple(targets)), replace(live, absent=absent), kinds, NO_PLAN)
    differences: dict[tuple[Target, Place], list[Change]] = defaultdict(list)
    for change in plan.changes:
        differences[change.address.target, _place(change.address, kinds)].append(change)
    return differences


def _as_read(live: LiveState, target: DesiredTarget, former_target: DesiredTarget) -> DesiredTarget:
    """Return a target of the revision, without the parts that were not read in this run."""
    sections = (
        replace(
            section,
            target=target.target,
            wanted={
                part: wanted
                for part, wanted in section.wanted.items()
                if (target.target, section.kind, part) in live.parts
            },
        )
        for section in former_target.sections
    )
    return replace(
        former_target,
        target=target.target,
        path=target.path,
        sections=tuple(section for section in sections if section.wanted),
    )


def _is_new(change: Change, baseline: Differences, kinds: Kinds) -> bool:
    """Return whether earlier manifests would not make this change."""
    earlier = baseline.get((change.address.target, _place(change.address, kinds)), ())
    return not any(_covers(other, change) for other in earlier)


def _covers(wider_change: Change, change: Change) -> bool:
    """Return whether another change to the same object includes everything that a change does."""
    match wider_change, change:
        case (Create(), Create()):
            return _includes(wider_change.after, change.after)
        case (Update(), Update()):
            same = wider_change.renamed_from == change.renamed_from and wider_change.read.id == change.read.id
            return same and _includes(wider_change.after, change.after)
        case (Delete(), Delete()):
            return wider_change.read.id == change.read.id
    return False


def _includes(actual_fields: Mapping[str, object], expected_fields: Mapping[str, object]) -> bool:
    return all(actual_fields.get(name, UNDECLARED_VALUE) == value for name, value in expected_fields.items())


def _place(address: Address, kinds: Kinds) -> Place:
    """Return the identity of a changed object, independent of the spelling of its name."""
    part = kinds[address.section].part(address.part) if address.section else None
    name = address.name
    if isinstance(part, Collection) and name is not None:
        name = part.identity(name)
    return address.section, address.part, name


def _as_applied(planned: Planned, sources: Mapping[Target, Source]) -> dict[Identity, DesiredTarget]:
    """Return the declarations of the last apply, for targets that differ from it and have changes.

    The manifests of the last apply are read once, from git. A target counts only if its recorded digest matches.
    """
    opened, declared = planned.run.inventory, planned.declared
    changes = planned.plan.changes
    waiting = {change.address.target for change in changes if sources.get(change.address.target) == "pending"}
    if opened.stored is None or not waiting:
        return {}
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, planned.live)
    lines = {now.target.identity: inventory.targets.get(key_of(now)) for now in declared.desired.targets}
    digests = {target.identity: line.digest for target in waiting if (line := lines.get(target.identity))}
    if not inventory.applied or not digests:
        return {}
    # The commit may be missing in a shallow clone, or its manifests invalid by today's rules: the source is unknown
    # then.
    with suppress(ManifestErrors, ConfigurationError):
        proved = proof(planned.run, declared, inventory, key_of, planned.roster)
        then = proved.revision(inventory.applied).manifests.desired.targets
        as_applied = (target for target in then if digests.get(target.target.identity) == digest_of(target))
        return {target.target.identity: target for target in as_applied}
    return {}


def _by_inventory(planned: Planned, declared_by_target: Mapping[Target, DesiredTarget]) -> dict[Target, Source]:
    """Return the source of the differences of each declared target, according to the inventory.

    The source is unknown for a target whose last apply was incomplete, or that is due to change by time alone; and
    "pending" is unknown if the inventory was written by newer manifests than those of the checkout.
    """
    opened = planned.run.inventory
    if opened.stored is None or not opened.stored.commit:
        return {}
    inventory, key_of = opened.stored.inventory, inventory_keys(opened, planned.live)
    applied, ancestry = inventory.applied, opened.ancestry
    is_newer = bool(applied) and ancestry is not None and not ancestry.contains(applied)
    today = planned.live.read_at.date()
    known: dict[Target, Source] = {}
    for now in planned.declared.desired.targets:
        target, line = declared_by_target.get(now.target), inventory.targets.get(key_of(now))
        if target is None or (line is not None and (not line.digest or (line.again and line.again <= today))):
            continue
        if line is not None and line.digest == digest_of(target):
            known[now.target] = "service"
        elif not is_newer:
            known[now.target] = "pending"
    return known
