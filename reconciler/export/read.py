"""All that can be read of the targets of an export."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.export.targets import ExportRequest, ResolvedTarget, resolve_targets
from reconciler.live.read import learn_ids, read_part, side_by_side
from reconciler.manifests import Member
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.progress import Progress
from reconciler.model.protocols import Concurrency, Lister
from reconciler.model.state import LivePart, LiveState, PartAddress, Reference, Unreadable
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """The live state of an export.

    Attributes:
        targets: those with at least one readable section, in `Target.order`.
        live: their parts, unreadable ones included, and all numeric IDs that came with them.
        warnings: what could not be read, and why.
        whole: whether at least one section of every requested target could be read.
        members: see `ResolvedTargets`.
        archived: likewise.
    """

    targets: tuple[ResolvedTarget, ...]
    live: LiveState
    warnings: tuple[str, ...]
    whole: bool
    members: Mapping[str, tuple[Member, ...]]
    archived: tuple[Member, ...]


def read_all(
    request: ExportRequest, reader: Lister, kinds: Kinds, concurrency: Concurrency, progress: Progress
) -> LiveSnapshot:
    """Read every section that the level of each target has, or only the requested sections.

    Raises:
        ServiceError: one that `ENDS_A_RUN`, or none of the named targets can be read.
    """
    progress.begin("looking for targets")
    switches = frozenset(key for kind in kinds.values() for key in kind.needs.switches)
    resolved = resolve_targets(request, reader, concurrency, switches)
    tasks = [
        (each.target, kind, part) for each in resolved.targets for kind, part in _parts(each.target, kinds, request)
    ]
    progress.begin("reading", (target for target, _, _ in tasks))

    def read(task: tuple[Target, Kind, Part]) -> LivePart:
        target, kind, part = task
        # All fields are declared, as null, so that everything needed to know them is read.
        fields = dict.fromkeys(getattr(kind.models[target.level], "model_fields", ()))
        found = read_part(reader, part, target, fields)
        progress.step(target)
        return found

    addresses: list[PartAddress] = [(target, kind.name, part.name) for target, kind, part in tasks]
    parts = dict(zip(addresses, side_by_side(read, tasks, concurrency), strict=True))
    readable = {target for (target, _, _), part in parts.items() if not isinstance(part, Unreadable)}
    ids: dict[Reference, int | Obstacle] = {
        Reference(each.target.level, str(each.target.ref).casefold()): each.id
        for each in resolved.targets
        if each.id is not None
    }
    return LiveSnapshot(
        tuple(each for each in resolved.targets if each.target in readable),
        LiveState(parts, ids | learn_ids(parts, kinds)),
        (*resolved.warnings, *_unreadable(parts, readable)),
        not resolved.warnings and readable == {target for target, _, _ in addresses},
        resolved.members,
        resolved.archived,
    )


def _parts(target: Target, kinds: Kinds, request: ExportRequest) -> Iterator[tuple[Kind, Part]]:
    """Yield the parts of the requested sections that a target may have."""
    for kind in kinds.values():
        if target.level in kind.models and (not request.sections or kind.name in request.sections):
            yield from ((kind, part) for part in kind.parts)


def _unreadable(parts: Mapping[PartAddress, LivePart], readable: Iterable[Target]) -> Iterator[str]:
    """Yield one warning for each unreadable section, and one for each target without a readable one."""
    warnings: dict[object, str] = {}
    for (target, section, _), part in parts.items():
        if not isinstance(part, Unreadable):
            continue
        if target in readable:
            text = f"{section} of {target} cannot be read and is left out ({part.reason})"
            warnings.setdefault((target, section), text)
        else:
            warnings.setdefault(target, f"{target}: nothing can be read; it is left out ({part.reason})")
    yield from warnings.values()
