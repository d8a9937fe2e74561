"""All that can be read of the targets of an export."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.export.targets import ExportRequest, Known, find_targets
from reconciler.live.read import learn_ids, read_part, side_by_side
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.progress import Progress
from reconciler.model.protocols import Json, Reader
from reconciler.model.state import LivePart, LiveState, PartAddress, Reference, Unknown, Unreadable
from reconciler.model.targets import Target


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """What was read.

    Attributes:
        targets: those of which anything could be read, in `Target.order`.
        live: their parts, those that could not be read among them, and all numeric IDs that came to light.
        warnings: what could not be read, and why.
        whole: whether something could be read of everything that was asked for.
    """

    targets: tuple[Known, ...]
    live: LiveState
    warnings: tuple[str, ...]
    whole: bool


def read_all(asked: ExportRequest, reader: Reader, kinds: Kinds, concurrency: int, progress: Progress) -> LiveSnapshot:
    """Read every section that the level of each target has, or of these the sections that were asked for.

    Raises:
        ServiceError: nothing that is named is there, or nothing at all can be read.
    """
    progress.begin("looking for targets")
    targets = find_targets(asked, reader, concurrency)
    about = [known for known in targets.known if any(kinds_at(known.target, kinds, asked.sections))]
    wanted = [
        (known.target, kind, part)
        for known in about
        for kind in kinds_at(known.target, kinds, asked.sections)
        for part in kind.parts
    ]

    progress.begin("reading", (target for target, _, _ in wanted))

    def read(task: tuple[Target, Kind, Part]) -> LivePart:
        target, kind, part = task
        found = read_part(reader, part, target, _everything(kind, target))
        progress.step(target)
        return found

    addresses: list[PartAddress] = [(target, kind.name, part.name) for target, kind, part in wanted]
    parts = dict(zip(addresses, side_by_side(read, wanted, concurrency), strict=True))
    seen = {target for (target, _, _), part in parts.items() if not isinstance(part, Unreadable)}
    readable = tuple(known for known in about if known.target in seen)
    ids: dict[Reference, int | Unknown] = {
        Reference(known.target.level, str(known.target.ref).casefold()): known.number
        for known in targets.known
        if known.number is not None
    }
    warnings = (*targets.hidden, *_unreadable(parts, seen))
    return LiveSnapshot(
        readable,
        LiveState(parts, ids | learn_ids(parts, kinds)),
        warnings,
        not targets.hidden and len(readable) == len(about),
    )


def kinds_at(target: Target, kinds: Kinds, sections: Iterable[str] = ()) -> Iterator[Kind]:
    """Yield the kinds that a target may hold, or of these the named ones; no names mean all."""
    names = frozenset(sections)
    yield from (kind for kind in kinds.values() if target.level in kind.models and (not names or kind.name in names))


def _everything(kind: Kind, target: Target) -> Mapping[str, Json]:
    """A declaration of all fields there are, as null: whatever it takes to know them is read."""
    return dict.fromkeys(getattr(kind.models[target.level], "model_fields", ()))


def _unreadable(parts: Mapping[PartAddress, LivePart], seen: set[Target]) -> Iterator[str]:
    """One warning for each section, or for each target of which nothing can be read."""
    told: set[object] = set()
    for (target, section, _), part in parts.items():
        about = (target, section) if target in seen else target
        if isinstance(part, Unreadable) and about not in told:
            told.add(about)
            what = (
                f"{section} of {target} cannot be read and" if target in seen else f"{target}: nothing can be read; it"
            )
            yield f"{what} is left out ({part.reason})"
