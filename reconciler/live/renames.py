"""What has become of targets that no manifest mentions any more: gone, renamed, or now given by ID instead of path.

So that a rename is not taken for a removal, and nothing is asked of what is not there.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import index

from reconciler.errors import NotFound, ServiceError
from reconciler.live.read import ENDS_A_RUN, ask_for_record, path_in, side_by_side
from reconciler.model.protocols import Reader
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target

Identity = tuple[Level, str | int | None]
"""See `Target.identity`."""


def current_names(
    scopes: Iterable[Target], reader: Reader, concurrency: int, known: Mapping[Reference, int]
) -> dict[Target, frozenset[Identity]]:
    """Return all that each target is called now; nothing for one that is not there, or not visible.

    Args:
        scopes: the targets.
        reader: the service; it is asked for each target once.
        concurrency: how many requests at once.
        known: the numeric IDs of projects that need not be asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. After any other failure a target is called what it was.
    """
    paths = {number: reference.path for reference, number in known.items()}

    def ask(target: Target) -> frozenset[Identity]:
        if target.level is Level.PROJECT and isinstance(target.ref, int) and target.ref in paths:
            return frozenset(_identities(target, paths[target.ref]))
        if isinstance(target.ref, str) and (number := known.get(Reference(target.level, target.ref.casefold()))):
            return frozenset(_identities(target, number))
        return frozenset({target.identity} if target.level is Level.USER else _asked(target, reader))

    wanted = tuple(scopes)
    return dict(zip(wanted, side_by_side(ask, wanted, concurrency), strict=True))


def _asked(target: Target, reader: Reader) -> Iterable[Identity]:
    try:
        record = ask_for_record(target, reader)
        return [*_identities(target, index(record["id"])), *_identities(target, path_in(record, target.level))]
    except ENDS_A_RUN:
        raise
    except NotFound:
        return []
    except (ServiceError, LookupError, TypeError):
        return [target.identity]


def _identities(target: Target, other: str | int) -> Iterator[Identity]:
    yield target.identity
    yield Target(target.level, other).identity
