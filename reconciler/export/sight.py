"""All that can be read of the targets of an export."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.export.targets import Asked, Known, find_targets
from reconciler.live.read import learn_ids, read_part, side_by_side
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.progress import Progress
from reconciler.model.protocols import Json, Reader
from reconciler.model.state import LivePart, LiveState, PartAddress, Reference, Unknown, Unreadable
from reconciler.model.targets import Scope


@dataclass(frozen=True, slots=True)
class Sight:
    """What was read.

    Attributes:
        targets: those of which anything could be read, in `Scope.order`.
        live: their parts, those that could not be read among them, and all numeric IDs that came to light.
        warnings: what could not be read, and why.
        whole: whether something could be read of everything that was asked for.
    """

    targets: tuple[Known, ...]
    live: LiveState
    warnings: tuple[str, ...]
    whole: bool


def read_all(asked: Asked, reader: Reader, kinds: Kinds, concurrency: int, progress: Progress) -> Sight:
    """Read every section that the level of each target has, or of these the sections that were asked for.

    Raises:
        ServiceError: nothing that is named is there, or nothing at all can be read.
    """
    progress.begin("looking for targets")
    targets = find_targets(asked, reader, concurrency)
    about = [known for known in targets.known if any(kinds_at(known.scope, kinds, asked.sections))]
    wanted = [
        (known.scope, kind, part)
        for known in about
        for kind in kinds_at(known.scope, kinds, asked.sections)
        for part in kind.parts
    ]

    progress.begin("reading", (scope for scope, _, _ in wanted))

    def read(task: tuple[Scope, Kind, Part]) -> LivePart:
        scope, kind, part = task
        found = read_part(reader, part, scope, _everything(kind, scope))
        progress.step(scope)
        return found

    addresses: list[PartAddress] = [(scope, kind.name, part.name) for scope, kind, part in wanted]
    parts = dict(zip(addresses, side_by_side(read, wanted, concurrency), strict=True))
    seen = {scope for (scope, _, _), part in parts.items() if not isinstance(part, Unreadable)}
    readable = tuple(known for known in about if known.scope in seen)
    ids: dict[Reference, int | Unknown] = {
        Reference(known.scope.level, str(known.scope.ref).casefold()): known.number
        for known in targets.known
        if known.number is not None
    }
    warnings = (*targets.hidden, *_unreadable(parts, seen))
    return Sight(
        readable,
        LiveState(parts, ids | learn_ids(parts, kinds)),
        warnings,
        not targets.hidden and len(readable) == len(about),
    )


def kinds_at(scope: Scope, kinds: Kinds, sections: Iterable[str] = ()) -> Iterator[Kind]:
    """Yield the kinds that a target may hold, or of these the named ones; no names mean all."""
    names = frozenset(sections)
    yield from (kind for kind in kinds.values() if scope.level in kind.models and (not names or kind.name in names))


def _everything(kind: Kind, scope: Scope) -> Mapping[str, Json]:
    """A declaration of all fields there are, as null: whatever it takes to know them is read."""
    return dict.fromkeys(getattr(kind.models[scope.level], "model_fields", ()))


def _unreadable(parts: Mapping[PartAddress, LivePart], seen: set[Scope]) -> Iterator[str]:
    """One warning for each section, or for each target of which nothing can be read."""
    told: set[object] = set()
    for (scope, section, _), part in parts.items():
        about = (scope, section) if scope in seen else scope
        if isinstance(part, Unreadable) and about not in told:
            told.add(about)
            what = f"{section} of {scope} cannot be read and" if scope in seen else f"{scope}: nothing can be read; it"
            yield f"{what} is left out ({part.reason})"
