"""The last stage: why each difference is there, by the revision of `--since` and by the inventory. It asks for nothing.

A difference is not of the change if the manifests of the revision differ from the same live state just as well. Of such
differences the inventory knows whether the target was applied as declared: then somebody has changed the service since.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.fleet.inventory import names
from reconciler.fleet.survey import Added, FleetSurvey
from reconciler.model.creation import ToCreate
from reconciler.model.effective import digest_of
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds
from reconciler.model.plan import Change, Create, Delete, SectionPlan, Source, TargetPlan, Update
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Address, Identity, Key, Target

Place = tuple[str, str, Key | None]
"""Section, part, and the identity of an object."""

Differences = Mapping[tuple[Target, Place], Sequence[Change]]
"""The changes of a plan, by the object that they are about."""

UNDECLARED_VALUE = object()
"""The value of a field that a change does not have."""


def sources(run: FleetSurvey) -> Added:
    """Return the plan whose changes say why they are there."""
    if not any(run.planned.changes):
        return {}
    whole = run.whole.targets if run.then is None else run.then
    declared = {target.target.identity: target for target in whole}
    before = None if run.then is None else _differences_then(run, declared)
    pairs = ((target.target, declared.get(target.target.identity)) for target in run.desired.targets)
    known = _by_inventory(run, {target: whole for target, whole in pairs if whole is not None})
    if before is None and not known:
        return {}

    def told(target: TargetPlan, section: SectionPlan) -> SectionPlan:
        changes = (
            replace(change, source="change" if _is_new(change, before, run.kinds) else known.get(target.target))
            for change in section.changes
        )
        return replace(section, changes=tuple(changes))

    targets = (
        replace(target, sections=tuple(told(target, section) for section in target.sections))
        for target in run.planned.targets
    )
    return {"planned": replace(run.planned, targets=tuple(targets))}


def _differences_then(run: FleetSurvey, then: Mapping[Identity, DesiredTarget]) -> Differences:
    """Return the changes that the manifests of the revision would make now."""
    targets, absent = [], dict(run.live.absent)
    for now in run.desired.targets:
        target = then.get(now.target.identity, DesiredTarget(now.target, ()))
        standing = absent.get(now.target.identity)
        if isinstance(standing, ToCreate):
            if target.creation is None:
                continue
            absent[now.target.identity] = replace(standing, creation=target.creation)
        targets.append(_as_read(run, now, target))
    live = replace(run.live, absent=absent)
    plan, _ = run.make(replace(run.desired, targets=tuple(targets)), live, run.kinds, {})
    differences: dict[tuple[Target, Place], list[Change]] = defaultdict(list)
    for change in plan.changes:
        differences[change.address.target, _place(change.address, run.kinds)].append(change)
    return differences


def _as_read(run: FleetSurvey, now: DesiredTarget, then: DesiredTarget) -> DesiredTarget:
    """Return a target of the revision, less all that was not read of it."""
    sections = (
        replace(
            section,
            target=now.target,
            wanted={
                part: wanted
                for part, wanted in section.wanted.items()
                if (now.target, section.kind, part) in run.live.parts
            },
        )
        for section in then.sections
    )
    return replace(
        then, target=now.target, path=now.path, sections=tuple(section for section in sections if section.wanted)
    )


def _is_new(change: Change, before: Differences | None, kinds: Kinds) -> bool:
    """Return whether the manifests of the revision do not differ there, or in another way; False without a revision."""
    if before is None:
        return False
    earlier = before.get((change.address.target, _place(change.address, kinds)), ())
    return not any(_covers(other, change) for other in earlier)


def _covers(other: Change, change: Change) -> bool:
    """Return whether another change to the same object does all that a change does."""
    match other, change:
        case (Create(), Create()):
            return _holds(other.after, change.after)
        case (Update(), Update()):
            same = other.renamed_from == change.renamed_from and other.read.id == change.read.id
            return same and _holds(other.after, change.after)
        case (Delete(), Delete()):
            return other.read.id == change.read.id
    return False


def _holds(fields: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return all(fields.get(name, UNDECLARED_VALUE) == value for name, value in others.items())


def _place(address: Address, kinds: Kinds) -> Place:
    """Return where a change is, whatever the spelling of its name."""
    part = kinds[address.section].part(address.part) if address.section else None
    name = address.name
    if isinstance(part, Collection) and name is not None:
        name = part.identity(name)
    return address.section, address.part, name


def _by_inventory(run: FleetSurvey, declared: Mapping[Target, DesiredTarget]) -> dict[Target, Source]:
    """Return why targets differ that are declared like this, as far as the inventory tells.

    It does not tell of a target whose last apply was not complete, or that time alone has changed since; nor whether
    manifests are still to be applied, if it has newer ones than the checkout.
    """
    stored = run.inventory.stored
    if stored is None or not stored.commit:
        return {}
    inventory, called = stored.inventory, names(run)
    applied, ancestry = inventory.applied, run.inventory.ancestry
    is_newer = bool(applied) and ancestry is not None and not ancestry.contains(applied)
    today = run.live.read_at.date()
    known: dict[Target, Source] = {}
    for now in run.desired.targets:
        target, line = declared.get(now.target), inventory.targets.get(called(now))
        if target is None or (line is not None and (not line.digest or (line.again and line.again <= today))):
            continue
        if line is not None and line.digest == digest_of(target):
            known[now.target] = "service"
        elif not is_newer:
            known[now.target] = "pending"
    return known
