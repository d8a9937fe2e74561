"""The live state of the targets of an export. See `read_all`."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.edit.left_out import LeftOut
from reconciler.edit.targets import ExportRequest, ResolvedTarget, ResolvedTargets, resolve_targets
from reconciler.engine.crew import side_by_side
from reconciler.engine.read import learn_ids, read_part
from reconciler.engine.why import REFUSALS, ProjectRecord, combined, section_obstacles, with_causes
from reconciler.manifests import Member
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.progress import Progress
from reconciler.model.protocols import FleetReader, Reader
from reconciler.model.state import (
    DesiredState,
    DesiredTarget,
    LivePart,
    LiveState,
    PartAddress,
    Reference,
    Section,
    Unreadable,
)
from reconciler.model.targets import Level, Target
from reconciler.model.wording import advised


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """The live state of an export.

    Attributes:
        targets: the targets with at least one readable section, in `Target.order`.
        live: their parts, including unreadable ones, and all numeric IDs that were read.
        warnings: the targets that could not be read, and the groups that could not be listed.
        left_out: the sections that could not be read.
        whole: whether at least one section of every requested target could be read.
        members: see `ResolvedTargets`.
        archived: see `ResolvedTargets`.
    """

    targets: tuple[ResolvedTarget, ...]
    live: LiveState
    warnings: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    whole: bool
    members: Mapping[str, tuple[Member, ...]]
    archived: tuple[Member, ...]


def read_all(export_request: ExportRequest, reader: FleetReader, kinds: Kinds, progress: Progress) -> LiveSnapshot:
    """Read every section that the level of each target has, or only the requested sections.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`, or none of the named targets can be read.
    """
    progress.begin("looking for targets")
    switches = frozenset(key for kind in kinds.values() for key in kind.needs.switches)
    resolved = resolve_targets(export_request, reader, switches)
    tasks = [
        (readable.target, kind, part)
        for readable in resolved.targets
        for kind, part in _parts(readable.target, kinds, export_request)
    ]
    progress.begin("reading", (target for target, _, _ in tasks))

    numbers = {target.target: target.id for target in resolved.targets}

    def read(task: tuple[Target, Kind, Part]) -> LivePart:
        target, kind, part = task
        # All fields count as declared, so that a kind makes the further requests that some fields need.
        fields = dict.fromkeys(getattr(kind.models[target.level], "model_fields", ()))
        live_part = read_part(reader, part, target, fields, numbers[target])
        progress.step(target)
        return live_part

    addresses: list[PartAddress] = [(target, kind.name, part.name) for target, kind, part in tasks]
    parts = dict(zip(addresses, side_by_side(read, tasks, reader.concurrency), strict=True))
    readable = {target for (target, _, _), part in parts.items() if not isinstance(part, Unreadable)}
    ids: dict[Reference, int | Obstacle] = {
        Reference(exported.target.level, str(exported.target.ref).casefold()): exported.id
        for exported in resolved.targets
        if exported.id is not None
    }
    live = LiveState(parts, ids | learn_ids(parts, kinds))
    return LiveSnapshot(
        tuple(target for target in resolved.targets if target.target in readable),
        live,
        resolved.warnings,
        tuple(_unreadable(_explained(live, resolved, reader, kinds), readable)),
        not resolved.warnings and readable == {target for target, _, _ in addresses},
        resolved.members,
        resolved.archived,
    )


def _parts(target: Target, kinds: Kinds, export_request: ExportRequest) -> Iterator[tuple[Kind, Part]]:
    """Yield the parts of the requested sections that a target may have."""
    for kind in kinds.values():
        if target.level in kind.models and (not export_request.sections or kind.name in export_request.sections):
            yield from ((kind, part) for part in kind.parts)


def _explained(
    live: LiveState, resolved: ResolvedTargets, reader: Reader, kinds: Kinds
) -> Iterator[tuple[PartAddress, Unreadable]]:
    """Yield the parts that could not be read, with their causes: by the lists of the groups, else by `with_causes`."""
    listed = {member.id: member for members in resolved.members.values() for member in members}
    members = {
        target.target: listed.get(target.id) for target in resolved.targets if target.target.level is Level.PROJECT
    }
    explained: dict[PartAddress, LivePart] = {}
    sections: dict[Target, list[Section]] = {}
    for place, part in live.parts.items():
        if isinstance(part, Unreadable):
            target, section, _ = place
            member = members.get(target)
            record = ProjectRecord(archived=member.archived, off=member.off) if member else ProjectRecord()
            known = (
                [*section_obstacles(target.address, kinds[section].needs, record)] if part.status in REFUSALS else []
            )
            # The target exists: its record or its group's list was read.
            explained[place] = replace(part, absent=False, cause=combined(known) if known else None)
            if not known:
                sections.setdefault(target, []).append(Section(target, section, {place[2]: {}}))
    desired = DesiredState(tuple(DesiredTarget(target, tuple(own), "") for target, own in sections.items()), "")
    explained |= with_causes(desired, LiveState(explained, {}), reader, kinds).parts
    yield from ((place, part) for place, part in explained.items() if isinstance(part, Unreadable))


def _unreadable(
    unreadable_parts: Iterable[tuple[PartAddress, Unreadable]], readable: Container[Target]
) -> Iterator[LeftOut]:
    """Yield each unreadable section, and each target without a readable one."""
    left_out: dict[object, LeftOut] = {}
    for (target, section, _), part in unreadable_parts:
        why = advised(part.cause.reason, part.cause.remedy) if part.cause else part.reason
        section_read = section if target in readable else ""
        left_out.setdefault((target, section_read), LeftOut(section_read, target, f"cannot be read: {why}"))
    yield from left_out.values()
